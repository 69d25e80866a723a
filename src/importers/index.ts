import type { InputRecord, RankCapture } from '../model/capture.ts';
import type { L10n } from '../model/lang.ts';
import type { ProfileEntry } from '../sources/source.ts';
import { readRank as readDatabaseRank } from './ascend-db/index.ts';
import { readRank as readTextRank } from './ascend-text/index.ts';
import { isParserLog, type ParserLog, readParserLog } from './parser-log.ts';
import { databaseRank, frameworkOf, hasText, type RankFolder, roleOf } from './rank-folders.ts';

export type { ClusterFolder } from './cluster/find.ts';
export { readCluster } from './cluster/index.ts';
export { findCaptures } from './find-captures.ts';
export { findRankFolders, leaf, parent, type RankFolder, rankFromFolder } from './rank-folders.ts';
export type { RawCapture } from './raw-captures.ts';
export { filesOfShare, type Share, shareCount } from './shares.ts';
export { filesRead, wantedFiles } from './wanted.ts';

/** Logs of one rank that are read. */
const MAX_LOGS = 16;

const INSTEAD: L10n = { en: 'the database export beside it is read instead', zh: '改为读取同目录的 db 导出' };

/**
 * Reads one rank folder, whatever export it holds. Of two exports side by side the text is read and the database left alone: never
 * both, never added up. Only a text export without a usable trace and without kernels gives way to the database.
 */
export async function readRank(folder: RankFolder, onBytes: (bytes: number) => void): Promise<RankCapture> {
  const logs = folder.entries.filter((e) => isParserLog(e.path));
  const exported = await readExport({ ...folder, entries: folder.entries.filter((e) => !logs.includes(e)) }, onBytes);
  const capture = await withLogs(exported, logs);
  const framework = frameworkOf(folder) ?? (capture.trace === null || capture.trace.host.name.length === 0 ? null : 'PyTorch');
  return { ...capture, settings: { ...capture.settings, framework } };
}

/** What the profiler's own messages say of the capture. */
async function withLogs(capture: RankCapture, entries: readonly ProfileEntry[]): Promise<RankCapture> {
  if (entries.length === 0) return capture;
  const logs: ParserLog[] = [];
  for (const entry of entries.slice(0, MAX_LOGS)) logs.push(await readParserLog(entry));
  const said = logs.map((l) => l.stopped);
  const stopped = (['RECORD', 'WARMUP', 'RECORD_AND_SAVE'] as const).find((state) => said.includes(state)) ?? null;
  return { ...capture, settings: { ...capture.settings, stopped }, inputs: [...capture.inputs, ...logs.map((l) => l.record)] };
}

async function readExport(folder: RankFolder, onBytes: (bytes: number) => void): Promise<RankCapture> {
  const hasDatabase = folder.entries.some((e) => databaseRank(roleOf(folder, e)) !== null);
  if (!hasText(folder) && (hasDatabase || folder.entries.some((e) => roleOf(folder, e) === 'analysis.db')))
    return readDatabaseRank(folder, onBytes);
  if (!hasDatabase) return readTextRank(folder, onBytes);
  const text = await readTextRank(folder, onBytes);
  if (text.trace !== null || text.kernels !== null) return text;
  const database = await readDatabaseRank(folder, onBytes);
  if (database.trace === null && database.kernels === null) return { ...text, inputs: joined(text.inputs, database.inputs) };
  const instead = text.inputs.map((i): InputRecord => (i.status === 'used' ? { ...i, status: 'ignored', note: { text: INSTEAD } } : i));
  return { ...database, inputs: joined(database.inputs, instead) };
}

/** The records of what was read, with the other reading's word on files that it left alone. */
function joined(read: readonly InputRecord[], other: readonly InputRecord[]): InputRecord[] {
  const words = new Map(other.map((i) => [i.path, i] as const));
  return read.map((i) => (i.status === 'ignored' ? (words.get(i.path) ?? i) : i));
}

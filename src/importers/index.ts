import type { InputRecord, RankCapture } from '../model/capture.ts';
import type { L10n } from '../model/lang.ts';
import { readRank as readDatabaseRank } from './ascend-db/index.ts';
import { readRank as readTextRank } from './ascend-text/index.ts';
import { databaseRank, frameworkOf, hasText, type RankFolder, roleOf } from './rank-folders.ts';

export type { ClusterFolder } from './cluster/find.ts';
export { readCluster } from './cluster/index.ts';
export { findCaptures } from './find-captures.ts';
export { findRankFolders, leaf, parent, type RankFolder, rankFromFolder } from './rank-folders.ts';
export type { RawCapture } from './raw-captures.ts';
export { filesRead, wantedFiles } from './wanted.ts';

const INSTEAD: L10n = { en: 'the database export beside it is read instead', zh: '改为读取同目录的 db 导出' };

/**
 * Reads one rank folder, whatever export it holds. Of two exports side by side the text is read and the database left alone: never
 * both, never added up. Only a text export without a usable trace and without kernels gives way to the database.
 */
export async function readRank(folder: RankFolder, onBytes: (bytes: number) => void): Promise<RankCapture> {
  const capture = await readExport(folder, onBytes);
  const framework = frameworkOf(folder) ?? (capture.trace === null || capture.trace.host.name.length === 0 ? null : 'PyTorch');
  return { ...capture, settings: { ...capture.settings, framework } };
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

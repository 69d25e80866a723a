import { rankFacts } from '../facts/rank/index.ts';
import {
  type ClusterFolder,
  filesRead,
  findCaptures,
  type RankFolder,
  type RawCapture,
  rankFromFolder,
  readCluster,
} from '../importers/index.ts';
import type { InputRecord } from '../model/capture.ts';
import type { RankFacts, UploadFacts } from '../model/facts.ts';
import { type Digest, digestFromJson, looksLikeFacts } from '../model/facts-json.ts';
import type { L10n, Message } from '../model/lang.ts';
import { type ProfileEntry, type ProfileSource, readWhole } from '../sources/source.ts';
import { chooseCapture } from './choose-capture.ts';
import { describeBeside, describeGpu, describeRaw, describeRefused, describeRest, rawNote } from './describe-inputs.ts';
import { readRanks } from './read-ranks.ts';
import { nothingToRead, unreadable } from './refusals.ts';

export interface Collected extends UploadFacts {
  /** One entry per rank, those that hold something to judge. */
  readonly ranks: readonly RankFacts[];
}

export interface Count {
  readonly done: number;
  readonly total: number;
}

export interface CollectOptions {
  /** Bytes of the files that are read, and ranks that are finished. */
  readonly onBytes: (done: number, total: number, ranks: Count) => void;
  readonly signal?: AbortSignal | undefined;
  /** More of the same job is read elsewhere: paths are those below the name of the upload. */
  readonly isOneOfMany?: boolean;
  /** Other ranks of the same upload are read elsewhere: which capture counts is told when all are put together. */
  readonly isShare?: boolean;
}

/** Files of no rank that are listed one by one; beyond it the rest is left out of the list. */
const MAX_REST = 1_000;

/** Reads everything that was given, profiles and facts.json alike, down to the facts of each rank. Throws AdviseError when nothing can be used. */
export async function collectRanks(sources: readonly ProfileSource[], options: CollectOptions): Promise<Collected> {
  const folders: RankFolder[] = [];
  const clusters: ClusterFolder[] = [];
  const raw: RawCapture[] = [];
  const inputs: InputRecord[] = [];
  const rest: ProfileEntry[] = [];
  const digests: Digest[] = [];
  for (const [i, source] of sources.entries()) {
    const isMany = sources.length > 1 || options.isOneOfMany === true;
    const within = isMany ? (path: string) => below(labelOf(sources, i), path) : (path: string) => path;
    const renamed = (entry: ProfileEntry): ProfileEntry => ({ ...entry, path: within(entry.path) });
    const found = await findCaptures(source.entries);
    for (const folder of found.folders) folders.push(moved(folder, within));
    for (const cluster of found.clusters) clusters.push(moved(cluster, within));
    for (const capture of found.raw) raw.push({ ...capture, folder: within(capture.folder) });
    for (const archive of source.refused) inputs.push(describeRefused(within(archive.path), archive));
    for (const entry of found.gpu) inputs.push(describeGpu(renamed(entry)));
    inputs.push(...describeBeside(found.beside.map(renamed)));
    for (const entry of found.rest) {
      const digest = await readDigest(entry);
      if (digest === null) rest.push(renamed(entry));
      else digests.push(digest);
    }
  }
  for (const capture of raw) inputs.push(describeRaw(capture, sources[0]!.label));
  for (const entry of rest.slice(0, MAX_REST)) inputs.push(describeRest(entry));
  if (folders.length === 0 && clusters.length === 0) {
    const [only, more] = digests;
    // A digest by itself was chosen and described when it was made.
    if (only?.upload != null && more === undefined && only.ranks.length > 0) return { ranks: only.ranks, ...only.upload };
  }
  const uploads = digests.map((d) => d.upload).filter((u) => u !== null);
  const digested = digests.flatMap((d) => d.ranks);
  if (folders.length === 0 && clusters.length === 0 && digested.length === 0) throw nothingToRead(sources, raw, inputs);

  const total = folders.reduce((sum, f) => sum + filesRead(f).reduce((s, e) => s + e.bytes, 0), 0);
  const onRead = (bytes: number, ranks: number): void =>
    options.onBytes(Math.min(bytes, total), total, { done: ranks, total: folders.length });
  const read = await readRanks(folders, onRead, options.signal);
  const named = read.map((r) => (r.folder === '' ? namedAfter(r, sources[0]!.label) : r));
  const ranks = [...digested, ...named];
  const readable = ranks.filter(isUsable);
  const chosen = options.isShare === true ? { ranks: readable, inputs: [], notes: [] } : chooseCapture(readable);
  const cluster = await readClusters(clusters, chosen.ranks.length > 0);
  const usable = chosen.ranks.length > 0 ? chosen.ranks : cluster.ranks;
  const before = uploads.flatMap((u) => u.inputs);
  const said = merged([...before, ...inputs, ...ranks.flatMap((r) => r.inputs), ...cluster.inputs], chosen.inputs);
  if (usable.length === 0) throw unreadable(ranks, raw, said);
  const own = [...chosen.notes, ...cluster.notes, ...rawNote(raw, usable), ...usable.flatMap((r) => r.notes)];
  const others = [...uploads.flatMap((u) => u.otherRanks), ...raw.map((c) => c.rank).filter((r) => r !== null)];
  const notes = uploads.length === 0 ? own : once([...uploads.flatMap((u) => u.notes), ...own]);
  const otherRanks = [...new Set(others)].filter((r) => !usable.some((u) => u.rank === r));
  return { ranks: usable, inputs: said, notes, otherRanks };
}

/** Digests bring notes that are made again when their ranks are joined. */
function once(notes: readonly Message[]): Message[] {
  return [...new Map(notes.map((note) => [JSON.stringify(note), note] as const)).values()];
}

/** A rank folder given by itself has no name inside the upload: the upload's own name may hold rank and framework. */
function namedAfter(rank: RankFacts, label: string): RankFacts {
  const framework = /_ascend_ms$/.test(label) ? 'MindSpore' : rank.settings.framework;
  return { ...rank, rank: rank.rank ?? rankFromFolder(label), settings: { ...rank.settings, framework } };
}

function isUsable(rank: RankFacts): boolean {
  return rank.steps.length > 0 || rank.tape !== null || rank.collectives.length > 0;
}

/** One record per file; a later word replaces the first. */
function merged(first: readonly InputRecord[], later: readonly InputRecord[]): InputRecord[] {
  return [...new Map([...first, ...later].map((i) => [i.path, i] as const)).values()];
}

/** Ranks of the cluster's tables, which hold less than the folders of the ranks: they count only when there are none. */
async function readClusters(
  clusters: readonly ClusterFolder[],
  haveRanks: boolean,
): Promise<{ ranks: RankFacts[]; inputs: InputRecord[]; notes: Message[] }> {
  const instead: L10n = { en: 'the folders of the ranks are read instead', zh: '改为读取各卡的目录' };
  const only: L10n = {
    en: 'Only the cluster tables are here: how long each rank computes, communicates and is free, not why.',
    zh: '只有集群汇总表：可知各卡的计算、通信与空闲时间，但不知原因。',
  };
  if (haveRanks) {
    const inputs = clusters
      .flatMap((c) => c.entries)
      .map((e): InputRecord => {
        return { path: e.path, kind: 'cluster tables', bytes: e.bytes, status: 'ignored', note: { text: instead } };
      });
    return { ranks: [], inputs, notes: [] };
  }
  const read = [];
  for (const cluster of clusters) read.push(await readCluster(cluster));
  const { ranks } = chooseCapture(read.flatMap((r) => r.captures.map(rankFacts)).filter(isUsable));
  return { ranks: [...ranks], inputs: read.flatMap((r) => r.inputs), notes: ranks.length === 0 ? [] : [{ text: only }] };
}

/** A digest is small; a larger file of that name is something else. */
const MAX_FACTS_BYTES = 512 << 20;

/** A facts.json, or null when the entry is none. */
async function readDigest(entry: ProfileEntry): Promise<Digest | null> {
  if (!/\.json$/i.test(entry.path) || entry.bytes > MAX_FACTS_BYTES) return null;
  let head = '';
  for await (const chunk of entry.open()) {
    head = chunk.toString('utf8', 0, Math.min(200, chunk.length));
    break;
  }
  if (!looksLikeFacts(head)) return null;
  const bytes = await readWhole(entry, MAX_FACTS_BYTES);
  return bytes === null ? null : digestFromJson(bytes.toString('utf8'));
}

/** Two uploads of one name stay apart. */
function labelOf(sources: readonly ProfileSource[], index: number): string {
  const { label } = sources[index]!;
  return sources.findIndex((s) => s.label === label) === index ? label : `${label}-${index + 1}`;
}

function below(label: string, path: string): string {
  return path === '' ? label : `${label}/${path}`;
}

/** The same folder with every path in it changed. */
function moved<T extends ClusterFolder & Pick<RankFolder, 'readAs'>>(folder: T, path: (old: string) => string): T {
  const readAs =
    folder.readAs === undefined ? undefined : Object.fromEntries(Object.entries(folder.readAs).map(([p, as]) => [path(p), as]));
  return { ...folder, folder: path(folder.folder), entries: folder.entries.map((e) => ({ ...e, path: path(e.path) })), readAs };
}

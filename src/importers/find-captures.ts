import type { ProfileEntry } from '../sources/source.ts';
import { type ClusterFolder, findClusters } from './cluster/find.ts';
import { findLoneFiles } from './lone-files.ts';
import { splitDevices } from './msprof/devices.ts';
import { findMsprof } from './msprof/find.ts';
import { isParserLog } from './parser-log.ts';
import { ancestors, findRankFolders, leaf, parent, type RankFolder } from './rank-folders.ts';
import { findRaw, type RawCapture } from './raw-captures.ts';

/** Everything of an upload that means something to an importer, and what is left. */
export interface Found {
  readonly folders: RankFolder[];
  readonly clusters: ClusterFolder[];
  readonly raw: RawCapture[];
  /** Raw data beside the export made of it. */
  readonly beside: ProfileEntry[];
  /** Traces of a GPU. */
  readonly gpu: ProfileEntry[];
  readonly rest: ProfileEntry[];
}

/** MS Service Profiler: the timeline of a serving engine's requests, by names that only it uses together. */
const SERVICE_TRACE = /(^|\/)chrome_tracing\.json$/;
/** `msprof op`: one operator, its tables look like those of a job. */
const OPERATOR_PROFILE = /(^|\/)OPPROF_/;

/** The tidy rank folders first; then `msprof` exports, cluster tables, and whatever can be told by its content. */
export async function findCaptures(entries: readonly ProfileEntry[]): Promise<Found> {
  const { tidy, inside, msprof, clusters, foreign, untold } = sortByName(entries);
  const lone = await findLoneFiles(untold);
  const perDevice = await Promise.all(msprof.map((folder) => splitDevices(folder, entries)));
  const { true: logs = [], false: loose = [] } = Object.groupBy(lone.rest, (e) => (isParserLog(e.path) ? 'true' : 'false'));
  const folders = [...tidy, ...perDevice.flat(), ...lone.folders].map((folder) => withLogs(folder, logs));
  const { raw, beside, rest } = findRaw(
    [...(folders.length > 0 ? loose : lone.rest), ...inside],
    folders.map((f) => f.folder),
  );
  return { folders, clusters, raw, beside, gpu: lone.gpu, rest: [...foreign, ...rest] };
}

/** A log that lies above several ranks speaks of all of them. */
function withLogs(folder: RankFolder, logs: readonly ProfileEntry[]): RankFolder {
  const above = new Set([folder.folder, ...ancestors(folder.folder)]);
  const placeOf = (e: ProfileEntry): string => (leaf(parent(e.path)) === 'logs' ? parent(parent(e.path)) : parent(e.path));
  const own = logs.filter((e) => above.has(placeOf(e)));
  return own.length === 0 ? folder : { ...folder, entries: [...folder.entries, ...own] };
}

/** What the names of the files tell. */
export interface ByName {
  readonly tidy: readonly RankFolder[];
  readonly msprof: readonly RankFolder[];
  readonly clusters: ClusterFolder[];
  /** Below a tidy folder, and none of its files. */
  readonly inside: readonly ProfileEntry[];
  readonly foreign: readonly ProfileEntry[];
  /** Only their content can tell. */
  readonly untold: readonly ProfileEntry[];
}

export function sortByName(entries: readonly ProfileEntry[]): ByName {
  const tidy = findRankFolders(entries);
  const roots = new Set(tidy.folders.map((f) => f.folder));
  const isInside = (entry: ProfileEntry): boolean => [...ancestors(entry.path)].some((folder) => roots.has(folder));
  const { true: inside = [], false: outside = [] } = Object.groupBy(tidy.rest, (e) => (isInside(e) ? 'true' : 'false'));
  const msprof = findMsprof(outside);
  const cluster = findClusters(msprof.rest);
  const isForeign = (e: ProfileEntry): boolean => SERVICE_TRACE.test(e.path) || OPERATOR_PROFILE.test(e.path);
  return {
    tidy: tidy.folders,
    msprof: msprof.folders,
    clusters: cluster.clusters,
    inside,
    foreign: cluster.rest.filter(isForeign),
    untold: cluster.rest.filter((e) => !isForeign(e)),
  };
}

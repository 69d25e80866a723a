import type { ProfileEntry } from '../sources/source.ts';
import { type ClusterFolder, findClusters } from './cluster/find.ts';
import { findLoneFiles } from './lone-files.ts';
import { findMsprof } from './msprof/find.ts';
import { ancestors, findRankFolders, type RankFolder } from './rank-folders.ts';
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
  const tidy = findRankFolders(entries);
  const roots = new Set(tidy.folders.map((f) => f.folder));
  const inside = (entry: ProfileEntry): boolean => [...ancestors(entry.path)].some((folder) => roots.has(folder));
  const outside = tidy.rest.filter((e) => !inside(e));
  const msprof = findMsprof(outside);
  const cluster = findClusters(msprof.rest);
  const foreign = cluster.rest.filter((e) => SERVICE_TRACE.test(e.path) || OPERATOR_PROFILE.test(e.path));
  const lone = await findLoneFiles(cluster.rest.filter((e) => !foreign.includes(e)));
  const folders = [...tidy.folders, ...msprof.folders, ...lone.folders];
  const { raw, beside, rest } = findRaw(
    [...lone.rest, ...tidy.rest.filter(inside)],
    folders.map((f) => f.folder),
  );
  return { folders, clusters: cluster.clusters, raw, beside, gpu: lone.gpu, rest: [...foreign, ...rest] };
}

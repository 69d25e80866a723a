import type { ProfileEntry } from '../../sources/source.ts';
import { parent } from '../rank-folders.ts';

/** One `cluster_analysis_output`: tables that hold all ranks of a job. */
export interface ClusterFolder {
  readonly folder: string;
  readonly entries: readonly ProfileEntry[];
}

const CLUSTER =
  /(^|\/)(cluster_step_trace_time\.csv|cluster_communication(_matrix)?\.json|communication_group\.json|cluster_analysis\.db(-wal)?|cluster_analysis_output\/[^/]+\.db(-wal)?)$/;

export function findClusters(entries: readonly ProfileEntry[]): { clusters: ClusterFolder[]; rest: ProfileEntry[] } {
  const own = entries.filter((e) => CLUSTER.test(e.path));
  const clusters = [...Map.groupBy(own, (e) => parent(e.path))].map(([folder, list]) => ({ folder, entries: list }));
  return { clusters, rest: entries.filter((e) => !CLUSTER.test(e.path)) };
}

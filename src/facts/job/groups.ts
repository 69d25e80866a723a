import type { JobFacts } from './index.ts';

/** What a process group is for. `world` is the default group; `other` has a name that says nothing of the traffic below. */
export type Role = 'data' | 'tensor' | 'context' | 'pipeline' | 'expert' | 'world' | 'other' | 'unknown';

/** One process group of the job. */
export interface JobGroup {
  readonly hash: string;
  readonly role: Role;
  /** As the framework names it; null when the profile does not. */
  readonly name: string | null;
  /** Global ranks in group order; empty when unknown. */
  readonly ranks: readonly number[];
  /** Members, known from the metadata or from the ends of its links; null when unknown. */
  readonly size: number | null;
}

/** Role by the name that Megatron, MindSpeed and DeepSpeed give: tp, dp_cp, exp, pp_new_stream, … */
export function roleOf(name: string | null): Role {
  if (name === null) return 'unknown';
  if (/^(default_group|world)$/i.test(name)) return 'world';
  if (/^(dp|edp|data_parallel|intra_dp|inter_dp)(_cp|_modulo|_\d|$)|^(dp|data)_/i.test(name)) return 'data';
  if (/^(tp|tensor_parallel)$|^tp_\d+$/i.test(name)) return 'tensor';
  if (/^(cp|context_parallel|sp|sequence_parallel|ulysses)(_|$)/i.test(name)) return 'context';
  if (/^(pp|pipeline_parallel)(_|$)/i.test(name)) return 'pipeline';
  if (/^(exp|ep|expert|expert_parallel|tp_exp|mp_exp|ep_tp|tp_ep)(_|$)/i.test(name)) return 'expert';
  return 'other';
}

const known = new WeakMap<JobFacts, ReadonlyMap<string, JobGroup>>();

/** Groups by the hash that their calls carry. */
export function groupsOf(job: JobFacts): ReadonlyMap<string, JobGroup> {
  const before = known.get(job);
  if (before !== undefined) return before;
  const groups = new Map<string, JobGroup>();
  for (const rank of job.ranks) {
    for (const g of rank.groups) {
      if (!groups.has(g.hash))
        groups.set(g.hash, { hash: g.hash, role: roleOf(g.role), name: g.role, ranks: g.ranks, size: g.ranks.length || null });
    }
    for (const [hash, ids] of rank.links?.ids ?? []) {
      if (!groups.has(hash)) groups.set(hash, { hash, role: 'unknown', name: null, ranks: [], size: ids.length || null });
    }
  }
  const called = new Set(job.matches.map((m) => m.group));
  for (const hash of called) if (!groups.has(hash)) groups.set(hash, { hash, role: 'unknown', name: null, ranks: [], size: null });
  // Without metadata, a group of all ranks is the default group, and so is the only one there is.
  for (const [hash, group] of groups) {
    if (group.role !== 'unknown') continue;
    const isOnly = called.size === 1 && called.has(hash);
    if (isOnly || (group.size !== null && job.world.size !== null && group.size >= job.world.size))
      groups.set(hash, { ...group, role: 'world' });
  }
  known.set(job, groups);
  return groups;
}

export function groupOf(job: JobFacts, hash: string): JobGroup {
  return groupsOf(job).get(hash) ?? { hash, role: 'unknown', name: null, ranks: [], size: null };
}

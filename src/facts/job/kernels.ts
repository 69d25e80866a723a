import { quantile } from '../../base/statistics.ts';
import { type KernelGroup, UNGROUPED } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed } from './per-step.ts';

/** A group of kernels on one rank, with what it costs a step. */
export interface RankGroup {
  /** Index into the job's ranks, and into the groups of that rank. */
  readonly rank: number;
  readonly index: number;
  readonly group: KernelGroup;
  /** Median over the used steps. */
  readonly ms: number;
  readonly meanNs: number;
}

/** Groups of every rank that has them, most time first. */
export function rankGroups(job: JobFacts, keep: (group: KernelGroup) => boolean): RankGroup[] {
  const out: RankGroup[] = [];
  job.ranks.forEach((facts, rank) => {
    facts.kernels?.groups.forEach((group, index) => {
      if (!keep(group)) return;
      const ms = medianOfUsed(
        job,
        Array.from(group.stepNs, (ns) => ns / 1e6),
      );
      out.push({ rank, index, group, ms: ms || 0, meanNs: group.ns / group.count });
    });
  });
  return out.sort((a, b) => b.ms - a.ms || a.rank - b.rank || a.index - b.index);
}

/** Sum by rank, ms per step. */
export function msByRank(job: JobFacts, groups: readonly RankGroup[], amount: (of: RankGroup) => number = (of) => of.ms): number[] {
  const out = job.ranks.map(() => 0);
  for (const of of groups) out[of.rank] = out[of.rank]! + amount(of);
  return out;
}

/** The rank to speak of: the one that sets the pace if it is among them, else the one with most. */
export function spokesman(job: JobFacts, ms: readonly number[], among: readonly number[]): number {
  return among.includes(job.steps.pace) ? job.steps.pace : among.reduce((a, b) => (ms[b]! > ms[a]! ? b : a), among[0]!);
}

/** Nodes of the tape that belong to groups of one rank, with the new duration of each; a duration of 0 is for `nodes` instead. */
export function changedDurations(job: JobFacts, rank: number, left: ReadonlyMap<number, (ns: number) => number>): Map<number, number> {
  const out = new Map<number, number>();
  const { kernels, tape } = job.ranks[rank]!;
  if (kernels === null || tape === null) return out;
  for (let node = 0; node < kernels.ofNode.length; node++) {
    const group = kernels.ofNode[node]!;
    const change = group === UNGROUPED ? undefined : left.get(group);
    if (change !== undefined) out.set(node, change(tape.duration[node]!));
  }
  return out;
}

/** Nodes of the tape in the groups. */
export function nodesOf(job: JobFacts, rank: number, groups: ReadonlySet<number>): Set<number> {
  const out = new Set<number>();
  job.ranks[rank]!.kernels?.ofNode.forEach((group, node) => {
    if (group !== UNGROUPED && groups.has(group)) out.add(node);
  });
  return out;
}

/** A kernel that moves less says more about its launch than about the memory. */
const MEGABYTE = 1_000_000;

/** What a vector kernel of this job reaches: bytes per ns of large ones, and the time of small ones. */
export interface VectorPace {
  /** NaN when no large vector kernel with shapes was seen. */
  readonly bytesPerNs: number;
  /** NaN when no small one was. */
  readonly smallNs: number;
}

export function vectorPace(job: JobFacts): VectorPace {
  const large: { rate: number; ns: number }[] = [];
  const small: number[] = [];
  for (const { kernels } of job.ranks) {
    for (const group of kernels?.groups ?? []) {
      if (group.core !== 'AI_VECTOR_CORE') continue;
      const bytes = group.bytesIn + group.bytesOut;
      const mean = group.ns / group.count;
      if (bytes >= MEGABYTE && mean > 0) large.push({ rate: bytes / mean, ns: group.ns });
      else if (mean > 0) small.push(mean);
    }
  }
  large.sort((a, b) => a.rate - b.rate);
  const half = large.reduce((sum, g) => sum + g.ns, 0) / 2;
  let passed = 0;
  const middle = large.find((g) => {
    passed += g.ns;
    return passed >= half;
  });
  return { bytesPerNs: middle?.rate ?? Number.NaN, smallNs: quantile(small, 0.5) };
}

/** Time of an AI core kernel that moves the same bytes at this job's own pace; NaN when the job does not show it. */
export function coreTime(pace: VectorPace, bytes: number): number {
  const moved = bytes / pace.bytesPerNs;
  if (bytes < MEGABYTE) return Number.isNaN(pace.smallNs) ? moved : Math.max(pace.smallNs, moved || 0);
  return Number.isNaN(pace.smallNs) ? moved : Math.max(moved, pace.smallNs);
}

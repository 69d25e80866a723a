import { median } from '../../base/statistics.ts';
import type { JobFacts } from './index.ts';
import { hasShapes, sameWork } from './same-work.ts';

/** From here on a card counts as slower than the others at the same kernels; cards of one job differ by 1 to 2 % in real captures. */
export const SLOWER = 1.05;
/** Part of a rank's kernel time that other ranks must have, too, before its card is judged. */
const COMPARABLE = 0.5;

/** How many times as long as on the other ranks the same kernels take; 1 when it cannot be told. */
export function kernelRatio(job: JobFacts, rank: number): number {
  const { ratio, cover } = sameWork(job)[rank]!;
  return hasShapes(job.ranks[rank]!) && cover >= COMPARABLE && ratio > 0 ? ratio : 1;
}

/** The same for a slow card; 1 when it is not slow or cannot be told. */
export function slowness(job: JobFacts, rank: number): number {
  const ratio = kernelRatio(job, rank);
  return ratio >= SLOWER ? ratio : 1;
}

/** Pipeline stages: ranks by their place in the `pp` groups, with their computing time. Rank numbers are indices into the job's ranks. */
export interface Stages {
  /** `workMs` is the computing time were no card slower than the others: what the split of the layers makes of it. */
  readonly stages: readonly { readonly ranks: readonly number[]; readonly computingMs: number; readonly workMs: number }[];
  /** (max − mean) of the stages' `workMs`: what an even split would take off the longest one, ms. */
  readonly excessMs: number;
  readonly longest: number;
}

export function stages(job: JobFacts): Stages | null {
  const stageOf = new Map<number, number>();
  for (const rank of job.ranks) {
    for (const group of rank.groups) {
      if (group.role === null || !/^pp(_|$)/.test(group.role) || group.ranks.length < 2) continue;
      const ordered = [...group.ranks].sort((a, b) => a - b);
      ordered.forEach((r, stage) => {
        if (!stageOf.has(r)) stageOf.set(r, stage);
      });
    }
  }
  if (stageOf.size === 0) {
    const pp = job.ranks[0]?.parallel.pipeline_model_parallel_size ?? 1;
    const size = job.world.size;
    if (pp < 2 || size === null || size % pp !== 0) return null;
    for (let r = 0; r < size; r++) stageOf.set(r, Math.floor(r / (size / pp)));
  }
  let count = 0;
  for (const stage of stageOf.values()) count = Math.max(count, stage + 1);
  const list = Array.from({ length: count }, () => ({ ranks: [] as number[], values: [] as number[], work: [] as number[] }));
  job.ranks.forEach((rank, i) => {
    const stage = rank.rank === null ? undefined : stageOf.get(rank.rank);
    if (stage === undefined) return;
    list[stage]!.ranks.push(i);
    const ms = median(job.steps.usedIndex.map((s) => rank.steps[s]?.breakdown.computingMs ?? Number.NaN).filter((v) => !Number.isNaN(v)));
    if (Number.isNaN(ms)) return;
    list[stage]!.values.push(ms);
    list[stage]!.work.push(ms / slowness(job, i));
  });
  if (list.some((s) => s.values.length === 0)) return null;
  const result = list.map((s) => ({ ranks: s.ranks, computingMs: median(s.values), workMs: median(s.work) }));
  const times = result.map((s) => s.workMs);
  const mean = times.reduce((a, b) => a + b, 0) / times.length;
  const longest = times.indexOf(Math.max(...times));
  return { stages: result, excessMs: times[longest]! - mean, longest };
}

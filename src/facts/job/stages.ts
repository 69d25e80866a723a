import { median } from '../../base/statistics.ts';
import type { JobFacts } from './index.ts';

/** Pipeline stages: ranks by their place in the `pp` groups, with their computing time. Rank numbers are indices into the job's ranks. */
export interface Stages {
  readonly stages: readonly { readonly ranks: readonly number[]; readonly computingMs: number }[];
  /** (max − mean) of the stages' computing time: what an even split would take off the longest one, ms. */
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
  const list = Array.from({ length: count }, () => ({ ranks: [] as number[], values: [] as number[] }));
  job.ranks.forEach((rank, i) => {
    const stage = rank.rank === null ? undefined : stageOf.get(rank.rank);
    if (stage === undefined) return;
    list[stage]!.ranks.push(i);
    const ms = median(job.steps.usedIndex.map((s) => rank.steps[s]?.breakdown.computingMs ?? Number.NaN).filter((v) => !Number.isNaN(v)));
    if (!Number.isNaN(ms)) list[stage]!.values.push(ms);
  });
  if (list.some((s) => s.values.length === 0)) return null;
  const result = list.map((s) => ({ ranks: s.ranks, computingMs: median(s.values) }));
  const times = result.map((s) => s.computingMs);
  const mean = times.reduce((a, b) => a + b, 0) / times.length;
  const longest = times.indexOf(Math.max(...times));
  return { stages: result, excessMs: times[longest]! - mean, longest };
}

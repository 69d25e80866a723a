import { median } from '../../base/statistics.ts';
import { COMPUTE, type RankFacts } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';

/** Computing of the last backward of each step, which gradients can hide behind; ms by step index. NaN where the profile does not tell. */
export function backwardComputing(rank: RankFacts): number[] {
  const ranges = rank.steps.map((_, s) => rank.phases.backwards[s]?.at(-1) ?? null);
  const out = ranges.map((range) => (range === null ? Number.NaN : 0));
  const { tape } = rank;
  if (tape === null) return out.map(() => Number.NaN);
  let busyUntil = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < tape.start.length; i++) {
    const step = tape.step[i]!;
    const range = ranges[step] ?? null;
    if (tape.kind[i] !== COMPUTE || range === null || !(tape.launch[i]! >= range[0] && tape.launch[i]! <= range[1])) continue;
    const end = tape.start[i]! + tape.duration[i]!;
    out[step] = out[step]! + Math.max(0, end - Math.max(tape.start[i]!, busyUntil)) / 1e6;
    busyUntil = Math.max(busyUntil, end);
  }
  return out;
}

/** Without a timeline: a backward is two thirds of the computing at most, all micro-batches together. */
export function backwardComputingAtMost(job: JobFacts, rank: number): number {
  const computing = job.steps.usedIndex.map((s) => job.ranks[rank]!.steps[s]?.breakdown.computingMs ?? Number.NaN);
  return (2 / 3) * median(computing.filter((ms) => !Number.isNaN(ms)));
}

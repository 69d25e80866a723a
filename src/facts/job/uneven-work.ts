import { median } from '../../base/statistics.ts';
import { COMPUTE } from '../../model/facts.ts';
import type { Removal } from '../../replay/replay.ts';
import type { JobFacts } from './index.ts';
import { computeMsByStep } from './lateness.ts';
import { hasShapes, sameWork } from './same-work.ts';

/** Ranks do different amounts of work in the same step, and not always the same one most: batches of different length. */
export interface UnevenWork {
  /** What the rank with most work computes more than the mean, ms, median of the used steps. */
  readonly excessMs: number;
  /** The step in which it is most. */
  readonly worst: { readonly step: number; readonly rank: number; readonly ownMs: number; readonly meanMs: number };
  /** Every rank's kernels scaled to the mean of their step. */
  readonly even: ReadonlyMap<number, Removal>;
}

/** Kernels of the same type and shapes take as long on all ranks within this share: the difference is work, not the card. */
const SAME_CARD = 0.04;
/** Part of the kernel time that several ranks have in common over all steps. */
const COMPARABLE = 0.5;

/** null when cards differ, shapes are unknown, or the ranks of `ranks` compute alike. */
export function unevenWork(job: JobFacts, ranks: readonly number[]): UnevenWork | null {
  if (ranks.length < 2 || !ranks.every((r) => hasShapes(job.ranks[r]!))) return null;
  const same = sameWork(job);
  if (ranks.some((r) => same[r]!.cover < COMPARABLE || Math.abs(same[r]!.ratio - 1) > SAME_CARD)) return null;
  const computing = computeMsByStep(job);
  const used = new Set(job.steps.usedIndex);
  const excess: number[] = [];
  let worst: UnevenWork['worst'] | null = null;
  for (const step of job.steps.usedIndex) {
    const own = ranks.map((r) => computing[r]![step] ?? Number.NaN);
    if (own.some((ms) => !(ms > 0))) continue;
    const meanMs = own.reduce((a, b) => a + b, 0) / own.length;
    const ownMs = Math.max(...own);
    excess.push(ownMs - meanMs);
    if (worst === null || ownMs - meanMs > worst.ownMs - worst.meanMs) worst = { step, rank: ranks[own.indexOf(ownMs)]!, ownMs, meanMs };
  }
  if (worst === null) return null;
  return { excessMs: median(excess), worst, even: evened(job, ranks, (step) => (used.has(step) ? step : -1)) };
}

/** Types of kernels whose time differs by less between ranks are alike everywhere: the optimizer, say, which no batch makes longer. */
const UNEVEN = 0.02;

/** Kernel durations with which every rank does the mean of all ranks, type by type; `spanOf` puts steps together, -1 leaves one out. */
export function evened(job: JobFacts, ranks: readonly number[], spanOf: (step: number) => number): Map<number, Removal> {
  const keyed = (r: number, node: number): string | null => {
    const tape = job.ranks[r]!.tape!;
    const span = tape.kind[node] === COMPUTE && tape.step[node]! >= 0 ? spanOf(tape.step[node]!) : -1;
    return span === -1 ? null : `${span}|${tape.types[tape.type[node]!]}`;
  };
  const here = ranks.filter((r) => job.ranks[r]!.tape !== null);
  const means = new Map<string, number>();
  const sums = here.map((r) => {
    const own = new Map<string, number>();
    const { duration } = job.ranks[r]!.tape!;
    for (let i = 0; i < duration.length; i++) {
      const key = keyed(r, i);
      if (key !== null) own.set(key, (own.get(key) ?? 0) + duration[i]!);
    }
    for (const [key, ns] of own) means.set(key, (means.get(key) ?? 0) + ns / here.length);
    return own;
  });
  return new Map(
    here.map((r, k) => {
      const durations = new Map<number, number>();
      const { duration } = job.ranks[r]!.tape!;
      for (let i = 0; i < duration.length; i++) {
        const key = keyed(r, i);
        if (key === null) continue;
        const factor = means.get(key)! / sums[k]!.get(key)!;
        if (Number.isFinite(factor) && Math.abs(factor - 1) > UNEVEN) durations.set(i, duration[i]! * factor);
      }
      return [r, { durations }] as const;
    }),
  );
}

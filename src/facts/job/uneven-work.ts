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
  const factors = new Map(ranks.map((r) => [r, new Map<number, number>()] as const));
  const excess: number[] = [];
  let worst: UnevenWork['worst'] | null = null;
  for (const step of job.steps.usedIndex) {
    const own = ranks.map((r) => computing[r]![step] ?? Number.NaN);
    if (own.some((ms) => !(ms > 0))) continue;
    const meanMs = own.reduce((a, b) => a + b, 0) / own.length;
    const ownMs = Math.max(...own);
    excess.push(ownMs - meanMs);
    ranks.forEach((r, k) => {
      factors.get(r)!.set(step, meanMs / own[k]!);
    });
    if (worst === null || ownMs - meanMs > worst.ownMs - worst.meanMs) worst = { step, rank: ranks[own.indexOf(ownMs)]!, ownMs, meanMs };
  }
  if (worst === null) return null;
  const even = new Map<number, Removal>();
  for (const [r, ofStep] of factors) {
    const tape = job.ranks[r]!.tape!;
    const durations = new Map<number, number>();
    for (let i = 0; i < tape.start.length; i++) {
      const factor = tape.kind[i] === COMPUTE ? ofStep.get(tape.step[i]!) : undefined;
      if (factor !== undefined) durations.set(i, tape.duration[i]! * factor);
    }
    even.set(r, { durations });
  }
  return { excessMs: median(excess), worst, even };
}

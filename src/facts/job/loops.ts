import type { FragmentFacts } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed, sumByStep } from './per-step.ts';

/** Repeated runs of small kernels that the host could not feed, by rank. */
export interface SmallLoops {
  readonly loops: readonly (readonly FragmentFacts[])[];
  /** ms and kernels per step, median of the used steps. */
  readonly starvedMs: readonly number[];
  readonly kernels: readonly number[];
  /** Ranks with enough of both. */
  readonly ranks: readonly number[];
}

/** Limits of `small-op-fragmentation`: below them what the host is late with belongs to the launches as a whole. */
export const SMALL_LOOP = { minShare: 0.02, minMs: 1, minKernels: 50, minRepeats: 3 } as const;

export function smallLoops(
  job: JobFacts,
  limits: { readonly minShare: number; readonly minMs: number; readonly minKernels: number; readonly minRepeats: number } = SMALL_LOOP,
): SmallLoops {
  const loops = job.ranks.map((r) => r.fragments.filter((f) => f.period > 0 && f.repeats >= limits.minRepeats));
  const sum = (amount: (f: FragmentFacts) => number): number[] =>
    job.ranks.map((r, i) => medianOfUsed(job, sumByStep(r.steps.length, loops[i]!, amount)) || 0);
  const starvedMs = sum((f) => f.starved / 1e6);
  const kernels = sum((f) => f.nodes.length);
  const floor = Math.max(limits.minShare * (job.steps.stepTimeMs ?? Number.POSITIVE_INFINITY), limits.minMs);
  return {
    loops,
    starvedMs,
    kernels,
    ranks: job.ranks.map((_, i) => i).filter((i) => starvedMs[i]! >= floor && kernels[i]! >= limits.minKernels),
  };
}

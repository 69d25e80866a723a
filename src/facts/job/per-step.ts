import { median } from '../../base/statistics.ts';
import type { RankFacts } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';

/** Sums `values` by step index; index i is the i-th captured step. */
export function sumByStep<T extends { readonly step: number }>(
  steps: number,
  values: readonly T[],
  amount: (value: T) => number,
): number[] {
  const out = new Array<number>(steps).fill(0);
  for (const value of values) if (value.step >= 0 && value.step < steps) out[value.step] = out[value.step]! + amount(value);
  return out;
}

/** Median over the used steps, in the unit given. NaN without steps. */
export function medianOfUsed(job: JobFacts, perStep: readonly number[]): number {
  return median(job.steps.usedIndex.map((s) => perStep[s] ?? Number.NaN).filter((v) => !Number.isNaN(v)));
}

/** Settings that slow the host and so inflate host-side findings. */
export function hostBias(rank: RankFacts): string[] {
  const { settings } = rank;
  const bias: string[] = [];
  if (settings.withStack) bias.push('with_stack');
  if (settings.withModules) bias.push('with_modules');
  if (settings.profileMemory) bias.push('profile_memory');
  if (settings.level === 'Level2') bias.push('Level2');
  return bias;
}

/** Confidence that the data allow: high needs three steps and two ranks, medium misses one, low both. Bias caps host-side findings at medium. */
export function dataConfidence(job: JobFacts, hostSide: boolean): 'high' | 'medium' | 'low' {
  let missing = 0;
  if (job.steps.usedIndex.length < 3) missing++;
  if (job.world.complete === false) missing++;
  if (hostSide && job.ranks.some((r) => hostBias(r).length > 0)) missing = Math.max(missing, 1);
  return missing === 0 ? 'high' : missing === 1 ? 'medium' : 'low';
}

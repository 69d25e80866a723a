import { mad, median } from '../base/statistics.ts';
import type { ComparisonVerdict, Measure } from '../model/comparison.ts';
import { differenceInterval } from './bootstrap.ts';

/** Samples of one quantity. */
export interface Samples {
  /** By run of the baseline. */
  readonly base: readonly (readonly number[])[];
  readonly head: readonly number[];
}

export interface Direction {
  readonly better: 'lower' | 'higher';
  /** A smaller change is never called one, in the unit of the samples. */
  readonly floor: number;
}

/** Times the median absolute deviation that a change must exceed; the report's own floor for findings. */
const NOISE = 2;

/**
 * Measures a change and calls it by name only when its interval leaves out 0, it exceeds the floor and twice the noise of either side,
 * and it exceeds what separates unchanged runs, where several are given.
 */
export function measure(samples: Samples, { better, floor }: Direction): { measure: Measure; verdict: ComparisonVerdict } {
  const runs = samples.base.map(known).filter((run) => run.length > 0);
  const head = known(samples.head);
  const counts = { base: runs.reduce((sum, run) => sum + run.length, 0), head: head.length };
  if (runs.length === 0 || head.length === 0) {
    const of = (values: readonly number[]): number | null => (values.length === 0 ? null : median(values));
    const none: Measure = {
      base: of(runs.flat()),
      head: of(head),
      delta: null,
      interval: null,
      limit: null,
      spread: null,
      samples: counts,
    };
    return { measure: none, verdict: 'incomparable' };
  }
  const medians = runs.map(median);
  const spread = runs.length > 1 ? Math.max(...medians) - Math.min(...medians) : null;
  // From three runs on each is one observation, which holds what differs from run to run. Two say no more than their distance.
  const base = runs.length > 2 ? medians : runs.flat();
  const middle = median(medians);
  const delta = median(head) - middle;
  const interval = shifted(differenceInterval(base, head), middle - median(base));
  const limit = Math.max(floor, NOISE * mad(head), ...runs.map((run) => NOISE * mad(run)), spread ?? 0);
  const measured: Measure = { base: middle, head: median(head), delta, interval, limit, spread, samples: counts };
  return { measure: measured, verdict: verdictOf(measured, better) };
}

/** The interval of runs pooled step by step, around the median of the runs. */
function shifted(interval: readonly [number, number] | null, by: number): readonly [number, number] | null {
  return interval === null ? null : [interval[0] - by, interval[1] - by];
}

function known(values: readonly number[]): number[] {
  return values.filter((v) => Number.isFinite(v));
}

function verdictOf({ delta, interval, limit, spread }: Measure, better: Direction['better']): ComparisonVerdict {
  if (spread !== null && Math.abs(delta!) <= spread) return 'noise';
  if (interval === null) return 'incomparable';
  if ((interval[0] <= 0 && interval[1] >= 0) || Math.abs(delta!) <= limit!) return 'noise';
  return delta! > 0 === (better === 'lower') ? 'regression' : 'improvement';
}

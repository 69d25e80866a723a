import { quantile } from '../base/statistics.ts';

/*
 * The interval of a difference of medians by resampling. The sample is the job's step (slowest rank): steps of one run are the same on
 * all ranks of a job that synchronises, so ranks × steps would count one observation many times.
 */

const DRAWS = 1_000;
/** Some hundred samples fix a median to a fraction of its noise; more are thinned evenly. */
const MAX_SAMPLES = 200;
/** Below this a side says nothing about its own noise. */
export const MIN_SAMPLES = 3;
/** From here on samples of two sides that do not overlap are no chance: for unchanged jobs of 5 steps each it happens in 1 of 126 pairs. */
const SEPARATE_SAMPLES = 5;
/** Both tails together: 95 of 100 intervals hold the true difference. */
const TAILS = 0.05;

/** Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond the table the normal one with its first correction. */
const T = [Number.NaN, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
const Z = 1.96;

/**
 * Percentile intervals of few samples are too narrow; this widens each side's deviations as a normal sample needs it (the expanded
 * percentile interval of Hesterberg, "What Teachers Should Know about the Bootstrap", The American Statistician 69, 2015).
 * With 3 steps a side, intervals of unchanged jobs then miss 0 in 1 to 3 of 100 pairs; without it in 8 to 12.
 */
function expansion(samples: number): number {
  const df = samples - 1;
  return ((T[df] ?? Z + 2.5 / df) / Z) * Math.sqrt(samples / df);
}

/** Interval of median(head) − median(base); null with too few samples. */
export function differenceInterval(base: readonly number[], head: readonly number[]): readonly [number, number] | null {
  if (base.length < MIN_SAMPLES || head.length < MIN_SAMPLES) return null;
  const [a, b] = [thinned(base), thinned(head)];
  const [middleA, middleB] = [middleOf(a.slice()), middleOf(b.slice())];
  const [wideA, wideB] = [expansion(a.length), expansion(b.length)];
  const random = generator(seedOf(a, b));
  const [drawA, drawB] = [a.slice(), b.slice()];
  const draws: number[] = [];
  for (let i = 0; i < DRAWS; i++) {
    const left = middleA + wideA * (resampled(a, drawA, random) - middleA);
    const right = middleB + wideB * (resampled(b, drawB, random) - middleB);
    draws.push(right - left);
  }
  const [low, high] = [quantile(draws, TAILS / 2), quantile(draws, 1 - TAILS / 2)];
  if (a.length < SEPARATE_SAMPLES || b.length < SEPARATE_SAMPLES) return [low, high];
  // Steps of two lengths that take turns have a wide median; yet each of one side may be slower than each of the other.
  const [slower, faster] = [Math.min(...b) - Math.max(...a), Math.max(...b) - Math.min(...a)];
  return [slower > 0 ? Math.max(low, slower) : low, faster < 0 ? Math.min(high, faster) : high];
}

function resampled(values: Float64Array, into: Float64Array, random: () => number): number {
  for (let i = 0; i < values.length; i++) into[i] = values[Math.floor(random() * values.length)]!;
  return middleOf(into);
}

/** Median; sorts in place. */
function middleOf(values: Float64Array): number {
  values.sort();
  const middle = values.length >> 1;
  return values.length % 2 === 1 ? values[middle]! : (values[middle - 1]! + values[middle]!) / 2;
}

function thinned(values: readonly number[]): Float64Array {
  if (values.length <= MAX_SAMPLES) return Float64Array.from(values);
  return Float64Array.from({ length: MAX_SAMPLES }, (_, i) => values[Math.floor((i * values.length) / MAX_SAMPLES)]!);
}

/** The same data give the same draws. */
function seedOf(...sides: readonly Float64Array[]): number {
  let hash = 2166136261;
  for (const side of sides) for (const word of new Uint32Array(side.slice().buffer)) hash = Math.imul(hash ^ word, 16777619);
  return hash >>> 0;
}

/** mulberry32. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

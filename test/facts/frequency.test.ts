import { describe, expect, test } from 'vitest';
import { f64 } from '../../src/base/columns.ts';
import { interval, union } from '../../src/base/intervals.ts';
import { fastSpans, frequencyFacts } from '../../src/facts/rank/frequency.ts';
import { frequencyOf } from '../../src/importers/frequency.ts';
import type { FrequencyTable } from '../../src/model/capture.ts';
import { COMMUNICATION, COMPUTE, type Tape } from '../../src/model/facts.ts';

const table = (...changes: [at: number, mhz: number][]): FrequencyTable => ({
  at: Float64Array.from(changes, ([at]) => at),
  mhz: Float64Array.from(changes, ([, mhz]) => mhz),
});

/** Only what the clock is asked of a tape. */
const tape = (...nodes: [start: number, duration: number, kind?: number][]): Tape =>
  ({
    start: Float64Array.from(nodes, ([start]) => start),
    duration: Float64Array.from(nodes, ([, duration]) => duration),
    kind: Uint8Array.from(nodes, ([, , kind]) => kind ?? COMPUTE),
  }) as unknown as Tape;

const all = (): boolean => true;

describe('the clock while busy', () => {
  test('by time, not by sample; idle time and communication do not count', () => {
    const facts = frequencyFacts(
      table([0, 1800], [100, 800], [200, 1500]),
      tape([0, 100], [200, 300], [600, 900, COMMUNICATION]),
      null,
      all,
    )!;
    expect(facts.busy).toEqual([
      { mhz: 1800, ns: 100 },
      { mhz: 1500, ns: 300 },
    ]);
    expect(facts.meanMhz).toBeCloseTo((1800 * 100 + 1500 * 300) / 400, 9);
    expect(facts.sustainedMhz).toBe(1800);
    expect(facts.lowest).toEqual({ mhz: 1500, start: 200, duration: 300 });
  });

  test('a peak held for less than a twentieth of the time is not what the card sustains', () => {
    const facts = frequencyFacts(table([0, 1900], [10, 1800]), tape([0, 1000]), null, all)!;
    expect(facts.sustainedMhz).toBe(1800);
  });

  test('only inside the steps, only on AI cores, never before the first sample', () => {
    const nodes = tape([0, 100], [200, 100], [400, 100]);
    expect(frequencyFacts(table([0, 1800]), nodes, interval(150, 350), all)!.busy).toEqual([{ mhz: 1800, ns: 100 }]);
    expect(frequencyFacts(table([0, 1800]), nodes, null, (i) => i !== 1)!.busy).toEqual([{ mhz: 1800, ns: 200 }]);
    expect(frequencyFacts(table([250, 1800]), nodes, null, all)!.busy).toEqual([{ mhz: 1800, ns: 150 }]);
    expect(frequencyFacts(table([900, 1800]), nodes, null, all)).toBeNull();
    expect(frequencyFacts(null, nodes, null, all)).toBeNull();
    expect(frequencyFacts(table([0, 1800]), nodes, union([]), all)).toBeNull();
  });

  test('a clock of a thousand values keeps the 32 held longest', () => {
    const changes = Array.from({ length: 1000 }, (_, i): [number, number] => [i * 10, 1000 + i]);
    const facts = frequencyFacts(table(...changes), tape([0, 10_000]), null, all)!;
    expect(facts.busy).toHaveLength(32);
    expect(facts.meanMhz).toBeCloseTo(1499.5, 6);
  });
});

test('spans wholly at full clock', () => {
  const fast = fastSpans(table([100, 1800], [200, 1500], [300, 1790]), 1764);
  expect([fast(0, 50), fast(100, 200), fast(150, 201), fast(220, 240), fast(300, 900), fast(50, 150)]).toEqual([
    false,
    true,
    false,
    false,
    true,
    false,
  ]);
  expect(fastSpans(null, 0)(0, 1)).toBe(false);
});

test('samples out of order, as databases have them, become changes in order', () => {
  const samples = { at: f64(), mhz: f64() };
  for (const [at, mhz] of [
    [50, 1800],
    [10, 1800],
    [30, 1500],
    [40, 1500],
  ] as const) {
    samples.at.push(at);
    samples.mhz.push(mhz);
  }
  const { at, mhz } = frequencyOf(samples)!;
  expect([[...at], [...mhz]]).toEqual([
    [10, 30, 50],
    [1800, 1500, 1800],
  ]);
  expect(frequencyOf({ at: f64(), mhz: f64() })).toBeNull();
});

/* Verdicts on plain numbers: published figures of real runs, and samples of which the truth is known. */
import { describe, expect, test } from 'vitest';
import { median } from '../../src/base/statistics.ts';
import { differenceInterval } from '../../src/compare/bootstrap.ts';
import { measure } from '../../src/compare/measure.ts';

const HIGHER = { better: 'higher', floor: 0.03 * 127 } as const;
const LOWER = { better: 'lower', floor: 0.6 } as const;

describe('published repeats', () => {
  // vllm-project/vllm-ascend#6966: tokens per second of five unchanged runs, then one with bound CPUs.
  const off = [[129.07], [133.06], [126.97], [110.25], [124.08]];

  test('A07: a gain that is smaller than the spread of the unchanged runs is none', () => {
    const { measure: of, verdict } = measure({ base: off, head: [146.93] }, HIGHER);
    expect(of.base).toBe(126.97);
    expect(of.spread).toBeCloseTo(22.81, 2);
    expect(of.delta! / of.base!).toBeCloseTo(0.157, 3);
    expect(verdict).toBe('noise');
  });

  // vllm-project/vllm-ascend#4110: one release against the next, in ms.
  test('A24: a loss beyond the spread of the runs is one, and each figure has its own noise', () => {
    const perToken = measure({ base: [[20.26], [19.95]], head: [22.59, 22.38, 22.62] }, LOWER);
    expect(perToken.measure.spread! / perToken.measure.base!).toBeCloseTo(0.015, 3);
    expect(perToken.measure.delta! / perToken.measure.base!).toBeCloseTo(0.124, 2);
    const firstToken = measure({ base: [[51.91], [39.75]], head: [79.8, 76.28, 77.89] }, LOWER);
    expect(firstToken.measure.spread).toBeCloseTo(12.16, 2);
    expect(firstToken.measure.delta).toBeGreaterThan(firstToken.measure.spread!);
  });

  test('from three runs on each is one observation', () => {
    const base = [[20.26], [19.95], [20.1]];
    expect(measure({ base, head: [22.59, 22.38, 22.62] }, LOWER).verdict).toBe('regression');
    expect(measure({ base, head: [18.1, 18.2, 18.0] }, LOWER).verdict).toBe('improvement');
    expect(measure({ base, head: [20.3, 20.2, 20.25] }, LOWER).verdict).toBe('noise');
  });
});

describe('direction', () => {
  const base = [[100, 100.4, 99.8, 100.1, 100.2]];
  const head = [109.9, 110.3, 110, 110.2, 109.8];
  test.each([
    ['lower', 'regression'],
    ['higher', 'improvement'],
  ] as const)('more is %s: %s', (better, verdict) => {
    expect(measure({ base, head }, { better, floor: 3 }).verdict).toBe(verdict);
    expect(measure({ base: [head], head: base[0]! }, { better, floor: 3 }).verdict).not.toBe(verdict);
  });
});

describe('steps of two lengths that take turns, as of a loader', () => {
  const base = [43.775, 43.777, 43.802, 43.785, 43.858];
  const head = [55.184, 49.965, 54.492, 47.72, 55.386];
  test('each is slower than each of the baseline: a regression, and the interval says by how much at least', () => {
    const { measure: of, verdict } = measure({ base: [base], head }, { better: 'lower', floor: 1.3 });
    expect(verdict).toBe('regression');
    expect(of.interval![0]).toBeCloseTo(47.72 - 43.858, 3);
    expect(measure({ base: [head], head: base }, { better: 'lower', floor: 1.3 }).verdict).toBe('improvement');
  });

  test('one of them as fast as the baseline, or four steps only: not told from noise', () => {
    expect(measure({ base: [base], head: [...head.slice(1), 43.8] }, { better: 'lower', floor: 1.3 }).verdict).toBe('noise');
    expect(measure({ base: [base.slice(1)], head: head.slice(1) }, { better: 'lower', floor: 1.3 }).verdict).toBe('noise');
  });
});

describe('what is not called a change', () => {
  const base = [[100, 100.1, 99.9, 100, 100.1]];
  test('less than the floor, however sure', () => {
    const { measure: of, verdict } = measure({ base, head: [102, 102.1, 101.9, 102, 102.1] }, { better: 'lower', floor: 3 });
    expect(of.interval![0]).toBeGreaterThan(1);
    expect(verdict).toBe('noise');
  });

  test('more than the floor, but within twice the noise of a side', () => {
    const head = [93, 97, 101, 105, 109, 113, 117];
    expect(measure({ base, head }, { better: 'lower', floor: 3 })).toMatchObject({ measure: { delta: 5, limit: 16 }, verdict: 'noise' });
  });

  test('one slow step does not make a slow job', () => {
    expect(measure({ base, head: [100, 100.1, 180, 99.9, 100.2] }, { better: 'lower', floor: 3 }).verdict).toBe('noise');
  });
});

describe('too few to tell', () => {
  test.each([
    [[100], [150]],
    [
      [100, 100],
      [150, 150],
    ],
    [
      [100, 100.1],
      [150, 151, 150, 150],
    ],
  ])('%j against %j', (base, head) => {
    const { measure: of, verdict } = measure({ base: [base], head }, LOWER);
    expect(verdict).toBe('incomparable');
    expect(of.interval).toBeNull();
    expect(of.delta).toBeCloseTo(median(head) - median(base), 6);
  });

  test('nothing at all is null, not 0', () => {
    expect(measure({ base: [[]], head: [1, 2, 3] }, LOWER)).toMatchObject({
      measure: { base: null, delta: null },
      verdict: 'incomparable',
    });
    expect(measure({ base: [[Number.NaN, Number.POSITIVE_INFINITY]], head: [1, 2, 3] }, LOWER).measure.delta).toBeNull();
  });

  test('three uneven steps have a wide interval, three even ones a narrow one', () => {
    const even = differenceInterval([76.19, 76.19, 76.16], [82, 82.1, 82])!;
    expect(even[0]).toBeGreaterThan(5);
    const uneven = differenceInterval([76.19, 76.19, 76.16], [87, 95, 96])!;
    expect(uneven[1] - uneven[0]).toBeGreaterThan(20);
  });
});

/** Uniform in 0..1, the same each time. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

describe('over many jobs', () => {
  const next = random(7);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const kinds: Record<string, () => number> = {
    even: () => 100 * (1 + 0.01 * normal()),
    uneven: () => 100 * (1 + 0.04 * normal()),
    'one slow step in seven': () => 100 * (1 + 0.01 * normal()) + (next() < 0.15 ? 30 * next() : 0),
    'a slow worker': () => 100 + (next() < 0.33 ? 0 : 12) + 0.5 * normal(),
  };
  const draw = (of: () => number, n: number): number[] => Array.from({ length: n }, of);

  test.each(
    Object.entries(kinds).flatMap(([name, of]) =>
      [
        [3, 3],
        [3, 8],
        [8, 8],
      ].map(([a, b]) => ({ name, of, a: a!, b: b! })),
    ),
  )('unchanged jobs are not called changed: $name, $a and $b steps', ({ of, a, b }) => {
    let called = 0;
    for (let i = 0; i < 200; i++) {
      const { verdict } = measure({ base: [draw(of, a)], head: draw(of, b) }, { better: 'lower', floor: 3 });
      if (verdict === 'regression' || verdict === 'improvement') called++;
    }
    expect(called).toBeLessThanOrEqual(6);
  });

  test('a tenth slower is called so when the steps are even', () => {
    let called = 0;
    for (let i = 0; i < 100; i++) {
      const head = draw(kinds.even!, 3).map((v) => v * 1.1);
      if (measure({ base: [draw(kinds.even!, 3)], head }, { better: 'lower', floor: 3 }).verdict === 'regression') called++;
    }
    expect(called).toBeGreaterThanOrEqual(85);
  });

  test('the same samples give the same interval, and a thousand of them are no burden', () => {
    const [base, head] = [draw(kinds.uneven!, 3_000), draw(kinds.uneven!, 3_000)];
    const begin = performance.now();
    expect(differenceInterval(base, head)).toEqual(differenceInterval(base, head));
    expect(performance.now() - begin).toBeLessThan(3_000);
  });
});

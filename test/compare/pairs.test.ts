/* Simulated jobs against each other; `npm run evaluate -- --compare` runs more of them. */
import { describe, expect, test } from 'vitest';
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { COMPUTE, type RankFacts } from '../../src/model/facts.ts';
import { compareFacts, evaluatePair, faultPairs, healthyPair } from '../support/pairs.ts';
import { simulated } from '../support/simulated.ts';

const SMALL = { layers: 2, steps: 8 } as const;

async function check(...pairs: readonly ReturnType<typeof healthyPair>[]): Promise<void> {
  for (const pair of pairs) expect((await evaluatePair(pair)).complaints, pair.name).toEqual([]);
}

describe('a healthy job against itself is noise', () => {
  const specs: [JobSpec, number][] = [
    [{ ...SMALL, ranks: 2 }, 6],
    [{ ...SMALL, ranks: 4 }, 6],
    [{ ...SMALL, ranks: 2, steps: 4 }, 6],
    [{ ...SMALL, ranks: 2, pp: 2 }, 2],
  ];
  test.each(specs.flatMap(([spec, n]) => Array.from({ length: n }, (_, i) => healthyPair(spec, i + 1))))('$name', async (pair) => {
    await check(pair);
    const { comparison } = await evaluatePair(pair);
    expect(comparison.verdict).toBe('noise');
  });
});

describe('a fault is a regression against the job without it, and the other way round an improvement', () => {
  const faults: Fault[] = [
    { kind: 'slow-loader' },
    { kind: 'small-ops', where: 'optimizer' },
    { kind: 'slow-rank', rank: 1 },
    { kind: 'slow-host', rank: 1 },
    { kind: 'layout' },
    { kind: 'buffer-broadcast' },
    { kind: 'sync-per-microstep' },
  ];
  test.each(faults)('$kind', async (fault) => {
    const [pair, reversed] = faultPairs({ ...SMALL, ranks: 2, layers: 4 }, fault);
    await check(pair!, reversed!);
    expect((await evaluatePair(pair!)).comparison.verdict).toBe('regression');
    expect((await evaluatePair(reversed!)).comparison.verdict).toBe('improvement');
  });

  test('an uneven pipeline', async () => {
    await check(...faultPairs({ ...SMALL, ranks: 2, layers: 4, pp: 2, steps: 5 }, { kind: 'stage-imbalance' }));
  });

  test('a fault that other work hides is noise', async () => {
    const [pair] = faultPairs({ ...SMALL, ranks: 2 }, { kind: 'hidden-loader' });
    await check(pair!);
    expect((await evaluatePair(pair!)).comparison.verdict).toBe('noise');
  });
});

describe('what changed inside a part', () => {
  const layout: JobSpec = { ...SMALL, ranks: 2, layers: 4, faults: [{ kind: 'layout' }] };
  const plain: JobSpec = { ...SMALL, ranks: 2, layers: 4, seed: 9, faults: [{ kind: 'layout', off: true }] };

  test('operators by type, with their calls per step', async () => {
    const { contributors } = compareFacts((await simulated(layout)).ranks, (await simulated(plain)).ranks);
    const [detail] = contributors[0]!.details;
    expect(detail).toMatchObject({ by: 'operator', what: { params: { type: 'TransData' } }, calls: { base: 0 } });
    expect(Math.round(detail!.calls.head)).toBe(16);
  });

  test('collectives by operation, group and size', async () => {
    const head = await simulated({ ...SMALL, ranks: 2, layers: 4, faults: [{ kind: 'sync-per-microstep' }] });
    const base = await simulated({ ...SMALL, ranks: 2, layers: 4, seed: 9, faults: [{ kind: 'sync-per-microstep', off: true }] });
    const { contributors } = compareFacts(head.ranks, base.ranks);
    const [detail] = contributors[0]!.details;
    expect(detail).toMatchObject({ by: 'collective', what: { params: { op: 'allReduce', group: 'default_group' } } });
    expect([detail!.calls.base, detail!.calls.head].map(Math.round)).toEqual([1, 4]);
  });

  test('one call among equal ones that got slower is named by its place', async () => {
    const { ranks } = await simulated({ ...SMALL, ranks: 2, layers: 8 });
    const slower = ranks.map((rank) => slowCall(rank, 'FlashAttentionScore', 5, 4e6));
    const { verdict, contributors } = compareFacts(slower, ranks);
    expect(verdict).toBe('regression');
    expect(contributors[0]!.part).toBe('computing');
    expect(contributors[0]!.details[0]!.what.params).toMatchObject({ type: 'FlashAttentionScore', call: 6, of: 8 });
  });

  test('what only one side records tells nothing apart', async () => {
    const job: JobSpec = { ...SMALL, ranks: 2, layers: 4 };
    const head = await simulated({ ...job, faults: [{ kind: 'buffer-broadcast' }, { kind: 'layout' }] });
    const base = await simulated({ ...job, level: 0, seed: 9, faults: [] });
    const { verdict, warnings, contributors } = compareFacts(head.ranks, base.ranks);
    expect(verdict).toBe('regression');
    expect(warnings.map((w) => w.what)).toContain('capture');
    const of = (part: string) =>
      contributors.find((c) => c.part === part)!.details.map((d) => [d.what.params!.op ?? d.what.params!.type, d.calls]);
    expect(of('communication')).toEqual([['broadcast', { base: 0, head: 2 }]]);
    // Level0 has no shapes and derives types from names: an operator is no new one for that.
    const operators = contributors.find((c) => c.part === 'computing')!.details;
    expect(operators[0]!.what.params!.type).toBe('TransData');
    for (const d of operators) expect(d.calls.base, String(d.what.params!.type)).toBe(0);
  });

  test('counters in names of kernels and groups change nothing', async () => {
    const { ranks } = await simulated(plain);
    const other = (await simulated(layout)).ranks;
    const renamed = other.map((rank, r) => ({
      ...rank,
      tape: { ...rank.tape!, types: rank.tape!.types.map((type, i) => (type === 'Add' ? `Add_${100 + i + r}` : type)) },
      groups: rank.groups.map((g) => ({ ...g, hash: `${g.hash}9`, communicator: `${g.communicator}9` })),
      collectives: rank.collectives.map((c) => ({ ...c, name: c.name.replace(/\d+/g, '7'), group: `${c.group}9` })),
    }));
    const of = (facts: readonly RankFacts[]): unknown =>
      compareFacts(facts, ranks).contributors.map((c) => [c.part, c.delta, c.details.map((d) => d.what.params)]);
    expect(of(renamed)).toEqual(of(other));
  });
});

/** Makes the nth call of an operator in each step longer, and everything after it later: a slow kernel on every rank. */
function slowCall(rank: RankFacts, type: string, nth: number, ns: number): RankFacts {
  const tape = rank.tape!;
  const shift = new Float64Array(tape.start.length);
  const duration = tape.duration.slice();
  const seen = new Map<number, number>();
  let late = 0;
  const lateAt: { at: number; late: number }[] = [];
  for (let i = 0; i < tape.start.length; i++) {
    shift[i] = late;
    if (tape.kind[i] !== COMPUTE || tape.types[tape.type[i]!] !== type) continue;
    const count = seen.get(tape.step[i]!) ?? 0;
    seen.set(tape.step[i]!, count + 1);
    if (count !== nth) continue;
    duration[i] = duration[i]! + ns;
    late += ns;
    lateAt.push({ at: tape.start[i]!, late });
  }
  const moved = (at: number): number => at + (lateAt.findLast((l) => l.at < at)?.late ?? 0);
  const start = tape.start.map((at, i) => at + shift[i]!);
  return {
    ...rank,
    tape: { ...tape, start, duration },
    collectives: rank.collectives.map((c) => ({ ...c, start: moved(c.start), end: moved(c.end) })),
    steps: rank.steps.map((s) => {
      const [from, to] = [moved(s.start), moved(s.end)];
      return { ...s, start: from, end: to, breakdown: { ...s.breakdown, stepMs: (to - from) / 1e6 } };
    }),
  };
}

describe('captures that do not fit', () => {
  const spec: JobSpec = { ...SMALL, ranks: 4 };

  test('one or two steps on a side: the difference is shown and nothing is called', async () => {
    const head = await simulated({ ...spec, steps: 2, faults: [{ kind: 'slow-rank', rank: 1, factor: 2 }] });
    for (const steps of [1, 2]) {
      const base = await simulated({ ...spec, seed: 3, steps });
      const comparison = compareFacts(head.ranks, base.ranks);
      expect(comparison).toMatchObject({ verdict: 'incomparable', refusals: [{ what: 'steps' }], step: { interval: null } });
      expect(comparison.step.delta).toBeGreaterThan(5);
      expect(comparison.contributors[0]!.part).toBe('computing');
    }
  });

  test('ranks missing on one side: those that are in both are compared, and it is said', async () => {
    const head = (await simulated({ ...spec, faults: [{ kind: 'slow-rank', rank: 1 }] })).ranks;
    const base = (await simulated({ ...spec, seed: 3 })).ranks;
    const all = compareFacts(head, base);
    for (const [h, b] of [
      [head.slice(0, 3), base],
      [head, base.slice(1)],
    ] as const) {
      const some = compareFacts(h, b);
      expect(some.verdict).toBe('regression');
      expect(some.warnings.map((w) => w.what)).toContain('ranks');
      expect(some.step.delta).toBeCloseTo(all.step.delta!, 1);
      expect(some.contributors[0]!.part).toBe('computing');
    }
    expect(compareFacts(head.slice(0, 2), base.slice(2))).toMatchObject({ verdict: 'incomparable', refusals: [{ what: 'ranks' }] });
  });

  test('step tables alone: verdict and coarse parts', async () => {
    const tables = (ranks: readonly RankFacts[]): RankFacts[] =>
      ranks.map((r) => ({ ...r, tape: null, idle: null, collectives: [], capabilities: new Set(['steps', 'step-times'] as const) }));
    const head = tables((await simulated({ ...spec, faults: [{ kind: 'slow-rank', rank: 1 }] })).ranks);
    const base = tables((await simulated({ ...spec, seed: 3 })).ranks);
    const comparison = compareFacts(head, base);
    expect(comparison.verdict).toBe('regression');
    expect(comparison.contributors.map((c) => c.part)).toEqual(['computing', 'other']);
    expect(comparison.contributors.reduce((sum, c) => sum + c.delta, 0)).toBeCloseTo(comparison.step.delta!, 6);
  });
});

test('repeats of the baseline: a change must exceed what separates them', async () => {
  const slow = (factor: number, seed: number): JobSpec => ({ ...SMALL, ranks: 2, seed, faults: [{ kind: 'slow-rank', rank: 1, factor }] });
  const of = async (factor: number, seed: number): Promise<readonly RankFacts[]> => (await simulated(slow(factor, seed))).ranks;
  const [head, calm, busy] = [await of(1.12, 1), await of(1, 2), await of(1.15, 3)];
  expect(compareFacts(head, calm).verdict).toBe('regression');
  const two = compareFacts(head, calm, busy);
  expect(two.verdict).toBe('noise');
  expect(two.baseline.runs).toHaveLength(2);
  expect(two.step.spread).toBeGreaterThan(1);
  expect(compareFacts(head, calm, await of(1, 4), await of(1.005, 5)).verdict).toBe('regression');
});

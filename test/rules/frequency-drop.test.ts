import { describe, expect, test } from 'vitest';
import type { RankFacts } from '../../src/model/facts.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf, simulated } from '../support/simulated.ts';

const RULE = 'frequency-drop';

describe('quiet', () => {
  test('a healthy job holds its frequency', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('cores that clock down while they are idle cost nothing', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'frequency-drop', ranks: [1], idle: true }] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });

  test('all ranks equally low and no rated frequency: nothing says that they could be faster', async () => {
    const report = await reportFor({ ranks: 2, layers: 4, faults: [{ kind: 'frequency-drop' }] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });

  test('a drop of 2 % is within the steps of the clock', async () => {
    const report = await reportFor({ ranks: 2, layers: 4, faults: [{ kind: 'frequency-drop', ranks: [0], mhz: 1_765 }] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });

  test('a slow card at full frequency is not this', async () => {
    const report = await reportFor({ ranks: 4, layers: 4, faults: [{ kind: 'slow-rank', rank: 2 }] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
    expect(findingOf(report, 'slow-rank')!.ranks).toEqual([2]);
  });

  test('no record of the clock: not applicable', async () => {
    const { ranks } = await simulated({ ranks: 2, faults: [{ kind: 'frequency-drop', ranks: [1] }] });
    const blind = ranks.map(
      (r): RankFacts => ({ ...r, frequency: null, capabilities: new Set([...r.capabilities].filter((c) => c !== 'frequency')) }),
    );
    expect(checkOf(reportOf(blind), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test.each([
    { ranks: 2, faults: [{ kind: 'frequency-drop', ranks: [1] }] },
    { ranks: 4, layers: 6, faults: [{ kind: 'frequency-drop', ranks: [2] }] },
    { ranks: 4, layers: 6, level: 0, faults: [{ kind: 'frequency-drop', ranks: [2] }] },
    { ranks: 4, layers: 8, pp: 2, faults: [{ kind: 'frequency-drop', ranks: [3] }] },
  ] as const)('%j: this rank, one finding, saving within 20 %%', async (spec) => {
    const [fault] = spec.faults;
    const own = { ...spec, faults: [{ ...fault, ranks: [...fault.ranks] }] };
    const { finding, headline, truth } = await accuracy(own, own.faults[0]!, RULE);
    expect(finding.ranks).toEqual([fault.ranks[0]]);
    expect(finding.saving!.perStepMs.likely).not.toBeNull();
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    const report = await reportFor(own);
    expect(report.findings.filter((f) => f.symptomOf === null && (f.saving?.perStepMs.ceiling ?? 0) > 0).map((f) => f.rule)).toEqual([
      RULE,
    ]);
    expect(finding.evidence[0]!.text).toMatch(/1,440 MHz on average .* against 1,800 MHz, what other ranks hold/);
    expect(finding.evidence[1]!.text).toMatch(/kernels of the same type and shapes take/);
  });

  test('the rated frequency is the measure where it is recorded: all ranks low, a bound without a twin', async () => {
    const { ranks } = await simulated({ ranks: 2, layers: 4, faults: [{ kind: 'frequency-drop' }] });
    const rated = ranks.map((r): RankFacts => ({ ...r, hardware: { cubeCores: 24, vectorCores: 48, ratedMhz: 1_800 } }));
    const finding = findingOf(reportOf(rated), RULE)!;
    expect(finding.ranks).toEqual([0, 1]);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { likely: null } });
    expect(finding.evidence[0]!.text).toMatch(/the rated frequency/);
  });
});

test('options: minDrop and minShare decide', async () => {
  const spec = { ranks: 2, faults: [{ kind: 'frequency-drop', ranks: [1] } as const] };
  const mutable = { ranks: 2, faults: spec.faults.map((f) => ({ ...f, ranks: [...f.ranks] })) };
  expect(findingOf(await reportFor(mutable, { [RULE]: { minDrop: 0.5 } }), RULE)).toBeUndefined();
  expect(findingOf(await reportFor(mutable, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
});

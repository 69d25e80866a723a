import { describe, expect, test } from 'vitest';
import type { Rule } from '../../src/model/rule.ts';
import memoryPeak from '../../src/rules/memory-peak/index.ts';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf, reportFor, reportOf, simulated } from '../support/simulated.ts';

const RULE = 'memory-peak';
const rule = memoryPeak as unknown as Rule;
/** 910B4: 32 GiB; the simulated process needs some 16 GiB unless told otherwise. */
const CARD = { ranks: 2, layers: 4, soc: 'Ascend910B4' } as const;

describe('quiet', () => {
  test('a card that is two thirds full', async () => {
    expect(checkOf(await reportFor({ ...CARD, memory: { baseGb: 14 } }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: half of the card is free, but nothing would gain from it', async () => {
    const report = await reportFor({ ...CARD, memory: { baseGb: 4 } }, { [RULE]: { minLostShare: 0.9 } });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('without memory records, and without the size of the card, it is not applicable and says what to add', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4 }), RULE).outcome).toBe('notApplicable');
    const check = checkOf(await reportFor({ ranks: 2, layers: 4, memory: {} }), RULE);
    expect(check.outcome).toBe('notApplicable');
    expect(check.reason).toMatch(/`ci_run`/);
  });

  test('the family name of a database export is no size', async () => {
    const check = checkOf(await reportFor({ ranks: 2, layers: 4, memory: {}, soc: 'Ascend910B family' }), RULE);
    expect(check.outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('a full card is a caution without a saving, with the operators that fill it', async () => {
    const spec = { ...CARD, memory: { baseGb: 23, unusedGb: 0.1 } };
    const report = await reportFor(spec);
    const finding = findingOf(report, RULE)!;
    expect(finding).toMatchObject({ severity: 'medium', saving: null, ranks: [0, 1], category: 'memory' });
    expect(finding.title).toMatch(/9\d\s?%/);
    const text = finding.evidence.map((e) => e.text).join('\n');
    expect(text).toMatch(/nominal/);
    expect(text).toMatch(/largest blocks at the peak: `aten::/);
    expect(text).toMatch(/HCCL holds/);
    const alone = reportOf((await simulated(spec)).ranks, {}, [rule]);
    expect(alone.verdict.outcome).toBe('quiet');
    expect(alone.verdict.text).toMatch(/1 thing wants a look/);
    expect(alone.totals.claimedMsPerStep.ceiling).toBe(0);
  });

  test('a recorded size is not nominal', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, layers: 4, memory: { deviceGb: 31, baseGb: 23, unusedGb: 0.1 } }), RULE)!;
    expect(finding).toMatchObject({ severity: 'medium', confidence: 'high' });
    expect(finding.evidence[0]!.text).toMatch(/of 33\.3\sGB used/);
  });

  test('full only because the allocator keeps memory: information', async () => {
    const report = await reportFor({ ...CARD, memory: { baseGb: 19, unusedGb: 4 } });
    // As much as a tenth unused, and missed: fragmentation is the cause, this one its evidence.
    const finding = findingOf(report, RULE)!;
    expect(finding.severity).toBe('info');
    expect(finding.symptomOf).toBe(findingOf(report, 'memory-fragmentation')!.id);
    const small = findingOf(await reportFor({ ...CARD, memory: { baseGb: 21, unusedGb: 2 } }), RULE)!;
    expect(small).toMatchObject({ severity: 'info', symptomOf: null });
    expect(small.caveats.join()).toMatch(/not in use at the peak/);
  });

  test('room is information, and only where launches or communication weigh', async () => {
    const report = await reportFor({ ...CARD, memory: { baseGb: 2, stepGb: 2 }, faults: [{ kind: 'small-ops' }] });
    const finding = findingOf(report, RULE);
    expect(finding).toMatchObject({ severity: 'info', saving: null, ranks: [] });
    expect(finding!.title).toMatch(/larger micro-batch would fit/);
  });
});

test('the view for pictures: a bounded curve, steps, the largest blocks, the card', async () => {
  const report = await reportFor({ ...CARD, memory: { baseGb: 14 } });
  const views = report.views.memory as {
    rank: number;
    deviceBytes: number;
    steps: object[];
    blocks: { operator: string; bytes: number }[];
    curve: { startMs: number[]; allocatedMax: number[] };
  }[];
  expect(views.map((v) => v.rank)).toEqual([0, 1]);
  const [first] = views;
  expect(first).toMatchObject({ deviceBytes: 32 * 2 ** 30, peakAt: { operator: expect.stringMatching(/^aten::/) } });
  expect(first!.curve.startMs.length).toBeLessThanOrEqual(512);
  expect(first!.curve.startMs).toEqual([...first!.curve.startMs].sort((a, b) => a - b));
  expect(Math.max(...first!.curve.allocatedMax)).toBeGreaterThan(14 * 2 ** 30);
  expect(first!.steps).toHaveLength(4);
  expect(first!.blocks[0]!.bytes).toBeGreaterThan(2 ** 20);
  expect((await reportFor({ ranks: 2, layers: 4 })).views.memory).toEqual([]);
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  test.each(['level1', 'st'] as const)('%s records no product: not applicable', async (set) => {
    expect(checkOf(await analysePaths([PATHS[set]]), RULE).outcome).toBe('notApplicable');
  });
});

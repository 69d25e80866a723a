import { describe, expect, test } from 'vitest';
import type { Fault } from '../../lab/simulator/index.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { accuracy, checkOf, factsOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'fusible-sequence';
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');
const chain: Fault = { kind: 'elementwise-chain' };

describe('quiet', () => {
  test('a healthy job has no chain', async () => {
    const check = checkOf(await reportFor({ ranks: 2 }), RULE);
    expect(check.outcome).toBe('pass');
    expect(plain(check.reason)).toMatch(/take 0\.0 ms per step/);
  });

  test('a formula that runs twice a step is told by vector-bound', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'vector-chain' }] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
    expect(findingOf(report, 'vector-bound')!.symptomOf).toBeNull();
  });

  test('hidden: the loader sets the pace', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'slow-loader', sampleMs: 450 }, chain] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('what runs in starved loops belongs to small-op-fragmentation', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'small-ops', where: 'forward' }] });
    const finding = findingOf(report, RULE);
    if (finding !== undefined) expect(finding.symptomOf).toBe(findingOf(report, 'small-op-fragmentation')!.id);
    expect(findingOf(report, 'small-op-fragmentation')!.symptomOf).toBeNull();
  });

  test('Level0 records no shapes: not applicable', async () => {
    expect(checkOf(await reportFor({ ranks: 2, level: 0, faults: [chain] }), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('one chain per layer: all ranks, the line, a ceiling within 20 %', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [chain] }, chain, RULE);
    expect(plain(finding.title)).toBe('12 chains of element-wise kernels per step, 48 kernels, could be one kernel each');
    expect(finding).toMatchObject({ ranks: [0, 1], saving: { basis: 'bound', perStepMs: { floor: 0, likely: null } } });
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(plain(finding.evidence[0]!.text)).toMatch(/`Abs`, `Adds`, `Log`, `Muls` on `8192,4096` `DT_BF16`, 48 times in the capture/);
    expect(finding.locations[0]).toMatchObject({ line: 41 });
  });

  test('longer chains, several per layer; vector-bound, which sees them too, is evidence only', async () => {
    const fault: Fault = { kind: 'elementwise-chain', perLayer: 2, length: 6 };
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    const report = await reportFor({ ranks: 2, faults: [fault] });
    const other = findingOf(report, 'vector-bound');
    expect(other?.symptomOf ?? finding.id).toBe(finding.id);
    expect(report.totals.claimedMsPerStep.ceiling).toBeLessThan(1.2 * truth);
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.5],
    ['minRepeats', 13],
  ])('a higher %s leaves no finding', async (name, value) => {
    const report = await reportFor({ ranks: 2, faults: [chain] }, { [RULE]: { [name]: value } });
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });
});

describe.skipIf(!HAVE_PROFILES)(`real profiles${WHY_SKIPPED}`, () => {
  test.each(['level1', 'level2', 'st', 'gpt0', 'arithmetic'] as const)('%s has no chain that pays', async (set) => {
    const check = checkOf(reportOf(await factsOf(PATHS[set])), RULE);
    expect(check.outcome).toBe('pass');
    expect(plain(check.reason)).toMatch(/could save at most 0\.0 ms/);
  });

  test('level0: not applicable', async () => {
    expect(checkOf(reportOf(await factsOf(PATHS.level0)), RULE).outcome).toBe('notApplicable');
  });
});

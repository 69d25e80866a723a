import { describe, expect, test } from 'vitest';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'memory-growth';
const JOB = { ranks: 2, layers: 4, steps: 5 } as const;

describe('quiet', () => {
  test('steps that give back what they take', async () => {
    expect(checkOf(await reportFor({ ...JOB, memory: {} }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: the optimizer state comes with the first captured step', async () => {
    expect(checkOf(await reportFor({ ...JOB, memory: { stateInFirstStep: true } }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: a cache that is emptied and filled in each step', async () => {
    expect(checkOf(await reportFor({ ...JOB, memory: { churn: true } }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('three steps show no trend; no records, no answer', async () => {
    const few = checkOf(await reportFor({ ...JOB, steps: 3, memory: { growMb: 64 } }), RULE);
    expect(few).toMatchObject({ outcome: 'notApplicable', reason: expect.stringMatching(/4 steps.*3 are here/) });
    expect(checkOf(await reportFor(JOB), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('64 MiB that nobody releases, with operator, line and what is left', async () => {
    const report = await reportFor({ ...JOB, soc: 'Ascend910B4', memory: { growMb: 64 } });
    const finding = findingOf(report, RULE)!;
    expect(finding).toMatchObject({ severity: 'high', saving: null, confidence: 'high', ranks: [0, 1] });
    expect(finding.title).toMatch(/67\.1\sMB in every step/);
    const text = finding.evidence.map((e) => e.text).join('\n');
    expect(text).toMatch(/`aten::mul` allocates 67\.1\sMB in each step/);
    // 32 GiB less what is needed, at 64 MiB a step.
    expect(text).toMatch(/last for 2\d\d more steps/);
    expect(finding.locations[0]).toMatchObject({ file: '/workspace/repo/train.py', provenBy: 'profile' });
  });

  test('four steps are enough, at medium confidence', async () => {
    const finding = findingOf(await reportFor({ ...JOB, steps: 4, memory: { growMb: 64 } }), RULE)!;
    expect(finding).toMatchObject({ severity: 'high', confidence: 'medium' });
  });
});

describe('options', () => {
  test('growth below the smallest share is bookkeeping', async () => {
    expect(findingOf(await reportFor({ ...JOB, memory: { growMb: 64 } }, { [RULE]: { minShare: 0.5 } }), RULE)).toBeUndefined();
  });
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  test.each(['level0', 'level1', 'level2', 'st'] as const)('%s holds one step: not applicable', async (set) => {
    expect(checkOf(await analysePaths([PATHS[set]]), RULE).outcome).toBe('notApplicable');
  });
});

import { describe, expect, test } from 'vitest';
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'step-jitter';
const JOB = { ranks: 2, layers: 8, steps: 6 } as const;
const slow = (more: Omit<Extract<Fault, { kind: 'slow-steps' }>, 'kind' | 'steps'> & { steps?: number[] }): JobSpec => ({
  ...JOB,
  faults: [{ kind: 'slow-steps', steps: [3], ...more }],
});

describe('quiet', () => {
  test('steps of equal length', async () => {
    expect(checkOf(await reportFor(JOB), RULE)).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/slowest of 5 steps/) });
  });

  test('trap: another rank is late in each step, and all steps take as long', async () => {
    const report = await reportFor({ ...JOB, faults: [{ kind: 'rotating-jitter' }] });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'hccl-sync-wait')).toBeDefined();
  });

  test('trap: a loader that is too slow in every step, now more and now less, is the loader’s finding', async () => {
    const report = await reportFor({ ...JOB, faults: [{ kind: 'slow-loader' }] });
    const loader = findingOf(report, 'dataloader-stall')!;
    expect(findingOf(report, RULE)?.symptomOf ?? loader.id).toBe(loader.id);
    expect(report.findings.filter((f) => f.saving !== null && f.symptomOf === null).map((f) => f.rule)).toEqual(['dataloader-stall']);
  });

  test('two steps show no spread', async () => {
    expect(checkOf(await reportFor({ ...JOB, steps: 2 }), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud: one slow step', () => {
  test.each<['pause' | 'fetch', RegExp]>([
    ['pause', /a pause of the host without any recorded operator/],
    ['fetch', /a slow fetch/],
  ])('%s on rank 1: the rank, the step and the cause, no saving', async (cause, name) => {
    const report = await reportFor(slow({ cause, rank: 1, ms: 30 }));
    const finding = findingOf(report, RULE)!;
    expect(finding).toMatchObject({ ranks: [1], steps: [13], saving: null, severity: 'medium', confidence: 'medium' });
    expect(finding.title).toMatch(name);
    expect(finding.evidence[0]!.text).toMatch(/step 13 took .* on rank 1 /);
    // The place is where the time went: about 30 ms of it.
    expect(finding.evidence[0]!.durationUs! / 1000).toBeGreaterThan(25);
    expect(finding.evidence[0]!.durationUs! / 1000).toBeLessThan(60);
    expect(finding.caveats.join()).toMatch(/median step stays/);
    expect(report.findings.filter((f) => (f.saving?.perStepMs.ceiling ?? 0) > 0 && f.symptomOf === null)).toEqual([]);
  });

  test('collectives that take longer with everybody there are nobody’s lateness', async () => {
    const finding = findingOf(await reportFor(slow({ cause: 'collective' })), RULE)!;
    expect(finding).toMatchObject({ ranks: [], steps: [13], saving: null });
    expect(finding.title).toMatch(/collectives that took longer with all ranks present/);
  });

  test('a card alone', async () => {
    expect(findingOf(await reportFor({ ...slow({ cause: 'pause' }), ranks: 1 }), RULE)).toMatchObject({ ranks: [0], steps: [13] });
  });

  test('a small one is information', async () => {
    expect(findingOf(await reportFor(slow({ cause: 'pause', ms: 9 })), RULE)).toMatchObject({ severity: 'info' });
  });
});

describe('loud: most steps are slow', () => {
  test('the saving comes from the replay, within 20 percent', async () => {
    const fault = { kind: 'slow-steps', steps: [2, 3, 4], cause: 'pause', rank: 0, ms: 20 } as const;
    const { finding, headline, truth } = await accuracy(
      { ...JOB, faults: [{ ...fault, steps: [...fault.steps] }] },
      { ...fault, steps: [...fault.steps] },
      RULE,
    );
    expect(finding).toMatchObject({ ranks: [0], steps: [12, 13, 14] });
    expect(finding.saving!.basis).toBe('modelled');
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });
});

describe('one finding per cause', () => {
  test.each([[[3]], [[2, 4]]])('the others wait for the slow fetch in steps %j: that is its effect', async (steps) => {
    const report = await reportFor(slow({ cause: 'fetch', steps, rank: 1, ms: 30 }));
    const finding = findingOf(report, RULE)!;
    expect(finding.symptomOf).toBeNull();
    for (const f of report.findings.filter((x) => x.rule !== RULE && x.category !== 'capture')) {
      expect(f, f.title).toMatchObject({ severity: 'info', symptomOf: finding.id });
      expect(f.saving?.perStepMs.ceiling ?? 0).toBe(0);
    }
  });
});

describe('options', () => {
  test.each([
    ['minShare', 5],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor(slow({ ms: 30 }), { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  test.each(['level0', 'level1', 'level2', 'st'] as const)('%s holds one step: not applicable', async (set) => {
    expect(checkOf(await analysePaths([PATHS[set]]), RULE).outcome).toBe('notApplicable');
  });
});

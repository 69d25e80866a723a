import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'gradient-sync-per-microstep';

describe('quiet', () => {
  test('one forward per step is no accumulation', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE).reason).toMatch(/no accumulation/);
  });

  test('accumulation that synchronises once is right', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'sync-per-microstep', off: true }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
    expect(checkOf(report, RULE).reason).toMatch(/once per optimizer step/);
  });
});

describe('loud', () => {
  test.each([2, 4])('%i micro-steps that all synchronise: all ranks, saving within 20 percent', async (microSteps) => {
    const fault = { kind: 'sync-per-microstep', microSteps } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.title).toContain(`${microSteps} micro-steps`);
  });

  test('a launch queue that runs behind does not hide it', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'sync-per-microstep' }, { kind: 'recompile' }] });
    expect(findingOf(report, RULE)!.ranks).toEqual([0, 1]);
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'sync-per-microstep' } as const] };
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'bandwidth-contention';
const fault = { kind: 'contention' } as const;

describe('quiet', () => {
  test('without calls of one size in both situations there is nothing to compare', async () => {
    expect(checkOf(await reportFor({ ranks: 4, layers: 4 }), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('calls beside computing as fast as the others', async () => {
    const report = await reportFor({ ranks: 4, layers: 6, faults: [{ ...fault, off: true }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/take 1(\.0\d)? × as long/) });
  });

  test('somewhat slower is the usual price of overlap', async () => {
    const report = await reportFor({ ranks: 4, layers: 6, faults: [{ ...fault, factor: 1.3 }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('a slow link slows down all calls, not only those beside computing', async () => {
    const report = await reportFor({ ranks: 4, layers: 6, faults: [{ kind: 'slow-link', ranks: [1, 2] }] });
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('with members missing a call holds waiting, so nothing is compared', async () => {
    const report = await reportFor({ ranks: 4, layers: 6, uploadedRanks: [0, 1], faults: [fault] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test.each([2, 4])('buckets of %i ranks beside the backward: a ceiling within 20 percent, never a likely saving', async (ranks) => {
    const { finding, headline, truth } = await accuracy({ ranks, layers: 6, faults: [fault] }, fault, RULE);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    expect(finding.title).toMatch(/1\.(79|8\d?) × as long/);
    expect(finding.severity).toBe('medium');
  });

  test('it is no part of the claimed total', async () => {
    const report = await reportFor({ ranks: 4, layers: 6, faults: [fault] });
    expect(report.totals.claimedMsPerStep.likely ?? 0).toBeLessThan(0.5);
  });
});

describe('options', () => {
  test.each([
    ['minSlowdown', 3],
    ['minShare', 0.9],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor({ ranks: 2, layers: 6, faults: [fault] }, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

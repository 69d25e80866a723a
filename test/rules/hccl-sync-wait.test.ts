import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'hccl-sync-wait';

describe('quiet', () => {
  test('a healthy job hardly waits', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('a healthy pipeline waits by design', async () => {
    expect(findingOf(await reportFor({ ranks: 4, pp: 2 }), RULE)).toBeUndefined();
  });

  test('clock offsets are no waiting', async () => {
    expect(findingOf(await reportFor({ ranks: 2, clockSkewUs: [0, 25_000] }), RULE)).toBeUndefined();
  });

  test('waiting that computing would cover, were the messages not so many, is the messages’', async () => {
    const messages = { kind: 'small-messages', where: 'gradients', count: 16 } as const;
    const report = await reportFor({ ranks: 4, steps: 2, faults: [messages] }, { [RULE]: { minShare: 0.001, minMs: 0.1 } });
    expect(findingOf(report, RULE)).toMatchObject({
      severity: 'info',
      saving: { perStepMs: { ceiling: 0 } },
      symptomOf: findingOf(report, 'hccl-small-packet')!.id,
    });
  });
});

describe('loud', () => {
  test.each([2, 4])('pauses that move between %i ranks: no culprit, saving within 20 percent', async (ranks) => {
    const fault = { kind: 'rotating-jitter' } as const;
    const { finding, headline, truth } = await accuracy({ ranks, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.confidence).toBe('medium');
  });

  test.each([2, 4])(
    'batches of unequal length on %i ranks: nobody is blamed, the batches are the reason, saving within 20 percent',
    async (ranks) => {
      const fault = { kind: 'uneven-batches' } as const;
      const { finding, headline, truth } = await accuracy({ ranks, faults: [fault] }, fault, RULE);
      expect(finding.ranks).toEqual([]);
      expect(finding.title).toMatch(/longest batch/);
      expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
      expect(finding.evidence[0]!.source).toMatch(/kernel_details\.csv$/);
    },
  );

  test('a pause of single steps is not also reported as a gap of every step', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'rotating-jitter' }] });
    expect(findingOf(report, 'step-start-gap')).toBeUndefined();
  });

  test('with ranks missing it is a bound, at most medium, and names nobody', async () => {
    const report = await reportFor({ ranks: 4, uploadedRanks: [0, 1], faults: [{ kind: 'slow-rank', rank: 3, factor: 1.6 }] });
    const finding = findingOf(report, RULE)!;
    expect(finding.ranks).toEqual([]);
    expect(finding.severity).toBe('medium');
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    expect(finding.caveats.join()).toMatch(/2 of 4 ranks are here/);
  });

  test('one rank alone does not say that it waits', async () => {
    const report = await reportFor({ ranks: 4, uploadedRanks: [0], faults: [{ kind: 'slow-rank', rank: 3, factor: 1.6 }] });
    expect(findingOf(report, RULE)!.title).toMatch(/not known/);
  });

  test('Level0 evidence points to files that exist', async () => {
    const report = await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'rotating-jitter' }] });
    const sources = report.findings.flatMap((f) => f.evidence.map((e) => e.source)).filter((s) => s !== null);
    expect(sources.length).toBeGreaterThan(0);
    expect(sources.filter((s) => s.endsWith('communication.json'))).toEqual([]);
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'rotating-jitter' } as const] };
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

import { describe, expect, test } from 'vitest';
import { trueSaving } from '../support/grid.ts';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'slow-rank';

describe('quiet', () => {
  test('a healthy job has no slow card', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('lateness that moves from rank to rank is no slow card', async () => {
    for (const ranks of [2, 4]) expect(findingOf(await reportFor({ ranks, faults: [{ kind: 'rotating-jitter' }] }), RULE)).toBeUndefined();
  });

  test('a heavier pipeline stage is no slow card', async () => {
    const report = await reportFor({ ranks: 4, pp: 2, faults: [{ kind: 'stage-imbalance' }] });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'stage-imbalance')!.ranks).toEqual([2, 3]);
  });

  test('with ranks missing nobody is named, neither here nor in the waiting, and no saving is likely', async () => {
    const fault = { kind: 'slow-rank', rank: 1 } as const;
    for (const uploadedRanks of [[0, 1], [0], [0, 2, 3]]) {
      const report = await reportFor({ ranks: 4, uploadedRanks, faults: [fault] });
      expect(checkOf(report, RULE).outcome, uploadedRanks.join()).toBe('notApplicable');
      for (const f of report.findings) {
        if (f.rule === 'hccl-sync-wait') expect(f.ranks).toEqual([]);
        expect(f.saving?.perStepMs.likely ?? 0, f.rule).toBe(0);
      }
      expect(report.verdict.outcome).toBe('incomplete');
    }
  });

  test('one rank alone cannot be compared', async () => {
    const report = await reportFor({ ranks: 1 });
    expect(checkOf(report, RULE).outcome).not.toBe('finding');
    expect(report.findings.filter((f) => (f.saving?.perStepMs.ceiling ?? 0) > 0)).toEqual([]);
  });
});

describe('loud', () => {
  test('a card that computes slower: this rank, saving within 20 %, its kernels as the reason', async () => {
    const fault = { kind: 'slow-rank', rank: 1 } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.title).toMatch(/computes 15.% slower/);
    expect(finding.evidence.map((e) => e.source?.split('/').at(-1) ?? null)).toHaveLength(2);
  });

  test('a host that launches slower: this rank, saving within 20 %, the host as the reason', async () => {
    const fault = { kind: 'slow-host', rank: 0 } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.title).toMatch(/host of rank 0/);
  });

  test('a slow card of one pipeline stage is told from the rank of the other stage that passes its lateness on', async () => {
    const fault = { kind: 'slow-rank', rank: 3 } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 4, pp: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([3]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });

  test('a slow card alone in its pipeline stage is told from a heavier stage', async () => {
    const fault = { kind: 'slow-rank', rank: 1 } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, pp: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.1 * truth);
    expect(finding.evidence.map((e) => e.text).join()).toMatch(/same type and shapes take 15.% longer/);
    expect(findingOf(await reportFor({ ranks: 2, pp: 2, faults: [fault] }), 'stage-imbalance')).toBeUndefined();
  });

  test('two slow cards of four: both named, priced together', async () => {
    const faults = [
      { kind: 'slow-rank', rank: 1 },
      { kind: 'slow-rank', rank: 2 },
    ] as const;
    const report = await reportFor({ ranks: 4, faults: [...faults] });
    const finding = findingOf(report, RULE)!;
    expect(finding.ranks).toEqual([1, 2]);
    expect(finding.title).toMatch(/^Ranks 1, 2 compute up to 15.% slower/);
    const truth = trueSaving({ ranks: 4, faults: [...faults] }, faults[0]) + trueSaving({ ranks: 4, faults: [faults[1]] }, faults[1]);
    const headline = finding.saving!.perStepMs.likely!;
    expect(Math.abs(headline - truth)).toBeLessThan(0.1 * truth);
    expect(findingOf(report, 'hccl-sync-wait')!.symptomOf).toBe(finding.id);
  });

  test('batches of unequal length that change places are no slow card', async () => {
    const report = await reportFor({ ranks: 4, faults: [{ kind: 'uneven-batches' }] });
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('the waiting of the others points to it and claims nothing', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'slow-rank', rank: 1 }] });
    const waiting = findingOf(report, 'hccl-sync-wait')!;
    expect(waiting.symptomOf).toBe(findingOf(report, RULE)!.id);
    expect(waiting.severity).toBe('info');
    expect(waiting.saving!.perStepMs).toEqual({ floor: 0, likely: 0, ceiling: 0 });
  });

  test('clocks that are off by milliseconds do not move the blame', async () => {
    const fault = { kind: 'slow-rank', rank: 1 } as const;
    const skewed = await reportFor({ ranks: 2, clockSkewUs: [0, -40_000], faults: [fault] });
    expect(findingOf(skewed, RULE)!.ranks).toEqual([1]);
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'slow-rank', rank: 1 } as const] };
  test('a higher minShare silences the rule', async () => {
    expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
  });

  test('lower shares let it through where lateness is spread', async () => {
    const spread = { ranks: 2, faults: [{ kind: 'slow-rank', rank: 1, factor: 1.02 } as const] };
    const strict = findingOf(await reportFor(spread, { [RULE]: { minShare: 0.1, minSteps: 1 } }), RULE);
    const loose = findingOf(await reportFor(spread, { [RULE]: { minShare: 0, minCulpritShare: 0.5, minSteps: 0 } }), RULE);
    expect(strict).toBeUndefined();
    expect(loose?.ranks).toEqual([1]);
  });
});

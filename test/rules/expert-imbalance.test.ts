import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'expert-imbalance';
const fault = { kind: 'expert-imbalance' } as const;

describe('quiet', () => {
  test('a dense model has no experts', async () => {
    expect(checkOf(await reportFor({ ranks: 4, layers: 4 }), RULE)).toMatchObject({
      outcome: 'notApplicable',
      reason: expect.stringMatching(/no expert layers/),
    });
  });

  test('even experts', async () => {
    expect(checkOf(await reportFor({ ranks: 4, layers: 4, faults: [{ ...fault, off: true }] }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('a slow card with as many tokens as the others is no router’s fault', async () => {
    const report = await reportFor({
      ranks: 4,
      layers: 4,
      faults: [
        { ...fault, off: true },
        { kind: 'slow-rank', rank: 2, factor: 1.4 },
      ],
    });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'slow-rank')!.ranks).toEqual([2]);
  });

  test('a little uneven is usual', async () => {
    expect(findingOf(await reportFor({ ranks: 4, layers: 4, faults: [{ ...fault, peak: 1.15 }] }), RULE)).toBeUndefined();
  });

  test('one rank alone has no mean', async () => {
    expect(checkOf(await reportFor({ ranks: 4, layers: 4, uploadedRanks: [0], faults: [fault] }), RULE)).toMatchObject({
      outcome: 'notApplicable',
    });
  });
});

describe('loud', () => {
  test.each([2, 4])('another rank of %i busy in each layer: all ranks, saving within 20 percent', async (ranks) => {
    const { finding, headline, truth } = await accuracy({ ranks, layers: 6, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual(Array.from({ length: ranks }, (_, r) => r));
    expect(finding.title).toMatch(/1\.8 × the mean, another one from layer to layer/);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[1]!.text).toMatch(/14,746 tokens .* the mean of its group 8,192/);
  });

  test('always the same rank: that rank', async () => {
    const hot = { ...fault, rank: 1 };
    const { finding, headline, truth } = await accuracy({ ranks: 4, layers: 6, faults: [hot] }, hot, RULE);
    expect(finding.ranks).toEqual([1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    // 24 exchanges of 8,192 tokens of 2,048 bytes, three quarters of which leave the card; rank 1 has 1.8 times as many.
    expect(finding.evidence[2]!.text).toMatch(/rank 1 moves 543\.\d\sMB per step, the mean of its group 302\.\d\sMB/);
  });

  test('with members missing: a bound', async () => {
    const finding = findingOf(await reportFor({ ranks: 4, layers: 6, uploadedRanks: [0, 1], faults: [{ ...fault, rank: 1 }] }), RULE)!;
    expect(finding.ranks).toEqual([1]);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { likely: null } });
    expect(finding.caveats.join()).toMatch(/2 of 4 ranks are here/);
  });
});

describe('options', () => {
  test.each([
    ['minPeak', 3],
    ['minShare', 0.9],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor({ ranks: 2, layers: 6, faults: [fault] }, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

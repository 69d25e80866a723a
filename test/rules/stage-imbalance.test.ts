import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'stage-imbalance';

describe('quiet', () => {
  test('equal stages are no finding', async () => {
    expect(checkOf(await reportFor({ ranks: 4, pp: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('without pipeline groups there are no stages', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('a stage that was not uploaded cannot be compared', async () => {
    const spec = { ranks: 4, pp: 2 as const, uploadedRanks: [2, 3], faults: [{ kind: 'stage-imbalance' } as const] };
    expect(checkOf(await reportFor(spec), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test.each([2, 4])('layers moved to the last stage of %i ranks: its ranks, saving within 20 percent', async (ranks) => {
    const fault = { kind: 'stage-imbalance' } as const;
    const { finding, headline, truth } = await accuracy({ ranks, pp: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual(ranks === 2 ? [1] : [2, 3]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence).toHaveLength(2);
  });
});

describe('options', () => {
  const spec = { ranks: 2, pp: 2 as const, faults: [{ kind: 'stage-imbalance' } as const] };
  test.each([
    ['minRatio', 5],
    ['minShare', 0.9],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });

  test('a lower minRatio reports one layer of 24 too many', async () => {
    const mild = { ranks: 2, pp: 2 as const, layers: 24, microBatches: 4, faults: [{ kind: 'stage-imbalance' } as const] };
    expect(findingOf(await reportFor(mild), RULE)).toBeUndefined();
    expect(findingOf(await reportFor(mild, { [RULE]: { minRatio: 0.01 } }), RULE)!.ranks).toEqual([1]);
  });
});

import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'ddp-buffer-broadcast';

describe('quiet', () => {
  test('without broadcasts there is nothing to say', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('without DistributedDataParallel there is nothing to say', async () => {
    expect(checkOf(await reportFor({ ranks: 2, pp: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });
});

describe('loud', () => {
  test('buffers in every forward: all ranks, saving within 20 %, the wrapped call as the place', async () => {
    const fault = { kind: 'buffer-broadcast' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving!.perStepMs.floor).toBeLessThanOrEqual(truth * 1.05);
    expect(finding.locations[0]).toMatchObject({ line: 93 });
    expect(finding.groups).toHaveLength(1);
  });

  test('Level0 tells the broadcasts by their names', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'buffer-broadcast' }] }), RULE)!;
    expect(finding.evidence[0]!.text).toMatch(/broadcasts per step in 1 forwards/);
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'buffer-broadcast' } as const] };
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

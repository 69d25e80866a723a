import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'transpose-hotspot';

describe('quiet', () => {
  test('a healthy job has nothing to undo', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('Level0 shows neither shapes nor formats: nothing is claimed to be removable', async () => {
    const report = await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'layout' }] });
    const finding = findingOf(report, RULE);
    expect(finding?.saving?.perStepMs.ceiling ?? 0).toBe(0);
    if (finding !== undefined) expect(finding.confidence).toBe('low');
  });
});

describe('loud', () => {
  const fault = { kind: 'layout' } as const;

  test('conversions that undo each other: all ranks, saving within 20 %, the place in the code', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[1]!.text).toMatch(/and back, shape/);
    expect(finding.locations[0]).toMatchObject({ line: 44 });
  });

  test('newer column names give the same', async () => {
    const report = await reportFor({ ranks: 2, era: '2025-11', faults: [fault] });
    expect(findingOf(report, RULE)!.ranks).toEqual([0, 1]);
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'layout' } as const] };
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
    ['minCount', 100_000],
  ])('a higher %s leaves no claim', async (name, value) => {
    const finding = findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE);
    expect(finding?.saving?.perStepMs.ceiling ?? 0).toBe(0);
  });

  test('informationShare decides from where a share of computing is mentioned', async () => {
    const silent = { [RULE]: { minCount: 100_000, informationShare: 1 } };
    const told = { [RULE]: { minCount: 100_000, informationShare: 0 } };
    expect(findingOf(await reportFor(spec, silent), RULE)).toBeUndefined();
    expect(findingOf(await reportFor(spec, told), RULE)).toMatchObject({ severity: 'info', saving: { perStepMs: { ceiling: 0 } } });
  });
});

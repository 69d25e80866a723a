import { describe, expect, test } from 'vitest';
import type { Fault } from '../../lab/simulator/index.ts';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'memory-alloc-stall';

describe('quiet', () => {
  test('a healthy job takes its tensors from the cache', async () => {
    const check = checkOf(await reportFor({ ranks: 2 }), RULE);
    expect(check).toMatchObject({ outcome: 'pass' });
    expect(check.reason).toMatch(/called the driver at most 0 times per step/);
  });

  test('trap: the allocator calls the driver in each step while the card has work queued', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'alloc-stall', hidden: true }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
    expect(checkOf(report, RULE).reason).toMatch(/at most [1-9]\d* times per step/);
  });

  test('Level0 records no calls of the driver: not applicable, not fine', async () => {
    const report = await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'alloc-stall' }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test.each<[string, Fault]>([
    ['a cache that does not serve', { kind: 'alloc-stall' }],
    ['a loop that empties the cache', { kind: 'alloc-stall', emptyCache: true }],
  ])('%s: count and a saving within 20 percent', async (_, fault) => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[0]!.text).toMatch(/`aclrt(MapMem|MallocPhysical|UnmapMem|FreePhysical)`/);
    expect(finding.evidence.map((e) => e.text).join('\n')).toMatch(/24/);
  });

  test('a single captured step cannot be told from warming up: low confidence', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, steps: 1, withStack: false, faults: [{ kind: 'alloc-stall', ms: 30 }] }), RULE);
    expect(finding?.confidence ?? 'low').toBe('low');
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'alloc-stall' }] }, { [RULE]: { [name]: value } });
    expect(findingOf(report, RULE)).toBeUndefined();
  });
});

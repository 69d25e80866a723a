import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'small-op-fragmentation';

describe('quiet', () => {
  test('a healthy job has no run of starved small kernels', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('a slow host of one rank is not called fragmentation', async () => {
    expect(findingOf(await reportFor({ ranks: 2, faults: [{ kind: 'slow-host', rank: 1 }] }), RULE)).toBeUndefined();
  });

  test('compiling in the loop is not called fragmentation', async () => {
    expect(findingOf(await reportFor({ ranks: 2, faults: [{ kind: 'recompile' }] }), RULE)).toBeUndefined();
  });

  test('small kernels that hide behind the pipeline cost nothing and are not claimed', async () => {
    expect(findingOf(await reportFor({ ranks: 2, pp: 2, faults: [{ kind: 'small-ops', where: 'forward' }] }), RULE)).toBeUndefined();
  });
});

describe('loud', () => {
  test.each(['optimizer', 'forward'] as const)('tiny kernels in the %s: all ranks, saving within 20 percent', async (where) => {
    const fault = { kind: 'small-ops', where } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving!.perStepMs.floor).toBeLessThanOrEqual(truth * 1.05);
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThanOrEqual(truth * 0.9);
    expect(/optimizer/.test(finding.title)).toBe(where === 'optimizer');
    expect(finding.evidence[1]!.text).toMatch(/repeats \d+ times/);
    expect(finding.locations[0]).toMatchObject({ line: 56 });
  });

  test('call stacks slow the host: confidence is capped and the text says so', async () => {
    const fault = { kind: 'small-ops', where: 'optimizer' } as const;
    const biased = findingOf(await reportFor({ ranks: 2, faults: [fault] }), RULE)!;
    expect(biased.confidence).toBe('medium');
    expect(biased.caveats.join()).toContain('`with_stack`');
    const clean = findingOf(await reportFor({ ranks: 2, withStack: false, faults: [fault] }), RULE)!;
    expect(clean.confidence).toBe('high');
    expect(clean.caveats).toEqual([]);
  });

  test('Level0 is enough: launches are known by the flows', async () => {
    const fault = { kind: 'small-ops', where: 'optimizer' } as const;
    expect(findingOf(await reportFor({ ranks: 2, level: 0, faults: [fault] }), RULE)!.ranks).toEqual([0, 1]);
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'small-ops', where: 'optimizer' } as const] };
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
    ['minKernels', 100_000],
    ['minRepeats', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

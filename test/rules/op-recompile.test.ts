import { describe, expect, test } from 'vitest';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'op-recompile';

describe('quiet', () => {
  test('a healthy job compiles nothing', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('Level0 has no CANN calls: the check says what it needs', async () => {
    expect(checkOf(await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'recompile' }] }), RULE)).toMatchObject({
      outcome: 'notApplicable',
    });
  });
});

describe('loud', () => {
  test.each([1, 2] as const)('compiling in the loop (pipeline stages: %i): all ranks, saving within 20 percent', async (pp) => {
    const fault = { kind: 'recompile' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, pp, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[0]!.text).toMatch(/2 calls of `AscendCL@aclopCompileAndExecute` per step/);
    expect(finding.locations[0]).toMatchObject({ line: 37 });
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'recompile' } as const] };
  test('a higher minShare silences the rule', async () => {
    expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
  });

  test('few and short calls are no compiling: both limits together decide', async () => {
    expect(findingOf(await reportFor(spec, { [RULE]: { longCallMs: 10_000 } }), RULE)).toBeUndefined();
    expect(findingOf(await reportFor(spec, { [RULE]: { longCallMs: 10_000, minCalls: 1 } }), RULE)).toBeDefined();
  });
});

import { describe, expect, test } from 'vitest';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'memory-fragmentation';
const JOB = { ranks: 2, layers: 4, steps: 4, soc: 'Ascend910B4' } as const;

describe('quiet', () => {
  test('an allocator that uses what it has', async () => {
    expect(checkOf(await reportFor({ ...JOB, memory: {} }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: a large cache on a card with room costs nothing', async () => {
    expect(checkOf(await reportFor({ ...JOB, memory: { unusedGb: 8 } }), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/nothing shows that they are missed/),
    });
  });

  test('trap: emptying the cache in the loop is no fragmentation', async () => {
    expect(checkOf(await reportFor({ ...JOB, memory: { churn: true } }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('without memory records it is not applicable', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4 }), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('the allocator takes more in every step although enough is unused', async () => {
    const report = await reportFor({ ...JOB, memory: { splinterMb: 512, unusedGb: 2 } });
    const finding = findingOf(report, RULE)!;
    expect(finding).toMatchObject({ severity: 'medium', saving: null, ranks: [0, 1], confidence: 'high' });
    const text = finding.evidence.map((e) => e.text).join('\n');
    expect(text).toMatch(/for a block of 536\.9\sMB the allocator took 545\.3\sMB .* although [\d.]+\sGB of its own were unused/);
    expect(text).toMatch(/in 3 of 3 steps/);
    expect(finding.evidence.find((e) => e.startUs !== undefined)?.step).toBeGreaterThanOrEqual(10);
  });

  test('a tenth of the card unused, and the card full', async () => {
    const finding = findingOf(await reportFor({ ...JOB, memory: { baseGb: 19, unusedGb: 4 } }), RULE)!;
    expect(finding.evidence.map((e) => e.text).join('\n')).toMatch(/the process uses [\d.]+\sGB of 34\.4\sGB/);
    // No growth was seen, so that it may be a cache: low.
    expect(finding.confidence).toBe('low');
  });
});

describe('options', () => {
  test('what counts as large and as near the limit can be set', async () => {
    const spec = { ...JOB, memory: { baseGb: 19, unusedGb: 4 } };
    expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.5 } }), RULE)).toBeUndefined();
    expect(findingOf(await reportFor(spec, { [RULE]: { nearShare: 1 } }), RULE)).toBeUndefined();
  });
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  test.each(['level0', 'level1', 'level2', 'st'] as const)('%s: unused memory that nobody misses', async (set) => {
    expect(checkOf(await analysePaths([PATHS[set]]), RULE)).toMatchObject({ outcome: 'pass' });
  });
});

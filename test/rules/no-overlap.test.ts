import { describe, expect, test } from 'vitest';
import rule, { remainder } from '../../src/rules/no-overlap/index.ts';
import { communication, hashOf, metadata, reportFrom, stepTimes } from '../support/communication-files.ts';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'no-overlap';

/** Two ranks of which the tables alone are here: two reductions of 220 MB in one group. */
function tables(role: string, overlapped: number, op = 'reduceScatter'): Record<string, string> {
  const files: Record<string, string> = {};
  for (const rank of [0, 1]) {
    const own = `rank_${rank}_ascend_pt/`;
    files[`${own}profiler_info_${rank}.json`] = JSON.stringify({ rank_id: rank });
    files[`${own}profiler_metadata.json`] = metadata({ group_name_5: { role, ranks: [0, 1] } }, rank, 2);
    files[`${own}ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(300, 60, 40, overlapped);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication.json`] = communication(
      [3, 4].map((index, i) => ({
        name: `hcom_${op}__097_${index}_1`,
        group: hashOf('group_name_5'),
        at: 300_000 + i * 30_000,
        ms: 25,
        moved: { HCCS: { mb: 440, ms: 23.5 } },
      })),
    );
  }
  return files;
}

describe('quiet', () => {
  test.each([
    { ranks: 4, layers: 4 },
    { ranks: 4, pp: 2 as const, layers: 6 },
  ])('a healthy job overlaps: %j', async (spec) => {
    expect(checkOf(await reportFor(spec), RULE)).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/runs beside computing/) });
  });

  test('gradients in every micro-step are another matter: they overlap', async () => {
    const report = await reportFor({ ranks: 4, layers: 4, faults: [{ kind: 'sync-per-microstep' }] });
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('waiting for ranks that are not here is no transfer', async () => {
    const spec = { ranks: 4, layers: 6, uploadedRanks: [0, 1], faults: [{ kind: 'slow-rank' as const, rank: 3, factor: 1.6 }] };
    expect(findingOf(await reportFor(spec), RULE)).toBeUndefined();
  });

  test.each(['tp', 'cp', 'exp', 'embd'])('a %s group reduces no gradients of data parallelism', async (role) => {
    expect(checkOf(await reportFrom(tables(role, 0, 'allReduce'), rule), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('a step table that shows overlap, without a timeline, tells nothing', async () => {
    expect(checkOf(await reportFrom(tables('dp', 20), rule), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('a backward too short to hide behind', async () => {
    const files = tables('dp', 0);
    for (const rank of [0, 1]) files[`rank_${rank}_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(2, 60, 40);
    expect(checkOf(await reportFrom(files, rule), RULE)).toMatchObject({ outcome: 'pass' });
  });
});

describe('loud', () => {
  test.each([2, 4])('reduced after the backward on %i ranks: saving within 20 percent', async (ranks) => {
    const fault = { kind: 'no-overlap' } as const;
    const { finding, headline, truth } = await accuracy({ ranks, layers: 6, faults: [fault] }, fault, RULE);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThanOrEqual(truth);
    expect(finding.saving!.perStepMs.floor).toBeLessThanOrEqual(1.05 * truth);
    expect(finding.evidence[0]!.text).toMatch(/the backward before them computes for/);
  });

  test('from the tables alone: a bound, and no likely saving', async () => {
    const finding = findingOf(await reportFrom(tables('dp', 0), rule), RULE)!;
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    // Twice 25 ms, of which the last bucket of 25 MB sticks out.
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThan(46);
    expect(finding.saving!.perStepMs.ceiling).toBeLessThan(50);
    expect(finding.caveats.join()).toMatch(/only a bound is known/);
  });

  test('with ranks missing it is a bound and says so', async () => {
    const finding = findingOf(await reportFor({ ranks: 4, layers: 6, uploadedRanks: [0], faults: [{ kind: 'no-overlap' }] }), RULE)!;
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { likely: null } });
    expect(finding.caveats.join()).toMatch(/1 of 4 ranks are here/);
  });
});

describe('what sticks out of a backward', () => {
  test('only the last message when the backward is long', () => {
    expect(remainder(100, [1, 1, 1, 1])).toBeCloseTo(1);
    expect(remainder(100, [1, 1, 1, 5])).toBeCloseTo(5);
  });

  test('all that exceeds it when it is short', () => {
    expect(remainder(10, [10, 10, 10, 10])).toBeCloseTo(32.5);
    expect(remainder(0, [10])).toBeCloseTo(10);
  });
});

describe('options', () => {
  test.each([
    ['maxOverlap', 0],
    ['minShare', 0.9],
  ])('another %s silences the rule', async (name, value) => {
    const spec = { ranks: 2, layers: 6, faults: [{ kind: 'no-overlap' as const }] };
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

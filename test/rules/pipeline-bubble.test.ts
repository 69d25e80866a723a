import { describe, expect, test } from 'vitest';
import rule from '../../src/rules/pipeline-bubble/index.ts';
import { type Call, communication, hashOf, metadata, reportFrom, stepTimes } from '../support/communication-files.ts';
import { accuracy, checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'pipeline-bubble';

/** Four stages of one rank; `calls` of send-and-receive on each, lasting 20 ms. */
function fourStages(calls: readonly number[], op = 'batchSendRecv'): Record<string, string> {
  const files: Record<string, string> = {};
  calls.forEach((count, rank) => {
    const own = `rank_${rank}_ascend_pt/`;
    files[`${own}profiler_info_${rank}.json`] = JSON.stringify({ rank_id: rank });
    files[`${own}profiler_metadata.json`] = metadata({ group_name_9: { role: 'pp', ranks: [0, 1, 2, 3] } }, rank, 4);
    files[`${own}ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(100, 90, 10);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication.json`] = communication(
      Array.from(
        { length: count },
        (_, i): Call => ({
          name: `hcom_${op}__128_${i + rank * 100}_1`,
          group: hashOf('group_name_9'),
          at: 1_000 + i * 25_000,
          ms: 20,
          moved: { HCCS: { mb: 8.4, ms: 0.4 } },
        }),
      ),
    );
  });
  return files;
}

describe('quiet', () => {
  test('four micro-batches per stage are enough', async () => {
    expect(checkOf(await reportFor({ ranks: 4, pp: 2, layers: 6 }), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/8 micro-batches on 2 stages: a balanced schedule idles 11\s%/),
    });
  });

  test('unequal stages with enough micro-batches are not the schedule', async () => {
    const report = await reportFor({ ranks: 4, pp: 2, layers: 6, faults: [{ kind: 'stage-imbalance' }] });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'stage-imbalance')).toBeDefined();
  });

  test('without a pipeline, or with a stage missing, there is nothing to count', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4 }), RULE)).toMatchObject({ outcome: 'notApplicable' });
    const part = { ranks: 4, pp: 2 as const, layers: 6, uploadedRanks: [2, 3], faults: [{ kind: 'few-micro-batches' as const }] };
    expect(checkOf(await reportFor(part), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('first and last stage that disagree run another schedule', async () => {
    expect(checkOf(await reportFrom(fourStages([13, 24, 24, 7]), rule), RULE)).toMatchObject({
      outcome: 'notApplicable',
      reason: expect.stringMatching(/interleaved/),
    });
  });
});

describe('loud', () => {
  test.each([2, 4])('two micro-batches on %i ranks: all ranks, a ceiling within 20 percent', async (ranks) => {
    const fault = { kind: 'few-micro-batches' } as const;
    const { finding, headline, truth } = await accuracy({ ranks, pp: 2, layers: 6, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual(Array.from({ length: ranks }, (_, r) => r));
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
  });

  test('four stages: m + 3 calls on the first, m + 1 on the last', async () => {
    const finding = findingOf(await reportFrom(fourStages([7, 12, 10, 5]), rule), RULE)!;
    expect(finding.title).toMatch(/4 micro-batches are few for 4 pipeline stages: the schedule alone idles 43\s%/);
    // 100 ms × 3 × (1/4 − 1/16)
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(56.25, 1);
  });

  test('the bubble is never also waiting of ranks for each other', async () => {
    const report = await reportFor({ ranks: 4, pp: 2, layers: 6, faults: [{ kind: 'few-micro-batches' }] });
    expect(findingOf(report, 'hccl-sync-wait')).toBeUndefined();
    expect(findingOf(report, 'slow-rank')).toBeUndefined();
    expect(findingOf(report, 'stage-imbalance')).toBeUndefined();
  });
});

describe('options', () => {
  test.each([
    ['perStage', 1],
    ['minShare', 0.9],
  ])('another %s silences the rule', async (name, value) => {
    const spec = { ranks: 2, pp: 2 as const, layers: 6, faults: [{ kind: 'few-micro-batches' as const }] };
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

import { describe, expect, test } from 'vitest';
import rule from '../../src/rules/retransmission/index.ts';
import { type Call, communication, hashOf, metadata, reportFrom, stepTimes } from '../support/communication-files.ts';
import { checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'retransmission';

/** Ranks 0 and 8 exchange 20 MB over RDMA in each of these times, ms; waiting comes on top. */
function between(times: readonly number[], waitMs = 0, type: 'HCCS' | 'RDMA' = 'RDMA'): Record<string, string> {
  const files: Record<string, string> = {};
  for (const rank of [0, 8]) {
    const own = `rank_${rank}_ascend_pt/`;
    files[`${own}profiler_info_${rank}.json`] = JSON.stringify({ rank_id: rank });
    files[`${own}profiler_metadata.json`] = metadata({ group_name_5: { role: 'dp', ranks: [0, 8] } }, rank, 16);
    files[`${own}ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(6_000, 3_000, 1_000);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication.json`] = communication(
      times.map(
        (ms, i): Call => ({
          name: `hcom_allReduce__097_${i + 1}_1`,
          group: hashOf('group_name_5'),
          at: 1_000 + 10_000_000 * i,
          ms: ms + waitMs,
          moved: { [type]: { mb: 20, ms } },
        }),
      ),
    );
  }
  return files;
}

describe('quiet', () => {
  test('a job on one server: a fact, not an error', async () => {
    expect(checkOf(await reportFor({ ranks: 4, layers: 4 }), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/no RDMA/),
    });
  });

  test('two servers that work', async () => {
    expect(checkOf(await reportFor({ ranks: 16, layers: 4 }), RULE)).toMatchObject({ outcome: 'pass' });
  }, 60_000);

  test('waiting for a late rank is no transfer', async () => {
    expect(checkOf(await reportFrom(between([0.8, 0.9, 0.8, 0.8, 0.9], 5_000), rule), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('congestion of a few times, and a short hiccup of thirty times', async () => {
    expect(checkOf(await reportFrom(between([0.8, 0.9, 4, 0.8, 28]), rule), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('slow transfers inside a server are no business of the network', async () => {
    expect(checkOf(await reportFrom(between([1, 1, 1, 1, 5_000], 0, 'HCCS'), rule), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('Level0 does not tell', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4, level: 0 }), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('200 ms where others take one: suspected, low confidence', async () => {
    const finding = findingOf(await reportFrom(between([0.8, 0.9, 200, 0.8, 0.9]), rule), RULE)!;
    expect(finding.title).toMatch(/1 transfers .* may have been sent again/);
    expect(finding.confidence).toBe('low');
    expect(finding.ranks).toEqual([0, 8]);
    expect(finding.evidence[0]!.text).toMatch(/20\.0\sMB between servers in 200\.0\sms; others of this size take 0\.9\sms/);
    expect(finding.saving!.perStepMs.likely).toBeNull();
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(199.1, 0);
  });

  test('four seconds: certain, even without others to compare with', async () => {
    const finding = findingOf(await reportFrom(between([4_300]), rule), RULE)!;
    expect(finding.title).toMatch(/packets were sent again/);
    expect(finding.caveats.join()).toMatch(/does not count packets/);
  });
});

describe('options', () => {
  test.each([
    ['minSlowdown', 1_000],
    ['minMs', 500],
  ])('a higher %s silences a suspicion', async (name, value) => {
    const changed = { ...rule, options: { ...rule.options, [name]: { ...rule.options[name as 'minMs'], default: value } } };
    expect(findingOf(await reportFrom(between([0.8, 0.9, 200, 0.8, 0.9]), changed), RULE)).toBeUndefined();
  });
});

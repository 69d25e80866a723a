/*
 * What the rules of collectives say of real profiles: a pipeline of four ranks, two of eight ranks of one server, the tables of
 * a cluster whose rank 0 waits for the host of rank 1.
 */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { jobFacts } from '../../src/facts/job/index.ts';
import { judgeLinks, linksOf } from '../../src/facts/job/links.ts';
import { transfers } from '../../src/facts/job/transfers.ts';
import type { Report } from '../../src/model/report.ts';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, factsOf, findingOf } from '../support/simulated.ts';

const ROOT = fileURLToPath(new URL('../../../shared/profiles/', import.meta.url));
const CLUSTER = `${ROOT}msprof-analyze/test/resource/advisor/cluster_analysis_output`;
const SIXTEEN = `${ROOT}msinsight/server/src/test/test_data/cluster_analysis_output`;
const RULES = [
  'slow-link',
  'hccl-small-packet',
  'no-overlap',
  'bandwidth-contention',
  'byte-alignment',
  'retransmission',
  'pipeline-bubble',
  'expert-imbalance',
  'group-placement',
] as const;

const outcomes = (report: Report): Record<string, string> => Object.fromEntries(RULES.map((rule) => [rule, checkOf(report, rule).outcome]));

describe.skipIf(!HAVE_PROFILES)(`collectives of real profiles${WHY_SKIPPED}`, () => {
  const reports = new Map<string, Report>();
  const of = (set: string): Report => reports.get(set)!;
  beforeAll(async () => {
    const paths = { st: PATHS.st, level1: PATHS.level1, gpt0: PATHS.gpt0, cluster: CLUSTER, sixteen: SIXTEEN };
    for (const [set, path] of Object.entries(paths)) reports.set(set, await analysePaths([path]));
  });

  test('st/level2: two micro-batches on two stages, and gradients that nothing hides', () => {
    expect(outcomes(of('st'))).toEqual({
      'slow-link': 'pass',
      'hccl-small-packet': 'pass',
      'no-overlap': 'finding',
      'bandwidth-contention': 'notApplicable',
      'byte-alignment': 'pass',
      retransmission: 'pass',
      'pipeline-bubble': 'finding',
      'expert-imbalance': 'notApplicable',
      'group-placement': 'notApplicable',
    });
    const bubble = findingOf(of('st'), 'pipeline-bubble')!;
    // The stages compute 231.1 and 400.8 ms: an even split of (231.1 + 400.8) / 2, times 1/2 − 1/8.
    expect(bubble.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null, ceiling: expect.closeTo(118.5, 0) } });
    expect(bubble.evidence.map((e) => e.text).join()).toMatch(/318\.4\sms of its point-to-point.*73\.8\sms of its point-to-point/);
    const overlap = findingOf(of('st'), 'no-overlap')!;
    // 26.3 and 18.6 ms of reduce-scatter, less the last bucket.
    expect(overlap.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null, ceiling: expect.closeTo(43.3, 0) } });
    expect(overlap.evidence[0]!.text).toMatch(/2 calls of `reduceScatter`.*751\.6\sMB in all, move for 44\.9\sms/);
  });

  test('st/level2: unequal stages stay one finding of their own, and no rank is called slow', () => {
    expect(findingOf(of('st'), 'stage-imbalance')!.ranks).toEqual([2, 3]);
    expect(findingOf(of('st'), 'slow-rank')).toBeUndefined();
    // The waiting of unequal stages is between them: 318.4 ms in stage 0, not the 16.3 ms that ranks 2 and 3 wait for each other.
    const wait = findingOf(of('st'), 'hccl-sync-wait')!;
    expect(wait.title).toMatch(/^Stage 0 is in point-to-point calls for 318\.4\sms per step, stage 1 for 73\.8\sms/);
    expect(wait.symptomOf).toBe(findingOf(of('st'), 'stage-imbalance')!.id);
  });

  test('st/level2: ends of links are global ranks, whatever their numbers inside a group', async () => {
    const job = jobFacts(await factsOf(PATHS.st));
    expect(
      linksOf(job)
        .map((l) => l.key)
        .sort(),
    ).toEqual(['0-1/HCCS', '0-2/HCCS', '0-3/HCCS', '1-2/HCCS', '1-3/HCCS', '2-3/HCCS']);
    // Pairs of two: nothing to compare with.
    expect(judgeLinks(job)).toEqual([]);
  });

  test('text/level1: no culprit, no advice on links, no overlap to be had', () => {
    expect(outcomes(of('level1'))).toEqual({
      'slow-link': 'pass',
      'hccl-small-packet': 'pass',
      'no-overlap': 'pass',
      'bandwidth-contention': 'notApplicable',
      'byte-alignment': 'pass',
      retransmission: 'pass',
      'pipeline-bubble': 'notApplicable',
      'expert-imbalance': 'notApplicable',
      'group-placement': 'notApplicable',
    });
    expect(checkOf(of('level1'), 'slow-link').reason).toMatch(/13 links the slowest takes 1\.0\d × as long/);
    expect(checkOf(of('level1'), 'retransmission').reason).toMatch(/no RDMA/);
    // Packets of 1.94 and 1.16 MB at the end of a message.
    expect(checkOf(of('level1'), 'byte-alignment').reason).toMatch(/^1\.6\s% of the link time .* 1\.08 × as long/);
  });

  test('text/level1: 79 ms of the first all-reduce are waiting, 0.3 ms of them moving', async () => {
    const first = transfers(jobFacts(await factsOf(PATHS.level1)))[0]!;
    expect(first.whole).toBe(false);
    expect(first.bodyMs).toBeGreaterThan(73);
    expect(first.movingMs).toBeCloseTo(1.826 / 7, 2);
  });

  test('a GPT rank of 2023: one slow call on two links is no slow link', () => {
    expect(checkOf(of('gpt0'), 'slow-link')).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/slowest takes 1(\.0\d)? ×/) });
    expect(checkOf(of('gpt0'), 'retransmission')).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/6 transfers .* 5\.4\sms/),
    });
  });

  test('cluster tables: what rank 0 calls communication is the host of rank 1, so no advice on links', () => {
    expect(of('cluster').findings.filter((f) => (RULES as readonly string[]).includes(f.rule))).toEqual([]);
    expect(checkOf(of('cluster'), 'slow-link').outcome).toBe('notApplicable');
  });

  test('cluster tables of sixteen ranks: links by global rank, too few to compare', async () => {
    expect(of('sixteen').findings.filter((f) => (RULES as readonly string[]).includes(f.rule))).toEqual([]);
    expect(of('sixteen').inputs.find((i) => i.path.endsWith('cluster_communication_matrix.json'))!.status).toBe('used');
    expect(checkOf(of('sixteen'), 'slow-link')).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/^3 links/) });
  });
});

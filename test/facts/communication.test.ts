import { describe, expect, test } from 'vitest';
import type { JobSpec } from '../../lab/simulator/index.ts';
import { backwardComputing } from '../../src/facts/job/backward.ts';
import { groupOf, roleOf } from '../../src/facts/job/groups.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import { serversOf } from '../../src/facts/job/servers.ts';
import { transfers } from '../../src/facts/job/transfers.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { reportOf, simulated } from '../support/simulated.ts';

describe('roles of groups', () => {
  test.each([
    ['default_group', 'world'],
    ['dp', 'data'],
    ['dp_cp', 'data'],
    ['edp', 'data'],
    ['dp_modulo_exp', 'data'],
    ['tp', 'tensor'],
    ['cp', 'context'],
    ['pp', 'pipeline'],
    ['pp_new_stream', 'pipeline'],
    ['exp', 'expert'],
    ['tp_exp', 'expert'],
    ['mp', 'other'],
    ['embd', 'other'],
    ['tp_dp', 'other'],
    [null, 'unknown'],
  ] as const)('%s is %s', (name, role) => {
    expect(roleOf(name)).toBe(role);
  });

  test('without metadata the only group, or one of all ranks, is the default group', async () => {
    const { ranks } = await simulated({ ranks: 2, layers: 4, parallelGroupInfo: false });
    const job = jobFacts(ranks);
    expect(groupOf(job, job.matches[0]!.group).role).toBe('world');
  });
});

describe('what is left of a collective without waiting', () => {
  test('the body is the transfer of the simulator, however late a rank comes', async () => {
    const spec: JobSpec = { ranks: 4, layers: 6, faults: [{ kind: 'slow-rank', rank: 3, factor: 1.3 }] };
    const all = transfers(jobFacts((await simulated(spec)).ranks));
    const buckets = all.filter((t) => Math.abs(t.bytes - 37_748_736) < 1);
    expect(buckets.length).toBeGreaterThan(10);
    // 38 µs, 37.7 MB at 60 GB/s, and the spread of the ends.
    for (const t of buckets) {
      expect(t.whole).toBe(true);
      expect(t.bodyMs).toBeGreaterThan(0.64);
      expect(t.bodyMs).toBeLessThan(0.72);
    }
  });

  test('computing waits for the last bucket only, and for all that nothing hides', async () => {
    const spec: JobSpec = { ranks: 2, layers: 6 };
    const blocked = async (job: JobSpec): Promise<number[]> => {
      const all = transfers(jobFacts((await simulated(job)).ranks));
      return all.filter((t) => t.step === 12).map((t) => t.blockedMs);
    };
    const healthy = await blocked(spec);
    expect(healthy.at(-1)).toBeGreaterThan(1);
    expect(Math.max(...healthy.slice(0, -2))).toBe(0);
    const late = await blocked({ ...spec, faults: [{ kind: 'no-overlap' }] });
    for (const ms of late) expect(ms).toBeGreaterThan(0.5);
  });

  test('backwards are found, one per micro-step, with the computing they hold', async () => {
    const { ranks } = await simulated({ ranks: 2, layers: 4 });
    expect(ranks[0]!.phases.backwards.map((list) => list.length)).toEqual([1, 1, 1, 1]);
    for (const ms of backwardComputing(ranks[0]!)) expect(ms).toBeGreaterThan(4 * 3.5);
    const accumulated = await simulated({ ranks: 2, layers: 4, faults: [{ kind: 'sync-per-microstep' }] });
    expect(accumulated.ranks[0]!.phases.backwards.map((list) => list.length)).toEqual([4, 4, 4, 4]);
  });
});

test('servers are sets of ranks that are linked without RDMA', async () => {
  const { ranks } = await simulated({ ranks: 16, layers: 4 });
  expect(serversOf(jobFacts(ranks))).toEqual([
    [0, 1, 2, 3, 4, 5, 6, 7],
    [8, 9, 10, 11, 12, 13, 14, 15],
  ]);
}, 60_000);

test.each<JobSpec>([
  { ranks: 4, layers: 4, faults: [{ kind: 'slow-link', ranks: [1, 2] }] },
  { ranks: 2, layers: 4, faults: [{ kind: 'expert-imbalance' }] },
  { ranks: 2, layers: 4, faults: [{ kind: 'no-overlap' }] },
])('a digest gives the same report: %j', async (spec) => {
  const { ranks } = await simulated(spec);
  expect(reportOf(factsFromJson(factsToJson(ranks)))).toEqual(reportOf(ranks));
});

import { describe, expect, test } from 'vitest';
import rule from '../../src/rules/byte-alignment/index.ts';
import { communication, hashOf, type Moved, metadata, reportFrom, stepTimes } from '../support/communication-files.ts';
import { checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'byte-alignment';

/** Two ranks that move these packets in one all-reduce; sizes in bytes. */
function moving(
  packets: readonly (readonly [bytes: number, count: number, ms: number])[],
  type: 'HCCS' | 'RDMA' = 'HCCS',
): Record<string, string> {
  const moved: Moved = {
    mb: packets.reduce((sum, [bytes, count]) => sum + (bytes * count) / 1e6, 0),
    ms: packets.reduce((sum, [, , ms]) => sum + ms, 0),
    packets: Object.fromEntries(packets.map(([bytes, count, ms]) => [String(bytes / 1e6), [count, ms]] as const)),
  };
  const files: Record<string, string> = {};
  for (const rank of [0, 1]) {
    const own = `rank_${rank}_ascend_pt/`;
    files[`${own}profiler_info_${rank}.json`] = JSON.stringify({ rank_id: rank });
    files[`${own}profiler_metadata.json`] = metadata({ group_name_5: { role: 'dp', ranks: [0, 1] } }, rank, 2);
    files[`${own}ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(60, 30, 10);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication.json`] = communication([
      { name: 'hcom_allReduce__097_3_1', group: hashOf('group_name_5'), at: 1_000, ms: 30, moved: { [type]: moved } },
    ]);
  }
  return files;
}

const KB512 = 512 * 1024;

describe('quiet', () => {
  test('aligned packets', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('odd packets as fast as aligned ones, however many', async () => {
    const report = await reportFrom(
      moving([
        [KB512, 10, 0.3],
        [KB512 + 100, 900, 27],
      ]),
      rule,
    );
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/99\s% .* take 1 × as long/) });
  });

  test('a single odd tail packet does not matter, however slow: time counts', async () => {
    const report = await reportFrom(
      moving([
        [KB512, 900, 27],
        [KB512 - 100, 1, 0.3],
      ]),
      rule,
    );
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('no aligned packet of like size: not known', async () => {
    const report = await reportFrom(moving([[KB512 + 100, 900, 27]]), rule);
    expect(checkOf(report, RULE)).toMatchObject({
      outcome: 'notApplicable',
      reason: expect.stringMatching(/whether it costs is not known/),
    });
  });

  test('what moves between servers is cut by the network card', async () => {
    const report = await reportFrom(moving([[KB512 + 100, 900, 27]], 'RDMA'), rule);
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'notApplicable', reason: expect.stringMatching(/inside a server/) });
  });

  test('Level0 has no packet sizes', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4, level: 0 }), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('odd packets twice as slow: their excess, as a bound', async () => {
    const report = await reportFrom(
      moving([
        [KB512, 100, 3],
        [KB512 + 100, 400, 24],
      ]),
      rule,
    );
    const finding = findingOf(report, RULE)!;
    expect(finding.title).toMatch(/take 2 × as long/);
    expect(finding.ranks).toEqual([0, 1]);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null, ceiling: expect.closeTo(12, 1) } });
    expect(finding.evidence[0]!.text).toMatch(/400 of 524,388 bytes/);
  });

  test('only the rank on which they are slow is named', async () => {
    const slow = moving([
      [KB512, 100, 3],
      [KB512 + 100, 400, 24],
    ]);
    const fine = moving([
      [KB512, 100, 3],
      [KB512 + 100, 400, 12],
    ]);
    const files = Object.fromEntries(Object.entries(slow).map(([path, text]) => [path, path.startsWith('rank_0') ? fine[path]! : text]));
    expect(findingOf(await reportFrom(files, rule), RULE)!.ranks).toEqual([1]);
  });
});

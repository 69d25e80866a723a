import { describe, expect, test } from 'vitest';
import { jobFacts } from '../../src/facts/job/index.ts';
import { lineOf, type Transfer, transfers } from '../../src/facts/job/transfers.ts';
import rule from '../../src/rules/hccl-small-packet/index.ts';
import { type Call, communication, hashOf, metadata, reportFrom, stepTimes } from '../support/communication-files.ts';
import { accuracy, checkOf, findingOf, reportFor, simulated } from '../support/simulated.ts';

const RULE = 'hccl-small-packet';

/** Two ranks with these calls each; `exposed` ms of the step are communication. */
function twoRanks(role: string, calls: readonly Omit<Call, 'group'>[], exposed: number): Record<string, string> {
  const files: Record<string, string> = {};
  for (const rank of [0, 1]) {
    const own = `rank_${rank}_ascend_pt/`;
    files[`${own}profiler_info_${rank}.json`] = JSON.stringify({ rank_id: rank });
    files[`${own}profiler_metadata.json`] = metadata({ group_name_7: { role, ranks: [0, 1] } }, rank, 2);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication.json`] = communication(calls.map((c) => ({ ...c, group: hashOf('group_name_7') })));
    files[`${own}ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(60, exposed, 20);
  }
  return files;
}

/** `n` calls of 0.13 MB in 0.41 ms, 0.05 ms of it moving, as a LoRA job under ZeRO-3 showed them, and five of 13 MB. */
function gathers(n: number, gapUs: number): Omit<Call, 'group'>[] {
  const small = Array.from({ length: n }, (_, i) => ({
    name: `hcom_allGather__077_${i + 1}_1`,
    at: 1_000 + i * gapUs,
    ms: 0.41,
    moved: { HCCS: { mb: 0.131, ms: 0.05 } },
  }));
  const large = Array.from({ length: 5 }, (_, i) => ({
    name: `hcom_allGather__077_${n + i + 1}_1`,
    at: 1_000 + n * gapUs + i * 2_000,
    ms: 1.1,
    moved: { HCCS: { mb: 13.1, ms: 0.9 } },
  }));
  return [...small, ...large];
}

describe('quiet', () => {
  test('a healthy job has few collectives', async () => {
    expect(checkOf(await reportFor({ ranks: 4, layers: 4 }), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/only \d+ collectives/),
    });
  });

  test('small buckets that computing hides cost nothing', async () => {
    const fault = { kind: 'small-messages' as const, where: 'gradients' as const, count: 6 };
    expect(checkOf(await reportFor({ ranks: 4, layers: 6, faults: [fault] }), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/hidden behind other work/),
    });
  });

  test('tensor parallelism is small by design', async () => {
    const report = await reportFrom(twoRanks('tp', gathers(60, 420), 30), rule);
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/60 more belong to tensor/) });
  });

  test('messages whose result is needed before the next one are left alone, whatever their group is called', async () => {
    // 1.4 ms of computing between two of them.
    expect(findingOf(await reportFrom(twoRanks('mystery', gathers(60, 1_800), 30), rule), RULE)).toBeUndefined();
  });

  test('messages of one size tell nothing of what starting one costs', async () => {
    const same = gathers(60, 420).slice(0, 60);
    expect(checkOf(await reportFrom(twoRanks('dp', same, 30), rule), RULE)).toMatchObject({
      outcome: 'notApplicable',
      reason: expect.stringMatching(/all of one size/),
    });
  });
});

describe('loud', () => {
  test.each([2, 4])('shards gathered one by one on %i ranks: saving within 20 percent', async (ranks) => {
    const fault = { kind: 'small-messages' as const };
    const { finding, headline, truth } = await accuracy({ ranks, layers: 6, faults: [fault] }, fault, RULE);
    expect(finding.title).toMatch(/72 collectives of about 65\.5\skB/);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });

  test('gradients in tiny buckets that hold up the host: saving within 20 percent', async () => {
    const fault = { kind: 'small-messages' as const, where: 'gradients' as const, count: 16 };
    const { finding, headline, truth } = await accuracy({ ranks: 4, layers: 6, faults: [fault] }, fault, RULE);
    expect(finding.title).toMatch(/384 collectives/);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });

  test('A19: parameters gathered one by one: as a bound from the tables alone', async () => {
    const finding = findingOf(await reportFrom(twoRanks('dp', gathers(60, 420), 30), rule), RULE)!;
    expect(finding.title).toMatch(/60 collectives of about 131\.0\skB/);
    // 0.40 ms to start, once for each run of up to 25 MB: 59 of the 60.
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null, ceiling: expect.closeTo(59 * 0.403, 0) } });
  });

  test('one rank of four: the quickest calls, and a bound', async () => {
    const spec = { ranks: 4, layers: 6, uploadedRanks: [0], faults: [{ kind: 'small-messages' as const }] };
    const finding = findingOf(await reportFor(spec), RULE)!;
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { likely: null } });
    expect(finding.caveats.join()).toMatch(/1 of 4 ranks are here.*members of the group are missing/);
  });
});

describe('the line of time over size', () => {
  const call = (bytes: number, bodyMs: number, more: Partial<Transfer> = {}): Transfer => ({
    match: 0,
    step: 5,
    op: 'allReduce',
    group: 'g',
    role: 'data',
    size: 8,
    p2p: false,
    start: 0,
    end: 0,
    bodyMs,
    whole: true,
    movingMs: Number.NaN,
    bytes,
    betweenServers: false,
    overlap: 0,
    blockedMs: 0,
    first: false,
    ...more,
  });
  const exact = [1e4, 1e5, 1e6, 1e7, 1e8].flatMap((bytes) => [0, 1].map(() => call(bytes, 0.04 + bytes / 2e7)));

  test('start-up and slope come back', () => {
    const line = lineOf(exact)!;
    expect(line.startUpMs).toBeCloseTo(0.04, 4);
    expect(line.msPerByte).toBeCloseTo(1 / 2e7, 10);
    expect(line.kneeBytes).toBeCloseTo(8e5, -4);
  });

  test('one outlier and the slow first call do not matter', () => {
    const line = lineOf([...exact, call(1e5, 9), call(1e4, 300, { first: true })])!;
    expect(line.startUpMs).toBeCloseTo(0.04, 2);
  });

  test('too few calls, or sizes too much alike, give none', () => {
    expect(lineOf(exact.slice(0, 4))).toBeNull();
    expect(lineOf(Array.from({ length: 20 }, (_, i) => call(1e5 + i, 0.05)))).toBeNull();
  });

  test('with one size the quickest bytes of other kinds stand in', () => {
    const same = Array.from({ length: 20 }, () => call(1e5, 0.05, { op: 'allGather' }));
    expect(lineOf(same, [...same, ...exact])!.startUpMs).toBeCloseTo(0.05 - 1e5 * (0.04 / 1e8 + 1 / 2e7), 5);
  });

  test('the simulated start-up comes back', async () => {
    const { ranks } = await simulated({ ranks: 4, layers: 6, faults: [{ kind: 'small-messages' }] });
    const all = transfers(jobFacts(ranks));
    // 30 µs and 4 per doubling, and a third of the 20 µs by which ends differ.
    const line = lineOf(
      all.filter((t) => t.op === 'allGather'),
      all,
    )!;
    expect(line.startUpMs * 1000).toBeGreaterThan(38);
    expect(line.startUpMs * 1000).toBeLessThan(58);
  });
});

describe('options', () => {
  test.each([
    ['minPerStep', 1_000],
    ['minShare', 0.9],
  ])('a higher %s silences the rule', async (name, value) => {
    const spec = { ranks: 4, layers: 6, faults: [{ kind: 'small-messages' as const }] };
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

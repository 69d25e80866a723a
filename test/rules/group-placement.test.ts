import { describe, expect, test } from 'vitest';
import rule from '../../src/rules/group-placement/index.ts';
import { type Call, communication, hashOf, type Link, matrix, metadata, reportFrom, stepTimes } from '../support/communication-files.ts';
import { checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'group-placement';

interface Layout {
  /** Groups of tensor and of data parallelism by global rank. */
  readonly tensor: readonly (readonly number[])[];
  readonly data: readonly (readonly number[])[];
  /** Cards of a server. */
  readonly cards: number;
  readonly tensorMb?: number;
  readonly dataMb?: number;
}

const BETWEEN = 5;
const INSIDE = 18;

/** 40 small calls of tensor parallelism and one of data parallelism per step; RDMA between servers moves 5 MB per ms, HCCS 18. */
function job({ tensor, data, cards, tensorMb = 4, dataMb = 20 }: Layout): Record<string, string> {
  const files: Record<string, string> = {};
  const ranks = tensor.flat().sort((a, b) => a - b);
  const groups: Record<string, { role: string; ranks: readonly number[] }> = {};
  tensor.forEach((list, i) => {
    groups[`group_name_${10 + i}`] = { role: 'tp', ranks: list };
  });
  data.forEach((list, i) => {
    groups[`group_name_${30 + i}`] = { role: 'dp', ranks: list };
  });
  const crosses = (list: readonly number[]): boolean => new Set(list.map((r) => Math.floor(r / cards))).size > 1;
  for (const rank of ranks) {
    const calls: Call[] = [];
    const links: Link[] = [];
    for (const [name, { role, ranks: members }] of Object.entries(groups)) {
      if (!members.includes(rank)) continue;
      const far = crosses(members);
      const mb = role === 'tp' ? tensorMb : dataMb;
      const ms = mb / (far ? BETWEEN : INSIDE);
      for (let i = 0; i < (role === 'tp' ? 40 : 1); i++) {
        const call = `hcom_allReduce__${hashOf(name).slice(-3)}_${i + 1}_1`;
        calls.push({
          name: call,
          group: hashOf(name),
          at: (role === 'tp' ? 1_000 : 300_000) + i * 5_000,
          ms,
          moved: { [far ? 'RDMA' : 'HCCS']: { mb, ms } },
        });
        const peer = members[(members.indexOf(rank) + 1) % members.length]!;
        const ends = `${members.indexOf(rank)}-${members.indexOf(peer)}`;
        links.push({
          group: hashOf(name),
          call,
          ends,
          type: Math.floor(peer / cards) === Math.floor(rank / cards) ? 'HCCS' : 'RDMA',
          mb,
          ms,
        });
      }
    }
    const own = `rank_${rank}_ascend_pt/`;
    files[`${own}profiler_info_${rank}.json`] = JSON.stringify({ rank_id: rank });
    files[`${own}profiler_metadata.json`] = metadata(groups, rank, ranks.length);
    files[`${own}ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(300, 60, 20);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication.json`] = communication(calls);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication_matrix.json`] = matrix(links);
  }
  return files;
}

/** Two servers of four cards; tensor parallelism over two ranks. */
const ACROSS: Layout = {
  cards: 4,
  tensor: [0, 1, 2, 3].map((r) => [r, r + 4]),
  data: [
    [0, 1, 2, 3],
    [4, 5, 6, 7],
  ],
};
const WITHIN: Layout = {
  cards: 4,
  tensor: [0, 2, 4, 6].map((r) => [r, r + 1]),
  data: [
    [0, 2, 4, 6],
    [1, 3, 5, 7],
  ],
};

describe('quiet', () => {
  test('without named groups nothing is judged', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4 }), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('data parallelism across servers is as it should be', async () => {
    expect(checkOf(await reportFrom(job(WITHIN), rule), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/stay inside/),
    });
  });

  test('a group larger than a server has to span several', async () => {
    const large: Layout = {
      cards: 2,
      tensor: [[0, 1, 2, 3]],
      data: [
        [0, 1],
        [2, 3],
      ],
    };
    expect(checkOf(await reportFrom(job(large), rule), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/do not fit/),
    });
  });

  test('changing places with a group that moves more gains nothing', async () => {
    expect(checkOf(await reportFrom(job({ ...ACROSS, tensorMb: 0.2, dataMb: 200 }), rule), RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/would gain/),
    });
  });
});

describe('loud', () => {
  test('tensor parallelism across servers beside data parallelism inside: both priced, as a bound', async () => {
    const finding = findingOf(await reportFrom(job(ACROSS), rule), RULE)!;
    expect(finding.title).toMatch(/`tp` group of ranks \d, \d spans servers/);
    expect(finding.ranks).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    // 160 MB at 5 instead of 18 MB per ms, and 20 MB the other way.
    const gain = 160 / BETWEEN - 160 / INSIDE - (20 / BETWEEN - 20 / INSIDE);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null, ceiling: expect.closeTo(gain, 1) } });
    expect(finding.evidence[1]!.text).toMatch(/0–3 \| 4–7/);
  });

  test('with half of the ranks it is a bound and says so', async () => {
    const files = Object.fromEntries(Object.entries(job(ACROSS)).filter(([path]) => /rank_[0145]_/.test(path)));
    const finding = findingOf(await reportFrom(files, rule), RULE)!;
    expect(finding.caveats.join()).toMatch(/4 of 8 ranks are here/);
  });
});

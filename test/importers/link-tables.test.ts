import { describe, expect, test } from 'vitest';
import { bySource } from '../../src/importers/cluster/split.ts';
import { linkSummary, readCommunication, readMatrix, readPackets } from '../../src/importers/read-communication.ts';
import { TRANSPORTS } from '../../src/model/capture.ts';
import { communication } from '../support/communication-files.ts';
import { ORIGIN } from '../support/profile-text.ts';

const link = (type: string, mb: number, ms: number, call?: string): object => ({
  'Transport Type': type,
  'Transit Size(MB)': mb,
  'Transit Time(ms)': ms,
  'Bandwidth(GB/s)': ms > 0 ? mb / ms : 0,
  ...(call === undefined ? {} : { 'Op Name': call }),
});

describe('communication_matrix.json', () => {
  const newer = {
    step13: {
      p2p: {},
      collective: {
        'reduce-top1@77': {
          '0-0': link('LOCAL', 622, 1.8, 'hcom_reduceScatter__077_4_1'),
          '0-1': link('HCCS', 440, 23.5, 'hcom_reduceScatter__077_5_1'),
        },
        'reduce-middle@77': { '0-1': link('HCCS', 311, 16.6, 'hcom_reduceScatter__077_4_1') },
        'reduce-bottom1@77': { '0-1': link('HCCS', 311, 16.6, 'hcom_reduceScatter__077_4_1') },
        'reduce-total@77': { '0-0': link('LOCAL', 1244, 3.6), '0-1': link('HCCS', 751, 40.1), '0-2': link('RDMA', 0, 0) },
      },
    },
  };

  test('sums and samples are told apart, operations by their calls, copies and unused links left out', () => {
    const table = readMatrix(newer, false);
    expect(table).toMatchObject({ global: false, group: ['77'], op: ['reduceScatter'] });
    expect([...table.bytes]).toEqual([751e6]);
    expect([...table.ms]).toEqual([40.1]);
    expect(table.sampleCall).toEqual(['hcom_reduceScatter__077_5_1', 'hcom_reduceScatter__077_4_1']);
    expect([...table.sampleMs]).toEqual([23.5, 16.6]);
  });

  test('the older form names every call and has no sums; its totals mix groups and are not read', () => {
    const older = {
      step2: {
        p2p: { 'hcom_send__822_0@13': { '0-8': link('RDMA', 21, 0.86) } },
        collective: {
          'hcom_allGather__483_3@93': { '0-1': link('HCCS', 20, 1.1) },
          'hcom_allGather__483_5@93': { '0-1': link('HCCS', 20, 1.2) },
          'Total Op Info': { '0-1': link('HCCS', 171, 9) },
        },
      },
    };
    const table = readMatrix(older, false);
    expect(table.op.map((op, i) => [op, table.source[i], table.target[i], TRANSPORTS[table.transport[i]!], table.bytes[i]])).toEqual([
      ['allGather', 0, 1, 'HCCS', 40e6],
      ['send', 0, 8, 'RDMA', 21e6],
    ]);
  });

  test('the matrix of a cluster, rank by rank, with ranks of the job at the ends', () => {
    const cluster = {
      p2p: {
        step2: {
          'hcom_send__822_0@13': { '0-0': link('LOCAL', 21, 0.02), '0-8': link('RDMA', 21, 0.86) },
          'Total Op Info': { '0-8': link('RDMA', 21, 0.86) },
        },
      },
      '(0, 1)': { step2: { 'hcom_broadcast__483_1@93': { '1-0': link('HCCS', 3, 0.2), '0-1': link('HCCS', 4, 0.3) } } },
    };
    const ranks = bySource(cluster);
    expect([...ranks.keys()]).toEqual([0, 1]);
    const own = readMatrix(ranks.get(0), true);
    expect(own.global).toBe(true);
    expect(own.op.map((op, i) => [op, own.source[i], own.target[i]])).toEqual([
      ['send', 0, 8],
      ['broadcast', 0, 1],
    ]);
  });

  test.each([null, 7, [], {}, { step1: null }, { step1: { collective: { 'a@b': { '0-1': null, __proto__: {}, '1-2-3': {} } } } }])(
    '%j holds no link',
    (json) => {
      expect(readMatrix(json, false).group).toEqual([]);
    },
  );

  test('numbers beyond any link are none', () => {
    const odd = {
      step1: {
        collective: { 'hcom_allReduce__1_1@9': { '0-1': link('HCCS', 1e300, 1), '0-2': link('HCCS', 20, -1), '0-3': link('SIO', 20, 1) } },
      },
    };
    const table = readMatrix(odd, false);
    expect([...table.target]).toEqual([3]);
  });

  test('a table of any size stays small', () => {
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`0-${i + 1}`, link('HCCS', 20, 1 + i / 1_000)]));
    const table = readMatrix({ step1: { collective: { 'hcom_allReduce__1_1@9': many } } }, false);
    expect(table.group).toHaveLength(1_024);
    expect(Math.min(...table.ms)).toBeGreaterThan(2.9);
  });
});

describe('communication.json', () => {
  test('inside and between servers apart; without RDMA there is none, which is no error', () => {
    const json = JSON.parse(
      communication([
        { name: 'hcom_allReduce__9_1_1', group: '9', at: 10, ms: 3, moved: { HCCS: { mb: 20, ms: 1.1 }, RDMA: { mb: 4, ms: 0.5 } } },
        { name: 'hcom_allReduce__9_2_1', group: '9', at: 20, ms: 3, moved: { HCCS: { mb: 20, ms: 1.1 } } },
      ]),
    );
    for (const op of Object.values(json.step5.collective) as Record<string, Record<string, unknown>>[]) {
      if (op['Communication Time Info']!['Start Timestamp(us)'] === ORIGIN + 20) delete op['Communication Bandwidth Info']!.RDMA;
    }
    const [both, inside] = readCommunication(json, ORIGIN);
    expect(both).toMatchObject({ sizeMb: 24, sdmaMs: 1.1, rdmaMs: 0.5, rdmaMb: 4 });
    expect(inside).toMatchObject({ sizeMb: 20, sdmaMs: 1.1, rdmaMs: Number.NaN, rdmaMb: Number.NaN });
  });

  test('packets are summed by transport and exact size, longest first', () => {
    const json = JSON.parse(
      communication([
        {
          name: 'hcom_allReduce__9_1_1',
          group: '9',
          at: 10,
          ms: 3,
          moved: { HCCS: { mb: 20, ms: 1.1, packets: { '1.937312': [2, 0.24], '2.064384': [12, 1.58] } } },
        },
        {
          name: 'hcom_allReduce__9_2_1',
          group: '9',
          at: 20,
          ms: 3,
          moved: { HCCS: { mb: 20, ms: 1.1, packets: { '1.937312': [2, 0.26] } } },
        },
      ]),
    );
    expect(readPackets(json)).toEqual([
      { transport: 'HCCS', bytes: 2_064_384, count: 12, ms: 1.58 },
      { transport: 'HCCS', bytes: 1_937_312, count: 4, ms: 0.5 },
    ]);
  });

  test('without either table nothing is known of links', () => {
    expect(linkSummary(null, [])).toBeNull();
  });
});

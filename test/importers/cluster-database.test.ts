/* cluster_analysis.db of msprof-analyze: the same ranks as the text form of the same job gives. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { findCaptures, readCluster } from '../../src/importers/index.ts';
import type { RankCapture } from '../../src/model/capture.ts';
import { Report } from '../../src/model/report.ts';
import { openSource } from '../../src/sources/index.ts';
import { STEP_HEADER } from '../support/profile-text.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-cluster-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

type Cell = string | number | null;

interface Tables {
  readonly [table: string]: { readonly columns: readonly string[]; readonly rows: readonly (readonly Cell[])[] };
}

async function database(path: string, tables: Tables): Promise<string> {
  await mkdir(dirname(join(dir, path)), { recursive: true });
  const db = new DatabaseSync(join(dir, path));
  for (const [name, { columns, rows }] of Object.entries(tables)) {
    db.exec(`CREATE TABLE "${name}" (${columns.map((c) => `"${c}"`).join(', ')})`);
    const insert = db.prepare(`INSERT INTO "${name}" VALUES (${columns.map(() => '?').join(', ')})`);
    for (const row of rows) insert.run(...row);
  }
  db.close();
  return join(dir, path);
}

async function text(files: Readonly<Record<string, string>>, root: string): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, root, path)), { recursive: true });
    await writeFile(join(dir, root, path), content);
  }
  return join(dir, root);
}

async function reportOf(path: string): Promise<Report> {
  const source = await openSource(path);
  try {
    const options = { lang: 'en', thresholds: {}, disabledRules: [], gate: null } as const;
    return Report.parse(await analyse({ sources: [source], options, source: null }));
  } finally {
    await source.close();
  }
}

async function capturesOf(path: string): Promise<RankCapture[]> {
  const source = await openSource(path);
  try {
    const { clusters } = await findCaptures(source.entries);
    return (await Promise.all(clusters.map((c) => readCluster(c)))).flatMap((c) => c.captures);
  } finally {
    await source.close();
  }
}

/** What must not depend on the form. */
const content = (captures: readonly RankCapture[]): unknown =>
  captures.map(({ rank, originUs, stepTrace, collectives, groups, links }) => {
    return { rank, originUs, stepTrace: stepTrace.map((row) => ({ ...row, line: 0 })), collectives, groups, links };
  });

const STEP_COLUMNS = [
  ...['step', 'type', 'index', 'computing', 'communication_not_overlapped', 'overlapped', 'communication', 'free', 'stage', 'bubble'],
  ...['communication_not_overlapped_and_exclude_receive', 'preparing', 'dp_index', 'pp_index', 'tp_index'],
];
const TIME_COLUMNS = [
  ...['step', 'rank_id', 'hccl_op_name', 'group_name', 'start_timestamp', 'elapsed_time', 'transit_time', 'wait_time'],
  ...['synchronization_time', 'idle_time', 'synchronization_time_ratio', 'wait_time_ratio'],
];
const BAND_COLUMNS = [
  ...['step', 'rank_id', 'hccl_op_name', 'group_name', 'band_type', 'transit_size', 'transit_time', 'bandwidth', 'large_packet_ratio'],
  ...['package_size', 'count', 'total_duration'],
];

const H = '111222333444555986';
const OP = 'hcom_allReduce__986_0_1';
const START = [1_700_000_000_000_000, 1_700_000_000_040_000];

/** Two ranks, one step, one all-reduce to which rank 1 comes 40 ms late. */
const TEXT = {
  'cluster_step_trace_time.csv': `Step,Type,Index,${STEP_HEADER.slice(5)}
3,rank,0,80000,60000,5000,65000,20000,160000,0,60000,1000
3,rank,1,81000,20000,5000,25000,59000,160000,0,20000,1500
3,stage,"(0, 1)",81000,60000,5000,65000,59000,160000,0,60000,1500
`,
  'cluster_communication.json': JSON.stringify({
    '(0, 1)': {
      step3: {
        [`${OP}@${H}`]: Object.fromEntries(
          [0, 1].map((rank) => [
            rank,
            {
              'Communication Time Info': {
                'Start Timestamp(us)': START[rank],
                'Elapse Time(ms)': rank === 0 ? 65 : 25,
                'Transit Time(ms)': 20,
                'Wait Time(ms)': rank === 0 ? 40 : 1,
                'Synchronization Time(ms)': rank === 0 ? 40 : 1,
                'Idle Time(ms)': 4,
                'Wait Time Ratio': 0.6,
              },
              'Communication Bandwidth Info': {
                SDMA: { 'Transit Size(MB)': 100, 'Transit Time(ms)': 5, 'Bandwidth(GB/s)': 20, 'Size Distribution': {} },
                HCCS: {
                  'Transit Size(MB)': 100,
                  'Transit Time(ms)': 5,
                  'Bandwidth(GB/s)': 20,
                  'Size Distribution': { '33.5': [2, 3], '11': [3, 2] },
                },
              },
            },
          ]),
        ),
      },
    },
  }),
  'cluster_communication_matrix.json': JSON.stringify({
    '(0, 1)': {
      step3: {
        [`allreduce-top1@${H}`]: {
          '0-1': { 'Transport Type': 'HCCS', 'Transit Size(MB)': 50, 'Transit Time(ms)': 2.5, 'Bandwidth(GB/s)': 20, 'Op Name': OP },
        },
      },
    },
  }),
  'communication_group.json': JSON.stringify({
    collective: [[0, 1]],
    p2p: [],
    comm_group_parallel_info: [{ type: 'collective', group_name: H, group_id: 'a%b_0', pg_name: 'dp', rank_set: [0, 1] }],
  }),
};

const TABLES: Tables = {
  ClusterStepTraceTime: {
    columns: STEP_COLUMNS,
    rows: [
      ['3', 'rank', '0', 80_000, 60_000, 5_000, 65_000, 20_000, 160_000, 0, 60_000, 1_000, 0, 0, 0],
      ['3', 'rank', '1', 81_000, 20_000, 5_000, 25_000, 59_000, 160_000, 0, 20_000, 1_500, 1, 0, 0],
      ['3', 'stage', '(0,1)', 81_000, 60_000, 5_000, 65_000, 59_000, 160_000, 0, 60_000, 1_500, 0, 0, 0],
    ],
  },
  ClusterCommunicationTime: {
    columns: TIME_COLUMNS,
    rows: [
      ['step3', 0, OP, H, START[0]!, 65, 20, 40, 40, 4, 0.6, 0.6],
      ['step3', 1, OP, H, START[1]!, 25, 20, 1, 1, 4, 0.6, 0.6],
      ['step3', 1, 'Total Op Info', H, 0, 25, 20, 1, 1, 4, 0.6, 0.6],
    ],
  },
  ClusterCommunicationBandwidth: {
    columns: BAND_COLUMNS,
    rows: [0, 1].flatMap((rank) => [
      ['step3', rank, OP, H, 'SDMA', 100, 5, 20, 0.5, null, null, null],
      ['step3', rank, OP, H, 'HCCS', 100, 5, 20, 0.5, '33.5', 2, 3],
      ['step3', rank, OP, H, 'HCCS', 100, 5, 20, 0.5, 11, 3, 2],
      ['step3', rank, 'Total Op Info', H, 'HCCS', 999, 5, 20, 0.5, 11, 3, 2],
    ]),
  },
  ClusterCommunicationMatrix: {
    columns: [
      'step',
      'hccl_op_name',
      'group_name',
      'src_rank',
      'dst_rank',
      'transit_size',
      'transit_time',
      'bandwidth',
      'transport_type',
      'op_name',
    ],
    rows: [
      ['step3', 'allreduce-top1', H, '0', '1', 50, 2.5, 20, 'HCCS', OP],
      ['step3', 'Total Op Info', H, '0', '1', 50, 2.5, 20, 'HCCS', OP],
    ],
  },
  CommunicationGroupMapping: {
    columns: ['type', 'rank_set', 'group_name', 'group_id', 'pg_name'],
    rows: [['collective', '(0,1)', H, 'a%b_0', 'dp']],
  },
  HostInfo: { columns: ['hostUid', 'hostName'], rows: [['1', 'node']] },
  RankDeviceMap: { columns: ['rankId', 'deviceId', 'hostUid', 'profilePath'], rows: [[0, 0, '1', '/x']] },
  ClusterBaseInfo: { columns: ['key', 'value'], rows: [['distributed_args', '{}']] },
};

/** The same under the names of older versions. */
const OLDER: Tables = {
  ClusterStepTraceTime: TABLES.ClusterStepTraceTime!,
  ClusterCommAnalyzerTime: {
    columns: TIME_COLUMNS.map((c) => (c === 'elapsed_time' ? 'elapse_time' : c)),
    rows: TABLES.ClusterCommunicationTime!.rows.map(([, ...rest]) => ['3', ...rest]),
  },
  ClusterCommAnalyzerBandwidth: {
    columns: BAND_COLUMNS.map((c) => (c === 'band_type' ? 'transport_type' : c)),
    rows: TABLES.ClusterCommunicationBandwidth!.rows.map(([, ...rest]) => ['3', ...rest]),
  },
  ClusterCommAnalyzerMatrix: TABLES.ClusterCommunicationMatrix!,
  CommunicationGroup: TABLES.CommunicationGroupMapping!,
};

describe('the same job in both forms', () => {
  test.each([
    ['current names', TABLES],
    ['older names', OLDER],
  ])('%s: the same ranks, steps, calls, links and groups', async (_, tables) => {
    const wanted = await capturesOf(await text(TEXT, 'text'));
    expect(wanted.map((c) => [c.rank, c.stepTrace.length, c.collectives.length])).toEqual([
      [0, 1, 1],
      [1, 1, 1],
    ]);
    await database('db/cluster_analysis_output/cluster_analysis.db', tables);
    expect(content(await capturesOf(join(dir, 'db')))).toEqual(content(wanted));
  });

  test('and the same report, each with its own files as evidence', async () => {
    const wanted = await reportOf(await text(TEXT, 'text'));
    await database('db/cluster_analysis.db', TABLES);
    const found = await reportOf(join(dir, 'db'));
    const bare = (report: Report): unknown =>
      JSON.parse(
        JSON.stringify({ ...report, inputs: [] }).replaceAll(/cluster_(step_trace_time\.csv|communication\.json|analysis\.db)/g, 'x'),
      );
    expect(bare(found)).toEqual(bare(wanted));
    expect(found.inputs).toMatchObject([{ path: 'cluster_analysis.db', status: 'used', note: '' }]);
    expect(found.breakdown.map((r) => [r.rank, r.step, r.freeMs, r.source])).toEqual([
      [0, 3, 20, 'cluster_analysis.db'],
      [1, 3, 59, 'cluster_analysis.db'],
    ]);
  });

  test(`a real cluster, put into a database${WHY_SKIPPED}`, async (context) => {
    if (!HAVE_PROFILES) return context.skip();
    const path = join(PATHS.gpt0, '../cluster_analysis_output');
    const wanted = await capturesOf(path);
    expect(wanted).toHaveLength(16);
    const ms = (value: number): number => value * 1000;
    const rows = wanted.flatMap((c) =>
      c.stepTrace.map((s): Cell[] => [
        ...[String(s.step), 'rank', String(c.rank)],
        ...[s.computing, s.exposed, s.overlapped, s.communication, s.free, s.stage, s.bubble].map(ms),
        ...[0, s.preparing === null ? null : ms(s.preparing), 0, 0, 0],
      ]),
    );
    await database('real/cluster_analysis.db', { ClusterStepTraceTime: { columns: STEP_COLUMNS, rows } });
    const found = await capturesOf(join(dir, 'real'));
    expect(found.map((c) => c.rank)).toEqual(wanted.map((c) => c.rank));
    for (const [i, capture] of found.entries()) {
      expect(capture.stepTrace[0]!.free).toBeCloseTo(wanted[i]!.stepTrace[0]!.free, 9);
      expect(capture.stepTrace[0]!.step).toBe(2);
    }
    // Ground truth of the profiles' index: rank 8 idles 77.320 ms and waits 178.320 ms for its stage.
    expect(found[8]!.stepTrace[0]!.free).toBeCloseTo(77.32, 2);
    expect(found[8]!.stepTrace[0]!.bubble).toBeCloseTo(178.32, 2);
    return undefined;
  });
});

describe('states of the database', () => {
  test('under another name in cluster_analysis_output; unknown tables are named', async () => {
    const more = { ...TABLES, MyOwnTable: { columns: ['a'], rows: [[1]] }, ClusterTimeSummary: { columns: ['rank'], rows: [[0]] } };
    await database('up/cluster_analysis_output/report_2026.db', more);
    const found = await reportOf(join(dir, 'up'));
    expect(found.job.ranks).toEqual([0, 1]);
    expect(found.inputs[0]).toMatchObject({ status: 'used', note: expect.stringMatching(/`MyOwnTable` are tables unknown/) });
    expect(found.inputs[0]!.note).not.toMatch(/ClusterTimeSummary/);
  });

  test('beside the text form the text counts; it only fills what that lacks', async () => {
    const path = await text(TEXT, 'both');
    await database('both/cluster_analysis.db', TABLES);
    const found = await reportOf(path);
    expect(found.inputs.find((i) => i.path.endsWith('.db'))).toMatchObject({ status: 'ignored', note: expect.stringMatching(/text form/) });
    await rm(join(path, 'cluster_communication.json'));
    const filled = await capturesOf(path);
    expect(filled[0]!.files).toMatchObject({ steps: 'cluster_step_trace_time.csv', collectives: 'cluster_analysis.db' });
    expect(filled[0]!.collectives).toHaveLength(1);
  });

  test('without step marks: steps without a number, never 0', async () => {
    const rows = TABLES.ClusterStepTraceTime!.rows.map(([, ...rest], i) => [i === 0 ? '' : null, ...rest]);
    await database('none/cluster_analysis.db', { ClusterStepTraceTime: { columns: STEP_COLUMNS, rows } });
    expect((await reportOf(join(dir, 'none'))).breakdown.map((r) => r.step)).toEqual([null, null]);
  });

  test('a negative time is missing, and said', async () => {
    const rows = TABLES.ClusterStepTraceTime!.rows.map((r, i) => (i === 0 ? r.map((v) => (v === 20_000 ? -17 : v)) : r));
    await database('negative/cluster_analysis.db', { ClusterStepTraceTime: { columns: STEP_COLUMNS, rows } });
    const found = await reportOf(join(dir, 'negative'));
    expect(found.breakdown[0]!.freeMs).toBeNull();
    expect(found.inputs[0]).toMatchObject({ status: 'partial', note: expect.stringMatching(/`free` is negative/) });
  });

  test.each([
    ['no table of ranks', { HostInfo: TABLES.HostInfo! }, /no table of ranks/],
    [
      'stages only',
      { ClusterStepTraceTime: { columns: STEP_COLUMNS, rows: [TABLES.ClusterStepTraceTime!.rows[2]!] } },
      /no table of ranks/,
    ],
    [
      'tables of other columns',
      { ClusterStepTraceTime: { columns: ['x'], rows: [[1]] }, ClusterCommunicationTime: { columns: ['y'], rows: [] } },
      /no table/,
    ],
  ])('%s: refused, and what to run', async (_, tables, hint) => {
    await database('odd/cluster_analysis.db', tables as Tables);
    const error = await reportOf(join(dir, 'odd')).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(AdviseError);
    expect((error as AdviseError).hint).toMatch(hint);
  });

  test('hostile: names, ranks and numbers of any kind; views are never opened', async () => {
    const path = await database('evil/cluster_analysis.db', {
      ...TABLES,
      ClusterCommunicationTime: {
        columns: TIME_COLUMNS,
        rows: [
          ['__proto__', 0, '__proto__', '__proto__', 1e300, -1, 'x', null, null, null, null, null],
          ['step3', 'many', OP, H, START[0]!, 65, 20, 40, 40, 4, 0, 0],
          ['step3', 1e12, OP, H, START[0]!, 65, 20, 40, 40, 4, 0, 0],
          ['step3', 0, 'a'.repeat(5_000), H, START[0]!, 65, 20, 40, 40, 4, 0, 0],
        ],
      },
    });
    const db = new DatabaseSync(path);
    db.exec('DROP TABLE HostInfo; CREATE VIEW HostInfo AS SELECT load_extension(1)');
    db.close();
    const found = await reportOf(dirname(path));
    expect(found.job.ranks).toEqual([0, 1]);
    expect(found.checked.filter((c) => c.outcome === 'error')).toEqual([]);
    await writeFile(join(dir, 'evil', 'cluster_analysis.db'), 'SQLite format 3\0 but not really');
    await expect(reportOf(join(dir, 'evil'))).rejects.toThrow(AdviseError);
  });
});

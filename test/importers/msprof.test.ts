/* Output of msprof itself: several devices in one PROF folder, ranks that nobody set, exports as databases. */

import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { analyse } from '../../src/engine/analyse.ts';
import { findCaptures, readRank } from '../../src/importers/index.ts';
import type { RankCapture } from '../../src/model/capture.ts';
import { Report } from '../../src/model/report.ts';
import { openSource } from '../../src/sources/index.ts';
import { ts } from '../support/profile-text.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-msprof-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

type Files = Readonly<Record<string, string>>;

async function write(files: Files, root = 'up'): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, root, path)), { recursive: true });
    await writeFile(join(dir, root, path), content);
  }
  return join(dir, root);
}

async function capturesOf(path: string): Promise<RankCapture[]> {
  const source = await openSource(path);
  try {
    const { folders } = await findCaptures(source.entries);
    return await Promise.all(folders.map((f) => readRank(f, () => {})));
  } finally {
    await source.close();
  }
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

const PROF = 'PROF_000001_20260101120000000_ABCDEFGH';
const OUT = `${PROF}/mindstudio_profiler_output`;
const info = (rank: number, device: number): string => JSON.stringify({ rank_id: rank, DeviceInfo: [{ id: device }] });

/** One kernel of 100 µs on device 4, three of 200 µs on device 5, interleaved. */
const SUMMARY = `Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim
5,0,1,3,Mul_1,Mul,static,AI_VECTOR_CORE,${ts(1_000)}\t,200,0,8
4,0,1,3,MatMul_1,MatMulV2,static,AI_CORE,${ts(1_100)}\t,100,0,8
5,0,2,3,Mul_2,Mul,static,AI_VECTOR_CORE,${ts(1_400)}\t,200,0,8
5,0,3,3,Mul_3,Mul,static,AI_VECTOR_CORE,${ts(1_800)}\t,200,0,8
`;
const STATISTIC = `Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)
4,MatMulV2,AI_CORE,1,100,100,100,100,100
5,Mul,AI_VECTOR_CORE,3,600,200,200,200,100
`;

/** The timeline of the same: a hardware and an overlap lane for each device, one CANN lane for the process. */
function timeline(): string {
  const meta = (pid: number, name: string, labels: string): object[] => [
    { ph: 'M', name: 'process_name', pid, tid: 0, args: { name } },
    { ph: 'M', name: 'process_labels', pid, tid: 0, args: { labels } },
  ];
  const x = (pid: number, name: string, at: number, dur: number): object => {
    return { ph: 'X', name, pid, tid: 3, ts: ts(at), dur, args: { 'Task Type': 'AI_CORE' } };
  };
  return JSON.stringify([
    ...meta(1, 'CANN', 'CPU'),
    ...meta(14, 'Ascend Hardware', 'NPU 4'),
    ...meta(15, 'Ascend Hardware', 'NPU 5'),
    ...meta(24, 'Overlap Analysis', 'NPU 4'),
    ...meta(25, 'Overlap Analysis', 'NPU 5'),
    { ph: 'X', name: 'AscendCL@aclrtSynchronizeStream', pid: 1, tid: 9, ts: ts(900), dur: 50, args: {} },
    x(15, 'Mul_1', 1_000, 200),
    x(14, 'MatMul_1', 1_100, 100),
    x(15, 'Mul_2', 1_400, 200),
    x(15, 'Mul_3', 1_800, 200),
    x(24, 'Computing', 1_100, 100),
    x(25, 'Computing', 1_000, 200),
    x(25, 'Computing', 1_400, 200),
    x(25, 'Computing', 1_800, 200),
    x(25, 'Free', 1_200, 200),
  ]);
}

describe('several devices in one PROF folder', () => {
  const tables = { [`${OUT}/op_summary_20260101120000.csv`]: SUMMARY, [`${OUT}/op_statistic_20260101120000.csv`]: STATISTIC };
  const devices = { [`${PROF}/device_4/info.json.4`]: info(-1, 4), [`${PROF}/device_5/info.json.5`]: info(7, 5) };
  const kernels = (c: RankCapture): number[] => [...c.kernels!.duration];

  test('each is a rank with its own rows; −1 is an unknown rank, not a number', async () => {
    const found = await capturesOf(await write({ ...tables, ...devices, [`${OUT}/msprof_20260101120000.json`]: timeline() }));
    expect(found.map((c) => [c.folder, c.rank, c.device])).toEqual([
      [`${PROF}/device_4`, null, 4],
      [`${PROF}/device_5`, 7, 5],
    ]);
    expect(found.map(kernels)).toEqual([[100_000], [200_000, 200_000, 200_000]]);
    expect(found.map((c) => c.trace!.device.start.length)).toEqual([1, 3]);
    expect(found.map((c) => c.trace!.lanes!.computing.duration.length)).toEqual([1, 3]);
    expect(found.map((c) => c.trace!.lanes!.free.duration.length)).toEqual([0, 1]);
    // The host is shared: both devices wait for the same call.
    expect(found.map((c) => c.trace!.cann.start.length)).toEqual([1, 1]);
    expect(found.map((c) => c.operators)).toMatchObject([[{ type: 'MatMulV2', count: 1 }], [{ type: 'Mul', count: 3 }]]);
  });

  test('told by the tables alone when the raw folders are not here; by the lanes when there is no table', async () => {
    const byTable = await capturesOf(await write(tables));
    expect(byTable.map((c) => [c.rank, c.device, kernels(c).length])).toEqual([
      [null, 4, 1],
      [null, 5, 3],
    ]);
    const byLane = await capturesOf(await write({ [`${OUT}/msprof_20260101120000.json`]: timeline() }, 'lanes'));
    expect(byLane.map((c) => [c.device, c.trace!.device.start.length])).toEqual([
      [4, 1],
      [5, 3],
    ]);
  });

  test('a report with two ranks that nobody numbered, none of them 0', async () => {
    const found = await reportOf(await write(tables));
    expect(found.job).toMatchObject({ ranks: [], unrankedFolders: 2 });
    expect(found.breakdown.map((r) => [r.rank, r.computingMs])).toEqual([
      [null, 0.1],
      [null, 0.6],
    ]);
  });

  test('one device: one rank, whatever the tables say', async () => {
    const one = {
      [`${OUT}/op_summary_20260101120000.csv`]: SUMMARY.replaceAll(/^5,/gm, '4,'),
      [`${PROF}/device_4/info.json.4`]: info(3, 4),
    };
    const found = await capturesOf(await write(one));
    expect(found.map((c) => [c.folder, c.rank, kernels(c).length])).toEqual([[PROF, 3, 4]]);
  });

  test('slices of a table are one table for each device', async () => {
    const [header, ...rows] = SUMMARY.trimEnd().split('\n');
    const slice = (from: number, to?: number): string => `${[header, ...rows.slice(from, to)].join('\n')}\n`;
    const found = await capturesOf(
      await write({
        ...devices,
        [`${OUT}/op_summary_slice_0_20260101120000.csv`]: slice(0, 2),
        [`${OUT}/op_summary_slice_1_20260101120000.csv`]: slice(2),
      }),
    );
    expect(found.map(kernels)).toEqual([[100_000], [200_000, 200_000, 200_000]]);
  });
});

describe('PROF folders of one job', () => {
  test('one folder per process, no rank set: as many ranks as folders, of one capture', async () => {
    const folder = (n: number): Files => {
      const name = `PROF_00000${n}_20260101120000000_ABCDEFGH`;
      return {
        [`${name}/mindstudio_profiler_output/op_summary_2026010112000${n}.csv`]: SUMMARY.replaceAll(/^5,/gm, '4,'),
        [`${name}/device_4/info.json.4`]: info(-1, 4),
      };
    };
    const found = await reportOf(await write({ ...folder(1), ...folder(2), ...folder(3) }));
    expect(found.job.unrankedFolders).toBe(3);
    expect(found.breakdown).toHaveLength(3);
  });
});

describe('the export as a database', () => {
  const schema = `CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);
    CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER, blockDim INTEGER, mixBlockDim INTEGER, taskType INTEGER, opType INTEGER);
    CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);
    INSERT INTO STRING_IDS VALUES (1, 'MatMul_1'), (2, 'MatMulV2'), (3, 'AI_CORE');
    INSERT INTO RANK_DEVICE_MAP VALUES (-1, 4), (7, 5);
    INSERT INTO TASK VALUES (1700000000001000000, 1700000000001100000, 4, 1, 1, 1, 3, 0, 1, 1, 0);
    INSERT INTO TASK VALUES (1700000000001000000, 1700000000001200000, 5, 2, 2, 1, 3, 0, 1, 2, 0);
    INSERT INTO TASK VALUES (1700000000001300000, 1700000000001500000, 5, 3, 3, 1, 3, 0, 1, 3, 0);
    INSERT INTO COMPUTE_TASK_INFO VALUES (1, 1, 8, 0, 3, 2), (1, 2, 8, 0, 3, 2), (1, 3, 8, 0, 3, 2);`;
  const database = async (path: string): Promise<string> => {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    const db = new DatabaseSync(join(dir, path));
    db.exec(schema);
    db.close();
    return join(dir, 'up');
  };

  test('msprof_{time}.db without tables beside it: its devices are ranks', async () => {
    const found = await capturesOf(await database(`up/${PROF}/msprof_20260101120000.db`));
    expect(found.map((c) => [c.rank, c.device, [...c.kernels!.duration]])).toEqual([
      [null, 4, [100_000]],
      [7, 5, [200_000, 200_000]],
    ]);
    expect(found[0]!.inputs).toMatchObject([{ kind: 'database', path: `${PROF}/msprof_20260101120000.db` }]);
  });

  test('beside tables the tables count; of two databases the newer', async () => {
    const path = await database(`up/${PROF}/msprof_20260101120000.db`);
    await write({ [`${OUT}/op_summary_20260101120000.csv`]: SUMMARY });
    const found = await reportOf(path);
    expect(found.inputs.find((i) => i.path.endsWith('.db'))).toMatchObject({
      status: 'ignored',
      note: expect.stringMatching(/text export/),
    });
    await rm(join(path, OUT), { recursive: true });
    await database(`up/${PROF}/msprof_20260301120000.db`);
    const newer = await reportOf(path);
    expect(newer.inputs.find((i) => i.path.endsWith('20260101120000.db'))?.status).toBe('ignored');
    expect(newer.job).toMatchObject({ ranks: [7], unrankedFolders: 1 });
  });

  test(`a real one: eleven kernels of device 2${WHY_SKIPPED}`, async (context) => {
    if (!HAVE_PROFILES) return context.skip();
    await mkdir(join(dir, PROF));
    await copyFile(join(PATHS.gpt0, '../full_db/msprof_0.db'), join(dir, PROF, 'msprof_20231025.db'));
    const found = await capturesOf(dir);
    expect(found).toHaveLength(1);
    expect(found[0]!.rank).toBeNull();
    expect(found[0]!.kernels!.isCommunication.filter((c) => c === 0)).toHaveLength(11);
    return undefined;
  });
});

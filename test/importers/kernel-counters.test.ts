import { describe, expect, test } from 'vitest';
import { readCacheHits } from '../../src/importers/ascend-text/read-tables.ts';
import { readDeviceRank } from '../../src/importers/side-files.ts';
import { kernelTable } from '../support/kernel-table.ts';
import { chunksOf, ORIGIN, readOnly, traceEvents, ts } from '../support/profile-text.ts';

describe('the device, as raw captures record it', () => {
  test('cores and rated frequency, as numbers or texts; what is 0 or absent is not known', () => {
    const device = { id: 3, ai_core_num: 24, aiv_num: 48, aic_frequency: '1850', aiv_frequency: '1850' };
    expect(readDeviceRank({ rank_id: 5, DeviceInfo: [device] })).toEqual({
      rank: 5,
      device: 3,
      hardware: { cubeCores: 24, vectorCores: 48, ratedMhz: 1850 },
    });
    expect(readDeviceRank({ DeviceInfo: [{ aiv_num: 0, aic_frequency: 'fast' }] }).hardware).toEqual({
      cubeCores: null,
      vectorCores: null,
      ratedMhz: null,
    });
    for (const odd of [null, 7, [], { DeviceInfo: 'x' }])
      expect(readDeviceRank(odd).hardware).toEqual({ cubeCores: null, vectorCores: null, ratedMhz: null });
  });
});

describe('the frequency counter of the trace', () => {
  const counter = (us: number, mhz: unknown, name = 'AI Core Freq') => ({ name, ph: 'C', pid: 9, tid: 0, ts: ts(us), args: { MHz: mhz } });
  const read = async (...counters: object[]) => {
    const trace = JSON.stringify([...traceEvents(), ...counters]);
    const { trace: tables, originUs } = await readOnly({ 'rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': trace });
    expect(originUs).toBe(ORIGIN);
    return tables!.frequency;
  };

  test('changes in order of time; the same value again, other counters and values that are none are left out', async () => {
    const frequency = (await read(
      counter(10, 1800),
      counter(20, 1800),
      counter(40, 1500),
      counter(50, 900, 'HBM 0/Read'),
      counter(60, 'x'),
      counter(70, -5),
      counter(75, 1e12),
      counter(80, 1800.0),
    ))!;
    expect([...frequency.at]).toEqual([10_000, 40_000, 80_000]);
    expect([...frequency.mhz]).toEqual([1800, 1500, 1800]);
  });

  test('none at all is null', async () => {
    expect(await read(counter(10, 5, 'HBM 0/Read'))).toBeNull();
  });
});

describe('l2_cache.csv', () => {
  const read = (text: string) => readCacheHits(chunksOf(Buffer.from(text), 1 << 16));

  test('hit rates by stream and task; N/A is missing, a pair that comes twice says nothing', async () => {
    const hits = await read(
      'Device_id,Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n0,2,11,0.75,0.1,a\n0,2,12,N/A,0.2,b\n0,3,11,0,0.2,c\n0,2,13,0.5,0,d\n0,2,13,0.5,0,e\n',
    );
    expect([hits.rows, hits.known]).toEqual([5, 4]);
    expect([hits.of(2, 11), hits.of(3, 11)]).toEqual([0.75, 0]);
    for (const [stream, task] of [
      [2, 12],
      [2, 13],
      [2, 99],
      [null, 11],
      [2, null],
    ] as const)
      expect(hits.of(stream, task)).toBeNaN();
  });

  test('another table of that name holds no row', async () => {
    expect(await read('a,b\n1,2\n')).toMatchObject({ rows: 0, known: 0 });
  });

  test('rates reach the kernels in whatever order the files lie', async () => {
    const rows = [{ type: 'Add', us: 10, inShapes: '8', inTypes: 'FLOAT' }];
    const l2 = 'Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n2,1,0.25,0.1,a\n';
    const out = 'rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/';
    for (const files of [
      { [`${out}kernel_details.csv`]: kernelTable(rows), [`${out}l2_cache.csv`]: l2 },
      { [`${out}l2_cache.csv`]: l2, [`${out}kernel_details.csv`]: kernelTable(rows) },
    ]) {
      const { kernels } = await readOnly(files);
      expect([...kernels!.groups.l2Hit]).toEqual([0.25]);
    }
  });
});

/* Memory tables: units, missing cells, unsorted rows, bounds. Figures of the real captures are those of the files themselves. */
import { describe, expect, test } from 'vitest';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { createMemoryRecorder } from '../../src/importers/memory-recorder.ts';
import { readOnly, trace, ts } from '../support/profile-text.ts';
import { captures, HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';

const OUT = 'r_ascend_pt/ASCEND_PROFILER_OUTPUT';
const MIB = 1 << 20;
const RECORD = 'Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type';
const BLOCKS =
  'Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),Active Duration(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),Allocation Total Active(MB),Release Total Allocated(MB),Release Total Reserved(MB),Release Total Active(MB),Stream Ptr,Device Type';

const record = (component: string, us: number, allocated: number | '', reserved: number, active: number | '' = allocated): string =>
  `${component},${ts(us)}\t,${allocated},${reserved},${active},1,NPU:0`;

describe('text', () => {
  test('MB and KB become bytes once; per-step extremes by the host steps; the running sum is not added', async () => {
    const rows = [
      RECORD,
      record('APP', 100, '', 5000),
      record('PTA', 500, 1000, 2000),
      record('PTA+GE', 500, 1001, 2070),
      record('PTA', 9_000, 1500, 2000),
      record('PTA', 12_000, 1010, 2200),
      record('GE', 12_000, 1, 70, ''),
      record('PTA', 13_000, 1800, 2200),
    ];
    const blocks = [
      BLOCKS,
      `aten::mm,1024,${ts(600)}\t,,,,,1100,2000,1100,,,,1,NPU:0`,
      `aten::mm,2048.5,${ts(12_500)}\t,${ts(12_900)}\t,${ts(12_900)}\t,400,400,1800,2200,1800,1500,2200,1500,1,NPU:0`,
      ',-64,,,,,,,,,,,,1,NPU:0',
    ];
    const capture = await readOnly({
      [`${OUT}/trace_view.json`]: trace({ steps: 2 }),
      [`${OUT}/memory_record.csv`]: `${rows.join('\r\n')}\r\n`,
      [`${OUT}/operator_memory.csv`]: `${blocks.join('\n')}\n`,
      [`${OUT}/npu_module_mem.csv`]: `Device_id,Component,Timestamp(us),Total Reserved(MB),Device\n0,HCCL,${ts(10)},404.0625,NPU:0\n0,SLOG,${ts(10)},0.0,NPU:0\n0,BAD,${ts(10)},-1,NPU:0\n`,
    });
    expect(capture.inputs.filter((i) => i.kind === 'memory').map((i) => i.status)).toEqual(['used', 'used', 'used']);
    const facts = rankFacts(capture);
    const memory = facts.memory!;
    expect(facts.capabilities).toContain('memory');
    expect(memory.components.map((c) => c.component).sort()).toEqual(['APP', 'GE', 'PTA', 'PTA+GE']);
    expect(memory.components.find((c) => c.component === 'PTA')).toMatchObject({
      peakAllocated: 1800 * MIB,
      peakReserved: 2200 * MIB,
    });
    expect(memory.components.find((c) => c.component === 'APP')).toMatchObject({ peakAllocated: Number.NaN, peakReserved: 5000 * MIB });
    expect(memory.steps).toMatchObject([
      { floor: 1000 * MIB, peak: 1500 * MIB, grows: 0 },
      { floor: 1010 * MIB, peak: 1800 * MIB, grows: 1, shrinks: 0, splintered: 0 },
    ]);
    expect(memory.blocks.map((b) => b.bytes)).toEqual([2048.5 * 1024, MIB]);
    expect(memory.peakBlock).toMatchObject({ name: 'aten::mm', step: 1 });
    expect(memory.held).toMatchObject([{ name: 'aten::mm', bytes: [MIB, 0], count: [1, 0] }]);
    expect(memory.modules).toEqual([{ name: 'HCCL', peak: 404.0625 * MIB }]);
  });

  test('a spreadsheet that rounded the times still tells the peaks', async () => {
    const rows = [RECORD, 'PTA,1.69512E+15,100,200,100,1,NPU:1', 'PTA,1.69512E+15,150,200,150,1,NPU:1'];
    const facts = rankFacts(await readOnly({ [`${OUT}/trace_view.json`]: trace(), [`${OUT}/memory_record.csv`]: rows.join('\n') }));
    expect(facts.memory!.components[0]).toMatchObject({ peakAllocated: 150 * MIB, peakReserved: 200 * MIB });
  });

  test('without memory files there are no facts, and a file of headers is refused', async () => {
    const none = await readOnly({ [`${OUT}/trace_view.json`]: trace() });
    expect(rankFacts(none).memory).toBeNull();
    const empty = await readOnly({ [`${OUT}/trace_view.json`]: trace(), [`${OUT}/memory_record.csv`]: `${RECORD}\n` });
    expect(empty.inputs.find((i) => i.kind === 'memory')).toMatchObject({ status: 'refused' });
    expect(rankFacts(empty).capabilities).not.toContain('memory');
  });
});

describe('bounds', () => {
  const row = { component: 'PTA', device: 0, active: Number.NaN };
  test('200,000 rows are 512 points that keep the extremes; order does not matter', () => {
    const recorder = createMemoryRecorder([{ id: 1, start: 0, duration: 1e9, tid: 1 }]);
    const n = 200_000;
    for (let i = 0; i < n; i++) {
      const k = (i * 7919) % n;
      recorder.record({ ...row, at: k * 5_000, allocated: k === 4711 ? 9e9 : 1e9 + (k % 100), reserved: 1e10 });
      recorder.block(`op${i % 5_000}`, 1000 + i, k * 5_000, Number.NaN, 0);
    }
    const tables = recorder.tables()!;
    const { curve, peak, floor } = tables.series[0]!;
    expect(curve.start.length).toBeLessThanOrEqual(512);
    expect(curve.start.length).toBeGreaterThan(200);
    expect(Math.max(...curve.allocatedMax)).toBe(9e9);
    expect([...curve.start]).toEqual([...curve.start].sort((a, b) => a - b));
    expect([peak[0], floor[0]]).toEqual([9e9, 1e9]);
    expect(tables.blocks).toHaveLength(64);
    expect(tables.blocks[0]!.bytes).toBe(1000 + n - 1);
    expect(tables.held).toHaveLength(32);
  });

  test('sizes that no card has are missing', () => {
    const recorder = createMemoryRecorder([]);
    recorder.record({ ...row, at: 1, allocated: -5, reserved: 2 ** 60 });
    expect(recorder.tables()).toBeNull();
  });

  test('memory taken although enough was unused is told from ordinary growth and from small blocks', () => {
    const recorder = createMemoryRecorder([{ id: 1, start: 0, duration: 1e6, tid: 1 }]);
    const at = (n: number, allocated: number, reserved: number): void =>
      recorder.record({ ...row, at: n, allocated: allocated * MIB, reserved: reserved * MIB });
    at(1, 100, 120);
    at(2, 150, 180); // 20 were unused, 50 were needed
    at(3, 100, 180);
    at(4, 150, 240); // 80 were unused, 50 were needed
    at(5, 150.25, 242); // a small block: its own pool
    at(6, 150.25, 200);
    const [series] = recorder.tables()!.series;
    expect(series).toMatchObject({ growths: [{ at: 4, step: 0, needed: 50 * MIB, unused: 80 * MIB, taken: 60 * MIB }] });
    expect([series!.grows[0], series!.splintered[0], series!.shrinks[0]]).toEqual([3, 1, 1]);
  });
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  const peaks = async (path: string): Promise<Record<string, number>> => {
    const [first] = await captures(path);
    const { components } = rankFacts(first!).memory!;
    return Object.fromEntries(components.map((c) => [c.component, Math.round(c.peakReserved / MIB)]));
  };

  test('text/level1 and db/level1: the same script, the same sizes', async () => {
    expect(await peaks(PATHS.level1)).toEqual({ APP: 2114, PTA: 1452, 'PTA+GE': 1527, GE: 75 });
    expect(await peaks(PATHS.level1.replace('/text/', '/db/'))).toEqual({ APP: 2114, PTA: 1452, 'PTA+GE': 1527, GE: 75, DEVICE: 2354 });
  });

  test('st/level2: 9,309 rows of the allocator, no step marks', async () => {
    const [first] = await captures(PATHS.st);
    expect(first!.memory!.series.find((s) => s.component === 'PTA')!.rows).toBe(9_309);
    const { memory } = rankFacts(first!);
    expect(memory!.steps).toEqual([]);
    expect(memory!.curve.start.length).toBeLessThanOrEqual(512);
    expect(Math.round(memory!.components.find((c) => c.component === 'PTA')!.peakAllocated / MIB)).toBe(10_283);
    expect(memory!.blocks[0]).toMatchObject({ name: 'aten::embedding_dense_backward', bytes: 640_564 * 1024 });
  });
});

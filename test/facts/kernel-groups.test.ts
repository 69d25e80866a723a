import { describe, expect, test } from 'vitest';
import { createInterner } from '../../src/base/interner.ts';
import { createKernelGroups, pipeFigure } from '../../src/importers/kernel-groups.ts';
import { NO_GROUP, PIPES } from '../../src/model/capture.ts';
import { UNGROUPED } from '../../src/model/facts.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { cube, factsOfTables, filler, type KernelRow, kernelTable, vector } from '../support/kernel-table.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { factsOf, simulated } from '../support/simulated.ts';

const add = (us: number, more: Partial<KernelRow> = {}): KernelRow => ({
  type: 'Add',
  us,
  inShapes: '8192,1024;8192,1024',
  inTypes: 'DT_BF16;DT_BF16',
  outShapes: '8192,1024',
  outTypes: 'DT_BF16',
  ...more,
});

describe('columns of any age', () => {
  test.each([
    ['aic_mac_ratio', 'mac', 0, false],
    ['aiv_vec_ratio', 'vec', 1, false],
    ['mac_ratio', 'mac', 0, false],
    ['ai*_mte2_ratio', 'mte2', 0, false],
    ['aiv_mte3_ratio', 'mte3', 1, false],
    ['AIC_FIXPIPE_RATIO', 'fixpipe', 0, false],
    ['aic_mac_fp16_ratio', 'mac', 0, true],
    ['aiv_vec_misc_ratio', 'vec', 1, true],
  ] as const)('%s', (name, pipe, side, part) => {
    expect(pipeFigure(name)).toEqual({ figure: side * PIPES.length + PIPES.indexOf(pipe), part });
  });

  test.each(['aic_mac_time(us)', 'aic_icache_miss_rate', 'cube_utilization(%)', 'aic_total_cycles', 'ratio', 'mac'])(
    '%s is none',
    (name) => {
      expect(pipeFigure(name)).toBeNull();
    },
  );

  test('the number of blocks is read under its old and its new name; 0 is not recorded', async () => {
    for (const column of ['Block Dim', 'Block Num'] as const) {
      const facts = await factsOfTables({ 'kernel_details.csv': kernelTable([add(10, { blocks: 40 }), add(30, { blocks: 20 })], column) });
      // by time: (40 · 10 + 20 · 30) / 40
      expect(facts.kernels!.groups[0]!.blocks).toBeCloseTo(25, 6);
    }
    const none = await factsOfTables({ 'kernel_details.csv': kernelTable([add(10)]) });
    expect(none.kernels!.groups[0]!.blocks).toBeNaN();
  });

  test('shares of a pipe that are split by data type add up; what was not measured is missing, not 0', async () => {
    const more = { aic_mac_fp16_ratio: 0.6, aic_mac_int8_ratio: 0.2 };
    const facts = await factsOfTables({ 'kernel_details.csv': kernelTable([add(10, { core: 'AI_CORE', more })]) });
    const { pipes } = facts.kernels!.groups[0]!;
    expect(pipes.mac).toBeCloseTo(0.8, 9);
    for (const pipe of PIPES) if (pipe !== 'mac') expect(pipes[pipe], pipe).toBeNaN();
  });
});

describe('groups', () => {
  test('kernels that differ in any of type, core, shapes, types, formats are apart; communication is in none', async () => {
    const rows = [
      add(10),
      add(20),
      add(5, { outFormats: 'FRACTAL_NZ' }),
      add(5, { inTypes: 'FLOAT;FLOAT' }),
      add(5, { core: 'MIX_AIV' }),
      { us: 900, name: 'hcom_allReduce__1_1_1', type: 'hcom_allReduce_', core: 'HCCL' },
      { us: 800, name: 'hcom_allReduce__1_2_1', type: 'hcom_allReduce_', core: 'COMMUNICATION' },
    ];
    const { kernels, tape } = await factsOfTables({ 'kernel_details.csv': kernelTable(rows) });
    expect(kernels!.groups).toHaveLength(4);
    expect(kernels!.groups[0]).toMatchObject({ type: 'Add', count: 2, ns: 30_000, minNs: 10_000, maxNs: 20_000, line: 2 });
    expect(kernels!.groups[0]!.bytesIn).toBe(2 * 8192 * 1024 * 2);
    expect(kernels!.groups[0]!.bytesOut).toBe(8192 * 1024 * 2);
    expect([...kernels!.groups[0]!.stepNs]).toEqual([30_000]);
    expect(kernels!.ofNode).toHaveLength(tape!.start.length);
    expect([...kernels!.ofNode].filter((g) => g === 0)).toHaveLength(2);
    expect([...kernels!.ofNode].filter((g) => g === UNGROUPED)).toHaveLength(2);
    expect(kernels!.other).toEqual({ count: 0, ns: 0 });
  });

  test('a first kernel without counters decides nothing: those that have some do, by time', async () => {
    const missing = Object.fromEntries(Object.keys(cube(0, 0)).map((c) => [c, 'N/A']));
    const row = (us: number, more: Record<string, string | number>): KernelRow => ({ ...filler(us), more });
    const facts = await factsOfTables({
      'kernel_details.csv': kernelTable([row(500, missing), row(100, cube(0.2, 0.4)), row(300, cube(0.6, 0.8))]),
    });
    const { pipes } = facts.kernels!.groups[0]!;
    expect(pipes.mac).toBeCloseTo(0.5, 9);
    expect(pipes.mte2).toBeCloseTo(0.7, 9);
  });

  test('more groups than are kept become a rest; AI CPU kernels are kept however short', async () => {
    const rows = [
      ...Array.from({ length: 400 }, (_, i) => add(50 + i, { inShapes: `${i + 1},8`, outShapes: `${i + 1},8` })),
      add(1, { core: 'AI_CPU', type: 'Equal' }),
    ];
    const { kernels } = await factsOfTables({ 'kernel_details.csv': kernelTable(rows) });
    expect(kernels!.groups.length).toBeLessThanOrEqual(UNGROUPED);
    expect(kernels!.groups.some((g) => g.type === 'Equal')).toBe(true);
    const all = rows.reduce((sum, r) => sum + r.us * 1000, 0);
    expect(kernels!.groups.reduce((sum, g) => sum + g.ns, 0) + kernels!.other.ns).toBeCloseTo(all, 3);
    expect(kernels!.groups.reduce((sum, g) => sum + g.count, 0) + kernels!.other.count).toBe(401);
  });

  test('the importer keeps a limited number of groups, whatever comes', () => {
    const groups = createKernelGroups(3);
    const names = createInterner();
    const key = (i: number): Parameters<typeof groups.of>[0] => [names.text(`t${i}`), 0, 0, 0, 0, 0, 0, 0];
    expect([0, 1, 2, 3, 1].map((i) => groups.of(key(i)))).toEqual([0, 1, 2, NO_GROUP, 1]);
    groups.pipe(NO_GROUP, 0, 0.5, 10);
    groups.blocks(NO_GROUP, 4, 10);
    expect(groups.table()).toMatchObject({ size: 3, pipes: { mac: null } });
  });

  test('shares beyond 1 and negative ones of a broken file stay within bounds', () => {
    const groups = createKernelGroups();
    const group = groups.of([0, 0, 0, 0, 0, 0, 0, 0]);
    groups.pipe(group, 0, 17, 10);
    groups.pipe(group, 0, -3, 10);
    groups.pipe(group, 0, Number.NaN, 10);
    expect(groups.table().pipes.mac![0]).toBe(1);
  });
});

describe('odd and hostile tables', () => {
  test('an axis of -1, a word or 1e999 elements makes bytes unknown, not infinite', async () => {
    const shapes = ['-1,1024', 'x,3', '1e999,2', '99999999999,99999999999', '1.5,2'];
    const rows = shapes.map((shape, i) => add(100 + i, { inShapes: `${shape};${shape}`, outShapes: shape, more: vector(0.1, 0.9, 0.4) }));
    const facts = await factsOfTables({ 'kernel_details.csv': kernelTable(rows) });
    for (const group of facts.kernels!.groups) expect(group.bytesIn).toBeNaN();
    expect(facts.chains!.chains).toEqual([]);
    expect(factsFromJson(factsToJson([facts]))[0]!.kernels).toEqual(facts.kernels);
  });

  test('many kernels at one instant, and casts among kernels of a thousand tensors, take no long time', async () => {
    const at = { gap: 0, us: 0 };
    const many = Array.from({ length: 20_000 }, (_, i) => add(0, { ...at, inShapes: `${i % 50},4` }));
    const list = Array.from({ length: 500 }, () => '2,2').join(';');
    const types = Array.from({ length: 500 }, () => 'FLOAT').join(';');
    const wide = Array.from({ length: 200 }, () => add(60, { type: 'ForeachAddList', inShapes: list, inTypes: types }));
    const begin = performance.now();
    const facts = await factsOfTables({ 'kernel_details.csv': kernelTable([...many, ...wide]) });
    expect(facts.kernels!.groups.length).toBeGreaterThan(0);
    expect(performance.now() - begin).toBeLessThan(10_000);
  });
});

describe('both exports', () => {
  test('a database says of shapes, blocks and pipes what the tables say', async () => {
    const { mkdtemp, rm } = await import('node:fs/promises');
    const { tmpdir } = await import('node:os');
    const { join } = await import('node:path');
    const { simulate, writeProfiles } = await import('../../lab/simulator/index.ts');
    const job = simulate({ ranks: 1, layers: 2, steps: 2, faults: [{ kind: 'aicpu-op' }, { kind: 'frequency-drop', ranks: [0] }] });
    const seen: unknown[] = [];
    for (const kind of ['text', 'db'] as const) {
      const dir = await mkdtemp(join(tmpdir(), 'npu-advisor-groups-'));
      try {
        await writeProfiles(job, dir, { export: kind });
        const [facts] = await factsOf(dir);
        seen.push({
          groups: facts!.kernels!.groups.map((g) => ({
            type: g.type,
            core: g.core,
            shapes: g.inputShapes,
            types: g.outputTypes,
            count: g.count,
            blocks: g.blocks,
            ms: Math.round(g.ns / 1e4),
            pipes: Object.values(g.pipes).map((v) => (Number.isNaN(v) ? null : Math.round(v * 1e3))),
          })),
          mhz: Math.round(facts!.frequency!.meanMhz),
          sustained: facts!.frequency!.sustainedMhz,
        });
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    }
    expect(seen[1]).toEqual(seen[0]);
  });

  test('facts.json keeps all of it', async () => {
    const { ranks } = await simulated({ ranks: 2, layers: 2, faults: [{ kind: 'cast-pair' }, { kind: 'vector-chain' }] });
    const again = factsFromJson(factsToJson(ranks));
    for (const [i, rank] of again.entries()) {
      expect(rank.kernels).toEqual(ranks[i]!.kernels);
      expect(rank.casts).toEqual(ranks[i]!.casts);
      expect(rank.chains).toEqual(ranks[i]!.chains);
      expect(rank.frequency).toEqual(ranks[i]!.frequency);
    }
  });

  test('facts.json that points outside its groups is refused', async () => {
    const { ranks } = await simulated({ ranks: 2, layers: 2, faults: [{ kind: 'cast-pair' }, { kind: 'vector-chain' }] });
    const { kernels } = ranks[0]!;
    const broken = { ...kernels!, ofNode: Uint8Array.from(kernels!.ofNode, () => 200), groups: kernels!.groups.slice(0, 3) };
    expect(() => factsFromJson(factsToJson([{ ...ranks[0]!, kernels: broken }]))).toThrow(/damaged/);
  });
});

describe.skipIf(!HAVE_PROFILES)(`real sets${WHY_SKIPPED}`, () => {
  test('text/level1: 187 kernels, 8.9 ms, at 1,800 MHz', async () => {
    const [facts] = await factsOf(PATHS.level1);
    const { groups } = facts!.kernels!;
    expect(groups.reduce((sum, g) => sum + g.count, 0)).toBe(187);
    expect(groups.reduce((sum, g) => sum + g.ns, 0) / 1e6).toBeCloseTo(8.874, 2);
    // INDEX: three calls, 1,959.1 µs
    expect(groups[0]).toMatchObject({ type: 'ForeachAddList', core: 'AI_VECTOR_CORE', count: 3, blocks: 48 });
    expect(groups[0]!.ns / 1e3).toBeCloseTo(1959.1, 0);
    expect(groups[0]!.pipes.mte2).toBeCloseTo(0.98, 2);
    expect(facts!.frequency).toMatchObject({ meanMhz: 1800, sustainedMhz: 1800 });
  });

  test('st/level2: products and attention of rank 0 on 20 cube cores', async () => {
    const facts = (await factsOf(PATHS.st)).find((r) => r.rank === 0)!;
    const attention = facts.kernels!.groups[0]!;
    expect(attention).toMatchObject({ type: 'FlashAttentionScoreGrad', core: 'MIX_AIC', count: 28, blocks: 20 });
    expect(attention.ns / 1e3).toBeCloseTo(63_128.7, 0);
    expect(attention.pipes.fixpipe).toBeCloseTo(0.71, 2);
  });
});

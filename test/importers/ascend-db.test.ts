/*
 * The database export: figures of the real sets against an independent count (INDEX.md beside the profiles), the same job in both
 * exports, journal modes, and files that want to do harm.
 */
import { execFileSync } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, mkdtemp, open, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JobSpec, simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { createInterner } from '../../src/base/interner.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { readCapture } from '../../src/importers/ascend-db/read-capture.ts';
import { withDatabase } from '../../src/importers/database.ts';
import { findRankFolders, readRank } from '../../src/importers/index.ts';
import type { InputRecord, RankCapture } from '../../src/model/capture.ts';
import type { Report } from '../../src/model/report.ts';
import { openSource } from '../../src/sources/index.ts';
import { zipOf } from '../support/archives.ts';

const ROOT = fileURLToPath(new URL('../../../shared/profiles/msinsight/', import.meta.url));
const HAVE = await readdir(ROOT).then(
  () => true,
  () => false,
);
const WHY = HAVE ? '' : ' (skipped: ../shared/profiles is not on this machine)';

let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'npu-advisor-db-test-'));
});
afterAll(async () => {
  await rm(work, { recursive: true, force: true });
});
let count = 0;
const fresh = (): string => join(work, String(count++));

async function read(path: string): Promise<RankCapture[]> {
  const source = await openSource(path);
  try {
    const out: RankCapture[] = [];
    for (const folder of findRankFolders(source.entries).folders) out.push(await readRank(folder, () => {}));
    return out.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
  } finally {
    await source.close();
  }
}

async function report(path: string): Promise<Report> {
  const source = await openSource(path);
  try {
    return await analyse({ sources: [source], options: { lang: 'en', thresholds: {}, disabledRules: [], gate: null }, source: null });
  } finally {
    await source.close();
  }
}

const sum = (values: Iterable<number>): number => {
  let total = 0;
  for (const value of values) total += value;
  return total;
};
/** Within 0.1 %. */
const near = (actual: number | null, wanted: number): void => {
  expect(actual).not.toBeNull();
  expect(Math.abs(actual! - wanted), `${actual} is not ${wanted}`).toBeLessThanOrEqual(1e-3 * Math.abs(wanted) + 1e-9);
};

type Typed = [count: number, us: number];

interface Truth {
  level: 0 | 1 | 2;
  rank: 0 | 1;
  us: number;
  cores: Record<string, number>;
  small: number;
  top: [type: string, us: number, count: number][];
  transpose: Typed;
  transData: Typed;
  cast: Typed;
  communicationUs: number;
  first: string;
  /** StepTraceTime, µs. */
  step: { computing: number; exposed: number; overlapped: number; communication: number; free: number; stage: number; preparing: number };
  /** Sums of CommAnalyzerTime, ms. */
  sums?: { elapsed: number; transit: number; wait: number; synchronization: number; idle: number };
}

const CORES = { AI_VECTOR_CORE: 149, AI_CORE: 23, DSA_SQE: 2, MIX_AIV: 13 };
const TRUTH: Truth[] = [
  {
    level: 0,
    rank: 0,
    us: 8843.91,
    cores: {},
    small: 55,
    top: [],
    transpose: [0, 0],
    transData: [0, 0],
    cast: [0, 0],
    communicationUs: 89880.576,
    first: 'hcom_allReduce__576_0_1',
    step: {
      computing: 8843.91,
      exposed: 85881.122,
      overlapped: 3999.454,
      communication: 89880.576,
      free: 25900.158,
      stage: 120625.19,
      preparing: 16681.808,
    },
  },
  {
    level: 0,
    rank: 1,
    us: 8831.637,
    cores: {},
    small: 54,
    top: [],
    transpose: [0, 0],
    transData: [0, 0],
    cast: [0, 0],
    communicationUs: 93993.858,
    first: 'hcom_allReduce__576_0_1',
    step: {
      computing: 8831.637,
      exposed: 90000.781,
      overlapped: 3993.077,
      communication: 93993.858,
      free: 26748.231,
      stage: 125580.649,
      preparing: 18002.802,
    },
  },
  {
    level: 1,
    rank: 0,
    us: 8903.431,
    cores: CORES,
    small: 51,
    top: [
      ['ForeachAddList', 1947.6, 3],
      ['TransData', 1408.1, 57],
      ['MatMulV2', 958, 8],
      ['Conv2D', 723.7, 5],
      ['Conv2DBackpropFilter', 662, 5],
    ],
    transpose: [5, 120.182],
    transData: [57, 1408.147],
    cast: [4, 5.62],
    communicationUs: 102108.1,
    first: 'hcom_allReduce__210_0_1',
    step: {
      computing: 8903.431,
      exposed: 98071.947,
      overlapped: 4036.153,
      communication: 102108.1,
      free: 25258.144,
      stage: 132233.522,
      preparing: 18055.693,
    },
    sums: { elapsed: 102.10810009375, transit: 3.985659625, wait: 3.68957371875, synchronization: 3.51773028125, idle: 94.43286675 },
  },
  {
    level: 1,
    rank: 1,
    us: 8915.634,
    cores: CORES,
    small: 50,
    top: [
      ['ForeachAddList', 1952.2, 3],
      ['TransData', 1407.9, 57],
      ['MatMulV2', 976.6, 8],
      ['Conv2D', 723.3, 5],
      ['Conv2DBackpropFilter', 664.3, 5],
    ],
    transpose: [5, 114.083],
    transData: [57, 1407.924],
    cast: [4, 5.88],
    communicationUs: 98590.19,
    first: 'hcom_allReduce__210_0_1',
    step: {
      computing: 8915.634,
      exposed: 94556.05,
      overlapped: 4034.14,
      communication: 98590.19,
      free: 25840.499,
      stage: 129312.183,
      preparing: 17512.827,
    },
    sums: { elapsed: 98.5901898125, transit: 4.02176028125, wait: 3.84153675, synchronization: 3.65839309375, idle: 90.72689278125 },
  },
  {
    level: 2,
    rank: 0,
    us: 8900.456,
    cores: CORES,
    small: 52,
    top: [
      ['ForeachAddList', 1950.8, 3],
      ['TransData', 1396.9, 57],
      ['MatMulV2', 968.9, 8],
      ['Conv2D', 723.8, 5],
      ['Conv2DBackpropFilter', 654.5, 5],
    ],
    transpose: [5, 117.981],
    transData: [57, 1396.948],
    cast: [4, 5.6],
    communicationUs: 94107.521,
    first: 'hcom_allReduce__865_0_1',
    step: {
      computing: 8900.456,
      exposed: 90080.699,
      overlapped: 4026.822,
      communication: 94107.521,
      free: 25238.587,
      stage: 124219.742,
      preparing: 17894.588,
    },
    sums: { elapsed: 94.1075203125, transit: 3.96219903125, wait: 0.206484125, synchronization: 0.007120125, idle: 89.93883715625 },
  },
  {
    level: 2,
    rank: 1,
    us: 8926.368,
    cores: CORES,
    small: 50,
    top: [
      ['ForeachAddList', 1956.6, 3],
      ['TransData', 1412.2, 57],
      ['MatMulV2', 982.2, 8],
      ['Conv2D', 719.2, 5],
      ['Conv2DBackpropFilter', 657.2, 5],
    ],
    transpose: [5, 111.122],
    transData: [57, 1412.17],
    cast: [4, 5.942],
    communicationUs: 100357.525,
    first: 'hcom_allReduce__865_0_1',
    step: {
      computing: 8926.368,
      exposed: 96293.92,
      overlapped: 4063.605,
      communication: 100357.525,
      free: 25228.138,
      stage: 130448.426,
      preparing: 16382.844,
    },
    sums: { elapsed: 100.35752509375, transit: 3.9805195, wait: 1.68837365625, synchronization: 1.45224896875, idle: 94.68863193749999 },
  },
];

const realSet = (level: number): string => join(ROOT, 'test/data/pytorch/db', `level${level}`);

describe.skipIf(!HAVE)(`real databases${WHY}`, () => {
  const ranks = new Map<number, RankCapture[]>();
  const reports = new Map<number, Report>();
  beforeAll(async () => {
    for (const level of [0, 1, 2]) {
      ranks.set(level, await read(realSet(level)));
      reports.set(level, await report(realSet(level)));
    }
  });

  test.each(TRUTH)('level$level rank $rank: kernels, collectives, steps', (truth) => {
    const capture = ranks.get(truth.level)![truth.rank]!;
    expect(capture.rank).toBe(truth.rank);
    expect(capture.device).toBe(truth.rank);
    expect(capture.inputs.map((i) => i.status)).toEqual(['used', 'used', 'used']);
    const kernels = capture.kernels!;
    const text = (id: number): string => (id < 0 ? '' : capture.names.get(id));
    const rows = [...kernels.duration].map((ns, i) => ({ ns, i })).filter(({ i }) => kernels.isCommunication[i] === 0);
    expect(rows.length).toBe(187);
    near(sum(rows.map((r) => r.ns)) / 1000, truth.us);
    expect(rows.filter((r) => r.ns < 10_000).length).toBe(truth.small);
    expect([...kernels.start].every((s, i, all) => i === 0 || s >= all[i - 1]!)).toBe(true);
    const totals = (of: Int32Array): Map<string, Typed> => {
      const map = new Map<string, Typed>();
      for (const { ns, i } of rows) {
        const key = text(of[i]!);
        const [n, us] = map.get(key) ?? [0, 0];
        map.set(key, [n + 1, us + ns / 1000]);
      }
      return map;
    };
    const types = totals(kernels.type);
    if (truth.level === 0) {
      expect(kernels.typesFromNames).toBe(true);
      expect([...kernels.core].every((c) => c === -1)).toBe(true);
    } else {
      expect(kernels.typesFromNames).toBe(false);
      expect(Object.fromEntries([...totals(kernels.core)].map(([core, [n]]) => [core, n]))).toEqual(truth.cores);
      const sorted = [...types].sort((a, b) => b[1][1] - a[1][1]).slice(0, 5);
      expect(sorted.map(([type, [n]]) => [type, n])).toEqual(truth.top.map(([type, , n]) => [type, n]));
      truth.top.forEach(([, us], k) => {
        near(sorted[k]![1][1], us);
      });
      for (const [type, [n, us]] of [
        ['Transpose', truth.transpose],
        ['TransData', truth.transData],
        ['Cast', truth.cast],
      ] as const) {
        expect(types.get(type)?.[0]).toBe(n);
        near(types.get(type)![1], us);
      }
    }
    const { collective } = capture.trace!;
    expect(collective.name.length).toBe(4);
    expect(text(collective.name[0]!)).toBe(truth.first);
    near(sum(collective.duration) / 1000, truth.communicationUs);
    expect(collective.dataType.every((d) => text(d) === 'FP32')).toBe(true);
    expect(capture.stepTrace.length).toBe(1);
    const step = capture.stepTrace[0]!;
    expect(step.step).toBe(50);
    for (const key of ['computing', 'exposed', 'overlapped', 'communication', 'free', 'stage'] as const)
      near(step[key] * 1000, truth.step[key]);
    near(step.preparing! * 1000, truth.step.preparing);
    if (truth.sums === undefined) expect(capture.collectives).toEqual([]);
    else {
      const c = capture.collectives;
      expect(c.length).toBe(4);
      expect(c.every((one) => one.kind === 'collective' && one.step === 50 && one.sizeMb > 0)).toBe(true);
      near(sum(c.map((one) => one.elapsedMs)), truth.sums.elapsed);
      near(sum(c.map((one) => one.transitMs)), truth.sums.transit);
      near(sum(c.map((one) => one.waitMs)), truth.sums.wait);
      near(sum(c.map((one) => one.synchronizationMs)), truth.sums.synchronization);
      near(sum(c.map((one) => one.idleMs)), truth.sums.idle);
      expect([...capture.links!.ids.values()][0]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    }
  });

  test.each(TRUTH)('level$level rank $rank: the report’s breakdown', (truth) => {
    const row = reports.get(truth.level)!.breakdown.find((b) => b.rank === truth.rank)!;
    expect(row.step).toBe(50);
    expect(row.source).toBe('analysis.db');
    near(row.computingMs, truth.step.computing / 1000);
    near(row.exposedCommunicationMs, truth.step.exposed / 1000);
    near(row.overlappedMs, truth.step.overlapped / 1000);
    near(row.communicationMs, truth.step.communication / 1000);
    near(row.freeMs, truth.step.free / 1000);
    near(row.stageMs, truth.step.stage / 1000);
    near(row.preparingMs, truth.step.preparing / 1000);
  });

  test('launches, the task queue, stacks and the step are joined', () => {
    for (const level of [0, 1, 2]) {
      for (const capture of ranks.get(level)!) {
        const trace = capture.trace!;
        expect(trace.host.name.length).toBeGreaterThan(850);
        // As in the text export: only the dequeue ranges that hold a call of CANN.
        expect(trace.queue.length).toBe(19);
        expect(trace.steps.map((s) => s.id)).toEqual([50]);
        expect(trace.frames.some((f) => f.file.endsWith('imagenet_script/main.py'))).toBe(true);
        const kernels = [...trace.device.name].filter((_, i) => !/^(Notify|Write|MEMCPY)/.test(capture.names.get(trace.device.name[i]!)));
        expect(kernels.length).toBe(187);
        const launched = [...trace.device.start].filter(
          (at, i) => trace.launches.get(trace.device.stream[i]!)?.get(at) !== undefined,
        ).length;
        expect(launched).toBeGreaterThanOrEqual(187);
        for (const at of trace.collective.start) expect(trace.issued.get(at)!.at).toBeLessThan(at);
        expect(trace.device.start.every((at) => (trace.issued.get(at)?.at ?? at - 1) < at)).toBe(true);
      }
    }
  });

  test('every figure of the report names a database', () => {
    for (const level of [1, 2]) {
      const sources = reports.get(level)!.findings.flatMap((f) => f.evidence.map((e) => e.source));
      expect(sources.some((s) => s !== null)).toBe(true);
      for (const source of sources) if (source !== null) expect(source).toMatch(/\.db$|profiler_info/);
      expect(reports.get(level)!.job.device).toBe('Ascend910B family');
    }
  });

  test('text and database side by side: the text is read, nothing is added up', async () => {
    const dir = fresh();
    await cp(join(ROOT, 'test/data/pytorch/text/level1/rank0_ascend_pt'), join(dir, 'rank0_ascend_pt'), { recursive: true });
    await chmodAll(dir);
    const from = join(realSet(1), 'rank0_ascend_pt/ASCEND_PROFILER_OUTPUT');
    for (const name of await readdir(from)) await copyFile(join(from, name), join(dir, 'rank0_ascend_pt/ASCEND_PROFILER_OUTPUT', name));
    const both = (await read(dir))[0]!;
    const alone = (await read(join(ROOT, 'test/data/pytorch/text/level1')))[0]!;
    expect(both.kernels!.duration).toEqual(alone.kernels!.duration);
    expect(noteOf(both.inputs, 'ascend_pytorch_profiler_0.db')).toBe('the text export beside it is read instead');
    // The text export is broken: the database takes over.
    const output = join(dir, 'rank0_ascend_pt/ASCEND_PROFILER_OUTPUT');
    await writeFile(join(output, 'trace_view.json'), '');
    await writeFile(join(output, 'kernel_details.csv'), 'Name\n');
    const second = (await read(dir))[0]!;
    near(sum([...second.kernels!.duration].filter((_, i) => second.kernels!.isCommunication[i] === 0)) / 1000, 8903.431);
    expect(statusOf(second.inputs, 'ascend_pytorch_profiler_0.db')).toBe('used');
    expect(statusOf(second.inputs, 'kernel_details.csv')).toBe('refused');
    expect(noteOf(second.inputs, 'step_trace_time.csv')).toBe('the database export beside it is read instead');
    near(second.stepTrace[0]!.computing, 8.903431);
  });

  test('a write-ahead log file in a folder that cannot be written leaves nothing behind', async () => {
    const dir = fresh();
    await cp(join(realSet(1), 'rank0_ascend_pt'), join(dir, 'rank0_ascend_pt'), { recursive: true });
    const output = join(dir, 'rank0_ascend_pt/ASCEND_PROFILER_OUTPUT');
    const file = join(output, 'ascend_pytorch_profiler_0.db');
    const before = await readFile(file);
    expect(before[18]).toBe(2);
    const names = await readdir(output);
    await chmod(output, 0o555);
    try {
      const capture = (await read(dir))[0]!;
      expect(capture.kernels!.duration.length).toBe(191);
      expect(await readdir(output)).toEqual(names);
      expect((await readFile(file)).equals(before)).toBe(true);
    } finally {
      await chmod(output, 0o755);
    }
  });

  test('COMMUNICATION_OP is empty: operations span their tasks', async () => {
    const dir = join(fresh(), 'ASCEND_PROFILER_OUTPUT');
    await mkdir(dir, { recursive: true });
    await copyFile(join(ROOT, 'server/src/test/test_data/full_db/msprof_0.db'), join(dir, 'ascend_pytorch_profiler_0.db'));
    const capture = (await read(dir))[0]!;
    expect(capture.trace!.collective.name.length).toBe(1);
    expect(capture.names.get(capture.trace!.collective.name[0]!)).toBe('hcom_allGather__305_879_1');
    expect(capture.trace!.collective.duration[0]).toBe(1_633_513);
    const compute = [...capture.kernels!.duration].filter((_, i) => capture.kernels!.isCommunication[i] === 0);
    expect(compute.length).toBe(11);
    near(sum(compute) / 1000, 663.872);
  });
});

async function chmodAll(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true }))
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
}

const inputOf = (inputs: readonly InputRecord[], name: string): InputRecord | undefined =>
  inputs.find((i) => i.path === name || i.path.endsWith(`/${name}`));
const statusOf = (inputs: readonly InputRecord[], name: string): string | undefined => inputOf(inputs, name)?.status;
const noteOf = (inputs: readonly InputRecord[], name: string): string | undefined => inputOf(inputs, name)?.note?.text.en;

describe('the same simulated job in both exports', () => {
  const cases: [name: string, spec: JobSpec, rule: string | null][] = [
    ['healthy', { ranks: 2 }, null],
    ['slow rank', { ranks: 4, faults: [{ kind: 'slow-rank', rank: 2 }] }, 'slow-rank'],
    ['slow loader', { ranks: 2, faults: [{ kind: 'slow-loader', single: true }] }, 'dataloader-stall'],
    ['recompile', { ranks: 2, faults: [{ kind: 'recompile' }] }, 'op-recompile'],
    ['buffer broadcast', { ranks: 3, faults: [{ kind: 'buffer-broadcast' }] }, 'ddp-buffer-broadcast'],
    ['layout', { ranks: 2, faults: [{ kind: 'layout' }] }, 'transpose-hotspot'],
    ['small ops', { ranks: 2, faults: [{ kind: 'small-ops' }] }, 'small-op-fragmentation'],
    ['values read in the loop', { ranks: 2, faults: [{ kind: 'stream-sync' }] }, 'stream-sync'],
    ['drains around collectives', { ranks: 2, faults: [{ kind: 'stream-sync', of: 'collective' }] }, 'stream-sync'],
    ['launch blocking', { ranks: 2, faults: [{ kind: 'launch-blocking' }] }, 'stream-sync'],
    ['collections', { ranks: 2, faults: [{ kind: 'gc-pause' }] }, 'gc-pause'],
    ['an emptied cache', { ranks: 2, faults: [{ kind: 'alloc-stall', emptyCache: true }] }, 'memory-alloc-stall'],
    ['batch preparation', { ranks: 2, faults: [{ kind: 'batch-preparation', shows: 'frames' }] }, 'batch-preparation'],
    ['copies from pageable memory', { ranks: 2, level: 2, faults: [{ kind: 'pageable-copy' }] }, 'h2d-copy'],
    ['a slow host', { ranks: 2, faults: [{ kind: 'host-bound' }] }, 'host-bound-launch'],
    ['stage imbalance', { ranks: 4, pp: 2, era: '2025-11', level: 2, faults: [{ kind: 'stage-imbalance' }] }, 'stage-imbalance'],
  ];

  test.each(cases)('%s: findings and figures agree', async (_, spec, rule) => {
    const job = simulate(spec);
    const [text, db] = await Promise.all(
      (['text', 'db'] as const).map(async (kind) => {
        const dir = fresh();
        await writeProfiles(job, dir, { export: kind });
        return report(dir);
      }),
    );
    expect(db!.inputs.filter((i) => i.status !== 'used').map((i) => [i.path, i.note])).toEqual([]);
    const heads = (r: Report) => r.findings.map((f) => [f.id, f.rule, f.ranks, f.severity, f.confidence, f.steps, f.groups, f.locations]);
    expect(heads(db!)).toEqual(heads(text!));
    if (rule !== null) expect(db!.findings.map((f) => f.rule)).toContain(rule);
    expect(db!.checked.map((c) => [c.rule, c.outcome])).toEqual(text!.checked.map((c) => [c.rule, c.outcome]));
    sameFigures(text!.job, db!.job, 'job', ['device']);
    sameFigures(text!.breakdown, db!.breakdown, 'breakdown', ['source']);
    sameFigures(text!.totals, db!.totals, 'totals', []);
    sameFigures(text!.views.idleAccount, db!.views.idleAccount, 'idle account', []);
    sameFigures(
      text!.findings.map((f) => f.saving),
      db!.findings.map((f) => f.saving),
      'savings',
      [],
    );
  });

  test('a database longer than what is kept: its first steps, with all their tasks, kernels and launches', async () => {
    const dir = fresh();
    await writeProfiles(simulate({ ranks: 1, steps: 12, layers: 3 }), dir, { export: 'db' });
    const source = await openSource(dir);
    const entry = source.entries.find((e) => e.path.endsWith('profiler_0.db'))!;
    const read = (maxRows?: number) => withDatabase(entry, null, (db) => readCapture(db, createInterner(), maxRows));
    const all = await read();
    expect(all.limited).toBe(null);
    const rows = all.trace!.device.name.length + all.trace!.host.name.length;
    const some = await read(Math.round(rows / 3));
    expect(some.limited).toMatchObject({ all: 12 });
    const { steps, device, host, launches } = some.trace!;
    expect(steps.length).toBe(some.limited!.kept);
    expect(steps.length).toBeGreaterThan(1);
    expect(steps.length).toBeLessThan(6);
    const end = steps.at(-1)!.start + steps.at(-1)!.duration;
    const inside = (start: Float64Array): number => start.filter((at) => at < end).length;
    expect(inside(device.start)).toBe(inside(all.trace!.device.start));
    expect(inside(host.start)).toBe(inside(all.trace!.host.start));
    device.start.forEach((at, i) => {
      const stream = device.stream[i]!;
      expect(launches.get(stream)?.get(at)).toBe(all.trace!.launches.get(stream)?.get(at));
    });
    expect(device.name.length + host.name.length).toBeLessThan(rows / 2);
    expect(inside(some.kernels!.start)).toBe(inside(all.kernels!.start));
    expect(some.kernels!.start.length).toBeLessThan(all.kernels!.start.length / 2);
    await source.close();
  });

  test('zip and tar.gz of a database folder give the folder’s report, and no copy stays', async () => {
    const dir = fresh();
    await writeProfiles(simulate({ ranks: 2, steps: 2, layers: 3 }), dir, { export: 'db' });
    const plain = await report(dir);
    const files = (await readdir(dir, { recursive: true, withFileTypes: true })).filter((e) => e.isFile());
    const entries = await Promise.all(
      files.map(async (e) => {
        const path = join(e.parentPath, e.name);
        return { name: path.slice(dir.length + 1), data: await readFile(path) };
      }),
    );
    const zip = `${dir}.zip`;
    await writeFile(zip, zipOf(entries));
    const tar = `${dir}.tar.gz`;
    execFileSync('tar', ['czf', tar, '-C', dir, '.']);
    const copies = async (): Promise<string[]> => (await readdir(tmpdir())).filter((name) => /^npu-advisor-db-(?!test)/.test(name));
    const before = await copies();
    for (const archive of [zip, tar]) {
      const packed = await report(archive);
      expect(packed.breakdown).toEqual(plain.breakdown);
      expect(packed.findings.map((f) => f.id)).toEqual(plain.findings.map((f) => f.id));
    }
    expect((await copies()).filter((name) => !before.includes(name))).toEqual([]);
  });
});

/** Numbers within 0.1 %, everything else the same. */
function sameFigures(a: unknown, b: unknown, at: string, skip: readonly string[]): void {
  if (typeof a === 'number' && typeof b === 'number') {
    expect(Math.abs(a - b), `${at}: ${a} and ${b}`).toBeLessThanOrEqual(1e-3 * Math.max(Math.abs(a), Math.abs(b)) + 1e-9);
  } else if (a !== null && b !== null && typeof a === 'object' && typeof b === 'object') {
    expect(Object.keys(b), at).toEqual(Object.keys(a));
    for (const [key, value] of Object.entries(a))
      if (!skip.includes(key)) sameFigures(value, (b as Record<string, unknown>)[key], `${at}.${key}`, skip);
  } else expect(b, at).toEqual(a);
}

describe('files that are damaged or want to do harm', () => {
  let original: string;
  let rows: { kernels: number; host: number };
  const MAIN = 'ascend_pytorch_profiler_0.db';
  beforeAll(async () => {
    original = fresh();
    const [folder] = await writeProfiles(simulate({ ranks: 1, steps: 2, layers: 3 }), original, { export: 'db' });
    original = join(folder!, 'ASCEND_PROFILER_OUTPUT');
    const [capture] = await read(original);
    rows = { kernels: capture!.kernels!.start.length, host: capture!.trace!.host.name.length };
    expect(rows.kernels).toBeGreaterThan(100);
  });

  async function altered(change: string | ((file: string) => Promise<void> | void)): Promise<{ capture: RankCapture; output: string }> {
    const output = join(fresh(), 'ASCEND_PROFILER_OUTPUT');
    await cp(original, output, { recursive: true });
    const file = join(output, MAIN);
    if (typeof change === 'string') {
      const db = new DatabaseSync(file, { enableDoubleQuotedStringLiterals: false });
      db.exec(change);
      db.close();
    } else await change(file);
    const names = await readdir(output);
    const [capture] = await read(output);
    expect(await readdir(output)).toEqual(names);
    return { capture: capture!, output };
  }

  test('a view in place of a table is not run', async () => {
    const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS startNs, i AS endNs FROM n';
    const { capture } = await altered(`ALTER TABLE TASK RENAME TO HIDDEN; CREATE VIEW TASK AS ${endless}`);
    expect(capture.kernels?.isCommunication.every((c) => c === 1) ?? true).toBe(true);
    expect(capture.trace!.host.name.length).toBe(rows.host);
    expect(inputOf(capture.inputs, MAIN)).toMatchObject({ status: 'partial', note: { params: { tables: ['TASK'] } } });
  });

  test('triggers, virtual tables and generated columns are left alone', async () => {
    const { capture } = await altered(
      `CREATE TRIGGER bad AFTER INSERT ON TASK BEGIN SELECT load_extension('evil'); END;
       DROP TABLE STEP_TIME; CREATE VIRTUAL TABLE STEP_TIME USING fts5(id, startNs, endNs);
       ALTER TABLE TASK RENAME COLUMN streamId TO old; ALTER TABLE TASK ADD COLUMN streamId INTEGER GENERATED ALWAYS AS (length(hex(zeroblob(400000000))))`,
    );
    expect(capture.kernels!.start.length).toBe(rows.kernels);
    // Without STEP_TIME the marks of the operators tell.
    expect(capture.trace!.steps.length).toBe(2);
    expect(capture.trace!.device.stream.every((s) => s === -1)).toBe(true);
    expect(statusOf(capture.inputs, MAIN)).toBe('used');
  });

  test('a text of 100 MB costs neither memory nor the rank', async () => {
    const { capture } = await altered(
      `UPDATE STRING_IDS SET value = hex(zeroblob(50000000)) WHERE id = (SELECT name FROM COMPUTE_TASK_INFO LIMIT 1)`,
    );
    expect(capture.kernels!.start.length).toBe(rows.kernels);
    expect(capture.kernels!.name.some((n) => n === -1)).toBe(true);
    expect(statusOf(capture.inputs, MAIN)).toBe('used');
  });

  test('an oversized value where a number belongs costs its table, and is named', async () => {
    const { capture } = await altered('UPDATE TASK SET taskType = zeroblob(60000000) WHERE rowid = 40');
    expect(capture.trace!.host.name.length).toBe(rows.host);
    expect(inputOf(capture.inputs, MAIN)).toMatchObject({ status: 'partial', note: { params: { tables: ['TASK'] } } });
  });

  test('null names', async () => {
    const { capture } = await altered('UPDATE PYTORCH_API SET name = NULL; UPDATE COMPUTE_TASK_INFO SET name = NULL, opType = NULL');
    expect(capture.kernels!.start.length).toBe(rows.kernels);
    expect(capture.trace!.host.name.length).toBeGreaterThanOrEqual(rows.host);
    expect(capture.trace!.steps.length).toBe(2);
  });

  test('text where numbers belong', async () => {
    const { capture } = await altered(
      `UPDATE TASK SET startNs = 'abc' WHERE rowid % 2 = 0;
       UPDATE COMPUTE_TASK_INFO SET opType = 'x', inputShapes = x'00ff';
       UPDATE PYTORCH_API SET startNs = 'soon' WHERE type = 50002; UPDATE CANN_API SET globalTid = 'me'`,
    );
    expect(capture.kernels!.start.length).toBeGreaterThan(0);
    expect(capture.kernels!.start.length).toBeLessThan(rows.kernels);
    expect([...capture.kernels!.start].every(Number.isFinite)).toBe(true);
    expect(capture.trace!.queue).toEqual([]);
  });

  test('numbers beyond what a number holds', async () => {
    const { capture } = await altered(
      'UPDATE TASK SET startNs = -9223372036854775808 WHERE rowid = 7; UPDATE TASK SET endNs = 9223372036854775807 WHERE rowid = 8; UPDATE PYTORCH_API SET globalTid = 9223372036854775807 WHERE rowid = 3',
    );
    expect(capture.kernels!.start.length).toBeGreaterThan(rows.kernels - 3);
    expect(statusOf(capture.inputs, MAIN)).toBe('used');
    const wide = await altered('UPDATE CANN_API SET name = 9223372036854775807');
    expect(inputOf(wide.capture.inputs, MAIN)).toMatchObject({ status: 'partial', note: { params: { tables: ['CANN_API'] } } });
    expect(wide.capture.kernels!.start.length).toBe(rows.kernels);
  });

  test.each([
    'TASK',
    'COMPUTE_TASK_INFO',
    'COMMUNICATION_OP',
    'PYTORCH_API',
    'CANN_API',
    'CONNECTION_IDS',
    'STRING_IDS',
    'STEP_TIME',
    'META_DATA',
    'RANK_DEVICE_MAP',
    'PYTORCH_CALLCHAINS',
  ])('%s is missing: the rest is read', async (table) => {
    const { capture, output } = await altered(`DROP TABLE ${table}`);
    expect(['used', 'partial']).toContain(statusOf(capture.inputs, MAIN));
    expect(capture.rank).toBe(0);
    expect((await report(output)).checked.every((c) => c.outcome !== 'error')).toBe(true);
  });

  test('columns of other releases, and texts without a key', async () => {
    const { capture } = await altered(
      `ALTER TABLE TASK DROP COLUMN deviceId; ALTER TABLE COMPUTE_TASK_INFO DROP COLUMN blockDim; ALTER TABLE TASK ADD COLUMN depth INTEGER;
       CREATE TABLE S (id INTEGER, value TEXT); INSERT INTO S SELECT * FROM STRING_IDS; DROP TABLE STRING_IDS; ALTER TABLE S RENAME TO STRING_IDS`,
    );
    expect(capture.kernels!.start.length).toBe(rows.kernels);
    expect(capture.kernels!.type.every((t, i) => t >= 0 || capture.kernels!.isCommunication[i] === 1)).toBe(true);
  });

  test('several devices in one file: the rank’s own is read', async () => {
    const { capture } = await altered(
      `INSERT INTO TASK SELECT startNs, endNs, 5, connectionId, globalTaskId + 1000000, globalPid, taskType, contextId, streamId, taskId, modelId FROM TASK`,
    );
    expect(capture.kernels!.start.length).toBe(rows.kernels);
  });

  test('rows that multiply stay within limits', async () => {
    const { capture } = await altered(
      `ALTER TABLE COMPUTE_TASK_INFO RENAME TO C; CREATE TABLE COMPUTE_TASK_INFO AS SELECT * FROM C; DROP TABLE C;
       INSERT INTO COMPUTE_TASK_INFO SELECT * FROM COMPUTE_TASK_INFO; INSERT INTO COMPUTE_TASK_INFO SELECT * FROM COMPUTE_TASK_INFO`,
    );
    expect(capture.trace).not.toBeNull();
  });

  test('changes that are still in the write-ahead log are read; an empty log is not a reason to copy', async () => {
    const output = join(fresh(), 'ASCEND_PROFILER_OUTPUT');
    const staging = fresh();
    await cp(original, staging, { recursive: true });
    await mkdir(output, { recursive: true });
    const db = new DatabaseSync(join(staging, MAIN));
    db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; UPDATE STEP_TIME SET id = id + 500');
    await copyFile(join(staging, MAIN), join(output, MAIN));
    await copyFile(join(staging, `${MAIN}-wal`), join(output, `${MAIN}-wal`));
    db.close();
    const [capture] = await read(output);
    expect(capture!.trace!.steps.every((s) => s.id >= 500)).toBe(true);
    expect((await readdir(output)).sort()).toEqual([MAIN, `${MAIN}-wal`]);
    expect(noteOf(capture!.inputs, `${MAIN}-wal`)).toBe('its changes are read with the database');
    await writeFile(join(output, `${MAIN}-wal`), '');
    const [without] = await read(output);
    expect(without!.trace!.steps.every((s) => s.id < 500)).toBe(true);
    expect((await readdir(output)).sort()).toEqual([MAIN, `${MAIN}-wal`]);
  });

  const WHY_NOT = 'could not be read: {why:code}';
  test.each<[string, (file: string) => Promise<void>, string]>([
    ['not a database', (file) => writeFile(file, 'startNs,endNs\n1,2\n'.repeat(100)), 'not a SQLite database, or an encrypted one'],
    ['empty', (file) => writeFile(file, ''), 'not a SQLite database, or an encrypted one'],
    ['only a header', (file) => truncate(file, 100), ''],
    [
      'encrypted',
      async (file) => {
        const bytes = await readFile(file);
        for (let i = 0; i < bytes.length; i++) bytes[i]! ^= 0x5a;
        await writeFile(file, bytes);
      },
      'not a SQLite database, or an encrypted one',
    ],
    [
      'schema destroyed',
      async (file) => {
        const handle = await open(file, 'r+');
        await handle.write(Buffer.alloc(3_996, 0xff), 0, 3_996, 100);
        await handle.close();
      },
      '',
    ],
  ])('%s: refused in one sentence', async (_, damage, why) => {
    const { capture, output } = await altered(damage);
    const input = inputOf(capture.inputs, MAIN)!;
    expect(input.status).toBe('refused');
    expect(input.note!.text.en).toBe(WHY_NOT);
    if (why !== '') expect(input.note!.params!.why).toBe(why);
    // The sums beside it still tell the steps.
    expect(capture.stepTrace.length).toBe(2);
    expect((await report(output)).breakdown.length).toBe(2);
  });

  test('only the sums were uploaded: steps and collectives are known', async () => {
    const { capture, output } = await altered((file) => rm(file));
    expect(capture.trace).toBeNull();
    expect(capture.stepTrace.length).toBe(2);
    expect(statusOf(capture.inputs, 'analysis.db')).toBe('used');
    expect((await report(output)).breakdown.every((b) => b.source === 'analysis.db' && b.computingMs! > 0)).toBe(true);
  });

  test('a git-lfs pointer is explained', async () => {
    const { capture } = await altered((file) => writeFile(file, 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n'));
    expect(inputOf(capture.inputs, MAIN)).toMatchObject({ status: 'refused', kind: 'git-lfs pointer' });
  });

  test('cut off or damaged at many places: never an exception, always a word', async () => {
    const size = (await readFile(join(original, MAIN))).length;
    let seed = 7;
    const random = (): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return seed / 2 ** 32;
    };
    for (let i = 0; i < 40; i++) {
      const { capture } = await altered(async (file) => {
        if (i % 2 === 0) return truncate(file, Math.floor(random() * size));
        const bytes = await readFile(file);
        for (let k = 0; k < 40; k++) bytes[100 + Math.floor(random() * (size - 100))] = Math.floor(random() * 256);
        await writeFile(file, bytes);
      });
      const input = inputOf(capture.inputs, MAIN)!;
      if (input.status !== 'used') expect(input.note).not.toBeNull();
      for (const start of capture.kernels?.start ?? []) expect(Number.isFinite(start)).toBe(true);
    }
  });
});

test('databases of several ranks in one folder are several ranks', async () => {
  const source = fresh();
  const flat = fresh();
  await mkdir(flat, { recursive: true });
  for (const folder of await writeProfiles(simulate({ ranks: 3, steps: 2, layers: 3 }), source, { export: 'db' })) {
    for (const dir of [folder, join(folder, 'ASCEND_PROFILER_OUTPUT')]) {
      for (const entry of await readdir(dir, { withFileTypes: true }))
        if (entry.isFile() && entry.name !== 'analysis.db') await copyFile(join(dir, entry.name), join(flat, entry.name));
    }
  }
  const captures = await read(flat);
  expect(captures.map((c) => c.rank)).toEqual([0, 1, 2]);
  expect(captures.every((c) => c.settings.level === 'Level1' && c.kernels !== null)).toBe(true);
  const { breakdown } = await report(flat);
  expect(new Set(breakdown.map((b) => b.rank)).size).toBe(3);
  expect(breakdown.every((b) => b.computingMs !== null && b.computingMs > 0)).toBe(true);
});

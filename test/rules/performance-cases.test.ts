/* Reports of slow jobs met in public, rebuilt row by row from the figures that were published: the cause, its size, and what must not be said. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse } from '../../src/engine/analyse.ts';
import type { Lang } from '../../src/model/lang.ts';
import { Report } from '../../src/model/report.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { openSource } from '../../src/sources/index.ts';
import { ts } from '../support/profile-text.ts';
import { checkOf, findingOf } from '../support/simulated.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-performance-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

async function analysed(lang: Lang): Promise<Report> {
  const source = await openSource(dir);
  try {
    const options = { lang, thresholds: {}, disabledRules: [], gate: null };
    const report = await analyse({ sources: [source], options, source: null });
    // Figures keep to their units by spaces that do not break.
    return Report.parse(JSON.parse(JSON.stringify(report).replaceAll(/[\u00a0\u202f]/g, ' ')));
  } finally {
    await source.close();
  }
}

/** The report of one rank with these files in its output folder; it must exist in both languages. */
async function reportOf(files: Readonly<Record<string, string>>): Promise<Report> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(dir, 'rank0_ascend_pt', 'ASCEND_PROFILER_OUTPUT', name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  const [en, zh] = [await analysed('en'), await analysed('zh')];
  expect(zh.findings.map((f) => f.id)).toEqual(en.findings.map((f) => f.id));
  for (const report of [en, zh]) expect(renderMarkdown(report)).not.toMatch(/undefined|NaN/);
  return en;
}

/** Idle time before it and duration, µs. */
type Row = readonly [name: string, type: string, core: string, gap: number, us: number];

function kernels(rows: readonly Row[]): string {
  const lines = ['Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)'];
  let at = 0;
  for (const [name, type, core, gap, us] of rows) {
    at += gap;
    lines.push(`0,${name},${type},${core},${ts(at)}\t,${us.toFixed(3)},${gap.toFixed(3)}`);
    at += us;
  }
  return `${lines.join('\n')}\n`;
}

const kernel = (type: string, core: string, gap: number, us: number): Row => [`aclnn${type}_${type}`, type, core, gap, us];

describe('A01: decode without a whole graph (vllm-project/vllm-ascend#9404)', () => {
  /** One block: 832 µs, in which six kernels run for 241 µs. */
  const BLOCK: readonly Row[] = [
    kernel('RmsNorm', 'AI_VECTOR_CORE', 96, 9),
    kernel('MatMulV3', 'AI_CORE', 88, 38),
    kernel('FusedInferAttentionScore', 'MIX_AIC', 121, 52),
    ['hcom_allReduce__101_7_1', 'hcom_allReduce_', 'HCCL', 74, 31],
    kernel('GroupedMatmul', 'MIX_AIC', 139, 84),
    ['hcom_allReduce__101_8_1', 'hcom_allReduce_', 'HCCL', 73, 27],
  ];
  const decode = (layers: readonly Row[], times = 4): Row[] =>
    Array.from({ length: times }, () => [
      kernel('GatherV3', 'AI_VECTOR_CORE', 100, 10),
      ...Array.from({ length: 48 }, () => layers).flat(),
      kernel('ArgMaxV2', 'AI_VECTOR_CORE', 90, 12),
    ]).flat();

  test('591 of 832 µs idle: launch-bound, the graph mode first', async () => {
    const report = await reportOf({ 'kernel_details.csv': kernels(decode(BLOCK)) });
    const finding = findingOf(report, 'host-bound-launch')!;
    expect(finding.title).toMatch(/^Launch-bound: .* 71 % of the time/);
    expect(finding.evidence[1]!.text).toMatch(/6 kernels repeats 192 times: idle for 591 of 832 µs \(71 %\), at work for 241 µs/);
    expect(finding).toMatchObject({ confidence: 'low', steps: [], saving: { basis: 'bound', perStepMs: { likely: null } } });
    // 71 % of 160.5 ms, and never more.
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(114.1, 1);
    expect(finding.caveats.join()).toMatch(/the host was not recorded/);
    const [first] = finding.recommendations;
    expect(first!.text).toMatch(/whole graphs first/);
    expect(first!.code).toMatch(/"cudagraph_mode": "FULL_DECODE_ONLY"/);
    expect(first!.text).not.toMatch(/TASK_QUEUE_ENABLE|micro batch/);
  });

  test('no kernel is called the bottleneck, and nothing a step', async () => {
    const report = await reportOf({ 'kernel_details.csv': kernels(decode(BLOCK)) });
    const costly = report.findings.filter((f) => f.severity !== 'info');
    expect(costly.map((f) => f.rule)).toEqual(['host-bound-launch']);
    const said = JSON.stringify([report.verdict, costly, report.notes]);
    expect(said).not.toMatch(/GroupedMatmul/);
    expect(said).not.toMatch(/training|per step|each step|of the step/);
    expect(report.job).toMatchObject({ steps: [], stepBasis: expect.stringMatching(/no step marks .*4 forward passes/) });
  });

  test('the six rows of one block by themselves are no model: a split of the time, no finding', async () => {
    const report = await reportOf({ 'kernel_details.csv': kernels(BLOCK) });
    expect(checkOf(report, 'host-bound-launch')).toMatchObject({ outcome: 'notApplicable', reason: expect.stringMatching(/CPU activity/) });
    expect(report.notes[0]).toMatch(/free \(67 %\)/);
  });

  test.each<[string, Row[]]>([
    ['kernels that follow each other', decode(BLOCK.map(([n, t, c, , us]) => [n, t, c, 1, us] as const))],
    ['large kernels: the gaps are a fifth of the time', decode(BLOCK.map(([n, t, c, gap, us]) => [n, t, c, gap, us * 10] as const))],
    ['one long gap between two passes, none inside', decode(BLOCK.map(([n, t, c, , us], i) => [n, t, c, i === 0 ? 400 : 1, us] as const))],
    ['training, whose unit is the step', decode([...BLOCK, kernel('FlashAttentionScoreGrad', 'MIX_AIC', 90, 60)])],
  ])('%s: not applicable, as before', async (_, rows) => {
    const report = await reportOf({ 'kernel_details.csv': kernels(rows) });
    expect(checkOf(report, 'host-bound-launch')).toMatchObject({ outcome: 'notApplicable', reason: expect.stringMatching(/CPU activity/) });
  });
});

describe('A01 with the host beside it', () => {
  /** 40 blocks of three kernels with 90 µs before each, launched `early` µs before they run. */
  function trace(early: number): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(1, 'Python'), lane(2, 'CANN'), lane(3, 'Ascend Hardware')];
    const types = ['RmsNorm', 'MatMulV3', 'SwiGlu'];
    for (let k = 0; k < 120; k++) {
      const start = 20_000 + k * 120;
      const flow = { name: `HostToDevice${k}`, cat: 'HostToDevice', id: String(k + 1) };
      events.push({ ph: 'X', name: 'aten::op', pid: 1, tid: 1, ts: ts(start - early - 5), dur: 10, cat: 'cpu_op', args: {} });
      events.push({ ph: 's', ...flow, pid: 2, tid: 2, ts: ts(start - early) });
      events.push({ ph: 'f', bp: 'e', ...flow, pid: 3, tid: 7, ts: ts(start) });
      const name = `aclnn${types[k % 3]}_${types[k % 3]}`;
      events.push({ ph: 'X', name, pid: 3, tid: 7, ts: ts(start), dur: 30, args: { 'Task Type': 'AI_CORE' } });
    }
    return JSON.stringify(events);
  }

  test('launches that come after the card ran dry are seen, not guessed', async () => {
    const finding = findingOf(await reportOf({ 'trace_view.json': trace(20) }), 'host-bound-launch')!;
    expect(finding).toMatchObject({ confidence: 'medium', caveats: [] });
    expect(finding.evidence[1]!.text).toMatch(/idle for 270 of 360 µs \(75 %\)/);
  });

  test('kernels that were queued long before wait for something else', async () => {
    const report = await reportOf({ 'trace_view.json': trace(5_000) });
    expect(checkOf(report, 'host-bound-launch')).toMatchObject({ outcome: 'notApplicable', reason: expect.stringMatching(/step marks/) });
  });
});

describe('A02: a wait before every graph replay (vllm-project/vllm-ascend#10434)', () => {
  const REPLAYS = 6;
  const PERIOD = 23_620;

  /** Six replays of a graph, each right after a wait of 21.4 ms that begins when the graph before it has run for 1.6 ms. */
  function trace(graphUs: number, replays = true): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(9001, 'CANN'), lane(2, 'Ascend Hardware'), lane(1, 'Python')];
    const add = (name: string, pid: number, us: number, dur: number, args = {}): void => {
      events.push({ ph: 'X', name, pid, tid: pid, ts: ts(10_000 + us), dur, args });
    };
    add('aten::empty', 1, -5_000, 5);
    for (let r = 0; r < REPLAYS; r++) {
      const wait = r * PERIOD;
      const parts = 60;
      for (let k = 0; k < parts; k++)
        add(`${k % 3 === 0 ? 'RmsNorm' : 'MatMulV2'}_${k}`, 2, wait - 1_600 + (k * graphUs) / parts, graphUs / parts, {
          'Task Type': 'AI_CORE',
        });
      add('AscendCL@aclrtSynchronizeStream', 9001, wait, 21_400);
      if (replays) add('AscendCL@aclmdlRIExecuteAsync', 9001, wait + 21_420, 310);
    }
    return JSON.stringify(events);
  }

  test('the card is idle for the last 6.4 ms of each wait: one wait per replay, an event in its place', async () => {
    const report = await reportOf({ 'trace_view.json': trace(16_600) });
    const finding = findingOf(report, 'stream-sync')!;
    expect(finding.title).toMatch(/waits right before 6 graph replays/);
    expect(finding.evidence[0]!.text).toMatch(
      /`aclrtSynchronizeStream` 6 times, 6 of them right before a graph, held the host for 128\.4 ms; the card was idle for 32\.0 ms/,
    );
    // The last wait outlasts the capture: what the card did in it is not known.
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null, ceiling: 32 } });
    expect(finding.caveats.join()).toMatch(/let a stream event order the two, do not just delete it/);
    expect(finding.recommendations[0]!.text).toMatch(/event between them/);
    expect(checkOf(report, 'host-bound-launch').outcome).toBe('notApplicable');
  });

  test('the card is busy through all of them: a host that waits for a busy card loses nothing', async () => {
    const report = await reportOf({ 'trace_view.json': trace(22_990) });
    expect(checkOf(report, 'stream-sync')).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(
        /waited 6 times, 6 of them right before a graph, for 128\.4 ms in all; the card was idle for \d+ µs of that/,
      ),
    });
  });

  test('waits of the same length without a graph behind them', async () => {
    const finding = findingOf(await reportOf({ 'trace_view.json': trace(16_600, false) }), 'stream-sync')!;
    expect(finding.title).toMatch(/^The host waits 6 times/);
    expect(finding.recommendations[0]!.text).not.toMatch(/Before a graph/);
  });
});

describe('A05: a copy into another order before every batched product (vllm-project/vllm-ascend#16210)', () => {
  /** 25 ms on one rank, 81 layers: 30 µs of AsStrided, a product of 40 µs, 13 µs of Transpose, and the rest. */
  const layers = (copies: number): Row[] =>
    Array.from({ length: 81 }, (_, i) => [
      ...(i < copies ? [kernel('AsStridedAiCore', 'AI_VECTOR_CORE', 1, 30)] : []),
      kernel('BatchMatMulV2', 'AI_CORE', 1, 40),
      ...(i < copies ? [kernel('Transpose', 'AI_VECTOR_CORE', 1, 13)] : []),
      kernel('RmsNorm', 'AI_VECTOR_CORE', 1, 225),
    ]).flat();

  test('AsStrided and Transpose together, one per layer, as information', async () => {
    const report = await reportOf({ 'kernel_details.csv': kernels(layers(81)) });
    const finding = findingOf(report, 'transpose-hotspot')!;
    expect(finding.severity).toBe('info');
    expect(finding.evidence[0]!.text).toMatch(/`AsStridedAiCore`, `Transpose`: 162 kernels, 3\.5 ms of 24\.\d ms/);
    expect(finding.evidence[1]!.text).toMatch(/81 times each, 43 µs a time, 3\.5 ms in all, as often as `BatchMatMulV2`: one per layer/);
    expect(finding.saving!.perStepMs.ceiling).toBe(0);
  });

  test('in some layers only: not one per layer', async () => {
    const finding = findingOf(await reportOf({ 'kernel_details.csv': kernels(layers(70)) }), 'transpose-hotspot')!;
    expect(finding.evidence.map((e) => e.text).join()).not.toMatch(/per layer/);
  });
});

describe('A20: samples are encoded in the training loop (modelscope/ms-swift#4233)', () => {
  const STEP = 2_350_000;
  const FETCH = 1_640_000;

  function trace(iterator: string): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(77, 'Python'), lane(78, 'CANN'), lane(79, 'Ascend Hardware')];
    for (let s = 0; s < 4; s++) {
      const at = 1_000 + s * STEP;
      const host = { ph: 'X', pid: 77, tid: 77, args: {} };
      events.push({ ...host, name: `ProfilerStep#${s + 3}`, ts: ts(at), dur: STEP, cat: 'user_annotation' });
      events.push({ ...host, name: `enumerate(DataLoader)#${iterator}.__next__`, ts: ts(at + 100_000), dur: FETCH, cat: 'cpu_op' });
      // Work for the card from the end of the fetch to the next fetch.
      const first = at + 100_000 + FETCH + 1_000;
      for (let k = 0; k < 140; k++) {
        const id = String(s * 1_000 + k + 1);
        const start = first + 100 + k * 5_060;
        const flow = { name: `HostToDevice${id}`, cat: 'HostToDevice', id };
        events.push({ ...host, name: 'aten::mm', ts: ts(first + k * 1_000), dur: 500, cat: 'cpu_op' });
        events.push({ ph: 's', ...flow, pid: 78, tid: 78, ts: ts(first + k * 1_000 + 50) });
        events.push({ ph: 'f', bp: 'e', ...flow, pid: 79, tid: 7, ts: ts(start) });
        events.push({ ph: 'X', name: `MatMulV2_${k}`, pid: 79, tid: 7, ts: ts(start), dur: 5_058, args: { 'Task Type': 'AI_CORE' } });
      }
    }
    return JSON.stringify(events);
  }

  test('1.64 of 2.35 s, and the iterator says that there is no worker', async () => {
    const report = await reportOf({ 'trace_view.json': trace('_SingleProcessDataLoaderIter') });
    const finding = findingOf(report, 'dataloader-stall')!;
    expect(report.job.stepTimeMs).toBeCloseTo(2_350, 0);
    expect(finding.severity).toBe('critical');
    const saved = finding.saving!.perStepMs.likely ?? finding.saving!.perStepMs.ceiling;
    expect(saved / 2_350).toBeGreaterThan(0.65);
    expect(saved / 2_350).toBeLessThan(0.7);
    expect(finding.evidence[0]!.text).toMatch(/in `_SingleProcessDataLoaderIter.__next__` for 1640\.0 ms/);
    expect(finding.recommendations[0]!.text).toMatch(/num_workers/);
    expect(finding.recommendations[0]!.text).toMatch(/no worker|without workers|in the training process|main process/i);
  });
});

describe('A23: two slow ranks of four (ascend-ai-coding/awesome-ascend-skills#84)', () => {
  const COUNTS = [
    [1, 137],
    [2, 129],
    [0, 0],
    [3, 0],
  ] as const;

  async function database(counts: readonly (readonly [number, number])[], steps: boolean): Promise<void> {
    await mkdir(dir, { recursive: true });
    const db = new DatabaseSync(join(dir, 'cluster_analysis.db'));
    db.exec('CREATE TABLE SlowRank (rankId INTEGER, slowAffectCount INTEGER)');
    const row = db.prepare('INSERT INTO SlowRank VALUES (?, ?)');
    for (const [rank, count] of counts) row.run(rank, count);
    if (steps) {
      db.exec(
        'CREATE TABLE ClusterStepTraceTime (step TEXT, type TEXT, "index" TEXT, computing, communication_not_overlapped, overlapped, communication, free, stage, bubble)',
      );
      const step = db.prepare("INSERT INTO ClusterStepTraceTime VALUES ('3', 'rank', ?, 80000, 60000, 5000, 65000, 20000, 160000, 0)");
      for (const rank of ['0', '1', '2', '3']) step.run(rank);
    }
    db.close();
  }

  test('both are named beside the step times', async () => {
    await database(COUNTS, true);
    const report = await analysed('en');
    const notes = report.notes.filter((n) => n.includes('SlowRank'));
    expect(notes).toEqual([expect.stringMatching(/waited most often for rank 1 \(137 ×\), 2 \(129 ×\)/)]);
    expect((await analysed('zh')).notes.join()).toMatch(/最常等待卡 1 \(137 ×\), 2 \(129 ×\)/);
  });

  test('by itself the table names them, and what tells a slow host from a slow card', async () => {
    await database(COUNTS, false);
    const error = await analysed('en').then(
      () => null,
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(AdviseError);
    expect((error as AdviseError).hint).toMatch(/rank 1 \(137 ×\), 2 \(129 ×\).*whether the host or the card of these is slow needs/);
  });

  test.each([
    ['all alike', [90, 101, 95, 99]],
    ['hardly ever', [0, 3, 0, 0]],
  ])('%s: none is named', async (_, counts) => {
    await database(
      counts.map((count, rank) => [rank, count] as const),
      true,
    );
    expect((await analysed('en')).notes.join()).not.toMatch(/SlowRank/);
  });
});

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

describe('A03: the whole card is waited for where a stream would do (vllm-project/vllm-ascend#6432)', () => {
  /** Eight decode steps of 10 ms of computing; a transfer on a stream of its own runs on for `transfer` µs; then the host waits by `call`. */
  function trace(call: string, transfer: number): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(1, 'Python'), lane(2, 'CANN'), lane(3, 'Ascend Hardware')];
    const add = (name: string, pid: number, tid: number, at: number, dur: number, args = {}): void => {
      events.push({ ph: 'X', name, pid, tid, ts: ts(at), dur, args });
    };
    add('aten::empty', 1, 1, 0, 5);
    const period = 10_200 + transfer;
    for (let s = 0; s < 8; s++) {
      const at = 1_000 + s * period;
      for (let k = 0; k < 50; k++) add(`${k % 3 === 0 ? 'RmsNorm' : 'MatMulV2'}_${k}`, 3, 7, at + k * 200, 200, { 'Task Type': 'AI_CORE' });
      if (transfer > 0) add('MEMCPY_ASYNC', 3, 21, at + 2_000, 8_000 + transfer, { 'Task Type': 'SDMA_SQE' });
      add(`AscendCL@${call}`, 2, 2, at + 100, (call.endsWith('Device') ? transfer : 0) + 9_900);
    }
    add('MatMulV2_last', 3, 7, 1_000 + 8 * period, 500, { 'Task Type': 'AI_CORE' });
    return JSON.stringify(events);
  }

  test('the wait outlasts the computing by 6 ms of a transfer: how long, and the narrower wait; it is not deleted', async () => {
    const finding = findingOf(await reportOf({ 'trace_view.json': trace('aclrtSynchronizeDevice', 6_000) }), 'stream-sync')!;
    expect(finding.evidence[0]!.text).toMatch(
      /`aclrtSynchronizeDevice` 8 times.*only copied or communicated for 48\.0 ms and computed for the rest/,
    );
    expect(finding.recommendations[0]!.text).toMatch(/not for the whole card: `torch\.npu\.current_stream\(\)\.synchronize\(\)`/);
    expect(finding.caveats.join()).toMatch(/do not just delete it/);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
  });

  test.each([
    ['a wait for a stream does not wait for the transfer', 'aclrtSynchronizeStream', 6_000],
    ['no transfer outlasts the computing', 'aclrtSynchronizeDevice', 0],
  ])('%s: the card computes all the while', async (_, call, transfer) => {
    expect(checkOf(await reportOf({ 'trace_view.json': trace(call, transfer) }), 'stream-sync').outcome).not.toBe('finding');
  });
});

describe('A04: a tensor is built on the card from a Python list in each pass (vllm-project/vllm-ascend#5298)', () => {
  /** Passes that begin with a blocking copy of 1.5 ms, `stack` being the call that asked for it. */
  function trace(stack: string | null): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(1, 'Python'), lane(2, 'CANN'), lane(3, 'Ascend Hardware')];
    for (let s = 0; s < 8; s++) {
      const at = 1_000 + s * 12_000;
      const args = stack === null ? {} : { 'Call stack': stack };
      events.push({ ph: 'X', name: 'aten::copy_', pid: 1, tid: 1, ts: ts(at), dur: 1_600, cat: 'cpu_op', args });
      events.push({ ph: 'X', name: 'AscendCL@aclrtMemcpy', pid: 2, tid: 1, ts: ts(at + 50), dur: 1_500, args: {} });
      for (let k = 0; k < 50; k++) {
        const kernelAt = at + 1_700 + k * 200;
        events.push({ ph: 'X', name: `MatMulV2_${k}`, pid: 3, tid: 7, ts: ts(kernelAt), dur: 200, args: { 'Task Type': 'AI_CORE' } });
      }
    }
    return JSON.stringify(events);
  }

  test('on the line that the stack names, one copy in its place', async () => {
    const stack = 'vllm_ascend/spec_decode/mtp.py(212): dummy_run;\r\nvllm_ascend/worker/worker.py(90): execute';
    const finding = findingOf(await reportOf({ 'trace_view.json': trace(stack) }), 'stream-sync')!;
    // The first copy comes before any kernel: what the card did then is not known.
    expect(finding.evidence[0]!.text).toMatch(
      /`aclrtMemcpy` in `aten::copy_` 8 times.* held the host for 12\.0 ms; the card was idle for 10\.\d ms/,
    );
    expect(finding.locations[0]).toMatchObject({ file: 'vllm_ascend/spec_decode/mtp.py', line: 212 });
    expect(finding.recommendations[0]!.text).toMatch(/on the CPU and send them in one piece with `non_blocking=True`/);
  });

  test('without stacks the same finding, and no place is made up', async () => {
    const finding = findingOf(await reportOf({ 'trace_view.json': trace(null) }), 'stream-sync')!;
    expect(finding.locations).toEqual([]);
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

describe('A06: the cache is turned after a transfer, layer by layer (vllm-project/vllm-ascend#6366)', () => {
  const layers = Array.from({ length: 48 }, () => [
    kernel('PagedCacheLoad', 'AI_VECTOR_CORE', 4, 20),
    kernel('Transpose', 'AI_VECTOR_CORE', 4, 60),
    kernel('ReshapeAndCache', 'AI_VECTOR_CORE', 4, 20),
    kernel('MatMulV3', 'AI_CORE', 4, 300),
  ]).flat();

  test('once per layer, with what the copies take, and no saving that the kernels do not prove', async () => {
    const finding = findingOf(await reportOf({ 'kernel_details.csv': kernels(layers) }), 'transpose-hotspot')!;
    expect(finding.evidence.map((e) => e.text).join(' ')).toMatch(/`Transpose`: 48 kernels, 2\.9 ms/);
    expect(finding.severity).toBe('info');
    expect(finding.saving!.perStepMs.ceiling).toBe(0);
  });
});

describe('A09, A10: a shape that was not seen before is compiled (vllm-project/vllm-ascend#588, PaddlePaddle/PaddleCustomDevice#1118)', () => {
  /** Eight steps of 20 ms; those named hold a compilation of 300 ms, in which the card has nothing to do. */
  function trace(compiled: readonly number[]): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(1, 'Python'), lane(2, 'CANN'), lane(3, 'Ascend Hardware')];
    let at = 1_000;
    for (let s = 0; s < 8; s++) {
      const extra = compiled.includes(s) ? 300_000 : 0;
      const length = 20_000 + extra;
      events.push({ ph: 'X', name: `ProfilerStep#${s + 3}`, pid: 1, tid: 1, ts: ts(at), dur: length, cat: 'user_annotation', args: {} });
      if (extra > 0)
        events.push({ ph: 'X', name: 'AscendCL@aclopCompileAndExecute', pid: 2, tid: 1, ts: ts(at + 50), dur: extra, args: {} });
      for (let k = 0; k < 60; k++) {
        const id = String(s * 1_000 + k + 1);
        const flow = { name: `HostToDevice${id}`, cat: 'HostToDevice', id };
        const from = at + extra + 200 + k * 320;
        events.push({ ph: 'X', name: 'aten::mm', pid: 1, tid: 1, ts: ts(at + extra + 100 + k * 20), dur: 15, cat: 'cpu_op', args: {} });
        events.push(
          { ph: 's', ...flow, pid: 2, tid: 12, ts: ts(at + extra + 105 + k * 20) },
          { ph: 'f', bp: 'e', ...flow, pid: 3, tid: 7, ts: ts(from) },
        );
        events.push({ ph: 'X', name: `MatMulV2_${k}`, pid: 3, tid: 7, ts: ts(from), dur: 318, args: { 'Task Type': 'AI_CORE' } });
      }
      at += length;
    }
    return JSON.stringify(events);
  }

  test('now and then: the steady step is what counts, and those steps are told apart', async () => {
    const report = await reportOf({ 'trace_view.json': trace([2, 5]) });
    expect(report.job.stepTimeMs).toBeCloseTo(20, 0);
    const said = report.findings.filter((f) => ['op-recompile', 'step-jitter'].includes(f.rule));
    expect(said.length).toBeGreaterThan(0);
    expect(JSON.stringify(said.map((f) => [f.title, f.evidence]))).toMatch(/compil/i);
  });

  test('in every step: the compilation is the cause, with all it costs', async () => {
    const report = await reportOf({ 'trace_view.json': trace([0, 1, 2, 3, 4, 5, 6, 7]) });
    const finding = findingOf(report, 'op-recompile')!;
    expect(finding.severity).toBe('critical');
    expect(finding.saving!.perStepMs.likely! / report.job.stepTimeMs!).toBeGreaterThan(0.85);
  });
});

describe('A11: the same operator on the AI CPU and on one vector core (Ascend/pytorch#69)', () => {
  const COLUMNS = 'Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim';
  const SHAPES =
    'aiv_vec_ratio,aiv_mte2_ratio,aiv_mte3_ratio,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats';
  const table = (core: string): string => {
    const products = Array.from({ length: 4 }, (_, i) => [
      `MatMul_${i},MatMulV3,AI_CORE,${ts(i * 15_010)}\t,5000,0,24,0,0,0,"""4096,4096;4096,4096""",FLOAT;FLOAT,ND;ND,"""4096,4096""",FLOAT,ND`,
      `Mul_${i},Mul,AI_VECTOR_CORE,${ts(i * 15_010 + 5_001)}\t,5000,0,48,0.3,0.8,0.7,"""4096,4096;4096,4096""",FLOAT;FLOAT,ND;ND,"""4096,4096""",FLOAT,ND`,
      `Resize_${i},ResizeLinear,${core},${ts(i * 15_010 + 10_002)}\t,4700,0,1,0.2,0.1,0.1,"""1,518,9""",FLOAT,ND,"""1,518,2700""",FLOAT,ND`,
    ]).flat();
    return `${COLUMNS},${SHAPES}\n${products.join('\n')}\n`;
  };

  test.each([
    ['AI_CPU', 'aicpu-op', 'block-dim'],
    ['AI_VECTOR_CORE', 'block-dim', 'aicpu-op'],
  ])('%s: the core decides what is said, not the name', async (core, rule, other) => {
    const report = await reportOf({ 'kernel_details.csv': table(core) });
    expect(findingOf(report, rule), checkOf(report, rule).reason).toBeDefined();
    expect(findingOf(report, other)).toBeUndefined();
  });
});

test.each([
  ['A07', 'bench.txt', 'TTFT 76.51 ms\nTPOT 11.78 ms\n124.08 tok/s\n'],
  ['A13', 'bench.log', 'TTFT: 3.1 s\nTPOT: 2.67 ms\nNPU utilisation 40-60 %\n'],
  ['A14', 'throughput.csv', 'framework,tok/s\nvllm-ascend,567\nsglang,244\n'],
  ['A16', 'trainer.log', 'step:12 - timing_s/step:803.1 - timing_s/update_actor:791.4\n'],
  ['A17', 'trainer.log', 'step:94 - timing_s/step:43.64 - timing_s/gen:31.27\n'],
  ['A24', 'report.txt', 'TTFT 79.8\nTPOT 22.59\n'],
])('%s: figures of a whole run are no profile; what to upload instead, and no guess', async (_, name, text) => {
  await writeFile(join(dir, name), text);
  for (const lang of ['en', 'zh'] as const) {
    const error = await analysed(lang).then(
      () => null,
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(AdviseError);
    expect((error as AdviseError).hint).toMatch(/`\*_ascend_pt`.*ASCEND_PROFILER_OUTPUT/);
  }
});

describe('A16: gradients are reduced after each of M micro-batches (verl-project/verl#6010)', () => {
  /** One optimizer step of `micro` micro-batches, the last `reduced` of which end with a reduction of 3 ms that nothing covers. */
  function trace(micro: number, reduced: number): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(1, 'Python'), lane(2, 'CANN'), lane(3, 'Ascend Hardware'), lane(4, 'HCCL')];
    events.push({ ph: 'M', name: 'thread_name', pid: 4, tid: 0, args: { name: 'Group 0 Communication' } });
    let id = 0;
    const flow = (pid: number, tid: number, from: number, to: number): void => {
      const own = { name: `HostToDevice${++id}`, cat: 'HostToDevice', id: String(id) };
      events.push({ ph: 's', ...own, pid: 2, tid: 12, ts: ts(from) }, { ph: 'f', bp: 'e', ...own, pid, tid, ts: ts(to) });
    };
    const op = (name: string, at: number, dur: number, tid = 1): void => {
      events.push({ ph: 'X', name, pid: 1, tid, ts: ts(at), dur, cat: 'cpu_op', args: {} });
    };
    const period = micro * 13_000 + 2_000;
    for (let s = 0; s < 4; s++) {
      const step = 1_000 + s * period;
      events.push({ ph: 'X', name: `ProfilerStep#${s + 3}`, pid: 1, tid: 1, ts: ts(step), dur: period, cat: 'user_annotation', args: {} });
      for (let m = 0; m < micro; m++) {
        const at = step + m * 13_000;
        op('FullyShardedDataParallel.forward', at + 10, 3_000);
        op('autograd::engine::evaluate_function: AddmmBackward0', at + 3_100, 6_000, 2);
        for (let k = 0; k < 40; k++) {
          const from = at + 300 + k * 240;
          flow(3, 7, at + 20 + k * 200, from);
          events.push({ ph: 'X', name: `MatMulV2_${k}`, pid: 3, tid: 7, ts: ts(from), dur: 238, args: { 'Task Type': 'AI_CORE' } });
        }
        if (m < micro - reduced) continue;
        op('c10d::_reduce_scatter_base_', at + 8_000, 100, 2);
        flow(4, 0, at + 8_050, at + 9_950);
        events.push({
          ph: 'X',
          name: `hcom_reduceScatter__586_${s * micro + m}_1`,
          pid: 4,
          tid: 0,
          ts: ts(at + 9_950),
          dur: 3_000,
          args: {},
        });
      }
      op('Optimizer.step#AdamW.step', step + micro * 13_000 + 100, 1_000);
    }
    return JSON.stringify(events);
  }

  test('M, the count and the uncovered time, and what it costs to change it', async () => {
    const report = await reportOf({ 'trace_view.json': trace(4, 4) });
    const finding = findingOf(report, 'gradient-sync-per-microstep');
    expect(finding, checkOf(report, 'gradient-sync-per-microstep').reason).toBeDefined();
    expect(finding!.evidence.map((e) => e.text).join(' ')).toMatch(/\b4\b/);
    expect(finding!.recommendations[0]!.text).toMatch(/`no_sync\(\)`|`model\.no_sync\(\)`/);
    expect(finding!.recommendations[0]!.text).toMatch(
      /reduce-scattered: with FSDP they then stay unsharded .* need memory; with `fully_shard`/,
    );
  });

  test('one reduction for all micro-batches: none', async () => {
    const report = await reportOf({ 'trace_view.json': trace(4, 1) });
    expect(findingOf(report, 'gradient-sync-per-microstep')).toBeUndefined();
  });
});

describe('A27: the copy that waits is not what is slow (a small CNN, 25 ms on a GPU and 50 ms here)', () => {
  /** Kernels of 30 µs, launched every 120 µs; each pass ends with a copy to the host that waits for the last of them. */
  function trace(): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(1, 'Python'), lane(2, 'CANN'), lane(3, 'Ascend Hardware')];
    for (let s = 0; s < 5; s++) {
      const step = 1_000 + s * 26_000;
      events.push({ ph: 'X', name: `ProfilerStep#${s + 3}`, pid: 1, tid: 1, ts: ts(step), dur: 26_000, cat: 'user_annotation', args: {} });
      for (let k = 0; k < 200; k++) {
        const at = step + 100 + k * 120;
        const flow = { name: `HostToDevice${s}_${k}`, cat: 'HostToDevice', id: String(s * 1_000 + k + 1) };
        events.push({ ph: 'X', name: 'aten::conv2d', pid: 1, tid: 1, ts: ts(at), dur: 110, cat: 'cpu_op', args: {} });
        events.push(
          { ph: 's', ...flow, pid: 2, tid: 12, ts: ts(at + 100) },
          { ph: 'f', bp: 'e', ...flow, pid: 3, tid: 7, ts: ts(at + 115) },
        );
        events.push({ ph: 'X', name: `Conv2D_${k}`, pid: 3, tid: 7, ts: ts(at + 115), dur: 30, args: { 'Task Type': 'AI_CORE' } });
      }
      events.push({ ph: 'X', name: 'aten::_to_copy', pid: 1, tid: 1, ts: ts(step + 24_110), dur: 300, cat: 'cpu_op', args: {} });
      events.push({ ph: 'X', name: 'AscendCL@aclrtMemcpy', pid: 2, tid: 1, ts: ts(step + 24_120), dur: 280, args: {} });
    }
    return JSON.stringify(events);
  }

  test('launches are the cause, by far; the copy is none', async () => {
    const report = await reportOf({ 'trace_view.json': trace() });
    const finding = report.findings.find((f) => ['host-bound-launch', 'small-op-fragmentation'].includes(f.rule))!;
    expect(finding.severity).toBe('critical');
    expect(report.findings.filter((f) => ['stream-sync', 'h2d-copy'].includes(f.rule) && f.severity !== 'info')).toEqual([]);
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

/* Captures without step marks: forward passes and phases. What is expected is what the events below were made of. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { analyse } from '../../src/engine/analyse.ts';
import { passSummaries } from '../../src/facts/job/segments.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { findCaptures, readRank } from '../../src/importers/index.ts';
import type { RankFacts, SegmentFacts } from '../../src/model/facts.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { Report } from '../../src/model/report.ts';
import { openSource } from '../../src/sources/index.ts';
import { ORIGIN, traceEvents, ts } from '../support/profile-text.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-segments-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

async function write(files: Readonly<Record<string, string>>): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), content);
  }
  return dir;
}

async function factsOf(files: Readonly<Record<string, string>>): Promise<RankFacts> {
  const source = await openSource(await write(files));
  const { folders } = await findCaptures(source.entries);
  expect(folders).toHaveLength(1);
  return rankFacts(await readRank(folders[0]!, () => {}));
}

async function reportOf(lang: 'en' | 'zh' = 'en'): Promise<Report> {
  const source = await openSource(dir);
  const options = { lang, thresholds: {}, disabledRules: [], gate: null };
  return Report.parse(await analyse({ sources: [source], options, source: null }));
}

const forwards = (facts: RankFacts): SegmentFacts[] => facts.segments.filter((s) => s.unit === 'forward');
const kinds = (facts: RankFacts): (string | null)[] => forwards(facts).map((s) => s.kind);
const spans = (facts: RankFacts): number[][] => forwards(facts).map((s) => [s.start / 1000, s.end / 1000]);

const process = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
const HEAD = [process(1, 'Python'), process(2, 'CANN'), process(3, 'Ascend Hardware')];
let id = 0;
/** A kernel with its launch, µs. */
function kernel(name: string, launch: number, start: number, duration: number): object[] {
  const flow = { name: `HostToDevice${++id}`, cat: 'HostToDevice', id: String(id) };
  return [
    { ph: 's', ...flow, pid: 2, tid: 12, ts: ts(launch) },
    { ph: 'f', bp: 'e', ...flow, pid: 3, tid: 7, ts: ts(start) },
    { ph: 'X', name, pid: 3, tid: 7, ts: ts(start), dur: duration, args: { 'Task Type': 'AI_CORE', connection_id: id } },
  ];
}
const range = (name: string, at: number, dur: number, cat = 'cpu_op'): object => {
  return { ph: 'X', name, pid: 1, tid: 11, ts: ts(at), dur, cat, args: {} };
};
const replay = (at: number): object => ({ ph: 'X', name: 'AscendCL@aclmdlRIExecuteAsync', pid: 2, tid: 12, ts: ts(at), dur: 20, args: {} });
/** The first event fixes the zero. */
const ZERO = range('aten::empty', 0, 1);
const traceOf = (events: readonly object[]): Record<string, string> => ({
  'a_ascend_pt/profiler_info_0.json': JSON.stringify({ rank_id: 0 }),
  'a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': JSON.stringify([...HEAD, ZERO, ...events]),
});

describe('annotations', () => {
  /** A prefill of 5 ms, then decodes of 1 ms every 1.5 ms, launched 100 µs ahead. */
  const passes = [
    { name: 'execute_context_1(512)_generation_0(0)', at: 1_000, dur: 5_000 },
    ...Array.from({ length: 6 }, (_, i) => ({ name: 'execute_context_0(0)_generation_3(3)', at: 7_000 + i * 1_500, dur: 1_000 })),
  ];
  const events = (cat?: string): object[] =>
    passes.flatMap(({ name, at, dur }) => [
      range(name, at - 200, 400, cat),
      ...kernel('GatherV2', at - 100, at, dur / 2),
      ...kernel('MatMulV2', at - 90, at + dur / 2 + 10, dur / 2 - 10),
    ]);

  test('each is a pass from its first to its last kernel, and says what it is', async () => {
    const facts = await factsOf(traceOf(events()));
    expect(kinds(facts)).toEqual(['prefill', ...Array(6).fill('decode')]);
    expect(spans(facts)).toEqual(passes.map((p) => [p.at, p.at + p.dur]));
    expect(forwards(facts)[0]).toMatchObject({ basis: 'annotation', busy: 4_990_000 });
  });

  test('the report says so: no step marks, and a median for each kind, in both languages', async () => {
    await write(traceOf(events()));
    const found = await reportOf();
    expect(found.job.stepBasis).toMatch(/device span.*no step marks.*; it holds 7 forward passes/);
    // Contract: without step marks the step time is the device span.
    expect(found.job.stepTimeMs).toBeCloseTo(14.5, 6);
    expect(found.job.steps).toEqual([]);
    const notes = found.notes.filter((n) => /^Forward pass/.test(n));
    expect(notes).toHaveLength(2);
    expect(notes[0]).toMatch(/^Forward pass \(decode\): 1\.0\sms, median of 6, one every 1\.5\sms; the device is busy for 99\s% of it\./);
    expect(notes[1]).toMatch(/^Forward pass \(prefill\): 5\.0\sms, median of 1; /);
    const zh = await reportOf('zh');
    expect(zh.notes.filter((n) => /^前向/.test(n))).toHaveLength(2);
    expect(zh.job.stepBasis).toMatch(/其中有 7 次前向/);
  });

  test('facts.json keeps them', async () => {
    const facts = await factsOf(traceOf(events()));
    expect(factsFromJson(factsToJson([facts]))[0]!.segments).toEqual(facts.segments);
  });

  test.each([
    ['the category of a user', 'user_annotation', passes[0]!.name, 'prefill'],
    ['prefill and decode in one batch', undefined, 'execute_context_2(9)_generation_3(3)', 'mixed'],
    ['older vLLM', undefined, 'execute_new_0_cached_4', 'decode'],
    ['SGLang', undefined, 'step[EXTEND bs=1 toks=512]', 'prefill'],
    ['SGLang, decode', undefined, 'step[DECODE bs=8 toks=8]', 'decode'],
    ['one that does not tell', undefined, 'execute_model', null],
  ])('%s', async (_, cat, name, kind) => {
    const facts = await factsOf(
      traceOf([range(name, 900, 500, cat), ...kernel('MatMulV2', 950, 1_000, 300), ...kernel('Softmax', 960, 1_400, 300)]),
    );
    expect(kinds(facts)).toEqual([kind]);
  });

  test('with step marks there are steps, not passes', async () => {
    const facts = await factsOf(traceOf([range('ProfilerStep#3', 500, 20_000), ...events()]));
    expect(facts.segments).toEqual([]);
    expect(facts.steps).toHaveLength(1);
  });
});

describe('graph replays', () => {
  const decode = (at: number, kernels = 20): object[] =>
    Array.from({ length: kernels }, (_, k) => kernel(k === 0 ? 'GatherV2' : 'MatMulV2', Number.NaN, at + k * 40, 30))
      .flat()
      .filter((e) => (e as { ph: string }).ph === 'X');

  test('one replay is one pass', async () => {
    const at = [1_000, 3_000, 5_000, 7_000];
    const facts = await factsOf(traceOf(at.flatMap((t) => [replay(t - 50), ...decode(t)])));
    expect(forwards(facts)[0]!.basis).toBe('graph-replay');
    expect(spans(facts)).toEqual(at.map((t) => [t, t + 790]));
    expect(passSummaries([facts])).toMatchObject([{ kind: null, count: 4, durationMs: 0.79, distanceMs: 2 }]);
  });

  test('a graph cut at every layer: one run of replays is one pass', async () => {
    const pass = (t: number): object[] => Array.from({ length: 12 }, (_, l) => [replay(t + l * 90 - 20), ...decode(t + l * 90, 2)]).flat();
    const facts = await factsOf(traceOf([1_000, 4_000, 7_000].flatMap(pass)));
    expect(spans(facts)).toEqual([1_000, 4_000, 7_000].map((t) => [t, t + 11 * 90 + 70]));
  });

  test('uneven runs are no cut graph: each replay counts', async () => {
    const at = [1_000, 2_000, 3_000, 12_000, 13_000, 14_000, 15_000, 16_000];
    expect(forwards(await factsOf(traceOf(at.flatMap((t) => [replay(t - 50), ...decode(t)]))))).toHaveLength(8);
  });

  test('attention operators tell the kind', async () => {
    const attention = (name: string, t: number): object => kernel(name, Number.NaN, t + 900, 30).at(-1)!;
    const at = [1_000, 3_000, 5_000];
    const facts = await factsOf(
      traceOf(at.flatMap((t, i) => [replay(t - 50), ...decode(t), attention(i === 0 ? 'FlashAttentionScore' : 'IncreFlashAttention', t)])),
    );
    expect(kinds(facts)).toEqual(['prefill', 'decode', 'decode']);
  });
});

describe('kernels that repeat', () => {
  const HEADER = 'Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes';
  /** A pass of 8 layers: embedding, layers, head, sampler. `tokens` are the rows of the products, `scale` the duration of a kernel. */
  function pass(at: number, tokens: number, scale: number): string[] {
    const rows: string[] = [];
    let t = at;
    const row = (type: string, shape: string): void => {
      rows.push(`${type}_1,${type},AI_CORE,${(ORIGIN + t).toString()}.000\t,${scale},0,"""${shape}"""`);
      t += scale + 5;
    };
    row('GatherV2', `32000,64;${tokens}`);
    for (let layer = 0; layer < 8; layer++) {
      row('RmsNorm', `${tokens},64;64`);
      row('MatMulV2', `${tokens},64;64,192`);
      row('FusedInferAttentionScore', `${tokens},192`);
      row('MatMulV2', `${tokens},64;64,64`);
      row('SwiGlu', `${tokens},128`);
    }
    row('MatMulV3', `${tokens},64;64,32000`);
    row('ArgMaxWithValue', `${tokens},32000`);
    return rows;
  }
  /** 43 kernels of `scale` µs, 5 µs apart. */
  const length = (scale: number): number => 43 * scale + 42 * 5;

  const table = (rows: readonly string[]): Record<string, string> => ({ 'a/kernel_details.csv': `${HEADER}\n${rows.join('\n')}\n` });

  test('stretches between operators that run once a pass; shapes tell prefill from decode', async () => {
    const starts = [0, 10_000, 20_000, 30_000, 33_000, 36_000, 39_000];
    const facts = await factsOf(table(starts.flatMap((t, i) => pass(t, i === 0 || i === 2 ? 512 : 4, i === 0 || i === 2 ? 100 : 20))));
    expect(forwards(facts)[0]!.basis).toBe('layer-pattern');
    expect(kinds(facts)).toEqual(['prefill', 'decode', 'prefill', 'decode', 'decode', 'decode', 'decode']);
    expect(spans(facts)).toEqual(starts.map((t, i) => [t, t + length(i === 0 || i === 2 ? 100 : 20)]));
    const [decode, prefill] = passSummaries([facts]);
    expect(decode).toMatchObject({ kind: 'decode', count: 5, durationMs: length(20) / 1000, distanceMs: 3 });
    expect(prefill).toMatchObject({ kind: 'prefill', count: 2, durationMs: length(100) / 1000 });
  });

  test('one kind only: passes, and nobody knows which kind', async () => {
    const facts = await factsOf(table(Array.from({ length: 5 }, (_, i) => pass(i * 3_000, 4, 20 + i)).flat()));
    expect(kinds(facts)).toEqual(Array(5).fill(null));
  });

  test('quiet: a training run without marks, a few kernels, kernels without a pattern', async () => {
    const training = Array.from({ length: 5 }, (_, i) => pass(i * 3_000, 4, 20)).flat();
    const grad = `${ORIGIN + 100_000}.000`;
    expect((await factsOf(table([...training, `SoftmaxGrad_1,SoftmaxGrad,AI_CORE,${grad},20,0,"""4,4"""`]))).segments).toEqual([]);
    expect((await factsOf(table(pass(0, 4, 20)))).segments).toEqual([]);
    const mixed = Array.from({ length: 200 }, (_, i) => {
      const type = `Op${(i * i * 7 + i * 13) % 23}`;
      return `${type},${type},AI_CORE,${ORIGIN + i * 50}.000,${10 + (i % 7)},0,"""4,4"""`;
    });
    expect((await factsOf(table(mixed))).segments).toEqual([]);
  });
});

describe('parts of a larger program', () => {
  test.each([
    ['actor_update/h_1_20260101120000000_ascend_pt', 'update'],
    ['x_rollout_0/h_1_20260101120000000_ascend_pt', 'rollout'],
    ['ref_compute_log_prob/h_1_20260101120000000_ascend_pt', 'reference'],
    ['e2e/reward/h_1_20260101120000000_ascend_pt', 'reward'],
    ['preface/h_ref_1_20260101120000000_ascend_pt', null],
  ])('%s is %s', async (folder, kind) => {
    const files = {
      [`${folder}/profiler_info_0.json`]: JSON.stringify({ rank_id: 0 }),
      [`${folder}/ASCEND_PROFILER_OUTPUT/trace_view.json`]: JSON.stringify(traceEvents({ steps: 2 })),
    };
    const phases = (await factsOf(files)).segments;
    if (kind === null) expect(phases).toEqual([]);
    else {
      expect(phases).toMatchObject([{ unit: 'phase', kind, basis: 'folder' }]);
      const { notes } = await reportOf();
      expect(notes.filter((n) => /one part of a larger program/.test(n))).toHaveLength(1);
    }
  });
});

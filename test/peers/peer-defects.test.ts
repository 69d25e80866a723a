/*
 * What other analysers of Ascend profiles get wrong, by number. Each test is an input on which they answer falsely or fall silent. The
 * tables are written by hand, so that what they mean is known before.
 */
import { describe, expect, test } from 'vitest';
import { createInterner } from '../../src/base/interner.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { createOrigin } from '../../src/importers/ascend-text/origin.ts';
import { readTrace } from '../../src/importers/ascend-text/read-trace.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import type { Report } from '../../src/model/report.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { buildReport } from '../../src/report/build.ts';
import { RULES } from '../../src/rules/index.ts';
import { adviceOf } from '../remedies/situations.ts';
import { communication, factsFrom, stepTimes } from '../support/communication-files.ts';
import { cube, factsOfTables, filler, type KernelRow, kernelTable, vector } from '../support/kernel-table.ts';
import { entryOf, readOnly, STEP_HEADER, ts } from '../support/profile-text.ts';
import { checkOf, findingOf, reportOf } from '../support/simulated.ts';

const OUT = 'ASCEND_PROFILER_OUTPUT';
const plain = (text: string): string => text.replaceAll(/[\u00a0\u202f]/g, ' ');
const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
const LANES = [lane(1, 'Python'), lane(2, 'CANN'), lane(3, 'Ascend Hardware'), lane(4, 'HCCL')];

/** A range of the training thread. µs. */
const host = (name: string, at: number, us: number, tid = 11, cat = 'cpu_op'): object => ({
  ph: 'X',
  name,
  pid: 1,
  tid,
  ts: ts(at),
  dur: us,
  cat,
  args: {},
});

/** A kernel, with the call that launched it. */
function kernel(id: number, launch: number, at: number, us: number): object[] {
  const flow = { name: `HostToDevice${id}`, cat: 'HostToDevice', id: String(id) };
  return [
    { ph: 's', ...flow, pid: 2, tid: 12, ts: ts(launch) },
    { ph: 'f', bp: 'e', ...flow, pid: 3, tid: 7, ts: ts(at) },
    { ph: 'X', name: `aclnnMatmul_MatMulV2_${id}`, pid: 3, tid: 7, ts: ts(at), dur: us, args: { 'Task Type': 'AI_CORE' } },
  ];
}

const FETCH = 'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__';

/** Steps that begin with a fetch; work for the card is launched right after it, or before the last step ended. */
function fetching(stepUs: number, fetchUs: number, more: (at: number) => object[] = () => [], starved = true): string {
  const events: object[] = [...LANES];
  for (let s = 0; s < 5; s++) {
    const at = 1_000 + s * stepUs;
    events.push(host(`ProfilerStep#${s + 3}`, at, stepUs, 11, 'user_annotation'), host(FETCH, at, fetchUs), ...more(at));
    const first = starved ? at + fetchUs + 50 : at + 1;
    const parts = 20;
    const each = (stepUs - (first - at)) / parts;
    for (let k = 0; k < parts; k++)
      events.push(...kernel(s * 100 + k + 1, starved ? first + k : Math.max(0, at - 900 + k), first + 20 + k * each, each - 1));
  }
  return JSON.stringify(events);
}
const loaderOf = async (trace: string): Promise<Report> => reportOf([await factsOfTables({ 'trace_view.json': trace })]);

describe('peer defect 1: data loader threshold of 10 ms, frames told by a part of their name', () => {
  test.each([
    ['4 ms of a step of 40 ms are a tenth of it', 40_000, 4_000, 'finding'],
    ['12 ms of a step of 10 s are not worth a word', 10_000_000, 12_000, 'pass'],
  ])('%s', async (_, step, fetch, outcome) => {
    expect(checkOf(await loaderOf(fetching(step, fetch)), 'dataloader-stall').outcome).toBe(outcome);
  });

  test('frames that only carry the word, and frames inside the fetch, count nothing', async () => {
    const nested = (at: number): object[] => [
      host('torch/utils/data/dataloader.py(630): __next__', at + 1, 3_998, 11, 'python_function'),
      host('enumerate(DataLoader)#inner.__next__', at + 2, 3_000),
      host('my_dataloader_stats.py(7): DataLoaderReport.__next__', at + 5_000, 30_000, 11, 'python_function'),
    ];
    const [bare, with_] = [await loaderOf(fetching(40_000, 4_000)), await loaderOf(fetching(40_000, 4_000, nested))];
    const ms = (report: Report): number => findingOf(report, 'dataloader-stall')!.saving!.perStepMs.ceiling;
    expect(ms(with_)).toBeCloseTo(ms(bare), 2);
    expect(ms(bare)).toBeCloseTo(4, 0);
  });

  test('a fetch of 12 ms behind work that the card still has costs nothing', async () => {
    expect(checkOf(await loaderOf(fetching(40_000, 12_000, undefined, false)), 'dataloader-stall').outcome).toBe('pass');
  });
});

const onCpu = (type: string, types: string): KernelRow => ({
  type,
  us: 5_000,
  core: 'AI_CPU',
  blocks: 1,
  inShapes: '1024,1024;1024,1024',
  inTypes: `${types};${types}`,
  outShapes: '1024,1024',
  outTypes: types,
});

describe('peer defect 2: rules of data types on the AI CPU that no default CANN version has', () => {
  test.each([null, '8.0.0', '7.0.RC1', '8.5.0', 'unheard-of'])('CANN %s: the same finding, the same advice', async (cann) => {
    const facts = await factsOfTables({ 'kernel_details.csv': kernelTable([filler(10_000), onCpu('Mul', 'INT16'), filler(10_000)]) });
    const finding = findingOf(reportOf([{ ...facts, settings: { ...facts.settings, cann } }]), 'aicpu-op')!;
    expect(finding.title).toMatch(/AI CPU take .* of the step: `Mul`/);
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(5, 1);
    expect(adviceOf('avoid-aicpu', { params: { ops: 'Mul', dtypes: 'INT16', cann } })!.text.en).toMatch(/use `torch\.int32`/);
  });

  test('a long kernel elsewhere does not make a short one on the AI CPU a finding', async () => {
    const rows = [filler(200_000), { ...onCpu('Cast', 'INT64'), us: 30 }, filler(10_000)];
    expect(checkOf(reportOf([await factsOfTables({ 'kernel_details.csv': kernelTable(rows) })]), 'aicpu-op').outcome).toBe('pass');
  });
});

test('peer defect 3: HCCL_RDMA_TC has its text under its own name', () => {
  const advice = adviceOf('set-environment', { params: { kind: 'symptom', name: 'HCCL_RDMA_TC' } })!;
  expect(advice.text.en).toMatch(/`HCCL_RDMA_TC` is a multiple of 4/);
  expect(JSON.stringify(advice)).not.toMatch(/RDAM/);
});

const product = (counters: Record<string, number | string>): KernelRow => ({
  type: 'MatMulV3',
  core: 'AI_CORE',
  us: 120,
  blocks: 24,
  inShapes: '4096,7168;7168,1531',
  inTypes: 'DT_BF16;DT_BF16',
  outShapes: '4096,1531',
  outTypes: 'DT_BF16',
  more: counters,
});
const products = async (...rows: KernelRow[]): Promise<Report> =>
  reportOf([
    await factsOfTables({
      'kernel_details.csv': kernelTable([...rows, filler(10_000), ...Array.from({ length: 20 }, () => product(cube(0.31, 0.42)))]),
    }),
  ]);

test('peer defect 4: a cube that is busy for 0.8 to 0.95 of the time is held against its own limit', async () => {
  const busy = Array.from({ length: 200 }, () => product(cube(0.85, 0.3)));
  const report = reportOf([await factsOfTables({ 'kernel_details.csv': kernelTable([filler(10_000), ...busy]) })]);
  expect(checkOf(report, 'cube-utilisation').outcome).toBe('pass');
});

test('peer defect 5: a first row without counters decides nothing', async () => {
  const missing = Object.fromEntries(Object.keys(cube(0, 0)).map((c) => [c, 'N/A']));
  expect(findingOf(await products({ ...filler(10), more: missing }), 'cube-utilisation')).toBeDefined();
});

interface Job {
  /** Kernel time of each rank as a multiple of 400 µs. */
  readonly factors: readonly number[];
  readonly steps?: number;
  readonly stages?: boolean;
  /** Wait Time of communication.json, ms by rank. */
  readonly wait?: (rank: number) => number;
}

/** Every step: 20 kernels that were all launched at its start, then an all-reduce of 1 ms after the last rank has come. */
function job({ factors, steps = 4, stages = false, wait }: Job): Promise<RankFacts[]> {
  const files: Record<string, string> = {};
  const slowest = Math.max(...factors) * 400 * 20;
  const stepUs = slowest + 2_000;
  factors.forEach((factor, r) => {
    const events: object[] = [...LANES, { ph: 'M', name: 'thread_name', pid: 4, tid: 0, args: { name: 'Group 0 Communication' } }];
    const rows: string[] = ['Step Id,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Input Shapes'];
    const table = [STEP_HEADER];
    const calls: Parameters<typeof communication>[0][number][] = [];
    for (let s = 0; s < steps; s++) {
      const at = 1_000 + s * stepUs;
      events.push(host(`ProfilerStep#${s + 5}`, at, stepUs, 11, 'user_annotation'), host('aten::mm', at + 5, 100));
      const us = 400 * factor;
      for (let k = 0; k < 20; k++) {
        const start = at + 500 + k * us;
        events.push(...kernel(s * 100 + k + 1, at + 10 + k, start, us - 0.5));
        rows.push(
          `${s + 5},aclnnMatmul_MatMulV2_${s * 100 + k + 1},MatMulV2,static,AI_CORE,${ts(start)}\t,${us - 0.5},0.5,16,"""${stages && r >= factors.length / 2 ? 2048 : 1024},64;64,8"""`,
        );
      }
      const [come, end] = [at + 500 + 20 * us, at + 500 + slowest + 1_000];
      const name = `hcom_allReduce__586_${s}_1`;
      // The host reads a value at the end of the step.
      events.push({ ph: 'X', name: 'AscendCL@aclrtSynchronizeStream', pid: 2, tid: 11, ts: ts(at + 60), dur: end - at - 60, args: {} });
      table.push(`${s + 5},${[20 * us, end - come, 0, end - come, 0, end - at - 500, 0, end - come, 500].join(',')}`);
      const flow = { name: `HostToDevice${s}c`, cat: 'HostToDevice', id: String(s * 100 + 99) };
      events.push({ ph: 's', ...flow, pid: 2, tid: 12, ts: ts(at + 40) }, { ph: 'f', bp: 'e', ...flow, pid: 4, tid: 0, ts: ts(come) });
      events.push({ ph: 'X', name, pid: 4, tid: 0, ts: ts(come), dur: end - come, args: { connection_id: s * 100 + 99 } });
      rows.push(`${s + 5},${name},hcom_allReduce_,N/A,HCCL,${ts(come)}\t,${end - come},0,N/A,N/A`);
      calls.push({ name, group: '111586', at: come, ms: (end - come) / 1000, moved: {} });
    }
    const folder = `rank${r}_ascend_pt`;
    const ranks = factors.map((_, i) => i);
    const half = factors.length / 2;
    const pipeline = Object.fromEntries(
      ranks.slice(0, half).map((i) => [`pp${i}`, { group_name: 'pp', group_rank: 0, global_ranks: [i, i + half] }]),
    );
    files[`${folder}/profiler_info_${r}.json`] = JSON.stringify({ rank_id: r });
    files[`${folder}/profiler_metadata.json`] = JSON.stringify({
      distributed_args: { world_size: factors.length },
      parallel_group_info: stages ? pipeline : {},
    });
    files[`${folder}/${OUT}/trace_view.json`] = JSON.stringify(events);
    files[`${folder}/${OUT}/kernel_details.csv`] = `${rows.join('\n')}\n`;
    files[`${folder}/${OUT}/step_trace_time.csv`] = `${table.join('\n')}\n`;
    if (wait !== undefined) {
      const told = JSON.parse(communication(calls)) as Record<
        string,
        { collective: Record<string, Record<string, Record<string, number>>> }
      >;
      for (const op of Object.values(told.step5!.collective))
        Object.assign(op['Communication Time Info']!, {
          'Wait Time(ms)': wait(r),
          'Synchronization Time(ms)': wait(r),
          'Transit Time(ms)': 1,
        });
      files[`${folder}/${OUT}/communication.json`] = JSON.stringify(told);
    }
  });
  return factsFrom(files);
}

describe('peer defect 6: tests for outliers that cannot speak on few ranks or few samples', () => {
  test.each([
    [2, [1.3, 1]],
    [3, [1, 1, 1.3]],
    [4, [1, 1.3, 1, 1]],
  ])('%i ranks, one of which is 30 %% slower: it is named', async (_, factors) => {
    expect(findingOf(reportOf(await job({ factors })), 'slow-rank')!.ranks).toEqual([factors.indexOf(1.3)]);
  });

  test('one step is enough to name it', async () => {
    expect(findingOf(reportOf(await job({ factors: [1, 1, 1.3], steps: 1 })), 'slow-rank')!.ranks).toEqual([2]);
  });

  test('ranks that are alike: none', async () => {
    expect(checkOf(reportOf(await job({ factors: [1, 1.01, 1] })), 'slow-rank').outcome).toBe('pass');
  });
});

describe('peer defect 7: fusible sequences whose windows overlap are counted again and again', () => {
  const link = (type: string): KernelRow => ({
    type,
    us: 60,
    blocks: 40,
    inShapes: '4096,8192;4096,8192',
    inTypes: 'DT_BF16;DT_BF16',
    outShapes: '4096,8192',
    outTypes: 'DT_BF16',
    more: vector(0.2, 0.7, 0.7),
  });
  // Windows of three begin at each kernel: Mul Add Exp, Add Exp Mul, Exp Mul Add.
  const rows = Array.from({ length: 42 }, (_, i) => link(['Mul', 'Add', 'Exp'][i % 3]!));

  test('each kernel is in one sequence at most, and none claims more than its kernels take', async () => {
    const facts = await factsOfTables({
      'kernel_details.csv': kernelTable([filler(1_000), ...rows, filler(1_000), ...rows, filler(1_000)]),
    });
    const { sequences } = facts.fusion!;
    expect(sequences.length).toBeGreaterThan(0);
    const nodes = sequences.flatMap((s) => [...s.nodes]);
    expect(new Set(nodes).size).toBe(nodes.length);
    expect(sequences.reduce((sum, s) => sum + s.ns, 0)).toBeLessThanOrEqual(2 * 42 * 60_000);
    for (const f of reportOf([facts]).findings) expect(f.saving?.perStepMs.ceiling ?? 0).toBeLessThanOrEqual(2 * 42 * 0.06);
  });
});

describe('peer defect 8: a sentence on slow ranks that names none, and pipeline stages mixed', () => {
  test('the rank is in the title, in the evidence and in `ranks`', async () => {
    const finding = findingOf(reportOf(await job({ factors: [1, 1, 1.3, 1] })), 'slow-rank')!;
    expect(finding.title).toMatch(/[Rr]ank 2\b/);
    for (const { text } of finding.evidence) expect(text).toMatch(/^rank 2\b/);
    expect(finding.ranks).toEqual([2]);
  });

  test('a stage with more layers is no slow rank', async () => {
    const report = reportOf(await job({ factors: [1, 1, 1.5, 1.5], stages: true }));
    expect(findingOf(report, 'slow-rank')).toBeUndefined();
    expect(findingOf(report, 'stage-imbalance')!.ranks).toEqual([2, 3]);
  });

  test('step tables alone: ranks that are late together are not reduced to one of them', async () => {
    const table = (r: number, computing: number, exposed: number): Record<string, string> => ({
      [`rank${r}_ascend_pt/profiler_info_${r}.json`]: JSON.stringify({ rank_id: r }),
      [`rank${r}_ascend_pt/${OUT}/step_trace_time.csv`]: stepTimes(computing, exposed, 140),
    });
    const said = async (...busy: number[]): Promise<string> =>
      plain(reportOf(await factsFrom(Object.assign({}, ...busy.map((ms, r) => table(r, ms, 650 - ms))))).notes.join(' '));
    expect(await said(231, 230, 400, 401)).toMatch(/Ranks 2, 3 are busy longer .* no slow card: unequal pipeline stages/);
    expect(await said(231, 230, 232, 401)).toMatch(/Rank 3 is late/);
  });
});

test('peer defect 9: the Wait Time of communication.json is not what names a rank', async () => {
  const say = async (wait: (rank: number) => number): Promise<unknown> =>
    reportOf(await job({ factors: [1, 1, 1.3], wait })).findings.map((f) => [f.rule, f.ranks, f.title, f.saving]);
  const truth = await say(() => 0);
  // Rank 2 comes last. As if it had waited longest, and as if nobody had waited but rank 1.
  expect(await say((r) => (r === 2 ? 500 : 0))).toEqual(truth);
  expect(await say((r) => (r === 1 ? 2.4 : 0))).toEqual(truth);
  expect(JSON.stringify(truth)).toMatch(/slow-rank",\[2\]/);
});

describe('peer defect 10: Level0 writes N/A for the type, and rules on types pass in silence', () => {
  const RULES_ON_TYPES = RULES.filter((r) => r.needs.some((n) => ['kernel-types', 'kernel-cores', 'pipes', 'formats'].includes(n)));

  test('each of them is not applicable, or says that it goes by the names', async () => {
    const rows = Array.from({ length: 60 }, (_, i) => `${ts(100 + i * 210)}\t,200.5`);
    const table = [
      'Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)',
      ...rows.map((r, i) => `aclnnMul_MulAiCore_Mul${i},N/A,N/A,${r},0`),
    ];
    const report = reportOf([await factsOfTables({ 'kernel_details.csv': `${table.join('\n')}\n` })]);
    expect(RULES_ON_TYPES.length).toBeGreaterThan(8);
    // One of them reads the names in place of the types, and says so.
    const said = RULES_ON_TYPES.map(({ id }) => checkOf(report, id)).map(({ outcome, reason }) =>
      outcome === 'pass' ? reason.includes('by their names, as Level0 has no operator types') : outcome === 'notApplicable',
    );
    expect(said).toEqual(RULES_ON_TYPES.map(() => true));
    expect(report.verdict.outcome).toBe('incomplete');
  });
});

describe('peer defect 11: columns that were renamed or left out', () => {
  test.each(['Block Dim', 'Block Num'] as const)('%s', async (column) => {
    const facts = await factsOfTables({ 'kernel_details.csv': kernelTable([filler(100)], column) });
    expect(facts.kernels!.groups[0]!.blocks).toBe(24);
  });

  test.each(['HCCL', 'COMMUNICATION'])('core %s is communication; a step table without Device_id and Preparing is read', async (core) => {
    const rows = `Name,Type,Accelerator Core,Start Time(us),Duration(us)\nhcom_x,hcom_x,${core},"${ts(0)}\t",500\nMul_1,Mul,AI_VECTOR_CORE,${ts(900)}\t,100\n`;
    const steps = 'Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n5,100,500,0,500,400,1000,0\n';
    const facts = await factsOfTables({ 'kernel_details.csv': rows, 'step_trace_time.csv': steps });
    expect(facts.operators.map((o) => o.type)).toEqual(['Mul']);
    expect(facts.steps[0]!.breakdown).toMatchObject({ computingMs: 0.1, exposedMs: 0.5, freeMs: 0.4 });
  });
});

describe('peer defect 12: a rule that throws leaves an empty result, which looks clean', () => {
  const build = async (failed: readonly string[]): Promise<Report> =>
    buildReport({
      job: jobFacts(await job({ factors: [1, 1] })),
      outcomes: RULES.map((rule) => ({
        rule,
        detection: failed.includes(rule.id)
          ? { outcome: 'error' as const, reason: 'boom' }
          : { outcome: 'pass' as const, reason: { text: { en: 'fine', zh: '正常' } } },
      })),
      inputs: [],
      notes: [],
      lang: 'en',
      version: '0',
      advise: () => [],
    });

  test('the verdict says that a check failed, the report shows which', async () => {
    expect((await build([])).verdict.text).toMatch(/^Nothing to change/);
    const report = await build(['aicpu-op']);
    expect(report.verdict).toMatchObject({
      outcome: 'incomplete',
      text: expect.stringMatching(/^A check ended with an error \(`aicpu-op`\)/),
    });
    expect(checkOf(report, 'aicpu-op')).toMatchObject({ outcome: 'error', reason: 'boom' });
    expect(renderMarkdown(report)).toMatch(/aicpu-op/);
  });
});

describe('peer defect 13: time stamps as text, absolute and in ns, and JSON that is none', () => {
  const event = (name: string, at: string | number): string =>
    JSON.stringify({ ph: 'X', name, pid: 3, tid: 7, ts: at, dur: 1, args: { 'Task Type': 'AI_CORE' } });
  const head = `[${JSON.stringify(lane(3, 'Ascend Hardware'))},`;
  const body = `${event('a', '1736413971558972.912')},${event('b', '1736413971558973.913')}`;

  test.each<[string, string, boolean]>([
    ['whole', `${head}${body}]`, false],
    ['without the last bracket', `${head}${body}`, true],
    ['a comma at the end', `${head}${body},`, true],
    ['a comma before the bracket', `${head}${body},]`, false],
    ['a comma too many', `${head}${body.replace('},{', '},,{')}]`, false],
    ['cut inside an event', `${head}${body},{"ph":"X","name":"c","pid":3,"ti`, true],
    ['inside an object', `{"traceEvents":${head}${body}],"other":1}`, false],
  ])('%s: two kernels 1.001 µs apart', async (_, text, truncated) => {
    const { tables } = await readTrace([entryOf('trace_view.json', text).open()], createOrigin(), createInterner());
    expect(tables.device.start.length).toBe(2);
    expect(tables.device.start[1]! - tables.device.start[0]!).toBe(1_001);
    expect(tables.truncated).toBe(truncated);
  });

  test('numbers in place of text are read to a quarter of a µs, which is all they hold', async () => {
    const text = `${head}${event('a', 1_736_413_971_558_973)},${event('b', 1_736_413_971_558_974)}]`;
    const facts = rankFacts(await readOnly({ [`r_ascend_pt/${OUT}/trace_view.json`]: text }));
    expect(Math.abs(facts.tape!.start[1]! - facts.tape!.start[0]! - 1_000)).toBeLessThanOrEqual(250);
  });
});

/* Parts of a capture, as people upload them: no rank is blamed that the data do not convict, nothing that is missing passes for fine, and what to do is said. */
import { describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse } from '../../src/engine/analyse.ts';
import type { Report } from '../../src/model/report.ts';
import type { ProfileSource } from '../../src/sources/source.ts';
import { entryOf, kernelDetails, STEP_HEADER, trace, traceEvents, ts } from '../support/profile-text.ts';
import { checkOf, findingOf } from '../support/simulated.ts';

type Files = Readonly<Record<string, string>>;
const OUT = 'ASCEND_PROFILER_OUTPUT';
const plain = (text: string): string => text.replaceAll(/[\u00a0\u202f]/g, ' ');

async function report(files: Files): Promise<Report> {
  const entries = Object.entries(files).map(([path, content]) => entryOf(path, content));
  const source: ProfileSource = { label: 'upload', kind: 'folder', entries, refused: [], close: async () => {} };
  return analyse({ sources: [source], options: { lang: 'en', thresholds: {}, disabledRules: [], gate: null }, source: null });
}

async function refusal(files: Files): Promise<string> {
  const error = await report(files).then(
    () => null,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(AdviseError);
  return (error as AdviseError).hint;
}

const info = (rank: number): string => JSON.stringify({ rank_id: rank, config: { experimental_config: { _profiler_level: 'Level1' } } });
const OPTIONS = { steps: 3, kernels: 30 } as const;
/** The same rank, recorded a number of seconds later and under another communicator. */
const later = (text: string, seconds: number): string =>
  text.replaceAll(/17364139(\d\d)/g, (_, n: string) => `17364139${Number(n) + seconds}`).replaceAll('__586_', '__701_');

const OPERATORS =
  'Name,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),Device Total Duration(us)\naten::mm,,100,100,90,90\n';
const call = { 'Start Timestamp(us)': 1_736_413_971_008_000, 'Elapse Time(ms)': 1, 'Transit Time(ms)': 0.5, 'Wait Time(ms)': 0.2 };
const COLLECTIVES = JSON.stringify({
  step5: { p2p: {}, collective: { 'hcom_allReduce__586_0_1@11122233586': { 'Communication Time Info': call } } },
});

describe('one rank of several, and nobody says how many', () => {
  test.each<[string, Files]>([
    [
      'a whole folder',
      {
        'r0_ascend_pt/profiler_info_0.json': info(0),
        [`r0_ascend_pt/${OUT}/trace_view.json`]: trace(OPTIONS),
        [`r0_ascend_pt/${OUT}/kernel_details.csv`]: kernelDetails(OPTIONS),
      },
    ],
    ['its trace', { 'rank0/trace_view.json': trace(OPTIONS) }],
    ['its kernel table, of an unknown rank', { 'kernel_details.csv': kernelDetails(OPTIONS) }],
  ])('%s: incomplete, only bounds, and that ranks are missing', async (_, files) => {
    const found = await report(files);
    expect(found.verdict.outcome).toBe('incomplete');
    expect(found.verdict.text).not.toMatch(/\b0 (of|ranks)/);
    for (const { saving } of found.findings) expect(saving?.perStepMs.likely ?? 0).toBe(0);
    expect(findingOf(found, 'slow-rank')).toBeUndefined();
    expect(
      findingOf(found, 'profile-quality')!
        .evidence.map((e) => e.text)
        .join(),
    ).toMatch(/this one communicates with others: ranks are missing/);
  });

  test('without collectives one card is one card', async () => {
    const found = await report({ 'rank0/trace_view.json': trace({ ...OPTIONS, collectives: false }) });
    expect(JSON.stringify(found.missing)).not.toMatch(/number of ranks/);
    expect(checkOf(found, 'hccl-sync-wait').outcome).not.toBe('finding');
  });
});

test('a folder without a rank number is one of the eight, whichever', async () => {
  const found = await report({
    'x/profiler_metadata.json': JSON.stringify({ distributed_args: { world_size: 8 } }),
    [`x/${OUT}/trace_view.json`]: trace(OPTIONS),
  });
  expect(found.job).toMatchObject({ ranks: [], worldSize: 8, missingRanks: [] });
  expect(found.verdict.text).toMatch(/1 of 8 ranks/);
  expect(found.missing[0]).toMatchObject({
    what: expect.stringMatching(/^7 ranks: no files/),
    remedy: expect.stringMatching(/profiler_info/),
  });
});

test('ranks of two runs are not put together: one run is analysed, the other is named', async () => {
  const found = await report({
    'a_ascend_pt/profiler_info_0.json': info(0),
    [`a_ascend_pt/${OUT}/trace_view.json`]: trace(OPTIONS),
    [`a_ascend_pt/${OUT}/kernel_details.csv`]: kernelDetails(OPTIONS),
    'b_ascend_pt/profiler_info_1.json': info(1),
    [`b_ascend_pt/${OUT}/trace_view.json`]: later(trace(OPTIONS), 20),
  });
  expect(found.job.ranks).toHaveLength(1);
  expect(found.notes.join()).toMatch(/The upload holds 2 captures\. `[ab]_ascend_pt` is analysed/);
  expect(found.inputs.find((i) => i.status === 'ignored')?.note).toMatch(/belongs to another capture/);
});

test('ranks of one run whose hosts disagree about the time stay together: a collective joins them', async () => {
  const found = await report({
    'a_ascend_pt/profiler_info_0.json': info(0),
    [`a_ascend_pt/${OUT}/trace_view.json`]: trace(OPTIONS),
    'b_ascend_pt/profiler_info_1.json': info(1),
    [`b_ascend_pt/${OUT}/trace_view.json`]: later(trace(OPTIONS), 20).replaceAll('__701_', '__586_'),
  });
  expect(found.job.ranks).toEqual([0, 1]);
});

test('two groups of ranks that only a third rank joins are one run', async () => {
  const member = (rank: number, text: string): Files => ({
    [`r${rank}_ascend_pt/profiler_info_${rank}.json`]: info(rank),
    [`r${rank}_ascend_pt/${OUT}/trace_view.json`]: text,
  });
  const both = JSON.stringify([
    ...traceEvents(OPTIONS),
    ...traceEvents(OPTIONS).flatMap((e) =>
      'name' in e && String(e.name).startsWith('hcom_') ? [{ ...e, name: String(e.name).replace('__586_', '__701_') }] : [],
    ),
  ]);
  // The hosts of ranks 0 and 1 disagree by 20 s, and they have no group in common; rank 2 is in the groups of both.
  const found = await report({ ...member(0, trace(OPTIONS)), ...member(1, later(trace(OPTIONS), 20)), ...member(2, both) });
  expect(found.job.ranks).toEqual([0, 1, 2]);
});

describe('single files', () => {
  test('totals of host operators do not say that the work ran on CPU', async () => {
    expect(await refusal({ [`r_ascend_pt/${OUT}/operator_details.csv`]: OPERATORS })).toMatch(
      /only totals of host operators.*upload `trace_view\.json`/,
    );
  });

  test('collectives alone: no step time, and what to upload', async () => {
    const found = await report({ [`rank0/${OUT}/communication.json`]: COLLECTIVES });
    expect(found.verdict).toMatchObject({
      outcome: 'no-data',
      text: expect.stringMatching(/Upload `trace_view\.json` and `kernel_details\.csv`/),
    });
  });

  test('a trace without its kernel table: upload it, or capture again', async () => {
    const found = await report({ 'r0_ascend_pt/profiler_info_0.json': info(0), [`r0_ascend_pt/${OUT}/trace_view.json`]: trace(OPTIONS) });
    expect(found.missing.find((m) => m.what.includes('kernel_details'))?.remedy).toMatch(/^upload it if the capture has one/);
  });
});

describe('files that break off', () => {
  /** Host first, then the card in the order of time, as torch_npu writes; the host waits for the card at the end of each step. */
  const events = traceEvents({ steps: 3, kernels: 40 });
  const isHost = (e: object): boolean => !('pid' in e) || e.pid === 1 || ('ph' in e && e.ph === 'M');
  const waits = [0, 1, 2].map((s) => ({
    ph: 'X',
    name: 'AscendCL@aclrtSynchronizeStream',
    pid: 2,
    tid: 11,
    ts: ts(s * 10_000 + 600),
    dur: 8_300,
    args: {},
  }));
  const ordered = JSON.stringify([...events.filter(isHost), ...waits, ...events.filter((e) => !isHost(e))]);
  const cut = ordered.slice(0, Math.floor(ordered.length * 0.6));
  const TABLE = `${STEP_HEADER}\n${[5, 6, 7].map((s) => `${s},4020,1000,0,1000,3980,9000,0,1000,500`).join('\n')}\n`;

  test('work that the trace lacks is no idle time of the card: the kernel table has it', async () => {
    const whole = await report({ 'rank0/trace_view.json': ordered, 'rank0/kernel_details.csv': kernelDetails({ steps: 3, kernels: 40 }) });
    const found = await report({ 'rank0/trace_view.json': cut, 'rank0/kernel_details.csv': kernelDetails({ steps: 3, kernels: 40 }) });
    const ms = (of: Report): number => findingOf(of, 'stream-sync')?.saving?.perStepMs.ceiling ?? 0;
    expect(ms(found)).toBeLessThanOrEqual(ms(whole) + 0.1);
    expect(found.job.stepTimeMs).toBeCloseTo(whole.job.stepTimeMs!, 3);
  });

  test.each<[string, Files]>([
    ['with the step table', { 'rank0/step_trace_time.csv': TABLE }],
    ['alone', {}],
  ])('%s: nothing is said of idle time, and that is no clean bill', async (_, more) => {
    const found = await report({ 'rank0/trace_view.json': cut, ...more });
    expect(
      found.findings.filter((f) => ['stream-sync', 'host-bound-launch', 'dataloader-stall', 'step-start-gap'].includes(f.rule)),
    ).toEqual([]);
    expect(found.verdict.outcome).not.toBe('quiet');
    expect(plain(found.verdict.text)).toMatch(/cut off.*`analyse\(\)`|Incomplete profile/);
    if (Object.keys(more).length === 0) expect(found.breakdown.every((b) => b.freeMs === null)).toBe(true);
  });

  test('cut before the card begins: not “ran on CPU”', async () => {
    const found = await report({ 'rank0/trace_view.json': ordered.slice(0, 900) });
    expect(found.verdict).toMatchObject({ outcome: 'no-data', text: expect.stringMatching(/cut off/) });
  });

  test('a step whose row is cut is not used, and a number is not read in half', async () => {
    const found = await report({ 'rank0/kernel_details.csv': kernelDetails(OPTIONS), 'rank0/step_trace_time.csv': TABLE.slice(0, -30) });
    expect(found.breakdown.map((b) => b.step)).toEqual([5, 6]);
    expect(found.inputs.find((i) => i.path.endsWith('step_trace_time.csv'))).toMatchObject({
      status: 'partial',
      note: 'the last row is cut off',
    });
  });

  test('a kernel row that is cut keeps its whole cells', async () => {
    const text = kernelDetails({ ...OPTIONS, collectives: false });
    const found = await report({ 'rank0/kernel_details.csv': text.slice(0, text.lastIndexOf('static') + 3) });
    expect(found.inputs[0]).toMatchObject({ status: 'partial', note: 'the last row is cut off' });
  });
});

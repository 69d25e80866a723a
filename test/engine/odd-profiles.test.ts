/*
 * Legal but odd uploads: the report stands, keeps its schema and claims nothing that cannot be known.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { Report } from '../../src/model/report.ts';
import { RULES } from '../../src/rules/index.ts';
import { analysePaths, claims } from '../support/grid.ts';
import { kernelDetails, STEP_HEADER, trace, traceEvents, ts } from '../support/profile-text.ts';

let root = '';
let count = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'npu-advisor-odd-'));
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

async function upload(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = join(root, `upload${count++}`);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  return dir;
}

function expectSound(report: Report): void {
  const parsed = Report.safeParse(report);
  expect(parsed.error?.issues).toBeUndefined();
  const text = JSON.stringify(report);
  expect(text).not.toMatch(/NaN|undefined|Infinity|rank -1/);
  expect(report.checked.map((c) => c.rule).sort()).toEqual(RULES.map((r) => r.id).sort());
  expect(report.checked.filter((c) => c.outcome === 'error')).toEqual([]);
  const paths = new Set(report.inputs.map((i) => i.path));
  for (const f of report.findings) for (const e of f.evidence) if (e.source !== null) expect(paths).toContain(e.source);
}

const STEPS = `${STEP_HEADER}\n5,3015,1000.25,0,1000.25,4484.75,8500,0,1000.25,500\n`;
const only = (events: object[], keep: (e: Record<string, unknown>) => boolean): string =>
  JSON.stringify(events.filter((e) => keep(e as Record<string, unknown>)));
const communication = (rank: number): string =>
  JSON.stringify({
    step5: {
      p2p: {},
      collective: {
        'hcom_allReduce__586_0_1@123586': {
          'Communication Time Info': {
            'Start Timestamp(us)': Number(ts(1_000 + rank * 10)),
            'Elapse Time(ms)': 4 - rank * 0.01,
            'Transit Time(ms)': 1,
            'Wait Time(ms)': 3,
            'Synchronization Time(ms)': 2,
            'Idle Time(ms)': 0,
          },
        },
      },
    },
  });

const CASES: [string, Record<string, string>][] = [
  ['kernel_details only', { 'rank0/kernel_details.csv': kernelDetails() }],
  [
    'kernel_details without steps and types',
    { 'rank0/kernel_details.csv': `Name,Start Time(us),Duration(us)\nMul_1,${ts(1)},5\nAdd2,${ts(9)},5\n` },
  ],
  ['kernel_details without times', { 'rank0/kernel_details.csv': 'Name,Duration(us)\nMul,5\nAdd,7\n', 'rank0/step_trace_time.csv': STEPS }],
  ['trace only', { 'rank0/trace_view.json': trace({ steps: 3 }) }],
  ['trace without step marks', { 'rank0/trace_view.json': only(traceEvents(), (e) => !String(e.name).startsWith('ProfilerStep')) }],
  ['trace without flows', { 'rank0/trace_view.json': only(traceEvents(), (e) => e.ph !== 's' && e.ph !== 'f') }],
  ['trace without device work', { 'rank0/trace_view.json': only(traceEvents(), (e) => e.pid !== 3 && e.pid !== 4) }],
  ['trace without process names', { 'rank0/trace_view.json': only(traceEvents(), (e) => e.ph !== 'M') }],
  [
    'a step of no length',
    { 'rank0/trace_view.json': JSON.stringify([{ ph: 'X', name: 'ProfilerStep#5', pid: 1, tid: 1, ts: ts(0), dur: 0, cat: 'cpu_op' }]) },
  ],
  ['the same step twice', { 'rank0/trace_view.json': JSON.stringify([...traceEvents(), ...traceEvents()]) }],
  ['steps with a hole', { 'rank0/trace_view.json': only(traceEvents({ steps: 4 }), (e) => e.name !== 'ProfilerStep#6') }],
  [
    'no collectives',
    { 'rank0/trace_view.json': trace({ collectives: false }), 'rank0/kernel_details.csv': kernelDetails({ collectives: false }) },
  ],
  ['step_trace_time only', { 'rank0/step_trace_time.csv': STEPS }],
  [
    'step_trace_time without numbers',
    { 'rank0/step_trace_time.csv': `${STEP_HEADER}\n5,N/A,N/A,,,N/A,,,,\n`, 'rank0/kernel_details.csv': kernelDetails() },
  ],
  [
    'several steps without numbers',
    { 'rank0/step_trace_time.csv': `${STEP_HEADER}\n${[5, 6, 7, 8].map((s) => `${s},1,1,1,1,1,,,1,1`).join('\n')}\n` },
  ],
  [
    'negative time',
    { 'rank0/step_trace_time.csv': `${STEP_HEADER}\n5,812000.0,41000.0,9000.0,50000.0,-12.0,807000.0,58000.0,-17000.0,0\n` },
  ],
  [
    'no step number and device -1',
    { 'rank0/step_trace_time.csv': `Device_id,${STEP_HEADER}\n-1,,241.0,58.0,0.0,58.0,533.0,832.0,0.0,58.0,0.0\n` },
  ],
  ['communication.json only, one rank', { 'rank0/communication.json': communication(0), 'rank0/step_trace_time.csv': STEPS }],
  [
    'communication.json of two ranks, no steps',
    {
      'rank0/communication.json': communication(0),
      'rank0/kernel_details.csv': 'Name,Duration(us)\nMul,5\n',
      'rank1/communication.json': communication(1),
      'rank1/kernel_details.csv': 'Name,Duration(us)\nMul,5\n',
    },
  ],
  ['one rank with a trace, one with a table', { 'rank0/trace_view.json': trace({ steps: 4 }), 'rank1/step_trace_time.csv': STEPS }],
  [
    'one rank with steps, one without anything but collectives',
    {
      'rank0/trace_view.json': trace({ steps: 4 }),
      'rank1/kernel_details.csv': 'Name,Duration(us)\nMul,5\n',
      'rank1/communication.json': communication(1),
    },
  ],
  ['ranks of unknown number', { 'a/trace_view.json': trace({ steps: 4 }), 'b/trace_view.json': trace({ steps: 4 }) }],
  ['ranks with different numbers of steps', { 'rank0/trace_view.json': trace({ steps: 2 }), 'rank1/trace_view.json': trace({ steps: 5 }) }],
  ['the same rank twice', { 'x/rank0/trace_view.json': trace({ steps: 2 }), 'y/rank0/trace_view.json': trace({ steps: 3 }) }],
  ['a damaged trace beside a good table', { 'rank0/trace_view.json': 'not json at all', 'rank0/step_trace_time.csv': STEPS }],
  [
    'times of another epoch in one file',
    {
      'rank0/trace_view.json': trace(),
      'rank0/kernel_details.csv': `Name,Type,Start Time(us),Duration(us)\nMul,Mul,1000000.000,5\nAdd,Add,${ts(5)},3\n`,
    },
  ],
  [
    'hostile names',
    {
      'rank0/trace_view.json': JSON.stringify(traceEvents({ steps: 3 })).replaceAll(
        'aclnnMatmul_MatMulV2',
        '](https://x.invalid) @everyone <img src=x>\\u0000`',
      ),
    },
  ],
];

describe('odd but legal uploads', () => {
  test.each(CASES)('%s', async (_, files) => {
    const dir = await upload(files);
    for (const lang of LANGS) {
      const report = await analysePaths([dir], { lang });
      expectSound(report);
      for (const f of claims(report)) expect(f.saving!.perStepMs.floor).toBeLessThanOrEqual(f.saving!.perStepMs.ceiling);
    }
  });

  test.each<[string, Record<string, string>]>([
    ['a header alone', { 'rank0/kernel_details.csv': 'Name,Type,Duration(us)\n' }],
    ['an empty trace', { 'rank0/trace_view.json': '[]' }],
    ['nothing that looks like a profile', { 'readme.txt': 'hello' }],
    ['Git LFS pointers', { 'rank0/trace_view.json': 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n' }],
    ['a raw capture', { 'x_ascend_pt/PROF_000001_20250109_ABCDEF/host/data.bin': 'x', 'x_ascend_pt/FRAMEWORK/torch.op_range': 'x' }],
    ['output of msprof op', { 'OPPROF_2026/OpBasicInfo.csv': 'a,b\n' }],
  ])('%s is refused with a hint', async (_, files) => {
    const error = await analysePaths([await upload(files)]).then(
      () => null,
      (e: unknown) => e,
    );
    expect(error).toMatchObject({ name: 'AdviseError', hint: expect.stringMatching(/\S/) });
  });

  test('a rank folder given by itself takes its rank from its own name', async () => {
    const dir = await upload({ 'rank3_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': trace() });
    expect((await analysePaths([join(dir, 'rank3_ascend_pt')])).job.ranks).toEqual([3]);
  });

  test('several paths are the ranks of one job', async () => {
    const dir = await upload({ 'rank0/trace_view.json': trace({ steps: 2 }), 'rank1/trace_view.json': trace({ steps: 2 }) });
    const apart = await analysePaths([join(dir, 'rank0'), join(dir, 'rank1')]);
    const together = await analysePaths([dir]);
    expect(apart.job).toEqual(together.job);
    expect(apart.breakdown).toEqual(together.breakdown);
  });
});

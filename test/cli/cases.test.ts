/* Uploads of public reports, as the command line answers them: A12, A21, A40. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kernelDetails, trace, traceEvents, ts } from '../support/profile-text.ts';

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const OUT = 'r_ascend_pt/ASCEND_PROFILER_OUTPUT';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-cases-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

async function analyze(files: Readonly<Record<string, string>>, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, 'prof', path)), { recursive: true });
    await writeFile(join(dir, 'prof', path), content);
  }
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, 'analyze', join(dir, 'prof'), ...args], (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
    });
  });
}

const HOST = [
  { ph: 'M', name: 'process_name', pid: 1, tid: 0, args: { name: 'Python' } },
  { ph: 'X', name: 'ProfilerStep#5', pid: 1, tid: 1, ts: ts(0), dur: 10_000, cat: 'cpu_op', args: {} },
  { ph: 'X', name: 'aten::mm', pid: 1, tid: 1, ts: ts(10), dur: 9_000, cat: 'cpu_op', args: {} },
];

describe('A21: the work ran on CPU', () => {
  test('a kernel table of headers and host operators: one line says so, exit 2', async () => {
    const run = await analyze({
      [`${OUT}/kernel_details.csv`]: 'Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n',
      [`${OUT}/operator_details.csv`]: 'Name,Call Stack,Host Self Duration(us),Host Total Duration(us)\naten::mm,,100,100\n',
    });
    expect(run.code).toBe(2);
    expect(run.err.trimEnd().split('\n')).toHaveLength(1);
    expect(run.err).toMatch(/ran on CPU.*`import torch_npu`/);
  });

  test('with a trace of the host: a report with that verdict, no cause, exit 0', async () => {
    const run = await analyze({ [`${OUT}/trace_view.json`]: JSON.stringify(HOST) }, '--format', 'json');
    const report = JSON.parse(run.out);
    expect(run.code).toBe(0);
    expect(report.verdict).toMatchObject({ outcome: 'no-data', text: expect.stringMatching(/ran on CPU/) });
    expect(report.findings.filter((f: { saving: object | null }) => f.saving !== null)).toEqual([]);
  });

  test('in Chinese, too', async () => {
    const run = await analyze({ [`${OUT}/trace_view.json`]: JSON.stringify(HOST) }, '--lang', 'zh');
    expect(run.out).toMatch(/任务在 CPU 上执行/);
  });
});

describe('A12: nothing to diagnose', () => {
  test.each([
    ['a table of end-to-end minutes', 'results.csv', 'model,minutes\nqwen,33.19\n'],
    ['A17: a trainer’s line of seconds per phase', 'train.log', 'step:94 - timing_s/step:43.64 - timing_s/gen:31.27\n'],
  ])('%s is no profile: what to upload, exit 2', async (_, name, text) => {
    const run = await analyze({ [name]: text });
    expect(run.code).toBe(2);
    expect(run.err).toMatch(/ASCEND_PROFILER_OUTPUT/);
  });

  test('a gate is neutral where nothing can be decided', async () => {
    const config = join(dir, 'npu-advisor.yml');
    await writeFile(config, 'gate:\n  severity: medium\n');
    const run = await analyze({ [`${OUT}/trace_view.json`]: JSON.stringify(HOST) }, '--format', 'json', '--config', config);
    expect(JSON.parse(run.out).gate.outcome).toBe('neutral');
    expect(run.code).toBe(0);
  });
});

describe('A40: three distinct verdicts', () => {
  const verdictOf = async (files: Readonly<Record<string, string>>): Promise<{ outcome: string; text: string }> => {
    const run = await analyze(files, '--format', 'json');
    expect(run.code, run.err).toBe(0);
    return JSON.parse(run.out).verdict;
  };

  test('missing kernel data', async () => {
    const cann = { ph: 'X', name: 'AscendCL@aclrtSynchronizeStream', pid: 2, tid: 1, ts: ts(9_000), dur: 500, args: {} };
    const process = { ph: 'M', name: 'process_name', pid: 2, tid: 0, args: { name: 'CANN' } };
    const verdict = await verdictOf({ [`${OUT}/trace_view.json`]: JSON.stringify([...HOST, process, cann]) });
    expect(verdict).toMatchObject({ outcome: 'no-data', text: expect.stringMatching(/^Missing kernel data/) });
  });

  test('rank count 3 of 8', async () => {
    const files = Object.fromEntries(
      [0, 1, 2].flatMap((r) => [
        [`rank${r}_ascend_pt/profiler_info_${r}.json`, JSON.stringify({ rank_id: r })],
        [`rank${r}_ascend_pt/profiler_metadata.json`, JSON.stringify({ distributed_args: { world_size: 8 } })],
        [`rank${r}_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json`, trace({ steps: 3 })],
        [`rank${r}_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv`, kernelDetails({ steps: 3 })],
      ]),
    );
    expect(await verdictOf(files)).toMatchObject({ outcome: 'incomplete', text: expect.stringMatching(/3 of 8 ranks/) });
  });

  test('window held no model work', async () => {
    const few = traceEvents({ steps: 3, kernels: 1, collectives: false }).map((e) =>
      'dur' in e && e.dur === 100.5 ? { ...e, dur: 2 } : e,
    );
    const verdict = await verdictOf({ [`${OUT}/trace_view.json`]: JSON.stringify(few) });
    expect(verdict).toMatchObject({ outcome: 'no-data', text: expect.stringMatching(/held no model work/) });
  });
});

/* A48: MindSpore captures are read like the others, and nothing that is said about them needs PyTorch. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { Report } from '../../src/model/report.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { openSource } from '../../src/sources/index.ts';
import { kernelDetails, STEP_HEADER, trace, traceEvents } from '../support/profile-text.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-mindspore-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

async function reportOf(files: Readonly<Record<string, string>>, lang: 'en' | 'zh' = 'en', root = 'up'): Promise<Report> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, root, path)), { recursive: true });
    await writeFile(join(dir, root, path), content);
  }
  const source = await openSource(join(dir, root));
  const options = { lang, thresholds: {}, disabledRules: [], gate: null };
  return Report.parse(await analyse({ sources: [source], options, source: null }));
}

const FOLDER = 'host_1_20260101120000000_ascend_ms';
const OUT = `${FOLDER}/ASCEND_PROFILER_OUTPUT`;
const INFO = { [`${FOLDER}/profiler_info_0.json`]: JSON.stringify({ rank_id: 0 }) };
/** As A48 has it: `Step ID`, no ProfilerStep, no aten operator. */
const TABLES = {
  ...INFO,
  [`${OUT}/kernel_details.csv`]: kernelDetails({ steps: 3 }).replace('Step Id', 'Step ID'),
  [`${OUT}/step_trace_time.csv`]: `${STEP_HEADER}\n${[5, 6, 7].map((s) => `${s},3000,1000,0,1000,6000,10000,0,1000,400`).join('\n')}\n`,
};
const TRACE = {
  [`${OUT}/trace_view.json`]: JSON.stringify(traceEvents({ steps: 3 }).filter((e) => !/ProfilerStep|DataLoader/.test(JSON.stringify(e)))),
};
const PYTORCH = /torch|aten::|ProfilerStep|DataLoader|prof\.step|record_shapes|_ascend_pt/i;

/** Everything the report says, without what it quotes of the profile: rules have names of their own. */
function wordsOf(report: Report): string[] {
  return [
    ...report.notes,
    ...report.missing.flatMap((m) => Object.values(m)),
    ...report.inputs.map((i) => i.note),
    ...report.findings.flatMap((f) => f.recommendations.flatMap((r) => [r.title, r.text, r.code ?? '', ...r.preconditions])),
  ].filter((text) => text !== '');
}

describe('what is said', () => {
  test.each([
    ['tables', TABLES],
    ['tables and a trace', { ...TABLES, ...TRACE }],
    [
      'Level0',
      { ...TABLES, [`${FOLDER}/profiler_info_0.json`]: JSON.stringify({ config: { experimental_config: { _profiler_level: 'Level0' } } }) },
    ],
  ])('%s: no word of PyTorch', async (_, files) => {
    for (const lang of ['en', 'zh'] as const) {
      const report = await reportOf(files, lang);
      expect(report.job.framework).toBe('MindSpore');
      expect(report.job.ranks).toEqual([0]);
      for (const text of wordsOf(report)) expect(text.replace(/PyTorch/, '')).not.toMatch(PYTORCH);
      for (const check of report.checked) expect(check.reason).not.toMatch(/prof\.step|record_shapes/);
    }
  });

  test('a raw capture: the call of MindSpore, never that of torch_npu', async () => {
    const raw = { [`${FOLDER}/FRAMEWORK/x`]: 'x', ...INFO };
    const error = await reportOf(raw).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(AdviseError);
    expect((error as AdviseError).hint).toMatch(/`mindspore\.profiler\.profiler\.analyse\(path\)`/);
    const beside = await reportOf(
      { ...TABLES, 'b_ascend_ms/profiler_info_1.json': JSON.stringify({ rank_id: 1 }), 'b_ascend_ms/FRAMEWORK/x': 'x' },
      'en',
      'b',
    );
    expect(beside.notes.join()).toMatch(/Run `mindspore\.profiler\.profiler\.analyse\(path\)`/);
    expect(beside.inputs.find((i) => i.kind === 'raw capture')!.note).toMatch(/mindspore\.profiler/);
    const torch = await reportOf({ 'x_ascend_pt/FRAMEWORK/x': 'x', 'x_ascend_pt/profiler_info_0.json': '{}' }, 'en', 'c').catch(
      (e: unknown) => e,
    );
    expect((torch as AdviseError).hint).toMatch(/`torch_npu\.profiler\.profiler\.analyse\(path\)`/);
  });
});

describe('advice', () => {
  /** Fetches of 4 ms before the first kernel: what the trace of a MindSpore job would have to show. */
  const slow = (folder: string): Record<string, string> => ({
    [`${folder}/profiler_info_0.json`]: JSON.stringify({ rank_id: 0 }),
    [`${folder}/ASCEND_PROFILER_OUTPUT/trace_view.json`]: JSON.stringify(
      traceEvents({ steps: 5 }).map((e) => ('dur' in e && e.dur === 200 ? { ...e, dur: 480 } : e)),
    ),
    [`${folder}/ASCEND_PROFILER_OUTPUT/kernel_details.csv`]: kernelDetails({ steps: 5 }),
  });
  const remediesOf = (report: Report): string[] => report.findings.flatMap((f) => f.recommendations.map((r) => r.remedy));

  test('waiting for data: workers of the dataset, not of a DataLoader; in a PyTorch job the other way round', async () => {
    const mindspore = remediesOf(await reportOf(slow(FOLDER)));
    const torch = remediesOf(await reportOf(slow('host_1_20260101120000000_ascend_pt'), 'en', 'torch'));
    expect(mindspore.every((id) => REMEDIES.get(id)!.frameworks?.includes('MindSpore'))).toBe(true);
    expect(torch).not.toContain('mindspore-dataset-workers');
    if (torch.includes('dataloader-workers')) expect(mindspore).toContain('mindspore-dataset-workers');
  });

  test('a remedy for MindSpore names nothing of PyTorch', () => {
    const context = { soc: null, torch: null, torchNpu: null, params: { allRanks: true }, source: null };
    const shared = [...REMEDIES.values()].filter((r) => r.frameworks?.includes('MindSpore'));
    expect(shared.map((r) => r.id)).toEqual(expect.arrayContaining(['check-link', 'mindspore-dataset-workers']));
    for (const remedy of shared) {
      const advice = remedy.advise({ rule: 'any', ranks: [0], locations: [], confidence: 'high' }, context)!;
      expect([remedy.apis, advice.title, advice.text, advice.code, advice.preconditions].map((v) => JSON.stringify(v)).join()).not.toMatch(
        PYTORCH,
      );
    }
    const workers = REMEDIES.get('mindspore-dataset-workers')!;
    expect(workers.advise({ rule: 'any', ranks: [0], locations: [], confidence: 'high' }, context)!.text.en).toMatch(
      /`num_parallel_workers`/,
    );
  });

  test('the same files as a PyTorch folder keep their words', async () => {
    const report = await reportOf({ 'a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': trace({ steps: 2 }) }, 'en', 'pt');
    expect(report.notes.join()).not.toMatch(/MindSpore/);
    expect(report.checked.map((c) => c.reason).join()).not.toMatch(/MindSpore/);
  });
});

/*
 * What need not be fetched of an upload: the report must be the same as with everything there. An entry that is not there refuses to be
 * opened, so equal reports also show that nothing else was asked for.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { wantedFiles } from '../../src/importers/index.ts';
import { openSource, type ProfileSource } from '../../src/sources/index.ts';
import { DEFAULT_LIMITS } from '../../src/sources/limits.ts';
import { readWhole } from '../../src/sources/source.ts';
import { zipOf } from '../support/archives.ts';
import { DEFAULT_OPTIONS } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';

let dir = '';
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-wanted-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

type Files = Record<string, Buffer | string>;

async function filesOf(path: string): Promise<Files> {
  const source = await openSource(path);
  const files: Files = {};
  for (const entry of source.entries) files[entry.path] = (await readWhole(entry, 1 << 28)) ?? '';
  await source.close();
  return files;
}

async function outcomeOf(source: ProfileSource): Promise<unknown> {
  try {
    return await analyse({ sources: [source], options: DEFAULT_OPTIONS, source: null });
  } catch (error) {
    return String(error);
  } finally {
    await source.close();
  }
}

let count = 0;
/** Analyses the files as a zip, whole and with only the wanted ones there; returns the names of those. */
async function expectSame(files: Files): Promise<{ wanted: string[]; outcome: unknown }> {
  const zip = join(dir, `npu-profile-${count++}.zip`);
  await writeFile(zip, zipOf(Object.entries(files).map(([name, data]) => ({ name, data }))));
  const whole = await outcomeOf(await openSource(zip));
  const part = await openSource(zip, DEFAULT_LIMITS, wantedFiles);
  const wanted = part.entries.filter((e) => e.place.absent !== true).map((e) => e.path);
  expect(await outcomeOf(part)).toEqual(whole);
  return { wanted: wanted.sort(), outcome: whole };
}

/** What lies beside an export on the machine that captured it. */
const raw = (root: string): Files => ({
  [`${root}/FRAMEWORK/torch.op_range`]: 'x'.repeat(500),
  [`${root}/PROF_000001_20250108155932372_KEGNPDFQ/device_0/data/ffts_profile.data.0.slice_0`]: 'x'.repeat(5000),
  [`${root}/PROF_000001_20250108155932372_KEGNPDFQ/device_0/info.json.0`]: '{"rank_id": 0}',
  [`${root}/PROF_000001_20250108155932372_KEGNPDFQ/device_0/sqlite/ascend_task.db`]: 'x',
  [`${root}/PROF_000001_20250108155932372_KEGNPDFQ/host/sqlite/api_event.db`]: 'x',
  [`${root}/PROF_000001_20250108155932372_KEGNPDFQ/mindstudio_profiler_output/op_summary_20250108155932.csv`]: 'Op Name\n',
  [`${root}/logs/profiler_20250108.log`]: 'x'.repeat(300),
});

describe('simulated jobs', () => {
  test.each(['text', 'db', 'both'] as const)(
    '%s: raw data and foreign logs beside the exports are left out, the logs of the profiler are not',
    async (kind) => {
      const folder = join(dir, `simulated-${kind}`);
      await writeProfiles(simulate({ ranks: 2, seed: 7, faults: [{ kind: 'slow-loader' }] }), folder, { export: kind });
      const files = await filesOf(folder);
      const roots = new Set(Object.keys(files).flatMap((p) => /^(.*_ascend_pt)\//.exec(p)?.[1] ?? []));
      expect(roots.size).toBe(2);
      for (const root of roots) Object.assign(files, raw(root));
      files['checkpoints/step_50.pt'] = 'x'.repeat(4000);
      files['train.log'] = 'x';
      const { wanted, outcome } = await expectSame(files);
      expect(outcome).toMatchObject({ verdict: { outcome: 'causes' } });
      expect(wanted.filter((p) => /PROF_|FRAMEWORK|train\.log$|\.pt$/.test(p))).toEqual([]);
      // They say whether the profiler was stopped while it recorded.
      expect(wanted.filter((p) => /\.log$/.test(p))).toHaveLength(2);
      expect(wanted.filter((p) => /trace_view\.json$|profiler_\d+\.db$/.test(p))).toHaveLength(kind === 'both' ? 4 : 2);
    },
  );
});

describe('hand-made uploads', () => {
  const trace = JSON.stringify([
    { name: 'process_name', ph: 'M', pid: 1, args: { name: 'Ascend Hardware' } },
    { name: 'MatMul', ph: 'X', pid: 1, tid: 3, ts: '1736413971000000.000', dur: 100 },
  ]);
  test.each<[string, Files, string[]]>([
    ['lone files under any name', { 'a/x.json': trace, 'a/y.csv': 'a,b\n', 'a/z.bin': 'x', 'notes.md': 'x' }, ['a/x.json', 'a/y.csv']],
    [
      'tables that no rule reads',
      { 'r_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': trace, 'r_ascend_pt/ASCEND_PROFILER_OUTPUT/pcie.csv': 'a\n' },
      ['r_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json'],
    ],
    ['a packed table', { 'ASCEND_PROFILER_OUTPUT/trace_view.json.gz': gzipSync(trace) }, ['ASCEND_PROFILER_OUTPUT/trace_view.json']],
    [
      'an archive per rank',
      { 'rank0.zip': zipOf([{ name: 'ASCEND_PROFILER_OUTPUT/trace_view.json', data: trace }]), 'rank1.zip': zipOf([]), 'a.txt': 'x' },
      ['rank0.zip/ASCEND_PROFILER_OUTPUT/trace_view.json'],
    ],
    [
      'raw data with what `msprof` exported of it',
      raw('rank0_ascend_pt'),
      [
        'rank0_ascend_pt/PROF_000001_20250108155932372_KEGNPDFQ/device_0/info.json.0',
        'rank0_ascend_pt/PROF_000001_20250108155932372_KEGNPDFQ/mindstudio_profiler_output/op_summary_20250108155932.csv',
        'rank0_ascend_pt/logs/profiler_20250108.log',
      ],
    ],
    [
      'raw data alone',
      { 'r_ascend_pt/FRAMEWORK/torch.op_range': 'x', 'r_ascend_pt/profiler_info_0.json': '{}' },
      ['r_ascend_pt/profiler_info_0.json'],
    ],
    [
      'cluster tables',
      { 'cluster_analysis_output/cluster_step_trace_time.csv': 'Step,Type,Index\n', 'cluster_analysis_output/cluster_analysis.xlsx': 'x' },
      ['cluster_analysis_output/cluster_step_trace_time.csv'],
    ],
    [
      'a deep json that may be facts',
      { 'ASCEND_PROFILER_OUTPUT/trace_view.json': trace, 'a/b/c/d/e.json': '{}', 'a/b/c/d/e.so': 'x' },
      ['ASCEND_PROFILER_OUTPUT/trace_view.json', 'a/b/c/d/e.json'],
    ],
  ])('%s', async (_, files, expected) => {
    expect((await expectSame(files)).wanted).toEqual(expected);
  });
});

const more = (name: string): string => PATHS.gpt0.replace(/test_rank_0$/, name);
const REAL: [string, string][] = [
  ...Object.entries(PATHS),
  ['level1 db', PATHS.level1.replace('/text/', '/db/')],
  ...['heatMap', 'multiDevice', 'full_db', 'cluster_analysis_output', 'metadata'].map((name): [string, string] => [name, more(name)]),
];
describe.skipIf(!HAVE_PROFILES)(`real profiles${WHY_SKIPPED}`, () => {
  test.each(REAL)('%s', async (_, path) => {
    const files = await filesOf(path);
    await expectSame(files);
    for (const root of Object.keys(files).flatMap((p) => /^(.*_ascend_pt)\//.exec(p)?.[1] ?? [])) Object.assign(files, raw(root));
    await expectSame(files);
  });
});

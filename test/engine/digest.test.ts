/* digest → facts.json → analyze: the same report, to the byte, whatever the upload holds beside its ranks. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { digest } from '../../src/cli/digest.ts';
import { analyse } from '../../src/engine/analyse.ts';
import type { Lang } from '../../src/model/lang.ts';
import type { Report } from '../../src/model/report.ts';
import type { IdleRow } from '../../src/report/idle-account.ts';
import { openSource } from '../../src/sources/index.ts';
import { withWrittenJob } from '../support/grid.ts';
import { kernelDetails, STEP_HEADER, trace, traceEvents } from '../support/profile-text.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-digest-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

type Files = Readonly<Record<string, string>>;

async function write(root: string, files: Files): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, root, path)), { recursive: true });
    await writeFile(join(dir, root, path), content);
  }
  return join(dir, root);
}

async function reportOf(paths: readonly string[], lang: Lang = 'en'): Promise<Report> {
  const sources = await Promise.all(paths.map((path) => openSource(path)));
  try {
    return await analyse({ sources, options: { lang, thresholds: {}, disabledRules: [], gate: null }, source: null });
  } finally {
    for (const source of sources) await source.close();
  }
}

async function digestOf(paths: readonly string[], name = 'facts.json'): Promise<string> {
  const out = join(dir, name);
  await digest(paths, out, 'en');
  return out;
}

async function expectSame(paths: readonly string[]): Promise<Report> {
  const facts = await digestOf(paths);
  const report = await reportOf(paths);
  expect(JSON.stringify(await reportOf([facts]))).toBe(JSON.stringify(report));
  expect(JSON.stringify(await reportOf([facts], 'zh'))).toBe(JSON.stringify(await reportOf(paths, 'zh')));
  return report;
}

const OUT = 'ASCEND_PROFILER_OUTPUT';
const rank = (folder: string, id: number, steps = 3): Files => ({
  [`${folder}/profiler_info_${id}.json`]: JSON.stringify({ rank_id: id, config: { experimental_config: { _profiler_level: 'Level1' } } }),
  [`${folder}/${OUT}/trace_view.json`]: trace({ steps }),
  [`${folder}/${OUT}/kernel_details.csv`]: kernelDetails({ steps }),
});
const raw = (folder: string, id: number): Files => ({
  [`${folder}/profiler_info_${id}.json`]: JSON.stringify({ rank_id: id }),
  [`${folder}/FRAMEWORK/torch.op_range`]: 'raw',
});

describe('the same report', () => {
  test('ranks that nobody parsed stay in it: how many, which, and what to run', async () => {
    const report = await expectSame([
      await write('up', { ...rank('r0_ascend_pt', 0), ...raw('r1_ascend_pt', 1), ...raw('r2_ascend_pt', 2) }),
    ]);
    expect(report.job.missingRanks).toEqual([1, 2]);
    expect(report.notes.join('\n')).toMatch(/raw, not analysed \(2 of 3 folders\)/);
    expect(report.inputs.filter((i) => i.kind === 'raw capture')).toHaveLength(2);
  });

  test('memory, environment, versions and single slow steps', async () => {
    const spec = {
      ranks: 2,
      layers: 4,
      steps: 6,
      memory: { deviceGb: 32, growMb: 48, splinterMb: 256, unusedGb: 2 },
      envOfRank: { 1: { HCCL_RDMA_TC: '136' } },
      versions: { torch: '2.6.0', torchNpu: '2.7.1', cann: '8.3.RC1' },
      faults: [{ kind: 'slow-steps' as const, steps: [3], ms: 30 }],
    };
    const report = await withWrittenJob(spec, (path) => expectSame([path]));
    const rules = report.findings.map((f) => f.rule);
    for (const rule of ['memory-growth', 'memory-fragmentation', 'environment', 'version-mismatch', 'step-jitter'])
      expect(rules).toContain(rule);
  });

  test('what held up the host, and whose each idle ms is', async () => {
    const spec = {
      ranks: 2,
      layers: 4,
      level: 2 as const,
      faults: [
        { kind: 'stream-sync' as const },
        { kind: 'gc-pause' as const, ms: 20 },
        { kind: 'alloc-stall' as const, ms: 20 },
        { kind: 'batch-preparation' as const, ms: 20 },
        { kind: 'pageable-copy' as const, mb: 60 },
      ],
    };
    const report = await withWrittenJob(spec, (path) => expectSame([path]));
    const rules = report.findings.map((f) => f.rule);
    for (const rule of ['gc-pause', 'memory-alloc-stall', 'batch-preparation', 'h2d-copy']) expect(rules).toContain(rule);
    expect((report.views.idleAccount as IdleRow[]).length).toBeGreaterThan(10);
    expect(report.totals.unexplainedIdleMs).not.toBeNull();
  });

  test('captures that were not chosen stay named', async () => {
    const report = await expectSame([
      await write('up', {
        ...rank('actor_update/h_1_20260101120000000_ascend_pt', 0),
        ...rank('actor_update/h_2_20260101120000000_ascend_pt', 1),
        ...rank('x_rollout_0/h_3_20260101120100000_ascend_pt', 0),
        ...rank('actor_update/h_1_20250101120000000_ascend_pt', 0, 1),
      }),
    ]);
    expect(report.notes.join('\n')).toMatch(/2 captures\. `actor_update` is analysed/);
    expect(report.notes.join('\n')).toMatch(/captured more than once/);
    expect(report.inputs.filter((i) => i.status === 'ignored').length).toBeGreaterThan(3);
  });

  test('ranks of other steps, files of no rank, a GPU trace, a broken archive', async () => {
    const late = JSON.stringify(traceEvents({ steps: 2 })).replace(
      /ProfilerStep#(\d+)/g,
      (_, n: string) => `ProfilerStep#${Number(n) + 50}`,
    );
    const report = await expectSame([
      await write('up', {
        ...rank('r0_ascend_pt', 0),
        'r1_ascend_pt/profiler_info_1.json': JSON.stringify({ rank_id: 1 }),
        [`r1_ascend_pt/${OUT}/trace_view.json`]: late,
        'notes/readme.md': 'x',
        'gpu.pt.trace.json': JSON.stringify([{ ph: 'X', cat: 'kernel', name: 'k', ts: 1, dur: 1, pid: 0, tid: 7 }]),
        'bad.zip': 'PK\x03\x04broken',
      }),
    ]);
    expect(report.notes.join('\n')).toMatch(/Rank 1 was captured in other steps/);
    expect(new Set(report.inputs.map((i) => i.kind))).toEqual(
      new Set(['archive', 'GPU trace', 'other', 'capture settings', 'trace', 'kernels']),
    );
  });

  test('a cut trace, a log, a capture without steps', async () => {
    const events = traceEvents({ steps: 4, collectives: false }).filter((e) => !JSON.stringify(e).includes('ProfilerStep'));
    await expectSame([
      await write('up', { [`r0_ascend_pt/${OUT}/trace_view.json`]: JSON.stringify(events).slice(0, -80), 'r0_ascend_pt/logs/a.log': 'x' }),
    ]);
  });

  test('cluster tables alone; a rank folder given by itself', async () => {
    const rows = `Step,Type,Index,${STEP_HEADER.slice(5)}\n1,rank,0,80,60,5,65,20,160,0,60,1\n1,rank,1,81,20,5,25,59,160,0,20,1\n`;
    await expectSame([await write('cluster', { 'cluster_analysis_output/cluster_step_trace_time.csv': rows })]);
    await write('rank7_ascend_pt', { [`${OUT}/trace_view.json`]: trace() });
    expect((await expectSame([join(dir, 'rank7_ascend_pt')])).job.ranks).toEqual([7]);
  });

  test('several uploads at once', async () => {
    const paths = [
      await write('node0', rank('a_ascend_pt', 0)),
      await write('node1', { ...rank('b_ascend_pt', 1), ...raw('c_ascend_pt', 2) }),
    ];
    expect((await expectSame(paths)).job).toMatchObject({ ranks: [0, 1], missingRanks: [2] });
  });

  test('a simulated job of four ranks with raw data beside them', async () => {
    await withWrittenJob({ ranks: 4, seed: 3, faults: [{ kind: 'layout' }] }, async (path) => {
      await mkdir(join(path, 'r9_ascend_pt', 'FRAMEWORK'), { recursive: true });
      await writeFile(join(path, 'r9_ascend_pt', 'FRAMEWORK', 'torch.op_range'), 'x');
      const report = await expectSame([path]);
      expect(report.findings.length).toBeGreaterThan(0);
    });
  });

  test(`real profiles${WHY_SKIPPED}`, async (context) => {
    if (!HAVE_PROFILES) return context.skip();
    for (const path of [PATHS.level1, PATHS.st]) await expectSame([path]);
    return undefined;
  });
});

describe('digests together', () => {
  test('one of each node: one job, nothing said twice, and a rank that one node has is not missing', async () => {
    const a = await digestOf(
      [await write('node0', { ...rank('a_ascend_pt', 0), ...raw('b_ascend_pt', 1), ...raw('c_ascend_pt', 2) })],
      'a.json',
    );
    const b = await digestOf([await write('node1', rank('b_ascend_pt', 1))], 'b.json');
    const report = await reportOf([a, b]);
    expect(report.job).toMatchObject({ ranks: [0, 1], missingRanks: [2] });
    expect(new Set(report.notes).size).toBe(report.notes.length);
    expect(report.inputs.filter((i) => i.kind === 'raw capture')).toHaveLength(2);
  });

  test('a digest without the upload part is read as before', async () => {
    const facts = await digestOf([await write('up', { ...rank('r0_ascend_pt', 0), ...raw('r1_ascend_pt', 1) })]);
    const { upload: _, ...bare } = JSON.parse(await readFile(facts, 'utf8')) as Record<string, unknown>;
    await writeFile(facts, JSON.stringify(bare));
    const report = await reportOf([facts]);
    expect(report.job).toMatchObject({ ranks: [0], missingRanks: [] });
  });

  test.each([
    ['a note with a placeholder of no kind', { text: { en: '{x:evil}', zh: 'x' } }],
    ['a note without Chinese', { text: { en: 'x' } }],
    ['no note at all', 'x'],
  ])('hostile: %s', async (_, note) => {
    const facts = await digestOf([await write('up', rank('r0_ascend_pt', 0))]);
    const json = JSON.parse(await readFile(facts, 'utf8')) as { upload: { notes: unknown[] } };
    json.upload.notes.push(note);
    await writeFile(facts, JSON.stringify(json));
    await expect(reportOf([facts])).rejects.toThrow(AdviseError);
  });
});

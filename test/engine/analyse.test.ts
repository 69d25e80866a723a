import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import { Report } from '../../src/model/report.ts';
import { defineRule, type Rule } from '../../src/model/rule.ts';
import { buildReport } from '../../src/report/build.ts';
import { RULES } from '../../src/rules/index.ts';
import { openSource } from '../../src/sources/index.ts';
import { repository } from '../remedies/repository.ts';
import { zipOf } from '../support/archives.ts';
import { analysePaths, DEFAULT_OPTIONS, totalsComplaints } from '../support/grid.ts';
import { factsOf } from '../support/simulated.ts';

let root = '';
let job = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'npu-advisor-engine-'));
  job = join(root, 'job');
  await writeProfiles(simulate({ ranks: 2, soc: 'Ascend910B3', faults: [{ kind: 'layout' }, { kind: 'recompile' }] }), job);
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

async function filesOf(dir: string): Promise<{ name: string; data: Buffer }[]> {
  const names = (await readdir(dir, { recursive: true, withFileTypes: true })).filter((d) => d.isFile());
  return Promise.all(
    names.map(async (d) => {
      const file = join(d.parentPath, d.name);
      return { name: file.slice(dir.length + 1), data: await readFile(file) };
    }),
  );
}

describe('the report', () => {
  test('keeps its schema, checks every rule exactly once and its totals are within bounds', async () => {
    const report = await analysePaths([job]);
    expect(Report.safeParse(report).error?.issues).toBeUndefined();
    expect(report.checked.map((c) => c.rule).sort()).toEqual(RULES.map((r) => r.id).sort());
    expect(totalsComplaints(report)).toEqual([]);
    expect(report.findings.map((f) => f.rule)).toEqual(expect.arrayContaining(['transpose-hotspot', 'op-recompile']));
  });

  test('two runs give the same bytes', async () => {
    const once = JSON.stringify(await analysePaths([job]));
    expect(JSON.stringify(await analysePaths([job]))).toBe(once);
  });

  test('a zip and a tar.gz give what the folder gives', async () => {
    const files = await filesOf(job);
    const zip = join(root, 'job.zip');
    await writeFile(zip, zipOf(files));
    await promisify(execFile)('tar', ['czf', join(root, 'job.tar.gz'), '-C', root, 'job']);
    const folder = await analysePaths([job]);
    const tar = await analysePaths([join(root, 'job.tar.gz')]);
    const anywhere = (report: Report) =>
      JSON.parse(
        JSON.stringify({ ...report, inputs: [...report.inputs].sort((a, b) => (a.path < b.path ? -1 : 1)) }).replaceAll('job/', ''),
      ) as Report;
    expect(anywhere(await analysePaths([zip]))).toEqual(anywhere(folder));
    expect(anywhere(tar)).toEqual(anywhere(folder));
  });

  test('both languages have the same findings and figures and no text is left out', async () => {
    const [en, zh] = [await analysePaths([job]), await analysePaths([job], { lang: 'zh' })];
    expect(zh.findings.map((f) => [f.id, f.ranks, f.saving?.perStepMs])).toEqual(
      en.findings.map((f) => [f.id, f.ranks, f.saving?.perStepMs]),
    );
    for (const f of zh.findings) expect(f.title).toMatch(/[\u4e00-\u9fff]/);
    for (const report of [en, zh]) for (const f of report.findings) for (const e of f.evidence) expect(e.text).not.toBe('');
  });

  test('an id is the same on the next run and does not depend on the figures', async () => {
    const other = join(root, 'other');
    await writeProfiles(simulate({ ranks: 2, seed: 9, soc: 'Ascend910B3', faults: [{ kind: 'layout' }, { kind: 'recompile' }] }), other);
    const ids = (r: Report): string[] => r.findings.map((f) => f.id).sort();
    expect(ids(await analysePaths([other]))).toEqual(ids(await analysePaths([job])));
  });

  test('home folders of the machine do not get into the report', async () => {
    const dir = join(root, 'home');
    const site = { file: '/home/alice/code/train.py', line: 44, func: 'forward' };
    await writeProfiles(simulate({ ranks: 2, code: { layout: site, compile: site }, faults: [{ kind: 'layout' }] }), dir);
    const report = await analysePaths([dir]);
    expect(report.findings[0]!.locations[0]!.file).toBe('~/code/train.py');
    expect(JSON.stringify(report)).not.toContain('alice');
  });
});

describe('options', () => {
  test('a rule that is switched off is not applicable and says so, once, whatever the list', async () => {
    const report = await analysePaths([job], { disabledRules: ['op-recompile', 'op-recompile', 'no-such-rule'] });
    expect(report.checked.filter((c) => c.rule === 'op-recompile')).toEqual([
      { rule: 'op-recompile', outcome: 'notApplicable', reason: 'switched off in the configuration' },
    ]);
    expect(report.checked).toHaveLength(RULES.length);
    expect(report.findings.some((f) => f.rule === 'op-recompile')).toBe(false);
  });

  test('thresholds reach their rule and stay within their bounds', async () => {
    const quiet = await analysePaths([job], { thresholds: { 'op-recompile': { minShare: 1e9 } } });
    expect(quiet.findings.some((f) => f.rule === 'op-recompile')).toBe(false);
    const loud = await analysePaths([job], { thresholds: { 'op-recompile': { minShare: -5, minCalls: -5 } } });
    expect(loud.findings.some((f) => f.rule === 'op-recompile')).toBe(true);
  });

  test('progress counts the bytes up to the whole', async () => {
    const seen: number[] = [];
    let total = 0;
    const source = await openSource(job);
    await analyse({
      sources: [source],
      options: DEFAULT_OPTIONS,
      source: null,
      onProgress: (p) => {
        if (p.phase !== 'read') return;
        seen.push(p.done);
        total = p.total;
      },
    });
    await source.close();
    expect(seen.length).toBeGreaterThan(5);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
    expect(seen.at(-1)!).toBeLessThanOrEqual(total);
    expect(seen.at(-1)!).toBeGreaterThan(0.9 * total);
  });

  test('an abort ends the analysis', async () => {
    const source = await openSource(job);
    await expect(analyse({ sources: [source], options: DEFAULT_OPTIONS, source: null, signal: AbortSignal.abort() })).rejects.toThrow();
    await source.close();
  });
});

describe('a broken rule', () => {
  const text = { en: 'x', zh: 'x' };
  const broken: Rule = defineRule({
    id: 'broken',
    title: text,
    category: 'host',
    maturity: 'stable',
    needs: [],
    options: {},
    remedies: [],
    detect: () => {
      throw new Error('boom');
    },
  });

  test('costs its own check, and the engine says what it threw', async () => {
    const ranks = await factsOf(job);
    expect(() => broken.detect(jobFacts(ranks), {})).toThrow('boom');
    const report = buildReport({
      job: jobFacts(ranks),
      outcomes: [
        { rule: broken, detection: { outcome: 'error', reason: 'boom' } },
        { rule: RULES[0]!, detection: { outcome: 'pass', reason: { text } } },
      ],
      inputs: [],
      notes: [],
      lang: 'en',
      version: '0',
      advise: () => [],
    });
    expect(report.checked).toEqual([
      { rule: 'broken', outcome: 'error', reason: 'boom' },
      { rule: RULES[0]!.id, outcome: 'pass', reason: 'x' },
    ]);
    expect(Report.safeParse(report).success).toBe(true);
  });

  test('inside an analysis it is an error of that rule and all others still report', async () => {
    const rule = RULES.find((r) => r.id === 'slow-rank')!;
    const detect = rule.detect;
    Object.assign(rule, {
      detect: () => {
        throw new Error('boom');
      },
    });
    try {
      const report = await analysePaths([job]);
      expect(report.checked.find((c) => c.rule === 'slow-rank')).toEqual({ rule: 'slow-rank', outcome: 'error', reason: 'boom' });
      expect(report.findings.map((f) => f.rule)).toEqual(expect.arrayContaining(['transpose-hotspot', 'op-recompile']));
      expect(Report.safeParse(report).success).toBe(true);
    } finally {
      Object.assign(rule, { detect });
    }
  });
});

describe('changes to the source', () => {
  /** Everything that could be faster, in a job that is not slow. */
  const SLOW = `import torch
import torch_npu
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

torch.npu.config.allow_internal_format = True
torch_npu.npu.set_compile_mode(jit_compile=True)
loader = DataLoader(dataset)
model = DDP(model, find_unused_parameters=True)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step, (x, y) in enumerate(loader):
    x, y = x.npu(), y.npu()
    q = torch.rand(3, 3)
    q[q > 0.5] = 0
    s = torch.matmul(q, q.transpose(-2, -1).contiguous())
    model(x, y).backward()
    optimizer.step()
    torch.npu.synchronize()
    torch.npu.empty_cache()
`;

  async function withSource(dir: string): Promise<Report> {
    const profile = await openSource(dir);
    try {
      return await analyse({ sources: [profile], options: DEFAULT_OPTIONS, source: repository({ 'train.py': SLOW }) });
    } finally {
      await profile.close();
    }
  }

  test('come from findings: one patch, no lines offered twice', async () => {
    const report = await withSource(job);
    const edits = report.findings.flatMap((finding) => finding.recommendations.flatMap((change) => change.edits));
    const offered = edits.filter(({ kind }) => kind === 'suggestion').map(({ startLine }) => startLine);
    expect(offered).toEqual([...new Set(offered)]);
    expect(report.patch).toContain('+torch_npu.npu.set_compile_mode(jit_compile=False)');
    expect(report.patch).not.toContain('num_workers');
    expect(Report.safeParse(report).success).toBe(true);
  });

  test('there are none where the profile shows nothing slow, whatever the code looks like', async () => {
    const healthy = join(root, 'healthy');
    await writeProfiles(simulate({ ranks: 2, soc: 'Ascend910B3' }), healthy);
    const report = await withSource(healthy);
    const speed = report.findings.filter(({ rule }) => rule !== 'migration-review');
    expect(speed.flatMap((finding) => finding.recommendations.flatMap((change) => change.edits))).toEqual([]);
    expect(report.patch ?? '').not.toMatch(/^[+].*(num_workers|non_blocking|masked_fill_|jit_compile)/m);
  });
});

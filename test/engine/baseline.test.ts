/* The engine with a baseline: profile or digest, repeats, what cannot be read, and what the report says. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JobSpec, simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse, type EngineOptions } from '../../src/engine/analyse.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { Report } from '../../src/model/report.ts';
import { RULES } from '../../src/rules/index.ts';
import { openSource } from '../../src/sources/index.ts';
import { DEFAULT_OPTIONS, totalsComplaints } from '../support/grid.ts';
import { factsOf } from '../support/simulated.ts';

let root = '';
const SPEC: JobSpec = { ranks: 2, layers: 4, steps: 8, soc: 'Ascend910B3' };
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'npu-advisor-baseline-'));
  await writeProfiles(simulate({ ...SPEC, faults: [{ kind: 'layout' }] }), join(root, 'layout'));
  await writeProfiles(simulate({ ...SPEC, seed: 9, faults: [{ kind: 'layout', off: true }] }), join(root, 'plain'));
  await writeFile(join(root, 'plain.json'), factsToJson(await factsOf(join(root, 'plain'))));
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

async function compare(head: string, base: readonly string[], options: Partial<EngineOptions> = {}, isOneOfMany = false): Promise<Report> {
  const opened = await Promise.all([head, ...base].map((name) => openSource(join(root, name))));
  try {
    const [source, ...runs] = opened;
    const baseline = runs.map((run) => ({ label: run.label, sources: [run], isOneOfMany }));
    return await analyse({ sources: [source!], options: { ...DEFAULT_OPTIONS, ...options }, source: null, baseline });
  } finally {
    for (const source of opened) await source.close();
  }
}

test('of runs that nobody asked for by name, those that do not fit are left out where others do', async () => {
  const moved = factsFromJson(await readFile(join(root, 'plain.json'), 'utf8')).map((rank) => ({
    ...rank,
    settings: { ...rank.settings, soc: 'Ascend910A' },
  }));
  await writeFile(join(root, 'moved.json'), factsToJson(moved));
  expect((await compare('plain.json', ['plain.json', 'moved.json'])).comparison?.verdict).toBe('incomparable');
  const { comparison } = await compare('plain.json', ['plain.json', 'moved.json'], {}, true);
  expect(comparison).toMatchObject({ verdict: 'noise', baseline: { runs: [{ label: 'plain.json' }] } });
  expect((await compare('plain.json', ['moved.json'], {}, true)).comparison?.verdict).toBe('incomparable');
});

describe('a slower job', () => {
  test('keeps the schema, its sums and every rule exactly once', async () => {
    const report = await compare('layout', ['plain']);
    expect(Report.safeParse(report).error?.issues).toBeUndefined();
    expect(report.checked.map((c) => c.rule).sort()).toEqual(RULES.map((r) => r.id).sort());
    expect(totalsComplaints(report)).toEqual([]);
    const c = report.comparison!;
    expect(c).toMatchObject({ verdict: 'regression', baseline: { kind: 'npu', label: 'plain' }, samples: { base: 7, head: 7 } });
    expect(c.deltaMs! / c.baseline.stepTimeMs!).toBeCloseTo(c.deltaShare!, 4);
    expect(c.interval![0]).toBeLessThanOrEqual(c.deltaMs!);
    expect(c.interval![1]).toBeGreaterThanOrEqual(c.deltaMs!);
    expect(c.contributors.reduce((sum, x) => sum + x.deltaMs, 0)).toBeCloseTo(c.deltaMs!, 2);
    expect(c.contributors.at(-1)!.part).toBe('other');
    expect(c.contributors[0]).toMatchObject({ part: 'computing', what: 'computing' });
  });

  test('the regression is filed under the new cause that explains it, and claims nothing itself', async () => {
    const report = await compare('layout', ['plain']);
    const cause = report.findings.find((f) => f.rule === 'transpose-hotspot')!;
    const regression = report.findings.find((f) => f.rule === 'regression')!;
    expect(regression).toMatchObject({ symptomOf: cause.id, severity: 'info', saving: { perStepMs: { floor: 0, likely: 0, ceiling: 0 } } });
    expect(report.comparison!.findings[0]).toMatchObject({ id: cause.id, change: 'new', baseMs: null, bound: false });
  });

  test('with nothing that explains it, it stands for itself, measured', async () => {
    const report = await compare('layout', ['plain'], { disabledRules: RULES.map((r) => r.id).filter((id) => id !== 'regression') });
    const [regression, ...others] = report.findings;
    expect(others).toEqual([]);
    const { deltaMs, interval } = report.comparison!;
    expect(regression).toMatchObject({ rule: 'regression', symptomOf: null, confidence: 'high', saving: { basis: 'measured' } });
    const { floor, likely, ceiling } = regression!.saving!.perStepMs;
    expect(likely).toBeCloseTo(deltaMs!, 3);
    expect([floor, ceiling]).toEqual([expect.closeTo(interval![0], 3), expect.closeTo(interval![1], 3)]);
    expect(report.totals.claimedMsPerStep.likely).toBeCloseTo(deltaMs!, 2);
    expect(totalsComplaints(report)).toEqual([]);
  });

  test('the gate fails beyond its limit only', async () => {
    const outcome = async (regression: { ms?: number; share?: number }, head = 'layout', base = 'plain'): Promise<string | undefined> =>
      (await compare(head, [base], { gate: { regression } })).gate?.outcome;
    expect(await outcome({ share: 0.02 })).toBe('fail');
    expect(await outcome({ ms: 0.5 })).toBe('fail');
    expect(await outcome({ share: 0.5 })).toBe('pass');
    expect(await outcome({ share: 0.02 }, 'plain', 'layout')).toBe('pass');
    expect(await outcome({ share: 0.0001 }, 'plain', 'plain')).toBe('pass');
  });

  test('both languages say the same figures', async () => {
    const [en, zh] = [await compare('layout', ['plain']), await compare('layout', ['plain'], { lang: 'zh' })];
    const figures = (r: Report) => ({ ...r.comparison!, text: '', method: '', metrics: [], contributors: [], findings: [], warnings: [] });
    expect(figures(zh)).toEqual(figures(en));
    expect(zh.comparison!.contributors.map((c) => c.deltaMs)).toEqual(en.comparison!.contributors.map((c) => c.deltaMs));
    for (const text of [zh.comparison!.text, zh.comparison!.method, ...zh.comparison!.contributors.map((c) => c.what)])
      expect(text).toMatch(/[\u4e00-\u9fff]/);
  });

  test('the same twice, and no baseline is no comparison', async () => {
    expect(JSON.stringify(await compare('layout', ['plain']))).toBe(JSON.stringify(await compare('layout', ['plain'])));
    const alone = await compare('layout', []);
    expect(alone.comparison).toBeNull();
    expect(alone.checked.find((c) => c.rule === 'regression')).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('a digest as baseline', () => {
  test('gives what the profile gives', async () => {
    const [profile, digest] = [await compare('layout', ['plain']), await compare('layout', ['plain.json'])];
    const bare = (r: Report) => ({ ...r.comparison!, baseline: { ...r.comparison!.baseline, label: '', runs: [] } });
    expect(bare(digest)).toEqual(bare(profile));
  });

  test('that is damaged is refused by its name', async () => {
    await writeFile(join(root, 'cut.json'), '{"schema":"npu-advisor.facts/1","ranks":[{"folder":7}]}');
    const refused = compare('layout', ['cut.json']);
    await expect(refused).rejects.toThrow(AdviseError);
    await expect(refused).rejects.toThrow(/^baseline cut\.json: /);
    await expect(refused).rejects.toMatchObject({ told: { zh: { message: expect.stringMatching(/^基线 cut\.json：/) } } });
  });

  test.each<[string, (json: string) => string]>([
    ['steps that last for ages', (json) => json.replaceAll(/"stepMs":[\d.]+/g, '"stepMs":1e20')],
    ['steps of no length', (json) => json.replaceAll(/"stepMs":[\d.]+/g, '"stepMs":0')],
    ['steps that end before they begin', (json) => json.replaceAll(/"stepMs":[\d.]+/g, '"stepMs":-5')],
    ['no figures at all', (json) => json.replaceAll(/"(computing|exposed|free|stage|step)Ms":[\d.]+/g, '"$1Ms":{"$number":"NaN"}')],
    ['names that are markup', (json) => json.replaceAll('MatMulV2', '<img src=x onerror=alert(1)>`|@everyone\\u202e')],
    ['one rank twice', (json) => json.replaceAll('"rank":1', '"rank":0')],
    ['no ranks', (json) => json.replaceAll(/"rank":\d/g, '"rank":null')],
  ])('of hostile figures: %s', async (name, change) => {
    const file = `hostile-${name.replaceAll(' ', '-')}.json`;
    const json = change(factsToJson(await factsOf(join(root, 'plain'))));
    expect(factsFromJson(json).length).toBeGreaterThan(0);
    await writeFile(join(root, file), json);
    const report = await compare('layout', [file]);
    expect(Report.safeParse(report).error?.issues).toBeUndefined();
    const c = report.comparison!;
    expect(JSON.stringify(c)).not.toMatch(/NaN|Infinity|undefined/);
    if (c.deltaMs !== null)
      expect(c.contributors.reduce((sum, x) => sum + x.deltaMs, 0)).toBeCloseTo(c.deltaMs, Math.abs(c.deltaMs) > 1e6 ? -15 : 2);
    expect(totalsComplaints(report)).toEqual([]);
  });
});

test('repeats of the baseline are told apart from one run', async () => {
  const report = await compare('layout', ['plain', 'plain.json']);
  const c = report.comparison!;
  expect(c.baseline.runs).toHaveLength(2);
  expect(c.spreadMs).toBe(0);
  expect(c.verdict).toBe('regression');
  expect(c.text).toMatch(/2 runs of the baseline/);
});

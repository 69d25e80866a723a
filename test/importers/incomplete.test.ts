/* Captures that are cut, sampled or stopped too early: what is used is said, and what rests on it is less certain. */

import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createInterner } from '../../src/base/interner.ts';
import { say } from '../../src/base/phrase.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { createOrigin } from '../../src/importers/ascend-text/origin.ts';
import { readTrace } from '../../src/importers/ascend-text/read-trace.ts';
import { sampleNote } from '../../src/importers/capture-limit.ts';
import { findCaptures, readRank } from '../../src/importers/index.ts';
import { isParserLog, readParserLog } from '../../src/importers/parser-log.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { Report } from '../../src/model/report.ts';
import { openSource } from '../../src/sources/index.ts';
import { withWrittenJob } from '../support/grid.ts';
import { chunksOf, entryOf, kernelDetails, trace, traceEvents } from '../support/profile-text.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-incomplete-'));
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

async function reportOf(path: string, lang: 'en' | 'zh' = 'en'): Promise<Report> {
  const source = await openSource(path);
  try {
    return Report.parse(
      await analyse({ sources: [source], options: { lang, thresholds: {}, disabledRules: [], gate: null }, source: null }),
    );
  } finally {
    await source.close();
  }
}

const OUT = 'ASCEND_PROFILER_OUTPUT';
const info = (rank: number, config: object = {}): string => JSON.stringify({ rank_id: rank, config });
const inputOf = (report: Report, name: string): Report['inputs'][number] => report.inputs.find((i) => i.path.endsWith(name))!;

/** A file of one rank of a simulated job. */
async function fileOf(path: string, rank: number, name: string): Promise<string> {
  for (const folder of await readdir(path)) {
    if ((await readdir(join(path, folder))).includes(`profiler_info_${rank}.json`)) return join(path, folder, OUT, name);
  }
  throw new Error(`no rank ${rank}`);
}

describe('A30: a trace that breaks off', () => {
  const fault = { kind: 'layout' } as const;
  const findingOf = async (path: string, rule = 'transpose-hotspot', lang: 'en' | 'zh' = 'en') =>
    (await reportOf(path, lang)).findings.find((f) => f.rule === rule)!;

  test('findings on that rank are medium at most, and say where the file ends', async () => {
    await withWrittenJob({ ranks: 2, steps: 6, faults: [{ ...fault }] }, async (path) => {
      const whole = await findingOf(path);
      expect(whole.confidence).toBe('high');
      expect(whole.caveats.join()).not.toMatch(/ends after/);
      const file = await fileOf(path, 0, 'trace_view.json');
      await truncate(file, (await stat(file)).size - 400);
      const cut = await findingOf(path);
      expect(cut.ranks).toEqual([0, 1]);
      expect(cut.confidence).toBe('medium');
      expect(cut.caveats.join()).toMatch(/`trace_view\.json` ends after [\d,]+ events \(byte [\d,]+\): what came later is unknown/);
      expect((await findingOf(path, 'transpose-hotspot', 'zh')).caveats.join()).toMatch(/之后的内容未知/);
      // What is missing are the last few events: the figure stays.
      expect(cut.saving!.perStepMs.likely).toBeCloseTo(whole.saving!.perStepMs.likely!, 0);
    });
  });

  test('a finding that neither names nor shows that rank keeps its confidence', async () => {
    await withWrittenJob({ ranks: 3, steps: 6, faults: [{ kind: 'slow-rank', rank: 1 }] }, async (path) => {
      const whole = (await reportOf(path)).findings;
      const file = await fileOf(path, 2, 'trace_view.json');
      await truncate(file, (await stat(file)).size - 400);
      for (const finding of (await reportOf(path)).findings) {
        const before = whole.find((f) => f.id === finding.id);
        if (before === undefined) continue;
        const rests = finding.ranks.length === 0 || finding.ranks.includes(2) || finding.evidence.some((e) => e.rank === 2);
        expect(finding.caveats.some((c) => /ends after/.test(c))).toBe(rests);
        expect(finding.confidence).toBe(rests && before.confidence === 'high' ? 'medium' : before.confidence);
      }
    });
  });

  test('a table that ends within a row says so', async () => {
    await withWrittenJob({ ranks: 2, steps: 6, faults: [{ ...fault }] }, async (path) => {
      const file = await fileOf(path, 0, 'kernel_details.csv');
      const text = await readFile(file, 'latin1');
      await truncate(file, text.lastIndexOf('"""') - 2);
      const finding = await findingOf(path);
      expect(finding.confidence).toBe('medium');
      expect(finding.caveats.join()).toMatch(/`kernel_details\.csv` ends within row [\d,]+/);
    });
  });

  test('facts.json keeps where a file ends', async () => {
    const file = trace({ steps: 3 });
    const path = await write({
      [`a_ascend_pt/${OUT}/trace_view.json`]: file.slice(0, -30),
      [`a_ascend_pt/${OUT}/kernel_details.csv`]: kernelDetails({ steps: 3 }),
    });
    const source = await openSource(path);
    const { folders } = await findCaptures(source.entries);
    const facts = rankFacts(await readRank(folders[0]!, () => {}));
    expect(facts.damage).toHaveLength(1);
    expect(factsFromJson(factsToJson([facts]))[0]!.damage).toEqual(facts.damage);
  });
});

describe('A46: more rows than are kept', () => {
  const STEPS = 40;
  const text = (steps = STEPS): Buffer => Buffer.from(trace({ steps, collectives: false }));
  const withoutSteps = (): Buffer =>
    Buffer.from(
      JSON.stringify(traceEvents({ steps: STEPS, collectives: false }).filter((e) => !JSON.stringify(e).includes('ProfilerStep'))),
    );
  const sampled = (bytes: Buffer) => readTrace([chunksOf(bytes, 1 << 20)], createOrigin(), createInterner(), 400);

  test('the sample is stated: rows, rate and the time they cover', async () => {
    const { limited, sample } = await sampled(text());
    // 31 rows a step: one fetch and 30 kernels.
    expect(sample.allRows).toBe(STEPS * 31);
    expect(sample.rows).toBeLessThanOrEqual(400);
    expect(sample.rows).toBeGreaterThanOrEqual(limited!.kept * 31);
    expect(sample.allNs).toBe(((STEPS - 1) * 10_000 + 500 + 29 * 200 - 10) * 1_000);
    expect(sample.ns / sample.allNs).toBeCloseTo(sample.rows / sample.allRows, 1);
    expect(say(sampleNote(limited!, sample), 'en')).toMatch(
      new RegExp(
        `a sample is used, the first ${limited!.kept} of its 40 steps \\(${sample.rows} of 1,240 rows, 16.%; 63\\.3.ms of 396\\.3.ms\\)`,
      ),
    );
  });

  test('without steps the time tells', async () => {
    const { limited, sample } = await sampled(withoutSteps());
    expect(limited).toEqual({ kept: 0, all: 0 });
    expect(say(sampleNote(limited!, sample), 'en')).toMatch(
      /a sample is used, its first .* of .* \(\d+ of 1,240 rows, 16.%\); capture a shorter window/,
    );
    expect(say(sampleNote(limited!, sample), 'zh')).toMatch(/使用一个样本/);
  });

  test('what fits is no sample', async () => {
    const { limited, sample } = await sampled(text(5));
    expect(limited).toBeNull();
    expect(sample.rows).toBe(sample.allRows);
    expect(sample.ns).toBe(sample.allNs);
  });
});

describe('A38: the profiler stopped too early', () => {
  const RECORD =
    '[WARNING] [4711] profiler.py: Incorrect schedule: Stop profiler while current state is RECORD which may result in incomplete parsed data.\n';
  const folder = (more: Readonly<Record<string, string>> = {}, steps = 4): Record<string, string> => ({
    'a_ascend_pt/profiler_info_0.json': info(0),
    [`a_ascend_pt/${OUT}/trace_view.json`]: trace({ steps }),
    [`a_ascend_pt/${OUT}/kernel_details.csv`]: kernelDetails({ steps }),
    ...more,
  });

  test.each([
    ['in the logs of the rank folder', 'a_ascend_pt/logs/profiler_4711.log'],
    ['beside the rank folders', 'profiler.log'],
    ['as saved warnings', 'warnings.txt'],
  ])('%s: the last step is left out and named', async (_, log) => {
    const found = await reportOf(await write(folder({ [log]: `start\n${RECORD}end\n` })));
    expect(found.job.steps).toEqual([6, 7]);
    expect(found.job.droppedSteps).toMatchObject([
      { step: 5 },
      { step: 8, why: expect.stringMatching(/cut off.*stopped while it recorded/) },
    ]);
    expect(inputOf(found, log)).toMatchObject({ kind: 'parser log', status: 'used', note: expect.stringMatching(/last step may be cut/) });
  });

  test('a single step is not left out; what rests on it is less certain', async () => {
    await withWrittenJob({ ranks: 2, steps: 1, faults: [{ kind: 'layout' }] }, async (path) => {
      await writeFile(join(path, 'profiler.log'), RECORD);
      const found = await reportOf(path);
      expect(found.job.steps).toHaveLength(1);
      for (const finding of found.findings) {
        expect(finding.confidence).not.toBe('high');
        expect(finding.caveats.join()).toMatch(/only captured step may be cut/);
      }
      expect(found.findings.length).toBeGreaterThan(0);
    });
  });

  test('a last step with hardly a kernel, as after a last prof.step(), is cut even if nobody says so', async () => {
    const events = traceEvents({ steps: 5 });
    const isLate = (e: object): boolean => 'ts' in e && Number(e.ts) >= Number((events.at(-1) as { ts: string }).ts) - 8_000 + 1_500;
    const cut = events.filter((e) => !isLate(e));
    const files = {
      'a_ascend_pt/profiler_info_0.json': info(0),
      [`a_ascend_pt/${OUT}/trace_view.json`]: JSON.stringify(cut),
    };
    const found = await reportOf(await write(files));
    expect(found.job.droppedSteps.map((d) => d.step)).toEqual([5, 9]);
  });

  test('quiet: a log that names nothing, steps of equal work, a last step with a little less', async () => {
    const quiet = await reportOf(await write(folder({ 'a_ascend_pt/logs/x.log': 'all profiling data parsed\n' })));
    expect(quiet.job.droppedSteps.map((d) => d.step)).toEqual([5]);
    expect(inputOf(quiet, 'x.log').note).toMatch(/no problem/);
    const events = traceEvents({ steps: 5 }).filter((e) => !/"aclnnMatmul_MatMulV2_2[5-9]".*"ts":"17364139710[45]/.test(JSON.stringify(e)));
    const less = await reportOf(
      await write({
        [`a_ascend_pt/${OUT}/trace_view.json`]: JSON.stringify(events),
        [`a_ascend_pt/${OUT}/kernel_details.csv`]: kernelDetails({ steps: 5 }),
      }),
    );
    expect(less.job.droppedSteps.map((d) => d.step)).toEqual([5]);
  });

  test.each([
    ['RECORD', 'RECORD which may', 'RECORD', /last step may be cut/],
    ['WARMUP', 'WARMUP which will', 'WARMUP', /stopped in its warm-up/],
    ['RECORD_AND_SAVE', 'RECORD_AND_SAVE, perhaps', 'RECORD_AND_SAVE', /last step of its schedule/],
    ['nothing', 'NONE', null, /no problem/],
  ])('messages word for word: %s', async (_, rest, stopped, note) => {
    const text = `x\nStop profiler while current state is ${rest} …\n`;
    for (const chunk of [1, 7, 1_000]) {
      const log = await readParserLog(entryOf('profiler.log', text, chunk));
      expect(log.stopped).toBe(stopped);
      expect(say(log.record.note!, 'en')).toMatch(note);
    }
  });

  test('other messages; a message at the very end; what is no log of a profiler', async () => {
    const flows = await readParserLog(entryOf('a.log', '[ERROR] Failed to get acl to npu flow events.'));
    expect(say(flows.record.note!, 'en')).toMatch(/could not be joined/);
    const end = await readParserLog(entryOf('a.log', 'Stop profiler while current state is RECORD'));
    expect(end.stopped).toBe('RECORD');
    expect(['logs/a.log', 'x/logs/b.txt', 'my_profiler.log', 'warnings.txt'].every(isParserLog)).toBe(true);
    expect(['train.log', 'profiler_info.json', 'README.txt', 'catalogs/x.csv'].some(isParserLog)).toBe(false);
  });
});

/*
 * What has to be said about the real text sets, word for word where it matters.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { Report } from '../../src/model/report.ts';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf } from '../support/simulated.ts';

const reports = new Map<string, Report>();
const of = (set: string): Report => reports.get(set)!;
/** Spaces of any width are the same to a reader. */
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe.skipIf(!HAVE_PROFILES)(`real text sets${WHY_SKIPPED}`, () => {
  beforeAll(async () => {
    for (const set of ['level0', 'level1', 'level2', 'st', 'gpt0', 'singleProcess', 'quotedTimes', 'arithmetic'] as const)
      reports.set(set, await analysePaths([PATHS[set]]));
  });

  test('every report keeps its schema and holds no figure that is none', () => {
    for (const [set, report] of reports) {
      expect(Report.safeParse(report).error, set).toBeUndefined();
      expect(JSON.stringify(report), set).not.toMatch(/NaN|undefined|Infinity|rank -1/);
    }
  });

  test.each(['level0', 'level1', 'level2'])('text/%s names no culprit, has only bounds and nothing above medium', (set) => {
    const report = of(set);
    expect(checkOf(report, 'slow-rank').outcome).toBe('notApplicable');
    expect(findingOf(report, 'hccl-sync-wait')!.ranks).toEqual([]);
    for (const f of report.findings) {
      expect(['medium', 'info']).toContain(f.severity);
      if (f.saving === null || f.saving.perStepMs.ceiling === 0) continue;
      expect(f.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    }
    expect(report.verdict.outcome).toBe('incomplete');
    expect(report.totals.claimedMsPerStep.likely).toBeNull();
    expect(report.totals.claimedMsPerStep.ceiling).toBeLessThanOrEqual(report.job.stepTimeMs!);
  });

  test('text/level1: exposed communication, free time, stage and step of rank 0', () => {
    const report = of('level1');
    expect(plain(report.notes[0]!)).toMatch(/102(\.0)? ms exposed communication \(75 %\)/);
    expect(plain(report.notes[0]!)).toMatch(/25\.7 ms free \(19 %\)/);
    expect(plain(report.notes[0]!)).toMatch(/13[67](\.6)? ms stage/);
    const row = report.breakdown.find((r) => r.rank === 0)!;
    expect(row.exposedCommunicationMs).toBeCloseTo(101.963, 2);
    expect(row.freeMs).toBeCloseTo(25.744, 2);
    expect(row.stageMs).toBeCloseTo(136.581, 2);
    expect(row.stepMs).toBeCloseTo(155.986, 2);
    expect(report.job.stepTimeMs).toBeCloseTo(155.986, 2);
    expect(row.stepMs!).toBeCloseTo(row.preparingMs! + row.computingMs! + row.exposedCommunicationMs! + row.freeMs! + row.tailMs!, 2);
  });

  test('cluster tables of eight ranks: how they differ, nobody is named, and what to capture next', async () => {
    const report = await analysePaths([PATHS.cluster8]);
    const notes = plain(report.notes.join(' '));
    expect(notes).toMatch(
      /Over 8 ranks free is 52 % to 87 % of the span, computing differs by 2\.0 % and exposed communication by 5\.67 ×/,
    );
    expect(notes).toMatch(/wait for each other’s host/);
    expect(report.findings.filter((f) => f.ranks.length > 0 && f.rule !== 'profile-quality')).toEqual([]);
    expect(report.findings.filter((f) => (f.saving?.perStepMs.ceiling ?? 0) > 0)).toEqual([]);
    expect(report.verdict.outcome).toBe('incomplete');
    const quality = findingOf(report, 'profile-quality')!;
    expect(quality.evidence.map((e) => e.text).join(' ')).toMatch(/no step marks/);
    expect(report.missing.map((m) => m.remedy).join(' ')).toMatch(/upload `ASCEND_PROFILER_OUTPUT` as a whole/);
  });

  test('text/level1: eight ranks, known from the link ids only, six of them missing', () => {
    const { job } = of('level1');
    expect(job).toMatchObject({ ranks: [0, 1], worldSize: 8, missingRanks: [2, 3, 4, 5, 6, 7] });
    expect(job.worldSizeBasis).toMatch(/link ids/);
  });

  test('text/level1: before the first kernel 3.3 ms of loader, 7.2 ms of a copy that is waited for, 7.4 ms without a recorded cause', () => {
    const report = of('level1');
    const loader = findingOf(report, 'dataloader-stall')!;
    const copy = findingOf(report, 'h2d-copy')!;
    const gap = findingOf(report, 'step-start-gap')!;
    for (const f of [loader, copy, gap]) {
      expect(f.saving!.perStepMs, f.rule).toMatchObject({ floor: 0, likely: null });
      const wait = Number(/wait at least ([\d.]+) ms/.exec(plain(f.caveats.join()))?.[1]);
      expect(wait, f.rule).toBeGreaterThanOrEqual(73);
      expect(wait).toBeLessThan(74);
    }
    expect(loader.saving!.perStepMs.ceiling).toBeCloseTo(3.332, 2);
    // `main.py:350` asks for the copy and `aclrtSynchronizeStreamWithTimeout` holds it for 6.090 ms; 0.84 ms of that the copy runs.
    const inWait = 5.25;
    const copying = 6.09 - inWait;
    expect(copy.saving!.perStepMs.ceiling).toBeGreaterThan(inWait);
    expect(copy.saving!.perStepMs.ceiling).toBeLessThan(inWait + 1.2);
    expect(copy.locations[0]).toMatchObject({ line: 350 });
    const preparing = report.breakdown.find((r) => r.rank === 0)!.preparingMs!;
    expect(preparing).toBeCloseTo(17.9025, 3);
    const parts = [loader, copy, gap].reduce((sum, f) => sum + f.saving!.perStepMs.ceiling, 0);
    expect(parts + copying).toBeCloseTo(preparing, 1);
    expect(plain(gap.evidence[0]!.text)).toMatch(/for 3\.9 ms nothing at all was recorded/);
  });

  test('text/level1: layout kernels are information, 23.85 % of kernel time and 1.4 % of the step', () => {
    const layout = findingOf(of('level1'), 'transpose-hotspot')!;
    expect(layout).toMatchObject({ severity: 'info', ranks: [], saving: { perStepMs: { ceiling: 0 } } });
    expect(plain(layout.evidence[0]!.text)).toMatch(/23\.85 %/);
    expect(plain(layout.evidence[0]!.text)).toMatch(/`TransData`, `TensorMove`, `Transpose`/);
    expect(plain(layout.title)).toMatch(/1\.4 % of the step/);
  });

  test('text/level0: the world is unknown and the first all-reduce lasts on after the last uploaded rank arrived', () => {
    const report = of('level0');
    expect(report.job).toMatchObject({ worldSize: null, missingRanks: [] });
    const quality = findingOf(report, 'profile-quality')!
      .evidence.map((e) => plain(e.text))
      .join('\n');
    expect(quality).toMatch(
      /`hcom_allReduce__868_0_1` lasts on for 56(\.1)? ms after the last uploaded rank arrived: ranks may be missing/,
    );
    expect(checkOf(report, 'op-recompile').outcome).toBe('notApplicable');
  });

  test('st/level2: unequal pipeline stages, not a slow card', () => {
    const report = of('st');
    const stage = findingOf(report, 'stage-imbalance')!;
    expect(stage.ranks).toEqual([2, 3]);
    expect(stage.title).toMatch(/1\.73 ×/);
    expect(findingOf(report, 'slow-rank')).toBeUndefined();
    expect(report.job).toMatchObject({ ranks: [0, 1, 2, 3], worldSize: 4, missingRanks: [] });
    expect(findingOf(report, 'hccl-sync-wait')?.symptomOf ?? stage.id).toBe(stage.id);
  });

  test('one rank of many never says that most of its communication is waiting', () => {
    expect(findingOf(of('gpt0'), 'hccl-sync-wait')!.title).toMatch(/not known/);
  });

  test('every source of evidence is a file of the upload', () => {
    for (const [set, report] of reports) {
      const paths = new Set(report.inputs.map((i) => i.path));
      for (const f of report.findings)
        for (const e of f.evidence) if (e.source !== null) expect(paths, `${set} ${f.rule}`).toContain(e.source);
    }
  });

  test('the output of msprof op is refused with what to upload instead', async () => {
    await expect(analysePaths([PATHS.opprof])).rejects.toMatchObject({ code: 'no-profile', hint: expect.stringMatching(/msprof op/) });
  });

  test('db exports without text say so or are read, never nothing', async () => {
    const outcome = await analysePaths([PATHS.level0.replace('/text/level0', '/db/level1')]).then(
      (report) => report.schema,
      (error: { code?: string }) => error.code,
    );
    expect(['npu-advisor.report/1', 'no-profile']).toContain(outcome);
  });
});

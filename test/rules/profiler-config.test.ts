import { describe, expect, test } from 'vitest';
import { jobFacts } from '../../src/facts/job/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { analysePaths } from '../support/grid.ts';
import { readOnly, type TraceOptions, trace, traceEvents, ts } from '../support/profile-text.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'profiler-config';
const JOB = { ranks: 1, layers: 12, steps: 3 } as const;
const texts = (report: Parameters<typeof findingOf>[0]): string =>
  findingOf(report, RULE)
    ?.evidence.map((e) => e.text)
    .join('\n') ?? '';

/** A hand-made capture with the settings file of its profiler. */
async function captured(schedule: object | null, events: object[] | TraceOptions, common: object = {}) {
  const info = { rank_id: 0, config: { common_config: { schedule, ...common }, experimental_config: { _profiler_level: 'Level1' } } };
  const text = Array.isArray(events) ? JSON.stringify(events) : trace(events);
  return rankFacts(
    await readOnly({
      'r_ascend_pt/profiler_info_0.json': JSON.stringify(info),
      'r_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': text,
    }),
  );
}

describe('quiet', () => {
  test('a plain capture after ten steps', async () => {
    expect(checkOf(await reportFor({ ...JOB, withStack: false }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: call stacks where the card is what is waited for', async () => {
    expect(checkOf(await reportFor(JOB), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: l2_cache, profile_memory and Level2 are no fault by themselves', async () => {
    const report = await reportFor({ ...JOB, level: 2, profiler: { l2Cache: true, profileMemory: true } });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('without profiler_info.json it is not applicable', async () => {
    const facts = rankFacts(await readOnly({ 'r_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': trace({ steps: 3 }) }));
    expect(checkOf(reportOf([facts]), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('options that slow the host bias a report on the host', async () => {
    const report = await reportFor({ ranks: 1, layers: 4, steps: 3, faults: [{ kind: 'small-ops' }], profiler: { withModules: true } });
    expect(texts(report)).toMatch(/`with_stack`, `with_modules` slow the host, and \d\d\s?% of the step/);
    expect(texts(report)).toMatch(/record the code twice/);
    expect(findingOf(report, RULE)).toMatchObject({ severity: 'info', saving: null, ranks: [] });
  });

  test.each<[string, Parameters<typeof reportFor>[0], RegExp]>([
    ['endless repetition', { ...JOB, profiler: { schedule: { repeat: 0 } } }, /`repeat=0`/],
    ['no warm-up', { ...JOB, profiler: { schedule: { warmup: 0, skipFirst: 0, wait: 1 } } }, /before the recording: 1/],
    ['one step', { ...JOB, steps: 1 }, /`active=1`/],
    ['a stop while recording', { ...JOB, profiler: { schedule: { active: 8 } } }, /`active=8`, but 3 steps are here/],
  ])('%s', async (_, spec, text) => {
    expect(texts(await reportFor(spec))).toMatch(text);
  });

  test('a schedule without prof.step(), and no schedule at all', async () => {
    const noMarks = traceEvents({ steps: 1 }).filter((e) => !('name' in e) || !String(e.name).startsWith('ProfilerStep'));
    const schedule = { wait: 1, warmup: 1, active: 3, repeat: 1, skip_first: 0 };
    expect(texts(reportOf([await captured(schedule, noMarks)]))).toMatch(
      /a schedule is set, but no step mark.*`prof\.step\(\)` is not called/,
    );
    expect(texts(reportOf([await captured(null, noMarks, { with_stack: false })]))).toMatch(/no schedule was set/);
  });

  test('one activity only', async () => {
    const facts = await captured(
      { active: 3, warmup: 1, skip_first: 10, repeat: 1 },
      { steps: 3 },
      { activities: ['ProfilerActivity.CPU'] },
    );
    expect(texts(reportOf([facts]))).toMatch(/only `ProfilerActivity\.CPU` was recorded/);
  });

  test('a trace of a gigabyte', async () => {
    const facts = await captured({ active: 3, warmup: 1, skip_first: 10, repeat: 1 }, { steps: 3 });
    const inputs = facts.inputs.map((i) => (i.kind === 'trace' ? { ...i, bytes: 1.2e9 } : i));
    expect(texts(reportOf([{ ...facts, inputs }]))).toMatch(/a trace of 1\.2\sGB for 3 steps/);
  });
});

describe('A38: stopped while it recorded', () => {
  const schedule = { active: 5, warmup: 1, skip_first: 10, repeat: 1 };
  test('a last step that is cut is left out of the figures, and it is said', async () => {
    const events = traceEvents({ steps: 3 });
    // The last step ends after a third of its kernels.
    const kept = events.filter(
      (e) => !('ts' in e) || Number(e.ts) < Number(ts(22_500)) || String((e as { name?: string }).name).startsWith('ProfilerStep'),
    );
    const facts = await captured(schedule, kept);
    const { steps } = jobFacts([facts]);
    expect(steps.used).toEqual([5, 6]);
    expect(steps.dropped).toMatchObject([{ step: 7, why: 'cut' }]);
    expect(reportOf([facts]).job.droppedSteps[0]!.why).toMatch(/cut off/);
  });

  test('a last step that is whole counts', async () => {
    expect(jobFacts([await captured(schedule, { steps: 3 })]).steps.used).toEqual([5, 6, 7]);
  });
});

describe('options', () => {
  test('sizes and shares can be set', async () => {
    expect(texts(await reportFor(JOB, { [RULE]: { minHostShare: 0 } }))).toMatch(/`with_stack` slow the host/);
    const facts = await captured({ active: 3, warmup: 1, skip_first: 10, repeat: 1 }, { steps: 3 });
    const inputs = facts.inputs.map((i) => (i.kind === 'trace' ? { ...i, bytes: 20e6 } : i));
    expect(texts(reportOf([{ ...facts, inputs }], { [RULE]: { maxTraceMb: 10 } }))).toMatch(/20\.0\sMB/);
  });
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  test.each([
    ['level0', [/`active=1`/, /`with_stack`, `with_modules`, `profile_memory` slow the host/, /record the code twice/, /`l2_cache=True`/]],
    ['level2', [/`with_stack`, `with_modules`, `profile_memory`, `Level2` slow the host/, /`Level2` is needed for AI CPU details only/]],
    ['st', [/`active=1`/, /`Level2` is needed/]],
    ['gpt0', [/record the code twice/]],
  ] as const)('%s', async (set, wanted) => {
    const found = texts(await analysePaths([PATHS[set]]));
    for (const text of wanted) expect(found).toMatch(text);
  });
});

import { describe, expect, test } from 'vitest';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { readOnly, STEP_HEADER } from '../support/profile-text.ts';
import { checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'profile-quality';

describe('quiet', () => {
  test('all ranks, several steps, traces and stacks leave no question', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });
});

describe('loud', () => {
  test('it costs nothing: no saving, information, no rank to blame', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, level: 0 }), RULE)!;
    expect(finding).toMatchObject({ severity: 'info', saving: null, ranks: [] });
  });

  test.each<[string, Parameters<typeof reportFor>[0], RegExp]>([
    ['missing ranks are counted and listed', { ranks: 4, uploadedRanks: [0, 2] }, /2 of 4 ranks are missing \(1, 3\)/],
    ['one step is too few', { ranks: 2, steps: 1 }, /1 step captured/],
    ['Level0 is named', { ranks: 2, level: 0 }, /Level0/],
    ['missing stacks are named', { ranks: 2, withStack: false }, /no call stacks/],
  ])('%s', async (_, spec, text) => {
    const finding = findingOf(await reportFor(spec), RULE)!;
    expect(finding.evidence.map((e) => e.text).join('\n')).toMatch(text);
  });

  test('a rank of unknown number is a question mark, never 0 or -1', async () => {
    const facts = rankFacts(await readOnly({ 'x/step_trace_time.csv': `${STEP_HEADER}\n5,3000,1000,0,1000,4000,8000,0,1000,500\n` }));
    const report = reportOf([facts]);
    const text = JSON.stringify(report);
    expect(text).toMatch(/rank \?/);
    expect(text).not.toMatch(/rank -1|NaN|undefined/);
    expect(report.job.ranks).toEqual([]);
    expect(report.job.unrankedFolders).toBe(1);
  });

  test('folders of unknown number are not also counted as missing', async () => {
    const meta = JSON.stringify({ parallel_group_info: { g: { group_name: 'default_group', group_rank: 0, global_ranks: [0, 1] } } });
    const rank = async (folder: string) =>
      rankFacts(
        await readOnly({
          [`${folder}/profiler_metadata.json`]: meta,
          [`${folder}/ASCEND_PROFILER_OUTPUT/step_trace_time.csv`]: `${STEP_HEADER}\n5,3000,1000,0,1000,4000,8000,0,1000,500\n`,
        }),
      );
    const report = reportOf([await rank('host_a'), await rank('host_b')]);
    expect(report.job).toMatchObject({ worldSize: 2, missingRanks: [], unrankedFolders: 2 });
  });

  test('parts of a step table that do not add up are said', async () => {
    const facts = rankFacts(await readOnly({ 'rank0/step_trace_time.csv': `${STEP_HEADER}\n5,3000,1000,0,1000,4000,12000,0,1000,500\n` }));
    expect(
      findingOf(reportOf([facts]), RULE)!
        .evidence.map((e) => e.text)
        .join(),
    ).toMatch(/do not add up/);
  });
});

describe('options', () => {
  test('minSteps decides how many steps are enough', async () => {
    const report = await reportFor({ ranks: 2 }, { [RULE]: { minSteps: 10 } });
    expect(
      findingOf(report, RULE)!
        .evidence.map((e) => e.text)
        .join(),
    ).toMatch(/3 step captured/);
  });
});

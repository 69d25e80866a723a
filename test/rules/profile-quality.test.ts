import { describe, expect, test } from 'vitest';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { readOnly, STEP_HEADER, ts } from '../support/profile-text.ts';
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

  const said = (report: ReturnType<typeof reportOf>): string =>
    findingOf(report, RULE)!
      .evidence.map((e) => e.text)
      .join();

  test.each([
    [3_000, false],
    [300, true],
  ])('a step table of 3 ms computing and kernels of %i µs', async (us, isCut) => {
    const kernels = `Name,Type,Accelerator Core,Start Time(us),Duration(us)\nMul1,Mul,AI_VECTOR_CORE,${ts(100)},${us}\n`;
    const files = {
      'rank0/step_trace_time.csv': `${STEP_HEADER}\n5,3000,1000,0,1000,4000,8000,0,1000,500\n`,
      'rank0/kernel_details.csv': kernels,
    };
    const text = said(reportOf([rankFacts(await readOnly(files))]));
    if (isCut) expect(text).toMatch(/kernels recorded compute for 0\.3.ms, its step table says 3\.0.ms: kernels are missing/);
    else expect(text).not.toMatch(/kernels are missing/);
  });

  /** Twenty kernels of 30 µs every 500 µs; no host operator. */
  function deviceTrace(launched: boolean): string {
    const lane = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
    const events: object[] = [lane(2, 'CANN'), lane(3, 'Ascend Hardware')];
    for (let k = 0; k < 20; k++) {
      const start = 1_000 + k * 500;
      const flow = { name: `HostToDevice${k}`, cat: 'HostToDevice', id: String(k + 1) };
      if (launched)
        events.push({ ph: 's', ...flow, pid: 2, tid: 2, ts: ts(start - 20) }, { ph: 'f', bp: 'e', ...flow, pid: 3, tid: 7, ts: ts(start) });
      events.push({ ph: 'X', name: `Mul_${k}`, pid: 3, tid: 7, ts: ts(start), dur: 30, args: { 'Task Type': 'AI_VECTOR_CORE' } });
    }
    return JSON.stringify(events);
  }

  test('a trace that is here is not called missing', async () => {
    const report = reportOf([rankFacts(await readOnly({ 'rank0/trace_view.json': deviceTrace(false) }))]);
    expect(said(report)).toMatch(/trace_view\.json of rank .* links no kernel to its launch/);
    expect(said(report)).not.toMatch(/no trace_view\.json/);
  });

  test('a card idle for 94 % is no healthy job where no host operator was recorded', async () => {
    const { verdict } = reportOf([rankFacts(await readOnly({ 'rank0/trace_view.json': deviceTrace(true) }))]);
    expect(verdict).toMatchObject({ outcome: 'incomplete', text: expect.stringMatching(/No host operator was recorded/) });
    expect(verdict.text).not.toMatch(/Nothing to change/);
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

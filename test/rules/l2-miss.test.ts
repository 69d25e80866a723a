import { describe, expect, test } from 'vitest';
import { factsOfTables, filler, type KernelRow, kernelTable, vector } from '../support/kernel-table.ts';
import { checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'l2-miss';

const stream = (us: number, mte2 = 0.95): KernelRow => ({
  type: 'GatherV2',
  us,
  blocks: 48,
  inShapes: '65536,4096',
  inTypes: 'DT_BF16',
  outShapes: '65536,4096',
  outTypes: 'DT_BF16',
  more: vector(0.05, mte2, 0.3),
});

/** l2_cache.csv of the rows, one hit rate each; null is N/A. */
function cache(rows: readonly KernelRow[], hits: readonly (number | null)[], tasks = rows.map((_, i) => i + 1)): string {
  const lines = rows.map((r, i) => `2,${tasks[i]},${hits[i] ?? 'N/A'},0.2,${r.type}`);
  return `Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n${lines.join('\n')}\n`;
}

async function reportOfRows(rows: readonly KernelRow[], l2: string | null) {
  return reportOf([await factsOfTables({ 'kernel_details.csv': kernelTable(rows), ...(l2 === null ? {} : { 'l2_cache.csv': l2 }) })]);
}

const rows = [filler(6_000), stream(2_000), filler(6_000)];

describe('quiet', () => {
  test('no file, and a file without one hit rate as real captures have it: not applicable', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE).outcome).toBe('notApplicable');
    expect(checkOf(await reportOfRows(rows, null), RULE).outcome).toBe('notApplicable');
    expect(checkOf(await reportOfRows(rows, cache(rows, [null, null, null])), RULE).outcome).toBe('notApplicable');
  });

  test('the same rate everywhere is usual, however low', async () => {
    expect(checkOf(await reportOfRows(rows, cache(rows, [0.2, 0.2, 0.2])), RULE).outcome).toBe('pass');
  });

  test('a kernel that does not wait for memory', async () => {
    const calm = [filler(6_000), stream(2_000, 0.4), filler(6_000)];
    expect(checkOf(await reportOfRows(calm, cache(calm, [0.8, 0.1, 0.8])), RULE).outcome).toBe('pass');
  });

  test('a task number that stands for two kernels says nothing', async () => {
    expect(checkOf(await reportOfRows(rows, cache([...rows, stream(1)], [0.8, 0.1, 0.8, 0.9], [1, 2, 3, 2])), RULE).outcome).toBe('pass');
  });
});

test('loud: a long kernel that waits for memory and hits far less than usual is mentioned, without a claim', async () => {
  const finding = findingOf(await reportOfRows(rows, cache(rows, [0.8, 0.1, 0.8])), RULE)!;
  expect(finding).toMatchObject({ severity: 'info', ranks: [], saving: { perStepMs: { likely: 0, ceiling: 0 } } });
  expect(finding.title).toMatch(/`GatherV2` waits for memory with an L2 hit rate of 10/);
  expect(finding.evidence[0]!.source).toMatch(/l2_cache\.csv$/);
});

test('loud: of two kinds of kernels the one that hits less than usual is named', async () => {
  const two = [filler(6_000), { ...stream(3_000), type: 'ScatterUpdate' }, stream(2_000), filler(6_000)];
  const finding = findingOf(await reportOfRows(two, cache(two, [0.6, 0.05, 0.6, 0.6])), RULE)!;
  expect(finding.title).toMatch(/`ScatterUpdate` waits for memory with an L2 hit rate of 5/);
  expect(finding.title).not.toMatch(/GatherV2/);
  expect(finding.saving!.perStepMs).toMatchObject({ likely: 0, ceiling: 0 });
});

test('options: ofUsual and minShare decide', async () => {
  const facts = [await factsOfTables({ 'kernel_details.csv': kernelTable(rows), 'l2_cache.csv': cache(rows, [0.8, 0.1, 0.8]) })];
  expect(findingOf(reportOf(facts, { [RULE]: { ofUsual: 0.05 } }), RULE)).toBeUndefined();
  expect(findingOf(reportOf(facts, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
  expect(findingOf(reportOf(facts, { [RULE]: { minShare: 0.01 } }), RULE)).toBeDefined();
});

import { describe, expect, test } from 'vitest';
import { cube, factsOfTables, filler, type KernelRow, kernelTable, vector } from '../support/kernel-table.ts';
import { checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'pipe-utilisation';

const kernel = (us: number, more: Record<string, number | string>, init: Partial<KernelRow> = {}): KernelRow => ({
  type: 'Conv2DBackpropFilter',
  core: 'AI_CORE',
  us,
  blocks: 24,
  inShapes: '32,64,56,56;32,64,56,56',
  inTypes: 'DT_BF16;DT_BF16',
  more,
  ...init,
});

async function reportOfRows(rows: readonly KernelRow[]) {
  return reportOf([await factsOfTables({ 'kernel_details.csv': kernelTable(rows) })]);
}

const among = (row: KernelRow): KernelRow[] => [filler(10_000), ...Array.from({ length: 30 }, () => row), filler(10_000)];

describe('quiet', () => {
  test('a healthy job', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test.each([
    ['bound by the cube', kernel(300, cube(0.82, 0.4))],
    ['bound by the memory', kernel(300, cube(0.2, 0.96))],
    ['bound by the way out', kernel(300, cube(0.3, 0.4, 0.71))],
    [
      'a copy reads and writes in turn: together that is all of its time',
      kernel(300, vector(0, 0.6, 0.39), { type: 'TensorMove', core: 'AI_VECTOR_CORE' }),
    ],
    ['short ones', kernel(20, cube(0.1, 0.1))],
  ])('%s', async (_, row) => {
    expect(checkOf(await reportOfRows(among(row)), RULE).outcome).toBe('pass');
  });

  test('a few of many: less than 5 % of the step is not worth a line', async () => {
    expect(checkOf(await reportOfRows([filler(20_000), kernel(300, cube(0.1, 0.2)), filler(1_000)]), RULE).outcome).toBe('pass');
  });

  test('Level0 and other metrics: not applicable', async () => {
    expect(checkOf(await reportFor({ ranks: 2, level: 0 }), RULE).outcome).toBe('notApplicable');
    const other = among(kernel(300, {})).map((r) => ({ ...r, more: { aic_mac_fp16_ratio: 0.2, aiv_vec_fp32_ratio: 0 } }));
    expect(checkOf(await reportOfRows(other), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('informs and claims nothing', async () => {
    const finding = findingOf(await reportOfRows(among(kernel(300, cube(0.29, 0.35)))), RULE)!;
    expect(finding).toMatchObject({ severity: 'info', ranks: [], saving: { perStepMs: { likely: 0, ceiling: 0 } } });
    expect(finding.title).toMatch(/`Conv2DBackpropFilter` takes \d+\s*% of the step/);
  });

  test('in a job of two ranks', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, faults: [{ kind: 'idle-pipes' }] }), RULE)!;
    expect(finding.severity).toBe('info');
    expect(finding.title).toMatch(/FlashAttentionScoreGrad/);
  });
});

test('options: minShare and maxBound decide', async () => {
  const spec = { ranks: 2, faults: [{ kind: 'idle-pipes' } as const] };
  expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
  expect(findingOf(await reportFor(spec, { [RULE]: { maxBound: 0.1 } }), RULE)).toBeUndefined();
});

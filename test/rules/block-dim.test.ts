import { describe, expect, test } from 'vitest';
import { cube, factsOfTables, filler, type KernelRow, kernelTable, vector } from '../support/kernel-table.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'block-dim';

const resize = (blocks: number, init: Partial<KernelRow> = {}): KernelRow => ({
  type: 'ResizeLinear',
  us: 400,
  blocks,
  inShapes: '8192,1024',
  inTypes: 'DT_BF16',
  outShapes: '8192,1024',
  outTypes: 'DT_BF16',
  more: vector(0.6, 0.3, 0.2),
  ...init,
});
const usual: KernelRow = resize(48, { type: 'Gelu', us: 12_000, more: vector(0.4, 0.75, 0.5) });

async function reportOfRows(rows: readonly KernelRow[], soc: string | null = 'Ascend910B2') {
  const facts = await factsOfTables({ 'kernel_details.csv': kernelTable(rows) });
  return reportOf([{ ...facts, settings: { ...facts.settings, soc } }]);
}

const among = (row: KernelRow): KernelRow[] => [filler(10_000), ...Array.from({ length: 10 }, () => row), usual];

describe('quiet', () => {
  test('a healthy job', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test.each([
    ['43 of 48 is usual', resize(43)],
    ['a kernel that waits for memory gains nothing from more cores', resize(12, { more: vector(0.2, 0.9, 0.4) })],
    ['a small tensor cannot fill the cores', resize(1, { inShapes: '518,9', outShapes: '518,9' })],
    ['short kernels', resize(12, { us: 30 })],
    ['two whole waves', resize(96)],
  ])('%s', async (_, row) => {
    expect(checkOf(await reportOfRows(among(row)), RULE).outcome).toBe('pass');
  });

  test('cores of which nothing tells: not applicable', async () => {
    const rows = [filler(10_000), resize(12, { us: 4_000 }), resize(20, { us: 4_000 }), resize(31, { us: 4_000 })];
    for (const soc of [null, 'Ascend910B family', 'Ascend999'])
      expect(checkOf(await reportOfRows(rows, soc), RULE).outcome).toBe('notApplicable');
  });

  test('Level0 records 0 blocks: not applicable', async () => {
    expect(checkOf(await reportFor({ ranks: 2, level: 0 }), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('12 blocks on 48 cores: the bound is near the truth, never a likely saving', async () => {
    const fault = { kind: 'few-blocks' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, soc: 'Ascend910B2', faults: [fault] }, fault, RULE);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[0]!.text).toMatch(/48 such cores \(by the name of the device\)/);
  });

  test('a second wave that is nearly empty: 60 blocks on 48 cores', async () => {
    const finding = findingOf(await reportOfRows(among(resize(60))), RULE)!;
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(4 * (1 - 60 / 96), 1);
  });

  test('the same kernel by the new name of the column, on 20 and 40 cores', async () => {
    const twenty = (r: KernelRow): KernelRow => ({ ...r, blocks: r.core === 'AI_CORE' ? 20 : r.blocks === 48 ? 40 : r.blocks! });
    const rows = [...among(resize(8)).map(twenty), { ...filler(100), blocks: 20, more: cube(0.86, 0.8) }];
    const facts = await factsOfTables({ 'kernel_details.csv': kernelTable(rows, 'Block Num') });
    const finding = findingOf(reportOf([facts]), RULE)!;
    expect(finding.title).toMatch(/8 blocks on 40 cores/);
    expect(finding.confidence).toBe('low');
  });
});

test('options: minShare and maxFill decide', async () => {
  const spec = { ranks: 2, faults: [{ kind: 'few-blocks' } as const] };
  expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
  expect(findingOf(await reportFor(spec, { [RULE]: { maxFill: 0.1 } }), RULE)).toBeUndefined();
});

test('one block for a long resize of few channels: the core decides which rule speaks', async () => {
  const row = (core: string): KernelRow =>
    resize(1, { core, us: 2_000, inShapes: '1,518,9', outShapes: '1,518,2700', inTypes: 'FLOAT', outTypes: 'FLOAT' });
  const onVector = await reportOfRows(among(row('AI_VECTOR_CORE')));
  expect(findingOf(onVector, RULE)!.title).toMatch(/1 blocks on 48 cores/);
  expect(findingOf(onVector, 'aicpu-op')).toBeUndefined();
  const onCpu = await reportOfRows(among(row('AI_CPU')));
  expect(findingOf(onCpu, 'aicpu-op')).toBeDefined();
  expect(findingOf(onCpu, RULE)).toBeUndefined();
});

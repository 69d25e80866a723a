import { describe, expect, test } from 'vitest';
import { cube, factsOfTables, filler, type KernelRow, kernelTable } from '../support/kernel-table.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'cube-utilisation';
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

const product = (us: number, n: number, more: Record<string, number | string>, init: Partial<KernelRow> = {}): KernelRow => ({
  type: 'MatMulV3',
  core: 'AI_CORE',
  us,
  blocks: 24,
  inShapes: `4096,7168;7168,${n}`,
  inTypes: 'DT_BF16;DT_BF16',
  outShapes: `4096,${n}`,
  outTypes: 'DT_BF16',
  more,
  ...init,
});

async function reportOfRows(rows: readonly KernelRow[]) {
  return reportOf([await factsOfTables({ 'kernel_details.csv': kernelTable(rows) })]);
}

/** 20 kernels of 120 µs beside 20 ms of other work. */
const among = (row: KernelRow): KernelRow[] => [filler(10_000), ...Array.from({ length: 20 }, () => row), filler(10_000)];

describe('quiet', () => {
  test('a healthy job, although its vocabulary is not a multiple of 512 bytes: the cube is busy', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test.each([
    ['a cube busy for 0.85 is bound, although 0.85 would not be for the memory', product(120, 1531, cube(0.85, 0.4))],
    ['a product that waits for memory is bound', product(120, 1531, cube(0.3, 0.97))],
    ['A28: a product of 9 µs says nothing by its ratios', product(9, 1531, cube(0.31, 0.42))],
    ['an aligned axis', product(120, 1536, cube(0.31, 0.42))],
    [
      'a private format has its own padding',
      product(120, 1531, cube(0.31, 0.42), { inFormats: 'FRACTAL_NZ;FRACTAL_NZ', outFormats: 'FRACTAL_NZ' }),
    ],
    ['a narrow axis cannot be padded for little', product(120, 100, cube(0.31, 0.42))],
  ])('%s', async (_, row) => {
    expect(checkOf(await reportOfRows(among(row)), RULE).outcome).toBe('pass');
  });

  test('no counters: not applicable', async () => {
    const rows = among(product(120, 1531, {}, { more: {} })).map((r) => ({ ...r, more: {} }));
    expect(checkOf(await reportOfRows(rows), RULE).outcome).toBe('notApplicable');
  });

  test('counters without those of the memory: a product that waits for it would look idle', async () => {
    const rows = [filler(10_000), product(5_000, 1531, {})].map((r) => ({ ...r, more: { aic_mac_fp16_ratio: 0.3 } }));
    expect(checkOf(await reportOfRows(rows), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('A28: a tail of 1531 elements is 3,062 bytes, and 1536 the next that fits', async () => {
    const finding = findingOf(await reportOfRows(among(product(120, 1531, cube(0.31, 0.42)))), RULE)!;
    expect(plain(finding.evidence[0]!.text)).toMatch(/last axis of `7168,1531` is 3,062 bytes, not a multiple of 512/);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    // mte2 at 0.42 of at most 0.95 is the nearest to its limit: 56 % of 2.4 ms.
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(2.4 * (1 - 0.42 / 0.95), 1);
    expect(['medium', 'info']).toContain(finding.severity);
  });

  test('a first row without counters does not decide', async () => {
    const missing = Object.fromEntries(Object.keys(cube(0, 0)).map((c) => [c, 'N/A']));
    const [head, ...rest] = among(product(120, 1531, cube(0.31, 0.42)));
    const report = await reportOfRows([{ ...head!, more: missing }, { ...rest[0]!, more: missing }, ...rest]);
    expect(findingOf(report, RULE)).toBeDefined();
  });

  test('the bound holds against the truth and is not far from it', async () => {
    const fault = { kind: 'loose-matmul' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.saving!.perStepMs.likely).toBeNull();
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });
});

test('options: a higher minShare, and a lower maxBound, silence the rule', async () => {
  const spec = { ranks: 2, faults: [{ kind: 'loose-matmul' } as const] };
  expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
  expect(findingOf(await reportFor(spec, { [RULE]: { maxBound: 0.2 } }), RULE)).toBeUndefined();
});

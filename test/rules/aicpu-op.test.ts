import { describe, expect, test } from 'vitest';
import { factsOfTables, filler, type KernelRow, kernelTable } from '../support/kernel-table.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'aicpu-op';
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

const onCpu = (type: string, us: number, more: Partial<KernelRow> = {}): KernelRow => ({
  type,
  us,
  core: 'AI_CPU',
  blocks: 1,
  inShapes: '1024,1024;1024,1024',
  inTypes: 'INT16;INT16',
  outShapes: '1024,1024',
  outTypes: 'INT16',
  ...more,
});

async function reportOfRows(rows: readonly KernelRow[]) {
  return reportOf([await factsOfTables({ 'kernel_details.csv': kernelTable(rows) })]);
}

describe('quiet', () => {
  test('a healthy job has nothing on the AI CPU', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('the bodies of collectives on the AI CPU are communication, however long', async () => {
    const rows = [filler(40_000), onCpu('allreduceAicpuKernel', 30_000, { name: 'allreduceAicpuKernel' }), filler(1_000)];
    const check = checkOf(await reportOfRows(rows), RULE);
    expect(check.outcome).toBe('pass');
    expect(plain(check.reason)).toMatch(/30\.0 ms more are the bodies of collectives/);
  });

  test('one kernel of 20 µs and more beside long AI core kernels is no finding: time counts, not presence', async () => {
    expect(checkOf(await reportOfRows([filler(200_000), onCpu('Cast', 150), filler(10_000)]), RULE).outcome).toBe('pass');
  });

  test('a kernel that waits for data is no operator to replace', async () => {
    expect(checkOf(await reportOfRows([filler(10_000), onCpu('GetNext', 9_000), filler(10_000)]), RULE).outcome).toBe('pass');
  });

  test('Level0 does not record the core: not applicable, never clean', async () => {
    expect(checkOf(await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'aicpu-op' }] }), RULE)).toMatchObject({
      outcome: 'notApplicable',
    });
  });
});

describe('loud', () => {
  test.each([1, 2] as const)('element-wise work on 16-bit integers (pipeline stages: %i): a likely saving within 20 %%', async (pp) => {
    const fault = { kind: 'aicpu-op' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, pp, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(finding.saving!.perStepMs.likely).not.toBeNull();
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[1]!.text).toMatch(/`Mul`, types `INT16;INT16`/);
    expect(finding.locations[0]).toMatchObject({ line: 44 });
  });

  test('indexing: what an AI core needs is not known, so only a bound is given', async () => {
    const fault = { kind: 'aicpu-op', of: 'index' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    expect(headline).toBeGreaterThanOrEqual(truth);
    expect(headline).toBeLessThan(1.2 * truth);
    expect(finding.caveats.join()).toMatch(/upper bound/);
  });

  test('without a trace and a CANN release the time is bounded and the finding stands', async () => {
    const finding = findingOf(await reportOfRows([filler(10_000), onCpu('Mul', 5_000), filler(10_000)]), RULE)!;
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { likely: null } });
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(5, 1);
  });

  test.each(['2025-01', '2025-11'] as const)('column names of %s', async (era) => {
    const report = await reportFor({ ranks: 2, layers: 4, era, faults: [{ kind: 'aicpu-op' }] });
    expect(findingOf(report, RULE)!.ranks).toEqual([0, 1]);
  });
});

test('options: higher limits silence the rule', async () => {
  const spec = { ranks: 2, faults: [{ kind: 'aicpu-op' } as const] };
  expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
  expect(findingOf(await reportFor(spec, { [RULE]: { minMs: 10_000 } }), RULE)).toBeUndefined();
});

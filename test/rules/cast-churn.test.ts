import { describe, expect, test } from 'vitest';
import { factsOfTables, filler, type KernelRow, kernelTable } from '../support/kernel-table.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'cast-churn';
const SHAPE = '8192,4096';

const cast = (from: string, to: string, shape = SHAPE): KernelRow => ({
  type: 'Cast',
  us: 400,
  inShapes: shape,
  inTypes: from,
  outShapes: shape,
  outTypes: to,
});
const op = (type: string, inType: string, outType = inType, shape = SHAPE): KernelRow => ({
  type,
  us: 60,
  inShapes: shape,
  inTypes: inType,
  outShapes: shape,
  outTypes: outType,
});
const up = cast('DT_BF16', 'FLOAT');
const down = cast('FLOAT', 'DT_BF16');

async function casts(rows: readonly KernelRow[]) {
  const facts = await factsOfTables({ 'kernel_details.csv': kernelTable(rows) });
  return { facts, step: facts.casts!.steps[0]!, check: checkOf(reportOf([facts]), RULE) };
}

const repeat = (rows: readonly KernelRow[], times: number): KernelRow[] => Array.from({ length: times }, () => rows).flat();

describe('quiet', () => {
  test('a healthy job', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('mixed precision: the converted tensor is read between the casts', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'cast-pair', used: true }] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });

  test('a reader between them, a pair of other shapes, a pair too far apart, one cast alone: nothing is removable', async () => {
    for (const rows of [
      [up, op('SoftmaxV2', 'FLOAT'), down],
      [up, cast('FLOAT', 'DT_BF16', '4096,4096')],
      [up, ...repeat([op('Relu', 'DT_BF16', 'DT_BF16', '16,16')], 5), down],
      [up],
      [up, up],
    ])
      expect((await casts(repeat([...rows, op('Neg', 'DT_BF16')], 4))).step.removable, JSON.stringify(rows.map((r) => r.type))).toEqual([]);
  });

  test('casts of an optimizer step that runs over half-precision parameters once are no repetition', async () => {
    const report = await reportFor({ ranks: 2, layers: 4, faults: [{ kind: 'weight-cast', off: true }] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });

  test('Level0 has neither types nor shapes', async () => {
    const report = await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'cast-pair' }] });
    expect(checkOf(report, RULE).outcome).toBe('notApplicable');
  });
});

describe('pairs', () => {
  test('both casts go when nothing reads the converted tensor; a widened one comes back exact', async () => {
    const { step, check } = await casts([...repeat([up, down, op('Relu', 'DT_BF16')], 4), filler(2_000)]);
    expect(step).toMatchObject({ count: 8, removableNs: 8 * 400_000 });
    expect(step.removable).toHaveLength(8);
    expect(step.certain).toHaveLength(4);
    expect(check.outcome).toBe('finding');
  });

  test('only the cast back goes when the converted tensor is read later', async () => {
    const { step } = await casts([up, down, op('Relu', 'DT_BF16'), op('Exp', 'FLOAT')]);
    expect(step.removable).toHaveLength(1);
    expect(step.certain).toHaveLength(1);
  });

  test('narrowed and widened again: nothing is certain, since the numbers change', async () => {
    const { step } = await casts([down, up, op('Exp', 'FLOAT')]);
    expect(step.removable).toHaveLength(2);
    expect(step.certain).toEqual([]);
  });

  test('a kernel of unknown shapes may read anything', async () => {
    const { step } = await casts([up, { type: 'Custom', us: 10 }, down]);
    expect(step.removable).toHaveLength(2);
    const blind = await casts([up, down, { type: 'Custom', us: 10, inShapes: SHAPE, inTypes: 'FLOAT' }]);
    expect(blind.step.removable).toHaveLength(1);
  });
});

describe('loud', () => {
  test.each([1, 2] as const)('casts that undo each other (pipeline stages: %i): saving within 20 %%', async (pp) => {
    const fault = { kind: 'cast-pair' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, pp, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving!.perStepMs.floor).toBeLessThan(0.7 * truth);
    expect(finding.evidence[1]!.text).toMatch(/`DT_BF16` → `FLOAT`/);
    expect(finding.locations[0]).toMatchObject({ line: 44 });
  });

  test('weights cast in each pass: all but the first go', async () => {
    const fault = { kind: 'weight-cast' } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.title).toMatch(/4 times per step/);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });
});

test('options: each limit silences the rule', async () => {
  const spec = { ranks: 2, faults: [{ kind: 'cast-pair' } as const] };
  for (const limit of [{ minShare: 0.9 }, { minMs: 10_000 }, { minCount: 100_000 }])
    expect(findingOf(await reportFor(spec, { [RULE]: limit }), RULE)).toBeUndefined();
});

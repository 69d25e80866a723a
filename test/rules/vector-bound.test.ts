import { describe, expect, test } from 'vitest';
import { factsOfTables, filler, type KernelRow, kernelTable, vector } from '../support/kernel-table.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'vector-bound';
const SHAPE = '4096,16384';
/** 4096 × 16384 × 4 bytes */
const BYTES = 268_435_456;

const step = (type: string, init: Partial<KernelRow> = {}): KernelRow => ({
  type,
  us: 400,
  blocks: 48,
  inShapes: `${SHAPE};4096,1`,
  inTypes: 'FLOAT;FLOAT',
  outShapes: SHAPE,
  outTypes: 'FLOAT',
  more: vector(0.06, 0.96, 0.66),
  ...init,
});
const small: KernelRow = { ...step('Maximum', { us: 3, inShapes: '4096,1', outShapes: '4096,1', inTypes: 'FLOAT' }) };

async function chainsOf(rows: readonly KernelRow[]) {
  const facts = await factsOfTables({ 'kernel_details.csv': kernelTable(rows) });
  return { facts, chains: facts.chains!, check: checkOf(reportOf([facts]), RULE) };
}

describe('quiet', () => {
  test('a healthy job', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test.each([
    ['two kernels are an operator and its neighbour', [step('Sub'), step('Exp')]],
    ['the same type again works on another tensor', [step('Mul'), step('Mul'), step('Mul'), step('Mul')]],
    ['tensors of other sizes', [step('Sub'), step('Exp', { inShapes: '4096,8192', outShapes: '4096,8192' }), step('Mul')]],
    [
      'a collective between them needs what it exchanges',
      [step('Sub'), step('Exp'), { us: 900, name: 'hcom_allReduce__1_1_1', core: 'HCCL' }, step('Mul'), step('Neg')],
    ],
    ['kernels bound by arithmetic gain nothing', ['Sub', 'Exp', 'Mul', 'Neg'].map((t) => step(t, { more: vector(0.9, 0.3, 0.2) }))],
    ['short kernels', ['Sub', 'Exp', 'Mul', 'Neg'].map((t) => step(t, { us: 20 }))],
    ['layout kernels have a rule of their own', [step('Transpose'), step('TransData'), step('TensorMove'), step('Transpose')]],
    ['optimizer kernels', [step('ApplyAdamW'), step('ForeachMulScalar'), step('ApplyMomentum')]],
  ] as [string, KernelRow[]][])('%s', async (_, rows) => {
    const { chains, check } = await chainsOf([...rows, filler(500)]);
    expect(chains.chains).toEqual([]);
    expect(check.outcome).toBe('pass');
  });

  test('no counters of the memory pipes: not applicable', async () => {
    const rows = ['Sub', 'Exp', 'Mul', 'Neg'].map((t) => step(t, { more: {} }));
    const facts = await factsOfTables({ 'kernel_details.csv': kernelTable(rows) });
    expect(facts.chains).toBeNull();
    expect(checkOf(reportOf([facts]), RULE).outcome).toBe('notApplicable');
  });
});

describe('runs', () => {
  test('one read and one write of four remain; small kernels between do not interrupt', async () => {
    const { chains, check } = await chainsOf([step('Sub'), small, step('Exp'), small, step('RealDiv'), step('Mul')]);
    const small4 = 4 * 4096 * 4;
    const total = 4 * 2 * BYTES + small4;
    expect(chains.chains[0]).toMatchObject({
      types: ['Sub', 'Exp', 'RealDiv', 'Mul'],
      shape: SHAPE,
      count: 1,
      ns: 1_600_000,
      bytes: total,
    });
    expect(chains.chains[0]!.savedNs).toBeCloseTo(1_600_000 * (1 - (2 * BYTES + small4) / total), 3);
    expect(check.outcome).toBe('finding');
  });

  test('a second large input has to be read, fused or not', async () => {
    const two = (type: string): KernelRow => step(type, { inShapes: `${SHAPE};${SHAPE}` });
    const { chains } = await chainsOf([two('Add'), two('Mul'), two('Sub')]);
    // 9 tensors move; fused, 4 inputs and 1 output remain.
    expect(chains.chains[0]!.savedNs).toBeCloseTo(1_200_000 * (1 - 5 / 9), 3);
  });

  test('each node of the tape keeps the part of its time that cannot go', async () => {
    const { chains } = await chainsOf([step('Sub'), step('Exp'), step('Mul')]);
    const [only] = chains.steps;
    expect(only!.nodes).toEqual([0, 1, 2]);
    expect(only!.ns - only!.savedNs).toBeCloseTo(400_000 * only!.left.reduce((a, b) => a + b, 0), 3);
  });
});

describe('loud', () => {
  test.each([1, 2] as const)('a formula written out (pipeline stages: %i): a bound near the truth', async (pp) => {
    const fault = { kind: 'vector-chain', perStep: pp === 2 ? 12 : 2 } as const;
    const { finding, headline, truth } = await accuracy({ ranks: 2, pp, faults: [fault] }, fault, RULE);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[0]!.text).toMatch(/`Cast`, `ArgMaxWithValue`, `Sub`, `ReduceSum`, `Mul`/);
  });
});

test('options: a higher minShare silences the rule', async () => {
  const spec = { ranks: 2, faults: [{ kind: 'vector-chain' } as const] };
  expect(findingOf(await reportFor(spec, { [RULE]: { minShare: 0.9 } }), RULE)).toBeUndefined();
});

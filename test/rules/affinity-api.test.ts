import { describe, expect, test } from 'vitest';
import type { Fault } from '../../lab/simulator/index.ts';
import { factsOfTables, filler, type KernelRow, kernelTable } from '../support/kernel-table.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { accuracy, checkOf, factsOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'affinity-api';
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('quiet', () => {
  test('a healthy job', async () => {
    const check = checkOf(await reportFor({ ranks: 2 }), RULE);
    expect(check).toMatchObject({ outcome: 'pass', reason: 'no formula with a fused operator is written out' });
  });

  test.each([
    { kind: 'unfused', of: 'rms-norm', off: true },
    { kind: 'unfused', of: 'swiglu', off: true },
    { kind: 'unfused', of: 'rotary', off: true },
    { kind: 'unfused', of: 'expert-loop', off: true },
  ] as Fault[])('the fused operator runs already: %j', async (fault) => {
    expect(checkOf(await reportFor({ ranks: 2, faults: [fault] }), RULE).outcome).toBe('pass');
  });

  test('the kernel types in their order, on tensors that do not belong together', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'look-alike' }] });
    for (const rule of [RULE, 'fusible-sequence', 'vector-bound']) expect(checkOf(report, rule).outcome, rule).toBe('pass');
  });

  test('hidden: the loader sets the pace, so that fusing saves nothing', async () => {
    const report = await reportFor({
      ranks: 2,
      faults: [
        { kind: 'slow-loader', sampleMs: 450 },
        { kind: 'unfused', of: 'swiglu' },
      ],
    });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
    expect(checkOf(report, RULE).reason).toMatch(/below the reporting floor/);
  });

  test('Level0 records no shapes: not applicable', async () => {
    const report = await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'unfused', of: 'rms-norm' }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('a copy around a batched product cannot be taken in while training', async () => {
    const a = { inShapes: '128,16,576', inTypes: 'DT_BF16', outShapes: '16,128,512', outTypes: 'DT_BF16' };
    const product = { inShapes: '16,128,512;16,512,128', inTypes: 'DT_BF16;DT_BF16', outShapes: '16,128,128', outTypes: 'DT_BF16' };
    const rows = Array.from({ length: 20 }, (): KernelRow[] => [
      { type: 'AsStrided', us: 30, ...a },
      { type: 'BatchMatMulV2', core: 'AI_CORE', us: 40, ...product },
    ]).flat();
    const check = async (more: readonly KernelRow[]) => {
      const facts = await factsOfTables({
        'kernel_details.csv': kernelTable([...rows, ...more, filler(2_000)]),
        'step_trace_time.csv': STEP,
      });
      return reportOf([facts]);
    };
    // 81 strided copies of 30 µs were a tenth of a decode step in one public report.
    const inference = findingOf(await check([]), RULE)!;
    expect(inference).toMatchObject({ saving: { basis: 'bound', perStepMs: { likely: null } } });
    expect(inference.title).toBe('A batched product reads copies in another order: 20 transposes per step feed it and nothing else');
    expect(checkOf(await check([{ type: 'LayerNormGradV3', us: 40 }]), RULE).outcome).toBe('pass');
  });
});

const STEP = `Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing
1,4000,0,0,0,500,4500,0,0,0
`;

describe('loud', () => {
  test.each([
    ['rms-norm', /^RMSNorm is written out: 550 kernels per step do what 50 fused ones can$/],
    ['swiglu', /^SwiGLU is written out: 96 kernels per step do what 24 fused ones can$/],
    ['gelu', /^GELU is written out: 216 kernels per step do what 24 fused ones can$/],
    ['rotary', /^Rotary embedding is written out: 360 kernels/],
    ['masked-softmax', /^Masked softmax is written out: 72 kernels/],
    ['expert-loop', /^The expert layer runs one expert after the other: 576 kernels per step$/],
    ['transposed-product', /^A matrix product reads copies in another order: 12 transposes per step/],
  ] as const)('%s: all ranks, the line, a likely saving within 20 %%', async (of, title) => {
    const fault: Fault = { kind: 'unfused', of };
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(plain(finding.title)).toMatch(title);
    expect(finding).toMatchObject({ ranks: [0, 1], confidence: 'high', saving: { basis: 'modelled' } });
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    const { floor, ceiling } = finding.saving!.perStepMs;
    expect(floor).toBeLessThanOrEqual(1.05 * truth);
    expect(ceiling).toBeGreaterThanOrEqual(0.9 * truth);
    expect(finding.locations[0]).toMatchObject({ line: 41 });
  });

  test('attention: bound from above only, never likely', async () => {
    const fault: Fault = { kind: 'unfused', of: 'attention' };
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.severity).toBe('medium');
    // The same kernels are bound by memory, and told once.
    const report = await reportFor({ ranks: 2, faults: [fault] });
    const other = findingOf(report, 'vector-bound');
    if (other !== undefined) expect(other.symptomOf).toBe(finding.id);
    expect(report.totals.claimedMsPerStep.likely ?? 0).toBe(0);
  });

  test('two formulas are two findings, each with its own saving', async () => {
    const report = await reportFor({
      ranks: 2,
      faults: [
        { kind: 'unfused', of: 'rms-norm' },
        { kind: 'unfused', of: 'swiglu' },
      ],
    });
    const both = report.findings.filter((f) => f.rule === RULE);
    expect(both.map((f) => f.title.split(' ')[0])).toEqual(['RMSNorm', 'SwiGLU']);
    expect(new Set(both.map((f) => f.id)).size).toBe(2);
  });

  test('in a pipeline, both stages', async () => {
    const fault: Fault = { kind: 'unfused', of: 'rms-norm' };
    const { finding, headline, truth } = await accuracy({ ranks: 4, pp: 2, layers: 8, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1, 2, 3]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });

  test('newer columns and one step give the same kernels', async () => {
    const report = await reportFor({ ranks: 2, era: '2025-11', steps: 1, faults: [{ kind: 'unfused', of: 'swiglu' }] });
    expect(findingOf(report, RULE)!.title).toMatch(/96 kernels per step/);
  });
});

describe('a host that cannot keep up', () => {
  test('launches count, too; the same kernels are never claimed twice', async () => {
    const fault: Fault = { kind: 'unfused', of: 'expert-loop' };
    const spec = { ranks: 2, faults: [fault, { kind: 'host-bound' as const, factor: 3 }] };
    const { headline, truth } = await accuracy(spec, fault, RULE);
    expect(truth).toBeGreaterThan(50);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    const claims = (await reportFor(spec)).findings.filter((f) => f.symptomOf === null && f.saving !== null);
    expect(claims.map((f) => f.rule)).not.toContain('small-op-fragmentation');
  });
});

describe('options', () => {
  test('a higher minShare leaves no finding', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'unfused', of: 'rms-norm' }] }, { [RULE]: { minShare: 0.5 } });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
    expect(plain(checkOf(report, RULE).reason)).toMatch(/could gain 16\.\d ms per step/);
  });
});

describe.skipIf(!HAVE_PROFILES)(`real profiles${WHY_SKIPPED}`, () => {
  test.each([
    ['level0', 'notApplicable', /shapes and data types/],
    ['level1', 'pass', /no formula with a fused operator/],
    ['level2', 'pass', /no formula with a fused operator/],
    ['st', 'pass', /no formula with a fused operator/],
    ['gpt0', 'pass', /no formula with a fused operator/],
  ] as const)('%s: %s', async (set, outcome, reason) => {
    const check = checkOf(reportOf(await factsOf(PATHS[set])), RULE);
    expect(check.outcome).toBe(outcome);
    expect(check.reason === 'needs more' ? 'shapes and data types' : check.reason).toMatch(reason);
  });
});

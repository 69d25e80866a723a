import { describe, expect, it } from 'vitest';
import type { Finding, Report } from '../../src/model/report.ts';
import { evaluateGate } from '../../src/report/gate.ts';
import { comparison } from '../render/reports.ts';

function finding(over: {
  id?: string;
  severity?: Finding['severity'];
  confidence?: Finding['confidence'];
  likely?: number | null;
  bound?: boolean;
}): Finding {
  const likely = over.likely === undefined ? 94 : over.likely;
  return {
    id: over.id ?? 'f1',
    rule: 'dataloader-stall',
    category: 'data',
    title: 'Data loader starves all ranks',
    severity: over.severity ?? 'high',
    confidence: over.confidence ?? 'high',
    ranks: [0],
    steps: [1],
    groups: [],
    saving: {
      basis: over.bound ? 'bound' : 'modelled',
      perStepMs: { floor: 0, likely, ceiling: 120 },
      shareOfStep: 0.1,
      method: 'test',
    },
    symptomOf: null,
    evidence: [],
    caveats: [],
    locations: [],
    recommendations: [],
  };
}

function report(
  findings: Finding[],
  over: { claimed?: number | null; step?: number | null; outcome?: Report['verdict']['outcome'] } = {},
): Report {
  return {
    schema: 'npu-advisor.report/1',
    tool: { name: 'npu-advisor', version: '0' },
    lang: 'en',
    verdict: { outcome: over.outcome ?? 'causes', text: '' },
    job: {
      ranks: [0],
      unrankedFolders: 0,
      worldSize: 1,
      worldSizeBasis: null,
      missingRanks: [],
      steps: [1],
      droppedSteps: [],
      stepTimeMs: over.step === undefined ? 800 : over.step,
      stepBasis: 'test',
      stepNoiseMs: null,
      framework: null,
      samplesPerStep: null,
      samplesPerSecond: null,
      tokensPerSecond: null,
      versions: { cann: null, torchNpu: null, torch: null },
      device: null,
      level: null,
    },
    breakdown: [],
    findings,
    checked: [],
    totals: { claimedMsPerStep: { likely: over.claimed === undefined ? null : over.claimed, ceiling: 100 }, unexplainedIdleMs: null },
    comparison: null,
    gate: null,
    inputs: [],
    notes: [],
    missing: [],
    views: {},
  };
}

describe('the gate', () => {
  it('is absent without configuration', () => {
    expect(evaluateGate(report([finding({})]), null)).toBeNull();
  });

  it('passes when nothing counted reaches the severity', () => {
    expect(evaluateGate(report([finding({ severity: 'medium' })]), { severity: 'high' })?.outcome).toBe('pass');
  });

  it('fails on a counted finding and says which', () => {
    const gate = evaluateGate(report([finding({})]), { severity: 'high' });
    expect(gate?.outcome).toBe('fail');
    expect(gate?.because[0]).toContain('Data loader starves all ranks');
  });

  it.each([
    ['a bound', finding({ bound: true })],
    ['no likely saving', finding({ likely: null })],
    ['low confidence', finding({ confidence: 'low' })],
    ['another cause', { ...finding({}), symptomOf: 'f0' }],
    ['no saving', { ...finding({}), saving: null }],
  ])('never fails on a finding with %s', (_, quiet) => {
    const gate = { severity: 'medium', total_saving: { ms: 1, share: 0.001 } } as const;
    expect(evaluateGate(report([quiet]), gate)?.outcome).toBe('pass');
  });

  it('adds likely savings, never beyond what the report claims', () => {
    const two = [finding({ id: 'a' }), finding({ id: 'b' })];
    expect(evaluateGate(report(two), { total_saving: { ms: 150 } })?.outcome).toBe('fail');
    expect(evaluateGate(report(two, { claimed: 120 }), { total_saving: { ms: 150 } })?.outcome).toBe('pass');
    expect(evaluateGate(report(two, { claimed: 120 }), { total_saving: { share: 0.1 } })?.outcome).toBe('fail');
  });

  it('is neutral when there is nothing to decide on', () => {
    expect(evaluateGate(report([], { outcome: 'no-data' }), { severity: 'high' })?.outcome).toBe('neutral');
    expect(evaluateGate(report([], { step: null }), { total_saving: { share: 0.1 } })?.outcome).toBe('neutral');
  });

  it.each<[string, Finding[], 'pass' | 'neutral' | 'fail']>([
    ['no cause can be priced', [finding({ bound: true })], 'neutral'],
    ['nothing was found', [], 'neutral'],
    ['one is priced and over the limit', [finding({})], 'fail'],
    ['one is priced and below the limit', [finding({ severity: 'medium' })], 'pass'],
  ])('with a part of the job missing: %s', (_, findings, outcome) => {
    const judged = evaluateGate(report(findings, { outcome: 'incomplete' }), { severity: 'high' });
    expect(judged?.outcome).toBe(outcome);
    if (outcome === 'neutral') expect(judged?.because).toEqual([expect.stringMatching(/incomplete.*what to upload/)]);
  });

  it('a limit on the regression alone does not need prices', () => {
    const of = { ...report([], { outcome: 'incomplete' }), comparison: comparison('en', { verdict: 'noise' }) };
    expect(evaluateGate(of, { regression: { share: 0.05 } })?.outcome).toBe('pass');
  });
});

describe('the gate of an attached profile', () => {
  it('is never passed, in either language, and fails as any other', () => {
    const attached = (findings: Finding[], lang: 'en' | 'zh' = 'en') => ({ ...report(findings), lang, attached: true as const });
    expect(evaluateGate(attached([]), { severity: 'high' })).toEqual({
      outcome: 'neutral',
      because: [expect.stringContaining('attachment')],
    });
    expect(evaluateGate(attached([], 'zh'), { severity: 'high' })?.because[0]).toContain('附件');
    expect(evaluateGate(attached([finding({})]), { severity: 'high' })?.outcome).toBe('fail');
    expect(evaluateGate(attached([]), null)).toBeNull();
  });
});

describe('the gate on a regression', () => {
  const compared = (over: Parameters<typeof comparison>[1] = {}): Report => ({ ...report([]), comparison: comparison('en', over) });
  const judge = (of: Report, regression: { ms?: number; share?: number }) => evaluateGate(of, { regression });

  it.each([
    [{ share: 0.05 }, 'fail'],
    [{ share: 0.1 }, 'pass'],
    [{ ms: 70 }, 'fail'],
    [{ ms: 71 }, 'pass'],
    [{ ms: 500, share: 0.05 }, 'fail'],
    [{ ms: 500, share: 0.5 }, 'pass'],
  ] as const)('%j: %s', (limits, outcome) => {
    expect(judge(compared(), limits)?.outcome).toBe(outcome);
  });

  it('says by how much and against which limit', () => {
    expect(judge(compared(), { share: 0.05, ms: 60 })?.because.join().replaceAll('\u00a0', ' ')).toBe(
      '+70.5 ms (+9.5 %) per step against the baseline; the limit is 5.0 % and 60.0 ms',
    );
  });

  it.each([
    ['an improvement', { verdict: 'improvement', deltaMs: -70.5, deltaShare: -0.095 }, 'pass'],
    ['noise, however large', { verdict: 'noise' }, 'pass'],
    ['a baseline that cannot be compared', { verdict: 'incomparable' }, 'neutral'],
  ] as const)('never fails on %s', (_, over, outcome) => {
    expect(judge(compared(over), { share: 0.0001, ms: 0.001 })?.outcome).toBe(outcome);
  });

  it('is neutral without a baseline, unless something else fails', () => {
    expect(judge(report([]), { share: 0.05 })).toMatchObject({ outcome: 'neutral', because: [expect.stringMatching(/no baseline/)] });
    expect(evaluateGate(report([finding({})]), { severity: 'high', regression: { share: 0.05 } })?.outcome).toBe('fail');
    expect(evaluateGate(report([]), { severity: 'high', regression: { share: 0.05 } })?.outcome).toBe('neutral');
  });

  it('fails although no cause is known', () => {
    expect(evaluateGate(compared(), { severity: 'critical', regression: { ms: 10 } })?.outcome).toBe('fail');
  });
});

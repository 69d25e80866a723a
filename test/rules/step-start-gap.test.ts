import { describe, expect, test } from 'vitest';
import { rankFacts } from '../../src/facts/rank/index.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import { kernelDetails, readOnly, trace, traceEvents, ts } from '../support/profile-text.ts';
import { checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'step-start-gap';

/** A rank whose kernels start `gapUs` into each step of 10 ms; a fetch of 200 µs is at its start. */
async function rankWithGap(gapUs: (step: number) => number, steps = 3): Promise<RankFacts> {
  const events = traceEvents({ steps, kernels: 8, collectives: false }).filter((e) => !('name' in e && String(e.name).startsWith('aclnn')));
  const args = { 'Task Type': 'AI_CORE' };
  for (let s = 0; s < steps; s++) {
    for (let k = 0; k < 20; k++) {
      const start = s * 10_000 + gapUs(s) + k * 110;
      const flow = { name: 'HostToDevice', cat: 'HostToDevice', id: `9${s}${k}` };
      events.push({ ph: 's', ...flow, pid: 2, tid: 12, ts: ts(start - 20) }, { ph: 'f', ...flow, pid: 3, tid: 7, ts: ts(start) });
      events.push({ ph: 'X', name: 'aclnnMul_Mul', pid: 3, tid: 7, ts: ts(start), dur: 100, args });
    }
  }
  return rankFacts(await readOnly({ 'rank0/trace_view.json': JSON.stringify(events) }));
}

describe('quiet', () => {
  test('a healthy job starts its kernels at once', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('what the loader or a compilation explains has a name and is not reported here', async () => {
    for (const kind of ['slow-loader', 'recompile'] as const)
      expect(findingOf(await reportFor({ ranks: 2, faults: [{ kind }] }), RULE), kind).toBeUndefined();
  });

  test('a pause of one step is not a gap of every step', async () => {
    const report = reportOf([await rankWithGap((s) => (s === 0 ? 200 : 5_000), 3)]);
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('without launches the check says that it cannot tell', async () => {
    const facts = rankFacts(await readOnly({ 'rank0/kernel_details.csv': kernelDetails() }));
    expect(checkOf(reportOf([facts]), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test('a gap of every step is a bound with floor 0, low confidence and at most medium', async () => {
    const report = reportOf([await rankWithGap(() => 5_000)]);
    const finding = findingOf(report, RULE)!;
    expect(finding.ranks).toEqual([0]);
    expect(finding).toMatchObject({
      confidence: 'low',
      severity: 'medium',
      saving: { basis: 'bound', perStepMs: { floor: 0, likely: null } },
    });
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThan(4.7);
    expect(finding.saving!.perStepMs.ceiling).toBeLessThanOrEqual(5);
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(reportOf([await rankWithGap(() => 5_000)], { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });

  test('lower limits report a small gap', async () => {
    const rank = rankFacts(await readOnly({ 'rank0/trace_view.json': trace({ steps: 3, kernels: 30 }) }));
    expect(findingOf(reportOf([rank]), RULE)).toBeUndefined();
    expect(findingOf(reportOf([rank], { [RULE]: { minShare: 0, minMs: 0 } }), RULE)).toBeUndefined();
    const gap = await rankWithGap(() => 1_300);
    expect(findingOf(reportOf([gap], { [RULE]: { minShare: 0.2 } }), RULE)).toBeUndefined();
    expect(findingOf(reportOf([gap]), RULE)).toBeDefined();
  });
});

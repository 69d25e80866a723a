import { describe, expect, test } from 'vitest';
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { kernelDetails, readOnly } from '../support/profile-text.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'gc-pause';
/** The card is close behind the host, so that each pause shows, wherever it falls. */
const close = (fault: Fault): JobSpec => ({ ranks: 2, steps: 7, faults: [{ kind: 'host-bound' }, fault] });

describe('quiet', () => {
  test('without the option nothing is recorded and nothing is said', async () => {
    const check = checkOf(await reportFor({ ranks: 2 }), RULE);
    expect(check).toMatchObject({ outcome: 'notApplicable' });
    expect(check.reason).toMatch(/`gc_detect_threshold`/);
  });

  test('trap: collections while the card has work queued', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'gc-pause', hidden: true }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
    expect(checkOf(report, RULE).reason).toMatch(/[1-9]\d* collections were recorded/);
  });

  test('trap: pauses at one place of each step are evaluation, logging or a checkpoint, not guessed to be the collector', async () => {
    const fault: Fault = { kind: 'batch-preparation', shows: 'nothing', ms: 14 };
    const report = await reportFor(close(fault));
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'step-start-gap')).toBeDefined();
  });

  test('three pauses are not enough to guess', async () => {
    const report = await reportFor({ ...close({ kind: 'gc-pause', lane: false, ms: 14 }), steps: 3 });
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('without a trace the check says that it cannot tell', async () => {
    const facts = rankFacts(await readOnly({ 'rank0/kernel_details.csv': kernelDetails() }));
    expect(checkOf(reportOf([facts]), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test('recorded collections: saving within 20 percent; the others that wait for the late rank are its effect', async () => {
    const fault: Fault = { kind: 'gc-pause' };
    const spec: JobSpec = { ranks: 8, faults: [fault] };
    const { finding, headline, truth } = await accuracy(spec, fault, RULE);
    expect(finding.ranks).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.confidence).toBe('medium');
    const waiting = findingOf(await reportFor(spec), 'hccl-sync-wait');
    expect(waiting?.symptomOf ?? finding.id).toBe(finding.id);
  });

  test('one rank by itself', async () => {
    const fault: Fault = { kind: 'gc-pause', ms: 14 };
    const spec: JobSpec = { ranks: 1, withStack: false, faults: [{ kind: 'host-bound' }, fault] };
    const { finding, headline, truth } = await accuracy(spec, fault, RULE);
    expect(finding.confidence).toBe('high');
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });

  test('without the lane it stays a guess: low confidence, floor 0, no likely saving, and the option that shows it', async () => {
    const fault: Fault = { kind: 'gc-pause', lane: false, ms: 14 };
    const { finding, truth } = await accuracy(close(fault), fault, RULE);
    expect(finding).toMatchObject({ confidence: 'low', severity: 'medium', ranks: [0, 1] });
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThan(0.8 * truth);
    expect(finding.title).toMatch(/perhaps/);
    expect(finding.caveats.join()).toContain('gc_detect_threshold=1.0');
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'gc-pause' }] }, { [RULE]: { [name]: value } });
    expect(findingOf(report, RULE)).toBeUndefined();
  });
});

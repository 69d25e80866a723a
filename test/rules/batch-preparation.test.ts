import { describe, expect, test } from 'vitest';
import type { Fault } from '../../lab/simulator/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { readOnly, trace } from '../support/profile-text.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'batch-preparation';

describe('quiet', () => {
  test('a healthy job sends the batch at once', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: the thread prepares the batch while the card has work queued', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'batch-preparation', hidden: true }] });
    expect(report.findings.filter((f) => f.category === 'data')).toEqual([]);
  });

  test('what the profile does not show is not called preparation: the start gap has it, as a bound', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'batch-preparation', shows: 'nothing' }] });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'step-start-gap')).toMatchObject({
      confidence: 'low',
      saving: { basis: 'bound', perStepMs: { likely: null } },
    });
  });

  test('waiting for the loader is not preparation', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'slow-loader', single: true }] });
    expect(findingOf(report, 'dataloader-stall')).toBeDefined();
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('without a DataLoader event the beginning is unknown', async () => {
    const facts = rankFacts(await readOnly({ 'rank0/trace_view.json': trace({ steps: 2, kernels: 8 }) }));
    if (facts.loader === null) expect(checkOf(reportOf([facts]), RULE)).toMatchObject({ outcome: 'notApplicable' });
    else expect(findingOf(reportOf([facts]), RULE)).toBeUndefined();
  });
});

describe('loud', () => {
  test.each<[string, Fault]>([
    ['operators on the CPU', { kind: 'batch-preparation' }],
    ['Python functions', { kind: 'batch-preparation', shows: 'frames' }],
  ])('%s: the line, and a saving within 20 percent, claimed once', async (_, fault) => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.locations[0]).toMatchObject({ line: 72 });
    const report = await reportFor({ ranks: 2, faults: [fault] });
    for (const rule of ['dataloader-stall', 'h2d-copy', 'step-start-gap', 'host-bound-launch'])
      expect(findingOf(report, rule), rule).toBeUndefined();
    expect(report.totals.claimedMsPerStep.likely).toBeCloseTo(headline, 3);
  });

  test('next to a slow loader each has its own part', async () => {
    const [loader, preparation]: Fault[] = [{ kind: 'slow-loader', single: true }, { kind: 'batch-preparation' }];
    const report = await reportFor({ ranks: 2, faults: [loader!, preparation!] });
    const parts = ['dataloader-stall', RULE].map((rule) => findingOf(report, rule)!.saving!.perStepMs.likely!);
    const { truth } = await accuracy({ ranks: 2, faults: [loader!, preparation!] }, preparation!, RULE);
    expect(Math.abs(parts[1]! - truth)).toBeLessThan(0.2 * truth);
    expect(report.totals.claimedMsPerStep.likely).toBeLessThanOrEqual(parts[0]! + parts[1]! + 0.01);
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'batch-preparation' }] }, { [RULE]: { [name]: value } });
    expect(findingOf(report, RULE)).toBeUndefined();
  });
});

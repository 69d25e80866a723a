import { describe, expect, test } from 'vitest';
import type { Fault } from '../../lab/simulator/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { kernelDetails, readOnly } from '../support/profile-text.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'h2d-copy';
const pageable: Fault = { kind: 'pageable-copy' };
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('quiet', () => {
  test('a healthy job copies small batches from pinned memory', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: large copies one batch ahead, beside the computing', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ ...pageable, hidden: true }] });
    expect(report.findings.filter((f) => f.category === 'data')).toEqual([]);
  });

  test('reading values from the card is not copying to it', async () => {
    expect(findingOf(await reportFor({ ranks: 2, faults: [{ kind: 'stream-sync' }] }), RULE)).toBeUndefined();
  });

  test('without a trace nothing is said about copies', async () => {
    const facts = rankFacts(await readOnly({ 'rank0/kernel_details.csv': kernelDetails() }));
    expect(checkOf(reportOf([facts]), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test('memory that is not pinned: the line, the size, a saving within 20 percent, claimed once', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [pageable] }, pageable, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.locations[0]).toMatchObject({ line: 90 });
    expect(finding.evidence.map((e) => e.text).join('\n')).toMatch(/not pinned/);
    const report = await reportFor({ ranks: 2, faults: [pageable] });
    for (const rule of ['stream-sync', 'dataloader-stall', 'batch-preparation', 'step-start-gap'])
      expect(findingOf(report, rule), rule).toBeUndefined();
    expect(report.totals.claimedMsPerStep.likely).toBeCloseTo(headline, 3);
  });

  test('the size is told where the profile has it', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, level: 2, faults: [{ ...pageable, mb: 40 }] }), RULE)!;
    expect(plain(finding.evidence.map((e) => e.text).join('\n'))).toMatch(/moved 40 MB in \d+(\.\d+)? ms, 3\.\d GB\/s/);
  });

  test('a pipeline: only the stage that reads batches', async () => {
    const fault: Fault = { ...pageable, mb: 60 };
    const { finding, headline, truth } = await accuracy({ ranks: 2, pp: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toContain(0);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });

  test('Level0 is enough', async () => {
    expect(findingOf(await reportFor({ ranks: 2, level: 0, faults: [pageable] }), RULE)!.ranks).toEqual([0, 1]);
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor({ ranks: 2, faults: [pageable] }, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});

import { describe, expect, test } from 'vitest';
import type { Fault } from '../../lab/simulator/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { kernelDetails, readOnly } from '../support/profile-text.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'host-bound-launch';

describe('quiet', () => {
  test('a healthy job launches ahead of the card', async () => {
    expect(checkOf(await reportFor({ ranks: 2 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('trap: a slower host that still runs ahead', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'host-bound', factor: 1.4, hidden: true }] });
    expect(report.findings.filter((f) => f.category === 'host')).toEqual([]);
  });

  test('one slow host of several is slow-rank, and said so', async () => {
    const report = await reportFor({ ranks: 4, faults: [{ kind: 'slow-host', rank: 1 }] });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'slow-rank')).toMatchObject({ ranks: [1] });
  });

  test.each<[string, Fault, string]>([
    ['repeated small kernels', { kind: 'small-ops', where: 'forward' }, 'small-op-fragmentation'],
    ['a wait after each launch', { kind: 'launch-blocking' }, 'stream-sync'],
    ['the loader', { kind: 'slow-loader' }, 'dataloader-stall'],
    ['compilation', { kind: 'recompile' }, 'op-recompile'],
    ['the collector', { kind: 'gc-pause', ms: 14 }, 'gc-pause'],
    ['the allocator', { kind: 'alloc-stall', ms: 20 }, 'memory-alloc-stall'],
  ])('%s has a rule of its own', async (_, fault, rule) => {
    const report = await reportFor({ ranks: 2, faults: [fault] });
    expect(findingOf(report, rule)).toBeDefined();
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('without launches the check says that it cannot tell', async () => {
    const facts = rankFacts(await readOnly({ 'rank0/kernel_details.csv': kernelDetails() }));
    expect(checkOf(reportOf([facts]), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test('a host that is slow throughout: saving within 20 percent, half of it as the floor', async () => {
    const fault: Fault = { kind: 'host-bound' };
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving!.perStepMs.floor).toBeLessThan(0.7 * headline);
    expect(finding.evidence[0]!.text).toMatch(/\d+ kernels per step.*launched every/);
    expect(finding.caveats.join()).toContain('`with_stack`');
    expect(finding.confidence).toBe('medium');
  });

  test('the layers of a pipeline stage repeat and are no small kernels', async () => {
    const fault: Fault = { kind: 'host-bound' };
    const { finding, headline, truth } = await accuracy({ ranks: 4, pp: 2, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([0, 1, 2, 3]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });

  test('one card, and without call stacks high confidence', async () => {
    const finding = findingOf(await reportFor({ ranks: 1, withStack: false, faults: [{ kind: 'host-bound' }] }), RULE)!;
    expect(finding.confidence).toBe('high');
    expect(finding.caveats).toEqual([]);
  });

  test('Level0 is enough: launches are known by the flows', async () => {
    expect(findingOf(await reportFor({ ranks: 2, level: 0, faults: [{ kind: 'host-bound' }] }), RULE)!.ranks).toEqual([0, 1]);
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'host-bound' }] }, { [RULE]: { [name]: value } });
    expect(findingOf(report, RULE)).toBeUndefined();
  });
});

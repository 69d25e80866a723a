import { describe, expect, test } from 'vitest';
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import type { IdleRow } from '../../src/report/idle-account.ts';
import { kernelDetails, readOnly } from '../support/profile-text.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'stream-sync';
const item: Fault = { kind: 'stream-sync' };
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('quiet', () => {
  test('a healthy job reads its loss once per step: 0.2 ms, not worth a line', async () => {
    const check = checkOf(await reportFor({ ranks: 2 }), RULE);
    expect(check).toMatchObject({ outcome: 'pass' });
    expect(plain(check.reason)).toMatch(/waited up to 1 times per step; the card was idle for 0\.\d ms/);
  });

  test('trap: the host waits in every step, long, and the card stays busy', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ ...item, hidden: true }] });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(findingOf(report, 'host-bound-launch')).toBeUndefined();
    const waits = (report.views.idleAccount as IdleRow[]).filter((r) => r.rank === 0 && r.cause === 'sync');
    for (const { ms } of waits) expect(ms).toBeLessThan(1);
  });

  test.each<[string, Fault, string]>([
    ['a slow loader', { kind: 'slow-loader' }, 'dataloader-stall'],
    ['small operators', { kind: 'small-ops' }, 'small-op-fragmentation'],
    ['compilation', { kind: 'recompile' }, 'op-recompile'],
    ['copies from memory that is not pinned', { kind: 'pageable-copy' }, 'h2d-copy'],
    ['a cache that is emptied each step', { kind: 'alloc-stall', emptyCache: true }, 'memory-alloc-stall'],
    ['a slow host', { kind: 'host-bound' }, 'host-bound-launch'],
  ])('%s is not called waiting, though the loss is read in every step', async (_, fault, rule) => {
    const report = await reportFor({ ranks: 2, faults: [fault] });
    expect(findingOf(report, rule)).toBeDefined();
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('without a trace nothing is said about waits', async () => {
    const facts = rankFacts(await readOnly({ 'rank0/kernel_details.csv': kernelDetails() }));
    expect(checkOf(reportOf([facts]), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test.each<[string, Fault, RegExp, number | null]>([
    ['reading a value', item, /reads 3\d values per step/, 47],
    ['a size only the card knows', { ...item, of: 'nonzero' }, /3\d operators per step whose result size/, 47],
    ['waiting for the whole card', { ...item, of: 'device' }, /waits for the whole card 3\d times per step/, null],
  ])('%s: count, place and a saving within 20 percent', async (_, fault, title, line) => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fault] }, fault, RULE);
    expect(finding.title).toMatch(title);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving!.perStepMs.floor).toBeLessThanOrEqual(truth * 1.05);
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThanOrEqual(truth * 0.85);
    if (line !== null) expect(finding.locations[0]).toMatchObject({ line });
    expect(finding.evidence[0]!.durationUs).toBeGreaterThan(0);
  });

  test('A22: draining around collectives: two waits for each, a guard to be replaced and not deleted', async () => {
    const fault: Fault = { ...item, of: 'collective' };
    const spec: JobSpec = { ranks: 2, faults: [fault] };
    const { finding, headline, truth } = await accuracy(spec, fault, RULE);
    expect(Math.abs(headline - truth)).toBeLessThan(0.1 * truth);
    expect(finding.title).toMatch(/drains the card \d+ times per step/);
    expect(finding.evidence.map((e) => e.text).join('\n')).toMatch(/waits for \d+ collectives per step \(2 each\)/);
    expect(finding.caveats.join()).toMatch(/do not just delete it/);
    // Missing overlap is what the waits do; it is not claimed again.
    expect(findingOf(await reportFor(spec), 'no-overlap')?.symptomOf).toBe(finding.id);
  });

  test('launch blocking: a wait after each launch, priced once', async () => {
    const fault: Fault = { kind: 'launch-blocking' };
    const spec: JobSpec = { ranks: 2, faults: [fault] };
    const { finding, headline, truth } = await accuracy(spec, fault, RULE);
    expect(Math.abs(headline - truth)).toBeLessThan(0.1 * truth);
    expect(finding.title).toMatch(/Every launch waits/);
    const report = await reportFor(spec);
    for (const rule of ['host-bound-launch', 'small-op-fragmentation']) expect(findingOf(report, rule)).toBeUndefined();
    expect(report.totals.claimedMsPerStep.likely).toBeCloseTo(headline, 3);
  });

  test('Level0 has no calls: the operators that read a value tell', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, level: 0, faults: [item] }), RULE)!;
    expect(finding.ranks).toEqual([0, 1]);
    expect(finding.title).toMatch(/reads \d+ values per step/);
  });

  test('a pipeline: waits of one stage hold up the other', async () => {
    const fault: Fault = { kind: 'stream-sync', of: 'collective' };
    const { headline, truth } = await accuracy({ ranks: 4, pp: 2, faults: [fault] }, fault, RULE);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.9],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor({ ranks: 2, faults: [item] }, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });

  test('a lower blockingShare calls a wait after every fourth launch blocking', async () => {
    const spec: JobSpec = { ranks: 2, faults: [{ kind: 'stream-sync', of: 'stream', perStep: 100 }] };
    expect(findingOf(await reportFor(spec), RULE)!.title).toMatch(/waits for a stream/);
    expect(findingOf(await reportFor(spec, { [RULE]: { blockingShare: 0.2 } }), RULE)!.title).toMatch(/Every launch/);
  });

  test('a higher drainRatio is silent about draining', async () => {
    const spec: JobSpec = { ranks: 2, faults: [{ kind: 'stream-sync', of: 'collective' }] };
    expect(findingOf(await reportFor(spec, { [RULE]: { drainRatio: 10, minShare: 0.5 } }), RULE)).toBeUndefined();
  });
});

/* What the rules of host and data say of captures of real jobs, as text and as databases. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { RankFacts } from '../../src/model/facts.ts';
import type { Report } from '../../src/model/report.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, factsOf, findingOf, reportOf } from '../support/simulated.ts';

const RULES = ['stream-sync', 'host-bound-launch', 'gc-pause', 'memory-alloc-stall', 'batch-preparation', 'h2d-copy'] as const;
const db = (level: string): string => PATHS.level0.replace('/text/level0', `/db/${level}`);
const TRACED = {
  'text/level0': PATHS.level0,
  'text/level1': PATHS.level1,
  'text/level2': PATHS.level2,
  'db/level0': db('level0'),
  'db/level1': db('level1'),
  'db/level2': db('level2'),
} as const;
const UNTRACED = { st: PATHS.st, gpt0: PATHS.gpt0, gpt1: PATHS.gpt1, cluster8: PATHS.cluster8, quotedTimes: PATHS.quotedTimes } as const;
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe.skipIf(!HAVE_PROFILES)(`host and data on real captures${WHY_SKIPPED}`, () => {
  const facts = new Map<string, RankFacts[]>();
  const reports = new Map<string, Report>();
  const of = (set: string): Report => reports.get(set)!;
  beforeAll(async () => {
    for (const [set, path] of Object.entries({ ...TRACED, ...UNTRACED, singleProcess: PATHS.singleProcess })) {
      facts.set(set, await factsOf(path));
      reports.set(set, reportOf(facts.get(set)!));
    }
  }, 60_000);

  test.each(Object.keys(TRACED))('%s: two of eight ranks, one step: bounds with floor 0, nothing above medium', (set) => {
    for (const f of of(set).findings.filter((f) => f.category === 'host' || f.category === 'data')) {
      expect(f.saving, f.rule).toMatchObject({ basis: 'bound', perStepMs: { floor: 0, likely: null } });
      expect(['medium', 'low', 'info'], f.rule).toContain(f.severity);
      expect(f.confidence, f.rule).not.toBe('high');
      expect(f.caveats.join(), f.rule).toMatch(/ranks that were not uploaded/);
    }
  });

  test.each(Object.keys(TRACED))('%s: five waits per step that leave the card idle for 2 ms are not worth a finding', (set) => {
    const check = checkOf(of(set), 'stream-sync');
    expect(check.outcome).toBe('pass');
    expect(plain(check.reason)).toMatch(/up to 5 times per step; the card was idle for 2\.[0-3] ms/);
  });

  test.each(Object.keys(TRACED))('%s: nothing of the collector was recorded, and no pause is guessed to be one', (set) => {
    expect(checkOf(of(set), 'gc-pause')).toMatchObject({ outcome: 'notApplicable' });
  });

  test.each(Object.keys(TRACED))('%s: the batch is sent as soon as it is fetched', (set) => {
    expect(checkOf(of(set), 'batch-preparation')).toMatchObject({ outcome: 'pass' });
  });

  test.each(Object.keys(TRACED))('%s: the allocator leaves the driver alone; text of Level0 does not tell', (set) => {
    const check = checkOf(of(set), 'memory-alloc-stall');
    if (set === 'text/level0') expect(check.outcome).toBe('notApplicable');
    else {
      expect(check.outcome).toBe('pass');
      expect(plain(check.reason)).toMatch(/at most 0 times per step/);
    }
  });

  // Lengths of the waits after `acl_memcpy_host_to_device`, from the traces themselves: 4 to 6 ms.
  test.each(Object.keys(TRACED))('%s: the batch at main.py:350 comes from memory that is not pinned', (set) => {
    const finding = findingOf(of(set), 'h2d-copy')!;
    expect(finding.locations[0]!.file).toMatch(/main\.py$/);
    expect(finding.locations[0]!.line).toBe(350);
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThan(4);
    expect(finding.saving!.perStepMs.ceiling).toBeLessThan(6.5);
    expect(finding.evidence.map((e) => e.text).join('\n')).toMatch(/not pinned/);
  });

  test('text/level2 records the size: 19,267,584 bytes, a batch of 32 images of 3 × 224 × 224', () => {
    const longest = facts.get('text/level2')![0]!.host!.copies.calls.reduce((a, b) => (b.bytes > a.bytes ? b : a));
    expect(longest.bytes).toBe(32 * 3 * 224 * 224 * 4);
  });

  test.each(Object.keys(TRACED))('%s: the card waits 19 to 21 ms for launches, with call stacks that slow them', (set) => {
    const finding = findingOf(of(set), 'host-bound-launch')!;
    expect(finding.saving!.perStepMs.ceiling).toBeGreaterThan(18.5);
    expect(finding.saving!.perStepMs.ceiling).toBeLessThan(21.5);
    expect(finding.caveats.join()).toContain('`with_stack`');
    expect(findingOf(of(set), 'small-op-fragmentation')).toBeUndefined();
  });

  test('text and database of a level tell the same story', () => {
    for (const level of ['level0', 'level1', 'level2']) {
      const [a, b] = [of(`text/${level}`), of(`db/${level}`)];
      for (const rule of RULES) {
        if (rule === 'memory-alloc-stall' && level === 'level0') continue;
        expect(checkOf(b, rule).outcome, `${level} ${rule}`).toBe(checkOf(a, rule).outcome);
      }
      // Another run of the same job, so close but not equal.
      const [x, y] = [a.totals.unexplainedIdleMs!, b.totals.unexplainedIdleMs!];
      expect(Math.abs(x - y), level).toBeLessThan(1);
      expect(x).toBeGreaterThan(3.5);
    }
  });

  test.each(Object.keys(UNTRACED))('%s: without a trace none of them applies, and idle time is unknown, not zero', (set) => {
    for (const rule of RULES) expect(checkOf(of(set), rule).outcome, rule).toBe('notApplicable');
    expect(of(set).views.idleAccount).toEqual([]);
    expect(of(set).totals.unexplainedIdleMs).toBeNull();
  });

  test('one process, kernels of 7 µs launched every 15 µs: the whole step waits for launches', () => {
    const report = of('singleProcess');
    const finding = findingOf(report, 'host-bound-launch')!;
    expect(finding.saving!.perStepMs.likely).toBeGreaterThan(7);
    expect(finding.saving!.perStepMs.likely).toBeLessThan(8);
    expect(finding.confidence).toBe('medium');
    for (const rule of ['stream-sync', 'memory-alloc-stall', 'batch-preparation', 'h2d-copy'])
      expect(checkOf(report, rule).outcome, rule).toBe('pass');
    const { likely } = report.totals.claimedMsPerStep;
    expect(likely).toBeLessThan(report.job.stepTimeMs!);
  });
});

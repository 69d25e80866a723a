/* The account of idle time: each ns of it has exactly one cause, on any capture. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { type Intervals, intersect, length, subtract, union, unite } from '../../src/base/intervals.ts';
import { median } from '../../src/base/statistics.ts';
import { type IdleOwners, idleByCause, idleIntervals } from '../../src/facts/rank/idle.ts';
import {
  COMMUNICATION,
  COMPUTE,
  COPY,
  GAP_CLASSES,
  IDLE_CAUSES,
  type IdleCause,
  type RankFacts,
  type Tape,
} from '../../src/model/facts.ts';
import type { Report } from '../../src/model/report.ts';
import type { IdleRow } from '../../src/report/idle-account.ts';
import { hostFaults } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { factsOf, reportOf, simulated } from '../support/simulated.ts';

/** Idle time of a window counted by a sweep over the tasks. */
function idleBySweep({ start, duration }: Tape, from: number, to: number): number {
  const tasks = [...start].map((s, i) => [Math.max(from, s), Math.min(to, s + duration[i]!)] as const).filter(([a, b]) => b > a);
  tasks.sort((a, b) => a[0] - b[0]);
  let busyUntil = from;
  let idle = 0;
  for (const [a, b] of tasks) {
    idle += Math.max(0, a - busyUntil);
    busyUntil = Math.max(busyUntil, b);
  }
  return idle + Math.max(0, to - busyUntil);
}

function expectExact(ranks: readonly RankFacts[], what: string): void {
  for (const { idle, steps, tape } of ranks) {
    expect(idle, what).not.toBeNull();
    expect(idle!.steps).toHaveLength(steps.length);
    for (const account of idle!.steps) {
      const { start, end } = steps[account.step]!;
      const parts = IDLE_CAUSES.map((cause) => account[cause]);
      for (const part of parts) expect(part, what).toBeGreaterThanOrEqual(0);
      // ns on a clock of 2^60: sums of doubles differ by a fraction of one.
      expect(Math.abs(parts.reduce((a, b) => a + b, 0) - account.total), what).toBeLessThan(1);
      expect(Math.abs(idleBySweep(tape!, start, end) - account.total), what).toBeLessThan(1);
      expect(account.leadLaunch).toBeLessThanOrEqual(account.launch + 1);
      expect(account.leadUnexplained).toBeLessThanOrEqual(account.unexplained + 1);
      account.pieces.forEach((n, c) => {
        if (parts[c]! > 0) expect(n, `${what} ${IDLE_CAUSES[c]}`).toBeGreaterThan(0);
      });
    }
    const byLength = idle!.lengths.flat().reduce((a, b) => a + b, 0);
    const bySteps = idle!.steps.reduce((sum, s) => sum + s.total, 0);
    expect(byLength, what).toBeGreaterThanOrEqual(bySteps - 1);
    for (const classes of idle!.lengths) expect(classes).toHaveLength(GAP_CLASSES.length + 1);
  }
  expectRows(ranks, reportOf(ranks), what);
}

/** The rows of the report add up to the idle time, to the µs. */
function expectRows(ranks: readonly RankFacts[], report: Report, what: string): void {
  const rows = report.views.idleAccount as IdleRow[];
  const key = (r: (typeof rows)[number]): string => `${r.rank}/${r.step}/${r.cause}`;
  expect(new Set(rows.map(key)).size, what).toBe(rows.length);
  const us = (ms: number): number => Math.round(ms * 1000);
  for (const { rank, steps, idle } of ranks) {
    for (const account of idle!.steps) {
      const own = rows.filter((r) => r.rank === rank && r.step === (steps[account.step]!.id ?? null));
      expect(
        own.reduce((sum, r) => sum + us(r.ms), 0),
        `${what} rank ${rank} step ${account.step}`,
      ).toBe(Math.round(account.total / 1000));
    }
  }
  for (const { findingId } of rows) if (findingId !== null) expect(report.findings.map((f) => f.id)).toContain(findingId);
}

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  const db = (level: string): string => PATHS.level0.replace('/text/level0', `/db/${level}`);
  test.each([
    ['text/level0', PATHS.level0],
    ['text/level1', PATHS.level1],
    ['text/level2', PATHS.level2],
    ['db/level0', db('level0')],
    ['db/level1', db('level1')],
    ['db/level2', db('level2')],
    ['one process', PATHS.singleProcess],
  ])('%s: the causes sum to the idle time', async (set, path) => {
    expectExact(await factsOf(path), set);
  });

  test('text/level1: what each part is, read from the trace', async () => {
    const [rank] = await factsOf(PATHS.level1);
    const ms = Object.fromEntries(IDLE_CAUSES.map((cause) => [cause, rank!.idle!.steps[0]![cause] / 1e6])) as Record<IdleCause, number>;
    // The fetch of 3.332 ms lies in an idle card as a whole.
    expect(ms.loader).toBeCloseTo(3.332, 2);
    // The wait after `acl_memcpy_host_to_device` leaves the card idle for 5.25 ms, asking for it for about 1 ms more.
    expect(ms.copy).toBeGreaterThan(5.25);
    expect(ms.copy).toBeLessThan(6.5);
    for (const cause of ['gc', 'compile', 'allocator', 'preparation'] as const) expect(ms[cause], cause).toBe(0);
    // The card has 187 kernels in 155.986 ms and mostly waits for launches.
    expect(ms.launch).toBeGreaterThan(0.5 * (rank!.idle!.steps[0]!.total / 1e6));
  });
});

const JOBS: JobSpec[] = [
  { ranks: 2 },
  { ranks: 2, level: 0 },
  { ranks: 2, withStack: false, steps: 1 },
  { ranks: 1 },
  { ranks: 2, pp: 2 },
  { ranks: 2, faults: [{ kind: 'slow-loader' }] },
  { ranks: 2, faults: [{ kind: 'recompile' }, { kind: 'small-ops' }] },
  { ranks: 2, pp: 2, faults: [{ kind: 'launch-blocking' }] },
  { ranks: 2, faults: [{ kind: 'stream-sync' }, { kind: 'gc-pause' }, { kind: 'batch-preparation' }] },
  ...hostFaults().map((fault): JobSpec => ({ ranks: 2, faults: [fault] })),
];

test.each(JOBS.map((spec) => [JSON.stringify(spec), spec] as const))('%s: the causes sum to the idle time', async (what, spec) => {
  expectExact((await simulated(spec)).ranks, what);
});

describe('idle time that a fault adds is its cause’s', () => {
  const cases: [Fault, readonly IdleCause[]][] = [
    [{ kind: 'slow-loader' }, ['loader']],
    [{ kind: 'recompile' }, ['compile']],
    [{ kind: 'small-ops', where: 'optimizer' }, ['launch']],
    [{ kind: 'host-bound' }, ['launch']],
    [{ kind: 'stream-sync' }, ['sync']],
    [{ kind: 'stream-sync', of: 'device' }, ['sync']],
    [{ kind: 'launch-blocking' }, ['sync']],
    [{ kind: 'alloc-stall' }, ['allocator']],
    [{ kind: 'alloc-stall', emptyCache: true }, ['allocator']],
    [{ kind: 'batch-preparation' }, ['preparation']],
    [{ kind: 'batch-preparation', shows: 'frames' }, ['preparation']],
    [{ kind: 'batch-preparation', shows: 'nothing' }, ['unexplained']],
    [{ kind: 'pageable-copy' }, ['copy']],
  ];
  // Pauses now and then show in each step only where the card is close behind the host.
  const close: [Fault, readonly IdleCause[]][] = [
    [{ kind: 'gc-pause', ms: 14 }, ['gc']],
    [{ kind: 'gc-pause', ms: 14, lane: false }, ['unexplained']],
  ];
  const perStep = async (spec: JobSpec): Promise<Record<IdleCause | 'total', number>> => {
    const accounts = (await simulated(spec)).ranks.flatMap((r) => r.idle!.steps.slice(1));
    const of = (cause: IdleCause | 'total'): number => median(accounts.map((a) => a[cause] / 1e6));
    return { ...(Object.fromEntries(IDLE_CAUSES.map((c) => [c, of(c)])) as Record<IdleCause, number>), total: of('total') };
  };
  test.each([
    ...cases.map(([fault, causes]) => [fault, causes, []] as const),
    ...close.map(([fault, causes]) => [fault, causes, [{ kind: 'host-bound' } as Fault]] as const),
  ])('%j', async (fault, causes, others) => {
    const [bare, with_] = [await perStep({ ranks: 1, faults: [...others] }), await perStep({ ranks: 1, faults: [...others, fault] })];
    const added = with_.total - bare.total;
    expect(added).toBeGreaterThan(0.5);
    const own = causes.reduce((sum, cause) => sum + with_[cause] - bare[cause], 0);
    // Launches that are late after a wait belong to the launches from a point on.
    expect(own).toBeGreaterThan(0.75 * added);
    expect(own).toBeLessThan(1.2 * added);
  });
});

/** A tape of random tasks; everything else it holds is empty. */
function tapeOf(tasks: readonly { at: number; ns: number; before: number; kind: number }[]): Tape {
  const sorted = [...tasks].sort((a, b) => a.at - b.at);
  const start = Float64Array.from(sorted, (t) => t.at);
  return {
    start,
    duration: Float64Array.from(sorted, (t) => t.ns),
    launch: Float64Array.from(sorted, (t) => (t.before < 0 ? Number.NaN : t.at - t.before)),
    kind: Uint8Array.from(sorted, (t) => t.kind),
    busy: union(sorted.map((t) => [t.at, t.at + t.ns] as const)),
    launchInterval: 10_000,
  } as unknown as Tape;
}

test('any tasks and any owners: the shares are disjoint and together the idle time', () => {
  const spans = fc
    .array(fc.tuple(fc.integer({ min: 0, max: 5_000_000 }), fc.integer({ min: 1, max: 400_000 })), { maxLength: 8 })
    .map((list) => union(list.map(([at, ns]) => [at, at + ns] as const)));
  const owners: fc.Arbitrary<IdleOwners> = fc.record({
    gc: spans,
    compile: spans,
    allocator: spans,
    copy: spans,
    sync: spans,
    loader: spans,
    preparation: spans,
    quiet: spans,
    seesHost: fc.boolean(),
  });
  const task = fc.record({
    at: fc.integer({ min: 0, max: 5_000_000 }),
    ns: fc.integer({ min: 1, max: 200_000 }),
    before: fc.integer({ min: -20_000, max: 500_000 }),
    kind: fc.constantFrom(COMPUTE, COMMUNICATION, COPY),
  });
  fc.assert(
    fc.property(fc.array(task, { maxLength: 40 }), owners, (tasks, own) => {
      const tape = tapeOf(tasks);
      const idle = idleIntervals(tape, [{ start: 0, end: 6_000_000 }]);
      const shares = idleByCause(tape, idle, own);
      const sets = IDLE_CAUSES.map((cause): Intervals => shares[cause]);
      sets.forEach((a, i) => {
        for (const b of sets.slice(i + 1)) expect(length(intersect(a, b))).toBe(0);
      });
      const all = unite(...sets);
      expect(length(all)).toBe(length(idle));
      expect(length(subtract(idle, all))).toBe(0);
    }),
    { numRuns: 300, seed: 20250110 },
  );
});

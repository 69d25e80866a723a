import { median } from '../../base/statistics.ts';
import type { JobComparison } from '../../model/comparison.ts';
import type { RankFacts } from '../../model/facts.ts';
import { buildReplay, type Rendezvous, type ReplayModel } from '../../replay/replay.ts';
import { type Batch, batchOf, type GivenBatch } from './batch.ts';
import { type Arrival, alignClocks, arrivals, type Clock, type Match, matchCollectives } from './collectives.ts';
import { type JobSteps, jobSteps } from './steps.ts';
import { type World, world } from './world.ts';

/** Tier two: what only all ranks together tell. Each fact is computed once, on first use. */
export interface JobFacts {
  readonly ranks: readonly RankFacts[];
  readonly steps: JobSteps;
  readonly batch: Batch;
  readonly world: World;
  readonly matches: readonly Match[];
  readonly clock: Clock;
  readonly arrivals: readonly Arrival[];
  readonly replay: ReplayModel | null;
  /** Why there is no usable replay; null when there is one. */
  readonly noReplay: 'no-launches' | 'ranks-missing' | 'clock' | 'inaccurate' | null;
  /** Time the ranks that are here spend, per used step, after the last of them arrived at a collective that is not transfer: ns by step id. */
  readonly absentWaitMs: number;
  /** The longest single wait of that kind, ms: what a rank here waits for others however fast it gets. */
  readonly longestAbsentWaitMs: number;
  /** The job against its baseline; null without one. */
  readonly comparison: JobComparison | null;
}

/** What the profile cannot tell of the job. */
export interface Given {
  readonly batch?: GivenBatch | null;
  readonly compare?: (job: JobFacts) => JobComparison;
}

/** A replay further off than this is not used for savings. */
const MAX_REPLAY_ERROR = 0.05;
/** Collectives of ranks that are not here matter from this share of the step on. */
const MIN_ABSENT_SHARE = 0.05;

/** `otherRanks`: ranks known to belong to the job of which there are no facts. */
export function jobFacts(ranks: readonly RankFacts[], otherRanks: readonly number[] = [], given: Given = {}): JobFacts {
  const memo = new Map<string, unknown>();
  const once = <T>(key: string, compute: () => T): T => {
    if (!memo.has(key)) memo.set(key, compute());
    return memo.get(key) as T;
  };
  const facts: JobFacts = {
    ranks,
    get steps() {
      return once('steps', () => jobSteps(ranks));
    },
    get batch() {
      return once('batch', () => batchOf(ranks, given.batch ?? null));
    },
    get comparison() {
      return once('comparison', () => given.compare?.(facts) ?? null);
    },
    get world() {
      return once('world', () => world(ranks, otherRanks));
    },
    get matches() {
      return once('matches', () => matchCollectives(ranks));
    },
    get clock() {
      return once('clock', () => alignClocks(ranks, facts.matches));
    },
    get arrivals() {
      return once('arrivals', () => arrivals(ranks, facts.matches, facts.clock));
    },
    get absentWaitMs() {
      return once('absentWait', () => absentWait(facts));
    },
    get longestAbsentWaitMs() {
      return once('longestAbsentWait', () => longestAbsentWait(facts));
    },
    get replay() {
      return once('replay', () => replayOf(facts).model);
    },
    get noReplay() {
      return once('noReplay', () => replayOf(facts).why);
    },
  };
  return facts;

  function replayOf(job: JobFacts): { model: ReplayModel | null; why: JobFacts['noReplay'] } {
    return once('replayOf', () => {
      if (job.world.complete === false || (job.world.complete === null && job.matches.some((m) => m.complete === false)))
        return { model: null, why: 'ranks-missing' as const };
      // Nobody says how many ranks there are, and the collectives last longer than their transfer: some may be missing.
      const negligible = MIN_ABSENT_SHARE * (job.steps.stepTimeMs ?? Number.POSITIVE_INFINITY);
      if (job.world.complete === null && Math.max(job.absentWaitMs, unsharedMs(job)) > negligible)
        return { model: null, why: 'ranks-missing' as const };
      if (!job.clock.usable) return { model: null, why: 'clock' as const };
      if (ranks.some((r) => r.tape === null)) return { model: null, why: 'no-launches' as const };
      const nodeOf = (r: number, c: number): number => ranks[r]!.collectives[c]!.node;
      const rendezvous: Rendezvous[] = job.matches
        .filter((m) => m.ranks.length > 1 && m.ranks.every((r, k) => nodeOf(r, m.calls[k]!) >= 0))
        .map((m) => ({ key: m.key, ranks: m.ranks, nodes: m.ranks.map((r, k) => nodeOf(r, m.calls[k]!)), complete: m.complete !== false }));
      const model = buildReplay(
        ranks.map((r, i) => ({ facts: r, tape: r.tape!, offset: job.clock.offset[i]! })),
        rendezvous,
      );
      if (model === null) return { model: null, why: 'no-launches' as const };
      return model.error <= MAX_REPLAY_ERROR ? { model, why: null } : { model: null, why: 'inaccurate' as const };
    });
  }
}

/**
 * ms per step, smallest over the ranks here, in which a collective of which nobody here is late went on without moving data:
 * the wait for ranks that were not uploaded. Transit is the file's own figure; without it the shortest call of that size class counts.
 */
function absentWait(job: JobFacts): number {
  const { ranks, steps } = job;
  const used = new Set(steps.used);
  const perRank = ranks.map(() => 0);
  for (const arrival of job.arrivals) {
    const match = job.matches[arrival.match]!;
    if (match.complete === true || match.p2p) continue;
    if (arrival.step !== null && used.size > 0 && !used.has(arrival.step)) continue;
    match.ranks.forEach((r, k) => {
      const call = ranks[r]!.collectives[match.calls[k]!]!;
      const transit = Number.isNaN(call.transitMs) ? typicalBody(job, match.op) : call.transitMs;
      perRank[r] = perRank[r]! + Math.max(0, arrival.body / 1e6 - transit);
    });
  }
  const values = perRank.filter((_, r) => ranks[r]!.collectives.length > 0);
  const count = Math.max(1, steps.usedIndex.length);
  return values.length === 0 ? 0 : Math.min(...values) / count;
}

function longestAbsentWait(job: JobFacts): number {
  let longest = 0;
  for (const arrival of job.arrivals) {
    const match = job.matches[arrival.match]!;
    if (match.complete === true || match.p2p) continue;
    const transit = Math.max(
      ...match.ranks.map((r, k) => {
        const call = job.ranks[r]!.collectives[match.calls[k]!]!;
        return Number.isNaN(call.transitMs) ? typicalBody(job, match.op) : call.transitMs;
      }),
    );
    longest = Math.max(longest, arrival.body / 1e6 - transit);
  }
  return longest;
}

/** Exposed communication, ms per step, when no two ranks here share a call: whoever takes part in it is not here. */
function unsharedMs(job: JobFacts): number {
  if (job.matches.length === 0 || job.matches.some((m) => m.ranks.length > 1)) return 0;
  const exposed = job.ranks.map((rank) =>
    median(job.steps.usedIndex.map((s) => rank.steps[s]?.breakdown.exposedMs ?? Number.NaN).filter((ms) => !Number.isNaN(ms))),
  );
  return Math.max(0, ...exposed.filter((ms) => !Number.isNaN(ms)));
}

function typicalBody(job: JobFacts, op: string): number {
  let best = Number.POSITIVE_INFINITY;
  for (const a of job.arrivals) if (job.matches[a.match]!.op === op) best = Math.min(best, a.body / 1e6);
  return Number.isFinite(best) ? best : 0;
}

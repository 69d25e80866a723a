import { median } from '../../base/statistics.ts';
import { IDLE_CAUSES, type IdleCause, type RankFacts } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { computeMsByStep } from './lateness.ts';

/** Why a step took longer: idle time of a cause, more computing, collectives that took longer once all were there, or nothing recorded. */
export type SlowCause = Exclude<IdleCause, 'collective' | 'dependency'> | 'computing' | 'transfer' | 'unknown';

export interface SlowStep {
  /** Index into the ranks' steps. */
  readonly index: number;
  readonly id: number | null;
  readonly ms: number;
  readonly excessMs: number;
  readonly cause: SlowCause;
  /** How much longer the cause took than in a usual step, and the rank where it did; -1 when the cause sits on no single rank. */
  readonly causeMs: number;
  readonly rank: number;
}

export interface StepSpread {
  /** ms of each used step, slowest rank. */
  readonly times: readonly { readonly index: number; readonly ms: number }[];
  /** Median of the usual steps. */
  readonly usualMs: number;
  readonly slow: readonly SlowStep[];
}

/** A cause must account for this share of what the step took longer. */
const EXPLAINS = 0.5;
const SCALE = 3 * 1.4826;

/** Sets the slow steps apart from the usual ones: at the widest gap between the sorted times, with at least two usual steps below it. */
export function stepSpread(job: JobFacts, minShare: number, minMs: number): StepSpread | null {
  const times = job.steps.usedIndex
    .map((index) => ({ index, ms: Math.max(...job.ranks.map((r) => r.steps[index]?.breakdown.stepMs ?? Number.NaN).map((v) => v || 0)) }))
    .filter((t) => t.ms > 0);
  if (times.length < 3 || job.steps.basis !== 'distance') return null;
  const sorted = [...times].sort((a, b) => a.ms - b.ms);
  const least = Math.max(2, Math.ceil(times.length / 3));
  let cut = sorted.length;
  let widest = 0;
  for (let i = least; i < sorted.length; i++) {
    const gap = sorted[i]!.ms - sorted[i - 1]!.ms;
    if (gap > widest) {
      widest = gap;
      cut = i;
    }
  }
  const usual = sorted.slice(0, cut);
  const usualMs = median(usual.map((t) => t.ms));
  const spread = SCALE * median(usual.map((t) => Math.abs(t.ms - usualMs)));
  const far = sorted.slice(cut).filter((t) => t.ms - usualMs >= Math.max(minShare * usualMs, minMs, spread));
  const usualIndex = usual.map((t) => t.index);
  const computing = computeMsByStep(job);
  const bodies = transferByStep(job);
  return {
    times,
    usualMs,
    slow: far.map((t) => slowStep(job, t, usualMs, usualIndex, computing, bodies)).sort((a, b) => a.index - b.index),
  };
}

/** What a step must take longer to be slow, when nobody says otherwise: a tenth, and a millisecond. */
export const SLOW_SHARE = 0.1;
export const SLOW_MS = 1;
/** Share of the waiting that must lie in slow steps to be their effect. */
const MOSTLY = 0.7;

/** True when ranks wait for each other in a few slow steps and hardly in the usual ones: the waiting is an effect of those steps. */
export function waitingIsInSlowSteps(job: JobFacts): boolean {
  const spread = stepSpread(job, SLOW_SHARE, SLOW_MS);
  if (spread === null || spread.slow.length === 0 || 2 * spread.slow.length > spread.times.length) return false;
  const used = new Set<number | null>(job.steps.used);
  const slow = new Set<number | null>(spread.slow.map((s) => s.id));
  let all = 0;
  let inSlow = 0;
  for (const a of job.arrivals) {
    if (job.matches[a.match]!.p2p || !used.has(a.step)) continue;
    all += a.skew;
    if (slow.has(a.step)) inSlow += a.skew;
  }
  return all > 0 && inSlow >= MOSTLY * all;
}

function slowStep(
  job: JobFacts,
  { index, ms }: { index: number; ms: number },
  usualMs: number,
  usual: readonly number[],
  computing: readonly (readonly number[])[],
  bodies: readonly number[],
): SlowStep {
  const excessMs = ms - usualMs;
  const candidates: { cause: SlowCause; rank: number; more: number }[] = [];
  const more = (values: (s: number) => number): number => values(index) - median(usual.map(values).filter((v) => !Number.isNaN(v)));
  for (const [rank, facts] of job.ranks.entries()) {
    for (const cause of IDLE_CAUSES) {
      if (cause === 'collective' || cause === 'dependency') continue;
      candidates.push({ cause, rank, more: more((s) => idleMs(facts, s, cause)) });
    }
    candidates.push({ cause: 'computing', rank, more: more((s) => computing[rank]![s] ?? Number.NaN) });
  }
  candidates.push({ cause: 'transfer', rank: -1, more: more((s) => bodies[s] ?? Number.NaN) });
  const best = candidates.filter((c) => c.more > 0).sort((a, b) => b.more - a.more)[0];
  const found = best !== undefined && best.more >= EXPLAINS * excessMs ? best : { cause: 'unknown' as const, rank: -1, more: Number.NaN };
  const id = job.ranks.find((r) => r.steps[index]?.id != null)?.steps[index]?.id ?? null;
  return { index, id, ms, excessMs, cause: found.cause, causeMs: found.more, rank: found.rank };
}

function idleMs(rank: RankFacts, step: number, cause: IdleCause): number {
  const found = rank.idle?.steps[step];
  return found === undefined ? Number.NaN : found[cause] / 1e6;
}

/** ms of the collectives of each step after their last rank had arrived: the part that no late rank explains. */
function transferByStep(job: JobFacts): number[] {
  const count = job.ranks.reduce((most, r) => Math.max(most, r.steps.length), 0);
  const out = new Array<number>(count).fill(0);
  const indexOf = new Map<number | null, number>();
  for (const r of job.ranks) for (const [i, s] of r.steps.entries()) indexOf.set(s.id, i);
  for (const a of job.arrivals) {
    const match = job.matches[a.match]!;
    const step = indexOf.get(a.step);
    if (step === undefined || match.p2p || match.complete === false) continue;
    out[step] = out[step]! + a.body / 1e6;
  }
  return out;
}

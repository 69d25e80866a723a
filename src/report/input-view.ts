import type { JobFacts } from '../facts/job/index.ts';
import type { RankFacts } from '../model/facts.ts';

/** What a picture can show; the ranks and steps with most waiting. */
const RANKS = 16;
const STEPS = 100;

export interface InputView {
  readonly ranks: readonly {
    readonly rank: number | null;
    readonly iterator: 'single' | 'multi' | 'unknown' | null;
    /** ms of the training thread in fetches and in preparing the batch, and how long the device was idle because of each. */
    readonly steps: readonly {
      readonly step: number | null;
      readonly fetchMs: number;
      readonly stallMs: number;
      readonly prepareMs: number;
      readonly prepareIdleMs: number;
    }[];
  }[];
  /** Ranks with such events, and captured steps; more than are here when there are many. */
  readonly of: { readonly ranks: number; readonly steps: number };
}

const ms = (ns: number): number => Math.round(ns / 1000) / 1000;

function stepsOf(rank: RankFacts): InputView['ranks'][number]['steps'] {
  const sums = rank.steps.map(({ id }) => ({ step: id, fetch: 0, stall: 0, prepare: 0, idle: 0 }));
  for (const f of rank.loader?.fetches ?? []) {
    const sum = sums[f.step];
    if (sum === undefined) continue;
    sum.fetch += f.end - f.start;
    sum.stall += f.stall;
  }
  for (const p of rank.host?.preparation ?? []) {
    const sum = sums[p.step];
    if (sum === undefined) continue;
    sum.prepare += p.end - p.start;
    sum.idle += p.idle;
  }
  return sums.map((s) => ({
    step: s.step,
    fetchMs: ms(s.fetch),
    stallMs: ms(s.stall),
    prepareMs: ms(s.prepare),
    prepareIdleMs: ms(s.idle),
  }));
}

/** Whether the loader is ahead of the cards. null: no fetch of a batch was recorded on any rank. */
export function inputView(job: JobFacts): InputView | null {
  const seen = job.ranks.flatMap((rank) => {
    if (rank.loader === null && (rank.host?.preparation.length ?? 0) === 0) return [];
    const steps = stepsOf(rank);
    return [
      { rank: rank.rank, iterator: rank.loader?.iterator ?? null, steps, idle: steps.reduce((n, s) => n + s.stallMs + s.prepareIdleMs, 0) },
    ];
  });
  if (seen.length === 0) return null;
  const pace = job.ranks[job.steps.pace]?.rank ?? null;
  const order = [...seen].sort((a, b) => b.idle - a.idle || Number(b.rank === pace) - Number(a.rank === pace));
  return {
    ranks: order.slice(0, RANKS).map(({ rank, iterator, steps }) => ({ rank, iterator, steps: steps.slice(0, STEPS) })),
    of: { ranks: seen.length, steps: Math.max(...seen.map((r) => r.steps.length)) },
  };
}

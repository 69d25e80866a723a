import { median } from '../base/statistics.ts';
import type { JobFacts } from '../facts/job/index.ts';
import type { Part } from '../model/comparison.ts';
import { accountsOf, type Detail, type RankAccounts } from './account.ts';

/** Weight of each captured step, by its index; the weights of a job add up to 1. */
export type Weights = ReadonlyMap<number, number>;

/**
 * Weights of the steps around the median: the interquartile mean. Parts of a step have medians that do not add up to the median step;
 * their means over these steps do, nearly, and a single slow step has no say in them.
 */
export function middleSteps(job: JobFacts): Weights {
  const { usedIndex, perStepMs } = job.steps;
  const known = perStepMs.length === usedIndex.length;
  const order = usedIndex.map((step, i) => ({ step, ms: known ? perStepMs[i]! : 0 })).sort((a, b) => a.ms - b.ms || a.step - b.step);
  const count = order.length;
  const [from, to] = [count / 4, (3 * count) / 4];
  const weights = new Map<number, number>();
  order.forEach(({ step }, i) => {
    const inside = known ? Math.max(0, Math.min(i + 1, to) - Math.max(i, from)) / (to - from) : 1 / count;
    if (inside > 0) weights.set(step, inside);
  });
  return weights;
}

/**
 * The rank of a job that the others wait for in each step: the one with the least exposed communication. Its step shows what the time
 * went into; the steps of the others show that they waited. Ranks without that figure fall back to the slowest one.
 */
export function paceBySteps(job: JobFacts, steps: Iterable<number>): Map<number, number> {
  const out = new Map<number, number>();
  for (const step of steps) {
    let least = Number.POSITIVE_INFINITY;
    let pace = job.steps.pace;
    job.ranks.forEach((rank, r) => {
      const exposed = rank.steps[step]?.breakdown.exposedMs ?? Number.NaN;
      if (exposed < least) [least, pace] = [exposed, r];
    });
    out.set(step, pace);
  }
  return out;
}

/** Share of the weight that each rank sets the pace for. */
export function paceShares(paces: ReadonlyMap<number, number>, weights: Weights): Map<number, number> {
  const shares = new Map<number, number>();
  for (const [step, weight] of weights) {
    const rank = paces.get(step);
    if (rank !== undefined) shares.set(rank, (shares.get(rank) ?? 0) + weight);
  }
  return shares;
}

/** True when the others really wait for this rank: it has clearly less exposed communication than the median of the others. */
export function standsOut(job: JobFacts, rank: number, steps: Iterable<number>, byMs: number): boolean {
  if (job.ranks.length < 2) return false;
  const less: number[] = [];
  for (const step of steps) {
    const exposed = job.ranks.map((r) => r.steps[step]?.breakdown.exposedMs ?? Number.NaN);
    const others = exposed.filter((v, r) => r !== rank && !Number.isNaN(v));
    if (others.length > 0 && !Number.isNaN(exposed[rank]!)) less.push(Math.min(...others) - exposed[rank]!);
  }
  return less.length > 0 && median(less) >= byMs;
}

/** A job and what stands for it: weights of steps by rank index, together 1. */
export interface Stand {
  readonly job: JobFacts;
  readonly ranks: ReadonlyMap<number, Weights>;
  readonly accounts: ReadonlyMap<number, RankAccounts>;
}

export function stand(job: JobFacts, ranks: Iterable<number>, weightsOf: (rank: number) => Weights): Stand {
  const of = new Map([...ranks].map((r) => [r, weightsOf(r)] as const));
  return { job, ranks: of, accounts: new Map([...of.keys()].map((r) => [r, accountsOf(job, r)] as const)) };
}

export function scaled(weights: Iterable<readonly [number, number]>, by: number): Weights {
  return new Map([...weights].map(([step, w]) => [step, w * by] as const));
}

const ORDER: readonly Detail[] = ['coarse', 'fine', 'waiting'];

/** What all of them can tell. */
export function commonDetail(...stands: readonly Stand[]): Detail {
  const details = stands.flatMap((s) => [...s.accounts.values()].map((a) => ORDER.indexOf(a.detail)));
  return ORDER[Math.min(...details)] ?? 'coarse';
}

/** The weighted step of a stand, part by part. */
export function total({ ranks, accounts }: Stand, detail: Detail): Partial<Record<Part, number>> {
  const out: Partial<Record<Part, number>> = {};
  for (const [rank, weights] of ranks) {
    for (const [step, weight] of weights) {
      const account = accounts.get(rank)!.at(step, detail);
      for (const [part, ms] of Object.entries(account ?? {}) as [Part, number][]) out[part] = (out[part] ?? 0) + weight * ms;
    }
  }
  return out;
}

/** Calls per step, free of what weights that do not add up exactly leave behind. */
export function perStep(calls: number): number {
  return Math.round(calls * 100) / 100;
}

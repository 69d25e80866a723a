import { covered, EMPTY, type Intervals, unionSorted } from '../../base/intervals.ts';
import { median } from '../../base/statistics.ts';
import { COMPUTE, IDLE_CAUSES, type IdleCause } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed } from './per-step.ts';
import { stages } from './stages.ts';

/**
 * Who makes the others wait. ms per used step. Only collectives of which all members are here, with a usable clock, inside one
 * pipeline stage (stages wait for each other by design). Waiting that computing covers on the waiting rank costs nothing and is left out.
 *
 * A rank is late when it comes after the lower median of its group by more than the clock error and by at least half of what the last
 * one does: two slow ranks of four are both late, although one of them always comes a little after the other.
 */
export interface Lateness {
  /** By rank index: what the earliest rank would not have waited had this rank come with the median. Several late ranks share a wait. */
  readonly causedMs: readonly number[];
  readonly waitedMs: readonly number[];
  /** By rank index: collectives at which it was late. */
  readonly lastCount: readonly number[];
  readonly total: number;
  /** All waiting of the earliest ranks, whoever caused it. */
  readonly skewMs: number;
  /** Ranks that made others of their stage wait, most caused first. Lateness travels along the pipeline: a rank may only pass on what another stage caused. */
  readonly culprits: readonly Culprit[];
  /** Share of all such waiting that the first culprit of each stage caused, 0..1. */
  readonly culpritShare: number;
}

export interface Culprit {
  readonly rank: number;
  readonly stage: number;
  /** Its share of the waiting in its stage; several late ranks may each have most of it. */
  readonly share: number;
  /** Number of used steps in which it caused at least half of the waiting of its stage. */
  readonly steps: number;
  /** The other ranks of its stage that are late less than half as much. */
  readonly peers: readonly number[];
}

/** Arrivals of these ranks that differ by less cannot be told apart, ns. */
export function arrivalError(job: JobFacts, ranks: readonly number[]): number {
  return 3 * Math.max(20_000, ...ranks.map((r) => job.clock.mad[r] || 0));
}

const known = new WeakMap<JobFacts, Lateness>();

export function lateness(job: JobFacts): Lateness {
  let result = known.get(job);
  if (result === undefined) {
    result = compute(job);
    known.set(job, result);
  }
  return result;
}

function compute(job: JobFacts): Lateness {
  const n = job.ranks.length;
  const zeros = (): number[] => new Array<number>(n).fill(0);
  const causedMs = zeros();
  const waitedMs = zeros();
  const lastCount = zeros();
  /** By step: what each rank caused, and the waiting of each stage. */
  const perStep = new Map<number | null, { caused: number[]; skew: Map<number, number> }>();
  let total = 0;
  const used = new Set<number | null>(job.steps.used);
  const count = Math.max(1, job.steps.usedIndex.length);
  const computing = job.ranks.map((r) => computeUnion(r.tape));
  const stageOf = stageByRank(job);
  const skew = new Map<number, number>();
  for (const a of job.arrivals) {
    const match = job.matches[a.match]!;
    const stage = stageOf[a.ranks[0]!]!;
    if (match.p2p || match.complete === false || a.ranks.some((r) => stageOf[r] !== stage)) continue;
    if (job.steps.used.length > 0 && a.step !== null && !used.has(a.step)) continue;
    total++;
    const error = arrivalError(job, a.ranks);
    if (a.skew <= error) continue;
    const sorted = [...a.arrive].sort((x, y) => x - y);
    const reference = sorted[(sorted.length - 1) >> 1]!;
    const latest = sorted[sorted.length - 1]!;
    /** Uncovered waiting of the k-th rank until an instant of the job's clock, ns. */
    const waits = (k: number, until: number): number => {
      const r = a.ranks[k]!;
      const from = a.arrive[k]! - job.clock.offset[r]!;
      const to = until - job.clock.offset[r]!;
      return to > from ? to - from - covered(computing[r]!, from, to) : 0;
    };
    let most = 0;
    a.ranks.forEach((r, k) => {
      const exposed = waits(k, latest);
      most = Math.max(most, exposed);
      waitedMs[r] = waitedMs[r]! + exposed / 1e6 / count;
    });
    if (most <= error) continue;
    let step = perStep.get(a.step);
    if (step === undefined) {
      step = { caused: zeros(), skew: new Map() };
      perStep.set(a.step, step);
    }
    step.skew.set(stage, (step.skew.get(stage) ?? 0) + most);
    skew.set(stage, (skew.get(stage) ?? 0) + most / 1e6 / count);
    const least = Math.max(error, (latest - reference) / 2);
    a.ranks.forEach((r, k) => {
      if (a.arrive[k]! - reference <= least) return;
      const caused = Math.max(...a.ranks.map((_, other) => waits(other, a.arrive[k]!)));
      if (caused <= error) return;
      lastCount[r] = lastCount[r]! + 1;
      causedMs[r] = causedMs[r]! + caused / 1e6 / count;
      step.caused[r] = step.caused[r]! + caused;
    });
  }
  const culprits: Culprit[] = [];
  for (const [rank, caused] of causedMs.entries()) {
    if (!(caused > 0)) continue;
    const stage = stageOf[rank]!;
    let steps = 0;
    for (const each of perStep.values()) if (each.caused[rank]! > 0 && each.caused[rank]! >= 0.5 * (each.skew.get(stage) ?? 0)) steps++;
    const peers = stageOf.map((_, r) => r).filter((r) => r !== rank && stageOf[r] === stage && causedMs[r]! < caused / 2);
    culprits.push({ rank, stage, share: Math.min(1, caused / skew.get(stage)!), steps, peers });
  }
  culprits.sort((a, b) => causedMs[b.rank]! - causedMs[a.rank]!);
  const skewMs = [...skew.values()].reduce((x, y) => x + y, 0);
  const firsts = [...skew.keys()].map((stage) => culprits.find((c) => c.stage === stage));
  const byFirsts = firsts.reduce((sum, c) => sum + (c === undefined ? 0 : causedMs[c.rank]!), 0);
  return { causedMs, waitedMs, lastCount, total, skewMs, culprits, culpritShare: skewMs > 0 ? Math.min(1, byFirsts / skewMs) : 0 };
}

function computeUnion(tape: JobFacts['ranks'][number]['tape']): Intervals {
  return tape === null ? EMPTY : unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMPUTE);
}

/** Stage of each rank index; all 0 without pipeline parallelism. */
function stageByRank(job: JobFacts): number[] {
  const out = job.ranks.map(() => 0);
  stages(job)?.stages.forEach((stage, s) => {
    for (const r of stage.ranks) out[r] = s;
  });
  return out;
}

/** How one rank differs from its peers, per used step: what it did more of before it came. */
export interface RankDifference {
  /** Sum of compute kernel time, ms, this rank and the median of its peers. */
  readonly computeMs: number;
  readonly othersComputeMs: number;
  readonly kernels: number;
  readonly othersKernels: number;
  /** Host time between consecutive launches that are close together, ns. */
  readonly launchNs: number;
  readonly othersLaunchNs: number;
  /** Idle time of the device by cause, less that of the peers, ms. */
  readonly idleMs: Readonly<Record<IdleCause, number>>;
}

export function compareRank(job: JobFacts, rank: number, peers: readonly number[]): RankDifference {
  const others = (values: readonly number[]): number => median(peers.map((r) => values[r]!).filter((v) => !Number.isNaN(v)));
  const ofIdle = (cause: IdleCause): number => {
    const perRank = job.ranks.map(
      (r) =>
        medianOfUsed(
          job,
          (r.idle?.steps ?? []).map((s) => s[cause] / 1e6),
        ) || 0,
    );
    return perRank[rank]! - others(perRank);
  };
  const compute = computeMsByStep(job).map((steps) => medianOfUsed(job, steps));
  const kernels = job.ranks.map((r) =>
    medianOfUsed(
      job,
      kernelSums(r.steps.length, r.tape, () => 1),
    ),
  );
  const launch = job.ranks.map((r) => r.tape?.launchInterval ?? Number.NaN);
  return {
    computeMs: compute[rank]!,
    othersComputeMs: others(compute),
    kernels: kernels[rank]!,
    othersKernels: others(kernels),
    launchNs: launch[rank]!,
    othersLaunchNs: others(launch),
    idleMs: Object.fromEntries(IDLE_CAUSES.map((cause) => [cause, ofIdle(cause)])) as Record<IdleCause, number>,
  };
}

/** Compute kernel time by rank index and step index, ms. NaN without a timeline. */
export function computeMsByStep(job: JobFacts): readonly (readonly number[])[] {
  return job.ranks.map((r) => kernelSums(r.steps.length, r.tape, (ns) => ns / 1e6));
}

/** Sums `amount` over the compute kernels of a tape by step index; NaN without a tape. */
function kernelSums(steps: number, tape: JobFacts['ranks'][number]['tape'], amount: (ns: number) => number): number[] {
  if (tape === null) return new Array<number>(steps).fill(Number.NaN);
  const out = new Array<number>(steps).fill(0);
  for (let i = 0; i < tape.start.length; i++) {
    const step = tape.step[i]!;
    if (tape.kind[i] === COMPUTE && step >= 0) out[step] = out[step]! + amount(tape.duration[i]!);
  }
  return out;
}

import { covered, EMPTY, type Intervals, unionSorted } from '../../base/intervals.ts';
import { median } from '../../base/statistics.ts';
import { COMPUTE } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed, sumByStep } from './per-step.ts';
import { stages } from './stages.ts';

/**
 * Who makes the others wait. ms per used step. Only collectives of which all members are here, with a usable clock, inside one
 * pipeline stage (stages wait for each other by design). Waiting that computing covers on the waiting rank costs nothing and is left out.
 */
export interface Lateness {
  /** By rank index: wait it caused the earliest rank, and wait it suffered. */
  readonly causedMs: readonly number[];
  readonly waitedMs: readonly number[];
  /** By rank index: collectives at which it came last by more than the clock error. */
  readonly lastCount: readonly number[];
  readonly total: number;
  /**
   * One entry per pipeline stage in which somebody made others wait, most caused first; one stage without pipeline parallelism.
   * Lateness travels along the pipeline, so the latest of one stage may only pass on what a rank of another stage caused.
   */
  readonly culprits: readonly Culprit[];
  /** Share of all caused waiting that the culprits of the stages caused, 0..1. */
  readonly culpritShare: number;
}

/** The rank that made the others of its stage wait most. */
export interface Culprit {
  readonly rank: number;
  /** Its share of the waiting caused in its stage. */
  readonly share: number;
  /** Number of used steps in which it caused most of its stage. */
  readonly steps: number;
  /** The other ranks of its stage. */
  readonly peers: readonly number[];
}

export function lateness(job: JobFacts): Lateness {
  const n = job.ranks.length;
  const causedMs = new Array<number>(n).fill(0);
  const waitedMs = new Array<number>(n).fill(0);
  const lastCount = new Array<number>(n).fill(0);
  const perStep = new Map<number | null, number[]>();
  let total = 0;
  const used = new Set<number | null>(job.steps.used);
  const count = Math.max(1, job.steps.usedIndex.length);
  const inOrder = [...job.arrivals].sort((a, b) => a.end - b.end);
  const computing = job.ranks.map((r) => computeUnion(r.tape));
  const stageOf = stageByRank(job);
  for (const a of inOrder) {
    const match = job.matches[a.match]!;
    if (match.p2p || match.complete === false || a.ranks.some((r) => stageOf[r] !== stageOf[a.ranks[0]!])) continue;
    if (job.steps.used.length > 0 && a.step !== null && !used.has(a.step)) continue;
    total++;
    const error = 3 * Math.max(20_000, ...a.ranks.map((r) => job.clock.mad[r] || 0));
    if (a.skew <= error) continue;
    const latest = Math.max(...a.arrive);
    let most = 0;
    a.ranks.forEach((r, k) => {
      const from = a.arrive[k]! - job.clock.offset[r]!;
      const to = latest - job.clock.offset[r]!;
      const exposed = to - from - covered(computing[r]!, from, to);
      most = Math.max(most, exposed);
      waitedMs[r] = waitedMs[r]! + exposed / 1e6 / count;
    });
    if (a.lead <= error || most <= error) continue;
    causedMs[a.last] = causedMs[a.last]! + most / 1e6 / count;
    lastCount[a.last] = lastCount[a.last]! + 1;
    let byRank = perStep.get(a.step);
    if (byRank === undefined) {
      byRank = new Array<number>(n).fill(0);
      perStep.set(a.step, byRank);
    }
    byRank[a.last] = byRank[a.last]! + most;
  }
  const culprits: Culprit[] = [];
  for (const stage of new Set(stageOf)) {
    const members = stageOf.map((_, r) => r).filter((r) => stageOf[r] === stage);
    const rank = members.reduce((a, b) => (causedMs[b]! > causedMs[a]! ? b : a));
    if (!(causedMs[rank]! > 0)) continue;
    let steps = 0;
    for (const byRank of perStep.values()) if (byRank[rank]! > 0 && members.every((r) => byRank[r]! <= byRank[rank]!)) steps++;
    const caused = members.reduce((sum, r) => sum + causedMs[r]!, 0);
    culprits.push({ rank, share: causedMs[rank]! / caused, steps, peers: members.filter((r) => r !== rank) });
  }
  culprits.sort((a, b) => causedMs[b.rank]! - causedMs[a.rank]!);
  const sum = causedMs.reduce((x, y) => x + y, 0);
  const byCulprits = culprits.reduce((total, c) => total + causedMs[c.rank]!, 0);
  return { causedMs, waitedMs, lastCount, total, culprits, culpritShare: sum > 0 ? byCulprits / sum : 0 };
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

/** How one rank differs from its peers, per used step. */
export interface RankDifference {
  /** Sum of compute kernel time, ms, this rank and the median of its peers. */
  readonly computeMs: number;
  readonly othersComputeMs: number;
  readonly kernels: number;
  readonly othersKernels: number;
  /** Host time between consecutive launches that are close together, ns. */
  readonly launchNs: number;
  readonly othersLaunchNs: number;
  readonly loaderMs: number;
  readonly othersLoaderMs: number;
  readonly compileMs: number;
  readonly othersCompileMs: number;
}

export function compareRank(job: JobFacts, rank: number, peers: readonly number[]): RankDifference {
  const steps = job.ranks.reduce((most, r) => Math.max(most, r.steps.length), 0);
  const compute = job.ranks.map(
    (r) =>
      medianOfUsed(
        job,
        kernelSums(steps, r.tape, (ns) => ns),
      ) / 1e6,
  );
  const kernels = job.ranks.map((r) =>
    medianOfUsed(
      job,
      kernelSums(steps, r.tape, () => 1),
    ),
  );
  const launch = job.ranks.map((r) => r.tape?.launchInterval ?? Number.NaN);
  const loader = job.ranks.map(
    (r) =>
      medianOfUsed(
        job,
        sumByStep(r.steps.length, r.loader?.fetches ?? [], (f) => (f.end - f.start) / 1e6),
      ) || 0,
  );
  const compile = job.ranks.map(
    (r) =>
      medianOfUsed(
        job,
        sumByStep(r.steps.length, r.compile?.calls ?? [], (c) => (c.end - c.start) / 1e6),
      ) || 0,
  );
  const others = (values: readonly number[]): number => median(peers.map((r) => values[r]!).filter((v) => !Number.isNaN(v)));
  return {
    computeMs: compute[rank]!,
    othersComputeMs: others(compute),
    kernels: kernels[rank]!,
    othersKernels: others(kernels),
    launchNs: launch[rank]!,
    othersLaunchNs: others(launch),
    loaderMs: loader[rank]!,
    othersLoaderMs: others(loader),
    compileMs: compile[rank]!,
    othersCompileMs: others(compile),
  };
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

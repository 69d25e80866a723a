import { covered, type Intervals, union } from '../../base/intervals.ts';
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
  /** Rank that caused most, and its share of all caused waiting; -1 when nothing was caused. */
  readonly culprit: number;
  readonly culpritShare: number;
  /** Number of used steps in which the culprit caused most. */
  readonly culpritSteps: number;
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
  const sum = causedMs.reduce((x, y) => x + y, 0);
  let culprit = -1;
  causedMs.forEach((ms, r) => {
    if (ms > 0 && (culprit === -1 || ms > causedMs[culprit]!)) culprit = r;
  });
  let culpritSteps = 0;
  for (const byRank of perStep.values())
    if (culprit >= 0 && byRank[culprit]! > 0 && byRank[culprit] === Math.max(...byRank)) culpritSteps++;
  return { causedMs, waitedMs, lastCount, total, culprit, culpritShare: culprit === -1 ? 0 : causedMs[culprit]! / sum, culpritSteps };
}

function computeUnion(tape: JobFacts['ranks'][number]['tape']): Intervals {
  const list: [number, number][] = [];
  if (tape !== null)
    for (let i = 0; i < tape.start.length; i++)
      if (tape.kind[i] === COMPUTE) list.push([tape.start[i]!, tape.start[i]! + tape.duration[i]!]);
  return union(list);
}

/** Stage of each rank index; all 0 without pipeline parallelism. */
function stageByRank(job: JobFacts): number[] {
  const out = job.ranks.map(() => 0);
  stages(job)?.stages.forEach((stage, s) => {
    for (const r of stage.ranks) out[r] = s;
  });
  return out;
}

/** How one rank differs from the others, per used step. */
export interface RankDifference {
  /** Sum of compute kernel time, ms, this rank and the median of the others. */
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

export function compareRank(job: JobFacts, rank: number): RankDifference {
  const compute = job.ranks.map((r) =>
    medianOfUsed(
      job,
      computeByStep(job, r.tape).map((v) => v / 1e6),
    ),
  );
  const kernels = job.ranks.map((r) => medianOfUsed(job, kernelsByStep(job, r.tape)));
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
  const others = (values: readonly number[]): number => median(values.filter((v, r) => r !== rank && !Number.isNaN(v)));
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

function computeByStep(job: JobFacts, tape: JobFacts['ranks'][number]['tape']): number[] {
  const out = new Array<number>(Math.max(0, ...job.ranks.map((r) => r.steps.length))).fill(0);
  if (tape === null) return out.map(() => Number.NaN);
  for (let i = 0; i < tape.start.length; i++)
    if (tape.kind[i] === COMPUTE && tape.step[i]! >= 0) out[tape.step[i]!] = out[tape.step[i]!]! + tape.duration[i]!;
  return out;
}

function kernelsByStep(job: JobFacts, tape: JobFacts['ranks'][number]['tape']): number[] {
  const out = new Array<number>(Math.max(0, ...job.ranks.map((r) => r.steps.length))).fill(0);
  if (tape === null) return out.map(() => Number.NaN);
  for (let i = 0; i < tape.start.length; i++)
    if (tape.kind[i] === COMPUTE && tape.step[i]! >= 0) out[tape.step[i]!] = out[tape.step[i]!]! + 1;
  return out;
}

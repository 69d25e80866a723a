import { begin, createEngine, type Engine, end, type HostProgram, lastTasks, phase, type Rank, run, spend, synchronize } from './des.ts';
import { applyHostFaults, endOfStep, startOfStep } from './host-faults.ts';
import { createLoader, type Loader } from './loader.ts';
import { makePlan, type Plan } from './plan.ts';
import { ddpStep } from './program-ddp.ts';
import { pipelineStep } from './program-pipeline.ts';
import { type Fault, type JobSpec, type ResolvedSpec, resolveSpec } from './spec.ts';

/** What one rank did in the captured steps. */
export interface RankResult {
  rank: number;
  /** host starts of the captured steps and the end of the last, ns since the start of the job */
  stepStarts: number[];
  /** recorded host operators, CANN calls and device tasks; empty for ranks that are not uploaded */
  record: Rank;
}

/** A simulated job. */
export interface SimulatedJob {
  spec: JobSpec;
  resolved: ResolvedSpec;
  plan: Plan;
  engine: Engine;
  /** step times of the slowest rank: distance between consecutive step starts, the last one its host duration; ms */
  stepTimesMs: number[];
  medianStepMs: number;
  perRank: RankResult[];
}

/** Runs the job; the result depends only on the spec. */
export function simulate(spec: JobSpec): SimulatedJob {
  const resolved = resolveSpec(spec);
  const plan = makePlan(resolved);
  const engine = createEngine(resolved.seed, resolved.ranks, plan.linkFactor, plan.slowLinks);
  const starts: number[][] = engine.ranks.map(() => []);
  const programs = engine.ranks.map((rank) => {
    rank.hostFactor = plan.hostFactorOf(rank.rank);
    rank.deviceFactor *= plan.deviceFactorOf(rank.rank);
    rank.clock = plan.compute.clockOf(rank.rank);
    applyHostFaults(plan.host, rank);
    return hostProgram(engine, plan, rank, starts[rank.rank]!);
  });
  run(engine, programs);
  const perRank = engine.ranks.map((record) => ({ rank: record.rank, stepStarts: starts[record.rank]!, record }));
  const times = perRank.map(({ stepStarts }) => stepStarts.slice(1).map((at, i) => (at - stepStarts[i]!) / 1e6));
  const slowest = times.reduce((worst, each) => (median(each) > median(worst) ? each : worst));
  return { spec, resolved, plan, engine, stepTimesMs: slowest, medianStepMs: median(slowest), perRank };
}

function* hostProgram(engine: Engine, plan: Plan, rank: Rank, starts: number[]): HostProgram {
  const { spec } = plan;
  const loader: Loader = createLoader(plan.loaderOf(rank.rank), rank);
  const uploaded = spec.uploadedRanks.includes(rank.rank);
  for (let step = -spec.warmup; step < spec.steps; step++) {
    rank.step = step;
    rank.recording = uploaded && step >= 0;
    if (step >= 0) starts.push(rank.now);
    const op = begin(rank, `ProfilerStep#${spec.firstStep + step}`);
    yield* startOfStep(plan.host, rank);
    const own = plan.ownModel === null ? plan : { ...plan, model: plan.ownModel(rank.rank, step) };
    yield* spec.pp === 2 ? pipelineStep(engine, own, rank, loader) : ddpStep(engine, own, rank, loader);
    yield* endOfStep(plan.host, rank);
    end(rank, op);
  }
  starts.push(rank.now);
  phase(rank, 'stop');
  spend(rank, 30);
  yield* synchronize(rank, lastTasks(rank), 'aclrtSynchronizeDevice');
}

/** Median of a non-empty list. */
function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The same job with one fault arranged right: `off` keeps micro-steps, stages and synchronisation points as they are. */
export function withoutFault(spec: JobSpec, fault: Fault): JobSpec {
  const text = JSON.stringify(fault);
  const faults = spec.faults ?? [];
  const index = faults.findIndex((candidate) => candidate === fault || JSON.stringify(candidate) === text);
  if (index < 0) throw new Error(`the job has no fault ${text}`);
  return { ...spec, faults: faults.map((candidate, i) => (i === index ? { ...candidate, off: true } : candidate)) };
}

/** True saving of a fault in ms per step: median step with all faults minus median step without this one, same seed. */
export function trueSavingMs(spec: JobSpec, fault: Fault): number {
  const uploadedRanks: number[] = [];
  const full = { ...spec, uploadedRanks };
  return simulate(full).medianStepMs - simulate(withoutFault(full, fault)).medianStepMs;
}

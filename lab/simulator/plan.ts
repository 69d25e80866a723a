import { type ComputeFaults, planComputeFaults } from './compute-faults.ts';
import type { SlowLink } from './des.ts';
import { type FusionFaults, planFusionFaults } from './fusion-faults.ts';
import { buildGroups, type Group } from './groups.ts';
import { type HostFaults, planHostFaults } from './host-faults.ts';
import { activationBytes, batchTokens, buildModel, type Model, OPTIMIZER_US, type Operator } from './kernels.ts';
import { hash } from './random.ts';
import type { Fault, FaultKind, ResolvedSpec } from './spec.ts';

/** A loader as one rank sees it. */
export interface LoaderPlan {
  workers: number;
  /** what a fetch takes longer in a step, in us */
  extraUs: (step: number) => number;
  /** time of one worker (or of the main process with 0 workers) for one batch, in us */
  sampleUs: number;
  /** main-thread time of a fetch that finds its batch ready, in us */
  fetchUs: number;
}

/** What the job does in every step, after the faults were applied. */
export interface Plan {
  spec: ResolvedSpec;
  groups: Group[];
  model: Model;
  /** what a rank computes in a step whose batches are not alike; null = the model above */
  ownModel: ((rank: number, step: number) => Model) | null;
  /** batch of one forward relative to a full-size batch */
  batchScale: number;
  /** forward/backward passes of one optimizer step (DDP) */
  microSteps: number;
  /** all-reduce gradients in every micro-step instead of the last only */
  syncEveryMicroStep: boolean;
  linkFactor: number;
  slowLinks: SlowLink[];
  /** micro-batches of a pipeline step */
  microBatches: number;
  /** tokens of one forward */
  tokens: number;
  /** reduce the gradients only when the backward is over */
  reduceAfterBackward: boolean;
  /** messages one matrix's gradients are reduced in, 0 = buckets of 25 MB */
  gradientPieces: number;
  /** parameter shards gathered before each layer, in messages of `bytes`; null = parameters are not sharded */
  gather: { count: number; bytes: number } | null;
  /** tokens of a rank's experts in one layer relative to the mean; null = no experts */
  expertShareOf: ((rank: number, step: number, layer: number) => number) | null;
  /** times as long as the first half of the gradient buckets takes */
  bucketStretch: number;
  /** layers of each pipeline stage */
  stageLayers: number[];
  /** launches of the Python-loop optimizer, 0 = fused */
  optimizerLoop: number;
  /** launches of the Python-loop feature, 0 = fused; null = the model has no such feature */
  featureLoop: number | null;
  /** round trips per step and device time of one conversion */
  layout: { perStep: number; us: number } | null;
  compile: { perStep: number; us: number } | null;
  /** broadcast module buffers in every forward */
  buffers: number;
  jitterUs: number;
  /** what single steps take longer on a rank, in us */
  slowStepUs: (cause: 'pause' | 'fetch' | 'collective', rank: number, step: number) => number;
  loaderOf: (rank: number) => LoaderPlan;
  hostFactorOf: (rank: number) => number;
  deviceFactorOf: (rank: number) => number;
  host: HostFaults;
  compute: ComputeFaults;
  fusion: FusionFaults;
}

const DDP_MICRO_SCALE = 0.5;
const PP_SCALE = 0.625;
const PP_HEAD_SCALE = 0.05;
/** A healthy worker's time for one batch relative to the step, per worker. */
const HEALTHY_SAMPLE_SHARE = 0.35;

/** Links of a job whose gradients take as long as its backward, slower by this factor. */
const CONTENDED_LINKS = 4;

type FaultOf<K extends FaultKind> = Extract<Fault, { kind: K }>;

/** Turns a spec into a plan; faults marked `off` shape the job but cost nothing. */
export function makePlan(spec: ResolvedSpec): Plan {
  const all = <K extends FaultKind>(kind: K) => spec.faults.filter((fault): fault is FaultOf<K> => fault.kind === kind);
  const one = <K extends FaultKind>(kind: K) => all(kind)[0];
  const on = <T extends Fault>(fault: T | undefined): T | undefined => (fault && !fault.off ? fault : undefined);

  const accumulate = one('sync-per-microstep');
  const weightCasts = one('weight-cast');
  const microSteps = accumulate ? (accumulate.microSteps ?? 4) : weightCasts ? (weightCasts.microSteps ?? 4) : 1;
  const few = on(one('few-micro-batches'));
  const microBatches = few ? (few.microBatches ?? 2) : spec.microBatches;
  // The global batch stays: fewer micro-batches are larger ones.
  const batchScale =
    spec.pp === 2 ? (PP_SCALE * spec.microBatches) / microBatches : accumulate ? DDP_MICRO_SCALE : weightCasts ? PP_SCALE : 1;
  const compute = planComputeFaults(spec, batchTokens(batchScale));
  const fusion = planFusionFaults(spec, batchTokens(batchScale), batchScale);
  const model = fusion.shape(compute.shape(buildModel(batchScale, spec.pp === 2 ? PP_HEAD_SCALE : 1)));
  const uneven = on(one('uneven-batches'));
  const imbalance = on(one('stage-imbalance'));
  const stageLayers = splitLayers(spec.layers, spec.pp, imbalance ? (imbalance.extraLayers ?? 1) : 0);
  const passes = spec.pp === 2 ? microBatches : microSteps;
  const stepUs = estimateStepUs(model, Math.max(...splitLayers(spec.layers, spec.pp, 0)), passes + (spec.pp - 1));

  const optimizerOps = all('small-ops').find((fault) => (fault.where ?? 'optimizer') === 'optimizer');
  const featureOps = all('small-ops').find((fault) => fault.where === 'forward');
  const tinyGradients = all('small-messages').find((fault) => fault.where === 'gradients');
  const gathers = all('small-messages').find((fault) => (fault.where ?? 'forward') === 'forward');
  const experts = one('expert-imbalance');
  const contention = one('contention');
  const layout = on(one('layout'));
  const compile = on(one('recompile'));
  const broadcast = on(one('buffer-broadcast'));
  const rotating = on(one('rotating-jitter'));
  const hidden = on(one('hidden-loader'));
  const slowLoaders = all('slow-loader').filter((fault) => !fault.off);
  const fetches = spec.pp === 2 ? 1 : microSteps;
  const host = planHostFaults(spec, stepUs);
  const slowSteps = all('slow-steps').filter((fault) => !fault.off);
  const slowStepUs: Plan['slowStepUs'] = (cause, rank, step) =>
    slowSteps
      .filter((fault) => (fault.cause ?? 'pause') === cause && fault.steps.includes(step))
      .filter((fault) => cause === 'collective' || (fault.rank ?? 0) === rank)
      .reduce((sum, fault) => sum + (fault.ms ? fault.ms * 1000 : 0.25 * stepUs), 0);
  const loaderOf = (rank: number): LoaderPlan => {
    const extraUs = (step: number): number => slowStepUs('fetch', rank, step);
    const slow = slowLoaders.find((fault) => !fault.ranks || fault.ranks.includes(rank));
    const fetchUs = hidden ? (hidden.fetchMs ? hidden.fetchMs * 1000 : 0.6 * stepUs) / fetches : 200;
    const healthy = { workers: spec.numWorkers, sampleUs: (spec.numWorkers * HEALTHY_SAMPLE_SHARE * stepUs) / fetches, fetchUs, extraUs };
    if (!slow) return healthy;
    if (slow.single) return { workers: 0, sampleUs: slow.sampleMs ? slow.sampleMs * 1000 : (0.2 * stepUs) / fetches, fetchUs, extraUs };
    return { ...healthy, sampleUs: slow.sampleMs ? slow.sampleMs * 1000 : (spec.numWorkers * 1.2 * stepUs) / fetches };
  };
  return {
    spec,
    groups: buildGroups(spec.ranks, spec.pp, experts !== undefined),
    model,
    ownModel: uneven ? ownModels(spec, uneven, batchScale, model) : null,
    batchScale,
    microSteps,
    syncEveryMicroStep: on(accumulate) !== undefined,
    linkFactor: contention ? CONTENDED_LINKS : accumulate ? 1.9 : 1,
    slowLinks: all('slow-link')
      .filter((fault) => !fault.off)
      .map((fault) => ({ ranks: fault.ranks, factor: fault.factor ?? 5 })),
    microBatches,
    tokens: model.activationBytes / activationBytes(1),
    reduceAfterBackward: on(one('no-overlap')) !== undefined,
    gradientPieces: on(tinyGradients) ? (tinyGradients?.count ?? 12) : 0,
    gather: gathers ? gatherOf(gathers) : null,
    expertShareOf: experts ? (rank, step, layer) => expertShare(spec, experts, rank, step, layer) : null,
    bucketStretch: on(contention)?.factor ?? (on(contention) ? 1.8 : 1),
    stageLayers,
    optimizerLoop: on(optimizerOps) ? (optimizerOps?.perStep ?? 560) : 0,
    featureLoop: featureOps ? (featureOps.off ? 0 : (featureOps.perStep ?? 400)) : null,
    layout: layout ? { perStep: layout.perStep ?? 2 * spec.layers * spec.pp, us: layout.us ?? 200 } : null,
    compile: compile ? { perStep: compile.perStep ?? 2, us: compile.ms ? compile.ms * 1000 : 0.12 * stepUs } : null,
    buffers: broadcast ? (broadcast.buffers ?? 16) : 0,
    slowStepUs,
    jitterUs: rotating ? (rotating.ms ? rotating.ms * 1000 : 0.12 * stepUs) : 0,
    loaderOf,
    hostFactorOf: (rank) => factorFor(all('slow-host'), rank, 4) * host.factor,
    deviceFactorOf: (rank) => factorFor(all('slow-rank'), rank, 1.15),
    host,
    compute,
    fusion,
  };
}

/** Right: one message per layer, of the same bytes in all. */
function gatherOf(fault: FaultOf<'small-messages'>): { count: number; bytes: number } {
  const count = fault.count ?? 12;
  const bytes = fault.bytes ?? 65_536;
  return fault.off ? { count: 1, bytes: count * bytes } : { count, bytes };
}

/** One rank is busiest in a layer, the others share the rest evenly. */
function expertShare(spec: ResolvedSpec, fault: FaultOf<'expert-imbalance'>, rank: number, step: number, layer: number): number {
  if (fault.off || spec.ranks === 1) return 1;
  const peak = Math.min(fault.peak ?? 1.8, spec.ranks);
  const busiest = fault.rank ?? hash(spec.seed, step, layer, 83) % spec.ranks;
  return rank === busiest ? peak : (spec.ranks - peak) / (spec.ranks - 1);
}

/** One rank has the longest batch of a step, the next one the shortest, and they change from step to step. */
function ownModels(
  spec: ResolvedSpec,
  fault: FaultOf<'uneven-batches'>,
  scale: number,
  model: Model,
): (rank: number, step: number) => Model {
  const spread = fault.spread ?? 0.25;
  const long = buildModel(scale * (1 + spread));
  const short = buildModel(scale * (1 - spread));
  return (rank, step) => {
    if (spec.ranks === 1) return model;
    const longest = (step + spec.warmup + (hash(spec.seed, 89) % spec.ranks)) % spec.ranks;
    return rank === longest ? long : rank === (longest + 1) % spec.ranks ? short : model;
  };
}

function factorFor(faults: { rank: number; factor?: number; off?: boolean }[], rank: number, byDefault: number): number {
  let factor = 1;
  for (const fault of faults) if (fault.rank === rank && !fault.off) factor *= fault.factor ?? byDefault;
  return factor;
}

function splitLayers(layers: number, pp: number, extra: number): number[] {
  if (pp === 1) return [layers];
  const first = Math.floor(layers / 2) - extra;
  if (first < 1) throw new Error(`stage-imbalance leaves no layer on the first stage (${layers} layers, ${extra} moved)`);
  return [first, layers - first];
}

function operatorsUs(operators: Operator[]): number {
  let us = 0;
  for (const operator of operators) {
    us += operator.forward.us;
    for (const kernel of operator.backward) us += kernel.us;
  }
  return us;
}

/** Device time of a healthy step, from which default fault sizes are derived. */
function estimateStepUs(model: Model, layersPerStage: number, passes: number): number {
  const pass = layersPerStage * operatorsUs(model.layer) + operatorsUs([...model.embedding, ...model.head, ...model.loss]);
  return passes * pass + OPTIMIZER_US + 1500;
}

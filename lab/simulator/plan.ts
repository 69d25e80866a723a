import { buildGroups, type Group } from './groups.ts';
import { buildModel, type Model, OPTIMIZER_US, type Operator } from './kernels.ts';
import type { Fault, FaultKind, ResolvedSpec } from './spec.ts';

/** A loader as one rank sees it. */
export interface LoaderPlan {
  workers: number;
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
  /** batch of one forward relative to a full-size batch */
  batchScale: number;
  /** forward/backward passes of one optimizer step (DDP) */
  microSteps: number;
  /** all-reduce gradients in every micro-step instead of the last only */
  syncEveryMicroStep: boolean;
  linkFactor: number;
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
  loaderOf: (rank: number) => LoaderPlan;
  hostFactorOf: (rank: number) => number;
  deviceFactorOf: (rank: number) => number;
}

const DDP_MICRO_SCALE = 0.5;
const PP_SCALE = 0.625;
const PP_HEAD_SCALE = 0.05;
/** A healthy worker's time for one batch relative to the step, per worker. */
const HEALTHY_SAMPLE_SHARE = 0.35;

type FaultOf<K extends FaultKind> = Extract<Fault, { kind: K }>;

/** Turns a spec into a plan; faults marked `off` shape the job but cost nothing. */
export function makePlan(spec: ResolvedSpec): Plan {
  const all = <K extends FaultKind>(kind: K) => spec.faults.filter((fault): fault is FaultOf<K> => fault.kind === kind);
  const one = <K extends FaultKind>(kind: K) => all(kind)[0];
  const on = <T extends Fault>(fault: T | undefined): T | undefined => (fault && !fault.off ? fault : undefined);

  const accumulate = one('sync-per-microstep');
  const microSteps = accumulate ? (accumulate.microSteps ?? 4) : 1;
  const batchScale = spec.pp === 2 ? PP_SCALE : accumulate ? DDP_MICRO_SCALE : 1;
  const model = buildModel(batchScale, spec.pp === 2 ? PP_HEAD_SCALE : 1);
  const imbalance = on(one('stage-imbalance'));
  const stageLayers = splitLayers(spec.layers, spec.pp, imbalance ? (imbalance.extraLayers ?? 1) : 0);
  const passes = spec.pp === 2 ? spec.microBatches : microSteps;
  const stepUs = estimateStepUs(model, Math.max(...splitLayers(spec.layers, spec.pp, 0)), passes + (spec.pp - 1));

  const optimizerOps = all('small-ops').find((fault) => (fault.where ?? 'optimizer') === 'optimizer');
  const featureOps = all('small-ops').find((fault) => fault.where === 'forward');
  const layout = on(one('layout'));
  const compile = on(one('recompile'));
  const broadcast = on(one('buffer-broadcast'));
  const rotating = on(one('rotating-jitter'));
  const hidden = on(one('hidden-loader'));
  const slowLoaders = all('slow-loader').filter((fault) => !fault.off);
  const fetches = spec.pp === 2 ? 1 : microSteps;
  const loaderOf = (rank: number): LoaderPlan => {
    const slow = slowLoaders.find((fault) => !fault.ranks || fault.ranks.includes(rank));
    const fetchUs = hidden ? (hidden.fetchMs ? hidden.fetchMs * 1000 : 0.6 * stepUs) / fetches : 200;
    const healthy = { workers: spec.numWorkers, sampleUs: (spec.numWorkers * HEALTHY_SAMPLE_SHARE * stepUs) / fetches, fetchUs };
    if (!slow) return healthy;
    if (slow.single) return { workers: 0, sampleUs: slow.sampleMs ? slow.sampleMs * 1000 : (0.2 * stepUs) / fetches, fetchUs };
    return { ...healthy, sampleUs: slow.sampleMs ? slow.sampleMs * 1000 : (spec.numWorkers * 1.2 * stepUs) / fetches };
  };
  return {
    spec,
    groups: buildGroups(spec.ranks, spec.pp),
    model,
    batchScale,
    microSteps,
    syncEveryMicroStep: on(accumulate) !== undefined,
    linkFactor: accumulate ? 1.9 : 1,
    stageLayers,
    optimizerLoop: on(optimizerOps) ? (optimizerOps?.perStep ?? 560) : 0,
    featureLoop: featureOps ? (featureOps.off ? 0 : (featureOps.perStep ?? 400)) : null,
    layout: layout ? { perStep: layout.perStep ?? 2 * spec.layers * spec.pp, us: layout.us ?? 200 } : null,
    compile: compile ? { perStep: compile.perStep ?? 2, us: compile.ms ? compile.ms * 1000 : 0.12 * stepUs } : null,
    buffers: broadcast ? (broadcast.buffers ?? 16) : 0,
    jitterUs: rotating ? (rotating.ms ? rotating.ms * 1000 : 0.12 * stepUs) : 0,
    loaderOf,
    hostFactorOf: (rank) => factorFor(all('slow-host'), rank, 4),
    deviceFactorOf: (rank) => factorFor(all('slow-rank'), rank, 1.15),
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

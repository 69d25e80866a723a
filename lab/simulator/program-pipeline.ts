import { type DeviceTask, type Engine, type HostProgram, inPhase, phase, type Rank, spend, streamWait } from './des.ts';
import { groupOf } from './groups.ts';
import { LAYER_GRAD_BYTES, ONES_LIKE, type Operator } from './kernels.ts';
import { fetch, type Loader } from './loader.ts';
import type { Plan } from './plan.ts';
import {
  backward,
  collective,
  copyBatch,
  forward,
  kernelOp,
  optimizerStep,
  readLoss,
  type Saved,
  type StepFaults,
  sequenceFeature,
  zeroGrad,
} from './program-common.ts';
import { lateness } from './program-ddp.ts';
import { stackKey } from './stacks.ts';

/** What a rank of a pipeline job carries through one step. */
interface Stage {
  engine: Engine;
  plan: Plan;
  rank: Rank;
  index: number;
  faults: StepFaults;
  /** forwards whose backward has not run, oldest first */
  inFlight: Saved[][];
  works: DeviceTask[];
}

/** One training step of a two-stage pipeline with one-forward-one-backward scheduling. */
export function* pipelineStep(engine: Engine, plan: Plan, rank: Rank, loader: Loader): HostProgram {
  const { spec } = plan;
  const dp = spec.ranks / spec.pp;
  const index = Math.floor(rank.rank / dp);
  const elementwiseTotal = 2 * plan.stageLayers[index]! * plan.microBatches;
  const stage: Stage = { engine, plan, rank, index, faults: { elementwise: 0, elementwiseTotal }, inFlight: [], works: [] };
  fetch(loader, rank);
  phase(rank, 'h2d');
  yield* copyBatch(rank, plan, 2);
  yield* zeroGrad(rank, plan, plan.stageLayers[index]! / spec.layers);
  lateness(plan, rank);
  yield* index === 0 ? firstStage(stage) : lastStage(stage);
  for (const work of stage.works) streamWait(rank, work);
  yield* gradientNorm(stage);
  if (spec.itemEveryStep) yield* readLoss(rank);
  yield* optimizerStep(rank, plan, plan.stageLayers[index]! / spec.layers);
  yield* gatherParameters(stage);
  spend(rank, 30);
}

/*
 * Both stages call batch_isend_irecv equally often: the first sends activation i+1 while it receives gradient i,
 * so one call pairs with one call.
 */
function* firstStage(stage: Stage): HostProgram {
  const last = stage.plan.microBatches - 1;
  yield* forwardMicro(stage, 0);
  yield* exchange(stage);
  for (let micro = 0; micro < last; micro++) {
    yield* forwardMicro(stage, micro + 1);
    yield* exchange(stage);
    yield* backwardMicro(stage, micro);
  }
  yield* exchange(stage);
  yield* backwardMicro(stage, last);
}

function* lastStage(stage: Stage): HostProgram {
  yield* exchange(stage);
  for (let micro = 0; micro < stage.plan.microBatches; micro++) {
    yield* forwardMicro(stage, micro);
    yield* backwardMicro(stage, micro);
    yield* exchange(stage);
  }
}

/** Sends and receives with the other stage; compute goes on when both directions are done. */
function* exchange({ engine, plan, rank }: Stage): HostProgram {
  const group = groupOf(plan.groups, 'pp', rank.rank);
  const task = yield* collective(engine, rank, group, 'batchSendRecv', plan.model.activationBytes, stackKey('ddp', 'p2p'));
  streamWait(rank, task);
}

function* forwardMicro(stage: Stage, micro: number): HostProgram {
  const { plan, rank, index, faults } = stage;
  phase(rank, `forward${micro}`);
  spend(rank, 30);
  const saved: Saved[] = [];
  const runAll = function* (operators: Operator[], site?: 'loss'): HostProgram {
    saved.push(...(yield* forward(rank, plan, operators, faults, site)));
  };
  if (index === 0) {
    yield* inPhase(rank, `feature${micro}`, () => sequenceFeature(rank, plan, plan.microBatches));
    yield* runAll(plan.model.embedding);
  }
  for (let layer = 0; layer < plan.stageLayers[index]!; layer++) yield* runAll(plan.model.layer);
  if (index === 1) {
    yield* runAll(plan.model.head);
    yield* runAll(plan.model.loss, 'loss');
  }
  stage.inFlight.push(saved);
}

function* backwardMicro(stage: Stage, micro: number): HostProgram {
  const { engine, plan, rank, index } = stage;
  const saved = stage.inFlight.shift()!;
  const group = groupOf(plan.groups, 'dp', rank.rank);
  const reduce = group.ranks.length > 1 && micro === plan.microBatches - 1;
  phase(rank, `backward${micro}`);
  if (index === 1) yield* kernelOp(rank, ONES_LIKE, { stack: stackKey('backward'), cost: { before: 20, inside: 16, after: 6 } });
  rank.thread = 'grad';
  rank.now += 12_000;
  let linears = 0;
  yield* backward(rank, saved, function* (i) {
    if (saved[i]!.operator.forward.grad !== 'AddmmBackward0' || !reduce) return;
    if (++linears % 4 === 0) stage.works.push(yield* collective(engine, rank, group, 'allReduce', LAYER_GRAD_BYTES, ''));
  });
  rank.thread = 'main';
  rank.now += 9_000;
}

/** Sum of squared gradients over all ranks, as gradient clipping needs it. */
function* gradientNorm({ engine, plan, rank }: Stage): HostProgram {
  phase(rank, 'gradient-norm');
  const group = groupOf(plan.groups, 'default_group', rank.rank);
  if (group.ranks.length < 2) return;
  streamWait(rank, yield* collective(engine, rank, group, 'allReduce', 4, stackKey('optimizerStep', 'step')));
}

/** Parameters come back as shards of the data-parallel group; the next forward waits for them. */
function* gatherParameters({ engine, plan, rank, index }: Stage): HostProgram {
  phase(rank, 'gather');
  const group = groupOf(plan.groups, 'dp', rank.rank);
  if (group.ranks.length < 2) return;
  const bytes = (plan.stageLayers[index]! * LAYER_GRAD_BYTES) / 2;
  streamWait(rank, yield* collective(engine, rank, group, 'allGather', bytes, stackKey('optimizerStep', 'step')));
}

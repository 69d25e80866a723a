import { begin, type DeviceTask, type Engine, end, type HostProgram, inPhase, phase, type Rank, spend, streamWait } from './des.ts';
import { groupOf } from './groups.ts';
import {
  activationBytes,
  BUFFER_BYTES,
  COPY_BUFFER,
  EMBEDDING_GRAD_BYTES,
  expertMatmul,
  FLATTEN_BUFFERS,
  LAYER_GRAD_BYTES,
  ONES_LIKE,
} from './kernels.ts';
import type { Loader } from './loader.ts';
import { fetch } from './loader.ts';
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
import { hash } from './random.ts';
import { stackKey } from './stacks.ts';

/** Bytes of one coalesced broadcast of module buffers, as DistributedDataParallel uses it. */
const BROADCAST_BUCKET_BYTES = 250 * 1024 * 1024;
/** Gradient buckets of a slow step take so many times as long. */
const SLOW_STEP_STRETCH = 12;
const GRAD_BUCKET_BYTES = 25 * 1024 * 1024;
/** Gradient buckets that run beside the backward of a job whose links are contended. */
const CONTENDED_SHARE = 0.5;

/** One training step of a data-parallel job. */
export function* ddpStep(engine: Engine, plan: Plan, rank: Rank, loader: Loader): HostProgram {
  const faults: StepFaults = { elementwise: 0, elementwiseTotal: 2 * plan.spec.layers * plan.microSteps };
  for (let micro = 0; micro < plan.microSteps; micro++) {
    fetch(loader, rank);
    phase(rank, `h2d${micro}`);
    yield* copyBatch(rank, plan, 2);
    if (micro === 0) {
      yield* zeroGrad(rank, plan);
      lateness(plan, rank);
    }
    const last = micro === plan.microSteps - 1;
    yield* microStep(engine, plan, rank, faults, micro, last || plan.syncEveryMicroStep);
  }
  if (plan.spec.itemEveryStep) yield* readLoss(rank);
  yield* optimizerStep(rank, plan);
  spend(rank, 30);
}

/** The rank that is late in a step; never the same twice in a row. */
function lateRank(plan: Plan, step: number): number {
  const { ranks, seed } = plan.spec;
  if (ranks === 1) return 0;
  let late = 0;
  for (let s = -plan.spec.warmup; s <= step; s++) late = (late + 1 + (hash(seed, s, 61) % (ranks - 1))) % ranks;
  return late;
}

/** Host time that no operator explains, on the rank that is late in this step. */
export function lateness(plan: Plan, rank: Rank): void {
  if (plan.jitterUs > 0 && lateRank(plan, rank.step) === rank.rank) rank.now += Math.round(plan.jitterUs * 1000);
  rank.now += Math.round(plan.slowStepUs('pause', rank.rank, rank.step) * 1000);
}

function* microStep(engine: Engine, plan: Plan, rank: Rank, faults: StepFaults, micro: number, reduce: boolean): HostProgram {
  phase(rank, `forward${micro}`);
  const saved = yield* ddpForward(engine, plan, rank, faults);
  phase(rank, `loss${micro}`);
  const loss = yield* forward(rank, plan, plan.model.loss, faults, 'loss');
  phase(rank, `backward${micro}`);
  yield* kernelOp(rank, ONES_LIKE, { stack: stackKey('backward'), cost: { before: 20, inside: 16, after: 6 } });
  yield* ddpBackward(engine, plan, rank, saved, loss, reduce);
  spend(rank, 12);
}

function* ddpForward(engine: Engine, plan: Plan, rank: Rank, faults: StepFaults): Generator<DeviceTask, Saved[], void> {
  const op = begin(rank, 'DistributedDataParallel.forward', { stack: stackKey('ddp') });
  spend(rank, 40);
  if (plan.buffers > 0 && plan.spec.ranks > 1) yield* inPhase(rank, 'buffers', () => broadcastBuffers(engine, plan, rank));
  yield* inPhase(rank, 'feature', () => sequenceFeature(rank, plan, plan.microSteps));
  const saved = yield* forward(rank, plan, plan.model.embedding, faults);
  for (let layer = 0; layer < plan.spec.layers; layer++) {
    if (plan.gather !== null) yield* inPhase(rank, `gather${layer}`, () => gatherShards(engine, plan, rank));
    if (plan.expertShareOf !== null) yield* inPhase(rank, `experts${layer}`, () => experts(engine, plan, rank, layer, ['up', 'down']));
    saved.push(...(yield* forward(rank, plan, plan.model.layer, faults)));
  }
  saved.push(...(yield* forward(rank, plan, plan.model.head, faults)));
  spend(rank, 15);
  end(rank, op);
  return saved;
}

/** The shards of a layer's parameters, gathered before it; its first kernel waits for the last message. */
function* gatherShards(engine: Engine, { gather, groups }: Plan, rank: Rank): HostProgram {
  const group = groupOf(groups, 'default_group', rank.rank);
  if (gather === null || group.ranks.length < 2) return;
  for (let i = 0; i < gather.count; i++) {
    const task = yield* collective(engine, rank, group, 'allGather', gather.bytes, stackKey('forward'));
    if (i === gather.count - 1) streamWait(rank, task);
  }
}

/** Sends the tokens to the ranks of their experts, computes there, and sends the results back. */
function* experts(engine: Engine, plan: Plan, rank: Rank, layer: number, matmuls: Parameters<typeof expertMatmul>[2][]): HostProgram {
  const group = groupOf(plan.groups, 'exp', rank.rank);
  const share = plan.expertShareOf!(rank.rank, rank.step, layer);
  const bytes = activationBytes(plan.tokens);
  const options = { ownBytes: Math.round(bytes * share) };
  const stack = stackKey('forward');
  function* exchange(): HostProgram {
    if (group.ranks.length > 1) streamWait(rank, yield* collective(engine, rank, group, 'alltoallv', bytes, stack, options));
  }
  yield* exchange();
  for (const name of matmuls)
    yield* kernelOp(rank, expertMatmul(plan.tokens, share, name), { stack, cost: { before: 17, inside: 24, after: 12 } });
  yield* exchange();
}

/** Coalesced broadcast of module buffers from rank 0; the forward waits for it. */
function* broadcastBuffers(engine: Engine, plan: Plan, rank: Rank): HostProgram {
  const group = groupOf(plan.groups, 'default_group', rank.rank);
  const perBucket = Math.floor(BROADCAST_BUCKET_BYTES / BUFFER_BYTES);
  const options = { stack: stackKey('ddp', 'buffers'), cost: { before: 4, inside: 14, after: 4 } };
  for (let done = 0; done < plan.buffers; done += perBucket) {
    const count = Math.min(perBucket, plan.buffers - done);
    yield* kernelOp(rank, FLATTEN_BUFFERS, options);
    const task = yield* collective(engine, rank, group, 'broadcast', count * BUFFER_BYTES, options.stack);
    streamWait(rank, task);
    for (let i = 0; i < count; i++) yield* kernelOp(rank, COPY_BUFFER, options);
  }
}

/** Backward on the autograd thread with gradient buckets reduced as they fill. */
function* ddpBackward(engine: Engine, plan: Plan, rank: Rank, saved: Saved[], loss: Saved[], reduce: boolean): HostProgram {
  const group = groupOf(plan.groups, 'default_group', rank.rank);
  const works: DeviceTask[] = [];
  const late: number[] = [];
  let filled = 0;
  let buckets = 0;
  // Three matrices fill a bucket, four are in a layer.
  const total = Math.floor((4 * plan.spec.layers) / 3);
  function* reduceNow(bytes: number): HostProgram {
    const slow = plan.slowStepUs('collective', rank.rank, rank.step) > 0 ? SLOW_STEP_STRETCH : 1;
    const stretch = slow * (buckets++ < CONTENDED_SHARE * total ? plan.bucketStretch : 1);
    works.push(yield* collective(engine, rank, group, 'allReduce', bytes, '', { stretch }));
  }
  function* reduceBucket(bytes: number): HostProgram {
    if (!reduce || group.ranks.length < 2) return;
    if (plan.reduceAfterBackward) late.push(bytes);
    else yield* reduceNow(bytes);
  }
  rank.thread = 'grad';
  rank.now += 12_000;
  yield* backward(rank, loss, function* () {});
  const perLinear = LAYER_GRAD_BYTES / 4;
  yield* backward(rank, saved, function* (index) {
    if (plan.expertShareOf !== null && isLayerStart(plan, index)) yield* expertsBackward(engine, plan, rank, index);
    if (saved[index]!.operator.forward.grad !== 'AddmmBackward0') return;
    if (index === saved.length - 1) return;
    if (plan.gradientPieces > 0) {
      for (let i = 0; i < plan.gradientPieces; i++) yield* reduceBucket(Math.round(perLinear / plan.gradientPieces / 512) * 512);
      return;
    }
    filled += perLinear;
    if (filled < GRAD_BUCKET_BYTES) return;
    yield* reduceBucket(filled);
    filled = 0;
  });
  yield* reduceBucket(EMBEDDING_GRAD_BYTES + filled);
  for (const bytes of late) yield* reduceNow(bytes);
  for (const work of works) streamWait(rank, work);
  spend(rank, 10);
  rank.thread = 'main';
  rank.now += 9_000;
}

function isLayerStart(plan: Plan, index: number): boolean {
  const at = index - plan.model.embedding.length;
  return at >= 0 && at < plan.spec.layers * plan.model.layer.length && at % plan.model.layer.length === 0;
}

/** The experts lie before the first operator of a layer, so their backward follows its. */
function* expertsBackward(engine: Engine, plan: Plan, rank: Rank, index: number): HostProgram {
  const layer = (index - plan.model.embedding.length) / plan.model.layer.length;
  const evaluate = begin(rank, 'autograd::engine::evaluate_function: NpuGroupedMatmulBackward0');
  yield* inPhase(rank, `expertsBackward${layer}`, () => experts(engine, plan, rank, layer, ['downGrad', 'upGrad']));
  end(rank, evaluate);
}

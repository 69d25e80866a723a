import { extraKernels } from './compute-faults.ts';
import {
  begin,
  type CollectiveOp,
  type CollectiveOptions,
  callApi,
  type DeviceTask,
  type Engine,
  end,
  type HostProgram,
  inPhase,
  lastTasks,
  launchCollective,
  launchCopy,
  launchKernel,
  phase,
  type Rank,
  spend,
  synchronize,
} from './des.ts';
import type { Group } from './groups.ts';
import { atPlace, copyLarge, prepareBatch } from './host-faults.ts';
import { type Kernel, loopFeature, loopOptimizer, type Operator, roundTrip } from './kernels.ts';
import type { Plan } from './plan.ts';
import { stackKey } from './stacks.ts';

/** A forward operator whose backward is still to run. */
export interface Saved {
  operator: Operator;
  sequence: number;
}

/** Host time around one operator, in us. */
interface OpCost {
  before: number;
  inside: number;
  after: number;
}

const FORWARD_COST: OpCost = { before: 17, inside: 24, after: 12 };
const BACKWARD_COST: OpCost = { before: 4, inside: 18, after: 5 };
const LOOP_COST: OpCost = { before: 6, inside: 12, after: 6 };

interface KernelOptions {
  stack: string;
  cost: OpCost;
  sequence?: number;
  compileNs?: number;
}

/** Runs one framework operator that launches one kernel. */
export function* kernelOp(rank: Rank, kernel: Kernel, options: KernelOptions): HostProgram {
  const { stack, cost } = options;
  const shapes = { dims: kernel.inShapes, types: kernel.inTypes, stack, sequence: options.sequence ?? -1 };
  spend(rank, cost.before);
  const outer = kernel.outer ? begin(rank, kernel.outer, shapes) : null;
  const aten = begin(rank, kernel.aten, shapes);
  spend(rank, cost.inside * 0.6);
  const acl = begin(rank, kernel.acl, { stack });
  spend(rank, cost.inside * 0.4);
  yield* launchKernel(rank, kernel, options.compileNs ?? 0);
  end(rank, acl);
  end(rank, aten);
  if (outer) end(rank, outer);
  spend(rank, cost.after);
}

/** Where layout round trips and compiles fall in one step. */
export interface StepFaults {
  /** elementwise forward operators passed in this step */
  elementwise: number;
  elementwiseTotal: number;
}

/** Runs the forward of a list of operators and returns what their backward needs. */
export function* forward(
  rank: Rank,
  plan: Plan,
  operators: Operator[],
  faults: StepFaults,
  site: 'forward' | 'loss' = 'forward',
): Generator<DeviceTask, Saved[], void> {
  const saved: Saved[] = [];
  for (const operator of operators) {
    const sequence = rank.sequence++;
    const stack = stackKey(site, operator.module);
    const weight = operator.forward.aten === 'aten::addmm' ? weightCast(plan, operators, operator.forward, faults) : null;
    if (weight) yield* inPhase(rank, `weight${sequence}`, () => kernelOp(rank, weight, { stack, cost: FORWARD_COST }));
    if (operator.forward.elementwise) yield* elementwise(rank, plan, operator.forward, stack, sequence, faults);
    else yield* kernelOp(rank, operator.forward, { stack, cost: FORWARD_COST, sequence });
    saved.push({ operator, sequence });
  }
  return saved;
}

/** The cast of a product's weight in this pass over the model: passes are told apart by the elementwise operators behind them. */
function weightCast(plan: Plan, operators: Operator[], product: Kernel, faults: StepFaults): Kernel | null {
  const passes = plan.spec.pp === 2 ? plan.microBatches : plan.microSteps;
  const done = Math.floor((faults.elementwise * passes) / faults.elementwiseTotal);
  return plan.compute.weightCast?.(product, operators === plan.model.head ? done - 1 : done) ?? null;
}

/** Round trips or compiles that fall on the n-th of `total` places when `count` are spread evenly. */
function share(count: number, n: number, total: number): number {
  return Math.floor(((n + 1) * count) / total) - Math.floor((n * count) / total);
}

function* elementwise(rank: Rank, plan: Plan, kernel: Kernel, stack: string, sequence: number, faults: StepFaults): HostProgram {
  const n = faults.elementwise++;
  const total = faults.elementwiseTotal;
  yield* atPlace(plan.host, rank, n, total);
  yield* extraKernels(plan.compute, rank, n, total, (k) => kernelOp(rank, k, { stack: stackKey('layout'), cost: FORWARD_COST }));
  const layout = plan.layout;
  const trips = layout ? share(layout.perStep, n, total) : 0;
  const compileNs = compileAt(plan, n, total);
  const stackHere = compileNs > 0 ? stackKey('compile') : stack;
  if (!layout || trips === 0) {
    yield* kernelOp(rank, kernel, { stack: stackHere, cost: FORWARD_COST, sequence, compileNs });
    return;
  }
  const trip = roundTrip(kernel, layout.us);
  const cast = { stack: stackKey('layout'), cost: FORWARD_COST };
  for (let extra = 1; extra < trips; extra++) {
    yield* inPhase(rank, `layout${n}.${extra}`, function* () {
      yield* kernelOp(rank, trip.enter, cast);
      yield* kernelOp(rank, trip.leave, cast);
    });
  }
  yield* inPhase(rank, `enter${n}`, () => kernelOp(rank, trip.enter, cast));
  yield* kernelOp(rank, trip.inner, { stack: stackHere, cost: FORWARD_COST, sequence, compileNs });
  yield* inPhase(rank, `leave${n}`, () => kernelOp(rank, trip.leave, cast));
}

/** Compiles are spread over the first third of the forward, where the host is least ahead. */
function compileAt(plan: Plan, n: number, total: number): number {
  const places = Math.max(plan.compile?.perStep ?? 0, Math.ceil(total / 3));
  if (!plan.compile || n >= places) return 0;
  const each = Math.floor(places / plan.compile.perStep);
  return n % each === 0 && n / each < plan.compile.perStep ? Math.round(plan.compile.us * 1000) : 0;
}

/** Runs the backward of saved operators, last first; `afterEach` runs when an operator's gradients exist. */
export function* backward(rank: Rank, saved: Saved[], afterEach: (index: number) => HostProgram): HostProgram {
  for (let i = saved.length - 1; i >= 0; i--) {
    const { operator, sequence } = saved[i]!;
    const node = operator.forward.grad;
    const evaluate = begin(rank, `autograd::engine::evaluate_function: ${node}`);
    spend(rank, 3);
    const inner = begin(rank, node, { sequence, backward: true, dims: operator.forward.outShapes, types: operator.forward.outTypes });
    for (const kernel of operator.backward) yield* kernelOp(rank, kernel, { stack: '', cost: BACKWARD_COST });
    end(rank, inner);
    end(rank, evaluate);
    if (node === 'AddmmBackward0') accumulateGrad(rank);
    yield* afterEach(i);
  }
}

function accumulateGrad(rank: Rank): void {
  const evaluate = begin(rank, 'autograd::engine::evaluate_function: torch::autograd::AccumulateGrad');
  spend(rank, 2);
  const inner = begin(rank, 'torch::autograd::AccumulateGrad');
  spend(rank, 8);
  end(rank, inner);
  spend(rank, 2);
  end(rank, evaluate);
}

/** Host side of a collective: the c10d operator, its events and the HCCL call. */
export function* collective(
  engine: Engine,
  rank: Rank,
  group: Group,
  op: CollectiveOp,
  bytes: number,
  stack: string,
  options: CollectiveOptions = {},
): Generator<DeviceTask, DeviceTask, void> {
  if (rank.drains) yield* synchronize(rank, lastTasks(rank), 'aclrtSynchronizeStream');
  const outer = begin(rank, HOST_OP[op], { stack, types: 'TensorList;Tensor;Scalar', dims: ';;' });
  spend(rank, 6);
  for (const name of ['record_event', 'wait_event']) {
    const event = begin(rank, name);
    spend(rank, 3);
    end(rank, event);
  }
  const call = begin(rank, HCCL_OP[op], { dims: `${bytes / 4}`, types: 'FLOAT' });
  spend(rank, 6);
  const task = yield* launchCollective(engine, rank, group, op, bytes, options);
  end(rank, call);
  spend(rank, 8);
  end(rank, outer);
  if (rank.drains) yield* synchronize(rank, [task], 'aclrtSynchronizeStream');
  return task;
}

const HOST_OP: Record<CollectiveOp, string> = {
  allReduce: 'c10d::allreduce_',
  allGather: 'c10d::_allgather_base_',
  broadcast: 'c10d::broadcast_',
  batchSendRecv: 'c10d::send',
  alltoallv: 'c10d::alltoall_base_',
};
const HCCL_OP: Record<CollectiveOp, string> = {
  allReduce: 'HcclAllreduce',
  allGather: 'HcclAllgatherBase',
  broadcast: 'HcclBroadcast',
  batchSendRecv: 'HcclBatchSendRecv',
  alltoallv: 'HcclAlltoAllV',
};

/** Copies the batch to the device, as a rule without blocking the host. */
export function* copyBatch(rank: Rank, plan: Plan, tensors: number): HostProgram {
  prepareBatch(plan.host, rank);
  for (let i = 0; i < tensors; i++) {
    const shapes = { stack: stackKey('h2d'), dims: '16,512;;;;;;;', types: 'INT64;Scalar;Scalar;Scalar;Scalar;Scalar;Scalar;None' };
    const to = begin(rank, 'aten::to', shapes);
    spend(rank, 9);
    const copyTo = begin(rank, 'aten::_to_copy', shapes);
    spend(rank, 12);
    const copy = begin(rank, 'aten::copy_', { ...shapes, dims: '16,512;16,512;', types: 'INT64;INT64;Scalar' });
    spend(rank, 8);
    if (i > 0 || !(yield* copyLarge(plan.host, rank))) {
      const acl = begin(rank, 'acl_memcpy_host_to_device', { stack: shapes.stack });
      spend(rank, 5);
      yield* launchCopy(rank, 'acl_memcpy_host_to_device', 9);
      end(rank, acl);
    }
    end(rank, copy);
    end(rank, copyTo);
    end(rank, to);
    spend(rank, 10);
  }
}

/** `loss.item()`: waits for everything launched so far. */
export function* readLoss(rank: Rank): HostProgram {
  phase(rank, 'item');
  const item = begin(rank, 'aten::item', { stack: stackKey('item'), types: 'FLOAT' });
  spend(rank, 4);
  const local = begin(rank, 'aten::_local_scalar_dense', { stack: stackKey('item'), types: 'FLOAT' });
  spend(rank, 8);
  const copy = yield* launchCopy(rank, 'acl_memcpy_device_to_host', 2.4);
  yield* synchronize(rank, [copy], 'aclrtSynchronizeStreamWithTimeout');
  spend(rank, 8);
  end(rank, local);
  end(rank, item);
  spend(rank, 25);
}

/** `optimizer.zero_grad(set_to_none=True)`, or with a kernel per gradient. */
export function* zeroGrad(rank: Rank, plan: Plan, share = 1): HostProgram {
  phase(rank, 'zero-grad');
  const op = begin(rank, 'Optimizer.zero_grad#AdamW.zero_grad', { stack: stackKey('zeroGrad') });
  spend(rank, 110);
  yield* inPhase(rank, 'zero-fill', function* () {
    for (const kernel of plan.fusion.fills(share)) yield* kernelOp(rank, kernel, { stack: stackKey('zeroGrad'), cost: LOOP_COST });
  });
  end(rank, op);
  spend(rank, 10);
}

/** `optimizer.step()`, fused or as a Python loop of tiny kernels. `share` is this rank's part of the parameters. */
export function* optimizerStep(rank: Rank, plan: Plan, share = 1): HostProgram {
  phase(rank, 'optimizer');
  const op = begin(rank, 'Optimizer.step#AdamW.step', { stack: stackKey('optimizerStep') });
  spend(rank, 70);
  if (plan.optimizerLoop > 0) {
    yield* inPhase(rank, 'optimizer-loop', function* () {
      for (const kernel of loopOptimizer(plan.optimizerLoop, share)) {
        yield* kernelOp(rank, kernel, { stack: stackKey('smallOps'), cost: LOOP_COST });
      }
    });
  } else {
    for (const kernel of plan.fusion.optimizer(share))
      yield* kernelOp(rank, kernel, { stack: stackKey('optimizerStep', 'step'), cost: FORWARD_COST });
  }
  callApi(rank, 'aclrtQueryEventStatus', 'ACL_RTS', 1.5);
  spend(rank, 20);
  end(rank, op);
}

/** The sequence feature at the start of a forward: two fused kernels, or a Python loop of `count` tiny ones. */
export function* sequenceFeature(rank: Rank, plan: Plan, passes: number): HostProgram {
  if (plan.featureLoop === null) return;
  const tiny = plan.featureLoop > 0;
  const kernels = tiny ? loopFeature(Math.max(1, Math.round(plan.featureLoop / passes)), plan.batchScale) : plan.model.feature;
  const stack = tiny ? stackKey('smallOps', 'forward') : stackKey('forward');
  for (const kernel of kernels) yield* kernelOp(rank, kernel, { stack, cost: tiny ? { before: 10, inside: 18, after: 9 } : FORWARD_COST });
}

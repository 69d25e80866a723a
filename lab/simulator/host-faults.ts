import {
  begin,
  callApi,
  type DeviceTask,
  end,
  type HostProgram,
  inPhase,
  lastTasks,
  launchCopy,
  launchKernel,
  phase,
  type Rank,
  spend,
  synchronize,
} from './des.ts';
import { NONZERO } from './kernels.ts';
import { hash, jitter } from './random.ts';
import type { Fault, ResolvedSpec } from './spec.ts';
import { stackKey } from './stacks.ts';

/** What holds up the host of every rank. A fault that is off, or not in the job, is null. */
export interface HostFaults {
  sync: { of: 'item' | 'nonzero' | 'stream' | 'device' | 'collective'; perStep: number; hidden: boolean } | null;
  blocking: boolean;
  gc: { us: number; lane: boolean } | null;
  alloc: { perStep: number; us: number; emptyCache: boolean } | null;
  preparation: { us: number; shows: 'operators' | 'frames' | 'nothing' } | null;
  /** how the batch is copied; null: small and from pinned memory */
  copy: { bytes: number; pageable: boolean; ahead: boolean } | null;
  factor: number;
}

/** Host memory is read into the staging buffer at this rate; pinned memory is read by the device at the other. Bytes per us. */
const STAGING_RATE = 3_800;
const DMA_RATE = 22_000;
/** Stream of copies that run ahead of the computing. */
const COPY_STREAM = 7;

type FaultOf<K extends Fault['kind']> = Extract<Fault, { kind: K }>;

/** Sizes follow from the device time of a healthy step. */
export function planHostFaults(spec: ResolvedSpec, stepUs: number): HostFaults {
  const one = <K extends Fault['kind']>(kind: K): FaultOf<K> | undefined => spec.faults.find((f): f is FaultOf<K> => f.kind === kind);
  const on = <K extends Fault['kind']>(kind: K): FaultOf<K> | undefined => {
    const fault = one(kind);
    return fault?.off === true ? undefined : fault;
  };
  const us = (ms: number | undefined, share: number): number => (ms === undefined ? share * stepUs : ms * 1000);
  const sync = on('stream-sync');
  const gc = on('gc-pause');
  const alloc = on('alloc-stall');
  const preparation = on('batch-preparation');
  const copy = one('pageable-copy');
  const slow = on('host-bound');
  return {
    sync: sync ? { of: sync.of ?? 'item', perStep: sync.perStep ?? 3 * spec.layers, hidden: sync.hidden === true } : null,
    blocking: on('launch-blocking') !== undefined,
    gc: gc ? { us: us(gc.ms, 0.12), lane: gc.lane !== false } : null,
    alloc: alloc ? { perStep: alloc.perStep ?? 24, us: us(alloc.ms, 0.1), emptyCache: alloc.emptyCache === true } : null,
    preparation: preparation ? { us: us(preparation.ms, 0.1), shows: preparation.shows ?? 'operators' } : null,
    copy: copy
      ? { bytes: copy.mb ? copy.mb * 1e6 : 0.1 * stepUs * STAGING_RATE, pageable: copy.off !== true, ahead: copy.hidden === true }
      : null,
    factor: slow ? (slow.factor ?? 5) : 1,
  };
}

export function applyHostFaults(faults: HostFaults, rank: Rank): void {
  rank.blocking = faults.blocking;
  rank.drains = faults.sync?.of === 'collective' && !faults.sync.hidden;
}

/** Names of CANN calls that make the allocator grow and shrink. */
const GROW = ['aclrtMallocPhysical', 'aclrtMapMem'] as const;
const SHRINK = ['aclrtUnmapMem', 'aclrtFreePhysical'] as const;

/** A loop that keeps the host at most one step ahead waits for an event of the step before: the device has work queued meanwhile. */
export function* startOfStep(faults: HostFaults, rank: Rank): HostProgram {
  if (faults.sync?.hidden !== true) return;
  const early = rank.tasks.find((task) => task.step === rank.step - 1);
  if (early) yield* synchronize(rank, [early], 'aclrtSynchronizeEvent');
}

export function* endOfStep(faults: HostFaults, rank: Rank): HostProgram {
  const { alloc } = faults;
  if (alloc?.emptyCache !== true) return;
  yield* inPhase(rank, 'empty-cache', function* () {
    yield* synchronize(rank, lastTasks(rank), 'aclrtSynchronizeDevice');
    for (let i = 0; i < alloc.perStep / 2; i++) callApi(rank, SHRINK[i % 2]!, 'ACL_RTS', alloc.us / alloc.perStep);
  });
}

/** What falls on the n-th of `total` places of a step's forward. */
export function* atPlace(faults: HostFaults, rank: Rank, n: number, total: number): HostProgram {
  const { sync, gc, alloc } = faults;
  if (gc !== null && hash(rank.seed, rank.rank, rank.step, 83) % total === n) collect(rank, gc);
  if (alloc !== null) {
    // The first operators of a step find the least memory at hand.
    const calls = alloc.emptyCache ? alloc.perStep / 2 : alloc.perStep;
    for (let i = share(calls, n, Math.ceil(total / 6)); i > 0 && n < total / 6; i--) allocate(rank, alloc.us / alloc.perStep, n, i);
  }
  if (sync !== null && !sync.hidden && sync.of !== 'collective')
    for (let i = share(sync.perStep, n, total); i > 0; i--) yield* inPhase(rank, `sync${n}.${i}`, () => block(rank, sync.of));
}

function share(count: number, n: number, total: number): number {
  return Math.floor(((n + 1) * count) / total) - Math.floor((n * count) / total);
}

function collect(rank: Rank, gc: { us: number; lane: boolean }): void {
  const start = rank.now;
  rank.now += Math.round(gc.us * 1000 * jitter(0.04, rank.seed, rank.rank, rank.step, 89));
  if (rank.recording && gc.lane) rank.collections.push({ name: 'GC', thread: rank.thread, start, end: rank.now });
}

function allocate(rank: Rank, us: number, n: number, i: number): void {
  const { phaseKey, phaseCount } = rank;
  phase(rank, `alloc${n}.${i}`);
  const op = begin(rank, 'aten::empty', { stack: stackKey('forward') });
  const inner = begin(rank, 'empty_tensor');
  callApi(rank, GROW[(n + i) % 2]!, 'ACL_RTS', us);
  end(rank, inner);
  end(rank, op);
  rank.phaseKey = phaseKey;
  rank.phaseCount = phaseCount;
}

/** Reads something that only the device knows, or waits for the device. */
function* block(rank: Rank, of: 'item' | 'nonzero' | 'stream' | 'device' | 'collective'): HostProgram {
  const stack = stackKey('check');
  spend(rank, 8);
  if (of === 'item') {
    const item = begin(rank, 'aten::item', { stack, types: 'FLOAT' });
    const local = begin(rank, 'aten::_local_scalar_dense', { stack, types: 'FLOAT' });
    spend(rank, 6);
    const copy = yield* launchCopy(rank, 'acl_memcpy_device_to_host', 2.4, { bytes: 4 });
    yield* synchronize(rank, [copy], 'aclrtSynchronizeStreamWithTimeout');
    end(rank, local);
    end(rank, item);
  } else if (of === 'nonzero') {
    const op = begin(rank, 'aten::nonzero', { stack });
    yield* launchKernel(rank, NONZERO);
    yield* synchronize(rank, [rank.lastCompute!], 'aclrtSynchronizeStreamWithTimeout');
    end(rank, op);
  } else {
    const device = of === 'device';
    const waited = device ? lastTasks(rank) : rank.lastCompute ? [rank.lastCompute] : [];
    yield* synchronize(rank, waited, device ? 'aclrtSynchronizeDevice' : 'aclrtSynchronizeStream');
  }
  spend(rank, 12);
}

/** Main-thread work between the fetch and the first copy to the device. */
export function prepareBatch(faults: HostFaults, rank: Rank): void {
  const { preparation } = faults;
  if (preparation === null) return;
  const stack = stackKey('prepare');
  const start = rank.now;
  if (preparation.shows === 'operators') {
    for (let i = 0; i < 8; i++) {
      const op = begin(rank, ['aten::stack', 'aten::pad', 'aten::index', 'aten::cat'][i % 4]!, { stack });
      spend(rank, preparation.us / 8);
      end(rank, op);
      spend(rank, 5);
    }
  } else spend(rank, preparation.us);
  if (rank.recording && preparation.shows === 'frames') rank.functions.push({ name: 'prepare', thread: rank.thread, start, end: rank.now });
}

/** Moves the batch itself: from pinned memory, or through the runtime's staging buffer while the host waits. */
export function* copyLarge(faults: HostFaults, rank: Rank): Generator<DeviceTask, boolean, void> {
  const { copy } = faults;
  if (copy === null) return false;
  const stagingNs = copy.pageable ? Math.round((copy.bytes / STAGING_RATE) * 1000) : 0;
  const stream = copy.ahead ? { stream: COPY_STREAM } : {};
  const acl = begin(rank, 'acl_memcpy_host_to_device', { stack: stackKey('h2d') });
  spend(rank, 5);
  const task = yield* launchCopy(rank, 'acl_memcpy_host_to_device', copy.bytes / DMA_RATE, { bytes: copy.bytes, stagingNs, ...stream });
  end(rank, acl);
  if (copy.pageable) yield* synchronize(rank, [task], 'aclrtSynchronizeStreamWithTimeout');
  if (copy.ahead) rank.waits.push(task);
  return true;
}

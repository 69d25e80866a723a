import { type Clock, slowdown } from './frequency.ts';
import { CARDS_PER_NODE, type Group, nodeOf } from './groups.ts';
import type { Kernel } from './kernels.ts';
import { hash, hashText, jitter, uniform } from './random.ts';

/*
 * The discrete-event engine. Every time is an integer number of nanoseconds since the start of the job.
 * A rank's host program is a generator that yields the device task it has to wait for; everything between
 * two yields is decided by the rank's own clock. Device streams are first-in first-out, so the schedule is a
 * max-plus system and does not depend on the order in which ranks are visited.
 */

/** Host threads of one rank. */
export type Thread = 'main' | 'grad' | 'queue';

/** A framework operator on the host. */
export interface HostOp {
  name: string;
  thread: Thread;
  start: number;
  end: number;
  /** key of the call stack, empty for none */
  stack: string;
  dims: string;
  types: string;
  /** autograd sequence number, -1 for none */
  sequence: number;
  /** backward node that carries the sequence number of its forward operator */
  backward: boolean;
  depth: number;
}

/** A CANN call that launches nothing. */
export interface ApiCall {
  id: string;
  mode: 'ACL_RTS' | 'ACL_OP' | 'ACL_NN';
  thread: Thread;
  start: number;
  end: number;
}

/** A stretch of host time that is recorded as something else than an operator or a CANN call. */
export interface HostSpan {
  name: string;
  thread: Thread;
  start: number;
  end: number;
}

/** Kinds of collective operations. */
export type CollectiveOp = 'allReduce' | 'allGather' | 'broadcast' | 'batchSendRecv' | 'alltoallv';

/** A collective, shared by the tasks of its members. */
interface Collective {
  op: CollectiveOp;
  group: Group;
  /** position among the group's operations since the start of the job */
  index: number;
  bytes: number;
  transferNs: number;
  /** its parts on links that are not slow: what any call costs, and what grows with the bytes, ns */
  fixedNs: number;
  movedNs: number;
  /** slow links between its members */
  slowLinks: SlowLink[];
  members: DeviceTask[];
  /** last start among the members, valid when all arrived */
  lastStart: number;
}

/** A unit of device work. */
export interface DeviceTask {
  kind: 'kernel' | 'copy' | 'collective';
  rank: number;
  stream: number;
  step: number;
  kernel: Kernel | null;
  collective: Collective | null;
  /** bytes this rank moved in a collective whose ranks move unequal ones; else those of the collective */
  ownBytes: number;
  /** name of the queued operation, e.g. aclnnAdd */
  acl: string;
  /** operator that queued it */
  op: HostOp | null;
  thread: Thread;
  enqueueStart: number;
  enqueueEnd: number;
  dequeueStart: number;
  dequeueEnd: number;
  /** time spent compiling inside the launch */
  compileNs: number;
  /** earliest possible device start */
  ready: number;
  deps: DeviceTask[];
  duration: number;
  /** size of a copy */
  bytes: number;
  /** part of the time before the start in which only an event held the task back */
  eventWait: number;
  start: number;
  end: number;
}

interface Stream {
  id: number;
  queue: DeviceTask[];
  head: number;
  free: number;
}

/** State and record of one rank. */
export interface Rank {
  rank: number;
  now: number;
  thread: Thread;
  step: number;
  /** host and device speed, 1 = nominal; larger is slower */
  hostFactor: number;
  deviceFactor: number;
  /** clock of its AI cores; null = nominal */
  clock: Clock | null;
  queueFree: number;
  streams: Map<number, Stream>;
  tasks: DeviceTask[];
  lastCompute: DeviceTask | null;
  /** collectives the next compute task has to wait for */
  waits: DeviceTask[];
  collectiveCounts: Map<Group, number>;
  recording: boolean;
  ops: HostOp[];
  openOps: HostOp[];
  apis: ApiCall[];
  /** garbage collections, when the profiler looks for them */
  collections: HostSpan[];
  /** Python functions worth an event of their own */
  functions: HostSpan[];
  /** every launch of a kernel waits until it is done (ASCEND_LAUNCH_BLOCKING) */
  blocking: boolean;
  /** the device is drained before and after each collective */
  drains: boolean;
  sequence: number;
  seed: number;
  phaseKey: number;
  phaseCount: number;
}

/** Shared state of one simulation. */
export interface Engine {
  seed: number;
  ranks: Rank[];
  collectives: Map<Group, Map<number, Collective>>;
  /** slows down all links by this factor */
  linkFactor: number;
  /** single links that are slower still */
  slowLinks: SlowLink[];
}

/** A link between two ranks that needs `factor` times as long for the same bytes. */
export interface SlowLink {
  ranks: [number, number];
  factor: number;
}

/** A host program; it yields the device task it waits for. */
export type HostProgram = Generator<DeviceTask, void, void>;

/** Device tasks a host may be ahead of its device. */
const QUEUE_DEPTH = 512;
const LAUNCH_LATENCY_NS = 10_000;
const STREAM_GAP_NS = 700;
const COMPUTE_STREAM = 2;

export function createEngine(seed: number, ranks: number, linkFactor: number, slowLinks: SlowLink[] = []): Engine {
  return {
    seed,
    linkFactor,
    slowLinks,
    collectives: new Map(),
    ranks: Array.from({ length: ranks }, (_, rank) => ({
      rank,
      now: 0,
      thread: 'main' as const,
      step: -1,
      hostFactor: 1,
      deviceFactor: jitter(0.0006, seed, rank, 77),
      clock: null,
      queueFree: 0,
      streams: new Map(),
      tasks: [],
      lastCompute: null,
      waits: [],
      collectiveCounts: new Map(),
      recording: false,
      ops: [],
      openOps: [],
      apis: [],
      collections: [],
      functions: [],
      blocking: false,
      drains: false,
      sequence: 1300,
      seed,
      phaseKey: 0,
      phaseCount: 0,
    })),
  };
}

/** Names the random stream of what follows, so that work added elsewhere does not shift its jitter. */
export function phase(rank: Rank, name: string): void {
  rank.phaseKey = hash(rank.seed, rank.rank, rank.step, hashText(name));
  rank.phaseCount = 0;
}

/** Runs `body` under its own random stream and returns to the caller's. */
export function* inPhase(rank: Rank, name: string, body: () => HostProgram): HostProgram {
  const { phaseKey, phaseCount } = rank;
  phase(rank, name);
  yield* body();
  rank.phaseKey = phaseKey;
  rank.phaseCount = phaseCount;
}

/** Passes host time: `us` at nominal speed with about 3 % jitter. */
export function spend(rank: Rank, us: number): void {
  rank.now += hostNs(rank, us);
}

function hostNs(rank: Rank, us: number): number {
  return Math.round(us * 1000 * rank.hostFactor * jitter(0.03, rank.phaseKey, rank.phaseCount++));
}

/** Opens a host operator at the current time. */
export function begin(
  rank: Rank,
  name: string,
  init: Partial<Pick<HostOp, 'stack' | 'dims' | 'types' | 'sequence' | 'backward'>> = {},
): HostOp {
  const op: HostOp = {
    name,
    thread: rank.thread,
    start: rank.now,
    end: -1,
    stack: init.stack ?? '',
    dims: init.dims ?? '',
    types: init.types ?? '',
    sequence: init.sequence ?? -1,
    backward: init.backward ?? false,
    depth: rank.openOps.length,
  };
  rank.openOps.push(op);
  if (rank.recording) rank.ops.push(op);
  rank.now += 250;
  return op;
}

/** Closes the innermost host operator. */
export function end(rank: Rank, op: HostOp): void {
  if (rank.openOps.pop() !== op) throw new Error(`host operator ${op.name} is not the innermost`);
  op.end = rank.now;
  rank.now += 150;
}

/** Records a CANN call on the current thread that takes `us` of host time. */
export function callApi(rank: Rank, id: string, mode: ApiCall['mode'], us: number): void {
  const start = rank.now;
  spend(rank, us);
  if (rank.recording) rank.apis.push({ id, mode, thread: rank.thread, start, end: rank.now });
}

function streamOf(rank: Rank, id: number): Stream {
  let stream = rank.streams.get(id);
  if (!stream) {
    stream = { id, queue: [], head: 0, free: 0 };
    rank.streams.set(id, stream);
  }
  return stream;
}

type TaskInit = Pick<DeviceTask, 'kind' | 'acl' | 'stream' | 'deps'> &
  Partial<Pick<DeviceTask, 'kernel' | 'collective' | 'ownBytes' | 'duration' | 'compileNs' | 'bytes'>> & {
    /** nominal time of the launch call */ launchUs: number;
    /** time before the device can begin, on top of the launch */ stagingNs?: number;
  };

/** Puts a task into the queue; waits while the host is QUEUE_DEPTH tasks ahead of the device. */
function* enqueue(rank: Rank, init: TaskInit): Generator<DeviceTask, DeviceTask, void> {
  const enqueueStart = rank.now;
  const gate = rank.tasks[rank.tasks.length - QUEUE_DEPTH];
  if (gate) {
    if (gate.end < 0) yield gate;
    rank.now = Math.max(rank.now, gate.end);
  }
  spend(rank, 2.2);
  const dequeueStart = Math.max(rank.now + 3_000, rank.queueFree);
  const compileNs = init.compileNs ?? 0;
  const launch = hostNs(rank, init.launchUs);
  const dequeueEnd = dequeueStart + compileNs + launch;
  rank.queueFree = dequeueEnd + 900;
  const task: DeviceTask = {
    kind: init.kind,
    acl: init.acl,
    stream: init.stream,
    deps: init.deps,
    rank: rank.rank,
    step: rank.step,
    kernel: init.kernel ?? null,
    collective: init.collective ?? null,
    ownBytes: init.ownBytes ?? init.collective?.bytes ?? 0,
    op: rank.recording ? (rank.openOps.at(-1) ?? null) : null,
    thread: rank.thread,
    duration: init.duration ?? 0,
    bytes: init.bytes ?? 0,
    eventWait: 0,
    start: -1,
    end: -1,
    enqueueStart,
    enqueueEnd: rank.now,
    dequeueStart,
    dequeueEnd,
    compileNs,
    ready: dequeueEnd - Math.round(launch * 0.35) + LAUNCH_LATENCY_NS + (init.stagingNs ?? 0),
  };
  rank.tasks.push(task);
  streamOf(rank, task.stream).queue.push(task);
  if (rank.blocking && task.kind === 'kernel') yield* synchronize(rank, [task], 'aclrtSynchronizeStream');
  return task;
}

/** Blocks in a synchronizing CANN call until tasks have ended. */
export function* synchronize(rank: Rank, tasks: readonly DeviceTask[], id: string): HostProgram {
  const start = rank.now;
  for (const task of tasks) yield* waitFor(rank, task);
  spend(rank, 5);
  if (rank.recording) rank.apis.push({ id, mode: 'ACL_RTS', thread: rank.thread, start, end: rank.now });
}

/** The last task of every stream: what a wait for the whole device waits for. */
export function lastTasks(rank: Rank): DeviceTask[] {
  const last = new Map<number, DeviceTask>();
  for (const task of rank.tasks.slice(-2000)) last.set(task.stream, task);
  return [...last.values()];
}

function takeWaits(rank: Rank): DeviceTask[] {
  const waits = rank.waits;
  rank.waits = [];
  return waits;
}

/** Launches a kernel on the compute stream. */
export function* launchKernel(rank: Rank, kernel: Kernel, compileNs = 0): HostProgram {
  const duration = Math.max(
    1_100,
    Math.round(kernel.us * 1000 * rank.deviceFactor * slowdown(rank.clock, kernel) * jitter(0.01, rank.phaseKey, rank.phaseCount, 5)),
  );
  rank.lastCompute = yield* enqueue(rank, {
    kind: 'kernel',
    acl: kernel.acl,
    stream: COMPUTE_STREAM,
    deps: takeWaits(rank),
    kernel,
    duration,
    compileNs,
    launchUs: 11,
  });
}

/** Launches a copy between host and device and returns it; on the compute stream unless another is named. */
export function* launchCopy(
  rank: Rank,
  acl: string,
  us: number,
  options: { bytes?: number; stagingNs?: number; stream?: number } = {},
): Generator<DeviceTask, DeviceTask, void> {
  const { stream = COMPUTE_STREAM, bytes = 0, stagingNs = 0 } = options;
  const isOwn = stream === COMPUTE_STREAM;
  const task = yield* enqueue(rank, {
    kind: 'copy',
    acl,
    stream,
    deps: isOwn ? takeWaits(rank) : [],
    duration: Math.round(us * 1000 * jitter(0.02, rank.phaseKey, rank.phaseCount, 6)),
    bytes,
    stagingNs,
    launchUs: 14,
  });
  if (isOwn) rank.lastCompute = task;
  return task;
}

/** Blocks the host until the task has ended. */
export function* waitFor(rank: Rank, task: DeviceTask): HostProgram {
  if (task.end < 0) yield task;
  rank.now = Math.max(rank.now, task.end);
}

const API_OF: Record<CollectiveOp, string> = {
  allReduce: 'HcclAllreduce',
  allGather: 'HcclAllGather',
  broadcast: 'HcclBroadcast',
  batchSendRecv: 'HcclBatchSendRecv',
  alltoallv: 'HcclAlltoAllV',
};

/** What is special about one collective. */
export interface CollectiveOptions {
  /** times as long as it would take by itself */
  stretch?: number;
  /** bytes of this rank, when ranks move unequal ones */
  ownBytes?: number;
}

/** Launches a collective on the group's stream; it waits for the compute work launched so far. */
export function* launchCollective(
  engine: Engine,
  rank: Rank,
  group: Group,
  op: CollectiveOp,
  bytes: number,
  options: CollectiveOptions = {},
): Generator<DeviceTask, DeviceTask, void> {
  const index = rank.collectiveCounts.get(group) ?? 0;
  rank.collectiveCounts.set(group, index + 1);
  const collective = shared(engine, group, index, op, bytes, options.stretch ?? 1);
  const task = yield* enqueue(rank, {
    kind: 'collective',
    acl: API_OF[op],
    stream: group.stream,
    deps: rank.lastCompute ? [rank.lastCompute] : [],
    collective,
    ...(options.ownBytes === undefined ? {} : { ownBytes: options.ownBytes }),
    launchUs: 110,
  });
  collective.members.push(task);
  return task;
}

/** Makes the next compute task of the rank wait for the collective (`work.wait()`). */
export function streamWait(rank: Rank, task: DeviceTask): void {
  rank.waits.push(task);
}

function shared(engine: Engine, group: Group, index: number, op: CollectiveOp, bytes: number, stretch: number): Collective {
  let byIndex = engine.collectives.get(group);
  if (!byIndex) {
    byIndex = new Map();
    engine.collectives.set(group, byIndex);
  }
  let collective = byIndex.get(index);
  if (!collective) {
    collective = { op, group, index, bytes, ...transfer(engine, group, op, bytes, index, stretch), members: [], lastStart: -1 };
    byIndex.set(index, collective);
  }
  if (collective.op !== op || collective.bytes !== bytes) throw new Error(`ranks disagree on collective ${index} of ${group.comm}`);
  return collective;
}

/** Time a collective needs once every member has arrived, in ns: it ends with its slowest link. */
function transfer(
  engine: Engine,
  group: Group,
  op: CollectiveOp,
  bytes: number,
  index: number,
  stretch: number,
): Pick<Collective, 'transferNs' | 'fixedNs' | 'movedNs' | 'slowLinks'> {
  const size = group.ranks.length;
  const nodes = new Set(group.ranks.map(nodeOf)).size;
  const busGBs = nodes > 1 ? 56 - 2 * Math.log2(nodes) : size > 2 ? 60 : 55;
  const share = { allReduce: 1, allGather: 0.5, broadcast: 1.3, batchSendRecv: 2.6, alltoallv: 0.5 }[op];
  const fixedUs = 30 + 4 * Math.log2(Math.max(2, Math.min(size, CARDS_PER_NODE))) + 12 * Math.log2(nodes);
  const movedUs = (bytes * share) / (busGBs * 1000);
  const slowLinks = engine.slowLinks.filter(({ ranks }) => ranks.every((rank) => group.ranks.includes(rank)));
  const slowest = Math.max(1, ...slowLinks.map((link) => link.factor));
  const ns = 1000 * engine.linkFactor * stretch * jitter(0.01, engine.seed, index, hashText(group.comm));
  return { transferNs: Math.round((fixedUs + slowest * movedUs) * ns), fixedNs: fixedUs * ns, movedNs: movedUs * ns, slowLinks };
}

/** Moves a rank's streams as far as known times allow; returns ranks whose collectives just ended. */
function settle(engine: Engine, rank: Rank, woken: Set<number>): void {
  let progress = true;
  while (progress) {
    progress = false;
    for (const stream of rank.streams.values()) {
      while (stream.head < stream.queue.length) {
        const task = stream.queue[stream.head]!;
        if (!place(engine, stream, task, woken)) break;
        stream.free = task.end;
        stream.head++;
        progress = true;
      }
      if (stream.head > 1024) {
        stream.queue.splice(0, stream.head);
        stream.head = 0;
      }
    }
  }
}

/** Fixes start and, when possible, end of the task at the head of a stream. */
function place(engine: Engine, stream: Stream, task: DeviceTask, woken: Set<number>): boolean {
  if (task.end >= 0) return true;
  if (task.start < 0) {
    const free = Math.max(task.ready, stream.free + STREAM_GAP_NS);
    let start = free;
    for (const dep of task.deps) {
      if (dep.end < 0) return false;
      start = Math.max(start, dep.end + STREAM_GAP_NS);
    }
    task.deps = [];
    task.start = start;
    task.eventWait = start - free;
    if (task.collective) arrive(engine, task.collective, task, woken);
    else task.end = start + task.duration;
  }
  return task.end >= 0;
}

function arrive(engine: Engine, collective: Collective, task: DeviceTask, woken: Set<number>): void {
  const { members, group } = collective;
  collective.lastStart = Math.max(collective.lastStart, task.start);
  if (members.length < group.ranks.length || members.some((member) => member.start < 0)) return;
  const common = collective.lastStart + collective.transferNs;
  for (const member of members) {
    const spread = Math.round(20_000 * uniform(engine.seed, collective.index, member.rank, 9));
    member.end = common + spread;
    member.duration = member.end - member.start;
    woken.add(member.rank);
  }
}

/** Runs the host programs of all ranks to their end. */
export function run(engine: Engine, programs: HostProgram[]): void {
  const waiting: (DeviceTask | null)[] = programs.map(() => null);
  const done = programs.map(() => false);
  let left = programs.length;
  while (left > 0) {
    let progress = false;
    for (const rank of engine.ranks) {
      const i = rank.rank;
      while (!done[i] && (waiting[i] === null || waiting[i]!.end >= 0)) {
        progress = true;
        const { value, done: finished } = programs[i]!.next();
        if (finished) {
          done[i] = true;
          left--;
          waiting[i] = null;
        } else {
          waiting[i] = value;
        }
        settleAll(engine, rank);
      }
    }
    if (!progress) {
      const stuck = engine.ranks.filter((rank) => !done[rank.rank]).map((rank) => rank.rank);
      throw new Error(`deadlock: ranks ${stuck.join(', ')} wait for each other`);
    }
  }
}

function settleAll(engine: Engine, rank: Rank): void {
  const woken = new Set([rank.rank]);
  for (const next of woken) {
    woken.delete(next);
    settle(engine, engine.ranks[next]!, woken);
  }
}

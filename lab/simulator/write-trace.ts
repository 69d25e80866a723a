import type { Capture, Span } from './capture.ts';
import { type Clock, micros } from './clock.ts';
import { commDetail, commName } from './communication.ts';
import type { DeviceTask, HostOp, Rank, Thread } from './des.ts';
import { clockSamples } from './frequency-samples.ts';
import type { Group } from './groups.ts';
import { cannName, type Launch, launches, plainCalls } from './launches.ts';
import type { ResolvedSpec } from './spec.ts';
import { callStack, stackFrames } from './stacks.ts';
import { dump, type Value } from './text.ts';

/** Everything the trace of one rank is made of. */
export interface TraceInput {
  spec: ResolvedSpec;
  capture: Capture;
  record: Rank;
  clock: Clock;
  groups: Group[];
  pid: number;
}

type Event = { [key: string]: Value };

const NONE = 4294967295;
export const TID: Record<Thread, number> = { main: 0, grad: 8571, queue: 3198 };

/** Process ids of the device part, relative to 1024 times the host's. */
const LANE = { gc: 192, cann: 224, hardware: 416, freq: 448, hccl: 480, overlap: 736 };

export const TYPE_NAMES: Record<string, string> = {
  DT_BF16: 'c10::BFloat16',
  FLOAT: 'float',
  INT64: 'long int',
  INT32: 'int',
};

/** trace_view.json as parts of text: host events, then device events, then the flows between them. */
export function* traceText(input: TraceInput): Generator<string> {
  let first = true;
  for (const event of events(input)) {
    yield first ? `[${dump(event)}` : `, ${dump(event)}`;
    first = false;
  }
  yield first ? '[]' : ']';
}

function* events(input: TraceInput): Generator<Event> {
  yield* hostEvents(input);
  yield* hostMetadata(input);
  yield* forwardBackwardFlows(input);
  yield* pythonFunctions(input);
  yield* collections(input);
  yield* deviceMetadata(input);
  yield* hardwareEvents(input);
  yield* cannEvents(input);
  yield* overlapEvents(input);
  yield* communicationEvents(input);
  yield* deviceFlows(input);
}

const tidOf = (input: TraceInput, thread: Thread): number => input.pid + TID[thread];
const lanePid = (input: TraceInput, lane: keyof typeof LANE): number => input.pid * 1024 + LANE[lane];

function* hostEvents(input: TraceInput): Generator<Event> {
  for (const op of input.capture.ops) yield hostEvent(input, op);
  const all = [...launches(input.capture, input.spec.level)];
  const queue = (launch: Launch, ph: 's' | 'f', thread: Thread, at: number): Event => ({
    ph,
    bp: 'e',
    name: 'enqueue_to_dequeue',
    id: launch.correlation,
    pid: input.pid,
    tid: tidOf(input, thread),
    ts: input.clock.stamp(at),
    cat: 'async_task_queue',
  });
  for (const launch of all) {
    const { task } = launch;
    yield queued(input, `Enqueue@${task.acl}`, 'enqueue', task.thread, task.enqueueStart, task.enqueueEnd, launch.correlation);
    yield queue(launch, 's', task.thread, task.enqueueStart);
  }
  for (const launch of all) {
    const { task } = launch;
    yield queued(input, `Dequeue@${task.acl}`, 'dequeue', 'queue', task.dequeueStart, task.dequeueEnd, launch.correlation);
    yield queue(launch, 'f', 'queue', task.dequeueStart);
  }
}

function queued(input: TraceInput, name: string, cat: string, thread: Thread, start: number, end: number, correlation: number): Event {
  return {
    ph: 'X',
    name,
    pid: input.pid,
    tid: tidOf(input, thread),
    ts: input.clock.stamp(start),
    dur: micros(end - start),
    cat,
    args: { correlation_id: correlation },
  };
}

function hostEvent(input: TraceInput, op: HostOp): Event {
  const args: Event = { 'Sequence number': op.sequence, 'Fwd thread id': op.backward ? 1 : 0 };
  if (op.types) {
    args['Input Dims'] = op.dims.split(';').join(';\r\n');
    args['Input type'] = op.types
      .split(';')
      .map((type) => TYPE_NAMES[type] ?? type)
      .join(';\r\n');
  }
  if (op.stack && input.spec.withStack) args['Call stack'] = callStack(input.spec, op.stack);
  return {
    ph: 'X',
    name: op.name,
    pid: input.pid,
    tid: tidOf(input, op.thread),
    ts: input.clock.stamp(op.start),
    dur: micros(op.end - op.start),
    cat: 'cpu_op',
    args,
  };
}

function* hostMetadata(input: TraceInput): Generator<Event> {
  const { pid } = input;
  const meta = (name: string, tid: number, args: Event): Event => ({ ph: 'M', name, pid, tid, args });
  yield meta('process_name', 0, { name: 'Python' });
  yield meta('process_labels', 0, { labels: 'CPU' });
  yield meta('process_sort_index', 0, { sort_index: 0 });
  for (const [i, thread] of (['main', 'grad', 'queue'] as const).entries()) {
    const tid = tidOf(input, thread);
    yield meta('thread_name', tid, { name: `Thread ${tid}` });
    yield meta('thread_sort_index', tid, { sort_index: i < 2 ? tid : tidOf(input, 'grad') + 1 });
  }
}

function* forwardBackwardFlows(input: TraceInput): Generator<Event> {
  const starts = new Map<number, HostOp>();
  for (const op of input.capture.ops) {
    if (op.sequence < 0) continue;
    if (!op.backward) {
      if (!starts.has(op.sequence)) starts.set(op.sequence, op);
      continue;
    }
    const from = starts.get(op.sequence);
    if (!from) continue;
    for (const [ph, end] of [
      ['s', from],
      ['f', op],
    ] as const) {
      const tid = tidOf(input, end.thread);
      yield { ph, bp: 'e', name: 'fwdbwd', id: op.sequence, pid: input.pid, tid, ts: input.clock.stamp(end.start), cat: 'fwdbwd' };
    }
  }
}

/** Lane of the garbage collector, there when the profiler looks for long collections. */
function* collections(input: TraceInput): Generator<Event> {
  if (input.record.collections.length === 0) return;
  const pid = lanePid(input, 'gc');
  for (const [name, args] of [
    ['process_name', { name: 'Python GC' }],
    ['process_labels', { labels: 'CPU' }],
    ['thread_name', { name: 'Python GC' }],
  ] as const) {
    yield { ph: 'M', name, pid, tid: 0, args };
  }
  for (const { start, end } of input.record.collections)
    yield { ph: 'X', name: 'GC', pid, tid: 0, ts: input.clock.stamp(start), dur: micros(end - start), cat: 'GC', args: {} };
}

/** Name of a Python function as the profiler writes it. */
export const functionName = (spec: ResolvedSpec, name: string): string => {
  const site = name === 'prepare' ? spec.code.prepare : spec.code.main;
  return `${site.file}(${site.line}): ${site.func}`;
};

/** Nested Python frames around operators with a stack, only on request because they dominate the file. */
function* pythonFunctions(input: TraceInput): Generator<Event> {
  const { pythonFrames } = input.spec;
  for (const { name, thread, start, end } of input.record.functions) {
    yield {
      ph: 'X',
      name: functionName(input.spec, name),
      pid: input.pid,
      tid: tidOf(input, thread),
      ts: input.clock.stamp(start),
      dur: micros(end - start),
      cat: 'python_function',
      args: { 'Python id': 5, 'Python parent id': 4 },
    };
  }
  if (pythonFrames === 0) return;
  let id = 10;
  for (const op of input.capture.ops) {
    if (!op.stack) continue;
    const frames = stackFrames(input.spec, op.stack);
    for (let i = 0; i < pythonFrames; i++) {
      const inset = Math.min(20 * (i + 1), Math.max(0, (op.end - op.start) / 2 - 10));
      yield {
        ph: 'X',
        name: frames[i % frames.length]!.replace('/usr/lib/python3.10/site-packages/', ''),
        pid: input.pid,
        tid: tidOf(input, op.thread),
        ts: input.clock.stamp(Math.round(op.start + inset)),
        dur: micros(Math.round(op.end - op.start - 2 * inset)),
        cat: 'python_function',
        args: { 'Python id': ++id, 'Python parent id': id - 1 },
      };
    }
  }
}

function* deviceMetadata(input: TraceInput): Generator<Event> {
  const { spec, capture } = input;
  const label = spec.era === '2025-01' ? 'NPU' : `NPU ${capture.device}`;
  const meta = (name: string, lane: keyof typeof LANE, tid: number, args: Event): Event => ({
    name,
    pid: lanePid(input, lane),
    tid,
    args,
    ph: 'M',
  });
  function* process(lane: keyof typeof LANE, name: string, labels: string, sort: number, threads: [number, string][]): Generator<Event> {
    if (name) yield meta('process_name', lane, 0, { name });
    for (const [tid, thread] of threads) {
      yield meta('thread_name', lane, tid, { name: thread });
      yield meta('thread_sort_index', lane, tid, { sort_index: tid });
    }
    yield meta('process_labels', lane, 0, { labels });
    yield meta('process_sort_index', lane, 0, { sort_index: sort });
  }
  const streams = [...new Set(capture.tasks.map((task) => task.stream))].sort((a, b) => a - b);
  yield* process(
    'hardware',
    'Ascend Hardware',
    label,
    13,
    streams.map((stream) => [stream, `Stream ${stream}`]),
  );
  const hccl = spec.era === '2025-01' ? 'HCCL' : 'Communication';
  yield* process('hccl', hccl, label, 15, communicationThreads(input));
  const cannThreads = (['main', 'grad', 'queue'] as const).map((thread): [number, string] => [
    tidOf(input, thread),
    `Thread ${tidOf(input, thread)}`,
  ]);
  yield* process('cann', spec.level === 0 ? '' : 'CANN', 'CPU', 7, cannThreads);
  const lanes = ['Computing', 'Communication', 'Communication(Not Overlapped)', 'Free'];
  yield* process(
    'overlap',
    'Overlap Analysis',
    label,
    23,
    lanes.map((name, tid) => [tid, name]),
  );
  yield* process('freq', 'AI Core Freq', label, 14, []);
  for (const { at, mhz } of clockSamples(capture, input.record.clock)) {
    // the closing sample of the real files has no decimals
    const ts = at === capture.end ? input.clock.stamp(at).split('.')[0]! : input.clock.stamp(at);
    yield { name: 'AI Core Freq', ts, pid: lanePid(input, 'freq'), tid: 0, args: { MHz: mhz }, ph: 'C' };
  }
}

/** Rows of one group in the communication lane: itself, then its planes. */
interface GroupRow {
  group: Group;
  tid: number;
  planes: number;
}

function groupRows(input: TraceInput): GroupRow[] {
  const rows: GroupRow[] = [];
  let tid = 0;
  for (const group of input.groups) {
    if (group.ranks.length < 2 || !group.ranks.includes(input.capture.rank)) continue;
    if (!input.capture.tasks.some((task) => task.collective?.group === group)) continue;
    const planes = input.spec.level === 0 ? 0 : Math.min(8, group.ranks.length);
    rows.push({ group, tid, planes });
    tid += planes + 1;
  }
  return rows;
}

function communicationThreads(input: TraceInput): [number, string][] {
  return groupRows(input).flatMap(({ tid, planes }, i) => [
    [tid, `Group ${i} Communication`] as [number, string],
    ...Array.from({ length: planes }, (_, plane): [number, string] => [tid + 1 + plane, `Plane ${plane}`]),
  ]);
}

function* hardwareEvents(input: TraceInput): Generator<Event> {
  const { capture, spec } = input;
  const connections = new Map<DeviceTask, number>();
  for (const launch of launches(capture, spec.level)) connections.set(launch.task, launch.connection);
  let id = 11_000;
  const event = (name: string, type: string, task: DeviceTask, start: number, end: number, args: Event = {}): Event => ({
    name,
    pid: lanePid(input, 'hardware'),
    tid: task.stream,
    ts: input.clock.stamp(start),
    dur: micros(end - start),
    args: {
      'Model Id': NONE,
      'Task Type': type,
      'Physic Stream Id': task.stream,
      'Task Id': id++,
      'Batch Id': 0,
      'Subtask Id': NONE,
      connection_id: connections.get(task) ?? NONE,
      ...args,
    },
    ph: 'X',
  });
  for (const task of capture.tasks) {
    if (task.eventWait > 500) yield event('EVENT_WAIT', 'EVENT_WAIT_SQE', task, task.start - task.eventWait, task.start);
    if (task.kind === 'kernel') yield event(task.kernel!.name, taskType(task, spec), task, task.start, task.end);
    if (task.kind !== 'copy') continue;
    const toHost = task.acl.endsWith('_to_host');
    const bytes = task.bytes > 0 ? Math.round(task.bytes) : toHost ? 4 : 65_536;
    const args = { 'data size(Byte)': bytes, 'memcpy direction': toHost ? 'device to host' : 'host to device' };
    yield event('MEMCPY_ASYNC', 'PCIE_DMA_SQE', task, task.start, task.end, spec.level === 2 ? args : {});
  }
}

/** Task Type of a kernel; the older release calls vector kernels AI_CORE here although its tables say AI_VECTOR_CORE. */
function taskType(task: DeviceTask, spec: ResolvedSpec): string {
  const { core } = task.kernel!;
  if (spec.level === 0) return core === 'AI_CORE' ? 'KERNEL_AICORE' : 'KERNEL_AIVEC';
  return spec.era === '2025-01' && core === 'AI_VECTOR_CORE' ? 'AI_CORE' : core;
}

function* cannEvents(input: TraceInput): Generator<Event> {
  const { capture, spec } = input;
  if (spec.level > 0) {
    const all = [
      ...plainCalls(capture, input.record.apis, spec.level),
      ...[...launches(capture, spec.level)].flatMap((launch) => launch.calls),
    ];
    all.sort((a, b) => a.start - b.start || b.end - a.end);
    for (const call of all) {
      const tid = tidOf(input, call.thread);
      yield {
        name: cannName(call),
        pid: lanePid(input, 'cann'),
        tid,
        ts: input.clock.stamp(call.start),
        dur: micros(call.end - call.start),
        args: { 'Thread Id': tid, Mode: call.mode, level: call.level, id: call.id, item_id: call.itemId, connection_id: call.connection },
        ph: 'X',
      };
    }
  }
  const rows = groupRows(input);
  for (const launch of launches(capture, spec.level)) {
    const { task } = launch;
    const id = flowId(launch);
    const name = `HostToDevice${id}`;
    const row = rows.find((candidate) => candidate.group === task.collective?.group);
    yield {
      name,
      ph: 's',
      cat: 'HostToDevice',
      id,
      pid: lanePid(input, 'cann'),
      tid: tidOf(input, 'queue'),
      ts: input.clock.stamp(launch.flowStart),
    };
    const to = row ? { pid: lanePid(input, 'hccl'), tid: row.tid } : { pid: lanePid(input, 'hardware'), tid: task.stream };
    yield { name, ph: 'f', id, ts: input.clock.stamp(task.start), cat: 'HostToDevice', ...to, bp: 'e' };
  }
}

/** Flow ids differ by kind of launch in the real files; kernels use a number beyond 64 bits. */
function flowId({ task, connection }: Launch): string {
  if (task.kind === 'copy') return String(connection);
  const wide = BigInt(connection) << 32n;
  return task.kind === 'collective' ? String(wide - 1n) : String(((142_000n + BigInt(connection)) << 48n) + (1n << 32n) - 1n);
}

function* overlapEvents(input: TraceInput): Generator<Event> {
  const { lanes } = input.capture;
  const rows: [string, Span[]][] = [
    ['Computing', lanes.computing],
    ['Communication', lanes.communication],
    ['Communication(Not Overlapped)', lanes.notOverlapped],
    ['Free', lanes.free],
  ];
  const all = rows.flatMap(([name, spans], tid) => spans.map((span) => ({ name, tid, span })));
  all.sort((a, b) => a.span[0] - b.span[0] || a.tid - b.tid);
  for (const { name, tid, span } of all) {
    yield { name, pid: lanePid(input, 'overlap'), tid, ts: input.clock.stamp(span[0]), dur: micros(span[1] - span[0]), ph: 'X' };
  }
}

function* communicationEvents(input: TraceInput): Generator<Event> {
  const rows = groupRows(input);
  const connections = new Map<DeviceTask, number>();
  for (const launch of launches(input.capture, input.spec.level)) connections.set(launch.task, launch.connection);
  for (const task of input.capture.tasks) {
    const row = rows.find((candidate) => candidate.group === task.collective?.group);
    if (!row) continue;
    yield {
      name: commName(task),
      pid: lanePid(input, 'hccl'),
      tid: row.tid,
      ts: input.clock.stamp(task.start),
      dur: micros(task.end - task.start),
      args: {
        connection_id: connections.get(task) ?? NONE,
        'model id': NONE,
        data_type: 'FP32',
        alg_type: task.collective!.op === 'batchSendRecv' ? 'NA-NA' : 'MESH-RING',
        count: task.collective!.bytes / 4,
      },
      ph: 'X',
    };
    if (row.planes > 0) yield* planeEvents(input, task, row);
  }
}

function* planeEvents(input: TraceInput, task: DeviceTask, row: GroupRow): Generator<Event> {
  const detail = commDetail(task);
  const taskId = 800 + task.collective!.index;
  let context = 0;
  const event = (plane: number, type: string, start: number, ns: number, peer: number, bytes: number, link: string): Event => ({
    name: type,
    pid: lanePid(input, 'hccl'),
    tid: row.tid + 1 + plane,
    ts: input.clock.stamp(start),
    dur: micros(ns),
    args: {
      notify_id: type === 'Notify_Wait' ? String(60 + 8 * peer) : '18446744073709551615',
      'duration estimated(us)': bytes > 0 ? bytes / 19_300 : 0.02,
      'stream id': task.stream,
      'task id': taskId,
      'context id': context++,
      'task type': type,
      'src rank': detail.local,
      'dst rank': peer,
      'transport type': type === 'Notify_Wait' ? 'LOCAL' : link === 'RDMA' ? 'RDMA' : 'SDMA',
      'size(Byte)': bytes,
      'data type': type === 'Reduce_Inline' ? 'FP32' : 'INVALID_TYPE',
      'link type': bytes > 0 ? link : 'INVALID_TYPE',
      'bandwidth(GB/s)': ns > 0 ? bytes / ns : 0,
      'model id': NONE,
    },
    ph: 'X',
  });
  const type = task.collective!.op === 'allReduce' ? 'Reduce_Inline' : 'Memcpy';
  const members = task.collective!.members;
  for (const [i, link] of detail.links.slice(0, row.planes).entries()) {
    const peerRank = row.group.ranks[link.peer];
    const peerStart = members.find((member) => member.rank === peerRank)?.start ?? task.start;
    const wait = Math.min(Math.max(20, peerStart - task.start), detail.elapse);
    yield event(i, 'Notify_Wait', task.start, wait, link.peer, 0, '');
    const ns = Math.min(link.ns, detail.elapse);
    yield event(i, type, task.end - ns, ns, link.peer, link.bytes, link.transport);
  }
}

function* deviceFlows(input: TraceInput): Generator<Event> {
  const rows = groupRows(input);
  for (const { task } of launches(input.capture, input.spec.level)) {
    if (!task.op) continue;
    const row = rows.find((candidate) => candidate.group === task.collective?.group);
    const flow = { bp: 'e', name: 'torch_to_npu', id: input.clock.id(task.start) };
    const from = { pid: input.pid, tid: tidOf(input, task.thread), ts: input.clock.stamp(task.op.start), cat: 'async_npu' };
    const lane = row ? { pid: lanePid(input, 'hccl'), tid: row.tid } : { pid: lanePid(input, 'hardware'), tid: task.stream };
    yield { ph: 's', ...flow, ...from };
    yield { ph: 'f', ...flow, ...lane, ts: input.clock.stamp(task.start), cat: 'async_npu' };
  }
}

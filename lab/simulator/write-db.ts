import type { Capture } from './capture.ts';
import { stepTraces } from './capture.ts';
import { type Clock, micros } from './clock.ts';
import { commDetail, commName, commType } from './communication.ts';
import type { DeviceTask, HostOp, Thread } from './des.ts';
import { clockSamples } from './frequency-samples.ts';
import { type CannCall, type Launch, launches, plainCalls } from './launches.ts';
import { memoryOf } from './memory.ts';
import type { ResolvedSpec } from './spec.ts';
import { createDatabase, createTextIds, type TextIds, type Writer } from './sqlite.ts';
import { stackFrames } from './stacks.ts';
import { communicationMatrixText, communicationText } from './write-communication.ts';
import { writeMemory } from './write-memory.ts';
import { pipeShares } from './write-tables.ts';
import type { TraceInput } from './write-trace.ts';
import { functionName, TID, TYPE_NAMES } from './write-trace.ts';

/** The database export of one rank: what the trace and the tables are made of, and the metadata that would lie beside them. */
export interface DatabaseInput extends TraceInput {
  /** profiler_metadata.json as an object */
  metadata: { [key: string]: unknown };
}

const NONE = 4_294_967_295;
const FRAMEWORK_TEXTS = 1 << 28;
const API_TYPES = { acl: 20_000, node: 10_000, hccl: 5_500, runtime: 5_000 } as const;
const OP = 50_001;
const QUEUE = 50_002;
const PYTHON = 50_003;
/** HCCL data type 4 is FP32. */
const FP32 = 4;
const DATA_TYPES = ['INT8', 'INT16', 'INT32', 'FP16', 'FP32', 'INT64', 'UINT64', 'UINT8', 'UINT16', 'UINT32', 'FP64', 'BFP16', 'INT128'];
const TRANSPORTS = ['SDMA', 'RDMA', 'LOCAL'];
const LINKS = ['ON_CHIP', 'HCCS', 'PCIE', 'ROCE', 'SIO'];
const MISSING = 'N/A';
const TASK_TYPE: Record<string, string> = { AI_CORE: 'KERNEL_AICORE', AI_VECTOR_CORE: 'KERNEL_AIVEC', AI_CPU: 'KERNEL_AICPU' };
const PIPE_NAMES = {
  aic: ['mac', 'scalar', 'mte1', 'mte2', 'fixpipe'],
  aiv: ['vec', 'scalar', 'mte2', 'mte3'],
} as const;

const tidOf = (input: TraceInput, thread: Thread): bigint => (BigInt(input.pid) << 32n) + BigInt(input.pid + TID[thread]);

/** ascend_pytorch_profiler_{rank}.db. */
export function writeDatabase(input: DatabaseInput, path: string): void {
  const db = createDatabase(path);
  const texts = createTextIds(0);
  const framework = createTextIds(FRAMEWORK_TEXTS);
  writeBasics(db, input);
  const all = [...launches(input.capture, input.spec.level)];
  const connections = writeCann(db, input, all, texts);
  writeTasks(db, input, all, texts);
  writeFramework(db, input, all, framework, connections);
  if (input.spec.memory !== null) writeMemory(db, memoryOf(input.capture, input.spec.memory), input.capture, input.clock, texts);
  const text = db.table('STRING_IDS', 'id INTEGER PRIMARY KEY, value TEXT');
  for (const ids of [texts, framework]) for (const [value, id] of ids.entries()) text(id, value);
  db.close();
}

function writeBasics(db: Writer, input: DatabaseInput): void {
  const { capture, clock, metadata } = input;
  db.table('NPU_INFO', 'id INTEGER, name TEXT')(capture.device, 'Ascend910B');
  db.table('SESSION_TIME_INFO', 'startTimeNs INTEGER, endTimeNs INTEGER')(clock.id(capture.begin), clock.id(capture.end));
  db.table('HOST_INFO', 'hostUid TEXT, hostName TEXT')('3538958389648580163', 'npu-node');
  db.table('RANK_DEVICE_MAP', 'rankId INTEGER, deviceId INTEGER')(capture.rank, capture.device);
  const meta = db.table('META_DATA', 'name TEXT, value TEXT');
  for (const [name, value] of [
    ['SCHEMA_VERSION_MICRO', '0'],
    ['SCHEMA_VERSION_MINOR', '0'],
    ['SCHEMA_VERSION_MAJOR', '1'],
    ['SCHEMA_VERSION', '1.0.0'],
  ] as const) {
    meta(name, value);
  }
  for (const [name, value] of Object.entries(metadata)) meta(name, JSON.stringify(value));
  const enumeration = (table: string, values: Iterable<readonly [number, string]>): void => {
    const insert = db.table(table, 'id INTEGER PRIMARY KEY, name TEXT');
    for (const [id, name] of values) insert(id, name);
  };
  enumeration('ENUM_API_TYPE', [
    [20_000, 'acl'],
    [15_000, 'model'],
    [10_000, 'node'],
    [5_500, 'hccl'],
    [5_000, 'runtime'],
    [OP, 'op'],
    [QUEUE, 'queue'],
    [50_003, 'trace'],
    [50_004, 'mstx'],
  ]);
  enumeration('ENUM_HCCL_DATA_TYPE', [...DATA_TYPES.map((name, id) => [id, name] as const), [65_534, MISSING], [65_535, 'INVALID_TYPE']]);
  enumeration('ENUM_HCCL_TRANSPORT_TYPE', [...TRANSPORTS.map((name, id) => [id, name] as const), [65_535, 'INVALID_TYPE']]);
  enumeration('ENUM_HCCL_LINK_TYPE', [...LINKS.map((name, id) => [id, name] as const), [65_535, 'INVALID_TYPE']]);
  const frequency = db.table('AICORE_FREQ', 'deviceId INTEGER, timestampNs NUMERIC, freq INTEGER');
  for (const { at, mhz } of clockSamples(capture, input.record.clock)) frequency(capture.device, clock.id(at), mhz);
}

/** CANN_API, and the largest connection id, after which the framework counts its own. */
function writeCann(db: Writer, input: DatabaseInput, all: Launch[], texts: TextIds): number {
  const insert = db.table(
    'CANN_API',
    'startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, name INTEGER',
  );
  const { capture, record, spec, clock } = input;
  const calls = [...plainCalls(capture, record.apis, spec.level), ...all.flatMap((launch) => launch.calls)];
  let spare = 1_000_000;
  const used = new Set<number>();
  // The call that the device task names keeps its id; the calls inside it have none in the text export.
  const rank = (call: CannCall): number => (call.level === 'node' ? 0 : call.level === 'acl' ? 1 : 2);
  for (const call of [...calls].sort((a, b) => rank(a) - rank(b))) {
    const id = used.has(call.connection) ? spare++ : call.connection;
    used.add(id);
    const name = call.level === 'node' ? 'launch' : call.id;
    insert(clock.id(call.start), clock.id(call.end), API_TYPES[call.level], tidOf(input, call.thread), id, texts.id(name));
  }
  return spare;
}

function writeTasks(db: Writer, input: DatabaseInput, all: Launch[], texts: TextIds): void {
  const { capture, spec, clock } = input;
  const newer = spec.era === '2025-11';
  const task = db.table(
    'TASK',
    'startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER',
  );
  const block = newer ? 'blockNum INTEGER, mixBlockNum INTEGER' : 'blockDim INTEGER, mixBlockDim INTEGER';
  const compute = db.table(
    'COMPUTE_TASK_INFO',
    `name INTEGER, globalTaskId INTEGER PRIMARY KEY, ${block}, taskType INTEGER, opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, outputDataTypes INTEGER, outputShapes INTEGER, attrInfo INTEGER${newer ? ', opState INTEGER, hf32Eligible INTEGER' : ''}`,
  );
  const collective = db.table(
    'COMMUNICATION_OP',
    `opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, opId INTEGER PRIMARY KEY, relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER, count NUMERIC, opType INTEGER${newer ? ', deviceId INTEGER' : ''}`,
  );
  const part = db.table(
    'COMMUNICATION_TASK_INFO',
    `name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, groupName INTEGER, notifyId INTEGER, rdmaType INTEGER, srcRank INTEGER, dstRank INTEGER, transportType INTEGER, size INTEGER, dataType INTEGER, linkType INTEGER, opId INTEGER${newer ? ', isMaster INTEGER, bandwidth NUMERIC' : ''}`,
  );
  const copied = db.table('MEMCPY_INFO', 'globalTaskId INTEGER PRIMARY KEY, size NUMERIC, memcpyOperation NUMERIC');
  const counter = spec.level > 0 ? db.table('TASK_PMU_INFO', 'globalTaskId INTEGER, name INTEGER, value NUMERIC') : null;
  const connections = new Map<DeviceTask, number>(all.map((launch) => [launch.task, launch.connection]));
  let globalId = 0;
  let opId = 0;
  let taskId = 11_000;
  const row = (of: DeviceTask, type: string, start: number, end: number, context = NONE): number => {
    const id = globalId++;
    const times = [clock.id(start), clock.id(end)] as const;
    task(...times, capture.device, connections.get(of) ?? NONE, id, input.pid, texts.id(type), context, of.stream, taskId % 65_536, NONE);
    return id;
  };
  for (const each of capture.tasks) {
    taskId++;
    if (each.eventWait > 500) row(each, 'EVENT_WAIT', each.start - each.eventWait, each.start);
    if (each.kind === 'copy') {
      const id = row(each, 'MEMCPY_ASYNC', each.start, each.end);
      const toHost = each.acl.endsWith('_to_host');
      if (spec.level === 2) copied(id, each.bytes > 0 ? Math.round(each.bytes) : toHost ? 4 : 65_536, toHost ? 2 : 1);
    } else if (each.kind === 'kernel') {
      const kernel = each.kernel!;
      const known = spec.level > 0;
      const mixed = kernel.core.startsWith('MIX');
      if (mixed) row(each, 'AI_CORE', each.start - 1_300, each.end + 1_200);
      const type = mixed ? kernel.core : TASK_TYPE[kernel.core]!;
      const id = row(each, type, each.start, each.end, mixed ? 0 : NONE);
      const text = (value: string): number => texts.id(known ? value : MISSING);
      const shapes = (value: string): number => text(`"${value}"`);
      compute(
        texts.id(kernel.name),
        id,
        kernel.blockDim,
        0,
        text(kernel.core),
        text(kernel.type),
        text(kernel.inFormats),
        text(kernel.inTypes),
        shapes(kernel.inShapes),
        text(kernel.outFormats),
        text(kernel.outTypes),
        shapes(kernel.outShapes),
        texts.id(''),
        ...(newer ? [text('dynamic'), text('NO')] : []),
      );
      if (counter === null || kernel.core === 'AI_CPU') continue;
      const shares = pipeShares(kernel, each);
      for (const side of ['aic', 'aiv'] as const)
        for (const [i, name] of PIPE_NAMES[side].entries()) counter(id, texts.id(`${side}_${name}_ratio`), shares[side]?.[i] ?? 0);
    } else {
      const { group, op, bytes } = each.collective!;
      const id = ++opId;
      const name = texts.id(commName(each));
      const comm = texts.id(group.comm);
      const algorithm = texts.id(op === 'batchSendRecv' ? 'NA-NA' : 'MESH-RING');
      const own = newer ? [capture.device] : [];
      const type = texts.id(spec.level > 0 ? commType(each) : MISSING);
      const times = [clock.id(each.start), clock.id(each.end)] as const;
      collective(name, ...times, connections.get(each) ?? NONE, comm, id, 0, 0, FP32, algorithm, bytes / 4, type, ...own);
      if (group.ranks.length < 2) continue;
      row(each, 'AI_CORE', each.start - 1_300, each.end + 1_200);
      const detail = commDetail(each);
      let context = 0;
      const plane = (n: number, hardware: string, kind: string, start: number, end: number, peer: number, size: number): void => {
        const global = row(each, hardware, start, end, context++);
        const ends = [detail.local, peer] as const;
        const transport = TRANSPORTS.indexOf(size > 0 ? 'SDMA' : 'LOCAL');
        const link = size > 0 ? LINKS.indexOf('HCCS') : 65_535;
        const more = newer ? [n === 0 ? 1 : 0, end > start ? (size / (end - start)) * 1e9 : 0] : [];
        part(name, global, texts.id(kind), n, comm, 60, 65_535, ...ends, transport, size, size > 0 ? FP32 : 65_535, link, id, ...more);
      };
      const moved = op === 'allReduce' ? 'Reduce_Inline' : 'Memcpy';
      for (const [n, link] of detail.links.slice(0, 8).entries()) {
        plane(n, 'Notify Wait', 'Notify_Wait', each.start, each.start + Math.min(detail.elapse, Math.max(20, detail.wait)), link.peer, 0);
        plane(n, 'SDMA', moved, each.end - Math.min(link.ns, detail.elapse), each.end, link.peer, link.bytes);
      }
    }
  }
  db.exec(
    'CREATE INDEX TaskIndex ON TASK (startNs, globalTaskId); CREATE INDEX CommunicationTaskIndex ON COMMUNICATION_TASK_INFO (globalTaskId)',
  );
}

function writeFramework(db: Writer, input: DatabaseInput, all: Launch[], texts: TextIds, first: number): void {
  const { capture, spec, clock } = input;
  const api = db.table(
    'PYTORCH_API',
    'startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, type INTEGER',
  );
  const connection = db.table('CONNECTION_IDS', 'id INTEGER, connectionId INTEGER');
  let links = 0;
  const link = (ids: readonly number[]): number => {
    const id = links++;
    for (const each of ids) connection(id, each);
    return id;
  };
  const times = (start: number, end: number): [string, string] => [String(clock.id(start)), String(clock.id(end))];
  const queued = (name: string, thread: Thread, start: number, end: number, correlation: number): void =>
    api(...times(start, end), tidOf(input, thread), link([first + correlation]), texts.id(name), null, null, null, null, null, QUEUE);
  for (const { task, correlation } of all) {
    const name = spec.era === '2025-11' ? `Enqueue@${task.acl}` : 'Enqueue';
    queued(name, task.thread, task.enqueueStart, task.enqueueEnd, correlation);
  }
  for (const { task, correlation } of all) queued(`Dequeue@${task.acl}`, 'queue', task.dequeueStart, task.dequeueEnd, correlation);

  const ofOp = new Map<HostOp, number[]>();
  for (const { task, connection: id } of all) {
    if (task.op && task.kind !== 'copy') ofOp.set(task.op, [...(ofOp.get(task.op) ?? []), id]);
  }
  const chains = createTextIds(0);
  const afterQueue = first + 1_000_000;
  const steps = db.table('STEP_TIME', 'id INTEGER, startNs INTEGER, endNs INTEGER');
  for (const op of [...capture.ops].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const step = /^ProfilerStep#(\d+)$/.exec(op.name);
    if (step) steps(Number(step[1]), clock.id(op.start), clock.id(op.end));
    const ids = [...(ofOp.get(op) ?? []), ...(op.sequence >= 0 ? [afterQueue + op.sequence] : [])];
    api(
      ...times(op.start, op.end),
      tidOf(input, op.thread),
      ids.length > 0 ? link(ids) : null,
      texts.id(op.name),
      op.sequence,
      op.backward ? 1 : 0,
      op.types ? texts.id(typeNames(op.types)) : null,
      op.types ? texts.id(op.dims) : null,
      op.stack && spec.withStack ? chains.id(op.stack) : null,
      OP,
    );
  }
  for (const { name, thread, start, end } of input.record.functions) {
    const label = texts.id(functionName(spec, name));
    api(...times(start, end), tidOf(input, thread), null, label, null, null, null, null, null, PYTHON);
  }
  if (input.record.collections.length > 0) {
    const gc = db.table('GC_RECORD', 'startNs INTEGER, endNs INTEGER, globalTid INTEGER');
    for (const { thread, start, end } of input.record.collections) gc(clock.id(start), clock.id(end), tidOf(input, thread));
  }
  const chain = db.table('PYTORCH_CALLCHAINS', 'id INTEGER, stack INTEGER, stackDepth INTEGER');
  for (const [stack, id] of chains.entries())
    for (const [depth, frame] of stackFrames(spec, stack).entries()) chain(id, texts.id(frame), depth);
}

const typeNames = (types: string): string =>
  types
    .split(';')
    .map((type) => TYPE_NAMES[type] ?? type)
    .join(';');

type Figures = { [key: string]: number };

/** analysis.db: the sums of the step table and of the collectives. */
export function writeAnalysis(spec: ResolvedSpec, capture: Capture, clock: Clock, path: string): void {
  const db = createDatabase(path);
  const newer = spec.era === '2025-11';
  const columns = ['computing', 'communication_not_overlapped', 'overlapped', 'communication', 'free', 'stage', 'bubble'];
  const step = db.table(
    'StepTraceTime',
    `${newer ? 'deviceId INTEGER, ' : ''}step TEXT, ${[...columns, 'communication_not_overlapped_and_exclude_receive', 'preparing'].map((c) => `${c} NUMERIC`).join(', ')}`,
  );
  for (const row of stepTraces(capture)) {
    const figures = [row.computing, row.notOverlapped, row.overlapped, row.communication, row.free, row.stage, row.bubble];
    const rest = [Math.max(0, row.notOverlapped - row.bubble), row.preparing];
    step(...(newer ? [capture.device] : []), String(row.step), ...[...figures, ...rest].map(micros));
  }
  if (spec.level > 0 && capture.tasks.some((task) => task.kind === 'collective')) {
    writeCommunication(db, JSON.parse(communicationText(capture, clock)));
    writeMatrix(db, JSON.parse(communicationMatrixText(capture)));
  }
  db.close();
}

type Operations<T> = { [step: string]: { [kind: string]: { [op: string]: T } } };

function* each<T>(json: Operations<T>): Generator<{ step: string; kind: string; name: string; group: string; value: T }> {
  for (const [step, kinds] of Object.entries(json)) {
    for (const [kind, ops] of Object.entries(kinds)) {
      for (const [key, value] of Object.entries(ops)) {
        const [name = '', group = ''] = key.split('@');
        if (group) yield { step, kind, name, group, value };
      }
    }
  }
}

interface Bandwidth {
  'Transit Size(MB)': number;
  'Transit Time(ms)': number;
  'Bandwidth(GB/s)': number;
  'Large Packet Ratio': number;
  'Size Distribution': { [mb: string]: [count: number, ms: number] };
}

interface Collective {
  'Communication Time Info': Figures;
  'Communication Bandwidth Info': { [transport: string]: Bandwidth };
}

function writeCommunication(db: Writer, json: Operations<Collective>): void {
  const time = db.table(
    'CommAnalyzerTime',
    'hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT',
  );
  const bandwidth = db.table(
    'CommAnalyzerBandwidth',
    'hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, total_duration NUMERIC, step TEXT, type TEXT',
  );
  for (const { step, kind, name, group, value } of each(json)) {
    const info = value['Communication Time Info'];
    const parts = ['Elapse Time(ms)', 'Transit Time(ms)', 'Wait Time(ms)', 'Synchronization Time(ms)', 'Idle Time(ms)'];
    time(name, group, info['Start Timestamp(us)']!, ...parts.map((part) => info[part]!), step, kind);
    for (const [transport, size] of Object.entries(value['Communication Bandwidth Info'])) {
      if (size['Transit Size(MB)'] === 0) continue;
      const packages = Object.entries(size['Size Distribution']).map(([mb, [count, ms]]) => [Number(mb), count, ms] as const);
      for (const [mb, count, ms] of packages.length > 0 ? packages : [[0, 0, 0] as const]) {
        const rates = [size['Transit Size(MB)'], size['Transit Time(ms)'], size['Bandwidth(GB/s)'], size['Large Packet Ratio']] as const;
        bandwidth(name, group, transport, ...rates, mb, count, ms, step, kind);
      }
    }
  }
}

interface Link {
  'Transport Type': string;
  'Transit Size(MB)': number;
  'Transit Time(ms)': number;
  'Bandwidth(GB/s)': number;
  'Op Name'?: string;
}

function writeMatrix(db: Writer, json: Operations<{ [link: string]: Link }>): void {
  const insert = db.table(
    'CommAnalyzerMatrix',
    'hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT',
  );
  for (const { step, kind, name, group, value } of each(json)) {
    for (const [pair, link] of Object.entries(value)) {
      const [from = '', to = ''] = pair.split('-');
      const figures = [link['Transit Size(MB)'], link['Transit Time(ms)'], link['Bandwidth(GB/s)']] as const;
      insert(name, group, from, to, link['Transport Type'], ...figures, step, kind, link['Op Name'] ?? '');
    }
  }
}

import { f64, i32 } from '../../base/columns.ts';
import { messageOf } from '../../base/errors.ts';
import type { Interner } from '../../base/interner.ts';
import type { KernelTable, TraceTables } from '../../model/capture.ts';
import { type DatabaseClock, findClock } from './clock.ts';
import type { Database } from './database.ts';
import { type CollectiveColumns, type DeviceColumns, kernelColumns, readCommunication, readTasks } from './read-device.ts';
import {
  type HostInput,
  type HostTables,
  hostTables,
  type Launches,
  readCann,
  readFrames,
  readOperators,
  readSpans,
  readSteps,
  wantedLaunches,
} from './read-host.ts';
import { type DatabaseMetadata, readMetadata } from './read-metadata.ts';
import { createStrings } from './strings.ts';

/** A table that could not be read to its end. */
export interface Damage {
  readonly table: string;
  readonly why: string;
}

export interface DatabaseCapture {
  readonly originUs: number | null;
  readonly trace: TraceTables | null;
  readonly kernels: KernelTable | null;
  readonly metadata: DatabaseMetadata | null;
  readonly damage: readonly Damage[];
  /** Tables a profile has and this file has not. */
  readonly lacking: readonly string[];
}

const EXPECTED = ['TASK', 'COMPUTE_TASK_INFO', 'PYTORCH_API', 'STRING_IDS'];

/** The main database of a rank. A damaged table costs its own rest, never the others. */
export function readCapture(db: Database, names: Interner): DatabaseCapture {
  const damage: Damage[] = [];
  const guard = <T>(table: string, read: () => T): T | null => {
    try {
      return read();
    } catch (error) {
      damage.push({ table, why: messageOf(error).slice(0, 200) });
      return null;
    }
  };
  const lacking = EXPECTED.filter((name) => db.table(name) === null);
  const metadata = guard('META_DATA', () => readMetadata(db));
  const clock = guard('STEP_TIME', () => findClock(db));
  if (clock === null) return { originUs: null, trace: null, kernels: null, metadata, damage, lacking };
  const { trace, kernels } = readTables(db, clock, names, metadata?.device ?? null, guard);
  const isEmpty = trace.device.name.length + trace.collective.name.length + trace.host.name.length + trace.steps.length === 0;
  return {
    originUs: clock.us,
    trace: isEmpty ? null : { ...trace, truncated: damage.length > 0 },
    kernels,
    metadata,
    damage,
    lacking,
  };
}

type Guard = <T>(table: string, read: () => T) => T | null;

function readTables(
  db: Database,
  clock: DatabaseClock,
  names: Interner,
  device: number | null,
  guard: Guard,
): { trace: TraceTables; kernels: KernelTable | null } {
  const strings = createStrings(db, names);
  const input = { db, clock, names, strings, device };
  const tasks: DeviceColumns = { name: i32(), taskType: i32(), start: f64(), duration: f64(), stream: i32(), connection: f64() };
  const collectives: CollectiveColumns = {
    name: i32(),
    start: f64(),
    duration: f64(),
    row: i32(),
    count: f64(),
    dataType: i32(),
    connection: f64(),
  };
  const kernels = kernelColumns(names, strings);
  const host = hostTables();
  guard('TASK', () => readTasks(input, tasks, kernels));
  guard('COMMUNICATION_OP', () => readCommunication(input, collectives));
  const collectiveName = collectives.name.view();
  collectives.start.view().forEach((start, i) => {
    kernels.pushCollective(collectiveName[i]!, start, collectives.duration.view()[i]!);
  });
  guard('PYTORCH_API', () => readOperators(input, host));
  const steps = guard('STEP_TIME', () => readSteps(input, host)) ?? host.steps;
  const { frames, frameOf } = guard('PYTORCH_CALLCHAINS', () => readFrames(input)) ?? { frames: [], frameOf: new Map<number, number>() };
  const launched = wantedLaunches(tasks.connection.view(), collectives.connection.view());
  const cann = { name: i32(), start: f64(), duration: f64(), tid: i32() };
  guard('CANN_API', () => readCann(input, cann, launched));
  const connected = { opOf: new Map<number, number>(), queue: [] as Queue[] };
  guard('CONNECTION_IDS', () => connect(input, host, launched, connected));
  connected.queue.sort((a, b) => a.start - b.start);
  const lanes = guard('OVERLAP_ANALYSIS', () => readLanes(input)) ?? null;
  const gc = guard('GC_RECORD', () => readSpans(input, 'GC_RECORD')) ?? { start: new Float64Array(), duration: new Float64Array() };

  const order = hostOrder(host);
  const hostNames = host.name.view();
  const starts = host.start.view();
  const durations = host.duration.view();
  const threads = host.tid.view();
  const chains = host.chain.view();
  const launches = new Map<number, Map<number, number>>();
  const issued = new Map<number, { at: number; tid: number }>();
  const issuer = issuerOf(host, order, connected.queue);
  const join = (row: number, start: number, connection: number): void => {
    const launch = launched.of.get(connection) ?? -1;
    const at = launch === -1 ? Number.NaN : launched.at[launch]!;
    const isLaunched = !Number.isNaN(at);
    if (isLaunched) {
      let stream = launches.get(row);
      if (stream === undefined) {
        stream = new Map();
        launches.set(row, stream);
      }
      stream.set(start, at);
    }
    const op = connected.opOf.get(connection);
    const from = op === undefined ? (isLaunched ? issuer(at, launched.tid[launch]!) : null) : { at: starts[op]!, tid: threads[op]! };
    if (from !== null) issued.set(start, from);
  };
  const taskStart = tasks.start.view();
  tasks.stream.view().forEach((stream, i) => {
    join(stream, taskStart[i]!, tasks.connection.view()[i]!);
  });
  const collectiveStart = collectives.start.view();
  collectives.row.view().forEach((row, i) => {
    join(row, collectiveStart[i]!, collectives.connection.view()[i]!);
  });
  return {
    kernels: kernels.table(),
    trace: {
      steps,
      host: {
        name: Int32Array.from(order, (i) => hostNames[i]!),
        start: Float64Array.from(order, (i) => starts[i]!),
        duration: Float64Array.from(order, (i) => durations[i]!),
        tid: Int32Array.from(order, (i) => threads[i]!),
        frame: Int32Array.from(order, (i) => frameOf.get(chains[i]!) ?? -1),
      },
      cann: { name: cann.name.view(), start: cann.start.view(), duration: cann.duration.view(), tid: cann.tid.view() },
      device: {
        name: tasks.name.view(),
        taskType: tasks.taskType.view(),
        start: tasks.start.view(),
        duration: tasks.duration.view(),
        stream: tasks.stream.view(),
      },
      collective: {
        name: collectives.name.view(),
        start: collectives.start.view(),
        duration: collectives.duration.view(),
        row: collectives.row.view(),
        count: collectives.count.view(),
        dataType: collectives.dataType.view(),
      },
      launches,
      issued,
      queue: connected.queue,
      lanes,
      frames,
      gc,
      truncated: false,
    },
  };
}

type Queue = TraceTables['queue'][number];

/** By start, the enclosing operator first. */
function hostOrder(host: HostTables): Uint32Array {
  const start = host.start.view();
  const duration = host.duration.view();
  return Uint32Array.from(start, (_, i) => i).sort((a, b) => start[a]! - start[b]! || duration[b]! - duration[a]! || a - b);
}

/**
 * CONNECTION_IDS gives each operator and each end of the task queue its connections: an operator those of its kernels' launches, the
 * two ends of the queue one in common.
 */
function connect({ db }: HostInput, host: HostTables, launched: Launches, out: { opOf: Map<number, number>; queue: Queue[] }): void {
  const table = db.table('CONNECTION_IDS');
  if (table === null || !table.has('id') || !table.has('connectionId')) return;
  const opOf = new Map<number, number>();
  const links = host.link.view();
  for (let i = 0; i < links.length; i++) if (links[i]! >= 0) opOf.set(links[i]!, i);
  const endOf = new Map<number, number>();
  const queue = {
    start: host.queue.start.view(),
    end: host.queue.end.view(),
    tid: host.queue.tid.view(),
    link: host.queue.link.view(),
    leaves: host.queue.leaves.view(),
  };
  for (let i = 0; i < queue.link.length; i++) if (queue.link[i]! >= 0) endOf.set(queue.link[i]!, i);
  const entered = new Map<number, number>();
  const left = { connection: f64(), end: i32() };
  for (const [id, connection] of db.rows('SELECT "id", "connectionId" FROM "CONNECTION_IDS"')) {
    if (typeof id !== 'number' || typeof connection !== 'number') continue;
    const op = opOf.get(id);
    if (op !== undefined && launched.of.has(connection)) out.opOf.set(connection, op);
    const end = endOf.get(id);
    if (end === undefined) continue;
    if (queue.leaves[end] === 0) entered.set(connection, end);
    else {
      left.connection.push(connection);
      left.end.push(end);
    }
  }
  const ends = left.end.view();
  left.connection.view().forEach((connection, i) => {
    const from = entered.get(connection);
    const end = ends[i]!;
    if (from === undefined) return;
    out.queue.push({
      start: queue.start[end]!,
      end: queue.end[end]!,
      tid: queue.tid[end]!,
      at: queue.start[from]!,
      from: queue.tid[from]!,
    });
  });
}

/** Who asked for a launch that no operator claims (copies): the operator around its enqueue, or around the launch itself. */
function issuerOf(
  host: HostTables,
  order: Uint32Array,
  queue: readonly Queue[],
): (at: number, tid: number) => { at: number; tid: number } | null {
  const start = host.start.view();
  const duration = host.duration.view();
  const tids = host.tid.view();
  const ops = new Map<number, number[]>();
  for (const i of order) {
    const list = ops.get(tids[i]!);
    if (list === undefined) ops.set(tids[i]!, [i]);
    else list.push(i);
  }
  const dequeues = new Map<number, Queue[]>();
  for (const entry of queue) {
    const list = dequeues.get(entry.tid);
    if (list === undefined) dequeues.set(entry.tid, [entry]);
    else list.push(entry);
  }
  /** Last of the list that starts at or before `at`. */
  const before = <T>(list: readonly T[], at: number, startOf: (item: T) => number): number => {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (startOf(list[mid]!) <= at) low = mid + 1;
      else high = mid;
    }
    return low - 1;
  };
  return (at, tid) => {
    const leaving = dequeues.get(tid) ?? [];
    const entry = leaving[before(leaving, at, (q) => q.start)];
    const queued = entry !== undefined && entry.end >= at;
    const instant = queued ? entry.at : at;
    const list = ops.get(queued ? entry.from : tid) ?? [];
    const last = before(list, instant, (i) => start[i]!);
    for (let k = last; k >= 0 && k > last - 40; k--) {
      const op = list[k]!;
      if (start[op]! + duration[op]! >= instant) return { at: start[op]!, tid: tids[op]! };
    }
    return null;
  };
}

/** The lanes that MindStudio Insight adds to a file it opened. */
function readLanes(input: HostInput): TraceTables['lanes'] {
  const table = input.db.table('OVERLAP_ANALYSIS');
  if (table === null || !table.has('type')) return null;
  const lane = (type: number) => readSpans(input, 'OVERLAP_ANALYSIS', ` WHERE "type" = ${type}`);
  const lanes = { computing: lane(0), communication: lane(1), exposed: lane(2), free: lane(3) };
  return lanes.computing.start.length + lanes.communication.start.length === 0 ? null : lanes;
}

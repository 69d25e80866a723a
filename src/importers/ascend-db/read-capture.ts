import { type Column, f64, i32 } from '../../base/columns.ts';
import { messageOf } from '../../base/errors.ts';
import type { Interner } from '../../base/interner.ts';
import { countUpTo, lastRowOf, lookupIn, sortedRows } from '../../base/lookup.ts';
import type { KernelTable, MemoryTables, TraceTables } from '../../model/capture.ts';
import { MAX_TIMELINE_ROWS, type Sample } from '../capture-limit.ts';
import { countRows, type Database } from '../database.ts';
import { moduleCalls } from '../module-calls.ts';
import { type DatabaseClock, findClock } from './clock.ts';
import { readCounters, readFrequency } from './read-counters.ts';
import { type CollectiveColumns, type DeviceColumns, kernelColumns, readCommunication, readTasks } from './read-device.ts';
import {
  countOperators,
  type HostInput,
  type HostTables,
  hostTables,
  type Launches,
  readCann,
  readCopies,
  readFrames,
  readFunctions,
  readModules,
  readOperators,
  readSpans,
  readSteps,
  wantedLaunches,
} from './read-host.ts';
import { readMemory } from './read-memory.ts';
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
  readonly memory: MemoryTables | null;
  readonly metadata: DatabaseMetadata | null;
  readonly damage: readonly Damage[];
  /** Tables a profile has and this file has not. */
  readonly lacking: readonly string[];
  /** Set when only the first steps are kept, because all rows would not fit. */
  readonly limited: { readonly kept: number; readonly all: number } | null;
  readonly sample: Sample;
}

const EXPECTED = ['TASK', 'COMPUTE_TASK_INFO', 'PYTORCH_API', 'STRING_IDS'];

/** The main database of a rank. A damaged table costs its own rest, never the others. */
export function readCapture(
  db: Database,
  names: Interner,
  maxRows: number = MAX_TIMELINE_ROWS,
  wantedDevice: number | null = null,
): DatabaseCapture {
  const damage: Damage[] = [...db.broken];
  const guard = <T>(table: string, read: () => T): T | null => {
    try {
      return read();
    } catch (error) {
      damage.push({ table, why: messageOf(error).slice(0, 200) });
      return null;
    }
  };
  const lacking = EXPECTED.filter((name) => db.table(name) === null && !db.broken.some((b) => b.table === name));
  const metadata = guard('META_DATA', () => readMetadata(db, wantedDevice));
  const device = wantedDevice ?? metadata?.device ?? null;
  const clock = guard('STEP_TIME', () => findClock(db));
  if (clock === null)
    return { originUs: null, trace: null, kernels: null, memory: null, metadata, damage, lacking, limited: null, sample: WHOLE };
  const { trace, kernels, limited, sample } = readTables(db, clock, names, device, guard, maxRows);
  const memory = readMemory({ db, clock, strings: createStrings(db, names), device }, trace.steps, guard);
  const isEmpty = trace.device.name.length + trace.collective.name.length + trace.host.name.length + trace.steps.length === 0;
  return {
    originUs: clock.us,
    trace: isEmpty ? null : { ...trace, truncated: damage.length > 0 },
    kernels,
    memory: memory.tables(),
    metadata,
    damage,
    lacking,
    limited,
    sample,
  };
}

const WHOLE: Sample = { rows: 0, allRows: 0, ns: 0, allNs: 0 };

/** Instant up to which about `maxRows` rows began, with what lies before it; infinite when all fit. ns. */
function lastInstant({ db, clock }: Pick<HostInput, 'db' | 'clock'>, maxRows: number): { until: number; sample: Sample } {
  const all = { until: Number.POSITIVE_INFINITY, sample: WHOLE };
  const task = db.table('TASK');
  const rows = (task === null ? 0 : countRows(db, 'TASK')) + countOperators(db);
  if (rows <= maxRows || task?.has('startNs') !== true) return all;
  const start = clock.sql(task, 'startNs');
  for (const [from, to] of db.rows(`SELECT min(${start}), max(${start}) FROM "TASK"`)) {
    if (typeof from !== 'number' || typeof to !== 'number') continue;
    const ns = ((to - from) * maxRows) / rows;
    return { until: from + ns, sample: { rows: 0, allRows: rows, ns, allNs: to - from } };
  }
  return all;
}

const NO_FUNCTIONS: TraceTables['functions'] = {
  start: new Float64Array(0),
  duration: new Float64Array(0),
  tid: new Int32Array(0),
  frame: new Int32Array(0),
};
const NO_COPIES: TraceTables['copies'] = { start: new Float64Array(0), bytes: new Float64Array(0), direction: new Uint8Array(0) };

type Guard = <T>(table: string, read: () => T) => T | null;

function readTables(
  db: Database,
  clock: DatabaseClock,
  names: Interner,
  device: number | null,
  guard: Guard,
  maxRows: number,
): Pick<DatabaseCapture, 'kernels' | 'limited' | 'sample'> & { trace: TraceTables } {
  const strings = createStrings(db, names);
  const { until, sample } = guard('TASK', () => lastInstant({ db, clock }, maxRows)) ?? { until: Number.POSITIVE_INFINITY, sample: WHOLE };
  const input = { db, clock, names, strings, device, maxRows, until };
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
  guard('TASK_PMU_INFO', () => readCounters(input, kernels));
  const frequency = guard('AICORE_FREQ', () => readFrequency(input)) ?? null;
  const collectiveName = collectives.name.view();
  collectives.start.view().forEach((start, i) => {
    kernels.pushCollective(collectiveName[i]!, start, collectives.duration.view()[i]!);
  });
  guard('PYTORCH_API', () => readOperators(input, host));
  const marks = guard('STEP_TIME', () => readSteps(input, host)) ?? host.steps;
  const steps = marks.filter((s) => s.start + s.duration <= input.until);
  const { frames, frameOf } = guard('PYTORCH_CALLCHAINS', () => readFrames(input)) ?? { frames: [], frameOf: new Map<number, number>() };
  const launched = wantedLaunches(tasks.connection.view(), collectives.connection.view());
  const cann = { name: i32(), start: f64(), duration: f64(), tid: i32() };
  guard('CANN_API', () => readCann(input, cann, launched));
  const connected = connections(launched);
  guard('CONNECTION_IDS', () => readConnections(input, host, launched, connected));
  const queue = queueOf(host, connected);
  const lanes = guard('OVERLAP_ANALYSIS', () => readLanes(input)) ?? null;
  const functions = guard('PYTORCH_API', () => readFunctions(input, frames)) ?? NO_FUNCTIONS;
  const modules = guard('PYTORCH_API', () => readModules(input)) ?? moduleCalls().table();
  const copies = guard('MEMCPY_INFO', () => readCopies(input)) ?? NO_COPIES;
  const gc = guard('GC_RECORD', () => readSpans(input, 'GC_RECORD')) ?? { start: new Float64Array(), duration: new Float64Array() };

  const order = hostOrder(host);
  const starts = host.start.view();
  const threads = host.tid.view();
  const issuer = issuerOf(host, order, queue);
  const issuedBy = (connection: number): { at: number; tid: number } | null => {
    const launch = launched.of(connection);
    if (launch === -1) return null;
    const op = connected.opOf[launch]!;
    if (op !== -1) return { at: starts[op]!, tid: threads[op]! };
    const at = launched.at[launch]!;
    return Number.isNaN(at) ? null : issuer(at, launched.tid[launch]!);
  };
  const work = deviceWork(tasks, collectives);
  const chains = host.chain.view();
  const frame = new Int32Array(order.length);
  for (let i = 0; i < order.length; i++) frame[i] = frameOf.get(chains[order[i]!]!) ?? -1;
  return {
    limited: until === Number.POSITIVE_INFINITY ? null : { kept: steps.length, all: marks.length },
    sample: { ...sample, rows: tasks.start.length + order.length },
    kernels: kernels.table(),
    trace: {
      steps,
      host: {
        name: inOrder(host.name.view(), order, new Int32Array(order.length)),
        start: inOrder(starts, order, new Float64Array(order.length)),
        duration: inOrder(host.duration.view(), order, new Float64Array(order.length)),
        tid: inOrder(threads, order, new Int32Array(order.length)),
        frame,
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
      launches: launchesByLane(work, launched),
      issued: lookupIn(
        work.rows.filter((row) => issuedBy(work.connection(row)) !== null),
        work.start,
        (row) => issuedBy(work.connection(row)) ?? undefined,
      ),
      queue: withCalls(queue, cann.start.view(), cann.tid.view()),
      lanes,
      frames,
      functions,
      modules,
      copies,
      gc,
      frequency,
      truncated: false,
    },
  };
}

function inOrder<A extends Float64Array | Int32Array>(values: ArrayLike<number>, order: Int32Array, out: A): A {
  for (let i = 0; i < order.length; i++) out[i] = values[order[i]!]!;
  return out;
}

/** By start, the enclosing operator first. */
function hostOrder(host: HostTables): Int32Array {
  const start = host.start.view();
  const duration = host.duration.view();
  return sortedRows(start.length, (a, b) => start[a]! - start[b]! || duration[b]! - duration[a]! || a - b);
}

/** Tasks and collectives as one table; `lane` is the stream, or the row of the collective's group. */
interface DeviceWork {
  /** Ascending by start; of equal starts, the later row is found. */
  readonly rows: Int32Array;
  start(row: number): number;
  connection(row: number): number;
  lane(row: number): number;
}

function deviceWork(tasks: DeviceColumns, collectives: CollectiveColumns): DeviceWork {
  const count = tasks.start.length;
  const of =
    (first: Column<Float64Array> | Column<Int32Array>, second: Column<Float64Array> | Column<Int32Array>) =>
    (row: number): number =>
      row < count ? first.at(row) : second.at(row - count);
  const start = of(tasks.start, collectives.start);
  const rows = sortedRows(count + collectives.start.length, (a, b) => start(a) - start(b) || a - b);
  return { rows, start, connection: of(tasks.connection, collectives.connection), lane: of(tasks.stream, collectives.row) };
}

function launchesByLane(work: DeviceWork, launched: Launches): TraceTables['launches'] {
  const at = (row: number): number => {
    const launch = launched.of(work.connection(row));
    return launch === -1 ? Number.NaN : launched.at[launch]!;
  };
  const rowsOf = new Map<number, Column<Int32Array>>();
  for (const row of work.rows) {
    if (Number.isNaN(at(row))) continue;
    let rows = rowsOf.get(work.lane(row));
    if (rows === undefined) {
      rows = i32(16);
      rowsOf.set(work.lane(row), rows);
    }
    rows.push(row);
  }
  return new Map([...rowsOf].map(([lane, rows]) => [lane, lookupIn(rows.take(), work.start, at)] as const));
}

/** Both ends of the task queue put together: a dequeue range with the instant and thread that enqueued it. Ascending by start. */
interface Queue {
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly tid: Float64Array;
  readonly at: Float64Array;
  readonly from: Float64Array;
}

/** What CONNECTION_IDS tells. It gives an operator the connections of its kernels' launches, and the two ends of the queue one in common. */
interface Connections {
  /** Operator of each launch, -1 when none claims it. */
  readonly opOf: Int32Array;
  readonly entered: { readonly connection: Column<Float64Array>; readonly end: Column<Int32Array> };
  readonly left: { readonly connection: Column<Float64Array>; readonly end: Column<Int32Array> };
}

function connections(launched: Launches): Connections {
  return {
    opOf: new Int32Array(launched.at.length).fill(-1),
    entered: { connection: f64(), end: i32() },
    left: { connection: f64(), end: i32() },
  };
}

/** `out` fills as the rows come, so that a damaged end costs only itself. */
function readConnections({ db }: HostInput, host: HostTables, launched: Launches, out: Connections): void {
  const table = db.table('CONNECTION_IDS');
  if (table === null || !table.has('id') || !table.has('connectionId')) return;
  const opAt = lastRowOf(host.link.view());
  const endAt = lastRowOf(host.queue.link.view());
  for (const [id, connection] of db.rows('SELECT "id", "connectionId" FROM "CONNECTION_IDS"')) {
    if (typeof id !== 'number' || typeof connection !== 'number') continue;
    const op = opAt(id);
    const launch = op === -1 ? -1 : launched.of(connection);
    if (launch !== -1) out.opOf[launch] = op;
    const end = endAt(id);
    if (end === -1) continue;
    const side = host.queue.leaves.at(end) === 0 ? out.entered : out.left;
    side.connection.push(connection);
    side.end.push(end);
  }
}

function queueOf({ queue }: HostTables, { entered, left }: Connections): Queue {
  const enteredAt = lastRowOf(entered.connection.view());
  const enters = i32();
  const leaves = i32();
  for (let i = 0; i < left.end.length; i++) {
    const from = enteredAt(left.connection.at(i));
    if (from === -1) continue;
    enters.push(entered.end.at(from));
    leaves.push(left.end.at(i));
  }
  const order = sortedRows(leaves.length, (a, b) => queue.start.at(leaves.at(a)) - queue.start.at(leaves.at(b)) || a - b);
  const column = (values: Column<Float64Array>, ends: Column<Int32Array>): Float64Array => {
    const out = new Float64Array(order.length);
    for (let i = 0; i < order.length; i++) out[i] = values.at(ends.at(order[i]!));
    return out;
  };
  return {
    start: column(queue.start, leaves),
    end: column(queue.end, leaves),
    tid: column(queue.tid, leaves),
    at: column(queue.start, enters),
    from: column(queue.tid, enters),
  };
}

/** Rows by thread, in the order given. */
function byThread(order: Iterable<number>, tidOf: (row: number) => number): Map<number, Int32Array> {
  const lists = new Map<number, Column<Int32Array>>();
  for (const row of order) {
    let list = lists.get(tidOf(row));
    if (list === undefined) {
      list = i32(16);
      lists.set(tidOf(row), list);
    }
    list.push(row);
  }
  return new Map([...lists].map(([tid, list]) => [tid, list.take()] as const));
}

/** Who asked for a launch that no operator claims (copies): the operator around its enqueue, or around the launch itself. */
function issuerOf(host: HostTables, order: Int32Array, queue: Queue): (at: number, tid: number) => { at: number; tid: number } | null {
  const start = host.start.view();
  const duration = host.duration.view();
  const tids = host.tid.view();
  const ops = byThread(order, (i) => tids[i]!);
  const dequeues = byThread(queue.start.keys(), (i) => queue.tid[i]!);
  const none = new Int32Array(0);
  return (at, tid) => {
    const leaving = dequeues.get(tid) ?? none;
    const entry = leaving[countUpTo(leaving, (i) => queue.start[i]!, at) - 1];
    const queued = entry !== undefined && queue.end[entry]! >= at;
    const instant = queued ? queue.at[entry]! : at;
    const list = ops.get(queued ? queue.from[entry]! : tid) ?? none;
    const last = countUpTo(list, (i) => start[i]!, instant) - 1;
    for (let k = last; k >= 0 && k > last - 40; k--) {
      const op = list[k]!;
      if (start[op]! + duration[op]! >= instant) return { at: start[op]!, tid: tids[op]! };
    }
    return null;
  };
}

/** The dequeue ranges that hold a call of CANN that is kept: nobody asks for the others, and there are as many as kernels. */
function withCalls(queue: Queue, callStart: Float64Array, callTid: Int32Array): TraceTables['queue'] {
  const callsOf = byThread(
    sortedRows(callStart.length, (a, b) => callStart[a]! - callStart[b]! || a - b),
    (i) => callTid[i]!,
  );
  const out: TraceTables['queue'][number][] = [];
  for (let i = 0; i < queue.start.length; i++) {
    const calls = callsOf.get(queue.tid[i]!);
    if (calls === undefined) continue;
    const last = calls[countUpTo(calls, (c) => callStart[c]!, queue.end[i]!) - 1];
    if (last === undefined || callStart[last]! < queue.start[i]!) continue;
    out.push({ start: queue.start[i]!, end: queue.end[i]!, tid: queue.tid[i]!, at: queue.at[i]!, from: queue.from[i]! });
  }
  return out;
}

/** The lanes that MindStudio Insight adds to a file it opened. */
function readLanes(input: HostInput): TraceTables['lanes'] {
  const table = input.db.table('OVERLAP_ANALYSIS');
  if (table === null || !table.has('type')) return null;
  const lane = (type: number) => readSpans(input, 'OVERLAP_ANALYSIS', ` WHERE "type" = ${type}`);
  const lanes = { computing: lane(0), communication: lane(1), exposed: lane(2), free: lane(3) };
  return lanes.computing.start.length + lanes.communication.start.length === 0 ? null : lanes;
}

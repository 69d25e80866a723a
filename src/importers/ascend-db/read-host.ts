import { type Column, f64, i32 } from '../../base/columns.ts';
import type { Interner } from '../../base/interner.ts';
import { type Frame, type Spans, TO_DEVICE, TO_HOST, type TraceTables, UNKNOWN_DIRECTION } from '../../model/capture.ts';
import { firstUserFrame, userFunction } from '../call-stack.ts';
import { CANN_KEPT, LONG_FUNCTION, MAX_FUNCTIONS } from '../cann-calls.ts';
import { copiesOf, directionOf } from '../copies.ts';
import { countRows, type Database } from '../database.ts';
import { moduleCalls } from '../module-calls.ts';
import { begun, type DatabaseClock } from './clock.ts';
import type { Strings } from './strings.ts';

const OP = 50_001;
const QUEUE = 50_002;
const PYTHON = 50_003;
const ACL = 20_000;
const RUNTIME = 5_000;
const STEP = /^ProfilerStep#(\d{1,9})$/;
const TID = 4_294_967_295;

export interface HostInput {
  readonly db: Database;
  readonly clock: DatabaseClock;
  readonly names: Interner;
  readonly strings: Strings;
  /** What begins later is left out, ns; infinite when all rows fit. */
  readonly until: number;
  /** Rows that are kept of one table, whatever the instants in it. */
  readonly maxRows: number;
}

/** Framework operators, and the two ends of the task queue, as PYTORCH_API has them. */
export interface HostTables {
  readonly name: Column<Int32Array>;
  readonly start: Column<Float64Array>;
  readonly duration: Column<Float64Array>;
  readonly tid: Column<Float64Array>;
  readonly chain: Column<Float64Array>;
  /** Key into CONNECTION_IDS, -1 when the operator launched nothing. */
  readonly link: Column<Float64Array>;
  /** Both ends of the task queue; `leaves` is 1 for the end that launches. */
  readonly queue: {
    readonly start: Column<Float64Array>;
    readonly end: Column<Float64Array>;
    readonly tid: Column<Float64Array>;
    readonly link: Column<Float64Array>;
    readonly leaves: Column<Int32Array>;
  };
  readonly steps: { id: number; start: number; duration: number; tid: number }[];
}

export function hostTables(): HostTables {
  const queue = { start: f64(), end: f64(), tid: f64(), link: f64(), leaves: i32() };
  return { name: i32(), start: f64(), duration: f64(), tid: f64(), chain: f64(), link: f64(), queue, steps: [] };
}

const integer = (value: unknown): number => (typeof value === 'number' && Number.isInteger(value) ? value : -1);

/** Rows of PYTORCH_API that are read: Python function frames, most of a capture with stacks, are not. */
export function countOperators(db: Database): number {
  const table = db.table('PYTORCH_API');
  if (table === null) return 0;
  return countRows(db, 'PYTORCH_API', table.has('type') ? ` WHERE "type" = ${OP}` : '');
}

/** PYTORCH_API; its instants are text. Python function frames are passed over. */
export function readOperators(input: HostInput, out: HostTables): void {
  const { db, clock, names, strings, maxRows } = input;
  const table = db.table('PYTORCH_API');
  if (table === null || !table.has('startNs') || !table.has('endNs')) return;
  const query = `SELECT ${[
    clock.sql(table, 'startNs'),
    clock.sql(table, 'endNs'),
    `${table.sql('globalTid')} & ${TID}`,
    ...['connectionId', 'name', 'callchainId', 'type'].map((c) => table.sql(c)),
  ].join(', ')} FROM "PYTORCH_API" WHERE ${table.has('type') ? `"type" IN (${OP}, ${QUEUE})` : 'TRUE'}${begun(input, table, 'AND')}`;
  const unnamed = names.text('');
  const leaves = new Map<number, number>();
  const isStep = new Map<number, number>();
  for (const [start, end, thread, link, name, chain, type] of db.rows(query)) {
    if (typeof start !== 'number' || typeof end !== 'number' || end < start) continue;
    const tid = integer(thread);
    const label = strings.intern(name);
    if (type === QUEUE) {
      if (out.queue.start.length >= maxRows) continue;
      let known = leaves.get(label);
      if (known === undefined) {
        known = label >= 0 && /^Dequeue/i.test(names.get(label)) ? 1 : 0;
        leaves.set(label, known);
      }
      out.queue.start.push(start);
      out.queue.end.push(end);
      out.queue.tid.push(tid);
      out.queue.link.push(integer(link));
      out.queue.leaves.push(known);
      continue;
    }
    let step = isStep.get(label);
    if (step === undefined) {
      step = label >= 0 ? Number(STEP.exec(names.get(label))?.[1] ?? Number.NaN) : Number.NaN;
      isStep.set(label, step);
    }
    if (!Number.isNaN(step)) {
      out.steps.push({ id: step, start, duration: end - start, tid });
      continue;
    }
    if (out.name.length >= maxRows) continue;
    out.name.push(label >= 0 ? label : unnamed);
    out.start.push(start);
    out.duration.push(end - start);
    out.tid.push(tid);
    out.chain.push(integer(chain));
    out.link.push(integer(link));
  }
}

/** STEP_TIME, the captured steps; their thread is that of the operator of the same step, else the one with most operators. */
export function readSteps({ db, clock }: HostInput, host: HostTables): TraceTables['steps'] {
  const table = db.table('STEP_TIME');
  const steps: { id: number; start: number; duration: number; tid: number }[] = [];
  if (table?.has('startNs') === true && table.has('endNs') && table.has('id')) {
    const query = `SELECT ${table.sql('id')}, ${clock.sql(table, 'startNs')}, ${clock.sql(table, 'endNs')} FROM "STEP_TIME" LIMIT 100000`;
    for (const [id, start, end] of db.rows(query)) {
      if (typeof start !== 'number' || typeof end !== 'number' || end < start || integer(id) < 0) continue;
      const mark = host.steps.find((s) => s.id === id);
      steps.push({ id: integer(id), start, duration: end - start, tid: mark?.tid ?? Number.NaN });
    }
  }
  if (steps.length === 0) steps.push(...host.steps);
  if (steps.some((s) => Number.isNaN(s.tid))) {
    const main = busiest(host.tid.view());
    for (const step of steps) if (Number.isNaN(step.tid)) step.tid = main;
  }
  return steps.sort((a, b) => a.start - b.start);
}

function busiest(threads: Float64Array): number {
  const counts = new Map<number, number>();
  let best = -1;
  for (const tid of threads) {
    const count = (counts.get(tid) ?? 0) + 1;
    counts.set(tid, count);
    if (best === -1 || count > counts.get(best)!) best = tid;
  }
  return best;
}

/** Chains read in whole, one for each line of the user's code. */
const MAX_WHOLE = 1_000;

/** PYTORCH_CALLCHAINS: the innermost user frame of each chain. Depth 0 is the innermost. */
export function readFrames({ db, strings }: HostInput): { frames: Frame[]; frameOf: Map<number, number> } {
  const frames: Frame[] = [];
  const frameOf = new Map<number, number>();
  const table = db.table('PYTORCH_CALLCHAINS');
  if (table === null || !table.has('id') || !table.has('stack')) return { frames, frameOf };
  const known = new Map<number, number>();
  const ids = new Map<string, number>();
  /** Of every frame the first chain that has it as its user frame. */
  const exampleOf = new Map<number, number>();
  const columns = ['id', 'stack', 'stackDepth'].map((c) => table.sql(c));
  let ordinal = 0;
  const bestOf = new Map<number, number>();
  for (const [chain, stack, depth] of db.rows(`SELECT ${columns.join(', ')} FROM "PYTORCH_CALLCHAINS"`)) {
    if (typeof chain !== 'number' || typeof stack !== 'number') continue;
    let frame = known.get(stack);
    if (frame === undefined) {
      const found = firstUserFrame(strings.text(stack) ?? '');
      frame = found === null ? -1 : idOf(found, ids, frames);
      known.set(stack, frame);
    }
    if (frame === -1) continue;
    const at = typeof depth === 'number' ? depth : ordinal++;
    // A frame of a package stands behind all of the user's own.
    const order = frames[frame]!.isInstalled ? at + PACKAGES_LAST : at;
    if (order < (bestOf.get(chain) ?? Number.POSITIVE_INFINITY)) {
      bestOf.set(chain, order);
      frameOf.set(chain, frame);
    }
  }
  for (const [chain, frame] of frameOf)
    if (Number.isSafeInteger(chain) && !exampleOf.has(frame) && exampleOf.size < MAX_WHOLE) exampleOf.set(frame, chain);
  if (!table.has('stackDepth') || exampleOf.size === 0) return { frames, frameOf };
  const wholes = new Map<number, [depth: number, text: string][]>([...exampleOf.values()].map((chain) => [chain, []]));
  const chosen = `SELECT ${columns.join(', ')} FROM "PYTORCH_CALLCHAINS" WHERE ${columns[0]} IN (${[...wholes.keys()].join(', ')})`;
  for (const [chain, stack, depth] of db.rows(chosen)) {
    const whole = wholes.get(Number(chain));
    if (whole !== undefined && whole.length < MAX_DEPTH) whole.push([Number(depth), strings.text(integer(stack)) ?? '']);
  }
  for (const [frame, chain] of exampleOf) {
    const whole = wholes.get(chain)!.sort((a, b) => a[0] - b[0]);
    const found = firstUserFrame(whole.map(([, text]) => text).join(';\n'));
    if (found !== null && labelOf(found) === labelOf(frames[frame]!)) frames[frame] = found;
  }
  return { frames, frameOf };
}

const MAX_DEPTH = 200;
const PACKAGES_LAST = 1e6;

function idOf(frame: Frame, ids: Map<string, number>, frames: Frame[]): number {
  const label = labelOf(frame);
  const id = ids.get(label) ?? frames.length;
  if (id === frames.length) {
    ids.set(label, id);
    frames.push(frame);
  }
  return id;
}

function labelOf({ file, line, func }: Frame): string {
  return `${file}:${line}:${func}`;
}

/** Long calls of Python functions outside torch; their frames go to `frames`. */
export function readFunctions(input: HostInput, frames: Frame[]): TraceTables['functions'] {
  const { db, clock, strings } = input;
  const out = { start: f64(), duration: f64(), tid: i32(), frame: i32() };
  const table = db.table('PYTORCH_API');
  if (table?.has('startNs') === true && table.has('endNs') && table.has('type')) {
    const [from, to] = [clock.sql(table, 'startNs'), clock.sql(table, 'endNs')];
    const query = `SELECT ${from}, ${to}, ${table.sql('globalTid')} & ${TID}, ${table.sql('name')} FROM "PYTORCH_API" WHERE "type" = ${PYTHON} AND ${to} - ${from} >= ${LONG_FUNCTION}${begun(input, table, 'AND')} LIMIT ${MAX_FUNCTIONS}`;
    const known = new Map<unknown, number>();
    for (const [start, end, thread, name] of db.rows(query)) {
      if (typeof start !== 'number' || typeof end !== 'number') continue;
      let frame = known.get(name);
      if (frame === undefined) {
        const found = userFunction(strings.text(name) ?? '');
        frame = found === null ? -1 : frames.push(found) - 1;
        known.set(name, frame);
      }
      if (frame === -1) continue;
      out.start.push(start);
      out.duration.push(end - start);
      out.tid.push(integer(thread));
      out.frame.push(frame);
    }
  }
  return { start: out.start.view(), duration: out.duration.view(), tid: out.tid.view(), frame: out.frame.view() };
}

/** Forward calls of modules: rows of PYTORCH_API whose name begins so. */
export function readModules(input: HostInput): TraceTables['modules'] {
  const { db, clock, strings } = input;
  const out = moduleCalls();
  const table = db.table('PYTORCH_API');
  if (table?.has('startNs') === true && table.has('endNs') && table.has('type') && table.has('name') && db.table('STRING_IDS') !== null) {
    const named = `SELECT "id" FROM "STRING_IDS" WHERE CASE WHEN octet_length("value") <= 1000 THEN "value" LIKE 'nn.Module: %' END`;
    const [from, to] = [clock.sql(table, 'startNs'), clock.sql(table, 'endNs')];
    const query = `SELECT ${from}, ${to}, ${table.sql('globalTid')} & ${TID}, ${table.sql('name')} FROM "PYTORCH_API" WHERE "type" = ${PYTHON} AND "name" IN (${named})${begun(input, table, 'AND')}`;
    for (const [start, end, thread, name] of db.rows(query)) {
      if (typeof start !== 'number' || typeof end !== 'number' || end < start) continue;
      out.push(strings.text(name) ?? '', start, end - start, integer(thread));
    }
  }
  return out.table();
}

/** MEMCPY_INFO: size and direction of copies, where the export has them. */
export function readCopies(input: HostInput): TraceTables['copies'] {
  const { db, clock } = input;
  const out = { start: f64(), bytes: f64(), direction: i32() };
  const table = db.table('MEMCPY_INFO');
  const task = db.table('TASK');
  if (table?.has('globalTaskId') === true && table.has('size') && task?.has('globalTaskId') === true && task.has('startNs')) {
    const names = new Map<unknown, number>([
      [1, TO_DEVICE],
      [2, TO_HOST],
    ]);
    const kinds = db.table('ENUM_MEMCPY_OPERATION');
    if (kinds?.has('id') === true && kinds.has('name')) {
      for (const [id, name] of db.rows('SELECT "id", substr("name", 1, 60) FROM "ENUM_MEMCPY_OPERATION" LIMIT 1000'))
        names.set(id, directionOf(String(name)));
    }
    const query = `SELECT ${clock.sql(task, 'startNs')}, ${table.sql('size')}, ${table.sql('memcpyOperation')} FROM "MEMCPY_INFO" JOIN "TASK" ON ${table.sql('globalTaskId')} = ${task.sql('globalTaskId')}${begun(input, task, 'WHERE')}`;
    for (const [start, bytes, kind] of db.rows(query)) {
      if (typeof start !== 'number' || typeof bytes !== 'number' || bytes < 0 || out.start.length >= input.maxRows) continue;
      out.start.push(start);
      out.bytes.push(bytes);
      out.direction.push(names.get(kind) ?? UNKNOWN_DIRECTION);
    }
  }
  return copiesOf(out);
}

/** CANN_API: calls worth a row, and the host instant of every launch whose connection is in `launches`: the earliest of each. */
export function readCann(
  input: HostInput,
  out: { name: Column<Int32Array>; start: Column<Float64Array>; duration: Column<Float64Array>; tid: Column<Int32Array> },
  launches: Launches,
): void {
  const { db, clock, names, strings } = input;
  const table = db.table('CANN_API');
  if (table === null || !table.has('startNs') || !table.has('endNs')) return;
  const query = `SELECT ${[
    clock.sql(table, 'startNs'),
    clock.sql(table, 'endNs'),
    `${table.sql('globalTid')} & ${TID}`,
    ...['connectionId', 'name', 'type'].map((c) => table.sql(c)),
  ].join(', ')} FROM "CANN_API"${begun(input, table, 'WHERE')}`;
  const kept = new Map<string, number>();
  for (const [start, end, thread, connection, name, type] of db.rows(query)) {
    if (typeof start !== 'number' || typeof end !== 'number' || end < start) continue;
    const tid = integer(thread);
    if (type === ACL || type === RUNTIME) {
      const key = `${type}/${name}`;
      let label = kept.get(key);
      if (label === undefined) {
        const text = `${type === ACL ? 'AscendCL' : 'Runtime'}@${strings.text(name) ?? ''}`;
        label = CANN_KEPT.test(text) ? names.text(text) : -1;
        kept.set(key, label);
      }
      if (label >= 0) {
        out.name.push(label);
        out.start.push(start);
        out.duration.push(end - start);
        out.tid.push(tid);
      }
    }
    if (type === RUNTIME || typeof connection !== 'number') continue;
    const launch = launches.of(connection);
    if (launch === -1 || launches.at[launch]! <= start) continue;
    launches.at[launch] = start;
    launches.tid[launch] = tid;
  }
}

/** Launches by connection: position of each in `at` and `tid`; NaN until it is found. */
export interface Launches {
  /** Position of a connection, -1 when nothing was launched by it. */
  of(connection: number): number;
  readonly at: Float64Array;
  readonly tid: Float64Array;
}

export function wantedLaunches(...connections: readonly Float64Array[]): Launches {
  const all = new Float64Array(connections.reduce((sum, list) => sum + list.length, 0));
  let filled = 0;
  for (const list of connections) for (const id of list) if (id >= 0) all[filled++] = id;
  const sorted = all.subarray(0, filled).sort();
  let size = 0;
  for (const id of sorted) if (size === 0 || id !== sorted[size - 1]) sorted[size++] = id;
  const of = (connection: number): number => {
    let low = 0;
    let high = size;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (sorted[mid]! < connection) low = mid + 1;
      else high = mid;
    }
    return low < size && sorted[low] === connection ? low : -1;
  };
  return { of, at: new Float64Array(size).fill(Number.NaN), tid: new Float64Array(size).fill(Number.NaN) };
}

/** Spans of a table of instants, e.g. garbage collections; none when it does not exist. */
export function readSpans({ db, clock }: HostInput, name: string, where = ''): Spans {
  const start = f64();
  const duration = f64();
  const table = db.table(name);
  if (table?.has('startNs') === true && table.has('endNs')) {
    const query = `SELECT ${clock.sql(table, 'startNs')}, ${clock.sql(table, 'endNs')} FROM "${name}"${where}`;
    for (const [from, to] of db.rows(query)) {
      if (typeof from !== 'number' || typeof to !== 'number' || to < from) continue;
      start.push(from);
      duration.push(to - from);
    }
  }
  return { start: start.view(), duration: duration.view() };
}

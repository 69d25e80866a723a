import { type Column, f64, i32 } from '../../base/columns.ts';
import type { Interner } from '../../base/interner.ts';
import { lookupIn, sortedRows } from '../../base/lookup.ts';
import { type KernelTable, NO_GROUP } from '../../model/capture.ts';
import type { Database, Table } from '../database.ts';
import { COMMUNICATION, createKernelGroups, type GroupKey, unpackGroups } from '../kernel-groups.ts';
import { opTypeFromName } from '../op-type.ts';
import { begun, type DatabaseClock } from './clock.ts';
import type { Strings } from './strings.ts';

/** "no context" of a task, and of other 32-bit ids. */
const NONE = 4_294_967_295;
const COMMUNICATION_NAME = /^(hcom_|hccl)/i;
/** Tasks without a compute row that are kept beside the kernels: copies, and what marks a stream of HCCL. */
const KEPT_TASK = /memcpy|^(Notify|Write.Value|SDMA_SQE|PCIE_DMA_SQE)/i;

/** Device tasks, each with the id that joins it to its launch. */
export interface DeviceColumns {
  readonly name: Column<Int32Array>;
  readonly taskType: Column<Int32Array>;
  readonly start: Column<Float64Array>;
  readonly duration: Column<Float64Array>;
  readonly stream: Column<Int32Array>;
  readonly connection: Column<Float64Array>;
}

export interface CollectiveColumns {
  readonly name: Column<Int32Array>;
  readonly start: Column<Float64Array>;
  readonly duration: Column<Float64Array>;
  readonly row: Column<Int32Array>;
  readonly count: Column<Float64Array>;
  readonly dataType: Column<Int32Array>;
  readonly connection: Column<Float64Array>;
}

export interface DeviceInput {
  readonly db: Database;
  readonly clock: DatabaseClock;
  readonly names: Interner;
  readonly strings: Strings;
  /** Device of this rank; only asked when the database holds several. */
  readonly device: number | null;
  /** What begins later is left out, ns; infinite when all rows fit. */
  readonly until: number;
  readonly maxRows: number;
}

const number = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN);
const integer = (value: unknown): number => (typeof value === 'number' && Number.isInteger(value) ? value : -1);

/** Condition on the device when the table holds more than one. */
function ofDevice({ db, device }: DeviceInput, table: Table): string {
  if (device === null || !table.has('deviceId')) return '';
  const found = new Set<unknown>();
  for (const [id] of db.rows(`SELECT DISTINCT "deviceId" FROM "${table.name}" LIMIT 64`)) found.add(id);
  return found.size > 1 && found.has(device) ? ` WHERE ${table.sql('deviceId')} = ${device}` : '';
}

const INFO_COLUMNS = [
  ['name'],
  ['opType'],
  ['taskType'],
  ['inputShapes'],
  ['inputFormats'],
  ['inputDataTypes'],
  ['outputShapes'],
  ['outputFormats'],
  ['outputDataTypes'],
  ['blockDim', 'blockNum'],
] as const;

/** TASK with its rows of COMPUTE_TASK_INFO. `columns` and `kernels` fill as the rows come, so that a damaged end costs only itself. */
export function readTasks(input: DeviceInput, columns: DeviceColumns, kernels: KernelColumns): void {
  const { db, clock, names, strings } = input;
  const task = db.table('TASK');
  if (task === null || !task.has('startNs') || !task.has('endNs')) return;
  const info = db.table('COMPUTE_TASK_INFO');
  const joins = info?.has('globalTaskId') === true && task.has('globalTaskId');
  const isWrapper = wrapperTasks(input, task);
  const inner = joins ? [info.sql('globalTaskId'), ...INFO_COLUMNS.map((c) => info.sql(...c))] : [];
  const where = ofDevice(input, task);
  const query = `SELECT ${[
    clock.sql(task, 'startNs'),
    clock.sql(task, 'endNs'),
    ...['taskType', 'streamId', 'connectionId', 'taskId', 'contextId'].map((c) => task.sql(c)),
    ...inner,
  ].join(
    ', ',
  )} FROM "TASK"${joins ? ` LEFT JOIN "COMPUTE_TASK_INFO" ON ${info.sql('globalTaskId')} = ${task.sql('globalTaskId')}` : ''}${where}${begun(input, task, where === '' ? 'WHERE' : 'AND')}`;
  const hasInfo = joins && !empty(db, 'COMPUTE_TASK_INFO');
  const unnamed = names.text('');
  const keptType = new Map<unknown, boolean>();
  for (const row of db.rows(query)) {
    const start = number(row[0]);
    const duration = number(row[1]) - start;
    if (!(duration >= 0)) continue;
    const taskType = strings.intern(row[2]);
    const stream = integer(row[3]);
    const isKernel = joins && row[7] !== null;
    let name = taskType;
    let core = taskType;
    if (isKernel) {
      name = strings.intern(row[8]);
      const own = strings.intern(row[10]);
      if (own >= 0) core = own;
      kernels.push(row, start, duration);
    } else {
      let kept = keptType.get(row[2]);
      if (kept === undefined) {
        kept = !hasInfo || KEPT_TASK.test(strings.text(row[2]) ?? '');
        keptType.set(row[2], kept);
      }
      if (!kept || (row[6] === NONE && isWrapper(row[3], row[5], row[4]))) continue;
    }
    if (start > input.until || columns.name.length >= input.maxRows) continue;
    columns.name.push(name >= 0 ? name : unnamed);
    columns.taskType.push(core);
    columns.start.push(start);
    columns.duration.push(duration);
    columns.stream.push(stream);
    columns.connection.push(integer(row[4]));
  }
}

function empty(db: Database, table: string): boolean {
  for (const _ of db.rows(`SELECT 1 FROM "${table}" LIMIT 1`)) return false;
  return true;
}

/** A task with contexts is a shell around them (mixed kernels, collectives): its time is theirs. True for such a stream, task and connection. */
function wrapperTasks({ db }: DeviceInput, task: Table): (stream: unknown, task: unknown, connection: unknown) => boolean {
  const columns = [f64(), f64(), f64()] as const;
  if (['streamId', 'taskId', 'connectionId', 'contextId'].every((c) => task.has(c))) {
    const query = `SELECT DISTINCT "streamId", "taskId", "connectionId" FROM "TASK" WHERE "contextId" <> ${NONE}`;
    for (const row of db.rows(query)) columns.forEach((column, c) => void column.push(number(row[c])));
  }
  const keys = columns.map((column) => column.take());
  const compare = (row: number, of: (column: number) => number): number => {
    for (let c = 0; c < keys.length; c++) {
      const difference = keys[c]![row]! - of(c);
      if (difference !== 0) return difference;
    }
    return 0;
  };
  const rows = sortedRows(keys[0]!.length, (a, b) => compare(a, (c) => keys[c]![b]!));
  return (...wanted) => {
    const values = wanted.map(number);
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (compare(rows[mid]!, (c) => values[c]!) < 0) low = mid + 1;
      else high = mid;
    }
    return low < rows.length && compare(rows[low]!, (c) => values[c]!) === 0;
  };
}

/** Rows of the kernel table as they are read; `table` puts them in start order. */
export interface KernelColumns {
  push(row: readonly unknown[], start: number, duration: number): void;
  /** A collective: kernel tables list them, too. */
  pushCollective(name: number, start: number, duration: number): void;
  /** Adds a counter of a kernel, named by its task. Call it when all kernels are there. */
  counters(): (task: number, figure: number, share: number) => void;
  table(): KernelTable | null;
}

export function kernelColumns(names: Interner, strings: Strings): KernelColumns {
  const t = {
    name: i32(),
    type: i32(),
    core: i32(),
    start: f64(),
    duration: f64(),
    inputShapes: i32(),
    inputFormats: i32(),
    inputTypes: i32(),
    outputShapes: i32(),
    outputFormats: i32(),
    outputTypes: i32(),
    line: i32(),
    group: i32(),
  };
  const groups = createKernelGroups();
  const key: GroupKey = [0, 0, 0, 0, 0, 0, 0, 0];
  let fromNames = false;
  const typeOfName = new Map<number, number>();
  const isCommunication = new Map<number, number>();
  return {
    push(row, start, duration) {
      const name = strings.intern(row[8]);
      let type = strings.intern(row[9]);
      let communication = isCommunication.get(name);
      if (communication === undefined) {
        communication = name >= 0 && COMMUNICATION_NAME.test(names.get(name)) ? 1 : 0;
        isCommunication.set(name, communication);
      }
      if (type === -1 && name >= 0 && communication === 0) {
        let known = typeOfName.get(name);
        if (known === undefined) {
          known = names.text(opTypeFromName(names.get(name)));
          typeOfName.set(name, known);
        }
        type = known;
        fromNames = true;
      }
      key[0] = type;
      key[1] = strings.intern(row[10]);
      key[2] = strings.intern(row[11]);
      key[3] = strings.intern(row[13]);
      key[4] = strings.intern(row[12]);
      key[5] = strings.intern(row[14]);
      key[6] = strings.intern(row[16]);
      key[7] = strings.intern(row[15]);
      t.name.push(name);
      t.type.push(type);
      t.core.push(key[1]);
      t.start.push(start);
      t.duration.push(duration);
      t.inputShapes.push(key[2]);
      t.inputTypes.push(key[3]);
      t.inputFormats.push(key[4]);
      t.outputShapes.push(key[5]);
      t.outputTypes.push(key[6]);
      t.outputFormats.push(key[7]);
      t.line.push(integer(row[7]));
      const group = communication === 1 ? NO_GROUP : groups.of(key);
      t.group.push(communication === 1 ? COMMUNICATION : group);
      groups.blocks(group, number(row[17]), duration);
    },
    pushCollective(name, start, duration) {
      t.name.push(name);
      t.start.push(start);
      t.duration.push(duration);
      t.group.push(COMMUNICATION);
      for (const column of [
        t.type,
        t.core,
        t.inputShapes,
        t.inputFormats,
        t.inputTypes,
        t.outputShapes,
        t.outputFormats,
        t.outputTypes,
        t.line,
      ])
        column.push(-1);
    },
    counters() {
      const rows = sortedRows(t.line.length, (a, b) => t.line.at(a) - t.line.at(b) || a - b);
      const find = lookupIn(
        rows,
        (row) => t.line.at(row),
        (row) => row,
      );
      return (task, figure, share) => {
        const row = task < 0 ? undefined : find.get(task);
        if (row !== undefined && t.group.at(row) < NO_GROUP) groups.pipe(t.group.at(row), figure, share, t.duration.at(row));
      };
    },
    table() {
      if (t.start.length === 0) return null;
      const starts = t.start.view();
      const order = sortedRows(starts.length, (a, b) => starts[a]! - starts[b]! || a - b);
      const { group, isCommunication } = unpackGroups(t.group.take(order));
      return {
        step: new Int32Array(order.length).fill(-1),
        name: t.name.take(order),
        type: t.type.take(order),
        core: t.core.take(order),
        start: t.start.take(order),
        duration: t.duration.take(order),
        inputShapes: t.inputShapes.take(order),
        inputFormats: t.inputFormats.take(order),
        outputShapes: t.outputShapes.take(order),
        outputFormats: t.outputFormats.take(order),
        inputTypes: t.inputTypes.take(order),
        outputTypes: t.outputTypes.take(order),
        isCommunication,
        line: t.line.take(order),
        group,
        groups: groups.table(),
        typesFromNames: fromNames,
      };
    },
  };
}

/** COMMUNICATION_OP; when it is empty, each operation spans its tasks of COMMUNICATION_TASK_INFO. */
export function readCommunication(input: DeviceInput, columns: CollectiveColumns): void {
  const { db, clock, names, strings } = input;
  const table = db.table('COMMUNICATION_OP');
  const groups = new Map<string, number>();
  const rowOf = (group: string): number => {
    let row = groups.get(group);
    if (row === undefined) {
      row = groups.size;
      groups.set(group, row);
    }
    return row;
  };
  const unnamed = names.text('');
  if (table?.has('startNs') === true && table.has('endNs')) {
    const types = dataTypes(db);
    const own = table.has('deviceId') ? '' : onOwnDevice(input, table);
    const query = `SELECT ${[
      clock.sql(table, 'startNs'),
      clock.sql(table, 'endNs'),
      ...['opName', 'groupName', 'connectionId', 'count', 'dataType'].map((c) => table.sql(c)),
    ].join(', ')} FROM "COMMUNICATION_OP"${own || ofDevice(input, table)}`;
    for (const row of db.rows(query)) {
      const start = number(row[0]);
      const duration = number(row[1]) - start;
      if (!(duration >= 0)) continue;
      const name = strings.intern(row[2]);
      const type = typeof row[6] === 'number' ? types.get(row[6]) : undefined;
      if (start > input.until || columns.name.length >= input.maxRows) continue;
      columns.name.push(name >= 0 ? name : unnamed);
      columns.start.push(start);
      columns.duration.push(duration);
      columns.row.push(rowOf(String(row[3])));
      columns.connection.push(integer(row[4]));
      columns.count.push(number(row[5]));
      columns.dataType.push(type === undefined ? -1 : names.text(type));
    }
  }
  if (columns.start.length === 0) readFromTasks(input, columns, rowOf);
}

/** Without a device column the launch tells: its tasks carry the same connection. */
function onOwnDevice(input: DeviceInput, table: Table): string {
  const task = input.db.table('TASK');
  if (task === null || !task.has('connectionId') || !table.has('connectionId')) return '';
  const where = ofDevice(input, task);
  return where === '' ? '' : ` WHERE ${table.sql('connectionId')} IN (SELECT "connectionId" FROM "TASK"${where})`;
}

function dataTypes(db: Database): Map<number, string> {
  const types = new Map<number, string>();
  const table = db.table('ENUM_HCCL_DATA_TYPE');
  if (table === null || !table.has('id') || !table.has('name')) return types;
  for (const [id, name] of db.rows('SELECT "id", substr("name", 1, 60) FROM "ENUM_HCCL_DATA_TYPE" LIMIT 1000')) {
    if (typeof id === 'number' && typeof name === 'string' && name !== 'N/A' && name !== 'INVALID_TYPE') types.set(id, name);
  }
  return types;
}

function readFromTasks(input: DeviceInput, columns: CollectiveColumns, rowOf: (group: string) => number): void {
  const { db, clock, names, strings } = input;
  const table = db.table('COMMUNICATION_TASK_INFO');
  const task = db.table('TASK');
  if (table === null || task === null || !table.has('globalTaskId') || !task.has('globalTaskId') || !task.has('startNs')) return;
  interface Op {
    readonly name: number;
    readonly row: number;
    start: number;
    end: number;
    connection: number;
  }
  const ops = new Map<string, Op>();
  const opOf = new Map<number, Op>();
  const query = `SELECT ${['globalTaskId', 'name', 'groupName', 'opId'].map((c) => table.sql(c)).join(', ')} FROM "COMMUNICATION_TASK_INFO"`;
  for (const [id, name, group, op] of db.rows(query)) {
    const label = strings.text(name);
    if (typeof id !== 'number' || label === null || !COMMUNICATION_NAME.test(label)) continue;
    const key = `${group}/${op}/${name}`;
    let known = ops.get(key);
    if (known === undefined) {
      known = { name: names.text(label), row: rowOf(String(group)), start: Number.POSITIVE_INFINITY, end: 0, connection: -1 };
      ops.set(key, known);
    }
    opOf.set(id, known);
  }
  if (opOf.size === 0) return;
  const times = `SELECT ${task.sql('globalTaskId')}, ${clock.sql(task, 'startNs')}, ${clock.sql(task, 'endNs')}, ${task.sql('connectionId')} FROM "TASK"${ofDevice(input, task)}`;
  for (const [id, start, end, connection] of db.rows(times)) {
    const op = typeof id === 'number' ? opOf.get(id) : undefined;
    if (op === undefined || typeof start !== 'number' || typeof end !== 'number' || end < start) continue;
    if (start < op.start) op.connection = integer(connection);
    op.start = Math.min(op.start, start);
    op.end = Math.max(op.end, end);
  }
  for (const op of [...ops.values()].sort((a, b) => a.start - b.start)) {
    if (op.start === Number.POSITIVE_INFINITY) continue;
    columns.name.push(op.name);
    columns.start.push(op.start);
    columns.duration.push(op.end - op.start);
    columns.row.push(op.row);
    columns.connection.push(op.connection);
    columns.count.push(Number.NaN);
    columns.dataType.push(-1);
  }
}

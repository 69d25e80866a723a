import { f64, i32 } from '../../base/columns.ts';
import type { Instant } from '../../base/decimal.ts';
import type { Interner } from '../../base/interner.ts';
import { type ApiRow, type HostOpSummary, type KernelTable, NO_GROUP, type OperatorRow } from '../../model/capture.ts';
import { firstUserFrame } from '../call-stack.ts';
import { COMMUNICATION, createKernelGroups, type GroupKey, pipeFigure, unpackGroups } from '../kernel-groups.ts';
import { opTypeFromName } from '../op-type.ts';
import { type CsvRow, cellInstant, cellNumber, cellText, findColumn, scanCsv } from '../scan-csv.ts';
import type { Origin } from './origin.ts';

/** Longer than any capture, µs (three years): not a duration, and sums of it would no longer be exact. */
const MAX_US = 1e14;
const COMMUNICATION_NAME = /^(hcom_|hccl)/i;
const COMMUNICATION_CORE = /^(HCCL|COMMUNICATION)$/i;

/** kernel_details.csv of any level and age; several slices of one table are read as one. */
export async function readKernels(
  slices: readonly AsyncIterable<Buffer>[],
  origin: Origin,
  names: Interner,
  l2: CacheHits | null = null,
  device: number | null = null,
): Promise<{ table: KernelTable; truncated: boolean } | null> {
  const t = {
    step: i32(),
    name: i32(),
    type: i32(),
    core: i32(),
    start: f64(),
    duration: f64(),
    inputShapes: i32(),
    inputFormats: i32(),
    outputShapes: i32(),
    outputFormats: i32(),
    inputTypes: i32(),
    outputTypes: i32(),
    line: i32(),
    group: i32(),
  };
  const groups = createKernelGroups();
  const key: GroupKey = [0, 0, 0, 0, 0, 0, 0, 0];
  const instant: Instant = { us: 0, ns: 0 };
  let fromNames = false;
  const typeOfName = new Map<number, number>();
  const isCommunicationName = new Map<number, boolean>();
  const isCommunicationCore = new Map<number, boolean>();
  const id = (row: CsvRow, column: number): number => {
    if (column < 0 || column >= row.count) return -1;
    const start = row.cells[column * 2]!;
    const end = row.cells[column * 2 + 1]!;
    if (end <= start) return -1;
    // The words for "missing" begin with n; nothing else of that length needs a look.
    if (end - start <= 4 && (row.buf[start]! | 32) === 110 && cellText(row, column) === null) return -1;
    return names.bytes(row.buf, start, end);
  };
  const memo = (cache: Map<number, boolean>, key: number, test: RegExp): boolean => {
    let known = cache.get(key);
    if (known === undefined) {
      known = key >= 0 && test.test(names.get(key));
      cache.set(key, known);
    }
    return known;
  };
  let truncated = false;
  const onHeader = (header: string[]): ((row: CsvRow) => void) | null => {
    const c = {
      step: findColumn(header, 'Step Id', 'Step ID'),
      name: findColumn(header, 'Name', 'Op Name', 'Kernel Name'),
      type: findColumn(header, 'Type', 'OP Type', 'Op Type'),
      core: findColumn(header, 'Accelerator Core', 'Task Type', 'Accelerator'),
      start: findColumn(header, 'Start Time(us)', 'Task Start Time(us)'),
      duration: findColumn(header, 'Duration(us)', 'Task Duration(us)'),
      inputShapes: findColumn(header, 'Input Shapes'),
      inputFormats: findColumn(header, 'Input Formats'),
      outputShapes: findColumn(header, 'Output Shapes'),
      outputFormats: findColumn(header, 'Output Formats'),
      inputTypes: findColumn(header, 'Input Data Types'),
      outputTypes: findColumn(header, 'Output Data Types'),
      blocks: findColumn(header, 'Block Dim', 'Block Num'),
      device: device === null ? -1 : findColumn(header, 'Device_id', 'Device ID'),
      stream: findColumn(header, 'Stream ID'),
      task: findColumn(header, 'Task ID'),
    };
    if (c.name < 0 || c.duration < 0) return null;
    const counters = countersOf(header);
    return (row) => {
      if (c.device >= 0 && cellNumber(row, c.device) !== device) return;
      const duration = cellNumber(row, c.duration);
      if (duration === null || duration < 0 || duration > MAX_US) return;
      const name = id(row, c.name);
      const core = id(row, c.core);
      const communication = memo(isCommunicationCore, core, COMMUNICATION_CORE) || memo(isCommunicationName, name, COMMUNICATION_NAME);
      let type = id(row, c.type);
      if (type === -1 && name >= 0 && !communication) {
        let known = typeOfName.get(name);
        if (known === undefined) {
          known = names.text(opTypeFromName(names.get(name)));
          typeOfName.set(name, known);
        }
        type = known;
        fromNames = true;
      }
      t.step.push(cellNumber(row, c.step) ?? -1);
      t.name.push(name);
      t.type.push(type);
      t.core.push(core);
      t.start.push(cellInstant(row, c.start, instant) ? origin.relative(instant) : Number.NaN);
      t.duration.push(duration * 1000);
      key[0] = type;
      key[1] = core;
      key[2] = id(row, c.inputShapes);
      key[3] = id(row, c.inputTypes);
      key[4] = id(row, c.inputFormats);
      key[5] = id(row, c.outputShapes);
      key[6] = id(row, c.outputTypes);
      key[7] = id(row, c.outputFormats);
      t.inputShapes.push(key[2]);
      t.inputTypes.push(key[3]);
      t.inputFormats.push(key[4]);
      t.outputShapes.push(key[5]);
      t.outputTypes.push(key[6]);
      t.outputFormats.push(key[7]);
      t.line.push(row.line);
      const group = communication ? NO_GROUP : groups.of(key);
      t.group.push(communication ? COMMUNICATION : group);
      if (group === NO_GROUP) return;
      groups.blocks(group, cellNumber(row, c.blocks) ?? Number.NaN, duration * 1000);
      for (const { figure, columns } of counters) {
        let share = Number.NaN;
        for (const column of columns) {
          const part = cellNumber(row, column);
          if (part !== null) share = Number.isNaN(share) ? part : share + part;
        }
        groups.pipe(group, figure, share, duration * 1000);
      }
      if (l2 !== null) groups.l2Hit(group, l2.of(cellNumber(row, c.stream), cellNumber(row, c.task)), duration * 1000);
    };
  };
  for (const chunks of slices) truncated = (await scanCsv(chunks, onHeader)).truncated || truncated;
  if (t.name.length === 0) return null;
  const { group, isCommunication } = unpackGroups(t.group.take());
  return {
    truncated,
    table: {
      step: t.step.take(),
      name: t.name.take(),
      type: t.type.take(),
      core: t.core.take(),
      start: t.start.take(),
      duration: t.duration.take(),
      inputShapes: t.inputShapes.take(),
      inputFormats: t.inputFormats.take(),
      outputShapes: t.outputShapes.take(),
      outputFormats: t.outputFormats.take(),
      inputTypes: t.inputTypes.take(),
      outputTypes: t.outputTypes.take(),
      isCommunication,
      line: t.line.take(),
      group,
      groups: groups.table(),
      typesFromNames: fromNames,
    },
  };
}

/** The columns of pipe counters; ArithmeticUtilization splits a pipe by data type, whose shares add up. */
function countersOf(header: readonly string[]): { readonly figure: number; readonly columns: readonly number[] }[] {
  const whole = new Map<number, number[]>();
  const parts = new Map<number, number[]>();
  header.forEach((name, column) => {
    const found = pipeFigure(name);
    if (found === null) return;
    const of = found.part ? parts : whole;
    of.set(found.figure, [...(of.get(found.figure) ?? []), column]);
  });
  return [...new Map([...parts, ...whole])].map(([figure, columns]) => ({ figure, columns }));
}

/** Hit rates of the L2 cache by stream and task. */
export interface CacheHits {
  /** Rows of the file, and those with a hit rate. */
  readonly rows: number;
  readonly known: number;
  /** NaN when the file does not tell, or tells it of two kernels. */
  of(stream: number | null, task: number | null): number;
}

/** Task numbers start again after 65,536; beyond so many rows most would be ambiguous. */
const MAX_CACHE_ROWS = 500_000;

/** l2_cache.csv: one row per kernel, without its time. */
export async function readCacheHits(chunks: AsyncIterable<Buffer>): Promise<CacheHits> {
  const hits = new Map<number, number>();
  let rows = 0;
  let known = 0;
  const keyOf = (stream: number, task: number): number => stream * 2 ** 32 + task;
  await scanCsv(chunks, (header) => {
    const stream = findColumn(header, 'Stream Id');
    const task = findColumn(header, 'Task Id');
    const hit = findColumn(header, 'Hit Rate');
    if (stream < 0 || task < 0 || hit < 0) return null;
    return (row) => {
      if (++rows > MAX_CACHE_ROWS) return;
      const share = cellNumber(row, hit);
      const key = keyOf(cellNumber(row, stream) ?? Number.NaN, cellNumber(row, task) ?? Number.NaN);
      if (Number.isNaN(key)) return;
      if (share !== null) known++;
      hits.set(key, share === null || hits.has(key) ? Number.NaN : share);
    };
  });
  return {
    rows,
    known,
    of: (stream, task) => (stream === null || task === null ? Number.NaN : (hits.get(keyOf(stream, task)) ?? Number.NaN)),
  };
}

/** op_statistic.csv: whole capture, compute only. */
export async function readOperators(chunks: AsyncIterable<Buffer>, device: number | null = null): Promise<OperatorRow[]> {
  const rows: OperatorRow[] = [];
  await scanCsv(chunks, (header) => {
    const type = findColumn(header, 'OP Type');
    const core = findColumn(header, 'Core Type');
    const count = findColumn(header, 'Count');
    const total = findColumn(header, 'Total Time(us)');
    const of = device === null ? -1 : findColumn(header, 'Device_id', 'Device ID');
    if (type < 0 || total < 0) return null;
    return (row) => {
      if (of >= 0 && cellNumber(row, of) !== device) return;
      if (rows.length < 10_000) {
        rows.push({
          type: cellText(row, type) ?? '',
          core: cellText(row, core) ?? '',
          count: cellNumber(row, count) ?? 0,
          totalUs: cellNumber(row, total) ?? 0,
        });
      }
    };
  });
  return rows;
}

/** api_statistic.csv: whole capture; nested levels double count. */
export async function readApis(chunks: AsyncIterable<Buffer>): Promise<ApiRow[]> {
  const rows: ApiRow[] = [];
  await scanCsv(chunks, (header) => {
    const level = findColumn(header, 'Level');
    const name = findColumn(header, 'API Name');
    const total = findColumn(header, 'Time(us)');
    const count = findColumn(header, 'Count');
    if (name < 0 || total < 0) return null;
    return (row) => {
      if (rows.length < 20_000) {
        rows.push({
          level: cellText(row, level) ?? '',
          name: cellText(row, name) ?? '',
          totalUs: cellNumber(row, total) ?? 0,
          count: cellNumber(row, count) ?? 0,
        });
      }
    };
  });
  return rows;
}

/** operator_details.csv: one row per call, no time stamp; summed by name. */
export async function readHostOps(chunks: AsyncIterable<Buffer>): Promise<HostOpSummary[]> {
  const sums = new Map<string, { count: number; hostTotalUs: number; frame: HostOpSummary['frame'] }>();
  await scanCsv(chunks, (header) => {
    const name = findColumn(header, 'Name');
    const total = findColumn(header, 'Host Total Duration(us)');
    const stack = findColumn(header, 'Call Stack');
    if (name < 0 || total < 0) return null;
    return (row) => {
      const label = cellText(row, name) ?? '';
      let entry = sums.get(label);
      if (entry === undefined) {
        if (sums.size >= 50_000) return;
        const frames = stack >= 0 ? cellText(row, stack) : null;
        entry = { count: 0, hostTotalUs: 0, frame: frames === null ? null : firstUserFrame(frames) };
        sums.set(label, entry);
      }
      entry.count++;
      entry.hostTotalUs += cellNumber(row, total) ?? 0;
    };
  });
  return [...sums].map(([name, s]) => ({ name, ...s }));
}

import { type Column, f64, i32 } from '../../base/columns.ts';
import { union, unionSorted } from '../../base/intervals.ts';
import { lookupIn, sortedRows } from '../../base/lookup.ts';
import { quantile } from '../../base/statistics.ts';
import type { KernelTable, Lookup, RankCapture } from '../../model/capture.ts';
import { COMMUNICATION, COMPUTE, COPY, type Tape } from '../../model/facts.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** Device tasks that are not work of their own: events, notifications, markers, and the inner tasks of collectives. */
const NOT_WORK =
  /^(EVENT_|NOTIFY|Notify|Write Value|Write_Value|PLACE_HOLDER|PROFILING_|Capture|MODEL_|STREAM_|Memcpy$|Reduce_Inline|RDMA|SDMA$)/;
const COPY_NAME = /^(MEMCPY|Memcpy|memcpy)/;

/** Distinct input shapes kept per rank; a job of dynamic shapes has one per step and operator. */
const MAX_SHAPES = 2_000;
const MAX_SHAPE_LENGTH = 200;

/** Dense launches are closer than this; longer distances are loader, sync or user code. */
const DENSE_NS = 2_000_000;

function kindOf(name: string, taskType: string): number {
  if (COPY_NAME.test(name) || taskType === 'PCIE_DMA_SQE' || taskType === 'SDMA_SQE') return COPY;
  if (NOT_WORK.test(name) || NOT_WORK.test(taskType)) return -1;
  return COMPUTE;
}

/** Builds the tape of a rank from its trace, or from kernel_details alone (then without launches). null when neither exists. */
export function buildTape(capture: RankCapture, windows: readonly StepWindow[], syncs: Tape['syncs']): Tape | null {
  const { trace, kernels, names } = capture;
  const kind = i32();
  const stream = i32();
  const start = f64();
  const duration = f64();
  const launch = f64();
  const type = i32();
  const frame = i32();
  const shape = i32();
  const shapes = shapeTable(names, kernels);
  const types: string[] = [];
  const typeIds = new Map<string, number>();
  const typeId = (text: string): number => {
    let id = typeIds.get(text);
    if (id === undefined) {
      id = types.length;
      types.push(text);
      typeIds.set(text, id);
    }
    return id;
  };
  const kernelAt = kernels === null || trace === null || trace.device.name.length === 0 ? null : kernelsByStart(kernels);
  const kernelRow = (at: number): number | undefined => kernelAt?.get(at) ?? kernelAt?.get(at - 1) ?? kernelAt?.get(at + 1);
  const kernelType = (row: number | undefined): string | null => {
    if (row === undefined || kernels === null) return null;
    const id = kernels.type[row]!;
    return id >= 0 ? names.get(id) : null;
  };
  const frameAt = trace === null ? () => -1 : frameFinder(capture);
  const optimizer: [number, number][] = [];

  if (trace !== null && trace.device.name.length > 0) {
    const hcclStreams = new Set<number>();
    for (let i = 0; i < trace.device.name.length; i++) {
      const text = names.get(trace.device.name[i]!);
      if (text.startsWith('Notify') || text.startsWith('Write Value')) hcclStreams.add(trace.device.stream[i]!);
    }
    for (let i = 0; i < trace.device.name.length; i++) {
      const name = names.get(trace.device.name[i]!);
      const taskTypeId = trace.device.taskType[i]!;
      const of = kindOf(name, taskTypeId >= 0 ? names.get(taskTypeId) : '');
      if (of === -1 || (of === COPY && hcclStreams.has(trace.device.stream[i]!))) continue;
      const at = trace.device.start[i]!;
      const issued = trace.issued.get(at);
      kind.push(of);
      stream.push(trace.device.stream[i]!);
      start.push(at);
      duration.push(trace.device.duration[i]!);
      launch.push(trace.launches.get(trace.device.stream[i]!)?.get(at) ?? issued?.at ?? Number.NaN);
      // The same start may differ by 1 ns between kernel_details and the trace.
      const row = of === COPY ? undefined : kernelRow(at);
      type.push(typeId(kernelType(row) ?? name));
      shape.push(shapes.of(row));
      frame.push(issued === undefined ? -1 : frameAt(issued.tid, issued.at));
    }
  } else if (kernels !== null) {
    for (let i = 0; i < kernels.start.length; i++) {
      if (kernels.isCommunication[i] === 1 || Number.isNaN(kernels.start[i]!)) continue;
      kind.push(COMPUTE);
      stream.push(0);
      start.push(kernels.start[i]!);
      duration.push(kernels.duration[i]!);
      launch.push(Number.NaN);
      type.push(typeId(kernelType(i) ?? 'unknown'));
      shape.push(shapes.of(i));
      frame.push(-1);
    }
  }
  const firstCollective = start.length;
  if (trace !== null && trace.collective.name.length > 0) {
    for (let i = 0; i < trace.collective.name.length; i++) {
      const at = trace.collective.start[i]!;
      const issued = trace.issued.get(at);
      kind.push(COMMUNICATION);
      stream.push(-1 - trace.collective.row[i]!);
      start.push(at);
      duration.push(trace.collective.duration[i]!);
      launch.push(trace.launches.get(trace.collective.row[i]!)?.get(at) ?? issued?.at ?? Number.NaN);
      type.push(typeId(names.get(trace.collective.name[i]!)));
      frame.push(issued === undefined ? -1 : frameAt(issued.tid, issued.at));
      shape.push(-1);
    }
  } else if (kernels !== null) {
    for (let i = 0; i < kernels.start.length; i++) {
      if (kernels.isCommunication[i] === 0 || Number.isNaN(kernels.start[i]!)) continue;
      kind.push(COMMUNICATION);
      stream.push(-1);
      start.push(kernels.start[i]!);
      duration.push(kernels.duration[i]!);
      launch.push(Number.NaN);
      type.push(typeId(kernels.name[i]! >= 0 ? names.get(kernels.name[i]!) : 'unknown'));
      shape.push(-1);
      frame.push(-1);
    }
  }
  if (start.length === 0) return null;
  if (trace !== null) {
    for (let i = 0; i < trace.host.name.length; i++) {
      if (names.get(trace.host.name[i]!).startsWith('Optimizer.step#'))
        optimizer.push([trace.host.start[i]!, trace.host.start[i]! + trace.host.duration[i]!]);
    }
  }

  const at = start.view();
  const count = at.length;
  const sorted = !at.some((value, i) => i > 0 && value < at[i - 1]!);
  const order = sorted ? undefined : sortedRows(count, (a, b) => at[a]! - at[b]! || a - b);
  const launches = launch.take(order);
  const starts = start.take(order);
  const durations = duration.take(order);
  const steps = new Int32Array(count);
  const collective = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const found = Number.isNaN(launches[i]!) ? -1 : windowAt(windows, launches[i]!);
    steps[i] = found === -1 ? windowAt(windows, starts[i]!) : found;
    collective[i] = Math.max(-1, (order?.[i] ?? i) - firstCollective);
  }
  return {
    kind: new Uint8Array(kind.take(order)),
    stream: stream.take(order),
    start: starts,
    duration: durations,
    launch: launches,
    type: type.take(order),
    types,
    shape: shape.take(order),
    shapes: shapes.list,
    /** Position in trace order for now; `collectives.ts` replaces it by the index of the matched call. */
    collective,
    step: steps,
    frame: frame.take(order),
    frames: trace?.frames ?? [],
    busy: unionSorted(starts, durations),
    syncs: { start: syncs.start, end: syncs.end, site: syncs.site },
    optimizer: union(optimizer),
    launchInterval: launchIntervalOf(launches),
  };
}

/** Row of the compute kernel that starts at an instant. */
function kernelsByStart({ start, isCommunication }: KernelTable): Lookup<number> {
  const at = (row: number): number => (Number.isNaN(start[row]!) ? Number.MAX_VALUE : start[row]!);
  const all = sortedRows(start.length, (a, b) => at(a) - at(b) || a - b);
  let count = 0;
  for (const row of all) if (isCommunication[row] === 0) all[count++] = row;
  return lookupIn(all.subarray(0, count), at, (row) => row);
}

/** Input shapes of kernel rows as numbers into a bounded list; -1 when unknown or beyond the bound. */
function shapeTable(
  names: RankCapture['names'],
  kernels: RankCapture['kernels'],
): { list: string[]; of: (row: number | undefined) => number } {
  const list: string[] = [];
  const ids = new Map<number, number>();
  return {
    list,
    of(row) {
      const name = row === undefined || kernels === null ? -1 : kernels.inputShapes[row]!;
      if (name < 0) return -1;
      const known = ids.get(name);
      if (known !== undefined) return known;
      if (list.length === MAX_SHAPES) return -1;
      ids.set(name, list.length);
      // The text export quotes the cell, the database does not.
      list.push(names.get(name).replaceAll('"', '').slice(0, MAX_SHAPE_LENGTH));
      return list.length - 1;
    },
  };
}

function launchIntervalOf(launches: Float64Array): number {
  // NaN sorts last.
  const known = launches.slice().sort();
  const gaps = f64(16);
  for (let i = 1; i < known.length && !Number.isNaN(known[i]!); i++) {
    const gap = known[i]! - known[i - 1]!;
    if (gap > 0 && gap < DENSE_NS) gaps.push(gap);
  }
  return gaps.length < 20 ? Number.NaN : quantile(gaps.take(), 0.5);
}

/** Looks up the call stack frame of the innermost host op that covers an instant on a thread. */
export function frameFinder(capture: RankCapture): (tid: number, at: number) => number {
  const host = capture.trace!.host;
  const columns = new Map<number, Column<Int32Array>>();
  for (let i = 0; i < host.name.length; i++) {
    if (host.frame[i] === -1) continue;
    let column = columns.get(host.tid[i]!);
    if (column === undefined) {
      column = i32(16);
      columns.set(host.tid[i]!, column);
    }
    column.push(i);
  }
  const byThread = new Map<number, Int32Array>();
  for (const [tid, column] of columns) {
    const rows = column.take();
    const ascends = rows.every((row, i) => i === 0 || host.start[rows[i - 1]!]! <= host.start[row]!);
    byThread.set(tid, ascends ? rows : rows.sort((x, y) => host.start[x]! - host.start[y]! || x - y));
  }
  return (tid, at) => {
    const list = byThread.get(tid);
    if (list === undefined) return -1;
    let low = 0;
    let high = list.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (host.start[list[mid]!]! <= at) low = mid + 1;
      else high = mid;
    }
    for (let k = low - 1; k >= 0 && k > low - 40; k--) {
      const op = list[k]!;
      if (host.start[op]! + host.duration[op]! >= at) return host.frame[op]!;
    }
    return -1;
  };
}

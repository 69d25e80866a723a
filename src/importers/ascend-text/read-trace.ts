import { type Column, f64, i32 } from '../../base/columns.ts';
import { type Instant, parseInstant, parseNumber } from '../../base/decimal.ts';
import { createInterner, type Interner } from '../../base/interner.ts';
import { sortedRows } from '../../base/lookup.ts';
import type { Frame, Spans, TraceTables } from '../../model/capture.ts';
import { firstUserFrame, userFunction } from '../call-stack.ts';
import { CANN_KEPT, LONG_FUNCTION, MAX_FUNCTIONS } from '../cann-calls.ts';
import { MAX_TIMELINE_ROWS, type Sample } from '../capture-limit.ts';
import { copiesOf, directionOf } from '../copies.ts';
import { frequencyOf, MAX_MHZ } from '../frequency.ts';
import { isModule, moduleCalls } from '../module-calls.ts';
import { findArg, type RawEvent, type ScanResult, scanTrace } from '../scan-trace.ts';
import { createFlows, type Flows } from './flows.ts';
import type { Origin } from './origin.ts';

const X = 88;
const M = 77;
const COUNTER = 67;
const FLOW_START = 115;
const FLOW_END = 102;

const key = (text: string): Uint8Array => new TextEncoder().encode(text);
const K_TASK_TYPE = key('Task Type');
const K_STACK = key('Call stack');
const K_NAME = key('name');
const K_LABELS = key('labels');
const K_COUNT = key('count');
const K_CORRELATION = key('correlation_id');
const K_DATA_TYPE = key('data_type');
const K_BYTES = key('data size(Byte)');
const K_DIRECTION = key('memcpy direction');
const K_MHZ = key('MHz');
const FREQUENCY = key('AI Core Freq');
/** Changes of the frequency that are kept; a clock that changes every 10 µs for a second. */
const MAX_CHANGES = 100_000;

/** Longer than any capture, ns (three years): not a duration, and sums of it would no longer be exact. */
const MAX_NS = 1e17;

const DEVICE_LABEL = /^NPU\s*(\d{1,4})$/;

type Lane = 'python' | 'cann' | 'device' | 'communication' | 'overlap' | 'gc' | 'other';

function laneOf(processName: string): Lane {
  switch (processName) {
    case 'Python':
      return 'python';
    case 'CANN':
      return 'cann';
    case 'Ascend Hardware':
      return 'device';
    case 'HCCL':
    case 'Communication':
      return 'communication';
    case 'Overlap Analysis':
      return 'overlap';
    case 'Python GC':
      return 'gc';
    default:
      return 'other';
  }
}

/** Generic rows of one process until its name is known; metadata may come after the events. */
function rows() {
  return {
    name: i32(),
    start: f64(),
    duration: f64(),
    tid: f64(),
    taskType: i32(),
    frame: i32(),
    /** Rows that have either, and what they have. */
    sized: i32(),
    count: f64(),
    dataType: i32(),
  };
}

/** Drops the rows that start after `cut`. */
function keepUntil(table: ReturnType<typeof rows>, cut: number): void {
  const { name, start, duration, tid, taskType, frame, sized, count, dataType } = table;
  let kept = 0;
  let from = 0;
  let to = 0;
  for (let i = 0; i < name.length; i++) {
    const has = from < sized.length && sized.at(from) === i;
    if (start.at(i) <= cut) {
      for (const column of [name, start, duration, tid, taskType, frame]) column.set(kept, column.at(i));
      if (has) {
        sized.set(to, kept);
        count.set(to, count.at(from));
        dataType.set(to, dataType.at(from));
        to++;
      }
      kept++;
    }
    if (has) from++;
  }
  for (const column of [name, start, duration, tid, taskType, frame]) column.truncate(kept);
  for (const column of [sized, count, dataType]) column.truncate(to);
}

type SpanColumns = { readonly start: Column<Float64Array>; readonly duration: Column<Float64Array> };

function spanColumns(): SpanColumns {
  return { start: f64(), duration: f64() };
}

function spansOf({ start, duration }: SpanColumns): Spans {
  return { start: start.view(), duration: duration.view() };
}

type Calls = { readonly start: Column<Float64Array>; readonly tid: Column<Int32Array> };
type Dequeued = { readonly start: Column<Float64Array>; readonly end: Column<Float64Array>; readonly tid: Column<Float64Array> };

/** The dequeue ranges that hold a call of CANN: what else was dequeued, nobody asks for, and there are as many as kernels. */
function queueOf(dequeued: Dequeued, queued: Flows, calls: Calls): TraceTables['queue'] {
  const order = sortedRows(calls.start.length, (a, b) => calls.start.at(a) - calls.start.at(b));
  const enqueues = queued.byEnd();
  const queue: TraceTables['queue'][number][] = [];
  for (let i = 0; i < dequeued.start.length; i++) {
    const start = dequeued.start.at(i);
    const end = dequeued.end.at(i);
    const tid = dequeued.tid.at(i);
    let low = 0;
    let high = order.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (calls.start.at(order[mid]!) < start) low = mid + 1;
      else high = mid;
    }
    let holds = false;
    for (; low < order.length && !holds && calls.start.at(order[low]!) <= end; low++) holds = calls.tid.at(order[low]!) === tid;
    const from = holds ? enqueues.get(start) : undefined;
    if (from !== undefined) queue.push({ start, end, tid, at: from.at, from: from.tid });
  }
  return queue.sort((a, b) => a.start - b.start);
}

function sameBytes(buf: Buffer, start: number, end: number, wanted: Uint8Array): boolean {
  if (start < 0 || end - start !== wanted.length) return false;
  for (let i = 0; i < wanted.length; i++) if (buf[start + i] !== wanted[i]) return false;
  return true;
}

async function scanSlices(slices: readonly AsyncIterable<Buffer>[], onEvent: (ev: RawEvent) => void): Promise<ScanResult> {
  const all: ScanResult = { events: 0, bytes: 0, truncated: false, lastGoodByte: 0 };
  for (const chunks of slices) {
    const one = await scanTrace(chunks, onEvent);
    // The place of damage is told inside the slice that has it.
    if (one.truncated || !all.truncated) all.lastGoodByte = one.lastGoodByte;
    all.events += one.events;
    all.bytes += one.bytes;
    all.truncated ||= one.truncated;
  }
  return all;
}

/** Reads trace_view.json, or the slices of one. Short Python functions, counters and plane tasks are passed over. */
export async function readTrace(
  slices: readonly AsyncIterable<Buffer>[],
  origin: Origin,
  names: Interner,
  maxRows: number = MAX_TIMELINE_ROWS,
  wantedDevice: number | null = null,
): Promise<{ tables: TraceTables; scan: ScanResult; limited: { kept: number; all: number } | null; sample: Sample; isGpu: boolean }> {
  const cats = createInterner();
  const CAT_CPU_OP = cats.text('cpu_op');
  const CAT_PYTHON = cats.text('python_function');
  const CAT_HOST_TO_DEVICE = cats.text('HostToDevice');
  const CAT_ASYNC_NPU = cats.text('async_npu');
  const CAT_ANNOTATION = cats.text('user_annotation');
  const CAT_ENQUEUE = cats.text('enqueue');
  const CAT_DEQUEUE = cats.text('dequeue');
  const queued = createFlows({ start: 'last', end: 'every' });
  const dequeued = { start: f64(), end: f64(), tid: f64() };
  const processes = new Map<number, ReturnType<typeof rows>>();
  const processName = new Map<number, string>();
  /** Device of a lane; host lanes have none. */
  const deviceOf = new Map<number, number>();
  const threadName = new Map<string, string>();
  const launched = createFlows({ start: 'first', end: 'every' });
  const asked = createFlows({ start: 'last', end: 'last' });
  const frames: Frame[] = [];
  const frameIds = new Map<string, number>();
  const functions = { start: f64(), duration: f64(), tid: i32(), frame: i32() };
  const modules = moduleCalls();
  const copies = { start: f64(), bytes: f64(), direction: i32() };
  const stackIds = createInterner(200_000);
  const frameOfStack: number[] = [];
  const steps: { id: number; start: number; duration: number; tid: number }[] = [];
  const instant: Instant = { us: 0, ns: 0 };
  const frequency = { at: f64(16), mhz: f64(16) };
  const stepName = /^ProfilerStep#(\d+)$/;
  const isStep = new Map<number, number>();
  const keptCann = new Map<number, boolean>();
  let rowCount = 0;
  /** All rows that were wanted, kept or not. */
  const seen = { rows: 0, first: Number.POSITIVE_INFINITY, last: Number.NEGATIVE_INFINITY };
  /** What starts later is left out; lowered whenever the rows do not fit. */
  let cut = Number.POSITIVE_INFINITY;
  const shrink = (): void => {
    let largest: ReturnType<typeof rows> | null = null;
    for (const table of processes.values()) if (largest === null || table.name.length > largest.name.length) largest = table;
    const starts = largest!.start.view().slice().sort();
    cut = starts[starts.length >> 1]!;
    rowCount = 0;
    for (const table of processes.values()) {
      keepUntil(table, cut);
      rowCount += table.name.length;
    }
    // All rows at one instant: that is no capture.
    if (rowCount >= maxRows) cut = Number.NEGATIVE_INFINITY;
  };

  const isKept = (name: number): boolean => {
    let kept = keptCann.get(name);
    if (kept === undefined) {
      kept = CANN_KEPT.test(names.get(name));
      keptCann.set(name, kept);
    }
    return kept;
  };
  const number = (ev: RawEvent, start: number, end: number): number => (start < 0 ? Number.NaN : parseNumber(ev.buf, start, end));
  const argText = (ev: RawEvent, name: Uint8Array): string | null => {
    const at = findArg(ev, name);
    return at === -1 ? null : ev.buf.toString('utf8', ev.args[at]!, ev.args[at + 1]!);
  };
  const argNumber = (ev: RawEvent, name: Uint8Array): number => {
    const at = findArg(ev, name);
    return at === -1 ? Number.NaN : parseNumber(ev.buf, ev.args[at]!, ev.args[at + 1]!);
  };
  const argId = (ev: RawEvent, name: Uint8Array): number => {
    const at = findArg(ev, name);
    return at === -1 ? -1 : names.bytes(ev.buf, ev.args[at]!, ev.args[at + 1]!);
  };
  /** A stack is cut to its first 16 kB; the innermost frames come first. */
  const frameOf = (ev: RawEvent): number => {
    const at = findArg(ev, K_STACK);
    if (at === -1) return -1;
    const start = ev.args[at]!;
    const end = Math.min(ev.args[at + 1]!, start + 16_384);
    const before = stackIds.size;
    const id = stackIds.bytes(ev.buf, start, end);
    if (id < before) return frameOfStack[id] ?? -1;
    const frameId = frameIdOf(firstUserFrame(ev.buf.toString('utf8', start, end)));
    frameOfStack[id] = frameId;
    return frameId;
  };
  const frameIdOf = (frame: Frame | null): number => {
    if (frame === null) return -1;
    const label = `${frame.file}:${frame.line}:${frame.func}`;
    const known = frameIds.get(label);
    if (known !== undefined) return known;
    frameIds.set(label, frames.length);
    frames.push(frame);
    return frames.length - 1;
  };
  /** Python functions are as many as Python runs: only the long calls become rows. */
  const onFunction = (ev: RawEvent, start: number, tid: number): void => {
    const duration = number(ev, ev.durStart, ev.durEnd) * 1000;
    if (duration >= 0 && duration <= MAX_NS && start <= cut && ev.nameStart >= 0 && isModule(ev.buf, ev.nameStart, ev.nameEnd))
      modules.push(ev.buf.toString('utf8', ev.nameStart, Math.min(ev.nameEnd, ev.nameStart + 1_000)), start, duration, tid);
    if (!(duration >= LONG_FUNCTION && duration <= MAX_NS) || start > cut || functions.start.length >= MAX_FUNCTIONS) return;
    const frame =
      ev.nameStart < 0 ? -1 : frameIdOf(userFunction(ev.buf.toString('utf8', ev.nameStart, Math.min(ev.nameEnd, ev.nameStart + 1_000))));
    if (frame === -1) return;
    functions.start.push(start);
    functions.duration.push(duration);
    functions.tid.push(tid);
    functions.frame.push(frame);
  };

  const onEvent = (ev: RawEvent): void => {
    const ph = ev.ph;
    if (ph === X) {
      if (ev.tsStart < 0 || !parseInstant(ev.buf, ev.tsStart, ev.tsEnd, instant)) return;
      const cat = ev.catStart < 0 ? -1 : cats.bytes(ev.buf, ev.catStart, ev.catEnd);
      const start = origin.relative(instant);
      if (cat === CAT_PYTHON) {
        onFunction(ev, start, number(ev, ev.tidStart, ev.tidEnd));
        return;
      }
      const duration = number(ev, ev.durStart, ev.durEnd) * 1000;
      if (!(duration >= 0 && duration <= MAX_NS)) return;
      const pid = number(ev, ev.pidStart, ev.pidEnd);
      const tid = number(ev, ev.tidStart, ev.tidEnd);
      if ((cat === CAT_ENQUEUE || cat === CAT_DEQUEUE) && start > cut) return;
      if (cat === CAT_ENQUEUE || cat === CAT_DEQUEUE) {
        const id = findArg(ev, K_CORRELATION);
        if (id === -1) return;
        if (cat === CAT_ENQUEUE) queued.start(ev.buf, ev.args[id]!, ev.args[id + 1]!, start, tid);
        else {
          queued.end(ev.buf, ev.args[id]!, ev.args[id + 1]!, start, tid);
          dequeued.start.push(start);
          dequeued.end.push(start + duration);
          dequeued.tid.push(tid);
        }
        return;
      }
      const name = ev.nameStart < 0 ? names.text('') : names.bytes(ev.buf, ev.nameStart, ev.nameEnd);
      if (cat === CAT_CPU_OP || cat === CAT_ANNOTATION) {
        let step = isStep.get(name);
        if (step === undefined) {
          step = Number(stepName.exec(names.get(name))?.[1] ?? Number.NaN);
          isStep.set(name, step);
        }
        if (!Number.isNaN(step)) {
          steps.push({ id: step, start, duration, tid });
          return;
        }
      }
      // Most calls of CANN are launches that no table wants; where its name comes first, they need not be kept until the end.
      if (cat !== CAT_CPU_OP && processName.get(pid) === 'CANN' && !isKept(name)) return;
      seen.rows++;
      if (start < seen.first) seen.first = start;
      if (start > seen.last) seen.last = start;
      if (start > cut) return;
      let table = processes.get(pid);
      if (table === undefined) {
        if (processes.size >= 4096) return;
        table = rows();
        processes.set(pid, table);
      }
      table.name.push(name);
      table.start.push(start);
      table.duration.push(duration);
      table.tid.push(tid);
      if (cat === CAT_CPU_OP || cat === CAT_ANNOTATION) {
        table.taskType.push(-2);
        table.frame.push(frameOf(ev));
      } else {
        table.taskType.push(cat === -1 ? argId(ev, K_TASK_TYPE) : -3);
        table.frame.push(-1);
        const count = argNumber(ev, K_COUNT);
        const dataType = argId(ev, K_DATA_TYPE);
        const bytes = cat === -1 ? argNumber(ev, K_BYTES) : Number.NaN;
        if (bytes >= 0) {
          copies.start.push(start);
          copies.bytes.push(bytes);
          copies.direction.push(directionOf(argText(ev, K_DIRECTION) ?? ''));
        }
        if (!Number.isNaN(count) || dataType !== -1) {
          table.sized.push(table.name.length - 1);
          table.count.push(count);
          table.dataType.push(dataType);
        }
      }
      if (++rowCount > maxRows) shrink();
      return;
    }
    if (ph === FLOW_START || ph === FLOW_END) {
      const cat = ev.catStart < 0 ? -1 : cats.bytes(ev.buf, ev.catStart, ev.catEnd);
      if (cat === CAT_HOST_TO_DEVICE) {
        // Ids are the connection id, or (connection id << 32) − 1, beyond 2^53: the raw digits are the key.
        if (ev.idStart >= 0 && ev.tsStart >= 0 && parseInstant(ev.buf, ev.tsStart, ev.tsEnd, instant)) {
          const at = origin.relative(instant);
          if (at > cut) return;
          const tid = number(ev, ev.tidStart, ev.tidEnd);
          if (ph === FLOW_START) launched.start(ev.buf, ev.idStart, ev.idEnd, at, tid);
          else launched.end(ev.buf, ev.idStart, ev.idEnd, at, tid);
        }
      } else if (cat === CAT_ASYNC_NPU && ev.tsStart >= 0 && parseInstant(ev.buf, ev.tsStart, ev.tsEnd, instant)) {
        // Flow ids exceed 2^53; the raw digits are the join key.
        const from = Math.max(0, ev.idStart);
        const to = ev.idStart < 0 ? 0 : ev.idEnd;
        const at = origin.relative(instant);
        if (at > cut) return;
        const tid = number(ev, ev.tidStart, ev.tidEnd);
        if (ph === FLOW_START) asked.start(ev.buf, from, to, at, tid);
        else asked.end(ev.buf, from, to, at, tid);
      }
      return;
    }
    if (ph === COUNTER) {
      if (!sameBytes(ev.buf, ev.nameStart, ev.nameEnd, FREQUENCY) || ev.tsStart < 0) return;
      if (wantedDevice !== null && (deviceOf.get(number(ev, ev.pidStart, ev.pidEnd)) ?? wantedDevice) !== wantedDevice) return;
      const mhz = argNumber(ev, K_MHZ);
      if (!(mhz > 0 && mhz <= MAX_MHZ) || !parseInstant(ev.buf, ev.tsStart, ev.tsEnd, instant)) return;
      // The same value again changes nothing.
      if (frequency.mhz.length >= MAX_CHANGES || frequency.mhz.at(frequency.mhz.length - 1) === mhz) return;
      frequency.at.push(origin.relative(instant));
      frequency.mhz.push(mhz);
      return;
    }
    if (ph === M) {
      const name = ev.nameStart < 0 ? '' : ev.buf.toString('utf8', ev.nameStart, ev.nameEnd);
      if (name !== 'process_name' && name !== 'thread_name' && name !== 'process_labels') return;
      const pid = number(ev, ev.pidStart, ev.pidEnd);
      if (name === 'process_labels') {
        const label = DEVICE_LABEL.exec(argText(ev, K_LABELS) ?? '')?.[1];
        if (label !== undefined && deviceOf.size < 4096) deviceOf.set(pid, Number(label));
        return;
      }
      const text = argText(ev, K_NAME) ?? '';
      if (name === 'process_name') processName.set(pid, text);
      else if (threadName.size < 100_000) threadName.set(`${pid}/${number(ev, ev.tidStart, ev.tidEnd)}`, text);
    }
  };

  const scan = await scanSlices(slices, onEvent);
  const host = { name: i32(), start: f64(), duration: f64(), tid: i32(), frame: i32() };
  const cann = { name: i32(), start: f64(), duration: f64(), tid: i32() };
  const device = { name: i32(), taskType: i32(), start: f64(), duration: f64(), stream: i32() };
  const collective = { name: i32(), start: f64(), duration: f64(), row: i32(), count: f64(), dataType: i32() };
  const lanes = { computing: spanColumns(), communication: spanColumns(), exposed: spanColumns(), free: spanColumns() };
  const gc = spanColumns();
  let hasLanes = false;

  for (const [pid, table] of processes) {
    if (wantedDevice !== null && (deviceOf.get(pid) ?? wantedDevice) !== wantedDevice) {
      processes.delete(pid);
      continue;
    }
    const lane = laneOf(processName.get(pid) ?? '');
    const name = table.name.view();
    const start = table.start.view();
    const duration = table.duration.view();
    const tid = table.tid.view();
    const taskType = table.taskType.view();
    let sized = 0;
    for (let i = 0; i < name.length; i++) {
      if (lane === 'python' || (lane === 'other' && taskType[i] === -2)) {
        if (taskType[i] !== -2) continue;
        host.name.push(name[i]!);
        host.start.push(start[i]!);
        host.duration.push(duration[i]!);
        host.tid.push(tid[i]!);
        host.frame.push(table.frame.at(i));
      } else if (lane === 'cann') {
        if (!isKept(name[i]!)) continue;
        cann.name.push(name[i]!);
        cann.start.push(start[i]!);
        cann.duration.push(duration[i]!);
        cann.tid.push(tid[i]!);
      } else if (lane === 'device') {
        device.name.push(name[i]!);
        device.taskType.push(taskType[i]!);
        device.start.push(start[i]!);
        device.duration.push(duration[i]!);
        device.stream.push(tid[i]!);
      } else if (lane === 'communication') {
        if (!/Communication/.test(threadName.get(`${pid}/${tid[i]}`) ?? '')) continue;
        collective.name.push(name[i]!);
        collective.start.push(start[i]!);
        collective.duration.push(duration[i]!);
        collective.row.push(tid[i]!);
        while (sized < table.sized.length && table.sized.at(sized) < i) sized++;
        const has = sized < table.sized.length && table.sized.at(sized) === i;
        collective.count.push(has ? table.count.at(sized) : Number.NaN);
        collective.dataType.push(has ? table.dataType.at(sized) : -1);
      } else if (lane === 'overlap') {
        hasLanes = true;
        const text = names.get(name[i]!);
        const of =
          text === 'Computing'
            ? lanes.computing
            : text === 'Communication'
              ? lanes.communication
              : text === 'Communication(Not Overlapped)'
                ? lanes.exposed
                : text === 'Free'
                  ? lanes.free
                  : null;
        of?.start.push(start[i]!);
        of?.duration.push(duration[i]!);
      } else if (lane === 'gc') {
        gc.start.push(start[i]!);
        gc.duration.push(duration[i]!);
      }
    }
    processes.delete(pid);
  }
  steps.sort((a, b) => a.start - b.start);
  const whole = steps.filter((s) => s.start + s.duration <= cut);
  const queue = queueOf(dequeued, queued, cann);

  const tables: TraceTables = {
    steps: whole,
    host: {
      name: host.name.view(),
      start: host.start.view(),
      duration: host.duration.view(),
      tid: host.tid.view(),
      frame: host.frame.view(),
    },
    cann: { name: cann.name.view(), start: cann.start.view(), duration: cann.duration.view(), tid: cann.tid.view() },
    device: {
      name: device.name.view(),
      taskType: device.taskType.view(),
      start: device.start.view(),
      duration: device.duration.view(),
      stream: device.stream.view(),
    },
    collective: {
      name: collective.name.view(),
      start: collective.start.view(),
      duration: collective.duration.view(),
      row: collective.row.view(),
      count: collective.count.view(),
      dataType: collective.dataType.view(),
    },
    launches: launched.byThread(),
    issued: asked.byEnd(),
    queue,
    lanes: hasLanes
      ? {
          computing: spansOf(lanes.computing),
          communication: spansOf(lanes.communication),
          exposed: spansOf(lanes.exposed),
          free: spansOf(lanes.free),
        }
      : null,
    frames,
    modules: modules.table(),
    functions: {
      start: functions.start.view(),
      duration: functions.duration.view(),
      tid: functions.tid.view(),
      frame: functions.frame.view(),
    },
    copies: copiesOf(copies),
    gc: spansOf(gc),
    frequency: frequencyOf(frequency),
    truncated: scan.truncated,
  };
  // Categories of CUPTI and ROCm; an Ascend trace has none for its kernels.
  const isGpu = tables.device.name.length === 0 && ['kernel', 'cuda_runtime', 'gpu_memcpy'].some((cat) => cats.find(cat) !== -1);
  const sample = {
    rows: rowCount,
    allRows: seen.rows,
    ns: Math.max(0, Math.min(cut, seen.last) - seen.first) || 0,
    allNs: Math.max(0, seen.last - seen.first) || 0,
  };
  return { tables, scan, limited: cut === Number.POSITIVE_INFINITY ? null : { kept: whole.length, all: steps.length }, sample, isGpu };
}

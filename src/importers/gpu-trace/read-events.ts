import { type Column, f64, i32 } from '../../base/columns.ts';
import { type Instant, parseInstant, parseNumber } from '../../base/decimal.ts';
import { createInterner, type Interner } from '../../base/interner.ts';
import { findArg, type RawEvent, type ScanResult, scanTrace } from '../scan-trace.ts';

const X = 88;
/** Longer than any capture, ns (three years). */
const MAX_NS = 1e17;
/** Rows kept; beyond it the later half of the capture is left out, as often as needed. Some 40 bytes each. */
const MAX_ROWS = 4_000_000;
const MAX_THREADS = 65_536;

const key = (text: string): Uint8Array => new TextEncoder().encode(text);
const K_CORRELATION = key('correlation');

/** Kinds of device activity. */
export const KERNEL = 0;
export const TRANSFER = 1;

export interface DeviceRows {
  readonly name: Column<Int32Array>;
  readonly start: Column<Float64Array>;
  readonly duration: Column<Float64Array>;
  readonly device: Column<Int32Array>;
  readonly kind: Column<Int32Array>;
  readonly correlation: Column<Float64Array>;
}

export interface HostRows {
  readonly name: Column<Int32Array>;
  readonly start: Column<Float64Array>;
  readonly duration: Column<Float64Array>;
  readonly thread: Column<Int32Array>;
}

export interface LaunchRows {
  readonly correlation: Column<Float64Array>;
  readonly start: Column<Float64Array>;
  readonly thread: Column<Int32Array>;
}

/** Events of one trace that mean something, times in ns since `originUs`. */
export interface TraceEvents {
  readonly originUs: number;
  readonly names: Interner;
  readonly device: DeviceRows;
  readonly launches: LaunchRows;
  /** Operators with a namespace, autograd's own wrappers left out. */
  readonly operators: HostRows;
  readonly annotations: HostRows;
  readonly modules: HostRows;
  readonly steps: readonly { readonly id: number; readonly start: number; readonly duration: number; readonly thread: number }[];
  /** Threads that run backward nodes. */
  readonly autograd: ReadonlySet<number>;
  /** What starts later was left out; infinite when nothing was. */
  readonly cut: number;
  readonly scan: ScanResult;
}

type Kind = 'kernel' | 'transfer' | 'launch' | 'operator' | 'annotation' | 'python' | 'none';

/** Categories of all ages: since 2022 lower case, before that as the second name. */
function kindOf(category: string): Kind {
  switch (category.toLowerCase()) {
    case 'kernel':
      return 'kernel';
    case 'gpu_memcpy':
    case 'gpu_memset':
    case 'memcpy':
    case 'memset':
      return 'transfer';
    case 'cuda_runtime':
    case 'cuda_driver':
    case 'runtime':
      return 'launch';
    case 'cpu_op':
    case 'operator':
      return 'operator';
    case 'user_annotation':
      return 'annotation';
    case 'python_function':
      return 'python';
    default:
      return 'none';
  }
}

const STEP = /^ProfilerStep\s?#?(\d{1,9})$/;
const AUTOGRAD = /^(torch::)?autograd::/;
const MODULE = /^nn\.Module: (.+?)(_\d+)?$/;
/** Before 2022 ranges had the category of operators. */
const OLD_RANGE = /^(Optimizer\.|DistributedDataParallel\.|enumerate\(DataLoader\)|##)/;
/** Written by the profiler itself, or repeated as a kernel. */
const NOT_A_RANGE = /^(ProfilerStep|PyTorch Profiler|nccl:|record_param_comms)/;

/** What a name is, decided once. */
interface Known {
  readonly step: number;
  readonly operator: boolean;
  readonly backward: boolean;
  readonly range: boolean;
  readonly oldRange: boolean;
  /** Id of the module's class, or -1. */
  readonly module: number;
}

function hostRows(): HostRows {
  return { name: i32(), start: f64(), duration: f64(), thread: i32() };
}

/** Reads the events of a GPU's trace, one pass, bounded memory. */
export async function readEvents(chunks: AsyncIterable<Buffer>, maxRows: number = MAX_ROWS): Promise<TraceEvents> {
  const names = createInterner();
  const categories = createInterner(1_000);
  const kinds: Kind[] = [];
  const known: (Known | undefined)[] = [];
  const device: DeviceRows = { name: i32(), start: f64(), duration: f64(), device: i32(), kind: i32(), correlation: f64() };
  const launches: LaunchRows = { correlation: f64(), start: f64(), thread: i32() };
  const operators = hostRows();
  const annotations = hostRows();
  const modules = hostRows();
  const tables = [device, launches, operators, annotations, modules] as const;
  const steps: { id: number; start: number; duration: number; thread: number }[] = [];
  const autograd = new Set<number>();
  const threads = new Map<number, Map<number, number>>();
  let threadCount = 0;
  let origin = -1;
  let rows = 0;
  let cut = Number.POSITIVE_INFINITY;
  const instant: Instant = { us: 0, ns: 0 };

  const kindAt = (ev: RawEvent): Kind => {
    if (ev.catStart < 0) return 'none';
    const id = categories.bytes(ev.buf, ev.catStart, ev.catEnd);
    let kind = kinds[id];
    if (kind === undefined) {
      kind = kindOf(categories.get(id));
      kinds[id] = kind;
    }
    return kind;
  };
  const describe = (id: number): Known => {
    let of = known[id];
    if (of === undefined) {
      const name = names.get(id);
      const module = MODULE.exec(name);
      of = {
        step: Number(STEP.exec(name)?.[1] ?? Number.NaN),
        operator: name.includes('::') && !AUTOGRAD.test(name),
        backward: name.startsWith('autograd::engine::evaluate_function'),
        range: !NOT_A_RANGE.test(name),
        oldRange: OLD_RANGE.test(name),
        module: module === null ? -1 : names.text(module[1]!),
      };
      known[id] = of;
    }
    return of;
  };
  const number = (ev: RawEvent, start: number, end: number): number => (start < 0 ? Number.NaN : parseNumber(ev.buf, start, end));
  const threadOf = (ev: RawEvent): number => {
    const pid = number(ev, ev.pidStart, ev.pidEnd);
    const tid = number(ev, ev.tidStart, ev.tidEnd);
    let process = threads.get(pid);
    if (process === undefined) {
      if (threads.size >= MAX_THREADS) return -1;
      process = new Map();
      threads.set(pid, process);
    }
    let thread = process.get(tid);
    if (thread === undefined) {
      if (threadCount >= MAX_THREADS) return -1;
      thread = threadCount++;
      process.set(tid, thread);
    }
    return thread;
  };
  const shrink = (): void => {
    const largest = tables.reduce((a, b) => (b.start.length > a.start.length ? b : a));
    const starts = largest.start.view().slice().sort();
    cut = starts[starts.length >> 1]!;
    rows = 0;
    for (const table of tables) {
      keepUntil(table.start, cut, Object.values(table) as Column<Float64Array | Int32Array>[]);
      rows += table.start.length;
    }
    // All rows at one instant: that is no capture.
    if (rows >= maxRows) cut = Number.NEGATIVE_INFINITY;
  };
  const push = (table: HostRows, name: number, start: number, duration: number, thread: number): void => {
    table.name.push(name);
    table.start.push(start);
    table.duration.push(duration);
    table.thread.push(thread);
  };

  const onEvent = (ev: RawEvent): void => {
    if (ev.ph !== X || ev.tsStart < 0 || ev.nameStart < 0) return;
    const kind = kindAt(ev);
    if (kind === 'none') return;
    if (kind === 'python' && ev.buf[ev.nameStart] !== 110) return;
    if (!parseInstant(ev.buf, ev.tsStart, ev.tsEnd, instant)) return;
    if (origin === -1) origin = instant.us;
    const start = (instant.us - origin) * 1_000 + instant.ns;
    const duration = number(ev, ev.durStart, ev.durEnd) * 1_000;
    if (!(duration >= 0 && duration <= MAX_NS && Math.abs(start) <= MAX_NS)) return;
    if (kind === 'kernel' || kind === 'transfer' || kind === 'launch') {
      const at = findArg(ev, K_CORRELATION);
      const correlation = at === -1 ? Number.NaN : parseNumber(ev.buf, ev.args[at]!, ev.args[at + 1]!);
      if (start > cut) return;
      if (kind === 'launch') {
        // 0 stands for calls that launch nothing.
        if (!(correlation > 0)) return;
        launches.correlation.push(correlation);
        launches.start.push(start);
        launches.thread.push(threadOf(ev));
      } else {
        device.name.push(names.bytes(ev.buf, ev.nameStart, ev.nameEnd));
        device.start.push(start);
        device.duration.push(duration);
        const id = number(ev, ev.pidStart, ev.pidEnd);
        device.device.push(Number.isInteger(id) && id >= 0 && id < 1e6 ? id : -1);
        device.kind.push(kind === 'kernel' ? KERNEL : TRANSFER);
        device.correlation.push(correlation);
      }
    } else {
      const name = names.bytes(ev.buf, ev.nameStart, ev.nameEnd);
      const of = describe(name);
      if (!Number.isNaN(of.step)) {
        if (kind !== 'python') steps.push({ id: of.step, start, duration, thread: threadOf(ev) });
        return;
      }
      if (start > cut) return;
      if (kind === 'python') {
        if (of.module === -1) return;
        push(modules, of.module, start, duration, threadOf(ev));
      } else if (kind === 'annotation') {
        if (!of.range) return;
        push(annotations, name, start, duration, threadOf(ev));
      } else {
        if (of.backward) autograd.add(threadOf(ev));
        if (of.operator) push(operators, name, start, duration, threadOf(ev));
        else if (of.oldRange) push(annotations, name, start, duration, threadOf(ev));
        else return;
      }
    }
    if (++rows > maxRows) shrink();
  };
  const scan = await scanTrace(chunks, onEvent);
  return {
    originUs: Math.max(0, origin),
    names,
    device,
    launches,
    operators,
    annotations,
    modules,
    steps: steps.sort((a, b) => a.start - b.start),
    autograd,
    cut,
    scan,
  };
}

function keepUntil(start: Column<Float64Array>, cut: number, columns: readonly Column<Float64Array | Int32Array>[]): void {
  const others = columns.filter((c) => c !== start);
  let kept = 0;
  for (let i = 0; i < start.length; i++) {
    if (start.at(i) > cut) continue;
    for (const column of others) column.set(kept, column.at(i));
    start.set(kept++, start.at(i));
  }
  for (const column of columns) column.truncate(kept);
}

import { AdviseError } from '../../base/errors.ts';
import { type GpuFacts, type GpuStep, MAX_GPU_STEPS } from '../../model/gpu-facts.ts';
import type { ProfileEntry } from '../../sources/source.ts';
import { leaf } from '../rank-folders.ts';
import { asUtf8 } from '../text-encoding.ts';
import { type Attribution, attribute } from './attribute.ts';
import { HEADER_BYTES, readHeader, TAIL_BYTES, type TraceHeader } from './header.ts';
import { classOfKernel, type Named, shortKernelName } from './names.ts';
import { type HostRows, KERNEL, readEvents, type TraceEvents } from './read-events.ts';
import { deviceWork } from './split.ts';
import { totalsOf } from './totals.ts';

/**
 * Reads a trace of torch.profiler on a GPU (`*.pt.trace.json`, any export of `export_chrome_trace`) as a stream. Throws AdviseError when it
 * holds no trace event at all; a trace that breaks off is read up to there, and says so.
 */
export async function readGpuTrace(entry: ProfileEntry, maxRows?: number): Promise<GpuFacts> {
  const edges = { head: '', tail: Buffer.alloc(0) };
  const events = await readEvents(watched(entry, edges), maxRows);
  if (events.scan.events === 0) {
    throw new AdviseError(
      'no-profile',
      { en: `${leaf(entry.path)} holds no trace event`, zh: `${leaf(entry.path)} 中没有任何 trace 事件` },
      { en: 'Export the trace again with torch.profiler.', zh: '用 torch.profiler 重新导出 trace。' },
    );
  }
  const header = readHeader(edges.head, edges.tail.toString('utf8'));
  return factsOf(entry, events, header);
}

async function* watched(entry: ProfileEntry, edges: { head: string; tail: Buffer }): AsyncGenerator<Buffer> {
  for await (const chunk of asUtf8(entry.open(), () => {})) {
    if (edges.head.length < HEADER_BYTES) edges.head += chunk.toString('utf8', 0, Math.min(chunk.length, HEADER_BYTES - edges.head.length));
    edges.tail = Buffer.concat([edges.tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
    yield chunk;
  }
}

interface Window {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  readonly hostNs: number;
}

function factsOf(entry: ProfileEntry, events: TraceEvents, header: TraceHeader): GpuFacts {
  const mainThread = events.steps[0]?.thread ?? busiestThread(events.operators);
  const { deviceId, otherDevices } = devicesOf(events);
  const order = activitiesOf(events, deviceId);
  const by = attribute(events, mainThread);
  const named = namer(events, by);
  const windows = windowsOf(events, mainThread);
  const { bounds, split } = deviceWork(events, order, named);
  const steps = windows.slice(0, MAX_GPU_STEPS).map((w): GpuStep => {
    const isWhole = !events.scan.truncated || bounds === null || w.end <= bounds.end;
    return { id: w.id, hostNs: w.hostNs, whole: isWhole, ...split(w.start, w.end) };
  });
  const inside = insideOf(events, windows, order);
  const totals = totalsOf(events, by, named, inside, (at) => (windows.length === 0 ? true : windowAt(windows, at)));
  const last = windows.at(-1);
  const { scan } = events;
  return {
    path: entry.path,
    bytes: entry.bytes,
    device: (deviceId === null ? undefined : header.devices.get(deviceId)) ?? null,
    deviceId,
    otherDevices,
    rank: header.rank ?? rankInName(entry.path),
    worldSize: header.worldSize,
    backend: header.backend,
    originUs: events.originUs,
    steps,
    span: bounds === null ? null : split(bounds.start, bounds.end),
    drain: last === undefined || bounds === null ? null : Math.max(0, bounds.end - (last.start + last.hostNs)),
    ...totals,
    truncated: scan.truncated ? { events: scan.events, byte: scan.lastGoodByte } : null,
    limited: events.cut === Number.POSITIVE_INFINITY ? null : { kept: windows.length, all: events.steps.length },
  };
}

function rankInName(path: string): number | null {
  const found = /(?:^|[^a-z])rank[_-]?(\d{1,7})(?:\D|$)/i.exec(leaf(path))?.[1];
  return found === undefined ? null : Number(found);
}

function busiestThread(rows: HostRows): number {
  const counts = new Map<number, number>();
  for (let i = 0; i < rows.thread.length; i++) counts.set(rows.thread.at(i), (counts.get(rows.thread.at(i)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
}

/** One device counts: idle time of two together means nothing. */
function devicesOf({ device }: TraceEvents): { deviceId: number | null; otherDevices: number[] } {
  const kernels = new Map<number, number>();
  for (let i = 0; i < device.start.length; i++) {
    const id = device.device.at(i);
    kernels.set(id, (kernels.get(id) ?? 0) + (device.kind.at(i) === KERNEL ? 1 : 0));
  }
  const [first, ...others] = [...kernels].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  if (first === undefined) return { deviceId: null, otherDevices: [] };
  const ran = others.filter(([id, count]) => id >= 0 && count > 0).map(([id]) => id);
  return { deviceId: first[0] >= 0 ? first[0] : null, otherDevices: ran.slice(0, 64) };
}

/** Rows of the device's activities in start order. */
function activitiesOf({ device }: TraceEvents, id: number | null): Int32Array {
  const rows = Int32Array.from({ length: device.start.length }, (_, i) => i).filter((i) => device.device.at(i) === (id ?? -1));
  return rows.sort((a, b) => device.start.at(a) - device.start.at(b) || a - b);
}

/** Class by the kernel's name; what is left over, or merely elementwise, in the optimizer's step is the optimizer's. */
function namer(events: TraceEvents, by: Attribution): (row: number) => Named {
  const known = new Map<number, Named>();
  return (row) => {
    const id = events.device.name.at(row);
    let named = known.get(id);
    if (named === undefined) {
      const name = events.names.get(id);
      named =
        events.device.kind.at(row) === KERNEL
          ? { name: shortKernelName(name), class: classOfKernel(name) }
          : { name: name.slice(0, 80), class: 'copy' };
      known.set(id, named);
    }
    const isLoose = named.class === 'elementwise' || named.class === 'other' || named.class === 'reduction';
    return isLoose && by.optimizer[row] === 1 ? { name: named.name, class: 'optimizer' } : named;
  };
}

/** From each mark of the main thread to the next one; the last one to its own end. */
function windowsOf(events: TraceEvents, mainThread: number): Window[] {
  const marks = events.steps.filter((s) => s.thread === mainThread && s.start + s.duration <= events.cut);
  return marks.map((mark, i) => {
    const next = marks[i + 1];
    const hostEnd = mark.start + mark.duration;
    const end = next !== undefined && next.id === mark.id + 1 ? Math.max(next.start, mark.start) : hostEnd;
    return { id: mark.id, start: mark.start, end, hostNs: mark.duration };
  });
}

function windowAt(windows: readonly Window[], at: number): boolean {
  let low = 0;
  let high = windows.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (windows[mid]!.start <= at) low = mid + 1;
    else high = mid;
  }
  const window = windows[low - 1];
  return window !== undefined && at < window.end;
}

/** Activities that start inside the captured steps; all without step marks. */
function insideOf(events: TraceEvents, windows: readonly Window[], order: Int32Array): Uint8Array {
  const inside = new Uint8Array(events.device.start.length);
  for (const row of order) if (windows.length === 0 || windowAt(windows, events.device.start.at(row))) inside[row] = 1;
  return inside;
}

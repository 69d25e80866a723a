import { covered, type Intervals, union } from '../../base/intervals.ts';
import type { Frame, MemorySeries, RankCapture } from '../../model/capture.ts';
import type { MemoryFacts, MemoryStep } from '../../model/facts.ts';
import type { StepWindow } from './windows.ts';

/** Calls that take memory from the device or give it back. */
const ALLOCATION = /^AscendCL@(aclrt(Malloc|Free)|aclMallocMem)/;
const OWN = 'PTA';

/** Memory of this rank's device; null when it was not captured. */
export function memoryFacts(capture: RankCapture, windows: readonly StepWindow[]): MemoryFacts | null {
  const { memory } = capture;
  if (memory === null) return null;
  const series = ofOneDevice(memory.series, capture.device);
  const own = series.find((s) => s.component === OWN);
  if (own === undefined && series.length === 0) return null;
  const calls = allocationCalls(capture);
  const frames = framesOf(
    capture,
    memory.held.map((h) => [h.name, h.start] as const),
  );
  return {
    curve: (own ?? series[0]!).curve,
    steps: own === undefined ? [] : windows.slice(0, own.floor.length).map((w, i) => stepOf(own, i, w, calls)),
    components: series.map(({ component, peakAllocated, peakAllocatedAt, peakReserved, peakReservedAt, peakActive }) => ({
      component,
      peakAllocated,
      peakAllocatedAt,
      peakReserved,
      peakReservedAt,
      peakActive,
    })),
    growths: own?.growths ?? [],
    blocks: memory.blocks,
    peakBlock: memory.peakBlock,
    held: memory.held.map((h, i) => ({ name: h.name, bytes: [...h.bytes], count: [...h.count], frame: frames[i]! })),
    modules: memory.modules,
  };
}

/** Of a process with several devices: its own, else the one with the most rows. */
function ofOneDevice(series: readonly MemorySeries[], device: number | null): MemorySeries[] {
  const devices = [...new Set(series.map((s) => s.device))];
  if (devices.length < 2) return [...series];
  const rows = (d: number): number => series.reduce((sum, s) => sum + (s.device === d && s.component === OWN ? s.rows : 0), 0);
  const chosen = device !== null && rows(device) > 0 ? device : devices.reduce((a, b) => (rows(b) > rows(a) ? b : a));
  // Samples of the driver number the devices otherwise than the process does.
  return series.filter((s) => s.device === chosen || (rows(s.device) === 0 && (s.component === 'APP' || s.component === 'DEVICE')));
}

function allocationCalls(capture: RankCapture): Intervals | null {
  const cann = capture.trace?.cann;
  if (cann === undefined || cann.name.length === 0) return null;
  const spans: [number, number][] = [];
  for (let i = 0; i < cann.name.length; i++) {
    if (ALLOCATION.test(capture.names.get(cann.name[i]!))) spans.push([cann.start[i]!, cann.start[i]! + cann.duration[i]!]);
  }
  return union(spans);
}

function stepOf(own: MemorySeries, i: number, window: StepWindow, calls: Intervals | null): MemoryStep {
  return {
    floor: own.floor[i]!,
    peak: own.peak[i]!,
    reservedFloor: own.reservedFloor[i]!,
    reservedPeak: own.reservedPeak[i]!,
    grows: own.grows[i]!,
    shrinks: own.shrinks[i]!,
    splintered: own.splintered[i]!,
    allocatorNs: calls === null ? Number.NaN : covered(calls, window.start, window.end),
  };
}

/** The line that asked for a block: of the host operator of that name that runs at the instant. */
function framesOf(capture: RankCapture, wanted: readonly (readonly [name: string, at: number])[]): (Frame | null)[] {
  const found: (Frame | null)[] = wanted.map(() => null);
  const { trace, names } = capture;
  if (trace === null || wanted.length === 0 || trace.frames.length === 0) return found;
  const byName = new Map(wanted.map(([name], i) => [names.find(name), i] as const));
  const { host } = trace;
  for (let i = 0; i < host.name.length; i++) {
    const k = byName.get(host.name[i]!);
    if (k === undefined || host.frame[i] === -1) continue;
    const at = wanted[k]![1];
    if (host.start[i]! <= at && at <= host.start[i]! + host.duration[i]!) found[k] = trace.frames[host.frame[i]!]!;
  }
  return found;
}

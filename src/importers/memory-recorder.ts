import type { HeldBlocks, MemoryBlock, MemoryGrowth, MemorySeries, MemoryTables, TraceTables } from '../model/capture.ts';

/**
 * Takes the rows of the memory tables one by one, in any order of components, and keeps a bounded picture: a curve per component,
 * the extremes of each step, the largest blocks. A table may have millions of rows. Instants are ns of the rank, sizes bytes, NaN when missing.
 */
export interface MemoryRecorder {
  record(row: MemoryRow): void;
  block(name: string, bytes: number, start: number, end: number, allocated: number): void;
  /** Memory of a driver module; sampled. */
  module(name: string, reserved: number): void;
  /** null without a usable row. */
  tables(): MemoryTables | null;
}

export interface MemoryRow {
  readonly component: string;
  readonly device: number;
  readonly at: number;
  readonly allocated: number;
  readonly reserved: number;
  readonly active: number;
}

/** Points of a curve that are kept. */
const POINTS = 512;
/** A curve is thinned when it has this many points. */
const MOST_POINTS = 4 * POINTS;
const FINEST_NS = 1_000;
/** Smaller blocks lie in a pool of their own, which the memory of large ones cannot serve, bytes. */
const LARGE = 1 << 20;
const MAX_SERIES = 64;
const MAX_BLOCKS = 64;
const MAX_NAMES = 2_000;
const MAX_HELD = 32;
const MAX_MODULES = 128;
const MAX_GROWTHS = 16;
const MAX_STEPS = 10_000;
/** No card has more; such a size is a marker of the driver for "unknown". */
const MAX_BYTES = 2 ** 42;

interface Point {
  start: number;
  allocatedMin: number;
  allocatedMax: number;
  reserved: number;
  active: number;
}

interface Series {
  readonly component: string;
  readonly device: number;
  rows: number;
  readonly points: Map<number, Point>;
  width: number;
  zero: number;
  readonly floor: Float64Array;
  readonly peak: Float64Array;
  readonly reservedFloor: Float64Array;
  readonly reservedPeak: Float64Array;
  readonly grows: Int32Array;
  readonly shrinks: Int32Array;
  readonly splintered: Int32Array;
  peakAllocated: number;
  peakAllocatedAt: number;
  peakReserved: number;
  peakReservedAt: number;
  peakActive: number;
  growths: MemoryGrowth[];
  last: MemoryRow | null;
  lastStep: number;
}

const higher = (a: number, b: number): number => (Number.isNaN(a) || b > a ? b : a);
const lower = (a: number, b: number): number => (Number.isNaN(a) || b < a ? b : a);
const sane = (bytes: number): number => (bytes >= 0 && bytes <= MAX_BYTES ? bytes : Number.NaN);

export function createMemoryRecorder(marks: TraceTables['steps']): MemoryRecorder {
  const steps = marks.slice(0, MAX_STEPS);
  /** A step reaches to the start of the next when that follows directly, as its window in the facts does. */
  const ends = steps.map((mark, i) => {
    const next = steps[i + 1];
    return next !== undefined && next.id === mark.id + 1 ? Math.max(next.start, mark.start) : mark.start + mark.duration;
  });
  const stepAt = (at: number): number => {
    let low = 0;
    let high = steps.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (steps[mid]!.start <= at) low = mid + 1;
      else high = mid;
    }
    return low > 0 && at < ends[low - 1]! ? low - 1 : -1;
  };
  const all = new Map<string, Series>();
  const modules = new Map<string, number>();
  let blocks: MemoryBlock[] = [];
  const held = new Map<string, { bytes: Float64Array; count: Int32Array; start: number }>();
  let peakBlock: MemoryBlock | null = null;
  let peakAllocated = Number.NEGATIVE_INFINITY;

  const seriesOf = (component: string, device: number): Series | null => {
    const key = `${device}/${component}`;
    let series = all.get(key);
    if (series === undefined && all.size < MAX_SERIES) {
      const empty = (): Float64Array => new Float64Array(steps.length).fill(Number.NaN);
      const none = (): Int32Array => new Int32Array(steps.length);
      series = {
        component,
        device,
        rows: 0,
        points: new Map(),
        width: FINEST_NS,
        zero: Number.NaN,
        floor: empty(),
        peak: empty(),
        reservedFloor: empty(),
        reservedPeak: empty(),
        grows: none(),
        shrinks: none(),
        splintered: none(),
        peakAllocated: Number.NaN,
        peakAllocatedAt: Number.NaN,
        peakReserved: Number.NaN,
        peakReservedAt: Number.NaN,
        peakActive: Number.NaN,
        growths: [],
        last: null,
        lastStep: -1,
      };
      all.set(key, series);
    }
    return series ?? null;
  };

  return {
    record({ component, device, at, ...sizes }) {
      const row: MemoryRow = {
        component,
        device,
        at,
        allocated: sane(sizes.allocated),
        reserved: sane(sizes.reserved),
        active: sane(sizes.active),
      };
      if (Number.isNaN(row.allocated) && Number.isNaN(row.reserved)) return;
      const series = seriesOf(row.component, row.device);
      if (series === null) return;
      series.rows++;
      if (row.allocated > series.peakAllocated || (Number.isNaN(series.peakAllocated) && !Number.isNaN(row.allocated))) {
        series.peakAllocated = row.allocated;
        series.peakAllocatedAt = row.at;
      }
      if (row.reserved > series.peakReserved || (Number.isNaN(series.peakReserved) && !Number.isNaN(row.reserved))) {
        series.peakReserved = row.reserved;
        series.peakReservedAt = row.at;
      }
      series.peakActive = higher(series.peakActive, row.active);
      if (Number.isNaN(row.at)) return;
      const step = stepAt(row.at);
      const before = series.last !== null && row.at >= series.last.at ? series.last : null;
      // A row tells what is held from then on: a step begins with what the one before left.
      if (before !== null && step !== series.lastStep) extend(series, step, before);
      extend(series, step, row);
      if (before !== null) change(series, before, row, step);
      series.last = row;
      series.lastStep = step;
      plot(series, row);
    },
    block(name, bytes, start, end, allocated) {
      const size = sane(bytes);
      if (!(size > 0)) return;
      const step = Number.isNaN(start) ? -1 : stepAt(start);
      const block: MemoryBlock = { name, bytes: size, start, end, step };
      blocks.push(block);
      if (blocks.length >= 4 * MAX_BLOCKS) blocks = largest(blocks);
      if (allocated > peakAllocated) {
        peakAllocated = allocated;
        peakBlock = block;
      }
      if (!Number.isNaN(end) || step === -1) return;
      let entry = held.get(name);
      if (entry === undefined) {
        if (held.size >= MAX_NAMES) return;
        entry = { bytes: new Float64Array(steps.length), count: new Int32Array(steps.length), start };
        held.set(name, entry);
      }
      entry.bytes[step] = entry.bytes[step]! + size;
      entry.count[step] = entry.count[step]! + 1;
    },
    module(name, reserved) {
      const size = sane(reserved);
      if (!(size > 0)) return;
      const known = modules.get(name);
      if (known === undefined && modules.size >= MAX_MODULES) return;
      if (known === undefined || size > known) modules.set(name, size);
    },
    tables() {
      const series = [...all.values()].filter((s) => s.rows > 0).map(finished);
      if (series.length === 0 && blocks.length === 0) return null;
      return {
        series,
        blocks: largest(blocks),
        peakBlock,
        held: [...held]
          .map(([name, entry]): HeldBlocks => ({ name, ...entry }))
          .sort((a, b) => sum(b.bytes) - sum(a.bytes) || (a.name < b.name ? -1 : 1))
          .slice(0, MAX_HELD),
        modules: [...modules].map(([name, peak]) => ({ name, peak })).sort((a, b) => b.peak - a.peak || (a.name < b.name ? -1 : 1)),
      };
    },
  };
}

function sum(values: Float64Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function largest(blocks: readonly MemoryBlock[]): MemoryBlock[] {
  return [...blocks].sort((a, b) => b.bytes - a.bytes || a.start - b.start).slice(0, MAX_BLOCKS);
}

function extend(series: Series, step: number, row: MemoryRow): void {
  if (step === -1) return;
  series.floor[step] = lower(series.floor[step]!, row.allocated);
  series.peak[step] = higher(series.peak[step]!, row.allocated);
  series.reservedFloor[step] = lower(series.reservedFloor[step]!, row.reserved);
  series.reservedPeak[step] = higher(series.reservedPeak[step]!, row.reserved);
}

/** The allocator took memory from the device, or gave some back. */
function change(series: Series, before: MemoryRow, now: MemoryRow, step: number): void {
  if (now.reserved < before.reserved && step !== -1) series.shrinks[step] = series.shrinks[step]! + 1;
  if (!(now.reserved > before.reserved)) return;
  if (step !== -1) series.grows[step] = series.grows[step]! + 1;
  const needed = now.allocated - before.allocated;
  const unused = before.reserved - (Number.isNaN(before.active) ? before.allocated : before.active);
  // Enough was free, but not in one piece.
  const isSplintered = needed >= LARGE && unused >= needed;
  if (isSplintered && step !== -1) series.splintered[step] = series.splintered[step]! + 1;
  if (!isSplintered) return;
  series.growths.push({ at: now.at, step, needed, unused, taken: now.reserved - before.reserved });
  if (series.growths.length >= 4 * MAX_GROWTHS) series.growths = mostUnused(series.growths);
}

function mostUnused(growths: readonly MemoryGrowth[]): MemoryGrowth[] {
  return [...growths].sort((a, b) => b.unused - a.unused || a.at - b.at).slice(0, MAX_GROWTHS);
}

function plot(series: Series, row: MemoryRow): void {
  if (Number.isNaN(series.zero)) series.zero = row.at;
  const key = Math.floor((row.at - series.zero) / series.width);
  add(series.points, key, {
    start: row.at,
    allocatedMin: row.allocated,
    allocatedMax: row.allocated,
    reserved: row.reserved,
    active: row.active,
  });
  while (series.points.size > MOST_POINTS) thin(series);
}

function add(points: Map<number, Point>, key: number, point: Point): void {
  const known = points.get(key);
  if (known === undefined) {
    points.set(key, point);
    return;
  }
  known.start = Math.min(known.start, point.start);
  known.allocatedMin = lower(known.allocatedMin, point.allocatedMin);
  known.allocatedMax = higher(known.allocatedMax, point.allocatedMax);
  known.reserved = higher(known.reserved, point.reserved);
  known.active = higher(known.active, point.active);
}

/** Half as many points, each twice as wide. */
function thin(series: Series): void {
  const before = [...series.points];
  series.points.clear();
  series.width *= 2;
  for (const [key, point] of before) add(series.points, Math.floor(key / 2), point);
}

function finished(series: Series): MemorySeries {
  while (series.points.size > POINTS) thin(series);
  const points = [...series.points.values()].sort((a, b) => a.start - b.start);
  const column = (value: (point: Point) => number): Float64Array => Float64Array.from(points, value);
  const { points: _, width: __, zero: ___, last: ____, lastStep: _____, ...kept } = series;
  return {
    ...kept,
    growths: mostUnused(series.growths),
    curve: {
      start: column((p) => p.start),
      allocatedMin: column((p) => p.allocatedMin),
      allocatedMax: column((p) => p.allocatedMax),
      reserved: column((p) => p.reserved),
      active: column((p) => p.active),
    },
  };
}

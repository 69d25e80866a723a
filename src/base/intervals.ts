import { f64 } from './columns.ts';

/**
 * Sets of half-open time intervals [start, end), as two parallel ascending arrays, disjoint and merged.
 * All durations of device time are union lengths of such sets, never sums over streams.
 */
export interface Intervals {
  readonly start: Float64Array;
  readonly end: Float64Array;
}

export const EMPTY: Intervals = { start: new Float64Array(0), end: new Float64Array(0) };

/** One interval; empty unless `to` is after `from`. */
export function interval(from: number, to: number): Intervals {
  return to > from ? { start: Float64Array.of(from), end: Float64Array.of(to) } : EMPTY;
}

/** A set being written in ascending order. Not lists of numbers: a set of millions would leave as much behind for the collector each time it grows. */
function growing(): { start: ReturnType<typeof f64>; end: ReturnType<typeof f64>; done(): Intervals } {
  const start = f64(16);
  const end = f64(16);
  return { start, end, done: () => ({ start: start.take(), end: end.take() }) };
}

/** Appends an interval that does not begin before those there, merging it with the last when they touch. */
function append({ start, end }: ReturnType<typeof growing>, from: number, to: number): void {
  const last = end.length - 1;
  if (last < 0 || from > end.at(last)) {
    start.push(from);
    end.push(to);
  } else if (to > end.at(last)) end.set(last, to);
}

/** Merges raw spans (any order, overlaps allowed, empty or negative ones dropped). */
export function union(spans: Iterable<readonly [number, number]>): Intervals {
  const list = [...spans].filter(([a, b]) => b > a).sort((x, y) => x[0] - y[0]);
  const out = growing();
  for (const [a, b] of list) append(out, a, b);
  return out.done();
}

/** The union of spans that ascend by start, without a list of them. */
export function unionSorted(start: Float64Array, duration: Float64Array, keep: (i: number) => boolean = () => true): Intervals {
  const out = growing();
  for (let i = 0; i < start.length; i++) {
    const a = start[i]!;
    const b = a + duration[i]!;
    if (b > a && keep(i)) append(out, a, b);
  }
  return out.done();
}

export function unite(...sets: readonly Intervals[]): Intervals {
  return sets.reduce(uniteTwo, EMPTY);
}

function uniteTwo(a: Intervals, b: Intervals): Intervals {
  if (a.start.length === 0) return b;
  if (b.start.length === 0) return a;
  const out = growing();
  let i = 0;
  let j = 0;
  while (i < a.start.length || j < b.start.length) {
    const fromA = j === b.start.length || (i < a.start.length && a.start[i]! <= b.start[j]!);
    if (fromA) append(out, a.start[i]!, a.end[i++]!);
    else append(out, b.start[j]!, b.end[j++]!);
  }
  return out.done();
}

export function length(set: Intervals): number {
  let total = 0;
  for (let i = 0; i < set.start.length; i++) total += set.end[i]! - set.start[i]!;
  return total;
}

export function intersect(a: Intervals, b: Intervals): Intervals {
  const out = growing();
  let i = 0;
  let j = 0;
  while (i < a.start.length && j < b.start.length) {
    const from = Math.max(a.start[i]!, b.start[j]!);
    const to = Math.min(a.end[i]!, b.end[j]!);
    if (to > from) {
      out.start.push(from);
      out.end.push(to);
    }
    if (a.end[i]! < b.end[j]!) i++;
    else j++;
  }
  return out.done();
}

export function subtract(a: Intervals, b: Intervals): Intervals {
  const out = growing();
  let j = 0;
  for (let i = 0; i < a.start.length; i++) {
    let from = a.start[i]!;
    const to = a.end[i]!;
    while (j < b.start.length && b.end[j]! <= from) j++;
    let k = j;
    while (k < b.start.length && b.start[k]! < to) {
      if (b.start[k]! > from) {
        out.start.push(from);
        out.end.push(b.start[k]!);
      }
      from = Math.max(from, b.end[k]!);
      if (from >= to) break;
      k++;
    }
    if (from < to) {
      out.start.push(from);
      out.end.push(to);
    }
  }
  return out.done();
}

/** The part inside [from, to); costs what it returns, however large the set. */
export function clip(set: Intervals, from: number, to: number): Intervals {
  if (!(to > from)) return EMPTY;
  let low = 0;
  let high = set.start.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (set.end[mid]! <= from) low = mid + 1;
    else high = mid;
  }
  const out = growing();
  for (let i = low; i < set.start.length && set.start[i]! < to; i++) {
    out.start.push(Math.max(set.start[i]!, from));
    out.end.push(Math.min(set.end[i]!, to));
  }
  return out.done();
}

export function complement(set: Intervals, from: number, to: number): Intervals {
  return subtract(interval(from, to), set);
}

/** Length of the set inside [from, to), without building the intersection. */
export function covered(set: Intervals, from: number, to: number): number {
  let low = 0;
  let high = set.start.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (set.end[mid]! <= from) low = mid + 1;
    else high = mid;
  }
  let total = 0;
  for (let i = low; i < set.start.length && set.start[i]! < to; i++) {
    total += Math.max(0, Math.min(set.end[i]!, to) - Math.max(set.start[i]!, from));
  }
  return total;
}

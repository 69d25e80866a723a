/**
 * Sets of half-open time intervals [start, end), as two parallel ascending arrays, disjoint and merged.
 * All durations of device time are union lengths of such sets, never sums over streams.
 */
export interface Intervals {
  readonly start: readonly number[];
  readonly end: readonly number[];
}

export const EMPTY: Intervals = { start: [], end: [] };

/** Merges raw spans (any order, overlaps allowed, empty or negative ones dropped). */
export function union(spans: Iterable<readonly [number, number]>): Intervals {
  const list = [...spans].filter(([a, b]) => b > a).sort((x, y) => x[0] - y[0]);
  const start: number[] = [];
  const end: number[] = [];
  for (const [a, b] of list) {
    const last = end.length - 1;
    if (last >= 0 && a <= end[last]!) {
      if (b > end[last]!) end[last] = b;
    } else {
      start.push(a);
      end.push(b);
    }
  }
  return { start, end };
}

/** The union of spans that ascend by start, without a list of them. */
export function unionSorted(start: Float64Array, duration: Float64Array, keep: (i: number) => boolean = () => true): Intervals {
  const from: number[] = [];
  const to: number[] = [];
  for (let i = 0; i < start.length; i++) {
    const a = start[i]!;
    const b = a + duration[i]!;
    if (!(b > a) || !keep(i)) continue;
    const last = to.length - 1;
    if (last >= 0 && a <= to[last]!) {
      if (b > to[last]!) to[last] = b;
    } else {
      from.push(a);
      to.push(b);
    }
  }
  return { start: from, end: to };
}

export function unite(...sets: readonly Intervals[]): Intervals {
  const spans: [number, number][] = [];
  for (const set of sets) for (let i = 0; i < set.start.length; i++) spans.push([set.start[i]!, set.end[i]!]);
  return union(spans);
}

export function length(set: Intervals): number {
  let total = 0;
  for (let i = 0; i < set.start.length; i++) total += set.end[i]! - set.start[i]!;
  return total;
}

export function intersect(a: Intervals, b: Intervals): Intervals {
  const start: number[] = [];
  const end: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.start.length && j < b.start.length) {
    const from = Math.max(a.start[i]!, b.start[j]!);
    const to = Math.min(a.end[i]!, b.end[j]!);
    if (to > from) {
      start.push(from);
      end.push(to);
    }
    if (a.end[i]! < b.end[j]!) i++;
    else j++;
  }
  return { start, end };
}

export function subtract(a: Intervals, b: Intervals): Intervals {
  const start: number[] = [];
  const end: number[] = [];
  let j = 0;
  for (let i = 0; i < a.start.length; i++) {
    let from = a.start[i]!;
    const to = a.end[i]!;
    while (j < b.start.length && b.end[j]! <= from) j++;
    let k = j;
    while (k < b.start.length && b.start[k]! < to) {
      if (b.start[k]! > from) {
        start.push(from);
        end.push(b.start[k]!);
      }
      from = Math.max(from, b.end[k]!);
      if (from >= to) break;
      k++;
    }
    if (from < to) {
      start.push(from);
      end.push(to);
    }
  }
  return { start, end };
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
  const start: number[] = [];
  const end: number[] = [];
  for (let i = low; i < set.start.length && set.start[i]! < to; i++) {
    start.push(Math.max(set.start[i]!, from));
    end.push(Math.min(set.end[i]!, to));
  }
  return { start, end };
}

export function complement(set: Intervals, from: number, to: number): Intervals {
  return to > from ? subtract({ start: [from], end: [to] }, set) : EMPTY;
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

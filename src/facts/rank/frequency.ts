import { clip, type Intervals, intersect, length, unionSorted } from '../../base/intervals.ts';
import type { FrequencyTable } from '../../model/capture.ts';
import type { FrequencyFacts, Tape } from '../../model/facts.ts';
import { COMPUTE } from '../../model/facts.ts';

const MAX_VALUES = 32;
/** A frequency held for less of the busy time is a transition. */
const SUSTAINED = 0.05;

/** The clock of the AI cores while they were busy inside the steps. Idle cores may clock down: that costs nothing. */
export function frequencyFacts(
  table: FrequencyTable | null,
  tape: Tape | null,
  within: Intervals | null,
  onCore: (node: number) => boolean,
): FrequencyFacts | null {
  if (table === null || tape === null || table.at.length === 0) return null;
  let busy = unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMPUTE && onCore(i));
  if (within !== null) busy = intersect(busy, within);
  const ns = new Map<number, number>();
  const longest = new Map<number, { start: number; duration: number }>();
  let total = 0;
  for (let i = 0; i < table.at.length; i++) {
    // Each value holds until the next; before the first nothing is known.
    const part = clip(busy, table.at[i]!, table.at[i + 1] ?? Number.POSITIVE_INFINITY);
    const own = length(part);
    if (own === 0) continue;
    const mhz = table.mhz[i]!;
    total += own;
    ns.set(mhz, (ns.get(mhz) ?? 0) + own);
    const start = part.start[0]!;
    const duration = part.end[part.end.length - 1]! - start;
    if (duration > (longest.get(mhz)?.duration ?? 0)) longest.set(mhz, { start, duration });
  }
  if (total === 0) return null;
  const all = [...ns].map(([mhz, own]) => ({ mhz, ns: own })).sort((a, b) => b.mhz - a.mhz);
  const sustained = all.filter((v) => v.ns >= SUSTAINED * total);
  const lowest = sustained[sustained.length - 1] ?? all[0]!;
  return {
    busy: [...all]
      .sort((a, b) => b.ns - a.ns)
      .slice(0, MAX_VALUES)
      .sort((a, b) => b.mhz - a.mhz),
    meanMhz: all.reduce((sum, v) => sum + v.mhz * v.ns, 0) / total,
    sustainedMhz: (sustained[0] ?? all[0]!).mhz,
    lowest: { mhz: lowest.mhz, ...longest.get(lowest.mhz)! },
  };
}

/** Whether a span lies wholly at `mhz` or above; a span that begins before the first sample does not. */
export function fastSpans(table: FrequencyTable | null, mhz: number): (start: number, end: number) => boolean {
  if (table === null) return () => false;
  const { length } = table.at;
  /** Instant of the next slow value from each change on. */
  const slowFrom = new Float64Array(length);
  let next = Number.POSITIVE_INFINITY;
  for (let i = length - 1; i >= 0; i--) {
    if (table.mhz[i]! < mhz) next = table.at[i]!;
    slowFrom[i] = next;
  }
  return (start, end) => {
    let low = 0;
    let high = length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (table.at[mid]! <= start) low = mid + 1;
      else high = mid;
    }
    return low > 0 && slowFrom[low - 1]! > start && slowFrom[low - 1]! >= end;
  };
}

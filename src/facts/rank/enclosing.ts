import { sortedRows } from '../../base/lookup.ts';
import type { RankCapture } from '../../model/capture.ts';

/** Operators that enclose an instant are looked for among so many that began before it. */
const MAX_BEFORE = 64;

/** Rows of the host operators that enclose an instant on a thread, innermost first. */
export type Enclosing = (tid: number, at: number) => number[];

export interface HostOperators {
  /** Rows of a thread by start. */
  readonly ofThread: (tid: number) => Int32Array;
  readonly enclosing: Enclosing;
  /**
   * The same for a call of CANN: with the task queue it runs on the launching thread, and belongs to the code that enqueued it.
   */
  readonly enclosingCall: Enclosing;
}

const NONE = new Int32Array(0);

export function hostOperators(capture: RankCapture): HostOperators {
  const { trace } = capture;
  const byThread = new Map<number, Int32Array>();
  if (trace !== null) {
    const { tid, start, duration } = trace.host;
    const rows = sortedRows(tid.length, (a, b) => tid[a]! - tid[b]! || start[a]! - start[b]! || duration[b]! - duration[a]! || a - b);
    for (let from = 0; from < rows.length; ) {
      let to = from;
      while (to < rows.length && tid[rows[to]!] === tid[rows[from]!]) to++;
      byThread.set(tid[rows[from]!]!, rows.subarray(from, to));
      from = to;
    }
  }
  const enclosing: Enclosing = (tid, at) => {
    const found: number[] = [];
    if (trace === null) return found;
    const rows = byThread.get(tid) ?? NONE;
    const { start, duration } = trace.host;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (start[rows[mid]!]! <= at) low = mid + 1;
      else high = mid;
    }
    for (let k = low - 1; k >= 0 && k >= low - MAX_BEFORE; k--) {
      const row = rows[k]!;
      if (start[row]! + duration[row]! >= at) found.push(row);
    }
    return found;
  };
  const enclosingCall: Enclosing = (tid, at) => {
    const queue = trace?.queue ?? [];
    let low = 0;
    let high = queue.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (queue[mid]!.start <= at) low = mid + 1;
      else high = mid;
    }
    // Dequeue ranges of one thread do not overlap; there are few threads.
    for (let k = low - 1; k >= 0 && k >= low - 8; k--) {
      const q = queue[k]!;
      if (q.tid === tid && q.end >= at) return enclosing(q.from, q.at);
    }
    return enclosing(tid, at);
  };
  return { ofThread: (tid) => byThread.get(tid) ?? NONE, enclosing, enclosingCall };
}

import type { HostRows, TraceEvents } from './read-events.ts';

/** Who asked for each device activity, by its row. -1 where the trace does not tell. */
export interface Attribution {
  /** Row of the outermost operator around the launch. */
  readonly operator: Int32Array;
  /** True for what `Optimizer.step` launched. */
  readonly optimizer: Uint8Array;
  /** Calls `visit` for each range around the launch of each activity, once per name. */
  ranges(rows: HostRows, visit: (activity: number, name: number) => void): void;
}

/** Joins device activities with their launches by correlation, and those with what enclosed them on the host. */
export function attribute(events: TraceEvents, mainThread: number): Attribution {
  const { device, launches, operators, names } = events;
  const count = device.start.length;
  const launchAt = new Float64Array(count).fill(Number.NaN);
  const launchThread = new Int32Array(count).fill(-1);
  const byCorrelation = Int32Array.from({ length: launches.start.length }, (_, i) => i);
  byCorrelation.sort((a, b) => launches.correlation.at(a) - launches.correlation.at(b) || launches.start.at(a) - launches.start.at(b));
  for (let i = 0; i < count; i++) {
    const wanted = device.correlation.at(i);
    if (!(wanted > 0)) continue;
    let low = 0;
    let high = byCorrelation.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (launches.correlation.at(byCorrelation[mid]!) < wanted) low = mid + 1;
      else high = mid;
    }
    const found = byCorrelation[low];
    if (found === undefined || launches.correlation.at(found) !== wanted) continue;
    launchAt[i] = launches.start.at(found);
    launchThread[i] = launches.thread.at(found);
  }
  const launched = Int32Array.from({ length: count }, (_, i) => i).filter((i) => launchThread[i] !== -1);
  launched.sort((a, b) => launchAt[a]! - launchAt[b]! || a - b);

  const operator = new Int32Array(count).fill(-1);
  const outermost = outermostByThread(operators);
  for (const i of launched) operator[i] = around(operators, outermost.get(launchThread[i]!) ?? [], launchAt[i]!);

  /** A backward node runs while the main thread waits for it: ranges of the main thread hold for the threads of autograd. */
  const threadOf = (activity: number): number => {
    const own = launchThread[activity]!;
    return events.autograd.has(own) ? mainThread : own;
  };
  const ranges = (rows: HostRows, visit: (activity: number, name: number) => void): void => {
    const byThread = rowsByThread(rows);
    const state = new Map<number, { next: number; open: number[] }>();
    const seen = new Map<number, number>();
    for (const activity of launched) {
      const thread = threadOf(activity);
      const own = byThread.get(thread);
      if (own === undefined) continue;
      let at = state.get(thread);
      if (at === undefined) {
        at = { next: 0, open: [] };
        state.set(thread, at);
      }
      const now = launchAt[activity]!;
      while (at.next < own.length && rows.start.at(own[at.next]!) <= now) {
        const row = own[at.next++]!;
        if (rows.start.at(row) + rows.duration.at(row) >= now) at.open.push(row);
      }
      at.open = at.open.filter((row) => rows.start.at(row) + rows.duration.at(row) >= now);
      for (const row of at.open) {
        const name = rows.name.at(row);
        if (seen.get(name) === activity) continue;
        seen.set(name, activity);
        visit(activity, name);
      }
    }
  };
  const optimizer = new Uint8Array(count);
  const isOptimizer = new Map<number, boolean>();
  ranges(events.annotations, (activity, name) => {
    let is = isOptimizer.get(name);
    if (is === undefined) {
      is = names.get(name).startsWith('Optimizer.step#');
      isOptimizer.set(name, is);
    }
    if (is) optimizer[activity] = 1;
  });
  return { operator, optimizer, ranges };
}

/** Rows of each thread by start, the enclosing one first. */
export function rowsByThread(rows: HostRows): Map<number, Int32Array> {
  const lists = Map.groupBy(
    Int32Array.from({ length: rows.start.length }, (_, i) => i),
    (i) => rows.thread.at(i),
  );
  return new Map(
    [...lists].map(([thread, list]) => [
      thread,
      Int32Array.from(list).sort((a, b) => rows.start.at(a) - rows.start.at(b) || rows.duration.at(b) - rows.duration.at(a) || a - b),
    ]),
  );
}

/** Rows of each thread that lie in no other row, by start. */
export function outermostByThread(rows: HostRows): Map<number, number[]> {
  const out = new Map<number, number[]>();
  for (const [thread, list] of rowsByThread(rows)) {
    const kept: number[] = [];
    let end = Number.NEGATIVE_INFINITY;
    for (const row of list) {
      if (rows.start.at(row) < end) continue;
      kept.push(row);
      end = rows.start.at(row) + rows.duration.at(row);
    }
    out.set(thread, kept);
  }
  return out;
}

/** The one of disjoint rows that holds an instant, or -1. */
function around(rows: HostRows, list: readonly number[], at: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (rows.start.at(list[mid]!) <= at) low = mid + 1;
    else high = mid;
  }
  const row = list[low - 1];
  return row !== undefined && rows.start.at(row) + rows.duration.at(row) >= at ? row : -1;
}

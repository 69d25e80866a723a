import type { DeviceTask, HostOp } from './des.ts';
import type { RankResult, SimulatedJob } from './simulate.ts';

/** Half-open interval in ns. */
export type Span = [start: number, end: number];

/** The lanes of Overlap Analysis: merged intervals in ns. */
interface Lanes {
  computing: Span[];
  communication: Span[];
  notOverlapped: Span[];
  free: Span[];
}

/** One captured step of one rank. */
export interface StepWindow {
  /** step number as the profiler prints it */
  number: number;
  hostStart: number;
  hostEnd: number;
  /** device window that assigns rows and lanes to the step */
  start: number;
  end: number;
}

/** Everything the writers need of one rank. */
export interface Capture {
  rank: number;
  device: number;
  ops: HostOp[];
  /** device tasks of the captured steps and those of warm-up that ran after the capture began, by start */
  tasks: DeviceTask[];
  windows: StepWindow[];
  lanes: Lanes;
  /** capture begin and end on the host, ns */
  begin: number;
  end: number;
}

/** Selects what a profiler would have seen of a rank. */
export function captureRank(job: SimulatedJob, result: RankResult): Capture {
  const { spec } = job.plan;
  const { record, stepStarts } = result;
  const begin = stepStarts[0]!;
  const tasks = record.tasks.filter((task) => task.step >= 0 || task.start >= begin).sort((a, b) => a.start - b.start);
  const bounds = Array.from({ length: spec.steps }, () => ({ start: Number.POSITIVE_INFINITY, end: 0 }));
  for (const task of tasks) {
    const bound = bounds[task.step];
    if (!bound) continue;
    bound.start = Math.min(bound.start, task.start);
    bound.end = Math.max(bound.end, task.end);
  }
  const windows = bounds.map((bound, step) => ({
    number: spec.firstStep + step,
    hostStart: stepStarts[step]!,
    hostEnd: stepStarts[step + 1]!,
    start: bound.start,
    end: Math.max(bound.end, stepStarts[step + 1]!),
  }));
  const last = tasks.reduce((latest, task) => Math.max(latest, task.end), begin);
  return {
    rank: result.rank,
    device: result.rank % 8,
    ops: record.ops,
    tasks,
    windows,
    lanes: lanesOf(tasks),
    begin,
    end: Math.max(last, record.now),
  };
}

/** Step number of an instant, first window first; null outside all. `closed` includes the end of a window. */
export function stepAt(windows: StepWindow[], at: number, closed: boolean): StepWindow | null {
  for (const window of windows) if (window.start <= at && (at < window.end || (closed && at === window.end))) return window;
  return null;
}

/** Merges spans that overlap or touch; the input need not be sorted. */
function merge(spans: Span[]): Span[] {
  const sorted = [...spans].sort((a, b) => a[0] - b[0]);
  const merged: Span[] = [];
  for (const [start, end] of sorted) {
    const open = merged.at(-1);
    if (open && start <= open[1]) open[1] = Math.max(open[1], end);
    else merged.push([start, end]);
  }
  return merged;
}

/** Parts of `from` outside `minus`; both merged. */
function subtract(from: Span[], minus: Span[]): Span[] {
  const left: Span[] = [];
  let i = 0;
  for (const [start, end] of from) {
    let at = start;
    while (i < minus.length && minus[i]![1] <= at) i++;
    for (let j = i; j < minus.length && minus[j]![0] < end; j++) {
      const [from2, to] = minus[j]!;
      if (from2 > at) left.push([at, from2]);
      at = Math.max(at, to);
    }
    if (at < end) left.push([at, end]);
  }
  return left;
}

function lanesOf(tasks: DeviceTask[]): Lanes {
  const spans = (kind: DeviceTask['kind']): Span[] =>
    tasks.filter((task) => task.kind === kind).map((task): Span => [task.start, task.end]);
  const computing = merge(spans('kernel'));
  const communication = merge(spans('collective'));
  const busy = merge([...computing, ...communication].map(([start, end]): Span => [start, end]));
  const whole: Span[] = busy.length > 0 ? [[busy[0]![0], busy.at(-1)![1]]] : [];
  return { computing, communication, notOverlapped: subtract(communication, computing), free: subtract(whole, busy) };
}

/** One row of step_trace_time.csv, in ns. */
export interface StepTrace {
  step: number;
  computing: number;
  notOverlapped: number;
  overlapped: number;
  communication: number;
  free: number;
  stage: number;
  bubble: number;
  preparing: number;
}

/** Sums of the lanes whose start lies in each step's window. */
export function stepTraces(capture: Capture): StepTrace[] {
  const { lanes, windows } = capture;
  return windows.map((window) => {
    const inside = (span: Span) => stepAt(windows, span[0], false) === window;
    const sum = (spans: Span[]) => spans.reduce((total, span) => (inside(span) ? total + span[1] - span[0] : total), 0);
    const all = [...lanes.computing, ...lanes.communication, ...lanes.free].filter(inside);
    const busy = [...lanes.computing, ...lanes.communication].filter(inside);
    const first = Math.min(...busy.map((span) => span[0]));
    const computing = sum(lanes.computing);
    const communication = sum(lanes.communication);
    const notOverlapped = sum(lanes.notOverlapped);
    const start = all.reduce((least, span) => Math.min(least, span[0]), Number.POSITIVE_INFINITY);
    const end = all.reduce((most, span) => Math.max(most, span[1]), 0);
    return {
      step: window.number,
      computing,
      notOverlapped,
      overlapped: communication - notOverlapped,
      communication,
      free: sum(lanes.free),
      stage: end - start,
      bubble: 0,
      preparing: Math.max(0, first - window.hostStart),
    };
  });
}

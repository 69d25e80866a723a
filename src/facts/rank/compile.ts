import { covered, EMPTY, type Intervals, union } from '../../base/intervals.ts';
import type { RankCapture } from '../../model/capture.ts';
import type { CompileFacts } from '../../model/facts.ts';
import { outermost } from './host-ranges.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** Compiling and running a single operator through the old path. With `jit_compile=False` the call stays, but costs tens of µs. */
const COMPILE = /^AscendCL@(aclopCompileAndExecute|opCompile)/;

export function compileFacts(
  capture: RankCapture,
  windows: readonly StepWindow[],
  idle: Intervals,
  frameAt: (tid: number, at: number) => number,
): CompileFacts | null {
  const trace = capture.trace;
  if (trace === null) return null;
  const list: { start: number; end: number; tid: number }[] = [];
  for (let i = 0; i < trace.cann.name.length; i++) {
    if (COMPILE.test(capture.names.get(trace.cann.name[i]!))) {
      list.push({ start: trace.cann.start[i]!, end: trace.cann.start[i]! + trace.cann.duration[i]!, tid: trace.cann.tid[i]! });
    }
  }
  const calls = outermost(list);
  if (calls.length === 0) return null;
  const longest = calls.reduce((a, b) => (b.end - b.start > a.end - a.start ? b : a));
  // With the task queue the call runs on the launching thread: its code is where the operator was enqueued.
  const queued = trace.queue.find((q) => q.tid === longest.tid && q.start <= longest.start && q.end >= longest.start);
  const frame = queued === undefined ? frameAt(longest.tid, longest.start) : frameAt(queued.from, queued.at);
  return {
    frame: frame === -1 ? null : trace.frames[frame]!,
    calls: calls.map((c) => ({ step: windowAt(windows, c.start), start: c.start, end: c.end, idle: covered(idle, c.start, c.end) })),
  };
}

/** Shorter calls find the operator compiled: those took 0.06–3.2 ms in real captures, and compiling one takes tens of ms. ns. */
const LONG_CALL = 5_000_000;
/** So many calls in one step are compiling, whatever their length: real captures with everything cached have up to 19. */
const MANY_CALLS = 20;
/** Part of each call that is there without compiling, ns. */
const CACHED_CALL = 100_000;

/** Host time spent compiling, as `op-recompile` counts it. */
export function compiling(compile: CompileFacts | null): Intervals {
  if (compile === null) return EMPTY;
  const count = new Map<number, number>();
  for (const { step } of compile.calls) count.set(step, (count.get(step) ?? 0) + 1);
  return union(
    compile.calls
      .filter((c) => c.end - c.start >= LONG_CALL || count.get(c.step)! >= MANY_CALLS)
      .map((c) => [c.start + Math.min(CACHED_CALL, c.end - c.start), c.end] as const),
  );
}

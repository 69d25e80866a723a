import { complement, covered, EMPTY, type Intervals, intersect, subtract, union } from '../../base/intervals.ts';
import { COMMUNICATION, COMPUTE, type CompileFacts, type IdleFacts, type LoaderFacts, type Tape } from '../../model/facts.ts';
import type { StepWindow } from './windows.ts';

/** Idle intervals of the device between the first step's start and the last step's end. */
export function idleIntervals(tape: Tape | null, windows: readonly StepWindow[]): Intervals {
  if (tape === null || windows.length === 0) return EMPTY;
  return complement(tape.busy, windows[0]!.start, windows[windows.length - 1]!.end);
}

/** Launch instant of the task that ended an idle gap (starts at `gapEnd`); +∞ when unknown, so that nothing is excused without proof. */
export function launchOfTaskAt(tape: Tape | null): (gapEnd: number) => number {
  if (tape === null) return () => Number.POSITIVE_INFINITY;
  const byStart = new Map<number, number>();
  for (let i = 0; i < tape.start.length; i++) {
    const launch = tape.launch[i]!;
    if (Number.isNaN(launch)) continue;
    const known = byStart.get(tape.start[i]!);
    if (known === undefined || launch < known) byStart.set(tape.start[i]!, launch);
  }
  return (gapEnd) => byStart.get(gapEnd) ?? Number.POSITIVE_INFINITY;
}

/** Gives each idle ns to exactly one cause, in a fixed order: loader, compile, sync, launch-limited, start of step, unexplained. */
export function idleFacts(
  tape: Tape,
  windows: readonly StepWindow[],
  idle: Intervals,
  loader: LoaderFacts | null,
  compile: CompileFacts | null,
): IdleFacts {
  const loaderSpans = union((loader?.fetches ?? []).filter((f) => f.stall > 0).map((f) => [f.start, f.end] as const));
  const compileSpans = union((compile?.calls ?? []).map((c) => [c.start, c.end] as const));
  const syncSpans = union(Array.from(tape.syncs.start, (s, i) => [s, tape.syncs.end[i]!] as const));
  const starvedSpans = starvedIntervals(tape);
  const take = (from: Intervals, owner: Intervals): [Intervals, Intervals] => [intersect(from, owner), subtract(from, owner)];
  const [byLoader, afterLoader] = take(idle, loaderSpans);
  const [byCompile, afterCompile] = take(afterLoader, compileSpans);
  const [bySync, afterSync] = take(afterCompile, syncSpans);
  const lead = leadIn(tape, windows);
  const [byPreparing, afterPreparing] = take(afterSync, lead);
  const [byLaunch, rest] = take(afterPreparing, starvedSpans);
  return {
    steps: windows.map((w, step) => ({
      step,
      total: covered(idle, w.start, w.end),
      loader: covered(byLoader, w.start, w.end),
      compile: covered(byCompile, w.start, w.end),
      sync: covered(bySync, w.start, w.end),
      launch: covered(byLaunch, w.start, w.end),
      preparing: covered(byPreparing, w.start, w.end),
      unexplained: covered(rest, w.start, w.end),
    })),
  };
}

/** Host step start to the first computing or communication task of that step. */
export function leadIn(tape: Tape, windows: readonly StepWindow[]): Intervals {
  const first = new Float64Array(windows.length).fill(Number.NaN);
  for (let i = 0; i < tape.start.length; i++) {
    const w = tape.step[i]!;
    if (w < 0 || w >= first.length || (tape.kind[i] !== COMPUTE && tape.kind[i] !== COMMUNICATION)) continue;
    if (Number.isNaN(first[w]!)) first[w] = tape.start[i]!;
  }
  const spans: [number, number][] = [];
  windows.forEach(({ start, end }, w) => {
    if (first[w]! > start) spans.push([start, Math.min(end, first[w]!)]);
  });
  return union(spans);
}

/** Idle gaps that end with a task launched only after the device had run dry. */
function starvedIntervals(tape: Tape): Intervals {
  const launchOf = launchOfTaskAt(tape);
  const spans: [number, number][] = [];
  const { start, end } = tape.busy;
  for (let i = 1; i < start.length; i++) {
    const launch = launchOf(start[i]!);
    if (launch !== Number.POSITIVE_INFINITY && launch > end[i - 1]! - 5_000) spans.push([end[i - 1]!, start[i]!]);
  }
  return union(spans);
}

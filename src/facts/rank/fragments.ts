import { covered, type Intervals } from '../../base/intervals.ts';
import { COMPUTE, type FragmentFacts, type Tape } from '../../model/facts.ts';

/** A task that starts this soon after its launch was waited for by the device (µs-scale launch latency), ns. */
const STARVED_SLACK = 5_000;
/** A run ends at a gap longer than this many launch intervals: that is user code, a sync or the loader. */
const RUN_GAP = 20;
/** Kernels this many launch intervals long are never small. */
const LARGE = 2;
const MIN_KERNELS = 20;
const MIN_STARVED_SHARE = 0.4;
const MIN_SMALL_SHARE = 0.6;

/**
 * Runs of kernels that the host could not feed: starved for at least 40 % of the run's wall time, at least 60 % of the kernels
 * shorter than one launch interval. `excluded` is idle time that another cause owns (loader, compile, sync).
 */
export function fragmentFacts(tape: Tape, excluded: Intervals): FragmentFacts[] {
  const interval = tape.launchInterval;
  if (!(interval > 0)) return [];
  const out: FragmentFacts[] = [];
  let run: number[] = [];
  let starved = 0;
  let last = -1;
  const flush = (): void => {
    const fragment = judge(tape, run, starved, interval);
    if (fragment !== null) out.push(fragment);
    run = [];
    starved = 0;
  };
  for (let i = 0; i < tape.start.length; i++) {
    if (tape.kind[i] !== COMPUTE) continue;
    const launch = tape.launch[i]!;
    if (Number.isNaN(launch)) continue;
    if (last >= 0) {
      const from = tape.start[last]! + tape.duration[last]!;
      const gap = tape.start[i]! - from;
      // A kernel the host has time to launch two others behind ends the run.
      if (gap > RUN_GAP * interval || tape.step[i] !== tape.step[last] || tape.duration[i]! >= LARGE * interval) flush();
      else if (gap > 0 && launch > from - STARVED_SLACK)
        starved += Math.max(0, gap - covered(excluded, from, tape.start[i]!) - covered(tape.busy, from, tape.start[i]!));
    }
    run.push(i);
    last = i;
  }
  flush();
  return out;
}

function judge(tape: Tape, run: readonly number[], starved: number, interval: number): FragmentFacts | null {
  // A dense forward may surround the fragmented part: keep the stretch between the first and last small kernel.
  const trimmed = trim(tape, run, interval);
  if (trimmed.length < MIN_KERNELS) return null;
  const first = trimmed[0]!;
  const last = trimmed[trimmed.length - 1]!;
  const start = tape.start[first]!;
  const end = tape.start[last]! + tape.duration[last]!;
  let busy = 0;
  let small = 0;
  for (const i of trimmed) {
    busy += tape.duration[i]!;
    if (tape.duration[i]! < interval) small++;
  }
  if (starved / (end - start) < MIN_STARVED_SHARE || small / trimmed.length < MIN_SMALL_SHARE) return null;
  const cycle = findCycle(trimmed.map((i) => tape.type[i]!));
  const middle = tape.launch[trimmed[trimmed.length >> 1]!]!;
  const frames = new Map<number, number>();
  for (const i of trimmed) if (tape.frame[i]! >= 0) frames.set(tape.frame[i]!, (frames.get(tape.frame[i]!) ?? 0) + 1);
  const top = [...frames].sort((a, b) => b[1] - a[1])[0];
  return {
    step: tape.step[first]!,
    nodes: trimmed,
    starved,
    busy,
    start,
    end,
    period: cycle.period,
    repeats: cycle.repeats,
    pattern: cycle.pattern.map((t) => tape.types[t]!),
    where: insideOptimizer(tape, trimmed) ? 'optimizer' : Number.isNaN(middle) ? 'other' : 'forward',
    frame: top === undefined ? null : (tape.frames[top[0]] ?? null),
  };
}

function trim(tape: Tape, run: readonly number[], interval: number): number[] {
  let from = 0;
  let to = run.length;
  while (from < to && tape.duration[run[from]!]! >= interval) from++;
  while (to > from && tape.duration[run[to - 1]!]! >= interval) to--;
  return run.slice(from, to);
}

function insideOptimizer(tape: Tape, run: readonly number[]): boolean {
  let inside = 0;
  for (const i of run)
    if (
      covered(tape.optimizer, tape.launch[i]!, tape.launch[i]! + 1) > 0 ||
      covered(tape.optimizer, tape.launch[i]! - 3e6, tape.launch[i]! - 3e6 + 1) > 0
    )
      inside++;
  return inside >= 0.6 * run.length;
}

/** Shortest sequence (up to 64 ops) whose repetition covers most of the run: the loop body that could be one fused call. */
export function findCycle(types: readonly number[]): { period: number; repeats: number; pattern: number[] } {
  let best = { period: 0, repeats: 0, pattern: [] as number[] };
  for (let period = 1; period <= Math.min(64, types.length >> 1); period++) {
    let same = 0;
    for (let i = period; i < types.length; i++) if (types[i] === types[i - period]) same++;
    if (same >= 0.8 * (types.length - period)) {
      best = { period, repeats: Math.floor(types.length / period), pattern: types.slice(0, period) };
      break;
    }
  }
  return best;
}

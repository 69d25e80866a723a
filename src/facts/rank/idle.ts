import { f64 } from '../../base/columns.ts';
import { complement, covered, EMPTY, type Intervals, intersect, subtract, union, unite } from '../../base/intervals.ts';
import {
  COMMUNICATION,
  COMPUTE,
  COPY,
  GAP_CLASSES,
  IDLE_CAUSES,
  type IdleCause,
  type IdleFacts,
  type IdleStep,
  type Tape,
} from '../../model/facts.ts';

/** A task that starts this soon after its launch was waited for by the device (µs-scale launch latency), ns. */
const STARVED_SLACK = 5_000;
/** From launch to start of a task on an idle device: 10–40 µs in real captures, ns. */
const LAUNCH_LATENCY = 40_000;
/** After a wait the host needs a few launches until it is ahead again; what it does for longer than that is not the wait's doing. */
const REFILL_LAUNCHES = 20;
const MIN_REFILL = 300_000;

interface Window {
  readonly start: number;
  readonly end: number;
}

/** Idle intervals of the device between the first step's start and the last step's end. */
export function idleIntervals(tape: Tape | null, windows: readonly Window[]): Intervals {
  if (tape === null || windows.length === 0) return EMPTY;
  return complement(tape.busy, windows[0]!.start, windows[windows.length - 1]!.end);
}

function firstAtOrAfter(sorted: Float64Array, at: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (sorted[mid]! < at) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** Launch instant of the task that ended an idle gap (starts at `gapEnd`); +∞ when unknown, so that nothing is excused without proof. */
export function launchOfTaskAt(tape: Tape | null): (gapEnd: number) => number {
  if (tape === null) return () => Number.POSITIVE_INFINITY;
  return (gapEnd) => {
    let launch = Number.POSITIVE_INFINITY;
    for (let i = firstAtOrAfter(tape.start, gapEnd); i < tape.start.length && tape.start[i] === gapEnd; i++)
      if (tape.launch[i]! < launch) launch = tape.launch[i]!;
    return launch;
  };
}

/** Known launches, ascending. */
export function launchesOf(tape: Tape): Float64Array {
  return tape.launch.filter((t) => !Number.isNaN(t)).sort();
}

/** What the host was held up by, as intervals of its own time. `quiet` are stretches without any recorded operator or call. */
export interface IdleOwners {
  readonly gc: Intervals;
  readonly compile: Intervals;
  readonly allocator: Intervals;
  readonly copy: Intervals;
  readonly sync: Intervals;
  readonly loader: Intervals;
  readonly preparation: Intervals;
  readonly quiet: Intervals;
  /** False when the profile has no host lane: what the host did cannot be told. */
  readonly seesHost: boolean;
}

/** The end of a wait of the host and of the time it needs to fill the launch queue again: to the next launch, not without limit. */
export function refilledAt(tape: Tape, launches: Float64Array, sync: number): number {
  const refill = Math.max(MIN_REFILL, REFILL_LAUNCHES * (tape.launchInterval || 0));
  const end = tape.syncs.end[sync]!;
  const next = launches[firstAtOrAfter(launches, end)] ?? Number.POSITIVE_INFINITY;
  return Math.min(next + LAUNCH_LATENCY, end + refill);
}

export function waitsWithRefill(tape: Tape, launches: Float64Array, wanted: (sync: number) => boolean): Intervals {
  const spans: [number, number][] = [];
  for (let i = 0; i < tape.syncs.start.length; i++) if (wanted(i)) spans.push([tape.syncs.start[i]!, refilledAt(tape, launches, i)]);
  return union(spans);
}

export type Shares = Readonly<Record<IdleCause, Intervals>>;

/** Gives each idle ns to exactly one cause: the shares are disjoint and together the idle time. */
export function idleByCause(tape: Tape, idle: Intervals, owners: IdleOwners): Shares {
  // What the host delayed, what was queued and waited on the device, and what nobody knows the launch of.
  const late = { start: f64(16), end: f64(16) };
  const blind = { start: f64(16), end: f64(16) };
  const queued = { start: f64(16), end: f64(16) };
  const handed = { start: f64(16), end: f64(16) };
  const copied = { start: f64(16), end: f64(16) };
  const push = (set: typeof late, from: number, to: number): void => {
    if (!(to > from)) return;
    set.start.push(from);
    set.end.push(to);
  };
  const launchOf = launchOfTaskAt(tape);
  const isCommunication = communicationAt(tape);
  for (let i = 0; i < idle.start.length; i++) {
    const from = idle.start[i]!;
    const to = idle.end[i]!;
    const launch = launchOf(to);
    if (launch === Number.POSITIVE_INFINITY) {
      push(blind, from, to);
      continue;
    }
    const waited = launch > from - STARVED_SLACK ? Math.max(from, Math.min(to, launch)) : from;
    // The way from the host to the device belongs to the launch.
    const cut = launch > from - STARVED_SLACK && to - waited <= LAUNCH_LATENCY ? to : waited;
    push(late, from, cut);
    push(cut === from && isCommunication(from, to) ? handed : queued, cut, to);
    if (tape.kind[firstAtOrAfter(tape.start, to)] === COPY) push(copied, cut, to);
  }
  const set = ({ start, end }: typeof late): Intervals => ({ start: start.take(), end: end.take() });
  const unknown = set(blind);
  const onDevice = set(queued);
  // A copy that the runtime stages is launched at once and starts when the staging is done.
  const staged = intersect(set(copied), owners.copy);
  let open = unite(set(late), unknown);
  const take = (owner: Intervals): Intervals => {
    const mine = intersect(open, owner);
    open = subtract(open, owner);
    return mine;
  };
  const shares: Record<IdleCause, Intervals> = {
    gc: take(owners.gc),
    compile: take(owners.compile),
    allocator: take(owners.allocator),
    copy: unite(take(owners.copy), staged),
    sync: take(owners.sync),
    loader: take(owners.loader),
    preparation: take(owners.preparation),
    launch: EMPTY,
    collective: subtract(set(handed), staged),
    dependency: subtract(onDevice, staged),
    unexplained: EMPTY,
  };
  const silent = owners.seesHost ? owners.quiet : unknown;
  shares.launch = subtract(open, silent);
  shares.unexplained = intersect(open, silent);
  return shares;
}

/** Whether a gap begins at the end of a collective or ends with the start of one. */
function communicationAt(tape: Tape): (from: number, to: number) => boolean {
  const ends = f64(16);
  for (let i = 0; i < tape.start.length; i++) if (tape.kind[i] === COMMUNICATION) ends.push(tape.start[i]! + tape.duration[i]!);
  const sorted = ends.take().sort();
  return (from, to) => {
    const at = sorted[firstAtOrAfter(sorted, from - 1)];
    if (at !== undefined && at <= from + 1) return true;
    for (let i = firstAtOrAfter(tape.start, to); i < tape.start.length && tape.start[i] === to; i++)
      if (tape.kind[i] === COMMUNICATION) return true;
    return false;
  };
}

/** The account of a rank. The shares are those of `idleByCause` for all its steps. */
export function idleFacts(tape: Tape, windows: readonly Window[], idle: Intervals, shares: Shares): IdleFacts {
  const lead = leadIn(tape, windows);
  const [launching, silent] = [intersect(shares.launch, lead), intersect(shares.unexplained, lead)];
  const steps = windows.map((w, step): IdleStep => {
    const ns = Object.fromEntries(IDLE_CAUSES.map((cause) => [cause, covered(shares[cause], w.start, w.end)])) as Record<IdleCause, number>;
    return {
      step,
      total: covered(idle, w.start, w.end),
      ...ns,
      pieces: IDLE_CAUSES.map((cause) => piecesIn(shares[cause], w.start, w.end)),
      leadLaunch: covered(launching, w.start, w.end),
      leadUnexplained: covered(silent, w.start, w.end),
    };
  });
  return { steps, lengths: IDLE_CAUSES.map((cause) => byLength(shares[cause])) };
}

function piecesIn(set: Intervals, from: number, to: number): number {
  return Math.max(0, firstAtOrAfter(set.start, to) - firstAtOrAfter(set.end, from + 1e-9));
}

function byLength(set: Intervals): number[] {
  const sums = new Array<number>(GAP_CLASSES.length + 1).fill(0);
  for (let i = 0; i < set.start.length; i++) {
    const ns = set.end[i]! - set.start[i]!;
    let at = 0;
    while (at < GAP_CLASSES.length && ns > GAP_CLASSES[at]!) at++;
    sums[at] = sums[at]! + ns;
  }
  return sums;
}

/** Host step start to the first computing or communication task of that step. */
export function leadIn(tape: Tape, windows: readonly Window[]): Intervals {
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

/** First copy node that starts in [from, to), or -1. */
export function copyNodeIn(tape: Tape, from: number, to: number): number {
  for (let i = firstAtOrAfter(tape.start, from); i < tape.start.length && tape.start[i]! < to; i++) if (tape.kind[i] === COPY) return i;
  return -1;
}

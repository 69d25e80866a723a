import { f64 } from '../../base/columns.ts';
import { clip, covered, EMPTY, type Intervals, interval, length, union, unite } from '../../base/intervals.ts';
import type { Frame, RankCapture } from '../../model/capture.ts';
import type { LoaderFacts, Tape } from '../../model/facts.ts';
import type { HostOperators } from './enclosing.ts';
import { hostRanges } from './host-ranges.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** Work of the training thread between a fetch and the first thing sent to the device. */
export interface PreparationDraft {
  readonly step: number;
  readonly start: number;
  readonly end: number;
  /** The part in which the profile shows what the thread did; most of it known counts as all. */
  readonly named: Intervals;
  readonly frame: Frame | null;
  readonly operators: readonly string[];
}

const MOST = 0.5;
/** Work of the loop between two operators, ns. Less is no preparation. */
const LEAST = 50_000;
const SENDS = /^acl_memcpy_host_to_device$/;
const MODEL = /^(DistributedDataParallel|FullyShardedDataParallel)\.forward|^Optimizer\./;

export interface PreparationInput {
  readonly capture: RankCapture;
  readonly windows: readonly StepWindow[];
  readonly tape: Tape;
  readonly operators: HostOperators;
  readonly loader: LoaderFacts | null;
}

export function preparations({ capture, windows, tape, operators, loader }: PreparationInput): PreparationDraft[] {
  const { trace, names } = capture;
  const main = trace?.steps[0]?.tid;
  if (trace === null || main === undefined || loader === null) return [];
  const { host, frames, functions } = trace;
  const rows = operators.ofThread(main);
  // What ends the preparation: the first copy asked for, the model, the optimizer.
  const ends = [...hostRanges(capture, SENDS).filter((r) => r.tid === main), ...hostRanges(capture, MODEL).filter((r) => r.tid === main)]
    .map((r) => outermostStart(capture, operators, main, r.start))
    .sort((a, b) => a - b);
  const issued = issuedBy(capture, tape, main);
  const functionSpans = Array.from(functions.start, (start, i) => ({
    start,
    end: start + functions.duration[i]!,
    frame: frames[functions.frame[i]!] ?? null,
    tid: functions.tid[i]!,
  })).filter((f) => f.tid === main);
  const out: PreparationDraft[] = [];
  loader.fetches.forEach((fetch, f) => {
    const step = windowAt(windows, fetch.end);
    if (step === -1) return;
    const start = fetch.end;
    const end = Math.min(
      after(ends, start),
      after(issued, start),
      loader.fetches[f + 1]?.start ?? Number.POSITIVE_INFINITY,
      windows[step]!.end,
    );
    if (!(end - start >= LEAST)) return;
    const whole = interval(start, end);
    const ops: [number, number][] = [];
    const opNs = new Map<string, number>();
    const frameNs = new Map<Frame, number>();
    for (let k = firstFrom(rows, host.start, start), last = start; k < rows.length && host.start[rows[k]!]! < end; k++) {
      const row = rows[k]!;
      const from = host.start[row]!;
      const to = Math.min(end, from + host.duration[row]!);
      if (from < last || !(to > from)) continue;
      last = to;
      ops.push([from, to]);
      const name = names.get(host.name[row]!);
      opNs.set(name, (opNs.get(name) ?? 0) + to - from);
      const frame = host.frame[row] === -1 ? undefined : frames[host.frame[row]!];
      if (frame !== undefined) frameNs.set(frame, (frameNs.get(frame) ?? 0) + to - from);
    }
    const called = functionSpans.filter((s) => s.start >= start - LEAST && s.start < end);
    const inFunctions = called.length === 0 ? EMPTY : clip(union(called.map((s) => [s.start, s.end] as const)), start, end);
    const seen = unite(union(ops), inFunctions);
    for (const { start: from, end: to, frame } of called)
      if (frame !== null) frameNs.set(frame, (frameNs.get(frame) ?? 0) + covered(whole, from, to));
    const top = [...frameNs].sort((a, b) => b[1] - a[1])[0];
    out.push({
      step,
      start,
      end,
      named: length(seen) >= MOST * (end - start) ? whole : seen,
      frame: top === undefined ? null : top[0],
      operators: [...opNs]
        .sort((a, b) => b[1] - a[1])
        .slice(0, 3)
        .map(([name]) => name),
    });
  });
  return out;
}

function after(sorted: readonly number[] | Float64Array, at: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (sorted[mid]! < at) low = mid + 1;
    else high = mid;
  }
  return sorted[low] ?? Number.POSITIVE_INFINITY;
}

function firstFrom(rows: Int32Array, starts: Float64Array, at: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (starts[rows[mid]!]! < at) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** A copy begins with the operator that asks for it, e.g. `aten::to`. */
function outermostStart({ trace, names }: RankCapture, operators: HostOperators, tid: number, at: number): number {
  const copies = operators.enclosing(tid, at).filter((row) => /^aten::(to|_to_copy|copy_)$/.test(names.get(trace!.host.name[row]!)));
  return Math.min(at, ...copies.map((row) => trace!.host.start[row]!));
}

/** Instants at which the training thread sent something to the device, ascending. */
function issuedBy({ trace }: RankCapture, tape: Tape, main: number): Float64Array {
  const at = f64();
  for (let i = 0; i < tape.start.length; i++) {
    const issued = trace!.issued.get(tape.start[i]!);
    if (issued !== undefined && issued.tid === main) at.push(issued.at);
  }
  return at.take().sort();
}

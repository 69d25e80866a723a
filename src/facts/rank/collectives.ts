import { trailingDigits } from '../../base/endings.ts';
import { covered, EMPTY, type Intervals, unionSorted } from '../../base/intervals.ts';
import type { CollectiveRecord, RankCapture } from '../../model/capture.ts';
import { COMMUNICATION, COMPUTE, type CollectiveFacts, type Tape } from '../../model/facts.ts';
import { type StepWindow, windowAt } from './windows.ts';

const OP = /^hcom_([A-Za-z]+?)_*(?:_(\d+)_(\d+)(?:_(\d+))?)?$/;
const P2P = /^hcom_(send|receive|batchsendrecv)/i;
/** Collectives of a group of one are no-ops of about 2.5 µs. */
const NO_OP_MS = 0.005;
/** Computing that begins this soon after a collective was waiting for it, ns. */
const RESUMES = 150_000;
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Bytes of an element, by the last digits of its type's name. */
const ELEMENT: Readonly<Record<string, number>> = { '8': 1, '16': 2, '32': 4, '64': 8, '128': 16 };

/** Calls of one name looked at for a match. Names count the calls of a group, so real files have one or two of each. */
const MAX_NEAR = 64;

/**
 * Joins the trace's collectives with communication.json. The key is the same on all ranks of a group: group id, then the name,
 * whose number counts the group's calls. Without communication.json the group is known by three digits of its id only.
 */
export function collectiveFacts(
  capture: RankCapture,
  windows: readonly StepWindow[],
  tape: Tape | null,
): { calls: CollectiveFacts[]; nodeCall: Int32Array } {
  const computing =
    tape?.kind.includes(COMMUNICATION) === true ? unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMPUTE) : EMPTY;
  const soloGroups = new Set(capture.groups.filter((g) => g.ranks.length === 1).map((g) => g.hash));
  const fullHash = new Map<string, string>();
  for (const g of capture.groups) {
    const digits = g.hash.slice(-3);
    fullHash.set(digits, fullHash.has(digits) ? '' : g.hash);
  }
  const records = new Map<string, CollectiveRecord[]>();
  for (const record of capture.collectives) {
    const list = records.get(record.name);
    if (list === undefined) records.set(record.name, [record]);
    else list.push(record);
  }
  for (const list of records.values()) list.sort((a, b) => (a.start || 0) - (b.start || 0));
  const calls: Mutable<CollectiveFacts>[] = [];
  const startsOf = new Map<string, number[]>();
  const nodeCall = new Int32Array(tape?.start.length ?? 0).fill(-1);
  const seen = new Set<CollectiveRecord>();

  const add = (name: string, start: number, duration: number, launch: number, node: number, step: number | null, payload: number): void => {
    const record = nearest(records.get(name) ?? [], start, seen);
    if (record !== undefined) seen.add(record);
    const parts = OP.exec(name);
    const op = parts?.[1] ?? name.slice(0, 40);
    const digits = parts?.[2] ?? '';
    const group = record?.group || fullHash.get(digits) || (digits === '' ? '' : `…${digits}`);
    if (soloGroups.has(group)) return;
    if (node >= 0) nodeCall[node] = calls.length;
    const starts = startsOf.get(name);
    if (starts === undefined) startsOf.set(name, [start]);
    else if (starts.length < MAX_NEAR) starts.push(start);
    calls.push({
      step: record?.step ?? step,
      key: `${group}/${name}`,
      name,
      op,
      group,
      p2p: record === undefined ? P2P.test(name) : record.kind === 'p2p',
      start,
      end: start + duration,
      transitMs: record?.transitMs ?? Number.NaN,
      waitMs: record?.waitMs ?? Number.NaN,
      bytes: record === undefined || !(record.sizeMb > 0) ? Number.NaN : record.sizeMb * 1e6,
      sdmaMs: record?.sdmaMs ?? Number.NaN,
      rdmaBytes: (record?.rdmaMb ?? Number.NaN) * 1e6,
      rdmaMs: record?.rdmaMs ?? Number.NaN,
      payload,
      exposed: duration - covered(computing, start, start + duration),
      blocked: Number.NaN,
      launch,
      issued: capture.trace?.issued.get(start)?.at ?? Number.NaN,
      node,
    });
  };

  if (tape !== null) {
    for (let i = 0; i < tape.start.length; i++) {
      if (tape.kind[i] !== COMMUNICATION) continue;
      const step = tape.step[i]! >= 0 ? (windows[tape.step[i]!]?.id ?? null) : null;
      add(tape.types[tape.type[i]!]!, tape.start[i]!, tape.duration[i]!, tape.launch[i]!, i, step, payloadOf(capture, tape.collective[i]!));
    }
  }
  // Ranks that ship only communication.json still tell when each collective began and ended.
  for (const record of capture.collectives) {
    if (seen.has(record) || Number.isNaN(record.start) || !(record.elapsedMs > NO_OP_MS)) continue;
    if (tape !== null && startsOf.get(record.name)?.some((at) => Math.abs(at - record.start) < 1e6)) continue;
    const at = windowAt(windows, record.start);
    add(record.name, record.start, record.elapsedMs * 1e6, Number.NaN, -1, at === -1 ? record.step : windows[at]!.id, Number.NaN);
  }
  if (tape !== null && computing.start.length > 0) fillBlocked(calls, computing, tape);
  return { calls, nodeCall };
}

/** Bytes of the tensor of the trace's n-th collective. */
function payloadOf(capture: RankCapture, n: number): number {
  const collective = capture.trace?.collective;
  const count = collective?.count[n] ?? Number.NaN;
  const type = collective?.dataType[n] ?? -1;
  const bytes = type === -1 ? undefined : ELEMENT[trailingDigits(capture.names.get(type))];
  return count > 0 && bytes !== undefined ? count * bytes : Number.NaN;
}

/**
 * What of each call lies in a pause of computing that ended with a collective: this one, or one behind it. A copy to the host may come
 * between: reading the loss waits for the gradients, too.
 */
function fillBlocked(calls: Mutable<CollectiveFacts>[], computing: Intervals, tape: Tape): void {
  const ends = Float64Array.from(calls, (c) => c.end).sort();
  const starts = tape.start.filter((_, i) => tape.kind[i] !== COMMUNICATION);
  for (const call of calls) {
    call.blocked = 0;
    const next = firstAfter(computing.end, call.end);
    const resumes = computing.start[next];
    if (resumes === undefined || resumes <= call.end) continue;
    const lastEnd = ends[firstAfter(ends, resumes) - 1]!;
    if (starts[firstAfter(starts, lastEnd - 1)]! - lastEnd > RESUMES) continue;
    call.blocked = call.end - Math.max(call.start, next === 0 ? call.start : computing.end[next - 1]!);
  }
}

/** Index of the first value above `at` in an ascending list. */
function firstAfter(values: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (values[mid]! <= at) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** The unused record whose start is nearest; `list` ascends by start and rarely holds more than one. */
function nearest(list: readonly CollectiveRecord[], start: number, used: ReadonlySet<CollectiveRecord>): CollectiveRecord | undefined {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((list[mid]!.start || 0) < start) low = mid + 1;
    else high = mid;
  }
  let best: CollectiveRecord | undefined;
  for (let i = Math.max(0, low - MAX_NEAR); i < list.length && i < low + MAX_NEAR; i++) {
    const record = list[i]!;
    if (used.has(record)) continue;
    if (best === undefined || Number.isNaN(best.start) || Math.abs(record.start - start) < Math.abs(best.start - start)) best = record;
  }
  return best;
}

import type { Frame, RankCapture } from '../../model/capture.ts';
import { TO_DEVICE, TO_HOST } from '../../model/capture.ts';
import type { SyncKind } from '../../model/facts.ts';
import type { HostOperators } from './enclosing.ts';

const BLOCKING = /^AscendCL@aclrt(Synchronize(Stream|Device|Event)|Memcpy$)/;
/** Operators that read a value on the host: from the device it took at least 130 µs in real captures, from host memory up to 70 µs. ns. */
const DEVICE_READ = 100_000;
const BLOCKING_OP = /^(aten::(_local_scalar_dense|nonzero|masked_select|_unique2?|unique_dim|equal)|Event::synchronize)$/;
/** At Level0, a copy that goes on for so long after it was asked for has waited for the device, ns. Asking takes some 20 µs. */
const COPY_WAIT = 200_000;
const READS = /^aten::(item|_local_scalar_dense|is_nonzero|equal|allclose)$/;
const SHAPES = /^aten::(nonzero|nonzero_numpy|masked_select|_unique2?|unique_dim|unique_consecutive|repeat_interleave|bincount)$/;
const COPIES = /^aten::(copy_|_to_copy|to)$/;
const ASKED_COPY = /^acl_memcpy_(host_to_device|device_to_host)$/;
/** Giving the whole cache back follows its wait at once, ns. */
const RELEASE_WITHIN = 1_000_000;
const GIVES_BACK = /^AscendCL@aclrt(Free(Physical)?|UnmapMem)$/;

const MAX_SITES = 64;

/** One place that waits, before its costs are known. */
export interface SiteDraft {
  readonly kind: SyncKind;
  readonly call: string;
  readonly operator: string;
  readonly frame: Frame | null;
}

/** Waits of the host for the device, by start. Parallel columns; `owner` is the row of the operator that made the wait, or -1. */
export interface HostSyncs {
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly site: Int32Array;
  readonly tid: Int32Array;
  readonly owner: Int32Array;
  readonly sites: readonly SiteDraft[];
}

interface Wait {
  readonly start: number;
  readonly end: number;
  readonly tid: number;
  readonly call: string;
  /** Row of the operator, at Level0. */
  readonly op: number;
}

export function hostSyncs(capture: RankCapture, operators: HostOperators): HostSyncs {
  const waits = waitsOf(capture, operators).sort((a, b) => a.start - b.start);
  const releases = releaseStarts(capture);
  const sites: (SiteDraft & { ns: number })[] = [];
  const ids = new Map<string, number>();
  const site = new Int32Array(waits.length).fill(-1);
  const owner = new Int32Array(waits.length).fill(-1);
  waits.forEach((wait, i) => {
    const found = classify(capture, operators, wait, releases);
    owner[i] = found.owner;
    const { kind, operator, frame } = found;
    const isAsked = kind === 'stream' || kind === 'device' || kind === 'event' || kind === 'release';
    const key = `${kind}|${operator}|${frame?.file}:${frame?.line}:${frame?.func}|${isAsked ? wait.call : ''}`;
    let id = ids.get(key);
    if (id === undefined) {
      id = sites.length;
      ids.set(key, id);
      sites.push({ kind, operator, frame, call: wait.call, ns: 0 });
    }
    site[i] = id;
    sites[id]!.ns += wait.end - wait.start;
  });
  const order = sites.map((_, i) => i).sort((a, b) => sites[b]!.ns - sites[a]!.ns || a - b);
  const place = new Map(order.slice(0, MAX_SITES).map((from, to) => [from, to] as const));
  return {
    start: Float64Array.from(waits, (w) => w.start),
    end: Float64Array.from(waits, (w) => w.end),
    site: site.map((id) => place.get(id) ?? -1),
    tid: Int32Array.from(waits, (w) => w.tid),
    owner,
    sites: order.slice(0, MAX_SITES).map((i) => {
      const { ns: _, ...draft } = sites[i]!;
      return draft;
    }),
  };
}

function waitsOf({ trace, names }: RankCapture, operators: HostOperators): Wait[] {
  const waits: Wait[] = [];
  if (trace === null) return waits;
  const { cann, host } = trace;
  for (let i = 0; i < cann.name.length; i++) {
    const call = names.get(cann.name[i]!);
    if (BLOCKING.test(call))
      waits.push({ start: cann.start[i]!, end: cann.start[i]! + cann.duration[i]!, tid: cann.tid[i]!, call: call.slice(9), op: -1 });
  }
  // Level0 has no CANN calls: what blocks is known by the framework's operators only.
  if (cann.name.length > 0) return waits;
  for (let i = 0; i < host.name.length; i++) {
    const name = names.get(host.name[i]!);
    const end = host.start[i]! + host.duration[i]!;
    if (host.duration[i]! >= DEVICE_READ && BLOCKING_OP.test(name))
      waits.push({ start: host.start[i]!, end, tid: host.tid[i]!, call: name, op: i });
    if (!ASKED_COPY.test(name)) continue;
    const copy = operators.enclosing(host.tid[i]!, host.start[i]!).find((row) => names.get(host.name[row]!) === 'aten::copy_');
    const until = copy === undefined ? end : host.start[copy]! + host.duration[copy]!;
    if (until - end >= COPY_WAIT) waits.push({ start: end, end: until, tid: host.tid[i]!, call: 'aten::copy_', op: copy! });
  }
  return waits;
}

/** Starts of calls that give memory back, by thread, ascending. */
function releaseStarts({ trace, names }: RankCapture): Map<number, number[]> {
  const starts = new Map<number, number[]>();
  if (trace === null) return starts;
  const { cann } = trace;
  for (let i = 0; i < cann.name.length; i++) {
    if (!GIVES_BACK.test(names.get(cann.name[i]!))) continue;
    const list = starts.get(cann.tid[i]!);
    if (list === undefined) starts.set(cann.tid[i]!, [cann.start[i]!]);
    else list.push(cann.start[i]!);
  }
  for (const list of starts.values()) list.sort((a, b) => a - b);
  return starts;
}

function classify(
  capture: RankCapture,
  operators: HostOperators,
  wait: Wait,
  releases: ReadonlyMap<number, readonly number[]>,
): { kind: SyncKind; operator: string; frame: Frame | null; owner: number } {
  const { trace, names } = capture;
  const { host, frames } = trace!;
  const rows = wait.op === -1 ? operators.enclosingCall(wait.tid, wait.start) : operators.enclosing(wait.tid, wait.start + 1);
  const nameOf = (row: number): string => names.get(host.name[row]!);
  const framed = rows.find((row) => host.frame[row] !== -1);
  const frame = framed === undefined ? null : frames[host.frame[framed]!]!;
  const outermost = (test: RegExp): number => rows.findLast((row) => test.test(nameOf(row))) ?? -1;
  const as = (kind: SyncKind, row: number) => ({ kind, operator: row === -1 ? '' : nameOf(row), frame, owner: row });
  for (const [test, kind] of [
    [READS, 'item'],
    [SHAPES, 'shape'],
  ] as const) {
    const row = outermost(test);
    if (row !== -1) return as(kind, row);
  }
  const copy = outermost(COPIES);
  if (copy !== -1) return as(directionOf(capture, operators, wait, copy), copy);
  if (/Device/.test(wait.call) && (releases.get(wait.tid) ?? []).some((at) => at >= wait.end && at - wait.end < RELEASE_WITHIN))
    return as('release', rows[0] ?? -1);
  const kind: SyncKind = /Event/i.test(wait.call)
    ? 'event'
    : /Device/.test(wait.call)
      ? 'device'
      : /Memcpy/.test(wait.call)
        ? 'copy'
        : 'stream';
  return as(kind, rows[0] ?? -1);
}

/** Which way a copy goes: by the runtime's own name for it inside the operator, else by the size table. */
function directionOf({ trace, names }: RankCapture, operators: HostOperators, wait: Wait, copy: number): SyncKind {
  const { host, copies } = trace!;
  const from = host.start[copy]!;
  const rows = operators.ofThread(host.tid[copy]!);
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (host.start[rows[mid]!]! < from) low = mid + 1;
    else high = mid;
  }
  for (let k = low; k < rows.length && host.start[rows[k]!]! <= wait.end; k++) {
    const name = names.get(host.name[rows[k]!]!);
    if (name === 'acl_memcpy_host_to_device') return 'to-device';
    if (name === 'acl_memcpy_device_to_host') return 'to-host';
  }
  let first = 0;
  let last = copies.start.length;
  while (first < last) {
    const mid = (first + last) >> 1;
    if (copies.start[mid]! < wait.start) first = mid + 1;
    else last = mid;
  }
  if (first < copies.start.length && copies.start[first]! <= wait.end) {
    if (copies.direction[first] === TO_DEVICE) return 'to-device';
    if (copies.direction[first] === TO_HOST) return 'to-host';
  }
  return 'copy';
}

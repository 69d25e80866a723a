import {
  clip,
  complement,
  covered,
  EMPTY,
  type Intervals,
  intersect,
  interval,
  length,
  subtract,
  union,
  unionSorted,
  unite,
} from '../../base/intervals.ts';
import { sortedRows } from '../../base/lookup.ts';
import type { Frame, RankCapture } from '../../model/capture.ts';
import {
  COMMUNICATION,
  type CompileFacts,
  type CopyCall,
  type HostCost,
  type HostFacts,
  type HostSpan,
  type IdleFacts,
  type LoaderFacts,
  type QuietSpan,
  type SyncSite,
  type Tape,
} from '../../model/facts.ts';
import { compiling } from './compile.ts';
import type { HostOperators } from './enclosing.ts';
import { copyNodeIn, type IdleOwners, idleByCause, idleFacts, launchesOf, refilledAt, type Shares, waitsWithRefill } from './idle.ts';
import { preparations } from './preparation.ts';
import type { HostSyncs } from './syncs.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** A stretch without any operator or call is worth a look from this length on: user code between two operators is shorter, ns. */
const QUIET = 1_000_000;
const QUIET_LAUNCHES = 20;
const MAX_QUIET = 500;
const MAX_SPANS = 2_000;
const MAX_COPIES = 1_000;
/** Spans closer than this are one, ns. */
const JOINED = 5_000;
/** Running a graph follows the wait before it at once, ns. */
const GRAPH_WITHIN = 1_000_000;

/** Ranges around code, e.g. `DistributedDataParallel.forward`, `Optimizer.step#AdamW.step`: what is in them is recorded by itself. */
const AROUND = /^\w+\.\w+(#[\w.]+)?$/;
const ALLOCATOR = /^AscendCL@(aclrt(Malloc|Free|MapMem|UnmapMem|ReserveMem|ReleaseMem)|aclMallocMem)/;
const GRAPH = /^AscendCL@aclmdl(RI)?Execute/;

export interface HostInput {
  readonly capture: RankCapture;
  readonly windows: readonly StepWindow[];
  readonly tape: Tape;
  readonly idle: Intervals;
  readonly operators: HostOperators;
  readonly syncs: HostSyncs;
  readonly loader: LoaderFacts | null;
  readonly compile: CompileFacts | null;
}

/** The account of the idle time, and what held up the host with the part of the account that each thing owns. */
export function hostAndIdle(input: HostInput): {
  host: HostFacts | null;
  idle: IdleFacts;
  /** Idle time that is not the launches'. */
  notLaunching: Intervals;
} {
  const { capture, windows, tape, idle, syncs, loader, compile } = input;
  const { trace, settings } = capture;
  const launches = launchesOf(tape);
  const kindOf = (i: number): string => syncs.sites[syncs.site[i]!]?.kind ?? '';
  const collections = trace === null ? EMPTY : union(spansOf(trace.gc.start, trace.gc.duration));
  const allocations = callsOf(capture, ALLOCATOR);
  const copies = copyCalls(input);
  const prepared = preparations(input);
  const quiet = quietStretches(capture, windows, tape);
  const owners: IdleOwners = {
    gc: collections,
    compile: compiling(compile),
    allocator: unite(
      allocations.union,
      waitsWithRefill(tape, launches, (i) => kindOf(i) === 'release'),
    ),
    copy: union(copies.map((c) => [c.start, c.end] as const)),
    sync: waitsWithRefill(tape, launches, (i) => !['to-device', 'release'].includes(kindOf(i))),
    loader: union((loader?.fetches ?? []).filter((f) => f.stall > 0).map((f) => [f.start, f.end] as const)),
    preparation: unite(...prepared.map((p) => p.named)),
    quiet,
    seesHost: trace !== null && trace.host.name.length > 0,
  };
  const shares = idleByCause(tape, idle, owners);
  const facts = idleFacts(tape, windows, idle, shares);
  const notLaunching = subtract(idle, shares.launch);
  if (trace === null || trace.host.name.length + trace.cann.name.length === 0) return { host: null, idle: facts, notLaunching };
  return {
    idle: facts,
    notLaunching,
    host: {
      syncs: siteFacts(input, shares, launches),
      copies: {
        costs: costsOf(copies, windows, shares.copy),
        calls: mostIdle(
          copies.map((c) => ({ ...c, idle: covered(shares.copy, c.start, c.end) })),
          MAX_COPIES,
        ),
      },
      gc: settings.gcThreshold === null && trace.gc.start.length === 0 ? null : spanFacts(collections, windows, shares.gc),
      allocator: trace.cann.name.length === 0 ? null : allocatorFacts(input, allocations, shares.allocator),
      preparation: mostIdle(
        prepared.flatMap(({ named, step, frame, operators }) =>
          Array.from(named.start, (start, i) => ({
            step,
            start,
            end: named.end[i]!,
            idle: covered(shares.preparation, start, named.end[i]!),
            frame,
            operators,
          })),
        ),
        MAX_SPANS,
      ),
      quiet: quietFacts(input, intersect(quiet, shares.unexplained), quiet),
    },
  };
}

function* spansOf(start: Float64Array, duration: Float64Array): Generator<readonly [number, number]> {
  for (let i = 0; i < start.length; i++) yield [start[i]!, start[i]! + duration[i]!];
}

/** Sums by step; spans outside all steps count nowhere. */
function costsOf(spans: readonly { start: number; end: number }[], windows: readonly StepWindow[], share: Intervals): HostCost[] {
  const costs = new Map<number, { step: number; count: number; host: number; idle: number }>();
  for (const { start, end } of spans) {
    const step = windowAt(windows, start);
    if (step === -1) continue;
    const cost = costs.get(step) ?? { step, count: 0, host: 0, idle: 0 };
    cost.count++;
    cost.host += end - start;
    cost.idle += covered(share, start, end);
    costs.set(step, cost);
  }
  return [...costs.values()].sort((a, b) => a.step - b.step);
}

/** The spans that own most idle time, in order of time. */
function mostIdle<T extends HostSpan>(spans: readonly T[], limit: number): T[] {
  if (spans.length <= limit) return [...spans];
  return [...spans]
    .sort((a, b) => b.idle - a.idle || a.start - b.start)
    .slice(0, limit)
    .sort((a, b) => a.start - b.start);
}

function spanFacts(set: Intervals, windows: readonly StepWindow[], share: Intervals): { costs: HostCost[]; calls: HostSpan[] } {
  const calls: HostSpan[] = [];
  for (let i = 0; i < set.start.length; i++) {
    const [start, end] = [set.start[i]!, set.end[i]!];
    const step = windowAt(windows, start);
    if (step !== -1) calls.push({ step, start, end, idle: covered(share, start, end) });
  }
  return { costs: costsOf(calls, windows, share), calls: mostIdle(calls, MAX_SPANS) };
}

interface Calls {
  readonly list: { name: string; start: number; end: number; tid: number }[];
  readonly union: Intervals;
}

/** Calls of CANN by name, those close to each other merged. */
function callsOf({ trace, names }: RankCapture, test: RegExp): Calls {
  const list: Calls['list'] = [];
  if (trace === null) return { list, union: EMPTY };
  const { cann } = trace;
  for (let i = 0; i < cann.name.length; i++) {
    const name = names.get(cann.name[i]!);
    if (test.test(name))
      list.push({ name: name.slice(9), start: cann.start[i]!, end: cann.start[i]! + cann.duration[i]!, tid: cann.tid[i]! });
  }
  list.sort((a, b) => a.start - b.start);
  const joined = union(list.map((c) => [c.start, c.end + JOINED] as const));
  return { list, union: { start: joined.start, end: joined.end.map((end) => end - JOINED) } };
}

function allocatorFacts(input: HostInput, allocations: Calls, share: Intervals): HostFacts['allocator'] {
  const { windows, tape, syncs } = input;
  const { calls, costs } = spanFacts(allocations.union, windows, share);
  const names = new Map<string, { name: string; count: number; ns: number }>();
  const counts = new Map<number, number>();
  for (const { name, start, end } of allocations.list) {
    const step = windowAt(windows, start);
    if (step === -1) continue;
    counts.set(step, (counts.get(step) ?? 0) + 1);
    const sum = names.get(name) ?? { name, count: 0, ns: 0 };
    sum.count++;
    sum.ns += end - start;
    names.set(name, sum);
  }
  const isRelease = (i: number): boolean => syncs.site[i] !== -1 && syncs.sites[syncs.site[i]!]!.kind === 'release';
  const releases: { start: number; end: number }[] = [];
  for (let i = 0; i < tape.syncs.start.length; i++) {
    // What follows the wait until the next operator belongs to it.
    if (isRelease(i)) releases.push({ start: tape.syncs.start[i]!, end: tape.syncs.end[i]! });
  }
  return {
    costs: costs.map((c) => ({ ...c, count: counts.get(c.step) ?? c.count })),
    calls,
    names: [...names.values()].sort((a, b) => b.ns - a.ns).slice(0, 12),
    releases: costsOf(releases, windows, share),
    releaseFrame: syncs.sites.find((s) => s.kind === 'release' && s.frame !== null)?.frame ?? null,
  };
}

/** Copies to the device that the host waited for: the whole operator, from asking to the end of the wait. */
function copyCalls({ capture, windows, tape, syncs }: HostInput): CopyCall[] {
  const { trace } = capture;
  if (trace === null) return [];
  const { host, copies } = trace;
  const byOwner = new Map<number, number[]>();
  for (let i = 0; i < syncs.start.length; i++) {
    if (syncs.site[i] === -1 || syncs.sites[syncs.site[i]!]!.kind !== 'to-device' || syncs.owner[i] === -1) continue;
    const list = byOwner.get(syncs.owner[i]!);
    if (list === undefined) byOwner.set(syncs.owner[i]!, [i]);
    else list.push(i);
  }
  const sizeAt = new Map<number, number>();
  for (let i = 0; i < copies.start.length; i++) sizeAt.set(copies.start[i]!, copies.bytes[i]!);
  const calls: CopyCall[] = [];
  for (const [row, own] of byOwner) {
    const start = host.start[row]!;
    const end = start + host.duration[row]!;
    const step = windowAt(windows, start);
    if (step === -1) continue;
    const node = copyNodeIn(tape, start, end);
    const frame = host.frame[row] === -1 ? syncs.sites[syncs.site[own[0]!]!]!.frame : trace.frames[host.frame[row]!]!;
    calls.push({
      step,
      start,
      end,
      idle: 0,
      syncs: own,
      node,
      bytes: node === -1 ? Number.NaN : (sizeAt.get(tape.start[node]!) ?? Number.NaN),
      // An asynchronous copy was asked for and then waited for: torch_npu does so when the host memory is not pinned.
      pageable: askedAsynchronously(capture, own, syncs) ? true : null,
      frame,
    });
  }
  return calls.sort((a, b) => a.start - b.start);
}

/** `acl_memcpy_…` is the asynchronous copy; the blocking one waits for the stream and copies in `aclrtMemcpy`. */
function askedAsynchronously({ trace, names }: RankCapture, own: readonly number[], syncs: HostSyncs): boolean {
  const { cann } = trace!;
  if (cann.name.length === 0) return true;
  const first = syncs.start[own[0]!]!;
  const last = syncs.end[own[own.length - 1]!]!;
  return !cann.name.some((name, i) => cann.start[i]! >= first && cann.start[i]! <= last && names.get(name) === 'AscendCL@aclrtMemcpy');
}

function siteFacts({ capture, windows, tape, syncs }: HostInput, shares: Shares, launches: Float64Array): SyncSite[] {
  const byLaunch = sortedRows(tape.launch.length, (a, b) => (tape.launch[a] || 0) - (tape.launch[b] || 0) || a - b).filter(
    (i) => !Number.isNaN(tape.launch[i]!),
  );
  const nextAt = (at: number): number => {
    let low = 0;
    let high = launches.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (launches[mid]! < at) low = mid + 1;
      else high = mid;
    }
    return low;
  };
  const graphs = callsOf(capture, GRAPH).list;
  const share = unite(shares.sync, shares.copy, shares.allocator);
  return syncs.sites.map((site, id): SyncSite => {
    const spans: { start: number; end: number; from: number; to: number }[] = [];
    let besideCollective = 0;
    let beforeGraph = 0;
    let owner = -1;
    for (let i = 0; i < syncs.start.length; i++) {
      if (syncs.site[i] !== id) continue;
      const [from, to] = [syncs.start[i]!, syncs.end[i]!];
      const next = nextAt(to);
      const kindAt = (k: number): number => (byLaunch[k] === undefined ? -1 : tape.kind[byLaunch[k]!]!);
      if (kindAt(next) === COMMUNICATION || kindAt(nextAt(from) - 1) === COMMUNICATION) besideCollective++;
      if (graphs.some((g) => g.tid === syncs.tid[i] && g.start >= to && g.start - to < GRAPH_WITHIN && !(launches[next]! < g.start)))
        beforeGraph++;
      // Reading one value may take two calls.
      const last = spans.at(-1);
      const until = Math.min(refilledAt(tape, launches, i), Math.max(to, syncs.start[i + 1] ?? Number.POSITIVE_INFINITY));
      if (last !== undefined && owner !== -1 && owner === syncs.owner[i]) {
        last.to = to;
        last.end = until;
      } else spans.push({ start: from, end: until, from, to });
      owner = syncs.owner[i]!;
    }
    const costs = costsOf(spans, windows, share).map((c) => ({ ...c, host: 0 }));
    const at = new Map(costs.map((c) => [c.step, c] as const));
    let worst = { step: -1, start: Number.NaN, end: Number.NaN, idle: -1 };
    for (const span of spans) {
      const step = windowAt(windows, span.start);
      const cost = at.get(step);
      if (cost === undefined) continue;
      cost.host += span.to - span.from;
      const idle = covered(share, span.start, span.end);
      if (idle > worst.idle) worst = { step, start: span.from, end: span.to, idle };
    }
    return {
      kind: site.kind,
      call: site.call,
      operator: site.operator,
      frame: site.frame,
      costs,
      worst: { step: worst.step, start: worst.start, end: worst.end },
      besideCollective,
      beforeGraph,
    };
  });
}

/** Stretches of the steps in which no operator or call of any thread was recorded. */
function quietStretches({ trace, names }: RankCapture, windows: readonly StepWindow[], tape: Tape): Intervals {
  if (trace === null || windows.length === 0) return EMPTY;
  const around = new Set([...new Set(trace.host.name)].filter((id) => AROUND.test(names.get(id))));
  const active = unite(
    activity(trace.host, (row) => !around.has(trace.host.name[row]!)),
    activity(trace.cann),
  );
  const all = complement(active, windows[0]!.start, windows[windows.length - 1]!.end);
  const least = Math.max(QUIET, QUIET_LAUNCHES * (tape.launchInterval || 0));
  const keep = all.start.map((start, i) => (all.end[i]! - start >= least ? 1 : 0));
  return { start: all.start.filter((_, i) => keep[i] === 1), end: all.end.filter((_, i) => keep[i] === 1) };
}

function activity(
  { start, duration }: { start: Float64Array; duration: Float64Array },
  counts: (row: number) => boolean = () => true,
): Intervals {
  const order = sortedRows(start.length, (a, b) => start[a]! - start[b]! || a - b).filter(counts);
  const starts = new Float64Array(order.length);
  const durations = new Float64Array(order.length);
  for (let i = 0; i < order.length; i++) {
    starts[i] = start[order[i]!]!;
    durations[i] = duration[order[i]!]!;
  }
  return unionSorted(starts, durations);
}

/** The quiet stretches in which the device was idle for no other reason, with what surrounds them. */
function quietFacts({ capture, windows }: HostInput, owned: Intervals, quiet: Intervals): QuietSpan[] {
  const { host, functions, frames } = capture.trace!;
  const spans: HostSpan[] = [];
  for (let i = 0; i < quiet.start.length; i++) {
    const [start, end] = [quiet.start[i]!, quiet.end[i]!];
    const idle = covered(owned, start, end);
    const step = windowAt(windows, start);
    if (idle > 0 && step !== -1) spans.push({ step, start, end, idle });
  }
  const kept = mostIdle(spans, MAX_QUIET);
  const byStart = sortedRows(host.start.length, (a, b) => host.start[a]! - host.start[b]! || a - b);
  const end = (row: number): number => host.start[row]! + host.duration[row]!;
  return kept.map((span) => {
    let low = 0;
    let high = byStart.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (host.start[byStart[mid]!]! < span.end) low = mid + 1;
      else high = mid;
    }
    let before = -1;
    for (let k = low - 1; k >= 0 && k >= low - 32; k--) if (before === -1 || end(byStart[k]!) > end(before)) before = byStart[k]!;
    const after = byStart[low];
    const name = (row: number | undefined): string => (row === undefined || row === -1 ? '' : capture.names.get(host.name[row]!));
    return { ...span, before: name(before), after: name(after), frame: functionIn(span, functions, frames) };
  });
}

/** The shortest long function that begins inside a stretch and fills most of it. */
function functionIn(span: HostSpan, functions: NonNullable<RankCapture['trace']>['functions'], frames: readonly Frame[]): Frame | null {
  let best = -1;
  for (let i = 0; i < functions.start.length; i++) {
    const inside = clip(interval(functions.start[i]!, functions.start[i]! + functions.duration[i]!), span.start, span.end);
    if (functions.start[i]! < span.start - 100_000 || length(inside) < 0.6 * (span.end - span.start)) continue;
    if (best === -1 || functions.duration[i]! < functions.duration[best]!) best = i;
  }
  return best === -1 ? null : (frames[functions.frame[best]!] ?? null);
}

import { median, quantile } from '../../base/statistics.ts';
import { TRANSPORTS } from '../../model/capture.ts';
import { groupOf, type Role } from './groups.ts';
import type { JobFacts } from './index.ts';

/** One collective of the used steps as a transfer: what is left of it once everybody has come. */
export interface Transfer {
  /** Index into the job's matches. */
  readonly match: number;
  readonly step: number | null;
  readonly op: string;
  readonly group: string;
  readonly role: Role;
  /** Members of the group, as far as known. */
  readonly size: number;
  readonly p2p: boolean;
  /** Start of the last member here, and end, ns of the job's clock. */
  readonly start: number;
  readonly end: number;
  /** ms from the last arrival to the end. While members are missing it may hold waiting for them. */
  readonly bodyMs: number;
  /** All members are here. */
  readonly whole: boolean;
  /** ms the busiest member's links needed side by side, as the file has it: moving without waiting. NaN when it does not tell. */
  readonly movingMs: number;
  /** Bytes of the tensor, else what a member moved; NaN when unknown. */
  readonly bytes: number;
  readonly betweenServers: boolean;
  /** Part of the body that computing of the last member covers, 0..1; NaN without a timeline of computing. */
  readonly overlap: number;
  /** Longest time that computing of a member waited for it at its end, ms; NaN without a timeline. */
  readonly blockedMs: number;
  /** First call of its group ever: the connection is made in it. */
  readonly first: boolean;
}

const INDEX = /_(\d+)(?:_\d+)?$/;
const known = new WeakMap<JobFacts, readonly Transfer[]>();

/** Collectives of the used steps, in order of their end. */
export function transfers(job: JobFacts): readonly Transfer[] {
  const before = known.get(job);
  if (before !== undefined) return before;
  const arrivalOf = new Map(job.arrivals.map((a) => [a.match, a] as const));
  const used = new Set<number | null>(job.steps.used);
  const linksAt = parallelLinks(job);
  const out: Transfer[] = [];
  job.matches.forEach((match, m) => {
    if (match.step !== null && used.size > 0 && !used.has(match.step)) return;
    const group = groupOf(job, match.group);
    const calls = match.ranks.map((r, k) => job.ranks[r]!.collectives[match.calls[k]!]!);
    const size = group.size ?? match.groupSize ?? match.ranks.length;
    const arrival = arrivalOf.get(m);
    const whole = match.complete === true && size > 1 && job.clock.usable && arrival !== undefined;
    // The quickest member came last or nearly so; it waits least.
    let last = 0;
    calls.forEach((call, k) => {
      if (call.end - call.start < calls[last]!.end - calls[last]!.start) last = k;
    });
    const call = calls[last]!;
    const offset = job.clock.offset[match.ranks[last]!] ?? 0;
    const bodyNs = Math.max(0, whole ? Math.min(arrival.body, call.end - call.start) : call.end - call.start);
    const timed = job.ranks[match.ranks[last]!]!.tape !== null && !Number.isNaN(call.blocked);
    const payload = calls.find((c) => c.payload > 0)?.payload ?? Number.NaN;
    const movingMs = calls.reduce((most, c, k) => {
      const links = linksAt(match.ranks[k]!, match.group, match.op);
      const ms = Math.max((c.sdmaMs || 0) / links.inside, (c.rdmaMs || 0) / links.between);
      return ms > 0 && !(most >= ms) ? ms : most;
    }, Number.NaN);
    const moved = calls.reduce((most, c) => Math.max(most, Number.isNaN(c.bytes) ? most : c.bytes), 0);
    out.push({
      match: m,
      step: match.step,
      op: match.op,
      group: match.group,
      role: group.role,
      size,
      p2p: match.p2p,
      start: call.end + offset - bodyNs,
      end: call.end + offset,
      bodyMs: bodyNs / 1e6,
      whole,
      movingMs,
      bytes: payload > 0 ? payload : moved > 0 ? moved : Number.NaN,
      betweenServers: calls.some((c) => c.rdmaBytes > 0),
      overlap: timed && bodyNs > 0 ? 1 - Math.min(call.exposed, bodyNs) / bodyNs : Number.NaN,
      blockedMs: calls.every((c) => Number.isNaN(c.blocked)) ? Number.NaN : Math.max(...calls.map((c) => c.blocked || 0)) / 1e6,
      first: INDEX.exec(call.name)?.[1] === '0',
    });
  });
  out.sort((a, b) => a.end - b.end);
  known.set(job, out);
  return out;
}

/** Links of a rank that work side by side in the calls of one kind; 1 where no table tells. */
function parallelLinks(job: JobFacts): (rank: number, group: string, op: string) => { inside: number; between: number } {
  const counts = job.ranks.map((rank) => {
    const own = new Map<string, { inside: number; between: number }>();
    const table = rank.links?.links;
    table?.group.forEach((group, i) => {
      const key = `${group}/${table.op[i]!}`;
      const count = own.get(key) ?? { inside: 0, between: 0 };
      count[TRANSPORTS[table.transport[i]!] === 'RDMA' ? 'between' : 'inside']++;
      own.set(key, count);
    });
    return own;
  });
  return (rank, group, op) => {
    const count = counts[rank]!.get(`${group}/${op}`);
    return { inside: Math.max(1, count?.inside ?? 1), between: Math.max(1, count?.between ?? 1) };
  };
}

/** Collectives that may be compared: same operation, as many members, the same kind of link. */
export function kindOf(t: Transfer): string {
  return `${t.op}/${t.size}/${t.betweenServers ? 'between' : 'inside'}`;
}

/** What the calls of one kind cost, from the run itself: time ≈ start-up + bytes × slope. */
export interface Line {
  /** ms of a call that moves next to nothing. */
  readonly startUpMs: number;
  readonly msPerByte: number;
  /** Bytes from which moving them takes longer than starting up. */
  readonly kneeBytes: number;
  readonly calls: number;
}

/** Sizes that differ less are one size. */
const SIZE_STEP = 1.25;
/** Sizes must spread this far before start-up can be told from moving. */
const LEAST_SPREAD = 4;
const LEAST_CALLS = 6;

interface Size {
  readonly bytes: number;
  readonly ms: number;
  readonly calls: number;
}

function sizesOf(calls: readonly Transfer[]): Size[] {
  const sorted = calls.filter((t) => t.bytes > 0 && t.bodyMs > 0).sort((a, b) => a.bytes - b.bytes);
  const sizes: Size[] = [];
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (j < sorted.length && sorted[j]!.bytes <= SIZE_STEP * sorted[i]!.bytes) j++;
    const own = sorted.slice(i, j);
    // While members are missing only the quickest calls are free of waiting.
    const q = own.every((t) => t.whole) ? 0.5 : 0.1;
    sizes.push({
      bytes: median(own.map((t) => t.bytes)),
      ms: quantile(
        own.map((t) => t.bodyMs),
        q,
      ),
      calls: own.length,
    });
    i = j;
  }
  return sizes;
}

/**
 * Robust line through the calls of one kind; null when they are too few or too alike. `all`: calls of every kind, whose quickest bytes
 * stand in when the calls of this kind have one size only.
 */
export function lineOf(calls: readonly Transfer[], all: readonly Transfer[] = []): Line | null {
  const counted = calls.filter((t) => !t.first);
  const sizes = sizesOf(counted);
  const [smallest, largest] = [sizes[0], sizes[sizes.length - 1]];
  if (counted.length < LEAST_CALLS || smallest === undefined || largest === undefined) return null;
  let slope = Number.NaN;
  if (largest.bytes >= LEAST_SPREAD * smallest.bytes) {
    const slopes: number[] = [];
    for (const a of sizes) for (const b of sizes) if (b.bytes >= LEAST_SPREAD * a.bytes) slopes.push((b.ms - a.ms) / (b.bytes - a.bytes));
    slope = Math.max(0, median(slopes));
  } else {
    const { size, betweenServers } = counted[0]!;
    const larger = sizesOf(all.filter((t) => !t.first && !t.p2p && t.size === size && t.betweenServers === betweenServers)).filter(
      (s) => s.bytes >= 2 * LEAST_SPREAD * largest.bytes,
    );
    if (larger.length === 0) return null;
    slope = Math.min(...larger.map((s) => s.ms / s.bytes));
  }
  // Large calls vary by more than a start-up takes, so only the small ones tell it.
  const small = sizes.filter((s) => s.bytes <= 2 * LEAST_SPREAD * smallest.bytes);
  const startUpMs = Math.max(0, median(small.map((s) => s.ms - slope * s.bytes)));
  return { startUpMs, msPerByte: slope, kneeBytes: slope > 0 ? startUpMs / slope : Number.POSITIVE_INFINITY, calls: counted.length };
}

/** Used steps that a sum over them is divided by. */
export function stepCount(job: JobFacts): number {
  return Math.max(1, job.steps.usedIndex.length);
}

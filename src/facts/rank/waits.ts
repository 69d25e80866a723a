import { complement, covered, type Intervals, subtract, unionSorted } from '../../base/intervals.ts';
import type { RankCapture } from '../../model/capture.ts';
import { COMPUTE, type Tape, type WaitTotal } from '../../model/facts.ts';
import type { HostSyncs } from './syncs.ts';

/** A graph follows the wait before it at once, ns. */
const GRAPH_WITHIN = 1_000_000;
const GRAPH = /^AscendCL@aclmdl(RI)?Execute/;

/**
 * Waits of the host in a capture without step marks, by place. Only idle time of the card inside a wait counts: a host that waits for a busy
 * card loses nothing.
 */
export function waitTotals({ trace, names }: RankCapture, tape: Tape | null, syncs: HostSyncs): WaitTotal[] {
  if (trace === null || tape === null || tape.busy.start.length === 0) return [];
  const [first, last] = [tape.busy.start[0]!, tape.busy.end.at(-1)!];
  const idle = complement(tape.busy, first, last);
  const computing = unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMPUTE);
  const beside = subtract(complement(computing, first, last), idle);
  const replays = new Map<number, number[]>();
  const { cann } = trace;
  const isReplay = new Map<number, boolean>();
  for (let i = 0; i < cann.name.length; i++) {
    const name = cann.name[i]!;
    let known = isReplay.get(name);
    if (known === undefined) {
      known = GRAPH.test(names.get(name));
      isReplay.set(name, known);
    }
    if (!known) continue;
    const list = replays.get(cann.tid[i]!);
    if (list === undefined) replays.set(cann.tid[i]!, [cann.start[i]!]);
    else list.push(cann.start[i]!);
  }
  for (const list of replays.values()) list.sort((a, b) => a - b);
  const totals = syncs.sites.map((site) => ({
    ...site,
    count: 0,
    ns: 0,
    idle: 0,
    beside: 0,
    beforeGraph: 0,
    worst: { start: 0, end: 0, idle: -1 },
  }));
  for (let i = 0; i < syncs.start.length; i++) {
    const total = totals[syncs.site[i]!];
    if (total === undefined) continue;
    const [start, end] = [syncs.start[i]!, syncs.end[i]!];
    const own = covered(idle, start, end);
    total.count++;
    total.ns += end - start;
    total.idle += own;
    if (total.kind === 'device') total.beside += covered(beside, endBefore(computing, start, end), end);
    if (isFollowed(replays.get(syncs.tid[i]!) ?? [], end, syncs.start[i + 1] ?? Number.POSITIVE_INFINITY)) total.beforeGraph++;
    if (own > total.worst.idle) total.worst = { start, end, idle: own };
  }
  return totals
    .filter((t) => t.count > 0)
    .map(({ worst, ...t }) => ({ ...t, worst: { start: worst.start, end: worst.end } }))
    .sort((a, b) => b.idle + b.beside - (a.idle + a.beside) || b.ns - a.ns);
}

/** Where the last computing inside [from, to) ends: what runs after it, no computing here has to wait for. */
function endBefore(computing: Intervals, from: number, to: number): number {
  let low = 0;
  let high = computing.start.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (computing.start[mid]! < to) low = mid + 1;
    else high = mid;
  }
  return low === 0 ? from : Math.min(to, Math.max(from, computing.end[low - 1]!));
}

/** A graph is run right after a wait, and before the next one. */
function isFollowed(replays: readonly number[], end: number, next: number): boolean {
  let low = 0;
  let high = replays.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (replays[mid]! < end) low = mid + 1;
    else high = mid;
  }
  return low < replays.length && replays[low]! - end < GRAPH_WITHIN && replays[low]! <= next;
}

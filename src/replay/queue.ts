import { median, quantile } from '../base/statistics.ts';
import type { Tape } from '../model/facts.ts';

/**
 * The launch queue of one rank, where the host filled it: a launch then waits until an earlier task has ended, and the time between two
 * launches is the card's, not the host's.
 */
export interface LaunchQueue {
  /** By node: the task whose end makes room for its launch; -1 for none. */
  readonly gate: Int32Array;
  /** By node: from that end to the launch, ns. */
  readonly lag: Float64Array;
  /** By node: 1 when the launch was seen to wait for room. */
  readonly held: Uint8Array;
  /** What the host does between two launches by itself, ns. */
  readonly own: number;
}

/** A shallower backlog than this is no queue that filled up; the runtime holds hundreds of tasks. */
const MIN_DEPTH = 64;
/** Launches at the edge: this part of all, and at least so many. */
const MIN_SHARE = 0.03;
const MIN_LAUNCHES = 64;
/** So far below the deepest backlog a launch still finds the queue full: first exactly, then with tasks that a profile does not list. */
const EDGES = [(depth: number) => depth - 2, (depth: number) => 0.97 * depth];
/** A launch follows the end that made room within this time, ns, and within this part of the usual time between two launches there. */
const FOLLOWS = 40_000;
const FOLLOWS_SHARE = 0.35;
/** Part of the time between the launches at the edge that such ends explain; without a full queue a launch comes anywhere between two ends. */
const EXPLAINED = 0.75;

/** null where the host never filled the queue. `byLaunch`: nodes in the order of their launches. */
export function launchQueue(tape: Tape, byLaunch: readonly number[]): LaunchQueue | null {
  const byStream = [...Map.groupBy(byLaunch, (i) => tape.stream[i]!).values()].sort((a, b) => b.length - a.length);
  // One queue for all streams, else that of the busiest stream.
  for (const order of byStream.length < 2 ? [byLaunch] : [byLaunch, byStream[0]!])
    for (const edge of EDGES) {
      const queue = filled(tape, order, edge);
      if (queue !== null) return queue;
    }
  return null;
}

function filled(tape: Tape, order: readonly number[], edgeOf: (depth: number) => number): LaunchQueue | null {
  if (order.length < MIN_LAUNCHES + MIN_DEPTH) return null;
  const end = (i: number): number => tape.start[i]! + tape.duration[i]!;
  // By position: the first task that had not ended when this one was launched; those before it have left the queue.
  const first = new Int32Array(order.length);
  let depth = 0;
  for (let k = 0, done = 0; k < order.length; k++) {
    while (done < k && end(order[done]!) <= tape.launch[order[k]!]!) done++;
    first[k] = done;
    depth = Math.max(depth, k - done);
  }
  if (depth < MIN_DEPTH) return null;
  const edge: number[] = [];
  for (let k = 1; k < order.length; k++) if (k - first[k]! >= edgeOf(depth) && first[k]! > 0) edge.push(k);
  if (edge.length < MIN_LAUNCHES || edge.length < MIN_SHARE * order.length) return null;
  const at = (k: number): number => tape.launch[order[k]!]!;
  const gapOf = (k: number): number => at(k) - at(k - 1);
  const total = (positions: readonly number[]): number => positions.reduce((sum, k) => sum + gapOf(k), 0);
  const reach = Math.min(FOLLOWS, (FOLLOWS_SHARE * total(edge)) / edge.length);
  const follows = (k: number, i: number): boolean => i !== -1 && at(k) >= end(i) && at(k) - end(i) <= reach;
  const byPosition = (k: number): number => (k > depth ? order[k - depth - 1]! : -1);
  const last = (k: number): number => (first[k]! > 0 ? order[first[k]! - 1]! : -1);
  const gateOf = (k: number): number => (!follows(k, byPosition(k)) && follows(k, last(k)) ? last(k) : byPosition(k));
  const following = edge.filter((k) => follows(k, gateOf(k)));
  // A few long pauses of the host that end by chance beside a task are no queue.
  if (following.length < MIN_LAUNCHES || total(following) < EXPLAINED * total(edge)) return null;

  const typical = median(following.map((k) => at(k) - end(gateOf(k))));
  const gate = new Int32Array(tape.start.length).fill(-1);
  const lag = new Float64Array(tape.start.length);
  const held = new Uint8Array(tape.start.length);
  const free: number[] = [];
  // An end that comes late frees more than one place: the launch it lets in finds the queue less full.
  const waiting = new Set(following);
  for (let k = 1; k < order.length; k++) if (follows(k, byPosition(k))) waiting.add(k);
  for (let k = 1; k < order.length; k++) {
    const node = order[k]!;
    const opens = waiting.has(k) ? gateOf(k) : byPosition(k);
    if (opens === -1) continue;
    gate[node] = opens;
    lag[node] = Math.min(typical, at(k) - end(opens));
    if (waiting.has(k)) held[node] = 1;
    else if (gapOf(k) > 0) free.push(gapOf(k));
  }
  const gaps = free.length >= MIN_LAUNCHES ? free : order.slice(1).map((_, k) => gapOf(k + 1));
  return { gate, lag, held, own: quantile(gaps, free.length >= MIN_LAUNCHES ? 0.5 : 0.1) };
}

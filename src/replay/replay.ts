import { covered, type Intervals, union } from '../base/intervals.ts';
import { median } from '../base/statistics.ts';
import { COMMUNICATION, COMPUTE, type RankFacts, type Tape } from '../model/facts.ts';
import { type LaunchQueue, launchQueue } from './queue.ts';

/**
 * Replay: the dependency graph of the captured steps, host → launch → kernel → collective across ranks → next step, run again
 * with some work removed. What constrained each task is inferred once from the observed times:
 *   launch     the task began right after the host issued it
 *   stream     it began right after the task before it on its stream
 *   collective it began right after a collective ended
 *   queue      the host had filled the launch queue, so its launch waited for an earlier task to end
 * Anything else that delayed a task is kept as a fixed delay. Run with nothing removed, the replay must give back the observed
 * steps; how far it is off is reported and decides whether its figures may be used.
 */
export interface ReplayRank {
  readonly facts: RankFacts;
  readonly tape: Tape;
  /** Added to this rank's ns to put all ranks on one clock. */
  readonly offset: number;
}

/** What to take out of one rank. Node numbers are positions in its tape. */
export interface Removal {
  /** Host time that would not pass, ns intervals of the rank's own clock. */
  readonly host?: Intervals;
  /** Device tasks that would not be there, with the host time of their launch. */
  readonly nodes?: ReadonlySet<number>;
  /** Device tasks that would take another time: node → ns. */
  readonly durations?: ReadonlyMap<number, number>;
  /** Collectives that would take another time once their last member has come: node → ns. Of several members the longest counts. */
  readonly bodies?: ReadonlyMap<number, number>;
  /** Factor on all host time between launches (a slower host made normal): < 1 shortens. */
  readonly hostFactor?: number;
  /** Waits of the host that would not be made, positions in `tape.syncs`. The device still finishes in the order it was given. */
  readonly syncs?: ReadonlySet<number>;
  /** Device tasks that would start as soon as they can: whatever else held them back goes. */
  readonly undelayed?: ReadonlySet<number>;
}

export type Removals = ReadonlyMap<number, Removal>;

export interface ReplayResult {
  /** Job step times, ms: distance between consecutive step ends of the last rank to finish. */
  readonly stepMs: readonly number[];
  readonly totalMs: number;
}

/** A launch that starts its task within this time has bound it, ns. */
const LAUNCH_TOLERANCE = 40_000;
const STREAM_TOLERANCE = 40_000;
const COLLECTIVE_TOLERANCE = 150_000;
/** Between pipeline stages goes what the next kernels read. */
const SENDS = /^hcom_(send|receive|recv|batchsendrecv)/i;
const isSend = ({ type, types }: Tape, node: number): boolean => SENDS.test(types[type[node]!]!);
/** The launching thread is behind the calling one by about this, ns. */
const BEHIND = 2_000_000;
/** A fetch that finds its batch ready still costs about this long on the host, ns. */
export const READY_FETCH = 200_000;

interface Item {
  /** -1 sync, -2 step mark, -3 fetch, else node. */
  readonly node: number;
  readonly at: number;
  readonly sync: number;
  readonly step: number;
  /** Start of the fetch that ends here; NaN for other items. */
  readonly fetch: number;
}

interface Plan {
  readonly rank: ReplayRank;
  readonly items: readonly Item[];
  /** Constraint of each node: latency after launch, extra after stream predecessor, collective (job-wide number) and extra. */
  readonly afterLaunch: Float64Array;
  readonly afterStream: Float64Array;
  readonly fixedDelay: Float64Array;
  readonly waitsFor: Int32Array;
  readonly afterCollective: Float64Array;
  readonly previous: Int32Array;
  /** For communication nodes: the last compute node launched before it, and the delay after its end. */
  readonly computeBefore: Int32Array;
  readonly steps: readonly { start: number; lastNode: number }[];
  readonly orphan: readonly number[];
  /** By wait of the host: the collective launched last before it, when what follows may need its result; else -1. */
  readonly orders: Int32Array;
  readonly queue: LaunchQueue | null;
}

/** Matched collectives of the job: which node of which rank takes part. */
export interface Rendezvous {
  readonly key: string;
  /** Parallel: index into the ranks of the replay, and node. */
  readonly ranks: readonly number[];
  readonly nodes: readonly number[];
  /** True when all members of the group are here. */
  readonly complete: boolean;
}

export interface ReplayModel {
  readonly plans: readonly Plan[];
  readonly rendezvous: readonly Rendezvous[];
  readonly meeting: readonly Int32Array[];
  readonly body: Float64Array;
  readonly observed: ReplayResult;
  readonly base: ReplayResult;
  /** |replayed − observed| / observed of the median step with nothing removed. */
  readonly error: number;
}

export function buildReplay(ranks: readonly ReplayRank[], rendezvous: readonly Rendezvous[]): ReplayModel | null {
  if (ranks.length === 0 || ranks.some((r) => r.facts.steps.length === 0 || !r.facts.capabilities.has('launches'))) return null;
  const meeting = ranks.map((r) => new Int32Array(r.tape.start.length).fill(-1));
  const body = new Float64Array(rendezvous.length);
  for (let m = 0; m < rendezvous.length; m++) {
    const { ranks: members, nodes } = rendezvous[m]!;
    let lastStart = Number.NEGATIVE_INFINITY;
    let end = Number.NEGATIVE_INFINITY;
    for (let k = 0; k < members.length; k++) {
      const { tape, offset } = ranks[members[k]!]!;
      const node = nodes[k]!;
      meeting[members[k]!]![node] = m;
      lastStart = Math.max(lastStart, tape.start[node]! + offset);
      end = Math.max(end, tape.start[node]! + tape.duration[node]! + offset);
    }
    body[m] = Math.max(0, end - lastStart);
  }
  const plans = ranks.map(planOf);
  const observed = observedSteps(ranks);
  const model = { plans, rendezvous, meeting, body };
  const base = run(model, new Map());
  const reference = median(observed.stepMs);
  const error = Math.abs(median(base.stepMs) - reference) / reference;
  return { ...model, observed, base, error };
}

function lastNodes(rank: ReplayRank): { start: number; lastNode: number }[] {
  const { facts, tape } = rank;
  const last = facts.steps.map((step) => ({ start: step.start, lastNode: -1, end: Number.NEGATIVE_INFINITY }));
  for (let i = 0; i < tape.start.length; i++) {
    const step = last[tape.step[i]!];
    const end = tape.start[i]! + tape.duration[i]!;
    if (step !== undefined && end > step.end) {
      step.end = end;
      step.lastNode = i;
    }
  }
  return last;
}

function planOf(rank: ReplayRank): Plan {
  const { tape, facts } = rank;
  const n = tape.start.length;
  const afterLaunch = new Float64Array(n).fill(Number.NaN);
  const afterStream = new Float64Array(n);
  const fixedDelay = new Float64Array(n);
  const waitsFor = new Int32Array(n).fill(-1);
  const afterCollective = new Float64Array(n);
  const previous = new Int32Array(n).fill(-1);
  const computeBefore = new Int32Array(n).fill(-1);
  const end = (i: number): number => tape.start[i]! + tape.duration[i]!;

  const lastOnStream = new Map<number, number>();
  for (let i = 0; i < n; i++) {
    previous[i] = lastOnStream.get(tape.stream[i]!) ?? -1;
    lastOnStream.set(tape.stream[i]!, i);
  }
  // Ends of the collectives this rank takes part in, ascending, as (end, rendezvous or own node).
  const ends: { at: number; node: number }[] = [];
  for (let i = 0; i < n; i++) if (tape.kind[i] === COMMUNICATION) ends.push({ at: end(i), node: i });
  ends.sort((a, b) => a.at - b.at);

  /** Number of collectives that ended by `at`. */
  const endedBy = (at: number): number => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (ends[mid]!.at <= at) low = mid + 1;
      else high = mid;
    }
    return low;
  };

  const byLaunch = [...Array(n).keys()]
    .filter((i) => !Number.isNaN(tape.launch[i]!))
    .sort((a, b) => tape.launch[a]! - tape.launch[b]! || a - b);
  let lastCompute = -1;
  for (const i of byLaunch) {
    if (tape.kind[i] === COMPUTE) lastCompute = i;
    else if (tape.kind[i] === COMMUNICATION) computeBefore[i] = lastCompute;
  }
  // Typical launch latency: the quickest tenth of tasks that found an idle stream.
  const latencies: number[] = [];
  for (let i = 0; i < n; i++) {
    const launch = tape.launch[i]!;
    const before = previous[i] === -1 ? Number.NEGATIVE_INFINITY : end(previous[i]!);
    if (!Number.isNaN(launch) && tape.kind[i] === COMPUTE && launch > before) latencies.push(tape.start[i]! - launch);
  }
  latencies.sort((a, b) => a - b);
  const typical = latencies.length === 0 ? 10_000 : Math.max(1_000, latencies[Math.floor(latencies.length * 0.1)]!);

  for (let i = 0; i < n; i++) {
    const start = tape.start[i]!;
    const launch = tape.launch[i]!;
    const streamEnd = previous[i] === -1 ? Number.NEGATIVE_INFINITY : end(previous[i]!);
    const computeEnd = computeBefore[i] === -1 ? Number.NEGATIVE_INFINITY : end(computeBefore[i]!);
    const launchSlack = Number.isNaN(launch) ? Number.POSITIVE_INFINITY : start - launch;
    const launchBound =
      launchSlack >= 0 &&
      launchSlack <= typical + LAUNCH_TOLERANCE &&
      (Number.isNaN(launch) ? Number.NEGATIVE_INFINITY : launch) >= streamEnd - STREAM_TOLERANCE;
    afterLaunch[i] = Number.isNaN(launch) ? Number.NaN : launchBound ? launchSlack : Math.min(typical, Math.max(0, launchSlack));
    const streamGap = start - streamEnd;
    const streamBound = streamGap >= -1_000 && streamGap <= STREAM_TOLERANCE;
    if (streamBound && !launchBound) {
      afterStream[i] = Math.max(0, streamGap);
      continue;
    }
    afterStream[i] = 0;
    if (launchBound) continue;
    if (tape.kind[i] === COMMUNICATION && start - computeEnd >= -1_000 && start - computeEnd <= COLLECTIVE_TOLERANCE) {
      fixedDelay[i] = 0;
      afterCollective[i] = Math.max(0, start - computeEnd);
      continue;
    }
    // Waited for a collective?
    const found = ends[endedBy(start + 1_000) - 1];
    if (tape.kind[i] !== COMMUNICATION && found !== undefined && start - found.at <= COLLECTIVE_TOLERANCE && found.node !== previous[i]) {
      waitsFor[i] = found.node;
      afterCollective[i] = Math.max(0, start - found.at);
      continue;
    }
    const bound = Math.max(streamEnd, Number.isNaN(launch) ? Number.NEGATIVE_INFINITY : launch + afterLaunch[i]!, computeEnd);
    if (bound > Number.NEGATIVE_INFINITY) fixedDelay[i] = Math.max(0, start - bound);
  }
  // The optimizer reads what the collectives launched before it produced, bound or not.
  for (const i of byLaunch) {
    if (tape.kind[i] !== COMPUTE || waitsFor[i] !== -1 || covered(tape.optimizer, tape.launch[i]!, tape.launch[i]! + 1) === 0) continue;
    for (let k = endedBy(tape.start[i]!) - 1; k >= 0; k--) {
      const { node } = ends[k]!;
      if (tape.step[node]! < tape.step[i]! && tape.step[node] !== -1) break;
      if (tape.launch[node]! < tape.launch[i]! && tape.step[node] === tape.step[i]) {
        waitsFor[i] = node;
        break;
      }
    }
  }

  const items: Item[] = [];
  const none = { sync: -1, step: -1, fetch: Number.NaN };
  for (const i of byLaunch) items.push({ ...none, node: i, at: tape.launch[i]! });
  for (let s = 0; s < tape.syncs.start.length; s++) items.push({ ...none, node: -1, at: tape.syncs.end[s]!, sync: s });
  facts.steps.forEach((step, s) => {
    items.push({ ...none, node: -2, at: step.start, step: s });
  });
  const lastStep = facts.steps[facts.steps.length - 1]!;
  items.push({ ...none, node: -2, at: lastStep.end, step: facts.steps.length });
  if (workersSetThePace(facts)) for (const f of facts.loader!.fetches) items.push({ ...none, node: -3, at: f.end, fetch: f.start });
  items.sort((a, b) => a.at - b.at || a.node - b.node);
  const orphan: number[] = [];
  for (let i = 0; i < n; i++) if (Number.isNaN(tape.launch[i]!)) orphan.push(i);
  return {
    rank,
    items,
    afterLaunch,
    afterStream,
    fixedDelay,
    waitsFor,
    afterCollective,
    previous,
    computeBefore,
    steps: lastNodes(rank),
    orphan,
    orders: ordersOf(rank, byLaunch),
    queue: launchQueue(tape, byLaunch),
  };
}

/**
 * Gradients are reduced while the backward goes on, so what follows a wait there does not need the reduction. Anywhere else the host may
 * have waited because the next kernels read what the collective brings.
 */
function ordersOf({ tape, facts }: ReplayRank, byLaunch: readonly number[]): Int32Array {
  const backward = union(facts.phases.backwards.flat());
  const orders = new Int32Array(tape.syncs.start.length).fill(-1);
  let next = 0;
  for (let s = 0; s < orders.length; s++) {
    let last = -1;
    for (; next < byLaunch.length && tape.launch[byLaunch[next]!]! < tape.syncs.end[s]!; next++) {
      const node = byLaunch[next]!;
      if (tape.kind[node] !== COMMUNICATION) continue;
      // The launching thread runs a little behind the thread that calls.
      const inBackward = covered(backward, tape.launch[node]! - BEHIND, tape.launch[node]! + 1) > 0;
      if (!inBackward || isSend(tape, node)) last = node;
    }
    orders[s] = last;
  }
  return orders;
}

/**
 * Workers that have no batch ready deliver at their own pace: a faster loop only waits longer for them. True when half of the steps
 * hold a fetch that had to wait; fewer are single slow batches. A loader without workers is ordinary host work.
 */
function workersSetThePace(facts: RankFacts): boolean {
  const { loader, steps } = facts;
  if (loader === null || loader.iterator !== 'multi' || steps.length === 0) return false;
  const waited = new Set(loader.fetches.filter((f) => f.end - f.start > 2 * READY_FETCH && f.stall > 0).map((f) => f.step));
  return 2 * steps.filter((_, s) => waited.has(s)).length >= steps.length;
}

function observedSteps(ranks: readonly ReplayRank[]): ReplayResult {
  const count = Math.min(...ranks.map((r) => r.facts.steps.length));
  const marksOf = new Map(ranks.map((r) => [r, lastNodes(r)] as const));
  const ends: number[] = [];
  let begin = Number.POSITIVE_INFINITY;
  for (let s = 0; s < count; s++) {
    let latest = Number.NEGATIVE_INFINITY;
    for (const rank of ranks) {
      const marks = marksOf.get(rank)!;
      if (s === 0) begin = Math.min(begin, marks[0]!.start + rank.offset);
      latest = Math.max(latest, rank.facts.steps[s]!.end + rank.offset);
      const node = marks[s]!.lastNode;
      if (node >= 0) latest = Math.max(latest, rank.tape.start[node]! + rank.tape.duration[node]! + rank.offset);
    }
    ends.push(latest);
  }
  return fromEnds(begin, ends);
}

function fromEnds(begin: number, ends: readonly number[]): ReplayResult {
  const stepMs = ends.map((end, s) => (end - (s === 0 ? begin : ends[s - 1]!)) / 1e6);
  return { stepMs, totalMs: (ends[ends.length - 1]! - begin) / 1e6 };
}

/** What a replay runs on. */
type Graph = Pick<ReplayModel, 'plans' | 'rendezvous' | 'meeting' | 'body'>;
type Played = ReturnType<typeof play>;

/** By node: the nearest task before it on its stream that is not removed; -1 for none. */
function keptBefore({ previous }: Plan, removed: ReadonlySet<number>): Int32Array {
  const kept = new Int32Array(previous.length);
  for (let i = 0; i < previous.length; i++) {
    const before = previous[i]!;
    kept[i] = before !== -1 && removed.has(before) ? kept[before]! : before;
  }
  return kept;
}

/** Every task placed with something removed. Deterministic; linear in the number of tasks. */
function play(model: Graph, removals: Removals) {
  const { plans, rendezvous, meeting, body } = model;
  const state = plans.map((plan, r) => {
    const removal = removals.get(r) ?? {};
    const n = plan.rank.tape.start.length;
    return {
      plan,
      removal,
      index: r,
      keptBefore: removal.nodes === undefined || removal.nodes.size === 0 ? null : keptBefore(plan, removal.nodes),
      position: 0,
      host: Number.NaN,
      hostObserved: Number.NaN,
      end: new Float64Array(n).fill(Number.NaN),
      start: new Float64Array(n).fill(Number.NaN),
      deviceDone: Number.NEGATIVE_INFINITY,
      deviceDoneObserved: Number.NEGATIVE_INFINITY,
      /** Launched and not known to be done at the wait before. */
      outstanding: [] as number[],
      /** Collective whose result the next compute task may need, once no wait orders the two; -1 for none. */
      unordered: -1,
      stepStart: new Float64Array(plan.steps.length + 1).fill(Number.NaN),
      orphanAt: 0,
    };
  });
  type State = (typeof state)[number];
  const arrived = rendezvous.map((m) => ({
    waiting: m.nodes.length,
    last: Number.NEGATIVE_INFINITY,
    first: Number.POSITIVE_INFINITY,
    end: Number.NaN,
  }));
  // Members whose node was removed do not take part.
  const bodyOf = Float64Array.from(body);
  rendezvous.forEach((m, at) => {
    let other = Number.NaN;
    m.ranks.forEach((r, k) => {
      const { removal } = state[r]!;
      if (removal.nodes?.has(m.nodes[k]!)) arrived[at]!.waiting--;
      const ns = removal.bodies?.get(m.nodes[k]!);
      if (ns !== undefined) other = Number.isNaN(other) ? ns : Math.max(other, ns);
    });
    if (!Number.isNaN(other)) bodyOf[at] = other;
  });

  const endOf = (s: State, node: number): number => {
    const known = s.end[node]!;
    if (!Number.isNaN(known)) return known;
    const m = meeting[s.index]![node]!;
    if (m >= 0 && !Number.isNaN(arrived[m]!.end)) {
      s.end[node] = arrived[m]!.end - s.plan.rank.offset;
      return s.end[node]!;
    }
    return Number.NaN;
  };

  /** End of a node that must be known before going on; NaN = blocked on another rank. */
  const settle = (s: State, node: number): number => {
    if (node === -1) return Number.NEGATIVE_INFINITY;
    const at = s.keptBefore !== null && s.removal.nodes!.has(node) ? s.keptBefore[node]! : node;
    if (at === -1) return Number.NEGATIVE_INFINITY;
    return Number.isNaN(s.start[at]!) ? Number.NEGATIVE_INFINITY : endOf(s, at);
  };

  /** Places one device task; false when it depends on a collective that other ranks have not reached. */
  const place = (s: State, r: number, node: number, launch: number): boolean => {
    const { plan } = s;
    const { tape } = plan.rank;
    const streamEnd = settle(s, plan.previous[node]!);
    if (Number.isNaN(streamEnd)) return false;
    let start = streamEnd + plan.afterStream[node]!;
    if (!Number.isNaN(launch)) start = Math.max(start, launch + plan.afterLaunch[node]!);
    if (plan.computeBefore[node] !== -1) {
      const compute = settle(s, plan.computeBefore[node]!);
      if (Number.isNaN(compute)) return false;
      start = Math.max(start, compute + (tape.kind[node] === COMMUNICATION ? plan.afterCollective[node]! : 0));
    }
    if (plan.waitsFor[node] !== -1) {
      const waited = settle(s, plan.waitsFor[node]!);
      if (Number.isNaN(waited)) return false;
      start = Math.max(start, waited + plan.afterCollective[node]!);
    }
    if (start === Number.NEGATIVE_INFINITY) start = tape.start[node]!;
    if (s.unordered !== -1 && tape.kind[node] === COMPUTE) {
      const result = settle(s, s.unordered);
      if (Number.isNaN(result)) return false;
      start = Math.max(start, result);
      s.unordered = -1;
    }
    if (s.removal.undelayed?.has(node) !== true) start += plan.fixedDelay[node]!;
    const duration = s.removal.durations?.get(node) ?? tape.duration[node]!;
    s.start[node] = start;
    const m = meeting[r]![node]!;
    if (m === -1) {
      s.end[node] = start + duration;
    } else {
      const meet = arrived[m]!;
      meet.last = Math.max(meet.last, start + plan.rank.offset);
      meet.first = Math.min(meet.first, start + plan.rank.offset);
      meet.waiting--;
      if (meet.waiting === 0) meet.end = meet.last + bodyOf[m]!;
    }
    return true;
  };

  const advance = (s: State, r: number): boolean => {
    let moved = false;
    const { plan, removal } = s;
    const { tape } = plan.rank;
    while (s.position < plan.items.length) {
      const item = plan.items[s.position]!;
      let work = Number.isNaN(s.hostObserved) ? 0 : item.at - s.hostObserved;
      if (item.sync >= 0) {
        const syncStart = tape.syncs.start[item.sync]!;
        const before = Math.max(0, Math.min(item.at, syncStart) - s.hostObserved);
        if (removal.syncs?.has(item.sync)) {
          // The wait may have been what kept a result of another stream from being read too early.
          if (plan.orders[item.sync] !== -1) s.unordered = plan.orders[item.sync]!;
          s.host += trimmed(before, s.hostObserved, Math.min(item.at, syncStart), removal);
          s.hostObserved = item.at;
          s.position++;
          moved = true;
          continue;
        }
        // A sync ends when the device is done with what it waited for, plus what it cost by itself.
        let device = Number.NEGATIVE_INFINITY;
        let observed = Number.NEGATIVE_INFINITY;
        const later: number[] = [];
        for (const node of s.outstanding) {
          const end = tape.start[node]! + tape.duration[node]!;
          if (end > item.at + 1_000) {
            later.push(node);
            continue;
          }
          const known = endOf(s, node);
          if (Number.isNaN(known)) return moved;
          device = Math.max(device, known);
          observed = Math.max(observed, end);
        }
        s.outstanding = later;
        device = Math.max(device, s.deviceDone);
        observed = Math.max(observed, s.deviceDoneObserved);
        s.deviceDone = device;
        s.deviceDoneObserved = observed;
        const hostPart = s.host + trimmed(before, s.hostObserved, Math.min(item.at, syncStart), removal);
        if (observed > syncStart) s.host = Math.max(hostPart, device + Math.max(0, item.at - observed));
        else s.host = Math.max(hostPart + (item.at - Math.max(syncStart, s.hostObserved)), device);
        s.hostObserved = item.at;
        s.position++;
        moved = true;
        continue;
      }
      if (item.node === -3) {
        if (!Number.isNaN(s.host)) {
          const start = Math.min(item.at, Math.max(item.fetch, s.hostObserved));
          const called = s.host + trimmed(start - s.hostObserved, s.hostObserved, start, removal);
          const spent = trimmed(item.at - start, start, item.at, removal);
          // Without the loader's cause the batch is there; with it, it comes when the workers have it.
          s.host = spent < item.at - start ? called + spent : Math.max(called + Math.min(READY_FETCH, item.at - start), item.at);
          s.hostObserved = item.at;
        }
        s.position++;
        moved = true;
        continue;
      }
      if (item.node === -2) {
        if (Number.isNaN(s.host)) {
          s.host = item.at;
          s.hostObserved = item.at;
        } else {
          s.host += trimmed(work, s.hostObserved, item.at, removal);
          s.hostObserved = item.at;
        }
        s.stepStart[item.step] = s.host;
        s.position++;
        moved = true;
        continue;
      }
      if (Number.isNaN(s.host)) {
        // Launched before the first captured step: keeps its observed time.
        if (removal.nodes?.has(item.node)) {
          s.position++;
          continue;
        }
        if (!place(s, r, item.node, item.at)) return moved;
        s.outstanding.push(item.node);
        s.position++;
        moved = true;
        continue;
      }
      const { queue } = plan;
      if (queue?.held[item.node] === 1) work = Math.min(work, queue.own);
      if (removal.nodes?.has(item.node)) {
        // Its launch is not made: the host saves at most a few launch intervals, not the user code around it.
        const cost = Math.min(work, 4 * (tape.launchInterval || 0));
        work -= cost;
        s.host += trimmed(work, s.hostObserved, item.at, removal);
        s.hostObserved = item.at;
        s.position++;
        moved = true;
        continue;
      }
      let launch = s.host + trimmed(work, s.hostObserved, item.at, removal);
      if (queue !== null && queue.gate[item.node] !== -1) {
        const room = settle(s, queue.gate[item.node]!);
        if (Number.isNaN(room)) return moved;
        launch = Math.max(launch, room + queue.lag[item.node]!);
      }
      if (!place(s, r, item.node, launch)) return moved;
      s.outstanding.push(item.node);
      s.host = launch;
      s.hostObserved = item.at;
      s.position++;
      moved = true;
    }
    while (s.orphanAt < plan.orphan.length) {
      const node = plan.orphan[s.orphanAt]!;
      if (!removal.nodes?.has(node) && !place(s, r, node, Number.NaN)) return moved;
      s.orphanAt++;
      moved = true;
    }
    return moved;
  };

  const finished = (s: State): boolean => s.position >= s.plan.items.length && s.orphanAt >= s.plan.orphan.length;
  for (let guard = 0; guard < 10_000_000; guard++) {
    let moved = false;
    state.forEach((s, r) => {
      if (advance(s, r)) moved = true;
    });
    if (state.every(finished)) break;
    if (moved) continue;
    // No rank can go on: a collective whose partners never come (other names, cut capture). It ends as observed on those who came.
    const stuck = arrived.findIndex((m) => m.waiting > 0 && m.last > Number.NEGATIVE_INFINITY && Number.isNaN(m.end));
    if (stuck === -1) break;
    arrived[stuck]!.end = arrived[stuck]!.last + bodyOf[stuck]!;
    arrived[stuck]!.waiting = 0;
  }

  return { state, arrived, endOf };
}

/** Runs the model with something removed. */
export function run(model: Graph, removals: Removals): ReplayResult {
  const { state, endOf } = play(model, removals);
  const count = Math.min(...model.plans.map((p) => p.steps.length));
  const ends: number[] = [];
  let begin = Number.POSITIVE_INFINITY;
  for (let k = 0; k < count; k++) {
    let latest = Number.NEGATIVE_INFINITY;
    for (const s of state) {
      const { offset } = s.plan.rank;
      if (k === 0) begin = Math.min(begin, s.stepStart[0]! + offset);
      latest = Math.max(latest, s.stepStart[k + 1]! + offset);
      let node = s.plan.steps[k]!.lastNode;
      while (node >= 0 && s.removal.nodes?.has(node)) node = s.plan.previous[node]!;
      if (node >= 0) {
        const end = endOf(s, node);
        if (!Number.isNaN(end)) latest = Math.max(latest, end + offset);
      }
    }
    ends.push(latest);
  }
  return fromEnds(begin, ends);
}

/**
 * Sum over the collectives of the longest wait of a member for the last one that its own computing does not cover, ms. Pipeline stages
 * wait for each other by design: point-to-point calls do not count.
 */
export function exposedWaitMs(model: Graph, removals: Removals): number {
  const { state, arrived } = play(model, removals);
  const computing = state.map(computedIn);
  let ns = 0;
  model.rendezvous.forEach((m, at) => {
    const { last, first } = arrived[at]!;
    if (!(last > first) || isSend(state[m.ranks[0]!]!.plan.rank.tape, m.nodes[0]!)) return;
    let most = 0;
    m.ranks.forEach((r, k) => {
      const { start, plan } = state[r]!;
      const from = start[m.nodes[k]!]!;
      const to = last - plan.rank.offset;
      if (to > from) most = Math.max(most, to - from - covered(computing[r]!, from, to));
    });
    ns += most;
  });
  return ns / 1e6;
}

/** When a rank computes in a replay. */
function computedIn({ plan, start, end }: Played['state'][number]): Intervals {
  const { kind } = plan.rank.tape;
  const spans: [number, number][] = [];
  for (let i = 0; i < start.length; i++) if (kind[i] === COMPUTE && end[i]! > start[i]!) spans.push([start[i]!, end[i]!]);
  return union(spans);
}

/** Host time between two instants after the removal. */
function trimmed(work: number, from: number, to: number, removal: Removal): number {
  if (work <= 0) return Math.max(0, work);
  let left = work;
  if (removal.host !== undefined) left -= Math.min(left, covered(removal.host, from, to));
  if (removal.hostFactor !== undefined) left *= removal.hostFactor;
  return left;
}

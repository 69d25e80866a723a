import { covered, EMPTY, type Intervals, subtract, union, unionSorted } from '../base/intervals.ts';
import type { JobFacts } from '../facts/job/index.ts';
import type { Part } from '../model/comparison.ts';
import { COMMUNICATION, COMPUTE, IDLE_CAUSES, type RankFacts } from '../model/facts.ts';

/** Where one step of one rank goes, ms. The parts of a step add up to its length. */
export type Account = Readonly<Partial<Record<Part, number>>>;

/** What the profile of a rank can split a step into. */
export type Detail =
  /** Step tables only: computing, exposed communication, idle. */
  | 'coarse'
  /** Kernels and causes of idle time. */
  | 'fine'
  /** Waiting for other ranks apart from transfer, too. */
  | 'waiting';

/** The steps of one rank as accounts, and its exposed waiting by collective. */
export interface RankAccounts {
  readonly detail: Detail;
  at(step: number, detail: Detail): Account | null;
  /** Exposed time of a collective of this rank less its waiting for other ranks, ns. */
  exposedTransfer(call: number): number;
}

const MS = 1e6;

export function accountsOf(job: JobFacts, rank: number): RankAccounts {
  const facts = job.ranks[rank]!;
  const { tape } = facts;
  const fine = tape !== null && facts.idle !== null && facts.steps.every((s) => s.end > s.start);
  if (!fine) return { detail: 'coarse', at: (step) => coarse(facts, step), exposedTransfer: (call) => facts.collectives[call]!.exposed };
  const computing = unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMPUTE);
  const communicating = unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMMUNICATION);
  const exposed = subtract(communicating, computing);
  const waits = waitsOf(job, rank, computing);
  const waiting = waits === null ? EMPTY : subtract(waits.all, computing);
  const detail: Detail = waits === null ? 'fine' : 'waiting';
  return {
    detail,
    at(step, wanted) {
      const window = facts.steps[step];
      const idle = facts.idle?.steps.find((s) => s.step === step);
      if (window === undefined || idle === undefined) return null;
      if (wanted === 'coarse') return coarse(facts, step);
      const total = (window.end - window.start) / MS;
      const compute = covered(computing, window.start, window.end) / MS;
      const open = covered(exposed, window.start, window.end) / MS;
      const wait = wanted === 'waiting' ? Math.min(open, covered(waiting, window.start, window.end) / MS) : 0;
      const causes = Object.fromEntries(IDLE_CAUSES.map((cause) => [`idle-${cause}`, idle[cause] / MS] as const));
      const named = compute + open + Object.values(causes).reduce((a, b) => a + b, 0);
      return {
        computing: compute,
        communication: open - wait,
        ...(wanted === 'waiting' ? { waiting: wait } : {}),
        copying: Math.max(0, total - named),
        ...causes,
      };
    },
    exposedTransfer(call) {
      return Math.max(0, facts.collectives[call]!.exposed - (waits?.byCall.get(call) ?? 0));
    },
  };
}

/** The step table's own split; what is neither computing nor exposed communication is idle. */
function coarse(rank: RankFacts, step: number): Account | null {
  const b = rank.steps[step]?.breakdown;
  if (b === undefined) return null;
  const total = Number.isNaN(b.stepMs) ? b.stageMs + (b.bubbleMs || 0) : b.stepMs;
  if (Number.isNaN(total) || Number.isNaN(b.computingMs) || Number.isNaN(b.exposedMs)) return null;
  return { computing: b.computingMs, communication: b.exposedMs, idle: total - b.computingMs - b.exposedMs };
}

/** When this rank waits at a collective for one that comes later, on its own clock. null when that cannot be told. */
function waitsOf(job: JobFacts, rank: number, computing: Intervals): { all: Intervals; byCall: Map<number, number> } | null {
  if (job.ranks.length < 2 || !job.clock.usable) return null;
  const spans: [number, number][] = [];
  const byCall = new Map<number, number>();
  for (const arrival of job.arrivals) {
    const k = arrival.ranks.indexOf(rank);
    if (k === -1) continue;
    const call = job.matches[arrival.match]!.calls[k]!;
    const { start, end } = job.ranks[rank]!.collectives[call]!;
    const to = Math.min(end, start + Math.max(...arrival.arrive) - arrival.arrive[k]!);
    if (!(to > start)) continue;
    spans.push([start, to]);
    byCall.set(call, to - start - covered(computing, start, to));
  }
  return { all: union(spans), byCall };
}

/** Time of a set of parts. */
export function sumOf(account: Account, parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + (account[part] ?? 0), 0);
}

export const IDLE_PARTS: readonly Part[] = ['idle', 'copying', ...IDLE_CAUSES.map((cause) => `idle-${cause}` as const)];

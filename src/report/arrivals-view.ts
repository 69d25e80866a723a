import type { JobFacts } from '../facts/job/index.ts';
import { arrivalError } from '../facts/job/lateness.ts';

/** Groups, columns and ranks that a picture can show. */
const GROUPS = 4;
const COLUMNS = 120;
const RANKS = 64;

export interface ArrivalsView {
  readonly group: string;
  readonly ranks: readonly (number | null)[];
  /** Members the group has; null when unknown. */
  readonly members: number | null;
  /** Collectives that were matched over the ranks. */
  readonly matched: number;
  /** In order of time. Where there are too many, a column is the one with the most waiting of several that follow each other. */
  readonly columns: readonly {
    readonly op: string;
    readonly step: number | null;
    readonly folded: number;
    /** The rank that came last, when it was later than the clock error; else null. */
    readonly culprit: number | null;
    readonly skewMs: number;
    /** µs after the median rank, in the order of `ranks`; null: took no part. */
    readonly perRankUs: readonly (number | null)[];
  }[];
}

/** When the ranks of a group arrive at its collectives, for the groups in which most time is waited. */
export function arrivalsView(job: JobFacts): ArrivalsView[] {
  if (job.ranks.length < 2 || !job.clock.usable) return [];
  const groups = new Map<string, JobFacts['arrivals'][number][]>();
  for (const arrival of job.arrivals) {
    const match = job.matches[arrival.match]!;
    if (match.p2p) continue;
    // The same name stands for another group on other ranks.
    const key = `${match.group} ${arrival.ranks.join(',')}`;
    const list = groups.get(key);
    if (list === undefined) groups.set(key, [arrival]);
    else list.push(arrival);
  }
  const waiting = (list: readonly JobFacts['arrivals'][number][]): number => list.reduce((sum, a) => sum + a.skew, 0);
  return [...groups.values()]
    .sort((a, b) => waiting(b) - waiting(a))
    .slice(0, GROUPS)
    .map((list) => groupView(job, list));
}

function groupView(job: JobFacts, list: readonly JobFacts['arrivals'][number][]): ArrivalsView {
  const inOrder = [...list].sort((a, b) => a.end - b.end);
  const per = Math.ceil(inOrder.length / COLUMNS);
  const latest = new Map<number, number>();
  for (const a of inOrder) for (const [k, r] of a.ranks.entries()) latest.set(r, (latest.get(r) ?? 0) + a.arrive[k]!);
  // Of very many ranks those that come last on the whole, in order of rank.
  const members = [...latest]
    .sort(([, a], [, b]) => b - a)
    .slice(0, RANKS)
    .map(([r]) => r)
    .sort((a, b) => a - b);
  const columns = Array.from({ length: Math.ceil(inOrder.length / per) }, (_, i) => {
    const some = inOrder.slice(i * per, (i + 1) * per);
    const worst = some.reduce((a, b) => (b.skew > a.skew ? b : a));
    const sorted = [...worst.arrive].sort((a, b) => a - b);
    const middle = sorted[(sorted.length - 1) >> 1]!;
    const error = arrivalError(job, worst.ranks);
    return {
      op: job.matches[worst.match]!.op,
      step: worst.step,
      folded: some.length,
      culprit: worst.skew > error ? job.ranks[worst.last]!.rank : null,
      skewMs: Math.round(worst.skew / 1000) / 1000,
      perRankUs: members.map((r) => {
        const k = worst.ranks.indexOf(r);
        return k < 0 ? null : Math.round((worst.arrive[k]! - middle) / 100) / 10;
      }),
    };
  });
  const match = job.matches[inOrder[0]!.match]!;
  return {
    group: match.group,
    ranks: members.map((r) => job.ranks[r]!.rank),
    members: match.groupSize,
    matched: list.length,
    columns,
  };
}

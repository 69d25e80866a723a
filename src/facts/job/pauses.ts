import { covered, type Intervals, union } from '../../base/intervals.ts';
import { quantile } from '../../base/statistics.ts';
import type { RankFacts } from '../../model/facts.ts';
import { heldUp } from '../rank/held-up.ts';
import type { JobFacts } from './index.ts';

/** A pause is told from ordinary host work when it is this much longer than the longest gap of a usual step, ns. */
const MIN_EXCESS = 1_000_000;
/** What counts as usual. Below one half: of two ranks one may pause in every step, and half of all gaps are pauses then. */
const USUAL = 0.4;

interface Gap {
  readonly start: number;
  readonly end: number;
  readonly length: number;
}

/** Longest stretch without a launch in each captured step of a rank, less what loader, compile and sync explain. */
function longestGaps(rank: RankFacts): (Gap | null)[] {
  const { tape } = rank;
  if (tape === null) return [];
  const explained = heldUp(rank);
  const launches = tape.launch.filter((t) => !Number.isNaN(t)).sort();
  return rank.steps.map((step) => {
    let best: Gap | null = null;
    let from = step.start;
    for (const at of launches) {
      if (at < step.start) continue;
      if (at >= step.end) break;
      const length = at - from - covered(explained, from, at);
      if (best === null || length > best.length) best = { start: from, end: at, length };
      from = at;
    }
    return best;
  });
}

/** Host pauses of single steps that the same job usually does not have, by rank index: the excess, as intervals to take out. */
export function hostPauses(job: JobFacts): Map<number, Intervals> {
  const gaps = job.ranks.map(longestGaps);
  const usual = quantile(
    gaps.flatMap((list) => job.steps.usedIndex.map((s) => list[s]?.length ?? Number.NaN)).filter((v) => !Number.isNaN(v)),
    USUAL,
  );
  const out = new Map<number, Intervals>();
  gaps.forEach((list, r) => {
    const spans: [number, number][] = [];
    for (const gap of list) {
      if (gap === null) continue;
      const excess = gap.length - usual;
      if (excess > MIN_EXCESS) spans.push([gap.end - excess, gap.end]);
    }
    if (spans.length > 0) out.set(r, union(spans));
  });
  return out;
}

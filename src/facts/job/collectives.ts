import { median } from '../../base/statistics.ts';
import type { RankFacts } from '../../model/facts.ts';

/** One collective seen by several ranks. `calls[k]` is the index into the collectives of rank `ranks[k]` (index into the job's ranks). */
export interface Match {
  readonly key: string;
  readonly op: string;
  readonly group: string;
  readonly p2p: boolean;
  readonly step: number | null;
  readonly ranks: readonly number[];
  readonly calls: readonly number[];
  /** Members the group is known to have; null when unknown. */
  readonly groupSize: number | null;
  readonly complete: boolean | null;
}

/** Puts together the calls of all ranks that are the same collective: same group, same name, same occurrence. */
export function matchCollectives(ranks: readonly RankFacts[]): Match[] {
  const sizes = new Map<string, number>();
  for (const rank of ranks) {
    for (const g of rank.groups) sizes.set(g.hash, g.ranks.length);
    for (const [group, ids] of rank.links?.ids ?? []) if (!sizes.has(group)) sizes.set(group, ids.length);
  }
  const slots = new Map<string, { ranks: number[]; calls: number[] }>();
  const order: string[] = [];
  ranks.forEach((rank, r) => {
    const seen = new Map<string, number>();
    rank.collectives.forEach((call, c) => {
      const occurrence = seen.get(call.key) ?? 0;
      seen.set(call.key, occurrence + 1);
      const key = `${call.key}#${occurrence}`;
      let slot = slots.get(key);
      if (slot === undefined) {
        slot = { ranks: [], calls: [] };
        slots.set(key, slot);
        order.push(key);
      }
      slot.ranks.push(r);
      slot.calls.push(c);
    });
  });
  return order.map((key) => {
    const slot = slots.get(key)!;
    const first = ranks[slot.ranks[0]!]!.collectives[slot.calls[0]!]!;
    const size = sizes.get(first.group) ?? null;
    return {
      key,
      op: first.op,
      group: first.group,
      p2p: first.p2p,
      step: first.step,
      ranks: slot.ranks,
      calls: slot.calls,
      groupSize: size,
      complete: size === null ? null : slot.ranks.length >= size,
    };
  });
}

/** Clock of each rank against the others: collectives end together, so the median difference of their ends is the offset. ns. */
export interface Clock {
  /** Add to a rank's own ns to get job ns. */
  readonly offset: readonly number[];
  /** MAD of the residual ends, ns; NaN without matched collectives. */
  readonly mad: readonly number[];
  readonly matches: readonly number[];
  readonly usable: boolean;
}

const GOOD_MAD = 200_000;

export function alignClocks(ranks: readonly RankFacts[], matches: readonly Match[]): Clock {
  const base = ranks[0]?.originUs ?? 0;
  const offset = ranks.map((r) => (r.originUs - base) * 1000);
  const spread = ranks.map(() => Number.NaN);
  const seen = ranks.map(() => 0);
  const absolute = (r: number, c: number): number => ranks[r]!.collectives[c]!.end + offset[r]!;
  // Two rounds: the reference end of each collective is the median over its ranks, better once the offsets are.
  for (let round = 0; round < 3; round++) {
    const residuals = ranks.map((): number[] => []);
    for (const match of matches) {
      if (match.ranks.length < 2 || match.p2p) continue;
      const ends = match.ranks.map((r, k) => absolute(r, match.calls[k]!));
      const reference = median(ends);
      match.ranks.forEach((r, k) => {
        residuals[r]!.push(ends[k]! - reference);
      });
    }
    residuals.forEach((list, r) => {
      seen[r] = list.length;
      if (list.length === 0) return;
      const middle = median(list);
      offset[r] = offset[r]! - middle;
      spread[r] = median(list.map((v) => Math.abs(v - middle)));
    });
  }
  const matched = spread.filter((m) => !Number.isNaN(m));
  return { offset, mad: spread, matches: seen, usable: ranks.length < 2 || (matched.length > 1 && matched.every((m) => m <= GOOD_MAD)) };
}

/** Who arrived when at one collective, job clock, ns. */
export interface Arrival {
  readonly match: number;
  readonly step: number | null;
  readonly ranks: readonly number[];
  readonly arrive: readonly number[];
  readonly end: number;
  /** Rank index that came last, and by how much it came after the one before it. */
  readonly last: number;
  readonly lead: number;
  /** Time from the last arrival of the ranks that are here to the end. */
  readonly body: number;
  /** What the slowest arrival of the ranks here made the earliest wait. */
  readonly skew: number;
}

export function arrivals(ranks: readonly RankFacts[], matches: readonly Match[], clock: Clock): Arrival[] {
  const out: Arrival[] = [];
  matches.forEach((match, m) => {
    if (match.ranks.length < 2) return;
    const arrive = match.ranks.map((r, k) => ranks[r]!.collectives[match.calls[k]!]!.start + clock.offset[r]!);
    const ends = match.ranks.map((r, k) => ranks[r]!.collectives[match.calls[k]!]!.end + clock.offset[r]!);
    let last = 0;
    arrive.forEach((t, k) => {
      if (t > arrive[last]!) last = k;
    });
    const sorted = [...arrive].sort((a, b) => a - b);
    out.push({
      match: m,
      step: match.step,
      ranks: match.ranks,
      arrive,
      end: median(ends),
      last: match.ranks[last]!,
      lead: sorted[sorted.length - 1]! - sorted[sorted.length - 2]!,
      body: median(ends) - arrive[last]!,
      skew: arrive[last]! - sorted[0]!,
    });
  });
  return out;
}

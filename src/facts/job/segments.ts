import { median } from '../../base/statistics.ts';
import type { RankFacts, SegmentFacts } from '../../model/facts.ts';

/** Forward passes of one kind, of the rank that takes longest for one. */
export interface PassSummary {
  readonly kind: string | null;
  /** Index of that rank. */
  readonly rank: number;
  readonly count: number;
  readonly basis: SegmentFacts['basis'];
  /** ms, medians. */
  readonly durationMs: number;
  /** Start of a pass to the start of the next one when both are of this kind; NaN without such a pair. */
  readonly distanceMs: number;
  /** Device busy in the passes, divided by their duration. */
  readonly busyShare: number;
}

/** Forward passes by kind, most frequent first; prefill and decode are never averaged. Empty in captures with step marks. */
export function passSummaries(ranks: readonly RankFacts[]): PassSummary[] {
  const slowest = new Map<string | null, PassSummary>();
  ranks.forEach((facts, rank) => {
    const passes = facts.segments.filter((s) => s.unit === 'forward');
    for (const [kind, own] of Map.groupBy(passes, (p) => p.kind)) {
      const total = own.reduce((sum, p) => sum + p.end - p.start, 0);
      const summary: PassSummary = {
        kind,
        rank,
        count: own.length,
        basis: own[0]!.basis,
        durationMs: median(own.map((p) => (p.end - p.start) / 1e6)),
        distanceMs: median(
          passes.flatMap((p, i) => (p.kind === kind && passes[i + 1]?.kind === kind ? [(passes[i + 1]!.start - p.start) / 1e6] : [])),
        ),
        busyShare: total > 0 ? own.reduce((sum, p) => sum + p.busy, 0) / total : Number.NaN,
      };
      const known = slowest.get(kind);
      if (known === undefined || summary.durationMs > known.durationMs) slowest.set(kind, summary);
    }
  });
  return [...slowest.values()].sort((a, b) => b.count - a.count);
}

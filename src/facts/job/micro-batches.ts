import { median } from '../../base/statistics.ts';
import type { JobFacts } from './index.ts';
import type { Stages } from './stages.ts';

/** What the point-to-point calls of the pipeline tell, per used step. */
export interface Exchange {
  /** Micro-batches of a step, as the first and the last stage agree on; null when they do not (interleaved or other schedules). */
  readonly microBatches: number | null;
  /** By stage: time in point-to-point calls that computing does not cover, ms per step, median of the stage's ranks. NaN without such calls. */
  readonly exposedMs: readonly number[];
}

/**
 * One-forward-one-backward exchanges once per micro-batch and direction. The last stage calls send-and-receive m + 1 times, the first one
 * m + p − 1 times (p stages: so many forwards go ahead); with separate calls each of the two receives m times.
 */
export function exchangeOf(job: JobFacts, { stages }: Stages): Exchange {
  const used = new Set<number | null>(job.steps.used);
  const steps = Math.max(1, job.steps.usedIndex.length);
  const perRank = job.ranks.map((rank) => {
    const counts = { both: 0, receives: 0, exposed: 0 };
    for (const call of rank.collectives) {
      if (!call.p2p || (call.step !== null && used.size > 0 && !used.has(call.step))) continue;
      if (/batchsendrecv/i.test(call.op)) counts.both++;
      else if (/rece?i?ve?/i.test(call.op)) counts.receives++;
      counts.exposed += call.exposed / 1e6;
    }
    return { both: counts.both / steps, receives: counts.receives / steps, exposed: counts.exposed / steps };
  });
  const of = (stage: Stages['stages'][number], value: (r: (typeof perRank)[number]) => number): number =>
    median(stage.ranks.map((r) => value(perRank[r]!)));
  const exposedMs = stages.map((stage) => {
    const talks = stage.ranks.some((r) => perRank[r]!.both + perRank[r]!.receives > 0);
    return talks ? of(stage, (r) => r.exposed) : Number.NaN;
  });
  const [first, last] = [stages[0]!, stages[stages.length - 1]!];
  const both = [of(first, (r) => r.both) - (stages.length - 1), of(last, (r) => r.both) - 1] as const;
  const apart = [of(first, (r) => r.receives), of(last, (r) => r.receives)] as const;
  const agreed = both[0] >= 1 && both[0] === both[1] ? both[0] : apart[0] >= 1 && apart[0] === apart[1] ? apart[0] : null;
  return { microBatches: agreed !== null && Number.isInteger(agreed) ? agreed : null, exposedMs };
}

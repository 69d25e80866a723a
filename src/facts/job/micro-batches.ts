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
  const { used } = job.steps;
  const count = Math.max(1, job.steps.usedIndex.length);
  const perRank = job.ranks.map((rank) => {
    const none = (): { both: number; receives: number; exposed: number } => ({ both: 0, receives: 0, exposed: 0 });
    const inStep = new Map<number | null, ReturnType<typeof none>>(used.map((id) => [id, none()]));
    const elsewhere = none();
    for (const call of rank.collectives) {
      const sum = inStep.get(call.step) ?? (call.step === null || used.length === 0 ? elsewhere : undefined);
      if (!call.p2p || sum === undefined) continue;
      if (/batchsendrecv/i.test(call.op)) sum.both++;
      else if (/rece?i?ve?/i.test(call.op)) sum.receives++;
      sum.exposed += call.exposed / 1e6;
    }
    // Where the host is ahead, calls launched before the capture are told in its first steps: the median leaves them out.
    const perStep = (value: (s: typeof elsewhere) => number): number =>
      (used.length === 0 ? 0 : median([...inStep.values()].map(value))) + value(elsewhere) / count;
    return { both: perStep((s) => s.both), receives: perStep((s) => s.receives), exposed: perStep((s) => s.exposed) };
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

import type { RankFacts, SyncKind, SyncSite } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed, sumByStep } from './per-step.ts';

/** Waits of the host for the card; copies to the card and giving memory back have rules of their own. */
export const WAITS: readonly SyncKind[] = ['item', 'shape', 'to-host', 'copy', 'stream', 'device', 'event'];
/** Fewer waits beside collectives than this per step are barriers, not a habit. */
const MIN_DRAINS = 8;
/** Part of the step that draining waits must hold the host: what they cost is computing that could run beside the collective. */
const DRAIN_SHARE = 0.05;
/** A drain before and after each collective gives 2, gradient hooks without waits 0. */
export const DRAIN_RATIO = 1;

/** Waits of one place per step, medians of the used steps. Times in ms. */
export interface WaitingPlace {
  readonly site: SyncSite;
  readonly count: number;
  readonly host: number;
  readonly idle: number;
  /** Of `count` those right beside a collective. */
  readonly beside: number;
}

/** Places where a rank waits for its card, the costliest first. */
export function waitingPlaces(job: JobFacts, rank: RankFacts): WaitingPlace[] {
  const out: WaitingPlace[] = [];
  for (const site of rank.host?.syncs ?? []) {
    if (!WAITS.includes(site.kind)) continue;
    const per = (figure: 'count' | 'host' | 'idle'): number =>
      medianOfUsed(
        job,
        sumByStep(rank.steps.length, site.costs, (c) => c[figure]),
      ) || 0;
    const count = per('count');
    if (!(count > 0)) continue;
    const all = site.costs.reduce((n, c) => n + c.count, 0);
    out.push({
      site,
      count,
      host: per('host') / 1e6,
      idle: per('idle') / 1e6,
      beside: all === 0 ? 0 : (site.besideCollective / all) * count,
    });
  }
  return out.sort((a, b) => b.idle - a.idle || b.host - a.host);
}

/** Collectives that a rank launches per step, median of the used steps. */
export function collectivesPerStep(job: JobFacts, { tape, steps }: RankFacts): number {
  const out = new Array<number>(steps.length).fill(0);
  tape?.collective.forEach((call, i) => {
    const step = tape.step[i]!;
    if (call >= 0 && step >= 0) out[step] = out[step]! + 1;
  });
  return medianOfUsed(job, out) || 0;
}

/** Places where the host waits around each collective so that no computing runs beside it; none when it does not. */
export function drains(job: JobFacts, rank: RankFacts, places = waitingPlaces(job, rank), ratio = DRAIN_RATIO): WaitingPlace[] {
  const step = job.steps.stepTimeMs;
  if (step === null) return [];
  const beside = places.filter((p) => p.beside >= 0.5 * p.count);
  const count = beside.reduce((sum, p) => sum + p.count, 0);
  const host = beside.reduce((sum, p) => sum + p.host, 0);
  const collectives = collectivesPerStep(job, rank);
  const often = collectives > 0 && count / collectives >= ratio && count >= MIN_DRAINS;
  return often && host >= DRAIN_SHARE * step ? beside : [];
}

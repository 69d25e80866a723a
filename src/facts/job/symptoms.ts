import type { JobFacts } from './index.ts';
import { medianOfUsed } from './per-step.ts';

/** What a setting can be blamed for, ms per used step of one rank; NaN when the capture does not tell. */
export interface Symptoms {
  /** The card had nothing to do because nothing was launched. */
  readonly launchMs: number;
  /** The card had nothing to do while the host waited for it. */
  readonly syncMs: number;
  readonly loaderMs: number;
  /** Communication that computing does not cover. */
  readonly exposedMs: number;
  /** Waits of the host per launch of a kernel, 0..; 1 and more when every launch is waited for. */
  readonly syncsPerLaunch: number;
}

/** Of the rank that sets the pace unless another is named. */
export function symptoms(job: JobFacts, at = job.steps.pace): Symptoms {
  const rank = job.ranks[at];
  if (rank === undefined)
    return { launchMs: Number.NaN, syncMs: Number.NaN, loaderMs: Number.NaN, exposedMs: Number.NaN, syncsPerLaunch: Number.NaN };
  const { tape, idle } = rank;
  const idleMs = (value: (s: NonNullable<typeof idle>['steps'][number]) => number): number =>
    idle === null ? Number.NaN : medianOfUsed(job, idle.steps.map(value)) / 1e6;
  let launches = 0;
  if (tape !== null) for (const at of tape.launch) if (!Number.isNaN(at)) launches++;
  return {
    launchMs: idleMs((s) => s.launch),
    syncMs: idleMs((s) => s.sync),
    loaderMs: idleMs((s) => s.loader),
    exposedMs: medianOfUsed(
      job,
      rank.steps.map((s) => s.breakdown.exposedMs),
    ),
    syncsPerLaunch: tape === null || launches === 0 ? Number.NaN : tape.syncs.start.length / launches,
  };
}

import type { JobFacts } from '../facts/job/index.ts';
import type { RawFinding } from '../model/rule.ts';
import { lossPerStep } from './savings.ts';

const FINDINGS = 40;
const STEPS = 200;

export interface LossView {
  readonly findingId: string;
  /** Used steps in order, the first 200. ms: what the step takes longer for this cause, below 0 when it would get longer without it; null: unknown. */
  readonly steps: readonly { readonly step: number | null; readonly ms: number | null }[];
  readonly of: number;
}

/** What each finding costs in each step, as far as the replay tells. */
export function lossView(job: JobFacts, findings: readonly { readonly id: string; readonly raw: RawFinding }[]): LossView[] {
  return findings
    .flatMap(({ id, raw }) => {
      const losses = lossPerStep(job, raw);
      return losses === null || losses.every(Number.isNaN) ? [] : [{ id, losses }];
    })
    .slice(0, FINDINGS)
    .map(({ id, losses }) => ({
      findingId: id,
      steps: losses.slice(0, STEPS).map((ms, i) => ({
        step: job.steps.used[i] ?? null,
        ms: Number.isNaN(ms) ? null : Math.round(ms * 1000) / 1000,
      })),
      of: losses.length,
    }));
}

import { z } from 'zod';

/** How a job did over time, as far as it is kept. Plain data; times are ms per step, null is not known. */

const Ms = z.number().finite().nonnegative().nullable();

/** Figures of one profile. */
export const ProfileMetrics = z.object({
  stepTimeMs: Ms,
  freeShare: z.number().min(0).max(1).nullable().describe('share of the step in which a card is idle, 0 to 1'),
  exposedMs: Ms.describe('communication that nothing hides'),
  top: z
    .array(z.object({ rule: z.string(), savingMs: z.number().finite().nonnegative() }))
    .max(5)
    .describe('causes with the largest likely saving, largest first'),
});
export type ProfileMetrics = z.infer<typeof ProfileMetrics>;

/** The commit a pull request is compared with, and why that one. */
export const BaseCommit = z.object({
  sha: z.string(),
  branch: z.string().nullable().describe('branch whose run profiled it; null: it was the head of a pull request'),
  baseRef: z.string().describe('base branch of the pull request'),
  mergeBase: z.string(),
  isFallback: z.boolean().describe('the merge base has no profile, so an older commit stands in'),
  commitsBefore: z.number().int().nonnegative().describe('commits between it and the merge base'),
  ageMs: z.number().nonnegative().describe('age of its newest profile when the comparison was made'),
});
export type BaseCommit = z.infer<typeof BaseCommit>;

/** `views.trend` of a report. */
export const Trend = z.object({
  branch: z.string(),
  points: z
    .array(z.object({ sha: z.string(), at: z.number(), metrics: ProfileMetrics }))
    .max(30)
    .describe('one for each commit of the branch, oldest first, without this job itself'),
  now: ProfileMetrics,
});
export type Trend = z.infer<typeof Trend>;

/** `views.baseline` of a report that was compared with nothing. */
export const NoBaseline = z.object({ branch: z.string(), reason: z.enum(['no-profile', 'not-an-ancestor', 'other-version', 'unrelated']) });
export type NoBaseline = z.infer<typeof NoBaseline>;

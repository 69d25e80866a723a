import { z } from 'zod';
import type { Wanted as WantedUpload } from '../../commands/command.ts';
import { Task } from '../../github/intake.ts';

const Id = z.number().int().positive();
const Repository = z.object({ id: Id, owner: z.string(), name: z.string() });
const Sha = z.string();

/** Where a request applies. */
export const Target = z.object({ installationId: Id, repository: Repository });
export type Target = z.infer<typeof Target>;

const Run = z.object({ id: Id, name: z.string(), path: z.string(), htmlUrl: z.string().nullable() });

const Wanted = z.object({
  runId: Id.nullable(),
  repository: z.string().nullable(),
  artifact: z.union([z.object({ id: Id }), z.object({ name: z.string() })]).nullable(),
  attachment: z.string().max(1000).optional(),
}) satisfies z.ZodType<WantedUpload>;

/** Requests about a pull request, handled one at a time for each. */
export const PullRequestRequest = z.discriminatedUnion('kind', [
  Target.extend({
    kind: z.literal('analyse'),
    pr: Id,
    headSha: Sha,
    /** The run that finished; null: look through the runs of the commit. */
    run: Run.nullable(),
    /** Asked for by a person: create the comment, and do not reuse an older report. */
    isAsked: z.boolean(),
    /** A report of the same inputs will do. */
    mayReuse: z.boolean().default(false),
    /** The base branch is another one: what is known is compared and judged anew where its profile is still there. */
    hasNewBase: z.boolean().default(false),
    /** The upload a person pointed at; null: whatever the commit has. */
    wanted: Wanted.nullable().default(null),
    /** Comment to react to at the end. */
    commentId: Id.nullable(),
  }),
  Target.extend({ kind: z.literal('close'), pr: Id, headSha: Sha }),
  /** Links to details pages are to end later. */
  Target.extend({ kind: z.literal('renew'), pr: Id, headSha: Sha }),
  /** `pr` 0: the commit of a merge queue. */
  Target.extend({ kind: z.literal('overdue'), pr: z.number().int().nonnegative(), headSha: Sha }),
]);
export type PullRequestRequest = z.infer<typeof PullRequestRequest>;
export type AnalyseRequest = Extract<PullRequestRequest, { kind: 'analyse' }>;

/** A task as stored for the other subjects; a command also remembers the head it was given for. */
export const TaskRequest = z.object({
  task: Task,
  headSha: Sha.nullable().default(null),
  /** Results of its commands that have ended, by their place in the comment. */
  ended: z.record(z.string(), z.enum(['done', 'started', 'refused'])).default({}),
});
export type TaskRequest = z.infer<typeof TaskRequest>;

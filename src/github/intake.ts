import { z } from 'zod';
import { isHeld, type RunRef } from './pull-requests.ts';

/** Events and actions the App subscribes to. Everything else is answered and forgotten. */
export const EVENTS = [
  'pull_request.opened',
  'pull_request.reopened',
  'pull_request.synchronize',
  'pull_request.ready_for_review',
  'pull_request.edited',
  'pull_request.closed',
  'workflow_run.in_progress',
  'workflow_run.completed',
  'issue_comment.created',
  'check_run.rerequested',
  'check_run.requested_action',
  'check_suite.rerequested',
  'merge_group.checks_requested',
  'merge_group.destroyed',
  'installation.created',
  'installation.deleted',
  'installation.suspend',
  'installation.unsuspend',
  'installation.new_permissions_accepted',
  'installation_repositories.removed',
] as const;

const Id = z.number().int().positive();
const Login = z.string().min(1).max(200);
const Sha = z.string().regex(/^[0-9a-f]{40}$/);
const Repository = z.object({ id: Id, owner: Login, name: z.string().min(1).max(200) });
const Target = z.object({ installationId: Id, repository: Repository });

/** Buttons of a finished check, by their identifiers. */
const CheckAction = z.enum(['rerun', 'ack-all', 'suggest']);
export type CheckAction = z.infer<typeof CheckAction>;

const CommandLine = z.object({ name: z.string(), args: z.array(z.string()) });

const OfRun = Target.extend({
  run: z.object({
    id: Id,
    attempt: z.number().int(),
    name: z.string(),
    path: z.string(),
    event: z.string(),
    htmlUrl: z.string().nullable(),
    headSha: Sha,
    headBranch: z.string().nullable(),
    headOwner: z.string().nullable(),
    headRepoId: Id.nullable(),
    listed: z.array(Id),
  }) satisfies z.ZodType<RunRef>,
  /** Of the repository at the time of the event. */
  defaultBranch: z.string().nullable().default(null),
});

/** What is left of an event once everything we do not need is gone. This, and not the payload, is kept. */
export const Task = z.discriminatedUnion('kind', [
  /** `again`: why a head that may be known is to be looked at. */
  Target.extend({ kind: z.literal('head-changed'), pr: Id, headSha: Sha, again: z.enum(['reopened', 'retargeted']).optional() }),
  Target.extend({ kind: z.literal('closed'), pr: Id, headSha: Sha }),
  OfRun.extend({ kind: z.literal('run-started') }),
  OfRun.extend({ kind: z.literal('run-completed') }),
  /** `writtenAt`: numbers and `all` mean what was shown then. null: not known. */
  Target.extend({
    kind: z.literal('comment'),
    pr: Id,
    commentId: Id,
    actor: Login,
    commands: z.array(CommandLine),
    writtenAt: z.number().int().nullable().default(null),
  }),
  /** A button of the check, or GitHub's own "Re-run". `actor` null: another app asked, whose right GitHub has checked. */
  Target.extend({
    kind: z.literal('rerun'),
    headSha: Sha,
    actor: Login.nullable(),
    checkRunId: Id.nullable(),
    appId: Id,
    action: CheckAction.default('rerun'),
  }),
  /** A merge queue tests a commit of its own: `refs/heads/gh-readonly-queue/BASE/pr-NUMBER-SHA`. */
  Target.extend({
    kind: z.literal('merge-group'),
    headSha: Sha,
    headRef: z.string().nullable().default(null),
    baseRef: z.string().nullable().default(null),
    isGone: z.boolean().default(false),
  }),
  z.object({ kind: z.literal('installation'), installationId: Id, account: z.string(), state: z.enum(['active', 'suspended', 'deleted']) }),
  /** The App was taken out of repositories of an installation that goes on. */
  z.object({ kind: z.literal('repositories-removed'), installationId: Id, repoIds: z.array(Id).max(10_000) }),
]);
export type Task = z.infer<typeof Task>;

const RawRepository = z
  .object({ id: Id, name: z.string(), owner: z.object({ login: Login }) })
  .transform((raw) => ({ id: raw.id, owner: raw.owner.login, name: raw.name }));
const Base = z.object({ installation: z.object({ id: Id }), repository: RawRepository });
const Sender = z.object({ login: Login, type: z.string() });

const PullRequestEvent = Base.extend({ pull_request: z.object({ number: Id, head: z.object({ sha: Sha }) }) });
const EditedEvent = z.object({ changes: z.object({ base: z.unknown().optional() }).nullish() });
const WorkflowRunEvent = Base.extend({
  workflow_run: z.object({
    id: Id,
    run_attempt: z.number().int().nullish(),
    name: z.string().nullish(),
    path: z.string().nullish(),
    event: z.string(),
    conclusion: z.string().nullish(),
    html_url: z.string().nullish(),
    head_sha: Sha,
    head_branch: z.string().nullish(),
    head_repository: z.object({ id: Id, owner: z.object({ login: Login }).nullish() }).nullish(),
    pull_requests: z.array(z.object({ number: Id }).nullable()).nullish(),
  }),
});
const DefaultBranch = z.object({ repository: z.object({ default_branch: z.string().max(1000).nullish() }) });
const CommentEvent = Base.extend({
  issue: z.object({ number: Id, pull_request: z.unknown().optional() }),
  comment: z.object({ id: Id, body: z.string().nullish(), created_at: z.string().nullish() }),
  sender: Sender,
});
const CheckRunEvent = Base.extend({
  check_run: z.object({ id: Id, head_sha: Sha, app: z.object({ id: Id }) }),
  requested_action: z.object({ identifier: z.string() }).nullish(),
  sender: Sender,
});
const CheckSuiteEvent = Base.extend({ check_suite: z.object({ head_sha: Sha, app: z.object({ id: Id }) }), sender: Sender });
const MergeGroupEvent = Base.extend({
  merge_group: z.object({ head_sha: Sha, head_ref: z.string().max(1000).nullish(), base_ref: z.string().max(1000).nullish() }),
});
const InstallationEvent = z.object({
  installation: z.object({ id: Id, account: z.object({ login: Login.optional(), slug: Login.optional() }).nullish() }),
});

const RepositoriesEvent = z.object({
  installation: z.object({ id: Id }),
  repositories_removed: z.array(z.object({ id: Id })).max(10_000),
});

function personOf(sender: z.infer<typeof Sender>): string | null {
  return sender.type === 'User' ? sender.login : null;
}

/**
 * GitHub delivers again for about three days. The signature covers neither id nor time of a delivery, so a recorded one could be sent
 * under a new id much later; of all events only a command would then mean something else than when it was given.
 */
const COMMAND_AGE_MS = 3 * 24 * 3600 * 1000;

function isTooOld(writtenAt: string | null | undefined, now: number): boolean {
  const at = Date.parse(writtenAt ?? '');
  return Number.isFinite(at) && now - at > COMMAND_AGE_MS;
}

/** Reads command lines out of a comment; owned by the commands, passed in. */
export type ParseCommands = (body: string) => { name: string; args: string[] }[];

/**
 * Turns an event into a task, or null when there is nothing to do for it. Throws when the event lacks what it must have.
 * `name` is `event.action`.
 */
export function toTask(name: string, payload: unknown, parseCommands: ParseCommands, now = Date.now()): Task | null {
  switch (name) {
    case 'pull_request.opened':
    case 'pull_request.reopened':
    case 'pull_request.synchronize':
    case 'pull_request.ready_for_review':
    case 'pull_request.closed': {
      const { installation, repository, pull_request } = PullRequestEvent.parse(payload);
      const common = { installationId: installation.id, repository, pr: pull_request.number, headSha: pull_request.head.sha };
      if (name === 'pull_request.closed') return { kind: 'closed', ...common };
      return { kind: 'head-changed', ...common, ...(name === 'pull_request.reopened' ? { again: 'reopened' } : {}) };
    }
    case 'pull_request.edited': {
      const { installation, repository, pull_request } = PullRequestEvent.parse(payload);
      const { changes } = EditedEvent.parse(payload);
      // Titles and descriptions are not ours to read.
      if (changes?.base === undefined || changes.base === null) return null;
      const common = { kind: 'head-changed', installationId: installation.id, repository } as const;
      return { ...common, pr: pull_request.number, headSha: pull_request.head.sha, again: 'retargeted' };
    }
    case 'workflow_run.in_progress':
    case 'workflow_run.completed': {
      const { installation, repository, workflow_run: run } = WorkflowRunEvent.parse(payload);
      const { default_branch: defaultBranch } = DefaultBranch.parse(payload).repository;
      return {
        // One that waits for an approval is delivered as completed, and once more when it is.
        kind: name === 'workflow_run.in_progress' || isHeld(run) ? 'run-started' : 'run-completed',
        installationId: installation.id,
        repository,
        run: {
          id: run.id,
          attempt: run.run_attempt ?? 1,
          name: (run.name ?? '').slice(0, 200),
          path: (run.path ?? '').split('@', 1)[0] ?? '',
          event: run.event,
          htmlUrl: run.html_url ?? null,
          headSha: run.head_sha,
          headBranch: run.head_branch ?? null,
          headOwner: run.head_repository?.owner?.login ?? null,
          headRepoId: run.head_repository?.id ?? null,
          listed: (run.pull_requests ?? []).flatMap((pull) => (pull === null ? [] : [pull.number])).slice(0, 20),
        },
        defaultBranch: defaultBranch ?? null,
      };
    }
    case 'issue_comment.created': {
      const { installation, repository, issue, comment, sender } = CommentEvent.parse(payload);
      if (issue.pull_request === undefined || issue.pull_request === null || sender.type !== 'User') return null;
      if (isTooOld(comment.created_at, now)) return null;
      const commands = parseCommands(comment.body ?? '');
      if (commands.length === 0) return null;
      const writtenAt = Date.parse(comment.created_at ?? '');
      return {
        kind: 'comment',
        installationId: installation.id,
        repository,
        pr: issue.number,
        commentId: comment.id,
        actor: sender.login,
        commands,
        writtenAt: Number.isFinite(writtenAt) ? writtenAt : null,
      };
    }
    case 'check_run.rerequested':
    case 'check_run.requested_action': {
      const { installation, repository, check_run, requested_action, sender } = CheckRunEvent.parse(payload);
      const isButton = name === 'check_run.requested_action';
      const action = isButton ? CheckAction.safeParse(requested_action?.identifier) : CheckAction.safeParse('rerun');
      if (!action.success || (isButton && sender.type !== 'User')) return null;
      const common = { kind: 'rerun', installationId: installation.id, repository, headSha: check_run.head_sha } as const;
      return { ...common, actor: personOf(sender), checkRunId: check_run.id, appId: check_run.app.id, action: action.data };
    }
    case 'check_suite.rerequested': {
      const { installation, repository, check_suite, sender } = CheckSuiteEvent.parse(payload);
      const common = { kind: 'rerun', installationId: installation.id, repository, headSha: check_suite.head_sha } as const;
      return { ...common, actor: personOf(sender), checkRunId: null, appId: check_suite.app.id, action: 'rerun' };
    }
    case 'merge_group.checks_requested':
    case 'merge_group.destroyed': {
      const { installation, repository, merge_group } = MergeGroupEvent.parse(payload);
      const { head_sha: headSha, head_ref: headRef, base_ref: baseRef } = merge_group;
      const common = { kind: 'merge-group', installationId: installation.id, repository, headSha } as const;
      return { ...common, headRef: headRef ?? null, baseRef: baseRef ?? null, isGone: name === 'merge_group.destroyed' };
    }
    case 'installation.created':
    case 'installation.deleted':
    case 'installation.suspend':
    case 'installation.unsuspend':
    case 'installation.new_permissions_accepted': {
      const { installation } = InstallationEvent.parse(payload);
      const account = installation.account?.login ?? installation.account?.slug ?? '';
      const state = name === 'installation.deleted' ? 'deleted' : name === 'installation.suspend' ? 'suspended' : 'active';
      return { kind: 'installation', installationId: installation.id, account, state };
    }
    case 'installation_repositories.removed': {
      const { installation, repositories_removed } = RepositoriesEvent.parse(payload);
      return { kind: 'repositories-removed', installationId: installation.id, repoIds: repositories_removed.map(({ id }) => id) };
    }
    default:
      return null;
  }
}

/** Turns what a scenario asks to be delivered into the subject of a webhook. */
import type { CommentHandle, MergeGroupHandle, PullHandle, RepositoryHandle, RunHandle } from './handles.ts';
import type { JsonObject } from './json.ts';
import { suiteFor } from './routes/check.ts';
import type { CheckRun, HubState, Installation, Repository } from './state.ts';
import type { WebhookSubject } from './webhook-payloads.ts';

/** What can be delivered, by event. */
export interface WebhookRequests {
  pull_request: {
    action: 'opened' | 'reopened' | 'synchronize' | 'ready_for_review' | 'converted_to_draft' | 'edited' | 'closed';
    pr: PullHandle;
    before?: string;
    changes?: JsonObject;
  };
  workflow_run: { action: 'requested' | 'in_progress' | 'completed'; run: RunHandle };
  issue_comment: { action: 'created' | 'edited' | 'deleted'; comment: CommentHandle; previousBody?: string };
  /** A check run by id, or the newest of a name on a pull request's head. */
  check_run: {
    action: 'created' | 'completed' | 'rerequested' | 'requested_action';
    check: number | { pr: PullHandle; name: string };
    identifier?: string;
  };
  check_suite: { action: 'requested' | 'rerequested' | 'completed'; repository: RepositoryHandle; headSha: string };
  installation: {
    action: 'created' | 'deleted' | 'suspend' | 'unsuspend' | 'new_permissions_accepted';
    owner: string;
  };
  installation_repositories: { action: 'added' | 'removed'; owner: string; repositories: RepositoryHandle[] };
  merge_group: { action: 'checks_requested' | 'destroyed'; group: MergeGroupHandle; reason?: 'merged' | 'invalidated' | 'dequeued' };
  push: { repository: RepositoryHandle; branch?: string; before: string; after: string; forced?: boolean };
  ping: Record<string, never>;
}

/** A request of one event. */
export type WebhookRequest = { [Event in keyof WebhookRequests]: { event: Event } & WebhookRequests[Event] }[keyof WebhookRequests];

function repositoryById(state: HubState, id: number): Repository {
  const repository = state.repositories.find((candidate) => candidate.id === id);
  if (!repository) throw new Error(`no repository ${id}`);
  return repository;
}

function must<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`there is no such ${what}`);
  return value;
}

function installationOf(state: HubState, owner: string): Installation {
  return must(
    state.installations.findLast((installation) => installation.account.login.toLowerCase() === owner.toLowerCase()),
    'installation',
  );
}

/** The subject of a requested webhook. */
export function webhookSubject(state: HubState, request: WebhookRequest): WebhookSubject {
  switch (request.event) {
    case 'pull_request': {
      const { pr, ...rest } = request;
      const repository = repositoryById(state, pr.repository.id);
      return {
        ...rest,
        pull: must(
          repository.pulls.find((pull) => pull.number === pr.number),
          'pull request',
        ),
      };
    }
    case 'workflow_run': {
      const repository = repositoryById(state, request.run.repository.id);
      const run = must(
        repository.runs.find((candidate) => candidate.id === request.run.id),
        'workflow run',
      );
      return { event: 'workflow_run', action: request.action, repository, run };
    }
    case 'issue_comment': {
      const repository = repositoryById(state, request.comment.repository.id);
      const comment = must(
        repository.comments.find((candidate) => candidate.id === request.comment.id),
        'comment',
      );
      const previous = request.previousBody === undefined ? {} : { previousBody: request.previousBody };
      return { event: 'issue_comment', action: request.action, repository, comment, ...previous };
    }
    case 'check_run': {
      const { repository, run } = checkRun(state, request.check);
      const identifier = request.identifier === undefined ? {} : { identifier: request.identifier };
      return { event: 'check_run', action: request.action, repository, run, ...identifier };
    }
    case 'check_suite': {
      const repository = repositoryById(state, request.repository.id);
      return { event: 'check_suite', action: request.action, repository, suite: suiteFor(state, repository, request.headSha) };
    }
    case 'installation': {
      const installation = installationOf(state, request.owner);
      if (request.action === 'deleted') installation.deleted = true;
      if (request.action === 'suspend') installation.suspendedAt = new Date().toISOString();
      if (request.action === 'unsuspend') installation.suspendedAt = null;
      return { event: 'installation', action: request.action, installation };
    }
    case 'installation_repositories':
      return {
        event: 'installation_repositories',
        action: request.action,
        installation: installationOf(state, request.owner),
        repositories: request.repositories.map((handle) => repositoryById(state, handle.id)),
      };
    case 'merge_group': {
      const { group, action, reason } = request;
      const { headSha, headRef, baseSha, baseRef } = group;
      return {
        ...{ event: 'merge_group', action, repository: repositoryById(state, group.repository.id), headSha, headRef, baseSha, baseRef },
        ...(reason === undefined ? {} : { reason }),
      };
    }
    case 'push': {
      const repository = repositoryById(state, request.repository.id);
      const { before, after } = request;
      return {
        event: 'push',
        repository,
        branch: request.branch ?? repository.defaultBranch,
        before,
        after,
        forced: request.forced ?? false,
      };
    }
    case 'ping':
      return { event: 'ping' };
  }
}

function checkRun(state: HubState, check: WebhookRequests['check_run']['check']): { repository: Repository; run: CheckRun } {
  if (typeof check === 'number') {
    for (const repository of state.repositories) {
      const run = repository.checkRuns.find((candidate) => candidate.id === check);
      if (run) return { repository, run };
    }
    throw new Error(`no check run ${check}`);
  }
  const repository = repositoryById(state, check.pr.repository.id);
  const run = repository.checkRuns.findLast((candidate) => candidate.name === check.name && candidate.headSha === check.pr.headSha);
  return { repository, run: must(run, 'check run') };
}

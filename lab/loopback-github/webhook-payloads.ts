/** Webhook payloads built from state, in the shapes GitHub describes. */
import { diffCommits } from './diff.ts';
import type { JsonObject } from './json.ts';
import { accountJson, installationJson, nodeId, organizationJson } from './present/account.ts';
import { workflowJson, workflowRunJson } from './present/action.ts';
import { checkRunJson, suiteCoreJson, suiteJson } from './present/check.ts';
import { commentJson } from './present/comment.ts';
import { headCommitJson } from './present/commit.ts';
import { fullPullJson, issueJson } from './present/pull.ts';
import { repositoryHtml, repositoryJson } from './present/repository.ts';
import type { Account, CheckRun, CheckSuite, HubState, Installation, IssueComment, PullRequest, Repository, WorkflowRun } from './state.ts';

/** What a webhook is about, by event. */
export type WebhookSubject =
  | { event: 'pull_request'; action: string; pull: PullRequest; before?: string; changes?: JsonObject }
  | { event: 'workflow_run'; action: 'requested' | 'in_progress' | 'completed'; repository: Repository; run: WorkflowRun }
  | {
      event: 'issue_comment';
      action: 'created' | 'edited' | 'deleted';
      repository: Repository;
      comment: IssueComment;
      previousBody?: string;
    }
  | {
      event: 'check_run';
      action: 'created' | 'completed' | 'rerequested' | 'requested_action';
      repository: Repository;
      run: CheckRun;
      identifier?: string;
    }
  | { event: 'check_suite'; action: 'requested' | 'rerequested' | 'completed'; repository: Repository; suite: CheckSuite }
  | {
      event: 'installation';
      action: 'created' | 'deleted' | 'suspend' | 'unsuspend' | 'new_permissions_accepted';
      installation: Installation;
      repositories?: Repository[];
    }
  | { event: 'installation_repositories'; action: 'added' | 'removed'; installation: Installation; repositories: Repository[] }
  | {
      event: 'merge_group';
      action: 'checks_requested' | 'destroyed';
      repository: Repository;
      headSha: string;
      headRef: string;
      baseSha: string;
      baseRef: string;
      reason?: string;
    }
  | { event: 'push'; repository: Repository; branch: string; before: string; after: string; forced: boolean }
  | { event: 'ping' };

/** A payload with what its delivery is filed under. */
export interface Payload {
  event: string;
  action: string | null;
  /** Name in GitHub's description. */
  schema: string;
  installationId: number | null;
  repositoryId: number | null;
  body: JsonObject;
}

/** The payload of a webhook, sent on behalf of `sender`. */
export function webhookPayload(state: HubState, subject: WebhookSubject, sender: Account | null): Payload {
  const { repository, installation, content, by } = describe(state, subject);
  const owner = repository?.owner;
  const action = 'action' in subject ? subject.action : null;
  return {
    event: subject.event,
    action,
    schema: (action === null ? subject.event : `${subject.event}-${action}`).replaceAll('_', '-'),
    installationId: installation?.id ?? null,
    repositoryId: repository?.id ?? null,
    body: {
      ...(action === null ? {} : { action }),
      ...content,
      ...(repository && !('repository' in content) ? { repository: repositoryJson(state, repository) } : {}),
      ...(owner?.type === 'Organization' ? { organization: organizationJson(state, owner) } : {}),
      ...(installation && !('installation' in content)
        ? { installation: { id: installation.id, node_id: nodeId('MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9u', installation.id) } }
        : {}),
      sender: accountJson(state, sender ?? by),
    },
  };
}

interface Described {
  repository: Repository | null;
  installation: Installation | null;
  content: JsonObject;
  /** Who sets the event off when nobody is named. */
  by: Account;
}

function describe(state: HubState, subject: WebhookSubject): Described {
  const of = (repository: Repository, content: JsonObject, by: Account): Described => ({
    repository,
    installation: repository.installation,
    content,
    by,
  });
  switch (subject.event) {
    case 'pull_request': {
      const { pull } = subject;
      const content: JsonObject = { number: pull.number, pull_request: fullPullJson(state, pull) };
      if (subject.action === 'synchronize') Object.assign(content, { before: subject.before ?? pull.base.sha, after: pull.head.sha });
      if (subject.action === 'edited') content.changes = subject.changes ?? {};
      return of(pull.repository, content, pull.author);
    }
    case 'workflow_run': {
      const { repository, run } = subject;
      const content = { workflow_run: workflowRunJson(state, repository, run), workflow: workflowJson(state, repository, run.workflow) };
      return of(repository, content, run.actor);
    }
    case 'issue_comment': {
      const { repository, comment } = subject;
      const pull = repository.pulls.find((candidate) => candidate.number === comment.number);
      const content: JsonObject = { comment: commentJson(state, repository, comment), issue: pull ? issueJson(state, pull) : null };
      if (subject.action === 'edited') content.changes = { body: { from: subject.previousBody ?? '' } };
      return of(repository, content, comment.user);
    }
    case 'check_run': {
      const { repository, run } = subject;
      const { repository: _repository, ...suite } = suiteJson(state, repository, run.suite);
      const embedded = Object.fromEntries(EMBEDDED_SUITE.map((key) => [key, suite[key]]));
      const content: JsonObject = { check_run: { ...checkRunJson(state, repository, run), check_suite: embedded } };
      if (subject.action === 'requested_action') content.requested_action = { identifier: subject.identifier ?? '' };
      return of(repository, content, repository.owner);
    }
    case 'check_suite':
      return of(subject.repository, { check_suite: suiteCoreJson(state, subject.repository, subject.suite) }, subject.repository.owner);
    case 'installation': {
      const { installation } = subject;
      const repositories = subject.repositories ?? state.repositories.filter((repository) => repository.installation === installation);
      const content: JsonObject = { installation: installationJson(state, installation), repositories: repositories.map(shortRepository) };
      if (subject.action === 'created') content.requester = null;
      return { repository: null, installation, content, by: installation.account };
    }
    case 'installation_repositories': {
      const { installation, repositories } = subject;
      const content: JsonObject = {
        installation: installationJson(state, installation),
        repository_selection: 'selected',
        repositories_added: subject.action === 'added' ? repositories.map(shortRepository) : [],
        repositories_removed: subject.action === 'removed' ? repositories.map(shortRepository) : [],
        requester: null,
      };
      return { repository: null, installation, content, by: installation.account };
    }
    case 'merge_group': {
      const commit = subject.repository.objects.commits.get(subject.headSha);
      const group = {
        head_sha: subject.headSha,
        head_ref: subject.headRef,
        base_sha: subject.baseSha,
        base_ref: subject.baseRef,
        head_commit: commit ? headCommitJson(commit) : null,
      };
      const content: JsonObject = { merge_group: group };
      if (subject.action === 'destroyed') content.reason = subject.reason ?? 'merged';
      return of(subject.repository, content, subject.repository.owner);
    }
    case 'push':
      return of(subject.repository, pushContent(state, subject), subject.repository.owner);
    case 'ping': {
      const hook = {
        type: 'App',
        id: 480_000_001,
        name: 'web',
        active: true,
        events: state.app.events,
        config: { content_type: 'json', insecure_ssl: '0', secret: '********', url: state.webhookUrl ?? state.url },
        updated_at: state.app.createdAt,
        created_at: state.app.createdAt,
        app_id: state.app.id,
        deliveries_url: `${state.apiUrl}/app/hook/deliveries`,
      };
      return {
        repository: null,
        installation: null,
        content: { zen: 'Keep it logically awesome.', hook_id: hook.id, hook },
        by: state.app.owner,
      };
    }
  }
}

/** The suite fields a check run's webhook carries. */
const EMBEDDED_SUITE = [
  ...['id', 'node_id', 'head_branch', 'head_sha', 'status', 'conclusion', 'url', 'before', 'after', 'pull_requests', 'app'],
  ...['created_at', 'updated_at'],
];

function shortRepository(repository: Repository): JsonObject {
  return {
    id: repository.id,
    node_id: nodeId('R', repository.id),
    name: repository.name,
    full_name: `${repository.owner.login}/${repository.name}`,
    private: repository.private,
  };
}

function pushContent(state: HubState, push: Extract<WebhookSubject, { event: 'push' }>): JsonObject {
  const { repository } = push;
  const html = repositoryHtml(state, repository);
  const commit = repository.objects.commits.get(push.after);
  const files = diffCommits(repository.objects, push.before, push.after);
  const named = (status: string): string[] => files.filter((file) => file.status === status).map((file) => file.path);
  const head = commit && {
    ...headCommitJson(commit),
    distinct: true,
    url: `${html}/commit/${commit.sha}`,
    added: named('added'),
    removed: named('removed'),
    modified: named('modified'),
  };
  return {
    ref: `refs/heads/${push.branch}`,
    before: push.before,
    after: push.after,
    base_ref: null,
    created: /^0+$/.test(push.before),
    deleted: false,
    forced: push.forced,
    compare: `${html}/compare/${push.before.slice(0, 12)}...${push.after.slice(0, 12)}`,
    commits: head ? [head] : [],
    head_commit: head ?? null,
    repository: repositoryJson(state, repository),
    pusher: { name: repository.owner.login, email: `${repository.owner.login}@users.noreply.github.com` },
  };
}

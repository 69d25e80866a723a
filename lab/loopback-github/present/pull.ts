/** Pull requests as the API shows them. */
import { diffCommits } from '../diff.ts';
import { commitsBetween, mergeBase } from '../git.ts';
import type { JsonObject } from '../json.ts';
import { type Account, type HubState, type PullRequest, type Repository, roleOf } from '../state.ts';
import { accountJson, nodeId } from './account.ts';
import { repositoryApi, repositoryHtml, repositoryJson } from './repository.ts';

/** How GitHub calls the relation of a commenter to the repository. */
export function association(repository: Repository, user: Account): string {
  if (user === repository.owner) return 'OWNER';
  if (user.type === 'Bot') return 'NONE';
  if (['write', 'maintain', 'admin', 'triage'].includes(roleOf(repository, user.login))) return 'COLLABORATOR';
  return repository.pulls.some((pull) => pull.author === user && pull.mergedAt !== null) ? 'CONTRIBUTOR' : 'NONE';
}

/** The commit the changes of a pull request are compared with. */
export function diffBase(pull: PullRequest, head: string = pull.head.sha): string {
  return mergeBase(pull.repository.objects, pull.base.sha, head) ?? pull.base.sha;
}

function labelsJson(state: HubState, pull: PullRequest): JsonObject[] {
  return pull.labels.map((label) => ({
    id: label.id,
    node_id: nodeId('LA', label.id),
    url: `${repositoryApi(state, pull.repository)}/labels/${encodeURIComponent(label.name)}`,
    name: label.name,
    color: label.color,
    default: false,
    description: '',
  }));
}

/** A pull request as lists and webhooks carry it. */
export function pullJson(state: HubState, pull: PullRequest): JsonObject {
  const api = repositoryApi(state, pull.repository);
  const html = `${repositoryHtml(state, pull.repository)}/pull/${pull.number}`;
  const self = `${api}/pulls/${pull.number}`;
  const issue = `${api}/issues/${pull.number}`;
  const statuses = `${api}/statuses/${pull.head.sha}`;
  return {
    url: self,
    id: pull.id,
    node_id: nodeId('PR', pull.id),
    html_url: html,
    diff_url: `${html}.diff`,
    patch_url: `${html}.patch`,
    issue_url: issue,
    number: pull.number,
    state: pull.state,
    locked: pull.locked,
    title: pull.title,
    user: accountJson(state, pull.author),
    body: pull.body,
    created_at: pull.createdAt,
    updated_at: pull.updatedAt,
    closed_at: pull.closedAt,
    merged_at: pull.mergedAt,
    merge_commit_sha: pull.mergeSha,
    assignee: null,
    assignees: [],
    requested_reviewers: [],
    requested_teams: [],
    labels: labelsJson(state, pull),
    milestone: null,
    draft: pull.draft,
    commits_url: `${self}/commits`,
    review_comments_url: `${self}/comments`,
    review_comment_url: `${api}/pulls/comments{/number}`,
    comments_url: `${issue}/comments`,
    statuses_url: statuses,
    head: sideJson(state, pull.head.repository, pull.head.branch, pull.head.sha),
    base: sideJson(state, pull.repository, pull.base.branch, pull.base.sha),
    _links: {
      self: { href: self },
      html: { href: html },
      issue: { href: issue },
      comments: { href: `${issue}/comments` },
      review_comments: { href: `${self}/comments` },
      review_comment: { href: `${api}/pulls/comments{/number}` },
      commits: { href: `${self}/commits` },
      statuses: { href: statuses },
    },
    author_association: association(pull.repository, pull.author),
    auto_merge: null,
    active_lock_reason: null,
  };
}

function sideJson(state: HubState, repository: Repository, branch: string, sha: string): JsonObject {
  return {
    label: `${repository.owner.login}:${branch}`,
    ref: branch,
    sha,
    user: accountJson(state, repository.owner),
    // Null once a fork was deleted.
    repo: repository.deleted ? null : repositoryJson(state, repository),
  };
}

/** A pull request asked for by itself, with its counts. */
export function fullPullJson(state: HubState, pull: PullRequest): JsonObject {
  const { objects } = pull.repository;
  const files = diffCommits(objects, diffBase(pull), pull.head.sha);
  return {
    ...pullJson(state, pull),
    merged: pull.mergedAt !== null,
    mergeable: pull.state === 'open' ? true : null,
    rebaseable: pull.state === 'open' ? true : null,
    mergeable_state: pull.draft ? 'draft' : pull.state === 'open' ? 'clean' : 'unknown',
    merged_by: pull.mergedBy ? accountJson(state, pull.mergedBy) : null,
    comments: pull.repository.comments.filter((comment) => comment.number === pull.number).length,
    review_comments: pull.repository.reviewComments.filter((comment) => comment.number === pull.number).length,
    maintainer_can_modify: pull.head.repository !== pull.repository,
    commits: commitsBetween(objects, pull.base.sha, pull.head.sha).length,
    additions: files.reduce((sum, file) => sum + file.additions, 0),
    deletions: files.reduce((sum, file) => sum + file.deletions, 0),
    changed_files: files.length,
  };
}

/** A pull request as check runs and workflow runs mention it. */
export function pullReferenceJson(state: HubState, pull: PullRequest): JsonObject {
  const side = (repository: Repository, ref: string, sha: string): JsonObject => ({
    ref,
    sha,
    repo: { id: repository.id, url: repositoryApi(state, repository), name: repository.name },
  });
  return {
    url: `${repositoryApi(state, pull.repository)}/pulls/${pull.number}`,
    id: pull.id,
    number: pull.number,
    head: side(pull.head.repository, pull.head.branch, pull.head.sha),
    base: side(pull.repository, pull.base.branch, pull.base.sha),
  };
}

/**
 * Open pull requests GitHub lists on a check run or workflow run: "a head_sha or head_branch that matches" [spec, check-suite], so after a
 * push also those that have moved on. Empty for forks (actions/runner#3444, github/docs#22501; note in checks/create).
 */
export function listedPulls(
  repository: Repository,
  headRepository: Repository,
  head: { sha: string; branch: string | null },
): PullRequest[] {
  if (headRepository !== repository) return [];
  return repository.pulls.filter(
    (pull) =>
      pull.state === 'open' && pull.head.repository === repository && (pull.head.sha === head.sha || pull.head.branch === head.branch),
  );
}

/** The issue side of a pull request. */
export function issueJson(state: HubState, pull: PullRequest): JsonObject {
  const api = repositoryApi(state, pull.repository);
  const issue = `${api}/issues/${pull.number}`;
  const html = `${repositoryHtml(state, pull.repository)}/pull/${pull.number}`;
  return {
    url: issue,
    repository_url: api,
    labels_url: `${issue}/labels{/name}`,
    comments_url: `${issue}/comments`,
    events_url: `${issue}/events`,
    html_url: html,
    id: pull.id + 1,
    node_id: nodeId('PR', pull.id),
    number: pull.number,
    title: pull.title,
    user: accountJson(state, pull.author),
    labels: labelsJson(state, pull),
    state: pull.state,
    locked: false,
    assignee: null,
    assignees: [],
    milestone: null,
    comments: pull.repository.comments.filter((comment) => comment.number === pull.number).length,
    created_at: pull.createdAt,
    updated_at: pull.updatedAt,
    closed_at: pull.closedAt,
    author_association: association(pull.repository, pull.author),
    active_lock_reason: null,
    draft: pull.draft,
    pull_request: {
      url: `${api}/pulls/${pull.number}`,
      html_url: html,
      diff_url: `${html}.diff`,
      patch_url: `${html}.patch`,
      merged_at: pull.mergedAt,
    },
    body: pull.body,
    reactions: rollup(`${issue}/reactions`, []),
    timeline_url: `${issue}/timeline`,
    performed_via_github_app: null,
    state_reason: null,
  };
}

/** Counts of reactions by kind. */
export function rollup(url: string, contents: string[]): JsonObject {
  const json: JsonObject = { url, total_count: contents.length };
  for (const kind of ['+1', '-1', 'laugh', 'hooray', 'confused', 'heart', 'rocket', 'eyes']) {
    json[kind] = contents.filter((content) => content === kind).length;
  }
  return json;
}

/** Labels asked for by themselves. */
export { labelsJson };

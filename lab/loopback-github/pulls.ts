/** Changes to pull requests made by their authors. */

import { emit } from './deliveries.ts';
import { carryLine, diffCommits, placeOf } from './diff.ts';
import { type Changes, writeCommit } from './git.ts';
import { diffBase } from './present/pull.ts';
import {
  account,
  createRepository,
  findRepository,
  type HubState,
  nextId,
  now,
  type PullRequest,
  type Repository,
  type ReviewComment,
} from './state.ts';

/** Commits changes on top of a commit. */
export function commit(
  state: HubState,
  repository: Repository,
  parents: string[],
  changes: Changes,
  message: string,
  login: string,
): string {
  account(state, login);
  const author = { login, name: login, email: `${login}@users.noreply.github.com` };
  return writeCommit(repository.objects, { parents, changes, message, author, date: now(state) }).sha;
}

/** The fork of a repository under another account, created on first use. The app is not installed there. */
export function forkOf(state: HubState, repository: Repository, login: string): Repository {
  const known = findRepository(state, login, repository.name);
  if (known) return known;
  const fork = createRepository(state, {
    owner: account(state, login),
    name: repository.name,
    private: repository.private,
    defaultBranch: repository.defaultBranch,
    parent: repository,
    installation: null,
  });
  for (const [branch, sha] of repository.branches) fork.branches.set(branch, sha);
  return fork;
}

/** What a pull request is opened with. */
export interface PullOptions {
  author: string;
  branch: string;
  title: string;
  body?: string;
  changes: Changes;
  base?: string;
  draft?: boolean;
  /** The branch lies in a fork of this owner. */
  fork?: { owner: string };
  message?: string;
}

/** Commits changes to a branch and opens a pull request for it. Without changes it is for the branch as it is. */
export function openPull(state: HubState, repository: Repository, options: PullOptions): PullRequest {
  const base = options.base ?? repository.defaultBranch;
  const baseSha = repository.branches.get(base);
  if (baseSha === undefined) throw new Error(`no branch ${base}`);
  const author = account(state, options.author);
  const head = options.fork ? forkOf(state, repository, options.fork.owner) : repository;
  const known = head.branches.get(options.branch);
  const parent = known ?? baseSha;
  // Another pull request for a branch that is there.
  const isThere = known !== undefined && Object.keys(options.changes).length === 0;
  const sha = isThere ? known : commit(state, head, [parent], options.changes, options.message ?? options.title, options.author);
  head.branches.set(options.branch, sha);
  const at = now(state);
  head.pushedAt = at;
  const pull: PullRequest = {
    id: nextId(state, 'pull'),
    number: repository.nextNumber++,
    repository,
    author,
    title: options.title,
    body: options.body ?? null,
    state: 'open',
    draft: options.draft ?? false,
    locked: false,
    labels: [],
    head: { repository: head, branch: options.branch, sha },
    pastHeads: [],
    base: { branch: base, sha: baseSha },
    mergeSha: mergeCommit(state, repository, baseSha, sha, options.author),
    mergedAt: null,
    mergedBy: null,
    createdAt: at,
    updatedAt: at,
    closedAt: null,
  };
  repository.pulls.push(pull);
  emit(
    state,
    { event: 'push', repository: head, branch: options.branch, before: '0'.repeat(40), after: sha, forced: false },
    options.author,
  );
  emit(state, { event: 'pull_request', action: 'opened', pull }, options.author);
  return pull;
}

/** The commit GitHub tests: base and head put together. Its files are those of the head with what only the base changed. */
function mergeCommit(state: HubState, repository: Repository, base: string, head: string, login: string): string {
  const files = repository.objects.commits.get(head)?.files ?? new Map<string, string>();
  const changes: Changes = {};
  const old = repository.objects.commits.get(base)?.files ?? new Map<string, string>();
  for (const path of old.keys()) if (!files.has(path)) changes[path] = null;
  for (const [path, sha] of files) if (old.get(path) !== sha) changes[path] = repository.objects.blobs.get(sha) ?? null;
  return commit(state, repository, [base, head], changes, `Merge ${head} into ${base}`, login);
}

/** Moves the head of a pull request. `rewrite`: the branch becomes the base branch plus these changes (force push). */
export function pushToPull(
  state: HubState,
  pull: PullRequest,
  changes: Changes,
  options: { rewrite: boolean; message?: string; by?: string },
): string {
  const { repository } = pull;
  const by = options.by ?? pull.author.login;
  const before = pull.head.sha;
  const baseSha = repository.branches.get(pull.base.branch) ?? pull.base.sha;
  const sha = commit(
    state,
    pull.head.repository,
    [options.rewrite ? baseSha : before],
    changes,
    options.message ?? `Update ${pull.title}`,
    by,
  );
  pull.head.repository.branches.set(pull.head.branch, sha);
  pull.head.repository.pushedAt = now(state);
  pull.pastHeads.push(before);
  pull.head.sha = sha;
  if (options.rewrite) pull.base.sha = baseSha;
  pull.mergeSha = mergeCommit(state, repository, pull.base.sha, sha, by);
  pull.updatedAt = now(state);
  for (const comment of repository.reviewComments) if (comment.number === pull.number) carryComment(pull, comment, before);
  emit(
    state,
    { event: 'push', repository: pull.head.repository, branch: pull.head.branch, before, after: sha, forced: options.rewrite },
    by,
  );
  emit(state, { event: 'pull_request', action: 'synchronize', pull, before }, by);
  const isOfBranch = (other: PullRequest): boolean =>
    other.head.repository === pull.head.repository && other.head.branch === pull.head.branch;
  for (const other of repository.pulls.filter((one) => one !== pull && one.state === 'open' && isOfBranch(one))) {
    other.pastHeads.push(before);
    other.head.sha = sha;
    other.mergeSha = mergeCommit(state, repository, other.base.sha, sha, by);
    emit(state, { event: 'pull_request', action: 'synchronize', pull: other, before }, by);
  }
  return sha;
}

/** Moves a review comment to the new head, or marks it outdated when its line is gone. */
function carryComment(pull: PullRequest, comment: ReviewComment, before: string): void {
  if (comment.line === null || comment.side === 'LEFT') return;
  const { objects } = pull.repository;
  const textAt = (sha: string): string | null => {
    const blob = objects.commits.get(sha)?.files.get(comment.path);
    return blob === undefined ? null : (objects.blobs.get(blob)?.toString('utf8') ?? null);
  };
  const old = textAt(before);
  const next = textAt(pull.head.sha);
  const line = old === null || next === null ? null : carryLine(old, next, comment.line);
  const file = diffCommits(objects, diffBase(pull), pull.head.sha).find((candidate) => candidate.path === comment.path);
  const place = line === null || !file ? null : placeOf(file, 'RIGHT', line);
  comment.line = place === null ? null : line;
  comment.position = place?.position ?? null;
  comment.startLine =
    comment.line === null || comment.startLine === null || old === null || next === null ? null : carryLine(old, next, comment.startLine);
  if (place !== null) comment.commitId = pull.head.sha;
}

/** Closes a pull request, merging it or not. */
export function closePull(state: HubState, pull: PullRequest, options: { merge: boolean; by: string }): void {
  const at = now(state);
  pull.state = 'closed';
  pull.closedAt = at;
  pull.updatedAt = at;
  const before = pull.repository.branches.get(pull.base.branch) ?? pull.base.sha;
  if (options.merge) {
    pull.mergedAt = at;
    pull.mergedBy = account(state, options.by);
    pull.mergeSha = mergeCommit(state, pull.repository, before, pull.head.sha, options.by);
    pull.repository.branches.set(pull.base.branch, pull.mergeSha);
  }
  emit(state, { event: 'pull_request', action: 'closed', pull }, options.by);
  if (options.merge && pull.mergeSha !== null) {
    emit(
      state,
      { event: 'push', repository: pull.repository, branch: pull.base.branch, before, after: pull.mergeSha, forced: false },
      options.by,
    );
  }
}

/** Has a pull request go into another branch. */
export function retargetPull(state: HubState, pull: PullRequest, branch: string, by: string): void {
  const sha = pull.repository.branches.get(branch);
  if (sha === undefined) throw new Error(`no branch ${branch}`);
  const from = pull.base;
  pull.base = { branch, sha };
  pull.mergeSha = mergeCommit(state, pull.repository, sha, pull.head.sha, by);
  pull.updatedAt = now(state);
  const changes = { base: { ref: { from: from.branch }, sha: { from: from.sha } } };
  emit(state, { event: 'pull_request', action: 'edited', pull, changes }, by);
}

/** Opens a closed pull request again. */
export function reopenPull(state: HubState, pull: PullRequest, by: string): void {
  pull.state = 'open';
  pull.closedAt = null;
  pull.updatedAt = now(state);
  emit(state, { event: 'pull_request', action: 'reopened', pull }, by);
}

/** Turns a draft into a pull request that is ready for review. */
export function markReady(state: HubState, pull: PullRequest): void {
  pull.draft = false;
  pull.updatedAt = now(state);
  emit(state, { event: 'pull_request', action: 'ready_for_review', pull });
}

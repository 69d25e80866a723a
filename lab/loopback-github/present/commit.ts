/** Commits, differences and file contents as the API shows them. */
import { diffCommits, type FileDiff } from '../diff.ts';
import type { Commit } from '../git.ts';
import type { JsonObject } from '../json.ts';
import { account, type HubState, type Repository } from '../state.ts';
import { accountJson, nodeId } from './account.ts';
import { repositoryApi, repositoryHtml } from './repository.ts';

const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/');
const UNSIGNED = { verified: false, reason: 'unsigned', signature: null, payload: null, verified_at: null };

/** One changed file of a difference. */
export function fileJson(state: HubState, repository: Repository, file: FileDiff, commit: string): JsonObject {
  const path = encodePath(file.path);
  return {
    sha: file.sha,
    filename: file.path,
    status: file.status,
    additions: file.additions,
    deletions: file.deletions,
    changes: file.additions + file.deletions,
    blob_url: `${repositoryHtml(state, repository)}/blob/${commit}/${path}`,
    raw_url: `${repositoryHtml(state, repository)}/raw/${commit}/${path}`,
    contents_url: `${repositoryApi(state, repository)}/contents/${path}?ref=${commit}`,
    ...(file.patch === null ? {} : { patch: file.patch }),
    ...(file.previousPath === null ? {} : { previous_filename: file.previousPath }),
  };
}

/** A commit without its files. */
export function commitJson(state: HubState, repository: Repository, commit: Commit): JsonObject {
  const api = repositoryApi(state, repository);
  const html = repositoryHtml(state, repository);
  const who = { name: commit.author.name, email: commit.author.email, date: commit.date };
  const user = accountJson(state, account(state, commit.author.login));
  return {
    sha: commit.sha,
    node_id: nodeId('C', commit.sha),
    commit: {
      author: who,
      committer: who,
      message: commit.message,
      tree: { sha: commit.tree, url: `${api}/git/trees/${commit.tree}` },
      url: `${api}/git/commits/${commit.sha}`,
      comment_count: 0,
      verification: UNSIGNED,
    },
    url: `${api}/commits/${commit.sha}`,
    html_url: `${html}/commit/${commit.sha}`,
    comments_url: `${api}/commits/${commit.sha}/comments`,
    author: user,
    committer: user,
    parents: commit.parents.map((sha) => ({ sha, url: `${api}/commits/${sha}`, html_url: `${html}/commit/${sha}` })),
  };
}

/** A commit with its files. */
export function fullCommitJson(state: HubState, repository: Repository, commit: Commit): JsonObject {
  const files = commit.parents[0] === undefined ? [] : diffCommits(repository.objects, commit.parents[0], commit.sha);
  const additions = files.reduce((sum, file) => sum + file.additions, 0);
  const deletions = files.reduce((sum, file) => sum + file.deletions, 0);
  return {
    ...commitJson(state, repository, commit),
    stats: { total: additions + deletions, additions, deletions },
    files: files.map((file) => fileJson(state, repository, file, commit.sha)),
  };
}

/** A commit of the git database. */
export function gitCommitJson(state: HubState, repository: Repository, commit: Commit): JsonObject {
  const api = repositoryApi(state, repository);
  const html = repositoryHtml(state, repository);
  const who = { name: commit.author.name, email: commit.author.email, date: commit.date };
  return {
    sha: commit.sha,
    node_id: nodeId('C', commit.sha),
    url: `${api}/git/commits/${commit.sha}`,
    html_url: `${html}/commit/${commit.sha}`,
    author: who,
    committer: who,
    tree: { sha: commit.tree, url: `${api}/git/trees/${commit.tree}` },
    message: commit.message,
    parents: commit.parents.map((sha) => ({ sha, url: `${api}/git/commits/${sha}`, html_url: `${html}/commit/${sha}` })),
    verification: UNSIGNED,
  };
}

/** A commit as workflow runs and check suites carry it. */
export function headCommitJson(commit: Commit): JsonObject {
  const who = { name: commit.author.name, email: commit.author.email };
  return { id: commit.sha, tree_id: commit.tree, message: commit.message, timestamp: commit.date, author: who, committer: who };
}

/** A file or folder of the contents API. */
export function contentJson(
  state: HubState,
  repository: Repository,
  entry: { type: 'file' | 'dir'; path: string; sha: string; size: number; ref: string },
): JsonObject {
  const path = encodePath(entry.path);
  const self = `${repositoryApi(state, repository)}/contents/${path}?ref=${encodeURIComponent(entry.ref)}`;
  const kind = entry.type === 'file' ? 'blob' : 'tree';
  const git = `${repositoryApi(state, repository)}/git/${kind}s/${entry.sha}`;
  const html = `${repositoryHtml(state, repository)}/${kind}/${encodePath(entry.ref)}/${path}`;
  return {
    name: entry.path.split('/').at(-1) ?? entry.path,
    path: entry.path,
    sha: entry.sha,
    size: entry.size,
    url: self,
    html_url: html,
    git_url: git,
    download_url: entry.type === 'file' ? `${repositoryHtml(state, repository)}/raw/${encodePath(entry.ref)}/${path}` : null,
    type: entry.type,
    _links: { self, git, html },
  };
}

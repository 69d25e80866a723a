/** What scenarios hold on to: a repository to act in, and the pull requests, runs, artifacts and comments made there. */
import { addComment, editComment, removeComment } from './comments.ts';
import { emit } from './deliveries.ts';
import type { Changes } from './git.ts';
import { closePull, commit, forkOf, markReady, openPull, type PullOptions, pushToPull, reopenPull, retargetPull } from './pulls.ts';
import {
  type ArtifactOptions,
  addArtifact,
  addAttachment,
  addReleaseAsset,
  addRun,
  type RunOptions,
  replaceBytes,
  updateRun,
} from './runs.ts';
import { account, type HubState, nextId, type PullRequest, type Repository, type Role, resolveCommit, type WorkflowRun } from './state.ts';

/** A pull request. `headSha` and `baseSha` follow the pushes. */
export interface PullHandle {
  readonly repository: RepositoryHandle;
  readonly number: number;
  readonly headSha: string;
  readonly baseSha: string;
  readonly state: 'open' | 'closed';
  /** Address of its page. */
  readonly url: string;
}

/** A workflow run. */
export interface RunHandle {
  readonly repository: RepositoryHandle;
  readonly id: number;
  readonly headSha: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly runAttempt: number;
}

/** An artifact. */
export interface ArtifactHandle {
  readonly id: number;
  readonly name: string;
  readonly size: number;
  readonly digest: string | null;
}

/** A comment. */
export interface CommentHandle {
  readonly repository: RepositoryHandle;
  readonly id: number;
}

/** A merge queue's candidate commit. */
export interface MergeGroupHandle {
  readonly repository: RepositoryHandle;
  readonly headSha: string;
  readonly headRef: string;
  readonly baseSha: string;
  readonly baseRef: string;
}

/** A pull request by handle or number. */
export type PullReference = PullHandle | number;

/** A repository to act in. */
export interface RepositoryHandle {
  readonly id: number;
  readonly owner: string;
  readonly name: string;
  readonly fullName: string;
  readonly installationId: number | null;
  openPullRequest(options: PullOptions): PullHandle;
  pull(number: number): PullHandle;
  /** Adds a commit to the branch of a pull request; gives its sha. */
  pushTo(pull: PullReference, changes: Changes, options?: { message?: string; by?: string }): string;
  /** Rewrites the branch: the base branch's newest commit plus these changes. */
  forcePush(pull: PullReference, changes: Changes, options?: { message?: string; by?: string }): string;
  closePullRequest(pull: PullReference, options?: { merge?: boolean; by?: string }): void;
  reopenPullRequest(pull: PullReference, options?: { by?: string }): void;
  /** Another base branch. */
  retarget(pull: PullReference, branch: string): void;
  markReady(pull: PullReference): void;
  setLabels(pull: PullReference, labels: string[]): void;
  setPermission(user: string, role: Role): void;
  addWorkflowRun(options: Omit<RunOptions, 'pull'> & { pr?: PullReference }): RunHandle;
  updateWorkflowRun(run: RunHandle, change: { status?: WorkflowRun['status']; conclusion?: string | null; runAttempt?: number }): void;
  addArtifact(run: RunHandle, options: ArtifactOptions): ArtifactHandle;
  /** Adds an asset to the release of a tag. */
  addReleaseAsset(tag: string, options: ArtifactOptions): { readonly id: number };
  /** A file as people drop it into a comment; gives its address. */
  attach(options: ArtifactOptions): string;
  expireArtifact(artifact: ArtifactHandle): void;
  /** Puts other bytes in its place, with another ETag. */
  replaceArtifact(artifact: ArtifactHandle, zipBuffer: Buffer): void;
  comment(pull: PullReference, user: string, body: string, options?: { type?: 'User' | 'Bot' }): CommentHandle;
  editComment(comment: CommentHandle, user: string, body: string): void;
  deleteComment(comment: CommentHandle, user: string): void;
  /** Commits to the default branch (or another); gives the sha. `null` deletes the file. */
  commitFile(path: string, text: string | Buffer | null, options?: { branch?: string; message?: string; author?: string }): string;
  /** The newest commit of a branch. */
  branchSha(branch?: string): string;
  /** A fork of this repository, where the app is not installed. */
  fork(owner: string): RepositoryHandle;
  /** Deletes the fork of an owner: pull requests from there lose their head repository. */
  deleteFork(owner: string): void;
  /** A commit as a merge queue makes it: base plus pull request. */
  addMergeGroup(pull: PullReference): MergeGroupHandle;
  /** The next reads of comment lists come from a replica that lags: they show what is there now. */
  lagComments(reads: number): void;
  /** Locks the conversation of a pull request, or opens it again. */
  setLocked(pull: PullReference, locked: boolean): void;
  setArchived(archived: boolean): void;
  /** As GitHub does with old runs of a suite that has more than 1,000 of a name. */
  deleteCheckRun(id: number): void;
  /** Another name, and another owner if one is given; the old name is redirected. Where the app is installed there goes with it. */
  rename(name: string, owner?: string): void;
  /** Takes the repository out of the app's installation. */
  uninstall(): void;
}

function pullIn(repository: Repository, reference: PullReference): PullRequest {
  const number = typeof reference === 'number' ? reference : reference.number;
  const pull = repository.pulls.find((candidate) => candidate.number === number);
  if (!pull) throw new Error(`no pull request ${number} in ${repository.name}`);
  return pull;
}

function pullHandle(state: HubState, handle: RepositoryHandle, pull: PullRequest): PullHandle {
  return {
    repository: handle,
    number: pull.number,
    get headSha() {
      return pull.head.sha;
    },
    get baseSha() {
      return pull.base.sha;
    },
    get state() {
      return pull.state;
    },
    url: `${state.url}/${handle.fullName}/pull/${pull.number}`,
  };
}

function runIn(repository: Repository, handle: RunHandle): WorkflowRun {
  const run = repository.runs.find((candidate) => candidate.id === handle.id);
  if (!run) throw new Error(`no workflow run ${handle.id} in ${repository.name}`);
  return run;
}

/** The handle of a repository. */
export function repositoryHandle(state: HubState, repository: Repository): RepositoryHandle {
  const handle: RepositoryHandle = {
    id: repository.id,
    get owner() {
      return repository.owner.login;
    },
    get name() {
      return repository.name;
    },
    get fullName() {
      return `${repository.owner.login}/${repository.name}`;
    },
    get installationId() {
      return repository.installation?.id ?? null;
    },
    openPullRequest: (options) => pullHandle(state, handle, openPull(state, repository, options)),
    pull: (number) => pullHandle(state, handle, pullIn(repository, number)),
    pushTo: (pull, changes, options) => pushToPull(state, pullIn(repository, pull), changes, { rewrite: false, ...options }),
    forcePush: (pull, changes, options) => pushToPull(state, pullIn(repository, pull), changes, { rewrite: true, ...options }),
    closePullRequest(reference, options) {
      const pull = pullIn(repository, reference);
      closePull(state, pull, { merge: options?.merge ?? false, by: options?.by ?? pull.author.login });
    },
    reopenPullRequest(reference, options) {
      const pull = pullIn(repository, reference);
      reopenPull(state, pull, options?.by ?? pull.author.login);
    },
    retarget(reference, branch) {
      const pull = pullIn(repository, reference);
      retargetPull(state, pull, branch, pull.author.login);
    },
    markReady: (pull) => markReady(state, pullIn(repository, pull)),
    setLabels(pull, labels) {
      pullIn(repository, pull).labels = labels.map((name) => ({ id: nextId(state, 'label'), name, color: 'ededed' }));
    },
    setPermission(user, role) {
      account(state, user);
      repository.roles.set(user.toLowerCase(), role);
    },
    addWorkflowRun({ pr, ...options }) {
      return runHandle(handle, addRun(state, repository, { ...options, ...(pr === undefined ? {} : { pull: pullIn(repository, pr) }) }));
    },
    updateWorkflowRun: (run, change) => updateRun(state, repository, runIn(repository, run), change),
    addArtifact(run, options) {
      const { id, name, size, digest } = addArtifact(state, repository, runIn(repository, run), options);
      return { id, name, size, digest: digest === 'absent' ? null : digest };
    },
    addReleaseAsset: (tag, options) => ({ id: addReleaseAsset(state, repository, tag, options).id }),
    attach: (options) => addAttachment(state, repository, options),
    expireArtifact({ id }) {
      const artifact = repository.artifacts.find((candidate) => candidate.id === id);
      if (artifact) artifact.expired = true;
    },
    replaceArtifact({ id }, zipBuffer) {
      const artifact = repository.artifacts.find((candidate) => candidate.id === id);
      if (artifact) replaceBytes(artifact, zipBuffer);
    },
    comment(pull, user, body, options) {
      const comment = addComment(state, pullIn(repository, pull), account(state, user, options?.type ?? 'User'), body, false);
      return { repository: handle, id: comment.id };
    },
    editComment({ id }, user, body) {
      account(state, user);
      const comment = repository.comments.find((candidate) => candidate.id === id);
      if (comment) editComment(state, repository, comment, body, user);
    },
    deleteComment({ id }, user) {
      account(state, user);
      const comment = repository.comments.find((candidate) => candidate.id === id);
      if (comment) removeComment(state, repository, comment, user);
    },
    commitFile(path, text, options) {
      const branch = options?.branch ?? repository.defaultBranch;
      const before = repository.branches.get(branch) ?? repository.branches.get(repository.defaultBranch);
      const author = options?.author ?? repository.owner.login;
      const sha = commit(state, repository, before ? [before] : [], { [path]: text }, options?.message ?? `Update ${path}`, author);
      repository.branches.set(branch, sha);
      emit(state, { event: 'push', repository, branch, before: before ?? '0'.repeat(40), after: sha, forced: false }, author);
      return sha;
    },
    branchSha: (branch) => resolveCommit(repository, branch ?? repository.defaultBranch) ?? '',
    fork: (owner) => repositoryHandle(state, forkOf(state, repository, owner)),
    deleteFork(owner) {
      forkOf(state, repository, owner).deleted = true;
    },
    addMergeGroup(reference) {
      const pull = pullIn(repository, reference);
      const baseSha = repository.branches.get(pull.base.branch) ?? pull.base.sha;
      const headSha = pull.mergeSha ?? pull.head.sha;
      const headRef = `refs/heads/gh-readonly-queue/${pull.base.branch}/pr-${pull.number}-${baseSha}`;
      repository.branches.set(headRef.slice('refs/heads/'.length), headSha);
      return { repository: handle, headSha, headRef, baseSha, baseRef: `refs/heads/${pull.base.branch}` };
    },
    lagComments(reads) {
      repository.staleComments = { comments: [...repository.comments], reads };
    },
    setLocked(pull, locked) {
      pullIn(repository, pull).locked = locked;
    },
    setArchived(archived) {
      repository.archived = archived;
    },
    deleteCheckRun(id) {
      repository.checkRuns = repository.checkRuns.filter((run) => run.id !== id);
    },
    rename(name, owner = repository.owner.login) {
      repository.formerNames.push(`${repository.owner.login}/${repository.name}`.toLowerCase());
      repository.name = name;
      if (owner.toLowerCase() === repository.owner.login.toLowerCase()) return;
      repository.owner = account(state, owner, 'Organization');
      repository.installation = state.installations.find(({ account: { login }, deleted }) => login === owner && !deleted) ?? null;
    },
    uninstall() {
      const { installation } = repository;
      repository.installation = null;
      if (installation) emit(state, { event: 'installation_repositories', action: 'removed', installation, repositories: [repository] });
    },
  };
  return handle;
}

function runHandle(handle: RepositoryHandle, run: WorkflowRun): RunHandle {
  return {
    repository: handle,
    id: run.id,
    headSha: run.headSha,
    get status() {
      return run.status;
    },
    get conclusion() {
      return run.conclusion;
    },
    get runAttempt() {
      return run.runAttempt;
    },
  };
}

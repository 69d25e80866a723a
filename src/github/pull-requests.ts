import { type Octokit, type RepositoryRef, statusOf } from './client.ts';

/** A pull request, as far as we use it. */
export interface PullRequest {
  readonly number: number;
  readonly state: 'open' | 'closed';
  readonly author: string;
  readonly headSha: string;
  readonly headRepoId: number | null;
  /** Page of the repository that holds the head; null when the fork is gone. */
  readonly headHtmlUrl: string | null;
  readonly baseSha: string;
  readonly baseRef: string;
  readonly baseRepoId: number;
}

/** The run that finished, as its event describes it. Nothing in here comes from the run's own files. */
export interface RunRef {
  readonly id: number;
  readonly attempt: number;
  readonly name: string;
  readonly path: string;
  readonly event: string;
  readonly htmlUrl: string | null;
  readonly headSha: string;
  readonly headBranch: string | null;
  readonly headOwner: string | null;
  readonly headRepoId: number | null;
  /** Numbers the event lists. A hint to check, never an answer. */
  readonly listed: readonly number[];
}

interface PullLike {
  number: number;
  state: string;
  user: { login: string } | null;
  head: { sha: string; repo: { id: number; html_url: string } | null };
  base: { sha: string; ref: string; repo: { id: number } };
}

export function toPullRequest(pull: PullLike): PullRequest {
  return {
    number: pull.number,
    state: pull.state === 'open' ? 'open' : 'closed',
    author: pull.user?.login ?? '',
    headSha: pull.head.sha,
    headRepoId: pull.head.repo?.id ?? null,
    headHtmlUrl: pull.head.repo?.html_url ?? null,
    baseSha: pull.base.sha,
    baseRef: pull.base.ref,
    baseRepoId: pull.base.repo.id,
  };
}

/** Reads a pull request; null when there is none of that number. */
export async function readPullRequest(octokit: Octokit, repository: RepositoryRef, number: number): Promise<PullRequest | null> {
  try {
    const { data } = await octokit.rest.pulls.get({ owner: repository.owner, repo: repository.name, pull_number: number });
    return toPullRequest(data as PullLike);
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw error;
  }
}

/**
 * Whether a run may speak for the head of a pull request: it ran in the repository that holds the head, or in the base repository. A fork can
 * hold the very commit of somebody else's pull request, and what it uploads would be taken for theirs.
 */
export function isRunOfHead(
  { headRepoId }: Pick<RunRef, 'headRepoId'>,
  pull: Pick<PullRequest, 'headRepoId'>,
  repository: Pick<RepositoryRef, 'id'>,
): boolean {
  // null: a fork that is gone.
  return headRepoId === pull.headRepoId || headRepoId === repository.id;
}

/**
 * Open pull requests whose head is exactly the commit and repository of the run. Works for forks, whose runs list no pull
 * requests: the list is asked for by `owner:branch` and checked by commit and repository id. Empty: closed or force-pushed since.
 */
export async function findPullRequests(octokit: Octokit, repository: RepositoryRef, run: RunRef): Promise<PullRequest[]> {
  const belongs = (pull: PullRequest): boolean =>
    pull.state === 'open' && pull.baseRepoId === repository.id && pull.headSha === run.headSha && isRunOfHead(run, pull, repository);
  const found = new Map<number, PullRequest>();

  if (run.headOwner !== null && run.headBranch !== null) {
    const pulls = await octokit.paginate(octokit.rest.pulls.list, {
      owner: repository.owner,
      repo: repository.name,
      state: 'open',
      head: `${run.headOwner}:${run.headBranch}`,
      per_page: 100,
    });
    for (const pull of pulls.map((data) => toPullRequest(data as PullLike))) if (belongs(pull)) found.set(pull.number, pull);
  }
  // The fork, or the branch in it, may be gone while its pull request is open: then only the commit is left to go by.
  if (found.size === 0 && (run.headOwner === null || run.headRepoId === null) && run.event.startsWith('pull_request'))
    for (const pull of await findPullRequestsOfHead(octokit, repository, run.headSha)) if (belongs(pull)) found.set(pull.number, pull);
  for (const number of run.listed.slice(0, 20)) {
    if (found.has(number)) continue;
    const pull = await readPullRequest(octokit, repository, number);
    if (pull !== null && belongs(pull)) found.set(number, pull);
  }
  return [...found.values()].sort((a, b) => a.number - b.number);
}

/** Open pull requests whose head is the commit; among the 200 that were changed last. */
export async function findPullRequestsOfHead(octokit: Octokit, repository: RepositoryRef, headSha: string): Promise<PullRequest[]> {
  const found: PullRequest[] = [];
  for (const page of [1, 2]) {
    const { data } = await octokit.rest.pulls.list({
      owner: repository.owner,
      repo: repository.name,
      state: 'open',
      sort: 'updated',
      direction: 'desc',
      per_page: 100,
      page,
    });
    for (const pull of data) if (pull.head.sha === headSha) found.push(toPullRequest(pull as PullLike));
    if (data.length < 100) break;
  }
  return found;
}

interface RunLike {
  id: number;
  run_attempt?: number;
  name?: string | null;
  path: string;
  event: string;
  html_url: string;
  head_sha: string;
  head_branch: string | null;
  head_repository: { id: number; owner: { login: string } | null } | null;
}

/** A run as GitHub tells it, in an event or an answer. */
export function toRun(run: RunLike): RunRef {
  return {
    id: run.id,
    attempt: run.run_attempt ?? 1,
    name: run.name ?? '',
    path: run.path.split('@', 1)[0] ?? '',
    event: run.event,
    htmlUrl: run.html_url,
    headSha: run.head_sha,
    headBranch: run.head_branch,
    headOwner: run.head_repository?.owner?.login ?? null,
    headRepoId: run.head_repository?.id ?? null,
    listed: [],
  };
}

/**
 * Whether a run waits for a maintainer to approve it, as the first ones of a contributor do. GitHub tells it as completed although nothing of
 * it has run (pytorch/test-infra#8029).
 */
export function isHeld({ conclusion }: { readonly conclusion?: string | null | undefined }): boolean {
  return conclusion === 'action_required';
}

/** A run by its number; null when the repository has none of it. */
export async function readRun(
  octokit: Octokit,
  repository: RepositoryRef,
  runId: number,
): Promise<{ run: RunRef; completed: boolean } | null> {
  try {
    const { data } = await octokit.rest.actions.getWorkflowRun({ owner: repository.owner, repo: repository.name, run_id: runId });
    return { run: toRun(data as RunLike), completed: data.status === 'completed' && !isHeld(data) };
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw error;
  }
}

/**
 * Runs of a commit, newest first; at most 100 are looked at. `started`: none that waits for a runner, an approval or another run. `held`: a
 * maintainer has to approve it.
 */
export async function listRuns(
  octokit: Octokit,
  repository: RepositoryRef,
  headSha: string,
): Promise<{ run: RunRef; completed: boolean; started: boolean; held: boolean }[]> {
  const { data } = await octokit.rest.actions.listWorkflowRunsForRepo({
    owner: repository.owner,
    repo: repository.name,
    head_sha: headSha,
    per_page: 100,
  });
  return data.workflow_runs
    .filter((run) => run.head_sha === headSha)
    .map((run) => ({
      completed: run.status === 'completed' && !isHeld(run),
      started: run.status === 'in_progress',
      held: isHeld(run),
      run: toRun(run as RunLike),
    }))
    .sort((a, b) => b.run.id - a.run.id);
}

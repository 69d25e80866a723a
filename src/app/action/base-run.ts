import { type Artifact, listArtifacts } from '../../github/artifacts.ts';
import type { Octokit, RepositoryRef } from '../../github/client.ts';

/** Events that run the code of the repository itself; a pull request's run on a branch of the same name is none. */
const OWN_EVENTS = ['push', 'schedule', 'workflow_dispatch'];
const MAX_RUNS = 5;

export interface BaseRun {
  readonly label: string;
  readonly artifacts: readonly Artifact[];
}

/** The newest finished run of a branch that uploaded what `isWanted` takes; null when none of the last few has. */
export async function newestBaseRun(
  octokit: Octokit,
  repository: RepositoryRef,
  branch: string,
  not: number,
  isWanted: (artifact: string) => boolean,
): Promise<BaseRun | null> {
  const { data } = await octokit.rest.actions.listWorkflowRunsForRepo({
    owner: repository.owner,
    repo: repository.name,
    branch,
    status: 'success',
    per_page: 50,
  });
  const own = data.workflow_runs.filter(
    (run) =>
      run.id !== not &&
      run.head_branch === branch &&
      run.status === 'completed' &&
      OWN_EVENTS.includes(run.event) &&
      `${run.head_repository?.full_name}`.toLowerCase() === `${repository.owner}/${repository.name}`.toLowerCase(),
  );
  for (const run of own.sort((a, b) => b.id - a.id).slice(0, MAX_RUNS)) {
    const all = await listArtifacts(octokit, repository, run.id);
    const artifacts = all.filter(
      ({ name, expired, headSha }) => !expired && isWanted(name) && (headSha === null || headSha === run.head_sha),
    );
    if (artifacts.length === 0) continue;
    return {
      label: `${branch} ${run.head_sha.slice(0, 7)}, run ${run.id} of ${(run.run_started_at ?? run.created_at).slice(0, 10)}`,
      artifacts,
    };
  }
  return null;
}

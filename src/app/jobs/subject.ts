import type { RepositoryRef } from '../../github/client.ts';

/** Names of subjects. One worker at a time handles a subject, so a subject is also a lock. */
export const subjectOf = {
  run: (repository: RepositoryRef, runId: number, attempt: number): string => `run/${repository.id}/${runId}/${attempt}`,
  branchRun: (repository: RepositoryRef, runId: number, attempt: number): string => `branch/${repository.id}/${runId}/${attempt}`,
  pullRequest: (repository: RepositoryRef, pr: number): string => `pull-request/${repository.id}/${pr}`,
  head: (repository: RepositoryRef, sha: string): string => `head/${repository.id}/${sha}`,
  comment: (repository: RepositoryRef, commentId: number): string => `comment/${repository.id}/${commentId}`,
  portion: (repository: RepositoryRef, job: string, place: number | ''): string => `portion/${repository.id}/${job}/${place}`,
};

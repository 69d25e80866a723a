/** Workflows, runs and artifacts as the API shows them. */
import type { JsonObject } from '../json.ts';
import type { Artifact, HubState, Repository, Workflow, WorkflowRun } from '../state.ts';
import { accountJson, nodeId } from './account.ts';
import { headCommitJson } from './commit.ts';
import { listedPulls, pullReferenceJson } from './pull.ts';
import { minimalRepositoryJson, repositoryApi, repositoryHtml } from './repository.ts';

/** A workflow file. */
export function workflowJson(state: HubState, repository: Repository, workflow: Workflow): JsonObject {
  const html = repositoryHtml(state, repository);
  return {
    id: workflow.id,
    node_id: nodeId('W', workflow.id),
    name: workflow.name,
    path: workflow.path,
    state: 'active',
    created_at: workflow.createdAt,
    updated_at: workflow.createdAt,
    url: `${repositoryApi(state, repository)}/actions/workflows/${workflow.id}`,
    html_url: `${html}/blob/${repository.defaultBranch}/${workflow.path}`,
    badge_url: `${html}/workflows/${encodeURIComponent(workflow.name)}/badge.svg`,
  };
}

/** A workflow run. */
export function workflowRunJson(state: HubState, repository: Repository, run: WorkflowRun, withPulls = true): JsonObject {
  const api = repositoryApi(state, repository);
  const self = `${api}/actions/runs/${run.id}`;
  const commit = repository.objects.commits.get(run.headSha);
  return {
    id: run.id,
    name: run.workflow.name,
    node_id: nodeId('WFR', run.id),
    head_branch: run.headBranch,
    head_sha: run.headSha,
    path: run.workflow.path,
    display_title: run.title,
    run_number: run.runNumber,
    event: run.event,
    status: run.status,
    conclusion: run.conclusion,
    workflow_id: run.workflow.id,
    check_suite_id: run.suiteId,
    check_suite_node_id: nodeId('CS', run.suiteId),
    url: self,
    html_url: `${repositoryHtml(state, repository)}/actions/runs/${run.id}`,
    pull_requests: withPulls
      ? listedPulls(repository, run.headRepository, { sha: run.headSha, branch: run.headBranch }).map((pull) =>
          pullReferenceJson(state, pull),
        )
      : [],
    created_at: run.createdAt,
    updated_at: run.updatedAt,
    actor: accountJson(state, run.actor),
    run_attempt: run.runAttempt,
    referenced_workflows: [],
    run_started_at: run.startedAt,
    triggering_actor: accountJson(state, run.actor),
    jobs_url: `${self}/jobs`,
    logs_url: `${self}/logs`,
    check_suite_url: `${api}/check-suites/${run.suiteId}`,
    artifacts_url: `${self}/artifacts`,
    cancel_url: `${self}/cancel`,
    rerun_url: `${self}/rerun`,
    previous_attempt_url: run.runAttempt > 1 ? `${self}/attempts/${run.runAttempt - 1}` : null,
    workflow_url: `${api}/actions/workflows/${run.workflow.id}`,
    head_commit: commit ? headCommitJson(commit) : null,
    repository: minimalRepositoryJson(state, repository),
    head_repository: run.headRepository.deleted ? null : minimalRepositoryJson(state, run.headRepository),
  };
}

/** An artifact. */
export function artifactJson(state: HubState, repository: Repository, artifact: Artifact): JsonObject {
  const self = `${repositoryApi(state, repository)}/actions/artifacts/${artifact.id}`;
  return {
    id: artifact.id,
    node_id: nodeId('A', artifact.id),
    name: artifact.name,
    size_in_bytes: artifact.declaredSize,
    url: self,
    archive_download_url: `${self}/zip`,
    expired: artifact.expired,
    ...(artifact.digest === 'absent' ? {} : { digest: artifact.digest }),
    created_at: artifact.createdAt,
    updated_at: artifact.createdAt,
    expires_at: artifact.expiresAt,
    workflow_run: {
      id: artifact.run.id,
      repository_id: repository.id,
      head_repository_id: artifact.run.headRepository.id,
      ...(artifact.run.headBranch === null ? {} : { head_branch: artifact.run.headBranch }),
      head_sha: artifact.run.headSha,
    },
  };
}

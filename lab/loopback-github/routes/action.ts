/** Workflows, their runs and artifacts. */

import { signedBlobUrl } from '../blob-url.ts';
import { type Call, found, type Handlers, integer, optionalText, page, type Reply, repositoryOf, text } from '../call.ts';
import { artifactJson, workflowJson, workflowRunJson } from '../present/action.ts';
import { checkArtifact } from '../rules.ts';
import type { Artifact, Repository, Workflow, WorkflowRun } from '../state.ts';

function runOf(call: Call): { repository: Repository; run: WorkflowRun } {
  const repository = repositoryOf(call);
  const id = integer(call, 'run_id');
  return { repository, run: found(repository.runs.find((run) => run.id === id)) };
}

function workflowOf(call: Call): { repository: Repository; workflow: Workflow } {
  const repository = repositoryOf(call);
  const id = String(call.parameters.workflow_id);
  return {
    repository,
    workflow: found(repository.workflows.find((workflow) => String(workflow.id) === id || workflow.path.split('/').at(-1) === id)),
  };
}

function artifactOf(call: Call): { repository: Repository; artifact: Artifact } {
  const repository = repositoryOf(call);
  const id = integer(call, 'artifact_id');
  return { repository, artifact: found(repository.artifacts.find((artifact) => artifact.id === id)) };
}

/** Artifacts of upload-artifact v3, the only ones of an Enterprise Server, are listed when their run is over. */
function isListed(call: Call, { run }: Artifact): boolean {
  return call.state.enterprise === null || run.status === 'completed';
}

function listRuns(call: Call, repository: Repository, candidates: WorkflowRun[]): Reply {
  const is = (name: string, value: string | null): boolean => optionalText(call, name) === null || optionalText(call, name) === value;
  const runs = candidates
    .filter((run) => is('actor', run.actor.login) && is('branch', run.headBranch) && is('event', run.event) && is('head_sha', run.headSha))
    .filter((run) => is('status', run.status) || is('status', run.conclusion))
    .toReversed();
  const { items, headers } = page(call, runs);
  const withPulls = call.parameters.exclude_pull_requests !== true;
  return {
    status: 200,
    body: { total_count: runs.length, workflow_runs: items.map((run) => workflowRunJson(call.state, repository, run, withPulls)) },
    headers,
  };
}

function listArtifacts(call: Call, repository: Repository, candidates: Artifact[]): Reply {
  const name = optionalText(call, 'name');
  const matching = candidates.filter((artifact) => name === null || artifact.name === name);
  const artifacts = optionalText(call, 'direction') === 'asc' ? matching : matching.toReversed();
  const { items, headers } = page(call, artifacts);
  return {
    status: 200,
    body: { total_count: artifacts.length, artifacts: items.map((artifact) => artifactJson(call.state, repository, artifact)) },
    headers,
  };
}

/** Handlers of this area. */
export const actionHandlers: Handlers = {
  'actions/list-repo-workflows': (call) => {
    const repository = repositoryOf(call);
    const { items, headers } = page(call, repository.workflows);
    return {
      status: 200,
      body: {
        total_count: repository.workflows.length,
        workflows: items.map((workflow) => workflowJson(call.state, repository, workflow)),
      },
      headers,
    };
  },

  'actions/get-workflow': (call) => {
    const { repository, workflow } = workflowOf(call);
    return { status: 200, body: workflowJson(call.state, repository, workflow) };
  },

  'actions/list-workflow-runs': (call) => {
    const { repository, workflow } = workflowOf(call);
    return listRuns(
      call,
      repository,
      repository.runs.filter((run) => run.workflow === workflow),
    );
  },

  'actions/list-workflow-runs-for-repo': (call) => {
    const repository = repositoryOf(call);
    return listRuns(call, repository, repository.runs);
  },

  'actions/get-workflow-run': (call) => {
    const { repository, run } = runOf(call);
    return { status: 200, body: workflowRunJson(call.state, repository, run) };
  },

  'actions/get-workflow-run-attempt': (call) => {
    const { repository, run } = runOf(call);
    const attempt = integer(call, 'attempt_number');
    if (attempt < 1 || attempt > run.runAttempt) found(null);
    return { status: 200, body: { ...workflowRunJson(call.state, repository, run), run_attempt: attempt } };
  },

  'actions/list-workflow-run-artifacts': (call) => {
    const { repository, run } = runOf(call);
    return listArtifacts(
      call,
      repository,
      repository.artifacts.filter((artifact) => artifact.run === run && isListed(call, artifact)),
    );
  },

  'actions/list-artifacts-for-repo': (call) => {
    const repository = repositoryOf(call);
    return listArtifacts(
      call,
      repository,
      repository.artifacts.filter((artifact) => isListed(call, artifact)),
    );
  },

  'actions/get-artifact': (call) => {
    const { repository, artifact } = artifactOf(call);
    return { status: 200, body: artifactJson(call.state, repository, artifact) };
  },

  'actions/download-artifact': (call) => {
    const { artifact } = artifactOf(call);
    if (text(call, 'archive_format') !== 'zip') found(null);
    checkArtifact(artifact.expired);
    return { status: 302, headers: { location: signedBlobUrl(call.state, artifact) } };
  },
};

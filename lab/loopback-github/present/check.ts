/** Check runs, suites and annotations as the API shows them. */
import type { JsonObject } from '../json.ts';
import type { Annotation, CheckRun, CheckSuite, HubState, PullRequest, Repository } from '../state.ts';
import { appJson, nodeId } from './account.ts';
import { headCommitJson } from './commit.ts';
import { listedPulls, pullReferenceJson } from './pull.ts';
import { minimalRepositoryJson, repositoryApi, repositoryHtml } from './repository.ts';

function pullsOf(repository: Repository, suite: CheckSuite): PullRequest[] {
  return listedPulls(repository, repository, { sha: suite.headSha, branch: suite.headBranch });
}

/** A check run. */
export function checkRunJson(state: HubState, repository: Repository, run: CheckRun): JsonObject {
  const self = `${repositoryApi(state, repository)}/check-runs/${run.id}`;
  return {
    id: run.id,
    name: run.name,
    node_id: nodeId('CR', run.id),
    head_sha: run.headSha,
    external_id: run.externalId,
    url: self,
    html_url: `${repositoryHtml(state, repository)}/runs/${run.id}`,
    details_url: run.detailsUrl ?? `${state.url}/apps/${state.app.slug}`,
    status: run.status,
    conclusion: run.conclusion,
    started_at: run.startedAt,
    completed_at: run.completedAt,
    output: {
      title: run.title,
      summary: run.summary,
      text: run.text,
      annotations_count: run.annotations.length,
      annotations_url: `${self}/annotations`,
    },
    check_suite: { id: run.suite.id },
    app: appJson(state),
    pull_requests: pullsOf(repository, run.suite).map((pull) => pullReferenceJson(state, pull)),
  };
}

/** An annotation. */
export function annotationJson(state: HubState, repository: Repository, run: CheckRun, annotation: Annotation): JsonObject {
  return {
    path: annotation.path,
    blob_href: `${repositoryHtml(state, repository)}/blob/${run.headSha}/${annotation.path}`,
    start_line: annotation.startLine,
    start_column: annotation.startColumn,
    end_line: annotation.endLine,
    end_column: annotation.endColumn,
    annotation_level: annotation.level,
    title: annotation.title,
    message: annotation.message,
    raw_details: annotation.rawDetails,
  };
}

/** The newest check run of each name in a suite: what counts for the suite and for required checks. */
function latestRuns(repository: Repository, suite: CheckSuite): CheckRun[] {
  const latest = new Map<string, CheckRun>();
  for (const run of repository.checkRuns) if (run.suite === suite) latest.set(run.name, run);
  return [...latest.values()];
}

const WORST_FIRST = ['failure', 'timed_out', 'action_required', 'cancelled', 'startup_failure', 'stale', 'success', 'neutral', 'skipped'];

/** Status and conclusion of a suite, from its newest runs. */
function suiteOutcome(repository: Repository, suite: CheckSuite): { status: string; conclusion: string | null } {
  const runs = latestRuns(repository, suite);
  if (runs.length === 0) return { status: 'queued', conclusion: null };
  if (runs.some((run) => run.status !== 'completed')) {
    return { status: runs.every((run) => run.status === 'queued') ? 'queued' : 'in_progress', conclusion: null };
  }
  return {
    status: 'completed',
    conclusion: WORST_FIRST.find((conclusion) => runs.some((run) => run.conclusion === conclusion)) ?? 'neutral',
  };
}

/** A check suite without the repository, as webhooks carry it. */
export function suiteCoreJson(state: HubState, repository: Repository, suite: CheckSuite): JsonObject {
  const commit = repository.objects.commits.get(suite.headSha);
  const self = `${repositoryApi(state, repository)}/check-suites/${suite.id}`;
  return {
    id: suite.id,
    node_id: nodeId('CS', suite.id),
    head_branch: suite.headBranch,
    head_sha: suite.headSha,
    ...suiteOutcome(repository, suite),
    url: self,
    before: commit?.parents[0] ?? null,
    after: suite.headSha,
    pull_requests: pullsOf(repository, suite).map((pull) => pullReferenceJson(state, pull)),
    app: appJson(state),
    created_at: suite.createdAt,
    updated_at: suite.updatedAt,
    rerequestable: true,
    runs_rerequestable: true,
    latest_check_runs_count: latestRuns(repository, suite).length,
    check_runs_url: `${self}/check-runs`,
    head_commit: commit ? headCommitJson(commit) : null,
  };
}

/** A check suite. */
export function suiteJson(state: HubState, repository: Repository, suite: CheckSuite): JsonObject {
  return { ...suiteCoreJson(state, repository, suite), repository: minimalRepositoryJson(state, repository) };
}

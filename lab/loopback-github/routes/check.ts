/** Check runs, their annotations, check suites. */
import { ApiError } from '../api-error.ts';
import {
  bodyInteger,
  bodyText,
  type Call,
  found,
  type Handlers,
  integer,
  optionalText,
  page,
  type Reply,
  repositoryOf,
  text,
} from '../call.ts';
import { emit } from '../deliveries.ts';
import { isObject, type JsonObject } from '../json.ts';
import { annotationJson, checkRunJson, suiteJson } from '../present/check.ts';
import { checkRunBody } from '../rules.ts';
import { type Annotation, type CheckRun, type CheckSuite, type HubState, nextId, now, type Repository, resolveCommit } from '../state.ts';

function runOf(call: Call): { repository: Repository; run: CheckRun } {
  const repository = repositoryOf(call);
  const id = integer(call, 'check_run_id');
  return { repository, run: found(repository.checkRuns.find((run) => run.id === id)) };
}

/** The app's suite for a commit, created when it is first needed. */
export function suiteFor(state: HubState, repository: Repository, headSha: string): CheckSuite {
  const known = repository.checkSuites.find((suite) => suite.headSha === headSha);
  if (known) return known;
  const branch = [...repository.branches].find(([, sha]) => sha === headSha)?.[0] ?? null;
  const at = now(state);
  const suite = { id: nextId(state, 'checkSuite'), headSha, headBranch: branch, createdAt: at, updatedAt: at };
  repository.checkSuites.push(suite);
  return suite;
}

function annotationOf(value: JsonObject): Annotation {
  const level = value.annotation_level;
  return {
    path: bodyText(value, 'path') ?? '',
    startLine: bodyInteger(value, 'start_line') ?? 1,
    endLine: bodyInteger(value, 'end_line') ?? 1,
    startColumn: bodyInteger(value, 'start_column'),
    endColumn: bodyInteger(value, 'end_column'),
    level: level === 'failure' || level === 'warning' ? level : 'notice',
    title: bodyText(value, 'title'),
    message: bodyText(value, 'message') ?? '',
    rawDetails: bodyText(value, 'raw_details'),
  };
}

/**
 * Takes over what a create or update request says. `annotations-append`: annotations of later requests are added to the earlier ones,
 * never replaced [spec, checks/update].
 */
function apply(state: HubState, run: CheckRun, body: JsonObject): void {
  run.name = bodyText(body, 'name') ?? run.name;
  run.detailsUrl = bodyText(body, 'details_url') ?? run.detailsUrl;
  run.externalId = bodyText(body, 'external_id') ?? run.externalId;
  run.startedAt = bodyText(body, 'started_at') ?? run.startedAt;
  const conclusion = bodyText(body, 'conclusion');
  const status = bodyText(body, 'status');
  if (conclusion !== null) {
    // "Providing conclusion will automatically set the status parameter to completed" [spec, checks/update].
    run.status = 'completed';
    run.conclusion = conclusion;
    run.completedAt = bodyText(body, 'completed_at') ?? now(state);
  } else if (status !== null) {
    run.status = status;
    run.conclusion = null;
    run.completedAt = null;
  }
  if (isObject(body.output)) {
    run.title = bodyText(body.output, 'title') ?? run.title;
    run.summary = bodyText(body.output, 'summary') ?? run.summary;
    run.text = bodyText(body.output, 'text') ?? run.text;
    const { annotations, images } = body.output;
    if (Array.isArray(annotations)) run.annotations.push(...annotations.filter(isObject).map(annotationOf));
    if (Array.isArray(images)) {
      run.images = images.filter(isObject).map((image) => ({
        alt: bodyText(image, 'alt') ?? '',
        imageUrl: bodyText(image, 'image_url') ?? '',
        caption: bodyText(image, 'caption'),
      }));
    }
  }
  if (Array.isArray(body.actions)) {
    run.actions = body.actions.filter(isObject).map((action) => ({
      label: bodyText(action, 'label') ?? '',
      description: bodyText(action, 'description') ?? '',
      identifier: bodyText(action, 'identifier') ?? '',
    }));
  }
  run.suite.updatedAt = now(state);
  const { status: shown, conclusion: result, title, summary } = run;
  run.history.push({ status: shown, conclusion: result, title, summary, at: now(state) });
}

function create(call: Call): Reply {
  const repository = repositoryOf(call);
  const sha = bodyText(call.body, 'head_sha') ?? '';
  // Works for the head commit of a fork too; only `pull_requests` stays empty there [spec, checks/create].
  if (!repository.objects.commits.has(sha)) {
    throw new ApiError(422, 'Validation Failed', {
      errors: [{ resource: 'CheckRun', code: 'custom', field: 'head_sha', message: `No commit found for SHA: ${sha}` }],
      rule: { name: 'check-run-commit', blame: 'client' },
    });
  }
  checkRunBody(call.body);
  const run: CheckRun = {
    id: nextId(call.state, 'checkRun'),
    suite: suiteFor(call.state, repository, sha),
    name: bodyText(call.body, 'name') ?? '',
    headSha: sha,
    status: 'queued',
    conclusion: null,
    startedAt: now(call.state),
    completedAt: null,
    externalId: '',
    detailsUrl: null,
    title: null,
    summary: null,
    text: null,
    annotations: [],
    images: [],
    actions: [],
    history: [],
  };
  apply(call.state, run, call.body);
  repository.checkRuns.push(run);
  return { status: 201, body: checkRunJson(call.state, repository, run) };
}

function listRuns(call: Call, repository: Repository, candidates: CheckRun[]): Reply {
  const name = optionalText(call, 'check_name');
  const status = optionalText(call, 'status');
  const appId = integer(call, 'app_id');
  let runs = candidates
    .filter((run) => name === null || run.name === name)
    .filter((run) => status === null || run.status === status)
    .filter(() => Number.isNaN(appId) || appId === call.state.app.id);
  if (text(call, 'filter') === 'latest') {
    const latest = new Map<string, CheckRun>();
    for (const run of runs) latest.set(`${run.suite.id} ${run.name}`, run);
    runs = [...latest.values()];
  }
  const { items, headers } = page(call, runs.toReversed());
  return {
    status: 200,
    body: { total_count: runs.length, check_runs: items.map((run) => checkRunJson(call.state, repository, run)) },
    headers,
  };
}

function commitOf(call: Call, repository: Repository): string {
  const ref = text(call, 'ref');
  const sha = resolveCommit(repository, ref);
  if (sha === null) throw new ApiError(422, `No commit found for SHA: ${ref}`);
  return sha;
}

function suiteOf(call: Call): { repository: Repository; suite: CheckSuite } {
  const repository = repositoryOf(call);
  const id = integer(call, 'check_suite_id');
  return { repository, suite: found(repository.checkSuites.find((suite) => suite.id === id)) };
}

/** Handlers of this area. */
export const checkHandlers: Handlers = {
  'checks/create': create,

  'checks/get': (call) => {
    const { repository, run } = runOf(call);
    return { status: 200, body: checkRunJson(call.state, repository, run) };
  },

  'checks/update': (call) => {
    const { repository, run } = runOf(call);
    checkRunBody(call.body);
    apply(call.state, run, call.body);
    return { status: 200, body: checkRunJson(call.state, repository, run) };
  },

  'checks/list-annotations': (call) => {
    const { repository, run } = runOf(call);
    const { items, headers } = page(call, run.annotations);
    return { status: 200, body: items.map((annotation) => annotationJson(call.state, repository, run, annotation)), headers };
  },

  // The run itself is not changed; the app is told and must act [spec, checks/rerequest-run].
  'checks/rerequest-run': (call) => {
    const { repository, run } = runOf(call);
    emit(call.state, { event: 'check_run', action: 'rerequested', repository, run });
    return { status: 201, body: {} };
  },

  'checks/list-for-ref': (call) => {
    const repository = repositoryOf(call);
    const sha = commitOf(call, repository);
    return listRuns(
      call,
      repository,
      repository.checkRuns.filter((run) => run.headSha === sha),
    );
  },

  'checks/list-for-suite': (call) => {
    const { repository, suite } = suiteOf(call);
    return listRuns(
      call,
      repository,
      repository.checkRuns.filter((run) => run.suite === suite),
    );
  },

  'checks/list-suites-for-ref': (call) => {
    const repository = repositoryOf(call);
    const sha = commitOf(call, repository);
    const appId = integer(call, 'app_id');
    const suites = repository.checkSuites.filter((suite) => suite.headSha === sha && (Number.isNaN(appId) || appId === call.state.app.id));
    const { items, headers } = page(call, suites);
    return {
      status: 200,
      body: { total_count: suites.length, check_suites: items.map((suite) => suiteJson(call.state, repository, suite)) },
      headers,
    };
  },

  'checks/get-suite': (call) => {
    const { repository, suite } = suiteOf(call);
    return { status: 200, body: suiteJson(call.state, repository, suite) };
  },
};

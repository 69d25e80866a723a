import type { Lang } from '../../model/lang.ts';
import { type AppIdentity, type Octokit, type RepositoryRef, statusOf } from '../client.ts';

export const CHECK_NAME = 'NPU Advisor';
/** The check of a changed settings file. */
export const SETTINGS_CHECK_NAME = 'NPU Advisor settings';
const MAX_ANNOTATIONS_PER_REQUEST = 50;
const MAX_ANNOTATIONS = 500;
const MAX_OUTPUT = 65_535;

export interface Annotation {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number;
  readonly annotation_level: 'failure' | 'warning' | 'notice';
  readonly start_column?: number;
  readonly end_column?: number;
  readonly title: string;
  readonly message: string;
  readonly raw_details: string;
}

/** A check run as it should read. */
export interface DesiredCheck {
  readonly status: 'queued' | 'in_progress' | 'completed';
  readonly conclusion: 'success' | 'failure' | 'neutral' | 'skipped' | 'action_required' | 'cancelled' | 'timed_out' | null;
  readonly title: string;
  readonly summary: string;
  readonly text: string;
  readonly annotations: readonly Annotation[];
  readonly actions: readonly { label: string; description: string; identifier: string }[];
  /** What it is written in; English where it is not said. */
  readonly lang?: Lang;
  /** Where the whole report is; not given: what GitHub knows stays. */
  readonly detailsUrl?: string;
}

export interface FoundCheck {
  readonly id: number;
  readonly status: string;
  readonly conclusion: string | null;
  readonly url: string | null;
}

/** Our name for the check of a commit; with it a check is found again when the answer to its creation was lost. */
export function externalIdOf(repository: RepositoryRef, sha: string, name = CHECK_NAME): string {
  const own = `npu-advisor/1/${repository.id}/${sha}`;
  return name === CHECK_NAME ? own : `${own}/settings`;
}

/** Cuts without splitting a surrogate pair. */
function clamp(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, max - 1);
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

/** The check run of ours on a commit, the oldest when there are several; null when there is none. */
export async function findCheck(
  octokit: Octokit,
  repository: RepositoryRef,
  sha: string,
  app: AppIdentity,
  name = CHECK_NAME,
): Promise<FoundCheck | null> {
  const { data } = await octokit.rest.checks.listForRef({
    owner: repository.owner,
    repo: repository.name,
    ref: sha,
    check_name: name,
    app_id: app.id,
    filter: 'all',
    per_page: 100,
  });
  const own = data.check_runs.filter(
    (run) =>
      run.app?.id === app.id && run.head_sha === sha && (run.external_id === externalIdOf(repository, sha, name) || run.name === name),
  );
  own.sort((a, b) => a.id - b.id);
  const first = own[0];
  return first === undefined ? null : { id: first.id, status: first.status, conclusion: first.conclusion, url: first.html_url };
}

export async function createCheck(
  octokit: Octokit,
  repository: RepositoryRef,
  sha: string,
  desired: DesiredCheck,
  name = CHECK_NAME,
): Promise<FoundCheck> {
  const { data } = await octokit.rest.checks.create({
    owner: repository.owner,
    repo: repository.name,
    name,
    head_sha: sha,
    external_id: externalIdOf(repository, sha, name),
    status: desired.status === 'completed' ? 'in_progress' : desired.status,
    output: { title: clamp(desired.title, 255), summary: clamp(desired.summary, MAX_OUTPUT) },
    request: { retries: 0 },
  });
  return { id: data.id, status: data.status, conclusion: data.conclusion, url: data.html_url };
}

function keyOf(annotation: { path: string; start_line: number; end_line: number; title: string | null; message: string | null }): string {
  return JSON.stringify([annotation.path, annotation.start_line, annotation.end_line, annotation.title ?? '', annotation.message ?? '']);
}

/** Annotations still to be sent, in requests of at most 50. GitHub appends, so those already there are left out. */
export function planAnnotations(desired: readonly Annotation[], existing: readonly Parameters<typeof keyOf>[0][]): Annotation[][] {
  const seen = new Set(existing.map(keyOf));
  const missing: Annotation[] = [];
  for (const annotation of desired.slice(0, MAX_ANNOTATIONS)) {
    if (seen.has(keyOf(annotation))) continue;
    seen.add(keyOf(annotation));
    missing.push(annotation);
  }
  const batches: Annotation[][] = [];
  for (let i = 0; i < missing.length; i += MAX_ANNOTATIONS_PER_REQUEST) batches.push(missing.slice(i, i + MAX_ANNOTATIONS_PER_REQUEST));
  return batches;
}

async function listAnnotations(octokit: Octokit, repository: RepositoryRef, checkRunId: number): Promise<Parameters<typeof keyOf>[0][]> {
  return octokit.paginate(octokit.rest.checks.listAnnotations, {
    owner: repository.owner,
    repo: repository.name,
    check_run_id: checkRunId,
    per_page: 100,
  });
}

/**
 * Shows how far the work is, once and without another try. Neither status nor conclusion is sent, so that one that arrives late cannot
 * open a check that is concluded. Returns the share of the hour's requests that is left, and when the next hour begins.
 */
export async function tellCheck(
  octokit: Octokit,
  repository: RepositoryRef,
  checkRunId: number,
  { title, summary }: { readonly title: string; readonly summary: string },
  signal: AbortSignal,
  /** Allowed from what is kept for that when the installation is at its limit. */
  reserve = false,
): Promise<{ left: number; resetAt: number }> {
  const { headers } = await octokit.rest.checks.update({
    owner: repository.owner,
    repo: repository.name,
    check_run_id: checkRunId,
    output: { title: clamp(title, 255), summary: clamp(summary, MAX_OUTPUT) },
    request: { retries: 0, bestEffort: true, reserve, signal },
  });
  const left = Number(headers['x-ratelimit-remaining']) / Number(headers['x-ratelimit-limit']);
  const resetAt = Number(headers['x-ratelimit-reset']) * 1000;
  return Number.isFinite(left) && Number.isFinite(resetAt) ? { left, resetAt } : { left: 1, resetAt: 0 };
}

export async function readCheckTitle(octokit: Octokit, repository: RepositoryRef, checkRunId: number): Promise<string | null> {
  const { data } = await octokit.rest.checks.get({ owner: repository.owner, repo: repository.name, check_run_id: checkRunId });
  return data.output.title;
}

/** Says once more what a concluded check run says: asking for a re-run has reset its suite. */
export async function restateCheck(octokit: Octokit, repository: RepositoryRef, checkRunId: number, conclusion: string): Promise<void> {
  await octokit.rest.checks.update({
    owner: repository.owner,
    repo: repository.name,
    check_run_id: checkRunId,
    status: 'completed',
    conclusion: conclusion as NonNullable<DesiredCheck['conclusion']>,
  });
}

/** After an answer that was lost, annotations are looked at again and what is missing is sent, so many times. */
const TRIES = 4;

/** Brings a check run to the desired state; the conclusion is written last, when all annotations are in. */
export async function updateCheck(octokit: Octokit, repository: RepositoryRef, checkRunId: number, desired: DesiredCheck): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await bringToState(octokit, repository, checkRunId, desired);
    } catch (error) {
      if (desired.annotations.length === 0 || tries >= TRIES || (statusOf(error) ?? 0) < 500) throw error;
    }
  }
}

async function bringToState(octokit: Octokit, repository: RepositoryRef, checkRunId: number, desired: DesiredCheck): Promise<void> {
  const where = { owner: repository.owner, repo: repository.name, check_run_id: checkRunId };
  const output = {
    title: clamp(desired.title, 255),
    summary: clamp(desired.summary, MAX_OUTPUT),
    ...(desired.text === '' ? {} : { text: clamp(desired.text, MAX_OUTPUT) }),
  };
  const known = desired.annotations.length === 0 ? [] : await listAnnotations(octokit, repository, checkRunId);
  const clamped = desired.annotations.map((a) => ({
    ...a,
    title: clamp(a.title, 255),
    message: clamp(a.message, 16_000),
    raw_details: clamp(a.raw_details, 16_000),
  }));
  const batches = planAnnotations(clamped, known);
  const last = batches.pop() ?? [];
  // GitHub appends, so what was perhaps read is never sent a second time.
  const once = { request: { retries: 0 } };
  for (const annotations of batches)
    await octokit.rest.checks.update({ ...where, status: 'in_progress', output: { ...output, annotations }, ...once });
  const final = last.length === 0 ? output : { ...output, annotations: last };
  const actions = desired.actions.slice(0, 3).map((action) => ({
    label: clamp(action.label, 20),
    description: clamp(action.description, 40),
    identifier: action.identifier,
  }));
  if (desired.status === 'completed') {
    await octokit.rest.checks.update({
      ...where,
      status: 'completed',
      conclusion: desired.conclusion ?? 'neutral',
      ...(desired.detailsUrl === undefined ? {} : { details_url: desired.detailsUrl }),
      output: final,
      actions,
      ...(last.length === 0 ? {} : once),
    });
  } else {
    await octokit.rest.checks.update({ ...where, status: desired.status, output: final, ...(last.length === 0 ? {} : once) });
  }
}

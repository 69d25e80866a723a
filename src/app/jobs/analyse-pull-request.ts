import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AdviseError } from '../../base/errors.ts';
import type { ConfigProblem } from '../../config/parse.ts';
import { CONFIG_PATH, type Config, DEFAULT_CONFIG } from '../../config/schema.ts';
import { VERSION } from '../../engine/version.ts';
import type { Artifact } from '../../github/artifacts.ts';
import { type Octokit, PERMISSIONS, statusOf } from '../../github/client.ts';
import { readSource, type SourceFiles } from '../../github/contents.ts';
import { listChangedFiles } from '../../github/diff.ts';
import { type PullRequest, readPullRequest } from '../../github/pull-requests.ts';
import { ProfileUnavailable } from '../../github/storage.ts';
import type { Lang } from '../../model/lang.ts';
import { Report } from '../../model/report.ts';
import type { NoProfileReason, RunningStep, WorkflowRef } from '../../render/views.ts';
import { evaluateGate } from '../../report/gate.ts';
import { type AnalysisProgress, ARCHIVE_ERROR, NOT_FETCHED } from '../analysis-protocol.ts';
import { concludeOpenCheck, ensureCheck, openCheck, plainCheck, sayAgain, writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import { fetchArtifacts } from './fetch-artifacts.ts';
import { findProfile, findWanted, type Search } from './find-profile.ts';
import { type Progress, startProgress } from './progress.ts';
import { type Publication, publish, type Statement } from './publish.ts';
import type { AnalyseRequest, Target } from './request.ts';
import { readSettings } from './settings.ts';

const SOURCE_LIMITS = { maxFiles: 400, maxBytes: 6 * 1024 * 1024 };

/** Several requests for the same commit are one analysis. */
export interface Analysis {
  readonly target: Target;
  readonly pr: number;
  readonly headSha: string;
  readonly run: AnalyseRequest['run'];
  readonly wanted: AnalyseRequest['wanted'];
  readonly isAsked: boolean;
  /** A report of the same inputs will do although somebody asked. */
  readonly mayReuse: boolean;
  /** True when an earlier try of the same analysis may have left a report to reuse. */
  readonly isRetry: boolean;
}

/** `waiting`: another run of the commit has not finished yet. */
export type AnalysisOutcome = 'published' | 'waiting' | 'superseded' | 'gone';

/** Names the inputs of a report: artifacts, settings and source. Equal keys, equal reports. */
function reportKey(analysis: Analysis, artifacts: readonly Artifact[], config: Config): string {
  const inputs = artifacts.map(({ id, bytes, digest, createdAt }) => [id, bytes, digest, createdAt]);
  const { lang, thresholds, disabled_rules, gate, job } = config;
  const parts = [
    VERSION,
    analysis.target.repository.id,
    analysis.pr,
    analysis.headSha,
    inputs,
    { lang, thresholds, disabled_rules, gate, job },
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** Turns a failure that is the upload's own into words for its author; anything else is rethrown. */
function toReason(error: unknown, artifacts: readonly Artifact[], lang: Lang): NoProfileReason {
  if (error instanceof ProfileUnavailable) return error.reason;
  if (error instanceof AdviseError && error.code.startsWith(ARCHIVE_ERROR)) {
    return { kind: 'corrupt', artifact: artifacts.map(({ name }) => name).join(', '), detail: error.message };
  }
  if (error instanceof AdviseError && error.code === 'no-profile') {
    // The engine knows what it holds instead, which helps more than that it holds no profile.
    return {
      kind: 'no-profile-inside',
      artifact: artifacts.map(({ name }) => name).join(', '),
      detail: `${error.message}${lang === 'en' ? '; ' : '；'}${error.hint}`,
    };
  }
  throw error;
}

/** True for errors about the upload, which `toReason` puts into words. */
function isAboutUpload(error: unknown): boolean {
  if (error instanceof ProfileUnavailable) return true;
  return error instanceof AdviseError && (error.code.startsWith(ARCHIVE_ERROR) || error.code === 'no-profile');
}

/** Analyses the profile of a commit and publishes what was found; every way out leaves the check concluded or rightly waiting. */
export async function analysePullRequest(deps: Dependencies, analysis: Analysis): Promise<AnalysisOutcome> {
  const { target, pr, headSha } = analysis;
  const { repository, installationId } = target;
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, repository, pr);
  const place = { target, sha: headSha, pr };
  if (pull === null) return 'gone';
  if (pull.headSha !== headSha || pull.state !== 'open') {
    await concludeOpenCheck(deps, place, plainCheck(pull.state === 'open' ? 'superseded' : 'closed', 'en'));
    if (analysis.isAsked) await sayAgain(deps, place);
    return 'superseded';
  }

  const settings = await readSettings(deps, target, pull.baseRef, octokit);
  deps.killPoint('config-read');
  if (!settings.ok) {
    await publishConfigProblem(deps, analysis, pull, settings.problems);
    return 'published';
  }
  const config = settings.value;
  const check = await ensureCheck(deps, place, await openCheck(deps, place, config.lang, 'waiting'), config.deadline_minutes);
  const publication = {
    target,
    pull,
    sha: headSha,
    lang: config.lang,
    comment: config.comment,
    suggestions: config.suggestions,
    isAsked: analysis.isAsked,
    checkUrl: check.url,
    source: new Map<string, string>(),
  } satisfies Omit<Publication, 'statement'>;
  const sayNoProfile = (reason: NoProfileReason, workflow: WorkflowRef | null): Promise<void> =>
    publish(deps, { ...publication, statement: noProfile(reason, workflow, config) });

  const search = await searchFor(octokit, analysis, config);
  deps.killPoint('artifact-listed');
  if (search.kind === 'running') return 'waiting';
  if (search.kind === 'none') {
    // A workflow without a profile says nothing about a commit that another workflow has profiled.
    if (check.hasReport && !analysis.isAsked) return 'published';
    // Nobody asked and nothing has just finished: the workflow may not have been queued yet. The deadline sees to the rest.
    if (!analysis.isAsked && (analysis.run === null || search.reason.kind === 'no-run')) return 'waiting';
    await sayNoProfile(search.reason, search.workflow);
    return 'published';
  }

  const { candidate } = search;
  const workflow = { name: candidate.run.name, url: candidate.run.htmlUrl };
  const progress = startProgress(deps, place, check.checkRunId, config.lang);
  const outcome = await makeReport(deps, octokit, analysis, candidate.artifacts, config, progress).catch(asFailure);
  await progress.stop();
  if (outcome.kind === 'failed' && deps.signal.aborted) throw outcome.error;
  const say = (): Promise<void> => {
    if (outcome.kind === 'made') return publishMade(outcome);
    const { error } = outcome;
    if (error instanceof AdviseError && !isAboutUpload(error)) {
      return publish(deps, { ...publication, statement: failure(error.message, error.hint, null) });
    }
    return sayNoProfile(toReason(error, candidate.artifacts, config.lang), workflow);
  };
  const publishMade = ({ report, source }: Made): Promise<void> => {
    if (report.verdict.outcome === 'no-data') {
      return sayNoProfile({ kind: 'no-profile-inside', artifact: candidate.artifacts.map(({ name }) => name).join(', ') }, workflow);
    }
    return publish(deps, { ...publication, source: new Map(source.files), statement: { kind: 'report', report } });
  };
  await say();
  await progress.settle(say);
  return 'published';
}

/** The profile to analyse. An upload that was pointed at and is no more there has been deleted since the command was taken. */
async function searchFor(octokit: Octokit, analysis: Analysis, config: Config): Promise<Search> {
  const { target, headSha, wanted } = analysis;
  if (wanted === null) return findProfile(octokit, analysis, config);
  const found = await findWanted(octokit, target, headSha, wanted, config);
  if ('candidate' in found) return { kind: 'found', candidate: found.candidate };
  return { kind: 'none', reason: { kind: 'no-match', uploaded: [] }, workflow: null };
}

interface Made {
  readonly kind: 'made';
  readonly report: Report;
  readonly source: SourceFiles;
}

function asFailure(error: unknown): { readonly kind: 'failed'; readonly error: unknown } {
  return { kind: 'failed', error };
}

async function makeReport(
  deps: Dependencies,
  octokit: Octokit,
  analysis: Analysis,
  artifacts: readonly Artifact[],
  config: Config,
  progress: Progress,
): Promise<Made> {
  const { target, pr, headSha } = analysis;
  const changed = await listChangedFiles(octokit, target.repository, pr);
  const source = await readSource(octokit, target.repository, headSha, changed, SOURCE_LIMITS);
  const key = reportKey(analysis, artifacts, config);
  if (!analysis.isAsked || analysis.mayReuse || analysis.isRetry) {
    const kept = Report.safeParse(await deps.store.reports.get(key));
    if (kept.success) return { kind: 'made', report: kept.data, source };
  }

  progress.tell({ kind: 'queue' });
  const made = await deps.analysisSlot(async () => {
    const place = { target, sha: headSha, pr };
    await writeCheck(deps, place, await openCheck(deps, place, config.lang, 'analysing'), false);
    try {
      return await fetchAndAnalyse(deps, octokit, analysis, { artifacts, config, source, progress, mayBeParts: true });
    } catch (error) {
      if (!(error instanceof AdviseError) || error.code !== NOT_FETCHED) throw error;
      deps.log.error({ err: error, repository: target.repository.id, pr }, 'a file was left out that an importer opens');
      return fetchAndAnalyse(deps, octokit, analysis, { artifacts, config, source, progress, mayBeParts: false });
    }
  });
  const report = Report.parse({ ...made, gate: made.gate ?? evaluateGate(made, config.gate) });
  await deps.store.reports.put({ key, repoId: target.repository.id, pr, sha: headSha, json: JSON.stringify(report) });
  return { kind: 'made', report, source };
}

interface Analysing {
  readonly artifacts: readonly Artifact[];
  readonly config: Config;
  readonly source: SourceFiles;
  readonly progress: Progress;
  readonly mayBeParts: boolean;
}

async function fetchAndAnalyse(
  deps: Dependencies,
  octokit: Octokit,
  { target }: Analysis,
  { artifacts, config, source, progress, mayBeParts }: Analysing,
): Promise<Report> {
  await mkdir(deps.scratch, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(deps.scratch, 'job-'));
  try {
    const onBytes = (done: number, total: number): void => progress.tell({ kind: 'download', bytes: { done, total } });
    const { paths, partial } = await fetchArtifacts(deps, { octokit, target, artifacts, folder, mayBeParts, onBytes });
    deps.killPoint('after-download');
    const { lang, thresholds, disabled_rules: disabledRules, gate, job } = config;
    return await deps.analysis.analyse(
      { paths, partial, options: { lang, thresholds, disabledRules, gate, job }, source },
      {
        signal: deps.signal,
        onStarted: () => deps.killPoint('during-analysis'),
        onProgress: (step) => progress.tell(toStep(step)),
      },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function toStep({ phase, done, total, ranks }: AnalysisProgress): RunningStep {
  return phase === 'diagnose' ? { kind: 'diagnose' } : { kind: 'read', bytes: { done, total }, ranks: ranks ?? { done: 0, total: 0 } };
}

function noProfile(reason: NoProfileReason, workflow: WorkflowRef | null, config: Config): Statement {
  return {
    kind: 'other',
    view: (base, before) => ({
      ...base,
      state: 'no-profile',
      reason,
      workflow,
      patterns: config.artifacts,
      onMissing: config.on_missing,
      previous: before,
    }),
  };
}

/** Nothing about the profile can be said because something of ours, or its size, was in the way. */
export function failure(reason: string, hint: string | null, correlationId: string | null): Statement {
  return { kind: 'other', view: (base) => ({ ...base, state: 'error', reason, hint, correlationId }) };
}

async function publishConfigProblem(
  deps: Dependencies,
  analysis: Analysis,
  pull: PullRequest,
  problems: readonly ConfigProblem[],
): Promise<void> {
  const { target, headSha } = analysis;
  const place = { target, sha: headSha, pr: pull.number };
  const check = await ensureCheck(deps, place, await openCheck(deps, place, 'en', 'waiting'), DEFAULT_CONFIG.deadline_minutes);
  const file = problems[0]?.file ?? CONFIG_PATH;
  await publish(deps, {
    target,
    pull,
    sha: headSha,
    lang: 'en',
    comment: 'on-findings',
    suggestions: 'off',
    isAsked: analysis.isAsked,
    checkUrl: check.url,
    source: new Map(),
    statement: {
      kind: 'other',
      view: (base) => ({ ...base, state: 'config-invalid', file, problems: problems.map(({ line, message }) => ({ line, message })) }),
    },
  });
}

/** Concludes a check whose deadline has passed, unless a profile is there after all. */
export async function concludeOverdue(deps: Dependencies, target: Target, pr: number, sha: string): Promise<void> {
  const check = await deps.store.checks.find(target.repository.id, sha);
  if (check === null || check.phase === 'completed') return;
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, target.repository, pr);
  const place = { target, sha, pr };
  if (pull === null || pull.state !== 'open') return concludeOpenCheck(deps, place, plainCheck('closed', 'en'));
  const settings = await readSettings(deps, target, pull.baseRef, octokit);
  const config = settings.ok ? settings.value : DEFAULT_CONFIG;
  if (pull.headSha !== sha) return concludeOpenCheck(deps, place, plainCheck('superseded', config.lang));
  // The event that announced the profile may have been lost.
  const common = { run: null, wanted: null, isAsked: false, mayReuse: false, isRetry: false };
  if ((await analysePullRequest(deps, { target, pr, headSha: sha, ...common })) !== 'waiting') return;
  await publish(deps, {
    target,
    pull,
    sha,
    lang: config.lang,
    comment: config.comment,
    suggestions: 'off',
    isAsked: false,
    checkUrl: check.url,
    source: new Map(),
    statement: noProfile({ kind: 'no-run', deadlineMinutes: config.deadline_minutes }, null, config),
  });
}

/** Last resort after the last try: says on the check, and on the comment if there is one, that it did not work. */
export async function publishGivingUp(deps: Dependencies, analysis: Analysis, correlationId: string): Promise<void> {
  const { target, pr, headSha } = analysis;
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, target.repository, pr);
  if (pull === null) return;
  const settings = await readSettings(deps, target, pull.baseRef, octokit).catch((error: unknown) => {
    if (statusOf(error) === null) throw error;
    return { ok: true, value: DEFAULT_CONFIG } as const;
  });
  const config = settings.ok ? settings.value : DEFAULT_CONFIG;
  const reason = config.lang === 'en' ? 'the analysis did not finish after several tries' : '多次尝试后分析仍未完成';
  const hint =
    config.lang === 'en'
      ? 'Try `/npu-advise rerun` later; the operator finds the reason in the log.'
      : '请稍后使用 `/npu-advise rerun` 重试；运维人员可在日志中查到原因。';
  await publish(deps, {
    target,
    pull,
    sha: headSha,
    lang: config.lang,
    comment: config.comment,
    suggestions: 'off',
    isAsked: analysis.isAsked,
    checkUrl: null,
    source: new Map(),
    statement: failure(reason, hint, correlationId),
  });
}

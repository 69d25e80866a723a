import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AdviseError } from '../../base/errors.ts';
import { findingIdOf, type JobSettings } from '../../config/jobs.ts';
import type { Config } from '../../config/schema.ts';
import { VERSION } from '../../engine/version.ts';
import type { Artifact } from '../../github/artifacts.ts';
import type { Octokit } from '../../github/client.ts';
import { readSource, type SourceFiles } from '../../github/contents.ts';
import { listChangedFiles } from '../../github/diff.ts';
import { ProfileUnavailable } from '../../github/storage.ts';
import type { Lang } from '../../model/lang.ts';
import { Report } from '../../model/report.ts';
import type { NoProfileReason, RunningStep, WorkflowRef } from '../../render/views.ts';
import { evaluateGate } from '../../report/gate.ts';
import { type AnalysisProgress, ARCHIVE_ERROR, NOT_FETCHED } from '../analysis-protocol.ts';
import { openCheck, writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import { fetchArtifacts } from './fetch-artifacts.ts';
import type { Candidate } from './find-profile.ts';
import type { Progress } from './progress.ts';
import type { JobStatement } from './publish.ts';
import type { AnalyseRequest, Target } from './request.ts';

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
  /** The deadline has passed: what has not arrived is not waited for. */
  readonly isFinal?: boolean;
}

/** Names the inputs of a report: artifacts, settings and source. Equal keys, equal reports. */
function reportKey(analysis: Analysis, artifacts: readonly Artifact[], { name, config }: JobSettings): string {
  const inputs = artifacts.map(({ id, bytes, digest, createdAt }) => [id, bytes, digest, createdAt]);
  const { lang, thresholds, disabled_rules, gate, job } = config;
  const parts = [
    VERSION,
    analysis.target.repository.id,
    analysis.pr,
    analysis.headSha,
    inputs,
    { lang, thresholds, disabled_rules, gate, job },
    ...(name === null ? [] : [name]),
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

interface Made {
  readonly report: Report;
  readonly source: SourceFiles;
}

/** What is to be said of a profile, and the source it was looked at with. */
export interface Told {
  readonly statement: JobStatement;
  readonly source: SourceFiles | null;
}

/** Analyses the profile of one job and says what was found, or why nothing could be. Throws what another try may change. */
export async function tellProfile(
  deps: Dependencies,
  octokit: Octokit,
  analysis: Analysis,
  { artifacts, run }: Candidate,
  job: JobSettings,
  progress: Progress,
): Promise<Told> {
  const { config } = job;
  const workflow = { name: run.name, url: run.htmlUrl };
  try {
    const { report, source } = await makeReport(deps, octokit, analysis, artifacts, job, progress);
    if (report.verdict.outcome !== 'no-data') return { statement: { kind: 'report', report }, source };
    const artifact = artifacts.map(({ name }) => name).join(', ');
    return { statement: noProfile({ kind: 'no-profile-inside', artifact }, workflow, config), source: null };
  } catch (error) {
    if (deps.signal.aborted) throw error;
    if (error instanceof AdviseError && !isAboutUpload(error)) {
      return { statement: failure(error.message, error.hint, null), source: null };
    }
    return { statement: noProfile(toReason(error, artifacts, config.lang), workflow, config), source: null };
  }
}

export function noProfile(reason: NoProfileReason, workflow: WorkflowRef | null, config: Config): JobStatement {
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
export function failure(reason: string, hint: string | null, correlationId: string | null): JobStatement {
  return { kind: 'other', view: (base) => ({ ...base, state: 'error', reason, hint, correlationId }) };
}

/** Findings of a named job carry its name, so that the same cause in two jobs is two findings. */
function ofJob(report: Report, job: string | null): Report {
  if (job === null) return report;
  const named = (id: string): string => findingIdOf(id, job);
  return {
    ...report,
    findings: report.findings.map((finding) => ({
      ...finding,
      id: named(finding.id),
      symptomOf: finding.symptomOf === null ? null : named(finding.symptomOf),
    })),
    comparison:
      report.comparison === null
        ? null
        : { ...report.comparison, findings: report.comparison.findings.map((finding) => ({ ...finding, id: named(finding.id) })) },
  };
}

async function makeReport(
  deps: Dependencies,
  octokit: Octokit,
  analysis: Analysis,
  artifacts: readonly Artifact[],
  settings: JobSettings,
  progress: Progress,
): Promise<Made> {
  const { target, pr, headSha } = analysis;
  const { config } = settings;
  const changed = await listChangedFiles(octokit, target.repository, pr);
  const source = await readSource(octokit, target.repository, headSha, changed, SOURCE_LIMITS);
  const key = reportKey(analysis, artifacts, settings);
  if (!analysis.isAsked || analysis.mayReuse || analysis.isRetry) {
    const kept = Report.safeParse(await deps.store.reports.get(key));
    if (kept.success) return { report: kept.data, source };
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
  const report = ofJob(Report.parse({ ...made, gate: made.gate ?? evaluateGate(made, config.gate) }), settings.name);
  await deps.store.reports.put({ key, repoId: target.repository.id, pr, sha: headSha, json: JSON.stringify(report) });
  return { report, source };
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

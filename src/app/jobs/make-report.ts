import { createHash } from 'node:crypto';
import { lstat, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AdviseError } from '../../base/errors.ts';
import { quoteLiteral } from '../../base/phrase.ts';
import { findingIdOf, type JobSettings, jobKeyOf } from '../../config/jobs.ts';
import type { Config } from '../../config/schema.ts';
import { VERSION } from '../../engine/version.ts';
import type { Artifact } from '../../github/artifacts.ts';
import type { Octokit } from '../../github/client.ts';
import { openRepositorySource, type RepositorySource, type SourceFiles } from '../../github/contents.ts';
import { listChangedFiles } from '../../github/diff.ts';
import type { PullRequest } from '../../github/pull-requests.ts';
import { ProfileUnavailable } from '../../github/storage.ts';
import { FACTS_SCHEMA } from '../../model/facts-schema.ts';
import type { ProfileMetrics } from '../../model/history.ts';
import type { Lang } from '../../model/lang.ts';
import { Report } from '../../model/report.ts';
import type { NoProfileReason, RunningStep, WorkflowRef } from '../../render/views.ts';
import { evaluateGate } from '../../report/gate.ts';
import { profileMetrics } from '../../report/profile-metrics.ts';
import { type Difference, inOther, textsOf } from '../../report/texts.ts';
import type { KeptProfile } from '../../store/ports.ts';
import { type AnalysisProgress, ARCHIVE_ERROR, NOT_FETCHED } from '../analysis-protocol.ts';
import { asAccepted } from './accepted.ts';
import { ancestryOf, type Baseline, type BaselineSearch, type Comparing, findBaseline, withHistory, writeBaseline } from './baseline.ts';
import { needOf } from './budget.ts';
import { type Candidate, isAttached } from './candidate.ts';
import { hasFailed, openCheck, writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import { fetchArtifacts } from './fetch-artifacts.ts';
import { type Gathered, gather } from './portions.ts';
import type { Progress } from './progress.ts';
import type { JobStatement } from './publish.ts';
import type { AnalyseRequest, Target } from './request.ts';

/** One request for each file. */
const SOURCE_LIMITS = { maxFiles: 200, maxBytes: 6 * 1024 * 1024 };
/** Of one profile, zipped: some eight ranks of a long capture, or hundreds of a short one. */
const MAX_FACTS_BYTES = 8 * 1024 * 1024;

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
  /** What is known is to be said again, with what was acknowledged meanwhile. */
  readonly restates?: boolean;
  /** The base branch is another one; a report that is kept was compared with the one before. */
  readonly hasNewBase?: boolean;
  /** True when an earlier try of the same analysis may have left a report to reuse. */
  readonly isRetry: boolean;
  /** The deadline has passed: what has not arrived is not waited for. */
  readonly isFinal?: boolean;
}

/** Names the inputs of a report: artifacts, settings and source. Equal keys, equal reports. */
function reportKey(analysis: Analysis, artifacts: readonly Artifact[], { name, config }: JobSettings, compared: BaselineSearch): string {
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
    ...(isAttached({ artifacts }) ? ['attached'] : []),
    ...('baseline' in compared ? [compared.baseline.runs.map(({ id }) => id)] : []),
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** Turns a failure that is the upload's own into words for its author; anything else is rethrown. */
export function toReason(error: unknown, artifacts: readonly Artifact[], lang: Lang): NoProfileReason {
  if (error instanceof ProfileUnavailable) return error.reason;
  if (error instanceof AdviseError && error.code.startsWith(ARCHIVE_ERROR)) {
    return { kind: 'corrupt', artifact: artifacts.map(({ name }) => name).join(', '), detail: error.told[lang].message };
  }
  if (error instanceof AdviseError && error.code === 'no-profile') {
    // The engine knows what it holds instead, which helps more than that it holds no profile.
    return {
      kind: 'no-profile-inside',
      artifact: artifacts.map(({ name }) => name).join(', '),
      detail: `${error.told[lang].message}${lang === 'en' ? '; ' : '；'}${error.told[lang].hint}`,
    };
  }
  throw error;
}

/** True for errors about the upload, which `toReason` puts into words. */
export function isAboutUpload(error: unknown): boolean {
  if (error instanceof ProfileUnavailable) return true;
  return error instanceof AdviseError && (error.code.startsWith(ARCHIVE_ERROR) || error.code === 'no-profile');
}

/** A report, and the same in the other language where it was made in both. */
export interface Both {
  readonly report: Report;
  readonly other: Report | null;
}

/** Reads what `keptOf` wrote, or a report that was kept alone. */
export function readBoth(json: unknown): Both | null {
  const kept = Report.safeParse(json);
  if (!kept.success) return null;
  const { texts } = json as { texts?: Difference };
  const other = texts === undefined ? null : Report.safeParse(inOther(kept.data, texts));
  return { report: kept.data, other: other?.success === true ? other.data : null };
}

function keptOf({ report, other }: Both): string {
  return JSON.stringify(other === null ? report : { ...report, texts: textsOf(report, other) });
}

interface Made extends Both {
  readonly source: SourceFiles;
}

/** What is to be said of a profile, and the source it was looked at with. */
export interface Told {
  readonly statement: JobStatement;
  readonly source: SourceFiles | null;
}

interface Telling {
  readonly pull: PullRequest;
  readonly candidate: Candidate;
  readonly job: JobSettings;
  readonly progress: Progress;
}

/** Analyses the profile of one job and says what was found, or why nothing could be. Throws what another try may change. */
export async function tellProfile(
  deps: Dependencies,
  octokit: Octokit,
  analysis: Analysis,
  { pull, candidate, job, progress }: Telling,
): Promise<Told> {
  const { config } = job;
  const { artifacts, run } = candidate;
  const workflow = { name: run.name, url: run.htmlUrl };
  try {
    const { report, other, source } = await makeReport(deps, octokit, analysis, { pull, candidate, job, progress });
    if (report.verdict.outcome !== 'no-data') {
      const accepted = (of: Report): Promise<Report> => asAccepted(deps, analysis.target.repository.id, analysis.pr, of, job);
      const shown = { report: await accepted(report), other: other === null ? null : await accepted(other) };
      return { statement: { kind: 'report', ...shown }, source };
    }
    const artifact = artifacts.map(({ name }) => name).join(', ');
    return { statement: noProfile({ kind: 'no-profile-inside', artifact }, workflow, config), source: null };
  } catch (error) {
    if (deps.signal.aborted) throw error;
    if (error instanceof AdviseError && !isAboutUpload(error)) {
      const { message, hint } = error.told[config.lang];
      return { statement: failure(message, hint, null), source: null };
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
export function ofJob(report: Report, job: string | null): Report {
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

/** The source of a commit, as far as it may matter. */
export async function sourceOf(octokit: Octokit, analysis: Analysis): Promise<SourceFiles> {
  return (await repositoryOf(octokit, analysis)).source;
}

async function repositoryOf(octokit: Octokit, { target, pr, headSha }: Analysis): Promise<RepositorySource> {
  const changed = await listChangedFiles(octokit, target.repository, pr);
  return openRepositorySource(octokit, target.repository, headSha, changed, SOURCE_LIMITS);
}

async function makeReport(
  deps: Dependencies,
  octokit: Octokit,
  analysis: Analysis,
  { pull, candidate, job: settings, progress }: Telling,
): Promise<Made> {
  const { target, pr, headSha } = analysis;
  const { artifacts } = candidate;
  const { profiles } = deps.store;
  const { config } = settings;
  const { source, more } = await repositoryOf(octokit, analysis);
  const comparing: Comparing = { repository: target.repository, job: jobKeyOf(settings), baseRef: pull.baseRef, headSha };
  const compared = await findBaseline(profiles, ancestryOf(octokit, comparing), comparing, deps.now());
  const key = reportKey(analysis, artifacts, settings, compared);
  if (!analysis.isAsked || analysis.mayReuse || analysis.isRetry) {
    const kept = readBoth(await deps.store.reports.get(key));
    if (kept !== null) return { ...kept, source };
  }

  progress.tell({ kind: 'queue' });
  // What a fork's workflow says is a claim: its figures are followed, its facts are nobody's baseline.
  const isWord = isAttached(candidate);
  const isTrusted = pull.headRepoId !== null && pull.headRepoId === pull.baseRepoId && !isWord;
  const place = { target, sha: headSha, pr };
  const stays = isWord && (await hasFailed(deps, place));
  const open = async (): Promise<void> => {
    if (!stays) await writeCheck(deps, place, await openCheck(deps, place, config.lang, 'analysing'), false);
  };
  const gathered = await gather(deps, target, { artifacts, progress, onSpread: open });
  const made = await deps.analysisSlot(
    async () => {
      if (gathered === null) await open();
      const baseline = 'baseline' in compared ? compared.baseline : null;
      return analyseArtifacts(deps, octokit, target, {
        artifacts,
        gathered,
        config,
        source,
        more,
        progress,
        baseline,
        keepsFacts: isTrusted,
      });
    },
    needOf(gathered === null ? artifacts : []),
  );
  const finished = async (one: Report): Promise<Report> => {
    const of: Report = isWord ? { ...one, attached: true, gate: null } : one;
    const judged = ofJob(Report.parse({ ...of, gate: of.gate ?? evaluateGate(of, config.gate) }), settings.name);
    const said = isWord ? { ...judged, notes: [...judged.notes, attachedNote(artifacts, headSha, of.lang)] } : judged;
    return withHistory(profiles, comparing, compared, said);
  };
  const report = await finished(made.report);
  const other = made.other === null ? null : await finished(made.other);
  const kept = { key, repoId: target.repository.id, pr, sha: headSha };
  const isKept = await deps.store.reports.put({ ...kept, json: keptOf({ report, other }) });
  if (!isKept && 'timeline' in report.views) {
    const { timeline: _, ...views } = report.views;
    const less = other === null ? null : { ...other, views: { ...other.views, timeline: undefined } };
    await deps.store.reports.put({ ...kept, json: keptOf({ report: { ...report, views }, other: less }) });
  }
  await gathered?.done();
  const origin = `pull-request/${pr}/${originOf(candidate)}`;
  await record(
    deps,
    target,
    { job: comparing.job, sha: headSha, branch: null, pr, trusted: isTrusted, origin },
    { report, facts: made.facts },
  );
  return { report, other, source };
}

/** Nothing but the word of a person binds an attachment to a commit. */
function attachedNote(artifacts: readonly Artifact[], headSha: string, lang: Lang): string {
  const names = artifacts.map(({ name }) => quoteLiteral(name, 80));
  const sha = headSha.slice(0, 7);
  return lang === 'en'
    ? `The profile was attached to the pull request (${names.join(', ')}); that it is of \`${sha}\` is the word of who attached it.`
    : `profile 来自本 PR 的附件（${names.join('、')}）；它属于 \`${sha}\` 仅为上传者所述。`;
}

const NO_METRICS: ProfileMetrics = { stepTimeMs: null, freeShare: null, exposedMs: null, top: [] };

/** Names what a profile was read from: the artifacts of another attempt of a run are others. */
export function originOf({ run, artifacts }: Candidate): string {
  if (run.id === 0) return `upload/${run.headSha}/${artifacts.map(({ id, place }) => `${place?.kind}-${id}`).join('-')}`.slice(0, 300);
  return `run/${run.id}/${Math.max(...artifacts.map(({ id }) => id))}`;
}

/** Keeps what an analysis found for the history of the repository; null: nothing, and that is remembered, too. */
export async function record(
  deps: Dependencies,
  { repository, installationId }: Target,
  of: Pick<KeptProfile, 'job' | 'sha' | 'branch' | 'pr' | 'trusted' | 'origin'>,
  found: Pick<Analysed, 'report' | 'facts'> | null,
): Promise<void> {
  const metrics = found === null ? NO_METRICS : profileMetrics(found.report);
  const facts = found === null || metrics.stepTimeMs === null ? null : found.facts;
  const kept = facts === null ? null : { schema: FACTS_SCHEMA, bytes: facts };
  await deps.store.profiles.put({ repoId: repository.id, installationId, recordedAt: deps.now(), metrics, ...of }, kept);
}

interface Analysing {
  readonly artifacts: readonly Artifact[];
  /** The artifacts have been read by others already. */
  readonly gathered?: Gathered | null;
  readonly config: Config;
  readonly source: SourceFiles | null;
  readonly more?: RepositorySource['more'];
  readonly progress: Pick<Progress, 'tell'>;
  readonly baseline: Baseline | null;
  readonly keepsFacts: boolean;
}

interface Analysed extends Both {
  /** Gzipped facts.json, as the analysis process wrote it; null: too large, or not wanted. */
  readonly facts: Uint8Array | null;
}

/** Fetches a profile and analyses it, against a baseline where there is one. Needs a slot. */
export async function analyseArtifacts(deps: Dependencies, octokit: Octokit, target: Target, what: Analysing): Promise<Analysed> {
  try {
    return await fetchAndAnalyse(deps, octokit, target, what, true);
  } catch (error) {
    if (!(error instanceof AdviseError) || error.code !== NOT_FETCHED) throw error;
    deps.log.error({ err: error, repository: target.repository.id }, 'a file was left out that an importer opens');
    return fetchAndAnalyse(deps, octokit, target, what, false);
  }
}

async function fetchAndAnalyse(
  deps: Dependencies,
  octokit: Octokit,
  target: Target,
  { artifacts, gathered = null, config, source, more, progress, baseline, keepsFacts }: Analysing,
  mayBeParts: boolean,
): Promise<Analysed> {
  await mkdir(deps.scratch, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(deps.scratch, 'job-'));
  try {
    const onBytes = (done: number, total: number): void => progress.tell({ kind: 'download', bytes: { done, total } });
    const { paths, partial } = await deps.timed('fetch', async () =>
      gathered === null
        ? fetchArtifacts(deps, { octokit, target, artifacts, folder, mayBeParts, onBytes })
        : { paths: await gathered.write(folder), partial: [] },
    );
    deps.killPoint('after-download');
    const { lang, thresholds, disabled_rules: disabledRules, gate, job } = config;
    const keep = keepsFacts ? { path: join(folder, 'facts.json.gz'), maxBytes: MAX_FACTS_BYTES } : null;
    const { texts, ...report } = await deps.analysis.analyse(
      {
        paths,
        partial,
        baseline: baseline === null ? [] : await writeBaseline(deps.store.profiles, baseline, folder),
        keep,
        // The details page shows where in time the causes are.
        options: { lang, thresholds, disabledRules, gate, job, timeline: deps.links !== null },
        source,
        // Its reader may be asked for the language.
        inBoth: deps.links !== null,
      },
      {
        signal: deps.signal,
        onStarted: () => deps.killPoint('during-analysis'),
        onProgress: (step) => progress.tell(toStep(step)),
        ...(more === undefined ? {} : { onNamed: more }),
      },
    );
    return { report, other: texts === undefined ? null : inOther(report, texts), facts: keep === null ? null : await readKept(keep) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What the analysis process left to be kept; null when it left nothing, or more than it may. */
async function readKept({ path, maxBytes }: { path: string; maxBytes: number }): Promise<Uint8Array | null> {
  const info = await lstat(path).catch(() => null);
  return info?.isFile() && info.size <= 2 * maxBytes ? readFile(path) : null;
}

function toStep({ phase, done, total, ranks }: AnalysisProgress): RunningStep {
  return phase === 'diagnose' ? { kind: 'diagnose' } : { kind: 'read', bytes: { done, total }, ranks: ranks ?? { done: 0, total: 0 } };
}

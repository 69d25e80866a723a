import { type JobSettings, jobOfArtifact, jobsOf, touchedJobs } from '../../config/jobs.ts';
import type { Unusable } from '../../config/parse.ts';
import { CONFIG_PATH, type Config, DEFAULT_CONFIG } from '../../config/schema.ts';
import { type Octokit, PERMISSIONS, statusOf } from '../../github/client.ts';
import { isCut, listChangedFiles } from '../../github/diff.ts';
import { limitOf } from '../../github/limits.ts';
import type { DesiredCheck } from '../../github/publish/check.ts';
import { type PullRequest, readPullRequest } from '../../github/pull-requests.ts';
import type { Report } from '../../model/report.ts';
import { type AwaitedJob, renderAwaited } from '../../render/awaited.ts';
import { renderUntouched } from '../../render/jobs.ts';
import type { CheckRecord } from '../../store/ports.ts';
import { asAccepted } from './accepted.ts';
import { isAttached } from './candidate.ts';
import {
  buttons,
  type CheckPlace,
  concludeOpenCheck,
  ensureCheck,
  openCheck,
  plainCheck,
  sayAgain,
  withdraw,
  writeCheck,
} from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import { findElsewhere } from './find-elsewhere.ts';
import { findProfile, findWanted, listsOf, type Search } from './find-profile.ts';
import { type Analysis, failure, noProfile, readBoth, sourceOf, tellProfile } from './make-report.ts';
import { QUEUE_PR } from './merge-queue.ts';
import { startProgress } from './progress.ts';
import { type JobsStatement, noteAwaited, type Publication, publish } from './publish.ts';
import { recordMergeBase } from './record-branch.ts';
import type { Target } from './request.ts';
import { problemsIn, readSettings } from './settings.ts';

/** `waiting`: another run of the commit has not finished yet. */
export type AnalysisOutcome = 'published' | 'waiting' | 'superseded' | 'gone';

/** Analyses the profile of a commit and publishes what was found; every way out leaves the check concluded or rightly waiting. */
export async function analysePullRequest(deps: Dependencies, analysis: Analysis): Promise<AnalysisOutcome> {
  const { target, pr, headSha } = analysis;
  const { repository, installationId } = target;
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, repository, pr);
  const place = { target, sha: headSha, pr };
  if (pull === null) return 'gone';
  if (pull.headSha !== headSha || pull.state !== 'open') {
    await withdraw(deps, place, pull.headSha === headSha ? 'closed' : 'superseded');
    if (analysis.isAsked) await sayAgain(deps, place);
    return 'superseded';
  }

  const settings = await readSettings(deps, target, pull.baseRef, octokit);
  deps.killPoint('config-read');
  if (!settings.ok) {
    await publishConfigProblem(deps, analysis, pull, settings);
    return 'published';
  }
  const config = settings.value;
  const check = await ensureCheck(deps, place, await openCheck(deps, place, config.lang, 'waiting'), config.deadline_minutes);
  const publication = {
    target,
    pull,
    sha: headSha,
    lang: config.lang,
    isLangSaid: settings.keys.has('lang'),
    comment: config.comment,
    suggestions: config.suggestions,
    isAsked: analysis.isAsked,
    wantsChanges: analysis.isAsked && analysis.mayReuse,
    checkUrl: check.url,
    source: new Map<string, string>(),
    isWord: analysis.wanted?.attachment !== undefined,
  } satisfies Omit<Publication, 'statement'>;
  const jobs = jobsOf(config);
  if (config.jobs !== null) return analyseJobs(deps, octokit, analysis, jobs, { check, publication });
  const [job] = jobs;
  const hasNewBase = analysis.hasNewBase === true;
  if (check.hasReport && !hasNewBase && (await sayKept(deps, octokit, analysis, job!, publication))) return 'published';

  const search = await searchFor(octokit, analysis, pull, config);
  deps.killPoint('artifact-listed');
  // Where the profile is gone, or another one is under way, the new base at least judges what is known.
  const isKnown = search.kind !== 'found' && check.hasReport && hasNewBase;
  if (isKnown && (await sayKept(deps, octokit, analysis, job!, publication))) return 'published';
  if (search.kind === 'running') return sayAwaited(deps, place, check, config, [awaitedOf(job!, search)]);
  if (search.kind === 'none') {
    // A workflow without a profile says nothing about a commit that another workflow has profiled.
    if (check.hasReport && !analysis.isAsked) return 'published';
    // Nobody asked and nothing has just finished: the workflow may not have been queued yet. The deadline sees to the rest.
    if (!analysis.isAsked && ((analysis.run === null && !hasNewBase) || search.reason.kind === 'no-run')) return 'waiting';
    await publish(deps, { ...publication, statement: noProfile(search.reason, search.workflow, config) });
    return 'published';
  }

  await recordMergeBase(deps, octokit, target, pull, jobs);
  const progress = startProgress(deps, place, check.checkRunId, config.lang);
  const told = tellProfile(deps, octokit, analysis, { pull, candidate: search.candidate, job: job!, progress });
  const { statement, source } = await told.finally(() => progress.stop());
  // Also where its artifact has expired.
  const isGone = check.hasReport && hasNewBase && statement.kind !== 'report';
  if (isGone && (await sayKept(deps, octokit, analysis, job!, publication))) return 'published';
  const isWord = isAttached(search.candidate);
  const say = (): Promise<void> => publish(deps, { ...publication, isWord, source: new Map(source?.files), statement });
  await say();
  await progress.settle(say);
  return 'published';
}

/**
 * Says the kept report of a commit again, with what was acknowledged meanwhile or with the changes somebody asked for. Its artifact may be
 * gone by now. False: something new is to be looked at, or nothing is kept.
 */
async function sayKept(
  deps: Dependencies,
  octokit: Octokit,
  analysis: Analysis,
  job: JobSettings,
  publication: Omit<Publication, 'statement'>,
): Promise<boolean> {
  const { target, pr, headSha, run, wanted, isAsked, mayReuse, restates } = analysis;
  if (run !== null || wanted !== null || !mayReuse || !(isAsked || restates === true)) return false;
  const kept = readBoth(await deps.store.reports.latest(target.repository.id, headSha, pr));
  if (kept === null || kept.report.lang !== publication.lang || kept.report.verdict.outcome === 'no-data') return false;
  const accepted = (of: Report): Promise<Report> => asAccepted(deps, target.repository.id, pr, of, job);
  const report = await accepted(kept.report);
  const other = kept.other === null ? null : await accepted(kept.other);
  const source = await sourceOf(octokit, analysis);
  await publish(deps, { ...publication, source: new Map(source.files), statement: { kind: 'report', report, other } });
  return true;
}

/** Artifacts of a commit, each for the job it belongs to; what is told of all of them is one comment and one check. */
async function analyseJobs(
  deps: Dependencies,
  octokit: Octokit,
  analysis: Analysis,
  jobs: readonly JobSettings[],
  { check, publication }: { check: CheckRecord & { checkRunId: number }; publication: Omit<Publication, 'statement'> },
): Promise<AnalysisOutcome> {
  const { target, pr, headSha, isAsked, wanted } = analysis;
  const place = { target, sha: headSha, pr };
  const { lang } = publication;
  const files = await listChangedFiles(octokit, target.repository, pr);
  const changed = files.flatMap(({ path, previousPath }) => (previousPath === undefined ? [path] : [path, previousPath]));
  const concerned = isCut(files) ? jobs : touchedJobs(jobs, changed);
  // Who asks all the same is shown what is there.
  const isCurious = isAsked && concerned.length === 0;
  const touched = isCurious ? jobs : concerned;
  const untouched = jobs.filter((job) => !touched.includes(job)).map(({ name }) => name ?? '');
  const sayUntouched = async (names: readonly string[]): Promise<AnalysisOutcome> => {
    await writeCheck(deps, place, { ...renderUntouched(names, lang), actions: buttons(['rerun'], lang), lang }, false);
    return 'published';
  };
  if (touched.length === 0) return sayUntouched(untouched);

  let found: { job: JobSettings; search: Search }[] = [];
  const lists = listsOf(octokit, target, publication.pull);
  for (const job of touched) {
    const isOwn = (artifact: string): boolean => (jobOfArtifact(jobs, artifact) ?? jobs[0]) === job;
    found.push({ job, search: await searchFor(octokit, analysis, publication.pull, job.config, { lists, isOwn }) });
  }
  // Who points at one upload asks for nothing else.
  const there = found.filter(({ search }) => search.kind === 'found');
  if (isCurious || (wanted !== null && there.length > 0)) found = there;
  if (isCurious && there.length === 0) return sayUntouched(jobs.map(({ name }) => name ?? ''));
  deps.killPoint('artifact-listed');
  const isOpen = ({ search }: (typeof found)[number]): boolean =>
    search.kind === 'running' || (search.kind === 'none' && search.reason.kind === 'no-run' && !isAsked);
  const isNothing = found.every(({ search }) => search.kind !== 'found');
  if (analysis.isFinal !== true) {
    if (isNothing && !isAsked && check.hasReport && !found.some(isOpen)) return 'published';
    if (found.some(isOpen) || (isNothing && !isAsked && analysis.run === null)) {
      const awaited = found.map(({ job, search }) => awaitedOf(job, search));
      await noteAwaited(deps, target, publication.pull, lang, awaited);
      return sayAwaited(deps, place, check, publication, awaited);
    }
  }

  await recordMergeBase(deps, octokit, target, publication.pull, touched);
  const progress = startProgress(deps, place, check.checkRunId, lang);
  const told: JobsStatement['jobs'][number][] = [];
  const source = new Map<string, string>();
  try {
    for (const { job, search } of found) {
      const name = job.name ?? '';
      if (search.kind !== 'found') {
        const reason = search.kind === 'none' ? search.reason : { kind: 'no-run' as const, deadlineMinutes: job.config.deadline_minutes };
        told.push({ name, statement: noProfile(reason, search.kind === 'none' ? search.workflow : null, job.config) });
        continue;
      }
      const one = await tellProfile(deps, octokit, analysis, { pull: publication.pull, candidate: search.candidate, job, progress });
      for (const [path, text] of one.source?.files ?? []) source.set(path, text);
      told.push({ name, statement: one.statement });
    }
  } finally {
    await progress.stop();
  }
  const statement: JobsStatement = { kind: 'jobs', jobs: told, untouched };
  const isWord = publication.isWord === true || there.some(({ search }) => search.kind === 'found' && isAttached(search.candidate));
  const say = (): Promise<void> => publish(deps, { ...publication, isWord, source, statement });
  await say();
  await progress.settle(say);
  return 'published';
}

/** How it stands with the profile of a job. */
function awaitedOf({ name, config }: JobSettings, search: Search): AwaitedJob {
  const common = { name, isNamed: config.workflows !== null, runs: search.kind === 'running' ? search.runs : [] };
  if (search.kind === 'running') {
    const started = search.runs.filter(({ isStarted }) => isStarted);
    if (started.length > 0) return { ...common, state: 'started', runs: started };
    return { ...common, state: search.runs.every(({ isHeld }) => isHeld) ? 'held' : 'queued' };
  }
  if (search.kind === 'found') return { ...common, state: 'arrived' };
  return { ...common, state: search.reason.kind === 'no-run' ? 'none' : 'missed' };
}

/** A check that waits says for what: which runs are under way, and of several jobs which have arrived. */
async function sayAwaited(
  deps: Dependencies,
  place: CheckPlace,
  check: CheckRecord,
  { lang }: Pick<Config, 'lang'>,
  jobs: readonly AwaitedJob[],
): Promise<'waiting'> {
  if (check.phase !== 'queued') return 'waiting';
  const rendered = renderAwaited(jobs, place.sha, lang);
  if (rendered === null) return 'waiting';
  const { isUnderway, ...text } = rendered;
  const status = isUnderway ? 'in_progress' : 'queued';
  const desired: DesiredCheck = { ...text, status, conclusion: null, text: '', annotations: [], actions: [], lang };
  // Every run of the commit that ends comes by here.
  if (check.said !== JSON.stringify(desired)) await writeCheck(deps, place, desired, false, 'queued');
  return 'waiting';
}

/** The profile to analyse. An upload that was pointed at and is no more there has been deleted since the command was taken. */
async function searchFor(
  octokit: Octokit,
  analysis: Analysis,
  pull: PullRequest,
  config: Config,
  of: Parameters<typeof findProfile>[4] = {},
): Promise<Search> {
  const { target, wanted } = analysis;
  if (wanted === null) {
    const search = await findProfile(octokit, analysis, pull, config, of);
    const candidate = search.kind === 'found' ? null : await findElsewhere(octokit, analysis, config);
    return candidate === null ? search : { kind: 'found', candidate };
  }
  const found = await findWanted(octokit, target, pull, wanted, config);
  const { isOwn = () => true } = of;
  const artifacts = 'candidate' in found ? found.candidate.artifacts.filter(({ name }) => isOwn(name)) : [];
  if ('candidate' in found && artifacts.length > 0) return { kind: 'found', candidate: { ...found.candidate, artifacts } };
  return { kind: 'none', reason: { kind: 'no-match', uploaded: [] }, workflow: null };
}

async function publishConfigProblem(deps: Dependencies, analysis: Analysis, pull: PullRequest, settings: Unusable): Promise<void> {
  const { target, headSha } = analysis;
  const { lang } = settings;
  const place = { target, sha: headSha, pr: pull.number };
  const check = await ensureCheck(deps, place, await openCheck(deps, place, lang, 'waiting'), DEFAULT_CONFIG.deadline_minutes);
  const problems = problemsIn(settings, lang);
  const file = problems[0]?.file ?? CONFIG_PATH;
  await publish(deps, {
    target,
    pull,
    sha: headSha,
    lang,
    comment: 'on-findings',
    suggestions: 'off',
    isAsked: analysis.isAsked,
    checkUrl: check.url,
    source: new Map(),
    statement: {
      kind: 'other',
      view: (base) => ({ ...base, state: 'config-invalid', file, problems }),
    },
  });
}

/** Concludes a check whose deadline has passed, unless a profile is there after all. */
export async function concludeOverdue(deps: Dependencies, target: Target, pr: number, sha: string): Promise<void> {
  const check = await deps.store.checks.find(target.repository.id, sha, pr);
  if (check === null || check.phase === 'completed') return;
  if (pr === QUEUE_PR) return concludeOpenCheck(deps, { target, sha, pr }, plainCheck('queue-missing', 'en'));
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, target.repository, pr);
  const place = { target, sha, pr };
  if (pull === null || (pull.state !== 'open' && pull.headSha === sha)) return withdraw(deps, place, 'closed');
  const settings = await readSettings(deps, target, pull.baseRef, octokit);
  const config = settings.ok ? settings.value : DEFAULT_CONFIG;
  if (pull.headSha !== sha) return withdraw(deps, place, 'superseded', config.lang);
  // The event that announced the profile may have been lost.
  const common = { run: null, wanted: null, isAsked: false, mayReuse: false, isRetry: false, isFinal: true };
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

/**
 * The deadline has passed, and looking for a profile has failed each time: the check is concluded all the same, as settings say where they
 * can be read. False: not even that.
 */
export async function concludeAnyhow(deps: Dependencies, target: Target, pr: number, sha: string): Promise<boolean> {
  try {
    const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
    // Where GitHub does not answer at all, it is asked again later.
    const pull = await readPullRequest(octokit, target.repository, pr);
    const settings = pull === null ? null : await readSettings(deps, target, pull.baseRef, octokit).catch(() => null);
    const config = settings?.ok === true ? settings.value : DEFAULT_CONFIG;
    await concludeOpenCheck(deps, { target, sha, pr }, { ...plainCheck('late', config.lang), conclusion: config.on_missing });
    return true;
  } catch (error) {
    if (limitOf(error) !== null) throw error;
    deps.log.warn({ err: error, repository: target.repository.id, pr }, 'a check that is overdue could not be concluded');
    return false;
  }
}

/** Last resort after the last try: says on the check, and on the comment if there is one, that it did not work. */
export async function publishGivingUp(deps: Dependencies, analysis: Analysis, correlationId: string, cause: unknown): Promise<void> {
  const { target, pr, headSha } = analysis;
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, target.repository, pr);
  if (pull === null) return;
  const settings = await readSettings(deps, target, pull.baseRef, octokit).catch((error: unknown) => {
    if (statusOf(error) === null || limitOf(error) !== null) throw error;
    return { ok: true, value: DEFAULT_CONFIG } as const;
  });
  const config = settings.ok ? settings.value : DEFAULT_CONFIG;
  const isFull = isDiskFull(cause);
  const reason =
    config.lang === 'en'
      ? `the analysis did not finish after several tries${isFull ? ': the disk of the server is full' : ''}`
      : `多次尝试后分析仍未完成${isFull ? '：服务器磁盘已满' : ''}`;
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
    isWord: analysis.wanted?.attachment !== undefined,
    statement: failure(reason, hint, correlationId),
  });
}

/** The analysis process tells its errors as text. */
function isDiskFull(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++)
    if (/\b(?:ENOSPC|EDQUOT|SQLITE_FULL)\b|database or disk is full/.test(at.message)) return true;
  return false;
}

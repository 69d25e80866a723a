import { AdviseError } from '../../base/errors.ts';
import { matchesAny } from '../../config/glob.ts';
import { type JobSettings, jobKeyOf, jobOfArtifact, jobsOf } from '../../config/jobs.ts';
import { mergeBaseOf } from '../../github/ancestors.ts';
import { chooseArtifacts, listArtifacts } from '../../github/artifacts.ts';
import { type Octokit, PERMISSIONS, type RepositoryRef } from '../../github/client.ts';
import type { Task } from '../../github/intake.ts';
import { limitOf } from '../../github/limits.ts';
import { listRuns, type PullRequest, type RunRef } from '../../github/pull-requests.ts';
import { FACTS_SCHEMA } from '../../model/facts-schema.ts';
import { Report } from '../../model/report.ts';
import { renderCheck } from '../../render/check.ts';
import { renderJobsCheck } from '../../render/jobs.ts';
import type { ReportComment } from '../../render/views.ts';
import { evaluateGate } from '../../report/gate.ts';
import { ancestryOf, type Comparing, findBaseline, withHistory } from './baseline.ts';
import { needOf } from './budget.ts';
import type { Candidate } from './candidate.ts';
import { plainCheck, writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import { isRunAccepted } from './find-profile.ts';
import { keepPage } from './keep-page.ts';
import { analyseArtifacts, type Both, isAboutUpload, originOf, record } from './make-report.ts';
import { QUEUE_PR, readQueueRef } from './merge-queue.ts';
import { gather } from './portions.ts';
import { detailsOf } from './publish.ts';
import type { Target } from './request.ts';
import { readSettings } from './settings.ts';
import { subjectOf } from './subject.ts';

type RunTask = Extract<Task, { kind: 'run-completed' }>;

/** Events of runs that only those who may write to the repository can set off. */
const BRANCH_EVENTS = ['push', 'workflow_dispatch', 'schedule', 'repository_dispatch', 'merge_group'];

/**
 * Whether a run is of a branch of the repository itself, so that its profile may be a baseline: never one of a fork, and never one that a
 * pull request set off. Of branches other than the default one the settings decide, and most belong to a pull request.
 */
export function isBranchRun({ repository, run, defaultBranch }: Omit<RunTask, 'kind' | 'installationId'>, isAlone: boolean): boolean {
  if (!BRANCH_EVENTS.includes(run.event) || run.headRepoId !== repository.id || run.headBranch === null) return false;
  return isAlone || run.headBranch === defaultBranch;
}

/** Asks for the profiles of a branch's run to be kept; the same origin asks once. */
export async function requestRecording(deps: Dependencies, task: RunTask, origin: string): Promise<void> {
  const subject = subjectOf.branchRun(task.repository, task.run.id, task.run.attempt);
  await deps.store.requests.add({ subject, kind: 'record', origin, payload: { task } });
  await deps.queue.poke(subject);
}

/**
 * Takes in the profile of a pull request's merge base when GitHub has it and we do not: the App was installed after the run, or the event
 * was lost. Best effort; without it the pull request is compared with what there is.
 */
export async function recordMergeBase(
  deps: Dependencies,
  octokit: Octokit,
  target: Target,
  pull: PullRequest,
  jobs: readonly JobSettings[],
): Promise<void> {
  const { repository, installationId } = target;
  try {
    const mergeBase = await mergeBaseOf(octokit, repository, pull.baseRef, pull.headSha);
    if (mergeBase === null || mergeBase === pull.headSha) return;
    const kept = await Promise.all(jobs.map((job) => deps.store.profiles.ofCommits(repository.id, jobKeyOf(job), [mergeBase])));
    if (kept.every((profiles) => profiles.some(({ factsSchema }) => factsSchema === FACTS_SCHEMA))) return;
    for (const { run: found, completed } of await listRuns(octokit, repository, mergeBase)) {
      const run = { ...found, listed: [] };
      const task = { kind: 'run-completed', installationId, repository, run, defaultBranch: pull.baseRef } as const;
      if (completed && run.headBranch === pull.baseRef && isBranchRun(task, true)) await recordBranchRun(deps, task);
    }
  } catch (error) {
    deps.signal.throwIfAborted();
    if (limitOf(error) !== null) throw error;
    deps.log.warn({ err: error, repository: repository.id, pr: pull.number }, 'the merge base could not be looked for');
  }
}

/** Keeps the profiles of a branch's run, each for its job, and judges the commit of a merge queue that waits for it. */
export async function recordBranchRun(deps: Dependencies, task: RunTask): Promise<void> {
  const { installationId, repository, run } = task;
  const target: Target = { installationId, repository };
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.read);
  const queue = readQueueRef(run.headBranch);
  // The commit of a queue holds changes that are being judged, perhaps of the settings themselves.
  const settings = await readSettings(deps, target, queue?.base ?? run.headSha, octokit);
  if (!settings.ok) {
    deps.log.warn({ repository: repository.id, run: run.id }, 'settings of a branch cannot be used, its profile is not kept');
    return;
  }
  const config = settings.value;
  const branch = run.headBranch!;
  if (queue === null && branch !== task.defaultBranch && !matchesAny(config.baseline_branches, branch)) return;

  const jobs = jobsOf(config);
  const all = await listArtifacts(octokit, repository, run.id);
  const check = await deps.store.checks.find(repository.id, run.headSha, QUEUE_PR);
  // The event that asks for the check may come after the one of the run.
  const isJudged = queue !== null && config.merge_queue === 'profile' && check?.phase !== 'completed';
  const told: { name: string; view: ReportComment }[] = [];
  const pages = new Map<Report, string>();
  for (const job of jobs) {
    if (!isRunAccepted(job.config, run)) continue;
    const artifacts = chooseArtifacts(all, ({ name }) => jobOfArtifact(jobs, name) === job, { id: run.id, headSha: run.headSha });
    if (artifacts.length === 0) continue;
    const { id, name, htmlUrl, headSha } = run;
    const candidate: Candidate = { run: { id, name, htmlUrl, headSha }, artifacts, uploaded: [] };
    const report = await recordOne(deps, octokit, target, { candidate, job, branch, base: isJudged ? queue.base : null });
    if (report === null || !isJudged) continue;
    const subject = { repoId: repository.id, pr: QUEUE_PR, sha: run.headSha, job: job.name };
    // The commit is gone when the queue is done, and links to its lines with it.
    const place = { ...subject, shownPr: queue.pr, isLangSaid: settings.keys.has('lang'), htmlBase: null, fromFork: false };
    const page = await keepPage(deps, report.report, place, report.other);
    if (page !== null) pages.set(report.report, page);
    told.push({ name: job.name ?? '', view: await viewOf(deps, report.report, queue.pr, run.headSha, page) });
  }
  if (!isJudged) return;
  const place = { target, sha: run.headSha, pr: QUEUE_PR };
  if (told.length === 0) {
    // The queue waits for nothing that can still come. Written, not concluded, as the event that opens the check may come after this one.
    const isLast = await isLastOfQueue(octokit, run, repository, jobs);
    if (isLast) await writeCheck(deps, place, plainCheck('queue-missing', config.lang), false);
    deps.log.info({ repository: repository.id, run: run.id, isLast }, 'a run of a merge queue ended without a profile');
    return;
  }
  const { view } = told[0]!;
  const annotatable = (): boolean => false;
  const rendered =
    config.jobs === null
      ? renderCheck({ comment: view, annotatable })
      : renderJobsCheck({ ...view, state: 'jobs', jobs: told, untouched: [] }, annotatable);
  await writeCheck(deps, place, { ...rendered, actions: [], ...detailsOf(pages) }, true);
}

/** Whether no other run that may still upload the profile of a queue's commit is under way. */
async function isLastOfQueue(
  octokit: Octokit,
  run: RunTask['run'],
  repository: RepositoryRef,
  jobs: readonly JobSettings[],
): Promise<boolean> {
  const isAccepted = (one: RunTask['run'] | RunRef): boolean =>
    one.event === 'merge_group' && jobs.some((job) => isRunAccepted(job.config, one));
  if (!isAccepted(run)) return false;
  const runs = await listRuns(octokit, repository, run.headSha);
  return runs.every(({ run: one, completed }) => completed || one.id === run.id || !isAccepted(one));
}

interface Recording {
  readonly candidate: Candidate;
  readonly job: JobSettings;
  readonly branch: string;
  /** Branch to compare with and to apply the gate against; null: only kept. */
  readonly base: string | null;
}

/** null: the upload cannot be used, which is nobody's fault who waits here. */
async function recordOne(deps: Dependencies, octokit: Octokit, target: Target, recording: Recording): Promise<Both | null> {
  const { candidate, job, branch, base } = recording;
  const { headSha } = candidate.run;
  const { profiles } = deps.store;
  const key = jobKeyOf(job);
  const origin = originOf(candidate);
  const known = (await profiles.ofCommits(target.repository.id, key, [headSha])).find((one) => one.origin === origin);
  // Facts of another version are made anew while the upload is there; without facts it was of no use, or is too old.
  if (base === null && known !== undefined && (known.factsSchema === null || known.factsSchema === FACTS_SCHEMA)) return null;

  const comparing: Comparing = { repository: target.repository, job: key, baseRef: base ?? branch, headSha };
  const compared = base === null ? null : await findBaseline(profiles, ancestryOf(octokit, comparing), comparing, deps.now());
  const baseline = compared !== null && 'baseline' in compared ? compared.baseline : null;
  try {
    const { config } = job;
    const progress = { tell: () => undefined };
    const what = { artifacts: candidate.artifacts, config, source: null, progress, baseline, keepsFacts: true };
    const gathered = await gather(deps, target, {
      artifacts: candidate.artifacts,
      progress,
      onSpread: async () => undefined,
    });
    const made = await deps.analysisSlot(
      () => analyseArtifacts(deps, octokit, target, { ...what, gathered }),
      needOf(gathered === null ? candidate.artifacts : []),
    );
    await gathered?.done();
    const judge = (of: Report): Report => Report.parse({ ...of, gate: of.gate ?? evaluateGate(of, config.gate) });
    const judged = judge(made.report);
    const other = made.other === null ? null : judge(made.other);
    await record(deps, target, { job: key, sha: headSha, branch, pr: null, trusted: true, origin }, { report: judged, facts: made.facts });
    deps.log.info({ repository: target.repository.id, branch, sha: headSha, job: key }, 'a profile of a branch is kept');
    if (compared === null) return { report: judged, other };
    const told = (of: Report): Promise<Report> => withHistory(profiles, comparing, compared, of);
    return { report: await told(judged), other: other === null ? null : await told(other) };
  } catch (error) {
    if (deps.signal.aborted || !(error instanceof AdviseError || isAboutUpload(error))) throw error;
    deps.log.warn({ err: error, repository: target.repository.id, branch, sha: headSha }, 'a profile of a branch cannot be used');
    // Or every pull request from here would fetch it again.
    const isForToday = error instanceof AdviseError && error.code === 'daily-limit';
    if (!isForToday) await record(deps, target, { job: key, sha: headSha, branch, pr: null, trusted: true, origin }, null);
    return null;
  }
}

async function viewOf(deps: Dependencies, report: Report, pr: number, sha: string, page: string | null): Promise<ReportComment> {
  const { slug } = await deps.github.identity();
  const links = { htmlBase: null, report: page };
  const none = { suggestions: {}, previous: [], baselineMissing: false, fromFork: false, pendingSha: null };
  return { state: 'report', lang: report.lang, appSlug: slug, pr, sha, links, report, reportHash: '', ...none };
}

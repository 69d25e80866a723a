import { randomUUID } from 'node:crypto';
import type { StandingAcknowledgement, StatusFacts } from '../../commands/command.ts';
import { executeCommands } from '../../commands/execute.ts';
import { matchesAny } from '../../config/glob.ts';
import { DEFAULT_CONFIG } from '../../config/schema.ts';
import { listArtifacts } from '../../github/artifacts.ts';
import { type Octokit, PERMISSIONS, refusalOf, statusOf } from '../../github/client.ts';
import type { Task } from '../../github/intake.ts';
import { limitOf } from '../../github/limits.ts';
import { type LogContext, withLogContext } from '../../github/log.ts';
import { permissionOf, type Reaction, react } from '../../github/permission.ts';
import {
  findPullRequests,
  findPullRequestsOfHead,
  isRunOfHead,
  listRuns,
  type PullRequest,
  readPullRequest,
} from '../../github/pull-requests.ts';
import type { ShownFinding } from '../../model/acknowledgement.ts';
import type { L10n, Lang } from '../../model/lang.ts';
import { Report } from '../../model/report.ts';
import { plain, prose } from '../../render/escape.ts';
import type { CheckRecord, WorkRequest } from '../../store/ports.ts';
import { dateOf } from './accepted.ts';
import { analysePullRequest, concludeAnyhow, concludeOverdue, publishGivingUp } from './analyse-pull-request.ts';
import { ensureCheck, isSetAside, openCheck, sayAgain, withdraw, writeCheck } from './check-run.ts';
import { checkSettings } from './check-settings.ts';
import { acknowledgeFindings, standingClients } from './command-client.ts';
import type { Dependencies } from './dependencies.ts';
import { findWanted, isRunAccepted } from './find-profile.ts';
import type { Analysis } from './make-report.ts';
import { handleMergeGroup, QUEUE_PR } from './merge-queue.ts';
import { unlessOvertaken } from './overtaken.ts';
import { handlePortion } from './portions.ts';
import { showPending } from './publish.ts';
import { sayGoesOn, sayPutOff, unlessLimited } from './put-off.ts';
import { isBranchRun, recordBranchRun, requestRecording } from './record-branch.ts';
import { renewPages } from './renew-pages.ts';
import { giveReply } from './reply.ts';
import { type AnalyseRequest, PullRequestRequest, type Target, TaskRequest } from './request.ts';
import { readSettings } from './settings.ts';
import { shareOf, worstOf } from './shared-check.ts';
import { subjectOf } from './subject.ts';

/** A deadline that could not be acted on is looked at again after this. */
const OVERDUE_AGAIN_MS = 15 * 60_000;
/** The same where nothing can be written for the time being: archived, suspended, removed. Unsuspending brings it forward. */
const HOPELESS_AGAIN_MS = 24 * 3600 * 1000;

type TaskOf<Kind extends Task['kind']> = Extract<Task, { kind: Kind }>;

/** Asks for an analysis; the same origin asks once. */
export async function requestAnalysis(
  deps: Dependencies,
  origin: string,
  payload: Omit<AnalyseRequest, 'kind' | 'wanted' | 'mayReuse' | 'hasNewBase'> &
    Partial<Pick<AnalyseRequest, 'wanted' | 'mayReuse' | 'hasNewBase'>>,
): Promise<void> {
  const subject = subjectOf.pullRequest(payload.repository, payload.pr);
  await deps.store.requests.add({
    subject,
    kind: 'analyse',
    origin,
    payload: { kind: 'analyse', wanted: null, mayReuse: false, hasNewBase: false, ...payload },
  });
  await deps.queue.poke(subject);
}

/** A run has started: a check that waits for a profile says so, once. Most runs are of no such commit, and nothing is asked of GitHub. */
async function handleRunStart(
  deps: Dependencies,
  { installationId, repository, run }: TaskOf<'run-started'>,
  origin: string,
): Promise<void> {
  for (const check of await deps.store.checks.ofCommit(repository.id, run.headSha)) {
    const { pr, phase } = check;
    if (pr === QUEUE_PR || phase !== 'queued') continue;
    const { status, summary } = shareOf(check).said;
    if (status === 'in_progress' && summary.includes(String(plain(run.name, 80)))) continue;
    const common = { installationId, repository, pr, headSha: run.headSha, run: null, isAsked: false, commentId: null };
    await requestAnalysis(deps, origin, common);
  }
}

/** A finished run: find its pull requests. None: closed or pushed over since, then only an open check is concluded. */
async function handleRun(deps: Dependencies, task: TaskOf<'run-completed'>, origin: string): Promise<void> {
  const { installationId, repository, run } = task;
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.resolve);
  const pulls = await findPullRequests(octokit, repository, run);
  if (isBranchRun(task, pulls.length === 0)) await requestRecording(deps, task, origin);
  if (pulls.length === 0)
    deps.log.info({ repository: repository.id, run: run.id, sha: run.headSha }, 'run belongs to no open pull request');
  for (const { pr } of await deps.store.checks.ofCommit(repository.id, run.headSha)) {
    // The commit of a merge queue has no pull request of its own and is judged elsewhere.
    if (pr === QUEUE_PR || pulls.some(({ number }) => number === pr)) continue;
    const pull = await readPullRequest(octokit, repository, pr);
    if (pull?.state !== 'open' || pull.headSha !== run.headSha) {
      const place = { target: { installationId, repository }, sha: run.headSha, pr };
      await withdraw(deps, place, pull?.headSha === run.headSha ? 'closed' : 'superseded');
    } else if (isRunOfHead(run, pull, repository)) {
      // The same commit on a branch of ours, where a maintainer has had a fork's commit tested.
      const common = { installationId, repository, pr, headSha: run.headSha, run: null, isAsked: false, commentId: null };
      await requestAnalysis(deps, origin, common);
    }
  }
  const { id, name, path, htmlUrl } = run;
  for (const pull of pulls) {
    await requestAnalysis(deps, origin, {
      installationId,
      repository,
      pr: pull.number,
      headSha: run.headSha,
      run: { id, name, path, htmlUrl },
      isAsked: false,
      commentId: null,
    });
  }
}

/**
 * A new head: its check is queued, so that a required check is never missing. A head that is known is one again: reopened, or pushed back to.
 * What was put aside meanwhile is taken up, and what was reported is said again; all the more where the base branch is another one.
 */
async function handleHead(
  deps: Dependencies,
  task: TaskOf<'head-changed'> | TaskOf<'merge-group'> | TaskOf<'rerun'>,
  origin: string,
): Promise<void> {
  const { installationId, repository, headSha } = task;
  const target: Target = { installationId, repository };
  if (task.kind === 'merge-group') return handleMergeGroup(deps, task);
  if (task.kind === 'rerun') return handleRerun(deps, task, origin);
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, repository, task.pr);
  if (pull === null) return;
  const settings = await readSettings(deps, target, pull.baseRef, octokit);
  const config = settings.ok ? settings.value : DEFAULT_CONFIG;
  const isCurrent = pull.headSha === headSha && pull.state === 'open';
  const place = { target, sha: headSha, pr: task.pr };
  // What is left of it on heads of before that others share.
  for (const { sha } of isCurrent ? await deps.store.checks.sharedOfPullRequest(repository.id, task.pr) : [])
    if (sha !== headSha) await withdraw(deps, { ...place, sha }, 'superseded');
  const known = await deps.store.checks.find(repository.id, headSha, task.pr);
  // It may be the head of another pull request, whose check is not to wait for one that has left.
  if (!isCurrent && known === null && (await deps.store.checks.ofCommit(repository.id, headSha)).length > 0) return;
  const waiting = await openCheck(deps, place, config.lang, 'waiting');
  const found = await ensureCheck(deps, place, waiting, config.deadline_minutes);
  let check: CheckRecord = found;
  const hasNewBase = task.again === 'retargeted';
  const isEmpty = isCurrent && known !== null && !check.hasReport && check.phase !== 'in_progress';
  if (isEmpty && (hasNewBase || (check.phase === 'completed' && (await isSetAside(deps, place, found))))) {
    const deadlineAt = deps.now() + config.deadline_minutes * 60_000;
    check = { ...(await writeCheck(deps, place, waiting, false)), deadlineAt };
    await deps.store.checks.put(check);
  }
  if (known === null ? check.phase === 'queued' : isCurrent && (await isToBeSaid(deps, task, check))) {
    // The run may have finished before the pull request was opened; then there is something to analyse already.
    const common = { installationId, repository, pr: task.pr, headSha, run: null, isAsked: false, commentId: null };
    await requestAnalysis(deps, origin, { ...common, mayReuse: check.hasReport || hasNewBase, hasNewBase });
    if (check.phase === 'queued') await showPending(deps, target, pull, config);
  }
  if (pull.headSha === headSha) await checkSettings(deps, target, pull, config.lang);
}

/** Whether a head that is known has more to say than stands there: it has no report, or its pull request shows another one. */
async function isToBeSaid(
  deps: Dependencies,
  { repository, pr, headSha, again }: TaskOf<'head-changed'>,
  check: CheckRecord,
): Promise<boolean> {
  if (!check.hasReport || again !== undefined) return true;
  return (await deps.store.pullRequests.find(repository.id, pr))?.reportedSha !== headSha;
}

/** "Re-run" of GitHub or a button of the check, by somebody whose right is asked for now. */
async function handleRerun(deps: Dependencies, task: TaskOf<'rerun'>, origin: string): Promise<void> {
  const { installationId, repository, headSha, actor } = task;
  const target: Target = { installationId, repository };
  const app = await deps.github.identity();
  if (task.appId !== app.id) return;
  const shares = await deps.store.checks.ofCommit(repository.id, headSha);
  if (shares.some(({ pr }) => pr === QUEUE_PR)) return sayAgain(deps, { target, sha: headSha });
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.command);
  const isWithinLimit = async (login: string): Promise<boolean> => (await takeAsk(deps, repository.id, login, origin)).accepted;
  // A check of before our store was lost is found by its commit.
  const pulls: (PullRequest | null)[] = shares.length === 0 ? await findPullRequestsOfHead(octokit, repository, headSha) : [];
  for (const { pr } of shares) pulls.push(await readPullRequest(octokit, repository, pr));
  // Accepted is what stood above the button: of pull requests that share the commit, the findings of the one that was shown.
  const shownPr = worstOf(shares.map(shareOf))?.pr ?? null;
  const accepted = task.action === 'ack-all' && shownPr !== null ? await openFindings(deps, repository.id, shownPr, headSha) : [];
  for (const pull of pulls) {
    if (pull === null) continue;
    if (task.action === 'ack-all') {
      const isDone = actor !== null && (await acknowledgeAll(deps, octokit, { target, pull, actor, headSha, origin, accepted }));
      if (!isDone) await sayAgain(deps, { target, sha: headSha });
      continue;
    }
    const isHeard = actor === null || ((await mayAsk(octokit, repository, actor, pull.author)) && (await isWithinLimit(actor)));
    if (!isHeard) {
      deps.log.info(
        { repository: repository.id, pr: pull.number, actor, action: task.action },
        'asked again without the right to, or too often',
      );
      await sayAgain(deps, { target, sha: headSha });
      continue;
    }
    deps.log.info({ repository: repository.id, pr: pull.number, actor, action: task.action }, 'asked again');
    const mayReuse = task.action === 'suggest';
    const common = { installationId, repository, pr: pull.number, headSha, run: null, isAsked: true, commentId: null };
    await requestAnalysis(deps, origin, { ...common, mayReuse });
    if (pull.headSha === headSha && task.action === 'rerun') {
      const settings = await readSettings(deps, target, pull.baseRef);
      await checkSettings(deps, target, pull, settings.ok ? settings.value.lang : 'en');
    }
  }
}

/** What is open on a pull request, where its report is of the commit. */
async function openFindings(deps: Dependencies, repoId: number, pr: number, headSha: string): Promise<readonly ShownFinding[]> {
  const state = await deps.store.pullRequests.find(repoId, pr);
  return state?.reportedSha === headSha ? (state.shown ?? []).filter((finding) => finding.state === 'open') : [];
}

/** The button: everything that is open on the commit. Only for who may write, as it may open a gate. False: nothing was done. */
async function acknowledgeAll(
  deps: Dependencies,
  octokit: Octokit,
  {
    target,
    pull,
    actor,
    headSha,
    origin,
    accepted,
  }: { target: Target; pull: PullRequest; actor: string; headSha: string; origin: string; accepted: readonly ShownFinding[] },
): Promise<boolean> {
  const { repository, installationId } = target;
  const permission = await permissionOf(octokit, repository, actor);
  const isAllowed = permission === 'write' || permission === 'admin';
  if (!isAllowed || pull.headSha !== headSha || !(await takeAsk(deps, repository.id, actor, origin)).accepted) {
    deps.log.info(
      { repository: repository.id, pr: pull.number, actor },
      'acknowledged without the right to, too often, or an older commit',
    );
    return false;
  }
  const open = (await openFindings(deps, repository.id, pull.number, headSha)).filter(({ id }) => accepted.some((one) => one.id === id));
  if (open.length === 0) return false;
  await acknowledgeFindings(deps, { target, pull, actor, headSha }, open, { reason: '', until: null });
  const common = { installationId, repository, pr: pull.number, headSha, run: null, commentId: null };
  await requestAnalysis(deps, origin, { ...common, isAsked: false, mayReuse: true });
  return true;
}

/** The author of the pull request, or who may write to the repository at this moment. */
async function mayAsk(octokit: Octokit, repository: Target['repository'], actor: string, author: string): Promise<boolean> {
  if (actor.toLowerCase() === author.toLowerCase()) return true;
  const permission = await permissionOf(octokit, repository, actor);
  return permission === 'write' || permission === 'admin';
}

async function statusFacts(deps: Dependencies, octokit: Octokit, target: Target, pull: PullRequest, headSha: string): Promise<StatusFacts> {
  const { repository } = target;
  const { number: pr } = pull;
  const settings = await readSettings(deps, target, pull.baseRef, octokit);
  const config = settings.ok ? settings.value : DEFAULT_CONFIG;
  const check = await deps.store.checks.find(repository.id, headSha, pr);
  const latest = Report.safeParse(await deps.store.reports.latest(repository.id, headSha, pr));
  const reader = await deps.github.client(target.installationId, repository, PERMISSIONS.read);
  const runs: StatusFacts['runs'][number][] = [];
  for (const { run, completed, held } of (await listRuns(reader, repository, headSha)).slice(0, 10)) {
    if (!isRunOfHead(run, pull, repository)) {
      const ignoredBecause = config.lang === 'en' ? 'ignored, it is of another fork' : '不采用：属于另一个 fork';
      runs.push({ name: run.name, completed, matching: 0, uploaded: 0, ignoredBecause });
      continue;
    }
    if (!isRunAccepted(config, run)) {
      const ignoredBecause =
        config.lang === 'en' ? 'ignored, its file or event is not among those accepted' : '不采用：其文件或触发事件不在接受范围内';
      runs.push({ name: run.name, completed, matching: 0, uploaded: 0, ignoredBecause });
      continue;
    }
    if (held) {
      const ignoredBecause = config.lang === 'en' ? 'not run yet, a maintainer has to approve it' : '尚未运行，须由维护者批准';
      runs.push({ name: run.name, completed, matching: 0, uploaded: 0, ignoredBecause });
      continue;
    }
    const artifacts = completed ? await listArtifacts(reader, repository, run.id) : [];
    const matching = artifacts.filter(({ name }) => matchesAny(config.artifacts, name)).length;
    runs.push({ name: run.name, completed, matching, uploaded: artifacts.length, ignoredBecause: null });
  }
  return {
    check: check === null ? null : { phase: check.phase, conclusion: check.conclusion },
    verdict: latest.success ? String(prose(latest.data.verdict.text)) : null,
    pending: (await deps.store.requests.pending(subjectOf.pullRequest(repository, pr))).length,
    deadlineAt: check?.deadlineAt ?? null,
    patterns: config.artifacts,
    runs,
    acknowledged: await standingAcknowledgements(deps, repository.id, pr),
  };
}

/** What is acknowledged and whether it still holds, as the last report shows it. */
async function standingAcknowledgements(deps: Dependencies, repoId: number, pr: number): Promise<StandingAcknowledgement[]> {
  const given = await deps.store.acknowledgements.of(repoId, pr);
  const shown = (await deps.store.pullRequests.find(repoId, pr))?.shown ?? [];
  const today = dateOf(deps.now());
  return given.map((one) => {
    const finding = shown.find(({ id }) => id === one.finding);
    const isOver = one.until !== null && one.until < today;
    const state = isOver ? 'ended' : finding === undefined ? 'absent' : finding.state === 'acknowledged' ? 'holds' : 'grown';
    return { ...one, state };
  });
}

const HOUR_MS = 3600 * 1000;

function takeAsk(deps: Dependencies, repoId: number, login: string, origin: string): ReturnType<Dependencies['store']['asks']['take']> {
  return deps.store.asks.take({ repoId, login, origin }, deps.options.commandsPerHour, HOUR_MS);
}

function limitText(limit: number, againAt: number, lang: Lang): string {
  const at = new Date(againAt).toISOString().slice(11, 16);
  return lang === 'en'
    ? `That is more than ${limit} requests of one person within an hour. The next one is heard from ${at} UTC on.`
    : `同一用户一小时内的请求超过 ${limit} 次。UTC ${at} 之后的请求会继续处理。`;
}

const CLOSED: L10n = {
  en: 'This pull request is closed; open it again to have its profile analysed',
  zh: '本 PR 已关闭；重新打开后才会分析其 profile',
};

async function handleComment(deps: Dependencies, request: WorkRequest, stored: TaskRequest, task: TaskOf<'comment'>): Promise<void> {
  const { installationId, repository, pr, commentId, actor, commands, writtenAt } = task;
  const target: Target = { installationId, repository };
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.command);
  const pull = await readPullRequest(octokit, repository, pr);
  if (pull === null) return;
  const app = await deps.github.identity();
  /** Answers once, however often the job is tried; `place`: which command of the comment. */
  const reply = (place: number | 'limit', text: string, lang: Lang): Promise<void> => {
    const line = typeof place === 'number' ? commands[place] : undefined;
    const about = line === undefined ? `limit ${actor}` : [line.name, ...line.args].join(' ');
    return giveReply(deps, octokit, target, { pr, app, commentId, place, about, text, actor, lang });
  };
  const heard = await takeAsk(deps, repository.id, actor, `comment/${commentId}`);
  if (!heard.accepted) {
    deps.log.info({ repository: repository.id, pr, actor }, 'a command over the limit of its author');
    await react(octokit, repository, commentId, 'confused');
    if (!heard.isFirst) return;
    const settings = await readSettings(deps, target, pull.baseRef, octokit);
    const spoken = settings.ok ? settings.value.lang : 'en';
    return reply('limit', limitText(deps.options.commandsPerHour, heard.againAt, spoken), spoken);
  }
  const headSha = stored.headSha ?? pull.headSha;
  // Remembered before anything else: a later push must not change what was asked for.
  if (stored.headSha === null) await deps.store.requests.rewrite(request.id, { ...stored, headSha });
  await react(octokit, repository, commentId, 'eyes');
  const settings = await readSettings(deps, target, pull.baseRef, octokit);
  const lang = settings.ok ? settings.value.lang : 'en';

  // Each command of the comment is a request of its own.
  const originOf = (index: number): string => (index === 0 ? `comment/${commentId}` : `comment/${commentId}/${index}`);
  const config = settings.ok ? settings.value : DEFAULT_CONFIG;
  const standing = standingClients(deps, { target, pull, octokit, actor, headSha, config, writtenAt }, async (index, request) => {
    await requestAnalysis(deps, originOf(index), { installationId, repository, pr, headSha, run: null, commentId, ...request });
  });

  let ended = stored.ended;
  const result = await executeCommands({
    lines: commands,
    ended: new Map(Object.entries(ended).map(([place, one]) => [Number(place), one])),
    async onEnded(place, one) {
      ended = { ...ended, [place]: one };
      await deps.store.requests.rewrite(request.id, { ...stored, headSha, ended });
    },
    lang,
    actor,
    author: pull.author,
    headSha,
    today: dateOf(deps.now()),
    permission: () => permissionOf(octokit, repository, actor),
    clientFor: (index) => ({
      ...standing(index),
      reply: (text) => reply(index, text, lang),
      async requestAnalysis(sha, wanted) {
        if (pull.state !== 'open') return CLOSED;
        if (wanted !== null) {
          const reader = await deps.github.client(installationId, repository, PERMISSIONS.read);
          const found = await findWanted(reader, target, { ...pull, headSha: sha }, wanted, settings.ok ? settings.value : DEFAULT_CONFIG);
          if ('problem' in found) return found.problem;
        }
        const origin = originOf(index);
        const common = { installationId, repository, pr, run: null, isAsked: true, commentId };
        await requestAnalysis(deps, origin, { ...common, headSha: sha, wanted });
        return null;
      },
      status: (sha) => statusFacts(deps, octokit, target, pull, sha),
    }),
  });
  if (result !== 'started') await react(octokit, repository, commentId, result === 'done' ? '+1' : 'confused');
}

async function reactAll(deps: Dependencies, target: Target, commentIds: readonly number[], reaction: Reaction): Promise<void> {
  if (commentIds.length === 0) return;
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.command);
  for (const commentId of commentIds) await react(octokit, target.repository, commentId, reaction);
}

interface Group {
  readonly analysis: Analysis;
  readonly requests: readonly WorkRequest[];
  readonly commentIds: readonly number[];
}

/** Requests for the same commit, and the same upload, are one analysis: of the newest run, asked for if any of them was. */
function groupAnalyses(requests: readonly { request: WorkRequest; payload: AnalyseRequest }[]): Group[] {
  const groups = Map.groupBy(requests, ({ payload }) => JSON.stringify([payload.headSha, payload.wanted]));
  return [...groups.values()].map((items) => {
    const { installationId, repository, pr, headSha, wanted } = items.at(-1)!.payload;
    return {
      requests: items.map(({ request }) => request),
      commentIds: items.flatMap(({ payload }) => (payload.commentId === null ? [] : [payload.commentId])),
      analysis: {
        target: { installationId, repository },
        pr,
        headSha,
        wanted,
        run: items.findLast(({ payload }) => payload.run !== null)?.payload.run ?? null,
        isAsked: items.some(({ payload }) => payload.isAsked),
        mayReuse: items.every(({ payload }) => payload.mayReuse || !payload.isAsked),
        hasNewBase: items.some(({ payload }) => payload.hasNewBase),
        restates: items.some(({ payload }) => payload.mayReuse && !payload.isAsked),
        isRetry: items.some(({ request }) => request.attempts > 0),
      },
    };
  });
}

/** True for answers that no further try will change: the app was removed or suspended, the repository archived, or it may not do this. */
function isHopeless(error: unknown): boolean {
  const status = statusOf(error);
  if (status === 401 || status === 404 || status === 410 || status === 451) return true;
  // A token for a repository that the installation does not reach any more.
  if (status === 422 && String((error as { request?: { url?: unknown } }).request?.url).endsWith('/access_tokens')) return true;
  const refusal = refusalOf(error);
  return refusal !== null && refusal !== 'limit';
}

type Settle = (
  requests: readonly WorkRequest[],
  work: () => Promise<string>,
  giveUp: (correlationId: string, error: unknown) => Promise<void>,
) => Promise<void>;

/** Runs work for some requests: settled when it ends, tried again later when it throws, given up after the last try. */
function createSettle(deps: Dependencies, subject: string): Settle {
  const settle: Settle = async (requests, work, giveUp) => {
    const ids = requests.map(({ id }) => id);
    const attempt = Math.max(0, ...requests.map(({ attempts }) => attempts)) + 1;
    const abandon = async (error: unknown): Promise<void> => {
      const correlationId = randomUUID().slice(0, 8);
      deps.log.error({ err: error, subject, attempt, correlationId }, 'job given up');
      await giveUp(correlationId, error).catch((failure: unknown) => {
        // The requests are still there, and what is left of them after the limit is to give up.
        if (limitOf(failure) !== null) throw failure;
        deps.log.error({ err: failure, subject, correlationId }, 'giving up could not be published');
      });
      await deps.store.requests.settle(ids, 'failed', correlationId);
    };
    if (attempt > deps.options.attempts) return abandon(new Error('the process ended during every try'));
    await deps.store.requests.begin(ids);
    const started = deps.now();
    try {
      const note = await work();
      await deps.store.requests.settle(ids, 'done', note);
      deps.log.info({ subject, attempt, note, ms: deps.now() - started }, 'job done');
    } catch (error) {
      if (deps.signal.aborted || limitOf(error) !== null) {
        await deps.store.requests.uncount(ids);
        throw error;
      }
      if (attempt >= deps.options.attempts || isHopeless(error)) return abandon(error);
      deps.log.warn({ err: error, subject, attempt }, 'job failed, will be tried again');
      throw error;
    }
  };
  return (requests, work, giveUp) => withLogContext(contextOf(requests), () => settle(requests, work, giveUp));
}

/** A hundred deliveries may be one job; the newest few say enough. */
function contextOf(requests: readonly WorkRequest[]): LogContext {
  const newest = requests.slice(-5);
  return { jobs: newest.map(({ id }) => id), guids: [...new Set(newest.map(({ origin }) => origin))] };
}

/** Not even giving up could be told: a check that is open, or that GitHub has reset for whoever asked, is looked at once more. */
async function lookAgain(deps: Dependencies, { target, pr, headSha, isAsked }: Analysis, hopeless: boolean): Promise<void> {
  const check = await deps.store.checks.find(target.repository.id, headSha, pr);
  if (check === null || (check.phase === 'completed' && (!isAsked || hopeless))) return;
  const deadlineAt = deps.now() + (hopeless ? HOPELESS_AGAIN_MS : OVERDUE_AGAIN_MS);
  await deps.store.checks.put({ ...check, phase: 'in_progress', conclusion: null, hasReport: false, deadlineAt, dueAt: deps.now() });
}

/** What is open of a pull request that was closed. A `closed` may arrive after the `reopened` that followed it, so GitHub is asked. */
async function concludeClosed(deps: Dependencies, target: Target, pr: number, headSha: string): Promise<void> {
  const { checks } = deps.store;
  const parts = [
    ...(await checks.openOfPullRequest(target.repository.id, pr)),
    ...(await checks.sharedOfPullRequest(target.repository.id, pr)),
  ];
  if (parts.length === 0) return;
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
  const pull = await readPullRequest(octokit, target.repository, pr);
  for (const sha of new Set(parts.map((part) => part.sha))) {
    const isHead = sha === (pull?.headSha ?? headSha);
    if (isHead && pull?.state === 'open') continue;
    await withdraw(deps, { target, sha, pr }, isHead ? 'closed' : 'superseded');
  }
}

async function handlePullRequest(deps: Dependencies, pending: readonly WorkRequest[], settle: Settle): Promise<void> {
  const analyses: { request: WorkRequest; payload: AnalyseRequest }[] = [];
  for (const request of pending) {
    const parsed = PullRequestRequest.safeParse(request.payload);
    if (!parsed.success) {
      // No further try changes that, and what else is asked of the pull request does not wait for it.
      deps.log.error({ err: parsed.error, subject: request.subject, request: request.id }, 'a request that cannot be read');
      await deps.store.requests.settle([request.id], 'failed', 'cannot be read');
      continue;
    }
    const payload = parsed.data;
    if (payload.kind === 'analyse') {
      analyses.push({ request, payload });
      continue;
    }
    const { installationId, repository, pr, headSha } = payload;
    const target = { installationId, repository };
    await settle(
      [request],
      async () => {
        if (payload.kind === 'renew') await renewPages(deps, target, pr, headSha);
        else if (payload.kind === 'overdue') await concludeOverdue(deps, target, pr, headSha);
        else await concludeClosed(deps, target, pr, headSha);
        return payload.kind;
      },
      async (_, error) => {
        // The next day tries again.
        if (payload.kind === 'renew') return;
        if (payload.kind === 'overdue' && !isHopeless(error) && (await concludeAnyhow(deps, target, pr, headSha))) return;
        const check = await deps.store.checks.find(repository.id, headSha, pr);
        const pause = isHopeless(error) ? HOPELESS_AGAIN_MS : OVERDUE_AGAIN_MS;
        if (check !== null) await deps.store.checks.put({ ...check, deadlineAt: deps.now() + pause, dueAt: check.dueAt ?? deps.now() });
      },
    );
  }
  for (const { analysis, requests, commentIds } of groupAnalyses(analyses)) {
    const place = { target: analysis.target, sha: analysis.headSha, pr: analysis.pr };
    await settle(
      requests,
      async () => {
        deps.killPoint('job-started');
        const outcome = await unlessOvertaken(deps, analysis, async (watched) => {
          await sayGoesOn(watched, place);
          return analysePullRequest(watched, analysis);
        }).catch(async (error: unknown) => {
          const limit = limitOf(error);
          if (limit !== null) await sayPutOff(deps, place, limit);
          throw error;
        });
        deps.log.info({ repository: analysis.target.repository.id, pr: analysis.pr, sha: analysis.headSha, outcome }, 'analysis handled');
        // An acknowledgement is remembered, also where there is nothing to say it on.
        const isRemembered = analysis.restates === true && !analysis.isAsked && outcome === 'superseded';
        const isDone = outcome === 'published' || outcome === 'waiting' || isRemembered;
        await reactAll(deps, analysis.target, commentIds, isDone ? '+1' : 'confused');
        return outcome;
      },
      async (correlationId, error) => {
        const check = await deps.store.checks.find(analysis.target.repository.id, analysis.headSha, analysis.pr);
        // What was to be said again still stands as it was said, unless its check has been opened for it.
        const isStanding = analysis.restates === true && !analysis.isAsked && analysis.run === null && check?.phase === 'completed';
        if (!isStanding) {
          await publishGivingUp(deps, analysis, correlationId, error).catch(async (failure: unknown) => {
            if (limitOf(failure) === null) await lookAgain(deps, analysis, isHopeless(failure));
            throw failure;
          });
        }
        await reactAll(deps, analysis.target, commentIds, 'confused');
      },
    );
  }
}

async function handleTask(deps: Dependencies, request: WorkRequest): Promise<string> {
  const stored = TaskRequest.parse(request.payload);
  const { task } = stored;
  switch (task.kind) {
    case 'run-started':
      await handleRunStart(deps, task, request.origin);
      break;
    case 'run-completed':
      if (request.subject.startsWith('branch/')) await recordBranchRun(deps, task);
      else await handleRun(deps, task, request.origin);
      break;
    case 'head-changed':
    case 'merge-group':
    case 'rerun':
      await handleHead(deps, task, request.origin);
      break;
    case 'comment':
      await handleComment(deps, request, stored, task);
      break;
    default:
      throw new Error(`no job for ${task.kind}`);
  }
  return task.kind;
}

/** After the last try: whoever asked is told, and a check that GitHub has reset says again what it said. */
async function giveUpTask(deps: Dependencies, request: WorkRequest, correlationId: string): Promise<void> {
  const { task } = TaskRequest.parse(request.payload);
  if (task.kind === 'rerun') {
    const { installationId, repository, headSha } = task;
    await sayAgain(deps, { target: { installationId, repository }, sha: headSha });
  }
  if (task.kind !== 'comment') return;
  const { installationId, repository, pr, commentId, actor } = task;
  const target: Target = { installationId, repository };
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.command);
  await react(octokit, repository, commentId, 'confused');
  const pull = await readPullRequest(octokit, repository, pr);
  if (pull === null) return;
  const settings = await readSettings(deps, target, pull.baseRef, octokit).catch(() => null);
  const lang = settings?.ok === true ? settings.value.lang : 'en';
  const text =
    lang === 'en'
      ? `That did not work after several tries. The operator finds the reason in the log under \`${correlationId}\`.`
      : `多次尝试后仍未成功。运维人员可在日志中按 \`${correlationId}\` 查到原因。`;
  const app = await deps.github.identity();
  await giveReply(deps, octokit, target, { pr, app, commentId, place: 'failed', about: `failed ${commentId}`, text, actor, lang });
}

/** Works off everything that is pending for a subject. */
export function handleSubject(deps: Dependencies, subject: string): Promise<void> {
  return unlessLimited(deps, subject, () => (subject.startsWith('portion/') ? handlePortion(deps, subject) : workOff(deps, subject)));
}

async function workOff(deps: Dependencies, subject: string): Promise<void> {
  const settle = createSettle(deps, subject);
  for (;;) {
    const pending = await deps.store.requests.pending(subject);
    if (pending.length === 0) return;
    if (subject.startsWith('pull-request/')) await handlePullRequest(deps, pending, settle);
    else
      for (const same of groupTasks(pending)) {
        await settle(
          same,
          () => handleTask(deps, same[0]!),
          (correlationId) => giveUpTask(deps, same[0]!, correlationId),
        );
      }
  }
}

/** What only says that something is there to be looked at; a hundred deliveries of it are one look. */
const LOOKS = new Set(['head-changed', 'run-started', 'run-completed', 'merge-group']);

function groupTasks(requests: readonly WorkRequest[]): WorkRequest[][] {
  const keyOf = ({ id, kind, payload }: WorkRequest): string => (LOOKS.has(kind) ? JSON.stringify(payload) : String(id));
  return [...Map.groupBy(requests, keyOf).values()];
}

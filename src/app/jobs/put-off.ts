import { PERMISSIONS } from '../../github/client.ts';
import { limitOf, type RateLimited } from '../../github/limits.ts';
import { type DesiredCheck, tellCheck } from '../../github/publish/check.ts';
import type { Lang } from '../../model/lang.ts';
import { type CheckPlace, openCheck, writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';

/** Jobs that were put off until the same moment come back over so much of the wait, so that they are not all at the limit again. */
const SPREAD = 0.05;
const LEAST_SPREAD_MS = 1000;
const MOST_SPREAD_MS = 120_000;
const TELL_MS = 10_000;

const TITLE: Readonly<Record<Lang, string>> = {
  en: 'Waiting: the request limit of GitHub is reached',
  zh: '等待中：已达 GitHub 的请求上限',
};

function summaryOf(until: number, lang: Lang): string {
  const at = new Date(until).toISOString().slice(11, 16);
  return lang === 'en'
    ? `GitHub answers this installation again from ${at} UTC on. The work then goes on by itself; nothing has to be done, and nothing is lost.`
    : `GitHub 将从 UTC ${at} 起恢复响应本安装。届时会自动继续，无需操作，也不会丢失任何内容。`;
}

/**
 * Does the work of a subject. At a limit of GitHub that is not over in a moment the job gives its place back and is woken when it is; that
 * is no try, and other installations go on.
 */
export async function unlessLimited(deps: Dependencies, subject: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const limit = limitOf(error);
    if (limit === null || deps.signal.aborted) throw error;
    const ms = Math.max(0, limit.until - deps.now());
    const spreadMs = Math.min(MOST_SPREAD_MS, Math.max(deps.options.isTest ? 0 : LEAST_SPREAD_MS, ms * SPREAD));
    await deps.queue.putOff(subject, ms + Math.random() * spreadMs);
    deps.log.info({ subject, seconds: Math.round(ms / 1000) }, 'put off until a limit of GitHub is over');
  }
}

/** An open check says what is waited for. Only from what is kept of the hour's requests for that; once it is used up, nothing can be said. */
export async function sayPutOff(deps: Dependencies, place: CheckPlace, { until }: RateLimited): Promise<void> {
  const { repository, installationId } = place.target;
  try {
    const all = await deps.store.checks.ofCommit(repository.id, place.sha);
    const [check] = all;
    // What the run shows may be another pull request's, which has the same head.
    if (check === undefined || all.length > 1 || check.checkRunId === null || check.phase === 'completed') return;
    const said = check.said === undefined ? null : (JSON.parse(check.said) as DesiredCheck);
    const lang = said?.lang ?? 'en';
    const text = { title: TITLE[lang], summary: summaryOf(until, lang) };
    if (said?.summary === text.summary) return;
    const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
    const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(TELL_MS)]);
    await tellCheck(octokit, repository, check.checkRunId, text, signal, true);
    if (said !== null) await deps.store.checks.put({ ...check, said: JSON.stringify({ ...said, ...text }) });
  } catch (error) {
    deps.log.info({ err: error, repository: repository.id, pr: place.pr }, 'that a limit is waited for could not be told');
  }
}

/** The limit is over: a check that said so waits for a profile again. One whose profile is read says that soon by itself. */
export async function sayGoesOn(deps: Dependencies, place: CheckPlace): Promise<void> {
  const check = await deps.store.checks.find(place.target.repository.id, place.sha, place.pr);
  if (check?.phase !== 'queued' || check.said === undefined) return;
  const { title, lang = 'en' } = JSON.parse(check.said) as DesiredCheck;
  if (title === TITLE[lang]) await writeCheck(deps, place, await openCheck(deps, place, lang, 'waiting'), false);
}

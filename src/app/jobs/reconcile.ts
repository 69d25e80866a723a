import { type RepositoryRef, refusalOf, statusOf } from '../../github/client.ts';
import { listInstallations, listOpenPullRequests, listRepositories } from '../../github/installations.ts';
import type { Dependencies } from './dependencies.ts';
import { requestAnalysis } from './handle-subject.ts';
import { QUEUE_PR } from './merge-queue.ts';
import { subjectOf } from './subject.ts';

const ALIVE = 'alive';
/** Since when pull requests may have changed unseen; 0: nothing is open. */
const UNSEEN = 'unseen-since';
/** A shorter absence is a restart: GitHub's own list of failed deliveries covers it. */
const ABSENCE_MS = 2 * 60_000;
/** The heartbeat is as old as this at most, and clocks differ. */
const OVERLAP_MS = 2 * 60_000;
/** What changed longer ago is left alone: a push, or a command, brings a check. */
const OLDEST_MS = 7 * 24 * 3600 * 1000;
const HEARTBEAT_MS = 30_000;
const MAX_REPOSITORIES = 1000;
const MAX_OPEN_CHECKS = 500;

/** Remembers that somebody was here. */
export async function noteAlive({ store, now }: Dependencies): Promise<void> {
  const last = await store.marks.read(ALIVE);
  if (last === null || now() - last >= HEARTBEAT_MS) await store.marks.write(ALIVE, now());
}

/** At the start, before anything else is noted: remembers since when nobody was here. */
export async function noteAbsence({ store, now, options }: Dependencies): Promise<void> {
  const last = await store.marks.read(ALIVE);
  if (last === null || now() - last < (options.isTest ? 0 : ABSENCE_MS)) return;
  if (((await store.marks.read(UNSEEN)) ?? 0) === 0) await store.marks.write(UNSEEN, last);
}

/** Remembers that what happened since a moment may not have been told: the installation was suspended. */
export async function noteUnseen({ store }: Dependencies, since: number): Promise<void> {
  const unseen = (await store.marks.read(UNSEEN)) ?? 0;
  if (unseen === 0 || unseen > since) await store.marks.write(UNSEEN, since);
}

/**
 * After an absence: open pull requests that changed meanwhile and have no check get one, and open checks are looked at again. Beyond
 * what GitHub can be asked to deliver again, this needs nothing but what is there now. Returns how many pull requests were taken up.
 */
export async function reconcile(deps: Dependencies): Promise<number> {
  const { store, github, log, now } = deps;
  const unseen = (await store.marks.read(UNSEEN)) ?? 0;
  if (unseen === 0) return 0;
  const since = Math.max(unseen - OVERLAP_MS, now() - OLDEST_MS);
  let count = 0;
  let looked = 0;
  let isComplete = true;
  for (const installationId of await listInstallations(github.app)) {
    deps.signal.throwIfAborted();
    try {
      const octokit = await github.installation(installationId, { metadata: 'read', pull_requests: 'read' });
      for (const repository of await listRepositories(octokit)) {
        if (++looked > MAX_REPOSITORIES) break;
        for (const { number, headSha } of await listOpenPullRequests(octokit, repository, since)) {
          if (await takeUp(deps, installationId, repository, number, headSha)) count++;
        }
      }
    } catch (error) {
      // One that was removed, suspended or is at its limit at this moment does not keep the others waiting; anything else is tried again.
      const status = statusOf(error);
      const isLimited = refusalOf(error) === 'limit';
      if (status === null || status >= 500) throw error;
      if (isLimited) isComplete = false;
      log.warn({ err: error, installationId }, 'an installation could not be looked through');
    }
  }
  if (looked > MAX_REPOSITORIES) log.warn({ limit: MAX_REPOSITORIES }, 'not all repositories were looked through');
  for (const check of await store.checks.overdue(Number.MAX_SAFE_INTEGER, MAX_OPEN_CHECKS)) {
    // The commit of a merge queue is no pull request's: its own run or its deadline concludes it.
    if (check.pr === QUEUE_PR) continue;
    const repository = { id: check.repoId, owner: check.owner, name: check.repo };
    const common = { installationId: check.installationId, repository, pr: check.pr, headSha: check.sha };
    await requestAnalysis(deps, `reconcile/${unseen}/${check.sha}`, { ...common, run: null, isAsked: false, commentId: null });
  }
  if (isComplete) await store.marks.write(UNSEEN, 0);
  log.info({ since: new Date(since).toISOString(), repositories: looked, pullRequests: count }, 'looked for what was missed');
  return count;
}

/** A head that has no check is handled as if it had just been pushed. */
async function takeUp(
  deps: Dependencies,
  installationId: number,
  repository: RepositoryRef,
  pr: number,
  headSha: string,
): Promise<boolean> {
  if ((await deps.store.checks.find(repository.id, headSha, pr)) !== null) return false;
  const subject = subjectOf.head(repository, headSha);
  const task = { kind: 'head-changed', installationId, repository, pr, headSha };
  const isNew = await deps.store.requests.add({ subject, kind: 'head-changed', origin: `reconcile/${pr}/${headSha}`, payload: { task } });
  await deps.queue.poke(subject);
  return isNew !== null;
}

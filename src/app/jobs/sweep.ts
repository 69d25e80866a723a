import { keepDays } from '../../store/holdings.ts';
import { pageOf } from '../details/link.ts';
import { dateOf } from './accepted.ts';
import type { Dependencies } from './dependencies.ts';
import { subjectOf } from './subject.ts';

const DAY = 24 * 3600 * 1000;
const BATCH = 200;
const KEEP_REPORTS = 2000;
/** Profiles of one job of a repository whose figures are kept: ten a day for over a year. */
const KEEP_PROFILES = 5000;
/** Pull requests leave their base branch some weeks back at most, and compare with their own pushes for days. */
const FACTS_DAYS = 180;
const PULL_REQUEST_FACTS_DAYS = 14;
/** Of one repository: a hundred profiles of eight ranks. */
const FACTS_BYTES = 128 * 1024 * 1024;

/** Requests the conclusion of checks whose deadline has passed and wakes work that nobody is woken for. */
export async function sweep(deps: Dependencies): Promise<void> {
  const { store, queue } = deps;
  for (const check of await store.checks.overdue(deps.now(), BATCH)) {
    const repository = { id: check.repoId, owner: check.owner, name: check.repo };
    const subject = subjectOf.pullRequest(repository, check.pr);
    const payload = { kind: 'overdue', installationId: check.installationId, repository, pr: check.pr, headSha: check.sha };
    await store.requests.add({ subject, kind: 'overdue', origin: `${check.sha}@${check.deadlineAt}`, payload });
  }
  await reopenEnded(deps);
  await renewLinks(deps);
  // The table of requests is the truth; a wake-up that was lost with a process is made up for here.
  for (const subject of await store.requests.pendingSubjects(BATCH)) await queue.pokeIfIdle(subject);
}

/** Since which day acknowledgements have been looked at whether they ended, ms. */
const LOOKED = 'acknowledgements-looked-at';

/** Once a day: what was acknowledged until yesterday is open again, and the pull request says so. */
async function reopenEnded({ store, queue, now }: Dependencies): Promise<void> {
  const today = dateOf(now());
  const looked = await store.marks.read(LOOKED);
  if (looked !== null && dateOf(looked) >= today) return;
  for (const { repoId, owner, repo, pr, installationId, sha } of await store.acknowledgements.ended(
    looked === null ? '' : dateOf(looked),
    today,
  )) {
    const repository = { id: repoId, owner, name: repo };
    const subject = subjectOf.pullRequest(repository, pr);
    const common = { kind: 'analyse', installationId, repository, pr, headSha: sha, run: null, wanted: null, commentId: null };
    await store.requests.add({
      subject,
      kind: 'analyse',
      origin: `ended@${today}`,
      payload: { ...common, isAsked: false, mayReuse: true },
    });
    await queue.poke(subject);
  }
  await store.marks.write(LOOKED, now());
}

/** Since which day links have been looked at whether they end, ms. */
const LINKS_LOOKED = 'links-looked-at';
const RENEW_DAYS = 4;

/** Once a day: pull requests whose comment links to a page that soon opens no more say again what they say, with a new link. */
async function renewLinks({ store, queue, now, links }: Dependencies): Promise<void> {
  if (links === null) return;
  const today = dateOf(now());
  const looked = await store.marks.read(LINKS_LOOKED);
  if (looked !== null && dateOf(looked) >= today) return;
  for (const ending of await store.pages.ending(now() + Math.min(RENEW_DAYS * DAY, links.lifetimeMs / 2))) {
    const { repoId, page, owner, repo, pr, installationId, sha } = ending;
    const repository = { id: repoId, owner, name: repo };
    const subject = subjectOf.pullRequest(repository, pr);
    if (page !== pageOf({ repoId, pr, sha, job: null })) {
      // What is said of several jobs would be said again by looking at their artifacts, and those may be gone by now.
      const payload = { kind: 'renew', installationId, repository, pr, headSha: sha };
      await store.requests.add({ subject, kind: 'renew', origin: `link@${today}`, payload });
      await queue.poke(subject);
      continue;
    }
    const common = { kind: 'analyse', installationId, repository, pr, headSha: sha, run: null, wanted: null, commentId: null };
    const payload = { ...common, isAsked: false, mayReuse: true };
    await store.requests.add({ subject, kind: 'analyse', origin: `link@${today}`, payload });
    await queue.poke(subject);
  }
  await store.marks.write(LINKS_LOOKED, now());
}

/** Forgets what is old. */
export async function prune(deps: Dependencies): Promise<void> {
  const before = (table: Parameters<typeof keepDays>[0]): number => deps.now() - keepDays(table) * DAY;
  await deps.store.deliveries.prune(before('deliveries'));
  await deps.store.requests.prune(before('requests'));
  await deps.store.asks.prune(before('asks'));
  await deps.store.acknowledgements.prune(before('acknowledgements'));
  await deps.store.checks.prune(before('check_runs'));
  await deps.store.pullRequests.prune(before('pull_requests'));
  await deps.store.reports.prune(before('reports'), KEEP_REPORTS);
  await deps.store.pages.prune(deps.now(), KEEP_REPORTS);
  await deps.store.profiles.prune({
    olderThan: before('profiles'),
    keep: KEEP_PROFILES,
    factsOlderThan: deps.now() - FACTS_DAYS * DAY,
    pullRequestFactsOlderThan: deps.now() - PULL_REQUEST_FACTS_DAYS * DAY,
    factsBytes: FACTS_BYTES,
  });
  await deps.store.portions.prune(before('portions'));
  await deps.store.usage.prune(dayOf(before('usage')));
}

/** Days since 1970, UTC. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY);
}

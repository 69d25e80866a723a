/*
 * Right in every corner of the platform: events in any order, repositories that are renamed, archived or removed, conversations that are
 * locked, things that vanish, and a GitHub that says "later". The jobs are run without a server; flow.test.ts has the wiring.
 * More orders: NPU_ADVISOR_TEST_ORDERS=20.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FaultOptions, PullHandle, PullView, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { eraseRemoved, findRemoved } from '../../src/app/jobs/erase.ts';
import { noteAlive } from '../../src/app/jobs/reconcile.ts';
import { dayOf, prune } from '../../src/app/jobs/sweep.ts';
import { COMMENT_MARKER } from '../../src/github/publish/comment.ts';
import { HOLDINGS, sqlName } from '../../src/store/holdings.ts';
import type { Plan } from './support/fake-analyser.ts';
import { type Jobs, openJobs, type Spooled } from './support/jobs.ts';
import { addRun, ONE_FINDING, TRAIN_PY } from './support/world.ts';

let jobs: Jobs;
beforeAll(async () => {
  jobs = await openJobs();
});
afterAll(async () => {
  expect(jobs.hub.violations).toEqual([]);
  await jobs.close();
});

let repositories = 0;
/** A repository of its own for each test. */
function newRepository(files: Record<string, string> = {}, owner = 'acme'): RepositoryHandle {
  return jobs.hub.addRepository({ owner, name: `repository-${repositories++}`, files: { 'train.py': 'import torch\n', ...files } });
}

let branches = 0;
function openPull(repository: RepositoryHandle, over: { draft?: boolean; author?: string } = {}): PullHandle {
  const changes = { 'train.py': `${TRAIN_PY}# citizen ${++branches}\n` };
  return repository.openPullRequest({ author: 'alice', branch: `citizen-${branches}`, title: 'Faster', changes, ...over });
}

const opened = (pr: PullHandle) => jobs.take('pull_request', { action: 'opened', pr });
const profiled = (repository: RepositoryHandle, pr: PullHandle, plan: Plan = ONE_FINDING) =>
  jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, pr, plan) });
const ours = (pr: PullHandle) => jobs.hub.view(pr).comments.filter(({ author }) => author === 'npu-advisor[bot]');
const writesSince = (mark: number) =>
  jobs.hub.journal.slice(mark).filter(({ method, path }) => method !== 'GET' && !path.includes('access_tokens'));
const HOUR = 3600 * 1000;

/** Files of the data folder that hold a text. */
function filesWith(words: readonly string[], folder = jobs.dataDir): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesWith(words, path);
    const bytes = readFileSync(path);
    return words.filter((word) => bytes.includes(word)).map((word) => `${path}: ${word}`);
  });
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

interface Story {
  readonly repository: RepositoryHandle;
  readonly pulls: readonly PullHandle[];
  readonly shas: readonly string[];
  readonly deliveries: readonly Spooled[];
}

const PULLS = 5;
const PUSHES = 3;
const TOTAL = 1000;

/** Weeks of a repository: pushes, runs, chatter, commands, closed and reopened, another base branch. What GitHub knows at the end is the same for every order. */
async function tell(name: string): Promise<Story> {
  const { hub } = jobs;
  const repository = hub.addRepository({ owner: 'acme', name, files: { 'train.py': 'import torch\n' } });
  const deliveries: Spooled[] = [];
  const send: Jobs['make'] = async (event, request, options) => {
    const made = await jobs.make(event, request, options);
    deliveries.push(made);
    return made;
  };
  // The very first profile of a repository is told apart from later ones, so one is there before.
  const first = repository.openPullRequest({ author: 'alice', branch: 'first', title: 'First', changes: { 'train.py': '# first\n' } });
  await jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, first, { findings: [] }) });
  repository.commitFile('.github/npu-advisor.yml', 'gate: { severity: high }\n', { branch: 'release' });
  const pulls: PullHandle[] = [];
  const shas: string[] = [];
  for (let p = 0; p < PULLS; p++) {
    const pull = repository.openPullRequest({
      author: 'alice',
      branch: `work-${p}`,
      title: `Work ${p}`,
      draft: p === 1,
      changes: { 'train.py': `${TRAIN_PY}# ${p}\n` },
      ...(p % 4 === 3 ? { fork: { owner: 'mallory' } } : {}),
    });
    pulls.push(pull);
    await send('pull_request', { action: 'opened', pr: pull });
    for (let push = 0; push < PUSHES; push++) {
      shas.push(pull.headSha);
      // The last push of a pull request decides what its comment says; one pull request ends without a profile.
      const plan: Plan | null = p === 2 && push === PUSHES - 1 ? null : p % 3 === 0 ? { findings: [] } : ONE_FINDING;
      const run = addRun({ repository }, pull, plan);
      // Most of what GitHub sends is of no interest.
      for (const action of ['requested', 'in_progress'] as const) await send('workflow_run', { action, run });
      for (const action of ['requested', 'completed'] as const) await send('check_suite', { action, repository, headSha: pull.headSha });
      await send('pull_request', { action: 'edited', pr: pull, changes: {} });
      await send('workflow_run', { action: 'completed', run });
      if (push === PUSHES - 1) break;
      if (push % 2 === 0) repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# ${p} ${push}\n` });
      else repository.forcePush(pull, { 'train.py': `${TRAIN_PY}# ${p} ${push} forced\n` });
      await send('pull_request', { action: 'synchronize', pr: pull });
    }
    if (p === 1) {
      repository.markReady(pull);
      await send('pull_request', { action: 'ready_for_review', pr: pull });
    }
    if (p === 1) {
      const base = { ref: { from: 'main' }, sha: { from: pull.baseSha } };
      repository.retarget(pull, 'release');
      await send('pull_request', { action: 'edited', pr: pull, changes: { base } });
    }
    if (p >= 3) {
      repository.closePullRequest(pull);
      await send('pull_request', { action: 'closed', pr: pull });
    }
    if (p === 3) {
      repository.reopenPullRequest(pull);
      await send('pull_request', { action: 'reopened', pr: pull });
    }
    if (p === 0) {
      await send('issue_comment', { action: 'created', comment: repository.comment(pull, 'alice', '/npu-advise help') });
      await send('issue_comment', { action: 'created', comment: repository.comment(pull, 'stranger', '/npu-advise run') });
    }
    await send('issue_comment', { action: 'created', comment: repository.comment(pull, 'bob', 'Looks good.') });
  }
  return { repository, pulls, shas, deliveries };
}

/** So many deliveries of the same events under ids of their own. A command is written once, so it has one delivery. */
function repeated(deliveries: readonly Spooled[]): Spooled[] {
  const all = [...deliveries];
  const distinct = all.length;
  for (let i = 0; all.length < TOTAL; i++) {
    const { guid, event, body } = all[i % distinct]!;
    if (event !== 'issue_comment.created' || body === null) all.push({ guid: `${guid}-${i}`, event, body });
  }
  return all;
}

/** How a story ends, without what differs between two tellings of it: names and numbers. */
function ending({ repository, pulls, shas }: Story): unknown {
  const plain = (value: unknown): unknown => {
    let text = JSON.stringify(value).replaceAll(repository.name, 'REPOSITORY');
    for (const [i, sha] of shas.entries()) text = text.replaceAll(sha, `<commit ${i}>`).replaceAll(sha.slice(0, 7), `<commit ${i}>`);
    text = text.replace(/\/details\/[\w/-]+/g, '/details/<link>');
    return JSON.parse(text.replace(/\d{8,}/g, '<number>').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>'));
  };
  const look = (view: PullView): unknown => ({
    comments: view.comments.map(({ author, body, reactions }) => plain({ author, body, reactions: [...reactions].sort() })).sort(byText),
    checks: view.checks
      .map(({ name, headSha, status, conclusion, title, summary, text, annotations, actions }) => {
        return plain({ name, headSha, status, conclusion, title, summary, text, annotations, actions });
      })
      .sort(byText),
    reviews: view.reviews.map(({ body, comments }) => plain({ body, comments: comments.map((comment) => comment.body) })),
  });
  return pulls.map((pull) => look(jobs.hub.view(pull)));
}

function byText(a: unknown, b: unknown): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

describe('1,000 deliveries', { timeout: 600_000 }, () => {
  it('in any order, some of them twice, end as in order', async () => {
    const mark = (what: string, from: number): number => {
      if (process.env.NPU_ADVISOR_TEST_LOG) console.log(what, Math.round(performance.now() - from));
      return performance.now();
    };
    let at = performance.now();
    const orderly = await tell('orderly');
    at = mark('told', at);
    await jobs.accept(...orderly.deliveries);
    at = mark('accepted', at);
    await jobs.workOff();
    at = mark('worked off', at);
    const expected = ending(orderly);
    // What was reopened has its report again, and the gate of the other base has failed.
    expect(jobs.hub.view(orderly.pulls[3]!).checks.at(-1)).toMatchObject({ title: expect.stringMatching(/^Nothing to change/) });
    expect(jobs.hub.view(orderly.pulls[1]!).checks.at(-1)).toMatchObject({
      conclusion: 'failure',
      title: expect.stringMatching(/^Gate failed/),
    });

    for (let seed = 1; seed <= Number(process.env.NPU_ADVISOR_TEST_ORDERS ?? 1); seed++) {
      const random = seeded(seed);
      const story = await tell(`shuffled-${seed}`);
      const thousand = repeated(story.deliveries);
      expect(thousand).toHaveLength(TOTAL);
      const twice = thousand.flatMap((delivery) => (random() < 0.3 ? [delivery, delivery] : [delivery]));
      expect(twice.length).toBeGreaterThan(TOTAL * 1.2);
      const order = shuffled(twice, random);
      at = mark('told', at);
      // In lots, so that work is going on while others arrive.
      for (let i = 0; i < order.length; ) {
        const lot = 200 + Math.floor(random() * 400);
        await jobs.accept(...order.slice(i, i + lot));
        await jobs.workOff();
        i += lot;
      }
      at = mark('worked off', at);
      expect(ending(story), `seed ${seed}`).toEqual(expected);
      for (const pull of story.pulls) {
        const view = jobs.hub.view(pull);
        expect(view.comments.filter(({ body }) => body.startsWith(COMMENT_MARKER)).length).toBeLessThanOrEqual(1);
        const heads = view.checks.map(({ headSha }) => headSha);
        expect(new Set(heads).size).toBe(heads.length);
        for (const check of view.checks) expect(check.status).toBe('completed');
      }
    }
  });
});

describe('quiet', () => {
  it('a pull request with nothing to say gets a concluded check and no comment; ten pushes leave one comment', async () => {
    const repository = newRepository();
    const quiet = openPull(repository);
    await opened(quiet);
    await profiled(repository, quiet, { findings: [] });
    expect(jobs.hub.view(quiet)).toMatchObject({ comments: [], reviews: [], checks: [{ status: 'completed', conclusion: 'neutral' }] });

    const busy = openPull(repository);
    await opened(busy);
    for (let push = 0; push < 10; push++) {
      await profiled(repository, busy);
      if (push === 9) break;
      repository.pushTo(busy, { 'train.py': `${TRAIN_PY}# push ${push}\n` });
      await jobs.take('pull_request', { action: 'synchronize', pr: busy });
    }
    const view = jobs.hub.view(busy);
    expect(view.comments).toHaveLength(1);
    expect(view.comments[0]!.body).toContain(busy.headSha.slice(0, 7));
    expect(view.checks).toHaveLength(10);
    expect(new Set(view.checks.map(({ status }) => status))).toEqual(new Set(['completed']));
    expect(view.reviews.flatMap(({ comments }) => comments)).toHaveLength(1);
  });

  it('leaves the comment of another app alone, though it carries the same marker', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    const marker = `${COMMENT_MARKER}app=npu-advisor-staging pr=${pull.number} -->`;
    const other = repository.comment(pull, 'npu-advisor-staging[bot]', `${marker}\n### Theirs`, { type: 'Bot' });
    await profiled(repository, pull);
    await profiled(repository, pull, { findings: [] });
    const { comments } = jobs.hub.view(pull);
    expect(comments.find(({ id }) => id === other.id)?.body).toContain('### Theirs');
    expect(comments.map(({ author }) => author)).toEqual(['npu-advisor-staging[bot]', 'npu-advisor[bot]']);
  });

  it('a draft is looked at as any other: whoever profiles it wants to know', async () => {
    const repository = newRepository();
    const pull = openPull(repository, { draft: true });
    await opened(pull);
    await profiled(repository, pull);
    expect(ours(pull)).toHaveLength(1);
    repository.markReady(pull);
    const mark = jobs.hub.journal.length;
    await jobs.take('pull_request', { action: 'ready_for_review', pr: pull });
    expect(writesSince(mark)).toEqual([]);
  });

  it('a report of 300 causes whose names are full of characters beyond the basic plane fits', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    const findings = Array.from({ length: 300 }, (_, i) => ({ id: `${'𠀀🧵'.repeat(80)}${i}`, likely: 90 - i / 10 }));
    await profiled(repository, pull, { findings });
    const [comment] = ours(pull);
    expect(comment!.body.length).toBeLessThanOrEqual(65_536);
    expect(comment!.body.isWellFormed()).toBe(true);
    const [check] = jobs.hub.view(pull).checks;
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral' });
    for (const text of [check!.summary, check!.text]) expect(text!.length).toBeLessThanOrEqual(65_535);
    expect(`${check!.summary}${check!.text}`.isWellFormed()).toBe(true);
  });
});

describe('a conversation that is locked', () => {
  it('gets its check, and no job fails for the comment, the review or a reaction', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    repository.setLocked(pull, true);
    const mark = jobs.log.length;
    await profiled(repository, pull);
    expect(jobs.hub.view(pull)).toMatchObject({
      comments: [],
      reviews: [],
      checks: [{ status: 'completed', title: expect.stringMatching(/^1 cause/) }],
    });
    repository.setPermission('maintainer', 'write');
    await jobs.take('issue_comment', { action: 'created', comment: repository.comment(pull, 'maintainer', '/npu-advise status') });
    expect(jobs.hub.view(pull).comments).toHaveLength(1);
    expect(jobs.log.slice(mark).filter((line) => /given up|tried again/.test(line))).toEqual([]);

    repository.setLocked(pull, false);
    await jobs.take('issue_comment', { action: 'created', comment: repository.comment(pull, 'maintainer', '/npu-advise run') });
    expect(ours(pull).filter(({ body }) => body.startsWith(COMMENT_MARKER))).toHaveLength(1);
  });

  it('keeps the comment it had, as it was', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    await profiled(repository, pull);
    const before = ours(pull)[0]!.body;
    repository.setLocked(pull, true);
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# after the lock\n` });
    await jobs.take('pull_request', { action: 'synchronize', pr: pull });
    await profiled(repository, pull, { findings: [] });
    expect(ours(pull).map(({ body }) => body)).toEqual([before]);
    expect(jobs.hub.view(pull).checks.map(({ status }) => status)).toEqual(['completed', 'completed']);
  });
});

describe('a comment that somebody deletes', () => {
  it('comes again with the next report that is worth one, and not before', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    await profiled(repository, pull);
    repository.deleteComment({ repository, id: ours(pull)[0]!.id }, 'alice');
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# quiet\n` });
    await jobs.take('pull_request', { action: 'synchronize', pr: pull });
    await profiled(repository, pull, { findings: [] });
    expect(ours(pull)).toEqual([]);
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# loud\n` });
    await profiled(repository, pull);
    expect(ours(pull)).toHaveLength(1);
  });

  it('between our look and our edit is made anew', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    await profiled(repository, pull);
    const first = ours(pull)[0]!.id;
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# again\n` });
    // The list still shows it: what answers is a replica that lags behind.
    repository.lagComments(1);
    repository.deleteComment({ repository, id: first }, 'alice');
    await profiled(repository, pull);
    const comments = ours(pull);
    expect(comments).toHaveLength(1);
    expect(comments[0]!.id).not.toBe(first);
    expect(comments[0]!.body).toContain(pull.headSha.slice(0, 7));
  });
});

describe('what can vanish', () => {
  it.each([
    ['the pull request', /^GET \S*\/pulls\/\d+$/],
    ['the settings', /^GET \S*\/contents\//],
    ['the tree', /^GET \S*\/git\/trees\//],
    ['the files of the pull request', /^GET \S*\/pulls\/\d+\/files/],
    ['the run', /^GET \S*\/actions\/runs/],
    ['the artifact', /^GET \S*\/actions\/artifacts\/\d+/],
    ['the comments', /^GET \S*\/issues\/\d+\/comments/],
    ['the place for a comment', /^POST \S*\/issues\/\d+\/comments/],
    ['the commit of the check', /^POST \S*\/check-runs$/],
    ['the check', /^PATCH \S*\/check-runs\/\d+$/],
    ['the reviews', /^GET \S*\/pulls\/\d+\/(?:reviews|comments)/],
    ['the place for a review', /^POST \S*\/pulls\/\d+\/reviews/],
    ['the installation', /^POST \/app\/installations/],
  ])('%s: work ends, and all is well once it is back', async (_, match) => {
    const repository = newRepository();
    const pull = openPull(repository);
    const run = addRun({ repository }, pull, ONE_FINDING);
    const fault = jobs.hub.fault({ match, status: 404, times: 200 });
    const mark = jobs.hub.journal.length;
    const completed = await jobs.make('workflow_run', { action: 'completed', run });
    await jobs.accept(completed);
    await jobs.workOff();
    expect(jobs.hub.journal.length - mark).toBeLessThan(200);
    expect(await jobs.deps.store.requests.pendingSubjects(10)).toEqual([]);
    fault.times = 0;
    await jobs.accept({ ...completed, guid: `${completed.guid}-again` });
    await jobs.workOff();
    const view = jobs.hub.view(pull);
    expect([view.comments.length, view.reviews.length]).toEqual([1, 1]);
    expect(view.checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
  });

  it('a check run that GitHub has deleted is made anew', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    await opened(pull);
    const gone = jobs.hub.view(pull).checks[0]!.id;
    repository.deleteCheckRun(gone);
    await profiled(repository, pull);
    const [check, ...more] = jobs.hub.view(pull).checks;
    expect(more).toEqual([]);
    expect(check!.id).not.toBe(gone);
    expect(check).toMatchObject({ status: 'completed', title: expect.stringMatching(/^1 cause/) });
  });
});

describe('a GitHub that says "later"', () => {
  const LATER: readonly [string, Partial<FaultOptions>][] = [
    ['secondary limit, 403', { status: 403, headers: { 'retry-after': '1' }, times: 2 }],
    ['secondary limit, 429', { status: 429, headers: { 'retry-after': '1' }, times: 2 }],
    ['hourly limit', { status: 403, headers: { 'x-ratelimit-remaining': '0' }, times: 2 }],
    ['a burst of 502', { status: 502, times: 5 }],
  ];
  it.each(LATER.map(([name, fault], i) => ({ name, skip: [4, 9, 14, 17][i]!, fault })))(
    '$name, from call $skip on: ends with one comment, one check, one review, and the settings of the repository',
    async ({ skip, fault }) => {
      const repository = newRepository({ '.github/npu-advisor.yml': 'lang: zh\ngate: { severity: high }\n' });
      const pull = openPull(repository);
      const armed = jobs.hub.fault({ match: /^(?:GET|POST|PATCH) \/repos\//, skip, ...fault });
      await profiled(repository, pull);
      expect(armed.hits).toBe(fault.times);
      const view = jobs.hub.view(pull);
      expect([view.comments.length, view.reviews.length, view.checks.length]).toEqual([1, 1, 1]);
      // Settings that could not be read for the moment are not taken for absent.
      expect(view.checks[0]).toMatchObject({ status: 'completed', conclusion: 'failure' });
      expect(view.comments[0]!.body).toContain('原因');
    },
  );
});

describe('a repository that uploads without end', () => {
  it('has a limit for each day, and says so', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    await profiled(repository, pull, { findings: [] });
    const day = dayOf(jobs.deps.now());
    const fetched = await jobs.deps.store.usage.read(repository.id, day);
    expect(fetched).toBeGreaterThan(100);
    await jobs.deps.store.usage.add(repository.id, day, 1e12);
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# more\n` });
    await profiled(repository, pull);
    const check = jobs.hub.view(pull).checks.at(-1);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral', summary: expect.stringContaining('of downloads for today') });
    jobs.advance(24 * HOUR);
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# tomorrow\n` });
    await profiled(repository, pull);
    expect(jobs.hub.view(pull).checks.at(-1)?.title).toMatch(/^1 cause/);
  });
});

describe('a repository with another name', () => {
  it('is found under it by a deadline that was set before', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    await opened(pull);
    repository.rename('renamed');
    jobs.advance(25 * HOUR);
    await jobs.sweep();
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/No profile/i) }]);
  });

  it('and another owner goes on under the installation there, with what was posted', async () => {
    const repository = newRepository();
    newRepository({}, 'other-org');
    const pull = openPull(repository);
    await opened(pull);
    const first = openPull(repository);
    await profiled(repository, first);
    repository.rename('moved', 'other-org');
    await profiled(repository, pull);
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
    repository.pushTo(first, { 'train.py': `${TRAIN_PY}# moved\n` });
    await profiled(repository, first);
    expect(ours(first)).toHaveLength(1);

    // The old installation tells of a removal: by then the data is the new one's.
    const { repoId: _, ...removal } = { repoId: repository.id, installationId: 51_000_001 };
    await jobs.deps.store.erasures.ask(removal.installationId, repository.id);
    await jobs.sweep();
    expect(await jobs.deps.store.pullRequests.find(repository.id, first.number)).not.toBeNull();
  });
});

describe('a repository that cannot be written to', () => {
  it('because it is archived: no try is repeated, and its deadline is looked at once a day', async () => {
    const repository = newRepository();
    const pull = openPull(repository);
    await opened(pull);
    repository.setArchived(true);
    const mark = jobs.hub.journal.length;
    await profiled(repository, pull);
    const refused = () => jobs.hub.journal.slice(mark).filter(({ status }) => status === 403).length;
    const tries = refused();
    expect(tries).toBeLessThanOrEqual(3);
    jobs.advance(25 * HOUR);
    await jobs.sweep();
    const atDeadline = refused();
    for (const hours of [1, 2, 5]) {
      jobs.advance(hours * HOUR);
      await jobs.sweep();
    }
    expect(refused()).toBe(atDeadline);
    repository.setArchived(false);
    jobs.advance(25 * HOUR);
    await jobs.sweep();
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed' }]);
  });

  it('because the installation is suspended: unsuspended, what was left open is concluded', async () => {
    const repository = newRepository({}, 'sleepy');
    const pull = openPull(repository);
    await opened(pull);
    await jobs.take('installation', { action: 'suspend', owner: 'sleepy' });
    jobs.advance(25 * HOUR);
    await jobs.sweep();
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'queued' }]);
    expect((await jobs.deps.store.repositories.list()).map(({ repoId }) => repoId)).toContain(repository.id);
    const late = openPull(repository);
    await jobs.take('installation', { action: 'unsuspend', owner: 'sleepy' });
    await jobs.sweep();
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed' }]);
    // What was opened meanwhile, and told to nobody, is looked for like after an absence of the server.
    expect(await jobs.deps.store.marks.read('unseen-since')).toBeGreaterThan(0);
    await opened(late);

    // A check whose time has not come goes on waiting, and a profile that has arrived is looked at.
    await jobs.take('installation', { action: 'suspend', owner: 'sleepy' });
    const profiledLate = addRun({ repository }, late, ONE_FINDING);
    const waiting = openPull(repository);
    await jobs.take('installation', { action: 'unsuspend', owner: 'sleepy' });
    await opened(waiting);
    await jobs.take('installation', { action: 'new_permissions_accepted', owner: 'sleepy' });
    await jobs.sweep();
    expect(profiledLate.headSha).toBe(late.headSha);
    expect(jobs.hub.view(late).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
    expect(jobs.hub.view(waiting).checks).toMatchObject([{ status: 'queued' }]);
  });
});

describe('the App is removed', () => {
  /** Everything the store holds, table by table, as text. */
  async function dump(): Promise<Map<string, string>> {
    const { database } = jobs.deps.store;
    const tables = await database.query<{ name: string }>(
      `SELECT table_schema || '.' || table_name AS name FROM information_schema.tables
       WHERE table_schema IN ('npu_advisor', 'npu_advisor_queue') AND table_type = 'BASE TABLE' ORDER BY 1`,
    );
    const all = new Map<string, string>();
    for (const { name } of tables) {
      const rows = await database.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      all.set(name, rows.map(({ row }) => row).join('\n'));
    }
    return all;
  }

  /** A repository whose every trace can be told, in every table. */
  async function leaveTraces(owner: string): Promise<{ repository: RepositoryHandle; words: string[] }> {
    const repository = jobs.hub.addRepository({ owner, name: `traces-of-${owner}`, files: { 'train.py': 'import torch\n' } });
    await jobs.take('installation', { action: 'created', owner });
    const author = `author-of-${owner}`;
    const pull = openPull(repository, { author });
    await opened(pull);
    await profiled(repository, pull, { findings: [{ id: `cause-of-${owner}` }] });
    await jobs.take('issue_comment', { action: 'created', comment: repository.comment(pull, author, '/npu-advise run') });
    const { acknowledgements } = jobs.deps.store;
    const given = { finding: 'x', by: author, at: 1, sha: pull.headSha, reason: `reason-of-${owner}`, until: null };
    await acknowledgements.put(repository.id, pull.number, [{ ...given, savingMs: 1, rule: 'x', title: 'x' } as never]);
    await jobs.deps.store.portions.plan(repository.id, `job-of-${owner}`, [{ author }]);
    await jobs.opened.queue.poke(`pull-request/${repository.id}/${pull.number}`);
    await noteAlive(jobs.deps);
    return { repository, words: [owner, author, `cause-of-${owner}`, `reason-of-${owner}`, pull.headSha, String(repository.id)] };
  }

  const tellsOfRepositories = HOLDINGS.filter(({ ofRepository }) => ofRepository !== null);

  async function rowsOf(repository: RepositoryHandle): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { table, ofRepository } of tellsOfRepositories) {
      const [row] = await jobs.deps.store.database.query<{ n: number | string }>(
        `SELECT count(*) AS n FROM ${sqlName(table)} WHERE ${ofRepository}`,
        [repository.id],
      );
      counts[table] = Number(row!.n);
    }
    return counts;
  }

  it('every table is known to say what it holds', async () => {
    const known = new Set<string>(HOLDINGS.map(({ table }) => sqlName(table)));
    const tables = [...(await dump()).keys()];
    // A new table: say in src/store/holdings.ts what it holds, for how long, and how the rows of a repository are found.
    expect(tables.filter((name) => name.startsWith('npu_advisor.') && !known.has(name))).toEqual([]);
    expect([...known].filter((name) => !tables.includes(name))).toEqual([]);
  });

  it.each([
    ['altogether', 'installation'],
    ['from one repository', 'repository'],
    ['and nobody tells us', 'lost'],
  ] as const)('%s: within a day nothing is left of it, in no table and no file, and the rest stays', async (_, how) => {
    jobs.compacts = how === 'installation';
    const { repository, words } = await leaveTraces(`gone-${how}`);
    const stays = how === 'installation' ? await leaveTraces(`stays-${how}`) : null;
    const before = await rowsOf(repository);
    for (const [table, count] of Object.entries(before)) expect(count, `no row in ${table} to be erased`).toBeGreaterThan(0);
    const kept = stays === null ? null : await rowsOf(stays.repository);

    if (how === 'repository') {
      const event = { action: 'removed' as const, owner: repository.owner, repositories: [repository] };
      repository.uninstall();
      await jobs.take('installation_repositories', event);
    } else {
      const event = await jobs.make('installation', { action: 'deleted', owner: repository.owner });
      if (how === 'installation') await jobs.accept(event);
      else expect(await findRemoved(jobs.deps)).toBe(1);
      await jobs.workOff();
    }
    await jobs.sweep();
    expect(await rowsOf(repository)).toEqual(Object.fromEntries(Object.keys(before).map((table) => [table, 0])));
    if (stays !== null) expect(await rowsOf(stays.repository)).toEqual(kept);
    // What a job wrote meanwhile goes in a second pass; then it is forgotten that there was something to erase.
    await jobs.deps.store.reports.put({ key: `late-${how}`, repoId: repository.id, pr: 1, sha: words[4]!, json: JSON.stringify(words) });
    jobs.advance(4 * HOUR);
    await jobs.sweep();
    const left = [...(await dump())].flatMap(([table, text]) =>
      words.filter((word) => text.includes(word)).map((word) => `${table}: ${word}`),
    );
    // Of an installation that goes on, its own row stays.
    const own = how === 'repository' ? [`npu_advisor.installations: ${repository.owner}`] : [];
    expect(left).toEqual(own);
    if (jobs.compacts) expect(filesWith(words)).toEqual([]);
    jobs.compacts = false;
  });

  it('but back before we looked: nothing is erased', async () => {
    const { repository } = await leaveTraces('came-back');
    const before = await rowsOf(repository);
    const event = { action: 'removed' as const, owner: repository.owner, repositories: [repository] };
    await jobs.take('installation_repositories', event);
    await jobs.sweep();
    expect(await rowsOf(repository)).toEqual(before);
  });

  it.each(['one repository', 'all of it'])(
    'but by a transfer of %s: what is held goes to the installation of the new owner, and goes when that one is removed',
    async (what) => {
      const { repository } = await leaveTraces(`sold-${what.slice(0, 3)}`);
      const isAll = what === 'all of it';
      const before = await rowsOf(repository);
      const { github } = jobs.deps;
      const buyers = isAll ? 9_000_002 : 9_000_001;
      let lists = true;
      const paginate = async (route: string) => {
        if (!lists) throw Object.assign(new Error('bad gateway'), { status: 502 });
        const sold = { id: repository.id, name: 'renamed', owner: { login: 'buyer' } };
        return route === 'GET /app/installations' ? [{ id: buyers, suspended_at: null }] : [sold];
      };
      const asked = { paginate } as never;
      const deps = { ...jobs.deps, github: { ...github, app: asked, installation: async () => asked, reaches: async () => 'no' as const } };
      const { erasures, repositories } = deps.store;

      await erasures.ask(repository.installationId!, isAll ? null : repository.id);
      lists = false;
      await eraseRemoved(deps);
      expect(await rowsOf(repository)).toEqual(before);
      lists = true;
      jobs.advance(HOUR);
      await eraseRemoved(deps);
      expect(await rowsOf(repository)).toEqual(before);
      const held = (await repositories.list()).find(({ repoId }) => repoId === repository.id);
      expect(held).toEqual({ repoId: repository.id, installationId: buyers, owner: 'buyer', name: 'renamed' });

      await erasures.ask(buyers, repository.id);
      await eraseRemoved(deps);
      expect((await rowsOf(repository)).reports).toBe(0);
    },
  );

  it('and GitHub cannot be asked: after 20 hours its word is taken', async () => {
    const { repository } = await leaveTraces('unasked');
    const event = { action: 'removed' as const, owner: repository.owner, repositories: [repository] };
    await jobs.take('installation_repositories', event);
    const fault = jobs.hub.fault({ match: /access_tokens/, status: 502, times: 1000 });
    await jobs.sweep();
    expect((await rowsOf(repository)).reports).toBeGreaterThan(0);
    jobs.advance(21 * HOUR);
    await jobs.sweep();
    fault.times = 0;
    expect((await rowsOf(repository)).reports).toBe(0);
  });

  it('nothing stays for ever: all that ages is gone in the end', async () => {
    const { repository } = await leaveTraces('ages');
    jobs.advance(2 * 365 * 24 * HOUR);
    await prune(jobs.deps);
    const left = await rowsOf(repository);
    // The queue forgets by itself, a day after a job has ended; where a repository is, is known as long as the App is installed there.
    const { repositories: place, 'queue.job': queued, ...aged } = left;
    expect(place).toBe(1);
    expect(queued).toBeGreaterThan(0);
    expect(Object.entries(aged).filter(([, count]) => count > 0)).toEqual([]);
  });
});

describe('the data folder', () => {
  it('holds no token, key or secret', () => {
    expect(jobs.hub.tokens.length).toBeGreaterThan(20);
    expect(filesWith(['ghs_', 'PRIVATE KEY', 'x'.repeat(40), 'sig='])).toEqual([]);
  });

  it('and every token reached one repository, or only read which there are', () => {
    for (const { repositoryIds, permissions } of jobs.hub.tokens) {
      if (repositoryIds === null) expect(permissions).toEqual({ metadata: 'read' });
      else expect(repositoryIds).toHaveLength(1);
      expect(Object.keys(permissions)).not.toContain('issues');
      expect(permissions.contents ?? 'read').toBe('read');
    }
  });
});

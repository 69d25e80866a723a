/*
 * An installation that has used up its requests of the hour: its jobs give their places back until GitHub answers again, its checks say so,
 * nobody asks GitHub meanwhile, no try is used up, and other installations go on. The jobs are run without a server, with a clock that is moved.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PullHandle, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { gather } from '../../src/app/jobs/portions.ts';
import { subjectOf } from '../../src/app/jobs/subject.ts';
import { createGitHub, PERMISSIONS } from '../../src/github/client.ts';
import { limitOf, RateLimited } from '../../src/github/limits.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { addRun, ONE_FINDING, TRAIN_PY } from './support/world.ts';

const HOUR = 3600_000;
let jobs: Jobs;
beforeAll(async () => {
  jobs = await openJobs({ attempts: 2 });
});
afterAll(async () => {
  expect(jobs.hub.violations).toEqual([]);
  await jobs.close();
});
beforeEach(() => {
  jobs.waits = true;
  jobs.putOff.clear();
});

let count = 0;
/** A pull request in an installation of its own. */
function newPull(files: Record<string, string> = {}): { owner: string; repository: RepositoryHandle; pull: PullHandle } {
  const owner = `owner-${++count}`;
  const repository = jobs.hub.addRepository({ owner, name: 'train', files: { 'train.py': 'import torch\n', ...files } });
  const changes = { 'train.py': `${TRAIN_PY}# limited ${count}\n` };
  return { owner, repository, pull: repository.openPullRequest({ author: 'alice', branch: 'faster', title: 'Faster', changes }) };
}

/** The loopback GitHub's clock stands still while that of the jobs is moved; both agree on how long it takes. */
const limit = (owner: string, left: number, ms = HOUR): void => jobs.hub.limit(owner, left, Date.now() + ms);
const free = (owner: string): void => jobs.hub.limit(owner, 0, 0);
const completed = (repository: RepositoryHandle, pull: PullHandle) =>
  jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, pull, ONE_FINDING) });
const requestsOf = (owner: string): number => jobs.hub.journal.filter(({ path }) => path.includes(`/repos/${owner}/`)).length;
const attemptsOf = async (pull: PullHandle, repository: RepositoryHandle): Promise<number[]> =>
  (await jobs.deps.store.requests.pending(`pull-request/${repository.id}/${pull.number}`)).map(({ attempts }) => attempts);

describe('an installation at its limit for an hour', () => {
  it('waits without a place and without asking, says so, and ends well; another one is answered at once', async () => {
    const [limited, other] = [newPull(), newPull()];
    await jobs.take('pull_request', { action: 'opened', pr: limited.pull });
    // Beneath what is kept for saying it.
    limit(limited.owner, 40);
    await completed(limited.repository, limited.pull);
    await completed(other.repository, other.pull);

    expect(jobs.hub.view(other.pull).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
    const waiting = jobs.hub.view(limited.pull);
    expect(waiting.comments).toEqual([]);
    expect(waiting.checks[0]).toMatchObject({ status: 'queued', title: 'Waiting: the request limit of GitHub is reached' });
    expect(waiting.checks[0]?.summary).toMatch(/from \d\d:\d\d UTC on/);
    const times = [...jobs.putOff.values()].map((at) => at - jobs.deps.now());
    expect(times.length).toBeGreaterThan(0);
    for (const ms of times) {
      expect(ms).toBeGreaterThan(HOUR - 60_000);
      expect(ms).toBeLessThan(HOUR * 1.06);
    }

    // Whoever pokes it meanwhile brings GitHub nothing and the job no try.
    const asked = requestsOf(limited.owner);
    for (let i = 0; i < 4; i++) {
      jobs.advance(10 * 60_000);
      await completed(limited.repository, limited.pull);
    }
    expect(requestsOf(limited.owner)).toBe(asked);
    expect((await attemptsOf(limited.pull, limited.repository)).every((attempts) => attempts === 0)).toBe(true);

    free(limited.owner);
    jobs.waits = false;
    await jobs.workOff();
    const view = jobs.hub.view(limited.pull);
    expect(view.checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
    expect([view.comments.length, view.reviews.length]).toEqual([1, 1]);
  });

  it.each([1, 7, 14])('refused after %i requests, five hours in a row, still ends with one of everything', async (left) => {
    const { owner, repository, pull } = newPull({ '.github/npu-advisor.yml': 'gate: { severity: high }\n' });
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    // No share is kept: the refusal comes in the middle of the work.
    const faults = Array.from({ length: 5 }, (_, hour) => {
      const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(Math.ceil(Date.now() / 1000) + 3600) };
      return jobs.hub.fault({ match: new RegExp(`^(?:GET|POST|PATCH) \\S*/repos/${owner}/`), skip: left + hour, status: 403, headers });
    });
    await completed(repository, pull);
    for (let hour = 0; hour < 6; hour++) {
      jobs.advance(HOUR * 1.1);
      await jobs.workOff();
    }
    expect(faults.some(({ hits }) => hits > 0)).toBe(true);
    for (const fault of faults) fault.hits = 1;
    const view = jobs.hub.view(pull);
    expect([view.comments.length, view.reviews.length, view.checks.length]).toEqual([1, 1, 1]);
    expect(view.checks[0]).toMatchObject({ status: 'completed', conclusion: 'failure' });
  });

  it('has a check that waits for a profile say that again afterwards', async () => {
    const { owner, repository, pull } = newPull();
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    const before = jobs.hub.view(pull).checks[0]!.title;
    limit(owner, 40);
    const run = repository.addWorkflowRun({ pr: pull, status: 'in_progress', conclusion: null });
    await jobs.take('workflow_run', { action: 'in_progress', run });
    expect(jobs.hub.view(pull).checks[0]!.title).toBe('Waiting: the request limit of GitHub is reached');
    free(owner);
    jobs.waits = false;
    await jobs.workOff();
    const { title, status } = jobs.hub.view(pull).checks[0]!;
    expect(title).not.toBe('Waiting: the request limit of GitHub is reached');
    expect([before, title, status]).not.toContain('completed');
  });
});

describe('a large job whose portions are put off', () => {
  it('gives its own place back as well, and keeps what has been read', async () => {
    const { repository } = newPull();
    const target = { installationId: 1, repository: { id: repository.id, owner: 'acme', name: 'train' } };
    const artifacts = [1, 2].map((id) => ({
      id,
      name: `part-${id}`,
      bytes: 10,
      digest: null,
      expired: false,
      expiresAt: null,
      createdAt: '',
    }));
    const deps = {
      ...jobs.deps,
      options: { ...jobs.deps.options, spreadBytes: 1 },
      queue: { ...jobs.deps.queue, putOffFor: async () => HOUR },
    };
    const gathering = gather(deps, target, {
      artifacts: artifacts as never,
      progress: { tell: () => undefined },
      onSpread: async () => undefined,
    });
    const error = await gathering.catch((failure: unknown) => failure);
    expect(limitOf(error)?.until).toBeGreaterThan(jobs.deps.now() + HOUR - 60_000);
    expect(await jobs.deps.store.database.query('SELECT id FROM npu_advisor.portions WHERE repo_id = $1', [repository.id])).toHaveLength(2);
  });
});

describe('the queue', () => {
  it('wakes once, later; a poke comes before', async () => {
    const { queue } = jobs.opened;
    const subject = subjectOf.portion({ id: 77, owner: '', name: '' }, 'job', 0);
    await queue.putOff(subject, HOUR);
    await queue.putOff(subject, HOUR / 2);
    const waiting = async (): Promise<{ late: boolean }[]> =>
      jobs.opened.store.database.query(
        `SELECT start_after > now() AS late FROM npu_advisor_queue.job WHERE singleton_key = $1 AND state = 'created' ORDER BY 1`,
        [subject],
      );
    expect(await waiting()).toEqual([{ late: true }]);
    await queue.pokeIfIdle(subject);
    expect(await waiting()).toHaveLength(1);
    await queue.poke(subject);
    expect(await waiting()).toEqual([{ late: false }, { late: true }]);
    const ms = await queue.putOffFor('portion/77/job/');
    expect(ms).toBeGreaterThan(HOUR - 60_000);
    expect(ms).toBeLessThanOrEqual(HOUR);
    expect(await queue.putOffFor('portion/78/')).toBeNull();
  });
});

describe('how long GitHub asks to wait', () => {
  const date = new Date(Date.now() - 30 * 24 * HOUR);
  const at = (ms: number): string => String(Math.floor((date.getTime() + ms) / 1000));
  it.each([
    [
      'goes by its own clock, a month behind ours',
      { date: date.toUTCString(), 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': at(20 * 60_000) },
      20 * 60,
    ],
    [
      'is what it names, not the reset',
      { date: date.toUTCString(), 'retry-after': '300', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': at(HOUR) },
      300,
    ],
    ['is never more than an hour', { 'retry-after': '86400' }, 3660],
  ])('%s', async (_, headers, seconds) => {
    const { owner, repository } = newPull();
    jobs.hub.fault({ match: new RegExp(`^GET \\S*/repos/${owner}/`), status: 429, headers });
    const github = createGitHub({
      appId: 4242,
      privateKey: jobs.hub.privateKeyPem,
      apiUrl: jobs.hub.apiUrl,
      userAgent: 'test',
      throttle: true,
      log: jobs.deps.log,
    });
    const ref = { id: repository.id, owner, name: 'train' };
    const octokit = await github.client(repository.installationId!, ref, PERMISSIONS.read);
    const get = (): Promise<unknown> => octokit.rest.repos.get({ owner, repo: 'train' });
    const error = await get().catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(RateLimited);
    const waitS = ((error as RateLimited).until - Date.now()) / 1000;
    expect(waitS).toBeGreaterThan(seconds - 5);
    expect(waitS).toBeLessThan(seconds + 5);
    const asked = requestsOf(owner);
    await expect(get()).rejects.toBeInstanceOf(RateLimited);
    expect(requestsOf(owner)).toBe(asked);
  });
});

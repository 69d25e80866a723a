/* Pull requests with the same head: GitHub has one check run for the commit, and each of them has its own base, settings, gate and comment. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { combine, type Share, worstOf } from '../../src/app/jobs/shared-check.ts';
import type { DesiredCheck } from '../../src/github/publish/check.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { addRun, ONE_FINDING, TRAIN_PY } from './support/world.ts';

let jobs: Jobs;
beforeAll(async () => {
  jobs = await openJobs();
});
afterAll(async () => {
  expect(jobs.hub.violations).toEqual([]);
  await jobs.close();
});

let count = 0;
/** A repository whose release branch has a gate and whose main branch only informs; `twin` goes into the release branch. */
async function openTwins(over: { fork?: string } = {}): Promise<{ repository: RepositoryHandle; pull: PullHandle; twin: PullHandle }> {
  const repository = jobs.hub.addRepository({ owner: 'acme', name: `twins-${++count}`, files: { 'train.py': 'import torch\n' } });
  repository.commitFile('.github/npu-advisor.yml', 'gate: { severity: high }\ndeadline_minutes: 30\non_missing: failure\n', {
    branch: 'release',
  });
  const changes = { 'train.py': `${TRAIN_PY}# twins ${count}\n` };
  const common = { author: 'alice', branch: 'both', title: 'x' };
  const pull = repository.openPullRequest({ ...common, changes });
  const fork = over.fork === undefined ? {} : { fork: { owner: over.fork } };
  const twin = repository.openPullRequest({ ...common, base: 'release', changes: {}, ...fork });
  expect(twin.headSha).toBe(pull.headSha);
  await opened(pull);
  await opened(twin);
  return { repository, pull, twin };
}
const opened = (pr: PullHandle) => jobs.take('pull_request', { action: 'opened', pr });
const closed = (pr: PullHandle) => jobs.take('pull_request', { action: 'closed', pr });
const profiled = (repository: RepositoryHandle, pr: PullHandle) =>
  jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, pr, ONE_FINDING) });
const checksOf = (pull: PullHandle) => jobs.hub.view(pull).checks.filter(({ headSha }) => headSha === pull.headSha);
const comments = (pull: PullHandle) => jobs.hub.view(pull).comments.map(({ body }) => body);
const shareOf = (pull: PullHandle) => jobs.deps.store.checks.find(pull.repository.id, pull.headSha, pull.number);

describe('two pull requests with the same head', () => {
  it('have a comment each and one check, which shows the worst and names both; closing one leaves the other', async () => {
    const { repository, pull, twin } = await openTwins();
    expect(checksOf(pull)).toMatchObject([{ status: 'queued', summary: expect.not.stringContaining('several pull requests') }]);
    await profiled(repository, pull);
    expect([comments(pull).length, comments(twin).length]).toEqual([1, 1]);
    expect(comments(pull)[0]).toMatch(/### ⚠️/);
    expect(comments(twin)[0]).toMatch(/### ❌/);
    const checks = checksOf(pull);
    expect(checks).toMatchObject([{ status: 'completed', conclusion: 'failure', title: expect.stringMatching(/^Gate failed/) }]);
    expect(checks[0]!.summary).toContain(`- #${pull.number}: \`neutral\`, 1 cause`);
    expect(checks[0]!.summary).toMatch(new RegExp(`- #${twin.number}: \`failure\`, Gate failed: .*\\(shown here\\)`));
    expect(await shareOf(pull)).toMatchObject({ phase: 'completed', conclusion: 'neutral', hasReport: true });
    expect(await shareOf(twin)).toMatchObject({ phase: 'completed', conclusion: 'failure', hasReport: true });

    repository.closePullRequest(twin);
    await closed(twin);
    expect(checksOf(pull)).toMatchObject([{ status: 'completed', conclusion: 'neutral', summary: expect.not.stringContaining('several') }]);
    expect(await shareOf(twin)).toBeNull();
    repository.reopenPullRequest(twin);
    await jobs.take('pull_request', { action: 'reopened', pr: twin });
    expect(checksOf(pull)).toMatchObject([{ status: 'completed', conclusion: 'failure' }]);
    // Both: the check stands as it was.
    for (const one of [pull, twin]) repository.closePullRequest(one);
    await closed(pull);
    await closed(twin);
    expect(checksOf(pull)).toMatchObject([{ status: 'completed' }]);
  });

  it('wait for each other, each until its own deadline, and a failure is told at once', async () => {
    const { repository, pull, twin } = await openTwins();
    jobs.advance(31 * 60_000);
    await jobs.sweep();
    expect(checksOf(pull)).toMatchObject([{ status: 'completed', conclusion: 'failure' }]);
    expect(checksOf(pull)[0]!.summary).toMatch(new RegExp(`- #${pull.number}: Waiting`));
    expect(await shareOf(pull)).toMatchObject({ phase: 'queued' });
    // Without the other one it goes on waiting.
    repository.closePullRequest(twin);
    await closed(twin);
    expect(checksOf(pull)).toMatchObject([{ status: 'queued' }]);
    jobs.advance(150 * 60_000);
    await jobs.sweep();
    expect(checksOf(pull)).toMatchObject([{ status: 'completed', conclusion: 'neutral' }]);
  });

  it('are both looked at by a re-run, and the button accepts what it shows, in both', async () => {
    const { repository, pull, twin } = await openTwins();
    await profiled(repository, pull);
    repository.setPermission('maintainer', 'write');
    const check = checksOf(pull)[0]!.id;
    await jobs.take('check_run', { action: 'requested_action', check, identifier: 'ack-all' }, { sender: 'maintainer' });
    expect(checksOf(pull)).toMatchObject([{ status: 'completed', conclusion: 'neutral', summary: expect.stringContaining('`success`') }]);
    for (const one of [pull, twin]) {
      expect(await jobs.deps.store.acknowledgements.of(repository.id, one.number)).toMatchObject([{ by: 'maintainer' }]);
      expect(comments(one)[0]).toContain('maintainer');
    }
    const mark = jobs.hub.journal.length;
    await jobs.take('check_run', { action: 'rerequested', check }, { sender: 'maintainer' });
    const looked = jobs.hub.journal.slice(mark).filter(({ method, path }) => method === 'GET' && /\/zip$/.test(path));
    expect(looked).toHaveLength(2);
    expect(checksOf(pull)).toMatchObject([{ status: 'completed' }]);

    // A word on one of them is for that one.
    const said = repository.comment(twin, 'maintainer', '/npu-advise unack all');
    await jobs.take('issue_comment', { action: 'created', comment: said });
    expect(checksOf(pull)).toMatchObject([{ status: 'completed', conclusion: 'failure' }]);
    expect(await jobs.deps.store.acknowledgements.of(repository.id, pull.number)).toHaveLength(1);
    expect(await jobs.deps.store.acknowledgements.of(repository.id, twin.number)).toEqual([]);
  });

  it('part when one of them moves on, whether or not we are told', async () => {
    const { repository, pull, twin } = await openTwins({ fork: 'mallory' });
    await profiled(repository, twin);
    await profiled(repository, pull);
    const shared = pull.headSha;
    expect(checksOf(pull)).toMatchObject([{ conclusion: 'failure' }]);
    repository.pushTo(twin, { 'train.py': `${TRAIN_PY}# on\n` });
    await jobs.take('pull_request', { action: 'synchronize', pr: twin });
    expect(checksOf(pull)).toMatchObject([{ status: 'completed', conclusion: 'neutral' }]);
    expect(checksOf(twin)).toMatchObject([{ status: 'queued' }]);
    expect(await jobs.deps.store.checks.ofCommit(repository.id, shared)).toMatchObject([{ pr: pull.number }]);

    const next = await openTwins();
    await profiled(next.repository, next.pull);
    expect(checksOf(next.pull)).toMatchObject([{ conclusion: 'failure' }]);
    next.repository.closePullRequest(next.twin);
    await profiled(next.repository, next.pull);
    expect(checksOf(next.pull)).toMatchObject([{ status: 'completed', conclusion: 'neutral' }]);
  });

  it('of which one was opened for the branch of a closed one, which has no say any more', async () => {
    const { repository, pull, twin } = await openTwins();
    await profiled(repository, pull);
    for (const one of [pull, twin]) repository.closePullRequest(one);
    await closed(pull);
    await closed(twin);
    const again = repository.openPullRequest({ author: 'alice', branch: 'both', title: 'again', changes: {} });
    await opened(again);
    expect(checksOf(again)).toMatchObject([
      { status: 'completed', conclusion: 'neutral', summary: expect.not.stringContaining('several') },
    ]);
    expect(comments(again)).toHaveLength(1);
    expect(await jobs.deps.store.checks.ofCommit(repository.id, again.headSha)).toMatchObject([{ pr: again.number }]);
  });
});

describe('a fork that holds the commit of somebody else', () => {
  it('has no say on their pull request, whatever it uploads; a run of the repository itself has', async () => {
    const repository = jobs.hub.addRepository({ owner: 'acme', name: `twins-${++count}`, files: { 'train.py': 'import torch\n' } });
    const changes = { 'train.py': `${TRAIN_PY}# fork ${count}\n` };
    const ours = repository.openPullRequest({ author: 'alice', branch: 'both', title: 'x', changes });
    const theirs = repository.openPullRequest({ author: 'mallory', branch: 'both', title: 'x', changes: {}, fork: { owner: 'mallory' } });
    await opened(ours);
    await opened(theirs);
    await profiled(repository, theirs);
    // What runs on ours has us look for profiles of the commit.
    const run = repository.addWorkflowRun({ pr: ours, status: 'in_progress' });
    await jobs.take('workflow_run', { action: 'in_progress', run });
    expect([comments(ours).length, comments(theirs).length]).toEqual([0, 1]);
    expect(await shareOf(ours)).toMatchObject({ phase: 'queued', said: expect.stringContaining('underway') });
    const said = repository.comment(ours, 'alice', '/npu-advise status');
    await jobs.take('issue_comment', { action: 'created', comment: said });
    expect(comments(ours).at(-1)).toContain('ignored, it is of another fork');
    expect(await jobs.deps.store.profiles.ofCommits(repository.id, 'default', [ours.headSha])).toEqual([]);
    repository.closePullRequest(theirs);
    await closed(theirs);
    expect(checksOf(ours)).toMatchObject([{ status: 'in_progress' }]);

    repository.reopenPullRequest(theirs);
    await profiled(repository, ours);
    expect(await shareOf(ours)).toMatchObject({ phase: 'completed', hasReport: true });
    expect(checksOf(ours)).toMatchObject([{ status: 'completed' }]);
  });
});

describe('the check run of several pull requests', () => {
  const said = (over: Partial<DesiredCheck>): DesiredCheck => {
    return { status: 'completed', conclusion: 'neutral', title: 't', summary: 's', text: '', annotations: [], actions: [], ...over };
  };
  const share = (pr: number, over: Partial<DesiredCheck>): Share => ({ pr, said: said(over) });
  it.each([
    ['a failure before what is still waited for', [{ status: 'queued', conclusion: null }, { conclusion: 'failure' }], 2],
    ['what is waited for before what passed', [{ conclusion: 'success' }, { status: 'in_progress', conclusion: null }], 2],
    ['broken settings before a pass', [{ conclusion: 'success' }, { conclusion: 'action_required' }], 2],
    ['of equals the one with a report', [{}, { text: 'report' }], 2],
    ['else the first', [{}, {}], 1],
  ] as const)('shows %s', (_, all, pr) => {
    expect(worstOf(all.map((over, i) => share(i + 1, over)))?.pr).toBe(pr);
  });

  it('says nothing of several where they say the same, and names foreign text harmlessly', () => {
    expect(combine([])).toBeNull();
    expect(combine([share(1, {}), share(2, {})])?.summary).toBe('s');
    const text = combine([share(1, { lang: 'zh', conclusion: 'failure' }), share(2, { title: '@team <b>`x`' })])!.summary;
    expect(text).toContain('多个 PR');
    expect(text).not.toMatch(/@team|<b>/);
  });
});

/* Corners of the platform that a maintainer meets sooner or later; citizen.test.ts has the everyday ones. The jobs run without a server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { COMMENT_MARKER } from '../../src/github/publish/comment.ts';
import type { Plan } from './support/fake-analyser.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { addRun, ONE_FINDING, TRAIN_PY } from './support/world.ts';
import { makeZip } from './support/zip.ts';

let jobs: Jobs;
beforeAll(async () => {
  jobs = await openJobs();
});
afterAll(async () => {
  expect(jobs.hub.violations).toEqual([]);
  await jobs.close();
});

let count = 0;
function newPull(files: Record<string, string> = {}, fork?: { owner: string }): { repository: RepositoryHandle; pull: PullHandle } {
  const all = { 'train.py': 'import torch\n', ...files };
  const repository = jobs.hub.addRepository({ owner: 'acme', name: `corner-${count++}`, files: all });
  const changes = { 'train.py': `${TRAIN_PY}# corner ${count}\n` };
  const pull = repository.openPullRequest({ author: 'alice', branch: 'corner', title: 'Faster', changes, ...(fork ? { fork } : {}) });
  return { repository, pull };
}
const opened = (pr: PullHandle) => jobs.take('pull_request', { action: 'opened', pr });
const profiled = (repository: RepositoryHandle, pr: PullHandle, plan: Plan = ONE_FINDING) =>
  jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, pr, plan) });
const asked = (repository: RepositoryHandle, pr: PullHandle, text: string, by = 'alice') =>
  jobs.take('issue_comment', { action: 'created', comment: repository.comment(pr, by, text) });
const sticky = (pr: PullHandle) => jobs.hub.view(pr).comments.filter(({ body }) => body.startsWith(COMMENT_MARKER));

describe('a token', () => {
  it('that is revoked, or has ended while a job waited for its turn, is replaced; the job goes on', async () => {
    const { repository, pull } = newPull();
    await opened(pull);
    const slot = jobs.deps.analysisSlot;
    const mark = jobs.log.length;
    Object.assign(jobs.deps, {
      analysisSlot: (async (body) => {
        jobs.hub.revokeTokens();
        return body();
      }) satisfies typeof slot,
    });
    await profiled(repository, pull).finally(() => Object.assign(jobs.deps, { analysisSlot: slot }));
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
    expect(sticky(pull)).toHaveLength(1);
    expect(jobs.log.slice(mark).filter((line) => /given up/.test(line))).toEqual([]);
  });

  it.each([
    ['unknown', 401, 'Bad credentials'],
    ['without its permissions', 403, 'Resource not accessible by integration'],
  ])('that is %s to GitHub for a moment is no reason to give up', async (_, status, message) => {
    const { repository, pull } = newPull();
    const fault = jobs.hub.fault({ match: /^GET \S*\/pulls\/\d+$/, status, message });
    const mark = jobs.log.length;
    await profiled(repository, pull);
    expect(fault.hits).toBe(1);
    expect(sticky(pull)).toHaveLength(1);
    expect(jobs.log.slice(mark).filter((line) => /given up/.test(line))).toEqual([]);
  });
});

describe('the run of a first-time contributor', () => {
  it('is awaited until a maintainer approves it, though GitHub tells it as completed', async () => {
    const { repository, pull } = newPull({ '.github/npu-advisor.yml': 'on_missing: failure\n' }, { owner: 'newcomer' });
    await opened(pull);
    const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'action_required' });
    await jobs.take('workflow_run', { action: 'completed', run });
    expect(jobs.hub.view(pull).checks).toMatchObject([
      { status: 'queued', title: expect.stringContaining('to be approved'), summary: expect.stringContaining('maintainer has to approve') },
    ]);
    await asked(repository, pull, '/npu-advise status', 'bob');
    expect(jobs.hub.view(pull).comments.at(-1)!.body).toContain('a maintainer has to approve it');

    repository.updateWorkflowRun(run, { status: 'in_progress' });
    await jobs.take('workflow_run', { action: 'in_progress', run });
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'in_progress', title: expect.stringContaining('underway') }]);
    repository.addArtifact(run, { name: 'npu-profile', zipBuffer: makeZip({ 'prof/plan.json': JSON.stringify(ONE_FINDING) }) });
    repository.updateWorkflowRun(run, { status: 'completed', conclusion: 'success' });
    await jobs.take('workflow_run', { action: 'completed', run });
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
  });
});

describe('a conversation that was locked', () => {
  it('and is open again, has its comment brought up to date', async () => {
    const { repository, pull } = newPull();
    await profiled(repository, pull);
    repository.setLocked(pull, true);
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# while locked\n` });
    await profiled(repository, pull);
    const head = pull.headSha.slice(0, 7);
    expect(sticky(pull)[0]!.body).not.toContain(head);
    repository.setLocked(pull, false);
    await asked(repository, pull, '/npu-advise run');
    expect(sticky(pull)).toHaveLength(1);
    expect(sticky(pull)[0]!.body).toContain(head);
  });
});

describe('an answer that is lost', () => {
  it('to an update with annotations: each of them stands once', async () => {
    const { repository, pull } = newPull();
    const match = /^PATCH \S*\/check-runs\/\d+$/;
    const findings = [1, 2].map((line) => ({ id: `cause-${line}`, edit: { file: 'train.py', line, after: `# ${line}` } }));
    await opened(pull);
    const fault = jobs.hub.fault({ match, phase: 'after', dropConnection: true, skip: 1, times: 2 });
    await profiled(repository, pull, { findings });
    expect(fault.hits).toBe(2);
    const [check] = jobs.hub.view(pull).checks;
    expect(check).toMatchObject({ status: 'completed', title: expect.stringMatching(/^2 causes/) });
    const placed = check!.annotations.map(({ path, startLine, title }) => `${path}:${startLine} ${title}`);
    expect(placed.length).toBeGreaterThan(0);
    expect(new Set(placed).size).toBe(placed.length);
  });
});

describe('a limit that is reached while the code is read', () => {
  it.each([
    ['tree', /^GET \S*\/git\/trees\//],
    ['file', /^GET \S*\/git\/blobs\//],
  ])('of the %s is not taken for a repository without it: the change is still suggested', async (_, match) => {
    const { repository, pull } = newPull();
    const limit = { status: 403, headers: { 'retry-after': '60' } };
    const fault = jobs.hub.fault({ match, ...limit });
    await profiled(repository, pull);
    expect(fault.hits).toBe(1);
    expect(jobs.hub.view(pull).reviews).toHaveLength(1);
  });
});

describe('settings', () => {
  it('that break between two runs block with the reason; mended, everything is as before', async () => {
    const { repository, pull } = newPull({ '.github/npu-advisor.yml': 'gate: { severity: high }\n' });
    await profiled(repository, pull);
    expect(jobs.hub.view(pull).checks).toMatchObject([{ conclusion: 'failure' }]);
    const { id } = sticky(pull)[0]!;
    repository.commitFile('.github/npu-advisor.yml', 'gatee: { severity: high }\n');
    await asked(repository, pull, '/npu-advise run');
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'action_required' }]);
    repository.commitFile('.github/npu-advisor.yml', 'gate: { severity: high }\n');
    await asked(repository, pull, '/npu-advise rerun');
    expect(jobs.hub.view(pull).checks).toMatchObject([
      { status: 'completed', conclusion: 'failure', title: expect.stringMatching(/cause/) },
    ]);
    expect(sticky(pull).map((one) => one.id)).toEqual([id]);
  });

  it('of the new base decide, when a pull request is retargeted while its profile is analysed', async () => {
    const { repository, pull } = newPull();
    repository.commitFile('.github/npu-advisor.yml', 'gate: { severity: high }\n', { branch: 'release' });
    await opened(pull);
    const slot = jobs.deps.analysisSlot;
    let isMoved = false;
    Object.assign(jobs.deps, {
      analysisSlot: (async (body) => {
        if (!isMoved) {
          isMoved = true;
          const base = { ref: { from: 'main' }, sha: { from: pull.baseSha } };
          repository.retarget(pull, 'release');
          await jobs.accept(await jobs.make('pull_request', { action: 'edited', pr: pull, changes: { base } }));
        }
        return body();
      }) satisfies typeof slot,
    });
    await profiled(repository, pull).finally(() => Object.assign(jobs.deps, { analysisSlot: slot }));
    await jobs.workOff();
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'failure' }]);
    expect(sticky(pull)).toHaveLength(1);
  });
});

describe('what is said again', () => {
  it('the same run delivered twice more, and an artifact uploaded again by another attempt, edit the comment only where it changes', async () => {
    const { repository, pull } = newPull();
    const run = addRun({ repository }, pull, ONE_FINDING);
    await jobs.take('workflow_run', { action: 'completed', run });
    const edits = () => jobs.hub.journal.filter(({ method, path }) => method !== 'GET' && /\/(?:comments|reviews)/.test(path)).length;
    const before = edits();
    await jobs.take('workflow_run', { action: 'completed', run });
    await jobs.take('workflow_run', { action: 'completed', run });
    expect(edits()).toBe(before);

    repository.updateWorkflowRun(run, { runAttempt: 2, status: 'completed', conclusion: 'success' });
    repository.addArtifact(run, { name: 'npu-profile', zipBuffer: makeZip({ 'prof/plan.json': JSON.stringify({ findings: [] }) }) });
    await jobs.take('workflow_run', { action: 'completed', run });
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', title: expect.not.stringMatching(/^1 cause/) }]);
    expect(sticky(pull)).toHaveLength(1);
    expect(edits()).toBe(before + 1);
  });
});

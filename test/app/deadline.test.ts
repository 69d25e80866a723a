import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LoopbackGitHub, type PullHandle, type RepositoryHandle, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { concludeOpenCheck, openCheck, plainCheck, writeCheck } from '../../src/app/jobs/check-run.ts';
import type { Dependencies } from '../../src/app/jobs/dependencies.ts';
import { handleSubject } from '../../src/app/jobs/handle-subject.ts';
import { ingest } from '../../src/app/jobs/ingest.ts';
import { reconcile } from '../../src/app/jobs/reconcile.ts';
import { sweep } from '../../src/app/jobs/sweep.ts';
import { AdviseError } from '../../src/base/errors.ts';
import { createGitHub } from '../../src/github/client.ts';
import { createLogger } from '../../src/github/log.ts';
import { createOutboundPolicy } from '../../src/github/outbound.ts';
import { openSpool } from '../../src/store/embedded/spool.ts';
import { type OpenStore, openStore, spoolFolder } from '../../src/store/open.ts';
import type { Delivery } from '../../src/store/ports.ts';
import { copyEmptyStore } from './support/empty-store.ts';

/** The jobs with a clock that can be moved, without a server around them. */
const dataDir = mkdtempSync(join(tmpdir(), 'npu-deadline-'));
let hub: LoopbackGitHub;
let opened: OpenStore;
let deps: Dependencies;
let repository: RepositoryHandle;
let clock = Date.now();
const subjects = new Set<string>();

beforeAll(async () => {
  hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'npu-advisor', webhookSecret: 'x'.repeat(40) } });
  repository = hub.addRepository({
    owner: 'acme',
    name: 'train',
    files: { 'train.py': 'import torch\n', '.github/npu-advisor.yml': 'deadline_minutes: 30\non_missing: failure\nlang: zh\n' },
  });
  const log = createLogger('silent');
  await copyEmptyStore(dataDir);
  opened = await openStore({
    databaseUrl: null,
    dataDir,
    retryLimit: 1,
    retryDelaySeconds: 0,
    expireSeconds: 60,
    onError: () => undefined,
  });
  deps = {
    store: opened.store,
    queue: {
      ...opened.queue,
      poke: async (subject) => void subjects.add(subject),
      pokeIfIdle: async (subject) => void subjects.add(subject),
    },
    github: createGitHub({ appId: 4242, privateKey: hub.privateKeyPem, apiUrl: hub.apiUrl, userAgent: 'test', throttle: false, log }),
    analysis: {
      analyse: async () => {
        throw new AdviseError('analysis-memory', 'the analysis was asked for', 'Nothing to do.');
      },
      parts: async () => [],
      digest: async () => undefined,
    },
    policy: createOutboundPolicy([new URL(hub.blobUrl).host], hub.apiUrl),
    catalog: undefined,
    timed: (_, body) => body(),
    log,
    options: {
      maxArtifactBytes: 1e6,
      maxDailyBytes: 1e12,
      spreadBytes: 0,
      portionBytes: 1e9,
      downloadTimeoutMs: 1000,
      analysisTimeoutMs: 1000,
      attempts: 2,
      retryDelaySeconds: 0,
      analyses: 1,
      progressMs: 0,
      commandsPerHour: 30,
      isTest: true,
    },
    scratch: join(dataDir, 'scratch'),
    killPoint: () => undefined,
    signal: new AbortController().signal,
    analysisSlot: (body) => body(),
    links: null,
    now: () => clock,
  };
});
afterAll(async () => {
  await opened.queue.drain(100);
  await opened.close();
  await hub.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function workOff(): Promise<void> {
  while (subjects.size > 0) {
    const [subject] = subjects;
    subjects.delete(subject!);
    await handleSubject(deps, subject!).catch(() => subjects.add(subject!));
  }
}

function head(pull: PullHandle, guid: string): Delivery {
  const target = { installationId: repository.installationId, repository: { id: repository.id, owner: 'acme', name: 'train' } };
  const task = { kind: 'head-changed', ...target, pr: pull.number, headSha: pull.headSha };
  return { guid, event: 'pull_request.opened', receivedAt: clock, body: JSON.stringify(task) };
}

async function take(delivery: Delivery): Promise<void> {
  await openSpool(spoolFolder(dataDir)).accept(delivery);
  await ingest(deps, opened.inbox);
  await workOff();
}

describe('the deadline', () => {
  it('concludes a check that waits for a profile, as on_missing says, in the language of the repository', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'one', title: 'one', changes: { 'train.py': '# 1\n' } });
    await take(head(pull, 'open-1'));
    expect(hub.view(pull).checks).toMatchObject([{ status: 'queued', title: expect.stringMatching(/^等待/) }]);

    clock += 29 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks[0]?.status).toBe('queued');

    clock += 2 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'failure' }]);
    expect(hub.view(pull).comments).toEqual([]);

    const writes = hub.journal.length;
    await sweep(deps);
    await workOff();
    expect(hub.journal.length).toBe(writes);
  });

  it('concludes the check of a commit that was pushed over as superseded', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'two', title: 'two', changes: { 'train.py': '# 2\n' } });
    await take(head(pull, 'open-2'));
    repository.forcePush(pull, { 'train.py': '# 3\n' });
    clock += 31 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'neutral' }]);
  });

  it('looks for the profile first: the event that announced it may be lost', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'late', title: 'late', changes: { 'train.py': '# late\n' } });
    await take(head(pull, 'open-late'));
    const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    repository.addArtifact(run, { name: 'npu-profile', zipBuffer: Buffer.from('PK') });
    clock += 31 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', summary: expect.stringContaining('the analysis was asked for') }]);
  });

  it('concludes all the same where the runs cannot be looked through', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'runs', title: 'runs', changes: { 'train.py': '# runs\n' } });
    await take(head(pull, 'open-runs'));
    const fault = hub.fault({ match: /^GET \S*\/actions\/runs/, status: 502, times: 100 });
    clock += 31 * 60_000;
    await sweep(deps);
    await workOff();
    fault.times = 0;
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'failure', title: '到期仍无结果' }]);
  });

  it('tries again later when GitHub does not answer', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'three', title: 'three', changes: { 'train.py': '# 4\n' } });
    await take(head(pull, 'open-3'));
    const fault = hub.fault({ match: /^GET \S*\/pulls\/\d+/, status: 502, times: 100 });
    clock += 31 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks[0]?.status).toBe('queued');
    fault.times = 0;
    clock += 16 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks[0]?.status).toBe('completed');
  });
});

describe('a check that is opened again', () => {
  const rerun = (pull: PullHandle, guid: string): Delivery => {
    const target = { installationId: repository.installationId, repository: { id: repository.id, owner: 'acme', name: 'train' } };
    const task = { kind: 'rerun', ...target, headSha: pull.headSha, actor: null, checkRunId: null, appId: 4242 };
    return { guid, event: 'check_run.rerequested', receivedAt: clock, body: JSON.stringify(task) };
  };
  let pull: PullHandle;
  beforeAll(async () => {
    pull = repository.openPullRequest({ author: 'alice', branch: 'again', title: 'again', changes: { 'train.py': '# again\n' } });
    const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    repository.addArtifact(run, { name: 'npu-profile', zipBuffer: Buffer.from('PK') });
    await take(head(pull, 'open-again'));
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed' }]);
    clock += 60 * 60_000;
  });

  it.each([
    // The conclusion cannot be written, only that the work has begun.
    ['that the work has begun', 'again-1', 1],
    ['nothing at all', 'again-2', 0],
  ])('and then can be told %s is concluded in the end', async (_, guid, skip) => {
    const fault = hub.fault({ match: /^PATCH \S*\/check-runs\/\d+/, skip, status: 502, times: 100 });
    await take(rerun(pull, guid));
    const record = await opened.store.checks.find(repository.id, pull.headSha, pull.number);
    expect(record).toMatchObject({ phase: 'in_progress' });
    expect(record!.deadlineAt).toBeGreaterThan(clock);
    fault.times = 0;
    clock += 16 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed' }]);
  });

  it('has a deadline of its own, also where GitHub has deleted its run', async () => {
    repository.deleteCheckRun(hub.view(pull).checks[0]!.id);
    const place = {
      target: { installationId: repository.installationId!, repository: { id: repository.id, owner: 'acme', name: 'train' } },
      sha: pull.headSha,
      pr: pull.number,
    };
    const desired = await openCheck(deps, place, 'zh', 'analysing');
    const first = await writeCheck(deps, place, desired, false);
    expect(first.deadlineAt).toBeGreaterThan(clock);
    repository.deleteCheckRun(first.checkRunId!);
    clock += 60_000;
    const second = await writeCheck(deps, place, desired, false);
    expect(second.checkRunId).not.toBe(first.checkRunId);
    // One that is open keeps its deadline.
    expect(second.deadlineAt).toBe(first.deadlineAt);
    clock += 181 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed' }]);
  });
});

describe('a pull request that is closed and opened again', () => {
  const closed = (pull: PullHandle, guid: string): Delivery => {
    const delivery = head(pull, guid);
    return { ...delivery, event: 'pull_request.closed', body: delivery.body!.replace('head-changed', 'closed') };
  };

  it('has its check waiting again, with a new deadline; a `closed` that comes late changes nothing', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'back', title: 'back', changes: { 'train.py': '# back\n' } });
    await take(head(pull, 'open-back'));
    repository.closePullRequest(pull);
    await take(closed(pull, 'close-back'));
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', title: 'Pull request closed' }]);
    clock += 45 * 60_000;

    repository.reopenPullRequest(pull);
    await take(head(pull, 'reopen-back'));
    await take(closed(pull, 'close-back-late'));
    expect(hub.view(pull).checks).toMatchObject([{ status: 'queued', title: expect.stringMatching(/^等待/) }]);
    clock += 29 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks[0]?.status).toBe('queued');
    clock += 2 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'failure' }]);

    // What was looked at stands.
    await take(head(pull, 'ready-back'));
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'failure' }]);
  });

  it('or pushed back to a commit of before, is looked at again', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'to', title: 'to', changes: { 'train.py': '# to\n' } });
    await take(head(pull, 'open-to'));
    const target = { installationId: repository.installationId!, repository: { id: repository.id, owner: 'acme', name: 'train' } };
    await concludeOpenCheck(deps, { target, sha: pull.headSha, pr: pull.number }, plainCheck('superseded', 'zh'));
    const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    repository.addArtifact(run, { name: 'npu-profile', zipBuffer: Buffer.from('PK') });
    await take(head(pull, 'back-to'));
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed', summary: expect.stringContaining('the analysis was asked for') }]);
  });
});

describe('a request that cannot be read', () => {
  it('fails alone', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'bad', title: 'bad', changes: { 'train.py': '# bad\n' } });
    const subject = `pull-request/${repository.id}/${pull.number}`;
    await opened.store.requests.add({ subject, kind: 'analyse', origin: 'bad', payload: { kind: 'analyse', pr: 0 } });
    await take(head(pull, 'open-bad'));
    expect(await opened.store.requests.pending(subject)).toEqual([]);
    expect(await opened.store.requests.reopen('bad')).toEqual([subject]);
    expect(hub.view(pull).checks).toMatchObject([{ status: 'queued' }]);
    clock += 31 * 60_000;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toMatchObject([{ status: 'completed' }]);
  });

  it('is not made for the commit of a merge queue after an absence', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'q', title: 'q', changes: { 'train.py': '# q\n' } });
    await take(head(pull, 'open-q'));
    const group = repository.addMergeGroup(pull);
    const place = { repoId: repository.id, owner: 'acme', repo: 'train', installationId: repository.installationId! };
    const check = { ...place, pr: 0, checkRunId: null, url: null, phase: 'queued', conclusion: null, hasReport: false } as const;
    await opened.store.checks.put({ ...check, sha: group.headSha, deadlineAt: clock + 60_000 });
    await opened.store.marks.write('unseen-since', clock - 60_000);
    await reconcile(deps);
    expect(await opened.store.requests.pending(`pull-request/${repository.id}/0`)).toEqual([]);
    expect(await opened.store.requests.pending(`pull-request/${repository.id}/${pull.number}`)).toHaveLength(1);
    await workOff();
    await opened.store.checks.put({ ...check, sha: group.headSha, phase: 'completed', deadlineAt: null });
  });
});

describe('a redelivery by hand', () => {
  it('revives what failed and leaves alone what is done', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'four', title: 'four', changes: { 'train.py': '# 5\n' } });
    const fault = hub.fault({ match: /^POST \S*\/check-runs$/, status: 502, times: 100 });
    await take(head(pull, 'open-4'));
    expect(hub.view(pull).checks).toEqual([]);
    fault.times = 0;
    await sweep(deps);
    await workOff();
    expect(hub.view(pull).checks).toEqual([]);

    await take(head(pull, 'open-4'));
    expect(hub.view(pull).checks).toHaveLength(1);
    const seen = hub.journal.length;
    await take(head(pull, 'open-4'));
    expect(hub.journal.slice(seen).filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('a repository the app was removed from', () => {
  it('ends quietly', async () => {
    const pull = repository.openPullRequest({ author: 'alice', branch: 'five', title: 'five', changes: { 'train.py': '# 6\n' } });
    const delivery = head(pull, 'open-5');
    repository.uninstall();
    await take(delivery);
    expect(await opened.store.requests.pendingSubjects(10)).toEqual([]);
  });
});

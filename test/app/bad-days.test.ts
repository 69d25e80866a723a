/* A disk without room, and a GitHub that hangs or breaks off: bounded, tried again, then told. The jobs are run without a server. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle } from '../../lab/loopback-github/index.ts';
import { createGitHub, PERMISSIONS } from '../../src/github/client.ts';
import { openSpool } from '../../src/store/embedded/spool.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { addRun, ONE_FINDING, TRAIN_PY } from './support/world.ts';

let jobs: Jobs;
let count = 0;
const disk = mkdtempSync(join(tmpdir(), 'npu-small-disk-'));
/** A real file system with room for 256 KB; null where this may not be mounted. */
let isMounted = false;
beforeAll(async () => {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk], { stdio: 'ignore' });
    isMounted = true;
  } catch {
    // Said by the tests that are skipped.
  }
  jobs = await openJobs({ attempts: 2 });
});
afterAll(async () => {
  expect(jobs.hub.violations).toEqual([]);
  await jobs.close();
  if (isMounted) execFileSync('umount', [disk]);
  rmSync(disk, { recursive: true, force: true });
});

function newPull() {
  const repository = jobs.hub.addRepository({ owner: 'acme', name: `bad-${++count}`, files: { 'train.py': 'import torch\n' } });
  const changes = { 'train.py': `${TRAIN_PY}# bad ${count}\n` };
  return { repository, pull: repository.openPullRequest({ author: 'alice', branch: 'b', title: 't', changes }) };
}
const seen = (pull: PullHandle) => jobs.hub.view(pull).checks.map(({ status, summary }) => ({ status, summary }));

describe('a disk without room', () => {
  it('while an artifact is downloaded: the check says so, nothing is left behind, and the next one with room is answered', async (context) => {
    if (!isMounted) return context.skip('a small file system cannot be mounted here');
    const { scratch } = jobs.deps;
    const own = jobs.deps as { scratch: string };
    own.scratch = join(disk, 'scratch');
    try {
      const { repository, pull } = newPull();
      const large = addRun({ repository }, pull, { content: Buffer.alloc(1 << 20, 7) });
      await jobs.take('workflow_run', { action: 'completed', run: large });
      expect(seen(pull)).toMatchObject([{ status: 'completed', summary: expect.stringContaining('the disk of the server is full') }]);
      expect(readdirSync(own.scratch)).toEqual([]);
      await jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, pull, ONE_FINDING) });
      expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
      expect(readdirSync(own.scratch)).toEqual([]);
    } finally {
      own.scratch = scratch;
    }
  });

  it('while a delivery is kept: it is not accepted, no draft is left, and sent again with room it is', async (context) => {
    if (!isMounted) return context.skip('a small file system cannot be mounted here');
    const folder = join(disk, 'spool');
    mkdirSync(folder);
    const spool = openSpool(folder);
    const delivery = { guid: 'g', event: 'push', receivedAt: 1, body: 'x'.repeat(100_000) };
    const filler = join(disk, 'filler');
    expect(() => writeFileSync(filler, Buffer.alloc(1 << 20))).toThrow(/ENOSPC/);
    await expect(spool.accept(delivery)).rejects.toThrow(/ENOSPC/);
    expect(readdirSync(folder)).toEqual([]);
    rmSync(filler);
    expect(await spool.accept(delivery)).toBe('accepted');
    expect(readdirSync(folder)).toHaveLength(1);
    await spool.close();
  });
});

describe('a GitHub that is slow', () => {
  it('says nothing at all: the request ends, and another one is made', async () => {
    const { repository } = newPull();
    const { hub, deps } = jobs;
    const github = createGitHub({
      appId: 4242,
      privateKey: hub.privateKeyPem,
      apiUrl: hub.apiUrl,
      userAgent: 'test',
      throttle: false,
      log: deps.log,
      timeoutMs: 300,
    });
    const ref = { id: repository.id, owner: repository.owner, name: repository.name };
    const octokit = await github.client(repository.installationId!, ref, PERMISSIONS.read);
    const where = { owner: ref.owner, repo: ref.name };
    const once = hub.fault({ match: new RegExp(`^GET \\S*/${ref.name}$`), hangMs: 900 });
    expect((await octokit.rest.repos.get(where)).status).toBe(200);
    expect(once.hits).toBe(1);
    const always = hub.fault({ match: new RegExp(`^GET \\S*/${ref.name}$`), hangMs: 900, times: 20 });
    const started = performance.now();
    await expect(octokit.rest.repos.get(where)).rejects.toThrow();
    expect(performance.now() - started).toBeLessThan(5000);
    always.times = 0;
  });

  it('a body that trickles beyond the time allowed is told after all tries, and nothing is left', async () => {
    const { repository, pull } = newPull();
    const options = jobs.deps.options as { downloadTimeoutMs: number };
    const before = options.downloadTimeoutMs;
    options.downloadTimeoutMs = 400;
    try {
      const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
      repository.addArtifact(run, { name: 'npu-profile', zipBuffer: Buffer.alloc(100_000), slowBytesPerSecond: 2000 });
      await jobs.take('workflow_run', { action: 'completed', run });
    } finally {
      options.downloadTimeoutMs = before;
    }
    expect(seen(pull)).toMatchObject([{ status: 'completed', summary: expect.stringContaining('did not finish after several tries') }]);
    expect(readdirSync(jobs.deps.scratch)).toEqual([]);
  });

  it('the connection is reset in the middle of an artifact: it is gone on with', async () => {
    const { repository, pull } = newPull();
    const drop = jobs.hub.fault({ match: /^BLOB GET/, dropConnection: true, times: 2 });
    await jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, pull, ONE_FINDING) });
    expect(drop.hits).toBe(2);
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', title: expect.stringMatching(/^1 cause/) }]);
  });
});

/* Every way a profile comes to the App, and what is made of those of branches; digests read by the real analyser, end to end. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle, PullView, RepositoryHandle, RunHandle } from '../../lab/loopback-github/index.ts';
import type { JobSpec } from '../../lab/simulator/index.ts';
import { findElsewhere } from '../../src/app/jobs/find-elsewhere.ts';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import { createGitHub, PERMISSIONS } from '../../src/github/client.ts';
import { downloadArtifact } from '../../src/github/download.ts';
import { createLogger } from '../../src/github/log.ts';
import { createOutboundPolicy } from '../../src/github/outbound.ts';
import { factsToJson } from '../../src/model/facts-json.ts';
import { simulated } from '../support/simulated.ts';
import { createWorld, isConcluded, openPull, type ServerProcess, until, type World } from './support/world.ts';

const SMALL: JobSpec = { ranks: 2, layers: 1, steps: 6, seed: 1 };
let world: World;
let server: ServerProcess;
let usual: Buffer;
let again: Buffer;
let slow: Buffer;
beforeAll(async () => {
  const digest = async (spec: JobSpec): Promise<Buffer> => Buffer.from(factsToJson((await simulated(spec)).ranks));
  usual = await digest(SMALL);
  again = await digest({ ...SMALL, seed: 2 });
  slow = await digest({ ...SMALL, seed: 3, faults: [{ kind: 'slow-rank', rank: 1, factor: 1.5 }] });
  world = await createWorld();
  server = await world.start({ NPU_ADVISOR_TEST_ANALYSER: '' });
});
afterAll(() => world.close());
afterEach(() => {
  expect(world.hub.violations).toEqual([]);
});

let repositories = 0;
function repositoryWith(config: string, over: { private?: boolean } = {}): RepositoryHandle {
  const files = { 'train.py': 'import torch\n', '.github/npu-advisor.yml': config };
  return world.hub.addRepository({ owner: 'acme', name: `roads-${repositories++}`, files, ...over });
}

const completed = (run: RunHandle) => world.hub.deliver('workflow_run', { action: 'completed', run });
const count = (text: string): number => server.log().split(text).length - 1;

async function logged(text: string, times: number): Promise<void> {
  const end = Date.now() + 120_000;
  while (count(text) < times) {
    if (Date.now() > end) throw new Error(`not logged ${times} times: ${text}\n${server.log().slice(-3000)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** `archive: false` uploads the file itself, not a zip of it. */
const uploaded = (digest: Buffer) => ({ zipBuffer: digest, contentType: 'application/octet-stream' });

/** A profile of a branch, taken in. */
async function profileOf(
  repository: RepositoryHandle,
  run: Parameters<RepositoryHandle['addWorkflowRun']>[0],
  digest: Buffer,
): Promise<void> {
  const kept = count('a profile of a branch is kept');
  const added = repository.addWorkflowRun(run);
  repository.addArtifact(added, { name: 'npu-profile', ...uploaded(digest) });
  await completed(added);
  await logged('a profile of a branch is kept', kept + 1);
}

async function analysed(repository: RepositoryHandle, pull: PullHandle, digest: Buffer): Promise<PullView> {
  const run = repository.addWorkflowRun({ pr: pull });
  repository.addArtifact(run, { name: 'npu-profile', ...uploaded(digest) });
  await completed(run);
  return until(world, pull, isConcluded, 'concluded', 120_000);
}

describe('a pull request against the history of its branch', { timeout: 150_000 }, () => {
  let repository: RepositoryHandle;
  let base: string;
  let pull: PullHandle;
  beforeAll(async () => {
    repository = repositoryWith('gate: { regression: { share: 0.05 } }\ncomment: always\n');
    base = repository.branchSha();
    // As before the App was installed: no event of it ever comes.
    repository.addArtifact(repository.addWorkflowRun({ event: 'push' }), { name: 'npu-profile', ...uploaded(usual) });
  });

  it('fails for a slow-down against the merge base, which is taken in and named with its age', async () => {
    pull = openPull({ repository });
    const { checks, comments } = await analysed(repository, pull, slow);
    expect(checks[0]).toMatchObject({ conclusion: 'failure' });
    expect(comments[0]?.body).toContain(`Base: \`${base.slice(0, 7)}\`, the merge base with \`main\`, profiled less than an hour ago.`);
    expect(comments[0]?.body).toMatch(/Gate: failed/);
  });

  it('passes in the merge queue with the verdict of the pull request, and is never held up there', async () => {
    const group = repository.addMergeGroup(pull);
    await world.hub.deliver('merge_group', { action: 'checks_requested', group });
    const check = await checkOf(repository, group.headSha);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral', output: { title: 'Nothing to do in the merge queue' } });
    expect(check.output.summary).toContain('ended with `failure`');
  });

  it('of a fork is compared with the nearest commit before, and never becomes a baseline', async () => {
    repository.commitFile('notes.md', 'no profile of this one');
    const fork = openPull({ repository }, { fork: 'mallory', author: 'mallory', branch: 'main' });
    const { checks, comments } = await analysed(repository, fork, again);
    expect(checks[0]).toMatchObject({ conclusion: 'success' });
    expect(comments[0]?.body).toContain(`Base: \`${base.slice(0, 7)}\` on \`main\``);
    expect(comments[0]?.body).toContain('has no profile, this is the commit before it');
    expect(count('a profile of a branch is kept')).toBe(1);
  });
});

async function checksOf(repository: RepositoryHandle, sha: string): Promise<CheckJson[]> {
  const address = `${world.hub.apiUrl}/repos/${repository.fullName}/commits/${sha}/check-runs`;
  const answer = await fetch(address, { headers: { 'user-agent': 'test' } });
  return ((await answer.json()) as { check_runs: CheckJson[] }).check_runs;
}

/** The check run of a commit that belongs to no pull request. */
async function checkOf(repository: RepositoryHandle, sha: string): Promise<CheckJson> {
  const end = Date.now() + 120_000;
  for (;;) {
    const checks = await checksOf(repository, sha);
    const done = checks.find(({ status }) => status === 'completed');
    if (done !== undefined) return done;
    if (Date.now() > end) throw new Error(`no concluded check: ${JSON.stringify(checks)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

interface CheckJson {
  readonly status: string;
  readonly conclusion: string | null;
  readonly output: { readonly title: string; readonly summary: string };
}

describe('a merge queue that wants a profile of its own', { timeout: 150_000 }, () => {
  it('waits for the run of its commit and applies the gate; a group that is gone is let go', async () => {
    const repository = repositoryWith('merge_queue: profile\ngate: { severity: medium }\n');
    // Its own settings, without the gate, are not those that count.
    const changes = { 'train.py': 'import torch_npu\n', '.github/npu-advisor.yml': 'merge_queue: profile\n' };
    const pull = repository.openPullRequest({ author: 'alice', branch: 'no-gate', title: 'Faster', changes });
    const group = repository.addMergeGroup(pull);
    await world.hub.deliver('merge_group', { action: 'checks_requested', group });
    const branch = group.headRef.replace('refs/heads/', '');
    await profileOf(repository, { event: 'merge_group', branch, sha: group.headSha }, slow);
    const judged = await checkOf(repository, group.headSha);
    expect(judged.conclusion, judged.output.summary).toBe('failure');

    // Nothing is waited for when the last run that might upload is over; until then, everything is.
    const empty = repository.addMergeGroup(openPull({ repository }));
    await world.hub.deliver('merge_group', { action: 'checks_requested', group: empty });
    const ref = { event: 'merge_group', branch: empty.headRef.replace('refs/heads/', ''), sha: empty.headSha };
    const [first, last] = [repository.addWorkflowRun(ref), repository.addWorkflowRun({ ...ref, status: 'in_progress' })];
    await completed(first);
    await logged('a run of a merge queue ended without a profile', 1);
    expect((await checksOf(repository, empty.headSha)).map(({ status }) => status)).toEqual(['queued']);
    repository.updateWorkflowRun(last, { status: 'completed', conclusion: 'success' });
    await completed(last);
    expect(await checkOf(repository, empty.headSha)).toMatchObject({
      conclusion: 'neutral',
      output: { title: expect.stringContaining('No profile arrived') },
    });

    const gone = repository.addMergeGroup(openPull({ repository }));
    await world.hub.deliver('merge_group', { action: 'checks_requested', group: gone });
    await world.hub.deliver('merge_group', { action: 'destroyed', group: gone, reason: 'dequeued' });
    expect(await checkOf(repository, gone.headSha)).toMatchObject({ conclusion: 'neutral' });
  });
});

describe('a profile that no run uploaded', { timeout: 150_000 }, () => {
  const opened = (pr: PullHandle) => world.hub.deliver('pull_request', { action: 'opened', pr });
  const foreign = () => world.hub.journal.filter(({ host, path }) => host !== 'api' && /\/(raw|files|user-attachments)\//.test(path));

  it('is a file of the pull request', async () => {
    const repository = repositoryWith('files: ["perf/*.json"]\n');
    const pull = repository.openPullRequest({
      ...{ author: 'alice', branch: 'with-profile', title: 'Faster' },
      changes: { 'perf/run.json': slow.toString(), 'perf/readme.md': 'x' },
    });
    await opened(pull);
    const view = await until(world, pull, isConcluded, 'concluded', 120_000);
    expect(view.checks[0]?.title).toMatch(/^1 cause/);
  });

  it('is an asset of a release whose name holds the commit', async () => {
    const repository = repositoryWith('');
    const pull = openPull({ repository });
    repository.addReleaseAsset('npu-profiles', { name: 'npu-profile-0000000.json', ...uploaded(Buffer.from('never read')) });
    repository.addReleaseAsset('npu-profiles', { name: `npu-profile-${pull.headSha.slice(0, 9)}.json`, ...uploaded(slow) });
    const { hub } = world;
    const log = createLogger('silent');
    const github = createGitHub({
      ...{ appId: 4242, privateKey: hub.privateKeyPem, apiUrl: hub.apiUrl },
      userAgent: 'test',
      throttle: false,
      log,
    });
    const target = { installationId: repository.installationId!, repository };
    const octokit = await github.client(target.installationId, repository, PERMISSIONS.read);
    const find = (tag: string) =>
      findElsewhere(
        octokit,
        { target, pr: pull.number, headSha: pull.headSha },
        { ...DEFAULT_CONFIG, release: { tag, assets: ['npu-*{sha}*'] } },
      );
    expect(await find('no-such-tag')).toBeNull();
    const found = await find('npu-profiles');
    expect(found?.artifacts).toMatchObject([{ bytes: slow.length, digest: expect.stringMatching(/^sha256:/) }]);
    const folder = mkdtempSync(join(world.dataDir, 'asset-'));
    const policy = createOutboundPolicy([new URL(hub.blobUrl).host], hub.apiUrl);
    const limits = { maxBytes: 1e8, timeoutMs: 30_000, attempts: 1, retryDelayMs: 1 };
    const signal = new AbortController().signal;
    const { path } = await downloadArtifact({ octokit, repository, artifact: found!.artifacts[0]!, folder, policy, limits, signal });
    expect(readFileSync(path).equals(slow)).toBe(true);
  });

  it('is an attachment somebody points at, in a public repository that allows it', async () => {
    const repository = repositoryWith('attachments: true\n');
    const pull = openPull({ repository });
    const address = repository.attach({ name: 'profile.json', ...uploaded(slow) });
    const comment = repository.comment(pull, 'alice', `/npu-advise run [profile.json](${address})`);
    await world.hub.deliver('issue_comment', { action: 'created', comment });
    const view = await until(world, pull, (v) => isConcluded(v) && v.comments.length === 2, 'published');
    expect(view.checks[0]?.title).toMatch(/^1 cause/);
    expect(view.checks[0]?.text).toContain('is the word of who attached it');

    const closed = repositoryWith('attachments: true\n', { private: true });
    const other = openPull({ repository: closed });
    closed.setPermission('alice', 'write');
    const refused = closed.comment(other, 'alice', `/npu-advise run ${closed.attach({ name: 'x.json', ...uploaded(slow) })}`);
    await world.hub.deliver('issue_comment', { action: 'created', comment: refused });
    const answer = await until(world, other, (v) => v.comments.length === 2, 'answered');
    expect(answer.comments[1]?.body).toContain('private repository');
  });

  it('turns no failed check green as an attachment, which anybody can make', async () => {
    const repository = repositoryWith('attachments: true\ngate: { severity: medium }\n');
    const pull = openPull({ repository });
    const failed = await analysed(repository, pull, slow);
    expect(failed.checks[0]?.conclusion).toBe('failure');
    const ask = async (text: string) => {
      const comment = repository.comment(pull, 'alice', `/npu-advise ${text}`);
      await world.hub.deliver('issue_comment', { action: 'created', comment });
    };
    await ask(`run ${repository.attach({ name: 'fast.json', ...uploaded(usual) })}`);
    const said = (v: PullView) => isConcluded(v) && /stays failed/.test(v.checks[0]?.summary ?? '');
    const view = await until(world, pull, said, 'said', 120_000);
    expect(view.checks[0]?.conclusion).toBe('failure');
    expect(view.checks[0]?.text).toContain('is the word of who attached it');
    await ask('run');
    const again = await until(world, pull, (v) => isConcluded(v) && !said(v), 'looked at again', 120_000);
    expect(again.checks[0]).toMatchObject({ conclusion: 'failure', title: failed.checks[0]?.title });
  });

  it('was fetched without a token from hosts that are not the API', () => {
    expect(foreign().length).toBeGreaterThanOrEqual(4);
    expect(foreign().every(({ authorization }) => !authorization)).toBe(true);
  });
});

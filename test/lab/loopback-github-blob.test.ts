import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Octokit } from 'octokit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type LoopbackGitHub, type RepositoryHandle, type RunHandle, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { APP, installationOf, REPO, refusal } from './loopback-github-kit.ts';

const ZIP = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251));
let hub: LoopbackGitHub;
let repo: RepositoryHandle;
let run: RunHandle;
let octokit: Octokit;

beforeEach(async () => {
  hub = await startLoopbackGitHub({ app: APP });
  repo = hub.addRepository({ owner: REPO.owner, name: REPO.repo });
  run = repo.addWorkflowRun({ event: 'push' });
  octokit = await installationOf(hub, repo);
});

afterEach(async () => {
  await hub.close();
});

async function address(id: number): Promise<string> {
  const request = { redirect: 'manual' } as const;
  const answer = await octokit.rest.actions.downloadArtifact({ ...REPO, artifact_id: id, archive_format: 'zip', request });
  return answer.headers.location ?? '';
}

const bytesOf = async (answer: Response): Promise<Buffer> => Buffer.from(await answer.arrayBuffer());

test('the artifact lies on another host, without a token', async () => {
  const url = await address(repo.addArtifact(run, { name: 'a', zipBuffer: ZIP }).id);
  expect(new URL(url).origin).toBe(hub.blobUrl);
  expect(hub.blobUrl).not.toBe(hub.url);
  const answer = await fetch(url);
  expect(answer.headers.get('content-length')).toBe('1000');
  expect(await bytesOf(answer)).toEqual(ZIP);
});

test('a token sent along is refused as Azure refuses it', async () => {
  const url = await address(repo.addArtifact(run, { name: 'a', zipBuffer: ZIP }).id);
  const answer = await fetch(url, { headers: { authorization: 'Bearer ghs_secret' } });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain('<Code>InvalidAuthenticationInfo</Code>');
  expect(hub.journal.filter((entry) => entry.host === 'blob')).toMatchObject([{ authorization: true, status: 400 }]);
});

test('octokit following the redirect by itself drops the token', async () => {
  const { id } = repo.addArtifact(run, { name: 'a', zipBuffer: ZIP });
  const { data } = await octokit.rest.actions.downloadArtifact({ ...REPO, artifact_id: id, archive_format: 'zip' });
  expect(Buffer.from(data as ArrayBuffer)).toEqual(ZIP);
  expect(hub.journal.at(-1)).toMatchObject({ host: 'blob', authorization: false });
});

test('an address is good for a minute and only as it was signed', async () => {
  const url = await address(repo.addArtifact(run, { name: 'a', zipBuffer: ZIP }).id);
  hub.advanceClock(58_000);
  expect((await fetch(url)).status).toBe(200);
  hub.advanceClock(3000);
  expect((await fetch(url)).status).toBe(403);
  expect((await fetch(url.replace(/se=[^&]*/, 'se=2099-01-01T00%3A00%3A00.000Z'))).status).toBe(403);
});

test('ranges, with the state of the file they belong to', async () => {
  const url = await address(repo.addArtifact(run, { name: 'a', zipBuffer: ZIP }).id);
  const etag = (await fetch(url, { method: 'HEAD' })).headers.get('etag') ?? '';
  const part = await fetch(url, { headers: { range: 'bytes=100-199', 'if-match': etag } });
  expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 100-199/1000']);
  expect(await bytesOf(part)).toEqual(ZIP.subarray(100, 200));
  expect(await bytesOf(await fetch(url, { headers: { range: 'bytes=990-' } }))).toEqual(ZIP.subarray(990));
  // Azure knows no suffix and no list of ranges.
  for (const range of ['bytes=-10', 'bytes=0-1,5-6']) {
    const whole = await fetch(url, { headers: { range } });
    expect([whole.status, await bytesOf(whole)]).toEqual([200, ZIP]);
  }
  expect((await fetch(url, { headers: { range: 'bytes=1000-' } })).status).toBe(416);
  expect((await fetch(url, { headers: { range: 'bytes=0-1', 'if-match': '"other"' } })).status).toBe(412);
});

test('a host that ignores ranges, and one whose file changes', async () => {
  const artifact = repo.addArtifact(run, { name: 'a', zipBuffer: ZIP, ignoreRange: true });
  const answer = await fetch(await address(artifact.id), { headers: { range: 'bytes=0-9' } });
  expect([answer.status, answer.headers.get('accept-ranges'), (await bytesOf(answer)).length]).toEqual([200, null, 1000]);
  const url = await address(repo.addArtifact(run, { name: 'b', zipBuffer: ZIP }).id);
  const etag = (await fetch(url, { method: 'HEAD' })).headers.get('etag') ?? '';
  repo.replaceArtifact({ ...artifact, id: artifact.id + 1 }, ZIP.subarray(1));
  expect((await fetch(url, { headers: { range: 'bytes=0-9', 'if-match': etag } })).status).toBe(412);
  expect(hub.journal.filter((entry) => entry.host === 'blob').map((entry) => entry.bytes)).toEqual([1000, 0, 0]);
});

test('an expired artifact is 410, in the list it is marked', async () => {
  const artifact = repo.addArtifact(run, { name: 'a', zipBuffer: ZIP });
  repo.expireArtifact(artifact);
  expect(await refusal(address(artifact.id))).toMatchObject({ status: 410 });
  const { data } = await octokit.rest.actions.listWorkflowRunArtifacts({ ...REPO, run_id: run.id });
  expect(data.artifacts[0]?.expired).toBe(true);
  expect(hub.refusals.map((entry) => entry.rule)).toEqual(['artifact-expired']);
  expect(hub.violations).toEqual([]);
});

test('digests: right, wrong, none', async () => {
  repo.addArtifact(run, { name: 'right', zipBuffer: ZIP });
  repo.addArtifact(run, { name: 'none', zipBuffer: ZIP, digest: null });
  repo.addArtifact(run, { name: 'wrong', zipBuffer: ZIP, digest: 'wrong' });
  const { data } = await octokit.rest.actions.listWorkflowRunArtifacts({ ...REPO, run_id: run.id, direction: 'asc' });
  const [right, none, wrong] = data.artifacts.map((artifact) => artifact.digest);
  expect([right, none, wrong]).toEqual([expect.stringMatching(/^sha256:/), null, expect.stringMatching(/^sha256:/)]);
  expect(wrong).not.toBe(right);
  expect(hub.violations).toEqual([]);
});

test('a download can break, crawl or come without its length', async () => {
  const torn = await fetch(await address(repo.addArtifact(run, { name: 'torn', zipBuffer: ZIP, truncateAt: 400 }).id));
  await expect(bytesOf(torn)).rejects.toThrow();
  const started = performance.now();
  const slow = repo.addArtifact(run, { name: 'slow', zipBuffer: ZIP, slowBytesPerSecond: 10_000 });
  expect(await bytesOf(await fetch(await address(slow.id)))).toEqual(ZIP);
  expect(performance.now() - started).toBeGreaterThan(80);
  const open = await fetch(await address(repo.addArtifact(run, { name: 'open', zipBuffer: ZIP, omitLength: true }).id));
  expect(open.headers.get('content-length')).toBeNull();
  expect(await bytesOf(open)).toEqual(ZIP);
  hub.fault({ match: /^BLOB GET/, status: 503 });
  expect((await fetch(await address(slow.id))).status).toBe(503);
});

test('a file of gigabytes is served from disk by range', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'loopback-github-'));
  const file = join(folder, 'huge.zip');
  writeFileSync(file, 'PK');
  truncateSync(file, 3 * 1024 ** 3);
  const artifact = repo.addArtifact(run, { name: 'huge', zipPath: file, digest: null });
  expect(artifact.size).toBe(3 * 1024 ** 3);
  const part = await fetch(await address(artifact.id), { headers: { range: 'bytes=3221225470-' } });
  expect([part.status, (await bytesOf(part)).length]).toEqual([206, 2]);
  rmSync(folder, { recursive: true });
});

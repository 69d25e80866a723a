import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type LoopbackGitHub,
  type PullHandle,
  type RepositoryHandle,
  type RunHandle,
  startLoopbackGitHub,
} from '../../lab/loopback-github/index.ts';
import { variableOf } from '../../src/app/action/inputs.ts';
import { describeFailure, runAction } from '../../src/app/action/main.ts';
import { createGitHub } from '../../src/github/client.ts';
import { createLogger } from '../../src/github/log.ts';
import { factsToJson } from '../../src/model/facts-json.ts';
import { Report } from '../../src/model/report.ts';
import { simulated } from '../support/simulated.ts';
import { makeZip } from './support/zip.ts';

let hub: LoopbackGitHub;
let root: string;
let facts: string;
let step = 0;

const log = createLogger('silent');

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'npu-advisor-action-'));
  hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'some-bot', webhookSecret: 'x'.repeat(40) } });
  facts = join(root, 'facts.json');
  writeFileSync(facts, factsToJson((await simulated({ ranks: 2, layers: 1, steps: 6, seed: 1, faults: [{ kind: 'slow-loader' }] })).ranks));
});
afterAll(async () => {
  await hub.close();
  rmSync(root, { recursive: true, force: true });
});

/** A token as a workflow run gets one. */
async function tokenFor(repository: RepositoryHandle, permissions: Record<string, 'read' | 'write'>): Promise<string> {
  const { app } = createGitHub({ appId: 4242, privateKey: hub.privateKeyPem, apiUrl: hub.apiUrl, userAgent: 'test', throttle: false, log });
  const { data } = await app.request('POST /app/installations/{installation_id}/access_tokens', {
    installation_id: repository.installationId!,
    repository_ids: [repository.id],
    permissions: { metadata: 'read', ...permissions },
  });
  return data.token;
}

const READ = { contents: 'read', actions: 'read', pull_requests: 'read' } as const;
const WRITE = { contents: 'read', actions: 'read', pull_requests: 'write' } as const;

interface Stepped {
  readonly code: number;
  readonly log: string;
  readonly summary: string;
  readonly outputs: Readonly<Record<string, string>>;
}

/** Runs the action as the runner does: inputs and files by variables, nothing else. */
async function runStep(
  repository: RepositoryHandle,
  event: { name: string; sha: string; payload: object },
  inputs: Record<string, string>,
): Promise<Stepped> {
  const folder = join(root, `step-${++step}`);
  mkdirSync(folder, { recursive: true });
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('event.json'), JSON.stringify({ repository: { default_branch: 'main' }, ...event.payload }));
  const env = {
    GITHUB_REPOSITORY: repository.fullName,
    GITHUB_REPOSITORY_ID: String(repository.id),
    GITHUB_EVENT_NAME: event.name,
    GITHUB_EVENT_PATH: file('event.json'),
    GITHUB_SHA: event.sha,
    GITHUB_RUN_ID: '77',
    GITHUB_API_URL: hub.apiUrl,
    GITHUB_SERVER_URL: hub.url,
    GITHUB_STEP_SUMMARY: file('summary.md'),
    GITHUB_OUTPUT: file('output'),
    RUNNER_TEMP: folder,
    NPU_ADVISOR_TEST: '1',
    ...Object.fromEntries(
      Object.entries({ 'artifact-hosts': new URL(hub.blobUrl).host, ...inputs }).map(([name, value]) => [variableOf(name), value]),
    ),
  };
  const lines: string[] = [];
  let code = 2;
  try {
    code = await runAction(env, (text) => lines.push(text));
  } catch (error) {
    lines.push(describeFailure(error));
  }
  const read = (name: string): string => {
    try {
      return readFileSync(file(name), 'utf8');
    } catch {
      return '';
    }
  };
  const outputs = Object.fromEntries(
    [...read('output').matchAll(/^([\w-]+)<<(\S+)\n([\s\S]*?)\n\2$/gm)].map(([, name, , value]) => [name, value]),
  );
  return { code, log: lines.join(''), summary: read('summary.md'), outputs };
}

function finished(run: RunHandle, pull: PullHandle, fork: RepositoryHandle) {
  return {
    name: 'workflow_run',
    sha: pull.repository.branchSha(),
    payload: {
      workflow_run: {
        id: run.id,
        run_attempt: 1,
        name: 'profile',
        path: '.github/workflows/perf.yml',
        event: 'pull_request',
        html_url: `${hub.url}/x/actions/runs/${run.id}`,
        head_sha: pull.headSha,
        head_branch: 'feat',
        head_repository: { id: fork.id, owner: { login: fork.owner } },
      },
    },
  };
}

const zip = (): Buffer => makeZip({ 'facts.json': readFileSync(facts) });

/** A pull request of a fork whose run uploaded the profile under these names. */
function forked(name: string, config: string, artifacts: string[], changes: Record<string, string> = {}) {
  const repository = hub.addRepository({ owner: 'acme', name, files: { 'train.py': 'import torch\n', '.github/npu-advisor.yml': config } });
  const pull = repository.openPullRequest({
    author: 'mallory',
    branch: 'feat',
    title: 'feat',
    changes: { 'train.py': 'import torch\nx = 1\n', '.github/npu-advisor.yml': 'gate: null\ncomment: off\n', ...changes },
    fork: { owner: 'mallory' },
  });
  const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
  for (const artifact of artifacts) repository.addArtifact(run, { name: artifact, zipBuffer: zip() });
  return { repository, pull, event: finished(run, pull, repository.fork('mallory')) };
}

describe('the action', () => {
  it('reports on the pull request of a fork from a trusted run, by the settings of the base branch, in one comment', async () => {
    const { repository, pull, event } = forked('one', 'lang: zh\ngate: { severity: medium }\n', ['ascend-profile']);
    const base = repository.addWorkflowRun({
      sha: repository.branchSha(),
      branch: 'main',
      event: 'push',
      status: 'completed',
      conclusion: 'success',
    });
    repository.addArtifact(base, { name: 'ascend-profile', zipBuffer: zip() });
    const marker = `<!-- npu-advisor:v1 app=github-actions pr=${pull.number} -->`;
    const planted = repository.comment(pull, 'mallory', `${marker}\nmine`);
    const earlier = repository.comment(pull, 'some-bot[bot]', `${marker}\nas of the run before`, { type: 'Bot' });
    const first = await runStep(repository, event, { token: await tokenFor(repository, WRITE) });
    expect(first.code, first.log).toBe(1);
    expect(first.outputs).toMatchObject({ verdict: 'causes', conclusion: 'failure', findings: expect.stringMatching(/^[1-9]/) });
    expect(Number(first.outputs['saving-ms'])).toBeGreaterThan(1);
    expect(Report.parse(JSON.parse(readFileSync(first.outputs.report!, 'utf8'))).lang).toBe('zh');
    expect(first.summary).toMatch(/^### ❌ NPU Advisor/);
    // The same profile as on the base branch: no change.
    expect(first.summary).toContain(`main ${repository.branchSha().slice(0, 6)}`);
    expect(first.log).toMatch(/^::error title=门禁不通过::/m);
    expect(first.log).toContain('.github/npu-advisor.yml (main)');

    // The comment of the run before is edited; a stranger's that begins like it is left alone.
    const { comments } = hub.view(pull);
    expect(comments.map(({ id }) => id)).toEqual([planted.id, earlier.id]);
    expect(comments[0]!.body).toBe(`${marker}\nmine`);
    const { body } = comments[1]!;
    expect(body.startsWith(`${marker}\n`)).toBe(true);
    expect(body).toContain(`${hub.url}/acme/one/actions/runs/77`);
    // Nobody is there who would hear a command.
    expect(body + first.summary).not.toContain('/npu-advise');
    const blobs = hub.journal.filter(({ host }) => host === 'blob');
    expect(blobs.length).toBeGreaterThan(0);
    expect(blobs.every(({ authorization }) => !authorization)).toBe(true);
  });

  it('tells of several jobs in one comment, and says who may not write why there is none', async () => {
    const { repository, pull, event } = forked('two', 'jobs: { bert: { gate: { severity: medium } }, gpt: { paths: [gpt/*] } }\n', [
      'ascend-profile-bert-0',
      'ascend-profile-gpt',
    ]);
    const run = await runStep(repository, event, { token: await tokenFor(repository, READ) });
    expect(run.log).toMatch(/^::notice::.*docs\/actions\.md/m);
    expect(run).toMatchObject({ code: 1, outputs: { verdict: 'causes' } });
    expect(run.summary).toMatch(/\| `bert` \| ❌/);
    // Its files are not changed.
    expect(run.summary).not.toContain('gpt');
    expect(hub.view(pull).comments).toEqual([]);
  });

  it('looks at a folder of the runner and needs no token, no pull request and no settings', async () => {
    const repository = hub.addRepository({ owner: 'acme', name: 'three' });
    const event = { name: 'push', sha: repository.branchSha(), payload: {} };
    const run = await runStep(repository, event, { path: facts, lang: 'en' });
    expect(run).toMatchObject({ code: 0, outputs: { verdict: 'causes', conclusion: 'neutral' } });
    expect(run.summary).toContain('Data loader starves');
    expect(run.log).toContain('there is no token');

    const written = join(root, 'again.json');
    const digested = await runStep(repository, event, { path: facts, digest: written });
    expect([digested.code, digested.log.split('\n')[1]]).toEqual([0, expect.stringContaining('again.json: 2 ranks')]);
    expect(readFileSync(written, 'utf8').length).toBeGreaterThan(1000);

    const none = await runStep(repository, event, { path: join(root, 'nowhere') });
    expect(none.code).toBe(2);
    expect(none.log).toMatch(/nowhere/);
  });

  it('without a profile says so and ends as on_missing says', async () => {
    const { repository, event } = forked('four', 'on_missing: failure\n', ['logs']);
    const token = await tokenFor(repository, READ);
    const run = await runStep(repository, event, { token });
    expect(run).toMatchObject({ code: 1, outputs: { verdict: 'no-profile', conclusion: 'failure', report: '' } });
    expect(run.summary).toContain('`logs`');
    expect((await runStep(repository, event, { token, fail: 'never' })).code).toBe(0);
  });

  it('does not trust a workflow the settings do not name, nor settings that are broken', async () => {
    const other = forked('five', 'workflows: [.github/workflows/other.yml]\n', ['ascend-profile']);
    const refused = await runStep(other.repository, other.event, { token: await tokenFor(other.repository, READ) });
    expect(refused.code).toBe(2);
    expect(refused.log).toContain('perf.yml');

    const broken = forked('six', 'lang: zh\ncoment: always\n', ['ascend-profile']);
    const run = await runStep(broken.repository, broken.event, { token: await tokenFor(broken.repository, READ) });
    expect(run.code).toBe(2);
    expect(run.log).toContain('::error file=.github/npu-advisor.yml,line=2,col=1,endColumn=6,title=');
    expect(run.log).toContain('未知的键 coment，是否想写 comment');
  });

  it('does nothing GitHub would not accept', () => {
    expect(hub.violations).toEqual([]);
  });
});

it.each([
  [{ path: 'x', comment: 'maybe' }, /input comment is "maybe"/],
  [{ path: 'x', 'max-artifact-mb': '0' }, /max-artifact-mb must be a number/],
  [{ job: 'bert', path: 'x' }, /there is no job "bert"/],
])('an input that cannot be used is named: %j', async (inputs, why) => {
  const repository = hub.addRepository({ owner: 'acme', name: `bad-${step}` });
  const run = await runStep(repository, { name: 'push', sha: repository.branchSha(), payload: {} }, inputs as Record<string, string>);
  expect(run.code).toBe(2);
  expect(run.log).toMatch(why);
});

/*
 * A second opinion: a GitHub emulator whose authors did not know our assumptions (emulate 0.11.2, vercel-labs). What it has is used as it
 * is: the App's JWT and tokens, signed webhooks, contents, pull requests, comments, check runs, permissions. It has no artifacts that could
 * be made, no reactions, no merge queue, no review comments by line, and no event for a push to a pull request, so the rest is on the loopback GitHub.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createEmulator, type Emulator } from 'emulate';
import { createNodeMiddleware, Probot } from 'probot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publish } from '../../src/app/jobs/publish.ts';
import { createApp } from '../../src/app/probot-app.ts';
import { PERMISSIONS } from '../../src/github/client.ts';
import { createFront, WEBHOOK_PATH } from '../../src/github/front.ts';
import { createLogger } from '../../src/github/log.ts';
import { permissionOf } from '../../src/github/permission.ts';
import { COMMENT_MARKER } from '../../src/github/publish/comment.ts';
import { findPullRequests, readPullRequest } from '../../src/github/pull-requests.ts';
import { openSpool } from '../../src/store/embedded/spool.ts';
import { spoolFolder } from '../../src/store/open.ts';
import { finding, report } from '../render/reports.ts';
import { type Jobs, openJobs } from './support/jobs.ts';

const SECRET = 'a-webhook-secret-of-more-than-32-bytes-for-tests';
let emulator: Emulator;
let jobs: Jobs;
let closeFront: () => Promise<void>;
/** Deliveries as they were answered. */
const answered: string[] = [];

interface Comment {
  readonly id: number;
  readonly body: string;
  readonly user: { readonly login: string };
}
interface Check {
  readonly name: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly head_sha: string;
  readonly output: { readonly title: string; readonly summary: string };
}

/** What Alice does, and sees. */
async function alice<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${emulator.url}${path}`, {
    method,
    headers: { authorization: 'token alice-token', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(response.ok, `${method} ${path}: ${response.status}`).toBe(true);
  return (response.status === 204 ? null : await response.json()) as T;
}
const put = (path: string, text: string, branch: string) =>
  alice<{ commit: { sha: string } }>('PUT', `/repos/acme/train/contents/${path}`, {
    message: path,
    content: Buffer.from(text).toString('base64'),
    branch,
  });
const comments = (pr: number) => alice<Comment[]>('GET', `/repos/acme/train/issues/${pr}/comments`);
const checks = async (sha: string) =>
  (await alice<{ check_runs: Check[] }>('GET', `/repos/acme/train/commits/${sha}/check-runs`)).check_runs;

/** Waits for so many deliveries, and works off what they brought. */
async function delivered(count: number): Promise<void> {
  await expect.poll(() => answered.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(count);
  await jobs.workOff();
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

beforeAll(async () => {
  const [apiPort, hookPort] = [await freePort(), await freePort()];
  emulator = await createEmulator({
    service: 'github',
    port: apiPort,
    baseUrl: `http://127.0.0.1:${apiPort}`,
    seed: {
      tokens: { 'alice-token': { login: 'alice', scopes: ['repo', 'user'] } },
      github: {
        users: [{ login: 'alice' }, { login: 'stranger' }],
        orgs: [{ login: 'acme', members: [{ login: 'alice', role: 'admin' }] }],
        repos: [{ owner: 'acme', name: 'train', auto_init: true }],
        apps: [
          {
            app_id: 4242,
            slug: 'npu-advisor',
            name: 'NPU Advisor',
            permissions: {
              ...{ metadata: 'read', contents: 'read', actions: 'read', checks: 'write', pull_requests: 'write', issues: 'read' },
              merge_queues: 'read',
            },
            events: ['pull_request', 'workflow_run', 'issue_comment', 'check_run', 'check_suite', 'merge_group'],
            webhook_url: `http://127.0.0.1:${hookPort}${WEBHOOK_PATH}`,
            webhook_secret: SECRET,
            installations: [{ installation_id: 100, account: 'acme', repository_selection: 'all' }],
          },
        ],
      },
    },
  });
  const privateKey = emulator.generatedSecrets.find(({ kind }) => kind === 'github.app_private_key')!.value;
  jobs = await openJobs({}, { apiUrl: emulator.url, privateKey });

  const log = createLogger('silent');
  const inbox = openSpool(spoolFolder(jobs.dataDir));
  const app = createApp({ inbox, log, isServed: () => true, onAccepted: () => {} });
  const probot = new Probot({ appId: 4242, privateKey, secret: SECRET, baseUrl: emulator.url, log });
  const middleware = await createNodeMiddleware(app, { probot, webhooksPath: WEBHOOK_PATH });
  const front = createFront({ secret: SECRET, previousSecret: null, middleware, problem: async () => null, log });
  const server = createServer((request, response) => {
    response.on('finish', () => answered.push(`${request.headers['x-github-event']} ${response.statusCode}`));
    front(request, response);
  });
  await new Promise<void>((resolve) => server.listen(hookPort, '127.0.0.1', resolve));
  closeFront = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await inbox.close();
  };
});
afterAll(async () => {
  await emulator.close();
  await closeFront();
  await jobs.close();
});

describe('an emulator that is not ours', () => {
  let sha = '';
  const where = { id: 0, owner: 'acme', name: 'train' };

  it('delivers an opened pull request; its check is queued, by the settings of the base branch', async () => {
    await put('train.py', 'import torch\n', 'main');
    await put('.github/npu-advisor.yml', 'lang: zh\ncomment: on-findings\n', 'main');
    const main = await alice<{ object: { sha: string } }>('GET', '/repos/acme/train/git/ref/heads/main');
    await alice('POST', '/repos/acme/train/git/refs', { ref: 'refs/heads/faster', sha: main.object.sha });
    // Settings that would loosen the check stand in the change itself.
    await put('.github/extra.py', 'x = 1\n', 'faster');
    await alice('POST', '/repos/acme/train/pulls', { title: 'Faster', head: 'faster', base: 'main' });
    await delivered(1);
    expect(answered.filter((one) => !one.endsWith(' 200'))).toEqual([]);
    const pull = await alice<{ head: { sha: string }; base: { repo: { id: number } } }>('GET', '/repos/acme/train/pulls/1');
    sha = pull.head.sha;
    where.id = pull.base.repo.id;
    expect(await checks(sha)).toMatchObject([{ name: 'NPU Advisor', status: 'queued', output: { title: expect.stringMatching(/^等待/) } }]);
  });

  it('answers commands as the App, each once', async () => {
    const before = answered.length;
    const { id } = await alice<Comment>('POST', '/repos/acme/train/issues/1/comments', { body: '/npu-advise help\n/npu-advise status' });
    await delivered(before + 1);
    // Its event does not say that the issue is a pull request, as GitHub's does; so it is a comment on an issue, and not heard.
    expect(await comments(1)).toHaveLength(1);
    const commands = ['help', 'status'].map((name) => ({ name, args: [] }));
    const task = { kind: 'comment', installationId: 100, repository: where, pr: 1, commentId: id, actor: 'alice', commands };
    for (const guid of ['one', 'two']) {
      await jobs.accept({ guid, event: 'issue_comment.created', body: JSON.stringify(task) });
      await jobs.workOff();
    }
    const all = await comments(1);
    expect(all.map(({ user }) => user.login)).toEqual(['alice', 'npu-advisor[bot]', 'npu-advisor[bot]']);
    expect(all[2]!.body).toContain('npu-advisor:reply');
  });

  it('knows who may do what, and finds a pull request by its branch', async () => {
    const octokit = await jobs.deps.github.client(100, where, PERMISSIONS.read);
    expect(await permissionOf(octokit, where, 'alice')).toBe('admin');
    expect(await permissionOf(octokit, where, 'stranger')).not.toMatch(/write|admin/);
    expect(await permissionOf(octokit, where, 'nobody-of-that-name')).toBe('none');
    const repository = await alice<{ id: number }>('GET', '/repos/acme/train');
    const run = {
      ...{ id: 1, attempt: 1, name: 'perf', path: 'perf.yml', event: 'pull_request', htmlUrl: null, headSha: sha, headBranch: 'faster' },
      ...{ headOwner: 'acme', headRepoId: repository.id, listed: [] },
    };
    expect((await findPullRequests(octokit, where, run)).map(({ number }) => number)).toEqual([1]);
    expect(await findPullRequests(octokit, where, { ...run, headSha: 'f'.repeat(40) })).toEqual([]);
  });

  it('shows a report as one comment and one concluded check, however often it is published', async () => {
    const octokit = await jobs.deps.github.client(100, where, PERMISSIONS.read);
    const pull = (await readPullRequest(octokit, where, 1))!;
    const base = {
      target: { installationId: 100, repository: where },
      pull,
      sha,
      lang: 'en',
      comment: 'on-findings',
      suggestions: 'off',
    } as const;
    const common = { ...base, isAsked: false, checkUrl: null, source: new Map<string, string>() };
    const made = report({ findings: [finding({ locations: [] })] });
    for (let again = 0; again < 2; again++) await publish(jobs.deps, { ...common, statement: { kind: 'report', report: made } });
    const own = (await comments(1)).filter(({ body }) => body.startsWith(COMMENT_MARKER));
    expect(own).toHaveLength(1);
    const [check, ...more] = await checks(sha);
    expect(more).toEqual([]);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral', head_sha: sha });
    expect(own[0]!.body).toContain('| # | Cause |');
    expect(check!.output.summary).not.toBe('');

    await publish(jobs.deps, { ...common, statement: { kind: 'report', report: report({ findings: [] }) } });
    const after = (await comments(1)).filter(({ body }) => body.startsWith(COMMENT_MARKER));
    expect(after.map(({ id }) => id)).toEqual(own.map(({ id }) => id));
    expect(after[0]!.body).not.toBe(own[0]!.body);
  });

  it('concludes what waits when a pull request is closed', async () => {
    await alice('POST', '/repos/acme/train/git/refs', { ref: 'refs/heads/other', sha });
    const { commit } = await put('more.py', 'y = 2\n', 'other');
    let before = answered.length;
    const { number } = await alice<{ number: number }>('POST', '/repos/acme/train/pulls', { title: 'Other', head: 'other', base: 'main' });
    await delivered(before + 1);
    expect(await checks(commit.sha)).toMatchObject([{ status: 'queued' }]);
    before = answered.length;
    await alice('PATCH', `/repos/acme/train/pulls/${number}`, { state: 'closed' });
    await delivered(before + 1);
    expect(await checks(commit.sha)).toMatchObject([
      { status: 'completed', conclusion: 'neutral', output: { title: 'Pull request closed' } },
    ]);
    expect(await comments(number)).toEqual([]);
  });

  it('gave out tokens for one repository each, and refused nothing', async () => {
    const { installation_tokens: tokens } = (await (await fetch(`${emulator.url}/_emulate/installation-tokens`)).json()) as {
      installation_tokens: { repository_ids?: number[] }[];
    };
    expect(tokens.length).toBeGreaterThan(2);
    expect(tokens.map(({ repository_ids: ids }) => ids)).toEqual(tokens.map(() => [where.id]));
    expect(jobs.log.filter((line) => /given up|tried again/.test(line))).toEqual([]);
  });
});

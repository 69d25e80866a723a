import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createNodeMiddleware, Probot } from 'probot';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { description } from '../../lab/loopback-github/description.ts';
import { type LoopbackGitHub, type PullHandle, type RepositoryHandle, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { APP, appOf, installationOf, REPO } from './loopback-github-kit.ts';

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  payload: { [key: string]: unknown };
}

let hub: LoopbackGitHub;
let repo: RepositoryHandle;
let pr: PullHandle;
let receiver: Server;
let received: Received[];

beforeEach(async () => {
  received = [];
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    received.push({ headers: request.headers, body, payload: JSON.parse(body) });
    response.end('thanks');
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  hub = await startLoopbackGitHub({ app: APP, webhookUrl: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook` });
  repo = hub.addRepository({ owner: REPO.owner, name: REPO.repo });
  pr = repo.openPullRequest({ author: 'alice', branch: 'feat', title: 'Faster', changes: { 'a.py': 'a\n' } });
});

afterEach(async () => {
  await hub.close();
  receiver.close();
  receiver.closeAllConnections();
});

const names = () => received.map(({ headers, payload }) => `${headers['x-github-event']} ${payload.action ?? ''}`.trim());

describe('a delivery', () => {
  test('is signed over its bytes and says what it is', async () => {
    const result = await hub.deliver('pull_request', { action: 'opened', pr });
    expect(result).toMatchObject({ status: 200, body: 'thanks', event: 'pull_request' });
    const [delivery] = received;
    const signature = createHmac('sha256', APP.webhookSecret)
      .update(delivery?.body ?? '')
      .digest('hex');
    expect(delivery?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^GitHub-Hookshot\//),
      'x-github-event': 'pull_request',
      'x-github-delivery': result.guid,
      'x-hub-signature-256': `sha256=${signature}`,
    });
    expect(delivery?.payload).toMatchObject({
      action: 'opened',
      number: pr.number,
      pull_request: { head: { sha: pr.headSha } },
      repository: { full_name: 'acme/train' },
      installation: { id: repo.installationId },
      sender: { login: 'alice', type: 'User' },
    });
  });

  test('can be repeated, wrongly signed, changed, late or dropped', async () => {
    const twice = await hub.deliver('pull_request', { action: 'opened', pr }, { guid: '0b989ba4-242f-11e5-81e1-c7b6966d2516', times: 2 });
    expect(twice.attempts).toHaveLength(2);
    expect(received.map(({ headers }) => headers['x-github-delivery'])).toEqual([twice.guid, twice.guid]);
    await hub.deliver('pull_request', { action: 'opened', pr }, { secret: 'wrong' });
    expect(received[2]?.headers['x-hub-signature-256']).not.toBe(received[0]?.headers['x-hub-signature-256']);
    await hub.deliver(
      'pull_request',
      { action: 'opened', pr },
      { payload: { pull_request: { title: 'Other' } }, sender: 'bob', delayMs: 5 },
    );
    expect(received[3]?.payload).toMatchObject({ pull_request: { title: 'Other', number: pr.number }, sender: { login: 'bob' } });
    const dropped = await hub.deliver('pull_request', { action: 'opened', pr }, { drop: true });
    expect([dropped.status, received.length]).toEqual([0, 4]);
    expect(hub.violations).toEqual([]);
  });

  test('that fits no schema is a violation of ours', async () => {
    await hub.deliver('pull_request', { action: 'opened', pr }, { payload: { number: 'one' } });
    expect(hub.violations).toMatchObject([{ side: 'hub', kind: 'webhook', exchange: 'webhook:pull-request-opened' }]);
  });

  test('of every kind fits its schema, for pull requests and for forks', async () => {
    const fork = repo.openPullRequest({ author: 'mallory', branch: 'x', title: 'Fork', changes: { b: 'b' }, fork: { owner: 'mallory' } });
    const octokit = await installationOf(hub, repo);
    const actions = [{ label: 'Ack', description: 'Acknowledge', identifier: 'ack' }];
    for (const of of [pr, fork]) {
      await octokit.rest.checks.create({ ...REPO, name: 'NPU Advisor', head_sha: of.headSha, conclusion: 'neutral', actions });
      for (const action of ['opened', 'reopened', 'synchronize', 'ready_for_review', 'converted_to_draft', 'edited', 'closed'] as const) {
        await hub.deliver('pull_request', { action, pr: of });
      }
      const run = repo.addWorkflowRun({ pr: of });
      for (const action of ['requested', 'in_progress', 'completed'] as const) await hub.deliver('workflow_run', { action, run });
      const comment = repo.comment(of, 'alice', '/npu-advise');
      for (const action of ['created', 'edited', 'deleted'] as const) await hub.deliver('issue_comment', { action, comment });
      for (const action of ['created', 'completed', 'rerequested', 'requested_action'] as const) {
        await hub.deliver('check_run', { action, check: { pr: of, name: 'NPU Advisor' }, identifier: 'ack' });
      }
      for (const action of ['requested', 'rerequested', 'completed'] as const) {
        await hub.deliver('check_suite', { action, repository: repo, headSha: of.headSha });
      }
      const group = repo.addMergeGroup(of);
      for (const action of ['checks_requested', 'destroyed'] as const) await hub.deliver('merge_group', { action, group });
    }
    for (const action of ['created', 'new_permissions_accepted', 'suspend', 'unsuspend', 'deleted'] as const) {
      await hub.deliver('installation', { action, owner: 'acme' });
    }
    for (const action of ['added', 'removed'] as const) {
      await hub.deliver('installation_repositories', { action, owner: 'acme', repositories: [repo] });
    }
    await hub.deliver('push', { repository: repo, before: pr.baseSha, after: repo.branchSha() });
    await hub.deliver('ping', {});
    expect(hub.violations).toEqual([]);
    const sent = new Set(
      received.map(({ headers, payload }) => [headers['x-github-event'], payload.action].filter(Boolean).join('-').replaceAll('_', '-')),
    );
    expect([...description().webhooks].filter((name) => !sent.has(name))).toEqual([]);
  });

  test('lists no pull request for a fork', async () => {
    const fork = repo.openPullRequest({ author: 'mallory', branch: 'x', title: 'Fork', changes: { b: 'b' }, fork: { owner: 'mallory' } });
    for (const of of [pr, fork]) await hub.deliver('workflow_run', { action: 'completed', run: repo.addWorkflowRun({ pr: of }) });
    const listed = received.map(({ payload }) => (payload.workflow_run as { pull_requests: unknown[] }).pull_requests.length);
    expect(listed).toEqual([1, 0]);
  });
});

describe('automatic delivery', () => {
  test('follows every change in order, and echoes what the app itself writes', async () => {
    hub.autoDeliver = true;
    const octokit = await installationOf(hub, repo);
    const other = repo.openPullRequest({ author: 'bob', branch: 'other', title: 'Other', changes: { 'c.py': 'c\n' } });
    const run = repo.addWorkflowRun({ pr: other, status: 'requested' });
    repo.updateWorkflowRun(run, { status: 'in_progress' });
    repo.updateWorkflowRun(run, { conclusion: 'success' });
    repo.comment(other, 'bob', '/npu-advise');
    await octokit.rest.issues.createComment({ ...REPO, issue_number: other.number, body: 'mine' });
    repo.pushTo(other, { 'c.py': 'd\n' });
    repo.closePullRequest(other, { merge: true });
    await hub.settled();
    expect(names()).toEqual([
      ...['push', 'pull_request opened', 'workflow_run requested', 'workflow_run in_progress', 'workflow_run completed'],
      ...['issue_comment created', 'issue_comment created', 'push', 'pull_request synchronize', 'pull_request closed', 'push'],
    ]);
    const echo = received[6]?.payload;
    expect(echo).toMatchObject({
      sender: { login: 'npu-advisor[bot]', type: 'Bot' },
      comment: { performed_via_github_app: { slug: 'npu-advisor' } },
    });
    expect(hub.violations).toEqual([]);
  });

  test('is off by default', async () => {
    repo.comment(pr, 'alice', 'x');
    await hub.settled();
    expect(received).toEqual([]);
  });
});

describe('the delivery log', () => {
  test('shows failures, and sends them again under the same id', async () => {
    const { rest, request } = appOf(hub).octokit;
    await hub.deliver('pull_request', { action: 'opened', pr });
    const lost = await hub.deliver('issue_comment', { action: 'created', comment: repo.comment(pr, 'alice', 'x') }, { drop: true });
    const { data: failed } = await request('GET /app/hook/deliveries?status=failure');
    expect(failed.map((delivery: { guid: string }) => delivery.guid)).toEqual([lost.guid]);
    const { data: details } = await rest.apps.getWebhookDelivery({ delivery_id: lost.id });
    expect(details.request.payload).toMatchObject({ action: 'created' });
    expect((await rest.apps.redeliverWebhookDelivery({ delivery_id: lost.id })).status).toBe(202);
    await hub.settled();
    expect(received.at(-1)?.headers['x-github-delivery']).toBe(lost.guid);
    const { data: all } = await rest.apps.listWebhookDeliveries({ per_page: 2 });
    expect(all.map((delivery) => [delivery.guid, delivery.redelivery])).toEqual([
      [lost.guid, true],
      [lost.guid, false],
    ]);
    expect(hub.violations).toEqual([]);
  });
});

test('Probot takes the deliveries and works against the API', async () => {
  const probot = new Probot({
    appId: APP.id,
    privateKey: hub.privateKeyPem,
    secret: APP.webhookSecret,
    baseUrl: hub.apiUrl,
    logLevel: 'fatal',
  });
  const middleware = await createNodeMiddleware(
    (app) => {
      app.on('issue_comment.created', async (context) => {
        if (context.isBot) return;
        await context.octokit.rest.issues.createComment(context.issue({ body: 'answer' }));
      });
    },
    { probot, webhooksPath: '/api/github/webhooks' },
  );
  const server = createServer((request, response) => void middleware(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  hub.webhookUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/github/webhooks`;
  hub.autoDeliver = true;
  repo.comment(pr, 'alice', '/npu-advise');
  await hub.settled();
  expect(hub.view(pr).comments.map((comment) => comment.body)).toEqual(['/npu-advise', 'answer']);
  const forged = await hub.deliver('pull_request', { action: 'opened', pr }, { secret: 'wrong' });
  expect(forged.status).toBe(400);
  expect(hub.violations).toEqual([]);
  server.close();
  server.closeAllConnections();
});

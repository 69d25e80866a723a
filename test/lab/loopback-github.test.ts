import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { Octokit } from 'octokit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { handlers } from '../../lab/loopback-github/api.ts';
import { description } from '../../lab/loopback-github/description.ts';
import { excepted, exceptions } from '../../lab/loopback-github/exceptions.ts';
import { type LoopbackGitHub, type PullHandle, type RepositoryHandle, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { requiredPermissions } from '../../lab/loopback-github/permissions.ts';
import { APP, appOf, installationOf, numbered, REPO, refusal } from './loopback-github-kit.ts';

let hub: LoopbackGitHub;
let repo: RepositoryHandle;
let pr: PullHandle;
let octokit: Octokit;

beforeEach(async () => {
  hub = await startLoopbackGitHub({ app: APP });
  repo = hub.addRepository({
    owner: REPO.owner,
    name: REPO.repo,
    files: { 'train.py': numbered(), '.github/npu-advisor.yml': 'lang: en\n', 'src/a/b.py': 'b\n' },
  });
  pr = repo.openPullRequest({
    author: 'alice',
    branch: 'feat',
    title: 'Faster',
    changes: { 'train.py': numbered({ 10: 'changed 10', 20: '' }), 'new.py': 'a\nb\n' },
  });
  octokit = await installationOf(hub, repo);
});

afterEach(async () => {
  await hub.close();
});

const check = (more: object = {}) => octokit.rest.checks.create({ ...REPO, name: 'NPU Advisor', head_sha: pr.headSha, ...more });
const comment = (body: string) => octokit.rest.issues.createComment({ ...REPO, issue_number: pr.number, body });
const review = (comments: { path: string; body: string; line?: number; side?: string; start_line?: number }[], more: object = {}) =>
  octokit.rest.pulls.createReview({ ...REPO, pull_number: pr.number, commit_id: pr.headSha, event: 'COMMENT', comments, ...more });
const rules = () => hub.violations.map((violation) => `${violation.side} ${violation.kind} ${violation.faults.join('; ')}`);

describe('a whole conversation through octokit', () => {
  test('from JWT to suggestions leaves no violation', async () => {
    const { rest } = octokit;
    repo.setPermission('alice', 'write');
    const run = repo.addWorkflowRun({ pr, name: 'perf' });
    const zip = Buffer.from('PK\x03\x04 not much of a zip');
    repo.addArtifact(run, { name: 'npu-profile', zipBuffer: zip });

    expect((await appOf(hub).octokit.rest.apps.getAuthenticated()).data?.slug).toBe('npu-advisor');
    const [found] = (await rest.pulls.list({ ...REPO, state: 'open', head: 'acme:feat' })).data;
    expect(found).toMatchObject({ number: pr.number, head: { sha: pr.headSha, repo: { id: repo.id } } });
    expect((await rest.repos.getCollaboratorPermissionLevel({ ...REPO, username: 'alice' })).data.permission).toBe('write');

    const said = repo.comment(pr, 'alice', '/npu-advise');
    await rest.reactions.createForIssueComment({ ...REPO, comment_id: said.id, content: 'eyes' });
    const { data: sticky } = await comment('waiting');
    await rest.issues.updateComment({ ...REPO, comment_id: sticky.id, body: 'found' });

    const { data: started } = await check({ status: 'in_progress' });
    const annotation = { path: 'train.py', start_line: 10, end_line: 10, annotation_level: 'warning', message: 'slow' } as const;
    const output = { title: '1 cause', summary: 'text', annotations: [annotation] };
    await rest.checks.update({ ...REPO, check_run_id: started.id, conclusion: 'neutral', output });
    await review([{ path: 'train.py', line: 10, side: 'RIGHT', body: 'slow\n\n```suggestion\nfast 10\n```' }]);

    const { data: list } = await rest.actions.listWorkflowRunArtifacts({ ...REPO, run_id: run.id, name: 'npu-profile' });
    const [artifact] = list.artifacts;
    const redirect = await rest.actions.downloadArtifact({
      ...REPO,
      artifact_id: artifact?.id ?? 0,
      archive_format: 'zip',
      request: { redirect: 'manual' },
    });
    expect(redirect.status as number).toBe(302);
    const bytes = Buffer.from(await (await fetch(redirect.headers.location ?? '')).arrayBuffer());
    expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(artifact?.digest);

    const view = hub.view(pr);
    expect(view.comments).toMatchObject([
      { author: 'alice', body: '/npu-advise', viaApp: false, reactions: ['eyes'] },
      { author: 'npu-advisor[bot]', body: 'found', viaApp: true },
    ]);
    expect(view.checks).toMatchObject([{ status: 'completed', conclusion: 'neutral', title: '1 cause', annotations: [{ startLine: 10 }] }]);
    expect(view.reviews).toMatchObject([{ state: 'COMMENTED', comments: [{ path: 'train.py', line: 10, side: 'RIGHT' }] }]);
    expect(hub.violations).toEqual([]);
    expect(hub.refusals).toEqual([]);
  });

  test('every read operation fits the description', async () => {
    const { rest } = octokit;
    const run = repo.addWorkflowRun({ pr });
    const artifact = repo.addArtifact(run, { name: 'a', zipBuffer: Buffer.from('x') });
    const said = (await comment('hello')).data;
    const suite = (await check()).data;
    const written = (await review([{ path: 'new.py', line: 1, body: 'hm' }])).data;
    const number = { ...REPO, pull_number: pr.number };
    const issue = { ...REPO, issue_number: pr.number };
    await rest.repos.get(REPO);
    await rest.repos.getBranch({ ...REPO, branch: 'feat' });
    await rest.repos.listBranches(REPO);
    await rest.repos.getCommit({ ...REPO, ref: pr.headSha });
    await rest.repos.listCommits({ ...REPO, sha: 'feat', path: 'new.py' });
    await rest.repos.compareCommitsWithBasehead({ ...REPO, basehead: 'main...feat' });
    await rest.repos.listPullRequestsAssociatedWithCommit({ ...REPO, commit_sha: pr.headSha });
    await rest.git.getRef({ ...REPO, ref: 'heads/feat' });
    await rest.git.getCommit({ ...REPO, commit_sha: pr.headSha });
    await rest.git.getTree({ ...REPO, tree_sha: pr.headSha, recursive: '1' });
    await rest.pulls.get(number);
    await rest.pulls.listFiles(number);
    await rest.pulls.listCommits(number);
    await rest.pulls.listReviews(number);
    await rest.pulls.getReview({ ...number, review_id: written.id });
    await rest.pulls.listCommentsForReview({ ...number, review_id: written.id });
    await rest.pulls.listReviewComments(number);
    await rest.issues.get(issue);
    await rest.issues.listComments(issue);
    await rest.issues.getComment({ ...REPO, comment_id: said.id });
    await rest.issues.listLabelsOnIssue(issue);
    await rest.reactions.listForIssueComment({ ...REPO, comment_id: said.id });
    await rest.checks.get({ ...REPO, check_run_id: suite.id });
    await rest.checks.listForRef({ ...REPO, ref: 'feat' });
    await rest.checks.listSuitesForRef({ ...REPO, ref: 'feat' });
    await rest.checks.getSuite({ ...REPO, check_suite_id: suite.check_suite?.id ?? 0 });
    await rest.checks.listForSuite({ ...REPO, check_suite_id: suite.check_suite?.id ?? 0 });
    await rest.actions.listRepoWorkflows(REPO);
    await rest.actions.getWorkflow({ ...REPO, workflow_id: 'perf.yml' });
    await rest.actions.listWorkflowRuns({ ...REPO, workflow_id: 'perf.yml' });
    await rest.actions.listWorkflowRunsForRepo({ ...REPO, event: 'pull_request', head_sha: pr.headSha });
    await rest.actions.getWorkflowRun({ ...REPO, run_id: run.id });
    await rest.actions.getWorkflowRunAttempt({ ...REPO, run_id: run.id, attempt_number: 1 });
    await rest.actions.listArtifactsForRepo(REPO);
    await rest.actions.getArtifact({ ...REPO, artifact_id: artifact.id });
    await rest.users.getByUsername({ username: 'alice' });
    await rest.rateLimit.get();
    await rest.apps.listReposAccessibleToInstallation();
    const app = appOf(hub).octokit.rest.apps;
    await app.listInstallations();
    await app.getInstallation({ installation_id: repo.installationId ?? 0 });
    await app.getRepoInstallation(REPO);
    await app.getOrgInstallation({ org: 'acme' });
    await app.listWebhookDeliveries();
    expect(hub.violations).toEqual([]);
  });

  test('files come as base64, raw or folder', async () => {
    const file = await octokit.rest.repos.getContent({ ...REPO, path: '.github/npu-advisor.yml' });
    expect(Buffer.from((file.data as { content: string }).content, 'base64').toString()).toBe('lang: en\n');
    const raw = await octokit.rest.repos.getContent({ ...REPO, path: 'train.py', ref: pr.headSha, mediaType: { format: 'raw' } });
    expect(raw.data as unknown as string).toBe(numbered({ 10: 'changed 10', 20: '' }));
    const folder = await octokit.rest.repos.getContent({ ...REPO, path: 'src' });
    expect(folder.data).toMatchObject([{ type: 'dir', path: 'src/a' }]);
    expect(await refusal(octokit.rest.repos.getContent({ ...REPO, path: 'no.py' }))).toMatchObject({ status: 404 });
    expect(hub.violations).toEqual([]);
  });

  test('lists are paged with links, newest pull request first', async () => {
    for (let index = 0; index < 5; index++) await comment(`number ${index}`);
    const all = await octokit.paginate(octokit.rest.issues.listComments, { ...REPO, issue_number: pr.number, per_page: 2 });
    expect(all.map((entry) => entry.body)).toEqual(['number 0', 'number 1', 'number 2', 'number 3', 'number 4']);
    const second = repo.openPullRequest({ author: 'bob', branch: 'other', title: 'Other', changes: { 'x.py': 'x\n' } });
    const { data } = await octokit.rest.pulls.list(REPO);
    expect(data.map((pull) => pull.number)).toEqual([second.number, pr.number]);
    expect(hub.violations).toEqual([]);
  });

  test('an unchanged answer is not sent again', async () => {
    const first = await octokit.rest.pulls.get({ ...REPO, pull_number: pr.number });
    const again = octokit.rest.pulls.get({ ...REPO, pull_number: pr.number, headers: { 'if-none-match': first.headers.etag ?? '' } });
    expect(await refusal(again)).toMatchObject({ status: 304 });
  });
});

describe('who may do what', () => {
  test('JWTs are verified: key, issuer, lifetime', async () => {
    const other = await startLoopbackGitHub({ app: { ...APP, id: 4712 } });
    const get = async (jwt: string) => (await fetch(`${hub.apiUrl}/app`, { headers: { authorization: `Bearer ${jwt}` } })).status;
    const { createSign } = await import('node:crypto');
    const sign = (claims: object, key = hub.privateKeyPem, alg = 'RS256') => {
      const text = [{ alg, typ: 'JWT' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
      return `${text}.${createSign('sha256').update(text).sign(key).toString('base64url')}`;
    };
    const now = Math.floor(Date.now() / 1000);
    const good = { iss: hub.app.id, iat: now - 30, exp: now + 500 };
    expect(await get(sign(good))).toBe(200);
    expect(await get(sign({ ...good, iss: 1 }))).toBe(404);
    expect(await get(sign({ ...good, exp: now + 700 }))).toBe(401);
    expect(await get(sign({ ...good, exp: now - 1 }))).toBe(401);
    expect(await get(sign({ ...good, iat: now + 60 }))).toBe(401);
    expect(await get(sign(good, hub.privateKeyPem, 'none'))).toBe(401);
    expect(await get(`${sign(good).slice(0, -4)}AAAA`)).toBe(401);
    expect(await get('ghs_unknown')).toBe(401);
    await other.close();
  });

  test('a token is limited to the permissions and repositories it was made for', async () => {
    const other = hub.addRepository({ owner: 'acme', name: 'secret', private: true });
    const { data } = await appOf(hub).octokit.rest.apps.createInstallationAccessToken({
      installation_id: repo.installationId ?? 0,
      repository_ids: [repo.id],
      permissions: { checks: 'read', pull_requests: 'read' },
    });
    const limited = new Octokit({ baseUrl: hub.apiUrl, auth: data.token, throttle: { enabled: false }, retry: { enabled: false } });
    await limited.rest.pulls.get({ ...REPO, pull_number: pr.number });
    const write = refusal(limited.rest.checks.create({ ...REPO, name: 'x', head_sha: pr.headSha }));
    expect(await write).toMatchObject({ status: 403, message: expect.stringContaining('Resource not accessible by integration') });
    expect(await refusal(limited.rest.repos.get({ owner: 'acme', repo: other.name }))).toMatchObject({ status: 404 });
    expect(hub.refusals.map((entry) => entry.rule)).toEqual(['permission-missing', 'unseen-repository']);
    expect(hub.violations).toEqual([]);
  });

  test('the answer names the permissions that would do', async () => {
    hub.setPermissions('acme', { metadata: 'read' });
    const limited = await installationOf(hub, repo);
    const answer = await limited.rest.issues
      .createComment({ ...REPO, issue_number: pr.number, body: 'x' })
      .catch((error: { status: number; response: { headers: { [name: string]: string } } }) => error);
    expect(answer).toMatchObject({
      status: 403,
      response: { headers: { 'x-accepted-github-permissions': 'issues=write; pull_requests=write' } },
    });
  });

  test('a token cannot exceed its installation', async () => {
    const ask = appOf(hub).octokit.rest.apps.createInstallationAccessToken({
      installation_id: repo.installationId ?? 0,
      permissions: { contents: 'write' },
    });
    expect(await refusal(ask)).toMatchObject({ status: 422 });
    expect(rules()).toEqual([expect.stringContaining('token-permissions')]);
  });

  test('tokens end: after an hour, or when revoked', async () => {
    const issue = async () => {
      const { data } = await appOf(hub).octokit.rest.apps.createInstallationAccessToken({ installation_id: repo.installationId ?? 0 });
      return () =>
        fetch(`${hub.apiUrl}/repos/acme/train`, { headers: { authorization: `Bearer ${data.token}` } }).then((answer) => answer.status);
    };
    const first = await issue();
    hub.advanceClock(3_598_000);
    expect(await first()).toBe(200);
    hub.advanceClock(3000);
    expect(await first()).toBe(401);
    const second = await issue();
    expect(await second()).toBe(200);
    hub.revokeTokens();
    expect(await second()).toBe(401);
  });

  test('public repositories without the app can be read, not written; private ones do not exist', async () => {
    hub.addRepository({ owner: 'else', name: 'open', installed: false });
    hub.addRepository({ owner: 'else', name: 'closed', installed: false, private: true });
    await octokit.rest.repos.get({ owner: 'else', repo: 'open' });
    expect(await refusal(octokit.rest.checks.create({ owner: 'else', repo: 'open', name: 'x', head_sha: 'x' }))).toMatchObject({
      status: 403,
    });
    expect(await refusal(octokit.rest.repos.get({ owner: 'else', repo: 'closed' }))).toMatchObject({ status: 404 });
    expect(await refusal(appOf(hub).octokit.rest.apps.getRepoInstallation({ owner: 'else', repo: 'open' }))).toMatchObject({ status: 404 });
  });

  test('roles become permissions', async () => {
    const level = async (username: string) => (await octokit.rest.repos.getCollaboratorPermissionLevel({ ...REPO, username })).data;
    repo.setPermission('maria', 'maintain');
    repo.setPermission('tom', 'triage');
    repo.setPermission('nina', 'none');
    repo.comment(pr, 'passer-by', 'hi');
    expect(await level('maria')).toMatchObject({ permission: 'write', role_name: 'maintain' });
    expect(await level('tom')).toMatchObject({ permission: 'read', role_name: 'triage' });
    expect(await level('nina')).toMatchObject({ permission: 'none' });
    expect(await level('passer-by')).toMatchObject({ permission: 'read' });
    expect(await level('acme')).toMatchObject({ permission: 'admin' });
    expect(await refusal(level('nobody-ever'))).toMatchObject({ status: 404 });
  });
});

describe('requests that do not fit the description', () => {
  test('an unknown operation is 404 and recorded', async () => {
    expect(await refusal(octokit.request('GET /repos/acme/train/traffic/views'))).toMatchObject({ status: 404 });
    expect(rules()).toEqual(['client operation No such operation is described here']);
  });

  test('a body of the wrong shape is 422 and recorded', async () => {
    expect(await refusal(octokit.request('POST /repos/acme/train/check-runs', { name: 'x' }))).toMatchObject({ status: 422 });
    expect(rules()).toEqual(["client body / must have required property 'head_sha'"]);
  });

  test('an unknown property is recorded, and ignored as GitHub does', async () => {
    await octokit.request('POST /repos/acme/train/issues/1/comments', { body: 'x', bodi: 'y' });
    expect(rules()).toEqual(['client body /bodi is not described']);
  });

  test('parameters are checked', async () => {
    await octokit.request('GET /repos/acme/train/pulls?stat=open');
    await octokit.request('GET /repos/acme/train/pulls?per_page=500');
    expect(await refusal(octokit.request('GET /repos/acme/train/pulls?state=opened'))).toMatchObject({ status: 422 });
    expect(await refusal(octokit.request('GET /repos/acme/train/pulls/one'))).toMatchObject({ status: 404 });
    expect(rules()).toEqual([
      'client parameters stat is not a query parameter',
      'client parameters per_page is 500, the limit is 100',
      'client parameters state must be equal to one of the allowed values',
      'client parameters pull_number must be integer',
    ]);
  });

  test('the API version and the media type must be known', async () => {
    const get = (headers: { [name: string]: string }) => fetch(`${hub.apiUrl}/rate_limit`, { headers }).then((answer) => answer.status);
    expect(await get({ 'x-github-api-version': '2022-11-28', accept: 'application/vnd.github+json' })).toBe(200);
    expect(await get({ 'x-github-api-version': '2021-01-01' })).toBe(400);
    expect(await get({ accept: 'text/html' })).toBe(415);
    expect(rules()).toEqual([expect.stringContaining('api-version'), expect.stringContaining('accept')]);
  });

  test('GraphQL is not served', async () => {
    expect(await refusal(octokit.graphql('{ viewer { login } }'))).toMatchObject({ status: 404 });
    expect(rules()).toEqual(['client operation No such operation is described here']);
  });

  test('JSON that is none is 400', async () => {
    const { token } = (await octokit.auth({ type: 'installation' })) as { token: string };
    const headers = { authorization: `token ${token}` };
    const answer = await fetch(`${hub.apiUrl}/repos/acme/train/issues/1/comments`, { method: 'POST', headers, body: '{' });
    expect(answer.status).toBe(400);
  });

  test('a request without User-Agent is 403', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const call = request(`${hub.apiUrl}/rate_limit`, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      call.on('error', reject);
      call.end();
    });
    expect(status).toBe(403);
    expect(rules()).toEqual([expect.stringContaining('user-agent-required')]);
  });
});

describe('limits', () => {
  test('a comment has at most 65,536 characters, whatever their width', async () => {
    await comment('x'.repeat(65_536));
    await comment('𝛼'.repeat(65_536));
    expect(hub.violations).toEqual([]);
    const refused = await refusal(comment('x'.repeat(65_537)));
    expect(refused).toMatchObject({ status: 422, body: expect.stringContaining('Body is too long (maximum is 65536 characters)') });
    expect(await refusal(comment(' \n'))).toMatchObject({ status: 422 });
    expect(rules()).toEqual([expect.stringContaining('comment-body-length'), expect.stringContaining('comment-body-blank')]);
    expect(hub.view(pr).comments).toHaveLength(2);
  });

  const annotation = { path: 'train.py', start_line: 1, end_line: 1, annotation_level: 'notice', message: 'm' };
  const action = { label: 'a', description: 'b', identifier: 'c' };
  const output = { title: 't', summary: 's' };

  test.each([
    ['51 annotations', { output: { ...output, annotations: Array(51).fill(annotation) } }, 'annotations must NOT have more than 50 items'],
    ['4 actions', { actions: Array(4).fill(action) }, '/actions must NOT have more than 3 items'],
    ['a long label', { actions: [{ ...action, label: 'x'.repeat(21) }] }, 'label must NOT have more than 20'],
    ['a long description', { actions: [{ ...action, description: 'x'.repeat(41) }] }, 'description must NOT have more than 40'],
    ['a long identifier', { actions: [{ ...action, identifier: 'x'.repeat(21) }] }, 'identifier must NOT have more than 20'],
    ['a long summary', { output: { ...output, summary: 'x'.repeat(65_536) } }, 'summary must NOT have more than 65535'],
    ['a long text', { output: { ...output, text: 'x'.repeat(65_536) } }, 'text must NOT have more than 65535'],
    ['no conclusion', { status: 'completed' }, 'check-run-conclusion'],
    ['a stale conclusion', { conclusion: 'stale' }, 'check-run-conclusion'],
    ['a large message', { output: { ...output, annotations: [{ ...annotation, message: 'x'.repeat(65_537) }] } }, 'annotation-size'],
    ['a long title', { output: { ...output, annotations: [{ ...annotation, title: 'x'.repeat(256) }] } }, 'annotation-size'],
    ['columns over lines', { output: { ...output, annotations: [{ ...annotation, end_line: 2, start_column: 1 }] } }, 'annotation-columns'],
    ['lines backwards', { output: { ...output, annotations: [{ ...annotation, start_line: 3, end_line: 2 }] } }, 'annotation-lines'],
    ['an unknown commit', { head_sha: 'f'.repeat(40) }, 'check-run-commit'],
  ])('a check run with %s is refused', async (_, body, fault) => {
    expect(await refusal(check(body))).toMatchObject({ status: 422 });
    expect(rules()).toEqual([expect.stringContaining(fault)]);
    expect(hub.view(pr).checks).toEqual([]);
  });

  test('the refusal is worded as GitHub words it', async () => {
    const { message } = await refusal(check({ output: { ...output, annotations: Array(51).fill(annotation) } }));
    expect(message).toContain('Invalid request.\n\nNo more than 50 items are allowed; 51 were supplied.');
  });

  test('annotations of later requests are added', async () => {
    const annotations = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        ...annotation,
        annotation_level: 'notice' as const,
        start_line: from + index,
        end_line: from + index,
      }));
    const { data } = await check({ output: { ...output, annotations: annotations(1, 50) } });
    await octokit.rest.checks.update({ ...REPO, check_run_id: data.id, output: { ...output, annotations: annotations(51, 50) } });
    await octokit.rest.checks.update({ ...REPO, check_run_id: data.id, output: { ...output, annotations: annotations(101, 20) } });
    const listed = await octokit.paginate(octokit.rest.checks.listAnnotations, { ...REPO, check_run_id: data.id, per_page: 100 });
    expect(listed.map((entry) => entry.start_line)).toEqual(Array.from({ length: 120 }, (_, index) => index + 1));
    expect(hub.violations).toEqual([]);
  });

  test('the same reaction again is 200', async () => {
    const { id } = repo.comment(pr, 'alice', 'x');
    const react = () => octokit.rest.reactions.createForIssueComment({ ...REPO, comment_id: id, content: 'eyes' });
    const statuses = [(await react()).status, (await react()).status];
    expect(statuses).toEqual([201, 200]);
    expect(hub.view(pr).comments[0]?.reactions).toEqual(['eyes']);
  });

  test('only own comments are edited', async () => {
    const { id } = repo.comment(pr, 'alice', '<!-- npu-advisor:v1 -->');
    expect(await refusal(octokit.rest.issues.updateComment({ ...REPO, comment_id: id, body: 'x' }))).toMatchObject({ status: 403 });
  });
});

describe('reviews', () => {
  test('lines of the difference and their context can be commented on', async () => {
    await review([
      { path: 'train.py', line: 7, side: 'RIGHT', body: 'context' },
      { path: 'train.py', line: 10, side: 'RIGHT', body: 'changed' },
      { path: 'train.py', line: 10, side: 'LEFT', body: 'old' },
      { path: 'train.py', start_line: 8, line: 10, side: 'RIGHT', body: 'range' },
      { path: 'new.py', line: 2, side: 'RIGHT', body: 'added' },
    ]);
    expect(hub.violations).toEqual([]);
    const [first] = (await octokit.rest.pulls.listReviewComments({ ...REPO, pull_number: pr.number })).data;
    expect(first?.diff_hunk).toBe('@@ -7,7 +7,7 @@ line 6\n line 7');
    expect(first?.position).toBe(1);
  });

  test.each([
    ['a line outside the difference', { path: 'train.py', line: 1, side: 'RIGHT', body: 'x' }],
    ['a line of the other side only', { path: 'new.py', line: 1, side: 'LEFT', body: 'x' }],
    ['a file outside the difference', { path: 'src/a/b.py', line: 1, side: 'RIGHT', body: 'x' }],
    ['a range that starts outside', { path: 'train.py', start_line: 1, line: 10, side: 'RIGHT', body: 'x' }],
  ])('%s refuses the whole review', async (_, bad) => {
    expect(await refusal(review([{ path: 'train.py', line: 10, side: 'RIGHT', body: 'good' }, bad]))).toMatchObject({ status: 422 });
    expect(hub.view(pr).reviews).toEqual([]);
    expect(hub.refusals.map((entry) => entry.rule)).toEqual(['review-line-in-diff']);
    expect(hub.violations).toEqual([]);
  });

  test.each([
    ['on a deleted line', { path: 'train.py', line: 10, side: 'LEFT', body: '```suggestion\nx\n```' }, 'suggestion-on-deleted-line'],
    [
      'without a change',
      { path: 'train.py', line: 10, side: 'RIGHT', body: '```suggestion\nchanged 10\n```' },
      'suggestion-without-change',
    ],
    ['that never ends', { path: 'train.py', line: 10, side: 'RIGHT', body: '````suggestion\nx\n```' }, 'suggestion-unclosed'],
    ['on lines that run backwards', { path: 'train.py', start_line: 11, line: 10, side: 'RIGHT', body: 'x' }, 'review-line-range'],
    ['of an unknown side', { path: 'train.py', line: 10, side: 'MIDDLE', body: 'x' }, 'review-side'],
  ])('a suggestion %s is refused', async (_, bad, rule) => {
    expect(await refusal(review([bad]))).toMatchObject({ status: 422 });
    expect(rules()).toEqual([expect.stringContaining(rule)]);
  });

  test('a push moves comments along or makes them outdated', async () => {
    await review([
      { path: 'train.py', line: 10, side: 'RIGHT', body: 'stays' },
      { path: 'train.py', line: 20, side: 'RIGHT', body: 'goes' },
    ]);
    repo.pushTo(pr, { 'train.py': `# new first line\n${numbered({ 10: 'changed 10', 20: 'other' })}` });
    expect(hub.view(pr).reviews[0]?.comments.map((entry) => entry.line)).toEqual([11, null]);
    const { data } = await octokit.rest.pulls.listReviewComments({ ...REPO, pull_number: pr.number });
    expect(data.map((entry) => entry.original_line)).toEqual([10, 20]);
    expect(hub.violations).toEqual([]);
  });

  test('a review names a commit of the pull request', async () => {
    const bad = { path: 'train.py', line: 10, body: 'x' };
    expect(await refusal(review([bad], { commit_id: pr.baseSha }))).toMatchObject({ status: 422 });
    const before = pr.headSha;
    repo.forcePush(pr, { 'train.py': numbered({ 10: 'rewritten' }) });
    expect(await refusal(review([bad], { commit_id: before }))).toMatchObject({ status: 422 });
    expect(hub.refusals.map((entry) => entry.rule)).toEqual(['review-commit', 'review-commit']);
  });
});

describe('forks', () => {
  let fork: PullHandle;

  beforeEach(() => {
    fork = repo.openPullRequest({
      author: 'mallory',
      branch: 'feat',
      title: 'From a fork',
      changes: { 'train.py': numbered({ 3: 'x' }) },
      fork: { owner: 'mallory' },
    });
  });

  test('are found by head owner and branch, not by commit', async () => {
    const { data } = await octokit.rest.pulls.list({ ...REPO, head: 'mallory:feat', state: 'open' });
    expect(data.map((pull) => [pull.number, pull.head.sha, pull.head.repo.full_name])).toEqual([
      [fork.number, fork.headSha, 'mallory/train'],
    ]);
    const on = async (owner: string) =>
      (await octokit.rest.repos.listPullRequestsAssociatedWithCommit({ owner, repo: 'train', commit_sha: fork.headSha })).data.map(
        (pull) => pull.number,
      );
    expect(await on('acme')).toEqual([]);
    expect(await on('mallory')).toEqual([fork.number]);
    expect(hub.violations).toEqual([]);
  });

  test('are listed neither on workflow runs nor on check runs', async () => {
    const pulls = async (of: PullHandle) => {
      const run = repo.addWorkflowRun({ pr: of });
      const { data } = await octokit.rest.actions.getWorkflowRun({ ...REPO, run_id: run.id });
      const created = await octokit.rest.checks.create({ ...REPO, name: 'NPU Advisor', head_sha: of.headSha });
      return [data.head_repository.full_name, data.pull_requests?.length, created.data.pull_requests.length];
    };
    expect(await pulls(fork)).toEqual(['mallory/train', 0, 0]);
    expect(await pulls(pr)).toEqual(['acme/train', 1, 1]);
    expect(hub.violations).toEqual([]);
  });

  test('that were deleted leave a pull request without head repository', async () => {
    const run = repo.addWorkflowRun({ pr: fork });
    repo.deleteFork('mallory');
    const { data } = await octokit.rest.pulls.get({ ...REPO, pull_number: fork.number });
    expect(data.head).toMatchObject({ label: 'mallory:feat', repo: null });
    expect((await octokit.rest.actions.getWorkflowRun({ ...REPO, run_id: run.id })).data.head_repository).toBeNull();
    await hub.deliver('pull_request', { action: 'synchronize', pr: fork });
    await hub.deliver('workflow_run', { action: 'completed', run });
    expect((await fetch(fork.url)).status).toBe(200);
    expect(hub.violations).toEqual([]);
  });

  test('after a push, older runs list the pull request with its new head', async () => {
    const run = repo.addWorkflowRun({ pr });
    repo.pushTo(pr, { 'new.py': 'c\n' });
    const { data } = await octokit.rest.actions.getWorkflowRun({ ...REPO, run_id: run.id });
    expect(data.head_sha).not.toBe(pr.headSha);
    expect(data.pull_requests?.map((pull) => pull.head.sha)).toEqual([pr.headSha]);
  });

  test('of private repositories are not visible', async () => {
    const secret = hub.addRepository({ owner: 'acme', name: 'secret', private: true });
    const client = await installationOf(hub, secret);
    const hidden = secret.openPullRequest({ author: 'eve', branch: 'x', title: 'X', changes: { a: 'a' }, fork: { owner: 'eve' } });
    expect(await refusal(client.rest.repos.get({ owner: 'eve', repo: 'secret' }))).toMatchObject({ status: 404 });
    const { data } = await client.rest.repos.getContent({ owner: 'acme', repo: 'secret', path: 'a', ref: hidden.headSha });
    expect(data).toMatchObject({ type: 'file' });
  });
});

describe('faults', () => {
  test('before the change: nothing happened', async () => {
    const fault = hub.fault({ match: /^POST .*\/comments$/, status: 502 });
    expect(await refusal(comment('x'))).toMatchObject({ status: 502 });
    expect(hub.view(pr).comments).toEqual([]);
    await comment('x');
    expect(fault.hits).toBe(1);
  });

  test('after the change: only the answer is lost', async () => {
    hub.fault({ match: /^POST .*\/comments$/, dropConnection: true, phase: 'after' });
    await refusal(comment('x'));
    expect(hub.view(pr).comments).toHaveLength(1);
  });

  test('rate limits come with their headers, as often as asked', async () => {
    hub.fault({ match: /pulls/, status: 403, headers: { 'retry-after': '1' }, times: 2, skip: 1 });
    const get = () => octokit.rest.pulls.get({ ...REPO, pull_number: pr.number });
    await get();
    expect(await refusal(get())).toMatchObject({ status: 403, message: expect.stringContaining('secondary rate limit') });
    expect(await refusal(get())).toMatchObject({ status: 403 });
    await get();
  });

  test('an answer can take its time', async () => {
    hub.fault({ match: /pulls/, hangMs: 60 });
    const started = performance.now();
    await octokit.rest.pulls.get({ ...REPO, pull_number: pr.number });
    expect(performance.now() - started).toBeGreaterThan(55);
  });

  test('a lagging replica does not show the newest comment', async () => {
    await comment('first');
    repo.lagComments(1);
    await comment('second');
    const list = async () => (await octokit.rest.issues.listComments({ ...REPO, issue_number: pr.number })).data.length;
    expect([await list(), await list()]).toEqual([1, 2]);
  });
});

describe('the journal', () => {
  test('has every exchange', async () => {
    await octokit.rest.rateLimit.get();
    hub.journal.length = 0;
    await octokit.rest.pulls.get({ ...REPO, pull_number: pr.number });
    await fetch(`${hub.url}/acme/train/pull/1`);
    expect(hub.journal).toMatchObject([
      { host: 'api', method: 'GET', path: '/repos/acme/train/pulls/1', operation: 'pulls/get', status: 200, authorization: true },
      { host: 'page', method: 'GET', path: '/acme/train/pull/1', operation: null, status: 200, authorization: false },
    ]);
  });
});

describe('the description', () => {
  test('says where it comes from', () => {
    expect(description().about).toMatchObject({
      rest: { package: '@octokit/openapi', version: '23.0.2', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      webhooks: { package: '@octokit/openapi-webhooks', version: '12.1.0', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
  });

  test('is served completely', () => {
    const ids = [...description().operations.keys()].sort();
    expect(Object.keys(handlers).sort()).toEqual(ids);
    expect(Object.keys(requiredPermissions).sort()).toEqual(ids);
  });

  test('judges answers: types, missing and undescribed properties', () => {
    const faults = (value: unknown) =>
      description().faults(['rest', 'operations', 'git/get-blob', 'responses', '200', 'application/json'], value);
    const blob = { sha: 's', node_id: 'n', url: 'http://h/', size: 1, content: '', encoding: 'base64' };
    expect(faults(blob)).toEqual([]);
    expect(faults({ ...blob, size: 'one' })).toEqual(['/size must be integer,null']);
    expect(faults({ ...blob, sha: undefined })).toEqual(["/ must have required property 'sha'"]);
    expect(faults({ ...blob, bytes: 1 })).toEqual(['/bytes is not described']);
  });

  test('keeps its exceptions few, dated and explained', () => {
    expect(exceptions.length).toBeLessThan(12);
    for (const exception of exceptions) {
      expect(exception.since).toMatch(/^\d{4}-\d\d-\d\d$/);
      expect(exception.reason.length).toBeGreaterThan(5);
    }
    expect(excepted('pulls/get', '/title must be string')).toBe(false);
  });
});

import { App, Octokit } from 'octokit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type LoopbackGitHub, type RepositoryHandle, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';

const REPO = { owner: 'acme', repo: 'train' };
let hub: LoopbackGitHub;
let repo: RepositoryHandle;

beforeEach(async () => {
  hub = await startLoopbackGitHub({ app: { id: 4711, slug: 'npu-advisor', webhookSecret: 'a secret of the loopback GitHub' } });
  repo = hub.addRepository({ owner: REPO.owner, name: REPO.repo, files: { 'train.py': 'a\nb\nc\n' } });
});

afterEach(async () => {
  await hub.close();
});

/** The app as an installation, through octokit as the product uses it. */
async function installation(): Promise<Octokit> {
  const client = Octokit.defaults({ baseUrl: hub.apiUrl, throttle: { enabled: false }, retry: { enabled: false } });
  const app = new App({ appId: hub.app.id, privateKey: hub.privateKeyPem, Octokit: client });
  return app.getInstallationOctokit(repo.installationId ?? 0);
}

describe('an app', () => {
  test('comments on a pull request without violations', async () => {
    const pr = repo.openPullRequest({ author: 'alice', branch: 'feat', title: 'Faster', changes: { 'train.py': 'a\nB\nc\n' } });
    const octokit = await installation();
    await octokit.rest.issues.createComment({ ...REPO, issue_number: pr.number, body: 'found' });
    expect(hub.view(pr).comments).toMatchObject([{ author: 'npu-advisor[bot]', viaApp: true, body: 'found' }]);
    expect(hub.violations).toEqual([]);
  });
});

/** What the tests of the loopback GitHub share. */
import { App, Octokit } from 'octokit';
import type { LoopbackGitHub, RepositoryHandle } from '../../lab/loopback-github/index.ts';

/** The repository every test starts with. */
export const REPO = { owner: 'acme', repo: 'train' };

/** How every test starts its hub. */
export const APP = { id: 4711, slug: 'npu-advisor', webhookSecret: 'the secret of the loopback GitHub' };

/** Thirty numbered lines, with some replaced. */
export function numbered(changes: { [line: number]: string } = {}): string {
  return Array.from({ length: 30 }, (_, index) => `${changes[index + 1] ?? `line ${index + 1}`}\n`).join('');
}

/** The app, as octokit sees it. */
export function appOf(hub: LoopbackGitHub): App {
  return new App({
    appId: hub.app.id,
    privateKey: hub.privateKeyPem,
    Octokit: Octokit.defaults({ baseUrl: hub.apiUrl, throttle: { enabled: false }, retry: { enabled: false } }),
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
}

/** The app as an installation. */
export function installationOf(hub: LoopbackGitHub, repository: RepositoryHandle): Promise<Octokit> {
  return appOf(hub).getInstallationOctokit(repository.installationId ?? 0);
}

/** What a refused request says. */
export async function refusal(request: Promise<unknown>): Promise<{ status: number; message: string; body: string }> {
  try {
    await request;
  } catch (error) {
    const { status, message, response } = error as { status: number; message: string; response?: { data: unknown } };
    return { status, message, body: JSON.stringify(response?.data) };
  }
  throw new Error('the request was not refused');
}

import type { Octokit, RepositoryRef } from './client.ts';

/** Installations that are not suspended. */
export async function listInstallations(app: Octokit): Promise<number[]> {
  const all = await app.paginate('GET /app/installations', { per_page: 100 });
  return all.filter(({ suspended_at: suspendedAt }) => suspendedAt === null).map(({ id }) => id);
}

/** All installations, by number, and which of them are suspended. */
export async function listAllInstallations(app: Octokit): Promise<ReadonlyMap<number, { suspended: boolean }>> {
  const all = await app.paginate('GET /app/installations', { per_page: 100 });
  return new Map(all.map(({ id, suspended_at: suspendedAt }) => [id, { suspended: suspendedAt !== null }]));
}

/** Repositories an installation reaches, without those that are archived. */
export async function listRepositories(octokit: Octokit): Promise<RepositoryRef[]> {
  const all = await octokit.paginate('GET /installation/repositories', { per_page: 100 });
  return all.filter(({ archived }) => !archived).map(({ id, name, owner }) => ({ id, name, owner: owner.login }));
}

/** All repositories an installation reaches, by their number. */
export async function listReached(octokit: Octokit): Promise<ReadonlyMap<number, RepositoryRef>> {
  const all = await octokit.paginate('GET /installation/repositories', { per_page: 100 });
  return new Map(all.map(({ id, name, owner }) => [id, { id, name, owner: owner.login }]));
}

/** Open pull requests that were changed since; at most 100 of a repository. */
export async function listOpenPullRequests(
  octokit: Octokit,
  repository: RepositoryRef,
  since: number,
): Promise<{ number: number; headSha: string }[]> {
  const { data } = await octokit.rest.pulls.list({
    owner: repository.owner,
    repo: repository.name,
    state: 'open',
    sort: 'updated',
    direction: 'desc',
    per_page: 100,
  });
  return data.filter((pull) => Date.parse(pull.updated_at) >= since).map((pull) => ({ number: pull.number, headSha: pull.head.sha }));
}

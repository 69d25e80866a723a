import type { Parsed } from '../../config/parse.ts';
import { resolveConfig } from '../../config/resolve.ts';
import type { Config } from '../../config/schema.ts';
import { type Octokit, PERMISSIONS } from '../../github/client.ts';
import { settingsReader } from '../../github/contents.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';

/** Settings of a pull request, from its base branch. Never from its head: that would let the change judge itself. */
export async function readSettings(deps: Dependencies, target: Target, baseRef: string, octokit?: Octokit): Promise<Parsed<Config>> {
  const { repository, installationId } = target;
  const client = octokit ?? (await deps.github.client(installationId, repository, PERMISSIONS.read));
  return resolveConfig(settingsReader(client), { owner: repository.owner, repo: repository.name, ref: baseRef }, deps.catalog);
}

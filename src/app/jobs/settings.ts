import type { Unusable } from '../../config/parse.ts';
import { mergeResolved, resolveLayers } from '../../config/resolve.ts';
import type { Config } from '../../config/schema.ts';
import { type Octokit, PERMISSIONS } from '../../github/client.ts';
import { settingsReader } from '../../github/contents.ts';
import type { Lang } from '../../model/lang.ts';
import type { ConfigProblemView } from '../../render/views.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';

/** Settings, and the keys that a file sets. */
type SaidSettings = Unusable | { readonly ok: true; readonly value: Config; readonly keys: ReadonlySet<string> };

/** Settings of a pull request, from its base branch. Never from its head: that would let the change judge itself. */
export async function readSettings(deps: Dependencies, target: Target, baseRef: string, octokit?: Octokit): Promise<SaidSettings> {
  const { repository, installationId } = target;
  const client = octokit ?? (await deps.github.client(installationId, repository, PERMISSIONS.read));
  const reader = settingsReader(client, repository, sharedSettings(deps, target));
  const layers = await resolveLayers(reader, { owner: repository.owner, repo: repository.name, ref: baseRef }, deps.catalog);
  if (!layers.ok) return layers;
  const merged = mergeResolved(layers.value);
  return merged.ok ? { ...merged, keys: new Set(layers.value.flatMap(({ layer }) => Object.keys(layer.values))) } : merged;
}

/** Clients for private repositories of the same owner, for what the base branch says; never for what a pull request says. */
export function sharedSettings(deps: Dependencies, { installationId }: Target): (repo: string) => Promise<Octokit | null> {
  return (repo) => deps.github.named(installationId, repo, PERMISSIONS.settings);
}

/** What is wrong with settings, in one language. */
export function problemsIn({ problems }: Unusable, lang: Lang): ConfigProblemView[] {
  return problems.map(({ file, line, column, endColumn, message, isOutOfReach = false }) => ({
    file,
    line,
    column,
    endColumn,
    message: message[lang],
    isOutOfReach,
  }));
}

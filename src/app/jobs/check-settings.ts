import { parseConfigLayer } from '../../config/parse.ts';
import { resolveConfig } from '../../config/resolve.ts';
import { CONFIG_PATH } from '../../config/schema.ts';
import { PERMISSIONS } from '../../github/client.ts';
import { readTextFile, settingsReader } from '../../github/contents.ts';
import { isCut, listChangedFiles } from '../../github/diff.ts';
import { createCheck, findCheck, SETTINGS_CHECK_NAME, updateCheck } from '../../github/publish/check.ts';
import type { PullRequest } from '../../github/pull-requests.ts';
import type { Lang } from '../../model/lang.ts';
import { renderSettingsCheck } from '../../render/settings-check.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';
import { problemsIn, sharedSettings } from './settings.ts';

/**
 * A pull request that changes the settings file gets a check of its own that says, line by line, what is wrong with it. Its version is
 * read to be judged and never applied: what a pull request may do is decided by its base branch.
 */
export async function checkSettings(deps: Dependencies, target: Target, pull: PullRequest, lang: Lang): Promise<void> {
  const { repository, installationId } = target;
  const { owner, name } = repository;
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.read);
  const text = await readTextFile(octokit, owner, name, CONFIG_PATH, pull.headSha);
  // Most pull requests end here, after one request or two.
  const base = text === null ? null : await readTextFile(octokit, owner, name, CONFIG_PATH, pull.baseRef);
  if (text === null || text === base) return;
  const changed = await listChangedFiles(octokit, repository, pull.number);
  if (!isCut(changed) && !changed.some(({ path, status }) => path === CONFIG_PATH && status !== 'removed')) return;

  // A pull request must not name private files to be told about: those are read only where the base branch names them, too.
  const isKnown = extendsOf(text) === extendsOf(base);
  const reader = settingsReader(octokit, repository, isKnown ? sharedSettings(deps, target) : undefined);
  const parsed = await resolveConfig(reader, { owner, repo: name, ref: pull.headSha }, deps.catalog);
  const rendered = renderSettingsCheck({ lang, file: CONFIG_PATH, problems: parsed.ok ? [] : problemsIn(parsed, lang) });
  const desired = { ...rendered, actions: [] };
  await deps.store.database.exclusively(`settings/${repository.id}/${pull.headSha}`, async () => {
    const publisher = await deps.github.client(installationId, repository, PERMISSIONS.publish);
    const app = await deps.github.identity();
    const found =
      (await findCheck(publisher, repository, pull.headSha, app, SETTINGS_CHECK_NAME)) ??
      (await createCheck(publisher, repository, pull.headSha, desired, SETTINGS_CHECK_NAME));
    await updateCheck(publisher, repository, found.id, desired);
  });
}

function extendsOf(text: string | null): string | null {
  const layer = text === null ? null : parseConfigLayer(text, CONFIG_PATH);
  return layer?.ok ? layer.value.extends : null;
}

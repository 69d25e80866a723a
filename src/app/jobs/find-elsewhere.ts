import { quoteLiteral } from '../../base/phrase.ts';
import type { Config } from '../../config/schema.ts';
import type { Artifact } from '../../github/artifacts.ts';
import type { Octokit } from '../../github/client.ts';
import { listChangedFiles } from '../../github/diff.ts';
import {
  attachment,
  attachmentsIn,
  profileFiles,
  readAttachment,
  readBody,
  readVisibility,
  releaseAssets,
} from '../../github/elsewhere.ts';
import type { L10n } from '../../model/lang.ts';
import type { Candidate } from './candidate.ts';
import type { Target } from './request.ts';

/** Uploads that no run made stand in for those of a run. */
function candidateOf(artifacts: readonly Artifact[], headSha: string): Candidate | null {
  if (artifacts.length === 0) return null;
  return { run: { id: 0, headSha, name: '', htmlUrl: null }, artifacts, uploaded: [] };
}

/**
 * A profile of the head commit outside of its runs, where the settings allow for it: files of the pull request, else assets of a release,
 * else files its description links to. Each is bound to the commit: by being part of it, or by its name.
 */
export async function findElsewhere(
  octokit: Octokit,
  { target, pr, headSha }: { readonly target: Target; readonly pr: number; readonly headSha: string },
  config: Config,
): Promise<Candidate | null> {
  const { repository } = target;
  if (config.files.length > 0) {
    const changed = await listChangedFiles(octokit, repository, pr);
    const found = candidateOf(profileFiles(changed, config.files, headSha), headSha);
    if (found !== null) return found;
  }
  if (config.release !== null) {
    const found = candidateOf(await releaseAssets(octokit, repository, config.release, headSha), headSha);
    if (found !== null) return found;
  }
  if (!config.attachments) return null;
  const body = await readBody(octokit, repository, pr);
  if (!body.includes('/files/')) return null;
  const { isPublic, webUrl } = await readVisibility(octokit, repository);
  return isPublic ? candidateOf(attachmentsIn(body, repository, webUrl, headSha), headSha) : null;
}

const say = (en: string, zh: string): L10n => ({ en, zh });

/** The attachment a person points at. A text says why it cannot be analysed. */
export async function findAttachment(
  octokit: Octokit,
  { repository }: Target,
  headSha: string,
  address: string,
  config: Config,
): Promise<{ readonly candidate: Candidate } | { readonly problem: L10n }> {
  if (!config.attachments) {
    return {
      problem: say('Attachments are read only where the settings say `attachments: true`', '仅当配置中有 `attachments: true` 时才读取附件'),
    };
  }
  const { isPublic, webUrl } = await readVisibility(octokit, repository);
  if (!isPublic) {
    return { problem: say('Attachments of a private repository are out of reach for an App', 'App 无法读取私有仓库的附件') };
  }
  const file = readAttachment(address, repository, webUrl);
  if (file === null) {
    const quoted = quoteLiteral(address, 120);
    return { problem: say(`${quoted} is no attachment of this GitHub`, `${quoted} 不是此 GitHub 上的附件`) };
  }
  return { candidate: candidateOf([attachment(address, file, headSha)], headSha)! };
}

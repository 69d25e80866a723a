import { matchesAny } from '../config/glob.ts';
import type { Artifact, Place } from './artifacts.ts';
import { type Octokit, type RepositoryRef, statusOf } from './client.ts';
import type { ChangedFile } from './diff.ts';

/** Profiles that no workflow run uploaded: files of the pull request, assets of a release, attachments. */

const MAX_FILES = 64;
const MAX_ATTACHMENTS = 8;

function upload(id: number, name: string, place: Place, headSha: string, known: Partial<Artifact> = {}): Artifact {
  const nothing = { bytes: 0, expired: false, createdAt: '', expiresAt: null, digest: null, runId: null };
  return { id, name, ...nothing, headSha, place, ...known };
}

/** Files of these names that the pull request adds or changes, as they are at its head. */
export function profileFiles(changed: readonly ChangedFile[], patterns: readonly string[], headSha: string): Artifact[] {
  return changed
    .filter(({ path, status }) => status !== 'removed' && matchesAny(patterns, path))
    .slice(0, MAX_FILES)
    .map(({ path }, i) => upload(i + 1, path.split('/').at(-1)!, { kind: 'file', path, ref: headSha }, headSha));
}

/** True when a name holds the first seven or more digits of the commit, and those digits are not the beginning of another. */
export function namesCommit(name: string, headSha: string): boolean {
  return (name.toLowerCase().match(/(?<![0-9a-f])[0-9a-f]{7,40}(?![0-9a-f])/g) ?? []).some((digits) => headSha.startsWith(digits));
}

/** Assets of a release whose name holds the head commit where the pattern has `{sha}`; none when there is no such release. */
export async function releaseAssets(
  octokit: Octokit,
  repository: RepositoryRef,
  release: { readonly tag: string; readonly assets: readonly string[] },
  headSha: string,
): Promise<Artifact[]> {
  try {
    const { data } = await octokit.rest.repos.getReleaseByTag({ owner: repository.owner, repo: repository.name, tag: release.tag });
    return data.assets
      .filter(({ state, name }) => state === 'uploaded' && isOfCommit(name, release.assets, headSha))
      .map(({ id, name, size, digest, updated_at }) =>
        upload(id, name, { kind: 'asset' }, headSha, { bytes: size, digest: digest ?? null, createdAt: updated_at }),
      );
  } catch (error) {
    if (statusOf(error) === 404) return [];
    throw error;
  }
}

function isOfCommit(name: string, patterns: readonly string[], headSha: string): boolean {
  if (!namesCommit(name, headSha)) return false;
  const lengths = Array.from({ length: 34 }, (_, i) => i + 7);
  return patterns.some((pattern) =>
    lengths.some((length) => matchesAny([pattern.replaceAll('{sha}', headSha.slice(0, length))], name.toLowerCase())),
  );
}

/** The file an address of this GitHub's attachments names; null for any other address. */
export function readAttachment(
  address: string,
  repository: RepositoryRef,
  webUrl: string,
): { readonly id: number; readonly name: string } | null {
  const url = URL.parse(address);
  const web = URL.parse(webUrl);
  if (url === null || web === null || url.host !== web.host || url.protocol !== web.protocol || url.username !== '') return null;
  const [, owner, name, id, file] = /^\/(user-attachments|[\w.-]+\/([\w.-]+))\/files\/(\d{1,15})\/([^/]{1,200})$/.exec(url.pathname) ?? [];
  const isOurs = owner === 'user-attachments' || (owner === `${repository.owner}/${repository.name}` && name !== undefined);
  if (!isOurs || id === undefined || file === undefined || url.search !== '') return null;
  try {
    return { id: Number(id), name: decodeURIComponent(file) };
  } catch {
    return null;
  }
}

/** Whether attachments of the repository can be fetched without being signed in, and where its pages are. */
export async function readVisibility(
  octokit: Octokit,
  repository: RepositoryRef,
): Promise<{ readonly isPublic: boolean; readonly webUrl: string }> {
  const { data } = await octokit.rest.repos.get({ owner: repository.owner, repo: repository.name });
  return { isPublic: !data.private, webUrl: data.html_url };
}

export function attachment(address: string, { id, name }: { id: number; name: string }, headSha: string): Artifact {
  return upload(id, name, { kind: 'attachment', url: address }, headSha);
}

/** Files that the description of a pull request links to and whose names hold its head commit. */
export function attachmentsIn(body: string, repository: RepositoryRef, webUrl: string, headSha: string): Artifact[] {
  const found = new Map<number, Artifact>();
  for (const [address] of body.slice(0, 100_000).matchAll(/https?:\/\/[^\s()<>[\]"'`]{1,400}/g)) {
    const file = readAttachment(address, repository, webUrl);
    if (file !== null && namesCommit(file.name, headSha)) found.set(file.id, attachment(address, file, headSha));
  }
  return [...found.values()].slice(0, MAX_ATTACHMENTS);
}

/** Description of a pull request. */
export async function readBody(octokit: Octokit, repository: RepositoryRef, pr: number): Promise<string> {
  const { data } = await octokit.rest.pulls.get({ owner: repository.owner, repo: repository.name, pull_number: pr });
  return data.body ?? '';
}

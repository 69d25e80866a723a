import type { SettingsReader } from '../config/resolve.ts';
import { type Octokit, type RepositoryRef, refusalOf, statusOf } from './client.ts';
import type { ChangedFile } from './diff.ts';

const MAX_TEXT_BYTES = 1024 * 1024;

/** Reads a text file through the contents API; null when it is absent, out of reach, not a file or too large. */
export async function readTextFile(
  octokit: Octokit,
  owner: string,
  repo: string,
  path: string,
  ref: string | null,
): Promise<string | null> {
  try {
    const { data } = await octokit.rest.repos.getContent({ owner, repo, path, ...(ref === null ? {} : { ref }) });
    if (Array.isArray(data) || data.type !== 'file' || !('content' in data) || data.size > MAX_TEXT_BYTES) return null;
    const bytes = Buffer.from(data.content, 'base64');
    return bytes.includes(0) ? null : bytes.toString('utf8');
  } catch (error) {
    // A limit that is reached says nothing about the file: taken for its absence, settings would silently be the defaults.
    if (statusOf(error) === 404 || refusalOf(error) === 'right') return null;
    throw error;
  }
}

/**
 * The reader that settings are resolved with. `byName`: a client for a private repository that shares its settings. Without it, only
 * what everybody may read is read beside the repository itself.
 */
export function settingsReader(octokit: Octokit, base: RepositoryRef, byName?: (repo: string) => Promise<Octokit | null>): SettingsReader {
  const isBase = (owner: string, repo: string): boolean => `${owner}/${repo}`.toLowerCase() === `${base.owner}/${base.name}`.toLowerCase();
  return {
    async read(owner, repo, path, ref) {
      const open = await readTextFile(octokit, owner, repo, path, ref);
      if (open !== null) return { text: open, isPrivate: false };
      const other = isBase(owner, repo) ? null : await byName?.(repo);
      const text = other == null ? null : await readTextFile(other, owner, repo, path, ref);
      return text === null ? null : { text, isPrivate: true };
    },
    async reaches(owner, repo) {
      try {
        await ((await byName?.(repo)) ?? octokit).rest.repos.get({ owner, repo });
        return true;
      } catch (error) {
        if (statusOf(error) === 404 || refusalOf(error) === 'right') return false;
        throw error;
      }
    },
  };
}

/** Source of the head commit, as plain data for the analysis process. */
export interface SourceFiles {
  readonly files: readonly (readonly [path: string, text: string])[];
  readonly patches: readonly (readonly [path: string, patch: string])[];
}

export interface SourceLimits {
  readonly maxFiles: number;
  readonly maxBytes: number;
}

const READABLE = /(?:\.py|(?:^|\/)requirements[\w.-]*\.txt|(?:^|\/)pyproject\.toml)$/;
const PARALLEL = 6;

/**
 * Python and requirement files at the head commit: the changed ones first, then the smallest others until the limits. Never
 * executed, only parsed, and only inside the analysis process.
 */
export async function readSource(
  octokit: Octokit,
  repository: RepositoryRef,
  headSha: string,
  changed: readonly ChangedFile[],
  limits: SourceLimits,
): Promise<SourceFiles> {
  const patches: [string, string][] = [];
  for (const file of changed) if (file.patch !== null && file.status !== 'removed') patches.push([file.path, file.patch]);
  const wanted = new Map<string, number>();
  for (const file of changed) if (file.status !== 'removed' && READABLE.test(file.path)) wanted.set(file.path, 0);
  try {
    const { data } = await octokit.rest.git.getTree({ owner: repository.owner, repo: repository.name, tree_sha: headSha, recursive: '1' });
    const others = data.tree
      .filter((entry) => entry.type === 'blob' && typeof entry.path === 'string' && READABLE.test(entry.path))
      .map((entry) => ({ path: entry.path!, bytes: entry.size ?? 0 }))
      .filter(({ bytes }) => bytes <= MAX_TEXT_BYTES)
      .sort((a, b) => a.bytes - b.bytes);
    for (const { path, bytes } of others) wanted.set(path, bytes);
  } catch (error) {
    if (statusOf(error) === null || statusOf(error)! >= 500 || refusalOf(error) === 'limit') throw error;
  }
  const paths: string[] = [];
  let planned = 0;
  for (const [path, bytes] of wanted) {
    planned += bytes;
    if (paths.length >= limits.maxFiles || planned > limits.maxBytes) break;
    paths.push(path);
  }
  const files: [string, string][] = [];
  let total = 0;
  for (let i = 0; i < paths.length; i += PARALLEL) {
    const texts = await Promise.all(
      paths
        .slice(i, i + PARALLEL)
        .map(async (path) => ({ path, text: await readTextFile(octokit, repository.owner, repository.name, path, headSha) })),
    );
    for (const { path, text } of texts) {
      if (text === null) continue;
      total += text.length;
      if (total > limits.maxBytes) return { files, patches };
      files.push([path, text]);
    }
  }
  return { files, patches };
}

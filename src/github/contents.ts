import type { SettingsReader } from '../config/resolve.ts';
import { isAside, isReadable } from '../source/readable-paths.ts';
import { type Budget, chooseFiles, filesNamed, type TreeEntry } from './choose-files.ts';
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
  /** Old and new path of files that the pull request renames. */
  readonly renames?: readonly (readonly [before: string, now: string])[];
}

export interface SourceLimits extends Budget {
  /** Files beyond them that the stacks of the profile name. */
  readonly maxNamed?: number;
}

/** The source as far as it was chosen by paths, and the way to more once the profile has said which files it names. */
export interface RepositorySource {
  readonly source: SourceFiles;
  /** Reads files that frames name and that were not read yet; they are also added to `source`. Bounded, and once. */
  more(frames: readonly string[]): Promise<SourceFiles['files']>;
}

const PARALLEL = 6;
const MAX_NAMED = 40;

/** Reads without the way to more. */
export async function readSource(
  octokit: Octokit,
  repository: RepositoryRef,
  headSha: string,
  changed: readonly ChangedFile[],
  limits: SourceLimits,
): Promise<SourceFiles> {
  return (await openRepositorySource(octokit, repository, headSha, changed, limits)).source;
}

/**
 * The files of the head commit that may matter: one request for the tree, one for each file, as many as `limits` say. Never
 * executed, only parsed, and only inside the analysis process.
 */
export async function openRepositorySource(
  octokit: Octokit,
  repository: RepositoryRef,
  headSha: string,
  changed: readonly ChangedFile[],
  limits: SourceLimits,
): Promise<RepositorySource> {
  const present = changed.filter((file) => file.status !== 'removed');
  const patches = present.flatMap((file): [string, string][] => (file.patch === null ? [] : [[file.path, file.patch]]));
  const renames = present.flatMap((file): [string, string][] => (file.previousPath === undefined ? [] : [[file.previousPath, file.path]]));
  const listed = await listTree(octokit, repository, headSha);
  const known = new Set(listed.map(({ path }) => path));
  // What a cut listing leaves out is still read when the pull request changes it.
  const unlisted = present.filter(({ path }) => !known.has(path)).map(({ path }) => ({ path, sha: '', bytes: 0 }));
  const entries = [...listed, ...unlisted];
  const chosen = chooseFiles(entries, new Set(present.map(({ path }) => path)), limits);
  const files: [string, string][] = [];
  const read = new Set<TreeEntry>(chosen);
  let total = 0;
  const fetchAll = async (wanted: readonly TreeEntry[]): Promise<[string, string][]> => {
    const got: [string, string][] = [];
    for (let i = 0; i < wanted.length; i += PARALLEL) {
      const texts = await Promise.all(
        wanted
          .slice(i, i + PARALLEL)
          .map(async (entry) => ({ path: entry.path, text: await readEntry(octokit, repository, headSha, entry) })),
      );
      for (const { path, text } of texts) {
        if (text === null || total + text.length > limits.maxBytes) continue;
        total += text.length;
        got.push([path, text]);
      }
    }
    files.push(...got);
    return got;
  };
  await fetchAll(chosen);
  let isAsked = false;
  return {
    source: { files, patches, ...(renames.length === 0 ? {} : { renames }) },
    more: async (frames) => {
      if (isAsked) return [];
      isAsked = true;
      const left = entries.filter((entry) => !read.has(entry));
      return fetchAll(filesNamed(left, frames, limits.maxNamed ?? MAX_NAMED));
    },
  };
}

async function readEntry(octokit: Octokit, { owner, name }: RepositoryRef, headSha: string, entry: TreeEntry): Promise<string | null> {
  if (entry.sha === '') return readTextFile(octokit, owner, name, entry.path, headSha);
  try {
    const { data } = await octokit.rest.git.getBlob({ owner, repo: name, file_sha: entry.sha });
    const bytes = Buffer.from(data.content, 'base64');
    return bytes.length > MAX_TEXT_BYTES || bytes.includes(0) ? null : bytes.toString('utf8');
  } catch (error) {
    if (statusOf(error) === 404 || refusalOf(error) === 'right') return null;
    throw error;
  }
}

/** Folders listed one by one when the repository is too large for one listing. */
const MAX_LISTINGS = 24;

/** Files of a commit. GitHub cuts listings of about 100,000 entries: then folder by folder, those near the root first. */
async function listTree(octokit: Octokit, { owner, name }: RepositoryRef, sha: string): Promise<TreeEntry[]> {
  const list = async (tree: string, recursive: boolean) => {
    const { data } = await octokit.rest.git.getTree({ owner, repo: name, tree_sha: tree, ...(recursive ? { recursive: '1' } : {}) });
    return data;
  };
  try {
    const whole = await list(sha, true);
    if (!whole.truncated) return filesOf(whole.tree, '');
    const entries: TreeEntry[] = [];
    let queue: { path: string; sha: string }[] = [{ path: '', sha }];
    let listings = 0;
    while (queue.length > 0 && listings < MAX_LISTINGS) {
      const next: { path: string; sha: string }[] = [];
      for (const folder of queue) {
        if (++listings > MAX_LISTINGS) break;
        const { tree } = await list(folder.sha, false);
        entries.push(...filesOf(tree, folder.path));
        for (const entry of tree) {
          const path = `${folder.path}${entry.path}/`;
          if (entry.type === 'tree' && typeof entry.sha === 'string' && isReadable(`${path}x.py`)) next.push({ path, sha: entry.sha });
        }
      }
      // Folders of tests, examples and copies last.
      queue = next.sort((a, b) => Number(isAside(`${a.path}x.py`)) - Number(isAside(`${b.path}x.py`)));
    }
    return entries;
  } catch (error) {
    // A limit says nothing about the tree: taken for an empty one, changes to the code would silently be left out.
    if (statusOf(error) === null || statusOf(error)! >= 500 || refusalOf(error) === 'limit') throw error;
    return [];
  }
}

interface GivenEntry {
  readonly path?: string;
  readonly mode?: string;
  readonly type?: string;
  readonly sha?: string;
  readonly size?: number;
}

/** Links and submodules are no files. */
const LINK = '120000';

function filesOf(tree: readonly GivenEntry[], folder: string): TreeEntry[] {
  return tree.flatMap(({ path, mode, type, sha, size = 0 }) =>
    type === 'blob' && mode !== LINK && path !== undefined && sha !== undefined && size <= MAX_TEXT_BYTES && isReadable(folder + path)
      ? [{ path: folder + path, sha, bytes: size }]
      : [],
  );
}

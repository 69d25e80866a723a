/** A git object store in memory: real object ids, commits, trees, ancestry. Shared by a repository and its forks, as on GitHub. */
import { createHash } from 'node:crypto';

/** A directory entry. */
interface TreeEntry {
  path: string;
  mode: '100644' | '040000';
  type: 'blob' | 'tree';
  sha: string;
}

/** A commit with its files by path (blob ids). */
export interface Commit {
  sha: string;
  tree: string;
  parents: string[];
  message: string;
  author: { login: string; name: string; email: string };
  date: string;
  files: ReadonlyMap<string, string>;
}

/** The objects of one fork network. */
export interface Objects {
  blobs: Map<string, Buffer>;
  trees: Map<string, TreeEntry[]>;
  commits: Map<string, Commit>;
}

/** File contents by path; `null` deletes the file. */
export type Changes = { [path: string]: string | Buffer | null };

/** An empty store. */
export function createObjects(): Objects {
  return { blobs: new Map(), trees: new Map(), commits: new Map() };
}

function hash(kind: string, content: Buffer): string {
  return createHash('sha1').update(`${kind} ${content.length}\0`).update(content).digest('hex');
}

function writeBlob(objects: Objects, content: Buffer): string {
  const sha = hash('blob', content);
  objects.blobs.set(sha, content);
  return sha;
}

function writeTree(objects: Objects, files: ReadonlyMap<string, string>): string {
  const entries: TreeEntry[] = [];
  const folders = new Map<string, Map<string, string>>();
  for (const [path, sha] of files) {
    const slash = path.indexOf('/');
    if (slash < 0) {
      entries.push({ path, mode: '100644', type: 'blob', sha });
      continue;
    }
    const folder = path.slice(0, slash);
    const inside = folders.get(folder) ?? new Map<string, string>();
    folders.set(folder, inside);
    inside.set(path.slice(slash + 1), sha);
  }
  for (const [path, inside] of folders) entries.push({ path, mode: '040000', type: 'tree', sha: writeTree(objects, inside) });
  const key = (entry: TreeEntry): string => (entry.type === 'tree' ? `${entry.path}/` : entry.path);
  entries.sort((a, b) => Buffer.compare(Buffer.from(key(a)), Buffer.from(key(b))));
  const content = Buffer.concat(
    entries.flatMap((entry) => [Buffer.from(`${entry.mode.replace(/^0/, '')} ${entry.path}\0`), Buffer.from(entry.sha, 'hex')]),
  );
  const sha = hash('tree', content);
  objects.trees.set(sha, entries);
  return sha;
}

/** Records a commit that applies `changes` to the files of its first parent. */
export function writeCommit(
  objects: Objects,
  commit: { parents: string[]; changes: Changes; message: string; author: { login: string; name: string; email: string }; date: string },
): Commit {
  const files = new Map(objects.commits.get(commit.parents[0] ?? '')?.files ?? []);
  for (const [path, content] of Object.entries(commit.changes)) {
    if (content === null) files.delete(path);
    else files.set(path, writeBlob(objects, Buffer.isBuffer(content) ? content : Buffer.from(content, 'utf8')));
  }
  const tree = writeTree(objects, files);
  const seconds = Math.floor(Date.parse(commit.date) / 1000);
  const signature = `${commit.author.name} <${commit.author.email}> ${seconds} +0000`;
  const text = [
    `tree ${tree}`,
    ...commit.parents.map((sha) => `parent ${sha}`),
    `author ${signature}`,
    `committer ${signature}`,
    '',
    commit.message,
  ].join('\n');
  const sha = hash('commit', Buffer.from(text));
  const written = { sha, tree, parents: commit.parents, message: commit.message, author: commit.author, date: commit.date, files };
  objects.commits.set(sha, written);
  return written;
}

/** A commit and everything it descends from, nearest first. */
export function ancestry(objects: Objects, sha: string): string[] {
  const seen = new Set<string>([sha]);
  for (const current of seen) for (const parent of objects.commits.get(current)?.parents ?? []) seen.add(parent);
  return [...seen];
}

/** The nearest commit both descend from. */
export function mergeBase(objects: Objects, left: string, right: string): string | null {
  const known = new Set(ancestry(objects, left));
  return ancestry(objects, right).find((sha) => known.has(sha)) ?? null;
}

/** Commits reachable from `head` and not from `base`, oldest first. */
export function commitsBetween(objects: Objects, base: string, head: string): Commit[] {
  const known = new Set(ancestry(objects, base));
  return ancestry(objects, head)
    .filter((sha) => !known.has(sha))
    .reverse()
    .flatMap((sha) => objects.commits.get(sha) ?? []);
}

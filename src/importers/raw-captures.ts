import type { ProfileEntry } from '../sources/source.ts';
import { ancestors, INFO, leaf, parent, rankFromFolder } from './rank-folders.ts';

/** A capture that nobody has parsed: CANN's raw data, without tables. */
export interface RawCapture {
  /** Folder to hand to `analyse()`. */
  readonly folder: string;
  readonly rank: number | null;
  readonly bytes: number;
}

const RAW_FOLDER = /^(FRAMEWORK|PROF_\d+_\d+_[0-9A-Za-z]+)$/;

/** Groups the files that belong to no rank folder into raw captures; `beside` are raw data of folders that hold an export, too. */
export function findRaw(
  entries: readonly ProfileEntry[],
  exported: readonly string[],
): { raw: RawCapture[]; beside: ProfileEntry[]; rest: ProfileEntry[] } {
  const above = new Set(exported.flatMap((folder) => [folder, ...ancestors(folder)]));
  const folders = new Map<string, { rank: number | null; bytes: number }>();
  const beside: ProfileEntry[] = [];
  const rest: ProfileEntry[] = [];
  for (const entry of entries) {
    const root = rootOf(entry.path);
    if (root === null) rest.push(entry);
    else if (root !== '' ? above.has(root) : exported.length > 0) beside.push(entry);
    else {
      const info = INFO.exec(leaf(entry.path));
      const known = folders.get(root) ?? { rank: null, bytes: 0 };
      const rank = info?.[1] === undefined ? known.rank : Number(info[1]);
      folders.set(root, { rank, bytes: known.bytes + entry.bytes });
    }
  }
  const raw = [...folders].map(([folder, { rank, bytes }]) => ({ folder, rank: rank ?? rankFromFolder(folder), bytes }));
  return { raw, beside, rest };
}

/** The folder that holds FRAMEWORK, PROF_… or the settings of a capture; null for a file of no raw capture. */
export function rootOf(path: string): string | null {
  const parts = path.split('/');
  const at = parts.findIndex((part) => RAW_FOLDER.test(part));
  if (at !== -1 && at < parts.length - 1) return parts.slice(0, at).join('/');
  return INFO.test(leaf(path)) || leaf(path) === 'profiler_metadata.json' ? parent(path) : null;
}

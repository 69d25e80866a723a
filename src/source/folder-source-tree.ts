import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AdviseError, messageOf } from '../base/errors.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { MAX_FILE_BYTES } from './python-parser.ts';
import { isReadable, SKIPPED_FOLDERS } from './readable-paths.ts';
import { isSmallText } from './source-tree-from.ts';

export interface FolderLimits {
  readonly maxFiles: number;
  readonly maxBytes: number;
  /** Folder entries looked at, read or not. */
  readonly maxEntries: number;
  readonly maxDepth: number;
}

export const FOLDER_LIMITS: FolderLimits = { maxFiles: 5_000, maxBytes: 64_000_000, maxEntries: 200_000, maxDepth: 32 };

export interface FolderTree extends SourceTree {
  /** Why parts of the folder were not read, one sentence each; empty when everything was. */
  readonly notes: readonly string[];
}

/** A folder on this machine as a source tree. Links are not followed, nothing is executed, and no line counts as changed. */
export function folderSourceTree(folder: string, limits: FolderLimits = FOLDER_LIMITS): FolderTree {
  const { paths, notes } = listFiles(folder, limits);
  const texts = new Map<string, string | null>();
  const known = new Set(paths);
  const read = (path: string): string | null => {
    if (!known.has(path)) return null;
    if (!texts.has(path)) texts.set(path, readText(join(folder, path)));
    return texts.get(path)!;
  };
  return { paths, read, inDiff: () => false, notes };
}

function listFiles(folder: string, limits: FolderLimits): { paths: string[]; notes: string[] } {
  const paths: string[] = [];
  const notes = new Set<string>();
  const queue: { path: string; depth: number }[] = [{ path: '', depth: 0 }];
  let entries = 0;
  let bytes = 0;
  // Breadth first: when a limit stops the walk, the files near the root are the ones that were kept.
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const entry of entriesOf(folder, next.path, notes)) {
      if (++entries > limits.maxEntries) return stop(paths, notes, `more than ${limits.maxEntries} entries`);
      const path = next.path === '' ? entry.name : `${next.path}/${entry.name}`;
      if (entry.isDirectory()) {
        if (SKIPPED_FOLDERS.has(entry.name)) continue;
        if (next.depth >= limits.maxDepth) notes.add(`folders deeper than ${limits.maxDepth} levels were not read`);
        else queue.push({ path, depth: next.depth + 1 });
      }
      if (!entry.isFile() || !isReadable(path)) continue;
      const size = sizeOf(join(folder, path));
      if (size > MAX_FILE_BYTES) {
        notes.add(`files larger than ${MAX_FILE_BYTES} bytes were not read`);
        continue;
      }
      if (paths.length >= limits.maxFiles) return stop(paths, notes, `more than ${limits.maxFiles} files`);
      if (bytes + size > limits.maxBytes) return stop(paths, notes, `more than ${limits.maxBytes} bytes`);
      bytes += size;
      paths.push(path);
    }
  }
  return { paths: paths.sort(), notes: [...notes] };
}

function stop(paths: string[], notes: Set<string>, why: string): { paths: string[]; notes: string[] } {
  return { paths: paths.sort(), notes: [...notes, `the source folder was read in part: ${why}`] };
}

function entriesOf(folder: string, path: string, notes: Set<string>) {
  try {
    return readdirSync(join(folder, path), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (path === '') {
      throw new AdviseError(
        'source-unreadable',
        { en: messageOf(error), zh: `无法读取目录 ${folder}` },
        { en: 'Give --source a folder that exists and can be read.', zh: '为 --source 指定存在且可读的目录。' },
        { cause: error },
      );
    }
    notes.add('some folders could not be read');
    return [];
  }
}

function sizeOf(file: string): number {
  try {
    return lstatSync(file).size;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

function readText(file: string): string | null {
  try {
    if (!lstatSync(file).isFile()) return null;
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file));
    return isSmallText(text) ? text : null;
  } catch {
    return null;
  }
}

import type { ChangeBlock, SourceTree } from '../model/source-tree.ts';
import { changeBlocksOf } from './change-blocks.ts';
import { type Hunk, hunksOf, isInsideOneHunk } from './hunks.ts';
import { MAX_FILE_BYTES } from './python-parser.ts';
import { cleanPath, isReadable } from './readable-paths.ts';

export interface SourceFiles {
  /** Path and text of each file, relative to the repository root. */
  readonly files: Iterable<readonly [path: string, text: string]>;
  /** Path and `patch` text of each changed file. GitHub leaves the patch out for binary and very large changes. */
  readonly patches?: Iterable<readonly [path: string, patch: string | null | undefined]>;
  /** Old and new path of each renamed file. */
  readonly renames?: Iterable<readonly [before: string, now: string]>;
}

/** A source tree from texts and diffs that are already here. Files of other kinds, unsafe paths and large files are left out. */
export function sourceTreeFrom({ files, patches, renames }: SourceFiles): SourceTree {
  const texts = new Map<string, string>();
  for (const [path, text] of files) {
    if (cleanPath(path) !== null && isReadable(path) && isSmallText(text)) texts.set(path, text);
  }
  const hunks = new Map<string, readonly Hunk[]>();
  const changes = new Map<string, readonly ChangeBlock[]>();
  for (const [path, patch] of patches ?? []) {
    if (!patch) continue;
    hunks.set(path, hunksOf(patch));
    changes.set(path, changeBlocksOf(patch));
  }
  return {
    paths: [...texts.keys()].sort(),
    read: (path) => texts.get(path) ?? null,
    inDiff: (path, startLine, endLine) => isInsideOneHunk(hunks.get(path) ?? [], startLine, endLine),
    ...(patches === undefined ? {} : { changes }),
    ...(renames === undefined ? {} : { renamed: new Map(renames) }),
  };
}

export function isSmallText(text: string): boolean {
  return text.length <= MAX_FILE_BYTES && Buffer.byteLength(text) <= MAX_FILE_BYTES && !text.includes('\0');
}

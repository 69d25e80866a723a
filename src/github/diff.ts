import type { Octokit, RepositoryRef } from './client.ts';

/** A file of a pull request. `patch` is missing for large and binary files. */
export interface ChangedFile {
  readonly path: string;
  readonly status: string;
  /** Its name before a renaming. */
  readonly previousPath?: string;
  readonly patch: string | null;
  readonly bytesHint: number;
}

const MAX_FILES = 3000;

/** GitHub lists no more: what else such a pull request changes is not known. */
export function isCut(files: readonly ChangedFile[]): boolean {
  return files.length >= MAX_FILES;
}

export async function listChangedFiles(octokit: Octokit, repository: RepositoryRef, number: number): Promise<ChangedFile[]> {
  const files: ChangedFile[] = [];
  const pages = octokit.paginate.iterator(octokit.rest.pulls.listFiles, {
    owner: repository.owner,
    repo: repository.name,
    pull_number: number,
    per_page: 100,
  });
  for await (const { data } of pages) {
    for (const { filename: path, status, previous_filename: previousPath, patch = null, changes: bytesHint } of data) {
      files.push({ path, status, ...(previousPath === undefined ? {} : { previousPath }), patch, bytesHint });
    }
    if (files.length >= MAX_FILES) break;
  }
  return files;
}

/** Line ranges `[first, last]` on the right-hand side of a patch: added and context lines, as one range for each hunk. */
export function rightSideRanges(patch: string): [number, number][] {
  const ranges: [number, number][] = [];
  for (const match of patch.matchAll(/^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@/gm)) {
    const start = Number(match[1]);
    const count = match[2] === undefined ? 1 : Number(match[2]);
    if (count > 0) ranges.push([start, start + count - 1]);
  }
  return ranges;
}

/** True when all lines lie inside one hunk of the file; GitHub refuses a whole review for one line outside. */
export function isInDiff(files: readonly ChangedFile[], path: string, startLine: number, endLine: number): boolean {
  const file = files.find((candidate) => candidate.path === path);
  if (file?.patch == null || file.status === 'removed') return false;
  return rightSideRanges(file.patch).some(([first, last]) => startLine >= first && endLine <= last && startLine <= endLine);
}

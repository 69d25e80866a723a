/** Line differences between commits, in the shapes GitHub shows them: patches with hunks, and which lines can be commented on. */
import { structuredPatch } from 'diff';
import type { Commit, Objects } from './git.ts';

/** A hunk of a patch. `lines` carry their ` `, `+`, `-` or `\` prefix. */
export interface Hunk {
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  heading: string;
  lines: string[];
}

/** One changed file. */
export interface FileDiff {
  path: string;
  previousPath: string | null;
  status: 'added' | 'removed' | 'modified' | 'renamed';
  sha: string;
  additions: number;
  deletions: number;
  /** Absent for binary and for very large differences, as on GitHub. */
  patch: string | null;
  hunks: Hunk[];
}

/** GitHub shows no patch above these sizes (docs.github.com, "Limits for viewing content and diffs in a repository"). */
const MAX_PATCH_LINES = 20_000;
const MAX_PATCH_BYTES = 500_000;
const cache = new WeakMap<Objects, Map<string, FileDiff[]>>();

/** Files that differ between two commits, ordered by path. */
export function diffCommits(objects: Objects, base: string, head: string): FileDiff[] {
  const known = cache.get(objects) ?? new Map<string, FileDiff[]>();
  cache.set(objects, known);
  const key = `${base}..${head}`;
  const cached = known.get(key);
  if (cached) return cached;
  const from = objects.commits.get(base);
  const to = objects.commits.get(head);
  const result = from && to ? diffFiles(objects, from, to) : [];
  known.set(key, result);
  return result;
}

function diffFiles(objects: Objects, from: Commit, to: Commit): FileDiff[] {
  const removed = new Map([...from.files].filter(([path]) => !to.files.has(path)));
  const result: FileDiff[] = [];
  for (const [path, sha] of to.files) {
    const old = from.files.get(path);
    if (old === sha) continue;
    if (old === undefined) {
      const source = [...removed].find(([, blob]) => blob === sha)?.[0];
      if (source !== undefined) removed.delete(source);
      result.push(
        diffBlobs(objects, source === undefined ? 'added' : 'renamed', path, source ?? null, source === undefined ? null : sha, sha),
      );
    } else result.push(diffBlobs(objects, 'modified', path, null, old, sha));
  }
  for (const [path, sha] of removed) result.push(diffBlobs(objects, 'removed', path, null, sha, null));
  return result.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function diffBlobs(
  objects: Objects,
  status: FileDiff['status'],
  path: string,
  previousPath: string | null,
  oldSha: string | null,
  newSha: string | null,
): FileDiff {
  const oldBytes = objects.blobs.get(oldSha ?? '') ?? Buffer.alloc(0);
  const newBytes = objects.blobs.get(newSha ?? '') ?? Buffer.alloc(0);
  const file = { path, previousPath, status, sha: newSha ?? oldSha ?? '', additions: 0, deletions: 0 };
  if (status === 'renamed' || oldBytes.includes(0) || newBytes.includes(0)) return { ...file, patch: null, hunks: [] };
  const hunks = hunksOf(oldBytes.toString('utf8'), newBytes.toString('utf8'));
  const lines = hunks.flatMap((hunk) => hunk.lines);
  const additions = lines.filter((line) => line.startsWith('+')).length;
  const deletions = lines.filter((line) => line.startsWith('-')).length;
  const patch = hunks.map(hunkText).join('\n');
  const shown = lines.length <= MAX_PATCH_LINES && Buffer.byteLength(patch) <= MAX_PATCH_BYTES && patch !== '';
  return { ...file, additions, deletions, patch: shown ? patch : null, hunks: shown ? hunks : [] };
}

/** Hunks with three lines of context, numbered as git numbers them. */
export function hunksOf(oldText: string, newText: string): Hunk[] {
  const oldLines = oldText.split('\n');
  return structuredPatch('a', 'b', oldText, newText, undefined, undefined, { context: 3 }).hunks.map((hunk) => {
    const above = oldLines.slice(0, Math.max(0, hunk.oldStart - 1)).findLast((line) => /^[A-Za-z_$]/.test(line));
    return {
      oldStart: hunk.oldLines === 0 ? Math.max(0, hunk.oldStart - 1) : hunk.oldStart,
      oldLines: hunk.oldLines,
      newStart: hunk.newLines === 0 ? Math.max(0, hunk.newStart - 1) : hunk.newStart,
      newLines: hunk.newLines,
      heading: above === undefined ? '' : above.trimEnd().slice(0, 80),
      lines: hunk.lines,
    };
  });
}

/** The `@@` line of a hunk, as git writes it. */
export function hunkHeader(hunk: Hunk): string {
  const range = (start: number, count: number): string => (count === 1 ? `${start}` : `${start},${count}`);
  const header = `@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`;
  return hunk.heading ? `${header} ${hunk.heading}` : header;
}

function hunkText(hunk: Hunk): string {
  return [hunkHeader(hunk), ...hunk.lines].join('\n');
}

/** Where a line stands in a file's patch. */
export interface DiffPlace {
  hunk: number;
  /** Index into the hunk's lines. */
  index: number;
  /** Lines below the first `@@` of the file, GitHub's older way to name a place. */
  position: number;
  kind: ' ' | '+' | '-';
  text: string;
}

/** Every line of a file's patch with its number on each side. */
export function* placesOf(file: FileDiff): Generator<DiffPlace & { oldLine: number | null; newLine: number | null }> {
  let position = 0;
  for (const [hunkIndex, hunk] of file.hunks.entries()) {
    if (hunkIndex > 0) position++;
    let oldLine = hunk.oldLines === 0 ? hunk.oldStart + 1 : hunk.oldStart;
    let newLine = hunk.newLines === 0 ? hunk.newStart + 1 : hunk.newStart;
    for (const [index, line] of hunk.lines.entries()) {
      position++;
      const kind = line[0];
      if (kind !== ' ' && kind !== '+' && kind !== '-') continue;
      yield {
        hunk: hunkIndex,
        index,
        position,
        kind,
        text: line.slice(1),
        oldLine: kind === '+' ? null : oldLine,
        newLine: kind === '-' ? null : newLine,
      };
      if (kind !== '+') oldLine++;
      if (kind !== '-') newLine++;
    }
  }
}

/** The place of a line on one side of the difference, or null when the patch does not show it. */
export function placeOf(file: FileDiff, side: 'LEFT' | 'RIGHT', line: number): DiffPlace | null {
  for (const place of placesOf(file)) if ((side === 'LEFT' ? place.oldLine : place.newLine) === line) return place;
  return null;
}

/** The new number of an old line, or null when it was changed or removed. */
export function carryLine(oldText: string, newText: string, line: number): number | null {
  let shift = 0;
  for (const hunk of hunksOf(oldText, newText)) {
    const first = hunk.oldLines === 0 ? hunk.oldStart + 1 : hunk.oldStart;
    if (line < first) break;
    let oldLine = first;
    for (const text of hunk.lines) {
      if (text.startsWith('+')) shift++;
      else if (text.startsWith('-')) {
        if (oldLine === line) return null;
        shift--;
        oldLine++;
      } else if (text.startsWith(' ')) {
        if (oldLine === line) return line + shift;
        oldLine++;
      }
    }
  }
  return line + shift;
}

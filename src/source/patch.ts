import type { LineEdit } from './line-edit.ts';

/** The change of one file in the form that `git apply` takes. */
export interface FilePatch {
  readonly file: string;
  readonly text: string;
}

/** Unchanged lines around a change; git's own default. */
const CONTEXT = 3;
const MAX_FILES = 200;

/**
 * A unified diff of line edits, one part for each file. Of edits that overlap the first one counts, so the order says which are wanted most;
 * an edit that does not fit the text is left out. Carriage returns, a missing last line break and a byte order mark stay as they are.
 */
export function patchesOf(edits: readonly LineEdit[], read: (file: string) => string | null): FilePatch[] {
  const byFile = new Map<string, LineEdit[]>();
  for (const edit of edits) {
    const known = byFile.get(edit.file) ?? [];
    byFile.set(edit.file, known);
    if (!known.some((other) => other.startLine <= edit.endLine && edit.startLine <= other.endLine)) known.push(edit);
  }
  return [...byFile.keys()]
    .sort()
    .slice(0, MAX_FILES)
    .flatMap((file): FilePatch[] => {
      const text = read(file);
      const hunks = text === null ? [] : hunksFor(text, byFile.get(file)!);
      if (hunks.length === 0) return [];
      const [a, b] = [quoted(`a/${file}`), quoted(`b/${file}`)];
      return [{ file, text: `diff --git ${a} ${b}\n--- ${a}${tab(file)}\n+++ ${b}${tab(file)}\n${hunks.join('')}` }];
    });
}

/** A name with blanks ends at a tab where git reads it. */
function tab(file: string): string {
  return file.includes(' ') ? '\t' : '';
}

/** Names as git writes them: bytes beyond plain ASCII as octal numbers, in quotes. */
function quoted(path: string): string {
  if (/^[\x20-\x7e]*$/.test(path) && !/["\\]/.test(path)) return path;
  const bytes = [...new TextEncoder().encode(path)].map((byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`;
  });
  return `"${bytes.join('')}"`;
}

interface Change {
  /** 0-based index of the first line that changes, and of the line after the last one. */
  readonly from: number;
  readonly to: number;
  readonly lines: readonly string[];
}

function hunksFor(text: string, edits: readonly LineEdit[]): string[] {
  const endsOpen = !text.endsWith('\n');
  const lines = text.split('\n');
  if (!endsOpen) lines.pop();
  const changes = edits.flatMap((edit): Change[] => changeOf(lines, edit, endsOpen)).sort((a, b) => a.from - b.from || a.to - b.to);
  const groups: Change[][] = [];
  for (const change of changes) {
    const open = groups.at(-1);
    if (open && change.from - open.at(-1)!.to <= 2 * CONTEXT) open.push(change);
    else groups.push([change]);
  }
  let shift = 0;
  return groups.map((group) => {
    const first = Math.max(0, group[0]!.from - CONTEXT);
    const last = Math.min(lines.length, group.at(-1)!.to + CONTEXT);
    const body: string[] = [];
    let at = first;
    const keep = (until: number): void => {
      for (; at < until; at++) body.push(` ${lines[at]!}${endsOpen && at === lines.length - 1 ? OPEN : ''}`);
    };
    for (const { from, to, lines: now } of group) {
      keep(from);
      const isLast = endsOpen && to === lines.length;
      for (; at < to; at++) body.push(`-${lines[at]!}${isLast && at === to - 1 ? OPEN : ''}`);
      for (const [i, line] of now.entries()) body.push(`+${line}${isLast && i === now.length - 1 ? OPEN : ''}`);
    }
    keep(last);
    const count = last - first;
    const grown = group.reduce((sum, { from, to, lines: now }) => sum + now.length - (to - from), 0);
    const head = `@@ -${range(first, count)} +${range(first + shift, count + grown)} @@`;
    shift += grown;
    return `${[head, ...body].join('\n')}\n`;
  });
}

const OPEN = '\n\\ No newline at end of file';

function range(first: number, count: number): string {
  return `${count === 0 ? first : first + 1},${count}`;
}

/** The lines of an edit that differ; nothing when the file is not what the edit expects. */
function changeOf(lines: readonly string[], edit: LineEdit, endsOpen: boolean): Change[] {
  const old = edit.before.split('\n');
  const now = edit.after.split('\n');
  if (lines.slice(edit.startLine - 1, edit.endLine).join('\n') !== edit.before) return [];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  let from = edit.startLine - 1 + head;
  const to = edit.endLine - tail;
  let changed = now.slice(head, now.length - tail);
  // At the end of a file without a last line break the line before has to be written anew when it becomes, or was, the last one.
  if (endsOpen && to === lines.length && from > 0 && (changed.length === 0 || from === to)) changed = [lines[--from]!, ...changed];
  return from === to && changed.length === 0 ? [] : [{ from, to, lines: changed }];
}

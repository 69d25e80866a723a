/** Differences as tables: changed files, the lines above a review comment, suggestions. */
import type { FileDiff, Hunk } from '../diff.ts';
import { hunkHeader } from '../diff.ts';
import { type Html, html } from './html.ts';

/** A row of a difference. */
interface Row {
  kind: 'add' | 'del' | 'same';
  oldLine: number | null;
  newLine: number | null;
  text: string;
}

const MARKS = { add: '+', del: '-', same: ' ' };

function rowsOf(hunk: Hunk): Row[] {
  let oldLine = hunk.oldLines === 0 ? hunk.oldStart + 1 : hunk.oldStart;
  let newLine = hunk.newLines === 0 ? hunk.newStart + 1 : hunk.newStart;
  const rows: Row[] = [];
  for (const line of hunk.lines) {
    const text = line.slice(1);
    if (line.startsWith('+')) rows.push({ kind: 'add', oldLine: null, newLine: newLine++, text });
    else if (line.startsWith('-')) rows.push({ kind: 'del', oldLine: oldLine++, newLine: null, text });
    else if (line.startsWith(' ')) rows.push({ kind: 'same', oldLine: oldLine++, newLine: newLine++, text });
  }
  return rows;
}

function rowHtml(row: Row, text: Html | string = row.text, id = ''): Html {
  return html`<tr class="${row.kind}" id="${id}"><td class="num">${row.oldLine}</td><td class="num">${row.newLine}</td><td class="code" data-mark="${MARKS[row.kind]}">${text}</td></tr>`;
}

/** A changed file with rows of its own (annotations) below lines of the new side. */
export function fileDiff(file: FileDiff, anchor: string, below: (line: number) => Html | null): Html {
  if (file.patch === null)
    return html`<div class="comment-body muted">${file.status === 'renamed' ? 'File renamed without changes.' : 'Binary or large file not shown.'}</div>`;
  return html`<table class="diff">${file.hunks.map(
    (hunk) =>
      html`<tr class="hunk"><td class="num" colspan="2"></td><td class="code">${hunkHeader(hunk)}</td></tr>${rowsOf(hunk).map((row) => {
        const extra = row.newLine === null ? null : below(row.newLine);
        const id = row.newLine === null ? `${anchor}L${row.oldLine}` : `${anchor}R${row.newLine}`;
        return html`${rowHtml(row, row.text, id)}${extra && html`<tr class="inline"><td colspan="3">${extra}</td></tr>`}`;
      })}`,
  )}</table>`;
}

/** The last lines of a hunk above a review comment; the commented range and three lines before it. */
export function hunkExcerpt(diffHunk: string, range: number): Html {
  const [header = '', ...lines] = diffHunk.split('\n');
  const numbers = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(header);
  if (!numbers) return html``;
  const hunk: Hunk = {
    oldStart: Number(numbers[1]),
    oldLines: Number(numbers[2] ?? 1),
    newStart: Number(numbers[3]),
    newLines: Number(numbers[4] ?? 1),
    heading: '',
    lines,
  };
  return html`<table class="diff">${rowsOf(hunk)
    .slice(-Math.max(4, range + 1))
    .map((row) => rowHtml(row))}</table>`;
}

/** Old lines in red, the suggested ones in green; what changed within a line is marked. */
export function suggestionDiff(oldLines: readonly string[], firstLine: number, suggestion: string): Html {
  const newLines = suggestion === '' ? [] : suggestion.split('\n');
  const paired = oldLines.length === newLines.length;
  const removed = oldLines.map((text, index) => {
    const row: Row = { kind: 'del', oldLine: firstLine + index, newLine: null, text };
    return rowHtml(row, paired ? emphasised(text, newLines[index] ?? '') : text);
  });
  const added = newLines.map((text, index) => {
    const row: Row = { kind: 'add', oldLine: null, newLine: firstLine + index, text };
    return rowHtml(row, paired ? emphasised(text, oldLines[index] ?? '') : text);
  });
  return html`<table class="diff">${removed}${added}</table>`;
}

/** The part of a line that differs from another line, marked. */
function emphasised(text: string, other: string): Html | string {
  let start = 0;
  while (start < text.length && start < other.length && text[start] === other[start]) start++;
  let end = 0;
  while (end < text.length - start && end < other.length - start && text[text.length - 1 - end] === other[other.length - 1 - end]) end++;
  const middle = text.slice(start, text.length - end);
  if (middle === '' || middle.length > text.length * 0.8) return text;
  return html`${text.slice(0, start)}<mark>${middle}</mark>${text.slice(text.length - end)}`;
}

/** `+3 −1` with the five blocks. */
export function diffStat(additions: number, deletions: number): Html {
  const total = additions + deletions;
  const plus = total === 0 ? 0 : Math.round((additions / Math.max(total, 5)) * 5);
  const minus = total === 0 ? 0 : Math.min(5 - plus, Math.max(deletions > 0 ? 1 : 0, Math.round((deletions / Math.max(total, 5)) * 5)));
  const blocks = Array.from({ length: 5 }, (_, index) => html`<i class="${index < plus ? 'p' : index < plus + minus ? 'm' : ''}"></i>`);
  return html`<span class="diffstat"><span class="plus">+${additions}</span> <span class="minus">−${deletions}</span> <span class="blocks" aria-hidden="true">${blocks}</span></span>`;
}

import { argumentOf, type PyCall } from './calls.ts';
import { endOfLine } from './edit-statement.ts';
import { applySteps, isInsideFString } from './edit-tree.ts';
import { type CharacterEdit, type EditOutcome, refuse } from './line-edit.ts';
import { lineAt, type PyModule, type PyNode, partsOf } from './syntax-tree.ts';

export interface Keyword {
  readonly keyword: string;
  readonly value: string;
}

/** Adds one `keyword=value` as the last argument of a call. See `insertKeywords`. */
export function insertKeyword(module: PyModule, call: PyCall, keyword: string, value: string): EditOutcome {
  return insertKeywords(module, call, [{ keyword, value }]);
}

/**
 * Adds keywords as the last arguments of a call, in the call's own layout: same line, or a line of their own with the
 * indentation, trailing comma and line ending the call already uses. Comments stay where they are.
 */
export function insertKeywords(module: PyModule, call: PyCall, keywords: readonly Keyword[]): EditOutcome {
  if (module.brokenLines.length > 0) return refuse('syntax error in the file');
  if (call.list === null) return refuse('no argument list');
  if (call.hasStarArgs || call.hasKeywordArgs) return refuse('the call takes *args or **kwargs');
  if (keywords.some(({ keyword }) => argumentOf(call, keyword) !== null)) return refuse('the keyword is already there');
  if (isInsideFString(call.node)) return refuse('inside an f-string');
  const texts = keywords.map(({ keyword, value }) => `${keyword}=${value}`);
  const edits = keywordEdits(module, call.list, texts);
  return applySteps(module, [{ edits, change: { kind: 'add-keywords', list: call.list, keywords } }]);
}

/** Where the texts of new keyword arguments go. */
export function keywordEdits(module: PyModule, list: PyNode, texts: readonly string[]): CharacterEdit[] {
  const last = partsOf(list).at(-1);
  const close = list.end - 1;
  if (last === undefined) return emptyList(module, list, texts);

  const comma = list.children.find((child) => child.kind === ',' && child.start >= last.end);
  const anchor = comma?.end ?? last.end;
  const line = (offset: number): number => lineAt(module.lineStarts, offset);
  const ownIndent = indentOfArgument(module, list, last);
  if (line(close) === line(anchor) || ownIndent === null) {
    const joined = texts.join(', ');
    return comma ? [at(comma.end, ` ${joined},`)] : [at(last.end, `, ${joined}`)];
  }

  const lineEnd = endOfLine(module, line(anchor));
  const lineBreak = `${module.text[lineEnd] === '\r' ? '\r' : ''}\n${ownIndent}`;
  const newLines = lineBreak + texts.join(`,${lineBreak}`);
  if (comma) return [at(lineEnd, `${newLines},`)];
  return lineEnd === last.end ? [at(lineEnd, `,${newLines}`)] : [at(last.end, ','), at(lineEnd, newLines)];
}

/** `f()`, or a list that holds only comments or line breaks. */
function emptyList(module: PyModule, list: PyNode, texts: readonly string[]): CharacterEdit[] {
  const close = list.end - 1;
  const hasComment = list.children.some((child) => child.kind === 'comment');
  if (!hasComment) return [at(list.start + 1, texts.join(', '))];
  const closeLine = module.lineStarts[lineAt(module.lineStarts, close) - 1]!;
  const before = module.text.slice(closeLine, close);
  // After a comment the closing parenthesis is on a line of its own.
  const newLine = module.text[closeLine - 2] === '\r' ? '\r\n' : '\n';
  return [at(closeLine, texts.map((text) => `${before}    ${text},${newLine}`).join(''))];
}

/** The indentation of the last argument when it begins a line of its own; null when it shares the line with others. */
function indentOfArgument(module: PyModule, list: PyNode, last: PyNode): string | null {
  const lineStart = module.lineStarts[lineAt(module.lineStarts, last.start) - 1]!;
  if (lineStart <= list.start) return null;
  const lead = module.text.slice(lineStart, last.start);
  return /^[ \t]*$/.test(lead) ? lead : null;
}

function at(offset: number, text: string): CharacterEdit {
  return { start: offset, end: offset, text };
}

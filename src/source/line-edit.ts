import { lineAt, type PyModule } from './syntax-tree.ts';

/**
 * A replacement of whole lines, as a GitHub suggestion needs it. `before` and `after` hold the lines joined by a line
 * feed, without the last line's own; the carriage returns of a CRLF file stay inside, so that text and edit agree byte for byte.
 */
export interface LineEdit {
  readonly file: string;
  /** 1-based, both inclusive. */
  readonly startLine: number;
  readonly endLine: number;
  readonly before: string;
  readonly after: string;
}

export type EditRefusal =
  | 'syntax error in the file'
  | 'the call takes *args or **kwargs'
  | 'the keyword is already there'
  | 'the keyword is not there'
  | 'the value is not a literal'
  | 'the value is another literal'
  | 'no argument list'
  | 'the call takes other arguments'
  | 'inside an f-string'
  | 'the statement shares its line'
  | 'the only statement of its block'
  | 'nothing stands before it'
  | 'a comment speaks of the statement'
  | 'nothing to change'
  | 'the result does not differ by that alone';

export type EditOutcome = { readonly edit: LineEdit; readonly refusal: null } | { readonly edit: null; readonly refusal: EditRefusal };

export function refuse(refusal: EditRefusal): EditOutcome {
  return { edit: null, refusal };
}

/** One insertion or replacement of characters. */
export interface CharacterEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export function applyCharacterEdits(text: string, edits: readonly CharacterEdit[]): string {
  let result = text;
  for (const edit of [...edits].sort((a, b) => b.start - a.start))
    result = result.slice(0, edit.start) + edit.text + result.slice(edit.end);
  return result;
}

/** The same change as a replacement of whole lines. */
export function toLineEdit(module: PyModule, edits: readonly CharacterEdit[]): LineEdit {
  const { lineStarts, text } = module;
  const startLine = lineAt(lineStarts, Math.min(...edits.map((edit) => edit.start)));
  const endLine = lineAt(lineStarts, Math.max(...edits.map((edit) => edit.end)));
  const from = lineStarts[startLine - 1]!;
  const to = endLine < lineStarts.length ? lineStarts[endLine]! - 1 : text.length;
  const before = text.slice(from, to);
  const moved = edits.map((edit) => ({ start: edit.start - from, end: edit.end - from, text: edit.text }));
  return { file: module.path, startLine, endLine, before, after: applyCharacterEdits(before, moved) };
}

/** Applies a line edit; null when the lines are not what the edit expects, e.g. because it has been applied already. */
export function applyLineEdit(text: string, edit: Omit<LineEdit, 'file'>): string | null {
  const lines = text.split('\n');
  if (lines.slice(edit.startLine - 1, edit.endLine).join('\n') !== edit.before) return null;
  lines.splice(edit.startLine - 1, edit.endLine - edit.startLine + 1, edit.after);
  return lines.join('\n');
}

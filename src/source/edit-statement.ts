import { isInsideFString, refuseStep, type Step, type StepOutcome } from './edit-tree.ts';
import { lineAt, type PyModule, type PyNode, partsOf, textOf } from './syntax-tree.ts';

/** One node by another text. The text must parse to a single node in its place. */
export function replaceNode(module: PyModule, node: PyNode, text: string): StepOutcome {
  if (isInsideFString(node)) return refuseStep('inside an f-string');
  if (textOf(module, node) === text) return refuseStep('nothing to change');
  return {
    steps: [{ edits: [{ start: node.start, end: node.end, text }], change: { kind: 'replace-value', value: node, text } }],
    refusal: null,
  };
}

/** Lines that hold nothing but this statement. */
function ownLines(module: PyModule, statement: PyNode): { first: number; last: number; indent: string } | null {
  const first = lineAt(module.lineStarts, statement.start);
  const last = lineAt(module.lineStarts, Math.max(statement.start, statement.end - 1));
  const lead = module.text.slice(module.lineStarts[first - 1]!, statement.start);
  const tail = module.text.slice(statement.end, endOfLine(module, last));
  return /^[ \t]*$/.test(lead) && /^[ \t]*$/.test(tail) ? { first, last, indent: lead } : null;
}

/** Offset of a line's end, before its line break. */
export function endOfLine(module: PyModule, line: number): number {
  const next = module.lineStarts[line];
  if (next === undefined) return module.text.length;
  return module.text[next - 2] === '\r' ? next - 2 : next - 1;
}

/**
 * Deletes a statement with its lines. The edit takes in the line before, so that nothing is left but what was around it: a
 * replacement by no lines at all is not the same everywhere. A comment on or right above the line speaks of the
 * statement; whether it goes is for a person to say.
 */
export function deleteStatement(module: PyModule, statement: PyNode): StepOutcome {
  const lines = ownLines(module, statement);
  if (lines === null) return refuseStep('the statement shares its line');
  const siblings = statement.parent === null ? [] : partsOf(statement.parent);
  if (siblings.length < 2) return refuseStep('the only statement of its block');
  if (lines.first === 1) return refuseStep('nothing stands before it');
  const above = module.text.slice(module.lineStarts[lines.first - 2]!, module.lineStarts[lines.first - 1]!);
  if (/^[ \t]*#/.test(above)) return refuseStep('a comment speaks of the statement');
  const start = module.lineStarts[lines.first - 1]! - 1;
  const end = lines.last < module.lineStarts.length ? module.lineStarts[lines.last]! - 1 : module.text.length;
  return { steps: [{ edits: [{ start, end, text: '' }], change: { kind: 'delete', statement } }], refusal: null };
}

/** Adds statements of one line each behind another, in its indentation and with its line break. */
export function insertAfter(module: PyModule, statement: PyNode, texts: readonly string[]): StepOutcome {
  const last = lineAt(module.lineStarts, Math.max(statement.start, statement.end - 1));
  const first = lineAt(module.lineStarts, statement.start);
  const indent = module.text.slice(module.lineStarts[first - 1]!, statement.start);
  const tail = module.text.slice(statement.end, endOfLine(module, last));
  if (!/^[ \t]*$/.test(indent) || !/^[ \t]*(#.*)?$/.test(tail)) return refuseStep('the statement shares its line');
  const at = endOfLine(module, last);
  const lineBreak = `${module.text[at] === '\r' ? '\r' : ''}\n${indent}`;
  const text = texts.map((line) => lineBreak + line).join('');
  return { steps: [{ edits: [{ start: at, end: at, text }], change: { kind: 'insert-after', statement, texts } }], refusal: null };
}

/** Moves a statement of one line to the beginning of a block behind it, e.g. under the `if` that follows. */
export function moveIntoBlock(module: PyModule, statement: PyNode, block: PyNode): StepOutcome {
  const removed = deleteStatement(module, statement);
  if (removed.steps === null) return removed;
  const lines = ownLines(module, statement);
  const [head] = partsOf(block);
  if (lines === null || lines.first !== lines.last || head === undefined) return refuseStep('the statement shares its line');
  const line = lineAt(module.lineStarts, head.start);
  const start = module.lineStarts[line - 1]!;
  const indent = module.text.slice(start, head.start);
  if (!/^[ \t]+$/.test(indent)) return refuseStep('the statement shares its line');
  const lineBreak = module.text[start - 2] === '\r' ? '\r\n' : '\n';
  const text = textOf(module, statement);
  const added: Step = {
    edits: [{ start, end: start, text: `${indent}${text}${lineBreak}` }],
    change: { kind: 'insert-first', block, texts: [text] },
  };
  return { steps: [...removed.steps, added], refusal: null };
}

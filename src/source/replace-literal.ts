import { argumentOf, type PyCall } from './calls.ts';
import { applyCharacterEdits, type EditOutcome, refuse, toLineEdit } from './line-edit.ts';
import { parsePython } from './python-parser.ts';
import { ascend, type PyModule } from './syntax-tree.ts';
import { differsOnlyBy } from './tree-difference.ts';

const LITERALS = new Set(['true', 'false', 'none', 'integer', 'float']);

/** Replaces the literal value `from` of a keyword by the literal `to`. Expressions, names and strings are left alone. */
export function replaceLiteral(module: PyModule, call: PyCall, keyword: string, from: string, to: string): EditOutcome {
  if (module.brokenLines.length > 0) return refuse('syntax error in the file');
  if (call.hasStarArgs || call.hasKeywordArgs) return refuse('the call takes *args or **kwargs');
  const argument = argumentOf(call, keyword);
  if (argument === null) return refuse('the keyword is not there');
  if (!LITERALS.has(argument.valueKind)) return refuse('the value is not a literal');
  if (argument.text !== from) return refuse('the value is another literal');
  for (const up of ascend(call.node)) if (up.kind === 'interpolation') return refuse('inside an f-string');

  const edits = [{ start: argument.value.start, end: argument.value.end, text: to }];
  const after = parsePython(module.path, applyCharacterEdits(module.text, edits)).module;
  if (
    after === null ||
    after.brokenLines.length > 0 ||
    !differsOnlyBy(module, after, { kind: 'replace-value', value: argument.value, text: to })
  ) {
    return refuse('the result does not differ by that keyword alone');
  }
  return { edit: toLineEdit(module, edits), refusal: null };
}

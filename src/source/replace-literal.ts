import { argumentOf, type PyCall } from './calls.ts';
import { LITERALS } from './edit-call.ts';
import { applySteps, isInsideFString } from './edit-tree.ts';
import { type EditOutcome, refuse } from './line-edit.ts';
import type { PyModule } from './syntax-tree.ts';

/** Replaces the literal value `from` of a keyword by the literal `to`. Expressions, names and strings are left alone. */
export function replaceLiteral(module: PyModule, call: PyCall, keyword: string, from: string, to: string): EditOutcome {
  if (module.brokenLines.length > 0) return refuse('syntax error in the file');
  if (call.hasStarArgs || call.hasKeywordArgs) return refuse('the call takes *args or **kwargs');
  const argument = argumentOf(call, keyword);
  if (argument === null) return refuse('the keyword is not there');
  if (!LITERALS.has(argument.valueKind)) return refuse('the value is not a literal');
  if (argument.text !== from) return refuse('the value is another literal');
  if (isInsideFString(call.node)) return refuse('inside an f-string');

  const { start, end } = argument.value;
  return applySteps(module, [{ edits: [{ start, end, text: to }], change: { kind: 'replace-value', value: argument.value, text: to } }]);
}

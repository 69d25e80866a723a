import { argumentOf, type PyCall } from './calls.ts';
import { isInsideFString, refuseStep, type Step, type StepOutcome } from './edit-tree.ts';
import { type Keyword, keywordEdits } from './insert-keyword.ts';
import { type PyModule, partsOf } from './syntax-tree.ts';

/** Values that are written out: nothing decides them at run time. */
export const LITERALS: ReadonlySet<string> = new Set(['true', 'false', 'none', 'integer', 'float']);

/**
 * Brings keywords of one call to the values given: absent ones are added in the call's own layout, literals are replaced, what is
 * there already stays. Anything that is not a literal was decided elsewhere and is left alone.
 */
export function keywordSteps(module: PyModule, call: PyCall, keywords: readonly Keyword[]): StepOutcome {
  if (call.list === null) return refuseStep('no argument list');
  if (call.hasStarArgs || call.hasKeywordArgs) return refuseStep('the call takes *args or **kwargs');
  if (isInsideFString(call.node)) return refuseStep('inside an f-string');
  const steps: Step[] = [];
  const missing: Keyword[] = [];
  for (const wanted of keywords) {
    const given = argumentOf(call, wanted.keyword);
    if (given === null) missing.push(wanted);
    else if (!LITERALS.has(given.valueKind)) return refuseStep('the value is not a literal');
    else if (given.text !== wanted.value) {
      const { start, end } = given.value;
      steps.push({
        edits: [{ start, end, text: wanted.value }],
        change: { kind: 'replace-value', value: given.value, text: wanted.value },
      });
    }
  }
  if (missing.length > 0) {
    const texts = missing.map(({ keyword, value }) => `${keyword}=${value}`);
    steps.push({ edits: keywordEdits(module, call.list, texts), change: { kind: 'add-keywords', list: call.list, keywords: missing } });
  }
  return steps.length === 0 ? refuseStep('nothing to change') : { steps, refusal: null };
}

/** Leaves a call without its arguments: `f(x=True)` becomes `f()`. Only for a single argument that is a literal. */
export function dropOnlyKeyword(call: PyCall, keyword: string): StepOutcome {
  const given = argumentOf(call, keyword);
  if (call.list === null || given === null) return refuseStep('the keyword is not there');
  if (partsOf(call.list).length !== 1) return refuseStep('the call takes other arguments');
  if (!LITERALS.has(given.valueKind)) return refuseStep('the value is not a literal');
  if (isInsideFString(call.node)) return refuseStep('inside an f-string');
  const { start, end } = call.list;
  return {
    steps: [{ edits: [{ start, end, text: '()' }], change: { kind: 'replace-value', value: call.list, text: '()' } }],
    refusal: null,
  };
}

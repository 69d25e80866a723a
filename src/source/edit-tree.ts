import { applyCharacterEdits, type CharacterEdit, type EditOutcome, type EditRefusal, refuse, toLineEdit } from './line-edit.ts';
import { parsePython } from './python-parser.ts';
import { ascend, lineAt, type PyModule, type PyNode } from './syntax-tree.ts';
import { differsOnlyBy, type TreeChange } from './tree-difference.ts';

/** Characters to change, and what that does to the tree. */
export interface Step {
  readonly edits: readonly CharacterEdit[];
  readonly change: TreeChange;
}

export type StepOutcome =
  | { readonly steps: readonly Step[]; readonly refusal: null }
  | { readonly steps: null; readonly refusal: EditRefusal };

export function refuseStep(refusal: EditRefusal): StepOutcome {
  return { steps: null, refusal };
}

export function isInsideFString(node: PyNode): boolean {
  for (const up of ascend(node)) if (up.kind === 'interpolation') return true;
  return false;
}

/** The same change is asked for again by every finding with the same remedy; parsing the result is what costs. */
const outcomes = new WeakMap<PyModule, Map<string, EditOutcome>>();

/** The steps as one replacement of whole lines. The result is parsed again and must differ by those changes alone. */
export function applySteps(module: PyModule, steps: readonly Step[]): EditOutcome {
  if (module.brokenLines.length > 0) return refuse('syntax error in the file');
  const edits = steps.flatMap((step) => step.edits);
  if (edits.length === 0) return refuse('nothing to change');
  const key = JSON.stringify(steps.map((step) => [step.change.kind, ...step.edits]));
  const known = outcomes.get(module)?.get(key);
  if (known) return known;
  const outcome = checked(module, edits, steps);
  outcomes.set(module, (outcomes.get(module) ?? new Map<string, EditOutcome>()).set(key, outcome));
  return outcome;
}

function checked(module: PyModule, edits: readonly CharacterEdit[], steps: readonly Step[]): EditOutcome {
  const after = parsePython(module.path, applyCharacterEdits(module.text, edits)).module;
  const changes = steps.map((step) => step.change);
  if (after === null || after.brokenLines.length > 0 || !differsOnlyBy(module, after, changes)) {
    return refuse('the result does not differ by that alone');
  }
  return { edit: toLineEdit(module, edits), refusal: null };
}

/**
 * The steps of one proposal stay one edit, with the lines between them: half of a move breaks the code. Proposals that touch the
 * same line or the next one belong together, because edits of one file never overlap.
 */
export function groupProposals<P extends { readonly steps: readonly Step[] }>(module: PyModule, proposals: readonly P[]): P[][] {
  const lineOf = (offset: number): number => lineAt(module.lineStarts, offset);
  const placed = proposals
    .map((proposal) => ({ proposal, edits: proposal.steps.flatMap(({ edits }) => edits) }))
    .filter(({ edits }) => edits.length > 0)
    .map(({ proposal, edits }) => ({
      proposal,
      first: lineOf(Math.min(...edits.map((edit) => edit.start))),
      last: lineOf(Math.max(...edits.map((edit) => edit.end))),
    }))
    .sort((a, b) => a.first - b.first);
  const groups: { proposals: P[]; last: number }[] = [];
  for (const { proposal, first, last } of placed) {
    const open = groups.at(-1);
    if (open && first <= open.last + 1) {
      open.proposals.push(proposal);
      open.last = Math.max(open.last, last);
    } else groups.push({ proposals: [proposal], last });
  }
  return groups.map((group) => group.proposals);
}

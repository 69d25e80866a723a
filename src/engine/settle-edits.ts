import type { Remedy, RemedyContext } from '../model/remedy.ts';
import type { Edit, Finding, Recommendation } from '../model/report.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { applyLineEdit } from '../source/line-edit.ts';
import { type FilePatch, patchesOf } from '../source/patch.ts';

/** A recommendation, and how it came about. */
export interface Advised {
  readonly recommendation: Recommendation;
  readonly finding: Finding;
  readonly remedy: Remedy;
  readonly context: RemedyContext;
}

/** Advice is asked again for this many overlaps at most; more of them are left as they are. */
const MAX_MERGES = 24;

/**
 * Brings the edits of all findings together: the same change is offered once, and two changes of the same lines (workers and pinned
 * memory in one `DataLoader(…)`) become one. What cannot be joined is offered once and shown for the rest.
 */
export function settleEdits(advised: readonly Advised[]): void {
  const taken: { edit: Edit; owner: Advised; index: number }[] = [];
  let merges = 0;
  for (const one of advised) {
    const { edits, preconditions } = one.recommendation;
    for (let i = 0; i < edits.length; i++) {
      const edit = edits[i]!;
      const clash = taken.filter(({ edit: other }) => overlap(other, edit));
      const [first, ...more] = clash;
      if (first === undefined) {
        taken.push({ edit, owner: one, index: i });
        continue;
      }
      const isSame = more.length === 0 && first.edit.startLine === edit.startLine && first.edit.after === edit.after;
      const mayMerge = !isSame && more.length === 0 && first.edit.kind === edit.kind && merges < MAX_MERGES;
      // The second may not know the first: what a review of the code has found is bound to the text it has read.
      const merged = mayMerge ? (mergedEdit(first.edit, one) ?? mergedEdit(edit, first.owner)) : null;
      if (mayMerge) merges++;
      const isFree = merged !== null && taken.every((other) => other === first || !overlap(other.edit, merged));
      if (merged !== null && isFree) {
        const { recommendation } = first.owner;
        recommendation.edits[first.index] = merged;
        recommendation.preconditions = [...new Set([...recommendation.preconditions, ...preconditions])];
        first.edit = merged;
        edits[i] = { ...merged, kind: 'comment-only' };
      } else if (clash.some(({ edit: other }) => other.kind === 'suggestion')) {
        edits[i] = { ...edit, kind: 'comment-only' };
      } else if (edit.kind === 'suggestion') taken.push({ edit, owner: one, index: i });
    }
  }
}

function overlap(a: Edit, b: Edit): boolean {
  return a.file === b.file && a.startLine <= b.endLine && b.startLine <= a.endLine;
}

/** What the remedy says once the first edit is in place, as one edit of the text before both. */
function mergedEdit(first: Edit, { finding, remedy, context }: Advised): Edit | null {
  const { source } = context;
  if (source === null) return null;
  const text = source.read(first.file);
  const once = text === null ? null : applyLineEdit(text, first);
  if (text === null || once === null) return null;
  const grown = first.after.split('\n').length - first.before.split('\n').length;
  const lastAfter = first.endLine + grown;
  const next = remedy
    .advise(finding, { ...context, source: changed(source, first, once, grown) })
    ?.edits.find((edit) => edit.file === first.file && edit.startLine <= lastAfter && first.startLine <= edit.endLine);
  const twice = next === undefined ? null : applyLineEdit(once, next);
  if (next === undefined || twice === null || next.kind !== first.kind) return null;
  const startLine = Math.min(first.startLine, next.startLine);
  const endLine = Math.max(first.endLine, next.endLine > lastAfter ? next.endLine - grown : first.endLine);
  const grownTwice = grown + next.after.split('\n').length - next.before.split('\n').length;
  const lines = (from: string, last: number): string =>
    from
      .split('\n')
      .slice(startLine - 1, last)
      .join('\n');
  return { ...first, startLine, endLine, before: lines(text, endLine), after: lines(twice, endLine + grownTwice) };
}

/** The tree with one file changed. Its lines are in the diff where the lines they come from are. */
function changed(source: SourceTree, edit: Edit, text: string, grown: number): SourceTree {
  const origin = (line: number, ofChanged: number): number => {
    if (line < edit.startLine) return line;
    return line <= edit.endLine + grown ? ofChanged : line - grown;
  };
  return {
    ...source,
    read: (path) => (path === edit.file ? text : source.read(path)),
    inDiff: (path, startLine, endLine) =>
      path === edit.file
        ? source.inDiff(path, origin(startLine, edit.startLine), origin(endLine, edit.endLine))
        : source.inDiff(path, startLine, endLine),
  };
}

/** Longer patches help nobody; files are left out as a whole, last first. */
const MAX_PATCH = 400_000;

/** All edits of the findings as one patch: the safe ones first where lines are wanted twice. */
export function patchOf(findings: readonly Finding[], source: SourceTree): string | null {
  const edits = findings.flatMap(({ recommendations }) => recommendations.flatMap((recommendation) => recommendation.edits));
  const sorted = [...edits.filter(({ kind }) => kind === 'suggestion'), ...edits.filter(({ kind }) => kind !== 'suggestion')];
  let length = 0;
  const parts = patchesOf(sorted, (file) => source.read(file)).filter(({ text }: FilePatch) => {
    length += text.length;
    return length <= MAX_PATCH;
  });
  return parts.length === 0 ? null : parts.map(({ text }) => text).join('');
}

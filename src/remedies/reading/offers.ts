import type { Remedy } from '../../model/remedy.ts';
import type { Edit, Finding } from '../../model/report.ts';
import type { SourceTree } from '../../model/source-tree.ts';
import { applySteps, groupProposals, type Step } from '../../source/edit-tree.ts';
import { isAside } from '../../source/readable-paths.ts';
import { ascend, lineAt, type PyModule, type PyNode, partsOf, spanOf, textOf } from '../../source/syntax-tree.ts';
import { type Place, provenFiles } from './places.ts';

type FindingOf = Parameters<Remedy['advise']>[0];

/** A place in the syntax that a change is about. */
export interface NodeSite {
  readonly module: PyModule;
  readonly node: PyNode;
}

/** Changes of one file; `isSafe`: nothing is left to guess as far as the source tells. */
export interface Proposal extends NodeSite {
  readonly steps: readonly Step[];
  readonly isSafe: boolean;
}

/** More edits than this of one kind help nobody. */
const MAX_EDITS = 8;
/** Each edit parses the file again: code with more changes than this is generated. */
const MAX_TRIED = 2 * MAX_EDITS;
/** Characters parsed for the edits of one answer: a file that long gets fewer of them. */
const MAX_PARSED = 300_000;

/**
 * Edits for the proposals, each of them whole: those on neighbouring lines become one. One click needs a safe change, a finding that is
 * not a guess, training code, and every line of the statement and of the edit in one hunk of the diff.
 */
export function offer(proposals: readonly Proposal[], finding: FindingOf, source: SourceTree): Edit[] {
  const tried = proposals.filter(({ steps }) => steps.length > 0).slice(0, MAX_TRIED);
  const groups = [...Map.groupBy(tried, ({ module }) => module)].flatMap(([module, own]) => groupProposals(module, own));
  const edits: Edit[] = [];
  let parsed = 0;
  for (const members of groups) {
    const { module } = members[0]!;
    if (edits.length === MAX_EDITS || parsed > MAX_PARSED) break;
    parsed += module.text.length;
    const { edit } = applySteps(
      module,
      members.flatMap(({ steps }) => steps),
    );
    if (edit === null) continue;
    const isOneClick =
      members.every(({ isSafe, node }) => isSafe && isInDiff(source, module, node)) &&
      finding.confidence !== 'low' &&
      !isAside(module.path) &&
      source.inDiff(module.path, edit.startLine, edit.endLine);
    edits.push({ ...edit, kind: isOneClick ? 'suggestion' : 'comment-only' });
  }
  return edits;
}

function isInDiff(source: SourceTree, module: PyModule, node: PyNode): boolean {
  const { startLine, endLine } = spanOf(module, node);
  return source.inDiff(module.path, startLine, endLine);
}

export interface Chosen<T extends NodeSite> {
  readonly sites: readonly T[];
  /** False: the profile cannot tell which of them it is. */
  readonly isSure: boolean;
}

/**
 * The sites that a profile means: those on a line of its stacks, else those in a function or file that its stacks name, else none. Without
 * stacks only a site that has no second is certain.
 */
export function chosen<T extends NodeSite>(sites: readonly T[], finding: Pick<Finding, 'locations'>): Chosen<T> {
  const proven = finding.locations.filter((location) => location.provenBy !== 'syntax');
  const onLine = sites.filter(({ module, node }) => {
    const { startLine, endLine } = spanOf(module, node);
    return proven.some(({ file, line }) => file === module.path && startLine <= line && line <= endLine);
  });
  if (onLine.length > 0) return { sites: onLine, isSure: true };
  const inFunction = sites.filter(({ module, node }) => {
    const around = functionAround(node);
    if (around === null) return false;
    const { startLine, endLine } = spanOf(module, around);
    return proven.some(({ file, line }) => file === module.path && startLine <= line && line <= endLine);
  });
  if (inFunction.length > 0) return { sites: inFunction, isSure: inFunction.length === 1 };
  const files = provenFiles(finding);
  const left = files.length > 0 ? sites.filter(({ module }) => files.includes(module.path)) : sites;
  return { sites: left, isSure: left.length === 1 };
}

export function functionAround(node: PyNode): PyNode | null {
  for (const up of ascend(node)) if (up.kind === 'function_definition') return up;
  return null;
}

/** The statement a node belongs to. */
export function statementOf(node: PyNode): PyNode | null {
  let at: PyNode | null = node;
  while (at !== null && at.parent !== null && at.parent.kind !== 'block' && at.parent.kind !== 'module') at = at.parent;
  return at?.parent ? at : null;
}

export function placesOfNodes(sites: readonly NodeSite[]): Place[] {
  return sites.slice(0, MAX_EDITS).map(({ module, node }) => {
    const name = functionAround(node);
    const identifier = name === null ? undefined : partsOf(name).find((part) => part.kind === 'identifier');
    return { file: module.path, line: lineAt(module.lineStarts, node.start), symbol: identifier ? textOf(module, identifier) : null };
  });
}

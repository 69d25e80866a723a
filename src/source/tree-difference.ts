import { descend, type PyModule, type PyNode, textOf } from './syntax-tree.ts';

/** One change an edit may make. Nodes belong to the tree before the edit. */
export type TreeChange =
  | {
      readonly kind: 'add-keywords';
      readonly list: PyNode;
      readonly keywords: readonly { readonly keyword: string; readonly value: string }[];
    }
  /** One node by another with exactly that text. */
  | { readonly kind: 'replace-value'; readonly value: PyNode; readonly text: string }
  | { readonly kind: 'delete'; readonly statement: PyNode }
  /** Statements of one line each, behind a statement of the same block. */
  | { readonly kind: 'insert-after'; readonly statement: PyNode; readonly texts: readonly string[] }
  /** The same at the beginning of a block. */
  | { readonly kind: 'insert-first'; readonly block: PyNode; readonly texts: readonly string[] };

/** Their text is not fully covered by children (escapes, interpolations), so it is compared as a whole. */
const VERBATIM = new Set(['string', 'concatenated_string']);

/** True when both trees mean the same except for exactly those changes, and no comment was lost. */
export function differsOnlyBy(before: PyModule, after: PyModule, changes: TreeChange | readonly TreeChange[]): boolean {
  const list: readonly TreeChange[] = 'kind' in changes ? [changes] : changes;
  return sameComments(before, after) && sameNode({ before, after, changes: list }, before.root, after.root);
}

function sameComments(before: PyModule, after: PyModule): boolean {
  const commentsOf = (module: PyModule): string[] =>
    [...descend(module.root)].filter((node) => node.kind === 'comment').map((node) => textOf(module, node).trimEnd());
  const [old, now] = [commentsOf(before), commentsOf(after)];
  return old.length === now.length && old.every((comment, i) => comment === now[i]);
}

interface Comparison {
  readonly before: PyModule;
  readonly after: PyModule;
  readonly changes: readonly TreeChange[];
}

function sameNode(comparison: Comparison, old: PyNode, now: PyNode): boolean {
  const { before, after, changes } = comparison;
  for (const change of changes) if (change.kind === 'replace-value' && old === change.value) return textOf(after, now) === change.text;
  if (old.kind !== now.kind || old.named !== now.named) return false;
  const oldParts = expected(comparison, old);
  const nowParts = meaningful(now);
  if (VERBATIM.has(old.kind)) return textOf(before, old) === textOf(after, now);
  if (oldParts.length === 0 && nowParts.length === 0 && old.kind !== 'argument_list') return textOf(before, old) === textOf(after, now);
  for (const change of changes) {
    if (change.kind !== 'add-keywords' || old !== change.list) continue;
    for (const { keyword, value } of change.keywords) {
      const added = nowParts.findIndex((part) => isKeyword(after, part, keyword, value));
      if (added === -1) return false;
      nowParts.splice(added, 1);
    }
  }
  return (
    oldParts.length === nowParts.length &&
    oldParts.every((part, i) =>
      typeof part === 'string' ? textOf(after, nowParts[i]!) === part : sameNode(comparison, part, nowParts[i]!),
    )
  );
}

/** The children that are to be found afterwards: nodes that stay, and the texts of new ones. */
function expected({ changes }: Comparison, node: PyNode): (PyNode | string)[] {
  const parts: (PyNode | string)[] = [];
  for (const change of changes) if (change.kind === 'insert-first' && change.block === node) parts.push(...change.texts);
  for (const part of meaningful(node)) {
    if (!changes.some((change) => change.kind === 'delete' && change.statement === part)) parts.push(part);
    for (const change of changes) if (change.kind === 'insert-after' && change.statement === part) parts.push(...change.texts);
  }
  return parts;
}

/** Children without comments, and without the commas of an argument list, which come and go with a trailing comma. */
function meaningful(node: PyNode): PyNode[] {
  const isList = node.kind === 'argument_list';
  return node.children.filter((child) => child.kind !== 'comment' && !(isList && child.kind === ','));
}

function isKeyword(module: PyModule, node: PyNode, keyword: string, value: string): boolean {
  if (node.kind !== 'keyword_argument') return false;
  const [name, equals, given, ...rest] = node.children;
  if (name === undefined || equals?.kind !== '=' || given === undefined || rest.length > 0) return false;
  return textOf(module, name) === keyword && textOf(module, given) === value;
}

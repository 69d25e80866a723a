import { descend, type PyModule, type PyNode, textOf } from './syntax-tree.ts';

/** The one change an edit may make. Nodes belong to the tree before the edit. */
export type TreeChange =
  | {
      readonly kind: 'add-keywords';
      readonly list: PyNode;
      readonly keywords: readonly { readonly keyword: string; readonly value: string }[];
    }
  | { readonly kind: 'replace-value'; readonly value: PyNode; readonly text: string };

/** Their text is not fully covered by children (escapes, interpolations), so it is compared as a whole. */
const VERBATIM = new Set(['string', 'concatenated_string']);

/** True when both trees mean the same except for exactly that change, and no comment was lost. */
export function differsOnlyBy(before: PyModule, after: PyModule, change: TreeChange): boolean {
  return sameComments(before, after) && sameNode(before, after, before.root, after.root, change);
}

function sameComments(before: PyModule, after: PyModule): boolean {
  const commentsOf = (module: PyModule): string[] =>
    [...descend(module.root)].filter((node) => node.kind === 'comment').map((node) => textOf(module, node).trimEnd());
  const [old, now] = [commentsOf(before), commentsOf(after)];
  return old.length === now.length && old.every((comment, i) => comment === now[i]);
}

function sameNode(before: PyModule, after: PyModule, old: PyNode, now: PyNode, change: TreeChange): boolean {
  if (change.kind === 'replace-value' && old === change.value) return now.children.length === 0 && textOf(after, now) === change.text;
  if (old.kind !== now.kind || old.named !== now.named) return false;
  const oldParts = meaningful(old);
  const nowParts = meaningful(now);
  if (VERBATIM.has(old.kind) || (oldParts.length === 0 && nowParts.length === 0 && old.kind !== 'argument_list')) {
    return textOf(before, old) === textOf(after, now);
  }
  if (change.kind === 'add-keywords' && old === change.list) {
    for (const { keyword, value } of change.keywords) {
      const added = nowParts.findIndex((part) => isKeyword(after, part, keyword, value));
      if (added === -1) return false;
      nowParts.splice(added, 1);
    }
  }
  return oldParts.length === nowParts.length && oldParts.every((part, i) => sameNode(before, after, part, nowParts[i]!, change));
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

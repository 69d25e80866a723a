import type { Occurrence } from '../../model/code.ts';
import type { ChangeBlock } from '../../model/source-tree.ts';
import { type PyNode, textOf } from '../../source/syntax-tree.ts';
import { type NpuFile, siteOf } from './npu-file.ts';

/** Lines longer than this are data. */
const MAX_LINE = 400;

const squeeze = (line: string): string => line.replaceAll(/\s+/g, '');

/** `x.transpose(1, 2)`, also `permute`, also with `.contiguous()` behind it. */
const PERMUTES = /\.(transpose|permute|swapaxes|swapdims)\(([^()]*)\)(?:\.contiguous\(\))?/g;
/** What relabels memory instead of moving it, or changes the private storage only. */
const RELABELS = /(?:\.contiguous\(\))?\.(view|reshape|npu_format_cast)\(([^()]*(?:\([^()]*\)[^()]*)*)\)/y;

/** A block worth a look: something permuted or masked went, and something that may stand in for it came. */
export function mayRewrite({ removed, added }: ChangeBlock): boolean {
  return (
    removed.some((line) => /transpose|permute|swap|scaled_dot_product_attention/.test(line)) &&
    added.some((line) => /view|reshape|npu_format_cast|npu_fusion_attention|keep_prob|atten_mask/.test(line))
  );
}

/**
 * Changes of the pull request that replace a permutation by something that keeps the order of the numbers. The rest of the
 * line has to be the same, so that nothing else can make up for it.
 */
export function rewriteOccurrences(file: NpuFile, blocks: readonly ChangeBlock[]): Occurrence[] {
  const found: Occurrence[] = [];
  for (const block of blocks) {
    const old = block.removed.filter((line) => line.length <= MAX_LINE).map(squeeze);
    const permuted = permutationsOf(old);
    for (const [i, added] of block.added.entries()) {
      if (added.length > MAX_LINE || /^\s*#/.test(added)) continue;
      const swap = relabelled(permuted, squeeze(added));
      if (swap === null) continue;
      const node = callIn(file, block.startLine + i, /view|reshape|npu_format_cast|npu_fusion_attention|keep_prob|atten_mask/);
      if (node === null) continue;
      found.push({
        kind: 'unequal-rewrite',
        name: swap.from,
        replacement: null,
        confidence: 'medium',
        params: { from: swap.from, to: swap.to },
        site: siteOf(file.module, node),
      });
    }
    found.push(...inverted(file, block, old));
  }
  return found;
}

/** More permutations in one block of changes are generated code. */
const MAX_PERMUTATIONS = 2_000;

/** The permutations of the old lines, by what stands before and behind each. */
function permutationsOf(old: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const line of old) {
    for (const permute of line.matchAll(PERMUTES)) {
      if (found.size >= MAX_PERMUTATIONS) return found;
      const key = surroundings(line, permute.index, permute.index + permute[0].length);
      if (!found.has(key)) found.set(key, permute[1]!);
    }
  }
  return found;
}

/** No line holds a line feed. */
function surroundings(line: string, start: number, end: number): string {
  return `${line.slice(0, start)}\n${line.slice(end)}`;
}

function relabelled(permuted: ReadonlyMap<string, string>, now: string): { from: string; to: string } | null {
  if (permuted.size === 0) return null;
  for (let at = now.indexOf('.'); at !== -1; at = now.indexOf('.', at + 1)) {
    RELABELS.lastIndex = at;
    const relabel = RELABELS.exec(now);
    const from = relabel === null ? undefined : permuted.get(surroundings(now, at, at + relabel[0].length));
    if (from !== undefined) return { from, to: relabel![1]! };
  }
  return null;
}

/** `attn_mask=m` says what stays, `atten_mask=m` what goes; `dropout_p` is what goes, `keep_prob` what stays. */
function inverted(file: NpuFile, block: ChangeBlock, old: readonly string[]): Occurrence[] {
  const before = old.join('');
  if (!/scaled_dot_product_attention\(/.test(before)) return [];
  const found: Occurrence[] = [];
  const pairs = [
    ['attn_mask', 'atten_mask'],
    ['dropout_p', 'keep_prob'],
  ] as const;
  for (const [was, is] of pairs) {
    const value = valueAfter(before, was);
    // A bare name: of an expression nobody knows what it makes up for. 0.5 is its own inverse.
    if (value === null || !/^[A-Za-z_][\w.]*$/.test(value) || value === 'None') continue;
    for (const [i, added] of block.added.entries()) {
      if (added.length > MAX_LINE || valueAfter(squeeze(added), is) !== value) continue;
      const node = callIn(file, block.startLine + i, new RegExp(is));
      if (node)
        found.push({
          kind: 'inverted-argument',
          name: is,
          replacement: null,
          confidence: 'medium',
          params: { value, was },
          site: siteOf(file.module, node),
        });
    }
  }
  return found;
}

function valueAfter(squeezed: string, keyword: string): string | null {
  return new RegExp(`(?<![\\w.])${keyword}=([^,()]+)(?=[,)]|$)`).exec(squeezed)?.[1] ?? null;
}

/** The innermost call on a line that holds the word: text in strings and comments is none. */
function callIn({ module }: NpuFile, line: number, word: RegExp): PyNode | null {
  const start = module.lineStarts[line - 1];
  if (start === undefined) return null;
  const end = module.lineStarts[line] ?? module.text.length;
  let found: PyNode | null = null;
  const stack: PyNode[] = [module.root];
  while (stack.length > 0) {
    const node = stack.pop()!;
    if (node.start >= end || node.end <= start) continue;
    if (node.kind === 'call' && node.end <= end + 2_000 && word.test(textOf(module, node))) found = node;
    for (let i = node.children.length - 1; i >= 0; i--) stack.push(node.children[i]!);
  }
  return found;
}

/** One node of a Python syntax tree as plain data. Offsets count UTF-16 units, so `text.slice(start, end)` is its text. */
export interface PyNode {
  readonly kind: string;
  /** False for punctuation and keywords such as `(` or `def`. */
  readonly named: boolean;
  readonly start: number;
  readonly end: number;
  readonly parent: PyNode | null;
  readonly children: readonly PyNode[];
}

/** One Python file, parsed and never run. */
export interface PyModule {
  readonly path: string;
  readonly text: string;
  readonly root: PyNode;
  /** Offset of the first character of every line. */
  readonly lineStarts: readonly number[];
  /** Lines with a syntax error, 1-based, at most a handful. Such a file may be searched but is never edited. */
  readonly brokenLines: readonly number[];
}

export interface Span {
  /** 1-based, both lines inclusive. */
  readonly startLine: number;
  readonly endLine: number;
  /** 0-based, in UTF-16 units; the end is exclusive. */
  readonly startColumn: number;
  readonly endColumn: number;
}

export function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** The 1-based line that holds an offset. */
export function lineAt(lineStarts: readonly number[], offset: number): number {
  let low = 0;
  let high = lineStarts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (lineStarts[middle]! <= offset) low = middle;
    else high = middle - 1;
  }
  return low + 1;
}

export function spanOf(module: Pick<PyModule, 'lineStarts'>, node: Pick<PyNode, 'start' | 'end'>): Span {
  const startLine = lineAt(module.lineStarts, node.start);
  const endLine = lineAt(module.lineStarts, Math.max(node.start, node.end - 1));
  return {
    startLine,
    endLine,
    startColumn: node.start - module.lineStarts[startLine - 1]!,
    endColumn: node.end - module.lineStarts[endLine - 1]!,
  };
}

export function textOf(module: Pick<PyModule, 'text'>, node: Pick<PyNode, 'start' | 'end'>): string {
  return module.text.slice(node.start, node.end);
}

/** May stand between any two parts of the grammar. */
const EXTRAS = new Set(['comment', 'line_continuation']);

/** Named children without comments and line continuations: the parts that carry meaning. */
export function partsOf(node: PyNode): PyNode[] {
  return node.children.filter((child) => child.named && !EXTRAS.has(child.kind));
}

/** A node and everything below it, in source order. */
export function* descend(node: PyNode): Generator<PyNode> {
  const stack: PyNode[] = [node];
  while (stack.length > 0) {
    const next = stack.pop()!;
    yield next;
    for (let i = next.children.length - 1; i >= 0; i--) stack.push(next.children[i]!);
  }
}

/** The nodes around a node, innermost first. */
export function* ascend(node: PyNode): Generator<PyNode> {
  for (let at = node.parent; at !== null; at = at.parent) yield at;
}

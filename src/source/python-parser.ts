import { createRequire } from 'node:module';
import { parse, registerDynamicLanguage, type SgNode } from '@ast-grep/napi';
import { messageOf } from '../base/errors.ts';
import { lineAt, lineStartsOf, type PyModule, type PyNode } from './syntax-tree.ts';

/** Why a file could not be parsed. Reported beside the result, never thrown. */
export interface ParseFailure {
  readonly path: string;
  readonly why: 'too large' | 'not text' | 'too complex' | 'parser failed';
  readonly detail: string;
}

export type Parsed = { readonly module: PyModule; readonly failure: null } | { readonly module: null; readonly failure: ParseFailure };

/** Larger files are generated code or data; a hand-written training script stays far below. */
export const MAX_FILE_BYTES = 1_000_000;

/** A 1 MB file of ordinary code has about 300,000 nodes, and a walk costs about 4 µs per node. */
const MAX_NODES = 400_000;

/** Ordinary code nests below 60. Deeper trees are hostile or generated and would make every upward search slow. */
const MAX_DEPTH = 1_000;

const MAX_BROKEN_LINES = 5;

/** Python 2 statements that the grammar accepts and Python 3 does not. */
const PYTHON_2 = new Set(['print_statement', 'exec_statement']);

let ready = false;

function registerPython(): void {
  if (ready) return;
  registerDynamicLanguage({ python: createRequire(import.meta.url)('@ast-grep/lang-python') });
  ready = true;
}

/** Parses one file. Same text, same tree; nothing is executed or imported. */
export function parsePython(path: string, text: string): Parsed {
  const fail = (why: ParseFailure['why'], detail: string): Parsed => ({ module: null, failure: { path, why, detail } });
  if (text.length > MAX_FILE_BYTES || Buffer.byteLength(text) > MAX_FILE_BYTES)
    return fail('too large', `more than ${MAX_FILE_BYTES} bytes`);
  if (text.includes('\0')) return fail('not text', 'holds a zero byte');
  try {
    registerPython();
    const copied = copyTree(parse('python', text).root(), text);
    if (copied === null) return fail('too complex', `more than ${MAX_NODES} nodes or nested deeper than ${MAX_DEPTH}`);
    const lineStarts = lineStartsOf(text);
    const brokenLines = [...new Set(copied.broken.map((offset) => lineAt(lineStarts, offset)))];
    return { module: { path, text, root: copied.root, lineStarts, brokenLines }, failure: null };
  } catch (error) {
    return fail('parser failed', messageOf(error));
  }
}

interface GrowingNode extends PyNode {
  start: number;
  end: number;
  children: GrowingNode[];
}

/** All leaves share it, which are more than half of all nodes. */
const NO_CHILDREN: GrowingNode[] = [];

/** Kinds that never have children, beside punctuation and keywords. */
const LEAVES = new Set(['identifier', 'integer', 'true', 'false', 'none', 'comment', 'string_start', 'string_end']);
const PUNCTUATION = /^[^A-Za-z_]+$/;
const BLANK = /[^ \t\r\n\f]/g;
const TEXTS: Readonly<Record<string, RegExp>> = {
  identifier: /[A-Za-z_]\w*/y,
  true: /True/y,
  false: /False/y,
  none: /None/y,
  integer: /\d+(?![\w.])/y,
  comment: /#[^\r\n]*(?=\n)/y,
  string_start: /[rbuf]{0,2}(?:"""|'{3}|["'])/iy,
};

/** The tokens between the named children of a node, where they follow from its kind. */
interface Shape {
  readonly open?: string;
  readonly close?: string;
  readonly between?: RegExp;
  /** As many as children, less one; a list may end with one more. */
  readonly isExact?: boolean;
}

const COMMA = /,/y;
const list = (open: string, close: string): Shape => ({ open, close, between: COMMA, isExact: true });
const OPERATOR = /\*\*|\/\/|<<|>>|[-+*/%@|&^]/y;
const SHAPES: Readonly<Record<string, Shape>> = {
  call: {},
  argument_list: list('(', ')'),
  parameters: list('(', ')'),
  tuple: list('(', ')'),
  list: list('[', ']'),
  dictionary: list('{', '}'),
  attribute: { between: /\./y, isExact: true },
  keyword_argument: { between: /=(?!=)/y, isExact: true },
  default_parameter: { between: /=(?!=)/y, isExact: true },
  pair: { between: /:(?!=)/y, isExact: true },
  typed_parameter: { between: /:(?!=)/y, isExact: true },
  binary_operator: { between: OPERATOR, isExact: true },
  subscript: { between: /[[,]/y, close: ']', isExact: true },
  parenthesized_expression: { open: '(', close: ')' },
  expression_list: { between: COMMA },
  pattern_list: { between: COMMA },
  expression_statement: { between: COMMA },
  block: { between: /;/y },
  string: {},
};
const EXTRAS = new Set(['comment', 'line_continuation']);

/** The text does not follow the shapes; the parser must be asked for every token. */
class Unforeseen extends Error {}

/**
 * Copies the parser's tree into plain data, once, so that nothing else touches the parser's types. Asking the parser costs
 * 2 µs for each node, so what follows from the text is not asked: a token begins where the blanks after the token before end,
 * and a node reaches from its first to its last token. Files with errors are copied as the parser has them.
 */
function copyTree(foreign: SgNode, text: string): { root: PyNode; broken: number[] } | null {
  try {
    return copied(foreign, text, SHAPES);
  } catch (error) {
    if (!(error instanceof Unforeseen)) throw error;
    return copied(foreign, text, {});
  }
}

interface Open {
  readonly node: GrowingNode;
  readonly foreign: SgNode;
  readonly from: readonly SgNode[];
  next: number;
  readonly shape: Shape | null;
  parts: number;
  separators: number;
}

function copied(foreign: SgNode, text: string, shapes: Readonly<Record<string, Shape>>): { root: PyNode; broken: number[] } | null {
  const broken: number[] = [];
  const named = new Map<string, boolean>();
  /** End of the last token. */
  let cursor = 0;
  let count = 1;

  const isNamed = (node: SgNode, kind: string, isLeaf: boolean): boolean => {
    // `lambda` and `type` are keywords without, and nodes with children.
    const key = isLeaf ? kind : `${kind}/`;
    let known = named.get(key);
    if (known === undefined) {
      known = node.isNamed();
      named.set(key, known);
    }
    return known;
  };
  const nextStart = (): number => {
    BLANK.lastIndex = cursor;
    return BLANK.exec(text)?.index ?? -1;
  };
  /** The end of a token that is its own kind, or whose text follows from its kind; -1 when only the parser knows. */
  const endOf = (kind: string, start: number, isToken: boolean): number => {
    if (start === -1) return -1;
    if (isToken) return text.startsWith(kind, start) ? start + kind.length : -1;
    const pattern = TEXTS[kind];
    if (pattern === undefined) return -1;
    pattern.lastIndex = start;
    const end = pattern.test(text) ? pattern.lastIndex : -1;
    return end !== -1 && !(text.charCodeAt(end) > 127) ? end : -1;
  };
  const token = (kind: string, start: number, end: number, parent: GrowingNode): void => {
    count++;
    cursor = end;
    parent.children.push({ kind, named: false, start, end, parent, children: NO_CHILDREN });
  };
  const leaf = (node: SgNode, kind: string, parent: GrowingNode): void => {
    const isToken = !isNamed(node, kind, true);
    let start = nextStart();
    let end = endOf(kind, start, isToken);
    if (end === -1) {
      const range = node.range();
      start = range.start.index;
      end = range.end.index;
    }
    if (end > cursor) cursor = end;
    const copy = { kind, named: !isToken, start, end, parent, children: NO_CHILDREN };
    noteBroken(copy);
    parent.children.push(copy);
  };
  const noteBroken = (node: GrowingNode): void => {
    // A zero-width node was invented by the parser to go on after an error; only an empty file has one of its own.
    const isBroken = node.kind === 'ERROR' || PYTHON_2.has(node.kind) || (node.start === node.end && node.kind !== 'module');
    if (isBroken && shapes === SHAPES) throw new Unforeseen();
    if (isBroken && broken.length < MAX_BROKEN_LINES) broken.push(node.start);
  };
  const expect = (word: string, parent: GrowingNode): void => {
    const start = nextStart();
    if (start === -1 || !text.startsWith(word, start)) throw new Unforeseen();
    token(word, start, start + word.length, parent);
  };
  const separate = (open: Open, pattern: RegExp): void => {
    const isOne = open.shape?.isExact === true && open.shape.close === undefined;
    for (let n = 0; n === 0 || !isOne; n++) {
      const start = nextStart();
      pattern.lastIndex = start;
      const found = start === -1 ? null : pattern.exec(text);
      if (found === null) return;
      open.separators++;
      token(found[0], start, start + found[0].length, open.node);
    }
  };
  const close = ({ node, foreign: from, shape, parts, separators }: Open): void => {
    if (shape?.close !== undefined) expect(shape.close, node);
    if (shape?.isExact && separators !== Math.max(0, parts - 1) && !(shape.close !== undefined && separators === parts))
      throw new Unforeseen();
    // An array that has grown keeps room for 17; most nodes have three.
    const children = node.children.slice();
    node.children = children;
    if (children.length === 0) throw new Unforeseen();
    node.start = children[0]!.start;
    node.end = children.at(-1)!.end;
    // What holds text that has no node of its own reaches beyond its children.
    if (UNEVEN.has(node.kind)) {
      const range = from.range();
      node.start = range.start.index;
      node.end = range.end.index;
      if (node.end > cursor) cursor = node.end;
    }
    noteBroken(node);
  };

  const { start, end } = foreign.range();
  const rootKind = String(foreign.kind());
  const root: GrowingNode = { kind: rootKind, named: foreign.isNamed(), start: start.index, end: end.index, parent: null, children: [] };
  if (rootKind !== 'module') noteBroken(root);
  const stack: Open[] = [{ node: root, foreign, from: foreign.children(), next: 0, shape: null, parts: 0, separators: 0 }];
  while (stack.length > 0) {
    const top = stack.at(-1)!;
    const child = top.from[top.next++];
    // After the last child, what follows is the node's own only where the kind allows it.
    const mayFollow = child !== undefined || top.shape?.close !== undefined || top.shape?.isExact !== true;
    if (top.shape?.between !== undefined && top.next > 1 && mayFollow) separate(top, top.shape.between);
    if (child === undefined) {
      stack.pop();
      if (top.node !== root) close(top);
      continue;
    }
    if (++count > MAX_NODES) return null;
    const kind = String(child.kind());
    if (!EXTRAS.has(kind)) top.parts++;
    if (LEAVES.has(kind) || PUNCTUATION.test(kind)) {
      leaf(child, kind, top.node);
      continue;
    }
    const shape = shapes[kind] ?? null;
    const below = shape === null ? child.children() : child.namedChildren();
    if (below.length === 0 && shape?.open === undefined) {
      leaf(child, kind, top.node);
      continue;
    }
    if (stack.length > MAX_DEPTH) return null;
    const copy: GrowingNode = { kind, named: isNamed(child, kind, false), start: -1, end: -1, parent: top.node, children: [] };
    top.node.children.push(copy);
    stack.push({ node: copy, foreign: child, from: below, next: 0, shape, parts: 0, separators: 0 });
    if (shape?.open !== undefined) expect(shape.open, copy);
  }
  return { root, broken };
}

/** Nodes whose extent is not that of their children. */
const UNEVEN = new Set(['ERROR', 'block', 'string_content', 'interpolation', 'format_specifier', 'concatenated_string']);

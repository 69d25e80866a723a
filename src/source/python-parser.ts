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
    const copied = copyTree(parse('python', text).root());
    if (copied === null) return fail('too complex', `more than ${MAX_NODES} nodes or nested deeper than ${MAX_DEPTH}`);
    const lineStarts = lineStartsOf(text);
    const brokenLines = [...new Set(copied.broken.map((offset) => lineAt(lineStarts, offset)))];
    return { module: { path, text, root: copied.root, lineStarts, brokenLines }, failure: null };
  } catch (error) {
    return fail('parser failed', messageOf(error));
  }
}

interface GrowingNode extends PyNode {
  readonly children: GrowingNode[];
}

/** Copies the parser's tree into plain data, once, so that nothing else touches the parser's types. */
function copyTree(foreign: SgNode): { root: PyNode; broken: number[] } | null {
  const broken: number[] = [];
  const take = (node: SgNode, parent: GrowingNode | null): GrowingNode => {
    const { start, end } = node.range();
    const kind = String(node.kind());
    const copy: GrowingNode = { kind, named: node.isNamed(), start: start.index, end: end.index, parent, children: [] };
    // A zero-width node was invented by the parser to go on after an error; only an empty file has one of its own.
    const isBroken = kind === 'ERROR' || PYTHON_2.has(kind) || (copy.start === copy.end && kind !== 'module');
    if (isBroken && broken.length < MAX_BROKEN_LINES) broken.push(copy.start);
    return copy;
  };
  const root = take(foreign, null);
  const stack: [SgNode, GrowingNode, number][] = [[foreign, root, 0]];
  let count = 1;
  while (stack.length > 0) {
    const [from, to, depth] = stack.pop()!;
    if (depth > MAX_DEPTH) return null;
    for (const child of from.children()) {
      if (++count > MAX_NODES) return null;
      const copy = take(child, to);
      to.children.push(copy);
      stack.push([child, copy, depth + 1]);
    }
  }
  return { root, broken };
}

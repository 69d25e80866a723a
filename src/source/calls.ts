import { canonicalName, type Names, namesOf, resolveName } from './names.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, type Span, spanOf, textOf } from './syntax-tree.ts';

export interface PyArgument {
  /** null for a positional argument. */
  readonly keyword: string | null;
  /** 0-based place among the positional arguments; null for a keyword. */
  readonly position: number | null;
  /** The value as written. */
  readonly text: string;
  readonly valueKind: string;
  readonly node: PyNode;
  readonly value: PyNode;
}

export interface Enclosure {
  readonly kind: 'function' | 'class' | 'for' | 'while' | 'if' | 'else' | 'with' | 'try' | 'lambda' | 'comprehension';
  /** Name of the function or class, the condition of an `if` or `while`, else null. */
  readonly text: string | null;
  readonly line: number;
}

export interface PyCall {
  /** The callable as a canonical dotted name; null when the file leaves it open. */
  readonly name: string | null;
  /** All names it may stand for. More than one, or one that is not `name`, means that it is not certain. */
  readonly candidates: readonly string[];
  /** The callable as written, e.g. `DDP`. */
  readonly written: string;
  readonly arguments: readonly PyArgument[];
  readonly hasStarArgs: boolean;
  readonly hasKeywordArgs: boolean;
  readonly span: Span;
  /** What stands around the call, innermost first. */
  readonly enclosing: readonly Enclosure[];
  readonly node: PyNode;
  /** The parenthesised list; null for `f(x for x in y)`. */
  readonly list: PyNode | null;
}

/** More calls than this in one file are generated code; the rest is left out. */
const MAX_CALLS = 500;

/** Calls of a file whose callable is, or may be, one of `wanted` (canonical dotted names). In source order. */
export function findCalls(module: PyModule, wanted: readonly string[], names: Names = namesOf(module)): PyCall[] {
  const targets = new Set(wanted.map(canonicalName));
  const calls: PyCall[] = [];
  for (const node of descend(module.root)) {
    if (node.kind !== 'call') continue;
    const callable = node.children[0];
    if (callable === undefined) continue;
    const resolved = resolveName(names, callable);
    if (resolved.names.some((name) => targets.has(name))) calls.push(describeCall(module, node, resolved));
    if (calls.length >= MAX_CALLS) break;
  }
  return calls;
}

/** Calls of a method by its last name, whatever the object is: `anything.backward(…)`. */
export function findMethodCalls(module: PyModule, methods: readonly string[]): PyCall[] {
  const wanted = new Set(methods);
  const calls: PyCall[] = [];
  for (const node of descend(module.root)) {
    if (node.kind !== 'call') continue;
    const callable = node.children[0];
    if (callable?.kind !== 'attribute') continue;
    const member = partsOf(callable)[1];
    if (member && wanted.has(textOf(module, member))) calls.push(describeCall(module, node, { names: [], certain: false }));
    if (calls.length >= MAX_CALLS) break;
  }
  return calls;
}

/** Calls whose callable ends in a name (`x.f(…)` and `f(…)` for `f`), or one node that is a call; what it stands for is left open. */
export function describeCalls(module: PyModule, name: string | null, only: PyNode | null = null): PyCall[] {
  const calls: PyCall[] = [];
  for (const node of only === null ? descend(module.root) : [only]) {
    const callable = node.kind === 'call' ? node.children[0] : undefined;
    if (callable === undefined) continue;
    const last = callable.kind === 'attribute' ? partsOf(callable)[1] : callable;
    if (name !== null && (last?.kind !== 'identifier' || textOf(module, last) !== name)) continue;
    calls.push(describeCall(module, node, { names: [], certain: false }));
    if (calls.length >= MAX_CALLS) break;
  }
  return calls;
}

function describeCall(module: PyModule, node: PyNode, resolved: { names: readonly string[]; certain: boolean }): PyCall {
  const last = node.children.at(-1)!;
  const list = last.kind === 'argument_list' ? last : null;
  const parts = list === null ? [] : partsOf(list);
  return {
    name: resolved.certain ? resolved.names[0]! : null,
    candidates: resolved.names,
    written: textOf(module, node.children[0]!),
    arguments: argumentsOf(module, parts),
    hasStarArgs: parts.some((part) => part.kind === 'list_splat'),
    hasKeywordArgs: parts.some((part) => part.kind === 'dictionary_splat'),
    span: spanOf(module, node),
    enclosing: enclosingOf(module, node),
    node,
    list,
  };
}

function argumentsOf(module: PyModule, parts: readonly PyNode[]): PyArgument[] {
  let position = 0;
  return parts
    .filter((part) => part.kind !== 'list_splat' && part.kind !== 'dictionary_splat')
    .map((node) => {
      const [name, value] = node.kind === 'keyword_argument' ? partsOf(node) : [null, node];
      const described = { text: textOf(module, value ?? node), valueKind: (value ?? node).kind, node, value: value ?? node };
      return name ? { keyword: textOf(module, name), position: null, ...described } : { keyword: null, position: position++, ...described };
    });
}

/** The argument given by keyword, or by position where the signature allows it. */
export function argumentOf(call: PyCall, keyword: string, position: number | null = null): PyArgument | null {
  const byKeyword = call.arguments.find((argument) => argument.keyword === keyword);
  if (byKeyword) return byKeyword;
  if (position === null) return null;
  return call.arguments.find((argument) => argument.position === position) ?? null;
}

const ENCLOSURES: Readonly<Record<string, Enclosure['kind']>> = {
  function_definition: 'function',
  class_definition: 'class',
  for_statement: 'for',
  while_statement: 'while',
  if_statement: 'if',
  elif_clause: 'if',
  else_clause: 'else',
  with_statement: 'with',
  try_statement: 'try',
  lambda: 'lambda',
  list_comprehension: 'comprehension',
  set_comprehension: 'comprehension',
  dictionary_comprehension: 'comprehension',
  generator_expression: 'comprehension',
};

function enclosingOf(module: PyModule, node: PyNode): Enclosure[] {
  const around: Enclosure[] = [];
  let inner = node;
  for (const up of ascend(node)) {
    const kind = ENCLOSURES[up.kind];
    // An `elif` or `else` stands in for its `if`: the condition of that `if` does not hold there.
    const isBranch = inner.kind === 'elif_clause' || inner.kind === 'else_clause';
    if (kind && !(up.kind === 'if_statement' && isBranch))
      around.push({ kind, text: enclosureText(module, up, kind), line: spanOf(module, up).startLine });
    inner = up;
  }
  return around;
}

function enclosureText(module: PyModule, node: PyNode, kind: Enclosure['kind']): string | null {
  const first = partsOf(node)[0];
  if (first === undefined || !['function', 'class', 'if', 'while'].includes(kind)) return null;
  return textOf(module, first);
}

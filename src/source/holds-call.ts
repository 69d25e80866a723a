import { descend, type PyModule, type PyNode, partsOf, spanOf, textOf } from './syntax-tree.ts';

/** How well a line fits what a stack says it calls. `yes`: it names the call; `open`: it may; `no`: it cannot. */
export type Fit = 'yes' | 'open' | 'no';

/** Functions whose name does not appear where they are called: of modules, decorators, wrappers and the interpreter. */
const UNNAMED =
  /^(_call_impl|_wrapped_call_impl|forward|_?wrapper|wrapped|inner|_fn|fn|func|_inner|decorate_\w+|_use_grad|run|apply|dispatch|<lambda>)$/;
const DUNDER = /^__\w+__$/;
const COMPREHENSION = /^<(listcomp|setcomp|dictcomp|genexpr)>$/;
const COMPREHENSIONS = new Set(['list_comprehension', 'set_comprehension', 'dictionary_comprehension', 'generator_expression']);

/** Compound statements count with their header only: what is inside them has lines of its own. */
const BODIES = new Set(['block', 'elif_clause', 'else_clause', 'except_clause', 'finally_clause', 'case_clause']);
const STATEMENT = /(_statement|_definition|_clause|^decorator)$/;
const INERT = new Set([
  'import_statement',
  'import_from_statement',
  'function_definition',
  'class_definition',
  'pass_statement',
  'break_statement',
  'continue_statement',
  'global_statement',
  'nonlocal_statement',
  'else_clause',
  'finally_clause',
]);

export interface Statement {
  readonly node: PyNode;
  readonly startLine: number;
  readonly endLine: number;
}

/** Statements below a node, each by the lines of its own header; those of functions and classes inside it only when asked for. */
export function statementsOf(module: PyModule, scope: PyNode, isDeep = false): Statement[] {
  const found: Statement[] = [];
  const stack: PyNode[] = [...scope.children].reverse();
  while (stack.length > 0) {
    const node = stack.pop()!;
    if (STATEMENT.test(node.kind) && node.kind !== 'decorated_definition') found.push(statementAt(module, node));
    if (!isDeep && (node.kind === 'function_definition' || node.kind === 'class_definition')) continue;
    for (let i = node.children.length - 1; i >= 0; i--) stack.push(node.children[i]!);
  }
  return found;
}

function statementAt(module: PyModule, node: PyNode): Statement {
  const body = node.children.find((child) => BODIES.has(child.kind));
  const end = body === undefined ? node.end : Math.max(node.start + 1, module.text.slice(0, body.start).trimEnd().length);
  const { startLine, endLine } = spanOf(module, { start: node.start, end });
  return { node, startLine, endLine };
}

/** The nodes of a statement that run on its own line, without its body. */
function* headerOf(node: PyNode): Generator<PyNode> {
  const stack: PyNode[] = [node];
  while (stack.length > 0) {
    const next = stack.pop()!;
    yield next;
    if (next.kind === 'lambda') continue;
    for (const child of next.children) if (!BODIES.has(child.kind)) stack.push(child);
  }
}

/** Whether a statement fits the functions that a stack shows further in, the nearest first. Without any, it must be able to run at all. */
export function fits(module: PyModule, { node }: Statement, calls: readonly string[]): Fit {
  if (INERT.has(node.kind)) return 'no';
  const names = new Set<string>();
  const kinds = new Set<string>();
  for (const part of headerOf(node)) {
    kinds.add(part.kind);
    if (part.kind === 'identifier') names.add(textOf(module, part));
  }
  const [nearest] = calls;
  if (nearest === undefined) return 'open';
  const hasCall = kinds.has('call') || kinds.has('decorator');
  if (nearest === '__next__' || nearest === '__iter__') {
    const steps =
      node.kind === 'for_statement' || [...COMPREHENSIONS].some((kind) => kinds.has(kind)) || names.has('next') || names.has('iter');
    return steps ? 'yes' : hasCall || kinds.has('yield') ? 'open' : 'no';
  }
  if (COMPREHENSION.test(nearest)) return [...COMPREHENSIONS].some((kind) => kinds.has(kind)) ? 'yes' : 'no';
  if (nearest === '__enter__' || nearest === '__exit__') return node.kind === 'with_statement' ? 'yes' : hasCall ? 'open' : 'no';
  // Known wrappers may stand between the line and the function it names; what is further in may be named by other lines as well.
  const named = calls.find((call) => !isUnnamed(call));
  if (named !== undefined && names.has(named)) return 'yes';
  if (!isUnnamed(nearest)) return hasCall || kinds.has('attribute') ? 'open' : 'no';
  return hasCall || DUNDER.test(nearest) ? 'open' : 'no';
}

function isUnnamed(call: string): boolean {
  return UNNAMED.test(call) || DUNDER.test(call) || call.startsWith('<');
}

/** The part of a stack by which a line can be told from others: the nearest call, or the one behind a wrapper. Empty when nothing tells. */
export function tellingCalls(calls: readonly string[]): readonly string[] {
  const [nearest, behind] = calls;
  if (nearest === undefined) return [];
  if (/^__(next|iter|enter|exit)__$/.test(nearest) || COMPREHENSION.test(nearest) || !isUnnamed(nearest)) return [nearest];
  return behind !== undefined && !isUnnamed(behind) && !DUNDER.test(nearest) ? [nearest, behind] : [];
}

/** Functions of a name, with their decorators. */
export function functionsNamed(module: PyModule, name: string): PyNode[] {
  const found: PyNode[] = [];
  for (const node of descend(module.root)) {
    if (node.kind !== 'function_definition') continue;
    const identifier = partsOf(node).find((part) => part.kind === 'identifier');
    if (identifier && textOf(module, identifier) === name) found.push(node);
  }
  return found;
}

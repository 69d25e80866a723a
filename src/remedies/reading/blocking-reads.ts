import { descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { loopAround } from './loops.ts';
import type { NodeSite } from './offers.ts';

/** Methods that wait for the card because the host needs the value. */
const READS = new Set(['item', 'tolist', 'numpy', 'cpu']);
const DEFINITIONS = new Set(['function_definition', 'class_definition', 'lambda', 'decorated_definition']);

/** Reads of values that each pass of the loops around makes, whatever its conditions: a wait beside them is not what costs the time. */
export function readsBeside(sites: readonly NodeSite[]): NodeSite[] {
  const loops = new Map(sites.map(({ module, node }) => [loopAround(node), module]));
  return [...loops].flatMap(([loop, module]) => {
    const body = loop === null ? undefined : partsOf(loop).find(({ kind }) => kind === 'block');
    return body === undefined ? [] : readsOf(module, body).map((node) => ({ module, node }));
  });
}

/** Nobody nests deeper by hand. */
const MAX_DEPTH = 200;

/** Reads that every way through the node makes. */
function readsOf(module: PyModule, node: PyNode, depth = 0): PyNode[] {
  if (DEFINITIONS.has(node.kind) || depth > MAX_DEPTH) return [];
  const below = (part: PyNode): PyNode[] => readsOf(module, part, depth + 1);
  if (node.kind === 'if_statement') {
    const [condition, block, ...rest] = partsOf(node);
    const always = condition === undefined ? [] : below(condition);
    if (rest.at(-1)?.kind !== 'else_clause' || block === undefined) return always;
    const branches = [block, ...rest].map(below);
    return branches.every((reads) => reads.length > 0) ? [...always, ...branches.flat()] : always;
  }
  // What stands behind `and`, `or` or `if … else` need not be reached.
  if (node.kind === 'boolean_operator') return below(partsOf(node)[0]!);
  if (node.kind === 'conditional_expression') return below(partsOf(node)[1]!);
  if (node.kind === 'except_clause') return [];
  const inner = partsOf(node).flatMap(below);
  return node.kind === 'call' && inner.length === 0 && isRead(module, node) ? [node] : inner;
}

function isRead(module: PyModule, call: PyNode): boolean {
  const callable = call.children[0]!;
  const list = partsOf(call.children.at(-1)!);
  if (callable.kind === 'attribute') {
    const [object, member] = partsOf(callable);
    return member !== undefined && object !== undefined && list.length === 0 && READS.has(textOf(module, member));
  }
  const name = textOf(module, callable);
  if (name === 'float') return list.length === 1 && !/^(string|integer|float)$/.test(list[0]!.kind);
  return name === 'print' && list.some((argument) => [...descend(argument)].some(({ kind }) => kind === 'identifier'));
}

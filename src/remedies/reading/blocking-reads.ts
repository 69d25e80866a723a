import { descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { loopAround } from './loops.ts';
import type { NodeSite } from './offers.ts';

/** Methods that wait for the card because the host needs the value. */
const READS = new Set(['item', 'tolist', 'numpy', 'cpu']);
const DEFINITIONS = new Set(['function_definition', 'class_definition', 'lambda', 'decorated_definition']);

/** Reads of values that each pass of the loop around a node makes, whatever its conditions: a wait beside them is not what costs the time. */
export function readsBeside({ module, node }: NodeSite): NodeSite[] {
  const loop = loopAround(node);
  const body = loop === null ? undefined : partsOf(loop).find(({ kind }) => kind === 'block');
  return body === undefined ? [] : readsOf(module, body).map((read) => ({ module, node: read }));
}

/** Reads that every way through the node makes. */
function readsOf(module: PyModule, node: PyNode): PyNode[] {
  if (DEFINITIONS.has(node.kind)) return [];
  if (node.kind === 'if_statement') {
    const [condition, block, ...rest] = partsOf(node);
    const always = condition === undefined ? [] : readsOf(module, condition);
    if (rest.at(-1)?.kind !== 'else_clause' || block === undefined) return always;
    const branches = [block, ...rest].map((branch) => readsOf(module, branch));
    return branches.every((reads) => reads.length > 0) ? [...always, ...branches.flat()] : always;
  }
  // What stands behind `and`, `or` or `if … else` need not be reached.
  if (node.kind === 'boolean_operator') return readsOf(module, partsOf(node)[0]!);
  if (node.kind === 'conditional_expression') return readsOf(module, partsOf(node)[1]!);
  if (node.kind === 'except_clause') return [];
  const inner = partsOf(node).flatMap((part) => readsOf(module, part));
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

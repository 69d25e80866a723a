import { ascend, descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { isTrainingText } from './loaders.ts';

const LOOPS = new Set(['for_statement', 'while_statement']);
const DEFINITIONS = new Set(['function_definition', 'class_definition', 'lambda']);

/** The loop a node runs in, within its own function. */
export function loopAround(node: PyNode): PyNode | null {
  for (const up of ascend(node)) {
    if (LOOPS.has(up.kind)) return up;
    if (DEFINITIONS.has(up.kind)) return null;
  }
  return null;
}

/** Objects whose `step()` is called in a loop that is not the one over batches, or that is not an update. */
export const NO_UPDATE = /sched|warmup|prof|pbar|tqdm|\benv\b|timer/i;

/** Loops of a module that run once per step: a backward pass or an update of the parameters lies directly in them. */
export function trainingLoops(module: PyModule): ReadonlySet<PyNode> {
  const loops = new Set<PyNode>();
  if (!/\.(backward|step)\s*\(/.test(module.text)) return loops;
  for (const node of descend(module.root)) {
    if (node.kind !== 'call') continue;
    const callable = node.children[0];
    if (callable?.kind !== 'attribute') continue;
    const [object, member] = partsOf(callable);
    if (object === undefined || member === undefined) continue;
    const name = textOf(module, member);
    const isUpdate = name === 'backward' || (name === 'step' && !NO_UPDATE.test(textOf(module, object)));
    const loop = isUpdate ? loopAround(node) : null;
    if (loop) loops.add(loop);
  }
  return loops;
}

const NO_STEP = /accurac|extract|visuali[sz]|generate|calibrat|statistic|(^|_)(run)?prof(il(e|er|ing))?(_|$)/i;

/** True where the code around says that nothing is trained: the name of its function, or no gradients. */
export function isAsideOfTraining(module: PyModule, node: PyNode): boolean {
  for (const up of ascend(node)) {
    if (up.kind === 'function_definition') {
      const name = partsOf(up).find((part) => part.kind === 'identifier');
      if (name && (!isTrainingText(textOf(module, name)) || NO_STEP.test(textOf(module, name)))) return true;
    }
    const header = up.kind === 'with_statement' || up.kind === 'decorated_definition' ? textOf(module, up).split(':\n', 1)[0]! : '';
    if (/\b(no_grad|inference_mode)\b/.test(header)) return true;
  }
  return false;
}

export interface BatchNames {
  /** Names that stand for a whole batch: a tensor, a list, a dictionary, or an object of some class. */
  readonly wholes: ReadonlySet<string>;
  /** Names of its parts, unpacked or looked up. */
  readonly parts: ReadonlySet<string>;
}

/** A loop may hold hundreds of copies, and its body is read as a whole. */
const known = new WeakMap<PyNode, Map<ReadonlySet<string>, BatchNames | null>>();

/** Names a loop over a data loader gives to the batch and its parts; null when it is no such loop. */
export function batchNames(module: PyModule, loop: PyNode, loaders: ReadonlySet<string>): BatchNames | null {
  const memory = known.get(loop) ?? new Map<ReadonlySet<string>, BatchNames | null>();
  known.set(loop, memory);
  const before = memory.get(loaders);
  if (before !== undefined) return before;
  const names = readBatchNames(module, loop, loaders);
  memory.set(loaders, names);
  return names;
}

function readBatchNames(module: PyModule, loop: PyNode, loaders: ReadonlySet<string>): BatchNames | null {
  if (loop.kind !== 'for_statement') return null;
  const [target, iterated] = partsOf(loop);
  if (target === undefined || iterated === undefined) return null;
  const over = textOf(module, iterated);
  const names = over.match(/[A-Za-z_]\w*/g) ?? [];
  if (!names.some((name) => loaders.has(name) || /loader$|loader_?iter$/i.test(name)) || !isTrainingText(over)) return null;
  const wholes = new Set<string>();
  const parts = new Set<string>();
  const element = /^enumerate\s*\(/.test(over) || /\(\s*enumerate\s*\(/.test(over) ? partsOf(target)[1] : target;
  if (element === undefined) return null;
  if (element.kind === 'identifier') wholes.add(textOf(module, element));
  else for (const part of partsOf(element)) if (part.kind === 'identifier') parts.add(textOf(module, part));
  for (const node of descend(loop)) {
    if (node.kind !== 'assignment') continue;
    const [left, right] = partsOf(node);
    if (left === undefined || right === undefined) continue;
    const isUnpacked = right.kind === 'identifier' && wholes.has(textOf(module, right)) && left.kind !== 'identifier';
    if (isUnpacked) for (const part of partsOf(left)) if (part.kind === 'identifier') parts.add(textOf(module, part));
    const isLookup = right.kind === 'subscript' && wholes.has(textOf(module, partsOf(right)[0]!)) && left.kind === 'identifier';
    if (isLookup) parts.add(textOf(module, left));
  }
  return { wholes, parts };
}

/** True when something in the scope changes a name's tensor in place: `x[…] = …`, `x += …`, `x.add_(…)`, `out=x`. */
export function isChangedInPlace(module: PyModule, scope: PyNode, name: string, from = 0): boolean {
  for (const node of descend(scope)) {
    if (node.start < from) continue;
    const first = partsOf(node)[0];
    if (first === undefined) continue;
    switch (node.kind) {
      case 'augmented_assignment':
        if (rootOf(module, first) === name) return true;
        break;
      case 'assignment':
        if (first.kind === 'subscript' && rootOf(module, first) === name) return true;
        break;
      case 'delete_statement':
        if (rootOf(module, first) === name) return true;
        break;
      case 'call': {
        const member = first.kind === 'attribute' ? partsOf(first)[1] : undefined;
        if (member && /[a-z0-9]_$/.test(textOf(module, member)) && rootOf(module, first) === name) return true;
        break;
      }
      case 'keyword_argument':
        if (textOf(module, first) === 'out' && rootOf(module, partsOf(node)[1]!) === name) return true;
        break;
    }
  }
  return false;
}

/** The name a chain of attributes, subscripts and calls begins with: `x` of `x.data[0].add_(1)`; null for anything else. */
export function rootOf(module: PyModule, node: PyNode): string | null {
  let at: PyNode | undefined = node;
  while (at !== undefined && (at.kind === 'attribute' || at.kind === 'subscript' || at.kind === 'call')) at = partsOf(at)[0];
  return at?.kind === 'identifier' ? textOf(module, at) : null;
}

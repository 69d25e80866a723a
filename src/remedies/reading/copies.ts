import type { SourceTree } from '../../model/source-tree.ts';
import { argumentOf, findMethodCalls, type PyCall } from '../../source/calls.ts';
import { keywordSteps } from '../../source/edit-call.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import { namesOf } from '../../source/names.ts';
import { pythonFilesWith } from '../../source/python-files.ts';
import { isAside, isPython } from '../../source/readable-paths.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { frameworksOf } from './frameworks.ts';
import { isTrainingFile, loaderNames } from './loaders.ts';
import { type BatchNames, batchNames, isAsideOfTraining, isChangedInPlace, loopAround, rootOf } from './loops.ts';
import type { Proposal } from './offers.ts';

/** `x.to(…)` takes types and layouts, too; only what reads like a card is a copy to it. */
const CARD =
  /^(["'](npu|cuda)(:\d+)?["']|(\w+\.)*\w*(device|dev|gpu|npu|local_rank|rank|card)\w*(\[["']?\w+["']?\])?|torch\.device\(.*\))$/i;

/** Whose `.device` is the card: of another tensor it is where that one happens to be. */
const OWNER = /^(self|args?|opts?|options?|cfg|conf|config|hparams|hps|params?|flags|accelerator|trainer|runner|settings?|torch)$/i;

/** Batches that go through RPC are sent from the host. */
const RPC = /\btorch\.distributed\.rpc\b|\bdist_autograd\b|\brpc_(a?sync|remote)\b/;

/** A class with a way of its own to the card. */
const OWN_COPY = /\bdef (to|npu|cuda)\s*\(\s*self\b/;

interface OpenCopy extends Proposal {
  readonly loop: PyNode;
  readonly batch: BatchNames;
}

/** Copies of batches to the card in loops over a training loader, without `non_blocking`; in files of the profile where it names any. */
export function blockingCopies(tree: SourceTree, loaders: readonly CallSite[], proven: readonly string[]): Proposal[] {
  const names = loaderNames(loaders);
  const { modules } = pythonFilesWith(
    tree,
    ['.npu(', '.to(', '.cuda('],
    (path) => (!isAside(path) || proven.includes(path)) && isTrainingFile(path),
  );
  const frameworks = frameworksOf(tree);
  const reachesCuda = frameworks.has('transferToNpu');
  // Parts of a batch may be of such a class: pinning passes them by, and their method need not take the keyword.
  const hasOwnClass = tree.paths.some((path) => isPython(path) && OWN_COPY.test(tree.read(path) ?? ''));
  // Their loaders hand out batches that are on the card already.
  const isCopiedBefore = frameworks.has('accelerate') || frameworks.has('hfTrainer') || frameworks.has('lightning');
  const open = modules.flatMap((module) =>
    findMethodCalls(module, ['npu', 'to', 'cuda']).flatMap((call): OpenCopy[] => {
      const loop = loopAround(call.node);
      const batch = loop === null || isAsideOfTraining(module, loop) ? null : batchNames(module, loop, names);
      const receiver = partsOf(call.node.children[0]!)[0];
      if (loop === null || batch === null || receiver === undefined || !goesToCard(call)) return [];
      if (RPC.test(module.text) || isMeasuredOnce(module, call)) return [];
      const root = rootOf(module, receiver);
      if (root === null || !(batch.parts.has(root) || batch.wholes.has(root)) || receiver.kind === 'call') return [];
      const { steps } = keywordSteps(module, call, [{ keyword: 'non_blocking', value: 'True' }]);
      if (steps === null || argumentOf(call, 'non_blocking', call.written.endsWith('.to') ? 2 : 1) !== null) return [];
      // A whole batch may be an object of some class, whose `to` takes no such argument.
      const isTensor = batch.parts.has(root) ? receiver.kind === 'identifier' : receiver.kind === 'subscript';
      // On an NPU this line runs only where names of CUDA are redirected.
      const runs = reachesCuda || !/\bcuda\b/.test(textOf(module, call.node));
      return [
        {
          module,
          node: call.node,
          steps,
          isSafe:
            isTensor &&
            runs &&
            !isCopiedBefore &&
            !hasOwnClass &&
            !isChanged(module, loop, call.node, receiver, root) &&
            !isAwaited(module, loop, call.node),
          loop,
          batch,
        },
      ];
    }),
  );
  const safe = new Set(open.filter(({ isSafe }) => isSafe).map(({ node }) => node));
  const whole = new Map<PyNode, boolean>();
  const copies = open.map(({ loop, batch, ...copy }): Proposal => {
    if (!whole.has(loop)) {
      // One copy that blocks, and the others have waited with it. A line for CUDA that does not run here is none.
      const others = blockingIn(copy.module, loop, batch).filter((node) => reachesCuda || !/\bcuda\b/.test(textOf(copy.module, node)));
      whole.set(
        loop,
        others.every((node) => safe.has(node)),
      );
    }
    return { ...copy, isSafe: copy.isSafe && whole.get(loop)! };
  });
  const inProven = copies.filter(({ module }) => proven.includes(module.path));
  return inProven.length > 0 ? inProven : copies;
}

/** Copies to the card in a loop that block: of the batch, of what is computed from it, of its parts in a comprehension or a loop within. */
function blockingIn(module: PyModule, loop: PyNode, batch: BatchNames): PyNode[] {
  const names = new Set([...batch.wholes, ...batch.parts]);
  // Names that stand for parts of the batch, by a loop within: `{k: v.to(device) for k, v in batch.items()}`.
  for (const node of descend(loop)) {
    if (node === loop || (node.kind !== 'for_in_clause' && node.kind !== 'for_statement')) continue;
    const [target, over] = partsOf(node);
    const root = over === undefined ? null : rootOf(module, over);
    if (target === undefined || root === null || !names.has(root)) continue;
    for (const part of descend(target)) if (part.kind === 'identifier') names.add(textOf(module, part));
  }
  return findMethodCalls(module, ['npu', 'to', 'cuda'])
    .filter((call) => {
      if (call.node.start < loop.start || call.node.end > loop.end) return false;
      const root = rootOf(module, call.node);
      const isOpen =
        argumentOf(call, 'non_blocking')?.valueKind !== 'true' && call.arguments.every(({ position }) => position === null || position < 2);
      return root !== null && names.has(root) && isOpen && !isMeasuredOnce(module, call) && (goesToCard(call) || call.hasKeywordArgs);
    })
    .map(({ node }) => node);
}

const ONE_STEP = /^\(?\s*(\w+\.)*(\w*_)?(it|i|n|iter\w*|step\w*|idx|index|batch(_?(i|idx|index|id))?)\s*==\s*\w+\s*\)?$/i;

/** Under `if it == 5` or in a profile of one step: not what the other steps do. A profile around the loop is of all of them. */
function isMeasuredOnce(module: PyModule, { node, enclosing }: PyCall): boolean {
  for (const { kind, text } of enclosing) {
    if (kind === 'for' || kind === 'while') break;
    if (kind === 'if' && ONE_STEP.test(text ?? '')) return true;
  }
  for (const up of ascend(node)) {
    if (up.kind === 'for_statement' || up.kind === 'while_statement') return false;
    const head = up.kind === 'with_statement' ? partsOf(up)[0] : undefined;
    if (head !== undefined && /\bprof/i.test(textOf(module, head).slice(0, 500))) return true;
  }
  return false;
}

/** True when the host waits for the card between a copy and the first pass backward. */
function isAwaited(module: PyModule, loop: PyNode, copy: PyNode): boolean {
  const text = module.text.slice(copy.end, loop.end);
  if (text.length > MAX_LOOP) return true;
  const wait = text.search(/\bsynchronize\s*\(/);
  const backward = text.search(/\.backward\s*\(/);
  return wait !== -1 && (backward === -1 || wait < backward);
}

/** True when batches of this loader are among what is copied; where its own file goes over it, the copy has to be in that loop. */
export function isCopied({ module, call }: CallSite, copies: readonly Proposal[]): boolean {
  const [name] = loaderNames([{ module, call, names: namesOf(module) }]);
  if (name === undefined) return copies.length > 0;
  const goesOver = (node: PyNode): boolean =>
    node.kind === 'for_statement' && new Set<string>(textOf(module, partsOf(node)[1]!).match(/[A-Za-z_]\w*/g)).has(name);
  const loops = [...descend(module.root)].filter(goesOver);
  if (loops.length === 0) return copies.length > 0;
  return copies.some((copy) => copy.module === module && loops.some((loop) => loop === loopAround(copy.node)));
}

function goesToCard(call: PyCall): boolean {
  const positional = call.arguments.filter(({ keyword }) => keyword === null);
  const device = argumentOf(call, 'device', 0);
  if (positional.length > 1 || call.hasKeywordArgs || call.hasStarArgs) return false;
  if (!call.written.endsWith('.to')) return true;
  return device !== null && isCard(device.text);
}

/** Whether a device as written may be the card. */
function isCard(text: string): boolean {
  if (text.length > 120 || !CARD.test(text) || /cpu/i.test(text)) return false;
  const owner = /(?<!\w)(\w+)\.device$/.exec(text)?.[1];
  return owner === undefined || OWNER.test(owner);
}

/** A loop that nobody wrote by hand. */
const MAX_LOOP = 20_000;

/** After `x = x.npu()` the name stands for the copy; otherwise whatever changes the tensor in the loop may come too early. */
function isChanged(module: PyModule, loop: PyNode, call: PyNode, receiver: PyNode, root: string): boolean {
  const assignment = call.parent?.kind === 'assignment' ? call.parent : null;
  const target = assignment === null ? null : partsOf(assignment)[0]!;
  if (target !== null && textOf(module, target) === textOf(module, receiver) && receiver.kind === 'identifier') return false;
  if (receiver.kind === 'identifier') return isChangedInPlace(module, loop, root);
  // `batch["x"] = batch["x"].npu()` stores a reference; any other write to the batch is looked at by a person.
  const text = textOf(module, loop);
  if (text.length > MAX_LOOP) return true;
  const writes = [...text.matchAll(new RegExp(`\\b${root}\\s*\\[[^\\]]*\\]\\s*(\\[|\\.\\w*[a-z0-9]_\\(|[-+*/]=)`, 'g'))];
  return writes.length > 0;
}

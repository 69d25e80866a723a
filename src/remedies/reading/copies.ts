import type { SourceTree } from '../../model/source-tree.ts';
import { argumentOf, findMethodCalls, type PyCall } from '../../source/calls.ts';
import { keywordSteps } from '../../source/edit-call.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import { namesOf } from '../../source/names.ts';
import { pythonFilesWith } from '../../source/python-files.ts';
import { isAside, isPython } from '../../source/readable-paths.ts';
import { descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { frameworksOf } from './frameworks.ts';
import { isTrainingFile, loaderNames } from './loaders.ts';
import { batchNames, isAsideOfTraining, isChangedInPlace, loopAround, rootOf } from './loops.ts';
import type { Proposal } from './offers.ts';

/** `x.to(…)` takes types and layouts, too; only what reads like a card is a copy to it. */
const CARD =
  /^(["'](npu|cuda)(:\d+)?["']|(\w+\.)*\w*(device|dev|gpu|npu|local_rank|rank|card)\w*(\[["']?\w+["']?\])?|torch\.device\(.*\))$/i;

/** A class with a way of its own to the card. */
const OWN_COPY = /\bdef (to|npu|cuda)\s*\(\s*self\b/;

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
  const copies = modules.flatMap((module) =>
    findMethodCalls(module, ['npu', 'to', 'cuda']).flatMap((call): Proposal[] => {
      const loop = loopAround(call.node);
      const batch = loop === null || isAsideOfTraining(module, loop) ? null : batchNames(module, loop, names);
      const receiver = partsOf(call.node.children[0]!)[0];
      if (loop === null || batch === null || receiver === undefined || !goesToCard(call)) return [];
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
          isSafe: isTensor && runs && !isCopiedBefore && !hasOwnClass && !isChanged(module, loop, call.node, receiver, root),
        },
      ];
    }),
  );
  const inProven = copies.filter(({ module }) => proven.includes(module.path));
  return inProven.length > 0 ? inProven : copies;
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
  return device !== null && device.text.length <= 120 && CARD.test(device.text) && !/cpu/i.test(device.text);
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

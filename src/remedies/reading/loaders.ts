import type { SourceTree } from '../../model/source-tree.ts';
import { argumentOf, type PyCall } from '../../source/calls.ts';
import { type CallSite, findCallSites } from '../../source/find-in-tree.ts';
import { pythonFilesWhere } from '../../source/python-files.ts';
import { ascend, descend, partsOf, textOf } from '../../source/syntax-tree.ts';
import { givenTo } from '../../source/values.ts';

export const LOADER = 'torch.utils.data.DataLoader';

/** A name that begins with one of these says that the loader is not the one of training. */
const NOT_TRAINING = /(^|[^a-z])(val(?!ue)|test|eval|infer|predict|(sample|cache)_(data|loader))/i;

/** False for a text that speaks of validation, test or inference. */
export function isTrainingText(text: string): boolean {
  return !NOT_TRAINING.test(text);
}

/** Files whose loops do not train. `train_val.py` does both. */
const ASIDE_FILE = /(^|[^a-z])(val(?!ue)|test|eval|infer|predict|onnx|export|convert|demo|benchmark|extract|visuali|lr_?find)[^/]*$/i;
/** Scripts that are run for a profile by hand. */
const PROFILES = /(^|[^a-z])(run)?prof(il(e|er|ing))?(?![a-z])[^/]*$/i;

/** False for a file whose name speaks of evaluation, inference, conversion or profiling. */
export function isTrainingFile(path: string): boolean {
  return !PROFILES.test(path) && (!ASIDE_FILE.test(path) || /train[^/]*$/i.test(path));
}

/** Data loaders of a tree, without those whose file, target, dataset or function speaks of validation, test or inference. */
export function trainingLoaders(tree: SourceTree | null, proven: readonly string[]): CallSite[] {
  if (tree === null) return [];
  return findCallSites(tree, [LOADER], proven).sites.filter(({ module, call }) => {
    if (!isTrainingFile(module.path)) return false;
    const target = module.text.slice(module.lineStarts[call.span.startLine - 1]!, call.node.start);
    const dataset = argumentOf(call, 'dataset', 0)?.text ?? '';
    const around = call.enclosing.find((enclosure) => enclosure.kind === 'function')?.text ?? '';
    return [target, dataset, around].every(isTrainingText);
  });
}

/** `num_workers` is the sixth positional argument. */
export const WORKERS_POSITION = 5;

/** `pin_memory` is the eighth positional argument. */
export const PIN_POSITION = 7;

export type Workers = 'none' | 'some' | 'expression' | 'unknown';

/** How a call sets its number of workers, as far as the repository tells. */
export function workersOf(tree: SourceTree, { module, call }: CallSite): Workers {
  const given = givenTo(tree, module, call, 'num_workers', WORKERS_POSITION);
  if (given.kind === 'absent') return 'none';
  if (given.kind === 'unknown') return 'unknown';
  if (given.value.kind !== 'literal' || typeof given.value.constant !== 'number') return 'expression';
  return given.value.constant === 0 ? 'none' : 'some';
}

/** Names that the loaders are assigned to, in any file: `train_loader`, `self.loader` counts as `loader`. */
export function loaderNames(sites: readonly CallSite[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { module, call } of sites) {
    const assignment = call.node.parent;
    if (assignment?.kind !== 'assignment') continue;
    const name = /([A-Za-z_]\w*)\s*(?::[^=]*)?=/.exec(textOf(module, assignment).slice(0, 500))?.[1];
    if (name !== undefined) names.add(name);
  }
  return names;
}

/** True when the function that makes a loader speaks of an epoch, or is called in a loop. */
export function isMadeAgain(tree: SourceTree, call: PyCall): boolean {
  const name = call.enclosing.find(({ kind }) => kind === 'function')?.text ?? null;
  if (name === null) return false;
  if (/epoch|_ite?r$/i.test(name)) return true;
  const isCall = new RegExp(`(?<![\\w])${name}\\s*\\(`);
  const { modules } = pythonFilesWhere(tree, (text) => isCall.test(text));
  return modules.some((module) =>
    [...descend(module.root)].some((node) => {
      if (node.kind !== 'call') return false;
      const callable = node.children[0]!;
      const last = callable.kind === 'attribute' ? partsOf(callable)[1] : callable;
      if (last?.kind !== 'identifier' || textOf(module, last) !== name) return false;
      for (const up of ascend(node)) {
        // What is looped over is asked for once.
        if (up.kind === 'for_statement' && partsOf(up)[1] !== undefined && node.start >= partsOf(up)[1]!.end) return true;
        if (up.kind === 'while_statement' || up.kind.endsWith('comprehension')) return true;
        if (up.kind === 'function_definition') return false;
      }
      return false;
    }),
  );
}

import type { SourceTree } from '../../model/source-tree.ts';
import { argumentOf, findMethodCalls } from '../../source/calls.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import { pythonFilesWhere, pythonFilesWith } from '../../source/python-files.ts';
import { isAside, isPython } from '../../source/readable-paths.ts';
import { ascend, descend, lineAt, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { DEVICE, sampleHazards } from './sample-device.ts';

/** A sign that worker processes may not be able to load this data, or would load other data. Read wide: a word is enough. */
export interface WorkerHazard {
  readonly kind: 'device' | 'lambda' | 'iterable' | 'handle' | 'spawn' | 'unread-file' | 'generator' | 'unseen' | 'rpc';
  readonly file: string;
  readonly line: number;
}

/** Handles that do not survive the start of a process; workers that share one also share its position. */
const HANDLE =
  /\bself\.\w+\s*=\s*(io\.|gzip\.|codecs\.)?open\(|\b(h5py\.File|lmdb\.open|sqlite3\.connect|netCDF4|tables\.open_file|zipfile\.ZipFile|tarfile\.open)\b/;
/** Its agent runs threads of its own, and what they hold when a worker is forked stays held there. */
const RPC = /\btorch\.distributed\.rpc\b|\bfrom torch\.distributed import [^#\n]{0,200}\brpc\b|\b(init_rpc|rpc_a?sync)\s*\(/;
const SPAWN = /set_start_method\(\s*["'](spawn|forkserver)|get_context\(\s*["'](spawn|forkserver)|multiprocessing_context\s*=/;

/** A data set that is read from one end to the other: by its class, or by what somebody called it. */
const ITERATES = /\b(IterableDataset|IterDataPipe|WebDataset|streaming\s*=\s*True)\b|\b\w*(_iter|iterator|iterable|stream|pipe)\b/i;
const PIPES = /^[^\S\n]*(?:from|import)\s+(torchtext|torchdata|webdataset)\b/m;

/** Everything in the tree that speaks against worker processes for this loader without a person looking. */
export function workerHazards(tree: SourceTree, site: CallSite): WorkerHazard[] {
  const { module, call } = site;
  const hazards: WorkerHazard[] = [];
  const add = (kind: WorkerHazard['kind'], file: string, line: number): void => {
    if (!hazards.some((hazard) => hazard.kind === kind)) hazards.push({ kind, file, line });
  };
  const collate = argumentOf(call, 'collate_fn', 6)?.text ?? null;
  const words = [
    '__getitem__',
    '__iter__',
    '__getitems__',
    'collate',
    'IterableDataset',
    'IterDataPipe',
    ...(collate === null ? [] : [collate]),
  ];
  const { modules, failures } = pythonFilesWith(tree, words, (path) => !isAside(path) || path === module.path);
  for (const failure of failures) add('unread-file', failure.path, 1);
  for (const file of modules) {
    for (const node of descend(file.root)) {
      const header = node.kind === 'class_definition' ? textOf(file, node).split(':', 1)[0]! : '';
      const isDataset =
        node.kind === 'class_definition' && (/Dataset|DataPipe/.test(header) || /\b__getitems?__\b/.test(textOf(file, node)));
      const name = partsOf(node).find((part) => part.kind === 'identifier');
      const isCollate =
        node.kind === 'function_definition' &&
        name !== undefined &&
        (/collate/i.test(textOf(file, name)) || textOf(file, name) === collate);
      if (!isDataset && !isCollate) continue;
      const text = textOf(file, node);
      const line = lineAt(file.lineStarts, node.start);
      if (DEVICE.test(text)) add('device', file.path, line);
      if (HANDLE.test(text)) add('handle', file.path, line);
      if (/\b(IterableDataset|IterDataPipe)\b/.test(header) || (/\b__iter__\b/.test(text) && !/__getitem/.test(text)))
        add('iterable', file.path, line);
    }
  }
  if (holdsLambda(tree, { module, call }) && pythonFilesWhere(tree, (text) => SPAWN.test(text)).modules.length > 0)
    add('lambda', module.path, call.span.startLine);
  const line = call.span.startLine;
  for (const text of assignedTexts(module, call.node, argumentOf(call, 'dataset', 0)?.value ?? null)) {
    if (DEVICE.test(text)) add('device', module.path, line);
    if (ITERATES.test(text)) add('iterable', module.path, line);
  }
  // Their data sets are streams as a rule, and whether they are divided among workers is not seen here.
  if (PIPES.test(module.text)) add('iterable', module.path, line);
  if (argumentOf(call, 'multiprocessing_context') !== null) add('spawn', module.path, line);
  const folder = module.path.slice(0, module.path.lastIndexOf('/') + 1);
  const beside = tree.paths.find((path) => isPython(path) && path.startsWith(folder) && RPC.test(tree.read(path) ?? ''));
  if (beside !== undefined) add('rpc', beside, 1);
  const isAtTop = call.enclosing.every(({ kind, text }) => kind !== 'function' && !(kind === 'if' && /__name__/.test(text ?? '')));
  if (isAtTop && SPAWN.test(module.text)) add('spawn', module.path, line);
  for (const hazard of sampleHazards(tree, site)) add(hazard.kind, hazard.file, hazard.line);
  return hazards;
}

/** True when the data set holds a `lambda`: workers that are not forked cannot be given it. */
export function holdsLambda(tree: SourceTree, { module, call }: Pick<CallSite, 'module' | 'call'>): boolean {
  if (assignedTexts(module, call.node, argumentOf(call, 'dataset', 0)?.value ?? null).some((text) => /\blambda\b/.test(text))) return true;
  const { modules } = pythonFilesWhere(
    tree,
    (text) => /\blambda\b/.test(text) && /__getitems?__|Dataset\b|transform/i.test(text),
    (path) => !isAside(path),
  );
  return modules.some((file) =>
    [...descend(file.root)].some((node) => node.kind === 'lambda' && /^(self\.|transforms?\.|T\.|.*Lambda\()/.test(heldBy(file, node))),
  );
}

/** What a lambda is given to: the attribute that holds it, or the call. */
function heldBy(module: PyModule, node: PyNode): string {
  const around = node.parent?.kind === 'argument_list' ? node.parent.parent! : node.parent!;
  const isData = around.kind === 'assignment' ? /\b__getitems?__\b|Dataset/.test(classText(module, node)) : true;
  if (around.kind !== 'assignment' && around.kind !== 'call') return '';
  return isData ? textOf(module, around).slice(0, 200) : '';
}

function classText(module: PyModule, node: PyNode): string {
  const owner = [...ascend(node)].find(({ kind }) => kind === 'class_definition');
  return owner === undefined ? '' : textOf(module, owner);
}

/** An argument as written, and what its names were assigned in the same file, some steps back. */
export function assignedTexts(module: PyModule, call: PyNode, given: PyNode | null): string[] {
  if (given === null) return [];
  const texts = [textOf(module, given)];
  const seen = new Set<string>();
  let names = namesIn(module, given);
  for (let step = 0; step < 6; step++) {
    const next: string[] = [];
    for (const node of descend(module.root)) {
      if (node.kind !== 'assignment' || node.start > call.start) continue;
      const [left, right] = partsOf(node);
      if (left?.kind !== 'identifier' || right === undefined || !names.includes(textOf(module, left))) continue;
      texts.push(textOf(module, right));
      next.push(...namesIn(module, right));
    }
    for (const name of names) seen.add(name);
    names = next.filter((name) => !seen.has(name));
  }
  return texts;
}

function namesIn(module: PyModule, node: PyNode): string[] {
  return [...descend(node)].filter((part) => part.kind === 'identifier').map((part) => textOf(module, part));
}

/** A method that may change a data set: of a loader's own one any that does not merely read, of others those named so. */
const CHANGED_BY_CALL =
  /\.dataset\.(?!(get|collat|num|class|len|is|has|to|with|map|select|filter|evaluat|__)\w*\()[a-z]\w*\(|\b\w*(dataset|data_set|trainset|train_set|train_ds)\.(set_(?!transform|format)|update|reset|resample|reshuffle|refresh|switch|next_)\w*\(/;

const CHANGES = ['set_epoch', 'set_step', 'resample', 'reshuffle', 'set_length', 'set_resolution'];
const MAY_CHANGE = new RegExp(`\\.(${CHANGES.join('|')})\\s*\\(`);

/** True when the training process may change the dataset between epochs; workers that stay would not see it. */
export function isDatasetChanged(tree: SourceTree): boolean {
  for (const path of tree.paths) {
    const text = isPython(path) && !isAside(path) ? tree.read(path) : null;
    if (text === null || !/dataset\.|(set|_ds)\./.test(text)) continue;
    if (text.split('\n').some((line) => line.length <= 500 && CHANGED_BY_CALL.test(line))) return true;
    if (/\b\w*(dataset|_set|_ds)\.\w+\s*=(?!=)/.test(text.replaceAll(/self\.\w*(dataset|_set|_ds)\s*=/g, ''))) return true;
  }
  const { modules } = pythonFilesWhere(
    tree,
    (text) => MAY_CHANGE.test(text),
    (path) => !isAside(path),
  );
  return modules.some((module) => findMethodCalls(module, CHANGES).some(({ written }) => !/sampler/i.test(written)));
}

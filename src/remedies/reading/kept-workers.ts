import type { SourceTree } from '../../model/source-tree.ts';
import { argumentOf, describeCalls, type PyCall } from '../../source/calls.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import { pythonFilesWhere } from '../../source/python-files.ts';
import { isAside, isPython } from '../../source/readable-paths.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { writtenData } from './dataset-writes.ts';
import { assignedTexts } from './datasets.ts';
import { isTrainingFile, isTrainingText, loaderNames } from './loaders.ts';
import { batchNames, isAsideOfTraining } from './loops.ts';
import { functionAround, statementOf } from './offers.ts';

/** A sign that workers which stay give other batches than workers started anew, or that there is nothing to keep. */
export interface KeepHazard {
  readonly kind: 'written' | 'iterations' | 'single-pass' | 'seeded' | 'validation' | 'unread-file' | 'second';
  readonly file: string;
  readonly line: number;
}

/** With these they are not kept at all; the others are looked at by a person first. */
export const NEVER_KEPT: ReadonlySet<KeepHazard['kind']> = new Set(['written', 'iterations', 'single-pass']);

/** Everything that speaks against `persistent_workers` for this loader. */
export function keepHazards(tree: SourceTree, site: CallSite): KeepHazard[] {
  const { module, call } = site;
  const here = { file: module.path, line: call.span.startLine };
  const hazards: KeepHazard[] = [];
  const written = writtenData(tree);
  if (written !== null) hazards.push({ kind: written.isRead ? 'written' : 'unread-file', file: written.file, line: written.line });
  if (isByIterations(module, call)) hazards.push({ kind: 'iterations', ...here });
  else if (isSinglePass(tree, site)) hazards.push({ kind: 'single-pass', ...here });
  const second = secondIterator(tree, site);
  if (second !== null) hazards.push({ kind: 'second', ...second });
  if (isSeeded(tree, call)) hazards.push({ kind: 'seeded', ...here });
  if (buildsValidation(tree, module, call)) hazards.push({ kind: 'validation', ...here });
  return hazards;
}

/** One iterator lasts the whole training. */
const BY_ITERATIONS = /iterationbased|(max|num|total|n)_?iter|infinite/i;

function isByIterations(module: PyModule, call: PyCall): boolean {
  return ['batch_sampler', 'sampler'].some((name) => {
    const given = argumentOf(call, name)?.value ?? null;
    return assignedTexts(module, call.node, given).some((text) => BY_ITERATIONS.test(text));
  });
}

/**
 * A loop over the loader and an `iter(loader)` beside it: workers that stay serve one iterator, and the next one takes it from the loop
 * that is still running. https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
 */
function secondIterator(tree: SourceTree, site: CallSite): { file: string; line: number } | null {
  const [name] = loaderNames([site]);
  if (name === undefined) return null;
  const asks = new RegExp(`\\biter\\(\\s*(?:\\w+\\.){0,4}${name}\\s*\\)`);
  let at: { file: string; line: number } | null = null;
  let isLooped = false;
  for (const path of tree.paths) {
    const text = isPython(path) && !isAside(path) ? (tree.read(path) ?? '') : '';
    if (!text.includes(name)) continue;
    for (const [i, line] of text.split('\n').entries()) {
      const last = line.lastIndexOf(name);
      if (last === -1 || line.length > MAX_LINE) continue;
      const loop = line.search(/\bfor\b/);
      isLooped ||= loop !== -1 && loop < last && line.slice(loop, last).includes(' in ');
      const isPaired = line.includes('zip(') && line.indexOf(name) !== last;
      if (at === null && (isPaired || asks.test(line))) at = { file: path, line: i + 1 };
    }
  }
  return isLooped ? at : null;
}

/** Longer lines are data. */
const MAX_LINE = 2_000;

const SEEDS = /seed|imgaug|\bia\./i;

/** `worker_init_fn` runs once for each worker: what it seeds is not seeded again in the next epoch. Out of sight, it may. */
function isSeeded(tree: SourceTree, call: PyCall): boolean {
  const given = argumentOf(call, 'worker_init_fn', 10);
  if (given === null || given.valueKind === 'none') return false;
  if (SEEDS.test(given.text)) return true;
  if (given.valueKind === 'lambda') return false;
  const names = new Set<string>(given.text.match(/[A-Za-z_]\w*/g));
  const bodies = pythonFilesWhere(tree, (text) => [...names].some((name) => text.includes(`def ${name}`))).modules.flatMap((module) =>
    [...descend(module.root)].flatMap((node) => {
      return node.kind === 'function_definition' && names.has(nameOf(module, node)) ? [textOf(module, node)] : [];
    }),
  );
  return bodies.length === 0 || bodies.some((body) => SEEDS.test(body));
}

function nameOf(module: PyModule, node: PyNode): string {
  const name = partsOf(node).find((part) => part.kind === 'identifier');
  return name === undefined ? '' : textOf(module, name);
}

function parametersOf(module: PyModule, method: PyNode): PyNode[] {
  const list = partsOf(method).find(({ kind }) => kind === 'parameters');
  return list === undefined ? [] : partsOf(list).filter((each) => textOf(module, each) !== 'self');
}

/** A parameter that says which part of the data is wanted. */
const PART = /^(is_?|for_?)?(train(ing)?|valid(ation)?|val|test|eval|split|phase|mode|stage|subset|set_?name|image_?set)\b/i;

/** True when the call that makes the loader of training makes the one of validation, too. */
function buildsValidation(tree: SourceTree, module: PyModule, call: PyCall): boolean {
  const around = functionAround(call.node);
  if (around === null) return false;
  if (parametersOf(module, around).some((each) => PART.test(textOf(module, each)))) return true;
  const statement = statementOf(call.node);
  if (statement !== null && /train/i.test(module.text.slice(statement.start, call.node.start))) return false;
  return callsOf(tree, calledAs(module, around)).some((site) => {
    const whole = statementOf(site.call.node) ?? site.call.node;
    return !isTrainingText(site.module.text.slice(whole.start, site.call.node.end).slice(-2_000));
  });
}

/** The name by which a function runs: that of its class for a constructor. */
function calledAs(module: PyModule, definition: PyNode): string {
  const name = nameOf(module, definition);
  if (name !== '__init__') return name;
  const owner = [...ascend(definition)].find(({ kind }) => kind === 'class_definition');
  return owner === undefined ? name : nameOf(module, owner);
}

interface Calling {
  readonly module: PyModule;
  readonly call: PyCall;
}

/** Trees do not change while they are alive, and the same few functions are asked for by every loop that they hold. */
const knownCalls = new WeakMap<SourceTree, Map<string, readonly Calling[]>>();

function callsOf(tree: SourceTree, name: string): readonly Calling[] {
  if (!/^\w+$/.test(name)) return [];
  const memory = knownCalls.get(tree) ?? new Map<string, readonly Calling[]>();
  knownCalls.set(tree, memory);
  const known = memory.get(name);
  if (known) return known;
  const isCall = new RegExp(`(?<!\\w)(?<!def )${name}\\s*\\(`);
  const { modules } = pythonFilesWhere(
    tree,
    (text) => isCall.test(text),
    (path) => !isAside(path),
  );
  const calls = modules.flatMap((module) => describeCalls(module, name).map((call) => ({ module, call })));
  memory.set(name, calls);
  return calls;
}

/** True when every loop over the loader is seen to run once: no loop around it, and none around the calls of its function. */
function isSinglePass(tree: SourceTree, site: CallSite): boolean {
  const names = loaderNames([site]);
  const { modules } = pythonFilesWhere(
    tree,
    (text) => /loader/i.test(text) || [...names].some((name) => text.includes(name)),
    (path) => isTrainingFile(path) && (!isAside(path) || path === site.module.path),
  );
  const loops = modules.flatMap((module) =>
    [...descend(module.root)].flatMap((node) => {
      const isOne = node.kind === 'for_statement' && batchNames(module, node, names) !== null && !isAsideOfTraining(module, node);
      return isOne ? [{ module, node }] : [];
    }),
  );
  return loops.length > 0 && loops.every(({ module, node }) => !isRepeated(tree, module, node, new Set()));
}

/** Functions looked at for one loader; with more of them nobody knows. */
const MAX_CALLERS = 40;

function isRepeated(tree: SourceTree, module: PyModule, node: PyNode, seen: Set<PyNode>): boolean {
  for (const up of ascend(node)) {
    if (up.kind === 'while_statement' || up.kind.endsWith('comprehension')) return true;
    // What is looped over is asked for once.
    if (up.kind === 'for_statement' && node.start >= partsOf(up)[1]!.end) return true;
    if (up.kind !== 'function_definition') continue;
    const name = calledAs(module, up);
    if (/epoch/i.test(name)) return true;
    if (seen.has(up)) return false;
    if (seen.size >= MAX_CALLERS) return true;
    seen.add(up);
    const needs = parametersOf(module, up).some(({ kind }) => kind === 'identifier' || kind === 'typed_parameter');
    return callsOf(tree, name).some(({ module: caller, call }) => {
      if (needs && call.arguments.length === 0 && !call.hasStarArgs && !call.hasKeywordArgs) return false;
      // `model.train()` in a loop switches a mode.
      if (/(model|net\w*|coder|student|teacher|\bm)\.train$/i.test(call.written)) return false;
      return isRepeated(tree, caller, call.node, seen);
    });
  }
  return false;
}

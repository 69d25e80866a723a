import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import type { SourceTree } from '../model/source-tree.ts';
import { argumentOf, findMethodCalls, type PyCall } from './calls.ts';
import { hasPath, moduleFile } from './imports.ts';
import { assignedValue, namesOf } from './names.ts';
import { parseOnce } from './python-files.ts';
import { isAside, isPython } from './readable-paths.ts';
import { descend, type PyModule, type PyNode, partsOf, spanOf, textOf } from './syntax-tree.ts';

export interface SourcePlace {
  readonly file: string;
  readonly line: number;
}

/** Where a user sets a value. */
export interface Option {
  readonly from: 'argparse' | 'dataclass' | 'class' | 'yaml' | 'environment' | 'parameter';
  /** As it is set: `--workers`, `num_workers`, `data.num_workers`, `WORKERS`. */
  readonly name: string;
  /** The line that defines it and its default. */
  readonly at: SourcePlace;
}

/** A definition with the node of its default: null where it has none, a word where the option is a switch. */
export interface Definition {
  readonly option: Option;
  readonly module: PyModule;
  readonly value: PyNode | null;
  readonly switch: boolean | null;
  readonly type: string | null;
}

/** Modules looked into behind the imports of one file. */
const MAX_IMPORTED = 40;

/**
 * `parser.add_argument('--num-workers', default=…)` for a destination: in the file itself, else in files it imports, else
 * anywhere in the repository. Empty when nothing defines it; several when subcommands or programs differ.
 */
export function argparseDefinitions(tree: SourceTree, module: PyModule, name: string): Definition[] {
  return nearest(
    tree,
    module,
    (text) => mayDefine(text, name),
    (other) => definitionsIn(other, name),
  );
}

/** Files of one ring after the other: the file, what it imports, the rest of the repository. */
function nearest<T>(tree: SourceTree, module: PyModule, mayMatter: (text: string) => boolean, find: (module: PyModule) => T[]): T[] {
  const look = (path: string): T[] => {
    const text = isPython(path) ? tree.read(path) : null;
    if (text === null || !mayMatter(text)) return [];
    const parsed = parseOnce(tree, path);
    return parsed === null ? [] : find(parsed);
  };
  const own = mayMatter(module.text) ? find(module) : [];
  if (own.length > 0) return own;
  const imported = importedFiles(tree, module);
  const near = imported.flatMap(look);
  if (near.length > 0) return near;
  const seen = new Set([module.path, ...imported]);
  return tree.paths.filter((path) => !seen.has(path) && !isAside(path)).flatMap(look);
}

function importedFiles(tree: SourceTree, module: PyModule): string[] {
  const files = new Set<string>();
  for (const name of namesOf(module).imports) {
    if (files.size >= MAX_IMPORTED) break;
    const cut = name.lastIndexOf('.');
    // The last part may be a module or a member of one.
    const file = moduleFile(tree, module.path, name) ?? (cut > 0 ? moduleFile(tree, module.path, name.slice(0, cut)) : null);
    if (file !== null && file !== module.path) files.add(file);
  }
  return [...files];
}

function mayDefine(text: string, name: string): boolean {
  if (!text.includes('add_argument') && !text.includes('.option(') && !text.includes('DEFINE_')) return false;
  return text.includes(name) || (name.includes('_') && text.includes(name.replaceAll('_', '-')));
}

const DEFINERS = ['add_argument', 'option', 'DEFINE_integer', 'DEFINE_bool', 'DEFINE_boolean', 'DEFINE_string', 'DEFINE_float'];

function definitionsIn(module: PyModule, name: string): Definition[] {
  return findMethodCalls(module, DEFINERS).flatMap((call) => {
    const words = call.arguments.filter((argument) => argument.keyword === null).map((argument) => literalString(module, argument.value));
    const isAbsl = call.written.includes('DEFINE_');
    const flags = words.filter((word) => word !== null);
    const long = isAbsl ? flags[0] : (flags.find((flag) => flag.startsWith('--')) ?? flags.find((flag) => !flag.startsWith('-')));
    if (long === undefined) return [];
    const dest = literalString(module, argumentOf(call, 'dest')?.value ?? null) ?? long.replace(/^--/, '').replaceAll('-', '_');
    if (dest !== name) return [];
    const shown = isAbsl ? `--${long}` : long;
    return [definition(module, call, shown, isAbsl ? (argumentOf(call, 'default', 1)?.value ?? null) : null)];
  });
}

function definition(module: PyModule, call: PyCall, flag: string, positional: PyNode | null): Definition {
  const action = literalString(module, argumentOf(call, 'action')?.value ?? null);
  return {
    option: { from: 'argparse', name: flag, at: { file: module.path, line: call.span.startLine } },
    module,
    value: argumentOf(call, 'default')?.value ?? positional,
    switch: action === 'store_true' ? false : action === 'store_false' ? true : null,
    type: argumentOf(call, 'type')?.text ?? null,
  };
}

/** Text of a plain string without prefix or interpolation; null for anything else. */
export function literalString(module: PyModule, node: PyNode | null): string | null {
  if (node?.kind !== 'string') return null;
  const match = /^[rbu]?(?:"""([^"\\]*)"""|"([^"\\]*)"|'([^'\\]*)')$/i.exec(textOf(module, node));
  return match === null ? null : (match[1] ?? match[2] ?? match[3] ?? '');
}

/** A field of a class: `name: T = value` or `name = value` in its body. `isDataclass`: the generated constructor takes it. */
export function fieldOf(module: PyModule, definition: PyNode, name: string): Definition | null {
  const body = partsOf(definition).find((part) => part.kind === 'block');
  if (body === undefined) return null;
  const own = partsOf(body).flatMap((statement) => {
    const assignment = statement.kind === 'expression_statement' ? partsOf(statement)[0] : undefined;
    const target = assignment?.kind === 'assignment' ? partsOf(assignment)[0] : undefined;
    return target?.kind === 'identifier' && textOf(module, target) === name ? [assignment!] : [];
  });
  if (own.length !== 1) return null;
  const isData = isDataclass(module, definition);
  return {
    option: { from: isData ? 'dataclass' : 'class', name, at: { file: module.path, line: spanOf(module, own[0]!).startLine } },
    module,
    value: fieldDefault(module, assignedValue(own[0]!) ?? null),
    switch: null,
    type: null,
  };
}

export function isDataclass(module: PyModule, definition: PyNode): boolean {
  const parent = definition.parent;
  if (parent?.kind !== 'decorated_definition') return false;
  return partsOf(parent).some((part) => part.kind === 'decorator' && /\bdataclass\b/.test(textOf(module, part)));
}

/** `field(default=3, …)` stands for 3. */
function fieldDefault(module: PyModule, value: PyNode | null): PyNode | null {
  if (value?.kind !== 'call' || !/^(\w+\.)?[fF]ield$/.test(textOf(module, value.children[0]!))) return value;
  const list = value.children.at(-1)!;
  for (const part of partsOf(list)) {
    const [name, given] = part.kind === 'keyword_argument' ? partsOf(part) : [];
    if (name && given && textOf(module, name) === 'default') return given;
  }
  return null;
}

/** Fields of that name of dataclasses that a command line fills (`HfArgumentParser`, `tyro`, `draccus`, `simple_parsing`). */
export function dataclassDefinitions(tree: SourceTree, module: PyModule, name: string): Definition[] {
  return nearest(
    tree,
    module,
    (text) => text.includes('dataclass') && text.includes(name),
    (other) => {
      const found: Definition[] = [];
      for (const node of descend(other.root)) {
        if (node.kind !== 'class_definition' || !isDataclass(other, node)) continue;
        const field = fieldOf(other, node, name);
        if (field !== null) found.push(field);
      }
      return found;
    },
  );
}

export interface YamlValue {
  readonly option: Option;
  readonly value: string | number | boolean | null;
}

/** Larger configuration files are data. */
const MAX_YAML = 200_000;

/** A scalar of a YAML file of the repository by its keys; null when the file or the key is not there. */
export function yamlValue(tree: SourceTree, file: string, keys: readonly string[]): YamlValue | null {
  const text = tree.read(file);
  if (text === null || text.length > MAX_YAML || keys.length === 0) return null;
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: 'silent' });
  if (document.errors.length > 0) return null;
  let at: unknown = document.contents;
  for (const [i, key] of keys.entries()) {
    if (!isMap(at)) return null;
    const pair = at.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
    if (pair === undefined) return null;
    if (i < keys.length - 1) {
      at = pair.value;
      continue;
    }
    const value = isScalar(pair.value) ? pair.value.value : pair.value === null ? null : undefined;
    const isPlain = value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    // `${oc.env:…}` and the like are worked out when the program runs.
    if (!isPlain || (typeof value === 'string' && value.includes('${'))) return null;
    const offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0;
    return { option: { from: 'yaml', name: keys.join('.'), at: { file, line: lines.linePos(offset).line } }, value };
  }
  return null;
}

/** The one YAML file a path in the code can mean: from the root, beside the script, or by its end. */
export function yamlFile(tree: SourceTree, importer: string, written: string): string | null {
  const clean = written.replace(/^(\.\/)+/, '');
  if (!/\.ya?ml$/.test(clean) || clean.startsWith('/') || clean.includes('..')) return null;
  if (hasPath(tree, clean)) return clean;
  const folder = importer.split('/').slice(0, -1);
  for (let n = folder.length; n > 0; n--) {
    const beside = [...folder.slice(0, n), clean].join('/');
    if (hasPath(tree, beside)) return beside;
  }
  const ending = tree.paths.filter((path) => path.endsWith(`/${clean}`));
  return ending.length === 1 ? ending[0]! : null;
}

import type { SourceTree } from '../model/source-tree.ts';
import { type Binding, namesOf } from './names.ts';
import { parseOnce } from './python-files.ts';
import type { PyModule } from './syntax-tree.ts';

const pathSets = new WeakMap<SourceTree, ReadonlySet<string>>();

export function hasPath(tree: SourceTree, path: string): boolean {
  let set = pathSets.get(tree);
  if (set === undefined) {
    set = new Set(tree.paths);
    pathSets.set(tree, set);
  }
  return set.has(path);
}

/** The file that a module name means in an import of `importer`: `configs.train`, `.config`, `..data.loader`. */
export function moduleFile(tree: SourceTree, importer: string, dotted: string): string | null {
  const folders = importer.split('/').slice(0, -1);
  const dots = /^\.*/.exec(dotted)![0].length;
  const rest = dotted
    .slice(dots)
    .split('.')
    .filter((part) => part !== '');
  if (dots > 0) return dots - 1 > folders.length ? null : fileAt(tree, [...folders.slice(0, folders.length - (dots - 1)), ...rest]);
  // A script finds what lies beside it, a package what lies beside its root; `src` is the usual other root.
  for (let n = folders.length; n >= 0; n--) {
    const found = fileAt(tree, [...folders.slice(0, n), ...rest]);
    if (found !== null) return found;
  }
  return fileAt(tree, ['src', ...rest]);
}

function fileAt(tree: SourceTree, parts: readonly string[]): string | null {
  if (parts.length === 0) return null;
  const path = parts.join('/');
  return [`${path}.py`, `${path}/__init__.py`].find((file) => hasPath(tree, file)) ?? null;
}

export interface Definition {
  readonly module: PyModule;
  readonly name: string;
  /** Everything that binds the name at the top of that module. */
  readonly bindings: readonly Binding[];
}

/** Re-exports followed at most. */
const MAX_HOPS = 4;

/** Where the repository defines what a dotted name means in a file: `config.WORKERS`, `.data.build_loader`. Imports are followed. */
export function definitionOf(tree: SourceTree, importer: string, dotted: string, hops = MAX_HOPS): Definition | null {
  const at = dotted.lastIndexOf('.');
  if (at === -1 || hops === 0) return null;
  const name = dotted.slice(at + 1);
  // `from . import x` is written `.x`: the dots belong to the module.
  const from = /^\.+$/.test(dotted.slice(0, at + 1)) ? dotted.slice(0, at + 1) : dotted.slice(0, at);
  const file = moduleFile(tree, importer, from);
  const module = file === null ? null : parseOnce(tree, file);
  if (module === null) return null;
  const bindings = namesOf(module).bindings.get(module.root)?.get(name);
  if (bindings === undefined) return null;
  const only = bindings.length === 1 ? bindings[0]! : null;
  if (only?.kind === 'import') return definitionOf(tree, module.path, only.name, hops - 1);
  return { module, name, bindings };
}

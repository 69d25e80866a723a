import type { SourceTree } from '../model/source-tree.ts';
import { findCalls, type PyCall } from './calls.ts';
import { type Names, namesOf } from './names.ts';
import { pythonFilesWith } from './python-files.ts';
import type { ParseFailure } from './python-parser.ts';
import { isAside } from './readable-paths.ts';
import type { PyModule } from './syntax-tree.ts';

export interface CallSite {
  readonly module: PyModule;
  readonly names: Names;
  readonly call: PyCall;
}

export interface CallSites {
  readonly sites: readonly CallSite[];
  /** Files that may hold a call but could not be looked into. */
  readonly failures: readonly ParseFailure[];
}

/** Trees do not change while they are alive; remedies ask for the same callables again and again. */
const memories = new WeakMap<SourceTree, Map<string, CallSites>>();

/**
 * Calls of one of the callables anywhere in the tree, except in tests, examples and vendored copies. `proven`: files that
 * the profile shows to take part in the run; they are searched wherever they lie.
 */
export function findCallSites(tree: SourceTree, wanted: readonly string[], proven: readonly string[] = []): CallSites {
  const memory = memories.get(tree) ?? new Map<string, CallSites>();
  memories.set(tree, memory);
  const key = JSON.stringify([wanted, proven]);
  const known = memory.get(key);
  if (known) return known;
  // The last part of the name must be written at least once: in the call, or in the import that renames it.
  const words = wanted.map((name) => name.slice(name.lastIndexOf('.') + 1));
  const { modules, failures } = pythonFilesWith(tree, words, (path) => !isAside(path) || proven.includes(path));
  const sites = modules.flatMap((module) => {
    const names = namesOf(module);
    return findCalls(module, wanted, names).map((call) => ({ module, names, call }));
  });
  const found = { sites, failures };
  memory.set(key, found);
  return found;
}

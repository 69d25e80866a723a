import type { SourceTree } from '../model/source-tree.ts';
import { findCalls, type PyCall } from './calls.ts';
import { distanceFromStart } from './entry-points.ts';
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

/** Remedies ask for the same callables again and again. */
const memories = new WeakMap<PyModule, Map<string, readonly CallSite[]>>();

function callSitesIn(module: PyModule, wanted: readonly string[]): readonly CallSite[] {
  const memory = memories.get(module) ?? new Map<string, readonly CallSite[]>();
  memories.set(module, memory);
  const key = wanted.join(' ');
  const known = memory.get(key);
  if (known) return known;
  const names = namesOf(module);
  const sites = findCalls(module, wanted, names).map((call) => ({ module, names, call }));
  memory.set(key, sites);
  return sites;
}

/**
 * Calls of one of the callables anywhere in the tree, except in tests, examples and vendored copies. `proven`: files that
 * the profile shows to take part in the run; they are searched wherever they lie.
 */
export function findCallSites(tree: SourceTree, wanted: readonly string[], proven: readonly string[] = []): CallSites {
  // The last part of the name must be written at least once: in the call, or in the import that renames it.
  const words = wanted.map((name) => name.slice(name.lastIndexOf('.') + 1));
  const { modules, failures } = pythonFilesWith(tree, words, (path) => !isAside(path) || proven.includes(path));
  return { sites: inReach(tree, modules).flatMap((module) => callSitesIn(module, wanted)), failures };
}

/** What the pull request changes first, then what is nearest to where trainings start: without stacks that is where a change belongs. */
function inReach(tree: SourceTree, modules: readonly PyModule[]): PyModule[] {
  if (modules.length < 2) return [...modules];
  const distance = distanceFromStart(tree);
  const rank = ({ path }: PyModule): number => (tree.changes?.has(path) ? -1 : (distance.get(path) ?? FAR));
  return [...modules].sort((a, b) => rank(a) - rank(b));
}

const FAR = 99;

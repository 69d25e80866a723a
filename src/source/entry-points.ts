import type { SourceTree } from '../model/source-tree.ts';
import { hasPath, moduleFile } from './imports.ts';
import { isAside, isPython } from './readable-paths.ts';

/** `python train.py`, `torchrun … tools/train.py`, `accelerate launch x.py`: scripts on a command line. */
const SCRIPT = /(?<![\w./-])((?:[\w.-]+\/)*[\w.-]+\.py)(?![\w/])/g;
/** `python -m pkg.train`. */
const MODULE = /(?:^|\s)-m[ \t]+([A-Za-z_][\w.]*)/g;
const MAIN = /^if[ \t]+__name__[ \t]*==[ \t]*["']__main__["']/m;
const TRAINS = /\.backward\(|\boptimizer\w*\.step\(|\bTrainer\(/;
const LOOPS = /^[ \t]+(?:for|while)\b/m;
const IMPORT = /^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*))/gm;

/** Where trainings start: scripts that command lines name; without any, files that train when they are run. */
function entryPoints(tree: SourceTree): string[] {
  const named = new Set<string>();
  for (const path of tree.paths) {
    if (isPython(path) || isAside(path) || /\.(toml|cfg|txt)$/.test(path)) continue;
    const text = tree.read(path) ?? '';
    for (const [, script] of text.matchAll(SCRIPT)) {
      const file = scriptFile(tree, path, script!);
      if (file !== null && !isAside(file)) named.add(file);
    }
    for (const [, module] of text.matchAll(MODULE)) {
      const file = moduleFile(tree, path, module!);
      if (file !== null && !isAside(file)) named.add(file);
    }
  }
  if (named.size > 0) return [...named];
  return tree.paths.filter((path) => {
    const text = isPython(path) && !isAside(path) ? tree.read(path) : null;
    return text !== null && MAIN.test(text) && TRAINS.test(text) && LOOPS.test(text);
  });
}

/** A script as a command line names it: from the root, from the folder of the launch script, or by its end. */
function scriptFile(tree: SourceTree, launcher: string, script: string): string | null {
  const clean = script.replace(/^(\.\/)+/, '');
  if (hasPath(tree, clean)) return clean;
  const beside = [...launcher.split('/').slice(0, -1), clean].join('/');
  return hasPath(tree, beside) ? beside : null;
}

/** Imports followed from an entry point, and files on the way. */
const MAX_DISTANCE = 4;
const MAX_FILES = 400;

const distances = new WeakMap<SourceTree, ReadonlyMap<string, number>>();

/** How many imports a file is away from where trainings start; absent when none was found to lead there. */
export function distanceFromStart(tree: SourceTree): ReadonlyMap<string, number> {
  const known = distances.get(tree);
  if (known) return known;
  const found = new Map<string, number>();
  let ring = entryPoints(tree);
  for (let distance = 0; distance <= MAX_DISTANCE && ring.length > 0; distance++) {
    const next: string[] = [];
    for (const path of ring) {
      if (found.has(path) || found.size >= MAX_FILES) continue;
      found.set(path, distance);
      for (const match of (tree.read(path) ?? '').slice(0, 20_000).matchAll(IMPORT)) {
        for (const dotted of (match[1] ?? match[2]!).split(',')) {
          const file = moduleFile(tree, path, dotted.trim());
          if (file !== null && !found.has(file)) next.push(file);
        }
      }
    }
    ring = next;
  }
  distances.set(tree, found);
  return found;
}

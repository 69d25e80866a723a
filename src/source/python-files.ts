import type { SourceTree } from '../model/source-tree.ts';
import { type ParseFailure, parsePython } from './python-parser.ts';
import { isPython } from './readable-paths.ts';
import type { PyModule } from './syntax-tree.ts';

/** Text parsed per tree at most. Trees stay in memory at about 35 times their text; ordinary repositories need 0.5 MB. */
const MAX_PARSED_BYTES = 4_000_000;

interface TreeMemory {
  readonly modules: Map<string, PyModule | null>;
  readonly failures: Map<string, ParseFailure>;
  bytes: number;
}

/** Trees do not change while they are alive, so each file is parsed once however many remedies ask. */
const memories = new WeakMap<SourceTree, TreeMemory>();

function memoryOf(tree: SourceTree): TreeMemory {
  const known = memories.get(tree);
  if (known) return known;
  const memory: TreeMemory = { modules: new Map(), failures: new Map(), bytes: 0 };
  memories.set(tree, memory);
  return memory;
}

/** One file of the tree, parsed; null when it cannot be. */
export function parseOnce(tree: SourceTree, path: string): PyModule | null {
  const memory = memoryOf(tree);
  const known = memory.modules.get(path);
  if (known !== undefined) return known;
  const module = parseFrom(tree, path, memory);
  memory.modules.set(path, module);
  return module;
}

function parseFrom(tree: SourceTree, path: string, memory: TreeMemory): PyModule | null {
  const text = tree.read(path);
  if (text === null) {
    memory.failures.set(path, { path, why: 'not text', detail: 'cannot be read' });
    return null;
  }
  memory.bytes += text.length;
  if (memory.bytes > MAX_PARSED_BYTES) {
    memory.failures.set(path, { path, why: 'too large', detail: `more than ${MAX_PARSED_BYTES} bytes of Python in one tree` });
    return null;
  }
  const { module, failure } = parsePython(path, text);
  if (failure) memory.failures.set(path, failure);
  return module;
}

export interface PythonFiles {
  readonly modules: readonly PyModule[];
  /** Files that hold one of the words but could not be looked into. */
  readonly failures: readonly ParseFailure[];
}

/** Python files whose text holds one of the words, parsed. The text is searched first, so most files are never parsed. */
export function pythonFilesWith(tree: SourceTree, words: readonly string[], accept: (path: string) => boolean = () => true): PythonFiles {
  return pythonFilesWhere(tree, (text) => words.some((word) => text.includes(word)), accept);
}

/** The same with any test of the text. A file that cannot be read may hold anything, so it is reported. */
export function pythonFilesWhere(
  tree: SourceTree,
  mayMatter: (text: string) => boolean,
  accept: (path: string) => boolean = () => true,
): PythonFiles {
  const modules: PyModule[] = [];
  const failures: ParseFailure[] = [];
  for (const path of tree.paths) {
    if (!isPython(path) || !accept(path)) continue;
    const text = tree.read(path);
    if (text !== null && !mayMatter(text)) continue;
    const module = parseOnce(tree, path);
    if (module) modules.push(module);
    else failures.push(memoryOf(tree).failures.get(path) ?? { path, why: 'parser failed', detail: '' });
  }
  return { modules, failures };
}

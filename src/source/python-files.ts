import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { SourceTree } from '../model/source-tree.ts';
import { type ParseFailure, parsePython } from './python-parser.ts';
import { isAside, isPython } from './readable-paths.ts';
import type { PyModule } from './syntax-tree.ts';

/** Text parsed per tree at most. Trees stay in memory at about 25 times their text; ordinary repositories need 0.5 MB. */
const MAX_PARSED_BYTES = 4_000_000;

/** The same in a repository whose text alone fills a good part of the memory. */
const MAX_PARSED_BYTES_OF_MANY = 1_600_000;
const MANY_FILES = 1_000;

function mostBytes(tree: SourceTree): number {
  return tree.paths.length > MANY_FILES ? MAX_PARSED_BYTES_OF_MANY : MAX_PARSED_BYTES;
}

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
  const most = mostBytes(tree);
  if (memory.bytes > most) {
    memory.failures.set(path, { path, why: 'too large', detail: `more than ${most} bytes of Python in one tree` });
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

/** Of the text that may be parsed, what is left for files that turn out to matter later. */
const RESERVED_BYTES = 300_000;

/** A training step and what it is made of: the fewer of these a file holds, the later it is read. */
const TRAINING =
  /\b(?:DataLoader|DistributedDataParallel|fully_shard|FSDP|backward|no_sync|GradScaler|autocast|init_process_group|set_compile_mode|empty_cache|register_buffer|add_argument|profile)\(|\.(?:item|npu|contiguous|step)\(/g;

/** Text parsed between two collections. */
const BREATH_BYTES = 20_000;

/**
 * Parses the files that searches will want, those that train first, and lets the process breathe in between: each node of the
 * parser holds 1 kB that the collector does not see and that is only given back between turns of the event loop. Without
 * this a megabyte of text takes 100 MB; measured for 2 MB: 430 MB resident, with it 290 MB.
 */
export async function readAhead(tree: SourceTree): Promise<void> {
  const ranked: { path: string; bytes: number; rank: number }[] = [];
  for (const path of tree.paths) {
    const text = isPython(path) ? tree.read(path) : null;
    if (text === null) continue;
    const words = new Set(text.match(TRAINING)?.slice(0, 200));
    if (words.size === 0) continue;
    const isChanged = tree.changes?.has(path) === true;
    ranked.push({ path, bytes: text.length, rank: (isChanged ? 100 : 0) + (isAside(path) ? 0 : 20) + words.size });
  }
  ranked.sort((a, b) => b.rank - a.rank || a.bytes - b.bytes);
  const memory = memoryOf(tree);
  let held = 0;
  for (const { path, bytes } of ranked) {
    if (memory.bytes + bytes > mostBytes(tree) - RESERVED_BYTES) break;
    parseOnce(tree, path);
    held += bytes;
    if (held < BREATH_BYTES) continue;
    held = 0;
    collectYoung();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

let collector: ((options: { type: 'minor' }) => void) | null | undefined;

/** The collector on demand, where this runtime gives it out. */
function collectYoung(): void {
  if (collector === undefined) {
    setFlagsFromString('--expose-gc');
    const found: unknown = runInNewContext('typeof gc === "function" ? gc : null');
    collector = found as typeof collector;
  }
  collector?.({ type: 'minor' });
}

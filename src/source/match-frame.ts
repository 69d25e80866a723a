import type { SourceTree } from '../model/source-tree.ts';
import { parseOnce } from './python-files.ts';
import { isPython } from './readable-paths.ts';
import { descend, type PyModule, partsOf, spanOf, textOf } from './syntax-tree.ts';

/** A stack frame as a profile names it: a path inside the container that ran the job. */
export interface Frame {
  readonly file: string;
  readonly line: number;
  /** Name of the function, or `<module>`; null or empty when the profile does not say. */
  readonly func: string | null;
}

export interface MatchedFrame {
  readonly file: string;
  readonly line: number;
  readonly symbol: string | null;
}

/** Frames of the interpreter and of installed packages never belong to the repository. */
const FOREIGN = /(^|\/)(site-packages|dist-packages|lib\/python\d[\d.]*|torch|torch_npu)\/|^</;

/**
 * The place in the repository that a profile's stack frame means: the file whose path is the longest suffix of the
 * frame's path (or the other way round for a relative frame). null when no file or several files fit, when the line is
 * beyond the file's end, or when the named function is not around that line: then the profile is of other code.
 */
export function matchFrame(tree: SourceTree, frame: Frame): MatchedFrame | null {
  const path = frame.file.replaceAll('\\', '/');
  if (FOREIGN.test(path) || !isPython(path) || !Number.isInteger(frame.line) || frame.line < 1) return null;
  const file = pathFor(tree.paths, path);
  const text = file === null ? null : tree.read(file);
  if (file === null || text === null || frame.line > countLines(text)) return null;
  const symbol = frame.func !== null && frame.func !== '' && !frame.func.startsWith('<') ? frame.func : null;
  const module = symbol === null ? null : parseOnce(tree, file);
  if (module && symbol !== null && !hasFunctionAt(module, symbol, frame.line)) return null;
  return { file, line: frame.line, symbol };
}

function pathFor(paths: readonly string[], frame: string): string | null {
  const wanted = frame.split('/').filter((part) => part !== '' && part !== '.');
  let best: string[] = [];
  let bestLength = 0;
  for (const path of paths) {
    if (!isPython(path)) continue;
    const length = commonSuffix(path.split('/'), wanted);
    if (length === 0 || length < bestLength) continue;
    best = length === bestLength ? [...best, path] : [path];
    bestLength = length;
  }
  return best.length === 1 ? best[0]! : null;
}

/** Number of parts both end with, if one of them is used up; else 0, because then a folder contradicts. */
function commonSuffix(path: readonly string[], frame: readonly string[]): number {
  let length = 0;
  while (length < path.length && length < frame.length && path.at(-1 - length) === frame.at(-1 - length)) length++;
  return length === path.length || length === frame.length ? length : 0;
}

function countLines(text: string): number {
  let lines = text.endsWith('\n') ? 0 : 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/** A tracer names the line of the call, or the first line of the function, which may be that of a decorator. */
function hasFunctionAt(module: PyModule, name: string, line: number): boolean {
  for (const node of descend(module.root)) {
    if (node.kind !== 'function_definition') continue;
    const span = spanOf(module, node.parent?.kind === 'decorated_definition' ? node.parent : node);
    if (line < span.startLine || line > span.endLine) continue;
    const identifier = partsOf(node).find((part) => part.kind === 'identifier');
    if (identifier && textOf(module, identifier) === name) return true;
  }
  return false;
}

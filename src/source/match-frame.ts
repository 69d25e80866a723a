import type { SourceTree } from '../model/source-tree.ts';
import { type Fit, fits, functionsNamed, statementsOf, tellingCalls } from './holds-call.ts';
import { hasPath } from './imports.ts';
import { parseOnce } from './python-files.ts';
import { isAside, isPython } from './readable-paths.ts';
import { type PyModule, type PyNode, spanOf } from './syntax-tree.ts';

/** A stack frame as a profile names it: a path inside the container that ran the job. */
export interface Frame {
  readonly file: string;
  readonly line: number;
  /** Name of the function, or `<module>`; null or empty when the profile does not say. */
  readonly func: string | null;
  /** Functions further in, the one that the line calls first. */
  readonly calls?: readonly string[];
}

/** A frame with the other frames of its stack that may be the repository's. */
export interface Stack extends Frame {
  readonly installed?: readonly Frame[];
  readonly outer?: readonly Frame[];
}

export interface MatchedFrame {
  readonly file: string;
  readonly line: number;
  readonly symbol: string | null;
  /** The line of the profiled code when the same call stands elsewhere now. */
  readonly movedFrom?: number;
  /** The line may make the call, and does not name it. */
  readonly isOpen?: boolean;
}

const TORCH_OR_PYTHON = /(^|\/)(lib\/python\d[\d.]*\/(?!(?:site|dist)-packages\/)|(?:torch|torch_npu)\/)|^</;
const PACKAGES = /(?:^|\/)(?:site|dist)-packages\//;

/** More places than this tell nobody where to look. */
const MAX_PLACES = 6;

/** The one place in the repository that a frame means; null when there is none, or more than one. */
export function matchFrame(tree: SourceTree, frame: Frame): MatchedFrame | null {
  const [place, ...others] = placesOf(tree, frame);
  if (place === undefined || others.length > 0) return null;
  const { isOpen: _, ...found } = place;
  return found;
}

/**
 * Where a stack enters the repository: the innermost of its frames that the repository holds. Several places when the profile
 * fits them equally; none when the profile is of other code.
 */
export function matchStack(tree: SourceTree, stack: Stack): MatchedFrame[] {
  const own = PACKAGES.test(stack.file) ? [stack, ...(stack.installed ?? [])] : [...(stack.installed ?? []), stack];
  for (const frame of [...own, ...(stack.outer ?? [])]) {
    const places = placesOf(tree, frame);
    if (places.length > 0) return places;
  }
  return [];
}

/** False for files of Python, torch and things that are no files. */
export function couldBeHere(file: string): boolean {
  const path = file.replaceAll('\\', '/');
  return isPython(path) && !TORCH_OR_PYTHON.test(path);
}

function placesOf(tree: SourceTree, frame: Frame): MatchedFrame[] {
  const path = frame.file.replaceAll('\\', '/');
  if (!couldBeHere(path) || !Number.isInteger(frame.line) || frame.line < 1) return [];
  const { files, isSure } = filesFor(tree, path);
  const places = files.flatMap((file) => placesIn(tree, file, frame, isSure));
  if (isSure || places.length < 2) return places.slice(0, MAX_PLACES + 1).length > MAX_PLACES ? [] : places;
  const exact = places.filter((place) => place.movedFrom === undefined);
  const best = exact.length > 0 ? exact : places;
  return best.length > MAX_PLACES ? [] : best;
}

interface Files {
  readonly files: readonly string[];
  /** The path alone tells the file; else the line must show that it is the right one. */
  readonly isSure: boolean;
}

/** Files a frame may mean, by the end of their paths. */
function filesFor(tree: SourceTree, path: string): Files {
  const installed = path.split(PACKAGES);
  if (installed.length > 1) return { files: packageFiles(tree, installed.at(-1)!), isSure: false };
  const wanted = path.split('/').filter((part) => part !== '' && part !== '.');
  let whole: string[] = [];
  let wholeLength = 0;
  const similar: [path: string, length: number][] = [];
  const consider = (known: string, file: string): void => {
    const parts = known.split('/');
    const length = commonSuffix(parts, wanted);
    if (length === 0) return;
    similar.push([file, length]);
    // One of them is used up: no folder contradicts.
    if ((length !== parts.length && length !== wanted.length) || length < wholeLength) return;
    whole = length === wholeLength ? [...whole, file] : [file];
    wholeLength = length;
  };
  for (const known of pathsNamed(tree, wanted.at(-1)!)) consider(known, known);
  for (const [before, now] of tree.renamed ?? []) if (!hasPath(tree, before) && hasPath(tree, now)) consider(before, now);
  if (whole.length > 0) return { files: [...new Set(whole)], isSure: whole.length === 1 };
  // Another root, as after `COPY training/ /app/`: the closest paths, to be proven by the line.
  const closest = Math.max(0, ...similar.map(([, length]) => length));
  return { files: similar.filter(([, length]) => length === closest).map(([file]) => file), isSure: false };
}

const byName = new WeakMap<SourceTree, Map<string, string[]>>();

function pathsNamed(tree: SourceTree, name: string): readonly string[] {
  let index = byName.get(tree);
  if (index === undefined) {
    index = new Map();
    for (const path of tree.paths) {
      if (!isPython(path)) continue;
      const last = path.slice(path.lastIndexOf('/') + 1);
      const list = index.get(last);
      if (list === undefined) index.set(last, [path]);
      else list.push(path);
    }
    byName.set(tree, index);
  }
  return index.get(name) ?? [];
}

function commonSuffix(path: readonly string[], frame: readonly string[]): number {
  let length = 0;
  while (length < path.length && length < frame.length && path.at(-1 - length) === frame.at(-1 - length)) length++;
  return length;
}

/** The repository's own package that was installed: the whole path below `site-packages`, and a sign that the folder is a package here. */
function packageFiles(tree: SourceTree, inside: string): string[] {
  const parts = inside.split('/');
  if (parts.length < 2) return [];
  return pathsNamed(tree, parts.at(-1)!).filter((path) => {
    if (path !== inside && !path.endsWith(`/${inside}`)) return false;
    const root = path.slice(0, path.length - inside.length);
    // A vendored copy is not what `pip install` put there.
    if (root !== '' && isAside(`${root}x.py`)) return false;
    return [`${root}${parts[0]}/__init__.py`, `${root}setup.py`, `${root}pyproject.toml`, 'setup.py', 'pyproject.toml'].some((sign) =>
      hasPath(tree, sign),
    );
  });
}

function placesIn(tree: SourceTree, file: string, frame: Frame, isSure: boolean): MatchedFrame[] {
  const text = tree.read(file);
  if (text === null) return [];
  const symbol = frame.func !== null && frame.func !== '' && !frame.func.startsWith('<') ? frame.func : null;
  const place = (line: number): MatchedFrame => ({ file, line, symbol, ...(line === frame.line ? {} : { movedFrom: frame.line }) });
  const open = (): MatchedFrame => ({ file, line: frame.line, symbol, isOpen: true });
  const module = parseOnce(tree, file);
  // Without a tree nothing is proven; a path that fits as a whole and a line that is there must do.
  if (module === null) return isSure && symbol === null && isCode(text, frame.line) ? [open()] : [];
  if (!isSure && symbol === null) return [];
  const calls = frame.calls ?? [];
  const scopes = scopesOf(module, frame.func ?? '', symbol);
  const here = fitAt(module, scopes, frame.line, calls);
  if (here === 'yes') return [place(frame.line)];
  const telling = tellingCalls(calls);
  const elsewhere = telling.length === 0 ? [] : (scopes ?? []).flatMap((scope) => linesThatFit(module, scope, telling));
  // The call stands elsewhere in the function, so it is not hidden behind another name on this line.
  if (here === 'open' && elsewhere.length === 0) {
    return isSure || isCertain(frame, symbol) ? [open()] : [];
  }
  if (!isSure && commonLength(file, frame.file) < 2) return [];
  const moved = movedLine(tree, file, frame.line);
  if (moved !== null && elsewhere.includes(moved)) return [place(moved)];
  return elsewhere.length > MAX_PLACES ? [] : elsewhere.map(place);
}

/** A path that fits only in part needs a line that names what it calls. */
function isCertain(frame: Frame, symbol: string | null): boolean {
  return PACKAGES.test(frame.file) && symbol !== null && frame.calls !== undefined;
}

function commonLength(file: string, frame: string): number {
  return commonSuffix(file.split('/'), frame.replaceAll('\\', '/').split('/'));
}

function isCode(text: string, line: number): boolean {
  const lines = text.split('\n');
  const count = text.endsWith('\n') ? lines.length - 1 : lines.length;
  const code = lines[line - 1]?.trim() ?? '';
  return line <= count && code !== '' && !code.startsWith('#');
}

/** Where the code of a frame may stand: functions of its name, or the module; null when the profile names no function. */
function scopesOf(module: PyModule, func: string, symbol: string | null): PyNode[] | null {
  if (symbol !== null) return functionsNamed(module, symbol);
  return func === '<module>' ? [module.root] : null;
}

/** How the line of the frame fits. A tracer may name the first line of the function instead, which may be that of a decorator. */
function fitAt(module: PyModule, scopes: readonly PyNode[] | null, line: number, calls: readonly string[]): Fit {
  if (!isCode(module.text, line)) return 'no';
  if (scopes === null || scopes[0] === module.root) {
    return calls.length === 0 ? 'open' : fitOfLine(module, module.root, line, calls, scopes === null);
  }
  for (const scope of scopes) {
    const outer = scope.parent?.kind === 'decorated_definition' ? scope.parent : scope;
    const span = spanOf(module, outer);
    if (line < span.startLine || line > span.endLine) continue;
    const body = scope.children.find((child) => child.kind === 'block');
    const bodyLine = body === undefined ? span.endLine : spanOf(module, body).startLine;
    return line < bodyLine && calls.length === 0 ? 'open' : fitOfLine(module, scope, line, calls);
  }
  return 'no';
}

function fitOfLine(module: PyModule, scope: PyNode, line: number, calls: readonly string[], isDeep = false): Fit {
  const around = statementsOf(module, scope, isDeep).filter((s) => s.startLine <= line && line <= s.endLine);
  const found = around.map((statement) => fits(module, statement, calls));
  return found.includes('yes') ? 'yes' : found.includes('open') ? 'open' : 'no';
}

function linesThatFit(module: PyModule, scope: PyNode, calls: readonly string[]): number[] {
  const body = scope.kind === 'function_definition' ? (scope.children.find((child) => child.kind === 'block') ?? scope) : scope;
  const fitting = statementsOf(module, body).filter((statement) => fits(module, statement, calls) === 'yes');
  // A loop is what fetches batches; a comprehension only where there is no loop.
  const loops = calls[0] === '__next__' ? fitting.filter(({ node }) => node.kind === 'for_statement') : [];
  return [...new Set((loops.length > 0 ? loops : fitting).map(({ startLine }) => startLine))];
}

/** Where a line of the code before the pull request stands now; null when it is gone or unchanged. */
function movedLine(tree: SourceTree, file: string, line: number): number | null {
  const blocks = tree.changes?.get(file);
  if (blocks === undefined) return null;
  let shift = 0;
  for (const { startLine, removed, added } of blocks) {
    const before = startLine - shift;
    if (line < before) break;
    if (line < before + removed.length) return null;
    shift += added.length - removed.length;
  }
  return shift === 0 ? null : line + shift;
}

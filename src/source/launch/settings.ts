import type { SourceTree } from '../../model/source-tree.ts';
import { parseOnce } from '../python-files.ts';
import { isAside, isPython } from '../readable-paths.ts';
import { lineAt, lineStartsOf } from '../syntax-tree.ts';
import { dockerAssignments } from './dockerfile.ts';
import { pythonAssignments } from './python-environment.ts';
import { type Assignment, shellAssignments } from './shell.ts';
import { yamlAssignments } from './yaml.ts';

/** One line that sets an environment variable: shell, workflow, compose file, Dockerfile or Python. */
export interface Setting {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly value: string;
  /** The whole line. */
  readonly text: string;
  /** Offset of the value in the line. */
  readonly column: number;
  /** Holds only where the caller has not set the variable. */
  readonly isDefault: boolean;
}

/** Scripts, images and workflows that people write are below 20 kB; what is larger is generated or locked. YAML is slow to parse. */
const MAX_BYTES = 200_000;
const MAX_YAML_BYTES = 60_000;

/** Longer lines are data, not settings. */
const MAX_LINE = 500;
const MAX_COMMENT_LINES = 4;
const DEBUG = /debug|调试/i;

const isShell = (path: string): boolean => /\.(sh|bash|slurm|sbatch)$/.test(path);
const isYaml = (path: string): boolean => /\.ya?ml$/.test(path);
export const isDockerfile = (path: string): boolean => /(^|\/)(Dockerfile|Containerfile)(\.[\w.-]+)?$|\.[Dd]ockerfile$/.test(path);

const memories = new WeakMap<SourceTree, Map<string, readonly Setting[]>>();

/** Everything one file sets, in the order of its lines, without what is for debugging; empty for a file that cannot be read. */
export function settingsIn(tree: SourceTree, path: string): readonly Setting[] {
  const memory = memories.get(tree) ?? new Map<string, readonly Setting[]>();
  memories.set(tree, memory);
  const known = memory.get(path);
  if (known) return known;
  const settings = DEBUG.test(path) ? [] : readSettings(tree, path);
  memory.set(path, settings);
  return settings;
}

function readSettings(tree: SourceTree, path: string): readonly Setting[] {
  const text = tree.read(path);
  if (text === null || (!isPython(path) && text.length > (isYaml(path) ? MAX_YAML_BYTES : MAX_BYTES))) return [];
  const lineStarts = lineStartsOf(text);
  const lineText = (line: number): string => text.slice(lineStarts[line - 1]!, (lineStarts[line] ?? text.length + 1) - 1);
  return assignmentsOf(tree, path, text).flatMap(({ name, value, start, isDefault, isDebug }): Setting[] => {
    const line = lineAt(lineStarts, start);
    const own = lineText(line);
    const isLiteral = /^[\w.:,+/@-]+$/.test(value) && own.startsWith(value, start - lineStarts[line - 1]!);
    if (!isLiteral || isDebug || own.length > MAX_LINE || DEBUG.test(own) || isAnnounced(line, lineText)) return [];
    return [{ name, file: path, line, value, text: own, column: start - lineStarts[line - 1]!, isDefault }];
  });
}

/** The comment lines right above say that the setting is for debugging. */
function isAnnounced(line: number, lineText: (line: number) => string): boolean {
  for (let at = line - 1; at >= Math.max(1, line - MAX_COMMENT_LINES) && /^\s*#/.test(lineText(at)); at--)
    if (DEBUG.test(lineText(at))) return true;
  return false;
}

function assignmentsOf(tree: SourceTree, path: string, text: string): Assignment[] {
  if (isShell(path)) return shellAssignments(text);
  if (isDockerfile(path)) return dockerAssignments(text);
  if (isYaml(path)) return yamlAssignments(text);
  if (isPython(path)) {
    const module = parseOnce(tree, path);
    return module ? pythonAssignments(module) : [];
  }
  return path.endsWith('.toml') ? tomlAssignments(text) : [];
}

/** `X = "1"` in the environment table of a TOML file. */
function tomlAssignments(text: string): Assignment[] {
  return [...text.matchAll(/^[ \t]*["']?([A-Z][A-Z0-9]*_[A-Z0-9_]+)["']?[ \t]*=[ \t]*(["']?)([\w.:,-]+)\2/gm)].map((match) => {
    const start = match.index + match[0].length - match[3]!.length - match[2]!.length;
    return { name: match[1]!, value: match[3]!, start, end: start + match[3]!.length, isDefault: false, isDebug: false };
  });
}

/** Lines that set a variable to a literal value, in the order of the tree. Tests, examples and debug files are left out. */
export function settingsOf(tree: SourceTree, variable: string): Setting[] {
  return tree.paths
    .filter((path) => !isAside(path) && tree.read(path)?.includes(variable) === true)
    .flatMap((path) => settingsIn(tree, path).filter(({ name }) => name === variable));
}

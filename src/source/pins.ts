import type { SourceTree } from '../model/source-tree.ts';
import { instructionsOf } from './launch/dockerfile.ts';
import { isDockerfile } from './launch/settings.ts';
import { isAside } from './readable-paths.ts';

/** A line that asks for one version of a package, or for a CANN image. */
export interface Pin {
  readonly package: 'torch' | 'torch_npu' | 'cann';
  /** `==` or `===`; other operators leave the version open and are no pins. */
  readonly version: string;
  readonly file: string;
  readonly line: number;
  /** The words as written. */
  readonly text: string;
  /** What keeps it from holding everywhere: an environment marker, a section, a stage or a command; null when it always holds. */
  readonly condition: string | null;
}

/** Larger files are locks or generated. */
const MAX_BYTES = 200_000;
const MAX_LINE = 2_000;
const MAX_PINS = 200;

/** `torch_npu==2.1.0.post3`, `torch-npu == 2.1.0`, `"torch==2.1.0+cpu; …"`; `torchvision==…` is another package. */
const REQUIREMENT = /(?<![\w.-])(torch(?:[-_]npu)?)(?:\[[\w,-]*\])?[ \t]*===?[ \t]*v?(\d[\w.+*]*)[ \t]*(?:;[ \t]*([^"'#\n]{1,200}))?/gi;
/** Conda's own spelling in an environment file. */
const CONDA = /^\s*-\s+(torch|pytorch|torch[-_]npu)=(\d[\w.]*)(?:=|\s|$)/i;
/** `pip install torch_npu-1.12.0`: a file name without its ending, which pip takes for a package. */
const DASHED = /(?<![\w./:-])(torch[-_]npu)-(\d+(?:\.\d+){1,2}(?:\.?(?:post|rc)\d+)?)(?=["'\s;,]|$)/gi;
/** Tag of an image: `ascendai/cann:8.1.rc1-910b-ubuntu22.04-py3.10`, `quay.io/ascend/cann:8.5.0-…`. */
const CANN_IMAGE = /^\s*(?:--\S+\s+)*(\S*\/)?cann:(\d+\.\d+(?:\.\d+|\.rc\d+)?(?:\.(?:beta|alpha)\d+)?)(?=-|\s|$)/i;

const isRequirements = (path: string): boolean => /(^|\/)(requirements|constraints)[^/]*\.txt$|(^|\/)requirements\/[^/]+\.txt$/.test(path);
const isProject = (path: string): boolean => /(^|\/)(pyproject\.toml|setup\.cfg|setup\.py)$/.test(path);
const installs = (path: string): boolean => /\.(sh|bash|ya?ml)$/.test(path) || isDockerfile(path);

/** Versions that the files of a tree install, in the order of the files. Tests and vendored copies are left out. */
export function pinsOf(tree: SourceTree): Pin[] {
  const pins: Pin[] = [];
  for (const file of tree.paths) {
    if (isAside(file) && !isProject(file)) continue;
    if (!isRequirements(file) && !isProject(file) && !installs(file)) continue;
    const text = tree.read(file);
    if (text === null || text.length > MAX_BYTES || !/torch|cann/i.test(text)) continue;
    pins.push(...pinsIn(file, text));
    if (pins.length > MAX_PINS) break;
  }
  return pins.slice(0, MAX_PINS);
}

function pinsIn(file: string, text: string): Pin[] {
  const pins: Pin[] = [];
  const lines = text.split('\n');
  const conditions = isDockerfile(file) ? stagesOf(text, lines) : isProject(file) ? sectionsOf(file, text, lines) : null;
  let isPip = false;
  for (const [i, whole] of lines.entries()) {
    if (whole.length > MAX_LINE) continue;
    const line = withoutComment(file, whole);
    let condition = conditions?.[i] ?? null;
    const add = (name: string, version: string, marker: string | undefined, written: string): void => {
      const which = /npu/i.test(name) ? 'torch_npu' : 'torch';
      pins.push({
        package: which,
        version,
        file,
        line: i + 1,
        text: written.trim(),
        condition: marker?.trim() || (condition === EACH ? `${EACH} ${pins.length}` : condition),
      });
    };
    // In scripts only the command that installs counts; it may go on over several lines.
    if (installs(file)) {
      const conda = isYaml(file) ? CONDA.exec(line) : null;
      if (conda) add(conda[1]!, conda[2]!, undefined, conda[0].replace(/^\s*-\s+/, ''));
      const isListed = isYaml(file) && /^\s*-\s+["']?torch/.test(line);
      isPip = line.split(/[|;&]/).some(installsPackages) || (isPip && /\\\s*$/.test(lines[i - 1] ?? ''));
      if (!isPip && !isListed) continue;
      // Branches and jobs exclude each other; nobody knows which lines of a script meet.
      if (isPip && (!isDockerfile(file) || BRANCH.test(whole))) condition = `line ${i + 1}`;
    }
    for (const match of line.matchAll(REQUIREMENT)) add(match[1]!, match[2]!, match[3], match[0].replace(/\s*;.*$/, ''));
    if (installs(file) || isRequirements(file)) for (const match of line.matchAll(DASHED)) add(match[1]!, match[2]!, undefined, match[0]);
  }
  if (isDockerfile(file)) {
    for (const { name, start, end } of instructionsOf(text)) {
      const match = name === 'FROM' ? CANN_IMAGE.exec(text.slice(start, end)) : null;
      if (!match) continue;
      const line = text.slice(0, start).split('\n').length;
      pins.push({ package: 'cann', version: match[2]!, file, line, text: match[0].trim(), condition: conditions?.[line - 1] ?? null });
    }
  }
  return pins.sort((a, b) => a.line - b.line);
}

const isYaml = (path: string): boolean => /\.ya?ml$/.test(path);
/** Nobody knows which of these meet: each stands for itself. */
const EACH = 'extra';
/** The command runs only sometimes. */
const BRANCH = /\b(if|elif|else|then|case|fi)\b|&&\s*\{|\|\|/;

/** One command of a line: a package manager, and somewhere after it what it is to do. Two steps, so that long lines take no longer. */
function installsPackages(command: string): boolean {
  const manager = /\b(pip3?|uv|conda|mamba)\b/.exec(command);
  return manager !== null && /\binstall\b/.test(command.slice(manager.index));
}

function withoutComment(file: string, line: string): string {
  const at = line.search(/(^|\s)#/);
  return at === -1 || (file.endsWith('.py') && isHashQuoted(line)) ? line : line.slice(0, at);
}

/** True when a `#` stands between quotes of any kind. */
function isHashQuoted(line: string): boolean {
  const [first, last] = [line.search(/["']/), Math.max(line.lastIndexOf('"'), line.lastIndexOf("'"))];
  return first !== -1 && line.slice(first, last).includes('#');
}

/** Optional dependencies and groups are alternatives, so what stands in one need not fit another. */
function sectionsOf(file: string, text: string, lines: readonly string[]): (string | null)[] {
  if (file.endsWith('.py') && /extras_require|\bif\b/.test(text)) return lines.map(() => EACH);
  let section: string | null = null;
  return lines.map((line) => {
    const table = /^\s*\[+([^[\]]+)\]+\s*$/.exec(line);
    const list = /^\s*["']?([\w-]+)["']?\s*[=:]\s*\[/.exec(line);
    if (table) section = /optional|group|extras|feature|tool\./i.test(table[1]!) ? table[1]! : null;
    else if (list) section = /^(dependencies|install_requires|requires)$/.test(list[1]!) ? null : list[1]!;
    return section;
  });
}

/** The stage of each line of a Dockerfile: what two stages install never meets. */
function stagesOf(text: string, lines: readonly string[]): (string | null)[] {
  let stage: string | null = null;
  let seen = 0;
  return lines.map((line) => {
    if (/^\s*FROM\s/i.test(line)) stage = ++seen === 1 && (text.match(/^[^\S\n]*FROM\s/gim)?.length ?? 0) === 1 ? null : `stage ${seen}`;
    return stage;
  });
}

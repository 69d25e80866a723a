import type { CodeSite } from '../../model/code.ts';
import type { SourceTree } from '../../model/source-tree.ts';
import { findCalls, type PyCall } from '../../source/calls.ts';
import { replaceNode } from '../../source/edit-statement.ts';
import { applySteps } from '../../source/edit-tree.ts';
import { bindingsFor, type Names, namesOf, resolveName } from '../../source/names.ts';
import { parseOnce } from '../../source/python-files.ts';
import { parsePython } from '../../source/python-parser.ts';
import { isAside } from '../../source/readable-paths.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, spanOf, textOf } from '../../source/syntax-tree.ts';

/** A Python file that speaks to NPUs. */
export interface NpuFile {
  readonly module: PyModule;
  readonly names: Names;
  /** It runs on NPUs and on nothing else: it uses them without asking, and never speaks of CUDA. */
  readonly isNpuOnly: boolean;
  /** `from torch_npu.contrib import transfer_to_npu` at its top: CUDA names mean NPU. */
  readonly isTransferred: boolean;
  /** What was found out about the file before; whoever asks uses keys of its own. */
  readonly known: Map<string, unknown>;
}

/** Each edit parses the file again; more of one file are of the same making. */
const MAX_EDITS = 6;
/** Calls of one kind looked at in one file. */
const MAX_CALLS = 60;

/** Looked up once per file. */
export function once<T>(file: NpuFile, key: string, find: () => T): T {
  if (!file.known.has(key)) file.known.set(key, find());
  return file.known.get(key) as T;
}

const MENTIONS_NPU = /\btorch_npu\b|\bnpu\b|\bhccl\b|\bNpu[A-Z]\w+|\.npu\(/;
const CUDA = /cuda/i;
const CUDA_WORD = /\b(cuda|gpu|nvidia)\b/i;
/** Words in a condition that tell one kind of card from another. */
const SWITCH = /cuda|gpu|npu|nccl|hccl|device_?type|backend|platform|accelerator|xpu|hpu|mps\b|mlu|musa|ascend/i;

/** Tests, documents and vendored copies; examples are often what is trained with, so they are looked at. */
export function isForeign(path: string): boolean {
  return isAside(path.replaceAll(/(^|\/)(examples?|demos?)(?=\/)/gi, '$1x'));
}

export function speaksToNpus(text: string): boolean {
  return MENTIONS_NPU.test(text);
}

/** The file, if it can be parsed without an error. */
export function npuFileOf(tree: SourceTree, path: string): NpuFile | null {
  // Without a diff there may be hundreds of files: their trees are not kept.
  const module = tree.changes === undefined ? parsePython(path, tree.read(path) ?? '').module : parseOnce(tree, path);
  if (module === null || module.brokenLines.length > 0) return null;
  const names = namesOf(module);
  let usesNpu = false;
  let usesCuda = false;
  let isTransferred = false;
  for (const node of descend(module.root)) {
    if (node.kind === 'import_statement' || node.kind === 'import_from_statement') {
      const written = textOf(module, node);
      if (/\btorch_npu\b/.test(written) && isAlways(module, node)) {
        usesNpu = true;
        if (/\btransfer_to_npu\b/.test(written)) isTransferred = true;
      }
    } else if (node.kind === 'identifier') {
      const name = textOf(module, node);
      if (CUDA.test(name)) usesCuda = true;
      if (name === 'npu' && node.parent?.kind === 'attribute' && isAlways(module, node)) usesNpu = true;
    } else if (node.kind === 'string' && node.parent?.kind !== 'expression_statement') {
      const written = textOf(module, node);
      if (CUDA_WORD.test(written)) usesCuda = true;
      // `torch.device("npu")`: torch loads the backend by itself from 2.5 on.
      if (/^["']npu(:\d+)?["']$/.test(written) && node.parent?.kind === 'argument_list' && isAlways(module, node)) usesNpu = true;
    }
  }
  return { module, names, isNpuOnly: isTransferred || (usesNpu && !usesCuda), isTransferred, known: new Map() };
}

/** Runs whatever the machine has: neither tried nor asked for. */
function isAlways(module: PyModule, node: PyNode): boolean {
  for (const up of ascend(node)) {
    if (up.kind === 'try_statement' || up.kind === 'conditional_expression') return false;
    if (up.kind === 'if_statement' && !textOf(module, partsOf(up)[0]!).includes('__name__')) return false;
  }
  return true;
}

const EXPECTED = /ImportError|ModuleNotFoundError|AttributeError|\bException\b|RuntimeError/;
const PRESENCE = /hasattr|getattr|find_spec|version|available|support|\bhas_/i;

/** The code expects that it may not work: inside `try … except ImportError`, or behind a look at what is there. */
export function isGuarded(module: PyModule, node: PyNode): boolean {
  let inner = node;
  for (const up of ascend(node)) {
    if (up.kind === 'try_statement') {
      const handlers = partsOf(up).filter((part) => part.kind === 'except_clause' || part.kind === 'except_group_clause');
      const isHandled = handlers.some((handler) => {
        const caught = handler.children.find((child) => child.named && child.kind !== 'block' && child.kind !== 'comment');
        return caught === undefined || EXPECTED.test(textOf(module, caught));
      });
      if (isHandled) return true;
    }
    const condition = conditionOf(up);
    if (condition && condition !== inner && PRESENCE.test(textOf(module, condition))) return true;
    if (up.kind === 'with_statement' && /suppress|raises/.test(textOf(module, partsOf(up)[0]!))) return true;
    inner = up;
  }
  return false;
}

function conditionOf(node: PyNode): PyNode | undefined {
  if (node.kind === 'if_statement' || node.kind === 'elif_clause' || node.kind === 'while_statement' || node.kind === 'match_statement')
    return partsOf(node)[0];
  if (node.kind === 'conditional_expression') return partsOf(node)[1];
  return undefined;
}

/** The function around a node, or the module. */
export function scopeOf(node: PyNode): PyNode {
  let last = node;
  for (const up of ascend(node)) {
    if (up.kind === 'function_definition' || up.kind === 'lambda') return up;
    last = up;
  }
  return last;
}

export function functionAround(module: PyModule, node: PyNode): string | null {
  for (const up of ascend(node)) {
    const name = up.kind === 'function_definition' ? partsOf(up).find((part) => part.kind === 'identifier') : undefined;
    if (name) return textOf(module, name);
  }
  return null;
}

/** The code around asks which kind of card it runs on, or is named after another kind. */
export function isSwitched(file: NpuFile, node: PyNode): boolean {
  const { module } = file;
  for (const up of ascend(node)) {
    const isNamed = up.kind === 'function_definition' || up.kind === 'class_definition';
    const name = isNamed ? partsOf(up).find((part) => part.kind === 'identifier') : undefined;
    if (name && /cuda|gpu|nccl|nvidia/i.test(textOf(module, name))) return true;
  }
  const scope = scopeOf(node);
  return once(file, `switch ${scope.start} ${scope.end}`, () => hasSwitch(module, scope));
}

function hasSwitch(module: PyModule, scope: PyNode): boolean {
  for (const inside of descend(scope)) {
    const condition = conditionOf(inside);
    if (condition === undefined || scopeOf(inside) !== scope) continue;
    if (SWITCH.test(textOf(module, condition)) && !isNpuOrCpu(module, inside)) return true;
  }
  return false;
}

/** `"npu" if torch.npu.is_available() else "cpu"` chooses no other card. */
function isNpuOrCpu(module: PyModule, node: PyNode): boolean {
  if (node.kind !== 'conditional_expression') return false;
  const [then, , otherwise] = partsOf(node);
  return [then, otherwise].every((part) => part !== undefined && /^f?["'](npu|cpu)\b/.test(textOf(module, part)));
}

const MAX_TEXT = 160;

export function siteOf(module: PyModule, node: PyNode, edit: CodeSite['edit'] = null): CodeSite {
  const { startLine, endLine } = spanOf(module, node);
  const from = module.lineStarts[startLine - 1]!;
  const text = module.text.slice(from, module.lineStarts[startLine] ?? module.text.length).trim();
  return {
    file: module.path,
    startLine,
    endLine,
    symbol: functionAround(module, node),
    text: text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text,
    edit,
  };
}

/** One node by another text; null where that cannot be done safely. */
export function replaced(file: NpuFile, node: PyNode, text: string): CodeSite['edit'] {
  return edited(file, (module) => {
    const { steps } = replaceNode(module, node, text);
    return steps === null ? null : applySteps(module, steps).edit;
  });
}

/** An edit, as long as the file has not been edited often enough. */
export function edited(file: NpuFile, edit: (module: PyModule) => CodeSite['edit']): CodeSite['edit'] {
  const made = (file.known.get('edits') as number | undefined) ?? 0;
  file.known.set('edits', made + 1);
  return made < MAX_EDITS ? edit(file.module) : null;
}

/** Calls whose callable is certainly one of the names. */
export function certainCalls(file: NpuFile, wanted: readonly string[]): readonly PyCall[] {
  const { module, names } = file;
  return once(file, `calls ${wanted.join(' ')}`, () =>
    findCalls(module, wanted, names)
      .filter((call) => call.name !== null)
      .slice(0, MAX_CALLS),
  );
}

/** The call that certainly gave a name its value: `prof = profile(…)`, `with profile(…) as prof`; null when others may have. */
export function madeBy(file: NpuFile, node: PyNode): PyNode | null {
  if (node.kind !== 'identifier') return node.kind === 'call' ? node : null;
  const bindings = bindingsFor(file.names, node, textOf(file.module, node));
  const only = bindings?.length === 1 ? bindings[0]! : null;
  if (only?.at.kind === 'assignment') return partsOf(only.at).at(-1) ?? null;
  if (only?.at.kind === 'as_pattern_target') return only.at.parent ? (partsOf(only.at.parent)[0] ?? null) : null;
  return null;
}

/** The one thing that a callable certainly is; null otherwise. */
export function certainName({ names }: NpuFile, node: PyNode): string | null {
  const resolved = resolveName(names, node);
  return resolved.certain ? resolved.names[0]! : null;
}

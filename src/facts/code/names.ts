import type { Occurrence } from '../../model/code.ts';
import { DEPRECATED, NON_EXISTENT, REMOVED } from '../../model/npu-names.ts';
import { argumentOf } from '../../source/calls.ts';
import { canonicalName, resolveName } from '../../source/names.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { certainCalls, certainName, isGuarded, madeBy, type NpuFile, replaced, siteOf } from './npu-file.ts';

/** The name in a list that a dotted name is, or lies below; the shortest where several fit. */
function listed(dotted: string, names: readonly string[]): string | null {
  let found: string | null = null;
  for (const name of names)
    if ((dotted === name || dotted.startsWith(`${name}.`)) && (found === null || name.length < found.length)) found = name;
  return found;
}

const dottedOnly = (name: string): boolean => /^torch[\w.]*$/.test(name);
const UNKNOWN = new Map(
  NON_EXISTENT.filter(({ name }) => dottedOnly(name)).map(({ name, replacement }) => [canonicalName(name), replacement]),
);
const DEPRECATED_NAMES = new Map(DEPRECATED);
const REMOVED_NAMES = new Map(REMOVED);
/** What the code is told to write instead, where it is the same thing under another name. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['torch_npu.amp', 'torch_npu.npu.amp'],
  ['torch_npu.npu_matmul', 'torch.matmul'],
  ['torch_npu.contrib.ModulationDeformConv', 'torch_npu.contrib.ModulatedDeformConv'],
]);

interface Mention {
  /** Canonical. */
  readonly dotted: string;
  readonly node: PyNode;
  readonly how: 'import' | 'from' | 'use';
}

/** Dotted names of torch, torch_npu and apex that the file imports or uses for certain. */
function* mentionsOf(file: NpuFile): Generator<Mention> {
  const { module, names } = file;
  for (const node of descend(module.root)) {
    if (node.kind === 'import_statement') {
      for (const part of partsOf(node)) {
        const dotted = part.kind === 'aliased_import' ? partsOf(part)[0]! : part;
        yield { dotted: canonicalName(textOf(module, dotted)), node: dotted, how: 'import' };
      }
    } else if (node.kind === 'import_from_statement') {
      const [from, ...members] = partsOf(node);
      if (from === undefined) continue;
      const base = textOf(module, from);
      for (const part of members) {
        const member = part.kind === 'aliased_import' ? partsOf(part)[0]! : part;
        if (part.kind === 'wildcard_import') yield { dotted: canonicalName(base), node: from, how: 'from' };
        else yield { dotted: canonicalName(`${base}.${textOf(module, member)}`), node: member, how: 'from' };
      }
    } else if (node.kind === 'attribute' && node.parent?.kind !== 'attribute') {
      const resolved = resolveName(names, node);
      if (resolved.certain) yield { dotted: resolved.names[0]!, node, how: 'use' };
    }
  }
}

/** Last parts that are ordinary words need their module beside them. */
const ORDINARY: Readonly<Record<string, string>> = {
  data: 'torch_npu\\.utils\\b.*\\bdata',
  amp: '(?<!\\b(?:cuda|npu|torch)\\.)amp',
  Mish: 'contrib\\b.*\\bMish',
  SiLU: 'contrib\\b.*\\bSiLU',
  Swish: 'contrib\\b.*\\bSwish',
  pipeline: 'contrib\\b.*\\bpipeline',
  profile: 'npu\\.profile',
  NPU: 'ProfilerActivity',
  slice: 'torch\\.slice',
};
const lastPart = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

const ALL = [...UNKNOWN.keys(), ...DEPRECATED_NAMES.keys(), ...REMOVED_NAMES.keys()];

/** Without one of these words a file mentions none of the names. */
export const NAME_WORDS = new RegExp(
  `\\b(?:${[...new Set([...ALL.filter((name) => listed(name, ALL) === name), 'apex'].map(lastPart))].map((part) => ORDINARY[part] ?? part).join('|')})\\b`,
);

/** Names told of one file. */
const MAX_NAMES = 100;

/** Names that are not there, no longer there, or not for long. */
export function nameOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  const found: Occurrence[] = [];
  const imported = new Set<string>();
  for (const { dotted, node, how } of mentionsOf(file)) {
    if (found.length >= MAX_NAMES) break;
    const apex = /^apex\.optimizers\.(NpuFused\w+)$/.exec(dotted);
    if (apex && how !== 'use') found.push(occurrence('deprecated-name', dotted, `torch_npu.optim.${apex[1]}`));
    const name = listed(dotted, ALL);
    if (name === null) continue;
    // A name that is nowhere, tried before that of another card: on an NPU the other card's is always taken.
    const isAlwaysOther = UNKNOWN.has(name) && how !== 'use' && fallsBackToCuda(module, node);
    if (isGuarded(module, node) && !isAlwaysOther) continue;
    // One finding for the import; what the file does with it follows from that.
    if (how !== 'use') imported.add(name);
    else if (imported.has(name) && !textOf(module, node).startsWith('torch')) continue;
    if (UNKNOWN.has(name)) {
      // With transfer_to_npu, torch.profiler is torch_npu's, which has the member.
      if (name.startsWith('torch.profiler.') && file.isTransferred) continue;
      const tried = isAlwaysOther ? ({ severity: 'medium', params: { tried: 'yes' } } as const) : {};
      found.push({
        ...occurrence('unknown-name', name, UNKNOWN.get(name)!),
        ...tried,
        site: siteOf(module, node, renaming(file, name, node, how)),
      });
    } else if (REMOVED_NAMES.has(name)) {
      found.push({ ...occurrence('removed-name', name, null), params: { last: REMOVED_NAMES.get(name)! } });
    } else if (dotted === name) {
      const replacements = DEPRECATED_NAMES.get(name)!;
      found.push(occurrence('deprecated-name', name, replacements.length === 0 ? null : replacements.join(', ')));
    }

    function occurrence(kind: Occurrence['kind'], of: string, replacement: string | null): Occurrence {
      return { kind, name: of, replacement, confidence: 'high', site: siteOf(module, node) };
    }
  }
  return found;
}

function fallsBackToCuda(module: PyModule, node: PyNode): boolean {
  let inner = node;
  for (const up of ascend(node)) {
    if (up.kind === 'try_statement' && inner.kind === 'block')
      return partsOf(up).some((part) => part.kind === 'except_clause' && /\btorch\.cuda\b/.test(textOf(module, part)));
    inner = up;
  }
  return false;
}

/** The same thing under its true name, where the line says it in full. */
function renaming(file: NpuFile, name: string, node: PyNode, how: Mention['how']) {
  const { module } = file;
  const target = RENAMED.get(name);
  if (target === undefined) return null;
  const written = textOf(module, node);
  if (how === 'import')
    return written === name || written.startsWith(`${name}.`) ? replaced(file, node, target + written.slice(name.length)) : null;
  if (how === 'from') {
    const statement = node.parent?.kind === 'aliased_import' ? node.parent.parent : node.parent;
    const parts = statement ? partsOf(statement) : [];
    const from = parts[0];
    if (from === undefined) return null;
    const base = textOf(module, from);
    // `from torch_npu.amp import …`: all members move with their module.
    if (base === name || base.startsWith(`${name}.`)) return replaced(file, from, target + base.slice(name.length));
    // `from torch_npu import amp`: only when nothing else comes from there, and the name stays what it was.
    const [parent, member] = [target.slice(0, target.lastIndexOf('.')), target.slice(target.lastIndexOf('.') + 1)];
    return parts.length === 2 && written === member ? replaced(file, from, parent) : null;
  }
  // The part of the attribute that is the name; `import torch_npu as tn` keeps its alias.
  for (let at = node; at.kind === 'attribute'; at = partsOf(at)[0]!) {
    if (certainName(file, at) !== name) continue;
    const text = textOf(module, at);
    const own = text.startsWith('torch_npu.') ? target : target.replace(/^torch_npu(?=\.)/, text.split('.')[0]!);
    if (!text.startsWith('torch_npu.') && !target.startsWith('torch_npu.')) return null;
    if (target.startsWith('torch.') && !importsTorch(file)) return null;
    return replaced(file, at, own);
  }
  return null;
}

function importsTorch(file: NpuFile): boolean {
  return (
    file.names.bindings
      .get(file.module.root)
      ?.get('torch')
      ?.every((binding) => binding.kind === 'import' && binding.name === 'torch') === true
  );
}

const FUSED = ['Adadelta', 'Adam', 'AdamP', 'AdamW', 'BertAdam', 'Lamb', 'RMSprop', 'RMSpropTF', 'SGD'].map(
  (name) => `torch_npu.optim.NpuFused${name}`,
);
/** Keywords that torch's optimizers take and the NPU ones do not. */
const NOT_FUSED = ['fused', 'foreach', 'maximize', 'capturable', 'differentiable'];
/** Results are tuples, whose first member is the tensor. */
const TUPLES = ['torch_npu.npu_fusion_attention', 'torch_npu.npu_rms_norm', 'torch_npu.npu_group_norm_silu', 'torch_npu.npu_add_rms_norm'];

/** The same for calls. */
export const CALL_WORDS = /NpuFused|\bnpu_(?:fusion_attention|rms_norm|group_norm_silu|add_rms_norm)\b|\.prefetch\(/;

/** Arguments that the callable does not take, and results that are not what the code takes them for. */
export function callOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  const found: Occurrence[] = [];
  for (const call of certainCalls(file, FUSED)) {
    const wanted = call.name!.endsWith('AdamW') ? [...NOT_FUSED, 'momentum'] : NOT_FUSED;
    for (const { keyword } of call.arguments) {
      if (keyword === null || !wanted.includes(keyword) || isGuarded(module, call.node)) continue;
      found.push({
        kind: 'unknown-keyword',
        name: `${call.name}(${keyword})`,
        replacement: null,
        confidence: 'high',
        site: siteOf(module, call.node),
      });
    }
  }
  for (const call of certainCalls(file, TUPLES)) {
    const member = call.node.parent?.kind === 'attribute' ? partsOf(call.node.parent)[1] : undefined;
    if (member === undefined || ['count', 'index'].includes(textOf(module, member))) continue;
    found.push({
      kind: 'tuple-result',
      name: call.name!,
      replacement: null,
      confidence: 'high',
      params: { member: textOf(module, member) },
      site: siteOf(module, call.node),
    });
  }
  for (const call of certainCalls(file, ['torch_npu.npu_fusion_attention'])) {
    const keep = argumentOf(call, 'keep_prob', 9);
    if (keep === null || !/^0(\.0*)?$/.test(keep.text)) continue;
    found.push({
      kind: 'inverted-argument',
      name: 'keep_prob',
      replacement: '1.0',
      confidence: 'high',
      params: { value: keep.text },
      site: siteOf(module, call.node, replaced(file, keep.value, '1.0')),
    });
  }
  return [...found, ...prefetchOccurrences(file)];
}

const DATASETS = ['DataLoader', 'Dataset', 'TensorDataset', 'Subset', 'ConcatDataset', 'IterableDataset', 'ChainDataset'].map(
  (name) => `torch.utils.data.${name}`,
);

/** `prefetch` is a method of tf.data; torch's datasets and loaders have none. */
function prefetchOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  const found: Occurrence[] = [];
  for (const node of descend(module.root)) {
    if (node.kind !== 'call' || node.children[0]?.kind !== 'attribute') continue;
    const [object, member] = partsOf(node.children[0]);
    if (object === undefined || member === undefined || textOf(module, member) !== 'prefetch') continue;
    const made = madeBy(file, object);
    const name = made?.kind === 'call' ? certainName(file, made.children[0]!) : null;
    if (name === null || !DATASETS.includes(name)) continue;
    found.push({
      kind: 'no-such-method',
      name: `${name.split('.').at(-1)}.prefetch`,
      replacement: 'torch.utils.data.DataLoader(prefetch_factor)',
      confidence: 'high',
      site: siteOf(module, node),
    });
  }
  return found;
}

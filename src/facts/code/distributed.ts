import type { Occurrence } from '../../model/code.ts';
import { argumentOf } from '../../source/calls.ts';
import { assignedValue, bindingsFor } from '../../source/names.ts';
import { descend, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import {
  certainCalls,
  certainName,
  functionAround,
  isGuarded,
  isSwitched,
  type NpuFile,
  once,
  replaced,
  scopeOf,
  siteOf,
} from './npu-file.ts';

/** Callables that take a backend by name: keyword and position. */
const BACKENDS: readonly (readonly [callable: string, keyword: string, position: number | null])[] = [
  ['torch.distributed.init_process_group', 'backend', 0],
  ['torch.distributed.new_group', 'backend', 2],
  ['deepspeed.init_distributed', 'dist_backend', 0],
];

const PARALLEL = ['torch.nn.DataParallel', 'torch.nn.parallel.DataParallel', 'torch.nn.parallel.data_parallel.DataParallel'];

/** Backends of another card, and wrappers that do not work on this one. `isTransferred`: somewhere the repository translates CUDA names. */
export function distributedOccurrences(file: NpuFile, isTransferred: boolean): Occurrence[] {
  const { module } = file;
  const found: Occurrence[] = [];
  if (!file.isNpuOnly) return [];
  // A file that names both backends chooses between them.
  if (!isTransferred && !/["']hccl["']/.test(module.text)) {
    for (const [callable, keyword, position] of BACKENDS) {
      for (const call of certainCalls(file, [callable])) {
        const backend = argumentOf(call, keyword, position);
        if (backend === null || !/^["']nccl["']$/.test(backend.text)) continue;
        if (isGuarded(module, call.node) || isSwitched(file, call.node)) continue;
        const quote = backend.text[0]!;
        found.push({
          kind: 'nccl-backend',
          name: 'nccl',
          replacement: 'hccl',
          confidence: 'high',
          site: siteOf(module, call.node, replaced(file, backend.value, `${quote}hccl${quote}`)),
        });
      }
    }
  }
  for (const call of certainCalls(file, PARALLEL)) {
    if (isGuarded(module, call.node) || (!file.isTransferred && isSwitched(file, call.node))) continue;
    // One card: the wrapper only hands its input on.
    const ids = argumentOf(call, 'device_ids', 1)?.value;
    if (ids?.kind === 'list' && partsOf(ids).length === 1) continue;
    found.push({
      kind: 'data-parallel',
      name: 'torch.nn.DataParallel',
      replacement: 'torch.nn.parallel.DistributedDataParallel',
      confidence: 'high',
      site: siteOf(module, call.node),
    });
  }
  return found;
}

const DDP = 'torch.nn.parallel.DistributedDataParallel';
const SET_DEVICE = ['torch_npu.npu.set_device', 'torch.cuda.set_device'];

/** Cards chosen by the rank in the whole job. Only where the file shows that the number is that rank. */
export function rankOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  const found: Occurrence[] = [];
  if (staysOnOneNode(file)) return found;
  const joined = joinedAs(file);
  const report = (node: PyNode, rank: PyNode): void => {
    const isProven = isGlobalRank(file, rank);
    if (!(isProven || joined.has(textOf(module, rank))) || isGuarded(module, node) || isForAnotherCard(file, node)) return;
    const local = localRank(file, rank);
    const edit = local === null ? null : replaced(file, rank, local);
    found.push({
      kind: 'global-rank',
      name: textOf(module, rank),
      replacement: local ?? 'LOCAL_RANK',
      confidence: isProven ? 'high' : 'medium',
      site: siteOf(module, node, edit),
    });
  };
  for (const call of certainCalls(file, [DDP])) {
    const ids = argumentOf(call, 'device_ids', 1)?.value;
    const [only, ...others] = ids?.kind === 'list' ? partsOf(ids) : [];
    if (only && others.length === 0) report(call.node, only);
  }
  for (const call of certainCalls(file, SET_DEVICE)) {
    const isNpu = call.name === 'torch_npu.npu.set_device' || file.isTransferred;
    const device = argumentOf(call, 'device', 0)?.value;
    if (isNpu && device) report(call.node, rankInDevice(file, device) ?? device);
  }
  for (const node of descend(module.root)) {
    const rank = node.kind === 'string' ? rankInDevice(file, node) : null;
    const around = node.parent?.parent;
    // Only where the string becomes a device, not where it is printed.
    if (rank && around?.kind === 'call' && /(^|\.)(device|to)$/.test(textOf(module, around.children[0]!))) report(around, rank);
  }
  const lines = new Set<number>();
  return found.filter(({ site }) => !lines.has(site.startLine) && lines.add(site.startLine));
}

/** Options under which the process joins the whole job, `init_process_group(rank=args.rank)`, and that nothing in the file sets. */
function joinedAs(file: NpuFile): ReadonlySet<string> {
  const { module } = file;
  // Processes that one script spawns are counted on one machine.
  if (/\bspawn\(/.test(module.text)) return new Set();
  return new Set(
    certainCalls(file, ['torch.distributed.init_process_group']).flatMap((call) => {
      const rank = argumentOf(call, 'rank', 4)?.value;
      const text = rank === undefined ? '' : textOf(module, rank);
      const isOption = rank?.kind === 'attribute' && /rank$/i.test(text) && !/local/i.test(text);
      const isSet = new RegExp(`${escaped(text)}\\s*(?:[-+*/%|&]|//)?=(?!=)`).test(module.text);
      return isOption && !isSet ? [text] : [];
    }),
  );
}

/** Foreign text as a pattern for itself. */
function escaped(text: string): string {
  return text.replaceAll(/\W/g, '\\$&');
}

/** The job is as large as the node has cards, so that both ranks are the same. */
function staysOnOneNode(file: NpuFile): boolean {
  return certainCalls(file, ['torch.distributed.init_process_group']).some((call) => {
    const size = argumentOf(call, 'world_size', 3)?.text ?? '';
    if (/127\.0\.0\.1|localhost/.test(argumentOf(call, 'init_method', 1)?.text ?? '')) return true;
    return /per_?node|device_count|n_?(gpu|npu|device|proc)/i.test(size);
  });
}

function isForAnotherCard(file: NpuFile, node: PyNode): boolean {
  const name = functionAround(file.module, node);
  if (name !== null && /cuda|gpu/i.test(name)) return true;
  for (let at: PyNode | null = node; at !== null; at = at.parent)
    if ((at.kind === 'if_statement' || at.kind === 'elif_clause') && /cuda|gpu/i.test(textOf(file.module, partsOf(at)[0]!)))
      return !file.isTransferred;
  return false;
}

/** `f"npu:{rank}"` */
function rankInDevice({ module, isTransferred }: NpuFile, node: PyNode): PyNode | null {
  if (node.kind !== 'string') return null;
  const match = /^f["'](npu|cuda):\{[\w.]+\}["']$/.exec(textOf(module, node));
  if (match === null || (match[1] === 'cuda' && !isTransferred)) return null;
  for (const inside of descend(node)) if (inside.kind === 'interpolation') return partsOf(inside)[0] ?? null;
  return null;
}

/** Every value the name may have in this file is the rank in the whole job. */
function isGlobalRank(file: NpuFile, node: PyNode): boolean {
  const { module, names } = file;
  if (node.kind === 'call') return isRankValue(file, node);
  const text = textOf(module, node);
  if (/local/i.test(text)) return false;
  if (node.kind === 'identifier') {
    const bindings = bindingsFor(names, node, text) ?? [];
    return (
      bindings.length > 0 &&
      bindings.every(({ at }) => {
        const value = at.kind === 'assignment' && partsOf(at)[0]?.kind === 'identifier' ? assignedValue(at) : undefined;
        return value !== undefined && isRankValue(file, value);
      })
    );
  }
  return node.kind === 'attribute' && isAlwaysRank(file, text);
}

/** `args.rank = dist.get_rank()`, and nothing else is ever given to it here. */
function isAlwaysRank(file: NpuFile, text: string): boolean {
  const given = once(file, 'attributes that are given a value', () => attributesGiven(file)).get(text);
  return given?.every((value) => value !== null && isRankValue(file, value)) ?? false;
}

/** Dotted names in the targets of assignments, with what they are given alone; null: they are a part of the target. */
function attributesGiven({ module }: NpuFile): ReadonlyMap<string, readonly (PyNode | null)[]> {
  const found = new Map<string, (PyNode | null)[]>();
  for (const at of descend(module.root)) {
    if (at.kind !== 'assignment' && at.kind !== 'augmented_assignment') continue;
    const target = partsOf(at)[0];
    if (target === undefined) continue;
    const written = textOf(module, target);
    const value = assignedValue(at) ?? null;
    for (const [name] of written.matchAll(/(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+(?![\w.])/g)) {
      const given = found.get(name) ?? [];
      found.set(name, given);
      given.push(name === written ? value : null);
    }
  }
  return found;
}

const RANK_READ =
  /^(?:int\()?\s*(?:os\.)?(?:environ\[["']RANK["']\]|environ\.get\(\s*["']RANK["'][^()]*\)|getenv\(\s*["']RANK["'][^()]*\))\s*\)?$/;

function isRankValue(file: NpuFile, value: PyNode): boolean {
  if (value.kind === 'call' && certainName(file, value.children[0]!) === 'torch.distributed.get_rank')
    return value.children.at(-1)!.kind === 'argument_list' && partsOf(value.children.at(-1)!).length === 0;
  return RANK_READ.test(textOf(file.module, value));
}

/**
 * A name that holds the rank on this machine, where the rank of the job is used; null when there is none. It must have been given such a
 * value before, on every way to the place: by a statement of the same function that nothing guards.
 */
function localRank(file: NpuFile, node: PyNode): string | null {
  const wanted = node.kind === 'attribute' ? textOf(file.module, node).replace(/\.\w+$/, '.local_rank') : 'local_rank';
  const scope = scopeOf(node);
  const given = once(file, `local ranks ${scope.start} ${scope.end}`, () => localRanksOf(file, scope)).get(wanted) ?? [];
  if (given.length === 0 || !given.every(({ isLocal }) => isLocal)) return null;
  return given.some(({ at, isAlways }) => isAlways && at.end <= node.start) ? wanted : null;
}

interface GivenRank {
  readonly at: PyNode;
  readonly isAlways: boolean;
  readonly isLocal: boolean;
}

/** Values that `local_rank` and `….local_rank` are given in a function, or at the top of the file. */
function localRanksOf({ module }: NpuFile, scope: PyNode): ReadonlyMap<string, readonly GivenRank[]> {
  const found = new Map<string, GivenRank[]>();
  for (const at of descend(scope)) {
    if (!ASSIGNS.has(at.kind) || scopeOf(at) !== scope) continue;
    const target = partsOf(at)[0];
    const value = at.kind === 'assignment' ? assignedValue(at) : undefined;
    for (const name of target === undefined ? [] : (textOf(module, target).slice(0, MAX_TARGET).match(LOCAL) ?? [])) {
      const isWhole = target !== undefined && textOf(module, target) === name;
      const text = value === undefined ? '' : textOf(module, value);
      const given = found.get(name) ?? [];
      found.set(name, given);
      given.push({ at, isAlways: runsAlways(at, scope), isLocal: isWhole && text.length <= MAX_TARGET && isLocalValue(text) });
    }
  }
  return found;
}

const ASSIGNS = new Set(['assignment', 'augmented_assignment', 'named_expression', 'for_statement', 'as_pattern', 'delete_statement']);
const LOCAL = /(?<![\w.])(?:\w+\.)*local_rank(?![\w.])/g;
const MAX_TARGET = 200;

/** What torchrun sets, or a count within the node. A default of -1 is no card. */
function isLocalValue(text: string): boolean {
  return !/-\s*1\b|\bNone\b/.test(text) && /["']LOCAL_RANK["']|get_local_rank\(\)|get_node_local_rank\(\)|%\s*[\w.]/.test(text);
}

/** A statement of the function itself: no condition, loop or handler around it. */
function runsAlways(at: PyNode, scope: PyNode): boolean {
  const statement = at.parent;
  if (at.kind !== 'assignment' || statement?.kind !== 'expression_statement') return false;
  const block = statement.parent;
  return block === scope || (block?.kind === 'block' && block.parent === scope);
}

import type { Occurrence } from '../../model/code.ts';
import { argumentOf, findMethodCalls, type PyCall } from '../../source/calls.ts';
import { dropOnlyKeyword } from '../../source/edit-call.ts';
import { applySteps } from '../../source/edit-tree.ts';
import { replaceLiteral } from '../../source/replace-literal.ts';
import { descend, lineAt, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import {
  certainCalls,
  certainName,
  edited,
  functionAround,
  isGuarded,
  isSwitched,
  madeBy,
  type NpuFile,
  once,
  siteOf,
} from './npu-file.ts';

/** Libraries that scale the loss themselves, or run the optimizer. */
const LOOPS =
  /\b(accelerate|deepspeed|transformers|trl|lightning|pytorch_lightning|megatron|mindspeed|apex|mmengine|mmcv|fairscale|colossalai)\b/;

const AUTOCAST = [
  'torch_npu.npu.amp.autocast',
  'torch_npu.npu.amp.autocast_mode.autocast',
  'torch.autocast',
  'torch.amp.autocast',
  'torch.amp.autocast_mode.autocast',
];
const SCALERS = [
  'torch_npu.npu.amp.GradScaler',
  'torch_npu.npu.amp.grad_scaler.GradScaler',
  'torch.amp.GradScaler',
  'torch.cuda.amp.GradScaler',
];

/** Half precision for certain: said, or the default of torch_npu's own autocast. */
function isHalf(file: NpuFile, call: PyCall): boolean {
  const isOwn = call.name!.startsWith('torch_npu.');
  if (call.hasStarArgs || call.hasKeywordArgs) return false;
  if (argumentOf(call, 'enabled', isOwn ? 0 : 2)?.text === 'False') return false;
  if (!isOwn && !/^["']npu(:\d+)?["']$/.test(argumentOf(call, 'device_type', 0)?.text ?? '')) return false;
  const dtype = argumentOf(call, 'dtype', 1);
  if (dtype === null) return isOwn;
  return ['torch.float16', 'torch.half'].includes(certainName(file, dtype.value) ?? '');
}

/** A training loop under autocast, without a word of scaling: whoever scales, then the question is not ours. */
export function mayTrainInHalf(text: string): boolean {
  return (
    text.includes('autocast') && text.includes('.backward(') && !/scal(er|e_|ing)|loss_?scale|\bscale\(/i.test(text) && !LOOPS.test(text)
  );
}

/** Gradients of float16 that nothing keeps from vanishing. */
export function precisionOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  const optimizers = findMethodCalls(module, ['step']).filter((call) => /optim|^opt\b/i.test(call.written));
  if (optimizers.length === 0) return [];
  const found: Occurrence[] = [];
  for (const call of certainCalls(file, AUTOCAST)) {
    if (!isHalf(file, call) || isGuarded(module, call.node) || !trainsUnder(file, call)) continue;
    if (!file.isNpuOnly && isSwitched(file, call.node)) continue;
    found.push({
      kind: 'fp16-without-scaler',
      name: call.written,
      replacement: 'torch_npu.npu.amp.GradScaler',
      confidence: 'medium',
      site: siteOf(module, call.node),
    });
  }
  return found;
}

/** The same function runs the backward pass, and it is no evaluation. */
function trainsUnder(file: NpuFile, call: PyCall): boolean {
  const { module } = file;
  const own = functionAround(module, call.node);
  if (own !== null && /eval|valid|test|infer|predict|generate|sample/i.test(own)) return false;
  const last = once(file, 'backward', () => {
    const lines = new Map<string | null, number>();
    for (const { node, span } of findMethodCalls(module, ['backward'])) lines.set(functionAround(module, node), span.startLine);
    return lines;
  }).get(own);
  return last !== undefined && last > call.span.startLine;
}

const ADAMW = ['torch.optim.AdamW', 'torch.optim.adamw.AdamW'];

/** The fused kernel ignores what the scaler tells it: it steps on scaled gradients, and on infinite ones. */
export function fusedOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  if (!file.isNpuOnly) return [];
  const scalers = certainCalls(file, SCALERS).filter((call) => argumentOf(call, 'enabled', null)?.text !== 'False');
  if (scalers.length === 0) return [];
  const stepped = findMethodCalls(module, ['step']).flatMap(({ node, arguments: given }) => {
    const object = partsOf(node.children[0]!)[0];
    const made = object ? madeBy(file, object) : null;
    return made !== null && scalers.some((scaler) => scaler.node === made) && given[0] ? [given[0].value] : [];
  });
  return certainCalls(file, ADAMW).flatMap((call): Occurrence[] => {
    if (argumentOf(call, 'fused')?.text !== 'True' || isGuarded(module, call.node) || isSwitched(file, call.node)) return [];
    if (!stepped.some((optimizer) => madeBy(file, optimizer) === call.node)) return [];
    const edit = edited(file, () => replaceLiteral(module, call, 'fused', 'True', 'False').edit);
    return [
      {
        kind: 'fused-optimizer-with-scaler',
        name: 'torch.optim.AdamW(fused)',
        replacement: null,
        confidence: 'medium',
        site: siteOf(module, call.node, edit),
      },
    ];
  });
}

/** NPU optimizers keep gradients in one buffer, so they refuse to drop them. */
export function gradientOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  return findMethodCalls(module, ['zero_grad']).flatMap((call): Occurrence[] => {
    const given = argumentOf(call, 'set_to_none', 0);
    const object = partsOf(call.node.children[0]!)[0];
    const made = object ? madeBy(file, object) : null;
    const name = made?.kind === 'call' ? certainName(file, made.children[0]!) : null;
    if (given?.text !== 'True' || name === null || !/^torch_npu\.optim\.NpuFused\w+$/.test(name) || isGuarded(module, call.node)) return [];
    const edit = edited(file, () => {
      const { steps } = dropOnlyKeyword(call, 'set_to_none');
      return steps === null ? null : applySteps(module, steps).edit;
    });
    return [{ kind: 'gradients-set-to-none', name: name, replacement: null, confidence: 'high', site: siteOf(module, call.node, edit) }];
  });
}

/** Private formats in code that trains: by number, or switched on. */
export function formatOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  const found: Occurrence[] = [];
  const isTraining = /\.backward\(/.test(module.text);
  for (const node of descend(module.root)) {
    if (node.kind !== 'call') continue;
    const callable = node.children[0]!;
    const isOwn = certainName(file, callable) === 'torch_npu.npu_format_cast';
    const isMethod = callable.kind === 'attribute' && textOf(module, partsOf(callable)[1]!) === 'npu_format_cast' && !isOwn;
    if (!isOwn && !isMethod) continue;
    const format = node.children.at(-1)!.kind === 'argument_list' ? partsOf(node.children.at(-1)!)[isOwn ? 1 : 0] : undefined;
    if (format?.kind !== 'integer') continue;
    const number = textOf(module, format);
    const comment = commentOn(file, node);
    const isMistaken = number === '29' && /(?<![\w])ND(?![\w])/.test(comment.slice(comment.indexOf('#'))) && !/NZ/i.test(comment);
    if (isMistaken || (isTraining && ['3', '29'].includes(number)))
      found.push({
        kind: 'private-format',
        name: isMistaken ? 'ND' : number === '29' ? 'FRACTAL_NZ' : 'NC1HWC0',
        replacement: 'torch_npu.Format.ND',
        confidence: 'high',
        severity: isMistaken ? 'medium' : 'info',
        params: { number, mistaken: isMistaken ? 'yes' : '' },
        site: siteOf(module, node),
      });
  }
  if (!isTraining) return found;
  for (const node of descend(module.root)) {
    if (node.kind !== 'assignment') continue;
    const [target, value] = partsOf(node);
    if (target?.kind !== 'attribute' || value?.kind !== 'true' || isSwitched(file, node)) continue;
    if (certainName(file, target) !== 'torch_npu.npu.config.allow_internal_format') continue;
    found.push({
      kind: 'private-format',
      name: 'allow_internal_format',
      replacement: null,
      confidence: 'high',
      severity: 'info',
      params: { number: '', mistaken: '' },
      site: siteOf(module, node),
    });
  }
  return found;
}

function commentOn({ module }: NpuFile, node: PyNode): string {
  const line = lineAt(module.lineStarts, Math.max(node.start, node.end - 1));
  return module.text.slice(node.end, module.lineStarts[line] ?? module.text.length);
}

/** TorchScript is a no-op once CUDA names are translated. */
export function scriptOccurrences(file: NpuFile): Occurrence[] {
  const { module } = file;
  if (!file.isTransferred) return [];
  const found: Occurrence[] = [];
  for (const node of descend(module.root)) {
    const isDecorator = node.kind === 'decorator' && partsOf(node)[0]?.kind === 'attribute';
    const callable = isDecorator ? partsOf(node)[0]! : node.kind === 'call' ? node.children[0]! : null;
    if (callable === null || !['torch.jit.script', 'torch.jit.script_method'].includes(certainName(file, callable) ?? '')) continue;
    found.push({ kind: 'script-disabled', name: 'torch.jit.script', replacement: null, confidence: 'high', site: siteOf(module, node) });
  }
  return found;
}

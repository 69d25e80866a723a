import type { SourceTree } from '../../model/source-tree.ts';
import { findCalls } from '../../source/calls.ts';
import { replaceNode } from '../../source/edit-statement.ts';
import { namesOf, resolveName } from '../../source/names.ts';
import { pythonFilesWhere } from '../../source/python-files.ts';
import { isAside } from '../../source/readable-paths.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { isTrainingFile } from './loaders.ts';
import { rootOf } from './loops.ts';
import { functionAround, type Proposal, statementOf } from './offers.ts';

function modulesWith(tree: SourceTree, pattern: RegExp, proven: readonly string[]): readonly PyModule[] {
  return pythonFilesWhere(
    tree,
    (text) => pattern.test(text) && /\btorch\b/.test(text),
    (path) => proven.includes(path) || (!isAside(path) && isTrainingFile(path)),
  ).modules;
}

/** Constants that mean the same in an assignment and in a fill, whatever the type of the tensor. */
const CONSTANT = /^(-?\d+|True|False|-?float\(\s*["']-?inf["']\s*\)|-?(torch|math)\.inf)$/;
const ANY_CONSTANT = /^(-?[\d.]+(e-?\d+)?|True|False|-?float\([^()]*\)|-?(torch|math|np)\.inf)$/i;

/** `x[x > 0] = c`: a boolean index, which looks the positions up first. `x.masked_fill_(x > 0, c)` writes in one kernel. */
export function maskedAssignments(tree: SourceTree, proven: readonly string[]): Proposal[] {
  return modulesWith(tree, /\]\s*=[^=]/, proven).flatMap((module) => {
    const found: Proposal[] = [];
    let looked = 0;
    for (const node of descend(module.root)) {
      if (node.kind !== 'assignment' || node.parent?.kind !== 'expression_statement') continue;
      const [target, value, ...rest] = partsOf(node);
      if (target?.kind !== 'subscript' || value === undefined || rest.length > 0 || node.children.some((child) => child.kind === ':'))
        continue;
      const [tensor, index, ...more] = partsOf(target);
      if (tensor?.kind !== 'identifier' || index === undefined || more.length > 0) continue;
      const constant = textOf(module, value);
      if (value.end - value.start > MAX_EXPRESSION || !ANY_CONSTANT.test(constant)) continue;
      if (++looked > MAX_LOOKED) break;
      const mask = maskOf(module, node, textOf(module, tensor), index);
      if (mask === null) continue;
      const text = `${textOf(module, tensor)}.masked_fill_(${textOf(module, index)}, ${constant})`;
      const { steps } = replaceNode(module, node, text);
      if (steps === null || text.includes('\n') || isOnHost(module, node, textOf(module, tensor))) continue;
      const isSafe = mask === 'own' && CONSTANT.test(constant) && isTensor(module, node, textOf(module, tensor));
      found.push({ module, node: node.parent, steps, isSafe });
    }
    return found;
  });
}

/** A file with more of them is generated; each costs a walk over its function. */
const MAX_LOOKED = 100;

/** Calls that give an array of numpy, or something else that is no tensor on a card. */
const GIVES_ARRAY = /\b(np|numpy|cv2|pd|scipy|Image|ndimage)\.|\.numpy\(|\bimread\(|\.tolist\(/;
/** Functions whose work is done before a batch reaches the card. */
const PREPARES = /(^|_)(load|read|collate|transform|augment|preprocess|prepare_data)|__getitem__|__call__|dataset/i;

/** True when the name is bound to an array in its function, or the function prepares data: nothing there waits for the card. */
function isOnHost(module: PyModule, at: PyNode, name: string): boolean {
  const scope = functionAround(at);
  const called = scope === null ? undefined : partsOf(scope).find((part) => part.kind === 'identifier');
  if (called && PREPARES.test(textOf(module, called))) return true;
  for (const node of descend(scope ?? module.root)) {
    if (node.kind !== 'assignment') continue;
    const [target, value] = partsOf(node);
    if (target === undefined || value === undefined || !GIVES_ARRAY.test(textOf(module, value))) continue;
    if ([...descend(target)].some((part) => part.kind === 'identifier' && textOf(module, part) === name)) return true;
  }
  return false;
}

/** Longer ones are no masks that people write. */
const MAX_EXPRESSION = 200;

const COMPARISONS = /^(?:\(\s*)?(.+?)\s*(?:==|!=|<=|>=|<|>)\s*(.+?)(?:\s*\))?$/;

/** `own`: a comparison of the tensor itself, so the shapes are equal; `other`: some comparison; null: not known to be a mask. */
function maskOf(module: PyModule, at: PyNode, tensor: string, index: PyNode): 'own' | 'other' | null {
  if (index.kind === 'identifier') {
    const name = textOf(module, index);
    const value = assignedJustBefore(module, at, name, tensor);
    return value === null ? null : maskOf(module, at, tensor, value);
  }
  const text = textOf(module, index);
  if (text.length > MAX_EXPRESSION) return null;
  if (index.kind === 'comparison_operator') {
    const sides = COMPARISONS.exec(text.slice(0, 500));
    const operators = index.children.filter((child) => !child.named).length;
    const isSimple = sides !== null && operators === 1 && !/\b(in|is|not)\b/.test(text);
    if (!isSimple) return null;
    // The other side is a number, or its shape could widen the mask.
    const other = sides[1] === tensor ? sides[2]! : sides[2] === tensor ? sides[1]! : null;
    return other !== null && /^-?[\d.]+(e-?\d+)?$|^[A-Z][A-Z0-9_]*$|ignore_index$|pad_token_id$|pad_id$/.test(other) ? 'own' : 'other';
  }
  const call = /^(?:torch\.(?:isnan|isinf)\(\s*([\w.]+)\s*\)|([\w.]+)\.(?:isnan|isinf)\(\s*\))$/.exec(text);
  if (call !== null) return (call[1] ?? call[2]) === tensor ? 'own' : 'other';
  return index.kind === 'unary_operator' && text.startsWith('~') ? maskOf(module, at, tensor, unwrapped(partsOf(index)[0]!)) : null;
}

function unwrapped(node: PyNode): PyNode {
  return node.kind === 'parenthesized_expression' ? partsOf(node)[0]! : node;
}

/** The value of `mask = …` in a statement before in the same block, with neither name bound again in between. */
function assignedJustBefore(module: PyModule, at: PyNode, name: string, tensor: string): PyNode | null {
  const statement = statementOf(at);
  if (statement === null) return null;
  const siblings = partsOf(statement.parent!);
  for (let i = siblings.indexOf(statement) - 1, back = 0; i >= 0 && back < 8; i--, back++) {
    const [assignment] = partsOf(siblings[i]!);
    if (siblings[i]!.kind !== 'expression_statement' || assignment?.kind !== 'assignment') return null;
    const [target, value] = partsOf(assignment);
    if (target?.kind === 'identifier' && textOf(module, target) === name) return value ?? null;
    if (target === undefined || rootOf(module, target) === tensor) return null;
  }
  return null;
}

const MAKES = new Set(
  `zeros ones empty full rand randn randint arange tensor as_tensor zeros_like ones_like full_like empty_like rand_like randn_like matmul bmm
  baddbmm einsum cat stack where softmax sigmoid tanh exp log sqrt add sub mul div clamp abs sum mean tril triu cdist squeeze unsqueeze
  masked_fill`
    .split(/\s+/)
    .map((name) => `torch.${name}`),
);
/** Functions that give one tensor whatever their options are: none with indices, weights or lists beside it. */
const FUNCTIONAL = new Set(
  `relu relu6 gelu silu elu selu leaky_relu softplus hardswish mish sigmoid tanh softmax log_softmax logsigmoid normalize linear bilinear
  conv1d conv2d conv3d layer_norm group_norm dropout pad interpolate one_hot embedding cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss
  binary_cross_entropy binary_cross_entropy_with_logits kl_div cosine_similarity scaled_dot_product_attention`
    .split(/\s+/)
    .map((name) => `torch.nn.functional.${name}`),
);
/** Methods that only tensors have. */
const TENSOR_METHOD = /\.(npu|cuda|to|float|half|bfloat16|detach|softmax|masked_fill|permute|contiguous|clone)\([^()]*\)$/;

/** A call that gives one tensor. `torch.where` does with three arguments; with the condition alone it gives a tuple of indices. */
function givesTensor(module: PyModule, value: PyNode): boolean {
  if (value.kind !== 'call') return false;
  if (TENSOR_METHOD.test(textOf(module, value)) && value.children[0]?.kind === 'attribute') return true;
  const { names, certain } = resolveName(namesOf(module), value.children[0]!);
  const [name] = names;
  if (name === undefined || !certain) return false;
  if (name !== 'torch.where') return MAKES.has(name) || FUNCTIONAL.has(name);
  const list = value.children.at(-1)!;
  const given = list.kind === 'argument_list' ? partsOf(list) : [];
  return given.length === 3 && given.every(({ kind }) => !['keyword_argument', 'list_splat', 'dictionary_splat'].includes(kind));
}

const BINDS = new Set([
  'for_statement',
  'for_in_clause',
  'as_pattern_target',
  'named_expression',
  'with_item',
  'global_statement',
  'nonlocal_statement',
]);

/** True when every binding of the name in its function is a tensor: an annotation, a torch call, a method only tensors have. */
function isTensor(module: PyModule, at: PyNode, name: string): boolean {
  const scope = functionAround(at) ?? module.root;
  const mentions = (node: PyNode): boolean =>
    [...descend(node)].some((part) => part.kind === 'identifier' && textOf(module, part) === name);
  let known = false;
  for (const node of descend(scope)) {
    if (node.kind === 'parameters' && node.parent === scope) {
      for (const parameter of partsOf(node)) {
        const [first, type] = partsOf(parameter);
        const isTyped = parameter.kind === 'typed_parameter' || parameter.kind === 'typed_default_parameter';
        if (textOf(module, isTyped ? first! : parameter.kind === 'identifier' ? parameter : (first ?? parameter)) !== name) continue;
        if (!isTyped || type === undefined || !/^(torch\.)?\w*Tensor$/.test(textOf(module, type))) return false;
        known = true;
      }
    }
    const [target, value] = partsOf(node);
    if (BINDS.has(node.kind) && target !== undefined && mentions(target)) return false;
    if (node.kind !== 'assignment' || target === undefined) continue;
    if (target.kind === 'identifier' && textOf(module, target) === name) {
      if (value === undefined || value.end - value.start > MAX_EXPRESSION || !givesTensor(module, value)) return false;
      known ||= node.end <= at.start;
    } else if (['pattern_list', 'tuple_pattern', 'list_pattern'].includes(target.kind) && mentions(target)) return false;
  }
  return known;
}

/**
 * `x.permute(…).contiguous().view(…)`: `reshape` copies only where the strides ask for it. The values are the same. Never one click: where
 * dimensions are merged it copies as before, and where it does not copy, a later `view` or collective may ask for the contiguous result.
 */
export function copiesBeforeView(tree: SourceTree, proven: readonly string[]): Proposal[] {
  return modulesWith(tree, /\.contiguous\(\s*\)\s*\\?\s*\.\s*view\(/, proven).flatMap((module) =>
    [...descend(module.root)]
      .filter(isViewCall(module))
      .slice(0, MAX_LOOKED)
      .flatMap((node): Proposal[] => {
        const view = methodCall(module, node);
        const copy = view?.member === 'view' ? methodCall(module, view.object) : null;
        const turned = copy?.member === 'contiguous' && copy.list === '()' ? methodCall(module, copy.object) : null;
        if (view === null || copy === null || turned === null || !/^(permute|transpose|t|swapaxes|movedim)$/.test(turned.member)) return [];
        if (/dtype|torch\.\w+/.test(view.list) || view.list === '()') return [];
        const start = copy.object.end;
        const end = view.listNode.start;
        if (module.text.slice(start, end).includes('#')) return [];
        const callable = node.children[0]!;
        const text = `${module.text.slice(callable.start, start)}.reshape`;
        const { steps } = replaceNode(module, callable, text);
        return steps === null ? [] : [{ module, node, steps, isSafe: false }];
      }),
  );
}

function isViewCall(module: PyModule): (node: PyNode) => boolean {
  return (node) => methodCall(module, node)?.member === 'view';
}

const PRODUCTS = ['torch.matmul', 'torch.bmm', 'torch.nn.functional.linear'];

/** `torch.matmul(q, k.transpose(-2, -1).contiguous())`: the product takes the view as it is. */
export function copiesBeforeProduct(tree: SourceTree, proven: readonly string[]): Proposal[] {
  return modulesWith(tree, /\.contiguous\(\s*\)/, proven).flatMap((module) => {
    const names = namesOf(module);
    const operands = [
      ...findCalls(module, PRODUCTS, names)
        .filter(({ name }) => name !== null)
        .flatMap(({ arguments: given }) => given.filter(({ keyword }) => keyword === null).map(({ value }) => value)),
      ...[...descend(module.root)]
        .filter((node) => node.kind === 'binary_operator' && node.children.some((child) => child.kind === '@'))
        .flatMap((node) => partsOf(node)),
    ];
    return operands.slice(0, 4 * MAX_LOOKED).flatMap((operand): Proposal[] => {
      const copy = methodCall(module, operand);
      const turned = copy?.member === 'contiguous' && copy.list === '()' ? methodCall(module, copy.object) : null;
      if (copy === null || turned === null || !/^(permute|transpose|t|swapaxes|movedim)$/.test(turned.member)) return [];
      if (module.text.slice(operand.start, operand.end).includes('#')) return [];
      const { steps } = replaceNode(module, operand, textOf(module, copy.object));
      return steps === null ? [] : [{ module, node: operand, steps, isSafe: !isInsideNpuCall(module, operand) }];
    });
  });
}

/** A fused operator around it may ask for contiguous memory. */
function isInsideNpuCall(module: PyModule, node: PyNode): boolean {
  for (const up of ascend(node)) {
    if (up.kind === 'block') return false;
    if (up.kind === 'call' && /npu_|all_reduce|all_gather|reduce_scatter|all_to_all|broadcast/.test(textOf(module, up.children[0]!)))
      return true;
  }
  return false;
}

interface Method {
  readonly object: PyNode;
  readonly member: string;
  /** The arguments as written, without blanks. */
  readonly list: string;
  readonly listNode: PyNode;
}

function methodCall(module: PyModule, node: PyNode): Method | null {
  if (node.kind !== 'call') return null;
  const callable = node.children[0];
  const listNode = node.children.at(-1);
  if (callable?.kind !== 'attribute' || listNode?.kind !== 'argument_list') return null;
  const [object, member] = partsOf(callable);
  if (object === undefined || member === undefined) return null;
  return { object, member: textOf(module, member), list: textOf(module, listNode).replaceAll(/\s/g, ''), listNode };
}

import type { FusionPattern } from '../../model/facts.ts';
import { type Flow, isSame, type KernelKind, lastOf } from './dataflow.ts';
import type { Tensor } from './tensors.ts';

/** One occurrence. Members are positions in the flow, ascending. */
export interface Match {
  readonly pattern: FusionPattern;
  readonly phase: 'forward' | 'backward';
  readonly members: readonly number[];
  readonly repeats: number;
  readonly needed: number;
  readonly staysNs: number;
}

const MULTIPLY = /^Muls?$/;
const ADD = /^(Adds?|Axpy(V2)?)$/;
const SUBTRACT = /^Subs?$/;
const DIVIDE = /^(RealDiv|Divs?)$/;
const POWER = /^(Pows?|Power|Square)$/;
const CAST = /^Cast$/;
const MEAN = /^Reduce(Mean|Sum)D?$/;
const SUM = /^ReduceSumD?$/;
const MAXIMUM = /^(ReduceMaxD?|ArgMaxWithValue)$/;
const SLICE = /^(Slice|StridedSlice|StridedSliceD|Split(V|D|VD)?)$/;
const CONCAT = /^Concat(D|V2)?$/;
const SOFTMAX = /^Softmax(V2)?$/;
const SOFTMAX_GRAD = /^(Softmax(V2)?Grad|ScaledMaskedSoftmaxGrad(V2)?)$/;
/** Half way to a fused attention: the scores still go through memory. */
const SCALED_SOFTMAX = /^ScaledMaskedSoftmax(V2)?$/;
const MASK = /^(MaskedFill|Select(V2)?|Where)$/;
const DROPOUT = /^(DropOutDoMask(V\d)?|MaskedScale)$/;
const SILU = /^(Swish|Silu)$/;
const SILU_GRAD = /^(Swish|Silu)Grad$/;
const BATCHED = /^BatchMatMul(V\d)?$/;
const PRODUCT = /^((Batch)?MatMul(V\d|Common)?|GroupedMatmul)$/;
const TRANSPOSE = /^TransposeD?(AiCore)?$/;
const STRIDED = /^AsStrided(AiCore)?$/;
const PICK = /^(GatherV2|Gather|GatherElements\w*|GatherNd|Index(V2)?)$/;
const PUT = /^(IndexPut(V2)?|ScatterElements\w*|ScatterAdd\w*|ScatterNd\w*|InplaceIndexAdd\w*|IndexAdd\w*|UnsortedSegmentSum)$/;
const ROTARY_MOVES = /^(ZerosLike|Fill|TensorMove|ViewCopy|Pad(V3|D)?|ReduceSumD?)$/;

/** Element by element over tensors of one size. */
export const ELEMENTWISE =
  /^(Adds?|Subs?|Muls?|RealDiv|Divs?|Axpy(V2)?|Addcmul|Addcdiv|Lerp|Neg|Abs|Sign|Exp(m1)?|Log(1p)?|Sqrt|Rsqrt|Square|Pows?|Power|Reciprocal|Sin|Cos|Tanh|Erfc?|Sigmoid|Relu(6|V2)?|LeakyRelu|Elu|Gelu(V2)?|FastGelu(V2)?|Swish|Silu|Mish|Softplus(V2)?|HardSwish|HardSigmoid|Clip\w*|Maximum|Minimum|MaskedFill|Select(V2)?|Where|Cast|Greater(Equal)?|Less(Equal)?|Equal|NotEqual|Logical(And|Or|Not)|(Relu|LeakyRelu|Elu|Gelu|FastGelu|Swish|Silu|Mish|Tanh|Sigmoid|Softplus(V2)?|HardSwish|HardSigmoid)(V2)?Grad)$/;

const SCORES = (k: KernelKind): boolean =>
  MULTIPLY.test(k.type) ||
  DIVIDE.test(k.type) ||
  ADD.test(k.type) ||
  SUBTRACT.test(k.type) ||
  MASK.test(k.type) ||
  CAST.test(k.type) ||
  k.type === 'Maximum';
const WEIGHTS = (k: KernelKind): boolean => CAST.test(k.type) || DROPOUT.test(k.type) || MULTIPLY.test(k.type);

/** Below this many rows a tensor of row figures is a scalar as likely as not. */
const MIN_ROWS = 2;
/** A backward block is as long as its formula; beyond this other work has been taken in. */
const MAX_BLOCK = 16;
/** Fewer repetitions of one expert's kernels are layers, not a loop. */
const MIN_EXPERTS = 4;

const bytes = (t: Tensor | undefined): number => (t === undefined ? 0 : t.elements * t.size);
const widest = (tensors: readonly Tensor[]): Tensor | undefined =>
  tensors.reduce<Tensor | undefined>((best, t) => (best === undefined || t.elements > best.elements ? t : best), undefined);
const reads = (k: KernelKind, elements: number): boolean => k.inputs.some((t) => t.elements === elements);
const writes = (k: KernelKind, elements: number): boolean => k.outputs.some((t) => t.elements === elements);

/** What of a forward sequence its backward is known by. */
interface Known {
  readonly pattern: FusionPattern;
  /** Elements of the tensor, and of one figure per row. */
  readonly full: number;
  readonly rows: number;
  readonly width: number;
  readonly casts: boolean;
  readonly needed: number;
  readonly productNs: number;
}

/** Marks kernels so that each is counted once, and finds what known operators compute. `taken` is by position; `nsOf` by position. */
export function findPatterns(f: Flow, taken: Uint8Array, nsOf: (at: number) => number): Match[] {
  const found: Match[] = [];
  const known: Known[] = [];
  const free = (at: number): boolean => at >= 0 && taken[at] === 0;
  const accept = (match: Match | null): boolean => {
    if (match === null || !match.members.every(free)) return false;
    for (const at of match.members) taken[at] = 1;
    found.push(match);
    return true;
  };
  const forward = (pattern: FusionPattern, members: readonly number[], needed: number): Match => ({
    pattern,
    phase: 'forward',
    members: [...new Set(members)].sort((a, b) => a - b),
    repeats: 1,
    needed,
    staysNs: 0,
  });
  for (const match of expertLoops(f, nsOf)) accept(match);
  const finder = once((k) => (k.outputs.length === 0 ? null : finderOf(k.type)));
  const isProduct = once((k) => PRODUCT.test(k.type));
  for (let at = 0; at < f.length; at++) {
    const k = f.kind(at);
    const find = k === null || taken[at] === 1 ? null : finder(k);
    if (k === null || find === null) continue;
    const one = find(f, at, k, nsOf);
    if (one === null || !accept(forward(one.known.pattern, one.members, one.needed))) continue;
    known.push(one.known);
    for (const own of one.owned ?? []) taken[own] = 1;
  }
  if (known.length > 0) for (const match of backwards(f, known, free)) accept(match);
  for (let at = 0; at < f.length; at++) {
    const k = f.kind(at);
    if (k === null || !free(at) || !isProduct(k)) continue;
    for (const input of k.inputs) {
      const copy = f.producer(at, input, 3);
      if (copy !== -1 && free(copy) && swaps(f.kind(copy)!, input, 'last')) accept(forward('transposed-product', [copy], 0));
    }
    const around = BATCHED.test(k.type) ? reordered(f, at, k).filter(free) : [];
    if (around.length > 0) accept(forward('transposed-batch', around, 0));
  }
  return found;
}

interface Forward {
  readonly members: readonly number[];
  readonly needed: number;
  readonly known: Known;
  /** Kernels that stay but belong to it. */
  readonly owned?: readonly number[];
}

type Finder = (f: Flow, at: number, k: KernelKind, nsOf: (at: number) => number) => Forward | null;

/** The formula that one kernel of it gives away. */
function finderOf(type: string): Finder | null {
  if (/^(Rsqrt|Sqrt)$/.test(type)) return norm;
  if (SILU.test(type)) return swiglu;
  if (type === 'Tanh' || type === 'Erf') return gelu;
  if (type === 'Neg') return rotary;
  if (SOFTMAX.test(type) || SCALED_SOFTMAX.test(type)) return softmax;
  return type === 'Exp' ? writtenSoftmax : null;
}

/** Kinds are few, kernels are many. */
export function once<V>(compute: (k: KernelKind) => V): (k: KernelKind) => V {
  const known = new Map<KernelKind, V>();
  return (k) => {
    let value = known.get(k);
    if (value === undefined && !known.has(k)) {
      value = compute(k);
      known.set(k, value);
    }
    return value as V;
  };
}

const remember = (pattern: FusionPattern, full: number, more: Partial<Known> = {}): Known => ({
  pattern,
  full,
  rows: 0,
  width: 0,
  casts: false,
  needed: 0,
  productNs: 0,
  ...more,
});

/** x · rsqrt(mean(x²) + ε) · γ, with or without the mean taken off first. The root is the one kernel on row figures that both have. */
function norm(f: Flow, at: number, root: KernelKind): Forward | null {
  const row = root.outputs[0]!;
  if (row.elements < MIN_ROWS || root.inputs.length !== 1) return null;
  const epsilon = f.producer(at, root.inputs[0]!);
  if (epsilon === -1 || !ADD.test(f.kind(epsilon)!.type) || !reads(f.kind(epsilon)!, row.elements)) return null;
  const members = [at, epsilon];
  let mean = f.producer(epsilon, f.kind(epsilon)!.inputs[0]!);
  if (mean !== -1 && (MULTIPLY.test(f.kind(mean)!.type) || DIVIDE.test(f.kind(mean)!.type))) {
    members.push(mean);
    mean = f.producer(mean, f.kind(mean)!.inputs[0]!);
  }
  if (mean === -1 || !MEAN.test(f.kind(mean)!.type)) return null;
  members.push(mean);
  const squares = widest(f.kind(mean)!.inputs)!;
  const width = squares.elements / row.elements;
  // Over the last axis, as the fused operators take it.
  if (!(width > 1) || lastOf(squares) !== width) return null;
  const square = f.producer(mean, squares);
  if (square === -1) return null;
  const squaring = f.kind(square)!;
  if (!POWER.test(squaring.type) && !(MULTIPLY.test(squaring.type) && squaring.inputs.every((t) => isSame(t, squaring.inputs[0]!))))
    return null;
  members.push(square);
  let source = squaring.inputs[0];
  if (source === undefined || source.elements !== squares.elements) return null;
  let first = square;
  let pattern: FusionPattern = 'rms-norm';
  const centring = f.producer(square, source);
  if (centring !== -1 && SUBTRACT.test(f.kind(centring)!.type) && reads(f.kind(centring)!, row.elements)) {
    pattern = 'layer-norm';
    members.push(centring);
    first = centring;
    const centre = f.kind(centring)!.inputs.find((t) => t.elements === row.elements)!;
    const average = f.producer(centring, centre);
    if (average !== -1 && MEAN.test(f.kind(average)!.type)) {
      members.push(average);
      first = average;
    }
    source = f.kind(centring)!.inputs.find((t) => t.elements === squares.elements) ?? source;
  }
  const widening = f.producer(first, source);
  const casts = widening !== -1 && CAST.test(f.kind(widening)!.type);
  if (casts) {
    members.push(widening);
    source = f.kind(widening)!.inputs[0] ?? source;
  }
  const scaling = f.consumer(at, row);
  if (scaling === -1) return null;
  const byRoot = root.type === 'Rsqrt' ? MULTIPLY : DIVIDE;
  if (!byRoot.test(f.kind(scaling)!.type) || !reads(f.kind(scaling)!, squares.elements)) return null;
  members.push(scaling);
  let result = f.kind(scaling)!.outputs[0]!;
  let last = scaling;
  let isWeighted = false;
  for (let n = 0; n < 3; n++) {
    const next = f.consumer(last, result, 4);
    const k = next === -1 ? null : f.kind(next);
    if (k === null || !writes(k, squares.elements)) break;
    const isWeight = MULTIPLY.test(k.type) && reads(k, width);
    const isBias = ADD.test(k.type) && reads(k, width) && isWeighted;
    if (!isWeight && !isBias && !CAST.test(k.type)) break;
    if (CAST.test(k.type) && !(k.outputs[0]!.size < result.size)) break;
    isWeighted ||= isWeight;
    members.push(next);
    last = next;
    result = k.outputs[0]!;
  }
  if (!isWeighted) return null;
  const needed = bytes(source) + bytes(result) + bytes(row) + width * result.size;
  return {
    members,
    needed,
    known: remember(pattern, squares.elements, {
      rows: row.elements,
      width,
      casts,
      // The backward reads the input and the gradient of the result, and writes the gradient of the input.
      needed: 2 * bytes(source) + bytes(result) + bytes(row) + 2 * width * result.size,
    }),
  };
}

/** silu(a) · b; both halves of one tensor when slices come first. */
function swiglu(f: Flow, at: number, silu: KernelKind): Forward | null {
  const gate = silu.inputs[0];
  const active = silu.outputs[0]!;
  if (gate === undefined || gate.elements !== active.elements) return null;
  const product = f.consumer(at, active, 4);
  if (product === -1) return null;
  const k = f.kind(product)!;
  if (!MULTIPLY.test(k.type) || k.inputs.length !== 2 || !k.inputs.every((t) => t.elements === active.elements)) return null;
  const members = [at, product];
  for (let i = at - 1; i >= Math.max(0, at - 4) && !f.isCut(i, at); i--) {
    const slice = f.kind(i);
    if (slice === null || !SLICE.test(slice.type)) continue;
    if (reads(slice, 2 * active.elements) && slice.outputs.every((t) => t.elements === active.elements)) members.push(i);
  }
  const isSplit = members.length > 2;
  const one = bytes(active);
  return { members, needed: 3 * one, known: remember('swiglu', active.elements, { casts: isSplit, needed: 5 * one }) };
}

/** GELU by its formula: with tanh after a cube and a sum, or with erf. */
function gelu(f: Flow, at: number, k: KernelKind): Forward | null {
  const x = k.inputs[0];
  if (x === undefined || x.elements !== k.outputs[0]!.elements) return null;
  const full = x.elements;
  const isStep = (of: KernelKind): boolean =>
    (MULTIPLY.test(of.type) || ADD.test(of.type) || POWER.test(of.type) || DIVIDE.test(of.type)) &&
    of.inputs.every((t) => t.elements === full) &&
    writes(of, full);
  const up = walkUp(f, at, x, full, isStep, 6);
  const down = walkDown(f, at, k.outputs[0]!, full, isStep, 3);
  const kinds = up.members.map((i) => f.kind(i)!);
  const sums = down.members.filter((i) => ADD.test(f.kind(i)!.type)).length;
  const products = down.members.filter((i) => MULTIPLY.test(f.kind(i)!.type)).length;
  if (sums === 0 || products === 0) return null;
  const isCubed = kinds.some((u) => POWER.test(u.type)) || kinds.filter((u) => MULTIPLY.test(u.type)).length >= 3;
  if (k.type === 'Tanh' && !(isCubed && kinds.some((u) => ADD.test(u.type)))) return null;
  if (k.type === 'Erf' && !kinds.some((u) => MULTIPLY.test(u.type) || DIVIDE.test(u.type))) return null;
  const members = [at, ...up.members, ...down.members];
  const one = bytes(x);
  return {
    members,
    needed: 2 * one,
    known: remember('gelu', full, { needed: 3 * one, casts: k.type === 'Erf' }),
  };
}

/** x · cos + [−x₂, x₁] · sin. */
function rotary(f: Flow, at: number, negation: KernelKind): Forward | null {
  const half = negation.outputs[0]!;
  const full = 2 * half.elements;
  if (negation.inputs.length !== 1) return null;
  const joining = f.consumer(at, half, 4);
  if (joining === -1 || !CONCAT.test(f.kind(joining)!.type) || !writes(f.kind(joining)!, full)) return null;
  const members = [at, joining];
  for (let i = joining - 1; i >= Math.max(0, joining - 5); i--) {
    const k = f.kind(i);
    if (k !== null && SLICE.test(k.type) && reads(k, full) && writes(k, half.elements)) members.push(i);
  }
  if (members.length < 3) return null;
  const turned = f.kind(joining)!.outputs[0]!;
  const bySine = f.consumer(joining, turned, 4);
  if (bySine === -1 || !MULTIPLY.test(f.kind(bySine)!.type) || !writes(f.kind(bySine)!, full)) return null;
  const adding = f.consumer(bySine, f.kind(bySine)!.outputs[0]!, 4);
  if (adding === -1 || !ADD.test(f.kind(adding)!.type) || !writes(f.kind(adding)!, full)) return null;
  const isByCosine = (i: number): boolean => {
    const k = i === -1 ? null : f.kind(i);
    return k !== null && i !== bySine && MULTIPLY.test(k.type) && writes(k, full);
  };
  const first = Math.min(...members);
  let byCosine = -1;
  for (let i = adding - 1; i >= Math.max(0, first - 4) && byCosine === -1; i--) if (isByCosine(i)) byCosine = i;
  if (byCosine === -1) return null;
  members.push(bySine, byCosine, adding);
  const table = f.kind(bySine)!.inputs.find((t) => t.elements !== full);
  const needed = 2 * bytes(turned) + 2 * bytes(table);
  return { members, needed, known: remember('rotary', full, { rows: table?.elements ?? 0, width: half.elements, needed }) };
}

/** A softmax with what is done to the scores before it: attention when products stand at both ends. */
function softmax(f: Flow, at: number, k: KernelKind, nsOf: (at: number) => number): Forward | null {
  const x = k.inputs[0];
  if (x === undefined || x.elements !== k.outputs[0]!.elements) return null;
  const full = x.elements;
  const width = lastOf(x);
  const up = walkUp(f, at, x, full, SCORES, 6);
  const down = walkDown(f, at, k.outputs[0]!, full, WEIGHTS, 4);
  const scores = up.stop === -1 ? null : f.kind(up.stop);
  const sum = down.stop === -1 ? null : f.kind(down.stop);
  const isScores = scores !== null && BATCHED.test(scores.type) && lastOf(scores.outputs[0]!) === width;
  const isSum = sum !== null && BATCHED.test(sum.type) && sum.inputs.some((t) => t.elements === full && lastOf(t) === width);
  if (isScores && isSum) {
    const members = [at, ...up.members, ...down.members];
    return { members, needed: 0, owned: [up.stop, down.stop], known: remember('attention', full, { productNs: nsOf(up.stop) }) };
  }
  if (SCALED_SOFTMAX.test(k.type)) return null;
  const members = [at, ...up.members];
  const isMasked = up.members.some((i) => MASK.test(f.kind(i)!.type));
  // The fused operator takes a boolean mask and rows of 32 to 8,192 figures, a multiple of 32.
  if (!isMasked || members.length < 3 || width < 32 || width > 8_192 || width % 32 !== 0) return null;
  if (up.members.some((i) => ADD.test(f.kind(i)!.type) || SUBTRACT.test(f.kind(i)!.type))) return null;
  const one = bytes(x);
  return { members, needed: 2 * one + full / 8, known: remember('masked-softmax', full, { needed: 3 * one }) };
}

/** exp(x − max) over its sum, or the logarithm of that. */
function writtenSoftmax(f: Flow, at: number, k: KernelKind): Forward | null {
  const x = k.inputs[0];
  if (x === undefined || x.elements !== k.outputs[0]!.elements) return null;
  const full = x.elements;
  const shift = f.producer(at, x);
  if (shift === -1 || !SUBTRACT.test(f.kind(shift)!.type)) return null;
  const top = f.kind(shift)!.inputs.find((t) => t.elements < full && full % t.elements === 0);
  if (top === undefined || top.elements < MIN_ROWS) return null;
  const maximum = f.producer(shift, top);
  if (maximum === -1 || !MAXIMUM.test(f.kind(maximum)!.type) || !reads(f.kind(maximum)!, full)) return null;
  const total = f.consumer(at, k.outputs[0]!, 4);
  if (total === -1 || !SUM.test(f.kind(total)!.type) || !writes(f.kind(total)!, top.elements)) return null;
  const members = [at, shift, maximum, total];
  const end = f.consumer(total, f.kind(total)!.outputs[0]!, 4);
  const last = end === -1 ? null : f.kind(end);
  if (last === null) return null;
  if (DIVIDE.test(last.type) && writes(last, full)) members.push(end);
  else if (last.type === 'Log') {
    members.push(end);
    const taking = f.consumer(end, last.outputs[0]!, 4);
    if (taking !== -1 && SUBTRACT.test(f.kind(taking)!.type) && writes(f.kind(taking)!, full)) members.push(taking);
  } else return null;
  return { members, needed: 2 * bytes(x), known: remember('softmax', full) };
}

interface Walk {
  readonly members: readonly number[];
  /** The kernel that ended the walk; -1 when none did. */
  readonly stop: number;
}

function walkUp(f: Flow, from: number, tensor: Tensor, elements: number, keep: (k: KernelKind) => boolean, max: number): Walk {
  const members: number[] = [];
  let at = from;
  let wanted: Tensor | undefined = tensor;
  while (wanted !== undefined) {
    at = f.producer(at, wanted, 4);
    if (at === -1 || members.length >= max || !keep(f.kind(at)!)) break;
    members.push(at);
    wanted = f.kind(at)!.inputs.find((t) => t.elements === elements);
    if (wanted === undefined) at = -1;
  }
  return { members, stop: at };
}

function walkDown(f: Flow, from: number, tensor: Tensor, elements: number, keep: (k: KernelKind) => boolean, max: number): Walk {
  const members: number[] = [];
  let at = from;
  let given: Tensor | undefined = tensor;
  while (given !== undefined) {
    at = f.consumer(at, given, 4);
    if (at === -1 || members.length >= max || !keep(f.kind(at)!)) break;
    members.push(at);
    given = f.kind(at)!.outputs.find((t) => t.elements === elements);
    if (given === undefined) at = -1;
  }
  return { members, stop: at };
}

/** The backward of what was found in the forward: known by one kernel that only it has, and the kernels on the same tensors around it. */
function* backwards(f: Flow, known: readonly Known[], free: (at: number) => boolean): Generator<Match> {
  const byFull = new Map<number, Known>();
  const byRows = new Map<number, Known>();
  const byHalf = new Map<number, Known>();
  for (const k of known) {
    byFull.set(k.full, k);
    if (k.pattern === 'rms-norm' || k.pattern === 'layer-norm') byRows.set(k.rows, k);
    if (k.pattern === 'rotary') byHalf.set(k.width, k);
  }
  const match = (of: Known, members: readonly number[], times = 1): Match => ({
    pattern: of.pattern,
    phase: 'backward',
    members: [...new Set(members)].sort((a, b) => a - b),
    repeats: 1,
    needed: of.needed * times,
    staysNs: of.productNs,
  });
  for (let at = 0; at < f.length; at++) {
    const k = f.kind(at);
    if (k === null || !k.isVector || !free(at) || k.outputs.length === 0) continue;
    const elements = k.outputs[0]!.elements;
    if (SOFTMAX_GRAD.test(k.type)) {
      const of = byFull.get(elements);
      if (of?.pattern === 'attention' || of?.pattern === 'masked-softmax') {
        const found = softmaxBackward(f, at, k, of);
        if (found !== null) yield match(of, found);
      }
      continue;
    }
    if (SILU_GRAD.test(k.type)) {
      const of = byFull.get(elements);
      const found = of?.pattern === 'swiglu' ? swigluBackward(f, at, k, of, free) : null;
      if (found !== null) yield match(of!, found);
      continue;
    }
    const isGeluGrad = k.type === 'TanhGrad' || k.type === 'Exp';
    const activation = isGeluGrad ? byFull.get(elements) : undefined;
    if (activation?.pattern === 'gelu' && (k.type === 'Exp') === activation.casts) {
      const block = around(f, at, free, (of) => ELEMENTWISE.test(of.type) && onlyOf(of, [elements]));
      if (block.length >= 3) yield match(activation, block);
      continue;
    }
    const turned = k.type === 'Neg' ? byHalf.get(elements) : undefined;
    if (turned !== undefined) {
      const moves = (of: KernelKind): boolean =>
        (ELEMENTWISE.test(of.type) || SLICE.test(of.type) || CONCAT.test(of.type) || ROTARY_MOVES.test(of.type)) &&
        onlyOf(of, [turned.full, turned.width, turned.rows]);
      const block = around(f, at, free, moves);
      const count = (test: RegExp): number => block.filter((i) => test.test(f.kind(i)!.type)).length;
      if (count(MULTIPLY) >= 2) yield match(turned, block, count(/^Neg$/));
      continue;
    }
    const row = byRows.get(elements);
    if (row !== undefined && (POWER.test(k.type) || MULTIPLY.test(k.type) || DIVIDE.test(k.type))) {
      const block = normBackward(f, at, row, free);
      if (block !== null) yield match(row, block);
    }
  }
}

const onlyOf = (k: KernelKind, sizes: readonly number[]): boolean => [...k.inputs, ...k.outputs].every((t) => sizes.includes(t.elements));

/** The unbroken run of kernels around one. Kernels of which nothing is known neither belong to it nor end it. */
function around(
  f: Flow,
  at: number,
  free: (at: number) => boolean,
  keep: (k: KernelKind) => boolean,
  ends: (k: KernelKind) => boolean = () => false,
): number[] {
  const out = [at];
  for (let i = at - 1; i >= 0 && i > at - MAX_BLOCK && !f.isCut(i, i + 1); i--) {
    const k = f.kind(i);
    if (k === null) continue;
    if (!free(i) || !k.isVector || !keep(k)) break;
    out.push(i);
  }
  for (let i = at + 1; i < f.length && i < at + MAX_BLOCK && !f.isCut(i - 1, i); i++) {
    const k = f.kind(i);
    if (k === null) continue;
    if (!free(i) || !k.isVector || !keep(k)) break;
    out.push(i);
    if (ends(k)) break;
  }
  return out;
}

/** Ends with the gradient of the input: narrowed again when the forward widened it, else the sum of its two parts. */
function normBackward(f: Flow, at: number, of: Known, free: (at: number) => boolean): number[] | null {
  const sizes = [of.full, of.rows, of.width];
  const keep = (k: KernelKind): boolean => (ELEMENTWISE.test(k.type) || MEAN.test(k.type)) && onlyOf(k, sizes);
  const isEnd = (k: KernelKind): boolean =>
    writes(k, of.full) && (of.casts ? CAST.test(k.type) && k.outputs[0]!.size < (k.inputs[0]?.size ?? 0) : ADD.test(k.type));
  const block = around(f, at, free, keep, isEnd);
  const count = (test: RegExp, elements: number): number =>
    block.filter((i) => test.test(f.kind(i)!.type) && reads(f.kind(i)!, elements)).length;
  return count(MULTIPLY, of.full) >= 3 && count(MEAN, of.full) >= 1 ? block : null;
}

function softmaxBackward(f: Flow, at: number, k: KernelKind, of: Known): number[] | null {
  const nearest = Math.max(...k.inputs.map((t) => f.producer(at, t, 4)));
  const up = nearest !== -1 && WEIGHTS(f.kind(nearest)!) && onlyOf(f.kind(nearest)!, [of.full]) ? [nearest] : [];
  const down = walkDown(f, at, k.outputs[0]!, of.full, SCORES, 4);
  if (of.pattern === 'masked-softmax') return down.members.length === 0 ? null : [at, ...down.members];
  return [at, ...up, ...down.members];
}

function swigluBackward(f: Flow, at: number, k: KernelKind, of: Known, free: (at: number) => boolean): number[] | null {
  const isProduct = (i: number): boolean => {
    const p = i < 0 || i >= f.length ? null : f.kind(i);
    return p !== null && free(i) && MULTIPLY.test(p.type) && p.inputs.length === 2 && onlyOf(p, [of.full]);
  };
  const products: number[] = [];
  for (let i = at - 1; i >= at - 4 && products.length < 2; i--) if (isProduct(i)) products.push(i);
  if (products.length < 2) return null;
  const joining = f.consumer(at, k.outputs[0]!, 4);
  const joins = joining !== -1 && CONCAT.test(f.kind(joining)!.type) && writes(f.kind(joining)!, 2 * of.full) ? [joining] : [];
  return [at, ...products, ...joins];
}

/** The same kernels for one expert after the other: what belongs to it is looked up, picked, multiplied and put back. */
function* expertLoops(f: Flow, nsOf: (at: number) => number): Generator<Match> {
  const starts: number[] = [];
  for (let at = 0; at < f.length; at++) if (f.kind(at)?.type === 'NonZero') starts.push(at);
  const bodyOf = (n: number): { types: string; weights: string; length: number } | null => {
    const from = starts[n]!;
    const to = n + 1 < starts.length ? starts[n + 1]! : Math.min(f.length, from + 64);
    const types: string[] = [];
    const weights: string[] = [];
    let length = 0;
    for (let at = from; at < to && at < from + 64; at++) {
      const k = f.kind(at);
      if (k === null) continue;
      types.push(k.type);
      if (PRODUCT.test(k.type)) weights.push((k.inputs[1]?.dims ?? []).join());
      // It ends where the rows are put back.
      if (PUT.test(k.type)) {
        length = at - from + 1;
        break;
      }
    }
    if (length === 0 || weights.length === 0 || !types.some((t) => PICK.test(t))) return null;
    return { types: types.join(), weights: weights.join(' '), length };
  };
  for (let n = 0; n < starts.length; ) {
    const body = bodyOf(n);
    let m = n + 1;
    if (body === null) {
      n = m;
      continue;
    }
    while (m < starts.length) {
      const next = bodyOf(m);
      const isNear = starts[m]! - starts[m - 1]! <= body.length + 8;
      if (next === null || !isNear || next.types !== body.types || next.weights !== body.weights) break;
      m++;
    }
    const repeats = m - n;
    if (repeats >= MIN_EXPERTS) {
      const members = Array.from({ length: repeats }, (_, e) => Array.from({ length: body.length }, (_, i) => starts[n + e]! + i)).flat();
      const products = members.filter((at) => PRODUCT.test(f.kind(at)?.type ?? ''));
      const staysNs = products.reduce((sum, at) => sum + nsOf(at), 0);
      yield { pattern: 'expert-loop', phase: 'forward', members, repeats, needed: Number.NaN, staysNs };
    }
    n = m;
  }
}

/** A copy of the whole tensor with two neighbouring axes swapped, the last two or the first two of three; `made` is what its reader reads. */
function swaps(k: KernelKind, made: Tensor, which: 'last' | 'first'): boolean {
  const from = k.inputs[0]?.dims;
  const to = k.outputs[0]?.dims;
  if (!TRANSPOSE.test(k.type) || from === undefined || to === undefined || from.length !== to.length || from.length < 2) return false;
  // A reader that sees other axes than were written needed the copy: merged axes lie one after the other only in it.
  if (to.join() !== made.dims.join()) return false;
  const n = to.length;
  if (which === 'first' && n !== 3) return false;
  const [a, b] = which === 'last' ? [n - 2, n - 1] : [0, 1];
  return from.every((d, i) => d === to[i === a ? b : i === b ? a : i]);
}

/** Copies in another order before and behind a batched product. */
function reordered(f: Flow, at: number, k: KernelKind): number[] {
  const out: number[] = [];
  for (const input of k.inputs) {
    const copy = f.producer(at, input, 3);
    const of = copy === -1 ? null : f.kind(copy);
    if (of === null) continue;
    const isStrided = STRIDED.test(of.type) && of.outputs[0]?.dims.join() === input.dims.join();
    if (isStrided || swaps(of, input, 'first')) out.push(copy);
  }
  const result = k.outputs[0];
  const back = result === undefined ? -1 : f.consumer(at, result, 3);
  if (back !== -1 && swaps(f.kind(back)!, f.kind(back)!.outputs[0]!, 'first')) out.push(back);
  return out;
}

import { covered } from '../../base/intervals.ts';
import type { Frame, RankCapture } from '../../model/capture.ts';
import { COMPUTE, type OptimizerFacts, type OptimizerKind, type Tape } from '../../model/facts.ts';
import { findCycle } from './fragments.ts';
import { type HostRange, hostRanges } from './host-ranges.ts';
import { fullText } from './kernel-groups.ts';
import { type StepWindow, windowAt } from './windows.ts';

const MAX_CALLS = 256;
/** A sequence that comes back so often is a loop over parameters. */
const MIN_REPEATS = 3;
/** Kernels of one operation over one long tensor: no more than a few groups of parameters have. */
const MAX_COMBINED = 60;

const FUSED =
  /^(Apply(Fused)?(Ema)?(Adam|AdamW|Adagrad|Adamax|Momentum|RMSProp|CenteredRMSProp|KerasMomentum|GradientDescent)\w*|Fused(Adam|AdamW|Sgd)\w*|SGD|Lamb\w*)$/;
const FILL = /^(ZerosLike|Fill|Zeros|MemSet|ForeachZero(Inplace)?)$/;

/** Tensors as large as a parameter that an operation reads and writes. */
const PASSES: readonly (readonly [types: RegExp, passes: number])[] = [
  [
    /^(Foreach)?(Muls|MulScalar|Adds|AddScalar|Divs|DivScalar|SubScalar|Sqrt|Rsqrt|Neg|Abs|Reciprocal|Square|Pows|PowScalar|Copy|Sign|Cast|TensorMove|Exp)(Inplace|List|V2)?$/,
    2,
  ],
  [/^Foreach(Mul|Div|Add|Sub)ScalarList(V2)?$/, 2],
  [/^(Foreach)?(Addcmul|Addcdiv)(Scalar|ScalarList|List)?(V2)?$/, 4],
  [/^(Foreach)?Lerp(Scalar|ScalarList|List)?(V2)?$/, 3],
  [/^(Axpy(V2)?|Maximum|Minimum|Foreach(Maximum|Minimum)List)$/, 3],
  [/^Foreach(Add|Sub|Mul|Div)List(V2)?$/, 3],
];
/** With a scalar as second operand these read one tensor, else two. */
const BY_OPERANDS = /^(Mul|Add|Sub|RealDiv|Div)$/;

/** Kernels of each step of an optimizer, and of gradients that are filled with zeros. null without the host ranges that name them. */
export function optimizerFacts(
  capture: RankCapture,
  windows: readonly StepWindow[],
  tape: Tape | null,
  rows: Int32Array,
): OptimizerFacts | null {
  if (capture.trace === null || tape === null) return null;
  const updates = hostRanges(capture, /^Optimizer\.step#/);
  const clears = hostRanges(capture, /^Optimizer\.zero_grad#/);
  if (updates.length === 0 && clears.length === 0) return null;
  const { nodesOf } = launchedIn(capture, tape);
  const take = (range: HostRange): { step: number; nodes: number[] } | null => {
    const step = windowAt(windows, range.start);
    const nodes = step === -1 ? [] : nodesOf(range);
    return nodes.length === 0 ? null : { step, nodes };
  };
  const calls = updates.slice(0, MAX_CALLS).flatMap((range) => {
    const taken = take(range);
    return taken === null ? [] : [callOf(capture, tape, rows, range, taken)];
  });
  const fills = clears.slice(0, MAX_CALLS).flatMap((range) => {
    const taken = take(range);
    if (taken === null) return [];
    const nodes = taken.nodes.filter((node) => FILL.test(operationOf(tape.types[tape.type[node]!]!)));
    if (nodes.length === 0) return [];
    return [
      {
        step: taken.step,
        nodes: Int32Array.from(nodes),
        ...spanOf(tape, nodes),
        ns: nsOf(tape, nodes),
        frame: frameOf(tape, nodes, range),
      },
    ];
  });
  return { calls, fills };
}

/** Kernels by the instant at which the framework asked for them; where the profile does not tell it, by their launch. */
function launchedIn(capture: RankCapture, tape: Tape): { nodesOf: (range: HostRange) => number[] } {
  const { issued } = capture.trace!;
  const at = new Float64Array(tape.start.length).fill(Number.NaN);
  const order: number[] = [];
  for (let node = 0; node < tape.start.length; node++) {
    if (tape.kind[node] !== COMPUTE) continue;
    at[node] = issued.get(tape.start[node]!)?.at ?? tape.launch[node]!;
    if (!Number.isNaN(at[node]!)) order.push(node);
  }
  order.sort((a, b) => at[a]! - at[b]!);
  const from = (instant: number): number => {
    let low = 0;
    let high = order.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (at[order[mid]!]! < instant) low = mid + 1;
      else high = mid;
    }
    return low;
  };
  return {
    nodesOf(range) {
      const out: number[] = [];
      for (let i = from(range.start); i < order.length && at[order[i]!]! <= range.end; i++) out.push(order[i]!);
      return out;
    },
  };
}

const nsOf = (tape: Tape, nodes: readonly number[]): number => nodes.reduce((sum, node) => sum + tape.duration[node]!, 0);

function spanOf(tape: Tape, nodes: readonly number[]): { start: number; end: number } {
  let start = Number.POSITIVE_INFINITY;
  let end = Number.NEGATIVE_INFINITY;
  for (const node of nodes) {
    start = Math.min(start, tape.start[node]!);
    end = Math.max(end, tape.start[node]! + tape.duration[node]!);
  }
  return { start, end };
}

function frameOf(tape: Tape, nodes: readonly number[], range: HostRange): Frame | null {
  if (range.frame !== null) return range.frame;
  const framed = nodes.find((node) => tape.frame[node]! >= 0);
  return framed === undefined ? null : (tape.frames[tape.frame[framed]!] ?? null);
}

type Call = OptimizerFacts['calls'][number];

function callOf(
  capture: RankCapture,
  tape: Tape,
  rows: Int32Array,
  range: HostRange,
  { step, nodes }: { step: number; nodes: readonly number[] },
): Call {
  const type = (node: number): string => operationOf(tape.types[tape.type[node]!]!);
  const ns = nsOf(tape, nodes);
  const share = (test: RegExp): number =>
    nsOf(
      tape,
      nodes.filter((node) => test.test(type(node))),
    ) / ns;
  const cycle = findCycle(nodes.map((node) => tape.type[node]!));
  const isLoop = cycle.repeats >= MIN_REPEATS;
  const kind: OptimizerKind =
    share(FUSED) >= 0.5
      ? 'fused'
      : share(/^Foreach/) >= 0.5
        ? 'foreach'
        : isLoop
          ? 'loop'
          : nodes.length <= MAX_COMBINED
            ? 'combined'
            : 'other';
  const turn = kind === 'loop' ? nodes.slice(0, cycle.period) : nodes;
  const span = spanOf(tape, nodes);
  return {
    step,
    name: /^Optimizer\.step#(\w+)\.step/.exec(range.name)?.[1] ?? '',
    kind,
    ...span,
    nodes: Int32Array.from(nodes),
    ns,
    idle: Math.max(0, span.end - span.start - covered(tape.busy, span.start, span.end)),
    period: kind === 'loop' ? cycle.period : 0,
    repeats: kind === 'loop' ? cycle.repeats : 0,
    types: nodes.slice(0, Math.min(16, cycle.repeats >= 2 ? cycle.period : nodes.length)).map(type),
    passes: kind === 'fused' || kind === 'other' ? Number.NaN : passesOf(capture, tape, rows, turn),
    tensors: kind === 'loop' ? cycle.repeats : kind === 'foreach' ? tensorsOf(capture, rows, nodes, type) : Number.NaN,
    frame: frameOf(tape, nodes, range),
  };
}

/** Without a kernel table the tape holds names: `aclnnForeachSqrt_ForeachSqrt_ForeachSqrt`. */
function operationOf(type: string): string {
  return type.startsWith('aclnn') ? type.slice(type.lastIndexOf('_') + 1) : type.replace(/AiCore$/, '');
}

/** Of a list cut into pieces every operation has as many kernels; one piece of each makes the update. */
function passesOf(capture: RankCapture, tape: Tape, rows: Int32Array, nodes: readonly number[]): number {
  const longest = nodes.reduce((most, node) => Math.max(most, tape.duration[node]!), 0);
  const counts = new Map<string, { count: number; passes: number }>();
  for (const node of nodes) {
    // Counters of steps and other scalars are parameters of the update, not of the model.
    if (tape.duration[node]! < 0.05 * longest) continue;
    const type = operationOf(tape.types[tape.type[node]!]!);
    const passes = BY_OPERANDS.test(type)
      ? byOperands(capture, rows[node]!)
      : (PASSES.find(([types]) => types.test(type))?.[1] ?? Number.NaN);
    const key = `${type} ${passes}`;
    const known = counts.get(key) ?? { count: 0, passes };
    known.count++;
    counts.set(key, known);
  }
  const pieces = Math.min(...[...counts.values()].map((c) => c.count));
  return [...counts.values()].reduce((sum, c) => sum + (c.passes * c.count) / pieces, 0);
}

function byOperands(capture: RankCapture, row: number): number {
  const { kernels, names } = capture;
  if (kernels === null || row === -1 || kernels.inputShapes[row]! < 0) return Number.NaN;
  const shapes = names.get(kernels.inputShapes[row]!).replaceAll('"', '').split(';');
  return shapes.filter((s) => s !== '' && s !== '1').length >= 2 ? 3 : 2;
}

/** Tensors in the results of one operation over the list; NaN when the list was too long to be read whole. */
function tensorsOf(capture: RankCapture, rows: Int32Array, nodes: readonly number[], type: (node: number) => string): number {
  const first = nodes.find((node) => /^ForeachSqrt/.test(type(node))) ?? nodes.find((node) => /^ForeachMulScalar/.test(type(node)));
  const { kernels, names } = capture;
  if (kernels === null || first === undefined) return Number.NaN;
  let count = 0;
  for (const node of nodes) {
    if (type(node) !== type(first) || rows[node] === -1) continue;
    const text = fullText(names, kernels.outputShapes[rows[node]!]!);
    if (text === '') return Number.NaN;
    count += text.split(';').length;
    if (/^ForeachMulScalar/.test(type(first))) break;
  }
  return count > 0 ? count : Number.NaN;
}

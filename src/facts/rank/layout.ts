import { type Column, i32 } from '../../base/columns.ts';
import { length, union, unionSorted } from '../../base/intervals.ts';
import type { Frame, KernelTable, RankCapture } from '../../model/capture.ts';
import { COMPUTE, type LayoutFacts, type Tape } from '../../model/facts.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** Kernels that only move data into another order or format. Cast is precision, not layout. */
const LAYOUT =
  /^(Transpose(D|V\d|AiCore)?|TransData(RNN)?|ConfusionTranspose\w*|AsStrided(AiCore)?|ViewCopy|TensorMove(AiCore)?|Contiguous\w*|Identity|Permute|NPUFormatCast)$/;
const INVERTIBLE = /^(Transpose(D|V2)?|TransData)$/;
/** A round trip may have this many ops in between, elementwise only. */
const REACH = 3;
/** Ops that keep layout: what may stand between two inverse conversions without needing the one in the middle. */
const ELEMENTWISE =
  /^(Add|Sub|Mul|Div|RealDiv|Muls|Adds|Axpy|Neg|Abs|Exp|Log|Sqrt|Rsqrt|Relu\w*|Gelu\w*|FastGelu\w*|Silu\w*|Swish\w*|Sigmoid\w*|Tanh\w*|Cast|Power|Pow|Maximum|Minimum|Clip\w*|Fill|Square|Reciprocal|LeakyRelu\w*|Elu\w*|Threshold\w*)$/;
const MAX_SITES = 20;

/** Layout kernels of each step, and those that undo each other: the second's output has the first one's input shape and format. */
export function layoutFacts(capture: RankCapture, windows: readonly StepWindow[], tape: Tape | null): LayoutFacts | null {
  const { kernels, names } = capture;
  if (kernels === null) return null;
  const isLayout = new Map<number, boolean>();
  const text = (id: number): string => (id >= 0 ? names.get(id) : '');
  const layoutId = (id: number): boolean => {
    let known = isLayout.get(id);
    if (known === undefined) {
      known = id >= 0 && LAYOUT.test(names.get(id));
      isLayout.set(id, known);
    }
    return known;
  };
  const nodeOf = computeNodes(tape);
  const byStep = new Map<number, Column<Int32Array>>();
  for (let i = 0; i < kernels.start.length; i++) {
    if (kernels.isCommunication[i] === 1 || Number.isNaN(kernels.start[i]!)) continue;
    const node = windows.length === 0 ? -1 : nodeOf(kernels.start[i]!);
    const step = windows.length === 0 ? 0 : node >= 0 ? tape!.step[node]! : windowAt(windows, kernels.start[i]!);
    if (step === -1) continue;
    let rows = byStep.get(step);
    if (rows === undefined) {
      rows = i32();
      byStep.set(step, rows);
    }
    rows.push(i);
  }
  const byType = new Map<string, { count: number; ns: number }>();
  const sites = new Map<string, { description: string; count: number; ns: number; frame: Frame | null; line: number }>();
  const steps: LayoutFacts['steps'][number][] = [];
  for (const [step, rows] of byStep) {
    const list = inOrder(rows.take(), kernels.start);
    const spans: [number, number][] = [];
    const starts = new Float64Array(list.length);
    const durations = new Float64Array(list.length);
    for (let i = 0; i < list.length; i++) {
      starts[i] = kernels.start[list[i]!]!;
      durations[i] = kernels.duration[list[i]!]!;
    }
    const removable = new Set<number>();
    let removableNs = 0;
    let count = 0;
    for (let i = 0; i < list.length; i++) {
      const row = list[i]!;
      const from = kernels.start[row]!;
      if (!layoutId(kernels.type[row]!)) continue;
      count++;
      spans.push([from, from + kernels.duration[row]!]);
      const type = text(kernels.type[row]!);
      const total = byType.get(type) ?? { count: 0, ns: 0 };
      total.count++;
      total.ns += kernels.duration[row]!;
      byType.set(type, total);
      if (!INVERTIBLE.test(type) || removable.has(row)) continue;
      const back = roundTrip(kernels, list, i, text);
      if (back === -1) continue;
      const other = list[back]!;
      for (const r of [row, other]) {
        removable.add(r);
        removableNs += kernels.duration[r]!;
      }
      const description = `${type} ${text(kernels.inputFormats[row]!)}→${text(kernels.outputFormats[row]!)} and back, shape ${unquote(text(kernels.inputShapes[row]!))}`;
      const site = sites.get(description);
      const ns = kernels.duration[row]! + kernels.duration[other]!;
      if (site !== undefined) {
        site.count++;
        site.ns += ns;
      } else if (sites.size < MAX_SITES) {
        const node = nodeOf(from);
        const frame = node >= 0 && tape !== null && tape.frame[node]! >= 0 ? (tape.frames[tape.frame[node]!] ?? null) : null;
        sites.set(description, { description, count: 1, ns, frame, line: kernels.line[row]! });
      }
    }
    const nodes = [...removable]
      .sort((a, b) => kernels.start[a]! - kernels.start[b]!)
      .map((row) => nodeOf(kernels.start[row]!))
      .filter((node) => node >= 0);
    steps.push({ step, count, ns: length(union(spans)), computeNs: length(unionSorted(starts, durations)), removable: nodes, removableNs });
  }
  steps.sort((a, b) => a.step - b.step);
  return {
    steps,
    byType: [...byType].map(([type, t]) => ({ type, ...t })).sort((a, b) => b.ns - a.ns),
    sites: [...sites.values()].sort((a, b) => b.ns - a.ns),
    typesFromNames: kernels.typesFromNames,
  };
}

/** Rows by start; most tables have them so. */
function inOrder(rows: Int32Array, start: Float64Array): Int32Array {
  const sorted = rows.every((row, i) => i === 0 || start[rows[i - 1]!]! <= start[row]!);
  return sorted ? rows : rows.sort((a, b) => start[a]! - start[b]!);
}

/** The computing node that starts at an instant; of several the last, -1 when there is none. */
function computeNodes(tape: Tape | null): (at: number) => number {
  if (tape === null) return () => -1;
  return (at) => {
    let low = 0;
    let high = tape.start.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (tape.start[mid]! <= at) low = mid + 1;
      else high = mid;
    }
    for (let i = low - 1; i >= 0 && tape.start[i] === at; i--) if (tape.kind[i] === COMPUTE) return i;
    return -1;
  };
}

function unquote(shape: string): string {
  return shape.replaceAll('"', '');
}

/** Position of the kernel that undoes `at`, at most three elementwise ops later; -1 when there is none or it cannot be told. */
function roundTrip(kernels: KernelTable, list: Int32Array, at: number, text: (id: number) => string): number {
  const first = list[at]!;
  const shapeIn = kernels.inputShapes[first]!;
  const shapeOut = kernels.outputShapes[first]!;
  if (shapeIn < 0 || shapeOut < 0) return -1;
  const formatIn = kernels.inputFormats[first]!;
  const formatOut = kernels.outputFormats[first]!;
  const inner = firstTensor(text(shapeOut));
  const outer = firstTensor(text(shapeIn));
  // A conversion that changes neither shape nor format (say, a square transpose) cannot be told from its inverse by shapes.
  if (inner === outer && formatIn === formatOut) return -1;
  for (let i = at + 1; i < list.length && i <= at + 1 + REACH; i++) {
    const row = list[i]!;
    const type = kernels.type[row]!;
    if (type === kernels.type[first]) {
      const same =
        firstTensor(text(kernels.inputShapes[row]!)) === inner &&
        firstTensor(text(kernels.outputShapes[row]!)) === outer &&
        kernels.inputFormats[row] === formatOut &&
        kernels.outputFormats[row] === formatIn;
      return same ? i : -1;
    }
    if (!ELEMENTWISE.test(text(type))) return -1;
    // Dataflow by shape: the op in between must work on the converted tensor.
    if (!text(kernels.inputShapes[row]!).includes(inner)) return -1;
  }
  return -1;
}

function firstTensor(shapes: string): string {
  return unquote(shapes).split(';')[0]!;
}

import { type Column, i32 } from '../../base/columns.ts';
import { NO_GROUP, type RankCapture } from '../../model/capture.ts';
import { COMMUNICATION, COMPUTE, type Tape } from '../../model/facts.ts';
import { fullText, type StepOf } from './kernel-groups.ts';
import { type Tensor, tensorsOf } from './tensors.ts';

/** What a kernel reads and writes. Kernels that agree in all of it share one. */
export interface KernelKind {
  readonly group: number;
  readonly type: string;
  /** Runs on vector cores alone. */
  readonly isVector: boolean;
  /** Tensors of more than one element; scalars are operands of no flow. */
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Share of its time in which the vector units, and the memory pipes, were busy; NaN when not measured. */
  readonly vec: number;
  readonly memory: number;
}

/** Kernels of one stream and step in order. Positions are indices into it. */
export interface Flow {
  readonly step: number;
  /** Nodes of the tape. */
  readonly nodes: Int32Array;
  readonly length: number;
  /** null: nothing is known of what the kernel reads or writes. */
  kind(at: number): KernelKind | null;
  /** The kernel before `at` that wrote what `tensor` describes, at most `reach` kernels away; -1 when there is none. */
  producer(at: number, tensor: Tensor, reach?: number): number;
  /** The first kernel behind `at` that reads what it wrote, before anything else writes such a tensor; -1 when there is none. */
  consumer(at: number, tensor: Tensor, reach?: number): number;
  /** True when a collective ran wholly between two kernels: what the later one reads may have come from there. */
  isCut(from: number, to: number): boolean;
}

/** A formula is written in one place: what it passes on is read this many kernels later at most. */
const REACH = 12;

/** The profile shows shapes, not addresses: a reshaped tensor is the same one. */
export function isSame(a: Tensor, b: Tensor): boolean {
  return a.elements === b.elements && a.type === b.type;
}

export function lastOf(tensor: Tensor): number {
  return tensor.dims[tensor.dims.length - 1] ?? 1;
}

const sum = (tensors: readonly Tensor[]): number => tensors.reduce((bytes, t) => bytes + t.elements * t.size, 0);

function kindOf(capture: RankCapture, group: number): KernelKind | null {
  const { names } = capture;
  const table = capture.kernels!.groups;
  const text = (id: number): string => (id >= 0 ? names.get(id) : '');
  const inputs = tensorsOf(fullText(names, table.inputShapes[group]!), fullText(names, table.inputTypes[group]!));
  const outputs = tensorsOf(fullText(names, table.outputShapes[group]!), fullText(names, table.outputTypes[group]!));
  if (inputs === null || outputs === null) return null;
  const real = (list: readonly Tensor[]): Tensor[] => list.filter((t) => t.elements > 1);
  const tensors = { inputs: real(inputs), outputs: real(outputs) };
  const { vec, mte2, mte3 } = table.pipes;
  return {
    group,
    type: text(table.type[group]!),
    isVector: /^(AI_VECTOR_CORE|MIX_AIV)$/.test(text(table.core[group]!)),
    ...tensors,
    bytesIn: sum(tensors.inputs),
    bytesOut: sum(tensors.outputs),
    vec: vec?.[group] ?? Number.NaN,
    memory: Math.max(mte2?.[group] ?? Number.NaN, mte3?.[group] ?? Number.NaN),
  };
}

/** The kernels of each step and stream with what they pass on; null when the profile does not tell what kernels write. */
export function flowsOf(capture: RankCapture, tape: Tape | null, rows: Int32Array, stepOf: StepOf): Flow[] | null {
  const { kernels } = capture;
  if (kernels === null || tape === null || kernels.typesFromNames) return null;
  if (!kernels.groups.outputShapes.some((id) => id >= 0) || !kernels.groups.outputTypes.some((id) => id >= 0)) return null;
  const lists = new Map<string, { step: number; nodes: Column<Int32Array> }>();
  const calls: { start: number; end: number }[] = [];
  for (let node = 0; node < tape.start.length; node++) {
    if (tape.kind[node] === COMMUNICATION) calls.push({ start: tape.start[node]!, end: tape.start[node]! + tape.duration[node]! });
    const row = rows[node]!;
    if (tape.kind[node] !== COMPUTE || row === -1) continue;
    const step = stepOf(node, row);
    if (step === -1) continue;
    const key = `${step} ${tape.stream[node]}`;
    let list = lists.get(key);
    if (list === undefined) {
      list = { step, nodes: i32(64) };
      lists.set(key, list);
    }
    list.nodes.push(node);
  }
  calls.sort((a, b) => a.end - b.end);
  const kinds = new Map<number, KernelKind | null>();
  const kind = (node: number): KernelKind | null => {
    const group = kernels.group[rows[node]!]!;
    if (group === NO_GROUP) return null;
    let known = kinds.get(group);
    if (known === undefined) {
      known = kindOf(capture, group);
      kinds.set(group, known);
    }
    return known;
  };
  return [...lists.values()].map(({ step, nodes }) => flow(step, nodes.take(), tape, calls, kind));
}

/** Clocks of streams agree to this, ns. */
const SLACK = 1_000;

function flow(
  step: number,
  nodes: Int32Array,
  tape: Tape,
  calls: readonly { start: number; end: number }[],
  kindOfNode: (node: number) => KernelKind | null,
): Flow {
  // By position: the latest start of the collectives that had ended when the kernel began.
  const latest = new Float64Array(nodes.length);
  let next = 0;
  let start = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < nodes.length; at++) {
    for (; next < calls.length && calls[next]!.end <= tape.start[nodes[at]!]! + SLACK; next++) start = Math.max(start, calls[next]!.start);
    latest[at] = start;
  }
  const kind = (at: number): KernelKind | null => kindOfNode(nodes[at]!);
  const isCut = (from: number, to: number): boolean => latest[to]! >= tape.start[nodes[from]!]! + tape.duration[nodes[from]!]! - SLACK;
  return {
    step,
    nodes,
    length: nodes.length,
    kind,
    isCut,
    producer(at, tensor, reach = REACH) {
      for (let i = at - 1; i >= 0 && i >= at - reach; i--)
        if (kind(i)?.outputs.some((t) => isSame(t, tensor))) return isCut(i, at) ? -1 : i;
      return -1;
    },
    consumer(at, tensor, reach = REACH) {
      for (let i = at + 1; i < nodes.length && i <= at + reach; i++) {
        const k = kind(i);
        if (k?.inputs.some((t) => isSame(t, tensor))) return isCut(at, i) ? -1 : i;
        if (k?.outputs.some((t) => isSame(t, tensor))) return -1;
      }
      return -1;
    },
  };
}

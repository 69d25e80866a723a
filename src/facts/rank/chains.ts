import { covered } from '../../base/intervals.ts';
import { type Frame, NO_GROUP, type RankCapture } from '../../model/capture.ts';
import { type ChainFacts, COMMUNICATION, COMPUTE, type Tape } from '../../model/facts.ts';
import { fullText, type StepOf } from './kernel-groups.ts';
import { type Tensor, tensorsOf } from './tensors.ts';

/** A shorter kernel neither matters nor interrupts a run: scalars and row sums stand between the large ones. ns. */
const LARGE = 50_000;
/** Two kernels are an operator and its neighbour; three in a row are a formula written out. */
const MIN_KERNELS = 3;
/** A kernel whose memory pipes are busy for less of its time waits for something else. */
const MEMORY_BOUND = 0.5;
const MAX_CHAINS = 10;
const MAX_NODES = 20_000;

/** Kernels that are no formula over one tensor: conversions, fills, random numbers, and fused calls over all parameters. */
const OTHER =
  /^(Trans|ConfusionTranspose|AsStrided|ViewCopy|TensorMove|Contiguous|Identity|Permute|NPUFormatCast|MemSet|ZerosLike|OnesLike|Fill|Foreach|Apply|FusedAdam|DSA|DropOut|Concat|Split|Slice|StridedSlice|Gather|Scatter|Index|Embedding|Sort|TopK|.*Norm(V\d|Grad|$)|.*Pool|.*Loss)/;

interface Kind {
  readonly type: string;
  readonly shape: string;
  /** Elements of the tensor that it streams. */
  readonly elements: number;
  /** Bytes read and written in all; of the streamed tensor's size: first input, other inputs, outputs. */
  readonly bytes: number;
  readonly first: number;
  readonly others: number;
  readonly out: number;
}

function kindOf(capture: RankCapture, group: number): Kind | null {
  const { names, kernels } = capture;
  const table = kernels!.groups;
  const text = (id: number): string => (id >= 0 ? names.get(id) : '');
  const type = text(table.type[group]!);
  const { vec, mte2, mte3 } = table.pipes;
  const memory = Math.max(mte2?.[group] ?? Number.NaN, mte3?.[group] ?? Number.NaN);
  if (!/^(AI_VECTOR_CORE|MIX_AIV)$/.test(text(table.core[group]!)) || OTHER.test(type)) return null;
  if (!(memory >= MEMORY_BOUND) || (vec?.[group] ?? Number.NaN) > memory) return null;
  const inputs = tensorsOf(fullText(names, table.inputShapes[group]!), fullText(names, table.inputTypes[group]!));
  const outputs = tensorsOf(fullText(names, table.outputShapes[group]!), fullText(names, table.outputTypes[group]!));
  if (inputs === null || outputs === null) return null;
  const elements = Math.max(...inputs.map((t) => t.elements));
  if (!(elements > 0)) return null;
  const full = (t: Tensor): boolean => t.elements === elements;
  const bytes = (list: readonly Tensor[]): number => list.reduce((sum, t) => sum + (t.elements > 1 ? t.elements * t.size : 0), 0);
  const streamed = inputs.filter(full);
  const all = bytes(inputs) + bytes(outputs);
  if (!Number.isFinite(all) || all === 0) return null;
  const first = bytes(streamed.slice(0, 1));
  return {
    type,
    shape: streamed[0]!.dims.join(','),
    elements,
    bytes: all,
    first,
    others: bytes(inputs) - first,
    out: bytes(outputs),
  };
}

/**
 * Runs of large vector kernels that stream the same tensor one after another and wait for memory. Fused into one kernel they would read
 * their inputs once and write one result; what lies between would never leave the core. An upper bound: training keeps some of it.
 */
export function chainFacts(capture: RankCapture, tape: Tape | null, rows: Int32Array, stepOf: StepOf): ChainFacts | null {
  const { kernels } = capture;
  if (kernels === null || tape === null || kernels.groups.pipes.mte2 === null) return null;
  const kinds = new Map<number, Kind | null>();
  const kind = (row: number): Kind | null => {
    const group = kernels.group[row]!;
    if (group === NO_GROUP) return null;
    let known = kinds.get(group);
    if (known === undefined) {
      known = kindOf(capture, group);
      kinds.set(group, known);
    }
    return known;
  };
  type Step = { step: number; ns: number; savedNs: number; nodes: number[]; left: number[] };
  const steps = new Map<number, Step>();
  type Chain = { -readonly [K in keyof ChainFacts['chains'][number]]: ChainFacts['chains'][number][K] };
  const chains = new Map<string, Chain>();
  let run: { node: number; kind: Kind }[] = [];
  let step = Number.NaN;
  let kept = 0;
  const flush = (): void => {
    const list = run;
    run = [];
    if (list.length < MIN_KERNELS || kept + list.length > MAX_NODES) return;
    const bytes = list.reduce((sum, { kind: k }) => sum + k.bytes, 0);
    const needed = list[0]!.kind.first + list.reduce((sum, { kind: k }) => sum + k.others, 0) + list[list.length - 1]!.kind.out;
    const left = Math.min(1, needed / bytes);
    const ns = list.reduce((sum, { node }) => sum + tape.duration[node]!, 0);
    const sum = steps.get(step) ?? { step, ns: 0, savedNs: 0, nodes: [], left: [] };
    steps.set(step, sum);
    sum.ns += ns;
    sum.savedNs += ns * (1 - left);
    for (const { node } of list) {
      sum.nodes.push(node);
      sum.left.push(left);
    }
    kept += list.length;
    const types = list.map(({ kind: k }) => k.type);
    const key = `${types.join()} ${list[0]!.kind.shape}`;
    const first = list[0]!.node;
    const known = chains.get(key);
    if (known !== undefined) {
      known.count++;
      known.ns += ns;
      known.savedNs += ns * (1 - left);
      known.bytes += bytes;
      return;
    }
    if (chains.size >= 1_000) return;
    const last = list[list.length - 1]!.node;
    const frame: Frame | null = tape.frame[first]! >= 0 ? (tape.frames[tape.frame[first]!] ?? null) : null;
    const start = tape.start[first]!;
    chains.set(key, {
      types: types.slice(0, 12),
      shape: list[0]!.kind.shape,
      count: 1,
      ns,
      savedNs: ns * (1 - left),
      bytes,
      frame,
      line: kernels.line[rows[first]!]!,
      start,
      duration: tape.start[last]! + tape.duration[last]! - start,
    });
  };
  for (let node = 0; node < tape.start.length; node++) {
    if (tape.duration[node]! < LARGE) continue;
    // What a collective exchanges has to be written and read again.
    if (tape.kind[node] === COMMUNICATION) flush();
    const row = rows[node]!;
    if (tape.kind[node] !== COMPUTE || row === -1) continue;
    const own = stepOf(node, row);
    if (own !== step) {
      flush();
      step = own;
    }
    const launch = tape.launch[node]!;
    const isOptimizer = !Number.isNaN(launch) && covered(tape.optimizer, launch, launch + 1) > 0;
    const k = isOptimizer ? null : kind(row);
    const last = run[run.length - 1];
    // The same operator again works on another tensor of that shape: a loop over parameters, not a formula.
    if (k === null || (last !== undefined && (last.kind.elements !== k.elements || last.kind.type === k.type))) flush();
    if (k !== null) run.push({ node, kind: k });
  }
  flush();
  return {
    steps: [...steps.values()].sort((a, b) => a.step - b.step),
    chains: [...chains.values()].sort((a, b) => b.savedNs - a.savedNs).slice(0, MAX_CHAINS),
  };
}

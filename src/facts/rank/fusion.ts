import { type Column, i32 } from '../../base/columns.ts';
import { covered } from '../../base/intervals.ts';
import type { Frame, RankCapture } from '../../model/capture.ts';
import type { CastFacts, FusionFacts, FusionPattern, FusionSequence, LayoutFacts, OptimizerFacts, Tape } from '../../model/facts.ts';
import { type Flow, flowsOf, isSame, type KernelKind } from './dataflow.ts';
import { findCycle } from './fragments.ts';
import { ELEMENTWISE, findPatterns, once } from './fusion-patterns.ts';
import type { StepOf } from './kernel-groups.ts';

/** Two element-wise kernels are an operator and its neighbour; three in a row are a formula written out. */
const MIN_CHAIN = 3;
/** A longer one is many formulas. */
const MAX_CHAIN = 24;
/** Kernels on other tensors that may stand between two of a chain. */
const MAX_BETWEEN = 2;
const MAX_SEQUENCES = 80;
/** Sequences told apart by their shapes, and in all. */
const MAX_EXACT = 60;
const MAX_BUILDING = 2_000;

type Building = { -readonly [K in keyof FusionSequence]: FusionSequence[K] } & {
  /** 4 bytes a kernel: each is in one sequence at most. */
  readonly list: Column<Int32Array>;
  readonly stepList: Column<Int32Array>;
};

interface Found {
  readonly pattern: FusionPattern | null;
  readonly phase: 'forward' | 'backward';
  /** Positions in the flow. */
  readonly members: readonly number[];
  readonly repeats: number;
  readonly needed: number;
  readonly staysNs: number;
}

/**
 * Kernels that one kernel could do: first what known operators compute, then chains of element-wise kernels. The profile holds no
 * addresses; that a kernel reads what another wrote is told by shape, type and order. `others`: kernels that belong to other facts.
 */
export function fusionFacts(
  capture: RankCapture,
  tape: Tape | null,
  rows: Int32Array,
  stepOf: StepOf,
  others: { readonly casts: CastFacts | null; readonly layout: LayoutFacts | null; readonly optimizers: OptimizerFacts | null },
): FusionFacts | null {
  const flows = flowsOf(capture, tape, rows, stepOf);
  if (flows === null || tape === null) return null;
  const gone = new Set<number>();
  for (const s of others.layout?.steps ?? []) for (const node of s.removable) gone.add(node);
  for (const s of others.casts?.steps ?? []) for (const node of s.removable) gone.add(node);
  for (const call of others.optimizers?.calls ?? []) for (const node of call.nodes) gone.add(node);
  const sequences = new Map<string, Building>();
  for (const flow of flows) {
    const taken = new Uint8Array(flow.length);
    for (let at = 0; at < flow.length; at++) if (gone.has(flow.nodes[at]!)) taken[at] = 1;
    const nsOf = (at: number): number => tape.duration[flow.nodes[at]!]!;
    const add = (found: Found): void => addTo(sequences, capture, tape, rows, flow, found);
    for (const match of findPatterns(flow, taken, nsOf)) add(match);
    for (const chain of chains(flow, taken)) add(chain);
  }
  const list = [...sequences.values()].sort((a, b) => b.ns - a.ns).slice(0, MAX_SEQUENCES);
  return {
    sequences: list.map(({ list: nodes, stepList, bytes, needed, staysNs, leastNs, vectorNs, ...s }) => ({
      ...s,
      bytes: bytes / s.count,
      needed: needed / s.count,
      staysNs: staysNs / s.count,
      leastNs: leastNs / s.count,
      vectorNs: vectorNs / s.count,
      nodes: nodes.take(),
      steps: stepList.take(),
    })),
  };
}

function addTo(sequences: Map<string, Building>, capture: RankCapture, tape: Tape, rows: Int32Array, flow: Flow, found: Found): void {
  const { members, pattern, phase, repeats } = found;
  // Experts of one loop have other numbers of rows each: their types are what agrees.
  let key = `${pattern} ${phase} ${repeats}`;
  let ns = 0;
  let bytes = 0;
  let vector = 0;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < members.length; i++) {
    const k = flow.kind(members[i]!);
    if (repeats === 1) key += ` ${k?.group ?? -1}`;
    else if (i < members.length / repeats) key += ` ${k?.type ?? ''}`;
    const duration = tape.duration[flow.nodes[members[i]!]!]!;
    ns += duration;
    if (k !== null) bytes += k.bytesIn + k.bytesOut;
    vector += (k?.vec ?? Number.NaN) * duration;
    if (duration < least) least = duration;
  }
  const first = flow.nodes[members[0]!]!;
  const last = flow.nodes[members[members.length - 1]!]!;
  const start = tape.start[first]!;
  const end = tape.start[last]! + tape.duration[last]!;
  const kinds = members.map((at) => flow.kind(at));
  let sequence = sequences.get(key);
  // Jobs of dynamic shapes have more kinds than are kept: those that agree in their types are then told together.
  const isMixed = sequence === undefined && sequences.size >= MAX_EXACT;
  if (isMixed) {
    key = `${pattern} ${phase} ${repeats} ${members.length} * ${kinds.map((k) => k?.type ?? '').join()}`;
    sequence = sequences.get(key);
  }
  if (sequence === undefined) {
    if (sequences.size >= MAX_BUILDING) return;
    const nodes = members.map((at) => flow.nodes[at]!);
    const tensor = kinds.find((k) => k !== null && k.inputs.length > 0)?.inputs[0];
    sequence = {
      pattern,
      phase,
      types: kinds.slice(0, Math.min(32, Math.ceil(kinds.length / repeats))).map((k) => k?.type ?? '?'),
      shape: isMixed ? '*' : (tensor?.dims.join(',') ?? ''),
      dataType: tensor?.type ?? '',
      count: 0,
      ns: 0,
      idleNs: 0,
      size: members.length,
      repeats,
      bytes: 0,
      needed: 0,
      staysNs: 0,
      leastNs: 0,
      vectorNs: 0,
      frame: frameOf(nodes, tape),
      line: capture.kernels!.line[rows[first]!]!,
      start,
      duration: end - start,
      nodes: new Int32Array(0),
      steps: new Int32Array(0),
      list: i32(64),
      stepList: i32(16),
    };
    sequences.set(key, sequence);
  }
  sequence.count++;
  sequence.ns += ns;
  sequence.bytes += bytes;
  sequence.needed += found.needed;
  sequence.staysNs += found.staysNs;
  sequence.leastNs += least;
  sequence.vectorNs += vector;
  sequence.idleNs += Math.max(0, end - start - covered(tape.busy, start, end));
  for (const at of members) sequence.list.push(flow.nodes[at]!);
  sequence.stepList.push(flow.step);
}

/** Line of the code that most of the kernels come from. */
function frameOf(nodes: readonly number[], tape: Tape): Frame | null {
  const counts = new Map<number, number>();
  for (const node of nodes) if (tape.frame[node]! >= 0) counts.set(tape.frame[node]!, (counts.get(tape.frame[node]!) ?? 0) + 1);
  const top = [...counts].sort((a, b) => b[1] - a[1])[0];
  return top === undefined ? null : (tape.frames[top[0]] ?? null);
}

/** Writes one tensor as large as the largest it reads, element by element, and does not wait for arithmetic. */
function isLink(k: KernelKind): boolean {
  if (!k.isVector || !ELEMENTWISE.test(k.type) || k.outputs.length !== 1 || k.vec > k.memory) return false;
  const size = k.outputs[0]!.elements;
  return k.inputs.length > 0 && k.inputs.every((t) => t.elements <= size) && k.inputs.some((t) => t.elements === size);
}

/** Maximal runs in which each kernel reads what the one before wrote. A kernel is in one run only, so nothing is counted twice. */
function* chains(f: Flow, taken: Uint8Array): Generator<Found> {
  const known = once(isLink);
  const links = (k: KernelKind | null): k is KernelKind => k !== null && known(k);
  let run: number[] = [];
  let between = 0;
  for (let at = 0; at <= f.length; at++) {
    const k = at < f.length ? f.kind(at) : null;
    const isFree = at < f.length && taken[at] === 0;
    const last = run[run.length - 1];
    if (last !== undefined) {
      const before = f.kind(last)!;
      const given = before.outputs[0]!;
      const isCut = at === f.length || f.isCut(last, at);
      const uses = k?.inputs.some((t) => isSame(t, given)) ?? false;
      // The same operator on the same kind of tensor works on another one: a loop over parameters, or two gradients.
      if (!isCut && uses && isFree && links(k) && k.type !== before.type && k.outputs[0]!.elements === given.elements) {
        run.push(at);
        between = 0;
        continue;
      }
      const writes = k?.outputs.some((t) => isSame(t, given)) ?? false;
      if (!isCut && !uses && !writes && between < MAX_BETWEEN) {
        between++;
        continue;
      }
      yield* split(f, run);
      run = [];
      // What stood between the end of the run and here may begin one itself.
      at -= between;
      between = 0;
      if (at >= f.length) break;
    }
    const begin = at < f.length ? f.kind(at) : null;
    if (at < f.length && taken[at] === 0 && links(begin)) run = [at];
  }
}

/** A run that repeats itself is a loop: one formula per turn. */
function* split(f: Flow, run: readonly number[]): Generator<Found> {
  if (run.length < MIN_CHAIN) return;
  const kinds = run.map((at) => f.kind(at)!);
  const ids = new Map<string, number>();
  const types = kinds.map((k) => {
    const id = ids.get(k.type) ?? ids.size;
    ids.set(k.type, id);
    return id;
  });
  const cycle = findCycle(types);
  const length = cycle.repeats >= 2 ? cycle.period : Math.min(run.length, MAX_CHAIN);
  if (length < MIN_CHAIN) return;
  for (let from = 0; from + MIN_CHAIN <= run.length; from += length) {
    const members = run.slice(from, from + length);
    if (members.length < MIN_CHAIN) break;
    yield { pattern: null, phase: 'forward', members, repeats: 1, needed: neededBy(members.map((at) => f.kind(at)!)), staysNs: 0 };
  }
}

/** What a chain reads from elsewhere, and its result. */
function neededBy(kinds: readonly KernelKind[]): number {
  let needed = 0;
  kinds.forEach((k, i) => {
    const given = i === 0 ? null : kinds[i - 1]!.outputs[0]!;
    let isGiven = given !== null;
    for (const t of k.inputs) {
      if (isGiven && isSame(t, given!)) isGiven = false;
      else needed += t.elements * t.size;
    }
  });
  return needed + kinds[kinds.length - 1]!.bytesOut;
}

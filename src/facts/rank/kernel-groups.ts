import { NO_GROUP, PIPES, type Pipe, type RankCapture } from '../../model/capture.ts';
import { COMPUTE, type KernelFacts, type KernelGroup, type Tape, UNGROUPED } from '../../model/facts.ts';
import { bytesOf, tensorsOf } from './tensors.ts';

const MAX_GROUPS = 150;
const MAX_CPU_GROUPS = 50;
/** Shapes of fused calls over all parameters are as long as the model is deep. */
const MAX_TEXT = 400;
/** Frames counted per group; a group has as many as the code has call sites. */
const MAX_FRAMES = 64;

export const AI_CPU = /^(KERNEL_)?AI_?CPU$/i;

/** Kernels that start in the same ns on different streams; more are no capture. */
const MAX_AT_ONCE = 64;

/** The kernel row of each node of the tape, -1 for nodes that are none. Both ascend by start; starts may differ by 1 ns. */
export function rowsOfNodes(capture: RankCapture, tape: Tape): Int32Array {
  const out = new Int32Array(tape.start.length).fill(-1);
  const { kernels } = capture;
  if (kernels === null) return out;
  const { start } = kernels;
  const order = outOfOrder(start);
  const count = order?.length ?? start.length;
  let from = 0;
  for (let node = 0; node < tape.start.length; node++) {
    if (tape.kind[node] !== COMPUTE) continue;
    const at = tape.start[node]!;
    while (from < count && start[order?.[from] ?? from]! < at - 1) from++;
    let best = -1;
    for (let i = from; i < Math.min(count, from + MAX_AT_ONCE) && start[order?.[i] ?? i]! <= at + 1; i++) {
      const row = order?.[i] ?? i;
      if (kernels.isCommunication[row] === 1) continue;
      const distance = Math.abs(start[row]! - at) + Math.abs(kernels.duration[row]! - tape.duration[node]!);
      if (best === -1 || distance < Math.abs(start[best]! - at) + Math.abs(kernels.duration[best]! - tape.duration[node]!)) best = row;
    }
    out[node] = best;
  }
  return out;
}

/** Rows in order of their start, those without one left out; null when they lie so: a list of millions is not made for nothing. */
function outOfOrder(start: Float64Array): Int32Array | null {
  let known = 0;
  let sorted = true;
  let last = Number.NEGATIVE_INFINITY;
  for (const at of start) {
    if (!(at >= last)) sorted = false;
    if (Number.isNaN(at)) continue;
    last = at;
    known++;
  }
  if (sorted) return null;
  const rows = new Int32Array(known);
  let next = 0;
  for (let row = 0; row < start.length; row++) if (!Number.isNaN(start[row]!)) rows[next++] = row;
  return rows.sort((a, b) => start[a]! - start[b]! || a - b);
}

/** Longer texts were cut where they were read, so that their sums would be too small. */
const MAX_WHOLE = 2_000;

/** Shapes or types in full, '' when they are missing or too long to be whole. */
export function fullText(names: RankCapture['names'], id: number): string {
  const text = id >= 0 ? names.get(id) : '';
  return text.length < MAX_WHOLE ? text : '';
}

/** Index into the rank's steps of a kernel; -1 outside all of them. */
export type StepOf = (node: number, row: number) => number;

export function kernelFacts(
  capture: RankCapture,
  tape: Tape | null,
  rows: Int32Array,
  stepOf: StepOf,
  steps: number,
  isFast: (start: number, end: number) => boolean,
): KernelFacts | null {
  const { kernels, names } = capture;
  if (kernels === null || tape === null || kernels.groups.size === 0) return null;
  const table = kernels.groups;
  const text = (id: number): string => (id >= 0 ? names.get(id).replaceAll('"', '').slice(0, MAX_TEXT) : '');
  const count = new Int32Array(table.size);
  const ns = new Float64Array(table.size);
  let allCount = 0;
  let allNs = 0;
  for (let node = 0; node < rows.length; node++) {
    const row = rows[node]!;
    if (row === -1 || (steps > 0 && stepOf(node, row) === -1)) continue;
    allCount++;
    allNs += kernels.duration[row]!;
    const group = kernels.group[row]!;
    if (group === NO_GROUP) continue;
    count[group]!++;
    ns[group]! += kernels.duration[row]!;
  }
  if (allCount === 0) return null;
  const isCpu = (group: number): boolean => AI_CPU.test(text(table.core[group]!));
  const order = [...ns.keys()].filter((group) => count[group]! > 0).sort((a, b) => ns[b]! - ns[a]! || a - b);
  const cpu = new Set(order.filter(isCpu).slice(0, MAX_CPU_GROUPS));
  const kept = [...order.filter((group) => !cpu.has(group)).slice(0, MAX_GROUPS), ...cpu].sort((a, b) => ns[b]! - ns[a]! || a - b);
  const index = new Int32Array(table.size).fill(UNGROUPED);
  kept.forEach((group, i) => {
    index[group] = i;
  });
  const sums = kept.map(() => ({
    minNs: Number.POSITIVE_INFINITY,
    stepNs: new Float64Array(steps),
    fast: { count: 0, ns: 0 },
    frames: new Map<number, number>(),
    line: -1,
    longest: { start: Number.NaN, duration: -1, step: -1 },
  }));
  const ofNode = new Uint8Array(rows.length).fill(UNGROUPED);
  for (let node = 0; node < rows.length; node++) {
    const row = rows[node]!;
    if (row === -1) continue;
    const own = kernels.group[row]!;
    const group = own === NO_GROUP ? UNGROUPED : index[own]!;
    if (group === UNGROUPED) continue;
    const step = stepOf(node, row);
    if (steps > 0 && step === -1) continue;
    ofNode[node] = group;
    const sum = sums[group]!;
    const duration = kernels.duration[row]!;
    const start = tape.start[node]!;
    if (sum.line === -1) sum.line = kernels.line[row]!;
    if (duration < sum.minNs) sum.minNs = duration;
    if (duration > sum.longest.duration) sum.longest = { start, duration, step };
    if (step >= 0) sum.stepNs[step]! += duration;
    if (isFast(start, start + duration)) {
      sum.fast.count++;
      sum.fast.ns += duration;
    }
    const frame = tape.frame[node]!;
    if (frame >= 0 && (sum.frames.size < MAX_FRAMES || sum.frames.has(frame))) sum.frames.set(frame, (sum.frames.get(frame) ?? 0) + 1);
  }
  const groups = kept.map((group, i): KernelGroup => {
    const sum = sums[i]!;
    const full = (id: number): string => fullText(names, id);
    const frame = [...sum.frames].sort((a, b) => b[1] - a[1])[0];
    return {
      type: text(table.type[group]!),
      core: text(table.core[group]!),
      inputShapes: text(table.inputShapes[group]!),
      inputTypes: text(table.inputTypes[group]!),
      inputFormats: text(table.inputFormats[group]!),
      outputShapes: text(table.outputShapes[group]!),
      outputTypes: text(table.outputTypes[group]!),
      outputFormats: text(table.outputFormats[group]!),
      count: count[group]!,
      ns: ns[group]!,
      minNs: sum.minNs,
      maxNs: sum.longest.duration,
      stepNs: sum.stepNs,
      pipes: Object.fromEntries(PIPES.map((pipe) => [pipe, table.pipes[pipe]?.[group] ?? Number.NaN])) as Record<Pipe, number>,
      blocks: table.blocks[group]!,
      bytesIn: bytesOf(tensorsOf(full(table.inputShapes[group]!), full(table.inputTypes[group]!))),
      bytesOut: bytesOf(tensorsOf(full(table.outputShapes[group]!), full(table.outputTypes[group]!))),
      l2Hit: table.l2Hit[group]!,
      fast: sum.fast,
      frame: frame === undefined ? null : (tape.frames[frame[0]] ?? null),
      line: sum.line,
      longest: sum.longest,
    };
  });
  const keptCount = groups.reduce((sum, g) => sum + g.count, 0);
  const keptNs = groups.reduce((sum, g) => sum + g.ns, 0);
  return { groups, ofNode, other: { count: allCount - keptCount, ns: Math.max(0, allNs - keptNs) } };
}

import { covered } from '../../base/intervals.ts';
import { median } from '../../base/statistics.ts';
import type { RankCapture } from '../../model/capture.ts';
import { COMPUTE, type SegmentFacts, type Tape } from '../../model/facts.ts';
import { hostRanges } from './host-ranges.ts';

/**
 * Parts of a capture without step marks, as serving engines and reinforcement learning write them.
 *
 * `phase`: the whole capture, when its folder names a role of the program (verl's `actor_update`, `*_rollout_*`, `ref_*`).
 * `forward`: one pass through the model, found by the first of these that works:
 *   1. annotations around it: `execute_context_1(512)_generation_3(3)` of vLLM, `step[DECODE bs=8]` of SGLang; they also say what it is;
 *   2. replays of a captured graph (`aclmdlRIExecuteAsync`), one each, or, when the graph is cut at every layer, one run of them each;
 *   3. operators that run once a pass: the stretches between them hold the same kernels again and again.
 * Training is left alone: its unit is the step, and a capture of it without marks stays one span.
 *
 * A pass lasts from the first device work that its host part launched to the end of the last before the next one.
 */
export function segmentFacts(capture: RankCapture, tape: Tape | null, hasSteps: boolean): SegmentFacts[] {
  const segments: SegmentFacts[] = [];
  const span = tape === null || tape.busy.start.length === 0 ? null : { start: tape.busy.start[0]!, end: tape.busy.end.at(-1)! };
  if (tape === null || span === null) return segments;
  const role = roleOf(capture.folder);
  if (role !== null) segments.push({ unit: 'phase', kind: role, basis: 'folder', ...span, busy: covered(tape.busy, span.start, span.end) });
  if (hasSteps || isTraining(capture, tape)) return segments;
  const passes = byAnnotation(capture, tape) ?? byGraph(capture, tape) ?? byRepetition(tape);
  if (passes === null) return segments;
  const kinds = passes.some((p) => p.kind !== null) ? passes.map((p) => p.kind) : kindsOf(capture, tape, passes);
  passes.slice(0, MAX_SEGMENTS).forEach((pass, i) => {
    segments.push({ ...pass, kind: kinds[i]!, unit: 'forward', busy: covered(tape.busy, pass.start, pass.end) });
  });
  return segments;
}

/** Serving captures hold hundreds of passes; what comes later says nothing new. */
const MAX_SEGMENTS = 5_000;

type Pass = Pick<SegmentFacts, 'kind' | 'basis' | 'start' | 'end'>;

/** Roles as verl and its likes name their folders, and what the program does there. */
const ROLES: readonly (readonly [RegExp, string])[] = [
  [/(^|[^a-z])(actor|critic)[_-]update([^a-z]|$)|(^|[^a-z])update[_-](actor|critic)([^a-z]|$)/i, 'update'],
  [/(^|[^a-z])(rollout|generate_sequences)([^a-z]|$)/i, 'rollout'],
  [/(^|[^a-z])(ref|reference)([^a-z]|$)/i, 'reference'],
  [/(^|[^a-z])(reward|rm)([^a-z]|$)/i, 'reward'],
  [/(^|[^a-z])prefill([^a-z]|$)/i, 'prefill'],
  [/(^|[^a-z])decode([^a-z]|$)/i, 'decode'],
];

/** The folder's own name holds the host's name and does not count. */
function roleOf(folder: string): string | null {
  const parts = folder.split('/');
  const named = /_ascend_(pt|ms)$/.test(parts.at(-1)!) ? parts.slice(0, -1) : parts;
  for (const part of named.reverse()) {
    const role = ROLES.find(([test]) => test.test(part));
    if (role !== undefined) return role[1];
  }
  return null;
}

const BACKWARD = /grad|backprop|backward|applyadam|apply_?adam|foreachaddc|sgd/i;

/** As far as the device tells. */
export function isTrainingTape(tape: Tape): boolean {
  return tape.optimizer.start.length > 0 || tape.types.some((type) => BACKWARD.test(type));
}

function isTraining(capture: RankCapture, tape: Tape): boolean {
  if (isTrainingTape(tape)) return true;
  return hostRanges(capture, /^(autograd::engine|Optimizer\.|loss\.backward)/).length > 0;
}

const VLLM = /^execute_(?:context_(\d+)\(.*?\)_generation_(\d+)|new_(\d+)_cached_(\d+))/;
const SGLANG = /^step\[\s*(?:ForwardMode\.)?(DECODE|EXTEND|PREFILL|MIXED|IDLE)/i;
const ANNOTATION = /^execute_(context|new|model)_?|^step\[/;

/** null for an annotation that does not tell. */
function kindOfAnnotation(name: string): string | null {
  const vllm = VLLM.exec(name);
  if (vllm !== null) {
    const prefills = Number(vllm[1] ?? vllm[3]);
    const decodes = Number(vllm[2] ?? vllm[4]);
    return prefills > 0 ? (decodes > 0 ? 'mixed' : 'prefill') : decodes > 0 ? 'decode' : null;
  }
  const sglang = SGLANG.exec(name)?.[1]?.toUpperCase();
  if (sglang === undefined || sglang === 'IDLE') return null;
  return sglang === 'DECODE' ? 'decode' : sglang === 'MIXED' ? 'mixed' : 'prefill';
}

function byAnnotation(capture: RankCapture, tape: Tape): Pass[] | null {
  const ranges = hostRanges(capture, ANNOTATION);
  if (ranges.length === 0) return null;
  const passes = ranges.flatMap((range): Pass[] => {
    const work = launchedIn(tape, range.start, range.end);
    return work === null ? [] : [{ kind: kindOfAnnotation(range.name), basis: 'annotation', ...work }];
  });
  return passes.length === 0 ? null : apart(passes);
}

/** Launches in time order, made once for all ranges. */
const launchOrders = new WeakMap<Tape, { at: Float64Array; node: Int32Array }>();

function launchOrder(tape: Tape): { at: Float64Array; node: Int32Array } {
  let order = launchOrders.get(tape);
  if (order === undefined) {
    const node = Int32Array.from({ length: tape.launch.length }, (_, i) => i).filter((i) => !Number.isNaN(tape.launch[i]!));
    node.sort((a, b) => tape.launch[a]! - tape.launch[b]!);
    order = { node, at: Float64Array.from(node, (i) => tape.launch[i]!) };
    launchOrders.set(tape, order);
  }
  return order;
}

function firstFrom(at: Float64Array, from: number): number {
  let low = 0;
  let high = at.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (at[mid]! < from) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** Span of the device work launched in a stretch of the host. */
function launchedIn(tape: Tape, from: number, to: number): { start: number; end: number } | null {
  const { at, node } = launchOrder(tape);
  let start = Number.POSITIVE_INFINITY;
  let end = Number.NEGATIVE_INFINITY;
  for (let i = firstFrom(at, from); i < at.length && at[i]! < to; i++) {
    const n = node[i]!;
    start = Math.min(start, tape.start[n]!);
    end = Math.max(end, tape.start[n]! + tape.duration[n]!);
  }
  return end > start ? { start, end } : null;
}

/** In order, and none reaching into the next. */
function apart(passes: Pass[]): Pass[] {
  passes.sort((a, b) => a.start - b.start);
  return passes
    .map((p, i) => ({ ...p, end: Math.max(p.start, Math.min(p.end, passes[i + 1]?.start ?? p.end)) }))
    .filter((p) => p.end > p.start);
}

const REPLAY = /aclmdl(RI)?Execute(Async)?$/;
/** A graph cut at every layer has at least so many parts; runs of replays shorter than this are passes of their own. */
const MIN_PARTS = 8;
/** Replays of one pass lie this much closer together than those of two, and most passes have the same number. */
const PART_RATIO = 3;
const SAME_PARTS = 0.8;

function byGraph(capture: RankCapture, tape: Tape): Pass[] | null {
  const { trace, names } = capture;
  if (trace === null) return null;
  const at: number[] = [];
  const isReplay = new Map<number, boolean>();
  for (let i = 0; i < trace.cann.name.length; i++) {
    const id = trace.cann.name[i]!;
    let known = isReplay.get(id);
    if (known === undefined) {
      known = REPLAY.test(names.get(id));
      isReplay.set(id, known);
    }
    if (known) at.push(trace.cann.start[i]!);
  }
  if (at.length < 2) return null;
  at.sort((a, b) => a - b);
  const starts = runsOf(at) ?? at;
  const bounds = starts.map((start) => firstFrom(tape.start, start));
  const passes = starts.flatMap((_, i): Pass[] => {
    const work = spanOfNodes(tape, bounds[i]!, bounds[i + 1] ?? tape.start.length);
    return work === null ? [] : [{ kind: null, basis: 'graph-replay', ...work }];
  });
  return passes.length < 2 ? null : apart(passes);
}

/** First replay of each pass when a pass is a run of replays; null when each replay is a pass. */
function runsOf(at: readonly number[]): number[] | null {
  const distances = at.slice(1).map((t, i) => t - at[i]!);
  const sorted = [...distances].sort((a, b) => a - b);
  let ratio = 0;
  let border = 0;
  for (let i = 1; i < sorted.length; i++) {
    const step = sorted[i]! / Math.max(1, sorted[i - 1]!);
    if (sorted[i - 1]! > 0 && step > ratio) {
      ratio = step;
      border = sorted[i]!;
    }
  }
  if (ratio < PART_RATIO) return null;
  const starts = [at[0]!, ...at.slice(1).filter((_, i) => distances[i]! >= border)];
  const lengths = starts.map((start, i) => at.filter((t) => t >= start && t < (starts[i + 1] ?? Number.POSITIVE_INFINITY)).length);
  const usual = median(lengths);
  const same = lengths.filter((n) => n === usual).length / lengths.length;
  return starts.length >= 2 && usual >= MIN_PARTS && same >= SAME_PARTS ? starts : null;
}

function spanOfNodes(tape: Tape, from: number, to: number): { start: number; end: number } | null {
  let end = Number.NEGATIVE_INFINITY;
  for (let n = from; n < to; n++) end = Math.max(end, tape.start[n]! + tape.duration[n]!);
  return to > from && end > tape.start[from]! ? { start: tape.start[from]!, end } : null;
}

/** Fewer kernels than this are a helper function, not a pass through a model. */
const MIN_NODES = 12;
/** So much of the kernels must lie in stretches that occur again, for the operator between them to be one that runs once a pass. */
const MIN_REPEATED = 0.6;
const MAX_CANDIDATES = 24;

/**
 * Operators that run once a pass (the embedding, the head, the sampler) have the same count, and the stretches between two of them hold the
 * same kernels. At least two such operators must agree on the count; of several counts the smallest wins, as those of the layers are larger.
 */
function byRepetition(tape: Tape): Pass[] | null {
  const nodes = Int32Array.from({ length: tape.start.length }, (_, i) => i).filter((i) => tape.kind[i] === COMPUTE);
  const positions = new Map<number, number[]>();
  nodes.forEach((node, position) => {
    const type = tape.type[node]!;
    const list = positions.get(type);
    if (list === undefined) positions.set(type, [position]);
    else list.push(position);
  });
  const byCount = Map.groupBy(positions.values(), (list) => list.length);
  const candidates = [...byCount].filter(([count, lists]) => count >= 3 && lists.length >= 2).sort(([a], [b]) => a - b);
  for (const [, lists] of candidates.slice(0, MAX_CANDIDATES)) {
    const anchor = lists.reduce((a, b) => (b[0]! < a[0]! ? b : a));
    if (nodes.length / anchor.length < MIN_NODES || repeatedShare(tape, nodes, anchor) < MIN_REPEATED) continue;
    const passes = anchor.flatMap((position, i): Pass[] => {
      const next = anchor[i + 1];
      const work = spanOfNodes(tape, nodes[position]!, next === undefined ? tape.start.length : nodes[next]!);
      return work === null ? [] : [{ kind: null, basis: 'layer-pattern', ...work }];
    });
    return passes.length < 3 ? null : apart(passes);
  }
  return null;
}

/** Share of the kernels that lie in stretches with the same kernels as another one. */
function repeatedShare(tape: Tape, nodes: Int32Array, anchor: readonly number[]): number {
  const stretches = anchor.map((from, i) => {
    const to = anchor[i + 1] ?? nodes.length;
    let sum = 0;
    for (let p = from; p < to; p++) sum = (sum + Math.imul(tape.type[nodes[p]!]! + 1, 0x9e3779b1)) | 0;
    return { key: `${to - from}/${sum}`, count: to - from };
  });
  const groups = Map.groupBy(stretches, (s) => s.key);
  let repeated = 0;
  for (const group of groups.values()) if (group.length > 1) for (const s of group) repeated += s.count;
  return repeated / nodes.length;
}

const PREFILL_TYPE = /prefill|promptflashattention|unpadflashattention|flashattentionscore|ringmla/i;
const DECODE_TYPE = /decode|increflashattention|pagedattention|multilatentattention|mlapo/i;
/** Passes of two kinds differ at least so much, in tokens or in time. */
const KIND_RATIO = 4;
const MATMUL = /matmul|gemm|linear/i;

/**
 * Prefill and decode are never averaged. What tells them apart: the attention operators, else the rows of the matrix products (tokens at
 * once), else the duration. Without two clear groups nobody can say which kind it is, and the kind stays null.
 */
function kindsOf(capture: RankCapture, tape: Tape, passes: readonly Pass[]): (string | null)[] {
  const kindOfType = tape.types.map((type) => (DECODE_TYPE.test(type) ? 'decode' : PREFILL_TYPE.test(type) ? 'prefill' : null));
  const named = passes.map((pass): string | null => {
    let prefill = 0;
    let decode = 0;
    for (let n = firstFrom(tape.start, pass.start); n < tape.start.length && tape.start[n]! < pass.end; n++) {
      const kind = kindOfType[tape.type[n]!];
      if (kind === 'prefill') prefill++;
      else if (kind === 'decode') decode++;
    }
    return prefill + decode === 0 ? null : prefill === 0 ? 'decode' : decode === 0 ? 'prefill' : 'mixed';
  });
  if (named.every((kind) => kind !== null)) return named;
  const tokens = tokensOf(capture, passes);
  const border = borderOf(tokens) ?? borderOf(passes.map((p) => p.end - p.start));
  const figures = borderOf(tokens) === null ? passes.map((p) => p.end - p.start) : tokens;
  return passes.map(
    (_, i) => named[i] ?? (border === null || Number.isNaN(figures[i]!) ? null : figures[i]! >= border ? 'prefill' : 'decode'),
  );
}

/** Rows of the matrix products of each pass: the usual product of all but the last dimension of the first input. NaN without shapes. */
function tokensOf({ kernels, names }: RankCapture, passes: readonly Pass[]): number[] {
  if (kernels === null) return passes.map(() => Number.NaN);
  const starts = Float64Array.from(passes, (p) => p.start);
  const rows: number[][] = passes.map(() => []);
  const rowsOfShape = new Map<number, number>();
  for (let i = 0; i < kernels.start.length; i++) {
    const pass = firstFrom(starts, kernels.start[i]! + 1) - 1;
    if (pass < 0 || kernels.start[i]! >= passes[pass]!.end || rows[pass]!.length > 1_000) continue;
    const type = kernels.type[i]!;
    if (type < 0 || !MATMUL.test(names.get(type))) continue;
    const shape = kernels.inputShapes[i]!;
    let count = rowsOfShape.get(shape);
    if (count === undefined) {
      const dimensions = (shape < 0 ? '' : names.get(shape)).replaceAll('"', '').split(';')[0]!.split(',').map(Number);
      count = dimensions.length >= 2 ? dimensions.slice(0, -1).reduce((a, b) => a * b, 1) : Number.NaN;
      rowsOfShape.set(shape, count);
    }
    if (count > 0) rows[pass]!.push(count);
  }
  return rows.map((list) => median(list));
}

/** Smallest figure of the upper group when the figures fall into two; null when they do not. */
function borderOf(figures: readonly number[]): number | null {
  const sorted = figures.filter((f) => f > 0).sort((a, b) => a - b);
  let ratio = 0;
  let border = 0;
  for (let i = 1; i < sorted.length; i++) {
    const step = sorted[i]! / sorted[i - 1]!;
    if (step > ratio) {
      ratio = step;
      border = sorted[i]!;
    }
  }
  const lower = median(sorted.filter((f) => f < border));
  const upper = median(sorted.filter((f) => f >= border));
  return ratio >= 2 && upper >= KIND_RATIO * lower ? border : null;
}

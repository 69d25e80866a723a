import { type KernelTable, NO_GROUP, type RankCapture } from '../../model/capture.ts';
import { type CastFacts, COMPUTE, type PhaseFacts, type Tape } from '../../model/facts.ts';
import { fullText, type StepOf } from './kernel-groups.ts';
import { sizeOfType, tensorsOf } from './tensors.ts';

const CAST = /^Cast(V\d|AiCore)?$/;
const MATMUL = /^MatMul(V\d|Common)?$/;
/** Kernels that may stand between two casts that undo each other. */
const REACH = 3;
/** A cast of a weight is launched right before the product that reads it. */
const FEEDS = 3;
const MAX_SITES = 20;
const MAX_NODES = 20_000;

interface Words {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly isCast: boolean;
  readonly isMatmul: boolean;
}

/** Fused calls over all parameters take more; which of them is which, shapes cannot tell. */
const MAX_TENSORS = 64;
/** Groups remembered at once; jobs of dynamic shapes have more. */
const MAX_KNOWN = 20_000;

interface Cast {
  readonly node: number;
  readonly row: number;
  readonly shape: string;
  readonly from: string;
  readonly to: string;
  /** The tensor it makes, as shape and type. */
  readonly made: string;
  readonly at: number;
}

/** Shape and type of every tensor of a group of kernels, as one word each. */
function wordsOf(table: KernelTable['groups'], names: RankCapture['names'], group: number): Words | null {
  const words = (shapes: number, types: number): string[] =>
    (tensorsOf(fullText(names, shapes), fullText(names, types)) ?? []).map((t) => `${t.dims.join(',')}/${t.type}`);
  const type = table.type[group]! >= 0 ? names.get(table.type[group]!) : '';
  const inputs = words(table.inputShapes[group]!, table.inputTypes[group]!);
  const outputs = words(table.outputShapes[group]!, table.outputTypes[group]!);
  if (inputs.length + outputs.length > MAX_TENSORS) return null;
  return {
    inputs,
    outputs,
    isCast: CAST.test(type),
    isMatmul: MATMUL.test(type),
  };
}

/**
 * Pairs of casts that undo each other, and casts of the same weights in every pass of a step. Which kernel reads which tensor is told by
 * shape and type: of several producers the last one counts. A converted tensor that any kernel in between reads was needed.
 */
export function castFacts(capture: RankCapture, tape: Tape | null, rows: Int32Array, stepOf: StepOf, phases: PhaseFacts): CastFacts | null {
  const { kernels, names } = capture;
  if (kernels === null || tape === null || !kernels.groups.outputTypes.some((id) => id >= 0)) return null;
  const known = new Map<number, Words | null>();
  const of = (row: number): Words | null => {
    const group = kernels.group[row]!;
    if (group === NO_GROUP) return null;
    let words = known.get(group);
    if (words === undefined) {
      words = wordsOf(kernels.groups, names, group);
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(group, words);
    }
    return words;
  };
  const steps = new Map<number, ReturnType<typeof stepSum>>();
  const sites = new Map<string, { -readonly [K in keyof CastFacts['sites'][number]]: CastFacts['sites'][number][K] }>();
  const site = (kind: 'pair' | 'weight', cast: Cast, ns: number): void => {
    const key = `${kind} ${cast.shape} ${cast.from} ${cast.to}`;
    const found = sites.get(key);
    if (found !== undefined) {
      found.count++;
      found.ns += ns;
    } else if (sites.size < MAX_SITES) {
      const frame = tape.frame[cast.node]! >= 0 ? (tape.frames[tape.frame[cast.node]!] ?? null) : null;
      const { from, to, shape } = cast;
      sites.set(key, { kind, from, to, shape, count: 1, ns, frame, line: kernels.line[cast.row]! });
    }
  };
  const nsOf = (node: number): number => tape.duration[node]!;

  let step = Number.NaN;
  let sum = stepSum();
  let position = 0;
  let open: Cast[] = [];
  /** Pairs whose converted tensor may still be read, by that tensor. */
  let pending = new Map<string, { first: Cast; second: Cast }[]>();
  let weights = weightCasts(tape, phases, -1);
  const settle = (pairs: readonly { first: Cast; second: Cast }[] | undefined, isRead: boolean): void => {
    for (const { first, second } of pairs ?? []) {
      const widens = sizeOfType(first.to) > sizeOfType(first.from);
      const gone = isRead ? (widens ? [second] : []) : [first, second];
      if (gone.length === 0 || sum.removable.length + gone.length > MAX_NODES) continue;
      const ns = gone.reduce((total, cast) => total + nsOf(cast.node), 0);
      for (const cast of gone) sum.removable.push(cast.node);
      // What was widened comes back as it was: its reader can take the original.
      if (widens) sum.certain.push(second.node);
      sum.removableNs += ns;
      site('pair', first, ns);
    }
  };
  const close = (): void => {
    for (const pairs of pending.values()) settle(pairs, false);
    for (const { cast, nodes } of weights.repeated()) {
      for (const node of nodes.slice(0, Math.max(0, MAX_NODES - sum.repeated.length))) {
        sum.repeated.push(node);
        sum.repeatedNs += nsOf(node);
        site('weight', cast, nsOf(node));
      }
    }
    pending = new Map();
    open = [];
  };

  for (let node = 0; node < rows.length; node++) {
    const row = rows[node]!;
    if (row === -1 || tape.kind[node] !== COMPUTE) continue;
    const own = stepOf(node, row);
    if (own !== step) {
      close();
      step = own;
      sum = steps.get(own) ?? stepSum();
      steps.set(own, sum);
      weights = weightCasts(tape, phases, own);
    }
    position++;
    const words = of(row);
    if (open.length > 0) open = open.filter((cast) => position - cast.at <= REACH + 1);
    // Nothing is known of such a kernel: it may read anything.
    if (words === null) {
      for (const pairs of pending.values()) settle(pairs, true);
      pending.clear();
      open = [];
      continue;
    }
    weights.follow(words);
    const cast = words.isCast ? castOf(words, node, row, position) : null;
    const undone = cast === null ? -1 : open.findIndex((c) => c.made === words.inputs[0] && c.from === cast.to);
    if (pending.size > 0) {
      for (const word of words.inputs) {
        settle(pending.get(word), true);
        pending.delete(word);
      }
      for (const word of words.outputs) {
        settle(pending.get(word), false);
        pending.delete(word);
      }
    }
    if (undone !== -1) {
      const first = open[undone]!;
      pending.set(first.made, [...(pending.get(first.made) ?? []), { first, second: cast! }]);
      open.splice(undone, 1);
    }
    if (open.length > 0) open = open.filter((c) => !words.inputs.includes(c.made));
    if (cast === null) continue;
    sum.count++;
    sum.ns += nsOf(node);
    weights.add(cast);
    if (undone === -1) open.push(cast);
  }
  close();
  steps.delete(Number.NaN);
  return {
    steps: [...steps].map(([index, s]) => ({ step: index, ...s })).sort((a, b) => a.step - b.step),
    sites: [...sites.values()].sort((a, b) => b.ns - a.ns),
  };
}

function stepSum() {
  return {
    count: 0,
    ns: 0,
    removable: [] as number[],
    certain: [] as number[],
    removableNs: 0,
    repeated: [] as number[],
    repeatedNs: 0,
  };
}

function castOf(words: Words, node: number, row: number, at: number): Cast | null {
  const [shape, from] = (words.inputs[0] ?? '').split('/');
  const to = (words.outputs[0] ?? '').split('/')[1];
  if (shape === undefined || from === undefined || from === '' || to === undefined || to === '' || from === to) return null;
  return { node, row, shape, from, to, made: `${shape}/${to}`, at };
}

/**
 * Casts of weights to half precision, counted per pass over the model. A weight is the second factor of the product that follows its cast,
 * and its shape is no first factor's. It changes once per step: a step of several passes needs its cast once.
 */
function weightCasts(tape: Tape, phases: PhaseFacts, step: number) {
  const passes = phases.forwardStarts[step] ?? [];
  const isHalf = (type: string): boolean => sizeOfType(type) === 2;
  const casts = new Map<string, { cast: Cast; fed: number; nodes: number[][] }>();
  const firstFactors = new Set<string>();
  let recent: { made: string; left: number }[] = [];
  const passOf = (node: number): number => {
    const at = tape.launch[node]!;
    let pass = -1;
    while (pass + 1 < passes.length && passes[pass + 1]! <= at) pass++;
    return pass;
  };
  return {
    add(cast: Cast): void {
      if (passes.length < 2 || cast.from !== 'FLOAT' || !isHalf(cast.to) || cast.shape.split(',').length !== 2) return;
      const pass = passOf(cast.node);
      if (pass < 0) return;
      let known = casts.get(cast.made);
      if (known === undefined) {
        known = { cast, fed: 0, nodes: passes.map(() => []) };
        casts.set(cast.made, known);
      }
      known.nodes[pass]!.push(cast.node);
      recent.push({ made: cast.made, left: FEEDS });
    },
    follow(words: Words): void {
      if (passes.length < 2) return;
      if (words.isMatmul) {
        firstFactors.add(words.inputs[0] ?? '');
        const fed = recent.findIndex((r) => r.made === words.inputs[1]);
        if (fed !== -1) {
          casts.get(recent[fed]!.made)!.fed++;
          recent.splice(fed, 1);
        }
      }
      if (recent.length > 0) recent = recent.filter((r) => --r.left > 0);
    },
    /** Casts of the second and later passes, where each pass casts as many as the first and most of them feed a product. */
    repeated(): { cast: Cast; nodes: number[] }[] {
      return [...casts.values()].flatMap(({ cast, fed, nodes }) => {
        const each = nodes[0]!.length;
        const all = each * nodes.length;
        if (each === 0 || nodes.some((pass) => pass.length !== each) || fed < 0.8 * all || firstFactors.has(cast.made)) return [];
        return [{ cast, nodes: nodes.slice(1).flat() }];
      });
    },
  };
}

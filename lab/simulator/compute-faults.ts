import { type HostProgram, inPhase, type Rank } from './des.ts';
import { type Clock, NOMINAL_MHZ } from './frequency.ts';
import { type Kernel, kernel, type Model } from './kernels.ts';
import type { Fault, ResolvedSpec } from './spec.ts';

/** What slows the kernels themselves. A fault that is off, or not in the job, is null. */
export interface ComputeFaults {
  /** kernels at the n-th of `total` places of a step's forward, in order */
  extra: ((n: number, total: number) => Kernel[]) | null;
  /** cast of a weight before the product that reads it; null when this pass of the step makes none */
  weightCast: ((product: Kernel, pass: number) => Kernel | null) | null;
  shape: (model: Model) => Model;
  clockOf: (rank: number) => Clock | null;
}

const IDLE_MHZ = 800;
/** What a large vector kernel reaches, bytes per us. */
const RATE = 1_400_000;
const HIDDEN = 1024;
const FFN = 4096;
const VOCAB = 16000;

type FaultOf<K extends Fault['kind']> = Extract<Fault, { kind: K }>;

const usOf = (bytes: number): number => bytes / RATE;

function vector(type: string, init: Partial<Kernel> & Pick<Kernel, 'us' | 'inShapes' | 'outShapes'>): Kernel {
  return kernel({ aten: `aten::${type.toLowerCase()}`, acl: `aclnn${type}`, type, ...init });
}

function cast(from: string, to: string, shape: string, us: number): Kernel {
  return kernel({
    aten: 'aten::_to_copy',
    acl: 'aclnnCast',
    name: 'aclnnCast_CastAiCore_Cast',
    type: 'Cast',
    us,
    inShapes: shape,
    inTypes: from,
    outShapes: shape,
    outTypes: to,
  });
}

/** An operator without an AI core kernel for its type, or the same with one. */
function cpuKernel(fault: FaultOf<'aicpu-op'>, tokens: number): Kernel {
  const shape = `${tokens},${HIDDEN}`;
  const us = fault.us ?? 2_500;
  if (fault.of === 'index') {
    const onCore = { inShapes: `${shape};${shape}`, inTypes: 'DT_BF16;BOOL', outShapes: shape };
    if (fault.off) return vector('MaskedFill', { ...onCore, us: usOf(tokens * HIDDEN * 5) });
    return vector('IndexPutV2', { ...onCore, core: 'AI_CPU', us, inShapes: `${shape};1;${shape}`, inTypes: 'DT_BF16;DT_BF16;BOOL' });
  }
  const type = fault.off ? 'INT32' : 'INT16';
  const size = fault.off ? 4 : 2;
  const common = { inShapes: `${shape};${shape}`, inTypes: `${type};${type}`, outShapes: shape, outTypes: type };
  return fault.off ? vector('Mul', { ...common, us: usOf(3 * tokens * HIDDEN * size) }) : vector('Mul', { ...common, core: 'AI_CPU', us });
}

/** A tensor converted and converted back; `used`: with a kernel between that computes on the converted one. */
function castPair(fault: FaultOf<'cast-pair'>, tokens: number): Kernel[] {
  const shape = `${tokens},${FFN}`;
  const us = fault.us ?? usOf(tokens * FFN * 6);
  const pair = [cast('DT_BF16', 'FLOAT', shape, us), cast('FLOAT', 'DT_BF16', shape, us)] as const;
  if (!fault.used) return fault.off ? [] : [...pair];
  const inner = vector('LayerNormV3', {
    inShapes: shape,
    inTypes: 'FLOAT',
    outShapes: shape,
    outTypes: 'FLOAT',
    us: usOf(tokens * FFN * 8),
  });
  return [pair[0], inner, pair[1]];
}

/** A loss written out over the logits, with reductions between, as one kernel per operation or as one kernel. */
function formula(fault: FaultOf<'vector-chain'>, tokens: number): Kernel[] {
  const shape = `${tokens},${VOCAB}`;
  const rows = `${tokens},1`;
  const n = tokens * VOCAB;
  const step = (type: string, bytes: number, init: Partial<Kernel>): Kernel =>
    vector(type, {
      inShapes: shape,
      inTypes: 'FLOAT',
      outShapes: shape,
      outTypes: 'FLOAT',
      us: usOf(bytes * n),
      pipes: { aiv: [0.06, 0.04, 0.96, 0.66] },
      ...init,
    });
  if (fault.off) return [step('CrossEntropyLoss', 6, { inTypes: 'DT_BF16' })];
  const two = { inShapes: `${shape};${rows}`, inTypes: 'FLOAT;FLOAT' };
  return [
    step('Cast', 6, { inTypes: 'DT_BF16' }),
    step('ArgMaxWithValue', 4, { outShapes: `${rows};${rows}`, outTypes: 'INT32;FLOAT' }),
    step('Sub', 8, two),
    step('ReduceSum', 4, { outShapes: rows }),
    step('Mul', 8, two),
  ];
}

/** A kernel that uses few of the cores, or all of them. */
function fewBlocks(fault: FaultOf<'few-blocks'>, tokens: number): Kernel {
  const blocks = fault.blocks ?? 12;
  const us = fault.us ?? 1_500;
  const shape = `${tokens},${HIDDEN}`;
  return vector('ResizeLinear', {
    inShapes: shape,
    outShapes: shape,
    pipes: { aiv: [0.62, 0.2, 0.3, 0.2] },
    blockDim: fault.off ? 48 : blocks,
    us: fault.off ? (us * blocks) / 48 : us,
  });
}

const CUBE_PIPES = [0.82, 0.09, 0.5, 0.46, 0.11];

const endsWithVocabulary = (shapes: string): boolean => shapes.split(';').some((shape) => shape.endsWith(`,${VOCAB}`));

/** Products with the vocabulary as last axis take longer, with every pipe waiting; `idle-pipes`: attention, where nobody knows how much. */
function shapeModel(model: Model, loose: FaultOf<'loose-matmul'> | undefined, idle: boolean): Model {
  const factor = loose?.factor ?? 2;
  const slower = (k: Kernel): Kernel =>
    k.type === 'MatMulV2' && endsWithVocabulary(`${k.inShapes};${k.outShapes}`)
      ? { ...k, us: k.us * factor, pipes: { aic: CUBE_PIPES.map((r) => r / factor) } }
      : k;
  const waiting = (k: Kernel): Kernel =>
    k.type.startsWith('FlashAttention') ? { ...k, pipes: { aic: [0.3, 0.2, 0.2, 0.3, 0.2], aiv: [0.25, 0.1, 0.2, 0.1] } } : k;
  const each = (operators: Model['head'], change: (k: Kernel) => Kernel): Model['head'] =>
    operators.map((o) => ({ ...o, forward: change(o.forward), backward: o.backward.map(change) }));
  const shaped = loose ? { ...model, head: each(model.head, slower) } : model;
  return idle ? { ...shaped, layer: each(shaped.layer, waiting) } : shaped;
}

/** Places that fall on the n-th of `total` when `count` are spread evenly. */
function share(count: number, n: number, total: number): number {
  return Math.floor(((n + 1) * count) / total) - Math.floor((n * count) / total);
}

export function planComputeFaults(spec: ResolvedSpec, tokens: number): ComputeFaults {
  const one = <K extends Fault['kind']>(kind: K): FaultOf<K> | undefined => spec.faults.find((f): f is FaultOf<K> => f.kind === kind);
  const on = <K extends Fault['kind']>(kind: K): FaultOf<K> | undefined => {
    const fault = one(kind);
    return fault?.off === true ? undefined : fault;
  };
  const cpu = one('aicpu-op');
  const pair = one('cast-pair');
  const chain = one('vector-chain');
  const few = one('few-blocks');
  const weights = one('weight-cast');
  const makers: { count: number; make: () => Kernel[] }[] = [];
  if (cpu) makers.push({ count: cpu.perStep ?? 4, make: () => [cpuKernel(cpu, tokens)] });
  if (pair) makers.push({ count: pair.perStep ?? 2 * spec.layers, make: () => castPair(pair, tokens) });
  if (chain) makers.push({ count: chain.perStep ?? 2, make: () => formula(chain, tokens) });
  if (few) makers.push({ count: few.perStep ?? 4, make: () => [fewBlocks(few, tokens)] });
  const clocks = spec.faults.filter((f): f is FaultOf<'frequency-drop'> => f.kind === 'frequency-drop' && !f.off);
  return {
    extra:
      makers.length === 0
        ? null
        : (n, total) => makers.flatMap(({ count, make }) => Array.from({ length: share(count, n, total) }, make).flat()),
    weightCast: weights ? (product, pass) => (pass > 0 && weights.off ? null : castOfWeight(product, weights.slowness ?? 4)) : null,
    shape: (model) => shapeModel(model, on('loose-matmul'), on('idle-pipes') !== undefined),
    clockOf: (rank) => {
      const fault = clocks.find((f) => f.ranks === undefined || f.ranks.includes(rank));
      if (fault === undefined) return null;
      return fault.idle ? { busy: NOMINAL_MHZ, idle: fault.mhz ?? IDLE_MHZ } : { busy: fault.mhz ?? 1_440, idle: NOMINAL_MHZ };
    },
  };
}

/** The fp32 weight of a forward product in half precision. */
function castOfWeight(product: Kernel, slowness: number): Kernel {
  const weight = product.inShapes.split(';')[1]!;
  const elements = weight.split(',').reduce((n, d) => n * Number(d), 1);
  return cast('FLOAT', 'DT_BF16', weight, slowness * usOf(elements * 6));
}

/** Runs the extra kernels of a place under a random stream of their own, so that they do not shift the jitter of the rest. */
export function* extraKernels(faults: ComputeFaults, rank: Rank, n: number, total: number, op: (k: Kernel) => HostProgram): HostProgram {
  for (const [i, k] of (faults.extra?.(n, total) ?? []).entries()) yield* inPhase(rank, `compute${n}.${i}`, () => op(k));
}

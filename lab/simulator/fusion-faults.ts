import { fusedOptimizer, type Kernel, kernel, type Model, OPTIMIZER_US, type Operator } from './kernels.ts';
import type { Fault, ResolvedSpec } from './spec.ts';

/** What the model or the optimizer writes out although one kernel computes it. */
export interface FusionFaults {
  shape: (model: Model) => Model;
  optimizer: (share: number) => Kernel[];
  /** kernels of zero_grad */
  fills: (share: number) => Kernel[];
}

/** What a large vector kernel reaches, bytes per us. */
const RATE = 1_400_000;
/** Kernels that find their mean first, or read rows twice, are slower by this. */
const ROWS = 1.2;
const SMALL_US = 2.5;
const HIDDEN = 1024;
const FFN = 4096;
const HEADS = 16;
const EXPERTS = 8;
/** Parameters of a model that has one tensor of every size, and how often a fused update moves all of them. */
const PARAMETERS = 160;
const FUSED_PASSES = 7;

type FaultOf<K extends Fault['kind']> = Extract<Fault, { kind: K }>;

const SIZE: Record<string, number> = { DT_BF16: 2, FLOAT: 4, BOOL: 1, INT64: 8 };
const BF16 = 'DT_BF16';
const F32 = 'FLOAT';

/** A tensor as shape and type. */
type T = readonly [shape: string, type: string];

const elements = (shape: string): number => (shape === '' ? 1 : shape.split(',').reduce((n, d) => n * Number(d), 1));
const bytesOf = (tensors: readonly T[]): number => tensors.reduce((sum, [shape, type]) => sum + elements(shape) * SIZE[type]!, 0);

function vector(type: string, inputs: readonly T[], outputs: readonly T[], more: Partial<Kernel> & { slow?: number } = {}): Kernel {
  const { slow = 1, ...rest } = more;
  return kernel({
    aten: `aten::${type.toLowerCase()}`,
    acl: `aclnn${type}`,
    type,
    us: Math.max(SMALL_US, (slow * bytesOf([...inputs, ...outputs])) / RATE),
    inShapes: inputs.map(([shape]) => shape).join(';'),
    inTypes: inputs.map(([, type_]) => type_).join(';'),
    outShapes: outputs.map(([shape]) => shape).join(';'),
    outTypes: outputs.map(([, type_]) => type_).join(';'),
    ...rest,
  });
}

const op = (grad: string, forward: Kernel, backward: Kernel[] = [], module = ''): Operator => ({
  module,
  forward: { ...forward, grad },
  backward,
});

/** x · rsqrt(mean(x²) + ε) · γ as the framework runs it, and its gradients as autograd does. */
function rmsNorm(tokens: number): Operator[] {
  const x: T = [`${tokens},${HIDDEN}`, BF16];
  const wide: T = [`${tokens},${HIDDEN}`, F32];
  const row: T = [`${tokens},1`, F32];
  const weight: T = [`${HIDDEN}`, BF16];
  return [
    op('ToCopyBackward0', vector('Cast', [x], [wide]), [vector('Cast', [wide], [x])]),
    op('PowBackward0', vector('Pows', [wide], [wide]), [
      vector('Muls', [wide], [wide]),
      vector('Mul', [wide, wide], [wide]),
      vector('Add', [wide, wide], [wide]),
    ]),
    op('MeanBackward1', vector('ReduceMean', [wide], [row]), [vector('RealDiv', [row], [row])]),
    op('AddBackward0', vector('Adds', [row], [row])),
    op('RsqrtBackward0', vector('Rsqrt', [row], [row]), [vector('Pows', [row], [row]), vector('Mul', [row, row], [row])]),
    op('MulBackward0', vector('Mul', [wide, row], [wide]), [
      vector('Mul', [wide, row], [wide]),
      vector('Mul', [wide, wide], [wide]),
      vector('ReduceSum', [wide], [row]),
    ]),
    op('ToCopyBackward0', vector('Cast', [wide], [x]), [vector('Cast', [x], [wide])]),
    op('MulBackward0', vector('Mul', [weight, x], [x]), [
      vector('Mul', [x, weight], [x]),
      vector('Mul', [x, x], [x]),
      vector('ReduceSum', [x], [weight]),
    ]),
  ];
}

function fusedRmsNorm(tokens: number): Operator[] {
  const x: T = [`${tokens},${HIDDEN}`, BF16];
  const row: T = [`${tokens},1`, F32];
  const weight: T = [`${HIDDEN}`, BF16];
  return [
    op('NpuRmsNormBackward0', vector('RmsNorm', [x, weight], [x, row], { slow: ROWS, aten: 'npu::npu_rms_norm' }), [
      vector('RmsNormGrad', [x, x, row, weight], [x, weight], { slow: ROWS }),
    ]),
  ];
}

/** Halves of one projection, or the fused operator over both; the product behind it reads half as much as before. */
function swiglu(tokens: number, fused: boolean): Operator[] {
  const both: T = [`${tokens},${FFN}`, BF16];
  const half: T = [`${tokens},${FFN / 2}`, BF16];
  if (fused)
    return [
      op('NpuSwigluBackward0', vector('SwiGlu', [both], [half], { aten: 'npu::npu_swiglu' }), [vector('SwiGluGrad', [half, both], [both])]),
    ];
  return [
    op('SplitBackward0', vector('Slice', [both], [half]), [vector('ConcatD', [half, half], [both])]),
    op('SliceBackward0', vector('Slice', [both], [half])),
    op('SiluBackward0', vector('Swish', [half], [half]), [vector('SwishGrad', [half, half], [half])]),
    op('MulBackward0', vector('Mul', [half, half], [half]), [vector('Mul', [half, half], [half]), vector('Mul', [half, half], [half])]),
  ];
}

function gelu(tokens: number): Operator[] {
  const x: T = [`${tokens},${FFN}`, BF16];
  const one = (type: string): Kernel => vector(type, [x], [x]);
  const two = (type: string): Kernel => vector(type, [x, x], [x]);
  return [
    op('PowBackward0', one('Pows'), [one('Pows'), one('Muls'), two('Mul'), two('Add')]),
    op('MulBackward0', one('Muls'), [one('Muls')]),
    op('AddBackward0', two('Add')),
    op('MulBackward0', one('Muls'), [one('Muls')]),
    op('TanhBackward0', one('Tanh'), [two('TanhGrad')]),
    op('AddBackward0', one('Adds')),
    op('MulBackward0', two('Mul'), [two('Mul'), two('Mul')]),
    op('MulBackward0', one('Muls'), [one('Muls')]),
  ];
}

function rotary(sequences: number, fused: boolean): Operator[] {
  const x: T = [`${sequences},512,${HEADS},${HIDDEN / HEADS}`, BF16];
  const half: T = [`${sequences},512,${HEADS},${HIDDEN / HEADS / 2}`, BF16];
  const table: T = [`1,512,1,${HIDDEN / HEADS}`, BF16];
  if (fused)
    return [
      op('NpuRotaryMulBackward0', vector('RotaryPositionEmbedding', [x, table, table], [x], { aten: 'npu::npu_rotary_mul' }), [
        vector('RotaryPositionEmbeddingGrad', [x, table, table], [x]),
      ]),
    ];
  return [
    op('MulBackward0', vector('Mul', [x, table], [x]), [vector('Mul', [x, table], [x]), vector('Add', [x, x], [x])]),
    op('SliceBackward0', vector('Slice', [x], [half]), [vector('ZerosLike', [x], [x]), vector('TensorMove', [half], [half])]),
    op('SliceBackward0', vector('Slice', [x], [half]), [vector('ZerosLike', [x], [x]), vector('TensorMove', [half], [half])]),
    op('NegBackward0', vector('Neg', [half], [half]), [vector('Neg', [half], [half])]),
    op('CatBackward0', vector('ConcatD', [half, half], [x])),
    op('MulBackward0', vector('Mul', [x, table], [x]), [vector('Mul', [x, table], [x])]),
    op('AddBackward0', vector('Add', [x, x], [x])),
  ];
}

/** Products of one head's scores; their time is what the fused attention of the model needs for the same. */
const SCORES_US = 205;

function attention(sequences: number, scale: number): Operator[] {
  const heads = sequences * HEADS;
  const q: T = [`${heads},512,${HIDDEN / HEADS}`, BF16];
  const k: T = [`${heads},${HIDDEN / HEADS},512`, BF16];
  const flat: T = [`${heads},512,512`, BF16];
  const scores: T = [`${sequences},${HEADS},512,512`, BF16];
  const mask: T = ['1,1,512,512', BF16];
  const product = (a: T, b: T, out: T): Kernel =>
    vector('BatchMatMulV2', [a, b], [out], { us: SCORES_US * scale, core: 'AI_CORE', aten: 'aten::bmm', acl: 'aclnnBatchMatMul' });
  return [
    op('BmmBackward0', product(q, k, flat), [product(flat, q, q), product(q, flat, k)]),
    op('MulBackward0', vector('Muls', [scores], [scores]), [vector('Muls', [scores], [scores])]),
    op('AddBackward0', vector('Add', [scores, mask], [scores])),
    op('SoftmaxBackward0', vector('SoftmaxV2', [scores], [scores], { slow: ROWS }), [
      vector('SoftmaxGrad', [scores, scores], [scores], { slow: ROWS }),
    ]),
    op('BmmBackward0', product(flat, q, q), [product(flat, q, q), product(q, k, flat)]),
  ];
}

function maskedSoftmax(sequences: number, fused: boolean): Operator[] {
  const scores: T = [`${sequences},${HEADS},512,512`, BF16];
  const mask: T = ['1,1,512,512', 'BOOL'];
  if (fused)
    return [
      op('NpuScaledMaskedSoftmaxBackward0', vector('ScaledMaskedSoftmax', [scores, mask], [scores], { slow: ROWS }), [
        vector('ScaledMaskedSoftmaxGradV2', [scores, scores, mask], [scores], { slow: ROWS }),
      ]),
    ];
  return [
    op('MulBackward0', vector('Muls', [scores], [scores]), [vector('Muls', [scores], [scores])]),
    op('MaskedFillBackward0', vector('MaskedFill', [scores, mask], [scores]), [vector('MaskedFill', [scores, mask], [scores])]),
    op('SoftmaxBackward0', vector('SoftmaxV2', [scores], [scores], { slow: ROWS }), [
      vector('SoftmaxGrad', [scores, scores], [scores], { slow: ROWS }),
    ]),
  ];
}

/** Experts of a frozen router, one after the other or as grouped products. */
function experts(tokens: number, scale: number, fused: boolean): Operator[] {
  const all: T = [`${tokens},${HIDDEN}`, BF16];
  const product = (rows: number, from: number, to: number, us: number): Kernel =>
    vector(
      'MatMulV2',
      [
        [`${rows},${from}`, BF16],
        [`${from},${to}`, BF16],
      ],
      [[`${rows},${to}`, BF16]],
      {
        us: us * scale,
        core: 'AI_CORE',
        aten: 'aten::mm',
        acl: 'aclnnMm',
      },
    );
  const rows = tokens / EXPERTS;
  if (fused) {
    const grouped = (from: number, to: number): Kernel =>
      vector(
        'GroupedMatmul',
        [
          [`${tokens},${from}`, BF16],
          [`${EXPERTS},${from},${to}`, BF16],
        ],
        [[`${tokens},${to}`, BF16]],
        {
          us: EXPERTS * 36 * scale,
          core: 'MIX_AIC',
          aten: 'npu::npu_grouped_matmul',
          acl: 'aclnnGroupedMatmulV4',
        },
      );
    const wide: T = [`${tokens},${FFN}`, BF16];
    return [
      op('', vector('GatherV2', [all, [`${tokens}`, 'INT64']], [all])),
      op('', grouped(HIDDEN, FFN)),
      op('', vector('Gelu', [wide], [wide])),
      op('', grouped(FFN, HIDDEN)),
      op('', vector('InplaceIndexAdd', [all, [`${tokens}`, 'INT64'], all], [all])),
    ];
  }
  const some: T = [`${rows},${HIDDEN}`, BF16];
  const wide: T = [`${rows},${FFN}`, BF16];
  const index: T = [`${rows}`, 'INT64'];
  const one = [
    op('', vector('NonZero', [[`${tokens}`, 'BOOL']], [[`${rows},1`, 'INT64']], { us: 9 })),
    op('', vector('GatherV2', [all, index], [some], { us: bytesOf([some, some]) / RATE })),
    op('', product(rows, HIDDEN, FFN, 36)),
    op('', vector('Gelu', [wide], [wide])),
    op('', product(rows, FFN, HIDDEN, 36)),
    op('', vector('InplaceIndexAdd', [all, index, some], [all], { us: bytesOf([some, some, some]) / RATE })),
  ];
  return Array.from({ length: EXPERTS }, () => one).flat();
}

/** A squashed signal as one kernel per operation, computed without gradients; right: one kernel. */
function elementwiseChain(fault: FaultOf<'elementwise-chain'>, tokens: number): Operator[] {
  const x: T = [`${tokens},${FFN}`, BF16];
  const pipes = { aiv: [0.2, 0.05, 0.8, 0.6] };
  const step = (type: string): Operator => op('', vector(type, [x], [x], { pipes }));
  const types = ['Abs', 'Adds', 'Log', 'Muls', 'Exp', 'Clip', 'Neg', 'Sqrt'].slice(0, fault.length ?? 4);
  const one = fault.off ? [step('SignedLog')] : types.map(step);
  return Array.from({ length: fault.perLayer ?? 1 }, () => one).flat();
}

/** The kernel types of formulas in their order, on tensors that do not belong together. */
function lookAlike(tokens: number): Operator[] {
  const x: T = [`${tokens},${HIDDEN}`, BF16];
  const wide: T = [`${tokens},${HIDDEN}`, F32];
  const other: T = [`${tokens},${FFN / 2}`, BF16];
  const row: T = [`${tokens},1`, F32];
  const short: T = [`${tokens / 4},1`, F32];
  const alone = (forward: Kernel): Operator => op('', forward);
  return [
    // RMSNorm: the root is taken of other rows than the mean.
    alone(vector('Cast', [x], [wide])),
    alone(vector('Pows', [other], [other])),
    alone(vector('ReduceMean', [wide], [row])),
    alone(vector('Adds', [short], [short])),
    alone(vector('Rsqrt', [short], [short])),
    alone(vector('Mul', [wide, row], [wide])),
    alone(vector('Cast', [other], [[other[0], F32]])),
    // SwiGLU and a chain: each in another type than the one before wrote.
    alone(vector('Swish', [other], [other])),
    alone(
      vector(
        'Mul',
        [
          [other[0], F32],
          [other[0], F32],
        ],
        [[other[0], F32]],
      ),
    ),
    alone(vector('Abs', [x], [x])),
    alone(vector('Log', [wide], [wide])),
    alone(vector('Muls', [other], [other])),
    alone(vector('Exp', [wide], [wide])),
  ];
}

/** The update by one kernel per operation over lists of parameters, or over one parameter after the other. */
function unfusedUpdate(how: 'foreach' | 'loop', share: number): Kernel[] {
  const passes: [string, number][] =
    how === 'foreach'
      ? [
          ['ForeachMulScalar', 2],
          ['ForeachLerpScalar', 3],
          ['ForeachMulScalar', 2],
          ['ForeachAddcmulScalar', 4],
          ['ForeachSqrt', 2],
          ['ForeachDivScalarList', 2],
          ['ForeachAddScalar', 2],
          ['ForeachAddcdivScalarList', 4],
        ]
      : [
          ['Muls', 2],
          ['Lerp', 3],
          ['Muls', 2],
          ['Addcmul', 4],
          ['Sqrt', 2],
          ['Divs', 2],
          ['Adds', 2],
          ['Addcdiv', 4],
        ];
  const pieces = how === 'foreach' ? 2 : 24;
  const tensors = how === 'foreach' ? PARAMETERS / pieces : 1;
  const each = (OPTIMIZER_US * share) / FUSED_PASSES / pieces;
  const list = (word: string): string => Array.from({ length: tensors }, () => word).join(';');
  return Array.from({ length: pieces }, () =>
    passes.map(([type, n]) =>
      kernel({
        aten: how === 'foreach' ? 'aten::_foreach_op_' : `aten::${type.toLowerCase()}_`,
        acl: `aclnn${type}`,
        type,
        us: each * n,
        inShapes: list('1000,1024'),
        inTypes: list(F32),
        outShapes: list('1000,1024'),
        outTypes: list(F32),
      }),
    ),
  ).flat();
}

export function planFusionFaults(spec: ResolvedSpec, tokens: number, scale: number): FusionFaults {
  const all = <K extends Fault['kind']>(kind: K): FaultOf<K>[] => spec.faults.filter((f): f is FaultOf<K> => f.kind === kind);
  const update = all('unfused-optimizer')[0];
  const fill = all('zero-fill')[0];
  return {
    shape: (model) => {
      const layer = all('unfused').reduce((operators, fault) => written(operators, fault, tokens, scale), model.layer);
      const head = all('unfused').reduce(
        (operators, fault) => (fault.of === 'rms-norm' ? written(operators, fault, tokens, scale) : operators),
        model.head,
      );
      const chains = all('elementwise-chain').flatMap((fault) => elementwiseChain(fault, tokens));
      const look = all('look-alike').length > 0 ? lookAlike(tokens) : [];
      return { ...model, head, layer: [...layer, ...chains, ...look] };
    },
    optimizer: (share) => (update && !update.off ? unfusedUpdate(update.how ?? 'foreach', share) : fusedOptimizer(share)),
    fills: (share) => {
      if (!fill || fill.off) return [];
      const size: T = ['1000,1024', F32];
      return Array.from({ length: PARAMETERS }, () =>
        vector('ZerosLike', [size], [size], { us: Math.max(SMALL_US, (OPTIMIZER_US * share) / FUSED_PASSES / PARAMETERS) }),
      );
    },
  };
}

/** The layer with one operator written out; off: with its fused form. */
function written(operators: Operator[], fault: FaultOf<'unfused'>, tokens: number, scale: number): Operator[] {
  const sequences = tokens / 512;
  const fused = fault.off === true;
  const replace = (type: string, by: () => Operator[]): Operator[] => operators.flatMap((o) => (o.forward.type === type ? by() : [o]));
  const before = (type: string, added: () => Operator[]): Operator[] =>
    operators.flatMap((o) => (o.forward.type === type ? [...added(), o] : [o]));
  switch (fault.of) {
    case 'rms-norm':
      return replace('LayerNormV3', () => (fused ? fusedRmsNorm(tokens) : rmsNorm(tokens)));
    case 'swiglu':
      return replace('Gelu', () => swiglu(tokens, fused));
    case 'gelu':
      return fused ? operators : replace('Gelu', () => gelu(tokens));
    case 'attention':
      return fused ? operators : replace('FlashAttentionScore', () => attention(sequences, scale));
    case 'rotary':
      return before('FlashAttentionScore', () => [...rotary(sequences, fused), ...rotary(sequences, fused)]);
    case 'masked-softmax':
      return before('FlashAttentionScore', () => maskedSoftmax(sequences, fused));
    case 'expert-loop':
      return [...operators, ...experts(tokens, scale, fused)];
    case 'transposed-product': {
      const weight: T = [`${3 * HIDDEN},${HIDDEN}`, BF16];
      const turned: T = [`${HIDDEN},${3 * HIDDEN}`, BF16];
      const copy = op('', vector('Transpose', [weight], [turned], { us: 300 }));
      const at = operators.findIndex((o) => o.forward.inShapes.split(';')[1] === turned[0]);
      return fused || at === -1 ? operators : [...operators.slice(0, at), copy, ...operators.slice(at)];
    }
  }
}

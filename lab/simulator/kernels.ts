/** Where a kernel runs, as the profiler's Accelerator Core column says. */
type Core = 'AI_CORE' | 'AI_VECTOR_CORE' | 'MIX_AIC' | 'MIX_AIV' | 'AI_CPU';

/** A device kernel and the host operator that launches it. Shared by all its launches. */
export interface Kernel {
  /** framework operator, e.g. aten::addmm */
  aten: string;
  /** enclosing framework operator, e.g. aten::linear; empty for none */
  outer: string;
  /** backward node of the operator, e.g. AddmmBackward0; empty for none */
  grad: string;
  /** CANN operator, e.g. aclnnAddmm */
  acl: string;
  /** device task name */
  name: string;
  type: string;
  core: Core;
  blockDim: number;
  inShapes: string;
  inTypes: string;
  inFormats: string;
  outShapes: string;
  outTypes: string;
  outFormats: string;
  /** device time in us before jitter */
  us: number;
  /** an elementwise operator that a layout fault may wrap in conversions */
  elementwise: boolean;
  /** shares of time in which each pipe is busy, where they differ from those of its kind: mac, scalar, mte1, mte2, fixpipe; vec, scalar, mte2, mte3 */
  pipes?: { aic?: number[]; aiv?: number[] };
}

type KernelInit = Pick<Kernel, 'aten' | 'acl' | 'type' | 'us'> & Partial<Kernel>;

const CUBE = new Set(['MatMulV2', 'MatMulV3', 'BatchMatMulV2']);

export function kernel(init: KernelInit): Kernel {
  const core: Core = init.core ?? (CUBE.has(init.type) ? 'AI_CORE' : 'AI_VECTOR_CORE');
  return {
    outer: '',
    grad: '',
    name: `${init.acl}_${init.type}AiCore_${init.type}`,
    core,
    blockDim: core === 'AI_CPU' ? 1 : core === 'AI_CORE' || core === 'MIX_AIC' ? 24 : 48,
    inShapes: '',
    inTypes: repeat('DT_BF16', init.inShapes),
    inFormats: repeat('ND', init.inShapes),
    outShapes: '',
    outTypes: repeat('DT_BF16', init.outShapes),
    outFormats: repeat('ND', init.outShapes),
    elementwise: false,
    ...init,
  };
}

function repeat(word: string, shapes: string | undefined): string {
  return (shapes ?? '')
    .split(';')
    .map(() => word)
    .join(';');
}

/** tokens of a full-size batch: 16 sequences of 512 */
const FULL_TOKENS = 8192;
const HIDDEN = 1024;
const FFN = 4096;
const VOCAB = 16000;

/** Tokens of a batch of `scale` times a full-size one. */
export function batchTokens(scale: number): number {
  return (Math.max(1, Math.round(16 * scale)) * FULL_TOKENS) / 16;
}

/** bytes of one transformer layer's gradients (fp32) */
export const LAYER_GRAD_BYTES = (4 * HIDDEN * HIDDEN + 2 * HIDDEN * FFN) * 4;
/** bytes of the embedding's gradient (fp32) */
export const EMBEDDING_GRAD_BYTES = VOCAB * HIDDEN * 4;
/** Sizes that depend on the batch a rank computes at once. */
interface Batch {
  tokens: number;
  sequences: number;
  /** device time relative to a full-size batch */
  scale: number;
}

function linear(batch: Batch, fullUs: number, inDim: number, outDim: number): { forward: Kernel; backward: Kernel[] } {
  const us = fullUs * batch.scale;
  const input = `${batch.tokens},${inDim}`;
  const output = `${batch.tokens},${outDim}`;
  const weight = `${outDim},${inDim}`;
  const mm = { type: 'MatMulV2', core: 'AI_CORE' as const, aten: 'aten::mm', acl: 'aclnnMm', name: 'aclnnMm_MatMulCommon_MatMulV2' };
  return {
    forward: kernel({
      outer: 'aten::linear',
      aten: 'aten::addmm',
      grad: 'AddmmBackward0',
      acl: 'aclnnAddmm',
      name: 'aclnnAddmm_MatMulCommon_MatMulV2',
      type: 'MatMulV2',
      us,
      inShapes: `${input};${inDim},${outDim};${outDim}`,
      outShapes: output,
    }),
    backward: [
      kernel({ ...mm, us, inShapes: `${output};${weight}`, outShapes: input }),
      kernel({ ...mm, us: us * 1.02, inShapes: `${outDim},${batch.tokens};${input}`, outShapes: weight }),
      kernel({
        aten: 'aten::sum',
        acl: 'aclnnReduceSum',
        name: 'aclnnReduceSum_ReduceSumOpAiCore_ReduceSum',
        type: 'ReduceSum',
        core: 'MIX_AIV',
        us: 14 + us * 0.07,
        inShapes: `${output};1`,
        inTypes: 'DT_BF16;INT64',
        outShapes: `${outDim}`,
      }),
    ],
  };
}

/** One forward operator and the kernels of its backward node. */
export interface Operator {
  /** module that runs it, for call stacks */
  module: string;
  forward: Kernel;
  backward: Kernel[];
}

function elementwiseOp(
  batch: Batch,
  aten: string,
  acl: string,
  type: string,
  grad: string,
  shape: string,
  us: number,
  gradUs: number,
): Operator {
  const gradType = type === 'Gelu' ? 'GeluGrad' : 'Mul';
  const gradAcl = type === 'Gelu' ? 'aclnnGeluBackward' : 'aclnnMul';
  return {
    module: type === 'Gelu' ? 'activation.py(734): forward' : '',
    forward: kernel({
      aten,
      acl,
      type,
      grad,
      us: us * batch.scale,
      inShapes: type === 'Gelu' ? shape : `${shape};${shape}`,
      outShapes: shape,
      elementwise: true,
    }),
    backward: [
      kernel({
        aten: type === 'Gelu' ? 'aten::gelu_backward' : 'aten::mul',
        acl: gradAcl,
        type: gradType,
        us: gradUs * batch.scale,
        inShapes: `${shape};${shape}`,
        outShapes: shape,
      }),
    ],
  };
}

function residual(batch: Batch): Operator {
  const x = `${batch.tokens},${HIDDEN}`;
  return {
    module: '',
    forward: kernel({
      aten: 'aten::add',
      acl: 'aclnnAdd',
      type: 'Add',
      grad: 'AddBackward0',
      us: 40 * batch.scale,
      inShapes: `${x};${x}`,
      outShapes: x,
    }),
    backward: [
      kernel({
        aten: 'aten::add_',
        acl: 'aclnnInplaceAdd',
        name: 'aclnnInplaceAdd_AddAiCore_Add',
        type: 'Add',
        us: 40 * batch.scale,
        inShapes: `${x};${x}`,
        outShapes: x,
      }),
    ],
  };
}

function layerNorm(batch: Batch): Operator {
  const x = `${batch.tokens},${HIDDEN}`;
  const rows = `${batch.tokens},1`;
  return {
    module: 'normalization.py(201): forward',
    forward: kernel({
      outer: 'aten::layer_norm',
      aten: 'aten::native_layer_norm',
      acl: 'aclnnLayerNorm',
      type: 'LayerNormV3',
      grad: 'NativeLayerNormBackward0',
      us: 38 * batch.scale,
      inShapes: `${x};${HIDDEN};${HIDDEN}`,
      outShapes: `${x};${rows};${rows}`,
      outTypes: 'DT_BF16;FLOAT;FLOAT',
    }),
    backward: [
      kernel({
        aten: 'aten::native_layer_norm_backward',
        acl: 'aclnnLayerNormBackward',
        type: 'LayerNormGradV3',
        core: 'MIX_AIV',
        us: 76 * batch.scale,
        inShapes: `${x};${x};${rows};${rows};${HIDDEN}`,
        inTypes: 'DT_BF16;DT_BF16;FLOAT;FLOAT;DT_BF16',
        outShapes: `${x};${HIDDEN};${HIDDEN}`,
      }),
    ],
  };
}

function attention(batch: Batch): Operator {
  const qkv = `${batch.sequences},512,${HIDDEN}`;
  const stats = `${batch.sequences},16,512,8`;
  return {
    module: '',
    forward: kernel({
      aten: 'npu::npu_fusion_attention',
      acl: 'aclnnFlashAttentionScore',
      name: 'aclnnFlashAttentionScore_FlashAttentionScore_FlashAttentionScore',
      type: 'FlashAttentionScore',
      core: 'MIX_AIC',
      grad: 'NpuFusionAttentionBackward0',
      us: 410 * batch.scale,
      inShapes: `${qkv};${qkv};${qkv}`,
      outShapes: `${stats};${stats};0;${qkv}`,
      outTypes: 'FLOAT;FLOAT;DT_BF16;DT_BF16',
    }),
    backward: [
      kernel({
        aten: 'npu::npu_fusion_attention_grad',
        acl: 'aclnnFlashAttentionScoreGrad',
        name: 'aclnnFlashAttentionScoreGrad_FlashAttentionScoreGrad_FlashAttentionScoreGrad',
        type: 'FlashAttentionScoreGrad',
        core: 'MIX_AIC',
        us: 1020 * batch.scale,
        inShapes: `${qkv};${qkv};${qkv};${qkv};${stats};${stats}`,
        inTypes: 'DT_BF16;DT_BF16;DT_BF16;DT_BF16;FLOAT;FLOAT',
        outShapes: `${qkv};${qkv};${qkv}`,
      }),
    ],
  };
}

/** The model as operators of one batch. */
export interface Model {
  embedding: Operator[];
  /** operators of one transformer layer (about 1.7 ms forward and 3.7 ms backward at full size) */
  layer: Operator[];
  head: Operator[];
  loss: Operator[];
  /** the sequence feature at the start of the forward, as two fused kernels */
  feature: Kernel[];
  /** bytes of one activation exchanged between pipeline stages (bf16) */
  activationBytes: number;
}

/** Device time of the sequence feature in us. */
const FEATURE_US = 900;

/**
 * Builds the transformer for a batch of `scale` times 16 sequences of 512 tokens.
 * `headScale` shrinks the vocabulary projection and the loss, for pipeline stages of equal weight.
 */
export function buildModel(scale: number, headScale = 1): Model {
  const sequences = Math.max(1, Math.round(16 * scale));
  const tokens = (sequences * FULL_TOKENS) / 16;
  const batch: Batch = { tokens, sequences, scale };
  const head: Batch = { ...batch, scale: scale * headScale };
  const vocab = Math.round((VOCAB * headScale) / 16) * 16;
  const x = `${tokens},${HIDDEN}`;
  const logits = `${tokens},${vocab}`;
  const linearOp = (of: Batch, us: number, inDim: number, outDim: number): Operator => ({
    module: 'linear.py(117): forward',
    ...linear(of, us, inDim, outDim),
  });
  return {
    activationBytes: tokens * HIDDEN * 2,
    layer: [
      layerNorm(batch),
      linearOp(batch, 262, HIDDEN, 3 * HIDDEN),
      attention(batch),
      linearOp(batch, 95, HIDDEN, HIDDEN),
      elementwiseOp(batch, 'aten::mul', 'aclnnMul', 'Mul', 'MulBackward0', x, 36, 38),
      residual(batch),
      layerNorm(batch),
      linearOp(batch, 340, HIDDEN, FFN),
      elementwiseOp(batch, 'aten::gelu', 'aclnnGelu', 'Gelu', 'GeluBackward0', `${tokens},${FFN}`, 95, 120),
      linearOp(batch, 340, FFN, HIDDEN),
      residual(batch),
    ],
    embedding: [
      {
        module: 'sparse.py(163): forward',
        forward: kernel({
          aten: 'aten::embedding',
          acl: 'aclnnEmbedding',
          name: 'aclnnEmbedding_GatherV2AiCore_GatherV2',
          type: 'GatherV2',
          grad: 'EmbeddingBackward0',
          us: 60 * scale,
          inShapes: `${VOCAB},${HIDDEN};${sequences},512;1`,
          inTypes: 'DT_BF16;INT64;INT64',
          outShapes: `${sequences},512,${HIDDEN}`,
        }),
        backward: [
          kernel({
            aten: 'aten::embedding_dense_backward',
            acl: 'aclnnEmbeddingDenseBackward',
            name: 'aclnnEmbeddingDenseBackward_EmbeddingDenseGradV2_EmbeddingDenseGradV2',
            type: 'EmbeddingDenseGradV2',
            core: 'MIX_AIV',
            us: 240 * scale,
            inShapes: `${sequences},512,${HIDDEN};${tokens};${tokens}`,
            inTypes: 'DT_BF16;INT32;INT32',
            outShapes: `${VOCAB},${HIDDEN}`,
          }),
        ],
      },
      residual(batch),
    ],
    head: [layerNorm(batch), linearOp(head, 1310, HIDDEN, vocab)],
    loss: [
      {
        module: '',
        forward: kernel({
          outer: 'aten::cross_entropy_loss',
          aten: 'aten::log_softmax',
          acl: 'aclnnLogSoftmax',
          type: 'LogSoftmaxV2',
          grad: 'LogSoftmaxBackward0',
          us: 420 * head.scale,
          inShapes: logits,
          outShapes: logits,
        }),
        backward: [
          kernel({
            aten: 'aten::_log_softmax_backward_data',
            acl: 'aclnnLogSoftmaxBackward',
            name: 'aclnnLogSoftmaxBackward_LogSoftmaxGrad_LogSoftmaxGrad',
            type: 'LogSoftmaxGrad',
            us: 520 * head.scale,
            inShapes: `${logits};${logits}`,
            outShapes: logits,
          }),
        ],
      },
      {
        module: '',
        forward: kernel({
          outer: 'aten::nll_loss_nd',
          aten: 'aten::nll_loss_forward',
          acl: 'aclnnNLLLoss',
          type: 'NLLLoss',
          core: 'MIX_AIV',
          grad: 'NllLossBackward0',
          us: 28,
          inShapes: `${logits};${tokens};${vocab}`,
          inTypes: 'DT_BF16;INT64;FLOAT',
          outShapes: ';',
          outTypes: 'FLOAT;FLOAT',
        }),
        backward: [
          kernel({
            aten: 'aten::nll_loss_backward',
            acl: 'aclnnNLLLossBackward',
            type: 'NLLLossGrad',
            us: 180 * head.scale,
            inShapes: `${logits};;${tokens};${vocab};`,
            inTypes: 'DT_BF16;FLOAT;INT64;FLOAT;FLOAT',
            outShapes: logits,
          }),
        ],
      },
    ],
    feature: ['Mul', 'Add'].map((type) =>
      kernel({
        aten: `aten::${type.toLowerCase()}`,
        acl: `aclnn${type}`,
        type,
        us: (FEATURE_US / 2) * scale,
        inShapes: `${x};${x}`,
        outShapes: x,
      }),
    ),
  };
}

/** The sequence feature computed in a Python loop over rows: `count` tiny kernels of four types in turn. */
export function loopFeature(count: number, scale: number): Kernel[] {
  const sequence = [
    ['aten::mul', 'aclnnMul', 'Mul'],
    ['aten::exp', 'aclnnExp', 'Exp'],
    ['aten::add', 'aclnnAdd', 'Add'],
    ['aten::sub', 'aclnnSub', 'Sub'],
  ] as const;
  const us = (FEATURE_US * scale) / count;
  const kinds = sequence.map(([aten, acl, type]) =>
    kernel({ aten, acl, type, us, inShapes: `512,${HIDDEN};512,${HIDDEN}`, outShapes: `512,${HIDDEN}` }),
  );
  return Array.from({ length: count }, (_, i) => kinds[i % kinds.length]!);
}

/** Device time of the whole AdamW update in us. */
export const OPTIMIZER_US = 3900;
/** Launches of the fused AdamW update. */
const FUSED_CHUNKS = 8;

/** The fused AdamW update of a `share` of the parameters: few large kernels. */
export function fusedOptimizer(share: number): Kernel[] {
  const size = `${Math.round(((12 * LAYER_GRAD_BYTES + EMBEDDING_GRAD_BYTES) / 4 / FUSED_CHUNKS) * share)}`;
  const chunk = kernel({
    outer: 'aten::_fused_adamw_',
    aten: 'npu::npu_apply_adam_w',
    acl: 'aclnnApplyAdamWV2',
    name: 'aclnnApplyAdamWV2_ApplyAdamWV2_ApplyAdamWV2',
    type: 'ApplyAdamWV2',
    us: (OPTIMIZER_US / FUSED_CHUNKS) * share,
    inShapes: `${size};${size};${size};${size};1`,
    inTypes: 'FLOAT;FLOAT;FLOAT;FLOAT;FLOAT',
    outShapes: `${size};${size};${size}`,
    outTypes: 'FLOAT;FLOAT;FLOAT',
  });
  return Array.from({ length: FUSED_CHUNKS }, () => chunk);
}

const PARAM_SHAPES = [`${HIDDEN}`, `${HIDDEN},${HIDDEN}`, `${3 * HIDDEN}`, `${FFN}`, `512,${HIDDEN}`];
const ADAM_LOOP: [string, string, string][] = [
  ['aten::mul_', 'aclnnInplaceMuls', 'Mul'],
  ['aten::add_', 'aclnnInplaceAdd', 'Add'],
  ['aten::mul_', 'aclnnInplaceMuls', 'Mul'],
  ['aten::addcmul_', 'aclnnInplaceAddcmul', 'Addcmul'],
  ['aten::sqrt', 'aclnnSqrt', 'Sqrt'],
  ['aten::add_', 'aclnnInplaceAdds', 'Add'],
  ['aten::addcdiv_', 'aclnnInplaceAddcdiv', 'Addcdiv'],
];

/** The same AdamW update as a Python loop: `count` tiny kernels in a repeated sequence of seven types. */
export function loopOptimizer(count: number, share: number): Kernel[] {
  const variants = PARAM_SHAPES.map((shape) =>
    ADAM_LOOP.map(([aten, acl, type]) =>
      kernel({
        aten,
        acl,
        type,
        us: (OPTIMIZER_US * share) / count,
        inShapes: `${shape};${shape}`,
        inTypes: 'FLOAT;FLOAT',
        outShapes: shape,
        outTypes: 'FLOAT',
      }),
    ),
  );
  return Array.from({ length: count }, (_, i) => variants[Math.floor(i / ADAM_LOOP.length) % variants.length]![i % ADAM_LOOP.length]!);
}

/** FRACTAL_NZ shape of a matrix: (columns/16, rows/16, 16, 16). */
function fractal(shape: string): string {
  const [rows = 0, cols = 0] = shape.split(',').map(Number);
  return `${cols / 16},${rows / 16},16,16`;
}

/** A conversion into FRACTAL_NZ, the elementwise kernel there, and the conversion back. */
export function roundTrip(inner: Kernel, us: number): { enter: Kernel; inner: Kernel; leave: Kernel } {
  const shape = inner.outShapes;
  const nz = fractal(shape);
  const conversion = { aten: 'npu::npu_format_cast', acl: 'NpuFormatCast', type: 'TransData', us };
  const nzEach = (shapes: string) => shapes.split(';').map(fractal).join(';');
  return {
    enter: kernel({ ...conversion, name: 'trans_TransData_21', inShapes: shape, outShapes: nz, outFormats: 'FRACTAL_NZ' }),
    inner: {
      ...inner,
      inShapes: nzEach(inner.inShapes),
      inFormats: repeat('FRACTAL_NZ', inner.inShapes),
      outShapes: nz,
      outFormats: 'FRACTAL_NZ',
    },
    leave: kernel({ ...conversion, name: 'trans_TransData_22', inShapes: nz, inFormats: 'FRACTAL_NZ', outShapes: shape }),
  };
}

/** Flattening of module buffers before a broadcast, and the copy back. */
export const FLATTEN_BUFFERS = kernel({
  aten: 'aten::cat',
  acl: 'aclnnCat',
  name: 'aclnnCat_ConcatD_ConcatD',
  type: 'ConcatD',
  us: 180,
  inShapes: '5242880;5242880',
  inTypes: 'FLOAT;FLOAT',
  outShapes: '10485760',
  outTypes: 'FLOAT',
});
export const COPY_BUFFER = kernel({
  aten: 'aten::copy_',
  acl: 'aclnnInplaceCopy',
  name: 'aclnnInplaceCopy_TensorMoveAiCore_TensorMove',
  type: 'TensorMove',
  us: 38,
  inShapes: '5242880',
  inTypes: 'FLOAT',
  outShapes: '5242880',
  outTypes: 'FLOAT',
});
/** bytes of one simulated module buffer */
export const BUFFER_BYTES = 5242880 * 4;

/** Device time of one grouped matrix multiplication over the experts of a rank that got its even share of the tokens, in us. */
const EXPERT_US = 150;
/** Experts of one rank. */
const EXPERTS = 8;

/** One matrix multiplication over the experts of a rank; `share` is its tokens relative to the mean. */
export function expertMatmul(tokens: number, share: number, name: 'up' | 'down' | 'upGrad' | 'downGrad'): Kernel {
  const rows = Math.max(EXPERTS, Math.round(tokens * share));
  const [from, to] = name === 'up' || name === 'downGrad' ? [HIDDEN, FFN] : [FFN, HIDDEN];
  return kernel({
    aten: 'npu::npu_grouped_matmul',
    acl: 'aclnnGroupedMatmulV4',
    name: 'aclnnGroupedMatmulV4_GroupedMatmul_GroupedMatmul',
    type: 'GroupedMatmul',
    core: 'MIX_AIC',
    us: EXPERT_US * (name.endsWith('Grad') ? 2 : 1) * (rows / tokens),
    inShapes: `${rows},${from};${EXPERTS},${from},${to}`,
    outShapes: `${rows},${to}`,
  });
}

/** Bytes of the activations of `tokens` tokens (bf16). */
export const activationBytes = (tokens: number): number => tokens * HIDDEN * 2;

/** Gradient seed of `loss.backward()`. */
/** Positions of the elements that are not zero; how many there are, only the device knows. */
export const NONZERO = kernel({
  aten: 'aten::nonzero',
  acl: 'aclnnNonzero',
  name: 'aclnnNonzero_NonZeroAiCore_NonZero',
  type: 'NonZero',
  us: 9,
  inShapes: '8192',
  inTypes: 'BOOL',
  outShapes: '8192,1',
  outTypes: 'INT64',
});

export const ONES_LIKE = kernel({
  outer: 'aten::ones_like',
  aten: 'aten::fill_',
  acl: 'aclnnInplaceFillScalar',
  name: 'aclnnInplaceFillScalar_FillAiCore_Fill',
  type: 'Fill',
  us: 1.5,
  inShapes: '',
  inTypes: 'FLOAT',
  outShapes: '',
  outTypes: 'FLOAT',
});

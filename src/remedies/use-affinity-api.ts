import { FUSION_PATTERNS, type FusionPattern } from '../model/facts.ts';
import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext, Soc } from '../model/remedy.ts';
import { choice, flag } from './reading/params.ts';
import { isReleaseAtLeast, isTorchAtLeast, sinceNote } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage, torchNpuPage, torchPage } from './wording/documents.ts';
import { compileFormulas, lazyFusion } from './wording/fusing.ts';

const TITLE = both('Call the fused operator', '改用融合算子');

/** What takes the place of a formula here, or null where no call for it is listed on this hardware or in this release. */
interface Replacement {
  readonly text: L10n;
  readonly code: string | null;
  readonly preconditions: readonly (L10n | null)[];
  readonly references: readonly string[];
}

const isListed = (soc: Soc, products: readonly NonNullable<Soc>[]): boolean => soc === null || products.includes(soc);

const ROUNDING = both(
  'Rounding differs from the written-out form: compare the loss curve.',
  '舍入与逐步写出的形式不同：需对比 loss 曲线。',
);
const OTHER_HARDWARE = both('Its page lists the hardware it is for.', '支持的硬件见其文档页。');
/** A bracket in Chinese needs no space behind it, a name does. */
const gap = (note: string): string => (note === '' ? ' ' : note);
const unknown = (soc: Soc): L10n | null => (soc === null ? OTHER_HARDWARE : null);

function rmsNorm({ soc, torchNpu }: RemedyContext): Replacement | null {
  const since = sinceNote(torchNpu, '5.0.0');
  if (since === null || !isListed(soc, ['gen-1', 'A2', 'A3'])) return null;
  return {
    text: prose(
      both(
        `\`torch_npu.npu_rms_norm\`${since.en} is one kernel forward and one backward; it returns a tuple, the result comes first.`,
        `\`torch_npu.npu_rms_norm\`${gap(since.zh)}前向、反向各一个 kernel；返回元组，第一个是结果。`,
      ),
      unknown(soc),
    ),
    code: 'y = torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]',
    preconditions: [
      soc === 'gen-1'
        ? both('Input and weight have the same type, fp16 or fp32.', '输入与权重类型相同，均为 fp16 或 fp32。')
        : both('The weight has the type of the input, or fp32.', '权重与输入同类型，或为 fp32。'),
      ROUNDING,
    ],
    references: [apiPage('torch_npu/（beta）torch_npu-npu_rms_norm')],
  };
}

function layerNorm(): Replacement {
  return {
    text: both(
      '`torch.nn.functional.layer_norm` is one kernel forward and one backward.',
      '`torch.nn.functional.layer_norm` 前向、反向各一个 kernel。',
    ),
    code: 'y = torch.nn.functional.layer_norm(x, (hidden,), weight, bias, eps)',
    preconditions: [ROUNDING],
    references: [torchPage('generated/torch.nn.functional.layer_norm.html')],
  };
}

function gelu({ torch, params }: RemedyContext): Replacement {
  const isTanh = params.form !== 'erf';
  const approximate = isTanh && isTorchAtLeast(torch, 1, 12) !== false;
  if (isTanh && !approximate) {
    return {
      text: both(
        'From torch 1.12 on `torch.nn.functional.gelu` knows the form with tanh; before, only that with erf.',
        'torch 1.12 起 `torch.nn.functional.gelu` 支持 tanh 形式，之前只有 erf 形式。',
      ),
      code: null,
      preconditions: [ROUNDING],
      references: [torchPage('generated/torch.nn.functional.gelu.html')],
    };
  }
  return {
    text: both(
      '`torch.nn.functional.gelu` is one kernel forward and one backward.',
      '`torch.nn.functional.gelu` 前向、反向各一个 kernel。',
    ),
    code: isTanh ? 'y = torch.nn.functional.gelu(x, approximate="tanh")' : 'y = torch.nn.functional.gelu(x)',
    preconditions: [
      both('Keep the form the model was trained with: tanh and erf differ.', '保持模型训练时的形式：tanh 与 erf 结果不同。'),
      ROUNDING,
    ],
    references: [torchPage('generated/torch.nn.functional.gelu.html')],
  };
}

function softmax({ soc }: RemedyContext): Replacement {
  const loss = isListed(soc, ['A2', 'A3', '950']);
  return {
    text: prose(
      both(
        '`torch.nn.functional.softmax` reads the tensor once; as part of a loss, `torch.nn.functional.cross_entropy` takes the raw scores.',
        '`torch.nn.functional.softmax` 只读一遍张量；若属于 loss，`torch.nn.functional.cross_entropy` 直接接收原始分数。',
      ),
      loss ? unknown(soc) : null,
    ),
    code: 'loss = torch.nn.functional.cross_entropy(scores, target)',
    preconditions: [ROUNDING],
    references: [torchPage('generated/torch.nn.functional.cross_entropy.html')],
  };
}

function swiglu({ soc, torchNpu, params }: RemedyContext): Replacement | null {
  const since = sinceNote(torchNpu, '6.0.rc1');
  if (since === null || !isListed(soc, ['A2'])) return null;
  const isSplit = flag(params, 'split') === true;
  return {
    text: prose(
      both(
        `\`torch_npu.npu_swiglu\`${since.en} takes both halves as one tensor, the gate first.`,
        `\`torch_npu.npu_swiglu\`${gap(since.zh)}以一个张量接收两半，门控在前。`,
      ),
      isSplit
        ? null
        : both(
            'Merge the two projections into one, weights side by side: joining their results first would cost what the call saves.',
            '把两个投影合并为一个（权重并列）：先拼接两个结果会抵消收益。',
          ),
      unknown(soc),
    ),
    code: 'y = torch_npu.npu_swiglu(x, dim=-1)  # the first half of the last axis is the gate',
    preconditions: [
      both('The input is contiguous and its last axis even.', '输入内存连续，最后一维为偶数。'),
      isSplit ? null : both('Checkpoints are converted when projections are merged.', '合并投影后需转换 checkpoint。'),
      ROUNDING,
    ],
    references: [apiPage('torch_npu/（beta）torch_npu-npu_swiglu')],
  };
}

function rotary({ soc, torchNpu }: RemedyContext): Replacement | null {
  const since = sinceNote(torchNpu, '5.0.rc3');
  if (since === null || !isListed(soc, ['gen-1', 'A2', 'A3'])) return null;
  return {
    text: prose(
      both(
        `\`torch_npu.npu_rotary_mul\`${since.en} turns halves of the head as this code does.`,
        `\`torch_npu.npu_rotary_mul\`${gap(since.zh)}按前后两半旋转，与此处写法一致。`,
      ),
      unknown(soc),
    ),
    code: 'q = torch_npu.npu_rotary_mul(q, cos, sin)\nk = torch_npu.npu_rotary_mul(k, cos, sin)',
    preconditions: [
      both('The head size is even and below 896; batch and heads are below 1,000.', '头维度为偶数且小于 896；batch 与头数小于 1000。'),
      ROUNDING,
    ],
    references: [apiPage('torch_npu/torch_npu-npu_rotary_mul')],
  };
}

function attention({ soc, torch, torchNpu }: RemedyContext): Replacement | null {
  const core = isListed(soc, ['A2', 'A3']) && isTorchAtLeast(torch, 2, 0) !== false;
  const own = isListed(soc, ['A2', '950']) && isReleaseAtLeast(torchNpu, '5.0.rc3') !== false;
  if (!core && !own) return null;
  return {
    text: prose(
      core
        ? both(
            '`torch.nn.functional.scaled_dot_product_attention` keeps the scores on the chip.',
            '`torch.nn.functional.scaled_dot_product_attention` 不把分数矩阵写回内存。',
          )
        : null,
      own
        ? both(
            `${core ? 'More layouts has' : 'The scores stay on the chip with'} \`torch_npu.npu_fusion_attention\`, which returns a tuple.`,
            `${core ? '需要更多布局时用' : '分数矩阵不写回内存：用'} \`torch_npu.npu_fusion_attention\`，它返回元组。`,
          )
        : null,
      unknown(soc),
    ),
    code: core ? 'out = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)  # (batch, heads, length, head size)' : null,
    preconditions: [
      own
        ? both(
            'A boolean mask means the opposite in the two calls: true takes part in the first, and is masked out in the second.',
            '两个接口的布尔掩码含义相反：前者 True 参与计算，后者 True 被屏蔽。',
          )
        : both('A boolean mask is true where the score takes part.', '布尔掩码为 True 处参与计算。'),
      own ? both('The second call takes the share that is kept, not the dropout rate.', '后者的参数是保留比例，而非丢弃率。') : null,
      ROUNDING,
    ],
    references: [
      ...(own ? [apiPage('torch_npu/torch_npu-npu_fusion_attention')] : []),
      ...(core ? [torchPage('generated/torch.nn.functional.scaled_dot_product_attention.html')] : []),
    ],
  };
}

function maskedSoftmax({ torchNpu, soc }: RemedyContext): Replacement | null {
  const since = sinceNote(torchNpu, '3.0.rc3');
  if (since === null) return null;
  return {
    text: prose(
      both(
        `\`torch_npu.npu_scaled_masked_softmax\`${since.en} scales, masks and normalises in one pass.`,
        `\`torch_npu.npu_scaled_masked_softmax\`${gap(since.zh)}一次完成缩放、掩码与归一化。`,
      ),
      soc === null ? OTHER_HARDWARE : null,
    ),
    code: 'p = torch_npu.npu_scaled_masked_softmax(scores, mask, scale)',
    preconditions: [
      both('The mask is boolean, true where the score is left out.', '掩码为布尔型，True 处被屏蔽。'),
      both('The last axis has 32 to 8,192 figures, a multiple of 32.', '最后一维为 32 至 8192，且为 32 的倍数。'),
      ROUNDING,
    ],
    references: [apiPage('torch_npu/torch_npu-npu_scaled_masked_softmax')],
  };
}

function expertLoop({ soc, torchNpu, params }: RemedyContext): Replacement | null {
  const since = sinceNote(torchNpu, '6.0.rc1');
  if (since === null || !isListed(soc, ['A2', 'A3'])) return null;
  return {
    text: prose(
      both(
        `Sort the tokens by expert once and multiply all experts in one call of \`torch_npu.npu_grouped_matmul\`${since.en}.`,
        `先把 token 按专家排序一次，再用一次 \`torch_npu.npu_grouped_matmul\`${gap(since.zh)}计算所有专家。`,
      ),
      both('Looking up each expert also makes the host wait for the device.', '逐个专家查找 token 还会让 Host 等待设备。'),
      unknown(soc),
    ),
    code: null,
    preconditions: [
      flag(params, 'trains') === false
        ? null
        : both(
            'torch_npu registers no backward for it: wrap it in an autograd function, or use a framework that has one.',
            'torch_npu 没有为其注册反向：需自行封装 autograd 函数，或使用已封装的训练框架。',
          ),
      both('The order of the sums changes: compare the loss curve.', '求和顺序改变：需对比 loss 曲线。'),
    ],
    references: [apiPage('torch_npu/torch_npu-npu_grouped_matmul')],
  };
}

const VIEW_CODE = 'y = torch.matmul(x, w.transpose(-2, -1))  # not w.transpose(-2, -1).contiguous()';

function transposedProduct(): Replacement {
  return {
    text: prose(
      both(
        'Pass the transposed view straight to `torch.matmul`, without `.contiguous()`: the product reads it in place.',
        '把转置后的视图直接传给 `torch.matmul`，不加 `.contiguous()`：矩阵乘可原地读取。',
      ),
      both('A weight can also be stored once in the order it is read.', '权重也可按读取顺序一次存好。'),
    ),
    code: VIEW_CODE,
    preconditions: [both('Nothing else needs the copy.', '没有其他地方用到该副本。')],
    references: [],
  };
}

function transposedBatch({ soc, torchNpu }: RemedyContext): Replacement | null {
  const since = sinceNote(torchNpu, '7.1.0');
  if (since === null || !isListed(soc, ['A2', 'A3'])) return null;
  return {
    text: prose(
      both(
        `\`torch_npu.npu_transpose_batchmatmul\`${since.en} reads and writes the axes in the order they have: inference only, it has no backward.`,
        `\`torch_npu.npu_transpose_batchmatmul\`${gap(since.zh)}按原有轴顺序读写：仅用于推理，没有反向。`,
      ),
      unknown(soc),
    ),
    code: null,
    preconditions: [
      both('Prepare the weight in its order once, when the model is loaded.', '权重的轴顺序在加载模型时准备一次。'),
      both('Its page limits the length of the axes.', '其文档页限制了各维度的长度。'),
    ],
    references: [apiPage('torch_npu/torch_npu-npu_transpose_batchmatmul')],
  };
}

const REPLACEMENTS: Readonly<Record<FusionPattern, (context: RemedyContext) => Replacement | null>> = {
  attention,
  'expert-loop': expertLoop,
  gelu,
  'layer-norm': layerNorm,
  'masked-softmax': maskedSoftmax,
  'rms-norm': rmsNorm,
  rotary,
  softmax,
  swiglu,
  'transposed-batch': transposedBatch,
  'transposed-product': transposedProduct,
};

const NONE = both('No fused call for it is listed for this hardware and release.', '该硬件与版本没有对应的融合接口。');
const CHECK = both(
  'Check: these kernels are gone from the next profile, the step is faster, and outputs agree within rounding.',
  '验证：下一次 profile 中这些 kernel 消失、迭代更快，且输出在舍入范围内一致。',
);

function advise(_finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice | null {
  const pattern = choice(context.params, 'pattern', FUSION_PATTERNS);
  if (pattern === null) return null;
  const by = REPLACEMENTS[pattern](context);
  const instead = by === null ? [compileFormulas(context), lazyFusion(context)] : [];
  return {
    title: TITLE,
    text: prose(by?.text ?? NONE, ...instead, CHECK),
    code: by?.code ?? null,
    preconditions: listed(...(by?.preconditions ?? [ROUNDING])),
    references: by === null ? [torchNpuPage('user_guide/torch_compile/overview.md')] : [...by.references],
    edits: [],
    locations: [],
  };
}

/** Fused operators for formulas that are written out: which there is, from which release, on which hardware, and what has to hold. */
export default {
  id: 'use-affinity-api',
  title: TITLE,
  apis: [
    'TORCH_NPU_LAZY_FUSION',
    'torch.Tensor.contiguous',
    'torch.Tensor.transpose',
    'torch.compile',
    'torch.matmul',
    'torch.nn.functional.cross_entropy',
    'torch.nn.functional.gelu',
    'torch.nn.functional.gelu(approximate)',
    'torch.nn.functional.layer_norm',
    'torch.nn.functional.scaled_dot_product_attention',
    'torch.nn.functional.softmax',
    'torch_npu.npu_fusion_attention',
    'torch_npu.npu_grouped_matmul',
    'torch_npu.npu_rms_norm',
    'torch_npu.npu_rms_norm(epsilon)',
    'torch_npu.npu_rotary_mul',
    'torch_npu.npu_scaled_masked_softmax',
    'torch_npu.npu_swiglu',
    'torch_npu.npu_swiglu(dim)',
    'torch_npu.npu_transpose_batchmatmul',
  ],
  advise,
} satisfies Remedy;

import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { count } from './reading/params.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { torchNpuPage } from './wording/documents.ts';
import { compileFormulas, lazyFusion } from './wording/fusing.ts';

const TITLE = both('Compute the formula in fewer passes over memory', '减少公式对内存的往返次数');

const MANY = both(
  '{kernels:int} kernels read and write the same large tensor one after another, and each of them waits for memory, not for arithmetic.',
  '{kernels:int} 个 kernel 依次读写同一个大张量，每个都在等访存而不是计算。',
);
const FUSED_CALL = both(
  'Replace a written-out softmax, normalisation, activation or loss by the one call that computes it.',
  '把逐步写出的 softmax、归一化、激活或 loss 换成一次调用。',
);
const HALF = both(
  'Keep the large tensor in half precision until the sums: fp32 doubles the traffic of every kernel.',
  '求和之前保持大张量为半精度：fp32 使每个 kernel 的访存量加倍。',
);
const CHUNK = both(
  'For a loss over a large vocabulary, work on a part of the rows at a time: it stays in the cache.',
  '大词表的 loss 可分段按行计算，使每段留在缓存中。',
);
const CHECK = both(
  'Check: fewer kernels on this shape in the next profile, and the same loss.',
  '验证：下一次 profile 中该 shape 的 kernel 减少，且 loss 一致。',
);

function advise(_finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const kernels = count(context.params, 'kernels');
  return {
    title: TITLE,
    text: prose(
      kernels === null ? null : filled(MANY, { kernels }),
      FUSED_CALL,
      compileFormulas(context),
      lazyFusion(context),
      HALF,
      CHUNK,
      CHECK,
    ),
    code: null,
    preconditions: listed(
      both('Rounding may differ: compare the loss curve.', '舍入可能不同：需对比 loss 曲线。'),
      both('What the backward pass reads again is recomputed or still written.', '反向再次读取的中间结果需要重算，或仍然写出。'),
    ),
    references: [torchNpuPage('user_guide/torch_compile/overview.md')],
    edits: [],
    locations: [],
  };
}

/** Element-wise formulas over one large tensor, written as one kernel per operation. */
export default {
  id: 'fuse-formula',
  title: TITLE,
  apis: ['TORCH_NPU_LAZY_FUSION', 'torch.compile'],
  advise,
} satisfies Remedy;

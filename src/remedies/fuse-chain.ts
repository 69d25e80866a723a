import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { count } from './reading/params.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { torchNpuPage } from './wording/documents.ts';
import { compileFormulas, lazyFusion } from './wording/fusing.ts';

const TITLE = both('Compute the element-wise chain in one kernel', '把逐元素算子链合成一个 kernel');

const MANY = both(
  '{chains:int} times per step, each kernel of the chain reads from memory what the one before wrote.',
  '每迭代 {chains:int} 次，链中每个 kernel 都从内存读回前一个刚写出的结果。',
);
const NAMED = both(
  'If the chain is a known activation, normalisation or loss, call the one operator that computes it.',
  '若该链是已知的激活、归一化或 loss，直接调用对应的单个算子。',
);
const FEWER = both(
  'Otherwise write it with fewer operations: constants merged, what does not change between layers computed once.',
  '否则减少运算步数：合并常数，各层不变的部分只算一次。',
);
const CHECK = both(
  'Check: the chain is shorter in the next profile, the step is faster, and the loss is the same.',
  '验证：下一次 profile 中该链变短、迭代更快，且 loss 一致。',
);

function advise(_finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const chains = count(context.params, 'chains');
  return {
    title: TITLE,
    text: prose(chains === null ? null : filled(MANY, { chains }), NAMED, FEWER, compileFormulas(context), lazyFusion(context), CHECK),
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

/** Element-wise kernels in a row that one kernel could do, many times a step. */
export default {
  id: 'fuse-chain',
  title: TITLE,
  apis: ['TORCH_NPU_LAZY_FUSION', 'torch.compile'],
  advise,
} satisfies Remedy;

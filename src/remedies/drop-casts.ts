import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { choice, flag } from './reading/params.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Drop casts that are not needed', '去掉不需要的类型转换');

const PAIR = both(
  'A tensor is converted and converted back, and nothing reads the converted one: pass the original on.',
  '张量被转过去又转回来，没有算子读取转换结果：直接使用原张量。',
);
const WHERE = both(
  'Look for `.to(...)` at the border of modules, and for a mixed-precision region that is left and entered again between two layers.',
  '检查模块边界处的 `.to(...)`，以及在两层之间退出又进入的混合精度区域。',
);
const STAYS = both(
  'Casts around softmax, normalisation and loss are read by operators that compute in fp32: those stay.',
  'softmax、归一化与 loss 前后的转换供 fp32 计算使用：保留。',
);
const WEIGHT = both(
  'The copies of the weights that `torch.autocast` makes live until its outermost region ends, so a region per micro-step casts every weight again.',
  '`torch.autocast` 生成的权重副本在最外层区域结束时释放，因此每个 micro step 一个区域会重复转换全部权重。',
);
const ONE_REGION = both(
  'Open one region around all micro-steps, switch it off for each backward pass, and close it before the optimizer step.',
  '用一个区域包住所有 micro step，反向时临时关闭，并在优化器更新之前结束。',
);
const HALF = both(
  'Or keep the parameters in `torch.bfloat16` with an optimizer that holds fp32 master weights: this changes the numbers.',
  '或以 `torch.bfloat16` 保存参数，由优化器持有 fp32 主权重：数值会改变。',
);
const CHECK = both('Check: the casts are gone from the next profile.', '验证：下一次 profile 中不再有这些转换。');

const WEIGHT_CODE = `with torch.autocast("npu", dtype=torch.bfloat16):  # weights are cast once in here
    for batch in micro_batches:
        loss = compute_loss(batch)
        with torch.autocast("npu", enabled=False):
            loss.backward()
optimizer.step()                                  # outside: the copies are gone`;

function advise(_finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const kind = choice(context.params, 'kind', ['pair', 'weight']) ?? 'pair';
  const isWeight = kind === 'weight';
  const canAutocast = context.soc !== 'gen-1';
  return {
    title: TITLE,
    text: isWeight ? prose(WEIGHT, ONE_REGION, canAutocast ? HALF : null, CHECK) : prose(PAIR, WHERE, STAYS, CHECK),
    code: isWeight && canAutocast ? WEIGHT_CODE : null,
    preconditions: listed(
      isWeight
        ? both(
            'The half-precision copies of all weights stay in memory from the first micro-step to the last.',
            '全部权重的半精度副本从首个 micro step 保留到最后一个，占用内存。',
          )
        : null,
      flag(context.params, 'narrows') === true
        ? both(
            'The cast to a narrower type rounds: without it the numbers change a little, so compare the loss curve.',
            '转到较窄类型会舍入：去掉后数值略有变化，需对比 loss 曲线。',
          )
        : null,
      isWeight ? both('The loss of the first steps equals that of the old loop.', '前几个迭代的 loss 与原循环一致。') : null,
    ),
    references: [torchPage('amp.html')],
    edits: [],
    locations: [],
  };
}

/** Casts that undo each other, or repeat what an earlier pass of the step has made. */
export default {
  id: 'drop-casts',
  title: TITLE,
  apis: [
    'torch.Tensor.backward',
    'torch.Tensor.to',
    'torch.autocast',
    'torch.autocast(dtype)',
    'torch.autocast(enabled)',
    'torch.bfloat16',
    'torch.optim.Optimizer.step',
  ],
  advise,
} satisfies Remedy;

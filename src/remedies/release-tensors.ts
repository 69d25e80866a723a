import { quoteLiteral } from '../base/phrase.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { words } from './reading/params.ts';
import { both, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Release what every step keeps', '释放每个迭代保留的张量');

const CODE = `# keeps the graph of every step
# total += loss
# history[step] = loss

total += loss.detach()  # one tensor without a graph
if step % 100 == 0:
    history[step] = loss.item()  # a number, read rarely: it synchronises the card`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const operators = words(context.params, 'operators', 3).map((name) => quoteLiteral(name));
  return {
    title: TITLE,
    text: prose(
      finding.locations.length > 0
        ? both(
            'The line named here allocates what is kept: look for who holds its result.',
            '所列位置分配的内存被一直保留：查找谁持有其结果。',
          )
        : operators.length > 0
          ? both(
              `The kept blocks come from ${operators.join(', ')}: look for who holds their results.`,
              `未释放的块来自 ${operators.join('、')}：查找谁持有其结果。`,
            )
          : both('Look for lists, sums and caches that outlive a step.', '查找生命周期超过一个迭代的列表、累加量和缓存。'),
      both(
        'A running sum of losses keeps the graph of every step: add `loss.detach()` instead.',
        '累加 loss 会保留每个迭代的计算图：改为累加 `loss.detach()`。',
      ),
      both(
        'Collected losses and logits go to the host as numbers, read at the logging interval.',
        '需要收集的 loss 与 logits 以数值形式存到 Host，按日志间隔读取。',
      ),
      both(
        'Check: the least allocated memory per step stays level in the next profile.',
        '验证：下一次 profile 中各迭代的最低分配量保持不变。',
      ),
    ),
    code: CODE,
    preconditions: [both('No later code needs the gradient through the kept value.', '后续代码不需要通过该值求梯度。')],
    references: [torchPage('generated/torch.Tensor.detach.html')],
    edits: [],
    locations: [],
  };
}

/** Against memory that grows from step to step. */
export default {
  id: 'release-tensors',
  title: TITLE,
  apis: ['torch.Tensor.detach', 'torch.Tensor.item'],
  advise,
} satisfies Remedy;

import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { argumentOf } from '../source/calls.ts';
import { findCallSites } from '../source/find-in-tree.ts';
import { isPython } from '../source/readable-paths.ts';
import { choice } from './reading/params.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { variablePage } from './wording/documents.ts';

const TITLE = both('Make room on the card', '为显存留出余量');
const USE = both('Use the room for a larger micro-batch', '用空闲显存增大 micro batch');

const DDP = 'torch.nn.parallel.DistributedDataParallel';
const VIEW = 'gradient_as_bucket_view';

const CODE = `# launch script, before python starts
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True`;

function room(): Advice {
  return {
    title: USE,
    text: prose(
      both(
        'Raise the micro-batch and lower the accumulation steps by the same factor: the global batch stays.',
        '按相同倍数增大 micro batch、减少梯度累积次数：全局 batch 不变。',
      ),
      both(
        'Without accumulation the global batch grows: revisit learning rate and warm-up.',
        '没有梯度累积时全局 batch 会变大：需复核学习率与预热。',
      ),
      both('Check: samples per second of the next profile, not the step time.', '验证：看下一次 profile 的每秒样本数，而不是迭代耗时。'),
    ),
    code: null,
    preconditions: [both('The longest samples of the data set fit, too.', '数据集中最长的样本也能放下。')],
    references: [],
    edits: [],
    locations: [],
  };
}

function advise(_: unknown, context: RemedyContext): Advice {
  const { params, source } = context;
  if (choice(params, 'kind', ['near', 'room']) === 'room') return room();
  const wraps =
    source !== null && findCallSites(source, [DDP]).sites.some(({ call }) => !call.hasKeywordArgs && argumentOf(call, VIEW) === null);
  const views = wraps && !source.paths.some((path) => isPython(path) && /NpuFused/.test(source.read(path) ?? ''));
  const expands = typeof params.allocConf === 'string' && /expandable_segments\s*:\s*true/i.test(params.allocConf);
  return {
    title: TITLE,
    text: prose(
      both(
        'Recompute activations in the trainer, or halve the micro-batch and accumulate twice as often.',
        '在训练框架中开启重计算，或把 micro batch 减半并将累积次数加倍。',
      ),
      params.multiStreamReuse === '0'
        ? both('`MULTI_STREAM_MEMORY_REUSE=0` raises the peak: remove it.', '`MULTI_STREAM_MEMORY_REUSE=0` 会抬高峰值：去掉该设置。')
        : null,
      params.taskQueue === '2'
        ? both('`TASK_QUEUE_ENABLE=2` raises the peak: compare with 1.', '`TASK_QUEUE_ENABLE=2` 会抬高峰值：与 1 对比。')
        : null,
      expands
        ? null
        : both(
            '`PYTORCH_NPU_ALLOC_CONF=expandable_segments:True` wastes less between blocks.',
            '`PYTORCH_NPU_ALLOC_CONF=expandable_segments:True` 可减少块之间的浪费。',
          ),
      views
        ? both(
            '`gradient_as_bucket_view=True` of DistributedDataParallel saves one copy of the gradients.',
            'DistributedDataParallel 的 `gradient_as_bucket_view=True` 可省去一份梯度。',
          )
        : null,
      both(
        'Every communicator takes twice `HCCL_BUFFSIZE`: fewer groups or smaller buffers free memory.',
        '每个通信域占用两倍 `HCCL_BUFFSIZE`：减少通信域或缩小该值可释放显存。',
      ),
      both('Check: the peak of the next profile.', '验证：下一次 profile 的峰值。'),
    ),
    code: expands ? null : CODE,
    preconditions: listed(
      views
        ? both(
            'With `gradient_as_bucket_view=True` no code detaches or replaces a gradient.',
            '使用 `gradient_as_bucket_view=True` 时，没有代码分离或替换梯度。',
          )
        : null,
      both('Payloads stay smaller than the buffer, or collectives slow down.', '通信数据量仍小于该缓冲，否则通信变慢。'),
      both('Recomputing costs computing time: compare samples per second.', '重计算会增加计算量：对比每秒样本数。'),
    ),
    references: [variablePage('memory_management/PYTORCH_NPU_ALLOC_CONF')],
    edits: [],
    locations: [],
  };
}

/** What to do with a card that is nearly full, or half empty. */
export default {
  id: 'memory-headroom',
  title: TITLE,
  apis: ['PYTORCH_NPU_ALLOC_CONF', 'HCCL_BUFFSIZE', 'MULTI_STREAM_MEMORY_REUSE', 'TASK_QUEUE_ENABLE', `${DDP}(${VIEW})`],
  advise,
} satisfies Remedy;

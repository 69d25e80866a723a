import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { flag } from './reading/params.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';

const TITLE = both('Give the dataset pipeline more workers', '增大数据集的并行度');

const WORKERS = both(
  'Raise `num_parallel_workers` of the slow operations of the dataset: its source, its mappings, its batching.',
  '增大数据集中较慢操作的 `num_parallel_workers`：数据源、数据变换、组 batch。',
);
const LIMIT = both(
  'Go up only while the host has idle CPU cores, at most to its cores divided by its cards.',
  '仅在主机 CPU 有空闲核时增大，上限为核数除以卡数。',
);
const SATURATED = both('The host has no idle CPU cores, so more workers do not help.', '主机 CPU 已无空闲核，增大并行度没有帮助。');
const CHEAPER = both(
  'Beyond that, make each sample cheaper: decode and resize offline.',
  '到上限后改为降低单个样本的开销：离线解码和缩放。',
);
const SOME_RANKS = both(
  'Only on rank {ranks:ranks} does the card wait: first compare storage, NUMA node and sample lengths with the other ranks.',
  '只有卡 {ranks:ranks} 在等待：先对比其存储、NUMA 节点和样本长度与其他卡的差异。',
);
const CHECK = both('Check: the next profile shows less waiting for data.', '验证：下一次 profile 中等待数据的时间下降。');

function advise(finding: Parameters<Remedy['advise']>[0], { params }: RemedyContext): Advice {
  const isSaturated = flag(params, 'hostSaturated') === true;
  return {
    title: TITLE,
    text: prose(
      flag(params, 'allRanks') === false && finding.ranks.length > 0 ? filled(SOME_RANKS, { ranks: finding.ranks }) : null,
      isSaturated ? SATURATED : WORKERS,
      isSaturated ? null : LIMIT,
      CHEAPER,
      CHECK,
    ),
    code: null,
    preconditions: listed(both('Functions of the pipeline may run several at a time.', '数据处理函数可以并行执行。')),
    references: ['https://www.mindspore.cn/tutorials/en/r2.9.0/dataset/dataset_autotune.html'],
    edits: [],
    locations: [],
  };
}

/** The card waits for data in a MindSpore job: workers of the dataset's operations. */
export default {
  id: 'mindspore-dataset-workers',
  title: TITLE,
  apis: ['mindspore.dataset(num_parallel_workers)'],
  frameworks: ['MindSpore'],
  advise,
} satisfies Remedy;

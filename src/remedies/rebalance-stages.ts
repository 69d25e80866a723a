import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { type Framework, frameworksOf } from './reading/frameworks.ts';
import { count } from './reading/params.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Rebalance the pipeline stages', '重新切分流水线 Stage');

const MOVE_FROM = both(
  'Stage {longest:int} computes longest and sets the pace. Move layers from it to the shorter stages.',
  'Stage {longest:int} 计算最久，决定整体速度。把它的部分层移到较短的 Stage。',
);
const MOVE = both(
  'The longest stage sets the pace. Move layers from it to the shorter stages.',
  '计算最久的 Stage 决定整体速度。把它的部分层移到较短的 Stage。',
);
const ENDS = both(
  'Count the embedding and the output head as layers: the first and last stage hold them besides their blocks.',
  '把 embedding 和输出层也计入层数：首尾 Stage 除 block 外还包含它们。',
);
const BUBBLE = both(
  'With {stages:int} stages and {micro:int} micro batches a balanced 1F1B schedule still idles about {share:pct}: more micro batches lower it.',
  '{stages:int} 个 Stage、{micro:int} 个 micro batch 时，均衡的 1F1B 仍有约 {share:pct} 空泡：增加 micro batch 可降低。',
);
const CHECK = both(
  'Check: the computing times of the stages come closer in the next profile.',
  '验证：下一次 profile 中各 Stage 的计算耗时更接近。',
);

/** The bubble of a balanced 1F1B schedule: (p − 1) / (m + p − 1). */
export function bubbleShare(stages: number, microBatches: number): number {
  return (stages - 1) / (microBatches + stages - 1);
}

function interleave(frameworks: ReadonlySet<Framework>): L10n | null {
  if (frameworks.has('megatron')) {
    return both(
      'Interleaving also shortens the bubble: `--num-layers-per-virtual-pipeline-stage`.',
      '交错调度也能缩短空泡：`--num-layers-per-virtual-pipeline-stage`。',
    );
  }
  if (frameworks.has('pipelining')) {
    return both(
      'Interleaving also shortens the bubble: `torch.distributed.pipelining.ScheduleInterleaved1F1B`.',
      '交错调度也能缩短空泡：`torch.distributed.pipelining.ScheduleInterleaved1F1B`。',
    );
  }
  return null;
}

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { params, source } = context;
  const longest = typeof params.longest === 'number' && Number.isInteger(params.longest) ? params.longest : null;
  const [stages, micro] = [count(params, 'stages'), count(params, 'microBatches')];
  return {
    title: TITLE,
    text: prose(
      longest === null ? MOVE : filled(MOVE_FROM, { longest }),
      ENDS,
      stages !== null && micro !== null && stages > 1 ? filled(BUBBLE, { stages, micro, share: bubbleShare(stages, micro) }) : null,
      interleave(source === null ? new Set() : frameworksOf(source)),
      CHECK,
    ),
    code: null,
    preconditions: listed(
      both('Checkpoints are converted: layers live on other ranks after a new split.', '需转换权重文件：重新切分后各层位于不同的卡。'),
      both(
        'The global batch stays the same, or learning rate and schedule are revisited.',
        '全局 batch 保持不变，否则需重新检查学习率与调度。',
      ),
      both('Activation memory of the stages that grow still fits.', '变大的 Stage 仍能放下激活值。'),
    ),
    references: [torchPage('distributed.pipelining.html')],
    edits: [],
    locations: [],
  };
}

/** Pipeline stages of unequal length: where to move layers, and what a balanced split can still not remove. */
export default {
  id: 'rebalance-stages',
  title: TITLE,
  apis: ['torch.distributed.pipelining.ScheduleInterleaved1F1B'],
  advise,
} satisfies Remedy;

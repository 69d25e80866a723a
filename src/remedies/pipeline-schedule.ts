import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { type Framework, frameworksOf } from './reading/frameworks.ts';
import { count } from './reading/params.ts';
import { bubbleShare } from './rebalance-stages.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Give the pipeline more micro-batches', '增加流水线的 micro batch 数');

const SHARE = both(
  'With {stages:int} stages and {micro:int} micro-batches a balanced 1F1B schedule idles {share:pct}; with {wanted:int} it idles {later:pct}.',
  '{stages:int} 个 Stage、{micro:int} 个 micro batch 时，均衡的 1F1B 空泡为 {share:pct}；{wanted:int} 个时为 {later:pct}。',
);
const SAME_BATCH = both(
  'Cut the same global batch into more micro-batches, or accumulate more of them where the batch may grow.',
  '把相同的全局 batch 切成更多 micro batch；允许增大 batch 时也可累积更多。',
);
const MEGATRON = both(
  'In Megatron and MindSpeed that is a smaller `--micro-batch-size`; `--num-layers-per-virtual-pipeline-stage` interleaves the stages.',
  '在 Megatron 与 MindSpeed 中即减小 `--micro-batch-size`；`--num-layers-per-virtual-pipeline-stage` 可交错调度。',
);
const PIPELINING = both(
  '`torch.distributed.pipelining.ScheduleInterleaved1F1B` interleaves several stages per card.',
  '`torch.distributed.pipelining.ScheduleInterleaved1F1B` 让每张卡交错运行多个 Stage。',
);
const INTERLEAVE = both(
  'Several virtual stages per card (interleaving) shorten the bubble as well; so do fewer stages.',
  '每张卡多个虚拟 Stage（交错调度）也能缩短空泡；减少 Stage 数亦可。',
);
const CHECK = both('Check: ranks wait less between the stages in the next profile.', '验证：下一次 profile 中 Stage 之间的等待减少。');

function interleaving(frameworks: ReadonlySet<Framework>): L10n {
  if (frameworks.has('megatron')) return MEGATRON;
  return frameworks.has('pipelining') ? PIPELINING : INTERLEAVE;
}

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { params, source } = context;
  const [stages, micro, wanted] = [count(params, 'stages'), count(params, 'microBatches'), count(params, 'wanted')];
  const known = stages !== null && micro !== null && wanted !== null && stages > 1;
  return {
    title: TITLE,
    text: prose(
      known ? filled(SHARE, { stages, micro, wanted, share: bubbleShare(stages, micro), later: bubbleShare(stages, wanted) }) : null,
      SAME_BATCH,
      interleaving(source === null ? new Set() : frameworksOf(source)),
      CHECK,
    ),
    code: null,
    preconditions: listed(
      both(
        'The micro-batch stays large enough for the cards: kernels of a very small one take no shorter.',
        'micro batch 仍足够大：过小时算子耗时不再下降。',
      ),
    ),
    references: [torchPage('distributed.pipelining.html')],
    edits: [],
    locations: [],
  };
}

/** A pipeline with few micro-batches: the schedule, not a late rank. */
export default {
  id: 'pipeline-schedule',
  title: TITLE,
  apis: ['torch.distributed.pipelining.ScheduleInterleaved1F1B'],
  advise,
} satisfies Remedy;

import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { choice, count } from './reading/params.ts';
import { sinceNote } from './reading/versions.ts';
import { AFFINITY_NOTE } from './wording/affinity.ts';
import { both, filled, prose } from './wording/bilingual.ts';
import { msprofAnalyzePage, variablePage } from './wording/documents.ts';

const TITLE = both('Find out why ranks arrive late', '查明各卡迟到的原因');

const NOT_THE_NETWORK = both(
  'The wait inside a collective ends when its last rank arrives: a faster network or a longer timeout does not shorten it.',
  '集合通信中的等待到最后一张卡到达才结束：更快的网络或更长的超时都不能缩短它。',
);

function bind(context: RemedyContext): L10n | null {
  const since = sinceNote(context.torchNpu, '6.0.rc2');
  if (since === null) return null;
  return both(`Bind the processes to CPU cores with \`CPU_AFFINITY_CONF=2\`${since.en}.`, `用 \`CPU_AFFINITY_CONF=2\` 绑核${since.zh}。`);
}

const COLLECT = both(
  'Collect Python garbage on all ranks in the same step, and even out sample lengths and loading times.',
  '所有卡在同一个迭代做 Python 垃圾回收，并让样本长度和加载耗时均匀。',
);

const AFFINITY_CODE = `# launch script, before python starts
export CPU_AFFINITY_CONF=2`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const kind = choice(context.params, 'kind', ['jitter', 'uneven', 'ranks-missing']);
  const base = {
    title: TITLE,
    references: [variablePage('performance_tuning/CPU_AFFINITY_CONF'), msprofAnalyzePage('docs/zh/user_guide/cluster_analyse_instruct.md')],
    edits: [],
    locations: [],
  };
  if (kind === 'ranks-missing') {
    const [present, size] = [count(context.params, 'present'), count(context.params, 'worldSize')];
    const known = present !== null && size !== null;
    return {
      ...base,
      title: both('Upload the profiles of all ranks', '上传所有卡的 profile'),
      text: prose(
        known
          ? filled(
              both(
                'The late rank may be among the {missing:int} that were not uploaded.',
                '最晚到达的卡可能在未上传的 {missing:int} 张卡中。',
              ),
              { missing: Math.max(0, size - present) },
            )
          : both('The late rank may be among those that were not uploaded.', '最晚到达的卡可能未上传。'),
        both(
          'Capture the same step on every rank and upload all folders as one artifact per node.',
          '在每张卡上采集同一个迭代，每个节点的所有目录放进一个 artifact 上传。',
        ),
        both('Level1 is needed: Level0 records no communication details.', '需要 Level1：Level0 没有通信明细。'),
      ),
      code: null,
      preconditions: [],
    };
  }
  if (kind === 'jitter') {
    const binding = bind(context);
    return {
      ...base,
      text: prose(
        both('The late rank changes from step to step, which points to host noise.', '每个迭代最晚到达的卡不同，更像 Host 抖动。'),
        binding,
        COLLECT,
        NOT_THE_NETWORK,
        both('Check: the spread of arrivals shrinks in the next profile.', '验证：下一次 profile 中各卡到达时间的差距缩小。'),
      ),
      code: binding === null ? null : AFFINITY_CODE,
      preconditions: binding === null ? [] : [AFFINITY_NOTE],
    };
  }
  if (kind === 'uneven') {
    return {
      ...base,
      title: both('Even out the work of the ranks', '让各卡的工作量均匀'),
      text: prose(
        both(
          'Give the ranks batches of the same number of tokens: sort or bucket samples by length, or pack short ones, and let the sampler deal buckets to all ranks in the same step.',
          '让各卡每个 batch 的 token 数相同：按长度排序或分桶，或把短样本拼接（packing），并让 sampler 在同一个迭代给所有卡同一桶的样本。',
        ),
        both(
          'Sorting changes the order of the samples; shuffle the buckets to keep it random.',
          '按长度分组会改变样本顺序；打乱各桶的顺序以保持随机性。',
        ),
        NOT_THE_NETWORK,
        both('Check: the computing time of the ranks differs less in each step.', '验证：每个迭代内各卡计算耗时的差距缩小。'),
      ),
      references: [],
      code: null,
      preconditions: [],
    };
  }
  return {
    ...base,
    text: prose(
      finding.ranks.length > 0
        ? filled(both('Rank {ranks:ranks} arrives last.', '卡 {ranks:ranks} 最晚到达。'), { ranks: finding.ranks })
        : null,
      both(
        'Compare what the late rank does since its previous collective: more computing, a longer loader wait, or slower launches.',
        '对比最晚到达的卡自上一次集合通信以来的差异：计算更多、数据加载更久，还是下发更慢。',
      ),
      NOT_THE_NETWORK,
    ),
    code: null,
    preconditions: [],
  };
}

/** From "ranks wait" to what the last one does. */
export default {
  id: 'find-late-rank',
  title: TITLE,
  apis: ['CPU_AFFINITY_CONF'],
  advise,
} satisfies Remedy;

import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { choice } from './reading/params.ts';
import { sinceNote } from './reading/versions.ts';
import { AFFINITY_NOTE } from './wording/affinity.ts';
import { both, filled, prose } from './wording/bilingual.ts';
import { variablePage } from './wording/documents.ts';

const TITLE = both('Check the slow rank', '检查慢卡');

type Reason = 'device' | 'more-work' | 'host' | 'unknown';

const DEVICE = both(
  'The same kernels take longer on rank {rank:ranks}. Compare the card with a fast one under load: AI Core frequency, temperature, power limit, errors.',
  '相同的 kernel 在卡 {rank:ranks} 上耗时更长。在负载下与正常的卡对比：AI Core 频率、温度、功率限制、错误计数。',
);
const SWAP = both(
  'Then run the process on another card: if the delay stays with the card, it is hardware or cooling.',
  '再把该进程换到另一张卡：若变慢的仍是原来的卡，则是硬件或散热问题。',
);
const MORE_WORK = both(
  'Rank {rank:ranks} computes longer and runs a different number of kernels. Compare its sample lengths, expert load and layers; batch by length.',
  '卡 {rank:ranks} 计算更久，且 kernel 数与其余卡不同。对比样本长度、专家负载和网络层划分，并按长度组 batch。',
);
const ONLY_THERE = both(
  'Look for work that only this rank does: logging, evaluation, checkpoints.',
  '再查只在该卡执行的工作：日志、评估、保存权重。',
);
const HOST = both(
  'Rank {rank:ranks} launches its kernels more slowly than the others. Compare its CPU cores, NUMA node and other processes on that host.',
  '卡 {rank:ranks} 下发 kernel 比其余卡慢。对比其 CPU 核、NUMA 节点以及该主机上的其他进程。',
);
const COLLECT = both(
  'Collect Python garbage on all ranks in the same step, or it makes one of them late.',
  '让所有卡在同一个迭代做 Python 垃圾回收，否则会有卡迟到。',
);
const UNKNOWN = both(
  'Rank {rank:ranks} is late and the profile does not show why. Mark data preparation, logging and checkpoints, and capture all ranks again.',
  '卡 {rank:ranks} 迟到，但 profile 看不出原因。在数据准备、日志、保存权重处打点，并重新采集所有卡。',
);
const CHECK = both('Check: the other ranks wait less for it in the next profile.', '验证：下一次 profile 中其余卡等待该卡的时间减少。');

const HOST_CODE = `# launch script of every rank, before python starts
export CPU_AFFINITY_CONF=2`;

const COLLECT_CODE = `import gc

gc.collect(); gc.freeze(); gc.disable()  # before the training loop
for step, batch in enumerate(loader):
    train_step(batch)
    if step % 500 == 0:                  # the same step on every rank
        gc.collect()`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const reason: Reason = choice(context.params, 'reason', ['device', 'more-work', 'host', 'unknown']) ?? 'unknown';
  const named = typeof context.params.rank === 'number' ? [context.params.rank] : finding.ranks;
  const since = sinceNote(context.torchNpu, '6.0.rc2');
  const bind: L10n | null =
    since === null
      ? null
      : both(
          `Bind the processes of all ranks with \`CPU_AFFINITY_CONF=2\`${since.en}.`,
          `用 \`CPU_AFFINITY_CONF=2\` 为所有卡绑核${since.zh}。`,
        );
  const steps: Readonly<Record<Reason, readonly (L10n | null)[]>> = {
    device: [DEVICE, SWAP],
    'more-work': [MORE_WORK, ONLY_THERE],
    host: [HOST, bind, COLLECT],
    unknown: [UNKNOWN],
  };
  return {
    title: TITLE,
    text: filled(prose(...steps[reason], CHECK), { rank: named.length > 0 ? [...named] : null }),
    code: reason === 'host' ? (bind === null ? COLLECT_CODE : HOST_CODE) : null,
    preconditions: reason === 'host' && bind !== null ? [AFFINITY_NOTE] : [],
    references: reason === 'host' ? [variablePage('performance_tuning/CPU_AFFINITY_CONF')] : [],
    edits: [],
    locations: [],
  };
}

/** One rank is late in most steps: what to compare on that card or host. */
export default {
  id: 'check-slow-rank',
  title: TITLE,
  apis: ['CPU_AFFINITY_CONF', 'gc.collect', 'gc.freeze', 'gc.disable'],
  advise,
} satisfies Remedy;

import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { choice, flag } from './reading/params.ts';
import { isReleaseAtLeast, sinceNote } from './reading/versions.ts';
import { AFFINITY_NOTE } from './wording/affinity.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage, variablePage } from './wording/documents.ts';

const TITLE = both('Keep single steps from stalling on the host', '避免个别迭代在 Host 侧停顿');

const GC_CODE = `import gc

# after model, optimizer and loader exist, before the loop
gc.collect()
gc.freeze()
gc.disable()
for step, batch in enumerate(loader):
    train_step(batch)
    if step % 500 == 0:
        gc.collect()  # the same step on all ranks`;

function first(context: RemedyContext, cause: string | null): L10n {
  switch (cause) {
    case 'gc':
      return both('Collect Python garbage at fixed steps, the same on all ranks.', '在固定迭代做 Python 垃圾回收，所有卡一致。');
    case 'sync':
      return both(
        'Read values from the card at the logging interval only, and on all ranks in the same step.',
        '只在日志间隔读取 NPU 上的值，且所有卡在同一迭代读取。',
      );
    case 'preparation':
      return both('Move the preparation of long batches into the loader workers.', '把长 batch 的准备工作移到数据加载进程。');
    default:
      return context.params.oneRank === true
        ? both(
            'Look for what the training thread does in the slow steps only: a checkpoint, an evaluation, a log.',
            '查找训练线程只在慢迭代中做的事：保存 checkpoint、评测、写日志。',
          )
        : both(
            'Look for what one rank does in the slow steps only: a checkpoint, an evaluation, a log.',
            '查找某张卡只在慢迭代中做的事：保存 checkpoint、评测、写日志。',
          );
  }
}

function advise(_: unknown, context: RemedyContext): Advice {
  const cause = choice(context.params, 'cause', ['gc', 'sync', 'preparation', 'launch', 'unexplained']);
  const isPause = cause === null || cause === 'launch' || cause === 'unexplained';
  const binds = isPause ? sinceNote(context.torchNpu, '6.0.rc2') : null;
  const seesGc = isPause && isReleaseAtLeast(context.torchNpu, '6.0.rc3') !== false;
  return {
    title: TITLE,
    text: prose(
      first(context, cause),
      seesGc
        ? both(
            'Garbage collection shows in a capture with `gc_detect_threshold=1.0`.',
            '用 `gc_detect_threshold=1.0` 采集即可看到垃圾回收。',
          )
        : null,
      binds === null
        ? null
        : both(`Bind the processes to CPU cores with \`CPU_AFFINITY_CONF=2\`${binds.en}.`, `用 \`CPU_AFFINITY_CONF=2\` 绑核${binds.zh}。`),
      flag(context.params, 'oneRank') === true
        ? null
        : both(
            'What all ranks do in the same step costs once; what each does in its own step costs every time.',
            '所有卡在同一迭代做的事只算一次；各卡错开做则每次都算。',
          ),
      both('Check: the slowest step of the next profile.', '验证：下一次 profile 中最慢的迭代。'),
    ),
    code: cause === 'gc' || isPause ? GC_CODE : null,
    preconditions: listed(
      cause === 'gc' || isPause
        ? both(
            'Host and card have room for what is not collected until the next fixed step.',
            '在下次回收之前，Host 与 NPU 有足够内存容纳未回收的对象。',
          )
        : null,
      binds === null ? null : AFFINITY_NOTE,
    ),
    references: pages(binds !== null, seesGc),
    edits: [],
    locations: [],
  };
}

function pages(binds: boolean, seesGc: boolean): string[] {
  return [
    ...(binds ? [variablePage('performance_tuning/CPU_AFFINITY_CONF')] : []),
    ...(seesGc ? [apiPage('torch_npu-profiler/torch_npu-profiler-_ExperimentalConfig')] : []),
  ];
}

/** Against pauses that only some steps have. */
export default {
  id: 'steady-host',
  title: TITLE,
  apis: ['CPU_AFFINITY_CONF', 'gc.collect', 'gc.disable', 'gc.freeze', 'torch_npu.profiler._ExperimentalConfig(gc_detect_threshold)'],
  advise,
} satisfies Remedy;

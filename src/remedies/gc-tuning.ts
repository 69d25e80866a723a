import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { count, flag } from './reading/params.ts';
import { isReleaseAtLeast } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchNpuPage } from './wording/documents.ts';

const TITLE = both('Collect garbage at chosen steps', '在选定的迭代做垃圾回收');

const CODE = `import gc

# after model, optimizer and loader are built
gc.collect()
gc.freeze()
gc.disable()
for step, batch in enumerate(loader):
    train_step(batch)
    if step % 500 == 0:
        gc.collect()`;

function advise(_: unknown, context: RemedyContext): Advice {
  const guessed = flag(context.params, 'guessed') === true;
  const many = (count(context.params, 'ranks') ?? 1) > 1;
  const recorded = isReleaseAtLeast(context.torchNpu, '6.0.rc3') !== false;
  return {
    title: TITLE,
    text: prose(
      guessed && recorded
        ? both(
            'First make sure: capture again with `gc_detect_threshold=1.0`, which records every collection above 1 ms.',
            '先确认原因：以 `gc_detect_threshold=1.0` 重新采集，超过 1 ms 的回收都会被记录。',
          )
        : null,
      both(
        'Put the long-lived objects aside with `gc.freeze()` once they are built, then switch the collector off.',
        '长期对象创建完成后用 `gc.freeze()` 将其移出，再关闭自动回收。',
      ),
      many
        ? both(
            'Collect every few hundred steps, on all ranks in the same step: otherwise the others wait for the one that collects.',
            '每几百个迭代回收一次，所有卡在同一迭代进行：否则其余卡会等待正在回收的卡。',
          )
        : both('Collect every few hundred steps.', '每几百个迭代回收一次。'),
      both('Check: no collection between the kernels of the next profile.', '验证：下一次 profile 的 kernel 之间没有回收。'),
    ),
    code: CODE,
    preconditions: listed(
      both(
        'Reference cycles hold host and device memory until the next collection: watch both.',
        '循环引用会占用主机内存与显存直到下次回收：需观察两者。',
      ),
      both('No other part of the program switches the collector.', '程序的其他部分不开关自动回收。'),
    ),
    references: [torchNpuPage('developer_notes/ascend_pytorch_profiler_user_guide.md')],
    edits: [],
    locations: [],
  };
}

/** Pauses of Python's collector between launches. */
export default {
  id: 'gc-tuning',
  title: TITLE,
  apis: ['gc.collect', 'gc.freeze', 'gc.disable', 'torch_npu.profiler._ExperimentalConfig(gc_detect_threshold)'],
  advise,
} satisfies Remedy;

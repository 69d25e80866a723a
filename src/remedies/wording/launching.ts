import type { L10n } from '../../model/lang.ts';
import type { RemedyContext } from '../../model/remedy.ts';
import { speaksAgainstLevelTwo } from '../reading/task-queue.ts';
import { sinceNote } from '../reading/versions.ts';
import { both, prose } from './bilingual.ts';

/** Level 2 of the dispatch queue exists from 6.0.rc3. Graph capture needs level 1. `current` is the value in use, null when unknown. */
export function taskQueue(context: RemedyContext, current: string | null, first: 'first' | 'then'): L10n | null {
  const since = sinceNote(context.torchNpu, '6.0.rc3');
  if (since === null || current === '2') return null;
  if (!isLevelTwoPlain(context)) {
    return both(
      `The source captures graphs or compiles operators at run time: such runs keep \`TASK_QUEUE_ENABLE=1\`. Only for a run without either set \`TASK_QUEUE_ENABLE=2\` in the launch script${since.en}.`,
      `源码中使用了图捕获或在线编译算子：这类运行保持 \`TASK_QUEUE_ENABLE=1\`。仅对两者都不使用的运行，在启动脚本中设置 \`TASK_QUEUE_ENABLE=2\`${since.zh}。`,
    );
  }
  const set =
    first === 'then'
      ? both(
          `Then set \`TASK_QUEUE_ENABLE=2\` in the launch script${since.en}; peak memory rises.`,
          `再在启动脚本中设置 \`TASK_QUEUE_ENABLE=2\`${since.zh}；峰值内存会增加。`,
        )
      : both(
          `Set \`TASK_QUEUE_ENABLE=2\` in the launch script${since.en}; peak memory rises.`,
          `在启动脚本中设置 \`TASK_QUEUE_ENABLE=2\`${since.zh}；峰值内存会增加。`,
        );
  const binary = both(
    'Level 2 works only with prebuilt operators, that is with `jit_compile=False`.',
    '该级别只对预编译算子生效，即 `jit_compile=False`。',
  );
  return context.soc === 'gen-1' ? prose(set, binary) : set;
}

/** True where nothing in the source speaks against level 2 of the queue: then it may be written out as a line to use. */
export function isLevelTwoPlain({ source }: RemedyContext): boolean {
  return source === null || !speaksAgainstLevelTwo(source);
}

export const LEVEL_TWO_HOLDS = both(
  'Memory has room: level 2 raises the peak. The run captures no graphs. In Python the variable counts only before `import torch_npu`.',
  '显存有余量：级别 2 会提高峰值。运行中不做图捕获。在 Python 中须在 `import torch_npu` 之前设置。',
);

/** Whole graphs in one launch; not for the first training series. */
export function graphLaunch(context: RemedyContext): L10n | null {
  const since = sinceNote(context.torchNpu, '7.3.0');
  if (since === null || context.soc === 'gen-1') return null;
  return both(
    `With static shapes, \`torch.compile\` launches whole graphs${since.en}; keep \`TASK_QUEUE_ENABLE=1\` with graph capture.`,
    `shape 固定时，\`torch.compile\` 可整图下发${since.zh}；使用图捕获时保持 \`TASK_QUEUE_ENABLE=1\`。`,
  );
}

/** Reading a running sum now and then instead of every value. */
export const READ_NOW_AND_THEN = `running = 0.0
for step, batch in enumerate(loader):
    loss = train_step(batch)
    running = running + loss.detach()  # stays on the card
    if step % log_every == 0:
        print(step, running.item() / (step + 1))`;

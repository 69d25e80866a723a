import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { isReleaseAtLeast, sinceNote } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage } from './wording/documents.ts';

const TITLE = both('Mark the code in the gap', '在空闲段的代码处打点');

const MARK = `import torch_npu

mark = torch_npu.npu.mstx.range_start("prepare batch")
batch = prepare(batch)  # the suspected code
torch_npu.npu.mstx.range_end(mark)`;

/** `mstx` of the capture options starts with 7.2.0; `msprof_tx` does the same before. */
function captureOption(torchNpu: string | null): 'mstx' | 'msprof_tx' | 'either' {
  const isNew = isReleaseAtLeast(torchNpu, '7.2.0');
  if (isNew === null) return 'either';
  return isNew ? 'mstx' : 'msprof_tx';
}

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const canMark = sinceNote(context.torchNpu, '6.0.rc3');
  const option = captureOption(context.torchNpu);
  const stack = both(
    'Or capture two steps with `with_stack=True`, which names the Python lines. It slows the host: its times are not comparable.',
    '也可用 `with_stack=True` 采集两个迭代，直接给出 Python 代码行。该选项会拖慢 Host，耗时不可比。',
  );
  if (canMark === null) {
    return { ...BASE, text: prose(WHAT, stack), code: null, preconditions: [] };
  }
  const options = {
    mstx: both('Capture with `mstx=True`.', '采集时设置 `mstx=True`。'),
    msprof_tx: both('Capture with `msprof_tx=True`.', '采集时设置 `msprof_tx=True`。'),
    either: both(
      'Capture with `mstx=True` (torch_npu 7.2.0 or newer) or `msprof_tx=True` (older).',
      '采集时设置 `mstx=True`（torch_npu 7.2.0 及以上）或 `msprof_tx=True`（更早版本）。',
    ),
  };
  return {
    ...BASE,
    text: prose(
      WHAT,
      both(
        `Put a range around each suspect${canMark.en}: batch preparation, metrics, logging, checkpoints. The next profile shows the gap under that name.`,
        `在可疑代码前后打点${canMark.zh}：batch 准备、指标计算、日志、保存权重。下一次 profile 会用该名称标出这段空闲。`,
      ),
      options[option],
      both(
        '`gc_detect_threshold=1.0` in the same capture shows Python garbage collection.',
        '同一次采集加上 `gc_detect_threshold=1.0`，可看到 Python 垃圾回收。',
      ),
      stack,
    ),
    code: `${MARK}

# add to the capture options in use
experimental_config = torch_npu.profiler._ExperimentalConfig(
    ${option === 'msprof_tx' ? 'msprof_tx' : 'mstx'}=True,${option === 'either' ? '  # msprof_tx=True before torch_npu 7.2.0' : ''}
    gc_detect_threshold=1.0,  # ms
)`,
    preconditions: listed(both('A range is closed in the same step it was opened in.', '打点在同一个迭代内成对开始和结束。')),
  };
}

const WHAT = both(
  'The profile shows a gap before the first kernel of the step, not what the host does in it.',
  'profile 显示首个 kernel 之前有空闲，但看不出 Host 在做什么。',
);

const BASE = {
  title: TITLE,
  references: [apiPage('torch_npu-npu/torch_npu-npu-mstx'), apiPage('torch_npu-profiler/torch_npu-profiler-_ExperimentalConfig')],
  edits: [],
  locations: [],
};

/** Gives an unexplained gap a name, so that the next profile tells what the host does there. */
export default {
  id: 'mark-the-gap',
  title: TITLE,
  apis: [
    'torch_npu.npu.mstx.range_start',
    'torch_npu.npu.mstx.range_end',
    'torch_npu.profiler._ExperimentalConfig',
    'torch_npu.profiler._ExperimentalConfig(mstx)',
    'torch_npu.profiler._ExperimentalConfig(msprof_tx)',
    'torch_npu.profiler._ExperimentalConfig(gc_detect_threshold)',
    'torch_npu.profiler.profile(with_stack)',
  ],
  advise,
} satisfies Remedy;

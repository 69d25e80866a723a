import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { argumentOf } from '../source/calls.ts';
import { findCallSites } from '../source/find-in-tree.ts';
import { settingsOf, withValue } from './reading/launch-settings.ts';
import { flag } from './reading/params.ts';
import { placesOf, provenFiles, toEdit } from './reading/places.ts';
import { sinceNote } from './reading/versions.ts';
import { AFFINITY_NOTE } from './wording/affinity.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchNpuPage, variablePage } from './wording/documents.ts';
import { graphLaunch, isLevelTwoPlain, LEVEL_TWO_HOLDS, taskQueue } from './wording/launching.ts';

const TITLE = both('Launch faster, or launch less', '加快下发，或减少下发');

const WHY = both(
  'The host sets the pace: faster kernels gain nothing until launches run ahead of the card.',
  '当前由 Host 决定速度：下发领先于 NPU 之前，优化 kernel 没有收益。',
);
const BATCH = both(
  'A larger micro batch gives each launch more work; with the global batch the learning rate changes, too.',
  '增大 micro batch 可让每次下发带来更多计算；全局 batch 变化时学习率也要调整。',
);
const REPLAY = both(
  'Replay whole graphs first: with vLLM Ascend ask for full graphs of decode as below, and leave eager mode off.',
  '优先使用整图重放：vLLM Ascend 按下方设置 decode 整图，且不使用 eager 模式。',
);
const REQUESTS = both(
  'Serving more at once gives each launch more work; single answers may take longer.',
  '提高并发可让每次下发带来更多计算；单个回答可能变慢。',
);
const GRAPHS_RUN = both(
  'Check: the next trace shows graph replays, about one per decode, with hardly a gap inside.',
  '验证：下一次 trace 中出现图重放，约每次 decode 一次，其中几乎没有空隙。',
);
const SERVE = `compilation_config = {"cudagraph_mode": "FULL_DECODE_ONLY"}  # vllm serve takes it as --compilation-config`;

const DDP = 'torch.nn.parallel.DistributedDataParallel';
const ALLOCATOR = both(
  'A host allocator such as tcmalloc, loaded by `LD_PRELOAD`, shortens launches of many threads.',
  '用 `LD_PRELOAD` 加载 tcmalloc 等主机内存分配器，可缩短多线程下发。',
);
const UNUSED = both(
  '`find_unused_parameters=True` walks the whole graph in every step: pass False where every parameter takes part.',
  '`find_unused_parameters=True` 每个迭代都遍历整个计算图：所有参数都参与计算时改为 False。',
);
const UNUSED_HOLDS = both(
  'A run with `TORCH_DISTRIBUTED_DEBUG=DETAIL` names no unused parameter, on any rank and branch.',
  '以 `TORCH_DISTRIBUTED_DEBUG=DETAIL` 运行时，任何卡、任何分支都没有未使用的参数。',
);

const CHECK = both(
  'Check: the card waits less for launches in the next profile, captured without call stacks.',
  '验证：下一次不采集调用栈的 profile 中，NPU 等待下发的时间缩短。',
);

function affinity(context: RemedyContext, current: string | null): L10n | null {
  const since = sinceNote(context.torchNpu, '6.0.rc2');
  if (since === null || (current !== null && /^[12]/.test(current))) return null;
  return both(`Bind the processes to CPU cores with \`CPU_AFFINITY_CONF=2\`${since.en}.`, `用 \`CPU_AFFINITY_CONF=2\` 绑核${since.zh}。`);
}

const given = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { params, source } = context;
  if (flag(params, 'inference') === true) return forInference();
  const queue = taskQueue(context, given(params.taskQueue), 'first');
  const bind = affinity(context, given(params.affinity));
  const graph = graphLaunch(context);
  const unused =
    source === null
      ? []
      : findCallSites(source, [DDP], provenFiles(finding)).sites.filter(
          ({ call }) => argumentOf(call, 'find_unused_parameters', 6)?.valueKind === 'true',
        );
  const isPlain = queue !== null && isLevelTwoPlain(context);
  const low =
    source === null || !isPlain ? [] : settingsOf(source, 'TASK_QUEUE_ENABLE').filter(({ value }) => value === '0' || value === '1');
  const lines = [isPlain ? 'export TASK_QUEUE_ENABLE=2' : null, bind === null ? null : 'export CPU_AFFINITY_CONF=2'].filter(
    (line) => line !== null,
  );
  return {
    title: TITLE,
    text: prose(WHY, queue, bind, unused.length > 0 ? UNUSED : null, graph, BATCH, ALLOCATOR, CHECK),
    code: lines.length === 0 ? null : `# launch script, before python starts\n${lines.join('\n')}`,
    preconditions: listed(
      queue === null ? null : LEVEL_TWO_HOLDS,
      bind === null ? null : AFFINITY_NOTE,
      unused.length > 0 ? UNUSED_HOLDS : null,
      graph === null
        ? null
        : both('Shapes do not change from step to step where graphs are captured.', '使用图捕获时，各迭代的 shape 不变。'),
    ),
    references: [
      variablePage('op_execution/TASK_QUEUE_ENABLE'),
      ...(bind === null ? [] : [variablePage('performance_tuning/CPU_AFFINITY_CONF')]),
      ...(graph === null ? [] : [torchNpuPage('user_guide/torch_compile/overview.md')]),
    ],
    edits: low.length === 1 ? [toEdit(withValue(low[0]!, '2'), 'comment-only')] : [],
    locations: [...placesOf(unused), ...low.slice(0, 8).map(({ file, line }) => ({ file, line, symbol: null }))],
  };
}

/** Serving has no step to tune: a captured graph takes the launches away. */
function forInference(): Advice {
  return {
    title: TITLE,
    text: prose(WHY, REPLAY, REQUESTS, GRAPHS_RUN),
    code: SERVE,
    preconditions: listed(
      both(
        'Memory has room for one graph per captured batch size; prefill goes on without a graph.',
        '显存能放下每个捕获 batch 大小的图；prefill 仍不使用图。',
      ),
      both('The model and its attention support full graphs in the installed release.', '所装版本中该模型及其注意力算子支持整图。'),
    ),
    references: [],
    edits: [],
    locations: [],
  };
}

/** A whole step that the host cannot launch fast enough: settings first, then fewer launches. */
export default {
  id: 'launch-settings',
  title: TITLE,
  apis: [
    'TASK_QUEUE_ENABLE',
    'CPU_AFFINITY_CONF',
    'LD_PRELOAD',
    'TORCH_DISTRIBUTED_DEBUG',
    'torch_npu.npu.set_compile_mode(jit_compile)',
    'torch.compile',
    `${DDP}(find_unused_parameters)`,
  ],
  advise,
} satisfies Remedy;

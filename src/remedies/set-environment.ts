import { quoteLiteral } from '../base/phrase.ts';
import { DEBUG_VALUES } from '../model/environment-values.ts';
import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { SourceTree } from '../model/source-tree.ts';
import type { LineEdit } from '../source/line-edit.ts';
import { isAside } from '../source/readable-paths.ts';
import { type Setting, settingsOf, withValue } from './reading/launch-settings.ts';
import { choice } from './reading/params.ts';
import { toEdit } from './reading/places.ts';
import { speaksAgainstLevelTwo } from './reading/task-queue.ts';
import { isReleaseAtLeast, sinceNote } from './reading/versions.ts';
import { AFFINITY_NOTE } from './wording/affinity.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { variablePage } from './wording/documents.ts';

const TITLE = both('Set the environment once, for all ranks', '统一设置各卡的环境变量');

interface Cure {
  readonly text: L10n;
  /** The value to write in the launch script; null: the variable is left out. */
  readonly value: string | null;
  readonly page?: string;
  readonly preconditions?: readonly L10n[];
  /** The source speaks of something that the setting may get in the way of. */
  readonly isDoubtful?: boolean;
}

const LEAVE = both('unless it was measured on this cluster', '除非在该集群上实测过');

function cureOf(name: string, { torchNpu, soc, source }: Pick<RemedyContext, 'torchNpu' | 'soc' | 'source'>): Cure | null {
  switch (name) {
    case 'ASCEND_LAUNCH_BLOCKING':
      return {
        text: both(
          'Remove `ASCEND_LAUNCH_BLOCKING=1`: it is for debugging, and switches the task queue off, too.',
          '去掉 `ASCEND_LAUNCH_BLOCKING=1`：它用于调试，并会关闭任务队列。',
        ),
        value: '0',
        page: 'op_execution/ASCEND_LAUNCH_BLOCKING',
      };
    case 'TASK_QUEUE_ENABLE': {
      const isOne = source !== null && speaksAgainstLevelTwo(source);
      const two = isOne ? null : sinceNote(torchNpu, '6.0.rc3');
      return {
        text:
          two === null
            ? both(
                'Remove `TASK_QUEUE_ENABLE=0`: the default 1 dispatches in two stages.',
                '去掉 `TASK_QUEUE_ENABLE=0`：默认值 1 分两级下发。',
              )
            : both(
                `Set \`TASK_QUEUE_ENABLE=2\`${two.en}; the default is 1, and 2 raises the memory peak.`,
                `设置 \`TASK_QUEUE_ENABLE=2\`${two.zh}；默认值为 1，2 会抬高显存峰值。`,
              ),
        value: two === null ? '1' : '2',
        page: 'op_execution/TASK_QUEUE_ENABLE',
        preconditions:
          two === null
            ? []
            : [
                both('Graph capture is not used; with it the value is 1.', '未使用图捕获；使用时取值为 1。'),
                both(
                  'Operators are prebuilt, that is `jit_compile=False`; else the value is 1.',
                  '算子为预编译，即 `jit_compile=False`；否则取值为 1。',
                ),
              ],
        isDoubtful: isOne,
      };
    }
    case 'ASCEND_GLOBAL_LOG_LEVEL':
      return {
        text: both(
          'Set `ASCEND_GLOBAL_LOG_LEVEL=3`: 0 and 1 write a line for every call.',
          '设置 `ASCEND_GLOBAL_LOG_LEVEL=3`：0 和 1 会为每次调用写日志。',
        ),
        value: '3',
      };
    case 'ASCEND_SLOG_PRINT_TO_STDOUT':
      return {
        text: both('Set `ASCEND_SLOG_PRINT_TO_STDOUT=0`: logs then go to files.', '设置 `ASCEND_SLOG_PRINT_TO_STDOUT=0`：日志改写入文件。'),
        value: '0',
      };
    case 'PYTORCH_NO_NPU_MEMORY_CACHING':
      if (isReleaseAtLeast(torchNpu, '6.0.rc2') === false) return null;
      return {
        text: both(
          'Remove `PYTORCH_NO_NPU_MEMORY_CACHING`: it is for debugging only.',
          '去掉 `PYTORCH_NO_NPU_MEMORY_CACHING`：它仅用于调试。',
        ),
        value: null,
        page: 'memory_management/PYTORCH_NO_NPU_MEMORY_CACHING',
      };
    case 'TORCH_HCCL_BLOCKING_WAIT':
    case 'HCCL_BLOCKING_WAIT':
      if (name === 'TORCH_HCCL_BLOCKING_WAIT' && isReleaseAtLeast(torchNpu, '26.1.0') === false) return null;
      return {
        text: both(`Remove \`${name}=1\`: collectives then run beside the host.`, `去掉 \`${name}=1\`：通信可与 Host 并行。`),
        value: '0',
        page: 'collective_communication/TORCH_HCCL_BLOCKING_WAIT',
      };
    case 'HCCL_OP_EXPANSION_MODE':
      if (soc === 'gen-1') return null;
      return {
        text: both(
          'Leave `HCCL_OP_EXPANSION_MODE` unset in training: AIV is for inference on symmetric topologies.',
          '训练中不设置 `HCCL_OP_EXPANSION_MODE`：AIV 面向对称拓扑的推理。',
        ),
        value: null,
      };
    case 'HCCL_ALGO':
    case 'HCCL_DETERMINISTIC':
      if (name === 'HCCL_DETERMINISTIC' && soc === 'gen-1') return null;
      return {
        text:
          name === 'HCCL_ALGO'
            ? both(
                `Leave \`HCCL_ALGO\` unset ${LEAVE.en}: HCCL then chooses by size and topology.`,
                `不设置 \`HCCL_ALGO\`，${LEAVE.zh}：HCCL 会按数据量与拓扑选择。`,
              )
            : both(
                'Leave `HCCL_DETERMINISTIC` unset where bitwise equal runs are not needed.',
                '不需要逐位复现时，不设置 `HCCL_DETERMINISTIC`。',
              ),
        value: null,
      };
    case 'HCCL_RDMA_TC':
      return {
        text: both(
          '`HCCL_RDMA_TC` is a multiple of 4, default 132, and equals the DSCP plan of the switch: ask the network team, else leave it unset.',
          '`HCCL_RDMA_TC` 为 4 的倍数，默认 132，需与交换机的 DSCP 规划一致：向网络团队确认，否则不设置。',
        ),
        value: null,
      };
    case 'HCCL_RDMA_SL':
      return {
        text: both(
          '`HCCL_RDMA_SL` is 0 to 7, default 4, and equals the PFC priority of the network card: ask the network team, else leave it unset.',
          '`HCCL_RDMA_SL` 取值 0 到 7，默认 4，需与网卡的 PFC 优先级一致：向网络团队确认，否则不设置。',
        ),
        value: null,
      };
    case 'ACLNN_CACHE_LIMIT':
      return {
        text: both(
          'Leave `ACLNN_CACHE_LIMIT` at its default of 10000 entries per thread.',
          '`ACLNN_CACHE_LIMIT` 保持默认值：每线程 10000 条。',
        ),
        value: '10000',
      };
    case 'CPU_AFFINITY_CONF': {
      const since = sinceNote(torchNpu, '6.0.rc2');
      if (since === null) return null;
      return {
        text: both(
          `Bind the processes to CPU cores with \`CPU_AFFINITY_CONF=2\`${since.en}.`,
          `用 \`CPU_AFFINITY_CONF=2\` 绑核${since.zh}。`,
        ),
        value: '2',
        page: 'performance_tuning/CPU_AFFINITY_CONF',
        preconditions: [AFFINITY_NOTE],
      };
    }
    case 'OMP_NUM_THREADS':
      return {
        text: both(
          'Set `OMP_NUM_THREADS=1` where loader workers use numpy or OpenCV: workers and threads multiply.',
          '数据加载进程使用 numpy 或 OpenCV 时设置 `OMP_NUM_THREADS=1`：进程数与线程数会相乘。',
        ),
        value: '1',
      };
    default:
      return null;
  }
}

/** What a value has to be, where the range alone does not tell. */
function repair(name: string, soc: RemedyContext['soc']): L10n {
  switch (name) {
    case 'PYTORCH_NPU_ALLOC_CONF':
      return both(
        'Keep `PYTORCH_NPU_ALLOC_CONF=expandable_segments:True` and leave the other allocator settings out.',
        '只保留 `PYTORCH_NPU_ALLOC_CONF=expandable_segments:True`，去掉其他分配器设置。',
      );
    case 'HCCL_INTRA_PCIE_ENABLE':
      if (soc === 'A3' || soc === '950')
        return both('Leave both variables unset: this hardware does not use them.', '两个变量都不设置：该硬件不使用它们。');
      return both(
        'Set exactly one of `HCCL_INTRA_PCIE_ENABLE` and `HCCL_INTRA_ROCE_ENABLE` to 1, or leave both unset.',
        '`HCCL_INTRA_PCIE_ENABLE` 与 `HCCL_INTRA_ROCE_ENABLE` 只将其中一个设为 1，或都不设置。',
      );
    default:
      return both(
        'Correct the value, or leave the variable unset: the default is right for most jobs.',
        '改正取值，或不设置该变量：默认值适合大多数作业。',
      );
  }
}

/** The file without an `export` that has its line to itself. The line before is part of the edit, so that nothing is left. */
function withoutLine(source: SourceTree, setting: Setting): LineEdit | null {
  const lines = (source.read(setting.file) ?? '').split('\n');
  const before = lines[setting.line - 2];
  if (before === undefined || /\\\r?$|^\s*#/.test(before) || !/^\s*export\s+\w+=["']?[\w.:,+/@-]*["']?\s*$/.test(setting.text)) return null;
  const { file, line, text } = setting;
  return { file, startLine: line - 1, endLine: line, before: `${before}\n${text}`, after: before };
}

/** Values that only debugging asks for, or that switch off what HCCL chooses better. Any other value is somebody's own choice. */
const LEFTOVERS: ReadonlyMap<string, RegExp> = new Map([...DEBUG_VALUES, ['HCCL_ALGO', /./]]);

/** Level 2 of the task queue needs a release that has it, and prebuilt operators, which the first series does not use by default. */
function isCertain(name: string, value: string | null, { torchNpu, soc }: RemedyContext): boolean {
  if (name !== 'TASK_QUEUE_ENABLE' || value !== '2') return true;
  return soc !== null && soc !== 'gen-1' && isReleaseAtLeast(torchNpu, '6.0.rc3') === true;
}

/** Scripts that build, or start something else than training: tests, inference. */
const OTHER_SCRIPT = /(^|[/_.-])(infer\w*|mxbase|build|onnx|eval\w*|deploy\w*|serv\w+|export|tests?)([/_.-])/i;

function placesOfSettings(settings: readonly Setting[]): Advice['locations'] {
  return settings.slice(0, 8).map(({ file, line }) => ({ file, line, symbol: null }));
}

/** Places named in a sentence. */
const NAMED = 4;

/** Files that set the variable to different values: only one of them was what ran. */
function disagreement(settings: readonly Setting[]): L10n | null {
  if (new Set(settings.map(({ value }) => value)).size < 2) return null;
  const firsts = [...Map.groupBy(settings, ({ value }) => value).values()].map((same) => same[0]!).slice(0, NAMED);
  const told = firsts.map(({ file, line, value }) => quoteLiteral(`${file}:${line} = ${value}`));
  return both(
    `The files do not agree: ${told.join(', ')}. Only one of them was what ran.`,
    `各文件的设置不一致：${told.join('、')}。实际运行的只是其中之一。`,
  );
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice | null {
  const { params } = context;
  const name = typeof params.name === 'string' ? params.name : '';
  const kind = choice(params, 'kind', ['ranks', 'wrong', 'symptom']);
  const settings =
    context.source === null || !/^[A-Z][A-Z0-9_]*$/.test(name)
      ? []
      : settingsOf(context.source, name).filter(({ file }) => !OTHER_SCRIPT.test(file));
  const base = { references: [], edits: [], locations: placesOfSettings(settings), code: null };
  if (kind === 'ranks') {
    return {
      ...base,
      title: TITLE,
      text: prose(
        both(
          'Export the variables in one launch script that every node runs, before python starts.',
          '在每个节点都执行的启动脚本中统一导出变量，早于 python 启动。',
        ),
        both('Settings of collectives have to be the same on all members of a group.', '通信相关设置在同一通信域内需保持一致。'),
        disagreement(settings),
        both('Check: the next profile records the same values on all ranks.', '验证：下一次 profile 中各卡记录的值相同。'),
      ),
      preconditions: [],
    };
  }
  const cure = cureOf(name, context);
  if (kind === 'wrong') {
    const own = name === 'HCCL_RDMA_TC' || name === 'HCCL_RDMA_SL' ? cure!.text : repair(name, context.soc);
    const places = context.sites?.map(({ file, startLine }) => ({ file, line: startLine, symbol: null })).slice(0, 8);
    return {
      ...base,
      locations: places ?? base.locations,
      title: both('Correct the environment variable', '改正环境变量'),
      text: prose(own, disagreement(settings)),
      preconditions: [],
    };
  }
  if (cure === null) return null;
  const { value } = cure;
  // A line that has the value already is not where the run got its own from.
  const wrong = settings.filter((setting) => setting.value !== value && (LEFTOVERS.get(name)?.test(setting.value) ?? true));
  const [only, ...others] = wrong;
  const edit =
    only === undefined || others.length > 0 ? null : value === null ? withoutLine(context.source!, only) : withValue(only, value);
  const isOneClick =
    edit !== null &&
    settings.length === 1 &&
    cure.isDoubtful !== true &&
    LEFTOVERS.get(name)?.test(only!.value) === true &&
    isCertain(name, value, context) &&
    finding.confidence !== 'low' &&
    !isAside(edit.file) &&
    context.source!.inDiff(edit.file, edit.startLine, edit.endLine);
  return {
    ...base,
    locations: placesOfSettings(wrong),
    title:
      value === null
        ? both(`Leave ${quoteLiteral(name)} unset`, `不设置 ${quoteLiteral(name)}`)
        : both(`Set ${quoteLiteral(`${name}=${value}`)}`, `设置 ${quoteLiteral(`${name}=${value}`)}`),
    text: prose(
      cure.text,
      wrong.length > 0 ? both('It is set at the lines named here.', '设置位于所列位置。') : null,
      disagreement(settings),
      both('Check: the idle time of the next profile.', '验证：下一次 profile 的空闲时间。'),
    ),
    code: value === null ? null : `# launch script, before python starts\nexport ${name}=${value}`,
    preconditions: listed(...(cure.preconditions ?? []), both('No run relies on the setting for debugging.', '没有依赖该设置的调试作业。')),
    references: cure.page === undefined ? [] : [variablePage(cure.page)],
    edits: edit === null ? [] : [toEdit(edit, isOneClick ? 'suggestion' : 'comment-only')],
  };
}

/** One environment for all ranks, without leftovers of debugging. */
export default {
  id: 'set-environment',
  title: TITLE,
  apis: [
    'ACLNN_CACHE_LIMIT',
    'ASCEND_GLOBAL_LOG_LEVEL',
    'ASCEND_LAUNCH_BLOCKING',
    'ASCEND_SLOG_PRINT_TO_STDOUT',
    'CPU_AFFINITY_CONF',
    'HCCL_ALGO',
    'HCCL_BLOCKING_WAIT',
    'HCCL_DETERMINISTIC',
    'HCCL_INTRA_PCIE_ENABLE',
    'HCCL_INTRA_ROCE_ENABLE',
    'HCCL_OP_EXPANSION_MODE',
    'HCCL_RDMA_SL',
    'HCCL_RDMA_TC',
    'OMP_NUM_THREADS',
    'PYTORCH_NO_NPU_MEMORY_CACHING',
    'PYTORCH_NPU_ALLOC_CONF',
    'TASK_QUEUE_ENABLE',
    'TORCH_HCCL_BLOCKING_WAIT',
    'torch_npu.npu.set_compile_mode(jit_compile)',
  ],
  advise,
} satisfies Remedy;

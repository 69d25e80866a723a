import { quoteLiteral } from '../base/phrase.ts';
import { MIGRATION_KINDS, type MigrationKind } from '../model/code.ts';
import type { L10n } from '../model/lang.ts';
import { DEPRECATED } from '../model/npu-names.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { ALLOWED } from './allow-list.ts';
import { choice } from './reading/params.ts';
import { toEdit } from './reading/places.ts';
import { isReleaseAtLeast, sinceNote } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchNpuPage } from './wording/documents.ts';

const TITLE = both('Use what exists on NPU', '改用 NPU 上存在的写法');
const MAX_PLACES = 8;
const MAX_EDITS = 8;

interface Fix {
  readonly title: L10n;
  readonly text: L10n;
  readonly code?: string;
  readonly preconditions?: readonly L10n[];
  /** The edit is the true name of the same thing: offered as one click inside the diff. */
  readonly isOneClick?: boolean;
  readonly page?: string;
}

const given = (params: RemedyContext['params'], name: string): string => {
  const value = params[name];
  return typeof value === 'string' ? value : '';
};

function fixOf(kind: MigrationKind, context: RemedyContext): Fix | null {
  const { params, soc } = context;
  switch (kind) {
    case 'unknown-name':
    case 'no-such-method':
      return forUnknown(given(params, 'name'), soc);
    case 'unknown-keyword':
      return {
        title: both('Leave the keyword out', '去掉该参数'),
        text: both(
          'The NPU optimizers take the arguments of their torch namesakes without the newer switches.',
          'NPU 优化器沿用 torch 同名优化器的参数，不含较新的开关。',
        ),
      };
    case 'removed-name':
      return {
        title: both('Replace the call', '替换该调用'),
        text: both(
          'Look the replacement up in the release notes, or stay with the older release on purpose.',
          '在发布说明中查找替代接口，或明确使用旧版本。',
        ),
        page: 'release_notes.md',
      };
    case 'deprecated-name':
      return forDeprecated(given(params, 'name'), given(params, 'replacement'), context);
    case 'nccl-backend':
      return {
        title: both('Use the backend of the cards', '使用 NPU 的通信后端'),
        text: both(
          'Pass `"hccl"` to `torch.distributed.init_process_group`; `import torch_npu` has to come first.',
          '向 `torch.distributed.init_process_group` 传入 `"hccl"`；须先执行 `import torch_npu`。',
        ),
      };
    case 'data-parallel':
      return {
        title: both('Run one process per card', '每卡一个进程'),
        text: both(
          'Wrap the model in `torch.nn.parallel.DistributedDataParallel` and start one process for each card.',
          '用 `torch.nn.parallel.DistributedDataParallel` 包装模型，每张卡启动一个进程。',
        ),
        code: 'model = DistributedDataParallel(model, device_ids=[local_rank])  # one process per card, started by torchrun',
        preconditions: [both('Each process reads its own part of the data.', '每个进程读取各自的数据分片。')],
      };
    case 'global-rank':
      return {
        title: both('Choose the card by the local rank', '按本机 rank 选卡'),
        text: both(
          'The launcher hands each process its number on this machine in `LOCAL_RANK`; the rank in the whole job goes on counting on the next machine.',
          '启动器通过 `LOCAL_RANK` 给出进程在本机的编号；全局 rank 在下一台机器上继续递增。',
        ),
        code: 'local_rank = int(os.environ["LOCAL_RANK"])',
        isOneClick: true,
      };
    case 'profiler-without-step':
      return {
        title: both('Call the profiler’s step', '调用 profiler 的 step'),
        text: both('Call `prof.step()` at the end of each training step.', '在每个训练迭代末尾调用 `prof.step()`。'),
        code: 'for batch in loader:\n    train_step(batch)\n    prof.step()  # without it nothing is recorded',
      };
    case 'foreign-profiler':
      return {
        title: both('Use the profiler of torch_npu', '使用 torch_npu 的 profiler'),
        text: both(
          'Take `torch_npu.profiler.profile`, with the activities of `torch_npu.profiler.ProfilerActivity`.',
          '改用 `torch_npu.profiler.profile`，活动取自 `torch_npu.profiler.ProfilerActivity`。',
        ),
      };
    case 'unequal-rewrite':
      return {
        title: both('Keep the permutation', '保留维度置换'),
        text: both(
          'Undo this part of the change. Where a copy is too slow, choose a layout that needs no permutation.',
          '撤回这一处改动。如拷贝过慢，选择不需要置换的布局。',
        ),
        preconditions: [both('None of the two dimensions has size 1.', '两个维度的大小都不为 1。')],
      };
    case 'inverted-argument':
      return given(params, 'name') === 'keep_prob'
        ? {
            title: both('Say what is kept', '传入保留概率'),
            text: both('`keep_prob` of the fused attention is 1 minus the dropout.', '融合注意力的 `keep_prob` 等于 1 减去 dropout。'),
          }
        : {
            title: both('Turn the mask round', '反转掩码'),
            text: both(
              'In `atten_mask` of the fused attention True hides a position; in a bool mask of torch it shows one.',
              '融合注意力的 `atten_mask` 中 True 表示遮蔽；torch 的 bool 掩码中 True 表示可见。',
            ),
            preconditions: [both('The mask is of type bool.', '掩码为 bool 类型。')],
          };
    case 'tuple-result':
      return {
        title: both('Take the first member', '取第一个元素'),
        text: both('The tensor is the first member of the result: add `[0]`.', '张量是结果的第一个元素：加上 `[0]`。'),
      };
    case 'fp16-without-scaler':
      return {
        title: both('Scale the loss, or use bfloat16', '缩放 loss，或使用 bfloat16'),
        text: prose(
          soc === 'gen-1'
            ? null
            : both(
                '`torch.autocast("npu", dtype=torch.bfloat16)` needs no scaler on A2 and newer.',
                '在 A2 及更新的硬件上，`torch.autocast("npu", dtype=torch.bfloat16)` 不需要缩放。',
              ),
          both('With float16, use `torch_npu.npu.amp.GradScaler`.', '使用 float16 时，配合 `torch_npu.npu.amp.GradScaler`。'),
          both('Both change numerics.', '两者都会改变数值。'),
        ),
        code: SCALED,
      };
    case 'fused-optimizer-with-scaler':
      return {
        title: both('Leave the fused kernel out', '不使用融合算子'),
        text: both(
          'Leave `fused=True` of `torch.optim.AdamW` out while a scaler is in use, or train in bfloat16 without one.',
          '使用梯度缩放时，去掉 `torch.optim.AdamW` 的 `fused=True`；或用 bfloat16 训练而不用缩放。',
        ),
      };
    case 'gradients-set-to-none':
      return {
        title: both('Zero the gradients in place', '原地清零梯度'),
        text: both('Call `zero_grad()` without the keyword.', '调用 `zero_grad()` 时不带该参数。'),
        isOneClick: true,
      };
    case 'private-format':
      return given(params, 'number') === ''
        ? {
            title: both('Leave private formats off', '不启用私有格式'),
            text: both(
              'Leave `torch_npu.npu.config.allow_internal_format` at its default on A2 and newer; there is a known accuracy case.',
              '在 A2 及更新的硬件上保留 `torch_npu.npu.config.allow_internal_format` 的默认值；有已知的精度案例。',
            ),
            preconditions: [
              both('Convolution networks on the first training series may be faster with it.', '第一代训练卡上的卷积网络启用后可能更快。'),
            ],
          }
        : namedFormat(context);
    case 'script-disabled':
      return {
        title: both('Do not count on TorchScript', '不依赖 TorchScript'),
        text: both(
          'Drop the call, or write the file for NPUs without `torch_npu.contrib.transfer_to_npu`.',
          '去掉该调用，或改写为不使用 `torch_npu.contrib.transfer_to_npu` 的 NPU 代码。',
        ),
      };
    case 'unknown-package':
      return {
        title: both('Install a version that exists', '安装存在的版本'),
        text: both(
          'Choose the torch_npu package of a torch version that has one; both start with the same number.',
          '选择有对应 torch_npu 包的 torch 版本；两者版本号开头相同。',
        ),
        page: 'release_notes.md',
      };
    case 'torch-pair':
      return {
        title: both('Pin versions of one release', '固定配套的版本'),
        text: both(
          `Ask for ${quoteLiteral(`torch==${given(params, 'wanted') || '?'}`)}, or for the torch_npu package of the other torch.`,
          `改为 ${quoteLiteral(`torch==${given(params, 'wanted') || '?'}`)}，或改用与另一 torch 对应的 torch_npu 包。`,
        ),
        page: 'release_notes.md',
      };
    case 'cann-pair':
      return {
        title: both('Use the CANN of the same release', '使用配套的 CANN'),
        text: both('Choose the image or the package by the table in the release notes.', '按发布说明中的配套表选择镜像或软件包。'),
        page: 'release_notes.md',
      };
    case 'debug-setting':
      return {
        title: both('Keep it out of real runs', '正式作业中不要设置'),
        text: both('Leave the line out, or put it into a script of its own for debugging.', '去掉该行，或放到单独的调试脚本中。'),
      };
    case 'unknown-variable':
      return {
        title: both('Correct the spelling', '改正拼写'),
        text: both(
          `Write ${quoteLiteral(given(params, 'replacement') || '?')}.`,
          `改为 ${quoteLiteral(given(params, 'replacement') || '?')}。`,
        ),
        preconditions: [both('The value equals the plan of the switch.', '取值与交换机规划一致。')],
      };
  }
}

const SCALED = `scaler = torch_npu.npu.amp.GradScaler()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()`;

function forUnknown(name: string, soc: RemedyContext['soc']): Fix {
  switch (name) {
    case 'torch_npu.amp':
      return {
        title: both('Import from torch_npu.npu', '从 torch_npu.npu 导入'),
        text: both('The module is `torch_npu.npu.amp`.', '该模块为 `torch_npu.npu.amp`。'),
        isOneClick: true,
      };
    case 'torch_npu.npu_matmul':
      return {
        title: both('Use torch.matmul', '使用 torch.matmul'),
        text: both('`torch.matmul` runs on the card.', '`torch.matmul` 即在 NPU 上执行。'),
        isOneClick: true,
      };
    case 'torch_npu.contrib.ModulationDeformConv':
      return {
        title: both('Correct the name', '改正名称'),
        text: both('The class is `torch_npu.contrib.ModulatedDeformConv`.', '该类为 `torch_npu.contrib.ModulatedDeformConv`。'),
        isOneClick: true,
      };
    case 'torch_npu.utils.data':
      return {
        title: both('Load data with torch', '使用 torch 加载数据'),
        text: both(
          'Use `torch.utils.data.DataLoader`; images are decoded by its workers.',
          '使用 `torch.utils.data.DataLoader`；图片由其进程解码。',
        ),
      };
    case 'torch_npu.contrib.gradient_compress':
      return {
        title: both('Compress by a hook', '用 hook 压缩梯度'),
        text:
          soc === '950' || soc === 'gen-1'
            ? both('Leave it out: compression hooks are listed for A2 and A3 only.', '去掉：压缩 hook 仅在 A2 与 A3 上列为支持。')
            : both(
                'On A2 and A3 register `bf16_compress_hook` with `register_comm_hook` once, before the first backward; it changes numerics.',
                '在 A2 与 A3 上，于首次反向之前用 `register_comm_hook` 注册一次 `bf16_compress_hook`；会改变数值。',
              ),
      };
    case 'torch_npu.contrib.pipeline':
      return {
        title: both('Use the pipelines of torch', '使用 torch 的流水线'),
        text: both(
          'Take `torch.distributed.pipelining.PipelineStage` and a schedule of the same module.',
          '使用 `torch.distributed.pipelining.PipelineStage` 及同一模块中的调度。',
        ),
      };
    case 'torch_npu.npu.set_mode':
      return {
        title: both('Delete the call', '删除该调用'),
        text: both('Eager execution is the default and needs no mode.', '默认即为 eager 执行，无需设置模式。'),
      };
    case 'torch.profiler.ProfilerActivity.NPU':
      return {
        title: both('Take the activity from torch_npu', '使用 torch_npu 的活动'),
        text: both(
          'The member is `torch_npu.profiler.ProfilerActivity.NPU`, for `torch_npu.profiler.profile`.',
          '该成员为 `torch_npu.profiler.ProfilerActivity.NPU`，用于 `torch_npu.profiler.profile`。',
        ),
      };
    case 'torch.slice':
      return {
        title: both('Slice with brackets', '用下标切片'),
        text: both('Use Python slices, or `torch.narrow`.', '使用 Python 切片，或 `torch.narrow`。'),
      };
    default:
      return name.endsWith('.prefetch')
        ? {
            title: both('Let the workers prefetch', '由数据加载进程预取'),
            text: both(
              'Set `prefetch_factor` of `torch.utils.data.DataLoader`; it needs `num_workers` above 0.',
              '设置 `torch.utils.data.DataLoader` 的 `prefetch_factor`；要求 `num_workers` 大于 0。',
            ),
          }
        : { title: TITLE, text: both('Look the name up in the documentation of the installed release.', '在所装版本的文档中查找该接口。') };
  }
}

/** The enumeration starts with 7.1.0; before, only numbers work. */
function namedFormat({ torchNpu }: RemedyContext): Fix {
  const since = sinceNote(torchNpu, '7.1.0');
  return {
    title: both('Say which format is meant', '写明所需格式'),
    text:
      since === null
        ? both(
            'The plain layout is number 2. Pass it where that is meant, or leave the cast out.',
            '普通布局的编号为 2。需要它时传入该编号，或去掉该转换。',
          )
        : both(
            `Write \`torch_npu.Format.ND\`${since.en} where the plain layout is meant, or leave the cast out.`,
            `需要普通布局时写 \`torch_npu.Format.ND\`${since.zh}，或去掉该转换。`,
          ),
  };
}

/** What does the same in the installed release, on that hardware. */
function forDeprecated(name: string, replacement: string, { soc, torchNpu }: RemedyContext): Fix {
  const isApex = /^apex\.optimizers\.NpuFused\w+$/.test(name);
  const known = isApex ? [replacement] : (DEPRECATED.find(([own]) => own === name)?.[1] ?? []);
  const names = known.filter((own) => {
    const entry = ALLOWED.get(own);
    if (entry === undefined) return false;
    const isListed = soc === null || entry.hardware === null || entry.hardware.includes(soc) || own.startsWith('torch.');
    return isListed && !(/^\d/.test(entry.since ?? '') && isReleaseAtLeast(torchNpu, entry.since!) === false);
  });
  const list = names.map((own) => quoteLiteral(own));
  const none = isApex
    ? both('The optimizers of `torch.optim` run on the card.', '`torch.optim` 的优化器可直接在 NPU 上运行。')
    : both('The documentation names none; build the same from standard operators.', '文档未给出替代接口；用标准算子组合实现。');
  return {
    title: both('Plan the replacement', '规划替换'),
    text:
      list.length === 0
        ? none
        : both(`The same is done by ${list.join(', ')}; arguments may differ.`, `可由 ${list.join('、')} 完成；参数可能不同。`),
  };
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice | null {
  const kind = choice(context.params, 'kind', MIGRATION_KINDS);
  const fix = kind === null ? null : fixOf(kind, context);
  if (fix === null) return null;
  const sites = context.sites ?? [];
  const edits = sites.flatMap(({ edit }) => {
    if (edit === null) return [];
    const isInDiff = context.source?.inDiff(edit.file, edit.startLine, edit.endLine) === true;
    const isOneClick = fix.isOneClick === true && isInDiff && finding.confidence !== 'low';
    return [toEdit(edit, isOneClick ? 'suggestion' : 'comment-only')];
  });
  return {
    title: fix.title,
    text: fix.text,
    code: edits.length > 0 ? null : (fix.code ?? null),
    preconditions: listed(...(fix.preconditions ?? [])),
    references: fix.page === undefined ? [] : [torchNpuPage(fix.page)],
    edits: withoutDoubles(edits).slice(0, MAX_EDITS),
    locations: sites.slice(0, MAX_PLACES).map(({ file, startLine, symbol }) => ({ file, line: startLine, symbol })),
  };
}

/** Two changes of the same lines cannot both be accepted; the first one stays. */
function withoutDoubles(edits: readonly Advice['edits'][number][]): Advice['edits'][number][] {
  return edits.filter(
    (edit, i) =>
      !edits.slice(0, i).some((other) => other.file === edit.file && other.startLine <= edit.endLine && edit.startLine <= other.endLine),
  );
}

/** What the review of a migration finds, put right. */
export default {
  id: 'fix-for-npu',
  title: TITLE,
  apis: [
    ...new Set(DEPRECATED.flatMap(([, replacements]) => replacements)),
    'LOCAL_RANK',
    'torch.autocast',
    'torch.autocast(dtype)',
    'torch.bfloat16',
    'torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook',
    'torch.distributed.init_process_group',
    'torch.distributed.pipelining.PipelineStage',
    'torch.matmul',
    'torch.nn.parallel.DistributedDataParallel',
    'torch.nn.parallel.DistributedDataParallel(device_ids)',
    'torch.nn.parallel.DistributedDataParallel.register_comm_hook',
    'torch.optim.AdamW',
    'torch.optim.AdamW(fused)',
    'torch.optim.Optimizer.step',
    'torch.optim.Optimizer.zero_grad',
    'torch.Tensor.backward',
    'torch.utils.data.DataLoader',
    'torch.utils.data.DataLoader(num_workers)',
    'torch.utils.data.DataLoader(prefetch_factor)',
    'torch_npu.Format.ND',
    'torch_npu.contrib.transfer_to_npu',
    'torch_npu.npu.amp',
    'torch_npu.npu.amp.GradScaler',
    'torch_npu.npu.amp.GradScaler.scale',
    'torch_npu.npu.amp.GradScaler.step',
    'torch_npu.npu.amp.GradScaler.update',
    'torch_npu.npu.config.allow_internal_format',
    'torch_npu.npu_fusion_attention',
    'torch_npu.npu_fusion_attention(atten_mask)',
    'torch_npu.npu_fusion_attention(keep_prob)',
    'torch_npu.optim.NpuFusedAdadelta',
    'torch_npu.optim.NpuFusedAdam',
    'torch_npu.optim.NpuFusedAdamP',
    'torch_npu.optim.NpuFusedAdamW',
    'torch_npu.optim.NpuFusedBertAdam',
    'torch_npu.optim.NpuFusedLamb',
    'torch_npu.optim.NpuFusedRMSprop',
    'torch_npu.optim.NpuFusedRMSpropTF',
    'torch_npu.optim.NpuFusedSGD',
    'torch_npu.profiler.ProfilerActivity',
    'torch_npu.profiler.ProfilerActivity.NPU',
    'torch_npu.profiler.profile',
    'torch_npu.profiler.profile.step',
  ],
  advise,
} satisfies Remedy;

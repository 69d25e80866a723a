import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { argumentOf } from '../source/calls.ts';
import { findCallSites } from '../source/find-in-tree.ts';
import { type Setting, settingsOf, withValue } from './reading/launch-settings.ts';
import { choice } from './reading/params.ts';
import { placesOf, provenFiles, toEdit } from './reading/places.ts';
import { isReleaseAtLeast, isTorchAtLeast } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage, torchNpuPage, variablePage } from './wording/documents.ts';
import { graphLaunch, isLevelTwoPlain, LEVEL_TWO_HOLDS, READ_NOW_AND_THEN, taskQueue } from './wording/launching.ts';

const TITLE = both('Launch fewer and cheaper small operators', '减少小算子的数量与下发开销');

const SYNCS = both(
  'First remove host synchronisations from the loop: `.item()`, printed tensors, `torch.npu.synchronize()`, `torch.npu.empty_cache()`.',
  '先去掉循环中的 Host 同步：`.item()`、打印张量、`torch.npu.synchronize()`、`torch.npu.empty_cache()`。',
);
const BLOCKING = both(
  '`ASCEND_LAUNCH_BLOCKING=1` is set: every operator waits for the one before. Remove it from performance runs.',
  '已设置 `ASCEND_LAUNCH_BLOCKING=1`：每个算子都要等前一个完成。性能运行中去掉该设置。',
);

const FOREACH = both(
  '`torch.optim.AdamW` takes the foreach path by default on this hardware: check that the code does not pass `foreach=False`.',
  '该硬件上 `torch.optim.AdamW` 默认走 foreach 路径：检查代码是否传了 `foreach=False`。',
);
const FUSED = both(
  'Use `torch_npu.optim.NpuFusedAdamW` for fp32 or fp16 parameters; it raises on bf16 ones and is not for FSDP or ZeRO.',
  'fp32 或 fp16 参数可用 `torch_npu.optim.NpuFusedAdamW`；bf16 参数会报错，不适用于 FSDP 与 ZeRO。',
);
const OPTIMIZER_ANY = both('Check that the optimizer is not created with `foreach=False`.', '检查优化器是否以 `foreach=False` 创建。');

const FOREACH_OFF = both(
  '`foreach=False` at the line named here makes the optimizer launch one kernel per parameter: remove it.',
  '所列位置的 `foreach=False` 使优化器逐个参数下发 kernel：去掉它。',
);

/** From 6.0.rc3 torch's foreach list keeps the NPU on A2 and A3; gen-1 loops over single tensors. */
function optimizer(context: RemedyContext, isForeachOff: boolean): L10n {
  const { soc, torchNpu } = context;
  if (isForeachOff && soc !== 'gen-1') return FOREACH_OFF;
  if (soc === 'gen-1') return FUSED;
  if ((soc === 'A2' || soc === 'A3') && isReleaseAtLeast(torchNpu, '6.0.rc3') !== false) return FOREACH;
  return OPTIMIZER_ANY;
}

/** Fused calls whose pages list the hardware. Each changes rounding, so none is ever applied by one click. */
function fused(context: RemedyContext): L10n | null {
  const { soc, torch, torchNpu } = context;
  if (soc === '950') return null;
  const swiglu = soc === 'A2' && isReleaseAtLeast(torchNpu, '6.0.rc1') !== false;
  const attention = soc !== 'gen-1' && isTorchAtLeast(torch, 2, 0) !== false;
  const en = [
    attention ? 'attention by `torch.nn.functional.scaled_dot_product_attention`' : null,
    'RMSNorm by `torch_npu.npu_rms_norm(x, w)[0]`',
    swiglu ? 'SwiGLU by `torch_npu.npu_swiglu`' : null,
    'rotary embedding by `torch_npu.npu_rotary_mul`',
  ].filter((part) => part !== null);
  const zh = [
    attention ? '注意力用 `torch.nn.functional.scaled_dot_product_attention`' : null,
    'RMSNorm 用 `torch_npu.npu_rms_norm(x, w)[0]`',
    swiglu ? 'SwiGLU 用 `torch_npu.npu_swiglu`' : null,
    '旋转位置编码用 `torch_npu.npu_rotary_mul`',
  ].filter((part) => part !== null);
  const hardware = soc === null ? both('Each call lists its hardware on its own page.', '各接口支持的硬件见其文档页。') : null;
  return prose(
    both(
      `Replace known sequences by one call: ${en.join(', ')}. Rounding differs, so compare the loss curve.`,
      `把已知序列换成一次调用：${zh.join('，')}。舍入不同，需对比 loss 曲线。`,
    ),
    hardware,
  );
}

function lazyFusion(context: RemedyContext): L10n | null {
  const isListed = context.soc === 'A2' || context.soc === 'A3';
  if (!isListed || isReleaseAtLeast(context.torchNpu, '26.1.0') !== true) return null;
  return both(
    '`TORCH_NPU_LAZY_FUSION=True` fuses element-wise operators: measure it.',
    '`TORCH_NPU_LAZY_FUSION=True` 可融合逐元素算子：需实测。',
  );
}

const CHECK = both(
  'Check: fewer kernels per step, and less idle time between them.',
  '验证：每迭代的 kernel 数减少，kernel 之间的空闲缩短。',
);

const OPTIMIZERS = ['Adam', 'AdamW', 'SGD'].map((name) => `torch.optim.${name}`);

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { params, source } = context;
  const where = choice(params, 'where', ['optimizer', 'forward', 'backward', 'other']);
  const queueSettings = source === null ? [] : settingsOf(source, 'TASK_QUEUE_ENABLE');
  const blocking = source === null ? [] : settingsOf(source, 'ASCEND_LAUNCH_BLOCKING').filter(({ value }) => value === '1');
  const isBlocking = params.launchBlocking === true || params.launchBlocking === '1' || blocking.length > 0;
  const current = typeof params.taskQueue === 'string' ? params.taskQueue : null;
  const queueAdvice = taskQueue(context, current, 'then');
  const isPlain = queueAdvice !== null && isLevelTwoPlain(context);
  const low = !isPlain ? [] : queueSettings.filter(({ value }) => value === '0' || value === '1');
  const unfused =
    source === null
      ? []
      : findCallSites(source, OPTIMIZERS, provenFiles(finding)).sites.filter(
          ({ call }) => argumentOf(call, 'foreach')?.valueKind === 'false',
        );
  const isOptimizer = where === 'optimizer';
  const settingPlace = ({ file, line }: Setting) => ({ file, line, symbol: null });
  return {
    title: isOptimizer ? both('Let the optimizer launch fewer kernels', '减少优化器下发的 kernel') : TITLE,
    text: prose(
      isBlocking ? BLOCKING : null,
      isOptimizer ? optimizer(context, unfused.length > 0) : SYNCS,
      queueAdvice,
      isOptimizer ? null : fused(context),
      isOptimizer ? null : graphLaunch(context),
      isOptimizer ? null : lazyFusion(context),
      CHECK,
    ),
    code: isPlain ? QUEUE_CODE : isOptimizer ? null : READ_NOW_AND_THEN,
    preconditions: listed(
      isOptimizer
        ? null
        : both(
            'A synchronisation stays where it brackets a timer, or where its value decides what runs next.',
            '计时前后的同步，以及取值决定后续流程的同步，予以保留。',
          ),
      queueAdvice === null ? null : LEVEL_TWO_HOLDS,
      isOptimizer && context.soc === 'gen-1'
        ? both(
            'With `torch_npu.optim.NpuFusedAdamW` call `zero_grad()` without `set_to_none=True`.',
            '使用 `torch_npu.optim.NpuFusedAdamW` 时，`zero_grad()` 不传 `set_to_none=True`。',
          )
        : null,
    ),
    references: [
      variablePage('op_execution/TASK_QUEUE_ENABLE'),
      ...(isOptimizer ? [] : [torchNpuPage('user_guide/torch_compile/overview.md')]),
      ...(isOptimizer && context.soc === 'gen-1' ? [apiPage('torch_npu-optim/torch_npu-optim-NpuFusedAdamW')] : []),
    ],
    edits: low.length === 1 ? [toEdit(withValue(low[0]!, '2'), 'comment-only')] : [],
    locations: [...placesOf(unfused), ...[...blocking, ...low].slice(0, 8).map(settingPlace)],
  };
}

const QUEUE_CODE = `# launch script, before python starts
export TASK_QUEUE_ENABLE=2`;

/** Many short kernels that the host cannot launch fast enough: in which order to act. */
export default {
  id: 'fuse-small-ops',
  title: TITLE,
  apis: [
    'torch.Tensor.item',
    'torch.Tensor.detach',
    'torch.npu.synchronize',
    'torch.npu.empty_cache',
    'TASK_QUEUE_ENABLE',
    'ASCEND_LAUNCH_BLOCKING',
    'TORCH_NPU_LAZY_FUSION',
    'torch_npu.npu.set_compile_mode(jit_compile)',
    'torch.optim.AdamW',
    'torch.optim.AdamW(foreach)',
    'torch.optim.Optimizer.zero_grad',
    'torch.optim.Optimizer.zero_grad(set_to_none)',
    'torch_npu.optim.NpuFusedAdamW',
    'torch.nn.functional.scaled_dot_product_attention',
    'torch_npu.npu_rms_norm',
    'torch_npu.npu_swiglu',
    'torch_npu.npu_rotary_mul',
    'torch.compile',
  ],
  advise,
} satisfies Remedy;

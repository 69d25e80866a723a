import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { findMethodCalls, type PyCall } from '../source/calls.ts';
import { pythonFilesWith } from '../source/python-files.ts';
import { isAside } from '../source/readable-paths.ts';
import { frameworkOption } from './reading/framework-options.ts';
import { type Framework, frameworksOf } from './reading/frameworks.ts';
import { isTrainingFile } from './reading/loaders.ts';
import { loopAround, NO_UPDATE } from './reading/loops.ts';
import { count, flag } from './reading/params.ts';
import { type Place, placesOf, provenFiles } from './reading/places.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Synchronise gradients once per optimizer step', '每次参数更新只同步一次梯度');
const TITLE_NO_SYNC = both('Accumulate inside `no_sync()`', '在 `no_sync()` 中累积梯度');

const WHAT_COUNTED = both(
  'Each of the {n:int} micro batches reduces the gradients; only the last one needs to.',
  '{n:int} 个 micro batch 每个都同步梯度，只有最后一个需要。',
);
const WHAT = both(
  'Every micro batch reduces the gradients; only the last one needs to.',
  '每个 micro batch 都同步梯度，只有最后一个需要。',
);

const SAME_RESULT = both(
  'The result is the same up to rounding, and the batch size does not change.',
  '结果除舍入外相同，batch 大小不变。',
);

const FRAMEWORK_OWN = both(
  '{framework:text} owns the loop: set its {name:code} and let it skip the reduction. `no_sync()` is not added by hand there.',
  '训练循环由 {framework:text} 管理：设置其 {name:code}，由框架跳过同步。不要手动加 `no_sync()`。',
);
const MEGATRON = both(
  'Megatron accumulates by itself, as often as `--global-batch-size` holds `--micro-batch-size` times the data-parallel size. `no_sync()` is not added by hand there.',
  'Megatron 自行累积梯度，次数由 `--global-batch-size` 除以 `--micro-batch-size` 与数据并行数之积决定。不要手动加 `no_sync()`。',
);
const FSDP2 = both(
  'With `fully_shard` call `set_requires_gradient_sync(False)` for all micro batches but the last; gradients then stay unsharded and need memory.',
  '使用 `fully_shard` 时，除最后一个 micro batch 外调用 `set_requires_gradient_sync(False)`；梯度不再切分，占用更多显存。',
);
const FSDP1 = both(
  'Wrap all but the last in `no_sync()`. With FSDP the gradients then stay unsharded and need memory.',
  '除最后一个外都放进 `no_sync()`。FSDP 下梯度不再切分，占用更多显存。',
);
const DDP = both(
  'Wrap forward and backward of all but the last in `model.no_sync()`.',
  '除最后一个外，把前向和反向都放进 `model.no_sync()`。',
);
const SHARDED = both(
  'Here gradients are reduce-scattered: with FSDP they then stay unsharded between the micro batches and need memory; with `fully_shard` it is `set_requires_gradient_sync(False)`.',
  '这里的梯度经 reduce-scatter 切分：使用 FSDP 时，micro batch 之间梯度不再切分，占用更多显存；`fully_shard` 对应 `set_requires_gradient_sync(False)`。',
);
const PRESENT = both(
  'The source uses `no_sync()` already: check that the forward is inside it too, and that the model is the wrapped one.',
  '源码已使用 `no_sync()`：确认前向也在其中，且调用的是封装后的模型。',
);
const CHECK = both(
  'Check: one reduction per bucket and optimizer step in the next profile.',
  '验证：下一次 profile 中每次参数更新每个 bucket 只同步一次。',
);

const DDP_CODE = `import contextlib

for i, batch in enumerate(loader):
    last = (i + 1) % accumulation == 0 or (i + 1) == len(loader)  # exactly when the optimizer steps
    with contextlib.nullcontext() if last else model.no_sync():  # forward and backward inside
        loss = compute_loss(model, batch) / accumulation
        loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()`;

const FSDP2_CODE = `for i, batch in enumerate(loader):
    last = (i + 1) % accumulation == 0 or (i + 1) == len(loader)  # exactly when the optimizer steps
    model.set_requires_gradient_sync(last)  # before the backward
    loss = compute_loss(model, batch) / accumulation
    loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()`;

type Variant = 'megatron' | 'framework' | 'fsdp2' | 'fsdp1' | 'ddp';

const OWN_THE_LOOP: readonly Framework[] = ['accelerate', 'hfTrainer', 'deepspeed', 'lightning'];

/** Where a framework owns the loop, `no_sync` by hand would fight with its own. */
function variantOf(frameworks: ReadonlySet<Framework>): Variant {
  if (frameworks.has('megatron')) return 'megatron';
  if (OWN_THE_LOOP.some((framework) => frameworks.has(framework))) return 'framework';
  if (frameworks.has('fsdp2')) return 'fsdp2';
  return frameworks.has('fsdp1') ? 'fsdp1' : 'ddp';
}

function usesNoSync(tree: SourceTree): boolean {
  return pythonFilesWith(tree, ['no_sync'], (path) => !isAside(path)).modules.some(
    (module) => findMethodCalls(module, ['no_sync']).length > 0,
  );
}

/**
 * `backward()` calls of loops that step every optimizer only now and then (`if … % n`). Where one steps in each pass, as the discriminator
 * of a GAN does, nothing is accumulated.
 */
function accumulationLoops(tree: SourceTree, proven: readonly string[]): Place[] {
  const { modules } = pythonFilesWith(tree, ['.backward('], (path) => proven.includes(path) || (!isAside(path) && isTrainingFile(path)));
  const sites = modules.flatMap((module) => {
    const steps = findMethodCalls(module, ['step']).filter(({ written }) => !NO_UPDATE.test(written));
    const rare = steps.filter(isNowAndThen).map(({ node }) => loopAround(node));
    const steady = steps.filter((call) => !isNowAndThen(call)).map(({ node }) => loopAround(node));
    return findMethodCalls(module, ['backward'])
      .filter((call) => {
        const loop = loopAround(call.node);
        return loop !== null && rare.includes(loop) && !steady.includes(loop) && !isNowAndThen(call);
      })
      .map((call) => ({ module, call }));
  });
  return placesOf(sites);
}

function isNowAndThen({ enclosing }: PyCall): boolean {
  return enclosing.some(({ kind, text }) => kind === 'if' && (text ?? '').includes('%'));
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { source } = context;
  const steps = count(context.params, 'microSteps');
  const frameworks = source === null ? new Set<Framework>() : frameworksOf(source);
  const variant = variantOf(frameworks);
  const isPresent = source !== null && usesNoSync(source);
  const isOwned = variant === 'framework' || variant === 'megatron';
  const isSharded = variant === 'ddp' && flag(context.params, 'sharded') === true;
  const option = variant === 'framework' && source !== null ? frameworkOption(source, 'accumulation') : null;
  const how: Readonly<Record<Variant, L10n | null>> = {
    megatron: MEGATRON,
    framework: option && filled(FRAMEWORK_OWN, { framework: option.called, name: option.names[0]! }),
    fsdp2: FSDP2,
    fsdp1: FSDP1,
    ddp: DDP,
  };
  const codes: Readonly<Record<Variant, string | null>> = {
    megatron: null,
    framework: null,
    fsdp2: FSDP2_CODE,
    fsdp1: DDP_CODE,
    ddp: DDP_CODE,
  };
  const unknown =
    source === null
      ? both(
          'accelerate, the HF Trainer, DeepSpeed and Lightning have an option of their own for this.',
          'accelerate、HF Trainer、DeepSpeed 与 Lightning 有各自的选项。',
        )
      : null;
  return {
    title: variant === 'ddp' || variant === 'fsdp1' ? TITLE_NO_SYNC : TITLE,
    text: prose(
      steps === null ? WHAT : filled(WHAT_COUNTED, { n: steps }),
      how[variant],
      isSharded ? SHARDED : null,
      variant === 'ddp' ? unknown : null,
      isPresent && !isOwned ? PRESENT : null,
      SAME_RESULT,
      CHECK,
    ),
    code: codes[variant],
    preconditions: listed(
      both(
        'The loss of each micro batch is divided by their number; a token-weighted loss needs the global token count.',
        '每个 micro batch 的 loss 除以其数量；按 token 加权的 loss 需用全局 token 数。',
      ),
      isOwned
        ? null
        : both(
            'Gradient clipping, the scaler and `optimizer.step()` run only after the last micro batch.',
            '梯度裁剪、scaler 与 `optimizer.step()` 只在最后一个 micro batch 之后执行。',
          ),
      (variant === 'ddp' && !isSharded) || isOwned ? null : both('Memory has room for the full gradients.', '显存能放下完整的梯度。'),
    ),
    references: [torchPage('generated/torch.nn.parallel.DistributedDataParallel.html')],
    edits: [],
    locations: source === null ? [] : accumulationLoops(source, provenFiles(finding)),
  };
}

/** Gradient accumulation that reduces once per optimizer step instead of once per micro batch. */
export default {
  id: 'no-sync-accumulation',
  title: TITLE,
  apis: [
    'torch.nn.parallel.DistributedDataParallel.no_sync',
    'torch.distributed.fsdp.FullyShardedDataParallel.no_sync',
    'torch.distributed.fsdp.fully_shard',
    'torch.distributed.fsdp.FSDPModule.set_requires_gradient_sync',
    'torch.Tensor.backward',
    'torch.optim.Optimizer.step',
    'torch.optim.Optimizer.zero_grad',
    'contextlib.nullcontext',
    'accumulate_grad_batches',
    'gradient_accumulation_steps',
  ],
  advise,
} satisfies Remedy;

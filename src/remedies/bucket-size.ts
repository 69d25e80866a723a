import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { frameworkOption } from './reading/framework-options.ts';
import { type Framework, frameworksOf, wrapsInDdp } from './reading/frameworks.ts';
import { choice, count } from './reading/params.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Put small messages together', '合并小通信');

const WHY = both(
  '{calls:int} small messages per step each cost a start of their own; fewer, larger ones move the same bytes.',
  '每迭代 {calls:int} 次小通信各有启动开销；改为更少、更大的通信，数据量不变。',
);
const WHY_UNCOUNTED = both(
  'Each small message costs a start of its own; fewer, larger ones move the same bytes.',
  '每次小通信都有启动开销；改为更少、更大的通信，数据量不变。',
);
const DDP = both(
  'With DistributedDataParallel raise `bucket_cap_mb` (default 25), and reduce no gradient by hand.',
  '使用 DistributedDataParallel 时调大 `bucket_cap_mb`（默认 25），不要手动逐个同步梯度。',
);
const BY_HAND = both(
  'Gradients reduced one by one: let DistributedDataParallel do it, or reduce one flat buffer.',
  '若逐个同步梯度：交给 DistributedDataParallel，或合并为一块连续缓冲后同步。',
);
const MEGATRON = both('With Megatron or MindSpeed raise `--ddp-bucket-size`.', '使用 Megatron 或 MindSpeed 时调大 `--ddp-bucket-size`。');
const DEEPSPEED_GRADIENTS = both('With DeepSpeed raise `reduce_bucket_size`.', '使用 DeepSpeed 时调大 `reduce_bucket_size`。');
const DEEPSPEED_PARAMETERS = both(
  'With DeepSpeed ZeRO-3 raise `stage3_param_persistence_threshold`, so that small parameters are not gathered.',
  '使用 DeepSpeed ZeRO-3 时调大 `stage3_param_persistence_threshold`，小参数便不再收集。',
);
const STAGE = both(
  'Where memory allows, ZeRO-2 or ZeRO-1 gathers no parameters at all; frozen weights under LoRA gain nothing from ZeRO-3.',
  '显存允许时，ZeRO-2 或 ZeRO-1 完全不收集参数；LoRA 冻结的权重不需要 ZeRO-3。',
);
const FSDP_GRADIENTS = both(
  'With FSDP wrap larger blocks, so that one reduce-scatter holds the gradients of a whole layer.',
  '使用 FSDP 时包裹更大的模块，使一次 reduce-scatter 覆盖整层的梯度。',
);
const TRAINER = both(
  'The Hugging Face Trainer wraps the model: the option is `ddp_bucket_cap_mb`.',
  'Hugging Face Trainer 负责封装模型：对应选项为 `ddp_bucket_cap_mb`。',
);
const FSDP = both(
  'With FSDP wrap larger blocks, so that one gather holds a whole layer.',
  '使用 FSDP 时包裹更大的模块，使一次收集覆盖整层。',
);
const MICRO_BATCH = both('A larger micro batch gathers less often.', '增大 micro batch 可减少收集次数。');
const OTHER = both(
  'Join tensors into one before the collective, or do it every few steps.',
  '通信前把多个张量合并为一个，或每隔几个迭代通信一次。',
);
const ACCUMULATE = both(
  'Gradient accumulation with `no_sync()` reduces less often, too; it changes the effective batch.',
  '用 `no_sync()` 做梯度累积也能减少次数；但会改变有效 batch。',
);
const CHECK = both('Check: fewer collectives per step in the next profile.', '验证：下一次 profile 中每迭代的通信次数减少。');

const DDP_CODE = `from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model, device_ids=[local_rank], bucket_cap_mb=100)`;

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const kind = choice(context.params, 'kind', ['gradients', 'parameters', 'other']) ?? 'other';
  const calls = count(context.params, 'calls');
  const frameworks: ReadonlySet<Framework> = context.source === null ? new Set() : frameworksOf(context.source);
  const owned = frameworks.has('megatron') || frameworks.has('deepspeed');
  const fsdp = !owned && (frameworks.has('fsdp1') || frameworks.has('fsdp2'));
  const pureFsdp = fsdp && !wrapsInDdp(context.source!);
  const byOption = !owned && !fsdp && context.source !== null && frameworkOption(context.source, 'bucket-size') !== null;
  const how: Readonly<Record<typeof kind, readonly (L10n | null)[]>> = {
    gradients: [
      frameworks.has('megatron') ? MEGATRON : null,
      frameworks.has('deepspeed') ? DEEPSPEED_GRADIENTS : null,
      fsdp ? FSDP_GRADIENTS : null,
      byOption ? TRAINER : null,
      owned || pureFsdp || byOption ? null : DDP,
      owned || pureFsdp || byOption ? null : BY_HAND,
      owned || pureFsdp || byOption ? null : ACCUMULATE,
    ],
    parameters: [
      frameworks.has('deepspeed') || !(owned || fsdp) ? DEEPSPEED_PARAMETERS : null,
      frameworks.has('deepspeed') || !(owned || fsdp) ? STAGE : null,
      frameworks.has('fsdp1') || frameworks.has('fsdp2') || context.source === null ? FSDP : null,
      MICRO_BATCH,
    ],
    other: [OTHER],
  };
  const showsDdp = kind === 'gradients' && !owned && !pureFsdp && !byOption;
  return {
    title: TITLE,
    text: prose(calls === null ? WHY_UNCOUNTED : filled(WHY, { calls }), ...how[kind], CHECK),
    code: showsDdp ? DDP_CODE : null,
    preconditions: listed(
      kind === 'gradients' && pureFsdp ? both('Memory has room for a larger unsharded block.', '显存能放下更大的未切分模块。') : null,
      kind === 'gradients'
        ? both(
            'Larger messages start later: measure whether the overlap with the backward suffers.',
            '单次通信越大启动越晚：需测量与反向计算的重叠是否变差。',
          )
        : kind === 'parameters'
          ? both('Memory has room for the parameters that stay.', '显存能放下不再切分的参数。')
          : null,
    ),
    references: showsDdp ? [torchPage('generated/torch.nn.parallel.DistributedDataParallel.html')] : [],
    edits: [],
    locations: [],
  };
}

/** Many small collectives: larger buckets, flat buffers, fewer gathers, as the framework at hand has it. */
export default {
  id: 'bucket-size',
  title: TITLE,
  apis: [
    'torch.nn.parallel.DistributedDataParallel',
    'torch.nn.parallel.DistributedDataParallel(bucket_cap_mb)',
    'torch.nn.parallel.DistributedDataParallel(device_ids)',
    'torch.nn.parallel.DistributedDataParallel.no_sync',
    'reduce_bucket_size',
    'stage3_param_persistence_threshold',
    'transformers.TrainingArguments(ddp_bucket_cap_mb)',
  ],
  advise,
} satisfies Remedy;

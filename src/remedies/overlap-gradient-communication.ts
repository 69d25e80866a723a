import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { type Framework, frameworksOf, wrapsInDdp } from './reading/frameworks.ts';
import { flag } from './reading/params.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { COMPRESSION_HOLDS, compressGradients } from './wording/compression.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Reduce gradients while the backward runs', '在反向计算期间同步梯度');

const WHY = both(
  'Gradients of the last layers are ready long before the backward ends; reduced bucket by bucket, all but the last bucket hides.',
  '末层的梯度早在反向结束前就已算出；逐桶同步时，除最后一桶外都可被掩盖。',
);
const MEGATRON = both(
  'With Megatron or MindSpeed add `--overlap-grad-reduce`; with the distributed optimizer `--overlap-param-gather` as well.',
  '使用 Megatron 或 MindSpeed 时加 `--overlap-grad-reduce`；用分布式优化器时再加 `--overlap-param-gather`。',
);
const DEEPSPEED = both('With DeepSpeed set `overlap_comm` to true.', '使用 DeepSpeed 时将 `overlap_comm` 设为 true。');
const DDP_PRESENT = both(
  'DistributedDataParallel overlaps by itself: look for a bucket as large as the model, or a hook that waits.',
  'DistributedDataParallel 本身会重叠：检查桶是否与模型一样大，或有等待的 hook。',
);
const FSDP = both(
  'FSDP reduces the gradients of each wrapped block while the backward goes on: wrap each layer of the model, not the model alone as one block.',
  'FSDP 在反向期间逐个模块归约梯度：包裹模型的每一层，而不是只把整个模型作为一个模块包裹。',
);
const WRAPPED = both(
  'The framework wraps the model in DistributedDataParallel, which overlaps by itself: look for a bucket as large as the model, or a hook that waits.',
  '框架用 DistributedDataParallel 封装模型，本身会重叠：检查桶是否与模型一样大，或有等待的 hook。',
);
const BY_HAND = both(
  'Gradients reduced by hand after the backward: wrap the model in DistributedDataParallel, which reduces them meanwhile.',
  '若在反向之后手动同步梯度：改用 DistributedDataParallel，它会在反向期间同步。',
);
const CHECK = both('Check: the reductions lie beside the backward in the next profile.', '验证：下一次 profile 中梯度通信与反向计算重叠。');

const DDP_CODE = `from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model, device_ids=[local_rank])  # reduces during loss.backward()`;

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const ddp = flag(context.params, 'ddp') === true;
  const frameworks: ReadonlySet<Framework> = context.source === null ? new Set() : frameworksOf(context.source);
  const hasOptions = frameworks.has('megatron') || frameworks.has('deepspeed');
  // Gradients of FSDP are reduced by reduce-scatter; where DDP is used as well, all-reduces may be those of either.
  const isScattered = context.params.op === 'reduceScatter';
  const shards = !hasOptions && (frameworks.has('fsdp1') || frameworks.has('fsdp2'));
  const onlyShards = shards && (isScattered || !wrapsInDdp(context.source!));
  const owned = hasOptions || onlyShards;
  const wraps = (['accelerate', 'hfTrainer', 'lightning'] as const).some((name) => frameworks.has(name));
  const hook = ddp ? compressGradients(context) : null;
  const unknown: (L10n | null)[] = context.source === null && !ddp ? [MEGATRON, DEEPSPEED] : [];
  return {
    title: TITLE,
    text: prose(
      WHY,
      frameworks.has('megatron') ? MEGATRON : null,
      frameworks.has('deepspeed') ? DEEPSPEED : null,
      ...unknown,
      shards ? FSDP : null,
      owned ? null : ddp ? DDP_PRESENT : wraps ? WRAPPED : BY_HAND,
      owned ? null : hook,
      CHECK,
    ),
    code: owned || ddp || wraps ? null : DDP_CODE,
    preconditions: listed(
      owned || hook === null ? null : COMPRESSION_HOLDS,
      both(
        'Nothing needs all gradients before they are reduced, such as clipping by hand between backward and reduction.',
        '没有操作需要在同步前拿到全部梯度，例如反向与同步之间的手动裁剪。',
      ),
    ),
    references: hasOptions ? [] : onlyShards ? [torchPage('fsdp.html')] : [torchPage('notes/ddp.html')],
    edits: [],
    locations: [],
  };
}

/** Gradients reduced after the backward: the overlap of the framework at hand. */
export default {
  id: 'overlap-gradient-communication',
  title: TITLE,
  apis: [
    'torch.nn.parallel.DistributedDataParallel',
    'torch.nn.parallel.DistributedDataParallel(device_ids)',
    'torch.nn.parallel.DistributedDataParallel.register_comm_hook',
    'torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook',
    'torch.Tensor.backward',
    'overlap_comm',
  ],
  advise,
} satisfies Remedy;

import type { SourceTree } from '../../model/source-tree.ts';
import { namesOf } from '../../source/names.ts';
import { pythonFilesWith } from '../../source/python-files.ts';

/** Libraries whose presence changes what may be advised. */
const IMPORTS = {
  accelerate: ['accelerate'],
  hfTrainer: [
    'transformers.Trainer',
    'transformers.TrainingArguments',
    'transformers.Seq2SeqTrainer',
    'transformers.Seq2SeqTrainingArguments',
    'transformers.trainer',
    'trl',
  ],
  deepspeed: ['deepspeed'],
  lightning: ['pytorch_lightning', 'lightning'],
  fsdp1: ['torch.distributed.fsdp.FullyShardedDataParallel', 'torch.distributed.fsdp.fully_sharded_data_parallel'],
  fsdp2: ['torch.distributed.fsdp.fully_shard', 'torch.distributed._composable.fsdp'],
  megatron: ['megatron', 'mindspeed', 'mindspeed_llm'],
  pipelining: ['torch.distributed.pipelining'],
  transferToNpu: ['torch_npu.contrib.transfer_to_npu'],
  vision: ['torchvision.models', 'timm'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type Framework = keyof typeof IMPORTS;

/** Which of the libraries the Python files of a tree import. */
export function frameworksOf(tree: SourceTree): ReadonlySet<Framework> {
  const found = new Set<Framework>();
  const entries = Object.entries(IMPORTS) as [Framework, readonly string[]][];
  const lastParts = entries.flatMap(([, modules]) => modules.map((module) => module.slice(module.lastIndexOf('.') + 1)));
  for (const module of pythonFilesWith(tree, lastParts).modules) {
    for (const imported of namesOf(module).imports) {
      for (const [framework, wanted] of entries) {
        if (wanted.some((name) => imported === name || imported.startsWith(`${name}.`))) found.add(framework);
      }
    }
  }
  return found;
}

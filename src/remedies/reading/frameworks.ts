import type { SourceTree } from '../../model/source-tree.ts';
import { isPython } from '../../source/readable-paths.ts';

/** Beginning of an import of a module, at the start of a line. */
function imports(module: string): RegExp {
  return new RegExp(`^[ \\t]*(?:from|import)[ \\t]+(?:${module})\\b`, 'm');
}

/**
 * Libraries whose presence changes what may be advised: all patterns of one must occur in one file. Read from the text,
 * because a mention too many only makes advice more careful, and large repositories are searched in milliseconds.
 */
const SIGNS = {
  accelerate: [imports('accelerate')],
  hfTrainer: [imports('transformers|trl'), /\b(?:\w*Trainer|\w*TrainingArguments)\b/],
  deepspeed: [imports('deepspeed')],
  lightning: [imports('pytorch_lightning|lightning')],
  fsdp1: [/\btorch\.distributed\.fsdp\b/, /\bFullyShardedDataParallel\b/],
  fsdp2: [/\btorch\.distributed\.(?:_composable\.)?fsdp\b/, /\bfully_shard\b/],
  megatron: [imports('megatron|mindspeed\\w*')],
  llamaFactory: [imports('llamafactory')],
  verl: [imports('verl')],
  vllmAscend: [imports('vllm_ascend')],
  pipelining: [imports('torch\\.distributed\\.pipelining|torch\\.distributed[ \\t]+import[ \\t]+pipelining')],
  transferToNpu: [
    /^[ \t]*(?:from|import)[ \t]+torch_npu\.contrib\b.*\btransfer_to_npu\b|^[ \t]*import[ \t]+torch_npu\.contrib\.transfer_to_npu\b/m,
  ],
} as const satisfies Readonly<Record<string, readonly RegExp[]>>;

export type Framework = keyof typeof SIGNS;

/** The same in launch scripts and configuration files: whoever starts a framework uses it. */
const LAUNCHES: readonly (readonly [Framework, RegExp])[] = [
  ['llamaFactory', /\bllamafactory-cli[ \t]+(?:train|[\w$])/],
  ['verl', /-m[ \t]+verl\.trainer\b/],
  ['accelerate', /\baccelerate[ \t]+launch\b/],
  ['deepspeed', /^[ \t]*deepspeed[ \t]+(?:-|\S+\.py\b)|"zero_optimization"[ \t]*:/m],
  ['megatron', /--tensor-model-parallel-size\b/],
];

/** Trees do not change while they are alive, and many remedies ask. */
const known = new WeakMap<SourceTree, ReadonlySet<Framework>>();

/** Which of the libraries a tree uses. */
export function frameworksOf(tree: SourceTree): ReadonlySet<Framework> {
  const before = known.get(tree);
  if (before) return before;
  const found = new Set<Framework>();
  known.set(tree, found);
  const signs = Object.entries(SIGNS) as [Framework, readonly RegExp[]][];
  for (const path of tree.paths) {
    const text = tree.read(path);
    if (text === null) continue;
    if (!isPython(path)) {
      for (const [framework, pattern] of LAUNCHES) if (!found.has(framework) && pattern.test(text)) found.add(framework);
      continue;
    }
    for (const [framework, patterns] of signs) {
      if (!found.has(framework) && patterns.every((pattern) => pattern.test(text))) found.add(framework);
    }
  }
  // LLaMA-Factory trains with the Trainer.
  if (found.has('llamaFactory')) found.add('hfTrainer');
  return found;
}

/** True when a file of the tree names DDP, beside whatever else it uses. */
export function wrapsInDdp(tree: SourceTree): boolean {
  return tree.paths.some((path) => isPython(path) && /\bDistributedDataParallel\b/.test(tree.read(path) ?? ''));
}

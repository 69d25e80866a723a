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
  pipelining: [imports('torch\\.distributed\\.pipelining|torch\\.distributed[ \\t]+import[ \\t]+pipelining')],
  transferToNpu: [
    /^[ \t]*(?:from|import)[ \t]+torch_npu\.contrib\b.*\btransfer_to_npu\b|^[ \t]*import[ \t]+torch_npu\.contrib\.transfer_to_npu\b/m,
  ],
} as const satisfies Readonly<Record<string, readonly RegExp[]>>;

export type Framework = keyof typeof SIGNS;

/** Trees do not change while they are alive, and many remedies ask. */
const known = new WeakMap<SourceTree, ReadonlySet<Framework>>();

/** Which of the libraries the Python files of a tree use. */
export function frameworksOf(tree: SourceTree): ReadonlySet<Framework> {
  const before = known.get(tree);
  if (before) return before;
  const found = new Set<Framework>();
  known.set(tree, found);
  const signs = Object.entries(SIGNS) as [Framework, readonly RegExp[]][];
  for (const path of tree.paths) {
    const text = isPython(path) ? tree.read(path) : null;
    if (text === null) continue;
    for (const [framework, patterns] of signs) {
      if (!found.has(framework) && patterns.every((pattern) => pattern.test(text))) found.add(framework);
    }
  }
  return found;
}

import type { SourceTree } from '../../model/source-tree.ts';
import { isInsideComment } from '../../source/comment-lines.ts';
import { isAside } from '../../source/readable-paths.ts';
import { type Framework, frameworksOf } from './frameworks.ts';
import type { Place } from './places.ts';

/** What an option is for. */
export type Purpose = 'loader-workers' | 'pinned-memory' | 'broadcast-buffers' | 'bucket-size' | 'accumulation';

export interface FrameworkOption {
  readonly framework: Framework;
  /** As people call the framework. */
  readonly called: string;
  /** As its users write it, the leading one first. */
  readonly names: readonly string[];
}

type Row = readonly [framework: Framework, called: string, options: Partial<Readonly<Record<Purpose, readonly string[]>>>];

/**
 * Options by the names their users write. Read from transformers' `TrainingArguments` (whose keys LLaMA-Factory takes from its
 * YAML files), Megatron-LM's arguments, verl's data configuration, Lightning's `Trainer` and DeepSpeed's JSON keys; what was not found
 * there is left out. The more particular framework stands first: it sets the options of the one below it.
 */
const ROWS: readonly Row[] = [
  ['verl', 'verl', { 'loader-workers': ['data.dataloader_num_workers'] }],
  ['llamaFactory', 'LLaMA-Factory', trainerOptions()],
  ['lightning', 'Lightning', { accumulation: ['accumulate_grad_batches'] }],
  ['hfTrainer', 'Hugging Face Trainer', trainerOptions()],
  ['megatron', 'Megatron / MindSpeed', { 'loader-workers': ['--num-workers'] }],
  ['deepspeed', 'DeepSpeed', { accumulation: ['gradient_accumulation_steps'] }],
  ['accelerate', 'accelerate', { accumulation: ['gradient_accumulation_steps'] }],
];

function trainerOptions(): Row[2] {
  return {
    'loader-workers': ['dataloader_num_workers', 'dataloader_persistent_workers', 'dataloader_prefetch_factor'],
    'pinned-memory': ['dataloader_pin_memory'],
    'broadcast-buffers': ['ddp_broadcast_buffers'],
    'bucket-size': ['ddp_bucket_cap_mb'],
    accumulation: ['gradient_accumulation_steps'],
  };
}

/** The option of the framework that the repository uses; null when none of them has one for the purpose. */
export function frameworkOption(tree: SourceTree, purpose: Purpose): FrameworkOption | null {
  const used = frameworksOf(tree);
  for (const [framework, called, options] of ROWS) {
    const names = options[purpose];
    if (names !== undefined && used.has(framework)) return { framework, called, names };
  }
  return null;
}

const MAX_PLACES = 8;

/** Lines that set an option already: `name: 4` in YAML or JSON, `--name 4` on a command line, `name=4` in a call. */
export function linesThatSet(tree: SourceTree, name: string): Place[] {
  const bare = name.replace(/^--/, '');
  const key = bare.slice(bare.lastIndexOf('.') + 1);
  const sets = new RegExp(`(?:^|[\\s,({"'-])${bare.replaceAll('.', '\\.')}["']?\\s*[=:]|--${key}(?=[\\s=]|$)|^\\s*["']?${key}["']?\\s*:`);
  const places: Place[] = [];
  for (const file of tree.paths) {
    if (isAside(file)) continue;
    const text = tree.read(file);
    if (text === null || !text.includes(key)) continue;
    for (const [i, line] of text.split('\n').entries()) {
      if (line.length > 500 || isInsideComment(line, key) || !sets.test(line)) continue;
      places.push({ file, line: i + 1, symbol: null });
      if (places.length === MAX_PLACES) return places;
    }
  }
  return places;
}

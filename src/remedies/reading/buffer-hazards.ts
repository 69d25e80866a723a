import type { SourceTree } from '../../model/source-tree.ts';
import { findMethodCalls, type PyCall } from '../../source/calls.ts';
import { namesOf } from '../../source/names.ts';
import { pythonFilesWhere, pythonFilesWith } from '../../source/python-files.ts';
import { isPython } from '../../source/readable-paths.ts';
import { descend, type PyModule, partsOf, spanOf, textOf } from '../../source/syntax-tree.ts';
import { frameworksOf } from './frameworks.ts';

/**
 * A sign that the ranks' buffers may have to stay equal. Any of them turns the one-click change into a comment: the signs
 * are read wide (a name is enough), because a missed one would change results silently.
 */
export interface BufferHazard {
  readonly kind: 'updated-buffer' | 'state-like-name' | 'spectral-norm' | 'observer' | 'batch-norm-evaluation' | 'unread-file';
  readonly file: string;
  readonly line: number;
  /** What was seen there, as written. */
  readonly what: string;
}

/** Names of state that is updated from data. `momentum` alone is an optimizer argument and does not count. */
const STATE_WORDS = new Set(['ema', 'queue', 'codebook', 'codebooks', 'vq', 'moco']);

/** A cheap look before parsing: the words as parts of a name, so that `schema` and `remaining` hold no `ema`. */
const MAY_NAME_STATE =
  /(?<![a-z])(?:ema|queue|codebooks?|vq|moco|momentum)(?![a-z])|(?<![A-Z])(?:Ema|EMA|Queue|Codebook|VQ|MoCo|Moco|Momentum)/;

const VECTOR_QUANTISER = /\bvector_?quanti[sz]\w*/i;
const SPECTRAL_NORM = /\b(spectral_norm|SpectralNorm)\b/;
const OBSERVER = /\b(FakeQuantize|[A-Z]\w*Observer|prepare_qat\w*|torch\.(ao\.)?quantization)\b/;
const BATCH_NORM = /\b(BatchNorm[123]d|LazyBatchNorm[123]d|_BatchNorm|batch_norm)\b/;
/** Libraries whose models may hold batch norms that this tree does not show. */
const MODEL_ZOO =
  /^[^\S\n]*(from|import)\s+(torchvision|timm|detectron2|mmcv|mmdet|mmseg|mmpretrain|mmcls|mmengine|segmentation_models_pytorch|efficientnet_pytorch|pretrainedmodels|monai|ultralytics|fairseq|espnet\w*|torch_geometric)\b|\btorch\.hub\b/m;
const RANK_GUARD = /\brank\b\s*(==|in|<)|\bnot\s+[\w.]*rank\b|is_(main|master|rank_?zero)|(main|master)_process|\brank\(\)\s*==|get_rank/i;

/** Hazards of each kind are capped; three are shown, and one decides. */
const MAX_PER_KIND = 20;

/** Trees do not change while they are alive. */
const known = new WeakMap<SourceTree, readonly BufferHazard[]>();

/** Everything in the tree that speaks against `broadcast_buffers=False` without a person looking. */
export function bufferHazards(tree: SourceTree): readonly BufferHazard[] {
  const before = known.get(tree);
  if (before) return before;
  const hazards = readHazards(tree);
  known.set(tree, hazards);
  return hazards;
}

function readHazards(tree: SourceTree): BufferHazard[] {
  const hazards: BufferHazard[] = [];
  const add = (kind: BufferHazard['kind'], file: string, line: number, what: string): void => {
    if (hazards.filter((hazard) => hazard.kind === kind).length < MAX_PER_KIND) hazards.push({ kind, file, line, what });
  };

  const buffers = registeredBuffers(tree, add);
  const { modules, failures } = pythonFilesWhere(tree, (text) => MAY_NAME_STATE.test(text));
  for (const module of modules) for (const [line, name] of stateNames(module)) add('state-like-name', module.path, line, name);
  for (const failure of failures) add('unread-file', failure.path, 1, failure.path);

  let hasBatchNorm = false;
  for (const { file, line, text } of pythonLines(
    tree,
    add,
    (text) => SPEAKS.some((sign) => sign.test(text)) || [...buffers].some((name) => text.includes(name)),
  )) {
    if (buffers.size > 0 && updatesBuffer(text, buffers)) add('updated-buffer', file, line, text.trim());
    const quantiser = VECTOR_QUANTISER.exec(text);
    if (quantiser) add('state-like-name', file, line, quantiser[0]);
    const spectral = SPECTRAL_NORM.exec(text);
    if (spectral) add('spectral-norm', file, line, spectral[0]);
    const observer = OBSERVER.exec(text);
    if (observer) add('observer', file, line, observer[0]);
    hasBatchNorm ||= BATCH_NORM.test(text) || MODEL_ZOO.test(text);
  }
  if (hasBatchNorm && !isSynchronised(tree)) {
    const evaluates = frameworksOf(tree);
    // They evaluate on all ranks, in code that is not here.
    const framework = (['hfTrainer', 'lightning'] as const).find((name) => evaluates.has(name));
    const file = framework && tree.paths.find((path) => isPython(path) && /Trainer\b|LightningModule\b/.test(tree.read(path) ?? ''));
    if (file) add('batch-norm-evaluation', file, 1, framework);
    for (const [file, call] of unguardedEvaluations(tree)) add('batch-norm-evaluation', file, call.span.startLine, `${call.written}()`);
  }
  return hazards;
}

type Add = (kind: BufferHazard['kind'], file: string, line: number, what: string) => void;

function registeredBuffers(tree: SourceTree, add: Add): ReadonlySet<string> {
  const names = new Set<string>();
  for (const module of pythonFilesWith(tree, ['register_buffer']).modules) {
    for (const call of findMethodCalls(module, ['register_buffer'])) {
      const first = call.arguments.find((argument) => argument.position === 0 || argument.keyword === 'name');
      const name = /^[rbu]?["'](\w+)["']$/i.exec(first?.text ?? '')?.[1];
      if (name === undefined) add('updated-buffer', module.path, call.span.startLine, call.written);
      else {
        names.add(name);
        if (wordsOf(name).some((word) => word === 'momentum' || STATE_WORDS.has(word))) {
          add('state-like-name', module.path, call.span.startLine, name);
        }
      }
    }
  }
  return names;
}

/** Assignment to a buffer, to a part of it, or an in-place method on it. */
const UPDATE =
  /\.(\w+)(?:\.data)?\s*(?:\[.{0,200}\]\s*)?(?::[^=]{0,80})?(?:[-+*/@|&^%]|\/\/|\*\*|<<|>>)?=(?!=)|\.(\w+)(?:\.data)?(?:\[.{0,200}\])?\.\w*[a-z0-9]_\(|\bout\s*=\s*[\w.]*\.(\w+)\b|\b(_buffers)\b/g;

function updatesBuffer(line: string, buffers: ReadonlySet<string>): boolean {
  for (const match of line.matchAll(UPDATE)) {
    const name = match[1] ?? match[2] ?? match[3];
    if (match[4] !== undefined || (name !== undefined && buffers.has(name))) return true;
  }
  return false;
}

/** Names of definitions, attributes and imports that speak of state updated from data. */
function* stateNames(module: PyModule): Generator<[line: number, name: string]> {
  for (const node of descend(module.root)) {
    const isDefinition = node.kind === 'function_definition' || node.kind === 'class_definition';
    const parts = partsOf(node);
    const name = isDefinition ? parts.find((part) => part.kind === 'identifier') : assignedAttribute(node.kind, parts);
    if (name === undefined) continue;
    const text = textOf(module, name);
    if (isStateName(text)) yield [spanOf(module, name).startLine, text];
  }
  for (const imported of namesOf(module).imports) if (!PYTHON_QUEUE.test(imported) && isStateName(imported)) yield [1, imported];
}

/** Python's own queues move batches between threads and hold no buffer of the model. */
const PYTHON_QUEUE = /^(queue|asyncio|multiprocessing|torch\.multiprocessing)\b/;

function assignedAttribute(kind: string, parts: ReturnType<typeof partsOf>) {
  if (kind !== 'assignment' && kind !== 'augmented_assignment') return undefined;
  return parts[0]?.kind === 'attribute' ? partsOf(parts[0])[1] : undefined;
}

function isStateName(name: string): boolean {
  const words = wordsOf(name);
  return words.some((word) => STATE_WORDS.has(word)) || (words.includes('momentum') && words.length > 1);
}

/** `ModelEMAV2` and `update_momentum_encoder` as lower-case words. */
export function wordsOf(name: string): string[] {
  return name
    .replaceAll('.', '_')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .split(/[_\d]+/)
    .filter((word) => word !== '');
}

/** Conditions under which a model is wrapped by DDP at all. */
const DISTRIBUTED = /^[\w.]*(distributed|is_initialized\(\)|is_available\(\)|world_size\(?\)?\s*>\s*1|__name__.*)$/;

/** The batch norms are converted wherever DDP is used: a conversion behind an option of its own does not count. */
function isSynchronised(tree: SourceTree): boolean {
  return pythonFilesWith(tree, ['convert_sync_batchnorm']).modules.some((module) =>
    findMethodCalls(module, ['convert_sync_batchnorm']).some(({ enclosing }) =>
      enclosing.every(({ kind, text }) => kind !== 'else' && kind !== 'try' && (kind !== 'if' || DISTRIBUTED.test(text ?? ''))),
    ),
  );
}

/** What a line may be looked at for; a file without any of it is not taken apart. */
const SPEAKS = [VECTOR_QUANTISER, SPECTRAL_NORM, OBSERVER, BATCH_NORM, new RegExp(MODEL_ZOO, 'm'), /\b_buffers\b/];

/** Lines of files that may matter. */
function* pythonLines(
  tree: SourceTree,
  add: Add,
  mayMatter: (text: string) => boolean,
): Generator<{ file: string; line: number; text: string }> {
  for (const file of tree.paths) {
    if (!isPython(file)) continue;
    const text = tree.read(file);
    if (text === null) {
      add('unread-file', file, 1, file);
      continue;
    }
    if (!mayMatter(text)) continue;
    for (const [i, line] of text.split('\n').entries()) if (line.length <= 2_000) yield { file, line: i + 1, text: line };
  }
}

/** `model.eval()` that every rank may reach. A guard in the caller is not seen, so it still counts. */
function* unguardedEvaluations(tree: SourceTree): Generator<[file: string, call: PyCall]> {
  for (const module of pythonFilesWith(tree, ['.eval(']).modules) {
    for (const call of findMethodCalls(module, ['eval'])) {
      const isGuarded = call.enclosing.some((enclosure) => enclosure.kind === 'if' && RANK_GUARD.test(enclosure.text ?? ''));
      if (call.arguments.length === 0 && !isGuarded) yield [module.path, call];
    }
  }
}

import type { SourceTree } from '../../model/source-tree.ts';
import { findCalls, findMethodCalls, type PyCall } from '../../source/calls.ts';
import { namesOf } from '../../source/names.ts';
import { pythonFilesWhere, pythonFilesWith } from '../../source/python-files.ts';
import { isAside, isPython } from '../../source/readable-paths.ts';
import { STANDARD_LIBRARY } from '../../source/standard-library.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, spanOf, textOf } from '../../source/syntax-tree.ts';
import { frameworksOf } from './frameworks.ts';
import { isChangedInPlace } from './loops.ts';
import { functionAround } from './offers.ts';

/**
 * A sign that the ranks' buffers may have to stay equal. Any of them turns the one-click change into a comment: the signs
 * are read wide (a name is enough), because a missed one would change results silently.
 */
export interface BufferHazard {
  readonly kind:
    | 'updated-buffer'
    | 'state-like-name'
    | 'spectral-norm'
    | 'observer'
    | 'batch-norm-evaluation'
    | 'foreign-module'
    | 'unread-file';
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
/** Norms with running statistics; of instance norms those that are asked for them, by name or as the fifth argument. */
const BATCH_NORM =
  /\b(BatchNorm[123]?d?|LazyBatchNorm[123]d|_BatchNorm|batch_norm)\b|\btrack_running_stats\s*=\s*(?!False\b)|InstanceNorm[123]d\([^()]*,[^()]*,[^()]*,[^()]*,/;
/** Libraries whose models may hold batch norms that this tree does not show. */
const MODEL_ZOO =
  /^[^\S\n]*(from|import)\s+(torchvision|timm|detectron2|mmcv|mmdet|mmseg|mmpretrain|mmcls|mmengine|segmentation_models_pytorch|efficientnet_pytorch|pretrainedmodels|monai|ultralytics|fairseq|espnet\w*|torch_geometric)\b|\btorch\.hub\b/m;
/** One rank of the whole job. The first of each node is not enough. */
const RANK_GUARD =
  /\brank(?:\(\))?\s*==|\bget_rank\([^()]*\)\s*==|\bnot\s+(?:\w+\.)*rank\b|\bis_(?:main|master|rank_?zero)|(?<!local_)(?:main|master)_process/i;
const OTHERWISE = /\bor\b|\blocal_?rank\b|(?<!\w)not\s+(?:[\w.]*\.)?is_/;

/** Packages without modules of their own, or whose modules torch's own buffers are all there is to. */
const KNOWN_PACKAGES = new Set(
  `torch torch_npu torchdata torchmetrics accelerate deepspeed apex numpy scipy pandas PIL cv2 skimage sklearn matplotlib seaborn
  imageio tqdm rich yaml ruamel toml omegaconf hydra absl fire click tyro simple_parsing configargparse easydict addict yacs attr attrs pydantic
  typing_extensions packaging psutil requests tensorboard tensorboardX wandb swanlab mlflow loguru colorama termcolor prettytable tabulate datasets
  tokenizers sentencepiece tiktoken jieba nltk regex safetensors huggingface_hub h5py lmdb msgpack pyarrow webdataset albumentations
  einops jsonlines orjson ujson joblib numba librosa soundfile pycocotools setuptools pkg_resources six future dotenv evaluate rouge_score sacrebleu
  pytest git ray boto3 oss2`.split(/\s+/),
);
/** What does not hold modules in libraries that also have some. */
const NO_MODULE =
  /^(?:\w*(?:Tokenizer|TokenizerFast|Processor|FeatureExtractor|Config|Collator\w*|DataCollator\w*|Arguments|ArgumentParser|Callback|Trainer)|get_\w*schedul\w*|set_seed|logging|trainer_utils)$/;
const IMPORT = /^[^\S\n]*(?:from[^\S\n]+([A-Za-z_]\w*)[\w.]*[^\S\n]+import[^\S\n]+([^#\n]*)|import[^\S\n]+([^#\n]+))/gm;

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
  for (const [file, line, what] of [...changedAsArguments(tree, buffers), ...changedAsBuffers(tree)])
    add('updated-buffer', file, line, what);
  const { modules, failures } = pythonFilesWhere(tree, (text) => MAY_NAME_STATE.test(text));
  for (const module of modules) for (const [line, name] of stateNames(module)) add('state-like-name', module.path, line, name);
  for (const failure of failures) add('unread-file', failure.path, 1, failure.path);

  for (const [file, line, name] of foreignModules(tree)) add('foreign-module', file, line, name);

  let hasBatchNorm = false;
  let aliases = new Set<string>();
  let aliasesIn: string | null = null;
  for (const { file, line, text } of pythonLines(tree, add, (text) => SPEAKS.some((sign) => sign.test(text)) || namesAny(text, buffers))) {
    if (file !== aliasesIn) aliases = new Set();
    aliasesIn = file;
    const alias = aliasOf(text, buffers);
    if (alias !== null) aliases.add(alias);
    else if (updatesBuffer(text, buffers) || changesAlias(text, aliases)) add('updated-buffer', file, line, text.trim());
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
    for (const [file, line, what] of unguardedEvaluations(tree)) add('batch-norm-evaluation', file, line, what);
  }
  return hazards;
}

type Add = (kind: BufferHazard['kind'], file: string, line: number, what: string) => void;

/** Buffers of one file that nobody wrote by hand. */
const MANY = 200;

function registeredBuffers(tree: SourceTree, add: Add): ReadonlySet<string> {
  const names = new Set<string>();
  const keep = (module: PyModule, call: PyCall, name: string): void => {
    names.add(name);
    if (wordsOf(name).some((word) => word === 'momentum' || STATE_WORDS.has(word))) {
      add('state-like-name', module.path, call.span.startLine, name);
    }
  };
  for (const module of pythonFilesWith(tree, ['register_buffer']).modules) {
    const calls = findMethodCalls(module, ['register_buffer']);
    // Of so many the last ones are not among them.
    if (calls.length >= MANY) add('updated-buffer', module.path, calls[0]!.span.startLine, 'register_buffer');
    for (const call of calls) {
      const first = call.arguments.find((argument) => argument.position === 0 || argument.keyword === 'name');
      const name = /^[rbu]?["'](\w+)["']$/i.exec(first?.text ?? '')?.[1];
      if (name === undefined) add('updated-buffer', module.path, call.span.startLine, call.written);
      else keep(module, call, name);
    }
  }
  for (const module of pythonFilesWith(tree, ['Buffer']).modules) {
    for (const call of findCalls(module, BUFFERS, namesOf(module))) {
      const target = call.node.parent?.kind === 'assignment' ? partsOf(call.node.parent)[0] : undefined;
      const name = target?.kind === 'attribute' ? /^self\.(\w+)$/.exec(textOf(module, target))?.[1] : undefined;
      if (name === undefined || call.name === null || !isInConstructor(module, call.node)) {
        add('updated-buffer', module.path, call.span.startLine, call.written);
      } else keep(module, call, name);
    }
  }
  return names;
}

/** Functions looked at because a buffer is handed to them. */
const MAX_CALLEES = 60;
/** Calls that write to what they are given. */
const WRITES = /^(all_reduce|broadcast|reduce|all_gather\w*|reduce_scatter\w*|scatter|recv|irecv)$/;

/** Buffers handed to a function that changes its argument: `dequeue(self.memory, x)`, `dist.all_reduce(self.center)`. */
function changedAsArguments(tree: SourceTree, buffers: ReadonlySet<string>): [file: string, line: number, what: string][] {
  if (buffers.size === 0) return [];
  const isNamed = new RegExp(`\\.(?:${[...buffers].join('|')})\\b`);
  const given = new Map<string, [file: string, line: number]>();
  for (const module of pythonFilesWhere(tree, (text) => isNamed.test(text)).modules) {
    for (const node of descend(module.root)) {
      if (node.kind !== 'argument_list' || node.parent?.kind !== 'call') continue;
      const hasBuffer = partsOf(node).some((part) => {
        const value = part.kind === 'keyword_argument' ? partsOf(part)[1]! : part;
        const member = value.kind === 'attribute' ? partsOf(value)[1] : undefined;
        return member !== undefined && buffers.has(textOf(module, member));
      });
      const name = hasBuffer ? calledName(module, node.parent) : null;
      if (name !== null && !given.has(name)) given.set(name, [module.path, spanOf(module, node).startLine]);
    }
  }
  const written = [...given].filter(([name]) => WRITES.test(name));
  const others = [...given].filter(([name]) => !WRITES.test(name)).slice(0, MAX_CALLEES);
  const changing = functionsThatChange(tree, new Set(others.map(([name]) => name)));
  return [...written, ...others.filter(([name]) => changing.has(name))].map(([name, [file, line]]) => [file, line, `${name}(…)`]);
}

/** Of these functions the ones whose body changes a parameter in place. */
function functionsThatChange(tree: SourceTree, names: ReadonlySet<string>): ReadonlySet<string> {
  const changing = new Set<string>();
  if (names.size === 0) return changing;
  const isDefined = new RegExp(`\\bdef (?:${[...names].join('|')})\\b`);
  for (const module of pythonFilesWhere(tree, (text) => isDefined.test(text)).modules) {
    for (const node of descend(module.root)) {
      if (node.kind !== 'function_definition') continue;
      const name = partsOf(node).find(({ kind }) => kind === 'identifier');
      const list = partsOf(node).find(({ kind }) => kind === 'parameters');
      if (name === undefined || !names.has(textOf(module, name)) || changing.has(textOf(module, name))) continue;
      const parameters = (list === undefined ? [] : partsOf(list)).map((part) => /^\*{0,2}(\w+)/.exec(textOf(module, part))?.[1]);
      const isChanged = parameters.some((each) => each !== undefined && each !== 'self' && changesTensor(module, node, each));
      if (isChanged) changing.add(textOf(module, name));
    }
  }
  return changing;
}

/** In place, or by a collective. */
function changesTensor(module: PyModule, scope: PyNode, name: string): boolean {
  if (isChangedInPlace(module, scope, name)) return true;
  return [...descend(scope)].some((node) => {
    if (node.kind !== 'argument_list' || node.parent?.kind !== 'call') return false;
    const isWrite = WRITES.test(calledName(module, node.parent) ?? '');
    return isWrite && partsOf(node).some((part) => [...descend(part)].some((each) => textOf(module, each) === name));
  });
}

function calledName(module: PyModule, call: PyNode): string | null {
  const callable = call.children[0];
  const last = callable?.kind === 'attribute' ? partsOf(callable)[1] : callable;
  return last?.kind === 'identifier' ? textOf(module, last) : null;
}

const TAKES_STATE = /\.(?:named_)?buffers\(|\bfor\b.{1,200}\.state_dict\(\)/;
/** Calls whose result only tells about buffers. */
const COUNTS = /^(sum|len|any|all|max|min|next|print|sorted|set)$/;

/** All buffers of a model, taken to change them: `for b in model.buffers(): b.mul_(0.9)`, `averaged = list(model.buffers())`. */
function* changedAsBuffers(tree: SourceTree): Generator<[file: string, line: number, what: string]> {
  for (const module of pythonFilesWhere(tree, (text) => TAKES_STATE.test(text)).modules) {
    for (const call of findMethodCalls(module, ['buffers', 'named_buffers', 'state_dict'])) {
      const isState = call.written.endsWith('state_dict');
      if (isAside(module.path) || (isState && call.arguments.length > 0)) continue;
      const at: [string, number, string] = [module.path, call.span.startLine, `${call.written}()`];
      const loop = [...ascend(call.node)].find(({ kind }) => kind === 'for_statement');
      const [target, over] = loop === undefined ? [] : partsOf(loop);
      if (loop !== undefined && over !== undefined && call.node.start >= over.start && call.node.end <= over.end) {
        const names = [...descend(target!)].filter(({ kind }) => kind === 'identifier').map((part) => textOf(module, part));
        if (names.some((name) => changesTensor(module, loop, name))) yield at;
        continue;
      }
      // The state is saved and loaded everywhere; a list of the buffers is taken for a purpose.
      if (isState || [...ascend(call.node)].some((up) => up.kind === 'call' && COUNTS.test(calledName(module, up) ?? ''))) continue;
      if (![...ascend(call.node)].some(({ kind }) => kind.endsWith('comprehension') || kind === 'generator_expression')) yield at;
    }
  }
}

const BUFFERS = ['torch.nn.Buffer', 'torch.nn.parameter.Buffer'];

function isInConstructor(module: PyModule, node: PyNode): boolean {
  const around = functionAround(node);
  const name = around === null ? undefined : partsOf(around).find((part) => part.kind === 'identifier');
  return name !== undefined && textOf(module, name) === '__init__';
}

function namesAny(text: string, names: ReadonlySet<string>): boolean {
  if (names.size === 0) return false;
  for (const [word] of text.matchAll(/\w+/g)) if (names.has(word)) return true;
  return false;
}

/** Assignment to a buffer, to a part of it, or as the output of an operation. */
const UPDATE =
  /\.(\w+)(?:\.data)?\s*(?:\[.{0,200}\]\s*)?(?::[^=]{0,80})?(?:[-+*/@|&^%]|\/\/|\*\*|<<|>>)?=(?!=)|\bout\s*=\s*[\w.]*\.(\w+)\b|\b(_buffers)\b/g;
/** Several targets: `self.mean, self.scale = …`. */
const TARGETS = /^(.+?[^=!<>:+*/%&|^@-])=(?!=)/;
const IN_PLACE = /\.\w*[a-z0-9]_\(|\b_foreach_\w+_\(|\.set_\(/;
const CREATES = /^\s*self\.\w+\s*(?::[^=]{0,80})?=\s*(?:\w+\.)*Buffer\(/;
/** `center = self.center.detach()`: another name for the same memory. */
const ALIAS = /^\s*(\w+)\s*=\s*[\w.]+\.(\w+)(?:\.(?:data|detach\(\)|view\([^()]*\)|T)|\[[^\]]*\])*\s*(?:#.*)?$/;

/** True when a line may write to one of the buffers: one is named there, and something is changed in place. */
function updatesBuffer(line: string, buffers: ReadonlySet<string>): boolean {
  if (CREATES.test(line)) return false;
  if (IN_PLACE.test(line) && namesAny(line, buffers)) return true;
  const targets = TARGETS.exec(line)?.[1];
  if (targets?.includes(',') && !/[([{]/.test(targets) && namesAny(targets, buffers)) return true;
  for (const match of line.matchAll(UPDATE)) {
    const name = match[1] ?? match[2];
    if (match[3] !== undefined || (name !== undefined && buffers.has(name))) return true;
  }
  return false;
}

/** The name that a line gives to a buffer's memory. */
function aliasOf(line: string, buffers: ReadonlySet<string>): string | null {
  const match = ALIAS.exec(line);
  return match !== null && buffers.has(match[2]!) ? match[1]! : null;
}

/** In place, by an operator, or in a part. A name of one function may be another's: the whole file counts. */
function changesAlias(line: string, aliases: ReadonlySet<string>): boolean {
  if (aliases.size === 0 || !namesAny(line, aliases)) return false;
  if (IN_PLACE.test(line)) return true;
  const target = /^\s*(\w+)\s*(?:(?:\.\w+)*\s*\[.*\]\s*(?:[-+*/@|&^%]|\/\/|\*\*|<<|>>)?=(?!=)|(?:[-+*/@|&^%]|\/\/|\*\*|<<|>>)=)/.exec(
    line,
  )?.[1];
  return target !== undefined && aliases.has(target);
}

/** Modules of packages that are not here: what their buffers do, nobody can read. The first of each file. */
function* foreignModules(tree: SourceTree): Generator<[file: string, line: number, name: string]> {
  const own = new Set(tree.paths.filter(isPython).flatMap((path) => path.replace(/\.py$/, '').split('/')));
  for (const file of tree.paths) {
    if (!isPython(file) || isAside(file)) continue;
    const text = tree.read(file) ?? '';
    for (const match of text.matchAll(IMPORT)) {
      const name = foreignPackage(match, own);
      if (name === undefined) continue;
      yield [file, text.slice(0, match.index).split('\n').length, name];
      break;
    }
  }
}

function foreignPackage([written, from, members, packages]: RegExpExecArray, own: ReadonlySet<string>): string | undefined {
  const isForeign = (name: string): boolean => !isKnownPackage(name, own) && !MODEL_ZOO.test(`import ${name}`);
  if (from !== undefined) {
    if (!isForeign(from) || MODEL_ZOO.test(written)) return undefined;
    const names = members!
      .replaceAll(/[()\\]/g, '')
      .split(',')
      .map((member) => member.trim().split(/\s+/)[0]!);
    return names.every((name) => NO_MODULE.test(name)) ? undefined : from;
  }
  return packages!
    .split(',')
    .map((part) => /^\s*([A-Za-z_]\w*)/.exec(part)?.[1])
    .find((name) => name !== undefined && isForeign(name));
}

function isKnownPackage(name: string, own: ReadonlySet<string>): boolean {
  return STANDARD_LIBRARY.has(name) || KNOWN_PACKAGES.has(name) || own.has(name);
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
    for (const [line, joined] of joinedLines(text)) yield { file, line, text: joined };
  }
}

/** Longer lines are data. */
const MAX_LINE = 2_000;

/** Lines with those that an open bracket or a backslash joins to them. Brackets in texts join too much, which only makes advice more careful. */
function* joinedLines(text: string): Generator<[line: number, text: string]> {
  let start = 0;
  let open = '';
  let depth = 0;
  for (const [i, line] of text.split('\n').entries()) {
    if (line.length > MAX_LINE) continue;
    if (open === '') start = i + 1;
    open = open === '' ? line : `${open} ${line.trim()}`;
    const code = line.replace(/#.*$/, '');
    depth += (code.match(/[([{]/g)?.length ?? 0) - (code.match(/[)\]}]/g)?.length ?? 0);
    if (depth > 0 && open.length < MAX_LINE) continue;
    if (depth <= 0 && /\\\s*$/.test(line) && open.length < MAX_LINE) continue;
    yield [start, open];
    open = '';
    depth = 0;
  }
  if (open !== '') yield [start, open];
}

/**
 * `model.eval()` that every rank may reach, in any of its forms: `train(False)`, `train(mode)`, `training = False`. A guard in the caller
 * is not seen, so it still counts.
 */
function* unguardedEvaluations(tree: SourceTree): Generator<[file: string, line: number, what: string]> {
  for (const module of pythonFilesWith(tree, ['.eval(', '.train(']).modules) {
    for (const call of findMethodCalls(module, ['eval', 'train'])) {
      const isGuarded = call.enclosing.some(({ kind, text }) => kind === 'if' && isOneRank(text ?? ''));
      if (!isGuarded && evaluates(call)) yield [module.path, call.span.startLine, `${call.written}()`];
    }
  }
  for (const file of tree.paths) {
    if (!isPython(file)) continue;
    const text = tree.read(file) ?? '';
    const at = text.search(/\.training\s*=(?!=)(?!\s*True\b)/);
    if (at !== -1) yield [file, text.slice(0, at).split('\n').length, 'training ='];
  }
}

function isOneRank(condition: string): boolean {
  return RANK_GUARD.test(condition) && !OTHERWISE.test(condition);
}

function evaluates({ written, arguments: given, hasKeywordArgs, hasStarArgs }: PyCall): boolean {
  const [only, ...others] = given;
  if (hasKeywordArgs || hasStarArgs) return true;
  // `DataFrame.eval("a + b")` is none; `nn.Module.eval(model)` is.
  if (/(^|\.)eval$/.test(written)) return only === undefined || (others.length === 0 && only.valueKind !== 'string');
  return only !== undefined && !(others.length === 0 && only.valueKind === 'true');
}

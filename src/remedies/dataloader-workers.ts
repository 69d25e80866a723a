import { fill, quoteLiteral } from '../base/phrase.ts';
import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { argumentOf } from '../source/calls.ts';
import { keywordSteps } from '../source/edit-call.ts';
import type { CallSite } from '../source/find-in-tree.ts';
import type { Keyword } from '../source/insert-keyword.ts';
import { isDataChanged } from './reading/data-changes.ts';
import { holdsLambda, isDatasetChanged, type WorkerHazard, workerHazards } from './reading/datasets.ts';
import { type FrameworkOption, frameworkOption, linesThatSet } from './reading/framework-options.ts';
import { type KeepHazard, keepHazards, NEVER_KEPT } from './reading/kept-workers.ts';
import { isMadeAgain, LOADER, trainingLoaders, WORKERS_POSITION, type Workers, workersOf } from './reading/loaders.ts';
import { offer } from './reading/offers.ts';
import { type OptionBehind, optionBehind, placesToSet, whereToSet } from './reading/options.ts';
import { choice, flag } from './reading/params.ts';
import { bySupport, placesOf, provenFiles, supported } from './reading/places.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { msprofAnalyzePage, torchPage } from './wording/documents.ts';

const TITLE = both('Load batches in worker processes', '用多个进程加载数据');

function howMany(mode: 'single' | 'multi' | null, workers: Workers, saturated: boolean, behind: OptionBehind | null): L10n {
  const cheaper = both(
    'Beyond that, make each sample cheaper: decode and resize offline, read plain files instead of archives.',
    '到上限后改为降低单个样本的开销：离线解码和缩放，读取普通文件而非压缩包。',
  );
  if (saturated) {
    return both(
      'The host has no idle CPU cores, so more workers do not help. Make each sample cheaper: decode and resize offline, read plain files instead of archives.',
      '主机 CPU 已无空闲核，增加进程没有帮助。改为降低单个样本的开销：离线解码和缩放，读取普通文件而非压缩包。',
    );
  }
  const raise = both(
    'Raise `num_workers` only while the host has idle CPU cores, at most to its cores divided by its cards.',
    '仅在主机 CPU 有空闲核时增大 `num_workers`，上限为核数除以卡数。',
  );
  if (mode === 'multi') {
    const known = both('Worker processes load the data and are still slower than the cards.', '数据已由多个进程加载，但仍慢于 NPU。');
    return prose(known, raise, behind && whereToSet(behind, 'num_workers'), cheaper);
  }
  const set = both(
    'Set `num_workers=4`, `persistent_workers=True` and `prefetch_factor=4`.',
    '设置 `num_workers=4`、`persistent_workers=True` 和 `prefetch_factor=4`。',
  );
  if (mode === 'single') {
    const known = both('The main process loads each batch itself, and the card waits for it.', '每个 batch 都由主进程加载，NPU 只能等待。');
    const where =
      behind !== null
        ? whereToSet(behind, 'num_workers')
        : workers === 'expression'
          ? both(
              '`num_workers` comes from an option that is 0 in this run: raise it there.',
              '`num_workers` 来自配置项，本次运行为 0：在配置处增大。',
            )
          : null;
    return prose(known, where, set, raise);
  }
  return prose(
    both('The profile does not show how batches are loaded.', 'profile 看不出数据的加载方式。'),
    both(
      'With `num_workers=0`, set `num_workers=4`, `persistent_workers=True` and `prefetch_factor=4`.',
      '若 `num_workers=0`，设置 `num_workers=4`、`persistent_workers=True` 和 `prefetch_factor=4`。',
    ),
    both(
      'With workers in use already, raise their number only while the host has idle CPU cores.',
      '若已使用多个进程，仅在主机 CPU 有空闲核时增大进程数。',
    ),
  );
}

/** The loop and its loader are the framework's: only its option can be set. */
const FRAMEWORK_OPTION = both(
  '{framework:text} builds the loader: the option is {name:code}{others:text}.',
  '加载器由 {framework:text} 创建：对应选项为 {name:code}{others:text}。',
);

function inFramework({ called, names: [name, ...others] }: FrameworkOption): L10n {
  const more = others.map((other) => `\`${other}\``);
  return both(
    fill(FRAMEWORK_OPTION, { framework: called, name: name!, others: more.length === 0 ? '' : `, with ${more.join(' and ')}` }, 'en'),
    fill(FRAMEWORK_OPTION, { framework: called, name: name!, others: more.length === 0 ? '' : `，以及 ${more.join('、')}` }, 'zh'),
  );
}

const INTERMITTENT = both(
  'The stall comes and goes, which fits a slow file, shard or worker: even out file sizes and raise `prefetch_factor`.',
  '等待时有时无，与个别文件、分片或加载进程较慢相符：让文件大小均匀，并增大 `prefetch_factor`。',
);
const SOME_RANKS = both(
  'Only on rank {ranks:ranks} does the card wait: first compare storage, NUMA node and sample lengths with the other ranks.',
  '只有卡 {ranks:ranks} 在等待：先对比其存储、NUMA 节点和样本长度与其他卡的差异。',
);
const KEEP_WORKERS = both(
  '`persistent_workers=True` keeps the workers between epochs; every new set of them also synchronises the NPU.',
  '`persistent_workers=True` 在 epoch 之间保留进程；每次重建进程还会同步 NPU。',
);
const CHANGED = both(
  'The source changes the dataset or what prepares its samples between epochs: workers that stay would not see it, so `persistent_workers` is left out.',
  '源码在 epoch 之间修改数据集或样本处理对象：保留的进程看不到修改，因此不设置 `persistent_workers`。',
);
const CHECK = both(
  'Check: the next profile shows less time in `DataLoader.__next__`.',
  '验证：下一次 profile 中 `DataLoader.__next__` 的耗时下降。',
);

const CODE_START = `loader = DataLoader(
    dataset,                  # other arguments stay as they are
    num_workers=4,            # then up to CPU cores / cards of the host
    persistent_workers=True,  # keep the workers between epochs
    prefetch_factor=4,        # batches each worker prepares ahead
)`;
const CODE_KEEP = `loader = DataLoader(
    dataset,                  # other arguments stay as they are
    num_workers=8,            # below CPU cores / cards of the host
    persistent_workers=True,  # keep the workers between epochs
    prefetch_factor=4,        # batches each worker prepares ahead
)`;

const HAZARD: Readonly<Record<WorkerHazard['kind'] | KeepHazard['kind'], L10n>> = {
  written: both(
    'the dataset writes to what it holds, so `persistent_workers` would change the samples from the second epoch on',
    '数据集在取样本时修改自身持有的数据，`persistent_workers` 会使第二个 epoch 起的样本改变',
  ),
  iterations: both(
    'the sampler counts iterations, so the workers live for the whole run already',
    '采样器按迭代数计数，进程已贯穿整个训练',
  ),
  'single-pass': both('the loader is gone through once, so there is nothing to keep', '该加载器只遍历一次，无需保留进程'),
  second: both(
    'a second iterator of the loader is asked for, which kept workers take from the loop that runs',
    '该加载器还会创建第二个迭代器，保留的进程会因此中断正在进行的循环',
  ),
  seeded: both(
    '`worker_init_fn` may set seeds, and workers that stay run it only once',
    '`worker_init_fn` 可能设置随机种子，而保留的进程只执行它一次',
  ),
  validation: both('the same call makes the loader of validation', '同一调用也用于创建验证加载器'),
  lambda: both('the dataset holds a `lambda`, which spawned workers cannot be given', '数据集含 `lambda`，spawn 方式的进程无法接收'),
  device: both('the dataset or `collate_fn` speaks of a card', '数据集或 `collate_fn` 中涉及 NPU'),
  iterable: both('an iterable dataset gives every worker all samples', '可迭代数据集会让每个进程读到全部样本'),
  handle: both('an open file does not survive the start of a worker', '已打开的文件句柄不能跨进程使用'),
  rpc: both('threads of RPC run when the workers are forked', 'fork 加载进程时 RPC 的线程正在运行'),
  spawn: both('workers are started by spawn', '进程以 spawn 方式启动'),
  generator: both(
    'a random generator kept with the data is copied to each worker in the same state',
    '数据侧自带的随机数生成器会以相同状态复制到每个进程',
  ),
  unseen: both('code outside the repository makes the samples', '样本由仓库之外的代码生成'),
  'unread-file': both('a file could not be read', '有文件未能读取'),
};

function lookedAtFirst(hazards: readonly (WorkerHazard | KeepHazard)[]): L10n | null {
  const shown = hazards.slice(0, 3);
  if (shown.length === 0) return null;
  const place = ({ file, line }: WorkerHazard | KeepHazard): string => quoteLiteral(`${file}:${line}`);
  const en = shown.map((hazard) => `${HAZARD[hazard.kind].en} (${place(hazard)})`);
  const zh = shown.map((hazard) => `${HAZARD[hazard.kind].zh}（${place(hazard)}）`);
  return both(`To look at first: ${en.join('; ')}.`, `需先确认：${zh.join('；')}。`);
}

const isDotted = (text: string): boolean => /^[A-Za-z_]\w*(\.\w+)*$/.test(text);

const isConstant = (text: string): boolean => /^(\w+\.)*[A-Z][A-Z0-9_]*$/.test(text);

/** What to change in the call; null where the profile and the source contradict each other, or somebody decided elsewhere. */
function keywordsFor(
  tree: SourceTree,
  site: CallSite,
  mode: 'single' | 'multi' | null,
  workers: Workers,
  keeps: boolean,
): readonly Keyword[] | null {
  const { call } = site;
  if (call.enclosing.some(({ kind }) => kind === 'for' || kind === 'while' || kind === 'comprehension')) return null;
  const missing = (keywords: readonly Keyword[]): Keyword[] => keywords.filter(({ keyword }) => argumentOf(call, keyword) === null);
  const given = argumentOf(call, 'num_workers', WORKERS_POSITION);
  // A loader that is made again for each epoch has nothing to keep.
  const keep = keeps && !isMadeAgain(tree, call) ? missing([{ keyword: 'persistent_workers', value: 'True' }]) : [];
  // What all callers pass today may be 0 for the next one, which torch refuses; a constant and a number are what they are.
  const isOpen = workers === 'expression' || (given !== null && given.valueKind !== 'integer' && !isConstant(given.text));
  if (mode !== 'single' && workers === 'some' && !isOpen) return keep;
  if (mode === 'multi' && (workers === 'expression' || workers === 'some') && given !== null && isDotted(given.text))
    return keep.map(({ keyword }) => ({ keyword, value: `${given.text} > 0` }));
  if (mode === 'multi' || workers !== 'none' || given?.position != null || (given !== null && given.valueKind !== 'integer')) return null;
  return [{ keyword: 'num_workers', value: '4' }, ...keep, ...missing([{ keyword: 'prefetch_factor', value: '4' }])];
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { params, source } = context;
  const mode = choice(params, 'iterator', ['single', 'multi']);
  const sites = bySupport(trainingLoaders(source, provenFiles(finding)), finding);
  const near = supported(sites, finding);
  const only = near.length === 1 ? near[0]! : null;
  const workers = source === null || only === null ? 'unknown' : workersOf(source, only);
  const behind = source === null || only === null ? null : optionBehind(source, only, 'num_workers', WORKERS_POSITION);
  const guess = mode ?? (workers === 'none' ? 'single' : workers === 'some' ? 'multi' : null);
  // A loader in the repository is the one to change; without one it is the framework's.
  const option = source === null || sites.length > 0 ? null : frameworkOption(source, 'loader-workers');
  const saturated = flag(params, 'hostSaturated') === true;
  const isChanged = source !== null && (isDatasetChanged(source) || (only !== null && isDataChanged(source, only)));
  const kept = source === null || only === null ? [] : keepHazards(source, only);
  const keeps = !isChanged && !kept.some(({ kind }) => NEVER_KEPT.has(kind));
  const wanted = only === null || saturated ? null : keywordsFor(source!, only, guess, workers, keeps);
  const starts = wanted?.some(({ keyword }) => keyword === 'num_workers') === true;
  const stays = wanted?.some(({ keyword }) => keyword === 'persistent_workers') === true;
  const hazards = [...(source === null || only === null || !starts ? [] : workerHazards(source, only)), ...(stays || !keeps ? kept : [])];
  const isDoubtful = hazards.some(({ kind }) => stays || !NEVER_KEPT.has(kind as KeepHazard['kind']));
  const isSeeded = stays && hazards.some(({ kind }) => kind === 'seeded');
  const isForked = starts && hazards.every(({ kind }) => kind !== 'lambda') && holdsLambda(source!, only!);
  const steps = only === null || only.call.name === null || wanted === null ? null : keywordSteps(only.module, only.call, wanted).steps;
  const edits =
    source === null || only === null || steps === null
      ? []
      : offer([{ module: only.module, node: only.call.node, steps, isSafe: sites.length === 1 && !isDoubtful }], finding, source);
  return {
    title: guess === 'multi' ? both('Give the data loader more capacity', '提升数据加载能力') : TITLE,
    text: prose(
      flag(params, 'allRanks') === false && finding.ranks.length > 0 ? filled(SOME_RANKS, { ranks: finding.ranks }) : null,
      howMany(guess, workers, saturated, behind),
      option === null || saturated ? null : inFramework(option),
      flag(params, 'intermittent') === true ? INTERMITTENT : null,
      guess === 'multi' && keeps ? KEEP_WORKERS : null,
      isChanged ? CHANGED : null,
      lookedAtFirst(hazards),
      CHECK,
    ),
    code: guess === 'multi' ? CODE_KEEP : CODE_START,
    preconditions: listed(
      both(
        'Workers can open the dataset, and `__getitem__` and `collate_fn` return CPU tensors.',
        '数据集支持多进程读取，`__getitem__` 与 `collate_fn` 返回 CPU 张量。',
      ),
      both(
        'The dataset is not changed between epochs: persistent workers keep their own copy.',
        'epoch 之间不修改数据集：保留的进程使用各自的副本。',
      ),
      both(
        'Shared memory (`/dev/shm`) holds the batches on their way; containers often start with 64 MB.',
        '共享内存（`/dev/shm`）能放下在途的 batch；容器默认常只有 64 MB。',
      ),
      both(
        'Random augmentation draws from torch or from the random module of Python: a generator kept in the data set is copied to each worker in the same state, and before torch 1.9 that of NumPy, too. Runs need not be equal bit by bit.',
        '随机增强使用 torch 或 Python random 模块的生成器：保存在数据集中的生成器会以相同状态复制到每个进程，torch 1.9 之前 NumPy 的全局生成器也是如此。不要求与之前逐位一致。',
      ),
      isSeeded
        ? both(
            '`worker_init_fn` need not run again in each epoch: with `persistent_workers` its seeds are set once.',
            '`worker_init_fn` 无需每个 epoch 重新执行：设置 `persistent_workers` 后其随机种子只设置一次。',
          )
        : null,
      isForked
        ? both(
            'Workers are started by fork, the default on Linux up to Python 3.13: the dataset holds a `lambda`.',
            '进程以 fork 方式启动（Linux 上 Python 3.13 及更早版本的默认方式）：数据集含 `lambda`。',
          )
        : null,
      both(
        '`persistent_workers` and `prefetch_factor` need torch 1.7 or newer, wherever this file runs, and `num_workers` above 0.',
        '`persistent_workers` 与 `prefetch_factor` 要求该文件运行之处的 torch 均不低于 1.7，且 `num_workers` 大于 0。',
      ),
    ),
    references: [torchPage('data.html'), msprofAnalyzePage('msprof_analyze/advisor/rules/en/dataloader.yaml')],
    edits,
    locations: [
      ...placesOf(sites),
      ...(behind === null ? [] : placesToSet(behind)),
      ...(source === null || option === null ? [] : linesThatSet(source, option.names[0]!)),
    ],
  };
}

/** Keeps the card fed: loader workers, how many, and when more of them do not help. */
export default {
  id: 'dataloader-workers',
  title: TITLE,
  apis: [
    LOADER,
    `${LOADER}(num_workers)`,
    `${LOADER}(persistent_workers)`,
    `${LOADER}(prefetch_factor)`,
    `${LOADER}(collate_fn)`,
    'transformers.TrainingArguments(dataloader_num_workers)',
    'transformers.TrainingArguments(dataloader_persistent_workers)',
    'transformers.TrainingArguments(dataloader_prefetch_factor)',
  ],
  advise,
} satisfies Remedy;

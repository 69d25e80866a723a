import { quoteLiteral } from '../base/phrase.ts';
import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { Edit } from '../model/report.ts';
import { argumentOf } from '../source/calls.ts';
import { type CallSite, findCallSites } from '../source/find-in-tree.ts';
import { insertKeyword } from '../source/insert-keyword.ts';
import { isAside } from '../source/readable-paths.ts';
import { replaceLiteral } from '../source/replace-literal.ts';
import { type BufferHazard, bufferHazards } from './reading/buffer-hazards.ts';
import { frameworkOption, linesThatSet } from './reading/framework-options.ts';
import { bySupport, ofTraining, placesOf, provenFiles, toEdit } from './reading/places.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const DDP = 'torch.nn.parallel.DistributedDataParallel';

const TITLE = both('Pass `broadcast_buffers=False` to DDP', '给 DDP 传入 `broadcast_buffers=False`');

const WHAT = both(
  'DDP copies the buffers of rank 0 to all ranks before every forward. `broadcast_buffers=False` stops that.',
  'DDP 在每次前向之前把卡 0 的 buffer 广播到所有卡。`broadcast_buffers=False` 可关闭。',
);
const SAFE = both(
  'Constant buffers (masks, position tables) and SyncBatchNorm stay equal on their own.',
  '常量 buffer（掩码、位置表）与 SyncBatchNorm 本就保持一致。',
);
const BATCH_NORM = both(
  'BatchNorm does not read its running statistics in training, but those of ranks other than 0 drift.',
  'BatchNorm 训练时不读取滑动统计量，但卡 0 以外的统计量会逐渐不同。',
);
const FRAMEWORK = both(
  'No direct DDP call is in the source: pass the option where the framework wraps the model.',
  '源码中没有直接的 DDP 调用：在框架封装模型之处传入该选项。',
);
const TRAINER = both(
  'The Hugging Face Trainer wraps the model: set its `ddp_broadcast_buffers` to false.',
  'Hugging Face Trainer 负责封装模型：将其 `ddp_broadcast_buffers` 设为 false。',
);
const OPAQUE = both(
  'The call takes its options from elsewhere: change it where they are built.',
  '该调用的选项来自别处：在构造选项之处修改。',
);
const CHECK = both(
  'Check: the broadcasts are gone from the next profile and the loss curve is the same.',
  '验证：下一次 profile 中不再有这些广播，loss 曲线不变。',
);

const HAZARD: Readonly<Record<BufferHazard['kind'], L10n>> = {
  'updated-buffer': both('a buffer is updated', '有 buffer 被更新'),
  'state-like-name': both('a name speaks of state updated from data', '名称像是由数据更新的状态'),
  'spectral-norm': both('spectral norm', 'spectral norm'),
  observer: both('quantisation observers', '量化 observer'),
  'batch-norm-evaluation': both('BatchNorm with an evaluation that every rank may run', '含 BatchNorm，且各卡都可能执行评估'),
  'foreign-module': both('modules may come from a package that is not read here', '模块可能来自此处未读取的第三方包'),
  'unread-file': both('a file could not be read', '有文件未能读取'),
};

/** One line per kind of hazard, with the first place. */
function notOneClick(hazards: readonly BufferHazard[]): L10n | null {
  const kinds = [...new Set(hazards.map((hazard) => hazard.kind))].slice(0, 3);
  if (kinds.length === 0) return null;
  const firsts = kinds.map((kind) => ({ kind, first: hazards.find((hazard) => hazard.kind === kind)! }));
  const en = firsts.map(({ kind, first }) => `${HAZARD[kind].en} (${quoteLiteral(`${first.file}:${first.line}`)})`);
  const zh = firsts.map(({ kind, first }) => `${HAZARD[kind].zh}（${quoteLiteral(`${first.file}:${first.line}`)}）`);
  return both(`To look at first: ${en.join('; ')}.`, `需先确认：${zh.join('；')}。`);
}

/** `broadcast_buffers` is the fifth positional argument. */
function isSet({ call }: CallSite): boolean {
  return argumentOf(call, 'broadcast_buffers', 4) !== null;
}

function isOff({ call }: CallSite): boolean {
  return argumentOf(call, 'broadcast_buffers', 4)?.valueKind === 'false';
}

/**
 * A suggestion only when nothing is left to guess: one DDP call in the tree, certain by its import, with all its options in
 * sight and all its lines in the diff, and no sign in the tree that buffers must stay equal.
 */
function editFor(
  sites: readonly CallSite[],
  isTreeRead: boolean,
  hazards: readonly BufferHazard[],
  finding: Parameters<Remedy['advise']>[0],
  context: RemedyContext,
): Edit | null {
  const [site, ...others] = sites;
  if (site === undefined || others.length > 0) return null;
  const { module, call } = site;
  if (isSet(site)) {
    // Somebody wrote True on purpose: shown, never offered as one click.
    const { edit } = replaceLiteral(module, call, 'broadcast_buffers', 'True', 'False');
    return edit && toEdit(edit, 'comment-only');
  }
  const { edit } = insertKeyword(module, call, 'broadcast_buffers', 'False');
  if (edit === null) return null;
  const isSafe =
    call.name === DDP &&
    isTreeRead &&
    hazards.length === 0 &&
    finding.confidence !== 'low' &&
    !isAside(module.path) &&
    context.source!.inDiff(module.path, call.span.startLine, call.span.endLine);
  return toEdit(edit, isSafe ? 'suggestion' : 'comment-only');
}

const CODE = `model = DistributedDataParallel(
    model,
    device_ids=[local_rank],
    broadcast_buffers=False,
)`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice | null {
  const { params, source } = context;
  if (params.buffers === 0) return null;
  const found = source === null ? null : findCallSites(source, [DDP], provenFiles(finding));
  const sites = bySupport(found?.sites ?? [], finding);
  // Already done: the broadcasts of the profile are of another commit, or the user's own.
  if (sites.length > 0 && sites.every(isOff)) return null;
  const hazards = source === null || sites.length === 0 ? [] : bufferHazards(source);
  const edit = editFor(sites, found?.failures.length === 0, hazards, finding, context);
  const option = source === null || sites.length > 0 ? null : frameworkOption(source, 'broadcast-buffers');
  const isOpaque = sites.length === 1 && (sites[0]!.call.hasKeywordArgs || sites[0]!.call.hasStarArgs);
  return {
    title: TITLE,
    text: prose(
      WHAT,
      SAFE,
      BATCH_NORM,
      source === null || sites.length > 0 ? null : option === null ? FRAMEWORK : TRAINER,
      isOpaque ? OPAQUE : null,
      edit?.kind === 'suggestion' ? null : notOneClick(hazards),
      CHECK,
    ),
    code: edit === null && option === null ? CODE : null,
    preconditions: listed(
      both(
        'No buffer is updated from data and read in the training forward: codebooks, queues, moving averages, spectral norm, quantisation observers.',
        '没有由数据更新且训练前向会读取的 buffer：码本、队列、滑动平均、spectral norm、量化 observer。',
      ),
      both(
        'With BatchNorm, evaluation and checkpoints run on rank 0 only, or the running statistics are made equal before.',
        '使用 BatchNorm 时，评估和保存权重只在卡 0 上进行，或事先同步滑动统计量。',
      ),
    ),
    references: [torchPage('generated/torch.nn.parallel.DistributedDataParallel.html')],
    edits: edit === null ? [] : [edit],
    locations: [
      ...placesOf(
        ofTraining(
          sites.filter((site) => !isOff(site)),
          finding,
        ),
      ),
      ...(source === null || option === null ? [] : linesThatSet(source, option.names[0]!)),
    ],
  };
}

/** DDP's buffer broadcast off, with the exact conditions under which results stay the same. */
export default {
  id: 'broadcast-buffers-off',
  title: TITLE,
  apis: [
    DDP,
    `${DDP}(broadcast_buffers)`,
    `${DDP}(device_ids)`,
    'torch.nn.SyncBatchNorm',
    'transformers.TrainingArguments(ddp_broadcast_buffers)',
  ],
  advise,
} satisfies Remedy;

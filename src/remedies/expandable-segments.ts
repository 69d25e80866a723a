import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { settingsOf } from './reading/launch-settings.ts';
import { sinceNote } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { variablePage } from './wording/documents.ts';

const TITLE = both('Let the allocator grow its segments in place', '让分配器原地扩展内存段');

const CODE = `# launch script, before python starts
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True`;

const IS_ON = /(^|,)\s*expandable_segments\s*:\s*true\s*(,|$)/i;
/** Keys that exclude `expandable_segments`. */
const EXCLUDES = /(^|,)\s*(max_split_size_mb|garbage_collection_threshold)\s*:/;

function main(conf: string, since: L10n): L10n {
  if (IS_ON.test(conf)) {
    return both(
      '`expandable_segments` is on already: what is left comes from blocks of many sizes.',
      '`expandable_segments` 已开启：剩余碎片来自大小各异的块。',
    );
  }
  if (EXCLUDES.test(conf)) {
    return both(
      `Set \`PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\` in place of the split and collection limits: they exclude each other${since.en}.`,
      `用 \`PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\` 代替切分与回收阈值：两者互斥${since.zh}。`,
    );
  }
  return both(
    `Set \`PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\`: a segment then grows instead of leaving a hole${since.en}.`,
    `设置 \`PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\`：内存段可扩展，不再留下空洞${since.zh}。`,
  );
}

function advise(_: unknown, context: RemedyContext): Advice {
  const since = sinceNote(context.torchNpu, '5.0.0') ?? both('', '');
  const conf = typeof context.params.allocConf === 'string' ? context.params.allocConf : '';
  const isOn = IS_ON.test(conf);
  const places = context.source === null ? [] : settingsOf(context.source, 'PYTORCH_NPU_ALLOC_CONF');
  return {
    title: isOn ? both('Fewer block sizes, fewer pieces', '减少块的大小种类') : TITLE,
    text: prose(
      main(conf, since),
      both(
        'Take `torch.npu.empty_cache()` out of the loop: what it gives back is taken again at once.',
        '把 `torch.npu.empty_cache()` 移出循环：归还的显存会立刻被重新占用。',
      ),
      both('Pad or bucket sample lengths: fewer shapes leave fewer pieces.', '对样本长度做填充或分桶：shape 越少，碎片越少。'),
      both('Check: reserved less allocated shrinks in the next profile.', '验证：下一次 profile 中保留与分配之差缩小。'),
    ),
    code: isOn ? null : CODE,
    preconditions: listed(
      isOn ? null : both('The driver package (HDK) is 23.0.0 or newer.', '驱动包（HDK）为 23.0.0 及以上。'),
      both('No other engine of the process needs the memory between phases.', '进程内没有其他引擎在阶段之间需要这部分显存。'),
    ),
    references: [variablePage('memory_management/PYTORCH_NPU_ALLOC_CONF')],
    edits: [],
    locations: places.map(({ file, line }) => ({ file, line, symbol: null })),
  };
}

/** Against memory that lies unused in pieces. */
export default {
  id: 'expandable-segments',
  title: TITLE,
  apis: ['PYTORCH_NPU_ALLOC_CONF', 'PYTORCH_NPU_ALLOC_CONF(expandable_segments)', 'torch.npu.empty_cache'],
  advise,
} satisfies Remedy;

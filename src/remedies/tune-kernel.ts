import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { choice, count } from './reading/params.ts';
import { both, filled, prose } from './wording/bilingual.ts';
import { msprofAnalyzePage } from './wording/documents.ts';

const TITLE = both('Give the kernel work that fits the cores', '让 kernel 的工作量与核匹配');

const WAVES = both(
  'Blocks run in waves of {cores:int}: choose the split axis so that the last wave is full.',
  'Block 按每批 {cores:int} 个执行：选择切分轴的长度，使最后一批占满。',
);
const WAVES_ANY = both(
  'Blocks run in waves of as many as there are cores: choose the split axis so that the last wave is full.',
  'Block 按核数分批执行：选择切分轴的长度，使最后一批占满。',
);
const BATCH = both(
  'A batch or sequence count that is a multiple of the cores costs no more than one a little smaller.',
  'batch 或序列数取核数的整数倍，并不比略小的值更慢。',
);
const PIPES = both(
  'No unit of the core is near its limit here: tiling or data order inside the kernel holds it back.',
  '核内没有单元接近上限：受限于 kernel 内部的切分或数据顺序。',
);
const COMPARE = both(
  'Compare with the same operator at other sizes, and with a newer CANN release.',
  '与同一算子的其他尺寸、以及更新的 CANN 版本对比。',
);
const REPORT = both(
  'If it stays, report type, shapes, data types and these counters to the author of the kernel.',
  '若仍如此，把算子类型、shape、数据类型与这些计数反馈给 kernel 作者。',
);
const CACHE = both(
  'The kernel reads from memory what the cache no longer holds: use a tensor right after it is made.',
  '该 kernel 从内存读取缓存中已不存在的数据：张量生成后尽快使用。',
);
const SMALLER = both(
  'A smaller part of the batch at a time may fit in the cache; so does one fused operator instead of several.',
  '每次处理更小的 batch 部分可放入缓存；以一个融合算子代替多个也可以。',
);
const CHECK = both('Check: the kernel takes less time in the next profile.', '验证：下一次 profile 中该 kernel 耗时缩短。');

function advise(_finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const reason = choice(context.params, 'reason', ['cores', 'pipes', 'cache']) ?? 'pipes';
  const cores = count(context.params, 'cores');
  const steps: Readonly<Record<typeof reason, readonly L10n[]>> = {
    cores: [cores === null ? WAVES_ANY : filled(WAVES, { cores }), BATCH, REPORT],
    pipes: [PIPES, COMPARE, REPORT],
    cache: [CACHE, SMALLER],
  };
  return {
    title: TITLE,
    text: prose(...steps[reason], CHECK),
    code: null,
    preconditions: [],
    references: [msprofAnalyzePage('docs/zh/user_guide/advisor_instruct.md')],
    edits: [],
    locations: [],
  };
}

/** A long kernel that leaves cores, pipes or the cache unused. */
export default { id: 'tune-kernel', title: TITLE, apis: [], frameworks: ['PyTorch', 'MindSpore'], advise } satisfies Remedy;

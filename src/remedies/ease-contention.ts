import type { Advice, Remedy } from '../model/remedy.ts';
import { both, prose } from './wording/bilingual.ts';

const TITLE = both('Compare the step with and without overlap', '对比开启与关闭重叠的迭代耗时');

const TRADE = both(
  'Transfers and kernels share the memory of the card: overlap hides time and costs some. The total decides.',
  '通信与算子共享卡上显存带宽：重叠能掩盖耗时，也有代价，以总耗时为准。',
);
const HOW = both(
  'Capture one run with the overlap off and one with larger buckets, and compare the step times.',
  '分别采集关闭重叠和增大桶的运行，对比迭代耗时。',
);
const OTHERS = both(
  'Look for other traffic at that time, too: checkpoints, data loading over the same network, a second job.',
  '也查同一时刻的其他流量：保存权重、经同一网络读数据、其他作业。',
);

function advise(): Advice {
  return { title: TITLE, text: prose(TRADE, HOW, OTHERS), code: null, preconditions: [], references: [], edits: [], locations: [] };
}

/** Collectives slowed down beside computing: a trade to be measured, nothing to be switched off unseen. */
export default { id: 'ease-contention', title: TITLE, apis: [], advise } satisfies Remedy;

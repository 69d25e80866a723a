import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { flag } from './reading/params.ts';
import { both, filled, prose } from './wording/bilingual.ts';
import { msprofAnalyzePage } from './wording/documents.ts';

const TITLE = both('Find out why the AI cores clock down', '查明 AI Core 降频的原因');

const LOOK = both(
  'Look at the card of rank {rank:ranks} under load: temperature, power and its limit, alarms.',
  '在负载下查看卡 {rank:ranks} 对应的 NPU：温度、功率及其上限、告警。',
);
const LOOK_ANY = both(
  'Look at these cards under load: temperature, power and its limit, alarms.',
  '在负载下查看这些卡：温度、功率及其上限、告警。',
);
const ALL = both(
  'All cards are affected: compare the power setting and the cooling of the host with one that holds the frequency.',
  '所有卡都受影响：与能维持频率的主机对比功率设置与散热。',
);
const SWAP = both(
  'Run the process of that rank on another card: if the frequency stays low there, the load causes it; if not, the card does.',
  '把该进程换到另一张卡：若频率仍低则由负载引起，否则是该卡的问题。',
);
const NO_CODE = both('No change of code brings the clock back.', '修改代码无法恢复频率。');
const CHECK = both('Check: the frequency counter stays at its top value while kernels run.', '验证：kernel 运行期间频率计数保持在最高值。');

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const named = typeof context.params.rank === 'number' ? [context.params.rank] : finding.ranks;
  const isAll = flag(context.params, 'all') === true;
  return {
    title: TITLE,
    text: prose(isAll || named.length === 0 ? LOOK_ANY : filled(LOOK, { rank: [...named] }), isAll ? ALL : SWAP, NO_CODE, CHECK),
    code: null,
    preconditions: [],
    references: [msprofAnalyzePage('docs/zh/user_guide/advisor_instruct.md')],
    edits: [],
    locations: [],
  };
}

/** The clock of a card's AI cores is low while they work: what to look at. */
export default { id: 'check-frequency', title: TITLE, apis: [], frameworks: ['PyTorch', 'MindSpore'], advise } satisfies Remedy;

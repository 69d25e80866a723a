import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { choice } from './reading/params.ts';
import { both, prose } from './wording/bilingual.ts';
import { msprofAnalyzePage } from './wording/documents.ts';

const TITLE = both('Check the link between the cards', '检查卡间链路');

const NO_CODE = both('Nothing in the training code changes this.', '修改训练代码无法改变它。');
const PAIR = both(
  'Run a bandwidth test between the two cards and read the error counters of their ports.',
  '在这两张卡之间做带宽测试，并查看其端口的错误计数。',
);
const PAIR_SWAP = both(
  'If the test is slow too, check cable, port and switch; otherwise look for other jobs on the same link.',
  '若测试同样慢，检查线缆、端口和交换机；否则查同一链路上的其他作业。',
);
const CARD = both(
  'All links of one card are slow, so look at that card: its port, its error counters, other processes on it.',
  '同一张卡的所有链路都慢，因此先查该卡：端口、错误计数、卡上的其他进程。',
);
const CARD_SWAP = both(
  'Run the job without that card; if the others keep their speed, it is the card.',
  '去掉该卡再运行作业；若其余链路速度正常，则问题在该卡。',
);
const TYPE = both(
  'Cards joined by PCIe only reach each other through the host. Take cards that share the faster links, or a whole server.',
  '仅经 PCIe 互联的卡需经主机通信。选用共享更快链路的卡，或使用整台服务器。',
);
const TYPE_GROUPS = both(
  'With several process groups let the busiest one stay among cards that share those links.',
  '有多个通信域时，让通信最多的通信域位于共享这些链路的卡之间。',
);
const CHECK = both(
  'Check: the link moves as many bytes per second as its peers in the next profile.',
  '验证：下一次 profile 中该链路的带宽与同类链路一致。',
);

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const kind = choice(context.params, 'kind', ['pair', 'card', 'type']) ?? 'pair';
  const how = { pair: [PAIR, PAIR_SWAP], card: [CARD, CARD_SWAP], type: [TYPE, TYPE_GROUPS] }[kind];
  return {
    title:
      kind === 'card'
        ? both('Check the port of the card', '检查该卡的端口')
        : kind === 'type'
          ? both('Choose cards that share fast links', '选用共享快速链路的卡')
          : TITLE,
    text: prose(kind === 'type' ? null : NO_CODE, ...how, CHECK),
    code: null,
    preconditions: [],
    references: [msprofAnalyzePage('docs/zh/user_guide/cluster_analyse_instruct.md')],
    edits: [],
    locations: [],
  };
}

/** A link, or all links of a card, slower than the others: infrastructure, not code. */
export default { id: 'check-link', title: TITLE, apis: [], frameworks: ['PyTorch', 'MindSpore'], advise } satisfies Remedy;

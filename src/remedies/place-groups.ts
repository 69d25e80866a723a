import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { count } from './reading/params.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';

const TITLE = both('Keep the busiest group inside a server', '让通信最多的通信域位于一台服务器内');

const FITS = both(
  'A group of {size:int} fits into a server of {cards:int} cards.',
  '{size:int} 张卡的通信域放得进 {cards:int} 张卡的服务器。',
);
const ORDER = both(
  'Number the ranks so that those of one tensor-parallel group are neighbours: the innermost dimension of the parallel order.',
  '调整 rank 编号，使同一张量并行通信域的 rank 相邻，即并行维度的最内层。',
);
const LAUNCH = both(
  'Start the processes server by server, so that neighbours in number are neighbours on a server.',
  '按服务器依次启动进程，使编号相邻的 rank 位于同一台服务器。',
);
const CHECK = both(
  'Check: the tensor-parallel collectives use no RDMA in the next profile.',
  '验证：下一次 profile 中张量并行通信不再使用 RDMA。',
);

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const [size, cards] = [count(context.params, 'size'), count(context.params, 'cards')];
  return {
    title: TITLE,
    text: prose(size !== null && cards !== null ? filled(FITS, { size, cards }) : null, ORDER, LAUNCH, CHECK),
    code: null,
    preconditions: listed(both('Checkpoints that are sharded by rank are converted.', '按 rank 切分的权重文件需要转换。')),
    references: [],
    edits: [],
    locations: [],
  };
}

/** A group with much traffic spans servers although it would fit into one. */
export default { id: 'place-groups', title: TITLE, apis: [], frameworks: ['PyTorch', 'MindSpore'], advise } satisfies Remedy;

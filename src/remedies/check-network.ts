import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { flag } from './reading/params.ts';
import { both, prose } from './wording/bilingual.ts';

const TITLE = both('Check the network between the servers', '检查服务器之间的网络');

const COUNTERS = both(
  'Read the counters of network cards and switch ports during a run: retransmissions, pause frames, dropped packets.',
  '运行期间查看网卡与交换机端口计数：重传、PFC 暂停帧、丢包。',
);
const CLASS = both(
  'Traffic class and service level (`HCCL_RDMA_TC`, `HCCL_RDMA_SL`) have to be those the switch is set up for.',
  '流量类别与服务等级（`HCCL_RDMA_TC`、`HCCL_RDMA_SL`）要与交换机配置一致。',
);
const LOSS = both(
  'A transfer of four seconds is a timer that ran out: look for a lossy port or cable first.',
  '持续四秒说明重传定时器超时：先查丢包的端口或线缆。',
);
const NO_TIMEOUT = both('Longer timeouts hide the fault and save nothing.', '调大超时只会掩盖故障，不会减少耗时。');
const CHECK = both('Check: no transfer stands out by ten times in the next profile.', '验证：下一次 profile 中没有慢十倍的传输。');

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  return {
    title: TITLE,
    text: prose(flag(context.params, 'certain') === true ? LOSS : null, COUNTERS, CLASS, NO_TIMEOUT, CHECK),
    code: null,
    preconditions: [],
    references: ['https://github.com/hicann/hccl/tree/master/docs/zh/user_guide/hccl_env'],
    edits: [],
    locations: [],
  };
}

/** Transfers between servers that look repeated: counters and traffic classes, never timeouts. */
export default {
  id: 'check-network',
  title: TITLE,
  apis: ['HCCL_RDMA_TC', 'HCCL_RDMA_SL'],
  frameworks: ['PyTorch', 'MindSpore'],
  advise,
} satisfies Remedy;

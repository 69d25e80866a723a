import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { type Framework, frameworksOf } from './reading/frameworks.ts';
import { flag } from './reading/params.ts';
import { both, listed, prose } from './wording/bilingual.ts';

const TITLE = both('Even out the load of the experts', '均衡专家负载');

const ROUTER = both(
  'Strengthen what keeps the router even: the weight of its load-balancing loss, or a bias per expert that follows the load.',
  '加强路由均衡手段：增大负载均衡损失的权重，或使用随负载更新的专家偏置。',
);
const MEGATRON = both(
  'In Megatron and MindSpeed: `--moe-router-load-balancing-type` and `--moe-aux-loss-coeff`; `--moe-expert-capacity-factor` bounds the peak.',
  '在 Megatron 与 MindSpeed 中：`--moe-router-load-balancing-type`、`--moe-aux-loss-coeff`；`--moe-expert-capacity-factor` 限制峰值。',
);
const CAPACITY = both(
  'A capacity factor bounds the peak; tokens beyond it are dropped, so it changes training.',
  '容量因子可限制峰值；超出的 token 会被丢弃，因而影响训练。',
);
const PLACEMENT = both(
  'The same cards are busy throughout: spread their experts over other cards, or keep copies of the busiest ones.',
  '忙的始终是同几张卡：把其专家分散到其他卡，或为最忙的专家保留副本。',
);
const ASYNC = both(
  'Moving experts while training costs time of its own: do it beside the step, never inside it.',
  '训练中迁移专家本身有耗时：应与迭代并行进行，不要插在迭代中。',
);
const CHECK = both(
  'Check: the busiest rank comes closer to the mean in the next profile, and the loss curve stays.',
  '验证：下一次 profile 中最忙的卡更接近平均值，且 loss 曲线不变。',
);

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const frameworks: ReadonlySet<Framework> = context.source === null ? new Set() : frameworksOf(context.source);
  const persistent = flag(context.params, 'persistent') === true;
  return {
    title: TITLE,
    text: prose(ROUTER, frameworks.has('megatron') ? MEGATRON : CAPACITY, persistent ? PLACEMENT : null, persistent ? ASYNC : null, CHECK),
    code: null,
    preconditions: listed(both('The change is evaluated on model quality, not on speed alone.', '需评估对模型效果的影响，而不仅是速度。')),
    references: [],
    edits: [],
    locations: [],
  };
}

/** Experts with unequal load: router first, placement when the same cards stay busy, never inline rebalancing. */
export default { id: 'expert-balance', title: TITLE, apis: [], advise } satisfies Remedy;

import { COMMUNICATION, COPY, type RankFacts } from '../../model/facts.ts';

/** CANN calls that send a kernel to the card, as the API totals name them. */
const LAUNCH = /^(launch|aclnn|aclopExecute|aclrtLaunch|rtKernelLaunch)/i;

/** True when something of the rank shows that work was sent to the card, whether or not kernels were recorded. */
export function sentToCard(rank: RankFacts): boolean {
  return (
    rank.capabilities.has('cann-calls') ||
    rank.apis.some((api) => api.count > 0 && LAUNCH.test(api.name)) ||
    (rank.tape?.kind.some((kind) => kind === COPY || kind === COMMUNICATION) ?? false)
  );
}

import type { Message } from '../../model/lang.ts';
import type { JobFacts } from './index.ts';

/** What to add to a finding whose ranks may not be all there are; null when they are. */
export function missingRanksCaveat(job: JobFacts): Message | null {
  if (job.world.complete !== false && job.noReplay !== 'ranks-missing') return null;
  return job.world.size === null
    ? {
        text: {
          en: '{n:int} ranks are here; how many the job has is not recorded',
          zh: '有 {n:int} 张卡的数据，总卡数没有记录',
        },
        params: { n: job.ranks.length },
      }
    : {
        text: { en: '{n:int} of {size:int} ranks are here', zh: '只有 {n:int}/{size:int} 张卡的数据' },
        params: { n: job.ranks.length, size: job.world.size },
      };
}

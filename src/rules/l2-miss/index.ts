import { sharers } from '../../facts/job/culprits.ts';
import { msByRank, type RankGroup, rankGroups, spokesman } from '../../facts/job/kernels.ts';
import { LONG_KERNEL } from '../../facts/job/pipes.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

/** Memory pipes busier than this make a kernel wait for memory. */
const MEMORY_BOUND = 0.8;

export default defineRule({
  id: 'l2-miss',
  title: { en: 'Long kernels miss the L2 cache', zh: '长 kernel 的 L2 缓存命中率低' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types', 'l2-hits'],
  options: {
    minShare: {
      default: 0.05,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest time of such kernels reported, as a share of the step', zh: '可报告的最小耗时，占迭代耗时的比例' },
      why: {
        en: 'only a part of it can be gained by another order of the work: less is not worth a line',
        zh: '调整计算顺序只能省下其中一部分：更少则不值得列出',
      },
    },
    ofUsual: {
      default: 0.5,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'hit rate, as a share of what kernels of this run usually reach, below which one is mentioned',
        zh: '命中率低于本次运行通常水平的该比例时给出提示',
      },
      why: {
        en: 'no documented rate is good or bad by itself; half of what the same run reaches elsewhere stands out',
        zh: '没有文档规定命中率多少为好；不到本次运行通常水平的一半已属突出',
      },
    },
  },
  remedies: ['tune-kernel'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const known = rankGroups(job, (g) => !Number.isNaN(g.l2Hit));
    const total = known.reduce((sum, g) => sum + g.group.ns, 0);
    const usual = known.reduce((sum, g) => sum + g.group.l2Hit * g.group.ns, 0) / total;
    const low = known.filter(
      (of: RankGroup) =>
        of.meanNs >= LONG_KERNEL &&
        of.group.l2Hit < options.ofUsual * usual &&
        Math.max(of.group.pipes.mte2 || 0, of.group.pipes.mte3 || 0) >= MEMORY_BOUND,
    );
    const ms = msByRank(job, low);
    const ranks = sharers(ms, options.minShare * step);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'the L2 cache answers {usual:pct} of the reads; long kernels that wait for memory at less than half of that take {ms:ms} per step',
            zh: 'L2 缓存命中率为 {usual:pct}；命中率不到其一半且受限于访存的长 kernel 每迭代 {ms:ms}',
          },
          params: { usual, ms: Math.max(0, ...ms) },
        },
      };
    }
    const top = spokesman(job, ms, ranks);
    const own = low.filter((g) => g.rank === top);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: '{type:code} waits for memory with an L2 hit rate of {hit:pct}',
              zh: '{type:code} 受限于访存，L2 命中率 {hit:pct}',
            },
            params: { type: own[0]!.group.type, hit: own[0]!.group.l2Hit },
          },
          ranks: [],
          steps: job.steps.used,
          groups: [],
          confidence: 'medium',
          evidence: own.slice(0, 3).map(
            ({ group, ms: each }): RawEvidence => ({
              message: {
                text: {
                  en: 'rank {rank:text}: {type:code} {shapes:code}: {ms:ms} per step, {bytes:bytes} per kernel, hit rate {hit:pct}; kernels of this run usually reach {usual:pct}',
                  zh: '卡 {rank:text}：{type:code} {shapes:code}：每迭代 {ms:ms}，每个 kernel {bytes:bytes}，命中率 {hit:pct}；本次运行通常为 {usual:pct}',
                },
                params: {
                  rank: job.ranks[top]!.rank ?? '?',
                  type: group.type,
                  shapes: group.inputShapes || '?',
                  ms: each,
                  bytes: group.bytesIn + group.bytesOut,
                  hit: group.l2Hit,
                  usual,
                },
              },
              file: 'l2_cache.csv',
              rank: top,
            }),
          ),
          caveats: [],
          removal: null,
          boundMs: 0,
          boundMethod: { text: { en: 'what a better hit rate would gain is not known', zh: '提高命中率能节省多少未知' } },
          information: true,
          symptomOf: null,
          frames: own.flatMap((g) => (g.group.frame === null ? [] : [g.group.frame])).slice(0, 1),
          remedies: [
            {
              id: 'tune-kernel',
              params: {
                reason: 'cache',
                types: own
                  .slice(0, 4)
                  .map((g) => g.group.type)
                  .join(', '),
              },
            },
          ],
          hotspot: `l2:${own[0]!.group.type}`,
        },
      ],
    };
  },
});

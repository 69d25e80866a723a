import { atFullClock, MIN_DROP, slowClocks } from '../../facts/job/frequency.ts';
import { dataConfidence, medianOfUsed } from '../../facts/job/per-step.ts';
import type { L10n } from '../../model/lang.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

const BASIS: Readonly<Record<'rated' | 'other-ranks' | 'own', L10n>> = {
  rated: { en: 'the rated frequency', zh: '额定频率' },
  'other-ranks': { en: 'what other ranks hold', zh: '其余卡维持的频率' },
  own: { en: 'what this rank holds at other times', zh: '该卡其他时间维持的频率' },
};

export default defineRule({
  id: 'frequency-drop',
  title: { en: 'AI cores run below their frequency', zh: 'AI Core 降频' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'frequency'],
  options: {
    minDrop: {
      default: MIN_DROP,
      unit: 'share',
      min: 0.01,
      max: 1,
      description: { en: 'smallest drop of the busy frequency reported', zh: '可报告的最小降频幅度（AI Core 忙时）' },
      why: {
        en: 'one or two steps of the clock; a smaller drop moves no step by more than its noise',
        zh: '相当于频率的一两个步进；更小的降幅对迭代的影响不超过噪声',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest extra kernel time reported, as a share of the step', zh: '可报告的最小额外耗时，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['check-frequency'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const recorded = job.ranks.filter((r) => r.frequency !== null);
    if (step === null || recorded.length === 0)
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'no frequency was recorded while the AI cores were busy', zh: '没有 AI Core 忙时的频率记录' } },
      };
    const slow = slowClocks(job, options.minDrop);
    const computing = (rank: number): number => {
      const facts = job.ranks[rank]!;
      return (
        medianOfUsed(
          job,
          facts.steps.map((s) => s.breakdown.computingMs),
        ) || 0
      );
    };
    const judged = slow.map((clock) => {
      const full = atFullClock(job, clock);
      // Only what waits for the clock gets faster with it: all kernels at most.
      return { clock, full, boundMs: computing(clock.rank) * clock.drop };
    });
    const loud = judged.filter((j) => j.boundMs >= options.minShare * step);
    if (loud.length === 0) {
      const lowest = Math.min(...recorded.map((r) => r.frequency!.meanMhz));
      const highest = Math.max(...recorded.map((r) => r.frequency!.sustainedMhz));
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'while busy, the AI cores ran at {low:int} MHz on average on the slowest rank, {high:int} MHz at best',
            zh: 'AI Core 忙时，最慢的卡平均 {low:int} MHz，最高 {high:int} MHz',
          },
          params: { low: lowest, high: highest },
        },
      };
    }
    const { clock, full } = loud[0]!;
    const facts = job.ranks[clock.rank]!;
    const known = loud.filter((j) => j.full !== null);
    // A rank whose kernels have no twin at full clock has no defended figure.
    const isDefended = known.length === loud.length && known.every((j) => j.full!.known >= 0.5);
    const removal = new Map<number, Removal>(known.map((j) => [j.clock.rank, j.full!.removal] as const));
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: `rank {rank:text}: {mhz:int} MHz on average while its AI cores were busy, against {reference:int} MHz, ${BASIS[clock.basis].en}; at {low:int} MHz for the longest stretch`,
            zh: `卡 {rank:text}：AI Core 忙时平均 {mhz:int} MHz，参考为 {reference:int} MHz（${BASIS[clock.basis].zh}）；最低持续在 {low:int} MHz`,
          },
          params: {
            rank: facts.rank ?? '?',
            mhz: clock.meanMhz,
            reference: clock.referenceMhz,
            low: facts.frequency!.lowest.mhz,
          },
        },
        file: 'trace_view.json',
        rank: clock.rank,
        start: facts.frequency!.lowest.start,
        duration: facts.frequency!.lowest.duration,
      },
    ];
    if (full !== null)
      evidence.push({
        message: {
          text: {
            en: 'kernels of the same type and shapes take {slower:pct} longer here than at full clock ({known:pct} of its kernel time has such a twin)',
            zh: '同类型、同 shape 的 kernel 在此比满频时慢 {slower:pct}（其 kernel 耗时的 {known:pct} 有可比对象）',
          },
          params: { slower: full.ownMs / full.referenceMs - 1, known: full.known },
        },
        file: 'kernel_details.csv',
        rank: clock.rank,
      });
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'AI cores of rank {ranks:ranks} run at {mhz:int} MHz instead of {reference:int}',
              zh: '卡 {ranks:ranks} 的 AI Core 以 {mhz:int} MHz 运行，而不是 {reference:int}',
            },
            params: { ranks: loud.map((j) => job.ranks[j.clock.rank]!.rank ?? -1), mhz: clock.meanMhz, reference: clock.referenceMhz },
          },
          ranks: loud.map((j) => j.clock.rank),
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, false),
          evidence,
          caveats: isDefended
            ? []
            : [
                {
                  text: {
                    en: 'no kernel of the same shape ran at full clock: the saving is an upper bound, as if all kernels waited for the clock',
                    zh: '没有同 shape 的 kernel 在满频下运行：收益为上限，假设所有 kernel 都受频率限制',
                  },
                },
              ],
          removal: removal.size > 0 && isDefended ? { likely: removal } : null,
          boundMs: Math.max(...loud.map((j) => j.boundMs)),
          boundMethod: {
            text: { en: 'computing time in proportion to the missing frequency', zh: '计算耗时按缺少的频率折算' },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [
            { id: 'check-frequency', params: { rank: loud.length === 1 ? facts.rank : null, all: loud.length === job.ranks.length } },
          ],
          hotspot: loud.length === job.ranks.length ? 'all' : `rank${loud.map((j) => job.ranks[j.clock.rank]!.rank ?? '?').join('+')}`,
        },
      ],
    };
  },
});

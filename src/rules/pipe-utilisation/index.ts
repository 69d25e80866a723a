import { misaligned } from '../../facts/job/alignment.ts';
import { sharers } from '../../facts/job/culprits.ts';
import { msByRank, rankGroups, spokesman } from '../../facts/job/kernels.ts';
import { boundness, isMeasured, LONG_KERNEL } from '../../facts/job/pipes.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

export default defineRule({
  id: 'pipe-utilisation',
  title: { en: 'Long kernels with no busy pipe', zh: '各流水都不饱和的长 kernel' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types', 'pipes'],
  options: {
    minShare: {
      default: 0.05,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest time of such kernels reported, as a share of the step', zh: '可报告的最小耗时，占迭代耗时的比例' },
      why: {
        en: 'only a part of it can be gained, and only by the author of the kernel: less is not worth a line',
        zh: '只能省下其中一部分，且只有算子开发者能做到：更少则不值得列出',
      },
    },
    maxBound: {
      default: 0.65,
      unit: 'share',
      min: 0.1,
      max: 1,
      description: { en: 'a kernel whose busiest pipe is nearer its limit is fine', zh: '最忙的流水达到其上限的该比例时视为正常' },
      why: {
        en: 'fused attention of real captures reaches 0.89 of a limit, convolutions 0.68; below 0.65 every unit waits a third of the time and more',
        zh: '实际采集中，融合 attention 达到上限的 0.89，卷积达到 0.68；低于 0.65 时，各单元有三分之一以上的时间在等待',
      },
    },
  },
  remedies: ['tune-kernel'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const measured = rankGroups(job, (g) => isMeasured(g) && !/CPU|DSA/i.test(g.core));
    if (measured.length === 0)
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'the memory pipes were not measured: capture with `aic_metrics=PipeUtilization`',
            zh: '没有访存流水的计数：以 `aic_metrics=PipeUtilization` 采集',
          },
        },
      };
    const idle = measured.filter(
      (g) => g.meanNs >= LONG_KERNEL && boundness(g.group).of < options.maxBound && misaligned(g.group) === null,
    );
    const ms = msByRank(job, idle);
    const ranks = sharers(ms, options.minShare * step);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'long kernels without a busy pipe take {ms:ms} per step',
            zh: '各流水都不饱和的长 kernel 每迭代 {ms:ms}',
          },
          params: { ms: Math.max(0, ...ms) },
        },
      };
    }
    const top = spokesman(job, ms, ranks);
    const own = idle.filter((g) => g.rank === top);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: '{type:code} takes {share:pct} of the step with no pipe near its limit',
              zh: '{type:code} 占迭代 {share:pct}，但没有流水接近上限',
            },
            params: { type: own[0]!.group.type, share: ms[top]! / step },
          },
          ranks: [],
          steps: job.steps.used,
          groups: [],
          confidence: 'medium',
          evidence: own.slice(0, 3).map(({ group, ms: each }): RawEvidence => {
            const bound = boundness(group);
            return {
              message: {
                text: {
                  en: 'rank {rank:text}: {type:code} {shapes:code}: {n:int} kernels, {ms:ms} per step; the busiest pipe, {pipe:code}, works {pipeShare:pct} of it (row {line:int})',
                  zh: '卡 {rank:text}：{type:code} {shapes:code}：{n:int} 个 kernel，每迭代 {ms:ms}；最忙的流水 {pipe:code} 占其中 {pipeShare:pct}（第 {line:int} 行）',
                },
                params: {
                  rank: job.ranks[top]!.rank ?? '?',
                  type: group.type,
                  shapes: group.inputShapes || '?',
                  n: group.count,
                  ms: each,
                  pipe: bound.pipe,
                  pipeShare: bound.share,
                  line: group.line,
                },
              },
              file: 'kernel_details.csv',
              rank: top,
              step: job.ranks[top]!.steps[group.longest.step]?.id ?? null,
              start: group.longest.start,
              duration: group.longest.duration,
            };
          }),
          caveats: [],
          removal: null,
          boundMs: 0,
          boundMethod: { text: { en: 'what a better kernel would gain is not known', zh: '更好的 kernel 能节省多少未知' } },
          information: true,
          symptomOf: null,
          frames: own.flatMap((g) => (g.group.frame === null ? [] : [g.group.frame])).slice(0, 1),
          remedies: [
            {
              id: 'tune-kernel',
              params: {
                reason: 'pipes',
                types: own
                  .slice(0, 4)
                  .map((g) => g.group.type)
                  .join(', '),
              },
            },
          ],
          hotspot: `pipes:${own[0]!.group.type}`,
        },
      ],
    };
  },
});

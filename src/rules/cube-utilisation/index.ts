import { isMatmul, misaligned } from '../../facts/job/alignment.ts';
import { sharers } from '../../facts/job/culprits.ts';
import { changedDurations, msByRank, type RankGroup, rankGroups, spokesman } from '../../facts/job/kernels.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { boundness, isMeasured, LONG_KERNEL } from '../../facts/job/pipes.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

export default defineRule({
  id: 'cube-utilisation',
  title: { en: 'Matrix products with shapes that do not fit', zh: 'shape 不合适的矩阵乘' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types', 'pipes', 'formats'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest possible gain reported, as a share of the step', zh: '可报告的最小收益上限，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    maxBound: {
      default: 0.9,
      unit: 'share',
      min: 0.1,
      max: 1,
      description: {
        en: 'a product whose busiest pipe is at least this near its limit is fine',
        zh: '最忙的流水达到其上限的该比例时视为正常',
      },
      why: {
        en: 'the rest is start and end of the kernel, which no shape removes',
        zh: '其余部分是 kernel 的启动与收尾，任何 shape 都无法消除',
      },
    },
  },
  remedies: ['align-shapes'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const products = rankGroups(job, (g) => isMatmul(g) && isMeasured(g));
    if (products.length === 0)
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'no matrix product with pipe counters was recorded', zh: '没有带流水（pipe）计数的矩阵乘' } },
      };
    const loose = products.filter(
      (p) => p.meanNs >= LONG_KERNEL && boundness(p.group).of < options.maxBound && misaligned(p.group) !== null,
    );
    /** At its limit the busiest pipe would need this part of the time; all other time is waiting. */
    const gain = (p: RankGroup): number => p.ms * (1 - boundness(p.group).of);
    const ms = msByRank(job, loose, gain);
    const ranks = sharers(ms, options.minShare * step);
    if (ranks.length === 0) {
      const top = spokesman(
        job,
        msByRank(job, products),
        job.ranks.flatMap((_, r) => (products.some((p) => p.rank === r) ? [r] : [])),
      );
      const own = products.filter((p) => p.rank === top);
      const total = own.reduce((sum, p) => sum + p.ms, 0);
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'matrix products take {ms:ms} per step with the cube busy {mac:pct} of it; shapes that do not fill lines of 512 bytes cost at most {loose:ms}',
            zh: '矩阵乘每迭代 {ms:ms}，其中 Cube 忙 {mac:pct}；未按 512 字节对齐的 shape 最多影响 {loose:ms}',
          },
          params: {
            ms: total,
            mac: total > 0 ? own.reduce((sum, p) => sum + p.ms * (p.group.pipes.mac || 0), 0) / total : 0,
            loose: Math.max(0, ...ms),
          },
        },
      };
    }
    const top = spokesman(job, ms, ranks);
    const own = loose.filter((p) => p.rank === top).sort((a, b) => gain(b) - gain(a));
    const worst = misaligned(own[0]!.group)!;
    const removal = new Map<number, Removal>(
      ranks.map((rank) => [
        rank,
        {
          durations: changedDurations(
            job,
            rank,
            new Map(loose.filter((p) => p.rank === rank).map((p) => [p.index, (ns: number) => ns * boundness(p.group).of] as const)),
          ),
        },
      ]),
    );
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'Products with a last axis of {tail:int} leave cube and memory waiting',
              zh: '尾轴为 {tail:int} 的矩阵乘让 Cube 与访存都在等待',
            },
            params: { tail: worst.tail },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, false),
          evidence: own.slice(0, 3).map(({ group, ms: each }): RawEvidence => {
            const found = misaligned(group)!;
            const bound = boundness(group);
            return {
              message: {
                text: {
                  en: 'rank {rank:text}: {type:code} {shapes:code} takes {ms:ms} per step; cube busy {mac:pct}, the busiest pipe ({pipe:code}) {share:pct}; the last axis of {shape:code} is {bytes:int} bytes, not a multiple of 512 (row {line:int})',
                  zh: '卡 {rank:text}：{type:code} {shapes:code} 每迭代 {ms:ms}；Cube 忙 {mac:pct}，最忙的流水（{pipe:code}）{share:pct}；{shape:code} 的尾轴为 {bytes:int} 字节，不是 512 的倍数（第 {line:int} 行）',
                },
                params: {
                  rank: job.ranks[top]!.rank ?? '?',
                  type: group.type,
                  shapes: group.inputShapes,
                  ms: each,
                  mac: group.pipes.mac,
                  pipe: bound.pipe,
                  share: bound.share,
                  shape: found.shape,
                  bytes: found.bytes,
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
          caveats: [
            {
              text: {
                en: 'how much of the waiting comes from the alignment is not in this profile: the saving is an upper bound',
                zh: 'profile 无法说明等待中有多少来自对齐：收益为上限',
              },
            },
          ],
          removal: { likely: removal },
          ceilingOnly: true,
          boundMs: ms[top]!,
          boundMethod: {
            text: {
              en: 'time in which no pipe of these kernels was at its limit',
              zh: '这些 kernel 中没有流水达到上限的时间',
            },
          },
          information: false,
          symptomOf: null,
          frames: own.flatMap((p) => (p.group.frame === null ? [] : [p.group.frame])).slice(0, 1),
          remedies: [
            {
              id: 'align-shapes',
              params: {
                tail: worst.tail,
                padded: worst.padded,
                bytes: worst.bytes,
                fp32: /^(FLOAT|DT_FLOAT)(;|$)/.test(own[0]!.group.inputTypes),
              },
            },
          ],
          hotspot: `tail:${worst.shape}`,
        },
      ],
    };
  },
});

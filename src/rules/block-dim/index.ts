import { coresOf } from '../../facts/job/cores.ts';
import { sharers } from '../../facts/job/culprits.ts';
import { changedDurations, msByRank, type RankGroup, rankGroups, spokesman } from '../../facts/job/kernels.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { LONG_KERNEL } from '../../facts/job/pipes.ts';
import type { L10n } from '../../model/lang.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

const CUBE = /^(AI_CORE|MIX_AIC)$/;
const CORE = /^(AI_CORE|MIX_AIC|AI_VECTOR_CORE|MIX_AIV)$/;
/** What a core's own buffer takes at once, bytes: a tensor with less of it per core cannot be spread further. */
const TILE = 32_768;
/** Memory pipes busier than this are the limit; more cores share the same memory. */
const MEMORY_LIMIT = 0.8;

const BASIS: Readonly<Record<'recorded' | 'device' | 'kernels', L10n>> = {
  recorded: { en: 'recorded by the capture', zh: '采集数据中记录' },
  device: { en: 'by the name of the device', zh: '由设备名称得出' },
  kernels: { en: 'most kernel time uses so many, none more', zh: '多数 kernel 时间使用该数量，没有更多' },
};

export default defineRule({
  id: 'block-dim',
  title: { en: 'Kernels that leave cores idle', zh: '未用满 AI Core 的 kernel' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types', 'pipes'],
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
    maxFill: {
      default: 0.8,
      unit: 'share',
      min: 0.05,
      max: 1,
      description: { en: 'a kernel that uses a larger part of the cores is fine', zh: '使用核数超过该比例时视为正常' },
      why: {
        en: '43 of 48 and 16 of 20 blocks are usual in healthy captures; the last block is never full anyway',
        zh: '健康的采集中常见 48 核用 43、20 核用 16；最后一个 Block 本来就不满',
      },
    },
  },
  remedies: ['tune-kernel'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const cores = coresOf(job);
    if (cores === null) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'the number of cores is not known: neither the device is named nor do most kernels use the same number of blocks',
            zh: '核数未知：没有记录设备名称，多数 kernel 的 Block 数也不一致',
          },
        },
      };
    }
    const all = rankGroups(job, (g) => CORE.test(g.core) && !Number.isNaN(g.blocks));
    /** Blocks run in waves of as many as there are cores; the last wave may be nearly empty. */
    const fill = ({ group }: RankGroup): number => {
      const own = CUBE.test(group.core) ? cores.cube : cores.vector;
      return group.blocks / (Math.ceil(Math.round(group.blocks) / own) * own);
    };
    const sparse = all.filter((of) => {
      const { group } = of;
      const own = CUBE.test(group.core) ? cores.cube : cores.vector;
      const bytes = group.bytesIn + group.bytesOut;
      const memory = Math.max(group.pipes.mte2, group.pipes.mte3 || 0);
      return of.meanNs >= LONG_KERNEL && fill(of) < options.maxFill && bytes >= own * TILE && memory < MEMORY_LIMIT;
    });
    const gain = (of: RankGroup): number => of.ms * (1 - fill(of));
    const ms = msByRank(job, sparse, gain);
    const ranks = sharers(ms, options.minShare * step);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'of {cube:int} cube and {vector:int} vector cores, unused ones cost long kernels at most {ms:ms} per step',
            zh: '共 {cube:int} 个 Cube 核与 {vector:int} 个 Vector 核，未用满的核每迭代最多影响 {ms:ms}',
          },
          params: { cube: cores.cube, vector: cores.vector, ms: Math.max(0, ...ms) },
        },
      };
    }
    const top = spokesman(job, ms, ranks);
    const own = sparse.filter((g) => g.rank === top).sort((a, b) => gain(b) - gain(a));
    const worst = own[0]!.group;
    const total = CUBE.test(worst.core) ? cores.cube : cores.vector;
    const removal = new Map<number, Removal>(
      ranks.map((rank) => [
        rank,
        {
          durations: changedDurations(
            job,
            rank,
            new Map(sparse.filter((g) => g.rank === rank).map((g) => [g.index, (ns: number) => ns * fill(g)] as const)),
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
              en: '{type:code} runs {blocks:int} blocks on {cores:int} cores',
              zh: '{type:code} 以 {blocks:int} 个 Block 运行在 {cores:int} 个核上',
            },
            params: { type: worst.type, blocks: worst.blocks, cores: total },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: cores.basis === 'kernels' ? 'low' : dataConfidence(job, false),
          evidence: own.slice(0, 3).map(
            ({ group, ms: each }): RawEvidence => ({
              message: {
                text: {
                  en: `rank {rank:text}: {type:code} {shapes:code}: {n:int} kernels of {blocks:int} blocks, {ms:ms} per step (row {line:int}); {cores:int} such cores (${BASIS[cores.basis].en})`,
                  zh: `卡 {rank:text}：{type:code} {shapes:code}：{n:int} 个 kernel，{blocks:int} 个 Block，每迭代 {ms:ms}（第 {line:int} 行）；此类核共 {cores:int} 个（${BASIS[cores.basis].zh}）`,
                },
                params: {
                  rank: job.ranks[top]!.rank ?? '?',
                  type: group.type,
                  shapes: group.inputShapes || '?',
                  n: group.count,
                  blocks: group.blocks,
                  ms: each,
                  line: group.line,
                  cores: CUBE.test(group.core) ? cores.cube : cores.vector,
                },
              },
              file: 'kernel_details.csv',
              rank: top,
              step: job.ranks[top]!.steps[group.longest.step]?.id ?? null,
              start: group.longest.start,
              duration: group.longest.duration,
            }),
          ),
          caveats: [
            {
              text: {
                en: 'whether this work can be split further is not in this profile: the saving is an upper bound',
                zh: 'profile 无法说明该计算能否继续切分：收益为上限',
              },
            },
          ],
          removal: { likely: removal },
          ceilingOnly: true,
          boundMs: ms[top]!,
          boundMethod: { text: { en: 'kernel time spread over all cores', zh: 'kernel 耗时分摊到全部核' } },
          information: false,
          symptomOf: null,
          frames: own.flatMap((g) => (g.group.frame === null ? [] : [g.group.frame])).slice(0, 1),
          remedies: [{ id: 'tune-kernel', params: { reason: 'cores', types: worst.type, cores: total } }],
          hotspot: `blocks:${worst.type}:${worst.inputShapes.slice(0, 80)}`,
        },
      ],
    };
  },
});

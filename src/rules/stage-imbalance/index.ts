import { dataConfidence } from '../../facts/job/per-step.ts';
import { stages } from '../../facts/job/stages.ts';
import { COMPUTE } from '../../model/facts.ts';
import { defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

export default defineRule({
  id: 'stage-imbalance',
  title: { en: 'Pipeline stages are unequal', zh: '流水线 Stage 不均衡' },
  category: 'communication',
  maturity: 'stable',
  needs: ['step-times'],
  options: {
    minRatio: {
      default: 0.1,
      unit: 'share',
      min: 0,
      max: 10,
      description: { en: 'how much longer than the mean the longest stage must compute', zh: '最长 Stage 的计算耗时高于平均值的比例' },
      why: {
        en: 'embedding and loss always make the first and last stage a little longer',
        zh: 'embedding 与 loss 总会使首尾 Stage 略长',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest excess reported, as a share of the step', zh: '可报告的最小差值，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['rebalance-stages'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const split = stages(job);
    if (step === null || split === null || split.stages.length < 2) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'no pipeline groups in the metadata, or a stage has no rank here',
            zh: '元数据中没有流水线通信域，或某个 Stage 没有上传的卡',
          },
        },
      };
    }
    const times = split.stages.map((s) => s.workMs);
    const mean = times.reduce((a, b) => a + b, 0) / times.length;
    const longest = split.stages[split.longest]!;
    if (split.excessMs < options.minRatio * mean || split.excessMs < options.minShare * step) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'the longest stage computes {excess:ms} more than the mean of {n:int} stages',
            zh: '最长 Stage 的计算比 {n:int} 个 Stage 的平均值多 {excess:ms}',
          },
          params: { excess: split.excessMs, n: times.length },
        },
      };
    }
    const removal = new Map<number, Removal>();
    for (const stage of split.stages) {
      const factor = mean / stage.workMs;
      for (const r of stage.ranks) {
        const tape = job.ranks[r]!.tape;
        if (tape === null) continue;
        const durations = new Map<number, number>();
        for (let i = 0; i < tape.start.length; i++) if (tape.kind[i] === COMPUTE) durations.set(i, tape.duration[i]! * factor);
        removal.set(r, { durations });
      }
    }
    const rankNumbers = (list: readonly number[]): number[] => list.map((r) => job.ranks[r]!.rank ?? -1);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'Stage {stage:int} computes {ratio:num} × as long as the shortest of {n:int} pipeline stages',
              zh: 'Stage {stage:int} 的计算耗时是 {n:int} 个流水线 Stage 中最短者的 {ratio:num} 倍',
            },
            params: { stage: split.longest, ratio: longest.workMs / Math.min(...times), n: times.length },
          },
          ranks: longest.ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, false) === 'low' ? 'low' : 'medium',
          evidence: split.stages.map((stage, s) => ({
            message: {
              text: {
                en: 'stage {stage:int} (rank {ranks:ranks}) computes {ms:ms} per step',
                zh: 'Stage {stage:int}（卡 {ranks:ranks}）每迭代计算 {ms:ms}',
              },
              params: { stage: s, ranks: rankNumbers(stage.ranks), ms: stage.computingMs },
            },
            file: job.ranks[stage.ranks[0] ?? -1]?.steps[0]?.breakdown.source ?? null,
            rank: stage.ranks[0] ?? null,
          })),
          caveats: [
            {
              text: {
                en: 'the same pattern on every rank of the stage: it is the split of the work, not a slow card',
                zh: '该 Stage 的每张卡都是如此：是切分不均，不是慢卡',
              },
            },
          ],
          removal: removal.size === job.ranks.length ? { likely: removal } : null,
          boundMs: split.excessMs,
          boundMethod: {
            text: { en: 'computing of the longest stage less the mean of all stages', zh: '最长 Stage 的计算耗时减去各 Stage 的平均值' },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'rebalance-stages', params: { stages: times.length, longest: split.longest, excessMs: split.excessMs } }],
          hotspot: `stage${split.longest}`,
        },
      ],
    };
  },
});

import { exchangeOf } from '../../facts/job/micro-batches.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { stages } from '../../facts/job/stages.ts';
import { type Detection, defineRule, type RawEvidence } from '../../model/rule.ts';

/** Waiting that the schedule predicts must be seen at least to this part, or another schedule runs. */
const SEEN = 0.5;

export default defineRule({
  id: 'pipeline-bubble',
  title: { en: 'Too few micro-batches for the pipeline', zh: '流水线的 micro batch 过少' },
  category: 'communication',
  maturity: 'preview',
  needs: ['step-times', 'collectives'],
  options: {
    perStage: {
      default: 4,
      unit: 'count',
      min: 1,
      max: 1_000,
      description: {
        en: 'micro-batches per stage from which the bubble counts as small',
        zh: '每个 Stage 的 micro batch 数达到多少时空泡视为较小',
      },
      why: {
        en: 'with four per stage a balanced pipeline idles (p − 1) / 4p of its computing, less than a quarter; the GPipe paper calls that negligible',
        zh: '每个 Stage 有四个时，均衡流水线的空闲为计算的 (p − 1) / 4p，不足四分之一；GPipe 论文认为可忽略',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest gain reported, as a share of the step', zh: '可报告的最小收益，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['pipeline-schedule'],
  detect(job, options): Detection {
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
    const { microBatches, exposedMs } = exchangeOf(job, split);
    const p = split.stages.length;
    if (microBatches === null) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: exposedMs.every(Number.isNaN)
            ? { en: 'no point-to-point calls between the stages', zh: '没有 Stage 之间的点对点通信' }
            : {
                en: 'first and last stage exchange in a way that does not tell the number of micro-batches: an interleaved schedule, perhaps',
                zh: '首尾 Stage 的通信次数看不出 micro batch 数，可能是交错调度',
              },
        },
      };
    }
    // A balanced split of cards that are equally fast: what unequal stages cost belongs to stage-imbalance, what a slow card costs to slow-rank.
    const computing = split.stages.reduce((sum, s) => sum + s.workMs, 0) / p;
    const idle = ((p - 1) * computing) / microBatches;
    const wanted = options.perStage * p;
    const gain = Math.max(0, idle - ((p - 1) * computing) / wanted);
    const waited = Math.max(...exposedMs.map((ms) => ms || 0));
    const share = (p - 1) / (microBatches + p - 1);
    if (microBatches >= wanted || waited < SEEN * idle || gain < options.minShare * step) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: '{m:int} micro-batches on {p:int} stages: a balanced schedule idles {share:pct}; ranks wait up to {ms:ms} in point-to-point calls',
            zh: '{p:int} 个 Stage、{m:int} 个 micro batch：均衡调度的空泡为 {share:pct}；各卡在点对点通信中最多等待 {ms:ms}',
          },
          params: { m: microBatches, p, share, ms: waited },
        },
      };
    }
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: '{m:int} micro-batches are few for {p:int} pipeline stages: the schedule alone idles {share:pct}',
              zh: '{p:int} 个流水线 Stage 只有 {m:int} 个 micro batch：仅调度空泡就占 {share:pct}',
            },
            params: { m: microBatches, p, share },
          },
          ranks: split.stages.flatMap((s) => s.ranks).sort((a, b) => a - b),
          steps: job.steps.used,
          groups: job.ranks
            .flatMap((r) => r.groups.filter((g) => /^pp(_|$)/.test(g.role ?? '')).map((g) => g.hash))
            .filter((g, i, all) => all.indexOf(g) === i)
            .slice(0, 8),
          confidence: dataConfidence(job, false) === 'low' ? 'low' : 'medium',
          evidence: split.stages.map(
            (stage, s): RawEvidence => ({
              message: {
                text: {
                  en: 'stage {stage:int} (rank {ranks:ranks}) computes {ms:ms} per step; {wait:ms} of its point-to-point calls is not covered by computing',
                  zh: 'Stage {stage:int}（卡 {ranks:ranks}）每迭代计算 {ms:ms}；其点对点通信有 {wait:ms} 未被计算掩盖',
                },
                params: {
                  stage: s,
                  ranks: stage.ranks.map((r) => job.ranks[r]!.rank ?? -1),
                  ms: stage.computingMs,
                  wait: exposedMs[s]!,
                },
              },
              file: job.ranks[stage.ranks[0] ?? -1]?.steps[0]?.breakdown.source ?? null,
              rank: stage.ranks[0] ?? null,
            }),
          ),
          caveats: [
            {
              text: {
                en: 'the bubble is part of the schedule, not waiting for a late rank; smaller micro-batches can make kernels less efficient',
                zh: '空泡来自调度，不是等待某张慢卡；micro batch 变小可能降低算子效率',
              },
            },
          ],
          removal: null,
          boundMs: Math.min(gain, waited),
          boundMethod: {
            text: {
              en: 'computing of a balanced stage × (p − 1) × (1/m − 1/m′) with the same global batch in m′ = four micro-batches per stage',
              zh: '均衡 Stage 的计算耗时 ×（p − 1）×（1/m − 1/m′），全局 batch 不变，m′ 为每个 Stage 四个 micro batch',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'pipeline-schedule', params: { stages: p, microBatches, wanted } }],
          hotspot: 'schedule',
        },
      ],
    };
  },
});

import { median } from '../../base/statistics.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { lateness } from '../../facts/job/lateness.ts';
import { exchangeOf } from '../../facts/job/micro-batches.ts';
import { hostPauses } from '../../facts/job/pauses.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { waitingIsInSlowSteps } from '../../facts/job/slow-steps.ts';
import { stages } from '../../facts/job/stages.ts';
import { type UnevenWork, unevenWork } from '../../facts/job/uneven-work.ts';
import { type Detection, defineRule, type RawEvidence } from '../../model/rule.ts';

/** ms per step of collectives not covered by computing, by rank index; from the step table. */
function exposed(job: JobFacts): number[] {
  return job.ranks.map((r) =>
    median(job.steps.usedIndex.map((s) => r.steps[s]?.breakdown.exposedMs ?? Number.NaN).filter((v) => !Number.isNaN(v))),
  );
}

/** The stages that are longest and least long in calls to the others, which is where unequal stages wait; null when it is not known of all. */
function betweenStages(exposedMs: readonly number[]): Record<'most' | 'least' | 'ms' | 'other', number> | null {
  if (exposedMs.some(Number.isNaN)) return null;
  const [ms, other] = [Math.max(...exposedMs), Math.min(...exposedMs)];
  return { most: exposedMs.indexOf(ms), least: exposedMs.indexOf(other), ms, other };
}

/** Share of the waiting that one rank of each stage must cause before the waiting is put down to it. */
const PERSISTENT_SHARE = 0.6;

/** Part of the waiting that the difference in work must account for. */
const EXPLAINING = 0.5;

export default defineRule({
  id: 'hccl-sync-wait',
  title: { en: 'Ranks wait for each other at collectives', zh: '集合通信中互相等待' },
  category: 'communication',
  maturity: 'stable',
  needs: ['collectives'],
  options: {
    minShare: {
      default: 0.03,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest waiting reported, as a share of the step', zh: '可报告的最小等待，占迭代耗时的比例' },
      why: {
        en: 'some skew is unavoidable; 3 % is the scale the vendor advisor calls low',
        zh: '少量的到达差无法避免；3% 相当于厂商建议工具中的低级别',
      },
    },
    minMs: {
      default: 1,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest waiting reported', zh: '可报告的最小等待' },
      why: {
        en: 'collectives of the same call end within 0.1 ms of each other; ten times that is safely real',
        zh: '同一次集合通信在各卡上的结束时刻相差不超过 0.1 ms；十倍于此足以确定',
      },
    },
  },
  remedies: ['find-late-rank'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const floor = Math.max(options.minShare * step, options.minMs);
    const exposedMs = exposed(job);
    const pace = job.steps.pace;
    const paceFacts = job.ranks[pace]!;
    const paceStep = paceFacts.steps[job.steps.usedIndex[0] ?? -1];
    const common = {
      steps: job.steps.used,
      groups: [...new Set(job.matches.map((m) => m.group))].filter((g) => g !== '').slice(0, 8),
      frames: [],
      hotspot: 'wait',
    };
    const exposure: RawEvidence = {
      message: {
        text: {
          en: 'rank {rank:text}: {exposed:ms} of communication per step is not covered by computing ({share:pct} of the {stage:ms} stage)',
          zh: '卡 {rank:text}：每迭代有 {exposed:ms} 通信未被计算掩盖（占 Stage {stage:ms} 的 {share:pct}）',
        },
        params: {
          rank: paceFacts.rank ?? '?',
          exposed: exposedMs[pace]!,
          stage: paceStep?.breakdown.stageMs ?? null,
          share: paceStep === undefined ? null : exposedMs[pace]! / paceStep.breakdown.stageMs,
        },
      },
      file: paceStep?.breakdown.source ?? null,
      rank: pace,
      step: paceStep?.id ?? null,
    };

    if (job.noReplay === 'ranks-missing' || job.ranks.length < 2) {
      return partial();
    }
    if (!job.clock.usable) {
      return { outcome: 'notApplicable', reason: { text: { en: 'the clocks of the ranks cannot be aligned', zh: '各卡时钟无法对齐' } } };
    }
    const late = lateness(job);
    const waited = Math.max(0, ...late.waitedMs);
    const caused = late.skewMs;
    if (caused < floor) {
      return {
        outcome: 'pass',
        reason: {
          text: { en: 'late arrivals make the others wait {ms:ms} per step', zh: '迟到造成的等待为每迭代 {ms:ms}' },
          params: { ms: caused },
        },
      };
    }
    const split = stages(job);
    const staged =
      split !== null &&
      split.stages.length > 1 &&
      split.excessMs > 0.1 * (split.stages.reduce((a, s) => a + s.workMs, 0) / split.stages.length);
    // With few ranks one of them is the latest in most steps by chance: only the same rank in every step is persistent.
    const steady = late.culprits.filter((c) => c.share >= PERSISTENT_SHARE && c.steps >= Math.max(1, job.steps.usedIndex.length));
    const inStages = staged ? betweenStages(exchangeOf(job, split).exposedMs) : null;
    const persistent = late.culpritShare >= PERSISTENT_SHARE && steady.length > 0;
    const top = job.arrivals
      .filter((a) => !job.matches[a.match]!.p2p)
      .sort((a, b) => b.skew - a.skew)
      .slice(0, 2);
    const evidence: RawEvidence[] = [
      {
        message: {
          text: staged
            ? { en: 'waiting per step inside its stage, by rank: {table:text}', zh: '各卡每迭代在所属 Stage 内的等待：{table:text}' }
            : { en: 'waiting per step by rank: {table:text}', zh: '各卡每迭代的等待：{table:text}' },
          params: {
            table: job.ranks
              .map((r, i) => `${r.rank ?? '?'}: ${late.waitedMs[i]!.toFixed(1)} ms`)
              .slice(0, 8)
              .join(', '),
          },
        },
        file: null,
        rank: null,
      },
      ...top.map(
        (a): RawEvidence => ({
          message: {
            text: {
              en: '{name:code}: rank {rank:text} comes {skew:ms} after the first',
              zh: '{name:code}：卡 {rank:text} 比最早的卡晚 {skew:ms}',
            },
            params: {
              name: job.ranks[a.ranks[0]!]!.collectives[job.matches[a.match]!.calls[0]!]!.name,
              rank: job.ranks[a.last]!.rank ?? '?',
              skew: a.skew / 1e6,
            },
          },
          file: job.ranks[a.last]!.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
          rank: a.last,
          step: a.step,
          start: a.arrive[a.ranks.indexOf(a.last)]! - job.clock.offset[a.last]!,
          duration: a.body,
        }),
      ),
      exposure,
    ];
    // One rank or one stage is behind it: slow-rank, stage-imbalance or the rule that knows why reports the cause.
    if (staged || persistent) {
      return {
        outcome: 'findings',
        findings: [
          {
            ...common,
            title: staged
              ? inStages === null
                ? {
                    text: {
                      en: 'Pipeline stages are unequal, and ranks of one stage wait up to {ms:ms} per step for each other',
                      zh: '流水线 Stage 不均衡，同一 Stage 内各卡每迭代互相等待最多 {ms:ms}',
                    },
                    params: { ms: waited },
                  }
                : {
                    text: {
                      en: 'Stage {most:int} is in point-to-point calls for {ms:ms} per step, stage {least:int} for {other:ms}: the stages are unequal',
                      zh: 'Stage {most:int} 每迭代有 {ms:ms} 处于点对点通信，Stage {least:int} 为 {other:ms}：流水线 Stage 不均衡',
                    },
                    params: inStages,
                  }
              : {
                  text: { en: 'Ranks wait up to {ms:ms} per step for rank {ranks:ranks}', zh: '各卡每迭代最多等卡 {ranks:ranks} {ms:ms}' },
                  params: { ms: waited, ranks: steady.map((c) => job.ranks[c.rank]!.rank ?? -1).sort((a, b) => a - b) },
                },
            ranks: [],
            confidence: dataConfidence(job, false),
            evidence,
            caveats: [],
            removal: null,
            boundMs: caused,
            boundMethod: { text: { en: 'waiting that late arrivals cause, median of the steps', zh: '迟到造成的等待，各迭代的中位数' } },
            information: true,
            symptomOf: staged ? 'stage-imbalance' : 'slow-rank',
            ...(waitingIsInSlowSteps(job) ? { explainedBy: ['step-jitter'] } : {}),
            remedies: [],
          },
        ],
      };
    }
    const uneven = unevenWork(
      job,
      job.ranks.map((_, r) => r),
    );
    if (split === null && uneven !== null && uneven.excessMs >= EXPLAINING * caused) return unevenBatches(uneven);
    const pauses = hostPauses(job);
    const oneStep = job.steps.usedIndex.length < 2;
    return {
      outcome: 'findings',
      findings: [
        {
          ...common,
          title: {
            text: oneStep
              ? {
                  en: 'Ranks wait {ms:ms} for each other in the one step that was captured',
                  zh: '在唯一采集到的迭代中，各卡互相等待 {ms:ms}',
                }
              : { en: 'Ranks wait {ms:ms} per step for changing late-comers', zh: '最晚到达的卡不固定，每迭代等待 {ms:ms}' },
            params: { ms: caused },
          },
          ranks: [],
          confidence: dataConfidence(job, false) === 'high' ? 'medium' : 'low',
          evidence,
          caveats: [
            {
              text: oneStep
                ? {
                    en: 'no rank is the last at most collectives, and whether the same ones are late in other steps is not known',
                    zh: '没有一张卡在多数集合通信中最晚，其他迭代是否也是这些卡迟到无法得知',
                  }
                : {
                    en: 'another rank is late in each step, which points to host noise rather than a card',
                    zh: '每个迭代迟到的卡不同，更像 Host 抖动而不是某张卡的问题',
                  },
            },
          ],
          removal: pauses.size === 0 ? null : { likely: new Map([...pauses].map(([r, host]) => [r, { host }] as const)) },
          boundMs: caused,
          boundMethod: { text: { en: 'skew of the arrivals, median of the steps', zh: '到达时间差，各迭代的中位数' } },
          information: false,
          symptomOf: null,
          explainedBySkew: true,
          ...(pauses.size === 0 && waitingIsInSlowSteps(job) ? { explainedBy: ['step-jitter'] } : {}),
          remedies: [{ id: 'find-late-rank', params: { kind: 'jitter' } }],
        },
      ],
    };

    /** Another rank has most work in each step: nothing is wrong with a card or host. */
    function unevenBatches({ excessMs, worst, even }: UnevenWork): Detection {
      const ms = caused;
      return {
        outcome: 'findings',
        findings: [
          {
            ...common,
            title: {
              text: {
                en: 'Ranks wait {ms:ms} per step for the one with the longest batch',
                zh: '各卡每迭代等待 batch 最长的卡 {ms:ms}',
              },
              params: { ms },
            },
            ranks: [],
            confidence: dataConfidence(job, false) === 'high' ? 'medium' : 'low',
            evidence: [
              {
                message: {
                  text: {
                    en: 'step {step:text}: rank {rank:text} computes {own:ms}, the mean of all ranks is {mean:ms}; kernels of the same shapes take as long everywhere, and the rank with most work changes',
                    zh: '迭代 {step:text}：卡 {rank:text} 计算 {own:ms}，所有卡平均 {mean:ms}；相同 shape 的 kernel 在各卡耗时一致，且工作最多的卡不固定',
                  },
                  params: {
                    step: job.ranks[worst.rank]!.steps[worst.step]?.id ?? '?',
                    rank: job.ranks[worst.rank]!.rank ?? '?',
                    own: worst.ownMs,
                    mean: worst.meanMs,
                  },
                },
                file: 'kernel_details.csv',
                rank: worst.rank,
                step: job.ranks[worst.rank]!.steps[worst.step]?.id ?? null,
              },
              ...evidence,
            ],
            caveats: [],
            removal: { likely: even },
            boundMs: Math.max(ms, excessMs),
            boundMethod: { text: { en: 'skew of the arrivals, median of the steps', zh: '到达时间差，各迭代的中位数' } },
            information: false,
            symptomOf: null,
            remedies: [{ id: 'find-late-rank', params: { kind: 'uneven' } }],
            hotspot: 'uneven',
          },
        ],
      };
    }

    /** Members are missing: the time after the last arrival here that is not transfer is waiting for somebody who was not uploaded. */
    function partial(): Detection {
      const share = (exposedMs[pace]! || 0) / (step ?? 1);
      const absent = job.absentWaitMs;
      if (!(share >= 0.1) && absent < floor) {
        return {
          outcome: 'pass',
          reason: {
            text: { en: '{ms:ms} of communication per step is exposed', zh: '每迭代未掩盖通信 {ms:ms}' },
            params: { ms: exposedMs[pace]! || 0 },
          },
        };
      }
      const longest = [...job.arrivals].filter((a) => !job.matches[a.match]!.p2p).sort((a, b) => b.body - a.body)[0];
      const first: RawEvidence[] = [];
      if (longest !== undefined) {
        const match = job.matches[longest.match]!;
        const call = job.ranks[match.ranks[0]!]!.collectives[match.calls[0]!]!;
        first.push({
          message: {
            // Level0 does not tell transfer from waiting.
            text: Number.isNaN(call.transitMs)
              ? {
                  en: '{name:code} lasts {body:ms} after the last of the uploaded ranks arrived, how much of it transfer is not recorded: ranks that are not here may be later',
                  zh: '{name:code} 在已上传的卡全部到达后仍持续 {body:ms}，其中传输多久没有记录：未上传的卡可能更晚',
                }
              : {
                  en: '{name:code} lasts {body:ms} after the last of the uploaded ranks arrived, {transit:ms} of it transfer: ranks that are not here may be later',
                  zh: '{name:code} 在已上传的卡全部到达后仍持续 {body:ms}，其中传输 {transit:ms}：未上传的卡可能更晚',
                },
            params: { name: call.name, body: longest.body / 1e6, transit: call.transitMs },
          },
          file: Number.isNaN(call.transitMs) ? 'trace_view.json' : 'communication.json',
          rank: longest.last,
          step: longest.step,
          start: longest.arrive[longest.ranks.indexOf(longest.last)]! - job.clock.offset[longest.last]!,
          duration: longest.body,
        });
      }
      const ceiling = Math.min(absent > 0 ? absent : exposedMs[pace]! || 0, exposedMs[pace]! || absent);
      return {
        outcome: 'findings',
        findings: [
          {
            ...common,
            title: {
              // With one rank nothing tells waiting from transfer.
              text:
                absent >= 0.5 * (exposedMs[pace]! || 0)
                  ? {
                      en: '{exposed:ms} of communication per step is exposed, most of it waiting for ranks that were not uploaded',
                      zh: '每迭代未掩盖通信 {exposed:ms}，其中大部分在等未上传的卡',
                    }
                  : {
                      en: '{exposed:ms} of communication per step is exposed; how much of it is waiting for other ranks is not known',
                      zh: '每迭代未掩盖通信 {exposed:ms}；其中有多少在等其他卡无法得知',
                    },
              params: { exposed: exposedMs[pace]! || 0 },
            },
            ranks: [],
            confidence: 'medium',
            evidence: [exposure, ...first],
            caveats: [
              {
                text:
                  job.world.size === null
                    ? {
                        en: 'ranks here: {n:int}; how many the job has is not recorded, so no rank can be named',
                        zh: '有 {n:int} 张卡的数据，总卡数没有记录，无法指出是哪张卡',
                      }
                    : {
                        en: '{n:int} of {size:text} ranks are here, so no rank can be named',
                        zh: '只有 {n:int}/{size:text} 张卡的数据，无法指出是哪张卡',
                      },
                params: { n: job.ranks.length, size: job.world.size ?? '?' },
              },
            ],
            removal: null,
            boundMs: ceiling,
            boundMethod: {
              text: {
                en: 'time of the collectives after the last uploaded rank arrived, less their transfer',
                zh: '已上传的卡全部到达之后的通信耗时，减去传输',
              },
            },
            information: false,
            symptomOf: null,
            remedies: [{ id: 'find-late-rank', params: { kind: 'ranks-missing', present: job.ranks.length, worldSize: job.world.size } }],
          },
        ],
      };
    }
  },
});

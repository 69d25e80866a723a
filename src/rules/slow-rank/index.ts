import type { JobFacts } from '../../facts/job/index.ts';
import { compareRank, lateness, type RankDifference } from '../../facts/job/lateness.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { stages } from '../../facts/job/stages.ts';
import { COMPUTE } from '../../model/facts.ts';
import type { Message } from '../../model/lang.ts';
import { defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

type Reason = 'device' | 'more-work' | 'host' | 'loader' | 'compile' | 'unknown';

/** Why the rank is late: the largest of the differences that can explain it. */
function reasonOf(d: RankDifference, causedMs: number): Reason {
  const loader = d.loaderMs - d.othersLoaderMs;
  const compile = d.compileMs - d.othersCompileMs;
  const compute = d.computeMs - d.othersComputeMs;
  const enough = 0.4 * causedMs;
  const best = Math.max(loader, compile, compute);
  if (best >= enough) {
    if (loader === best) return 'loader';
    if (compile === best) return 'compile';
    return Math.abs(d.kernels - d.othersKernels) > 0.02 * d.othersKernels ? 'more-work' : 'device';
  }
  if (d.launchNs > 1.15 * d.othersLaunchNs) return 'host';
  return 'unknown';
}

/** Kernel times of the rank set to what its peers need for the same types. */
function normalDevice(job: JobFacts, rank: number, peers: readonly number[]): Removal {
  const meanByType = (r: number): Map<string, number> => {
    const tape = job.ranks[r]!.tape!;
    const sums = new Map<string, { n: number; ns: number }>();
    for (let i = 0; i < tape.start.length; i++) {
      if (tape.kind[i] !== COMPUTE) continue;
      const type = tape.types[tape.type[i]!]!;
      const sum = sums.get(type) ?? { n: 0, ns: 0 };
      sum.n++;
      sum.ns += tape.duration[i]!;
      sums.set(type, sum);
    }
    return new Map([...sums].map(([type, s]) => [type, s.ns / s.n]));
  };
  const own = meanByType(rank);
  const others = peers.filter((r) => job.ranks[r]!.tape !== null).map(meanByType);
  const tape = job.ranks[rank]!.tape!;
  const durations = new Map<number, number>();
  for (let i = 0; i < tape.start.length; i++) {
    if (tape.kind[i] !== COMPUTE) continue;
    const type = tape.types[tape.type[i]!]!;
    const values = others
      .map((m) => m.get(type))
      .filter((v): v is number => v !== undefined)
      .sort((a, b) => a - b);
    if (values.length === 0) continue;
    const factor = Math.min(1, values[values.length >> 1]! / own.get(type)!);
    durations.set(i, tape.duration[i]! * factor);
  }
  return { durations };
}

export default defineRule({
  id: 'slow-rank',
  title: { en: 'One rank makes the others wait', zh: '慢卡拖住其余卡' },
  category: 'communication',
  maturity: 'stable',
  needs: ['collectives'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest lateness reported, as a share of the step', zh: '可报告的最小迟到，占迭代耗时的比例' },
      why: 'below 2 % of a step a change cannot be told from noise',
    },
    minCulpritShare: {
      default: 0.6,
      unit: 'share',
      min: 0.5,
      max: 1,
      description: { en: 'share of all lateness that one rank must cause', zh: '单张卡造成的迟到占全部迟到的比例' },
      why: 'lateness that moves from rank to rank is jitter, not a slow card',
    },
    minSteps: {
      default: 0.6,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'share of the steps in which it must be the latest', zh: '该卡最晚到达的迭代比例' },
      why: 'a persistent cause shows in most steps; a single event does not make a slow card',
    },
  },
  remedies: ['check-slow-rank'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (job.ranks.length < 2)
      return { outcome: 'notApplicable', reason: { text: { en: 'one rank cannot be compared', zh: '只有一张卡，无法比较' } } };
    if (job.noReplay === 'ranks-missing') {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'not all ranks are here ({n:int} of {size:text}): the late one may be among the others, so no rank is named',
            zh: '不是所有卡都在（{n:int}/{size:text}）：最晚到达的卡可能不在其中，因此不点名',
          },
          params: { n: job.ranks.length, size: job.world.size ?? 'unknown' },
        },
      };
    }
    if (!job.clock.usable || step === null) {
      return { outcome: 'notApplicable', reason: { text: { en: 'the clocks of the ranks cannot be aligned', zh: '各卡时钟无法对齐' } } };
    }
    const late = lateness(job);
    const split = stages(job);
    if (split !== null && split.stages.length > 1) {
      const mean = split.stages.reduce((a, s) => a + s.computingMs, 0) / split.stages.length;
      if (split.excessMs > 0.1 * mean) {
        return {
          outcome: 'pass',
          reason: {
            text: {
              en: 'the lateness follows the pipeline stages, see stage-imbalance',
              zh: '迟到与流水线 Stage 一致，见 stage-imbalance',
            },
          },
        };
      }
    }
    const steps = Math.max(1, job.steps.usedIndex.length);
    const persistent = late.culprits.filter(
      (c) => late.causedMs[c.rank]! >= options.minShare * step && c.share >= options.minCulpritShare && c.steps >= options.minSteps * steps,
    );
    if (persistent.length === 0) {
      const top = late.culprits[0];
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'no rank is late persistently: the largest share of the lateness is {share:pct}, {ms:ms} per step',
            zh: '没有持续迟到的卡：单卡迟到占比最多 {share:pct}，每迭代 {ms:ms}',
          },
          params: { share: top?.share ?? 0, ms: top === undefined ? 0 : late.causedMs[top.rank]! },
        },
      };
    }
    const judged = persistent.map((culprit) => {
      const d = compareRank(job, culprit.rank, culprit.peers);
      return { culprit, d, reason: reasonOf(d, late.causedMs[culprit.rank]!) };
    });
    // A rank that only passes on the lateness of another stage has no reason of its own.
    const { culprit, d, reason } = judged.find((j) => j.reason !== 'unknown') ?? judged[0]!;
    const { rank } = culprit;
    const causedMs = late.causedMs[rank]!;
    const facts = job.ranks[rank]!;
    if (reason === 'loader' || reason === 'compile') {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'rank {rank:text} is late because of {rule:code}, which reports it',
            zh: '卡 {rank:text} 迟到的原因是 {rule:code}，由该检查项报告',
          },
          params: { rank: facts.rank ?? '?', rule: reason === 'loader' ? 'dataloader-stall' : 'op-recompile' },
        },
      };
    }
    if (reason === 'unknown') {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'rank {rank:text} often arrives last, but its kernels, launches and loader are like those of the others',
            zh: '卡 {rank:text} 经常最晚到达，但其 kernel、下发与数据加载与其余卡一致',
          },
          params: { rank: facts.rank ?? '?' },
        },
      };
    }
    const removal = new Map<number, Removal>();
    if (facts.tape !== null && reason === 'device') removal.set(rank, normalDevice(job, rank, culprit.peers));
    else if (facts.tape !== null && reason === 'host') removal.set(rank, { hostFactor: d.othersLaunchNs / d.launchNs });
    const why: Record<Reason, Message> = {
      device: {
        text: {
          en: 'same {n:int} kernels per step, {own:ms} against {others:ms} on the other ranks ({slower:pct} slower)',
          zh: 'kernel 数同为 {n:int}，每迭代 {own:ms}，其余卡 {others:ms}（慢 {slower:pct}）',
        },
        params: { n: d.kernels, own: d.computeMs, others: d.othersComputeMs, slower: d.computeMs / d.othersComputeMs - 1 },
      },
      'more-work': {
        text: {
          en: '{n:int} kernels per step against {others:int} on the other ranks: it has more work',
          zh: '每迭代 {n:int} 个 kernel，其余卡 {others:int} 个：该卡的工作更多',
        },
        params: { n: d.kernels, others: d.othersKernels },
      },
      host: {
        text: {
          en: 'its host launches every {own:ms}, the others every {others:ms}',
          zh: '该卡 Host 每 {own:ms} 下发一次，其余卡每 {others:ms} 一次',
        },
        params: { own: d.launchNs / 1e6, others: d.othersLaunchNs / 1e6 },
      },
      loader: { text: { en: '', zh: '' } },
      compile: { text: { en: '', zh: '' } },
      unknown: {
        text: {
          en: 'kernels, launches and loader do not differ: the reason is not in this profile',
          zh: 'kernel、下发与数据加载均无差异：原因不在 profile 中',
        },
      },
    };
    const arrivalsOfCulprit = job.arrivals.filter((a) => a.last === rank).sort((a, b) => b.skew - a.skew);
    const worst = arrivalsOfCulprit[0];
    const titles: Record<Reason, Message['text']> = {
      device: {
        en: 'Rank {rank:text} computes {slower:pct} slower and the others wait for it',
        zh: '卡 {rank:text} 计算慢 {slower:pct}，其余卡等它',
      },
      'more-work': {
        en: 'Rank {rank:text} has more work and the others wait for it',
        zh: '卡 {rank:text} 的工作更多，其余卡等它',
      },
      host: {
        en: 'The host of rank {rank:text} is slower and the others wait for it',
        zh: '卡 {rank:text} 的 Host 更慢，其余卡等它',
      },
      loader: { en: '', zh: '' },
      compile: { en: '', zh: '' },
      unknown: { en: '', zh: '' },
    };
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: titles[reason],
            params: { rank: facts.rank ?? '?', slower: d.computeMs / d.othersComputeMs - 1 },
          },
          ranks: [rank],
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, reason === 'host'),
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text} arrives last at {last:int} of {total:int} collectives and makes the others wait {ms:ms} per step ({share:pct} of all such waiting)',
                  zh: '{total:int} 次集合通信中卡 {rank:text} 有 {last:int} 次最晚到达，每迭代让其余卡等 {ms:ms}（占全部此类等待的 {share:pct}）',
                },
                params: { rank: facts.rank ?? '?', last: late.lastCount[rank]!, total: late.total, ms: causedMs, share: culprit.share },
              },
              file: facts.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
              rank,
              ...(worst === undefined
                ? {}
                : {
                    step: worst.step,
                    start: worst.arrive[worst.ranks.indexOf(rank)]! - job.clock.offset[rank]!,
                    duration: worst.end - worst.arrive[worst.ranks.indexOf(rank)]!,
                  }),
            },
            { message: why[reason], file: reason === 'device' ? 'kernel_details.csv' : 'trace_view.json', rank },
          ],
          caveats: [],
          removal: removal.size > 0 ? { likely: removal } : null,
          boundMs: causedMs,
          boundMethod: {
            text: { en: 'waiting that its late arrival causes, median of the steps', zh: '其迟到造成的等待，各迭代的中位数' },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'check-slow-rank', params: { reason, rank: facts.rank } }],
          hotspot: `rank${facts.rank ?? '?'}:${reason}`,
        },
      ],
    };
  },
});

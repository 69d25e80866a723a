import { union } from '../../base/intervals.ts';
import { ranksAbove } from '../../facts/job/culprits.ts';
import { biasCaveat, idleMs, quoted } from '../../facts/job/host-time.ts';
import { dataConfidence, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import { defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

export default defineRule({
  id: 'batch-preparation',
  title: { en: 'The training thread prepares the batch while the card waits', zh: '训练线程准备 batch，NPU 在等待' },
  category: 'data',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'kernels'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest idle time reported, as a share of the step', zh: '可报告的最小空闲，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    minMs: {
      default: 0.5,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest idle time reported', zh: '可报告的最小空闲' },
      why: {
        en: 'taking a batch apart and naming its parts takes some 0.1 ms in any loop',
        zh: '任何训练循环拆分 batch 都要约 0.1 ms',
      },
    },
  },
  remedies: ['prepare-batch-in-workers'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null || job.ranks.every((r) => r.loader === null)) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'no DataLoader event was recorded, so it cannot be told where the preparation begins',
            zh: '没有记录到 DataLoader 事件，无法判断准备阶段从何处开始',
          },
        },
      };
    }
    const idle = idleMs(job, 'preparation');
    const ranks = ranksAbove(idle, Math.max(options.minShare * step, options.minMs));
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'the card waited at most {idle:ms} per step for work on the fetched batch',
            zh: '每迭代等待 batch 处理最多 {idle:ms}',
          },
          params: { idle: Math.max(0, ...idle.filter((v) => !Number.isNaN(v))) },
        },
      };
    }
    const pace = quoted(job, ranks, idle);
    const facts = job.ranks[pace]!;
    const spans = facts.host!.preparation;
    const used = new Set(job.steps.usedIndex);
    const worst = spans.filter((p) => used.has(p.step)).reduce((a, b) => (b.idle > a.idle ? b : a), spans[0]!);
    const host = medianOfUsed(
      job,
      sumByStep(facts.steps.length, spans, (p) => (p.end - p.start) / 1e6),
    );
    const did = worst.operators.length > 0 ? worst.operators : worst.frame === null ? [] : [worst.frame.func];
    const removal = new Map<number, Removal>(
      ranks.map((r) => [r, { host: union(job.ranks[r]!.host!.preparation.map((p) => [p.start, p.end] as const)) }] as const),
    );
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'The training thread works on each batch for {host:ms} before the card gets it',
              zh: '每个 batch 送到 NPU 之前，训练线程要处理 {host:ms}',
            },
            params: { host },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, true),
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text}: between the fetch and the first copy to the card the thread spent {host:ms} per step in {did:code}; the card had nothing to do for {idle:ms} of it',
                  zh: '卡 {rank:text}：取数之后、首次拷贝到 NPU 之前，训练线程每迭代有 {host:ms} 在执行 {did:code}，其间 NPU 空闲 {idle:ms}',
                },
                params: { rank: facts.rank ?? '?', host, did, idle: idle[pace]! },
              },
              file: 'trace_view.json',
              rank: pace,
              step: facts.steps[worst.step]?.id ?? null,
              start: worst.start,
              duration: worst.end - worst.start,
            },
          ],
          caveats: biasCaveat(facts),
          removal: { likely: removal },
          boundMs: idle[pace]!,
          boundMethod: {
            text: {
              en: 'idle time of the card between the fetch and the first copy, median of the steps',
              zh: '取数之后到首次拷贝之间 NPU 的空闲，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          frames: worst.frame === null ? [] : [worst.frame],
          remedies: [
            {
              id: 'prepare-batch-in-workers',
              params: { iterator: facts.loader?.iterator ?? 'unknown', operators: worst.operators.join(', ') },
            },
          ],
          hotspot: worst.frame === null ? 'preparation' : `${worst.frame.file}:${worst.frame.func}`,
        },
      ],
    };
  },
});

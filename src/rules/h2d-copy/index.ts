import { union } from '../../base/intervals.ts';
import { ranksAbove } from '../../facts/job/culprits.ts';
import { biasCaveat, costOf, idleMs, quoted } from '../../facts/job/host-time.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import type { RankFacts } from '../../model/facts.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** Asking for an asynchronous copy takes the host about this long, ns. */
const ASYNCHRONOUS = 100_000;
/** Copies that take less than this each are many small ones, not a batch. ms */
const SMALL_MS = 0.3;
const MANY = 8;

/** The copies no longer hold the host and begin when they are asked for. */
function pinned(rank: RankFacts): Removal {
  const calls = rank.host?.copies.calls ?? [];
  return {
    host: union(calls.map((c) => [c.start + Math.min(ASYNCHRONOUS, c.end - c.start), c.end] as const)),
    syncs: new Set(calls.flatMap((c) => c.syncs)),
    undelayed: new Set(calls.map((c) => c.node).filter((node) => node >= 0)),
  };
}

export default defineRule({
  id: 'h2d-copy',
  title: { en: 'Copies to the card hold up the host', zh: '拷贝到 NPU 阻塞了 Host' },
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
        en: 'asking for a copy takes 0.1 ms however it is done; a handful of them is nothing to gain',
        zh: '无论方式如何，发起一次拷贝需 0.1 ms；几次拷贝没有收益可言',
      },
    },
  },
  remedies: ['batch-transfer'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const idle = idleMs(job, 'copy');
    const ranks = ranksAbove(idle, Math.max(options.minShare * step, options.minMs));
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: { en: 'copies to the card left it idle for at most {idle:ms} per step', zh: '拷贝到 NPU 造成的空闲每迭代最多 {idle:ms}' },
          params: { idle: Math.max(0, ...idle.filter((v) => !Number.isNaN(v))) },
        },
      };
    }
    const costs = (r: RankFacts) => r.host?.copies.costs ?? [];
    const [count, host] = [costOf(job, costs, 'count'), costOf(job, costs, 'host')];
    const pace = quoted(job, ranks, idle);
    const facts = job.ranks[pace]!;
    const calls = facts.host!.copies.calls;
    const used = new Set(job.steps.usedIndex);
    const worst = calls.filter((c) => used.has(c.step)).reduce((a, b) => (b.idle > a.idle ? b : a), calls[0]!);
    const many = count[pace]! >= MANY && host[pace]! / count[pace]! < SMALL_MS;
    const size = worst.bytes / 1e6;
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: 'rank {rank:text}: copies to the card held the host for {host:ms} per step ({n:int} ×), and the card had nothing to do for {idle:ms} of that',
            zh: '卡 {rank:text}：每迭代 {n:int} 次拷贝阻塞 Host {host:ms}，其间 NPU 空闲 {idle:ms}',
          },
          params: { rank: facts.rank ?? '?', n: count[pace]!, host: host[pace]!, idle: idle[pace]! },
        },
        file: 'trace_view.json',
        rank: pace,
        step: facts.steps[worst.step]?.id ?? null,
        start: worst.start,
        duration: worst.end - worst.start,
      },
    ];
    if (worst.pageable === true) {
      evidence.push({
        message: {
          text: {
            en: 'the copy was handed over without blocking and then waited for: that happens when the host memory is not pinned',
            zh: '拷贝以非阻塞方式下发后又被等待：Host 内存不是锁页内存（pinned memory）时会这样',
          },
        },
        file: 'trace_view.json',
        rank: pace,
        step: facts.steps[worst.step]?.id ?? null,
      });
    }
    if (size > 0) {
      evidence.push({
        message: {
          text: {
            en: 'the longest one moved {size:num} MB in {ms:ms}, {rate:num} GB/s with the preparation',
            zh: '最长的一次在 {ms:ms} 内拷贝 {size:num} MB，含准备时间 {rate:num} GB/s',
          },
          params: {
            size: Number(size.toPrecision(3)),
            ms: (worst.end - worst.start) / 1e6,
            rate: Number((worst.bytes / (worst.end - worst.start)).toPrecision(2)),
          },
        },
        file: 'trace_view.json',
        rank: pace,
        step: facts.steps[worst.step]?.id ?? null,
      });
    }
    return {
      outcome: 'findings',
      findings: [
        {
          title: many
            ? {
                text: { en: '{n:int} small copies per step hold up the host', zh: '每迭代 {n:int} 次小拷贝阻塞 Host' },
                params: { n: count[pace]! },
              }
            : { text: { en: 'Copying the batch to the card holds up the host', zh: 'batch 拷贝到 NPU 时阻塞了 Host' } },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, true),
          evidence,
          caveats: biasCaveat(facts),
          removal: { likely: new Map(ranks.map((r) => [r, pinned(job.ranks[r]!)] as const)) },
          boundMs: idle[pace]!,
          boundMethod: {
            text: {
              en: 'idle time of the card while a copy held the host, median of the steps',
              zh: '拷贝阻塞 Host 期间 NPU 的空闲，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          frames: worst.frame === null ? [] : [worst.frame],
          remedies: [{ id: 'batch-transfer', params: { pageable: worst.pageable, many } }],
          hotspot: worst.frame === null ? 'copy' : `${worst.frame.file}:${worst.frame.func}`,
        },
      ],
    };
  },
});

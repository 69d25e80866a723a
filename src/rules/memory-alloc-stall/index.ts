import { union } from '../../base/intervals.ts';
import { ranksAbove } from '../../facts/job/culprits.ts';
import { biasCaveat, costOf, idleMs, quoted } from '../../facts/job/host-time.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import type { RankFacts } from '../../model/facts.ts';
import type { Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** Part of the used steps that must hold such calls: a single growth of the cache is no stall of every step. */
const STEADY = 0.6;

function kept(rank: RankFacts): Removal {
  const { tape, host } = rank;
  const releases: number[] = [];
  tape!.syncs.site.forEach((site, i) => {
    if (host!.syncs[site]?.kind === 'release') releases.push(i);
  });
  return { host: union((host!.allocator?.calls ?? []).map((c) => [c.start, c.end] as const)), syncs: new Set(releases) };
}

export default defineRule({
  id: 'memory-alloc-stall',
  title: { en: 'Device memory is taken and given back in every step', zh: '每个迭代都在申请和释放显存' },
  category: 'memory',
  maturity: 'stable',
  needs: ['steps', 'cann-calls', 'kernels'],
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
        en: 'one call of the driver takes some 0.1 ms; a warmed-up cache makes none',
        zh: '一次驱动调用约 0.1 ms；预热后的缓存不再调用驱动',
      },
    },
  },
  remedies: ['keep-cached-memory', 'expandable-segments'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const idle = idleMs(job, 'allocator');
    const costs = (r: RankFacts) => r.host?.allocator?.costs ?? [];
    const [count, host] = [costOf(job, costs, 'count'), costOf(job, costs, 'host')];
    const isSteady = (r: number): boolean => {
      const steps = new Set(costs(job.ranks[r]!).map((c) => c.step));
      return job.steps.usedIndex.filter((s) => steps.has(s)).length >= STEADY * job.steps.usedIndex.length;
    };
    const ranks = ranksAbove(idle, Math.max(options.minShare * step, options.minMs)).filter(isSteady);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'the allocator called the driver at most {n:int} times per step, and the card waited {idle:ms} for it',
            zh: '分配器每迭代最多调用驱动 {n:int} 次，NPU 因此空闲 {idle:ms}',
          },
          params: { n: Math.max(0, ...count), idle: Math.max(0, ...idle.filter((v) => !Number.isNaN(v))) },
        },
      };
    }
    const pace = quoted(job, ranks, idle);
    const facts = job.ranks[pace]!;
    const allocator = facts.host!.allocator!;
    const releases = costOf(job, (r) => r.host?.allocator?.releases ?? [], 'count')[pace]!;
    const used = new Set(job.steps.usedIndex);
    const worst = allocator.calls.filter((c) => used.has(c.step)).reduce((a, b) => (b.idle > a.idle ? b : a), allocator.calls[0]!);
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: 'rank {rank:text}: {n:int} calls of {names:code} per step took the host {host:ms}; the card had nothing to do for {idle:ms} of it',
            zh: '卡 {rank:text}：每迭代 {n:int} 次 {names:code} 占用 Host {host:ms}，其间 NPU 空闲 {idle:ms}',
          },
          params: {
            rank: facts.rank ?? '?',
            n: count[pace]!,
            names: allocator.names.slice(0, 4).map((c) => c.name),
            host: host[pace]!,
            idle: idle[pace]!,
          },
        },
        file: 'trace_view.json',
        rank: pace,
        step: facts.steps[worst.step]?.id ?? null,
        start: worst.start,
        duration: worst.end - worst.start,
      },
    ];
    if (releases >= 1) {
      evidence.push({
        message: {
          text: {
            en: 'the whole cache is given back after waiting for the card, {n:int} × per step: {api:code} in the loop, or memory that runs out',
            zh: '每迭代 {n:int} 次等待 NPU 完成后归还整个缓存：循环中有 {api:code}，或显存不足',
          },
          params: { n: releases, api: 'torch.npu.empty_cache()' },
        },
        file: 'trace_view.json',
        rank: pace,
        step: facts.steps[worst.step]?.id ?? null,
      });
    }
    const warmUp: Message[] =
      job.steps.usedIndex.length > 1
        ? []
        : [
            {
              text: {
                en: 'one step was captured: a cache that is still growing looks the same',
                zh: '只采集了 1 个迭代：仍在增长的缓存看起来一样',
              },
            },
          ];
    return {
      outcome: 'findings',
      findings: [
        {
          title:
            releases >= 1
              ? { text: { en: 'The memory cache is emptied and filled again in every step', zh: '每个迭代都清空并重新填充显存缓存' } }
              : {
                  text: { en: '{n:int} calls per step take device memory from the driver', zh: '每迭代向驱动申请或释放显存 {n:int} 次' },
                  params: { n: count[pace]! },
                },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: warmUp.length > 0 ? 'low' : dataConfidence(job, true),
          evidence,
          caveats: [...warmUp, ...biasCaveat(facts)],
          removal: { likely: new Map(ranks.map((r) => [r, kept(job.ranks[r]!)] as const)) },
          boundMs: idle[pace]!,
          boundMethod: {
            text: {
              en: 'idle time of the card while the allocator called the driver, median of the steps',
              zh: '分配器调用驱动期间 NPU 的空闲，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          frames: allocator.releaseFrame === null ? [] : [allocator.releaseFrame],
          remedies: [
            ...(releases >= 1 ? [{ id: 'keep-cached-memory', params: { releases } }] : []),
            { id: 'expandable-segments', params: { allocConf: facts.settings.env.PYTORCH_NPU_ALLOC_CONF ?? null } },
          ],
          hotspot: releases >= 1 ? 'release' : 'grow',
        },
      ],
    };
  },
});

import { medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import type { RankFacts } from '../../model/facts.ts';
import { defineRule } from '../../model/rule.ts';

/** Share of the steps that must have the gap. */
const STEADY = 0.8;

/** ns by step: idle time before the first kernel that no recorded cause owns: the host was launching, or nothing shows what it did. */
function gaps(rank: RankFacts): { all: number[]; silent: number[] } {
  const steps = rank.idle?.steps ?? [];
  return { all: steps.map((s) => s.leadLaunch + s.leadUnexplained), silent: steps.map((s) => s.leadUnexplained) };
}

export default defineRule({
  id: 'step-start-gap',
  title: { en: 'Nothing runs at the start of the step', zh: '迭代开头 NPU 空闲' },
  category: 'data',
  maturity: 'stable',
  needs: ['steps', 'kernels', 'launches'],
  options: {
    minShare: {
      default: 0.04,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest gap reported, as a share of the step', zh: '可报告的最小空闲，占迭代耗时的比例' },
      why: {
        en: 'every step needs some launches before its first kernel; twice the reporting floor of causes that have a name',
        zh: '每个迭代的首个 kernel 之前都要下发几次；取有名原因报告下限的两倍',
      },
    },
    minMs: {
      default: 1,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest gap reported', zh: '可报告的最小空闲' },
      why: {
        en: 'first launch and first copy of a step take about 1 ms',
        zh: '迭代的首次下发与首次拷贝约需 1 ms',
      },
    },
  },
  remedies: ['mark-the-gap'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const perStep = job.ranks.map((r) => gaps(r).all.map((v) => v / 1e6));
    const medians = perStep.map((values) => medianOfUsed(job, values) || 0);
    const floor = Math.max(options.minShare * step, options.minMs);
    // A gap of some steps only is a pause of the host, which shows as waiting at the collectives.
    const everyStep = (i: number): boolean =>
      job.steps.usedIndex.filter((s) => (perStep[i]![s] ?? 0) >= floor).length >= STEADY * job.steps.usedIndex.length;
    const ranks = job.ranks.map((_, i) => i).filter((i) => medians[i]! >= floor && everyStep(i));
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: { en: 'at most {gap:ms} at the start of a step has no known cause', zh: '迭代开头原因不明的空闲最多 {gap:ms}' },
          params: { gap: Math.max(0, ...medians) },
        },
      };
    }
    const pace = ranks.includes(job.steps.pace) ? job.steps.pace : ranks[0]!;
    const facts = job.ranks[pace]!;
    const first = job.steps.usedIndex[0]!;
    const preparing = facts.steps[first]!.breakdown.preparingMs;
    const stall = medianOfUsed(
      job,
      sumByStep(facts.steps.length, facts.loader?.fetches ?? [], (f) => f.stall / 1e6),
    );
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: { en: '{gap:ms} at the start of each step has no name', zh: '每个迭代开头有 {gap:ms} 空闲，原因不明' },
            params: { gap: medians[pace]! },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: 'low',
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text}: the first kernel starts {preparing:ms} after the step; {stall:ms} of that is the data loader and {gap:ms} has no recorded cause: the host launched in it, or for {silent:ms} nothing at all was recorded',
                  zh: '卡 {rank:text}：首个 kernel 在迭代开始 {preparing:ms} 后执行；其中 {stall:ms} 在等数据加载，{gap:ms} 没有记录到原因：Host 在下发，或没有任何记录（{silent:ms}）',
                },
                params: {
                  rank: facts.rank ?? '?',
                  preparing: Number.isNaN(preparing) ? null : preparing,
                  stall: stall || 0,
                  gap: medians[pace]!,
                  silent: medianOfUsed(job, gaps(facts).silent) / 1e6 || 0,
                },
              },
              file: 'trace_view.json',
              rank: pace,
              step: facts.steps[first]!.id,
              start: facts.steps[first]!.start,
              duration: (Number.isNaN(preparing) ? medians[pace]! : preparing) * 1e6,
            },
          ],
          caveats: [
            { text: { en: 'the cause is not in the profile, so only the upper bound is known', zh: 'profile 中没有原因，只知上限' } },
          ],
          removal: null,
          boundMs: medians[pace]!,
          boundMethod: {
            text: {
              en: 'step start to first kernel, less the data loader and other known causes, median of the steps',
              zh: '迭代开始到首个 kernel 的时间，减去数据加载等已知原因，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'mark-the-gap', params: { gapMs: medians[pace]! } }],
          hotspot: 'start',
        },
      ],
    };
  },
});

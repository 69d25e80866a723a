import { dataConfidence, medianOfUsed } from '../../facts/job/per-step.ts';
import type { RankFacts } from '../../model/facts.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** Layout types that run as often as a product or an attention: one for each layer. */
function perLayer(rank: RankFacts): RawEvidence['message'] | null {
  const layers = rank.operators.filter((o) => o.count >= MIN_LAYERS && LAYER.test(o.type));
  for (const { type, count } of layers) {
    const same = rank.layout!.byType.filter((t) => t.count === count);
    if (same.length === 0) continue;
    return {
      text: {
        en: '{types:code}: {n:int} times each, {us:int} µs a time, {ms:ms} in all, as often as {type:code}: one per layer, so the same place in the code',
        zh: '{types:code}：各 {n:int} 次，每次 {us:int} µs，合计 {ms:ms}，与 {type:code} 次数相同：每层一次，来自同一处代码',
      },
      params: {
        types: same.map((t) => t.type).slice(0, 3),
        n: count,
        us: same.reduce((sum, t) => sum + t.ns, 0) / count / 1e3,
        ms: same.reduce((sum, t) => sum + t.ns, 0) / 1e6,
        type,
      },
    };
  }
  return null;
}

/** Fewer are no stack of layers. */
const MIN_LAYERS = 8;
const LAYER = /matmul|attention/i;

export default defineRule({
  id: 'transpose-hotspot',
  title: { en: 'Time goes into changing layouts', zh: '转置与格式转换耗时' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'smallest removable layout time reported, as a share of the step',
        zh: '可报告的最小可消除的转置与格式转换耗时，占迭代耗时的比例',
      },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    minMs: {
      default: 0.3,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest removable layout time reported', zh: '可报告的最小可消除的转置与格式转换耗时' },
      why: {
        en: 'a dozen conversions of a small tensor',
        zh: '相当于对小张量做十几次转换',
      },
    },
    minCount: {
      default: 3,
      unit: 'count',
      min: 1,
      max: 100_000,
      description: { en: 'fewest removable conversions per step', zh: '每迭代最少可消除的转换次数' },
      why: {
        en: 'one or two conversions at the edge of the network are usually needed',
        zh: '网络边缘的一两次转换通常是必需的',
      },
    },
    informationShare: {
      default: 0.1,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'share of computing time from which layout kernels are mentioned',
        zh: '布局类 kernel 占计算耗时达到该比例时给出提示',
      },
      why: {
        en: 'one tenth of all computing is worth knowing even where nothing can be removed',
        zh: '占计算的十分之一，即使无法消除也值得知道',
      },
    },
  },
  remedies: ['keep-layout'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const seen = job.ranks.map((r, i) => ({ r, i })).filter(({ r }) => r.layout !== null && r.layout.steps.length > 0);
    if (step === null || seen.length === 0) {
      return { outcome: 'notApplicable', reason: { text: { en: 'no kernel rows to judge', zh: '没有可用的 kernel 数据' } } };
    }
    const perRank = seen.map(({ r, i }) => {
      const pick = (value: (s: NonNullable<typeof r.layout>['steps'][number]) => number): number => {
        const out = new Array<number>(Math.max(1, r.steps.length)).fill(0);
        for (const s of r.layout!.steps) if (s.step >= 0 && s.step < out.length) out[s.step] = value(s);
        return medianOfUsed(job, out) || 0;
      };
      return {
        i,
        r,
        count: pick((s) => s.count),
        ms: pick((s) => s.ns / 1e6),
        computeMs: pick((s) => s.computeNs / 1e6),
        removableMs: pick((s) => s.removableNs / 1e6),
        removableCount: pick((s) => s.removable.length),
      };
    });
    const floor = Math.max(options.minShare * step, options.minMs);
    const loud = perRank.filter((p) => p.removableMs >= floor && p.removableCount >= options.minCount);
    const worst = perRank.reduce((a, b) => (b.ms > a.ms ? b : a));
    const share = worst.computeMs > 0 ? worst.ms / worst.computeMs : 0;
    const types = worst.r.layout!.byType.slice(0, 3).map((t) => t.type);
    const base = {
      steps: job.steps.used,
      groups: [],
      frames: worst.r.layout!.sites.flatMap((s) => (s.frame === null ? [] : [s.frame])).slice(0, 1),
      symptomOf: null,
    };
    if (loud.length > 0) {
      const top = loud.find((p) => p.i === job.steps.pace) ?? loud[0]!;
      const sites = top.r.layout!.sites.slice(0, 3);
      const evidence: RawEvidence[] = [
        {
          message: {
            text: {
              en: 'rank {rank:text}: {n:int} conversions per step undo each other, {removable:ms}; all layout kernels take {ms:ms} = {share:pct} of computing',
              zh: '卡 {rank:text}：每迭代 {n:int} 次转换互相抵消，共 {removable:ms}；全部布局类 kernel 为 {ms:ms}，占计算的 {share:pct}',
            },
            params: {
              rank: top.r.rank ?? '?',
              n: top.removableCount,
              removable: top.removableMs,
              ms: top.ms,
              share: top.ms / top.computeMs,
            },
          },
          file: 'kernel_details.csv',
          rank: top.i,
        },
        ...sites.map(
          (site): RawEvidence => ({
            message: {
              text: {
                en: '{site:code}, {n:int} times, {ms:ms} (first at row {line:int})',
                zh: '{site:code}，{n:int} 次，{ms:ms}（首次在第 {line:int} 行）',
              },
              params: { site: site.description, n: site.count, ms: site.ns / 1e6, line: site.line },
            },
            file: 'kernel_details.csv',
            rank: top.i,
          }),
        ),
      ];
      const removal = new Map<number, Removal>(
        loud.map((p) => [p.i, { nodes: new Set(p.r.layout!.steps.flatMap((s) => s.removable)) }] as const),
      );
      return {
        outcome: 'findings',
        findings: [
          {
            ...base,
            title: {
              text: { en: '{n:int} layout conversions per step undo each other', zh: '每迭代有 {n:int} 次转置或格式转换互相抵消' },
              params: { n: top.removableCount },
            },
            ranks: loud.map((p) => p.i),
            confidence: top.r.layout!.typesFromNames ? 'low' : dataConfidence(job, false),
            evidence,
            caveats: [],
            removal: { likely: removal },
            boundMs: top.removableMs,
            boundMethod: { text: { en: 'kernel time of the conversions that undo each other', zh: '互相抵消的转换的 kernel 耗时' } },
            information: false,
            remedies: [{ id: 'keep-layout', params: { types: types.join(', '), removableMs: top.removableMs } }],
            hotspot: sites[0]?.description ?? 'layout',
          },
        ],
      };
    }
    if (share >= options.informationShare) {
      const layers = perLayer(worst.r);
      return {
        outcome: 'findings',
        findings: [
          {
            ...base,
            title: {
              text: {
                en: 'Layout kernels are {share:pct} of computing but {stepShare:pct} of the step',
                zh: '布局类 kernel 占计算的 {share:pct}，但只占迭代的 {stepShare:pct}',
              },
              params: { share, stepShare: worst.ms / step },
            },
            ranks: [],
            confidence: worst.r.layout!.typesFromNames ? 'low' : 'medium',
            evidence: [
              {
                message: {
                  text: {
                    en: 'rank {rank:text}: {types:code}: {n:int} kernels, {ms:ms} of {compute:ms} computing ({share:num} %); {removable:ms} of it undoes itself',
                    zh: '卡 {rank:text}：{types:code} 共 {n:int} 个 kernel，{ms:ms}，计算共 {compute:ms}（{share:num}%）；其中 {removable:ms} 互相抵消',
                  },
                  params: {
                    rank: worst.r.rank ?? '?',
                    types,
                    n: worst.count,
                    ms: worst.ms,
                    compute: worst.computeMs,
                    share: share * 100,
                    removable: worst.removableMs,
                  },
                },
                file: 'kernel_details.csv',
                rank: worst.i,
              },
              ...(layers === null ? [] : [{ message: layers, file: 'kernel_details.csv', rank: worst.i }]),
            ],
            caveats: worst.r.layout!.typesFromNames
              ? [
                  {
                    text: {
                      en: 'Level0 has no operator types; they are derived from the kernel names',
                      zh: 'Level0 没有算子类型，类型由 kernel 名称推断',
                    },
                  },
                ]
              : [],
            removal: null,
            boundMs: 0,
            boundMethod: { text: { en: 'nothing that can be proven removable', zh: '没有可证明能消除的部分' } },
            information: true,
            remedies: [{ id: 'keep-layout', params: { types: types.join(', '), removableMs: worst.removableMs } }],
            hotspot: 'layout-share',
          },
        ],
      };
    }
    if (worst.ms >= floor && !job.ranks.some((r) => r.capabilities.has('formats'))) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'layout kernels take {ms:ms} per step; whether they undo each other needs shapes and formats: `profiler_level=Level1` and `record_shapes=True`',
            zh: '布局类 kernel 每迭代 {ms:ms}；能否互相抵消需要 shape 与格式：`profiler_level=Level1` 与 `record_shapes=True`',
          },
          params: { ms: worst.ms },
        },
      };
    }
    return {
      outcome: 'pass',
      reason: {
        text: worst.r.layout!.typesFromNames
          ? {
              en: 'by their names, as Level0 has no operator types, layout kernels take {ms:ms} per step, {share:pct} of computing',
              zh: 'Level0 没有算子类型，按 kernel 名称推断，布局类 kernel 每迭代 {ms:ms}，占计算的 {share:pct}',
            }
          : {
              en: 'layout kernels take {ms:ms} per step, {share:pct} of computing',
              zh: '布局类 kernel 每迭代 {ms:ms}，占计算的 {share:pct}',
            },
        params: { ms: worst.ms, share },
      },
    };
  },
});

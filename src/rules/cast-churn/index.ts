import { sharers } from '../../facts/job/culprits.ts';
import { spokesman } from '../../facts/job/kernels.ts';
import { dataConfidence, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

export default defineRule({
  id: 'cast-churn',
  title: { en: 'Casts that undo or repeat each other', zh: '互相抵消或重复的类型转换' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types', 'formats'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'smallest removable cast time reported, as a share of the step',
        zh: '可报告的最小可消除转换耗时，占迭代耗时的比例',
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
      description: { en: 'smallest removable cast time reported', zh: '可报告的最小可消除转换耗时' },
      why: {
        en: 'a dozen casts of a small tensor, which nobody would look for',
        zh: '相当于对小张量做十几次转换，不值得查找',
      },
    },
    minCount: {
      default: 3,
      unit: 'count',
      min: 1,
      max: 100_000,
      description: { en: 'fewest removable casts per step', zh: '每迭代最少可消除的转换次数' },
      why: {
        en: 'one cast at the edge of a model belongs to its inputs or its loss',
        zh: '模型边缘的一次转换属于输入或 loss',
      },
    },
  },
  remedies: ['drop-casts'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const seen = job.ranks.flatMap((r, i) => (r.casts === null ? [] : [i]));
    if (step === null || seen.length === 0)
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'no kernel rows with data types to judge', zh: '没有带数据类型的 kernel 数据' } },
      };
    const steps = (rank: number) => job.ranks[rank]!.casts!.steps;
    type Step = ReturnType<typeof steps>[number];
    const perStep = (rank: number, amount: (s: Step) => number): number =>
      medianOfUsed(job, sumByStep(Math.max(1, job.ranks[rank]!.steps.length), steps(rank), amount)) || 0;
    const floor = Math.max(options.minShare * step, options.minMs);
    const findings: RawFinding[] = [];
    const used = job.steps.used;

    for (const kind of ['pair', 'weight'] as const) {
      const isPair = kind === 'pair';
      const ms = job.ranks.map((_, r) => (seen.includes(r) ? perStep(r, (s) => (isPair ? s.removableNs : s.repeatedNs) / 1e6) : 0));
      const count = job.ranks.map((_, r) => (seen.includes(r) ? perStep(r, (s) => (isPair ? s.removable : s.repeated).length) : 0));
      const ranks = sharers(ms, floor).filter((r) => count[r]! >= options.minCount);
      if (ranks.length === 0) continue;
      const top = spokesman(job, ms, ranks);
      const facts = job.ranks[top]!;
      const sites = facts.casts!.sites.filter((s) => s.kind === kind).slice(0, 3);
      const passes = Math.max(2, medianOfUsed(job, facts.phases.forwards) || 2);
      const removal = (pick: (s: Step) => readonly number[]): Map<number, Removal> =>
        new Map(ranks.map((r) => [r, { nodes: new Set(steps(r).flatMap((s) => [...pick(s)])) }] as const));
      const narrows = isPair && sites.some((s) => /FLOAT$|FLOAT32|DOUBLE/.test(s.from) && /16|BF/.test(s.to));
      const evidence: RawEvidence[] = [
        {
          message: isPair
            ? {
                text: {
                  en: 'rank {rank:text}: {n:int} casts per step convert a tensor and back, {ms:ms}, with no kernel between that reads the converted one; all casts take {all:ms}',
                  zh: '卡 {rank:text}：每迭代 {n:int} 次转换把张量转过去又转回来，共 {ms:ms}，其间没有 kernel 读取转换结果；全部转换为 {all:ms}',
                },
                params: { rank: facts.rank ?? '?', n: count[top]!, ms: ms[top]!, all: perStep(top, (s) => s.ns / 1e6) },
              }
            : {
                text: {
                  en: 'rank {rank:text}: weights are cast in each of {passes:int} passes per step; the {n:int} casts after the first pass take {ms:ms}',
                  zh: '卡 {rank:text}：每迭代 {passes:int} 次前向都转换权重；首次前向之后的 {n:int} 次转换共 {ms:ms}',
                },
                params: { rank: facts.rank ?? '?', passes, n: count[top]!, ms: ms[top]! },
              },
          file: 'kernel_details.csv',
          rank: top,
        },
        ...sites.map(
          (site): RawEvidence => ({
            message: {
              text: {
                en: '{from:code} → {to:code}, shape {shape:code}: {n:int} times, {ms:ms} (first at row {line:int})',
                zh: '{from:code} → {to:code}，shape {shape:code}：{n:int} 次，{ms:ms}（首次在第 {line:int} 行）',
              },
              params: { from: site.from, to: site.to, shape: site.shape, n: site.count, ms: site.ns / 1e6, line: site.line },
            },
            file: 'kernel_details.csv',
            rank: top,
          }),
        ),
      ];
      findings.push({
        title: isPair
          ? {
              text: { en: '{n:int} casts per step undo each other', zh: '每迭代有 {n:int} 次类型转换互相抵消' },
              params: { n: count[top]! },
            }
          : {
              text: {
                en: 'The same weights are cast {passes:int} times per step',
                zh: '同样的权重每迭代被转换 {passes:int} 次',
              },
              params: { passes },
            },
        ranks,
        steps: used,
        groups: [],
        confidence: dataConfidence(job, false),
        evidence,
        caveats: isPair
          ? [
              {
                text: {
                  en: 'which kernel reads which tensor is told by shape and data type',
                  zh: 'kernel 与张量的对应关系由 shape 与数据类型推断',
                },
              },
            ]
          : [],
        removal: isPair
          ? { likely: removal((s) => s.removable), floor: removal((s) => s.certain) }
          : { likely: removal((s) => s.repeated) },
        boundMs: ms[top]!,
        boundMethod: isPair
          ? { text: { en: 'kernel time of the casts that undo each other', zh: '互相抵消的转换的 kernel 耗时' } }
          : { text: { en: 'kernel time of the casts after the first pass', zh: '首次前向之后的转换的 kernel 耗时' } },
        information: false,
        symptomOf: null,
        frames: sites.flatMap((s) => (s.frame === null ? [] : [s.frame])).slice(0, 1),
        remedies: [{ id: 'drop-casts', params: { kind, passes, narrows, from: sites[0]?.from ?? null, to: sites[0]?.to ?? null } }],
        hotspot: `${kind}:${sites[0]?.from ?? ''}:${sites[0]?.to ?? ''}:${sites[0]?.shape ?? ''}`,
      });
    }
    if (findings.length > 0) return { outcome: 'findings', findings };
    const most = seen.map((r) => perStep(r, (s) => s.ns / 1e6));
    const removable = seen.map((r) => perStep(r, (s) => (s.removableNs + s.repeatedNs) / 1e6));
    return {
      outcome: 'pass',
      reason: {
        text: {
          en: 'casts take {ms:ms} per step; {removable:ms} of it undoes or repeats itself',
          zh: '类型转换每迭代 {ms:ms}；其中 {removable:ms} 互相抵消或重复',
        },
        params: { ms: Math.max(0, ...most), removable: Math.max(0, ...removable) },
      },
    };
  },
});

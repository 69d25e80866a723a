import { sharers } from '../../facts/job/culprits.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { spokesman } from '../../facts/job/kernels.ts';
import { dataConfidence, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import type { OptimizerFacts } from '../../model/facts.ts';
import type { L10n } from '../../model/lang.ts';
import { defineRule, type RawFinding } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

type Call = OptimizerFacts['calls'][number];

/** Parameter, gradient and both moments are read, parameter and moments written: what a fused Adam cannot do without. */
const ADAM_PASSES = 7;
/** torch's own fused update exists for this class; Adam without weight decay is the same update. */
const FUSED_CLASSES = /^Adam(W)?$/;

/** Part of the kernels' time that one pass over memory would leave; 1 where no fused update of this class is known. */
function left(call: Call): number {
  return FUSED_CLASSES.test(call.name) && call.passes > ADAM_PASSES ? ADAM_PASSES / call.passes : 1;
}

function isUnfused({ kind }: Call): boolean {
  return kind === 'foreach' || kind === 'combined' || kind === 'loop';
}

/** ns that a fused update would not need: passes over memory, and for a loop the waiting for its launches. */
function saved(call: Call): number {
  if (!isUnfused(call)) return 0;
  return call.ns * (1 - left(call)) + (call.kind === 'loop' ? call.idle : 0);
}

/** A loop keeps one kernel per operation, or per parameter where these are fewer; lists and long tensors keep their launches. */
function fused(calls: readonly Call[], facts: JobFacts['ranks'][number]): Removal {
  const nodes = new Set<number>();
  const durations = new Map<number, number>();
  for (const call of calls) {
    if (!isUnfused(call)) continue;
    const keep = call.kind === 'loop' ? Math.max(1, Math.min(call.period, call.repeats)) : call.nodes.length;
    call.nodes.forEach((node, i) => {
      if (i >= keep) nodes.add(node);
      else durations.set(node, call.kind === 'loop' ? (call.ns * left(call)) / keep : facts.tape!.duration[node]! * left(call));
    });
  }
  return { nodes, durations };
}

const PASSES: L10n = {
  en: '{name:code} passes over all parameters {passes:num} times per step, a fused update {needed:int} times',
  zh: '{name:code} 每迭代对全部参数访存 {passes:num} 遍，融合更新只需 {needed:int} 遍',
};
const HOW: Readonly<Record<'foreach' | 'combined' | 'loop', L10n>> = {
  foreach: PASSES,
  combined: PASSES,
  loop: {
    en: '{name:code} updates one parameter after the other: {n:int} kernels per step',
    zh: '{name:code} 逐个参数更新：每迭代 {n:int} 个 kernel',
  },
};

export default defineRule({
  id: 'unfused-optimizer',
  title: { en: 'The optimizer updates the parameters in many passes', zh: '优化器更新参数需要多遍访存' },
  category: 'compute',
  maturity: 'preview',
  needs: ['steps', 'kernels', 'host-ops'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest possible gain reported, as a share of the step', zh: '可报告的最小收益上限，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    minMs: {
      default: 1,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest possible gain reported', zh: '可报告的最小收益上限' },
      why: {
        en: 'another optimizer has to be checked for its results; that is not worth less',
        zh: '更换优化器要核对结果，更少则不值得',
      },
    },
    minFillShare: {
      default: 0.01,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'smallest time of filled gradients reported, as a share of the step',
        zh: '可报告的最小梯度清零耗时，占迭代耗时的比例',
      },
      why: {
        en: 'dropping gradients is one keyword and changes no result, so less is worth it',
        zh: '不填充梯度只需一个参数，且不改变结果，因此下限可以更低',
      },
    },
  },
  remedies: ['use-fused-optimizer'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const seen = job.ranks.flatMap((r, i) => (r.optimizers !== null && r.optimizers.calls.length > 0 ? [i] : []));
    if (step === null || seen.length === 0)
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'no kernels of an optimizer step were recorded', zh: '没有采集到优化器更新的 kernel' } },
      };
    const used = new Set(job.steps.usedIndex);
    const floor = Math.max(options.minShare * step, options.minMs);
    const sum = <T extends { readonly step: number }>(r: number, list: readonly T[], amount: (x: T) => number): number =>
      medianOfUsed(job, sumByStep(job.ranks[r]!.steps.length, list, amount)) || 0;
    const callsOf = (r: number): readonly Call[] => job.ranks[r]!.optimizers?.calls ?? [];
    const fillsOf = (r: number): OptimizerFacts['fills'] => job.ranks[r]!.optimizers?.fills ?? [];
    const gain = job.ranks.map((_, r) => sum(r, callsOf(r), (c) => saved(c) / 1e6));
    const fill = job.ranks.map((_, r) => sum(r, fillsOf(r), (f) => (f.end - f.start) / 1e6));
    const findings: RawFinding[] = [];
    const common = { steps: job.steps.used, groups: [], information: false, symptomOf: null };

    const slow = sharers(gain, floor);
    if (slow.length > 0) {
      const top = spokesman(job, gain, slow);
      const facts = job.ranks[top]!;
      const calls = callsOf(top).filter((c) => used.has(c.step) && isUnfused(c));
      const call = calls.reduce((a, b) => (saved(b) > saved(a) ? b : a), calls[0]!);
      const kind = call.kind as keyof typeof HOW;
      const kernels = sum(top, callsOf(top), (c) => c.nodes.length);
      const params = {
        rank: facts.rank ?? '?',
        name: call.name,
        n: kernels,
        passes: call.passes,
        needed: ADAM_PASSES,
        ms: call.ns / 1e6,
        idle: call.idle / 1e6,
      };
      findings.push({
        ...common,
        title: { text: HOW[kind], params },
        ranks: slow,
        confidence: dataConfidence(job, kind === 'loop'),
        evidence: [
          {
            message: {
              text: {
                en: 'rank {rank:text}: {n:int} kernels of the update take {ms:ms}, the card is idle {idle:ms} between them',
                zh: '卡 {rank:text}：更新的 {n:int} 个 kernel 共 {ms:ms}，其间空闲 {idle:ms}',
              },
              params,
            },
            file: 'trace_view.json',
            rank: top,
            step: facts.steps[call.step]?.id ?? null,
            start: call.start,
            duration: call.end - call.start,
          },
          {
            message: {
              text: {
                en: 'the update is {types:code}',
                zh: '更新由 {types:code} 组成',
              },
              params: { types: [...call.types].slice(0, 12) },
            },
            file: 'trace_view.json',
            rank: top,
          },
        ],
        caveats: [
          {
            text: {
              en: 'a fused update launches one kernel per parameter and can be slower where the host is late: the gain is an upper bound, the next profile decides',
              zh: '融合更新逐个参数下发 kernel，Host 下发不及时反而会变慢：收益为上限，以下一次 profile 为准',
            },
          },
        ],
        removal: { likely: new Map(slow.map((r) => [r, fused(callsOf(r), job.ranks[r]!)] as const)) },
        ceilingOnly: true,
        boundMs: gain[top]!,
        boundMethod: {
          text: {
            en: 'passes over memory that a fused update does not make, at the pace of this one, and the idle time of a loop',
            zh: '融合更新省去的访存（按当前带宽）与逐参数循环中的空闲',
          },
        },
        explainedBy: ['small-op-fragmentation'],
        frames: call.frame === null ? [] : [call.frame],
        remedies: [
          {
            id: 'use-fused-optimizer',
            params: { what: 'update', optimizer: call.name, kind, tensors: Number.isNaN(call.tensors) ? null : call.tensors },
          },
        ],
        hotspot: `${kind}:${call.name}`,
      });
    }

    const filled = sharers(fill, Math.max(options.minFillShare * step, options.minMs));
    if (filled.length > 0) {
      const top = spokesman(job, fill, filled);
      const facts = job.ranks[top]!;
      const fills = fillsOf(top).filter((f) => used.has(f.step));
      const one = fills[0] ?? fillsOf(top)[0]!;
      findings.push({
        ...common,
        title: {
          text: {
            en: 'zero_grad fills {n:int} gradients with zeros in every step',
            zh: '每个迭代的 zero_grad 把 {n:int} 个梯度清零',
          },
          params: { n: sum(top, fillsOf(top), (f) => f.nodes.length) },
        },
        ranks: filled,
        confidence: dataConfidence(job, true),
        evidence: [
          {
            message: {
              text: {
                en: 'rank {rank:text}: the fills take {ms:ms} on the card, first to last {span:ms}',
                zh: '卡 {rank:text}：清零在卡上耗时 {ms:ms}，首尾相距 {span:ms}',
              },
              params: { rank: facts.rank ?? '?', ms: one.ns / 1e6, span: (one.end - one.start) / 1e6 },
            },
            file: 'trace_view.json',
            rank: top,
            step: facts.steps[one.step]?.id ?? null,
            start: one.start,
            duration: one.end - one.start,
          },
        ],
        caveats: [],
        removal: { likely: new Map(filled.map((r) => [r, { nodes: new Set(fillsOf(r).flatMap((f) => [...f.nodes])) }] as const)) },
        boundMs: fill[top]!,
        boundMethod: {
          text: { en: 'time from the first fill to the last, median of the steps', zh: '首个到最后一个清零的时间，各迭代的中位数' },
        },
        frames: one.frame === null ? [] : [one.frame],
        remedies: [
          { id: 'use-fused-optimizer', params: { what: 'zero-grad', optimizer: callsOf(top)[0]?.name ?? '', kind: '', tensors: null } },
        ],
        hotspot: 'zero-grad',
      });
    }
    if (findings.length > 0) return { outcome: 'findings', findings };
    const kinds = [...new Set(seen.flatMap((r) => callsOf(r).map((c) => c.kind)))];
    return {
      outcome: 'pass',
      reason: {
        text: {
          en: 'the update ({kinds:code}) takes {ms:ms} per step; a fused one could save at most {saved:ms}',
          zh: '参数更新（{kinds:code}）每迭代 {ms:ms}；融合最多节省 {saved:ms}',
        },
        params: { kinds, ms: Math.max(...seen.map((r) => sum(r, callsOf(r), (c) => c.ns / 1e6))), saved: Math.max(0, ...gain) },
      },
    };
  },
});

import { sharers } from '../../facts/job/culprits.ts';
import { fuse, fusedNs, perStep, savedNs } from '../../facts/job/fusion.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { spokesman } from '../../facts/job/kernels.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import type { FusionPattern, FusionSequence } from '../../model/facts.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';

/** Chinese sets a space behind a Latin name. */
const NAMES: Readonly<Record<FusionPattern, L10n>> = {
  attention: { en: 'Attention', zh: '注意力' },
  'expert-loop': { en: 'The expert layer', zh: '专家层' },
  gelu: { en: 'GELU', zh: 'GELU ' },
  'layer-norm': { en: 'LayerNorm', zh: 'LayerNorm ' },
  'masked-softmax': { en: 'Masked softmax', zh: '带掩码的 softmax ' },
  'rms-norm': { en: 'RMSNorm', zh: 'RMSNorm ' },
  rotary: { en: 'Rotary embedding', zh: '旋转位置编码' },
  softmax: { en: 'Softmax', zh: 'softmax ' },
  swiglu: { en: 'SwiGLU', zh: 'SwiGLU ' },
  'transposed-batch': { en: 'A batched product', zh: '批量矩阵乘' },
  'transposed-product': { en: 'A matrix product', zh: '矩阵乘' },
};

const COPIES: ReadonlySet<FusionPattern> = new Set(['transposed-batch', 'transposed-product']);
/** What a fused attention takes is bound from below only; and products that read other axes may be slower themselves. */
const BOUND_ONLY: ReadonlySet<FusionPattern> = new Set(['attention', 'transposed-batch']);
/** Their fused operators have a backward of their own, so that a forward without one has been seen in part only. */
const WITH_BACKWARD: ReadonlySet<FusionPattern> = new Set([
  'gelu',
  'layer-norm',
  'masked-softmax',
  'rms-norm',
  'rotary',
  'softmax',
  'swiglu',
]);

function titleOf(pattern: FusionPattern, kernels: number, fused: number): Message {
  const name = NAMES[pattern];
  if (COPIES.has(pattern))
    return {
      text: {
        en: `${name.en} reads copies in another order: {n:int} transposes per step feed it and nothing else`,
        zh: `${name.zh}的输入先被转置复制：每迭代 {n:int} 次转置只为它服务`,
      },
      params: { n: kernels },
    };
  if (pattern === 'expert-loop')
    return {
      text: {
        en: `${name.en} runs one expert after the other: {n:int} kernels per step`,
        zh: `${name.zh}逐个专家执行：每迭代 {n:int} 个 kernel`,
      },
      params: { n: kernels },
    };
  return {
    text: {
      en: `${name.en} is written out: {n:int} kernels per step do what {fused:int} fused ones can`,
      zh: `${name.zh}由小算子拼成：每迭代 {n:int} 个 kernel，融合后只需 {fused:int} 个`,
    },
    params: { n: kernels, fused },
  };
}

function evidenceOf(s: FusionSequence, rank: number, label: number | string, step: number | null): RawEvidence {
  const isMoving = s.needed > 0 && Number.isFinite(s.needed) && Number.isFinite(s.bytes);
  return {
    message: {
      text: {
        en: `rank {rank:text}: {types:code} on {shape:code} {dataType:code}, {n:int} times in the capture, {ms:ms}${isMoving ? ': {bytes:bytes} moved each time, {needed:bytes} needed' : ''} (first at row {line:int})`,
        zh: `卡 {rank:text}：{types:code} 处理 {shape:code} {dataType:code}，采集期间 {n:int} 次，共 {ms:ms}${isMoving ? '：每次搬运 {bytes:bytes}，所需仅 {needed:bytes}' : ''}（首次在第 {line:int} 行）`,
      },
      params: {
        rank: label,
        types: s.types.slice(0, 14),
        shape: s.shape,
        dataType: s.dataType,
        n: s.count,
        ms: s.ns / 1e6,
        bytes: s.bytes,
        needed: s.needed,
        line: s.line,
      },
    },
    file: 'kernel_details.csv',
    rank,
    step,
    start: s.start,
    duration: s.duration,
  };
}

/** Sequences of a rank by pattern. Copies around a batched product can only be taken in by an operator without a backward. */
function byPattern(job: JobFacts, rank: number, trains: boolean): Map<FusionPattern, FusionSequence[]> {
  const out = new Map<FusionPattern, FusionSequence[]>();
  for (const s of job.ranks[rank]!.fusion?.sequences ?? []) {
    if (s.pattern === null || (s.pattern === 'transposed-batch' && trains)) continue;
    if (Number.isNaN(fusedNs(s, 'likely'))) continue;
    const list = out.get(s.pattern);
    if (list === undefined) out.set(s.pattern, [s]);
    else list.push(s);
  }
  return out;
}

export default defineRule({
  id: 'affinity-api',
  title: { en: 'A known formula is written out although a fused operator computes it', zh: '已有融合算子的公式仍由小算子拼成' },
  category: 'compute',
  maturity: 'preview',
  needs: ['kernels', 'kernel-types'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'smallest gain of one formula that is reported, as a share of the step',
        zh: '单个公式可报告的最小收益，占迭代耗时的比例',
      },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise, and each replacement has to be checked for its rounding',
        zh: '低于迭代的 2% 时，变化与噪声无法区分；且每处替换都要核对舍入',
      },
    },
  },
  remedies: ['use-affinity-api'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const seen = job.ranks.flatMap((r, i) => (r.fusion === null ? [] : [i]));
    if (step === null || seen.length === 0)
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'shapes and data types of what the kernels read and write were not recorded',
            zh: '没有 kernel 输入输出的 shape 与数据类型',
          },
        },
      };
    const trains = job.ranks.some(
      (r) => r.phases.backwards.some((b) => b.length > 0) || r.operators.some((o) => /Grad(V\d|D)?$|^Apply(Adam|Momentum)/.test(o.type)),
    );
    const found = job.ranks.map((_, r) => byPattern(job, r, trains));
    const patterns = [...new Set(found.flatMap((f) => [...f.keys()]))].sort();
    const findings: RawFinding[] = [];
    let largest = 0;
    for (const pattern of patterns) {
      const saved = job.ranks.map((facts, r) => perStep(job, facts, found[r]!.get(pattern) ?? [], (s) => savedNs(s) / 1e6));
      largest = Math.max(largest, ...saved);
      const ranks = sharers(saved, options.minShare * step);
      if (ranks.length > 0) findings.push(findingOf(job, pattern, found, ranks, saved, trains));
    }
    if (findings.length > 0) return { outcome: 'findings', findings };
    return {
      outcome: 'pass',
      reason:
        patterns.length === 0
          ? { text: { en: 'no formula with a fused operator is written out', zh: '没有发现可由融合算子替代的公式' } }
          : {
              text: {
                en: 'of formulas with a fused operator, the costliest written out could gain {ms:ms} per step',
                zh: '可由融合算子替代的公式中，收益最大的每迭代 {ms:ms}',
              },
              params: { ms: largest },
            },
    };
  },
});

function findingOf(
  job: JobFacts,
  pattern: FusionPattern,
  found: readonly ReadonlyMap<FusionPattern, readonly FusionSequence[]>[],
  ranks: readonly number[],
  saved: readonly number[],
  trains: boolean,
): RawFinding {
  const of = (r: number): readonly FusionSequence[] => found[r]!.get(pattern) ?? [];
  const top = spokesman(job, saved, ranks);
  const facts = job.ranks[top]!;
  const sequences = of(top);
  const kernels = perStep(job, facts, sequences, (s) => s.size);
  const fused = perStep(job, facts, sequences, (s) => (s.repeats > 1 ? s.size / s.repeats : 1));
  const removal = (pace: Parameters<typeof fuse>[1]): Map<number, ReturnType<typeof fuse>> =>
    new Map(ranks.map((r) => [r, fuse(of(r), pace)] as const));
  const isHalf = trains && WITH_BACKWARD.has(pattern) && !sequences.some((s) => s.phase === 'backward');
  const frames = sequences.flatMap((s) => (s.frame === null ? [] : [s.frame]));
  const first = sequences[0]!;
  return {
    title: titleOf(pattern, kernels, fused),
    ranks,
    steps: job.steps.used,
    groups: [],
    confidence: dataConfidence(job, false),
    evidence: sequences.slice(0, 3).map((s) => evidenceOf(s, top, facts.rank ?? '?', facts.steps[s.steps[0]!]?.id ?? null)),
    caveats: [
      {
        text: {
          en: 'what a kernel reads is told by shape, type and order: the profile holds no addresses',
          zh: 'kernel 之间的数据关系由 shape、类型与顺序推断：profile 中没有地址',
        },
      },
      ...(isHalf
        ? [
            {
              text: {
                en: 'only the forward was recognised; its backward changes with it and is not counted',
                zh: '只识别出前向；对应的反向会一并改变，未计入收益',
              },
            },
          ]
        : []),
    ],
    removal: { likely: removal('likely'), floor: removal('slow'), ceiling: removal('best') },
    ceilingOnly: BOUND_ONLY.has(pattern),
    boundMs: saved[top]!,
    boundMethod: {
      text: {
        en: 'time of these kernels and idle time between them, less one kernel that moves only what is needed at their own pace',
        zh: '这些 kernel 的耗时与其间空闲，减去按其自身带宽只搬运所需数据的耗时',
      },
    },
    information: false,
    symptomOf: null,
    explainedBy: ['small-op-fragmentation'],
    frames: frames.slice(0, 1),
    remedies: [
      {
        id: 'use-affinity-api',
        params: {
          pattern,
          dataType: first.dataType,
          trains,
          // One tensor was cut in two: the fused operator takes it as it is.
          split: sequences.some((s) => s.types.some((t) => /^(Slice|StridedSlice|Split)/.test(t))),
          form: first.types.includes('Erf') || first.types.includes('Exp') ? 'erf' : 'tanh',
        },
      },
    ],
    hotspot: pattern,
  };
}

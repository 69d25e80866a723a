import { sharers } from '../../facts/job/culprits.ts';
import { fuse, fusedNs, perStep, savedNs } from '../../facts/job/fusion.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { spokesman } from '../../facts/job/kernels.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import type { FusionSequence } from '../../model/facts.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

/** Chains without a name of their own that come back often enough in a step. */
function chainsOf(job: JobFacts, rank: number, minRepeats: number): FusionSequence[] {
  const facts = job.ranks[rank]!;
  return (facts.fusion?.sequences ?? []).filter(
    (s) => s.pattern === null && perStep(job, facts, [s], () => 1) >= minRepeats && !Number.isNaN(fusedNs(s, 'likely')),
  );
}

export default defineRule({
  id: 'fusible-sequence',
  title: { en: 'Chains of element-wise kernels pass tensors through memory', zh: '逐元素算子链让张量反复往返内存' },
  category: 'compute',
  maturity: 'preview',
  needs: ['kernels', 'kernel-types'],
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
    minRepeats: {
      default: 5,
      unit: 'count',
      min: 1,
      max: 100_000,
      description: { en: 'occurrences of the same chain in one step', zh: '单个迭代内相同算子链的最少出现次数' },
      why: {
        en: 'a chain seen five times belongs to a layer or a loop: one change pays off in all of them',
        zh: '出现五次的链属于某层或某个循环：改一处，处处受益',
      },
    },
  },
  remedies: ['fuse-chain'],
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
    const chains = job.ranks.map((_, r) => chainsOf(job, r, options.minRepeats));
    const saved = job.ranks.map((facts, r) => perStep(job, facts, chains[r]!, (s) => savedNs(s) / 1e6));
    const ranks = sharers(saved, options.minShare * step);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'repeated chains of element-wise kernels take {ms:ms} per step, of which fusing could save at most {saved:ms}',
            zh: '重复出现的逐元素算子链每迭代 {ms:ms}，融合最多节省 {saved:ms}',
          },
          params: {
            ms: Math.max(0, ...seen.map((r) => perStep(job, job.ranks[r]!, chains[r]!, (s) => s.ns / s.count / 1e6))),
            saved: Math.max(0, ...saved),
          },
        },
      };
    }
    const top = spokesman(job, saved, ranks);
    const facts = job.ranks[top]!;
    const gain = (s: FusionSequence): number => s.count * savedNs(s);
    const list = [...chains[top]!].sort((a, b) => gain(b) - gain(a));
    const count = perStep(job, facts, list, () => 1);
    const kernels = perStep(job, facts, list, (s) => s.size);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: '{n:int} chains of element-wise kernels per step, {kernels:int} kernels, could be one kernel each',
              zh: '每迭代 {n:int} 条逐元素算子链共 {kernels:int} 个 kernel，每条可融合为一个',
            },
            params: { n: count, kernels },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, false),
          evidence: list.slice(0, 3).map(
            (s): RawEvidence => ({
              message: {
                text: {
                  en: 'rank {rank:text}: {types:code} on {shape:code} {dataType:code}, {n:int} times in the capture, {ms:ms}: {bytes:bytes} moved each time, {needed:bytes} of it not only for the next kernel (first at row {line:int})',
                  zh: '卡 {rank:text}：{types:code} 处理 {shape:code} {dataType:code}，采集期间 {n:int} 次，共 {ms:ms}：每次搬运 {bytes:bytes}，其中 {needed:bytes} 不只供下一个 kernel（首次在第 {line:int} 行）',
                },
                params: {
                  rank: facts.rank ?? '?',
                  types: s.types.slice(0, 12),
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
              rank: top,
              step: facts.steps[s.steps[0]!]?.id ?? null,
              start: s.start,
              duration: s.duration,
            }),
          ),
          caveats: [
            {
              text: {
                en: 'what the backward pass reads is still written: the saving is an upper bound',
                zh: '反向要读的中间结果仍要写出：收益为上限',
              },
            },
            {
              text: {
                en: 'what a kernel reads is told by shape, type and order: the profile holds no addresses',
                zh: 'kernel 之间的数据关系由 shape、类型与顺序推断：profile 中没有地址',
              },
            },
          ],
          removal: { likely: new Map(ranks.map((r) => [r, fuse(chains[r]!, 'likely')] as const)) },
          ceilingOnly: true,
          boundMs: saved[top]!,
          boundMethod: {
            text: {
              en: 'traffic between these kernels at the bandwidth they reach, and idle time between them, median of the steps',
              zh: '这些 kernel 之间的访存量除以其达到的带宽，加上其间空闲，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          explainedBy: ['small-op-fragmentation'],
          frames: list.flatMap((s) => (s.frame === null ? [] : [s.frame])).slice(0, 1),
          remedies: [{ id: 'fuse-chain', params: { chains: Math.round(count), types: list[0]!.types.slice(0, 6).join(', ') } }],
          hotspot: `${list[0]!.types.slice(0, 8).join()}:${list[0]!.shape}`,
        },
      ],
    };
  },
});

import { sharers } from '../../facts/job/culprits.ts';
import { spokesman } from '../../facts/job/kernels.ts';
import { dataConfidence, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

export default defineRule({
  id: 'vector-bound',
  title: { en: 'A formula streams one tensor through memory many times', zh: '一个公式让同一张量多次往返内存' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types', 'pipes', 'formats'],
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
  },
  remedies: ['fuse-formula'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const seen = job.ranks.flatMap((r, i) => (r.chains === null ? [] : [i]));
    if (step === null || seen.length === 0)
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'no counters of the memory pipes were recorded', zh: '没有访存流水的计数' } },
      };
    const perStep = (rank: number, amount: (s: { readonly ns: number; readonly savedNs: number }) => number): number => {
      const facts = job.ranks[rank]!;
      return medianOfUsed(job, sumByStep(Math.max(1, facts.steps.length), facts.chains!.steps, amount)) || 0;
    };
    const saved = job.ranks.map((_, r) => (seen.includes(r) ? perStep(r, (s) => s.savedNs / 1e6) : 0));
    const ranks = sharers(saved, options.minShare * step);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'large vector kernels that pass one tensor on take {ms:ms} per step, of which fusing could save at most {saved:ms}',
            zh: '依次处理同一张量的大 vector kernel 每迭代 {ms:ms}，融合最多节省 {saved:ms}',
          },
          params: { ms: Math.max(0, ...seen.map((r) => perStep(r, (s) => s.ns / 1e6))), saved: Math.max(0, ...saved) },
        },
      };
    }
    const top = spokesman(job, saved, ranks);
    const facts = job.ranks[top]!;
    const chains = facts.chains!.chains.slice(0, 3);
    const removal = new Map<number, Removal>(
      ranks.map((r) => {
        const durations = new Map<number, number>();
        for (const s of job.ranks[r]!.chains!.steps)
          s.nodes.forEach((node, i) => {
            durations.set(node, job.ranks[r]!.tape!.duration[node]! * s.left[i]!);
          });
        return [r, { durations }] as const;
      }),
    );
    const kernels = chains[0]!.types.length;
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: '{n:int} kernels in a row move the same {shape:code} tensor through memory',
              zh: '连续 {n:int} 个 kernel 让同一个 {shape:code} 张量往返内存',
            },
            params: { n: kernels, shape: chains[0]!.shape },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, false),
          evidence: [
            ...chains.map(
              (chain): RawEvidence => ({
                message: {
                  text: {
                    en: 'rank {rank:text}: {types:code} on {shape:code}, {n:int} times: {ms:ms} for {bytes:bytes}; {saved:ms} of it moves what only the next kernel reads (first at row {line:int})',
                    zh: '卡 {rank:text}：{types:code} 处理 {shape:code}，{n:int} 次：{ms:ms}，搬运 {bytes:bytes}；其中 {saved:ms} 只为下一个 kernel 搬运（首次在第 {line:int} 行）',
                  },
                  params: {
                    rank: facts.rank ?? '?',
                    types: [...chain.types],
                    shape: chain.shape,
                    n: chain.count,
                    ms: chain.ns / 1e6,
                    bytes: chain.bytes,
                    saved: chain.savedNs / 1e6,
                    line: chain.line,
                  },
                },
                file: 'kernel_details.csv',
                rank: top,
                start: chain.start,
                duration: chain.duration,
              }),
            ),
          ],
          caveats: [
            {
              text: {
                en: 'what the backward pass needs is still written: the saving is an upper bound',
                zh: '反向需要的中间结果仍要写出：收益为上限',
              },
            },
          ],
          removal: { likely: removal },
          ceilingOnly: true,
          boundMs: saved[top]!,
          boundMethod: {
            text: {
              en: 'traffic between these kernels at the bandwidth they reach, median of the steps',
              zh: '这些 kernel 之间的访存量除以其达到的带宽，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          explainedBy: ['affinity-api', 'fusible-sequence'],
          frames: chains.flatMap((c) => (c.frame === null ? [] : [c.frame])).slice(0, 1),
          remedies: [{ id: 'fuse-formula', params: { kernels, types: chains[0]!.types.slice(0, 6).join(', ') } }],
          hotspot: `chain:${chains[0]!.types.join()}:${chains[0]!.shape}`,
        },
      ],
    };
  },
});

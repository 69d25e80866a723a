import { smallLoops } from '../../facts/job/loops.ts';
import { dataConfidence, hostBias } from '../../facts/job/per-step.ts';
import type { FragmentFacts } from '../../model/facts.ts';
import { defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** A fused kernel moves the same data: most of the kernel time stays, what goes is the fixed cost of starting each small kernel. */
const LIKELY_SHRINK = 0.25;

/** Kernels that stay when a run is fused: one per position of the repeating sequence, or one per repetition, whichever is fewer. */
function kept(fragment: FragmentFacts): number {
  return Math.max(1, Math.min(fragment.period, fragment.repeats));
}

/** Takes the fused-away launches out; `shrink` is how much of the run's kernel time goes with them (0 none, 1 in proportion). */
function fuse(fragments: readonly FragmentFacts[], shrink: number): Removal {
  const nodes = new Set<number>();
  const durations = new Map<number, number>();
  for (const fragment of fragments) {
    const n = fragment.nodes.length;
    const keep = kept(fragment);
    const stays: number[] = [];
    const stride = n / keep;
    for (let k = 0; k < keep; k++) stays.push(fragment.nodes[Math.min(n - 1, Math.floor(k * stride))]!);
    const staying = new Set(stays);
    for (const node of fragment.nodes) if (!staying.has(node)) nodes.add(node);
    const total = fragment.busy * (1 - shrink) + fragment.busy * (keep / n) * shrink;
    for (const node of stays) durations.set(node, total / keep);
  }
  return { nodes, durations };
}

export default defineRule({
  id: 'small-op-fragmentation',
  title: { en: 'Many small operators, the host cannot feed the card', zh: '小算子过多，Host 下发跟不上' },
  category: 'host',
  maturity: 'stable',
  needs: ['steps', 'kernels', 'launches'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest starved time reported, as a share of the step', zh: '可报告的最小下发等待，占迭代耗时的比例' },
      why: {
        en: 'thousands of small kernels cost nothing while the device stays busy; only idle time counts',
        zh: '设备一直繁忙时，成千上万个小 kernel 也没有代价；只计空闲',
      },
    },
    minMs: {
      default: 1,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest starved time reported', zh: '可报告的最小下发等待' },
      why: {
        en: 'some 40 launches; less is not worth a change',
        zh: '约 40 次下发；更少则不值得修改',
      },
    },
    minKernels: {
      default: 50,
      unit: 'count',
      min: 10,
      max: 100_000,
      description: { en: 'fewest kernels in the runs of one step', zh: '单个迭代内的最少 kernel 数' },
      why: {
        en: 'fewer launches cannot cost a noticeable part of a step',
        zh: '下发次数更少时，对迭代的影响不明显',
      },
    },
    minRepeats: {
      default: 3,
      unit: 'count',
      min: 2,
      max: 1_000,
      description: { en: 'repetitions of the same sequence that make a loop', zh: '相同算子序列至少重复的次数' },
      why: {
        en: 'a sequence seen three times is a loop or a layer, not chance',
        zh: '出现三次的序列是循环或某一层，不是偶然',
      },
    },
  },
  remedies: ['fuse-small-ops'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const { loops, starvedMs: starved, kernels, ranks } = smallLoops(job, options);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'repeated runs of small kernels starve the card for at most {starved:ms} per step',
            zh: '重复的小算子序列每迭代造成的下发等待最多 {starved:ms}',
          },
          params: { starved: Math.max(0, ...starved) },
        },
      };
    }
    const pace = ranks.includes(job.steps.pace) ? job.steps.pace : ranks.reduce((a, b) => (starved[b]! > starved[a]! ? b : a));
    const facts = job.ranks[pace]!;
    const used = new Set(job.steps.usedIndex);
    const inUse = loops[pace]!.filter((f) => used.has(f.step));
    const largest = inUse.reduce((a, b) => (b.starved > a.starved ? b : a), inUse[0]!);
    const perStep = kernels[pace]!;
    const removal = (shrink: number): Map<number, Removal> => new Map(ranks.map((r) => [r, fuse(loops[r]!, shrink)] as const));
    const pattern = largest.pattern.slice(0, 8);
    const bias = hostBias(facts);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text:
              largest.where === 'optimizer'
                ? { en: 'The optimizer launches {n:int} small kernels per step', zh: '优化器每迭代下发 {n:int} 个小算子' }
                : { en: '{n:int} small kernels per step in a repeated sequence', zh: '每迭代有 {n:int} 个重复的小算子' },
            params: { n: perStep },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, true),
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text}: {n:int} kernels of {mean:ms} on average, launched every {interval:ms}; the device was starved for {starved:ms} per step',
                  zh: '卡 {rank:text}：{n:int} 个 kernel，平均 {mean:ms}，每 {interval:ms} 下发一个；NPU 每迭代因此空闲 {starved:ms}',
                },
                params: {
                  rank: facts.rank ?? '?',
                  n: perStep,
                  mean: largest.busy / largest.nodes.length / 1e6,
                  interval: facts.tape!.launchInterval / 1e6,
                  starved: starved[pace]!,
                },
              },
              file: 'trace_view.json',
              rank: pace,
              step: facts.steps[largest.step]?.id ?? null,
              start: largest.start,
              duration: largest.end - largest.start,
            },
            {
              message: {
                text: { en: 'the sequence {pattern:code} repeats {repeats:int} times', zh: '序列 {pattern:code} 重复 {repeats:int} 次' },
                params: { pattern: largest.pattern.length > pattern.length ? [...pattern, '…'] : pattern, repeats: largest.repeats },
              },
              file: 'trace_view.json',
              rank: pace,
              step: facts.steps[largest.step]?.id ?? null,
            },
          ],
          caveats:
            bias.length > 0
              ? [
                  {
                    text: {
                      en: 'the capture options {options:code} slow every launch, so the real loss is smaller',
                      zh: '采集选项 {options:code} 会拖慢每次下发，实际损失更小',
                    },
                    params: { options: bias },
                  },
                ]
              : [],
          removal: { likely: removal(LIKELY_SHRINK), floor: removal(0), ceiling: removal(1) },
          boundMs: starved[pace]!,
          boundMethod: {
            text: {
              en: 'idle time between the kernels of the runs because nothing had been launched',
              zh: '序列内因未及时下发造成的 NPU 空闲',
            },
          },
          information: false,
          symptomOf: null,
          explainedBy: ['affinity-api'],
          frames: largest.frame === null ? [] : [largest.frame],
          remedies: [
            {
              id: 'fuse-small-ops',
              params: {
                where: largest.where,
                kernels: perStep,
                pattern: pattern.slice(0, 6).join(', '),
                taskQueue: facts.settings.env.TASK_QUEUE_ENABLE ?? null,
              },
            },
          ],
          hotspot: `${largest.where}:${largest.pattern.slice(0, 6).join(',')}`,
        },
      ],
    };
  },
});

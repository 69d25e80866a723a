import { dataConfidence, medianOfUsed } from '../../facts/job/per-step.ts';
import type { CollectiveFacts, RankFacts } from '../../model/facts.ts';
import { defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

const GRADIENT_OPS = new Set(['allReduce', 'reduceScatter']);

interface MicroSteps {
  readonly step: number;
  readonly micro: number;
  /** Gradient collectives of each micro-step. */
  readonly calls: readonly (readonly CollectiveFacts[])[];
}

/** Splits the gradient collectives of a step by the forwards; null unless there is one optimizer step for several forwards. */
function microSteps(rank: RankFacts, step: number): MicroSteps | null {
  const starts = rank.phases.forwardStarts[step] ?? [];
  if (starts.length < 2 || (rank.phases.optimizerSteps[step] ?? 0) !== 1) return null;
  const { end } = rank.steps[step]!;
  const calls = starts.map((from, m) => {
    const to = starts[m + 1] ?? end;
    return rank.collectives.filter((c) => {
      // A long queue (say, while an operator compiles) launches the collectives of one micro-step during the next.
      const known = Number.isNaN(c.issued) ? c.launch : c.issued;
      const at = Number.isNaN(known) ? c.start : known;
      return GRADIENT_OPS.has(c.op) && !c.p2p && at >= from && at < to;
    });
  });
  return { step, micro: starts.length, calls };
}

export default defineRule({
  id: 'gradient-sync-per-microstep',
  title: { en: 'Gradients are synchronised in every micro-step', zh: '每个 micro batch 都同步梯度' },
  category: 'communication',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'collectives'],
  options: {
    minShare: {
      default: 0.01,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'smallest exposed time of needless collectives reported, as a share of the step',
        zh: '可报告的最小多余同步耗时，占迭代耗时的比例',
      },
      why: {
        en: 'the change keeps the numbers as they are, so half the usual floor is worth a line',
        zh: '改动不影响数值，因此取通常下限的一半',
      },
    },
    minMs: {
      default: 0.5,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest exposed time reported', zh: '可报告的最小多余同步耗时' },
      why: {
        en: 'below 0.5 ms per step there is nothing to gain',
        zh: '每迭代低于 0.5 ms 没有收益',
      },
    },
  },
  remedies: ['no-sync-accumulation'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const perRank = job.ranks.map((rank) => {
      const used = job.steps.usedIndex.map((s) => microSteps(rank, s)).filter((m): m is MicroSteps => m !== null);
      const all = rank.steps.map((_, s) => microSteps(rank, s)).filter((m): m is MicroSteps => m !== null);
      const synced = used.length > 0 && used.every((m) => m.calls.every((c) => c.length > 0));
      return { used, all, synced };
    });
    const accumulates = perRank.some((p) => p.used.length > 0);
    const ranks = perRank.map((_, i) => i).filter((i) => perRank[i]!.synced);
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: accumulates
          ? { text: { en: 'gradients are accumulated and synchronised once per optimizer step', zh: '梯度累积后每次优化器更新只同步一次' } }
          : { text: { en: 'one forward per optimizer step: there is no accumulation', zh: '每次优化器更新只有一次前向，没有梯度累积' } },
      };
    }
    const exposedMs = ranks.map((i) => {
      const out = new Array<number>(job.ranks[i]!.steps.length).fill(0);
      for (const m of perRank[i]!.used)
        out[m.step] =
          m.calls
            .slice(0, -1)
            .flat()
            .reduce((a, c) => a + c.exposed, 0) / 1e6;
      return medianOfUsed(job, out) || 0;
    });
    const loudest = Math.max(...exposedMs);
    const at = exposedMs.indexOf(loudest);
    const pace = ranks[at]!;
    const example = perRank[pace]!.used[0]!;
    const perMicro = example.calls.map((c) => c.length);
    const sharded = example.calls.flat().some((c) => c.op === 'reduceScatter');
    if (loudest < Math.max(options.minShare * step, options.minMs)) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'gradients are synchronised in each of {m:int} micro-steps, but only {ms:ms} per step is exposed',
            zh: '{m:int} 个 micro batch 各同步一次梯度，但每迭代未掩盖的只有 {ms:ms}',
          },
          params: { m: example.micro, ms: loudest },
        },
      };
    }
    const facts = job.ranks[pace]!;
    const removal = new Map<number, Removal>(
      ranks.map(
        (r) =>
          [
            r,
            {
              nodes: new Set(
                perRank[r]!.all.flatMap((m) =>
                  m.calls
                    .slice(0, -1)
                    .flat()
                    .map((c) => c.node),
                ).filter((n) => n >= 0),
              ),
            },
          ] as const,
      ),
    );
    const longest = example.calls
      .slice(0, -1)
      .flat()
      .reduce((a, b) => (b.exposed > a.exposed ? b : a));
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: { en: 'Gradients are synchronised in each of {m:int} micro-steps', zh: '{m:int} 个 micro batch 每个都同步梯度' },
            params: { m: example.micro },
          },
          ranks,
          steps: job.steps.used,
          groups: [...new Set(example.calls.flat().map((c) => c.group))].filter((g) => g !== ''),
          confidence: dataConfidence(job, false),
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text}: one optimizer step, {m:int} forwards, {n:int} gradient collectives in each; {exposed:ms} of the first {k:int} is not covered by computing',
                  zh: '卡 {rank:text}：1 次优化器更新、{m:int} 次前向，每次前向后有 {n:int} 次梯度集合通信；前 {k:int} 次的未掩盖耗时共 {exposed:ms}',
                },
                params: {
                  rank: facts.rank ?? '?',
                  m: example.micro,
                  n: perMicro[0]!,
                  exposed: loudest,
                  k: example.micro - 1,
                },
              },
              file: facts.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
              rank: pace,
              step: facts.steps[example.step]?.id ?? null,
              start: longest.start,
              duration: longest.end - longest.start,
            },
          ],
          caveats: [],
          removal: { likely: removal },
          boundMs: loudest,
          boundMethod: {
            text: {
              en: 'exposed time of the gradient collectives before the last micro-step',
              zh: '最后一个 micro batch 之前的梯度通信未掩盖耗时',
            },
          },
          information: false,
          symptomOf: null,
          frames: [
            ...(facts.phases.backwardFrame === null ? [] : [facts.phases.backwardFrame]),
            ...(facts.phases.ddpFrame === null ? [] : [facts.phases.ddpFrame]),
          ],
          remedies: [{ id: 'no-sync-accumulation', params: { microSteps: example.micro, exposedMs: loudest, sharded } }],
          hotspot: 'accumulation',
        },
      ],
    };
  },
});

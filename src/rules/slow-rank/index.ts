import { slowClocks } from '../../facts/job/frequency.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { type Culprit, compareRank, lateness, type RankDifference } from '../../facts/job/lateness.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { hasShapes, keyOf, sameWork } from '../../facts/job/same-work.ts';
import { kernelRatio, slowness, stages } from '../../facts/job/stages.ts';
import { evened } from '../../facts/job/uneven-work.ts';
import { COMPUTE, IDLE_CAUSES, type IdleCause } from '../../model/facts.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** What this rule itself reports. */
type Reason = 'device' | 'more-work' | 'host';
/** A cause with a rule of its own, on this rank only. */
const RULE_OF: Readonly<Partial<Record<IdleCause, string>>> = {
  loader: 'dataloader-stall',
  compile: 'op-recompile',
  gc: 'gc-pause',
  allocator: 'memory-alloc-stall',
  copy: 'h2d-copy',
  sync: 'stream-sync',
  preparation: 'batch-preparation',
};
/** Part of the lateness that a difference must account for to be its reason. */
const ENOUGH = 0.4;
/** Launches this much further apart than on the other ranks make a slow host. */
const SLOW_LAUNCH = 1.15;

interface Judged {
  readonly rank: number;
  readonly causedMs: number;
  readonly culprit: Culprit | null;
  readonly peers: readonly number[];
  readonly difference: RankDifference;
  readonly reason: Reason | { readonly rule: string } | 'unknown';
}

/** Why the rank is late: the largest of the differences since the previous collective that can explain it. */
function judge(job: JobFacts, rank: number, culprit: Culprit | null, causedMs: number): Judged {
  const known = culprit?.peers ?? [];
  const others = job.ranks.map((_, r) => r).filter((r) => r !== rank && slowness(job, r) === 1);
  const peers = known.length > 0 ? known : others;
  const d = compareRank(job, rank, peers);
  const reason = (): Judged['reason'] => {
    const compute = d.computeMs - d.othersComputeMs;
    const slow = slowness(job, rank);
    // A rank alone in its stage has no peers of the same work: only its kernels tell.
    if (culprit === null) return slow > 1 ? bySlowKernels() : 'unknown';
    const named = IDLE_CAUSES.filter((cause) => RULE_OF[cause] !== undefined);
    const idle = named.reduce((a, b) => (d.idleMs[b] > d.idleMs[a] ? b : a));
    const best = Math.max(compute, d.idleMs[idle]);
    if (best >= ENOUGH * causedMs) {
      if (d.idleMs[idle] === best) return { rule: RULE_OF[idle]! };
      // Kernels without shapes cannot be told from more work; the same number of them is the best there is.
      if (hasShapes(job.ranks[rank]!)) return slowerMs(job, { rank, difference: d }) >= ENOUGH * compute ? bySlowKernels() : 'more-work';
      return Math.abs(d.kernels - d.othersKernels) > 0.02 * d.othersKernels ? 'more-work' : bySlowKernels();
    }
    return d.launchNs > SLOW_LAUNCH * d.othersLaunchNs ? 'host' : 'unknown';
  };
  const bySlowKernels = (): Judged['reason'] => (slowClocks(job).some((c) => c.rank === rank) ? { rule: 'frequency-drop' } : 'device');
  return { rank, causedMs, culprit, peers, difference: d, reason: reason() };
}

/** What its kernels take longer than the same kernels of the others, ms per step. */
function slowerMs(job: JobFacts, { rank, difference }: Pick<Judged, 'rank' | 'difference'>): number {
  return difference.computeMs * (1 - 1 / kernelRatio(job, rank));
}

/** Kernel times of the rank set to what the others need for the same kernels. */
function normalDevice(job: JobFacts, rank: number): Removal {
  const facts = job.ranks[rank]!;
  const { others } = sameWork(job)[rank]!;
  const tape = facts.tape!;
  const sums = new Map<string, { n: number; ns: number }>();
  for (let i = 0; i < tape.start.length; i++) {
    if (tape.kind[i] !== COMPUTE) continue;
    const sum = sums.get(keyOf(facts, i)) ?? { n: 0, ns: 0 };
    sums.set(keyOf(facts, i), { n: sum.n + 1, ns: sum.ns + tape.duration[i]! });
  }
  const durations = new Map<number, number>();
  for (let i = 0; i < tape.start.length; i++) {
    if (tape.kind[i] !== COMPUTE) continue;
    const key = keyOf(facts, i);
    const other = others.get(key);
    if (other === undefined) continue;
    const { n, ns } = sums.get(key)!;
    durations.set(i, tape.duration[i]! * Math.min(1, (other * n) / ns));
  }
  return { durations };
}

const TITLES: Readonly<Record<Reason, { readonly one: L10n; readonly many: L10n }>> = {
  device: {
    one: {
      en: 'Rank {rank:text} computes {slower:pct} slower and the others wait for it',
      zh: '卡 {rank:text} 计算慢 {slower:pct}，其余卡等它',
    },
    many: {
      en: 'Ranks {ranks:ranks} compute up to {slower:pct} slower and the others wait for them',
      zh: '卡 {ranks:ranks} 计算最多慢 {slower:pct}，其余卡等它们',
    },
  },
  'more-work': {
    one: { en: 'Rank {rank:text} has more work and the others wait for it', zh: '卡 {rank:text} 的工作更多，其余卡等它' },
    many: { en: 'Ranks {ranks:ranks} have more work and the others wait for them', zh: '卡 {ranks:ranks} 的工作更多，其余卡等它们' },
  },
  host: {
    one: { en: 'The host of rank {rank:text} is slower and the others wait for it', zh: '卡 {rank:text} 的 Host 更慢，其余卡等它' },
    many: {
      en: 'The hosts of ranks {ranks:ranks} are slower and the others wait for them',
      zh: '卡 {ranks:ranks} 的 Host 更慢，其余卡等它们',
    },
  },
};

function why(job: JobFacts, { rank, difference: d }: Judged, reason: Reason): Message {
  const r = job.ranks[rank]!.rank ?? '?';
  switch (reason) {
    case 'device':
      if (hasShapes(job.ranks[rank]!)) {
        return {
          text: {
            en: 'rank {r:text}: kernels of the same type and shapes take {slower:pct} longer than on the other ranks ({cover:pct} of its kernel time can be compared); {own:ms} of kernels per step',
            zh: '卡 {r:text}：类型和 shape 相同的 kernel 比其余卡慢 {slower:pct}（可对比的部分占其 kernel 耗时的 {cover:pct}）；每迭代 kernel 共 {own:ms}',
          },
          params: { r, slower: kernelRatio(job, rank) - 1, cover: sameWork(job)[rank]!.cover, own: d.computeMs },
        };
      }
      return {
        text: {
          en: 'rank {r:text}: same {n:int} kernels per step, {own:ms} against {others:ms} on the other ranks ({slower:pct} slower)',
          zh: '卡 {r:text}：kernel 数同为 {n:int}，每迭代 {own:ms}，其余卡 {others:ms}（慢 {slower:pct}）',
        },
        params: { r, n: d.kernels, own: d.computeMs, others: d.othersComputeMs, slower: d.computeMs / d.othersComputeMs - 1 },
      };
    case 'more-work':
      return {
        text: {
          en: 'rank {r:text}: {own:ms} of kernels per step against {others:ms} on the other ranks ({n:int} kernels against {o:int}); kernels of the same shapes take as long, so it has more work',
          zh: '卡 {r:text}：每迭代 kernel {own:ms}，其余卡 {others:ms}（{n:int} 个对 {o:int} 个）；相同 shape 的 kernel 耗时一致，因此是工作更多',
        },
        params: { r, own: d.computeMs, others: d.othersComputeMs, n: d.kernels, o: d.othersKernels },
      };
    case 'host':
      return {
        text: {
          en: 'rank {r:text}: its host launches every {own:ms}, the others every {others:ms}',
          zh: '卡 {r:text}：Host 每 {own:ms} 下发一次，其余卡每 {others:ms} 一次',
        },
        params: { r, own: d.launchNs / 1e6, others: d.othersLaunchNs / 1e6 },
      };
  }
}

function findingOf(job: JobFacts, reason: Reason, judged: readonly Judged[]): RawFinding {
  const late = lateness(job);
  const first = judged[0]!;
  const facts = job.ranks[first.rank]!;
  const removal = new Map<number, Removal>();
  const used = new Set(job.steps.usedIndex);
  for (const j of judged) {
    if (job.ranks[j.rank]!.tape === null) continue;
    if (reason === 'device') removal.set(j.rank, normalDevice(job, j.rank));
    else if (reason === 'host') removal.set(j.rank, { hostFactor: j.difference.othersLaunchNs / j.difference.launchNs });
  }
  if (reason === 'more-work')
    for (const [r, even] of evened(job, [...new Set(judged.flatMap((j) => [j.rank, ...j.peers]))], (step) => (used.has(step) ? 0 : -1)))
      removal.set(r, even);
  const slower = Math.max(
    ...judged.map((j) => (hasShapes(facts) ? kernelRatio(job, j.rank) : j.difference.computeMs / j.difference.othersComputeMs) - 1),
  );
  const ranks = judged.map((j) => j.rank);
  const numbers = ranks.map((r) => job.ranks[r]!.rank ?? -1).sort((a, b) => a - b);
  const arrivals: RawEvidence[] = judged
    .filter((j) => j.culprit !== null)
    .map((j) => {
      const own = job.arrivals.filter((a) => a.last === j.rank).sort((a, b) => b.skew - a.skew)[0];
      const of = job.ranks[j.rank]!;
      return {
        message: {
          text: {
            en: 'rank {rank:text} arrives late at {last:int} of {total:int} collectives and makes the others wait {ms:ms} per step ({share:pct} of all such waiting)',
            zh: '{total:int} 次集合通信中卡 {rank:text} 有 {last:int} 次迟到，每迭代让其余卡等 {ms:ms}（占全部此类等待的 {share:pct}）',
          },
          params: { rank: of.rank ?? '?', last: late.lastCount[j.rank]!, total: late.total, ms: j.causedMs, share: j.culprit!.share },
        },
        file: of.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
        rank: j.rank,
        ...(own === undefined
          ? {}
          : {
              step: own.step,
              start: own.arrive[own.ranks.indexOf(j.rank)]! - job.clock.offset[j.rank]!,
              duration: own.end - own.arrive[own.ranks.indexOf(j.rank)]!,
            }),
      };
    });
  const shapeless: Message[] =
    reason === 'device' && !hasShapes(facts)
      ? [
          {
            text: {
              en: 'this profile has no kernel shapes: longer inputs on that rank would look the same',
              zh: '该 profile 没有 kernel 的 shape：该卡输入更长时表现相同',
            },
          },
        ]
      : [];
  return {
    title: {
      text: judged.length === 1 ? TITLES[reason].one : TITLES[reason].many,
      params: { rank: facts.rank ?? '?', ranks: numbers, slower },
    },
    ranks,
    steps: job.steps.used,
    groups: [],
    confidence: dataConfidence(job, reason === 'host'),
    evidence: [
      ...arrivals.slice(0, 3),
      ...judged.slice(0, 3).map((j): RawEvidence => {
        return { message: why(job, j, reason), file: reason === 'host' ? 'trace_view.json' : 'kernel_details.csv', rank: j.rank };
      }),
    ],
    caveats: shapeless,
    removal: removal.size > 0 ? { likely: removal } : null,
    boundMs: Math.max(...judged.map((j) => Math.max(j.causedMs, reason === 'device' ? slowerMs(job, j) : 0))),
    boundMethod: { text: { en: 'waiting that the late arrival causes, median of the steps', zh: '迟到造成的等待，各迭代的中位数' } },
    information: false,
    symptomOf: null,
    // The tokens of a rank's experts are more work, too.
    ...(reason === 'more-work' ? { explainedBy: ['expert-imbalance'] } : {}),
    frames: [],
    remedies: [{ id: 'check-slow-rank', params: { reason, rank: judged.length === 1 ? facts.rank : null } }],
    hotspot: `rank${numbers.join('+')}:${reason}`,
  };
}

export default defineRule({
  id: 'slow-rank',
  title: { en: 'One rank makes the others wait', zh: '慢卡拖住其余卡' },
  category: 'communication',
  maturity: 'stable',
  needs: ['collectives'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest lateness reported, as a share of the step', zh: '可报告的最小迟到，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    minCulpritShare: {
      default: 0.6,
      unit: 'share',
      min: 0.5,
      max: 1,
      description: { en: 'share of all lateness that one rank must cause', zh: '单张卡造成的迟到占全部迟到的比例' },
      why: {
        en: 'lateness that moves from rank to rank is jitter, not a slow card',
        zh: '迟到在各卡之间轮换属于抖动，不是慢卡',
      },
    },
    minSteps: {
      default: 0.6,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'share of the steps in which it must be the latest', zh: '该卡最晚到达的迭代比例' },
      why: {
        en: 'a persistent cause shows in most steps; a single event does not make a slow card',
        zh: '持续的原因会出现在多数迭代；单次事件不构成慢卡',
      },
    },
  },
  remedies: ['check-slow-rank'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (job.ranks.length < 2)
      return { outcome: 'notApplicable', reason: { text: { en: 'one rank cannot be compared', zh: '只有一张卡，无法比较' } } };
    if (job.noReplay === 'ranks-missing') {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'not all ranks are here ({n:int} of {size:text}): the late one may be among the others, so no rank is named',
            zh: '只有 {n:int}/{size:text} 张卡的数据：最晚到达的卡可能不在其中，因此不指出具体的卡',
          },
          params: { n: job.ranks.length, size: job.world.size ?? 'unknown' },
        },
      };
    }
    if (!job.clock.usable || step === null) {
      return { outcome: 'notApplicable', reason: { text: { en: 'the clocks of the ranks cannot be aligned', zh: '各卡时钟无法对齐' } } };
    }
    const late = lateness(job);
    const split = stages(job);
    const mean = split === null ? 0 : split.stages.reduce((a, s) => a + s.workMs, 0) / split.stages.length;
    const staged = split !== null && split.stages.length > 1 && split.excessMs > 0.1 * mean;
    const steps = Math.max(1, job.steps.usedIndex.length);
    const persistent = late.culprits.filter(
      (c) => late.causedMs[c.rank]! >= options.minShare * step && c.share >= options.minCulpritShare && c.steps >= options.minSteps * steps,
    );
    // With unequal stages lateness follows the stages; what a card does more slowly than the others at the same kernels is its own all the same.
    const judged = (staged ? [] : persistent)
      .map((c) => judge(job, c.rank, c, late.causedMs[c.rank]!))
      // Batches of unequal length make a rank the latest in most of a few steps by chance.
      .filter((j) => j.reason !== 'more-work' || j.culprit!.steps >= steps);
    const slowCards = job.ranks.map((_, r) => r).filter((r) => slowness(job, r) > 1 && !judged.some((j) => j.rank === r));
    // Where communication sets the pace, computing covers the waits for a slow card, and the step still waits: the replay decides.
    judged.push(...slowCards.map((r) => judge(job, r, null, late.causedMs[r]!)).filter((j) => slowerMs(job, j) >= options.minShare * step));
    const own = (['device', 'more-work', 'host'] as const)
      .map((reason) => findingFor(reason))
      .filter((finding): finding is RawFinding => finding !== null);
    if (own.length > 0) return { outcome: 'findings', findings: own };

    const elsewhere = judged.find((j) => typeof j.reason === 'object');
    if (elsewhere !== undefined) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'rank {rank:text} is late because of {rule:code}, which reports it',
            zh: '卡 {rank:text} 迟到的原因是 {rule:code}，由该检查项报告',
          },
          params: { rank: job.ranks[elsewhere.rank]!.rank ?? '?', rule: (elsewhere.reason as { rule: string }).rule },
        },
      };
    }
    if (staged) {
      return {
        outcome: 'pass',
        reason: {
          text: { en: 'the lateness follows the pipeline stages, see stage-imbalance', zh: '迟到与流水线 Stage 一致，见 stage-imbalance' },
        },
      };
    }
    if (judged.length > 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'rank {rank:text} often arrives last, but its kernels, launches and loader are like those of the others',
            zh: '卡 {rank:text} 经常最晚到达，但其 kernel、下发与数据加载与其余卡一致',
          },
          params: { rank: job.ranks[judged[0]!.rank]!.rank ?? '?' },
        },
      };
    }
    const top = late.culprits[0];
    return {
      outcome: 'pass',
      reason: {
        text: {
          en: 'no rank is late persistently: the largest share of the lateness is {share:pct}, {ms:ms} per step',
          zh: '没有持续迟到的卡：单卡迟到占比最多 {share:pct}，每迭代 {ms:ms}',
        },
        params: { share: top?.share ?? 0, ms: top === undefined ? 0 : late.causedMs[top.rank]! },
      },
    };

    function findingFor(reason: Reason): RawFinding | null {
      const of = judged.filter((j) => j.reason === reason);
      return of.length === 0 ? null : findingOf(job, reason, of);
    }
  },
});

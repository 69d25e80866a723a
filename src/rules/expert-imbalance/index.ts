import { type ExpertGroup, expertGroups, hasExperts } from '../../facts/job/experts.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { stepCount } from '../../facts/job/transfers.ts';
import { type Detection, defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removals } from '../../replay/replay.ts';

/** Tokens this even are even: what is left is the card. */
const EVEN_TOKENS = 1.05;

/** Time and tokens of a group's experts, all used steps together. */
interface Balance {
  readonly group: ExpertGroup;
  /** Busiest rank over the mean in each multiplication, weighted by time; and the same of tokens (NaN when unknown). */
  readonly peak: number;
  readonly tokenPeak: number;
  /** ms per step that the busiest ranks compute beyond the mean. */
  readonly excessMs: number;
  /** ms per step of each rank. */
  readonly perRankMs: readonly number[];
  readonly meanMs: number;
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function balanceOf(job: JobFacts, group: ExpertGroup): Balance {
  const steps = stepCount(job);
  const n = group.ranks.length;
  let most = 0;
  let all = 0;
  let mostTokens = 0;
  let allTokens = 0;
  const perRank = new Array<number>(n).fill(0);
  for (const slot of group.slots) {
    most += Math.max(...slot.ns);
    all += sum(slot.ns);
    mostTokens += Math.max(...slot.tokens);
    allTokens += sum(slot.tokens);
    slot.ns.forEach((ns, i) => {
      perRank[i] = perRank[i]! + ns / 1e6 / steps;
    });
  }
  return {
    group,
    peak: (most * n) / all,
    tokenPeak: (mostTokens * n) / allTokens,
    excessMs: (most - all / n) / 1e6 / steps,
    perRankMs: perRank,
    meanMs: all / n / 1e6 / steps,
  };
}

/** What each rank of the group moves in its all-to-all calls, per step; null when the profile does not tell. */
function exchanged(job: JobFacts, group: ExpertGroup): RawEvidence | null {
  const used = new Set<number | null>(job.steps.used);
  const bytes = group.ranks.map((r) =>
    sum(
      job.ranks[r]!.collectives.filter(
        (c) => c.group === group.hash && /^alltoall/i.test(c.op) && (c.step === null || used.has(c.step)),
      ).map((c) => c.bytes / stepCount(job)),
    ),
  );
  const most = bytes.indexOf(Math.max(...bytes));
  if (bytes.some((b) => !(b > 0))) return null;
  return {
    message: {
      text: {
        en: 'all-to-all: rank {rank:text} moves {bytes:bytes} per step, the mean of its group {mean:bytes}',
        zh: 'all-to-all：卡 {rank:text} 每迭代传输 {bytes:bytes}，组内平均 {mean:bytes}',
      },
      params: { rank: job.ranks[group.ranks[most]!]!.rank ?? '?', bytes: bytes[most]!, mean: sum(bytes) / bytes.length },
    },
    file: 'communication.json',
    rank: group.ranks[most]!,
  };
}

/** Every rank gets the mean of each multiplication, at its own speed. */
function removalOf(balances: readonly Balance[]): Removals {
  const durations = new Map<number, Map<number, number>>();
  for (const { group } of balances) {
    for (const slot of group.slots) {
      const mean = sum(slot.ns) / slot.ns.length;
      group.ranks.forEach((r, i) => {
        durations.set(r, (durations.get(r) ?? new Map<number, number>()).set(slot.nodes[i]!, mean * group.speed[i]!));
      });
    }
  }
  return new Map([...durations].map(([r, own]) => [r, { durations: own }] as const));
}

/** Ranks that are busiest in the step as a whole; none when the busiest changes from layer to layer. */
function hotRanks({ group, perRankMs, meanMs, peak }: Balance): number[] {
  return group.ranks.filter((_, i) => perRankMs[i]! >= meanMs * (1 + (peak - 1) / 2));
}

export default defineRule({
  id: 'expert-imbalance',
  title: { en: 'Experts get unequal numbers of tokens', zh: '专家负载不均衡' },
  category: 'communication',
  maturity: 'preview',
  needs: ['kernel-types'],
  options: {
    minPeak: {
      default: 1.2,
      unit: 'count',
      min: 1,
      max: 1_000,
      description: { en: 'busiest rank over the mean of its expert group', zh: '最忙的卡与专家组平均值之比' },
      why: {
        en: 'routing is never even; load-balancing losses keep it within some 10 %',
        zh: '路由从来不会完全均匀；负载均衡损失可将其控制在约 10% 之内',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest excess reported, as a share of the step', zh: '可报告的最小差值，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['expert-balance'],
  detect(job, options): Detection {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    if (!hasExperts(job)) {
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'no expert layers (`GroupedMatmul`) in the profile', zh: 'profile 中没有专家层（`GroupedMatmul`）' } },
      };
    }
    const balances = expertGroups(job).map((group) => balanceOf(job, group));
    if (balances.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'no two ranks of one expert group are here with as many `GroupedMatmul` per step',
            zh: '同一专家组中没有两张卡每迭代的 `GroupedMatmul` 次数相同',
          },
        },
      };
    }
    const loud = balances.filter((b) => b.peak >= options.minPeak && b.excessMs >= options.minShare * step && !(b.tokenPeak < EVEN_TOKENS));
    const worst = (loud.length > 0 ? loud : balances).reduce((a, b) => (b.excessMs > a.excessMs ? b : a));
    if (loud.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text:
            worst.tokenPeak < EVEN_TOKENS && worst.peak >= options.minPeak
              ? {
                  en: 'tokens are even; the times differ because of the card',
                  zh: 'token 分布均匀；耗时差异来自卡本身',
                }
              : {
                  en: 'the busiest rank computes {peak:num} × the mean of its experts, {ms:ms} per step more',
                  zh: '最忙的卡的专家计算是平均值的 {peak:num} 倍，每迭代多 {ms:ms}',
                },
          params: { peak: worst.peak, ms: worst.excessMs },
        },
      };
    }
    const hot = [...new Set(loud.flatMap(hotRanks))];
    const members = [...new Set(loud.flatMap((b) => b.group.ranks))].sort((a, b) => a - b);
    const slot = worst.group.slots.reduce((a, b) =>
      Math.max(...b.ns) - sum(b.ns) / b.ns.length > Math.max(...a.ns) - sum(a.ns) / a.ns.length ? b : a,
    );
    const busiest = slot.ns.indexOf(Math.max(...slot.ns));
    const tape = job.ranks[worst.group.ranks[busiest]!]!.tape!;
    const node = slot.nodes[busiest]!;
    const missing = missingRanksCaveat(job);
    const table = worst.group.ranks.map((r, i) => `${job.ranks[r]!.rank ?? '?'}: ${worst.perRankMs[i]!.toFixed(1)} ms`);
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: 'expert computing per step by rank: {table:text}; in each call the busiest takes {peak:num} × the mean',
            zh: '各卡每迭代的专家计算：{table:text}；每次调用中最忙的卡为平均值的 {peak:num} 倍',
          },
          params: { table: table.slice(0, 16).join(', '), peak: worst.peak },
        },
        file: null,
        rank: null,
      },
      {
        message: {
          text: Number.isNaN(slot.tokens[busiest])
            ? {
                en: '{type:code} on rank {rank:text}: {ms:ms}, the mean of its group {mean:ms}',
                zh: '卡 {rank:text} 的 {type:code}：{ms:ms}，组内平均 {mean:ms}',
              }
            : {
                en: '{type:code} on rank {rank:text}: {tokens:int} tokens in {ms:ms}, the mean of its group {meanTokens:int} in {mean:ms}',
                zh: '卡 {rank:text} 的 {type:code}：{tokens:int} 个 token，{ms:ms}；组内平均 {meanTokens:int} 个，{mean:ms}',
              },
          params: {
            type: tape.types[tape.type[node]!]!,
            rank: job.ranks[worst.group.ranks[busiest]!]!.rank ?? '?',
            tokens: slot.tokens[busiest]!,
            ms: tape.duration[node]! / 1e6,
            meanTokens: sum(slot.tokens) / slot.tokens.length,
            mean: sum(slot.ns) / slot.ns.length / 1e6,
          },
        },
        file: 'kernel_details.csv',
        rank: worst.group.ranks[busiest]!,
        step: job.ranks[worst.group.ranks[busiest]!]!.steps[tape.step[node]!]?.id ?? null,
        start: tape.start[node]!,
        duration: tape.duration[node]!,
      },
    ];
    const sent = exchanged(job, worst.group);
    if (sent !== null) evidence.push(sent);
    const partial = loud.some((b) => b.group.missing > 0);
    const data = dataConfidence(job, false);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text:
              hot.length > 0
                ? {
                    en: 'The experts of rank {ranks:ranks} compute {peak:num} × the mean of their group',
                    zh: '卡 {ranks:ranks} 的专家计算是组内平均的 {peak:num} 倍',
                  }
                : {
                    en: 'In each expert layer the busiest rank computes {peak:num} × the mean, another one from layer to layer',
                    zh: '每个专家层中最忙的卡计算是平均的 {peak:num} 倍，且各层不同',
                  },
            params: { ranks: hot.map((r) => job.ranks[r]!.rank ?? -1), peak: worst.peak },
          },
          ranks: hot.length > 0 ? hot.sort((a, b) => a - b) : members,
          steps: job.steps.used,
          groups: loud
            .map((b) => b.group.hash)
            .filter((g) => g !== '')
            .slice(0, 8),
          confidence: partial || Number.isNaN(worst.tokenPeak) ? (data === 'low' ? 'low' : 'medium') : data,
          evidence,
          caveats: [
            ...(missing === null ? [] : [missing]),
            {
              text: {
                en: 'routing changes while a model trains: what is uneven now may even out, or shift',
                zh: '路由随训练变化：当前的不均衡可能消失，也可能转移',
              },
            },
          ],
          removal: partial || job.replay === null ? null : { likely: removalOf(loud) },
          boundMs: Math.max(...loud.map((b) => b.excessMs)),
          boundMethod: {
            text: {
              en: 'expert computing of the busiest rank less the mean of its group, call by call',
              zh: '逐次计算最忙的卡的专家计算减去组内平均值',
            },
          },
          information: false,
          symptomOf: null,
          frames: tape.frame[node]! >= 0 ? [tape.frames[tape.frame[node]!]!] : [],
          remedies: [{ id: 'expert-balance', params: { peak: Math.round(worst.peak * 100) / 100, persistent: hot.length > 0 } }],
          hotspot: 'experts',
        },
      ],
    };
  },
});

import { groupOf, groupsOf, type JobGroup } from '../../facts/job/groups.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { serversOf } from '../../facts/job/servers.ts';
import { stepCount, transfers } from '../../facts/job/transfers.ts';
import { type Detection, defineRule } from '../../model/rule.ts';

/** What one group moves per step, per member. */
interface Traffic {
  readonly group: JobGroup;
  readonly bytes: number;
  readonly movingMs: number;
  readonly blockedMs: number;
  readonly between: boolean;
  readonly calls: number;
}

function trafficOf(job: JobFacts): Traffic[] {
  const steps = stepCount(job);
  const sums = new Map<string, { bytes: number; movingMs: number; blockedMs: number; between: boolean; calls: number }>();
  for (const t of transfers(job)) {
    if (t.p2p || t.size < 2 || Number.isNaN(t.movingMs)) continue;
    const sum = sums.get(t.group) ?? { bytes: 0, movingMs: 0, blockedMs: 0, between: false, calls: 0 };
    const match = job.matches[t.match]!;
    const moved = match.ranks.map((r, k) => job.ranks[r]!.collectives[match.calls[k]!]!.bytes || 0);
    sum.bytes += Math.max(...moved) / steps;
    sum.movingMs += t.movingMs / steps;
    sum.blockedMs += (Number.isNaN(t.blockedMs) ? t.movingMs : t.blockedMs) / steps;
    sum.between ||= t.betweenServers;
    sum.calls += 1 / steps;
    sums.set(t.group, sum);
  }
  return [...sums].map(([hash, sum]) => ({ group: groupOf(job, hash), ...sum }));
}

export default defineRule({
  id: 'group-placement',
  title: { en: 'A group with much traffic spans servers', zh: '通信量大的通信域跨服务器' },
  category: 'communication',
  maturity: 'preview',
  needs: ['collective-ids'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest gain reported, as a share of the step', zh: '可报告的最小收益，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['place-groups'],
  detect(job, options): Detection {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const dense = [...groupsOf(job).values()].filter((g) => (g.role === 'tensor' || g.role === 'context') && g.ranks.length > 1);
    if (dense.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'the metadata name no tensor- or context-parallel group of several ranks',
            zh: '元数据中没有多卡的张量并行或上下文并行通信域',
          },
        },
      };
    }
    const traffic = trafficOf(job);
    const own = traffic.filter((t) => t.group.role === 'tensor' || t.group.role === 'context');
    if (own.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'the profile does not tell over which links these groups move: capture from Level1 on',
            zh: 'profile 没有记录这些通信域经由哪些链路：请以 Level1 及以上采集',
          },
        },
      };
    }
    const spanning = own.filter((t) => t.between);
    if (spanning.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'the tensor- and context-parallel groups stay inside a server',
            zh: '张量并行与上下文并行通信域都在服务器内',
          },
        },
      };
    }
    const servers = serversOf(job);
    const cards = servers[0]?.length ?? 0;
    const inside = traffic.filter((t) => t.group.role === 'data' && !t.between && t.group.ranks.length > 1);
    const movable = spanning.filter((t) => t.group.ranks.length <= cards);
    if (movable.length === 0 || inside.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text:
            movable.length === 0
              ? {
                  en: '{n:int} ranks per group do not fit into a server, of which {cards:int} cards are seen',
                  zh: '每组 {n:int} 张卡，放不进一台服务器（可见 {cards:int} 张卡）',
                }
              : {
                  en: 'no data-parallel group lies inside a server, so nothing can change places with it',
                  zh: '没有位于服务器内的数据并行通信域可与之交换',
                },
          params: { n: Math.max(...spanning.map((t) => t.group.ranks.length)), cards },
        },
      };
    }
    const worst = movable.reduce((a, b) => (b.movingMs > a.movingMs ? b : a));
    const swap = inside.reduce((a, b) => (b.movingMs > a.movingMs ? b : a));
    // Each takes over the other's links, at the rate that those show in this run.
    const insideRate = swap.bytes / swap.movingMs;
    const betweenRate = worst.bytes / worst.movingMs;
    const gain = worst.movingMs + swap.movingMs - worst.bytes / insideRate - swap.bytes / betweenRate;
    const bound = Math.min(gain, worst.blockedMs);
    if (!(bound >= options.minShare * step)) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'a group of {n:int} ranks spans servers; inside one it would gain {ms:ms} per step',
            zh: '{n:int} 张卡的通信域跨服务器；放入一台服务器每迭代可省 {ms:ms}',
          },
          params: { n: worst.group.ranks.length, ms: Math.max(0, bound) },
        },
      };
    }
    const reporter = job.ranks.findIndex((r) => r.rank !== null && worst.group.ranks.includes(r.rank));
    const missing = missingRanksCaveat(job);
    const numbersOf = (list: readonly Traffic[]): number[] => list.flatMap((t) => [...t.group.ranks]);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'The {role:code} group of ranks {ranks:ranks} spans servers although it would fit into one',
              zh: '卡 {ranks:ranks} 的 {role:code} 通信域跨服务器，而一台服务器放得下',
            },
            params: { role: worst.group.name, ranks: [...worst.group.ranks] },
          },
          ranks: job.ranks.flatMap((r, i) => (r.rank !== null && numbersOf(movable).includes(r.rank) ? [i] : [])),
          steps: job.steps.used,
          groups: movable.map((t) => t.group.hash).slice(0, 8),
          confidence: dataConfidence(job, false) === 'low' ? 'low' : 'medium',
          evidence: [
            {
              message: {
                text: {
                  en: '{role:code} group {ranks:ranks}: {calls:int} collectives and {bytes:bytes} per step over RDMA, {ms:ms}; the {other:code} group {otherRanks:ranks} moves {otherBytes:bytes} inside a server in {otherMs:ms}',
                  zh: '{role:code} 组 {ranks:ranks}：每迭代 {calls:int} 次、{bytes:bytes}，经 RDMA，{ms:ms}；{other:code} 组 {otherRanks:ranks} 在服务器内传输 {otherBytes:bytes}，{otherMs:ms}',
                },
                params: {
                  role: worst.group.name,
                  ranks: [...worst.group.ranks],
                  calls: worst.calls,
                  bytes: worst.bytes,
                  ms: worst.movingMs,
                  other: swap.group.name,
                  otherRanks: [...swap.group.ranks],
                  otherBytes: swap.bytes,
                  otherMs: swap.movingMs,
                },
              },
              file: 'communication.json',
              rank: reporter === -1 ? null : reporter,
            },
            {
              message: {
                text: {
                  en: 'servers as the links show them: {servers:text}',
                  zh: '由链路得出的服务器：{servers:text}',
                },
                params: {
                  servers: servers
                    .slice(0, 8)
                    .map((s) => (s.length > 2 && s[s.length - 1]! - s[0]! === s.length - 1 ? `${s[0]}–${s[s.length - 1]}` : s.join(', ')))
                    .join(' | '),
                },
              },
              file: null,
              rank: null,
            },
          ],
          caveats: [
            ...(missing === null ? [] : [missing]),
            {
              text: {
                en: 'RDMA between two ranks is taken as a border between servers; with RoCE inside a server it is none',
                zh: '两卡之间的 RDMA 视为跨服务器；若服务器内启用了 RoCE 则不然',
              },
            },
          ],
          removal: null,
          boundMs: bound,
          boundMethod: {
            text: {
              en: 'time of both groups less what each would take on the links of the other, at the rates of this run, where computing waited for it',
              zh: '两个通信域的耗时减去各自换到对方链路后的耗时（按本次运行的速率），只计计算等待的部分',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'place-groups', params: { size: worst.group.ranks.length, cards } }],
          hotspot: 'placement',
        },
      ],
    };
  },
});

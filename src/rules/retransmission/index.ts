import { median } from '../../base/statistics.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { stepCount } from '../../facts/job/transfers.ts';
import type { CollectiveFacts } from '../../model/facts.ts';
import { type Detection, defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removals } from '../../replay/replay.ts';

/** One call that moved something between servers. */
interface Sent {
  readonly rank: number;
  readonly call: CollectiveFacts;
  /** ms that as many bytes take in the other calls of this run; NaN when nothing tells. */
  readonly expectedMs: number;
}

/** A retransmission timer of the network card runs out after this long by default (2^20 × 4.096 µs), ms. */
const TIMER_MS = 4_000;
/** Calls of like size needed to know what is usual. */
const LEAST_CALLS = 3;
/** Calls within this factor of bytes are alike. */
const ALIKE = 4;

function sentBetweenServers(job: JobFacts): Sent[] {
  const all: { rank: number; call: CollectiveFacts }[] = [];
  job.ranks.forEach((rank, r) => {
    for (const call of rank.collectives) if (call.rdmaBytes > 0 && call.rdmaMs > 0) all.push({ rank: r, call });
  });
  all.sort((a, b) => a.call.rdmaBytes - b.call.rdmaBytes);
  // What is usual for a size: the median of a window of calls of like size. Small ones are slow per byte, so sizes are not mixed.
  let from = 0;
  let to = 0;
  return all.map(({ rank, call }): Sent => {
    const size = call.rdmaBytes;
    while (all[from]!.call.rdmaBytes < size / ALIKE) from++;
    while (to < all.length && all[to]!.call.rdmaBytes <= size * ALIKE) to++;
    const stride = Math.max(1, Math.floor((to - from) / 200));
    const times: number[] = [];
    for (let i = from; i < to; i += stride) times.push((all[i]!.call.rdmaMs / all[i]!.call.rdmaBytes) * size);
    return { rank, call, expectedMs: to - from > LEAST_CALLS ? median(times) : Number.NaN };
  });
}

function removalOf(job: JobFacts, slow: readonly Sent[]): Removals | null {
  if (job.replay === null) return null;
  const bodyOf = new Map<CollectiveFacts, number>();
  for (const arrival of job.arrivals) {
    const match = job.matches[arrival.match]!;
    match.ranks.forEach((r, k) => {
      bodyOf.set(job.ranks[r]!.collectives[match.calls[k]!]!, arrival.body);
    });
  }
  const bodies = new Map<number, Map<number, number>>();
  for (const { rank, call, expectedMs } of slow) {
    const body = bodyOf.get(call);
    if (call.node === -1 || body === undefined || Number.isNaN(expectedMs)) continue;
    const own = bodies.get(rank) ?? new Map<number, number>();
    own.set(call.node, Math.max(expectedMs * 1e6, body - (call.rdmaMs - expectedMs) * 1e6));
    bodies.set(rank, own);
  }
  return bodies.size === 0 ? null : new Map([...bodies].map(([r, own]) => [r, { bodies: own }] as const));
}

export default defineRule({
  id: 'retransmission',
  title: { en: 'Transfers between servers that look repeated', zh: '跨服务器传输疑似重传' },
  category: 'communication',
  maturity: 'preview',
  needs: ['collective-ids'],
  options: {
    minSlowdown: {
      default: 10,
      unit: 'count',
      min: 2,
      max: 100_000,
      description: { en: 'times as long as transfers of like size', zh: '耗时是大小相近的传输的多少倍' },
      why: {
        en: 'congestion makes a transfer a few times slower; ten times is a lost packet or a paused port',
        zh: '拥塞使传输慢几倍；十倍则是丢包或端口被暂停',
      },
    },
    minMs: {
      default: 100,
      unit: 'ms',
      min: 1,
      max: 100_000,
      description: { en: 'shortest transfer that is suspected', zh: '可疑传输的最短耗时' },
      why: {
        en: 'shorter ones can be a single busy switch; a retransmission costs tens of milliseconds and more',
        zh: '更短的可能只是某台交换机繁忙；一次重传至少几十毫秒',
      },
    },
  },
  remedies: ['check-network'],
  detect(job, options): Detection {
    const sent = sentBetweenServers(job);
    if (sent.length === 0) {
      const known = job.ranks.some((r) => r.collectives.some((c) => !Number.isNaN(c.rdmaMs)));
      return known
        ? {
            outcome: 'pass',
            reason: { text: { en: 'nothing moved between servers (no RDMA)', zh: '没有跨服务器传输（无 RDMA）' } },
          }
        : {
            outcome: 'notApplicable',
            reason: {
              text: {
                en: '`communication.json` does not tell what moved between servers',
                zh: '`communication.json` 没有记录跨服务器传输',
              },
            },
          };
    }
    const certain = sent.filter((s) => s.call.rdmaMs >= TIMER_MS && (s.call.end - s.call.start) / 1e6 >= TIMER_MS);
    const suspect = sent.filter(
      (s) => !certain.includes(s) && s.call.rdmaMs >= options.minMs && s.call.rdmaMs >= options.minSlowdown * s.expectedMs,
    );
    const slow = [...certain, ...suspect].sort((a, b) => b.call.rdmaMs - a.call.rdmaMs);
    if (slow.length === 0) {
      const longest = sent.reduce((a, b) => (b.call.rdmaMs > a.call.rdmaMs ? b : a));
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: '{n:int} transfers between servers, the longest {ms:ms}',
            zh: '{n:int} 次跨服务器传输，最长 {ms:ms}',
          },
          params: { n: sent.length, ms: longest.call.rdmaMs },
        },
      };
    }
    // Members of one call report the same delay.
    const lostByCall = new Map<string, number>();
    for (const { call, expectedMs } of slow)
      lostByCall.set(call.key, Math.max(lostByCall.get(call.key) ?? 0, call.rdmaMs - (expectedMs || 0)));
    const lost = [...lostByCall.values()].reduce((a, b) => a + b, 0);
    const removal = removalOf(job, slow);
    const missing = missingRanksCaveat(job);
    const steps = Math.max(stepCount(job), ...job.ranks.map((r) => r.steps.length));
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text:
              certain.length > 0
                ? {
                    en: '{n:int} transfers between servers lasted {ms:ms} and longer: packets were sent again',
                    zh: '{n:int} 次跨服务器传输持续 {ms:ms} 以上：发生了重传',
                  }
                : {
                    en: '{n:int} transfers between servers took more than {ratio:num} × as long as others of their size: packets may have been sent again',
                    zh: '{n:int} 次跨服务器传输的耗时超过同等大小传输的 {ratio:num} 倍：可能发生了重传',
                  },
            params: { n: lostByCall.size, ms: TIMER_MS, ratio: options.minSlowdown },
          },
          ranks: [...new Set(slow.map((s) => s.rank))].sort((a, b) => a - b),
          steps: [...new Set(slow.flatMap((s) => s.call.step ?? []))],
          groups: [...new Set(slow.map((s) => s.call.group))].filter((g) => g !== '').slice(0, 8),
          confidence: certain.length === 0 ? 'low' : dataConfidence(job, false) === 'low' ? 'low' : 'medium',
          evidence: slow.slice(0, 4).map(
            (s): RawEvidence => ({
              message: {
                text: Number.isNaN(s.expectedMs)
                  ? {
                      en: '{name:code}: {bytes:bytes} between servers in {ms:ms}',
                      zh: '{name:code}：跨服务器传输 {bytes:bytes}，耗时 {ms:ms}',
                    }
                  : {
                      en: '{name:code}: {bytes:bytes} between servers in {ms:ms}; others of this size take {expected:ms}',
                      zh: '{name:code}：跨服务器传输 {bytes:bytes}，耗时 {ms:ms}；同等大小的传输通常 {expected:ms}',
                    },
                params: { name: s.call.name, bytes: s.call.rdmaBytes, ms: s.call.rdmaMs, expected: s.expectedMs },
              },
              file: 'communication.json',
              rank: s.rank,
              step: s.call.step,
              start: s.call.start,
              duration: s.call.end - s.call.start,
            }),
          ),
          caveats: [
            ...(missing === null ? [] : [missing]),
            {
              text: {
                en: 'the profile does not count packets: counters of the network card and switch confirm or refute it',
                zh: 'profile 不统计报文：需用网卡与交换机的计数器确认或排除',
              },
            },
          ],
          removal: removal === null ? null : { likely: removal },
          boundMs: lost / steps,
          boundMethod: {
            text: {
              en: 'time of these transfers beyond what others of their size take, spread over the captured steps',
              zh: '这些传输比同等大小传输多用的时间，平摊到采集的各迭代',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'check-network', params: { certain: certain.length > 0 } }],
          hotspot: 'retransmission',
        },
      ],
    };
  },
});

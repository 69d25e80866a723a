import type { JobFacts } from '../../facts/job/index.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { stepCount, transfers } from '../../facts/job/transfers.ts';
import type { PacketRow } from '../../model/capture.ts';
import { type Detection, defineRule } from '../../model/rule.ts';

/** The copy engines move lines of this many bytes. */
const LINE = 512;
/** Packets whose sizes differ by less than this factor are compared. */
const COMPARABLE = 2;
/** Time of aligned packets of such a size that a comparison needs, ms. */
const LEAST_MS = 0.05;

/** Links of one rank: packets that are no multiple of 512 bytes against those that are. */
interface Alignment {
  readonly rank: number;
  readonly allMs: number;
  readonly oddMs: number;
  /** ms of odd packets with an aligned one of like size, and what those take more than aligned ones. */
  readonly comparedMs: number;
  readonly extraMs: number;
  readonly largest: PacketRow | null;
}

const isOdd = (p: PacketRow): boolean => p.bytes > LINE && p.bytes % LINE !== 0;

function alignmentOf(job: JobFacts, r: number): Alignment | null {
  const packets = (job.ranks[r]!.links?.packets ?? []).filter((p) => p.transport !== 'RDMA' && p.bytes > 0 && p.ms > 0);
  if (packets.length === 0) return null;
  let oddMs = 0;
  let comparedMs = 0;
  let extraMs = 0;
  let largest: PacketRow | null = null;
  for (const p of packets.filter(isOdd)) {
    oddMs += p.ms;
    if (largest === null || p.ms > largest.ms) largest = p;
    const even = packets.filter(
      (e) => !isOdd(e) && e.transport === p.transport && e.bytes <= COMPARABLE * p.bytes && e.bytes >= p.bytes / COMPARABLE,
    );
    const bytes = even.reduce((sum, e) => sum + e.bytes * e.count, 0);
    const ms = even.reduce((sum, e) => sum + e.ms, 0);
    if (ms < LEAST_MS) continue;
    comparedMs += p.ms;
    extraMs += Math.max(0, p.ms - (p.bytes * p.count * ms) / bytes);
  }
  return { rank: r, allMs: packets.reduce((sum, p) => sum + p.ms, 0), oddMs, comparedMs, extraMs, largest };
}

/** What links that work side by side lose is lost once: time of the collectives over the sum of their links' times. */
function shareOfStep(job: JobFacts, r: number): number {
  let moving = 0;
  for (const t of transfers(job)) if (job.matches[t.match]!.ranks.includes(r)) moving += Number.isNaN(t.movingMs) ? 0 : t.movingMs;
  return moving / stepCount(job);
}

export default defineRule({
  id: 'byte-alignment',
  title: { en: 'Transfers that are no multiple of 512 bytes', zh: '传输大小未按 512 字节对齐' },
  category: 'communication',
  maturity: 'preview',
  needs: ['collective-ids'],
  options: {
    minSlowdown: {
      default: 1.1,
      unit: 'count',
      min: 1,
      max: 1_000,
      description: { en: 'times as long as aligned packets of like size', zh: '耗时是大小相近的对齐数据包的多少倍' },
      why: {
        en: 'in real captures packets that are not aligned take 1.08 to 1.22 times as long, on 2 % of the link time: only slower ones that matter count',
        zh: '实际采集中，未对齐的数据包耗时为 1.08～1.22 倍，占链路时间的 2%：只有更慢且有影响的才计入',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest loss reported, as a share of the step', zh: '可报告的最小损失，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['align-messages'],
  detect(job, options): Detection {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const all = job.ranks.flatMap((_, r) => alignmentOf(job, r) ?? []);
    if (all.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'no packet sizes of transfers inside a server: `communication.json` has them from Level1 on',
            zh: '没有服务器内传输的数据包大小：`communication.json` 从 Level1 起才有',
          },
        },
      };
    }
    const lossOf = (a: Alignment): number => (a.extraMs / a.allMs) * shareOfStep(job, a.rank);
    const worst = all.reduce((a, b) => (lossOf(b) > lossOf(a) ? b : a));
    const odd = all.reduce((a, b) => (b.oddMs / b.allMs > a.oddMs / a.allMs ? b : a));
    const loss = lossOf(worst);
    const slowdown = worst.comparedMs > worst.extraMs ? worst.comparedMs / (worst.comparedMs - worst.extraMs) : 1;
    if (loss < options.minShare * step || slowdown < options.minSlowdown || worst.largest === null) {
      if (odd.oddMs > 0 && all.every((a) => a.comparedMs === 0)) {
        return {
          outcome: 'notApplicable',
          reason: {
            text: {
              en: '{share:pct} of the link time is in packets that are no multiple of 512 bytes, and none of like size is: whether it costs is not known',
              zh: '{share:pct} 的链路时间属于未按 512 字节对齐的数据包，且没有大小相近的对齐数据包可比：是否有损失未知',
            },
            params: { share: odd.oddMs / odd.allMs },
          },
        };
      }
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: '{share:pct} of the link time is in packets that are no multiple of 512 bytes; they take {ratio:num} × as long as aligned ones',
            zh: '{share:pct} 的链路时间属于未按 512 字节对齐的数据包；耗时是对齐数据包的 {ratio:num} 倍',
          },
          params: { share: odd.oddMs / odd.allMs, ratio: slowdown },
        },
      };
    }
    const missing = missingRanksCaveat(job);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'Transfers that are no multiple of 512 bytes take {ratio:num} × as long as aligned ones',
              zh: '未按 512 字节对齐的传输，耗时是对齐传输的 {ratio:num} 倍',
            },
            params: { ratio: slowdown },
          },
          ranks: all.filter((a) => lossOf(a) >= 0.5 * loss).map((a) => a.rank),
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, false) === 'high' ? 'medium' : 'low',
          evidence: [
            {
              message: {
                text: {
                  en: '{share:pct} of the link time is in packets that are no multiple of 512 bytes, most in {n:int} of {bytes:int} bytes ({ms:ms})',
                  zh: '{share:pct} 的链路时间属于未按 512 字节对齐的数据包，最多的是 {n:int} 个 {bytes:int} 字节的数据包（{ms:ms}）',
                },
                params: {
                  share: worst.oddMs / worst.allMs,
                  n: worst.largest.count,
                  bytes: worst.largest.bytes,
                  ms: worst.largest.ms,
                },
              },
              file: 'communication.json',
              rank: worst.rank,
            },
          ],
          caveats: missing === null ? [] : [missing],
          removal: null,
          boundMs: loss,
          boundMethod: {
            text: {
              en: 'time of these packets beyond what aligned packets of like size take in this run, once for links that work side by side',
              zh: '这些数据包比本次运行中大小相近的对齐数据包多用的时间，并行链路只计一次',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'align-messages', params: { bytes: worst.largest.bytes } }],
          hotspot: 'alignment',
        },
      ],
    };
  },
});

import { median } from '../../base/statistics.ts';
import { deviceMemory, memoryPeaks } from '../../facts/job/device-memory.ts';
import type { RankFacts } from '../../model/facts.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

/** Steps of the job's used ones in which the allocator took memory although enough was unused, and what it takes from the device per step. */
interface Splinters {
  readonly steps: number;
  readonly takenPerStep: number;
}

function splintersOf(rank: RankFacts, used: readonly number[]): Splinters {
  const steps = used.map((s) => rank.memory?.steps[s]).filter((s) => s !== undefined);
  const hit = steps.filter((s) => s.splintered > 0);
  const reserved = steps.map((s) => s.reservedPeak).filter((v) => !Number.isNaN(v));
  const increments = reserved.slice(1).map((v, i) => v - reserved[i]!);
  return { steps: hit.length, takenPerStep: increments.length === 0 ? 0 : Math.max(0, median(increments)) };
}

export default defineRule({
  id: 'memory-fragmentation',
  title: { en: 'Reserved memory lies unused in pieces', zh: '内存碎片：保留的显存零散闲置' },
  category: 'memory',
  maturity: 'stable',
  needs: ['memory'],
  options: {
    minShare: {
      default: 0.1,
      unit: 'share',
      min: 0.01,
      max: 1,
      description: {
        en: 'unused at the peak, as a share of the card (else of what is reserved)',
        zh: '峰值时闲置的显存，占整卡（未知时占保留量）的比例',
      },
      why: {
        en: 'rounding to 20 MB segments leaves a few per cent; a tenth of the card is room for another layer',
        zh: '按 20 MB 段取整会留下百分之几；整卡的十分之一足以再放一层',
      },
    },
    nearShare: {
      default: 0.9,
      unit: 'share',
      min: 0.5,
      max: 1,
      description: {
        en: 'peak from which the unused part is missed, as a share of the card',
        zh: '显存占用达到该比例时，闲置部分才有影响',
      },
      why: {
        en: 'below it the unused memory costs nothing',
        zh: '低于该值时，闲置的显存没有代价',
      },
    },
    minStallShare: {
      default: 0.01,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'time in allocation calls from which pieces cost time, as a share of the step',
        zh: '内存申请耗时达到迭代的该比例时视为有代价',
      },
      why: {
        en: 'a steady step makes no allocation call at all; 1 % shows that it makes many',
        zh: '稳态迭代不会有内存申请；达到 1% 说明次数很多',
      },
    },
  },
  remedies: ['expandable-segments'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const list = job.ranks.flatMap((rank, i) => {
      const peaks = memoryPeaks(rank);
      if (peaks === null) return [];
      const size = deviceMemory(rank)?.bytes ?? null;
      const splinters = splintersOf(rank, job.steps.usedIndex);
      const stalls = job.steps.usedIndex.map((s) => rank.memory?.steps[s]?.allocatorNs ?? Number.NaN).filter((v) => !Number.isNaN(v));
      return [{ i, rank, peaks, size, splinters, stallMs: stalls.length === 0 ? 0 : median(stalls) / 1e6 }];
    });
    if (list.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'the memory records hold no row of the torch_npu allocator', zh: '内存记录中没有 torch_npu 分配器的数据' } },
      };
    }
    const found = list
      .map((k) => {
        const isLarge = k.peaks.unused >= options.minShare * (k.size ?? k.peaks.reserved);
        // Taking more in every step, with enough of its own unused, is fragmentation however large the gap is by now.
        const grows = k.splinters.steps >= Math.max(2, job.steps.usedIndex.length - 1) && k.splinters.takenPerStep > 0;
        const isNear = k.size !== null && k.peaks.used >= options.nearShare * k.size;
        const stalls = step !== null && k.stallMs >= options.minStallShare * step && k.splinters.steps > 0;
        return { ...k, grows, isNear, stalls, isFound: (isLarge && (isNear || stalls)) || grows };
      })
      .filter((k) => k.isFound);
    const worstOf = <T extends (typeof list)[number]>(of: readonly T[]): T =>
      of.reduce((a, b) => (b.peaks.unused > a.peaks.unused ? b : a));
    if (found.length === 0) {
      const worst = worstOf(list);
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'at the peak {unused:bytes} of {reserved:bytes} reserved are unused, and nothing shows that they are missed',
            zh: '峰值时保留的 {reserved:bytes} 中有 {unused:bytes} 闲置，没有迹象表明因此受影响',
          },
          params: { unused: worst.peaks.unused, reserved: worst.peaks.reserved },
        },
      };
    }
    const worst = worstOf(found);
    const { rank, peaks, i } = worst;
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: 'rank {rank:text}: {reserved:bytes} reserved, at most {allocated:bytes} allocated: {unused:bytes} ({share:pct}) lie unused at the peak',
            zh: '卡 {rank:text}：保留 {reserved:bytes}，最多分配 {allocated:bytes}：峰值时 {unused:bytes}（{share:pct}）闲置',
          },
          params: {
            rank: rank.rank ?? '?',
            reserved: peaks.reserved,
            allocated: peaks.allocated,
            unused: peaks.unused,
            share: peaks.unused / peaks.reserved,
          },
        },
        file: 'memory_record.csv',
        rank: i,
      },
    ];
    const first = rank.memory!.growths[0];
    if (first !== undefined) {
      evidence.push({
        message: {
          text: {
            en: 'for a block of {needed:bytes} the allocator took {taken:bytes} from the card although {unused:bytes} of its own were unused',
            zh: '申请 {needed:bytes} 的块时，分配器自身有 {unused:bytes} 闲置，仍向设备申请了 {taken:bytes}',
          },
          params: { needed: first.needed, taken: first.taken, unused: first.unused },
        },
        file: 'memory_record.csv',
        rank: i,
        step: rank.steps[first.step]?.id ?? null,
        start: first.at,
      });
    }
    if (worst.grows) {
      evidence.push({
        message: {
          text: {
            en: 'it happens in {n:int} of {of:int} steps; what is reserved grows by {taken:bytes} per step',
            zh: '{of:int} 个迭代中有 {n:int} 个出现该情况；保留量每迭代增加 {taken:bytes}',
          },
          params: { n: worst.splinters.steps, of: job.steps.usedIndex.length, taken: worst.splinters.takenPerStep },
        },
        file: 'memory_record.csv',
        rank: i,
      });
    }
    if (worst.isNear) {
      evidence.push({
        message: {
          text: { en: 'the process uses {used:bytes} of {size:bytes}', zh: '进程占用 {used:bytes}，显存共 {size:bytes}' },
          params: { used: peaks.used, size: worst.size },
        },
        file: 'memory_record.csv',
        rank: i,
      });
    }
    if (worst.stalls) {
      evidence.push({
        message: {
          text: {
            en: 'allocation calls block the host for {ms:ms} per step',
            zh: '内存申请调用每迭代阻塞 Host {ms:ms}',
          },
          params: { ms: worst.stallMs },
        },
        file: 'trace_view.json',
        rank: i,
      });
    }
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: '{unused:bytes} of reserved memory lie unused in pieces',
              zh: '保留的显存中有 {unused:bytes} 零散闲置',
            },
            params: { unused: peaks.unused },
          },
          ranks: found.map((k) => k.i),
          steps: job.steps.used,
          groups: [],
          confidence: first !== undefined ? (job.steps.usedIndex.length >= 3 ? 'high' : 'medium') : 'low',
          severity: 'medium',
          evidence,
          caveats: [],
          removal: null,
          boundMs: null,
          boundMethod: { text: { en: '', zh: '' } },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [
            {
              id: 'expandable-segments',
              params: { allocConf: rank.settings.env.PYTORCH_NPU_ALLOC_CONF ?? null, unusedGb: Math.round(peaks.unused / 1e8) / 10 },
            },
          ],
          hotspot: 'fragmentation',
        },
      ],
    };
  },
});

import { deviceMemory, type MemoryPeaks, memoryPeaks } from '../../facts/job/device-memory.ts';
import { symptoms } from '../../facts/job/symptoms.ts';
import type { MemoryFacts } from '../../model/facts.ts';
import type { Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';

const FILE = 'memory_record.csv';
/** Blocks named as what fills the card at the peak. */
const NAMED = 5;

/** Operators whose blocks are alive at the allocator's peak, largest first, each once. */
function atPeak(memory: MemoryFacts): string[] {
  const at = memory.components.find((c) => c.component === 'PTA')?.peakAllocatedAt ?? Number.NaN;
  const alive = memory.blocks.filter((b) => b.start <= at && (Number.isNaN(b.end) || b.end > at) && b.name !== '');
  return [...new Set(alive.map((b) => b.name))].slice(0, NAMED);
}

export default defineRule({
  id: 'memory-peak',
  title: { en: 'Memory of the card near its limit, or half empty', zh: '显存接近上限，或大量空闲' },
  category: 'memory',
  maturity: 'stable',
  needs: ['memory'],
  options: {
    nearShare: {
      default: 0.9,
      unit: 'share',
      min: 0.5,
      max: 1,
      description: { en: 'peak reported as near the limit, as a share of the card', zh: '视为接近上限的峰值，占显存的比例' },
      why: {
        en: 'some 5 % of the nominal size belong to the system; above 90 % one longer sample ends the job',
        zh: '标称大小的约 5% 由系统占用；超过 90% 时，一个更长的样本就会使作业终止',
      },
    },
    roomShare: {
      default: 0.5,
      unit: 'share',
      min: 0.05,
      max: 0.9,
      description: { en: 'peak reported as room for a larger micro-batch', zh: '视为可增大 micro batch 的峰值，占显存的比例' },
      why: {
        en: 'activations grow with the micro-batch; below one half they may double and still fit',
        zh: '激活随 micro batch 增长；低于一半时，翻倍后仍放得下',
      },
    },
    minLostShare: {
      default: 0.1,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'launch gaps and exposed communication from which room is worth a note',
        zh: '下发等待与未掩盖通信达到该比例时才提示空闲显存',
      },
      why: {
        en: 'a larger micro-batch pays only where fixed costs per micro-batch are noticeable',
        zh: '只有 micro batch 的固定开销明显时，增大它才有收益',
      },
    },
  },
  remedies: ['memory-headroom'],
  detect(job, options) {
    const known = job.ranks.flatMap((rank, i) => {
      const peaks = memoryPeaks(rank);
      const device = deviceMemory(rank);
      return peaks === null || device === null ? [] : [{ i, rank, peaks, device, share: peaks.used / device.bytes }];
    });
    if (known.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: job.ranks.some((r) => memoryPeaks(r) !== null)
            ? {
                en: 'the size of the card is not recorded: add `ci_run` with `soc` or `memory` to the profile',
                zh: '没有记录显存大小：在 profile 中加入含 `soc` 或 `memory` 的 `ci_run`',
              }
            : { en: 'the memory records hold no row of the torch_npu allocator', zh: '内存记录中没有 torch_npu 分配器的数据' },
        },
      };
    }
    const worst = known.reduce((a, b) => (b.share > a.share ? b : a));
    const evidenceOf = ({ i, rank, peaks, device }: (typeof known)[number]): RawEvidence[] => {
      const names = atPeak(rank.memory!);
      const hccl = rank.memory!.modules.find((m) => m.name === 'HCCL');
      const list: RawEvidence[] = [{ message: peakMessage(rank.rank, peaks, device.bytes, device.basis), file: FILE, rank: i }];
      if (names.length > 0) {
        list.push({
          message: {
            text: { en: 'largest blocks at the peak: {names:code}', zh: '峰值时最大的块来自 {names:code}' },
            params: { names },
          },
          file: 'operator_memory.csv',
          rank: i,
        });
      }
      if (hccl !== undefined) {
        list.push({
          message: { text: { en: 'HCCL holds {size:bytes}', zh: 'HCCL 占用 {size:bytes}' }, params: { size: hccl.peak } },
          file: 'npu_module_mem.csv',
          rank: i,
        });
      }
      return list;
    };
    const common = {
      steps: job.steps.used,
      groups: [],
      removal: null,
      boundMs: null,
      boundMethod: { text: { en: '', zh: '' } },
      symptomOf: null,
      frames: [],
    } as const;
    const near = known.filter((k) => k.share >= options.nearShare);
    if (near.length > 0) {
      const needs = near.some((k) => k.peaks.needed / k.device.bytes >= options.nearShare);
      const finding: RawFinding = {
        ...common,
        title: {
          text: { en: 'The memory of the card is {share:pct} full at the peak', zh: '峰值时显存占用 {share:pct}' },
          params: { share: worst.share },
        },
        ranks: near.map((k) => k.i),
        confidence: worst.device.basis === 'recorded' ? 'high' : 'medium',
        severity: needs ? 'medium' : 'info',
        evidence: evidenceOf(worst),
        caveats: needs
          ? []
          : [
              {
                text: {
                  en: '{unused:bytes} of it are kept by the allocator and not in use at the peak',
                  zh: '其中 {unused:bytes} 由分配器保留，峰值时并未使用',
                },
                params: { unused: worst.peaks.unused },
              },
            ],
        information: false,
        explainedBy: ['memory-fragmentation', 'memory-growth'],
        remedies: [
          {
            id: 'memory-headroom',
            params: {
              kind: 'near',
              allocConf: worst.rank.settings.env.PYTORCH_NPU_ALLOC_CONF ?? null,
              taskQueue: worst.rank.settings.env.TASK_QUEUE_ENABLE ?? null,
              multiStreamReuse: worst.rank.settings.env.MULTI_STREAM_MEMORY_REUSE ?? null,
            },
          },
        ],
        hotspot: 'near',
      };
      return { outcome: 'findings', findings: [finding] };
    }
    const step = job.steps.stepTimeMs;
    const { launchMs, exposedMs } = symptoms(job);
    const lost = step === null ? 0 : ((launchMs || 0) + (exposedMs || 0)) / step;
    if (worst.share <= options.roomShare && lost >= options.minLostShare) {
      return {
        outcome: 'findings',
        findings: [
          {
            ...common,
            title: {
              text: {
                en: 'At the peak {free:bytes} of {size:bytes} are free: a larger micro-batch would fit',
                zh: '峰值时 {size:bytes} 显存中有 {free:bytes} 空闲：可容纳更大的 micro batch',
              },
              params: { free: worst.device.bytes - worst.peaks.used, size: worst.device.bytes },
            },
            ranks: [],
            confidence: 'medium',
            evidence: [
              ...evidenceOf(worst),
              {
                message: {
                  text: {
                    en: 'launch gaps and exposed communication are {share:pct} of the step: both weigh less with a larger micro-batch',
                    zh: '下发等待与未掩盖通信占迭代的 {share:pct}：micro batch 增大后两者占比下降',
                  },
                  params: { share: lost },
                },
                file: null,
                rank: null,
              },
            ],
            caveats: [],
            information: true,
            remedies: [{ id: 'memory-headroom', params: { kind: 'room' } }],
            hotspot: 'room',
          },
        ],
      };
    }
    return {
      outcome: 'pass',
      reason: {
        text: { en: 'at most {share:pct} of the card’s memory is used', zh: '显存占用最多 {share:pct}' },
        params: { share: worst.share },
      },
    };
  },
});

function peakMessage(rank: number | null, peaks: MemoryPeaks, size: number, basis: 'recorded' | 'product'): Message {
  return {
    text:
      basis === 'recorded'
        ? {
            en: 'rank {rank:text}: {used:bytes} of {size:bytes} used by the process at its peak; the allocator reserved {reserved:bytes} and allocated {allocated:bytes}',
            zh: '卡 {rank:text}：进程峰值占用 {used:bytes}，显存共 {size:bytes}；分配器保留 {reserved:bytes}，分配 {allocated:bytes}',
          }
        : {
            en: 'rank {rank:text}: {used:bytes} used by the process at its peak, {size:bytes} nominal; the allocator reserved {reserved:bytes} and allocated {allocated:bytes}',
            zh: '卡 {rank:text}：进程峰值占用 {used:bytes}，标称显存 {size:bytes}；分配器保留 {reserved:bytes}，分配 {allocated:bytes}',
          },
    params: { rank: rank ?? '?', used: peaks.used, size, reserved: peaks.reserved, allocated: peaks.allocated },
  };
}

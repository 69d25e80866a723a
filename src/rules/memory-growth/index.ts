import { median } from '../../base/statistics.ts';
import { deviceMemory, memoryPeaks } from '../../facts/job/device-memory.ts';
import type { Frame } from '../../model/capture.ts';
import type { RankFacts } from '../../model/facts.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

/** A leak adds about the same in each step: the least step must add this share of the median one. */
const EVEN = 0.5;
/** A first step that adds so many times as much creates state (optimizer, caches) and is left out. */
const FIRST_STEP = 3;

interface Growth {
  readonly rank: number;
  /** Least allocated of the steps that count, bytes, and their indices. */
  readonly floors: readonly number[];
  readonly steps: readonly number[];
  /** Median increase per step. */
  readonly rate: number;
}

/** Steps whose floors count: all of them, but not a first one that only creates state. */
function floorsOf(rank: RankFacts): { floors: number[]; steps: number[] } {
  const known = (rank.memory?.steps ?? []).flatMap((s, i) => (Number.isNaN(s.floor) ? [] : [{ floor: s.floor, i }]));
  const increments = known.slice(1).map((k, n) => k.floor - known[n]!.floor);
  const rest = median(increments.slice(1));
  const drop = increments.length > 0 && !(increments[0]! <= FIRST_STEP * Math.max(0, rest)) ? 1 : 0;
  const counted = known.slice(drop);
  return { floors: counted.map((k) => k.floor), steps: counted.map((k) => k.i) };
}

/** What a step allocates and nobody releases, by operator: the same in all steps but the last, whose blocks may still be in use. */
function keptBy(rank: RankFacts, steps: readonly number[]): { name: string; bytes: number; frame: Frame | null }[] {
  const before = steps.slice(0, -1);
  return (rank.memory?.held ?? [])
    .filter((h) => h.name !== '' && before.length > 0 && before.every((s) => (h.bytes[s] ?? 0) > 0))
    .map((h) => ({ name: h.name, bytes: median(before.map((s) => h.bytes[s]!)), frame: h.frame }))
    .sort((a, b) => b.bytes - a.bytes);
}

export default defineRule({
  id: 'memory-growth',
  title: { en: 'Allocated memory grows from step to step', zh: '已分配显存逐迭代增长' },
  category: 'memory',
  maturity: 'stable',
  needs: ['memory', 'steps'],
  options: {
    minSteps: {
      default: 4,
      unit: 'count',
      min: 3,
      max: 1_000,
      description: { en: 'steps with memory records that a trend needs', zh: '判断增长趋势所需的迭代数' },
      why: {
        en: 'three increases of nearly the same size are no chance; two can be',
        zh: '三次相近的增量不会是偶然，两次则可能是',
      },
    },
    minShare: {
      default: 0.0001,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'smallest growth per step reported, as a share of what is allocated',
        zh: '可报告的最小每迭代增长，占已分配显存的比例',
      },
      why: {
        en: 'one part in 10,000 per step fills the rest of a card within some thousand steps; less may be bookkeeping',
        zh: '每迭代增长万分之一，数千个迭代就会占满整卡；更少可能只是记账误差',
      },
    },
  },
  remedies: ['release-tensors'],
  detect(job, options) {
    const all = job.ranks.map(floorsOf);
    const most = Math.max(0, ...all.map((f) => f.floors.length));
    if (most < options.minSteps) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'a trend needs {need:int} steps with memory records after warm-up, {n:int} are here',
            zh: '判断趋势需要预热后 {need:int} 个有内存记录的迭代，目前有 {n:int} 个',
          },
          params: { need: options.minSteps, n: most },
        },
      };
    }
    const growing = all.flatMap(({ floors, steps }, rank): Growth[] => {
      if (floors.length < options.minSteps) return [];
      const increments = floors.slice(1).map((f, i) => f - floors[i]!);
      const rate = median(increments);
      const isEven = Math.min(...increments) >= EVEN * rate;
      return rate > 0 && isEven && rate >= options.minShare * floors[0]! ? [{ rank, floors, steps, rate }] : [];
    });
    if (growing.length === 0) {
      const largest = Math.max(0, ...all.flatMap(({ floors }) => floors.slice(1).map((f, i) => f - floors[i]!)));
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'what stays allocated between steps does not grow steadily (largest increase {max:bytes})',
            zh: '迭代之间保持分配的显存没有持续增长（最大增量 {max:bytes}）',
          },
          params: { max: largest },
        },
      };
    }
    const worst = growing.reduce((a, b) => (b.rate > a.rate ? b : a));
    const facts = job.ranks[worst.rank]!;
    const kept = keptBy(facts, worst.steps);
    const named = kept.filter((k) => k.bytes >= 0.1 * worst.rate).slice(0, 3);
    const isNamed = named.reduce((sum, k) => sum + k.bytes, 0) >= 0.5 * worst.rate;
    const size = deviceMemory(facts);
    const peaks = memoryPeaks(facts);
    const idOf = (s: number): number | null => facts.steps[s]?.id ?? null;
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: 'rank {rank:text}: least allocated per step {floors:text}, {rate:bytes} more in each',
            zh: '卡 {rank:text}：各迭代最低分配量 {floors:text}，每迭代增加 {rate:bytes}',
          },
          params: {
            rank: facts.rank ?? '?',
            floors: worst.floors
              .slice(-6)
              .map((f) => `${(f / 1e9).toFixed(3)} GB`)
              .join(', '),
            rate: worst.rate,
          },
        },
        file: 'memory_record.csv',
        rank: worst.rank,
        step: idOf(worst.steps[worst.steps.length - 1]!),
      },
      ...named.map(
        (k): RawEvidence => ({
          message: {
            text: {
              en: '{name:code} allocates {size:bytes} in each step that is not released before the capture ends',
              zh: '{name:code} 每迭代分配 {size:bytes}，采集结束前未释放',
            },
            params: { name: k.name, size: k.bytes },
          },
          file: 'operator_memory.csv',
          rank: worst.rank,
        }),
      ),
    ];
    if (size !== null && peaks !== null) {
      evidence.push({
        message: {
          text: {
            en: 'at this rate the remaining {free:bytes} of the card last for {steps:int} more steps',
            zh: '按此速度，剩余 {free:bytes} 显存还可支撑 {steps:int} 个迭代',
          },
          params: { free: Math.max(0, size.bytes - peaks.needed), steps: Math.max(0, (size.bytes - peaks.needed) / worst.rate) },
        },
        file: null,
        rank: worst.rank,
      });
    }
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: { en: 'Allocated memory grows by {rate:bytes} in every step', zh: '已分配显存每迭代增长 {rate:bytes}' },
            params: { rate: worst.rate },
          },
          ranks: growing.map((g) => g.rank),
          steps: worst.steps.map(idOf).filter((id) => id !== null),
          groups: [],
          confidence: isNamed && worst.floors.length > options.minSteps ? 'high' : 'medium',
          severity: 'high',
          evidence,
          caveats: isNamed
            ? []
            : [
                {
                  text: {
                    en: 'the blocks that stay could not be named: the growth may come from several places',
                    zh: '无法确定未释放的块：增长可能来自多处',
                  },
                },
              ],
          removal: null,
          boundMs: null,
          boundMethod: { text: { en: '', zh: '' } },
          information: false,
          symptomOf: null,
          frames: named.flatMap((k) => (k.frame === null ? [] : [k.frame])),
          remedies: [{ id: 'release-tensors', params: { operators: named.map((k) => k.name).join(', ') } }],
          hotspot: named[0]?.name ?? 'growth',
        },
      ],
    };
  },
});

import { type Intervals, union } from '../../base/intervals.ts';
import { median } from '../../base/statistics.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { hostPauses } from '../../facts/job/pauses.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { SLOW_MS, SLOW_SHARE, type SlowCause, type SlowStep, stepSpread } from '../../facts/job/slow-steps.ts';
import type { Frame } from '../../model/capture.ts';
import type { L10n } from '../../model/lang.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** Slow steps named one by one. */
const NAMED = 4;
/** Mean cost per step from which steps that are slow now and then deserve a look. */
const COSTLY = 0.05;

interface Cause {
  readonly name: L10n;
  /** Rules that report the same cause when it is there in many steps. */
  readonly owners: readonly string[];
  readonly remedy: 'steady-host' | 'dataloader-workers' | 'jit-compile-off' | null;
}

const HOST_PAUSE = ['hccl-sync-wait', 'step-start-gap', 'host-bound-launch'];
const CAUSES: Readonly<Record<SlowCause, Cause>> = {
  loader: { name: { en: 'a slow fetch', zh: '取数变慢' }, owners: ['dataloader-stall'], remedy: 'dataloader-workers' },
  preparation: { name: { en: 'batch preparation', zh: 'batch 准备' }, owners: ['batch-preparation'], remedy: 'steady-host' },
  gc: { name: { en: 'garbage collection', zh: '垃圾回收' }, owners: ['gc-pause'], remedy: 'steady-host' },
  compile: { name: { en: 'compiled operators', zh: '算子编译' }, owners: ['op-recompile'], remedy: 'jit-compile-off' },
  allocator: { name: { en: 'device memory taken or given back', zh: '显存申请与释放' }, owners: ['memory-alloc-stall'], remedy: null },
  copy: { name: { en: 'a blocking copy to the card', zh: '阻塞的 Host 到 Device 拷贝' }, owners: ['h2d-copy'], remedy: null },
  sync: { name: { en: 'the host waiting for the card', zh: 'Host 等待 NPU' }, owners: ['stream-sync'], remedy: 'steady-host' },
  launch: { name: { en: 'slow launches', zh: '下发变慢' }, owners: HOST_PAUSE, remedy: 'steady-host' },
  unexplained: {
    name: { en: 'a pause of the host without any recorded operator', zh: 'Host 停顿，期间没有记录到算子' },
    owners: HOST_PAUSE,
    remedy: 'steady-host',
  },
  computing: { name: { en: 'more computing', zh: '计算变长' }, owners: ['slow-rank', 'frequency-drop', 'hccl-sync-wait'], remedy: null },
  transfer: {
    name: { en: 'collectives that took longer with all ranks present', zh: '所有卡到齐后通信仍变慢' },
    owners: ['slow-link', 'retransmission'],
    remedy: null,
  },
  unknown: { name: { en: 'nothing the profile records', zh: 'profile 中没有记录到原因' }, owners: [], remedy: null },
};

/** Where the cause of a slow step shows on its rank. */
function placeOf(
  job: JobFacts,
  step: SlowStep,
  pauses: ReadonlyMap<number, Intervals>,
): { start: number; end: number; frame: Frame | null } | null {
  const rank = job.ranks[step.rank];
  if (rank === undefined) return null;
  const longest = <T extends { readonly step: number; readonly start: number; readonly end: number }>(list: readonly T[]): T | null =>
    list.filter((c) => c.step === step.index).reduce<T | null>((a, b) => (a === null || b.end - b.start > a.end - a.start ? b : a), null);
  const within = (span: { start: number; end: number } | null, frame: Frame | null = null) => (span === null ? null : { ...span, frame });
  switch (step.cause) {
    case 'loader':
      return within(longest(rank.loader?.fetches ?? []), rank.loader?.frame ?? null);
    case 'gc':
      return within(longest(rank.host?.gc?.calls ?? []));
    case 'compile':
      return within(longest(rank.compile?.calls ?? []), rank.compile?.frame ?? null);
    case 'preparation': {
      const found = longest(rank.host?.preparation ?? []);
      return within(found, found?.frame ?? null);
    }
    case 'allocator':
      return within(longest(rank.host?.allocator?.calls ?? []));
    case 'launch':
    case 'unexplained': {
      const quiet = longest(rank.host?.quiet ?? []);
      if (quiet !== null) return within(quiet, quiet.frame);
      const own = pauses.get(step.rank);
      const { start, end } = rank.steps[step.index]!;
      const at = own === undefined ? -1 : own.start.findIndex((from, i) => from < end && own.end[i]! > start);
      return at === -1 ? null : { start: own!.start[at]!, end: own!.end[at]!, frame: null };
    }
    default:
      return null;
  }
}

/** Host time of the slow steps that a usual step does not have, by rank. */
function removalOf(slow: readonly SlowStep[], places: readonly ReturnType<typeof placeOf>[]): Map<number, Removal> {
  const spans = Map.groupBy(
    slow.flatMap((s, i) => {
      const place = places[i];
      if (place == null || !(s.causeMs > 0)) return [];
      return [{ rank: s.rank, span: [Math.max(place.start, place.end - s.causeMs * 1e6), place.end] as const }];
    }),
    (s) => s.rank,
  );
  return new Map([...spans].map(([rank, list]) => [rank, { host: union(list.map((l) => l.span)) }] as const));
}

export default defineRule({
  id: 'step-jitter',
  title: { en: 'Some steps take much longer than the others', zh: '部分迭代明显慢于其余迭代' },
  category: 'capture',
  maturity: 'stable',
  needs: ['steps'],
  options: {
    minShare: {
      default: SLOW_SHARE,
      unit: 'share',
      min: 0.01,
      max: 10,
      description: {
        en: 'how much longer a step takes to count as slow, as a share of a usual one',
        zh: '迭代比通常慢多少才视为慢迭代，占通常耗时的比例',
      },
      why: {
        en: 'unchanged jobs vary by a few per cent from step to step; a tenth is an event',
        zh: '未改动的作业，迭代之间相差百分之几；十分之一已是异常事件',
      },
    },
    minMs: {
      default: SLOW_MS,
      unit: 'ms',
      min: 0,
      max: 100_000,
      description: { en: 'how much longer a step takes at least', zh: '慢迭代至少多出的耗时' },
      why: {
        en: 'short steps vary by fractions of a millisecond for reasons nobody can change',
        zh: '短迭代本来就有零点几毫秒的波动，无法消除',
      },
    },
  },
  remedies: ['steady-host', 'dataloader-workers', 'jit-compile-off'],
  detect(job, options) {
    const spread = stepSpread(job, options.minShare, options.minMs);
    if (spread === null) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: { en: 'the spread of step times needs 3 steps that follow each other', zh: '判断迭代波动需要 3 个连续迭代' },
        },
      };
    }
    const { slow, usualMs, times } = spread;
    if (slow.length === 0) {
      const most = Math.max(...times.map((t) => t.ms));
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'the slowest of {n:int} steps takes {more:pct} longer than a usual one',
            zh: '{n:int} 个迭代中最慢的比通常长 {more:pct}',
          },
          params: { n: times.length, more: Math.max(0, most / usualMs - 1) },
        },
      };
    }
    const pauses = hostPauses(job);
    const findings = [...Map.groupBy(slow, (s) => s.cause)].map(([cause, list]): RawFinding => {
      const { name, owners, remedy } = CAUSES[cause];
      const places = list.map((s) => placeOf(job, s, pauses));
      const removal = removalOf(list, places);
      // Fewer slow steps than usual ones do not move the median: what they cost is told as a mean, and no saving is claimed.
      const isUsual = list.length * 2 > times.length;
      const meanMs = list.reduce((sum, s) => sum + s.excessMs, 0) / times.length;
      const order = list.map((s, i) => ({ s, place: places[i]! })).sort((a, b) => b.s.excessMs - a.s.excessMs);
      const frames = order.flatMap(({ place }) => (place?.frame == null ? [] : [place.frame]));
      const evidence = order.slice(0, NAMED).map(({ s, place }): RawEvidence => {
        const rank = job.ranks[s.rank];
        return {
          message: {
            text:
              cause === 'unknown'
                ? {
                    en: 'step {step:text} took {ms:ms}, {more:ms} longer than a usual one, for a reason that is not recorded',
                    zh: '迭代 {step:text} 耗时 {ms:ms}，比通常长 {more:ms}，原因没有记录',
                  }
                : rank === undefined
                  ? {
                      en: `step {step:text} took {ms:ms}, {more:ms} longer than a usual one; {own:ms} more went to it: ${name.en}`,
                      zh: `迭代 {step:text} 耗时 {ms:ms}，比通常长 {more:ms}；其中多出 {own:ms}：${name.zh}`,
                    }
                  : {
                      en: `step {step:text} took {ms:ms}, {more:ms} longer than a usual one; on rank {rank:text} {own:ms} more went to ${name.en}`,
                      zh: `迭代 {step:text} 耗时 {ms:ms}，比通常长 {more:ms}；卡 {rank:text} 多出 {own:ms}：${name.zh}`,
                    },
            params: {
              step: s.id ?? s.index,
              ms: s.ms,
              more: s.excessMs,
              own: s.causeMs,
              rank: rank?.rank ?? '?',
            },
          },
          file: 'trace_view.json',
          rank: rank === undefined ? job.steps.pace : s.rank,
          step: s.id,
          ...(place === null ? {} : { start: place.start, duration: place.end - place.start }),
        };
      });
      evidence.push({
        message: {
          text: {
            en: '{n:int} of {of:int} steps; a usual step takes {usual:ms}, the slow ones cost {mean:ms} per step on average',
            zh: '{of:int} 个迭代中有 {n:int} 个；通常耗时 {usual:ms}，慢迭代平均每迭代多花 {mean:ms}',
          },
          params: { n: list.length, of: times.length, usual: usualMs, mean: meanMs },
        },
        file: null,
        rank: null,
      });
      return {
        title: {
          text:
            cause === 'unknown'
              ? {
                  en: '{n:int} of {of:int} steps take up to {x:num} times as long as usual',
                  zh: '{of:int} 个迭代中有 {n:int} 个耗时最多为通常的 {x:num} 倍',
                }
              : {
                  en: `{n:int} of {of:int} steps take up to {x:num} times as long as usual: ${name.en}`,
                  zh: `{of:int} 个迭代中有 {n:int} 个耗时最多为通常的 {x:num} 倍：${name.zh}`,
                },
          params: { n: list.length, of: times.length, x: Math.max(...list.map((s) => s.ms)) / usualMs },
        },
        ranks: [...new Set(list.map((s) => s.rank).filter((r) => r >= 0))],
        steps: list.map((s) => s.id).filter((id) => id !== null),
        groups: [],
        confidence:
          cause === 'unknown' ? 'low' : dataConfidence(job, cause !== 'computing' && cause !== 'transfer') === 'low' ? 'low' : 'medium',
        severity: meanMs >= COSTLY * usualMs ? 'medium' : 'info',
        evidence,
        caveats: isUsual
          ? []
          : [
              {
                text: {
                  en: 'most steps do not have it, so the median step stays as it is: no saving is claimed',
                  zh: '多数迭代没有该问题，迭代中位数不变，因此不计可省时间',
                },
              },
            ],
        removal: isUsual && removal.size > 0 ? { likely: removal } : null,
        boundMs: isUsual ? Math.max(0, median(times.map((t) => t.ms)) - usualMs) : null,
        boundMethod: { text: { en: 'median of all steps less that of the usual ones', zh: '所有迭代的中位数减去通常迭代的中位数' } },
        information: false,
        symptomOf: null,
        explainedBy: owners,
        frames: frames.slice(0, 1),
        remedies: remedyOf(job, cause, remedy, list),
        hotspot: cause,
      };
    });
    return { outcome: 'findings', findings };
  },
});

function remedyOf(job: JobFacts, cause: SlowCause, remedy: Cause['remedy'], list: readonly SlowStep[]): RawFinding['remedies'] {
  switch (remedy) {
    case null:
      return [];
    case 'dataloader-workers': {
      const loader = job.ranks[list[0]!.rank]?.loader;
      const all = new Set(list.map((s) => s.rank)).size === job.ranks.length;
      return [
        {
          id: 'dataloader-workers',
          params: {
            iterator: loader?.iterator ?? null,
            allRanks: all,
            intermittent: true,
            stallMs: Math.max(...list.map((s) => s.causeMs)),
          },
        },
      ];
    }
    case 'jit-compile-off':
      return [{ id: 'jit-compile-off', params: { calls: list.length } }];
    case 'steady-host':
      return [{ id: 'steady-host', params: { cause, oneRank: job.ranks.length === 1 } }];
  }
}

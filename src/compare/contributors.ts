import type { JobFacts } from '../facts/job/index.ts';
import type { Contributor, ContributorDetail, Measure, Part } from '../model/comparison.ts';
import type { L10n } from '../model/lang.ts';
import { type Account, type Detail, IDLE_PARTS } from './account.ts';
import { collectiveDetails } from './collectives.ts';
import { operatorDetails } from './operators.ts';
import { commonDetail, middleSteps, paceBySteps, paceShares, type Stand, scaled, stand, standsOut, total } from './stand.ts';

/** Below this share of the step a part is folded into the rest: parts of unchanged jobs move by as much. */
const SHOWN = 0.01;
/** Of many ranks that set the pace by turns, those with the largest share stand for all. */
const MAX_PACE = 8;

export interface Explained {
  readonly contributors: readonly Contributor[];
  readonly pace: { readonly ranks: readonly number[]; readonly standsOut: boolean };
  /** Accounts of the rank that stands for most steps, by used step. */
  readonly series: { readonly head: readonly Account[]; readonly base: readonly Account[] };
}

/**
 * Splits the change of the step over its parts. They are read from the rank that sets the pace in the slower job and from the same rank
 * in the other: what that rank did differently is the cause, the longer waiting of the others its effect. Both jobs hold the same ranks
 * in the same order.
 */
export function explain(head: JobFacts, base: JobFacts, step: Measure & { delta: number }): Explained {
  const slowerIsHead = step.delta >= 0;
  const [slower, faster] = slowerIsHead ? [head, base] : [base, head];
  const weights = middleSteps(slower);
  const paces = paceBySteps(slower, weights.keys());
  const shares = new Map([...paceShares(paces, weights)].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, MAX_PACE));
  const kept = [...shares.values()].reduce((a, b) => a + b, 0);
  const slow = stand(slower, shares.keys(), (rank) =>
    scaled(
      [...weights].filter(([s]) => paces.get(s) === rank),
      1 / kept,
    ),
  );
  const others = middleSteps(faster);
  const fast = stand(faster, shares.keys(), (rank) => scaled(others, shares.get(rank)! / kept));
  const [now, before] = slowerIsHead ? [slow, fast] : [fast, slow];

  const detail = commonDetail(now, before);
  const [after, prior] = [total(now, detail), total(before, detail)];
  const smallest = SHOWN * step.base!;
  const shown = PARTS.filter((part) => Math.abs((after[part] ?? 0) - (prior[part] ?? 0)) >= smallest).map((part): Contributor => {
    const [b, h] = [prior[part] ?? 0, after[part] ?? 0];
    return { part, what: { text: nameOf(part, detail) }, base: b, head: h, delta: h - b, details: detailsOf(part, now, before, smallest) };
  });
  const direction = slowerIsHead ? 1 : -1;
  shown.sort((a, b) => direction * (b.delta - a.delta));
  const rest = (value: (c: Contributor) => number, whole: number): number => whole - shown.reduce((sum, c) => sum + value(c), 0);
  const pace = [...shares.keys()];
  return {
    contributors: [
      ...shown,
      {
        part: 'other',
        what: { text: PART_NAMES.other },
        base: rest((c) => c.base, step.base!),
        head: rest((c) => c.head, step.head!),
        delta: rest((c) => c.delta, step.delta),
        details: [],
      },
    ],
    pace: {
      ranks: pace.map((r) => slower.ranks[r]!.rank).filter((r): r is number => r !== null),
      standsOut: pace.length === 1 && standsOut(slower, pace[0]!, weights.keys(), smallest),
    },
    series: { head: seriesOf(now, pace[0], detail), base: seriesOf(before, pace[0], detail) },
  };
}

function seriesOf({ job, accounts }: Stand, rank: number | undefined, detail: Detail): Account[] {
  const own = rank === undefined ? undefined : accounts.get(rank);
  if (own === undefined) return [];
  return job.steps.usedIndex.map((step) => own.at(step, detail)).filter((account) => account !== null);
}

function detailsOf(part: Part, head: Stand, base: Stand, smallest: number): readonly ContributorDetail[] {
  if (part === 'computing') return operatorDetails(head, base, smallest);
  if (part === 'communication') return collectiveDetails(head, base, smallest);
  return [];
}

const PARTS: readonly Part[] = ['computing', 'communication', 'waiting', ...IDLE_PARTS];

function nameOf(part: Part, detail: Detail): L10n {
  return part === 'communication' && detail === 'waiting' ? TRANSFER : PART_NAMES[part];
}

const TRANSFER: L10n = { en: 'exposed communication, without waiting for other ranks', zh: '未掩盖通信（不含等待其他卡）' };

export const PART_NAMES: Readonly<Record<Part, L10n>> = {
  computing: { en: 'computing', zh: '计算' },
  communication: { en: 'exposed communication', zh: '未掩盖通信' },
  waiting: { en: 'waiting for other ranks in communication', zh: '通信中等待其他卡' },
  copying: { en: 'copies', zh: '数据拷贝' },
  idle: { en: 'idle', zh: '空闲' },
  'idle-gc': { en: 'idle: Python collects garbage', zh: '空闲：垃圾回收（GC）' },
  'idle-compile': { en: 'idle: operators are compiled', zh: '空闲：算子编译' },
  'idle-allocator': { en: 'idle: device memory is taken or given back', zh: '空闲：内存申请与释放' },
  'idle-copy': { en: 'idle: a copy to the device holds the host', zh: '空闲：拷贝到设备占用 Host' },
  'idle-sync': { en: 'idle: stream synchronisation', zh: '空闲：流同步' },
  'idle-loader': { en: 'idle: waiting for the data loader', zh: '空闲：等待数据加载' },
  'idle-preparation': { en: 'idle: batch preparation', zh: '空闲：batch 准备' },
  'idle-launch': { en: 'idle: launches come too late', zh: '空闲：下发跟不上' },
  'idle-collective': { en: 'idle: before and after collectives', zh: '空闲：集合通信前后' },
  'idle-dependency': { en: 'idle: work is queued and waits on the device', zh: '空闲：任务已下发，在设备上等待' },
  'idle-unexplained': { en: 'idle: cause not recorded', zh: '空闲：原因没有记录' },
  other: { en: 'everything else', zh: '其余' },
};

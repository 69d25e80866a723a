import type { JobFacts } from '../facts/job/index.ts';
import { sentToCard } from '../facts/job/launched.ts';
import { medianOfUsed } from '../facts/job/per-step.ts';
import { tableLateness } from '../facts/job/table-lateness.ts';
import { COMPUTE } from '../model/facts.ts';
import type { L10n, Message } from '../model/lang.ts';

/** Why finding no cause proves nothing here. */
export interface Silence {
  readonly outcome: 'no-data' | 'incomplete';
  readonly text: L10n;
}

/** Less device work than this in a step is no training and no inference. */
const IDLE_SHARE = 0.005;
const FEW_KERNELS = 10;

/** null when the data would have shown a cause. */
export function silence(job: JobFacts): Silence | null {
  const { ranks, steps } = job;
  const kernels = ranks.map((r) => r.tape?.kind.reduce((n, kind) => n + (kind === COMPUTE ? 1 : 0), 0) ?? 0);
  const hostOps = ranks.some((r) => r.capabilities.has('host-ops') || r.hostOps.length > 0);
  const tables = ranks.some((r) => r.steps.some((s) => s.breakdown.computingMs > 0));
  const isCut = ranks.some((r) => r.damage.length > 0);
  if (kernels.every((n) => n === 0) && !tables) {
    if (isCut) return { outcome: 'no-data', text: CUT };
    if (ranks.some(sentToCard)) return { outcome: 'no-data', text: MISSING_KERNELS };
    if (hostOps) return { outcome: 'no-data', text: ON_CPU };
    return { outcome: 'no-data', text: NO_KERNEL };
  }
  const spanNs = (steps.stepTimeMs ?? 0) * 1e6 * Math.max(1, steps.usedIndex.length);
  const busy = Math.max(...ranks.map((r) => r.tape?.busy.end.reduce((sum, end, i) => sum + end - r.tape!.busy.start[i]!, 0) ?? 0));
  if (kernels.some((n) => n > 0) && Math.max(...kernels) < FEW_KERNELS && busy < IDLE_SHARE * spanNs)
    return { outcome: 'no-data', text: NO_WORK };
  if (isCut) return { outcome: 'incomplete', text: CUT };
  if (ranks.every((r) => r.tape === null)) return { outcome: 'incomplete', text: TABLES_ONLY };
  if (!ranks.some((r) => r.capabilities.has('launches'))) return { outcome: 'incomplete', text: DEVICE_ONLY };
  if (!hostOps) return { outcome: 'incomplete', text: NO_HOST_OPS };
  return null;
}

const ON_CPU: L10n = {
  en: 'The work ran on CPU: host operators were recorded, but not one kernel. Check the device of the model and `import torch_npu`.',
  zh: '任务在 CPU 上执行：记录到 Host 算子，但没有任何 kernel。检查模型所在设备与 `import torch_npu`。',
};
const MISSING_KERNELS: L10n = {
  en: 'Missing kernel data: the host sent work to the card, but not one kernel was recorded. Capture again over more steps; parsing again does not bring it back.',
  zh: '缺少 kernel 数据：Host 已向 NPU 下发任务，但没有记录到任何 kernel。采集更多迭代；重新解析无法补回。',
};
const NO_KERNEL: L10n = {
  en: 'Not one kernel was recorded, so nothing can be judged. Capture again with NPU activity at Level1.',
  zh: '没有记录到任何 kernel，无法判断。以 NPU 活动和 Level1 重新采集。',
};
const NO_WORK: L10n = {
  en: 'The captured window held no model work: the device ran only a few kernels. Capture again while the job is busy.',
  zh: '采集窗口内没有模型任务：设备只执行了少量 kernel。在作业繁忙时重新采集。',
};
const CUT: L10n = {
  en: 'A part of the profile is cut off, so finding no cause proves nothing. Parse the capture again with `analyse()` and upload whole files.',
  zh: 'profile 的一部分被截断，因此未发现原因不能说明没有问题。用 `analyse()` 重新解析采集数据，并上传完整文件。',
};
const TABLES_ONLY: L10n = {
  en: 'Only step times were recorded: where the time goes is known, not why. Upload `trace_view.json` and `kernel_details.csv`.',
  zh: '只有迭代耗时：可知时间去向，但不知原因。上传 `trace_view.json` 与 `kernel_details.csv`。',
};
const DEVICE_ONLY: L10n = {
  en: 'Only the device side was recorded: what the host did is unknown. Upload `trace_view.json` with CPU activity.',
  zh: '只有设备侧数据：Host 侧行为未知。上传包含 CPU 活动的 `trace_view.json`。',
};
const NO_HOST_OPS: L10n = {
  en: 'No host operator was recorded: what the host did between its launches is unknown. Capture again with CPU activity.',
  zh: '没有记录 Host 算子：两次下发之间 Host 的行为未知。打开 CPU 活动后重新采集。',
};

/** Which rank the others wait for, as far as step tables tell. */
export function tableNotes(job: JobFacts): Message[] {
  const found = tableLateness(job);
  if (found === null) return spreads(job);
  const name = (r: number): number | string => job.ranks[r]!.rank ?? '?';
  const params = {
    late: name(found.late),
    waiting: name(found.waiting),
    lateFree: found.freeMs[0],
    lateShare: found.freeMs[0] / found.spanMs[0],
    free: found.freeMs[1],
    share: found.freeMs[1] / found.spanMs[1],
    lateExposed: found.exposedMs[0],
    exposed: found.exposedMs[1],
    lateComputing: found.computingMs[0],
    computing: found.computingMs[1],
    ranks: found.alike.map((r) => job.ranks[r]!.rank ?? -1),
  };
  const several: L10n = {
    en: 'Ranks {ranks:ranks} are busy longer than rank {waiting:text}, which waits in {exposed:ms} of exposed communication: computing is {lateComputing:ms} against {computing:ms}, free {lateFree:ms} against {free:ms}. Several ranks alike are no slow card: unequal pipeline stages or batches look like this, and only timelines tell.',
    zh: '卡 {ranks:ranks} 比卡 {waiting:text} 忙得更久，后者在 {exposed:ms} 的未掩盖通信中等待：计算 {lateComputing:ms}，对比 {computing:ms}；空闲 {lateFree:ms}，对比 {free:ms}。多张卡同样更忙，不是慢卡：流水线 Stage 或 batch 不均时就是这样，只有时间线能区分。',
  };
  const host: L10n = {
    en: 'Rank {late:text} is late because of its host: computing is equal ({lateComputing:ms}, {computing:ms}), free is {lateFree:ms} ({lateShare:pct}) against {free:ms} ({share:pct}). Rank {waiting:text} waits for it in {exposed:ms} of exposed communication against {lateExposed:ms}.',
    zh: '卡 {late:text} 因 Host 侧而最晚：计算相同（{lateComputing:ms}、{computing:ms}），空闲 {lateFree:ms}（{lateShare:pct}），对比 {free:ms}（{share:pct}）。卡 {waiting:text} 等待它，未掩盖通信 {exposed:ms}，对比 {lateExposed:ms}。',
  };
  const work: L10n = {
    en: 'Rank {late:text} is late: it computes {lateComputing:ms} against {computing:ms} and is free for {lateFree:ms} against {free:ms}. Rank {waiting:text} waits for it in {exposed:ms} of exposed communication against {lateExposed:ms}.',
    zh: '卡 {late:text} 最晚：计算 {lateComputing:ms}，对比 {computing:ms}；空闲 {lateFree:ms}，对比 {free:ms}。卡 {waiting:text} 等待它，未掩盖通信 {exposed:ms}，对比 {lateExposed:ms}。',
  };
  return [{ text: found.alike.length > 1 ? several : found.sameComputing ? host : work, params }];
}

/** Ranks with less than this between them are alike. */
const ALIKE = 0.05;

/** Step tables of several ranks and nothing else: how they differ, which says what they wait for but not for whom. */
function spreads(job: JobFacts): Message[] {
  if (job.ranks.length < 3 || job.ranks.some((r) => r.tape !== null)) return [];
  const rows = job.ranks.map((rank) => {
    const of = (value: (b: (typeof rank.steps)[number]['breakdown']) => number): number =>
      medianOfUsed(
        job,
        rank.steps.map((s) => value(s.breakdown)),
      );
    return {
      free: of((b) => b.freeMs) / of((b) => b.stageMs + (b.bubbleMs || 0)),
      computing: of((b) => b.computingMs),
      exposed: of((b) => b.exposedMs),
    };
  });
  if (rows.some((r) => !(r.computing > 0) || !(r.exposed > 0) || Number.isNaN(r.free))) return [];
  const range = (values: readonly number[]): [number, number] => [Math.min(...values), Math.max(...values)];
  const [leastFree, mostFree] = range(rows.map((r) => r.free));
  const [leastComputing, mostComputing] = range(rows.map((r) => r.computing));
  const [leastExposed, mostExposed] = range(rows.map((r) => r.exposed));
  const params = {
    leastFree,
    mostFree,
    computing: mostComputing / leastComputing - 1,
    exposed: mostExposed / leastExposed,
    n: job.ranks.length,
  };
  const text: L10n = {
    en: 'Over {n:int} ranks free is {leastFree:pct} to {mostFree:pct} of the span, computing differs by {computing:pct} and exposed communication by {exposed:num} ×.',
    zh: '{n:int} 张卡的空闲占设备侧跨度的 {leastFree:pct} 到 {mostFree:pct}，计算相差 {computing:pct}，未掩盖通信相差 {exposed:num} 倍。',
  };
  const alike: L10n = {
    en: 'They compute alike, so they wait for each other’s host, not for a slow card or link; whose host it is, only timelines with step marks of all ranks tell.',
    zh: '各卡计算一致，因此等待的是彼此的 Host，而不是慢卡或慢链路；具体是哪张卡的 Host，需要所有卡带迭代标记的时间线。',
  };
  const hostBound = params.computing < ALIKE && leastFree > 0.2 && params.exposed > 1.5;
  return [{ text, params }, ...(hostBound ? [{ text: alike }] : [])];
}

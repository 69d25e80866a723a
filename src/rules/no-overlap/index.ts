import { median } from '../../base/statistics.ts';
import { backwardComputing, backwardComputingAtMost } from '../../facts/job/backward.ts';
import { drains } from '../../facts/job/drains.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { stepCount, type Transfer, transfers } from '../../facts/job/transfers.ts';
import type { Message } from '../../model/lang.ts';
import { type Detection, defineRule } from '../../model/rule.ts';
import type { Removal, Removals } from '../../replay/replay.ts';

const GRADIENT = new Set(['allReduce', 'reduceScatter']);
const ROLES = new Set(['data', 'world', 'unknown']);
/** Smaller ones are the loss, norms and flags, bytes. */
const LEAST_BYTES = 65_536;
/** Bucket that gradients are reduced in when nobody sets another, bytes. */
const BUCKET = 25 * 1024 * 1024;
/** Beside computing a transfer takes longer: both read the same memory. Measured on other jobs up to 1.3 times. */
const BESIDE_COMPUTING = 1.3;

/** The gradient collectives of one group in one step. */
interface Reduction {
  readonly step: number | null;
  readonly group: string;
  readonly calls: readonly Transfer[];
  /** ms: moving them, the part beside computing, and computing of the backward they could move beside (NaN when unknown). */
  readonly movingMs: number;
  readonly hiddenMs: number;
  readonly backwardMs: number;
  /** Backward computing known from the timeline, not only bounded by the step table. */
  readonly measured: boolean;
}

/** Time without waiting: what is left after the last arrival, or while members are missing what the links themselves took. */
function movingOf(t: Transfer): number {
  return t.whole ? t.bodyMs : Math.min(t.bodyMs, t.movingMs);
}

function reductionsOf(job: JobFacts): Reduction[] {
  const gradients = transfers(job).filter((t) => GRADIENT.has(t.op) && !t.p2p && ROLES.has(t.role) && t.size > 1 && t.bytes >= LEAST_BYTES);
  const backward = job.ranks.map(backwardComputing);
  const stepIndex = new Map(job.steps.usedIndex.map((s) => [job.ranks[0]?.steps[s]?.id ?? null, s] as const));
  const overlappedNothing = job.ranks.map((r) =>
    job.steps.usedIndex.every((s) => (r.steps[s]?.breakdown.overlappedMs ?? Number.NaN) < 0.01),
  );
  const byGroup = [...Map.groupBy(gradients, (t) => `${t.step}/${t.group}`).values()];
  // A rank that reduces in several groups has its backward only once.
  const perRank = new Map<string, number>();
  for (const calls of byGroup) {
    for (const r of new Set(calls.flatMap((t) => job.matches[t.match]!.ranks))) {
      const key = `${calls[0]!.step}/${r}`;
      perRank.set(key, (perRank.get(key) ?? 0) + calls.reduce((sum, t) => sum + movingOf(t), 0));
    }
  }
  return byGroup.flatMap((calls): Reduction[] => {
    const { step, group } = calls[0]!;
    const members = [...new Set(calls.flatMap((t) => job.matches[t.match]!.ranks))];
    const at = stepIndex.get(step) ?? job.steps.usedIndex[0] ?? 0;
    let movingMs = 0;
    let hiddenMs = 0;
    for (const t of calls) {
      const ms = movingOf(t);
      const r = job.matches[t.match]!.ranks[0]!;
      const overlap = Number.isNaN(t.overlap) ? (overlappedNothing[r] ? 0 : Number.NaN) : t.whole ? t.overlap : overlapOfMoving(job, t, ms);
      movingMs += ms;
      hiddenMs += ms * overlap;
    }
    if (Number.isNaN(movingMs) || Number.isNaN(hiddenMs)) return [];
    const shareOf = (r: number): number => movingMs / (perRank.get(`${step}/${r}`) || movingMs);
    const timed = members.map((r) => (backward[r]![at] ?? Number.NaN) * shareOf(r)).filter((ms) => !Number.isNaN(ms));
    const bounded = members.map((r) => backwardComputingAtMost(job, r) * shareOf(r)).filter((ms) => !Number.isNaN(ms));
    const measured = timed.length === members.length;
    return [{ step, group, calls, movingMs, hiddenMs, backwardMs: median(measured ? timed : bounded), measured }];
  });
}

/** While members are missing a call holds waiting; its transfer lies at the end. */
function overlapOfMoving(job: JobFacts, t: Transfer, ms: number): number {
  const match = job.matches[t.match]!;
  const exposed = Math.min(...match.ranks.map((r, k) => job.ranks[r]!.collectives[match.calls[k]!]!.exposed)) / 1e6;
  return ms > 0 ? 1 - Math.min(exposed, ms) / ms : 0;
}

/**
 * ms that stick out of a backward when the same messages are reduced while it runs: each is ready after its share of the backward, and
 * one after another moves.
 */
export function remainder(backwardMs: number, movingMs: readonly number[]): number {
  const all = movingMs.reduce((a, b) => a + b, 0);
  let ready = 0;
  let end = 0;
  for (const ms of movingMs) {
    ready += ms / all;
    end = Math.max(end, backwardMs * ready) + ms;
  }
  return end - backwardMs;
}

/** The messages as they are, or cut into buckets: what one tensor is cannot be cut, so several large ones are likely to stay. */
function messagesOf({ calls }: Reduction, slower: number, cut: boolean): number[] {
  return calls.flatMap((t) => {
    const buckets = cut || calls.length === 1 ? Math.min(1_000, Math.max(1, Math.ceil(t.bytes / BUCKET))) : 1;
    return new Array<number>(buckets).fill((slower * movingOf(t)) / buckets);
  });
}

function removalOf(job: JobFacts, reductions: readonly Reduction[], slower: number, cut: boolean): Removals {
  const bodies = new Map<number, Map<number, number>>();
  for (const reduction of reductions) {
    const left = remainder(reduction.backwardMs, messagesOf(reduction, slower, cut)) * 1e6;
    reduction.calls.forEach((t, i) => {
      const match = job.matches[t.match]!;
      match.ranks.forEach((r, k) => {
        const { node } = job.ranks[r]!.collectives[match.calls[k]!]!;
        if (node === -1) return;
        const own = bodies.get(r) ?? new Map<number, number>();
        own.set(node, i === reduction.calls.length - 1 ? left : 0);
        bodies.set(r, own);
      });
    });
  }
  return new Map([...bodies].map(([r, own]): [number, Removal] => [r, { bodies: own }]));
}

export default defineRule({
  id: 'no-overlap',
  title: { en: 'Gradients are reduced after the backward, not beside it', zh: '梯度通信未与反向计算重叠' },
  category: 'communication',
  maturity: 'preview',
  needs: ['collectives'],
  options: {
    maxOverlap: {
      default: 0.1,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'largest part of the gradient transfer beside computing that still counts as none',
        zh: '梯度通信与计算重叠的比例低于该值视为未重叠',
      },
      why: {
        en: 'bucketed reductions hide all but the last bucket; one tenth is what the edges of a backward give by chance',
        zh: '分桶归约能掩盖除最后一桶外的全部；十分之一是反向首尾偶然重叠的程度',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest time reported, as a share of the step', zh: '可报告的最小耗时，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['overlap-gradient-communication'],
  detect(job, options): Detection {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const all = reductionsOf(job);
    if (all.length === 0) return nothing(job);
    const moving = all.reduce((sum, r) => sum + r.movingMs, 0);
    const hidden = all.reduce((sum, r) => sum + r.hiddenMs, 0);
    const late = all.filter((r) => r.hiddenMs < options.maxOverlap * r.movingMs);
    const gain = late.filter((r) => r.backwardMs > 0).map((r) => ({ r, ms: r.movingMs - remainder(r.backwardMs, messagesOf(r, 1, true)) }));
    // Groups side by side reduce at the same time, so the longest of a step counts.
    // Where one step was captured, calls whose step is not recorded are of that one.
    const count = stepCount(job);
    const perStep = [...Map.groupBy(gain, ({ r }) => (count === 1 ? null : r.step)).values()].map((list) =>
      Math.max(...list.map(({ ms }) => ms)),
    );
    const boundMs = perStep.reduce((a, b) => a + b, 0) / count;
    if (late.length === 0 || boundMs < Math.max(options.minShare * step, 0.5)) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: '{share:pct} of the {ms:ms} that gradients move per step runs beside computing; {gain:ms} more could',
            zh: '每迭代梯度传输 {ms:ms}，其中 {share:pct} 与计算重叠；还可重叠 {gain:ms}',
          },
          params: { share: hidden / moving, ms: moving / count, gain: boundMs },
        },
      };
    }
    const worst = late.reduce((a, b) => (b.movingMs - b.hiddenMs > a.movingMs - a.hiddenMs ? b : a));
    const longest = worst.calls.reduce((a, b) => (b.bodyMs > a.bodyMs ? b : a));
    const match = job.matches[longest.match]!;
    const call = job.ranks[match.ranks[0]!]!.collectives[match.calls[0]!]!;
    const measured = late.every((r) => r.measured && r.calls.every((t) => t.whole));
    const missing = missingRanksCaveat(job);
    const caveats: Message[] = missing === null ? [] : [missing];
    if (!measured) {
      caveats.push({
        text: {
          en: 'without a timeline of the backward only a bound is known',
          zh: '没有反向计算的时间线，只能给出上限',
        },
      });
    } else {
      caveats.push({
        text: {
          en: 'transfers beside computing take somewhat longer, and so do the kernels: the lower figure assumes 1.3 times',
          zh: '与计算重叠时通信和算子都会略慢：下限按 1.3 倍计',
        },
      });
    }
    const data = dataConfidence(job, false);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'Gradients move for {ms:ms} per step after the backward, {share:pct} of it beside computing',
              zh: '反向结束后梯度通信每迭代 {ms:ms}，与计算重叠仅 {share:pct}',
            },
            params: { ms: worst.movingMs, share: worst.hiddenMs / worst.movingMs },
          },
          ranks: [...new Set(late.flatMap((r) => r.calls.flatMap((t) => job.matches[t.match]!.ranks)))].sort((a, b) => a - b),
          steps: job.steps.used,
          groups: [...new Set(late.map((r) => r.group))].filter((g) => g !== '').slice(0, 8),
          confidence: data === 'low' ? 'low' : measured && data === 'high' ? 'high' : 'medium',
          evidence: [
            {
              message: {
                text: worst.measured
                  ? {
                      en: '{n:int} calls of {op:code} in a step, {bytes:bytes} in all, move for {ms:ms}; the backward before them computes for {backward:ms}',
                      zh: '一个迭代中 {n:int} 次 {op:code}，共 {bytes:bytes}，传输 {ms:ms}；其前的反向计算 {backward:ms}',
                    }
                  : {
                      en: '{n:int} calls of {op:code} in a step, {bytes:bytes} in all, move for {ms:ms}; all backwards of the step compute for {backward:ms} at most',
                      zh: '一个迭代中 {n:int} 次 {op:code}，共 {bytes:bytes}，传输 {ms:ms}；该迭代的反向计算合计至多 {backward:ms}',
                    },
                params: {
                  n: worst.calls.length,
                  op: longest.op,
                  bytes: worst.calls.reduce((sum, t) => sum + t.bytes, 0),
                  ms: worst.movingMs,
                  backward: worst.backwardMs,
                },
              },
              file: job.ranks[match.ranks[0]!]!.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
              rank: match.ranks[0]!,
              step: worst.step,
            },
            {
              message: {
                text: {
                  en: '{name:code}: {ms:ms}, {share:pct} of it beside computing',
                  zh: '{name:code}：{ms:ms}，与计算重叠 {share:pct}',
                },
                params: { name: call.name, ms: longest.bodyMs, share: Number.isNaN(longest.overlap) ? 0 : longest.overlap },
              },
              file: job.ranks[match.ranks[0]!]!.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
              rank: match.ranks[0]!,
              step: longest.step,
              start: call.start,
              duration: call.end - call.start,
            },
          ],
          caveats,
          removal:
            measured && job.replay !== null
              ? {
                  likely: removalOf(job, late, 1, false),
                  floor: removalOf(job, late, BESIDE_COMPUTING, false),
                  ceiling: removalOf(job, late, 1, true),
                }
              : null,
          boundMs,
          boundMethod: {
            text: {
              en: 'time the gradients move, less what would stick out of the backward if they were reduced bucket by bucket while it runs',
              zh: '梯度传输耗时，减去若在反向中逐桶通信仍会露出的部分',
            },
          },
          information: false,
          symptomOf: null,
          // Hooks that wait for the card before and after each collective are the cause, not the place of the reduction.
          ...(job.ranks.some((r) => drains(job, r).length > 0) ? { explainedBy: ['stream-sync'] } : {}),
          frames: job.ranks.flatMap((r) => r.phases.ddpFrame ?? r.phases.backwardFrame ?? []).slice(0, 1),
          remedies: [
            {
              id: 'overlap-gradient-communication',
              params: { op: longest.op, ddp: job.ranks.some((r) => r.phases.ddp), calls: worst.calls.length },
            },
          ],
          hotspot: 'gradients',
        },
      ],
    };
  },
});

function nothing(job: JobFacts): Detection {
  const some = transfers(job).some((t) => GRADIENT.has(t.op) && !t.p2p && ROLES.has(t.role) && t.size > 1);
  return {
    outcome: 'notApplicable',
    reason: {
      text: some
        ? {
            en: 'the profile does not tell how long the gradients themselves moved: bytes, members or a timeline are missing',
            zh: '无法得知梯度本身的传输耗时：缺少数据量、通信域成员或时间线',
          }
        : { en: 'no gradients are reduced in a data-parallel group', zh: '没有数据并行通信域的梯度通信' },
    },
  };
}

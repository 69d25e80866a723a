import { median } from '../../base/statistics.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { kindOf, type Line, lineOf, stepCount, type Transfer, transfers } from '../../facts/job/transfers.ts';
import type { Message } from '../../model/lang.ts';
import { type Detection, defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** DDP's own bucket; larger messages gain next to nothing. Bytes. */
const BUCKET = 25 * 1024 * 1024;
/** Gradients may be gathered until the backward ends; anything else is needed soon. */
const GRADIENT = new Set(['allReduce', 'reduceScatter']);
/** Calls that one larger could be. */
interface Burst {
  readonly calls: readonly Transfer[];
  readonly bytes: number;
}

/**
 * Computing ran between the two and had waited for the first: its result was needed, as in tensor parallelism. Gradients that nobody waits
 * for may be gathered however far they are apart.
 */
function isNeededBefore(last: Transfer, next: Transfer): boolean {
  if (next.start - last.end <= Math.max(last.bodyMs, next.bodyMs) * 1e6) return false;
  const isGradient = GRADIENT.has(last.op) && (last.role === 'data' || last.role === 'world');
  return !isGradient || last.blockedMs > 0.5 * last.bodyMs;
}

/** Neighbours in one step and group, up to a bucket. */
function bursts(small: readonly Transfer[]): Burst[] {
  const out: { calls: Transfer[]; bytes: number }[] = [];
  const open = new Map<string, { calls: Transfer[]; bytes: number }>();
  for (const t of small) {
    const key = `${t.step}/${t.group}/${t.op}`;
    const burst = open.get(key);
    const last = burst?.calls[burst.calls.length - 1];
    if (burst !== undefined && last !== undefined && !isNeededBefore(last, t) && burst.bytes + t.bytes <= BUCKET) {
      burst.calls.push(t);
      burst.bytes += t.bytes;
      continue;
    }
    const fresh = { calls: [t], bytes: t.bytes };
    open.set(key, fresh);
    out.push(fresh);
  }
  return out;
}

/** What one kind of small message costs. */
interface Storm {
  readonly line: Line;
  readonly calls: readonly Transfer[];
  readonly bursts: readonly Burst[];
  /** ms per step of starting up: all of it, and what merging would save. */
  readonly startUpMs: number;
  readonly savedMs: number;
  readonly blockedMs: number;
}

function stormsOf(job: JobFacts): { storms: Storm[]; compared: number; deliberate: number } {
  const steps = stepCount(job);
  const all = transfers(job).filter((t) => !t.p2p && t.size > 1);
  const storms: Storm[] = [];
  let compared = 0;
  let deliberate = 0;
  for (const calls of Map.groupBy(all, kindOf).values()) {
    const line = lineOf(calls, all);
    if (line === null) continue;
    compared += calls.length;
    const small = calls.filter((t) => !t.first && t.bytes < line.kneeBytes);
    // Each layer of tensor, sequence and expert parallelism needs its own result at once; such messages cannot be put together.
    const own = small.filter((t) => t.role === 'tensor' || t.role === 'context' || t.role === 'expert');
    deliberate += own.length;
    // Calls of one rank: groups side by side run at the same time.
    for (const [, byGroup] of Map.groupBy(
      small.filter((t) => !own.includes(t)),
      (t) => t.group,
    )) {
      const list = bursts(byGroup);
      storms.push({
        line,
        calls: byGroup,
        bursts: list,
        startUpMs: (byGroup.length * line.startUpMs) / steps,
        savedMs: ((byGroup.length - list.length) * line.startUpMs) / steps,
        blockedMs: byGroup.reduce((sum, t) => sum + (Number.isNaN(t.blockedMs) ? t.bodyMs : t.blockedMs), 0) / steps,
      });
    }
  }
  return { storms: storms.sort((a, b) => b.savedMs - a.savedMs), compared, deliberate: deliberate / steps };
}

function removalOf(job: JobFacts, storms: readonly Storm[]): Map<number, Removal> | null {
  if (job.replay === null) return null;
  const nodes = new Map<number, Set<number>>();
  const bodies = new Map<number, Map<number, number>>();
  for (const { line, bursts: list } of storms) {
    for (const burst of list) {
      if (burst.calls.length < 2) continue;
      const kept = GRADIENT.has(burst.calls[0]!.op) ? burst.calls[burst.calls.length - 1]! : burst.calls[0]!;
      const ns = (line.startUpMs + line.msPerByte * burst.bytes) * 1e6;
      for (const t of burst.calls) {
        const match = job.matches[t.match]!;
        match.ranks.forEach((r, k) => {
          const { node } = job.ranks[r]!.collectives[match.calls[k]!]!;
          if (node === -1) return;
          if (t === kept) bodies.set(r, (bodies.get(r) ?? new Map<number, number>()).set(node, ns));
          else nodes.set(r, (nodes.get(r) ?? new Set<number>()).add(node));
        });
      }
    }
  }
  return new Map([...nodes].map(([r, set]) => [r, { nodes: set, bodies: bodies.get(r) ?? new Map() }] as const));
}

export default defineRule({
  id: 'hccl-small-packet',
  title: { en: 'Many small collectives', zh: '小通信过多' },
  category: 'communication',
  maturity: 'preview',
  needs: ['collectives'],
  options: {
    minPerStep: {
      default: 30,
      unit: 'count',
      min: 2,
      max: 1_000_000,
      description: { en: 'small collectives per step from which they are reported', zh: '每迭代小通信达到多少次才报告' },
      why: {
        en: 'a step has a dozen of them anyway: loss, norms, overflow flags',
        zh: '一个迭代本来就有十几次：loss、范数、溢出标志',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest start-up time reported, as a share of the step', zh: '可报告的最小启动耗时，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['bucket-size'],
  detect(job, options): Detection {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const { storms, compared, deliberate } = stormsOf(job);
    const steps = stepCount(job);
    const sized = transfers(job).filter((t) => t.bytes > 0 && !t.p2p);
    const perRank = job.ranks.map(() => 0);
    for (const t of sized) for (const r of job.matches[t.match]!.ranks) perRank[r] = perRank[r]! + 1 / steps;
    const most = Math.max(0, ...perRank);
    if (most > 0 && most < options.minPerStep) {
      return {
        outcome: 'pass',
        reason: {
          text: { en: 'only {n:int} collectives per step', zh: '每迭代只有 {n:int} 次通信' },
          params: { n: most },
        },
      };
    }
    if (compared === 0) return { outcome: 'notApplicable', reason: noSizes(sized.length > 0) };
    const loud = storms.filter((s) => s.calls.length / steps >= options.minPerStep && s.savedMs >= options.minShare * step);
    if (loud.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text:
            deliberate >= options.minPerStep
              ? {
                  en: '{n:int} small collectives per step that can be put together; {own:int} more belong to tensor, sequence or expert parallelism and are small by design',
                  zh: '可合并的小通信每迭代 {n:int} 次；另有 {own:int} 次属于张量、序列或专家并行，本就较小',
                }
              : {
                  en: '{n:int} collectives per step are so small that starting them takes longer than moving their bytes, {ms:ms} in all',
                  zh: '每迭代有 {n:int} 次通信小到启动比传输更久，合计 {ms:ms}',
                },
          params: {
            n: storms.reduce((sum, s) => sum + s.calls.length, 0) / steps,
            ms: storms.reduce((sum, s) => sum + s.startUpMs, 0),
            own: deliberate,
          },
        },
      };
    }
    const top = loud[0]!;
    const perStep = top.calls.length / steps;
    const bytes = median(top.calls.map((t) => t.bytes));
    const { op, group, role } = top.calls[0]!;
    const longest = top.calls.reduce((a, b) => (b.bodyMs > a.bodyMs ? b : a));
    const match = job.matches[longest.match]!;
    const example = job.ranks[match.ranks[0]!]!.collectives[match.calls[0]!]!;
    const wholeGroups = top.calls.every((t) => t.whole);
    const missing = missingRanksCaveat(job);
    const ranks = [...new Set(loud.flatMap((s) => s.calls.flatMap((t) => job.matches[t.match]!.ranks)))].sort((a, b) => a - b);
    const removal = removalOf(job, loud);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: '{n:int} collectives of about {bytes:bytes} per step spend more time starting up than moving data',
              zh: '每迭代 {n:int} 次约 {bytes:bytes} 的通信，启动耗时超过传输耗时',
            },
            params: { n: perStep, bytes },
          },
          ranks,
          steps: job.steps.used,
          groups: [...new Set(loud.map((s) => s.calls[0]!.group))].filter((g) => g !== '').slice(0, 8),
          confidence: dataConfidence(job, false) === 'low' ? 'low' : wholeGroups ? dataConfidence(job, false) : 'medium',
          evidence: [
            {
              message: {
                text: {
                  en: '{op:code}: starting a call takes {start:ms}, as long as moving {knee:bytes}; {n:int} calls per step are smaller, {ms:ms} of starting up in all',
                  zh: '{op:code}：启动一次 {start:ms}，相当于传输 {knee:bytes}；每迭代 {n:int} 次更小，启动合计 {ms:ms}',
                },
                params: { op, start: top.line.startUpMs, knee: top.line.kneeBytes, n: perStep, ms: top.startUpMs },
              },
              file: job.ranks[match.ranks[0]!]!.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
              rank: match.ranks[0]!,
              step: longest.step,
            },
            {
              message: {
                text: {
                  en: '{name:code} moves {bytes:bytes} in {ms:ms}',
                  zh: '{name:code} 传输 {bytes:bytes}，耗时 {ms:ms}',
                },
                params: { name: example.name, bytes: longest.bytes, ms: longest.bodyMs },
              },
              file: job.ranks[match.ranks[0]!]!.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
              rank: match.ranks[0]!,
              step: longest.step,
              start: example.start,
              duration: example.end - example.start,
            },
          ],
          caveats: [
            ...(missing === null ? [] : [missing]),
            ...(wholeGroups
              ? []
              : [
                  {
                    text: {
                      en: 'members of the group are missing, so the time of a call may hold waiting for them; the quickest tenth of the calls counts',
                      zh: '通信域成员不全，单次耗时可能包含等待；按最快的十分之一计',
                    },
                  },
                ]),
          ],
          removal: removal === null || removal.size === 0 ? null : { likely: removal },
          boundMs: loud.reduce((sum, s) => sum + Math.min(s.savedMs, s.blockedMs), 0),
          boundMethod: {
            text: {
              en: 'start-up time of the calls that one larger message could replace, from the line of time over size in this run',
              zh: '可由一次较大通信替代的各次启动耗时，由本次运行的耗时与大小拟合',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [
            {
              id: 'bucket-size',
              params: {
                kind: GRADIENT.has(op) ? 'gradients' : op === 'allGather' ? 'parameters' : 'other',
                calls: Math.round(perStep),
                bytes: Math.round(bytes),
                role,
              },
            },
          ],
          hotspot: `${op}/${role}/${group === '' ? '' : 'group'}`,
        },
      ],
    };
  },
});

function noSizes(sized: boolean): Message {
  return {
    text: sized
      ? {
          en: 'too few collectives, or all of one size: starting up cannot be told from moving data',
          zh: '通信次数太少或大小都相同：无法区分启动与传输耗时',
        }
      : {
          en: 'the profile does not say how many bytes a collective moves: capture from Level1 on',
          zh: 'profile 没有记录通信的数据量：请以 Level1 及以上采集',
        },
  };
}

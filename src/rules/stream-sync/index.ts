import { ranksAbove } from '../../facts/job/culprits.ts';
import { collectivesPerStep, DRAIN_RATIO, drains, WAITS, type WaitingPlace, waitingPlaces } from '../../facts/job/drains.ts';
import { biasCaveat, quoted } from '../../facts/job/host-time.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { dataConfidence, medianOfUsed } from '../../facts/job/per-step.ts';
import { COMPUTE, type RankFacts, type SyncKind, type SyncSite, type WaitTotal } from '../../model/facts.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { type Detection, defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** A place with less than this part of what the worst place costs is not worth a line. */
const MINOR = 0.1;
const SHOWN = 3;
/** Kernels that a rank launches per step. */
function kernelsPerStep(job: JobFacts, { tape, steps }: RankFacts): number {
  const out = new Array<number>(steps.length).fill(0);
  tape?.kind.forEach((kind, i) => {
    const step = tape.step[i]!;
    if (kind === COMPUTE && step >= 0) out[step] = out[step]! + 1;
  });
  return medianOfUsed(job, out) || 0;
}

type Shape = 'blocking' | 'drain' | SyncKind;

const TITLES: Record<Exclude<Shape, 'to-device' | 'release'>, L10n> = {
  blocking: { en: 'Every launch waits until the card is done', zh: '每次下发都等待 NPU 执行完成' },
  drain: {
    en: 'The host drains the card {n:int} times per step around its collectives',
    zh: 'Host 在集合通信前后每迭代等待 NPU 清空 {n:int} 次',
  },
  item: {
    en: 'The host reads {n:int} values per step from the card and it runs dry',
    zh: 'Host 每迭代从 NPU 读取 {n:int} 个值，NPU 因此空闲',
  },
  shape: {
    en: '{n:int} operators per step whose result size the host has to wait for',
    zh: '每迭代有 {n:int} 个算子的输出大小需要 Host 等待',
  },
  'to-host': { en: '{n:int} copies from the card per step hold up the host', zh: '每迭代 {n:int} 次从 NPU 的拷贝阻塞 Host' },
  copy: { en: '{n:int} blocking copies per step hold up the host', zh: '每迭代 {n:int} 次阻塞拷贝' },
  stream: {
    en: 'The host waits for a stream {n:int} times per step and the card runs dry',
    zh: 'Host 每迭代同步流 {n:int} 次，NPU 因此空闲',
  },
  device: {
    en: 'The host waits for the whole card {n:int} times per step and it runs dry',
    zh: 'Host 每迭代同步整个设备 {n:int} 次，NPU 因此空闲',
  },
  event: {
    en: 'The host waits for an event {n:int} times per step and the card runs dry',
    zh: 'Host 每迭代等待事件 {n:int} 次，NPU 因此空闲',
  },
};

const GUARD: Message = {
  text: {
    en: 'a wait here may keep data from being read too early: let a stream event order the two, do not just delete it',
    zh: '这里的等待可能防止数据被过早读取：改用流事件保证先后，不要直接删除',
  },
};

/** A capture without step marks, as of serving: only idle time of the card inside the waits counts. */
function withoutSteps(job: JobFacts, options: { readonly minShare: number; readonly minMs: number }): Detection | null {
  const span = job.steps.stepTimeMs;
  if (span === null) return null;
  const own = job.ranks.map((r) => r.waits.filter((w) => WAITS.includes(w.kind)));
  // A wait for the whole card also waits for copies that no computing needs.
  const lost = (w: WaitTotal): number => w.idle + w.beside;
  const idle = own.map((list) => list.reduce((sum, w) => sum + lost(w) / 1e6, 0));
  const ranks = ranksAbove(idle, Math.max(options.minShare * span, options.minMs));
  const count = (list: readonly WaitTotal[], figure: 'count' | 'beforeGraph'): number => list.reduce((n, w) => n + w[figure], 0);
  if (ranks.length === 0) {
    if (own.every((list) => list.length === 0)) return null;
    const most = idle.indexOf(Math.max(...idle));
    return {
      outcome: 'pass',
      reason: {
        text: {
          en: 'the host waited {n:int} times, {graphs:int} of them right before a graph, for {host:ms} in all; the card was idle for {idle:ms} of that',
          zh: 'Host 等待 {n:int} 次，其中 {graphs:int} 次紧接图执行之前，合计 {host:ms}；其间 NPU 空闲 {idle:ms}',
        },
        params: {
          n: count(own[most]!, 'count'),
          graphs: count(own[most]!, 'beforeGraph'),
          host: own[most]!.reduce((sum, w) => sum + w.ns / 1e6, 0),
          idle: idle[most]!,
        },
      },
    };
  }
  const top = ranks.reduce((a, b) => (idle[b]! > idle[a]! ? b : a));
  const facts = job.ranks[top]!;
  const shown = own[top]!.filter((w) => lost(w) >= MINOR * lost(own[top]![0]!)).slice(0, SHOWN);
  const { kind } = shown[0]!;
  const passes = facts.segments.filter((s) => s.unit === 'forward').length;
  const graphs = count(shown, 'beforeGraph');
  const guarded = graphs > 0 || ['stream', 'device', 'event'].includes(kind);
  const oftenEn = (w: WaitTotal): string =>
    w.beforeGraph > 0 ? ', {graphs:int} of them right before a graph,' : passes > 1 ? ', {per:num} per forward pass,' : '';
  const oftenZh = (w: WaitTotal): string =>
    w.beforeGraph > 0 ? '（其中 {graphs:int} 次紧接图执行之前）' : passes > 1 ? '（每次前向 {per:num} 次）' : '';
  return {
    outcome: 'findings',
    findings: [
      {
        title: {
          text:
            graphs > 0
              ? {
                  en: 'The host waits right before {n:int} graph replays and the card is idle meanwhile',
                  zh: 'Host 在 {n:int} 次图重放之前等待，其间 NPU 空闲',
                }
              : { en: 'The host waits {all:int} times and the card is idle meanwhile', zh: 'Host 等待 {all:int} 次，其间 NPU 空闲' },
          params: { n: graphs, all: count(shown, 'count') },
        },
        ranks,
        steps: [],
        groups: [],
        confidence: 'medium',
        evidence: shown.map((w) => ({
          message: {
            text: {
              en: `rank {rank:text}: {call:code}${w.operator === '' ? '' : ' in {op:code}'} {n:int} times${oftenEn(w)} held the host for {host:ms}; the card was idle for {idle:ms} of that${w.beside > 0 ? ', only copied or communicated for {beside:ms}' : ''} and ${w.beside > 0 ? 'computed' : 'was busy'} for the rest`,
              zh: `卡 {rank:text}：${w.operator === '' ? '' : '{op:code} 中的 '}{call:code} {n:int} 次${oftenZh(w)}，阻塞 Host {host:ms}；其间 NPU 空闲 {idle:ms}${w.beside > 0 ? '，只有拷贝或通信 {beside:ms}，其余时间在计算' : '，其余时间在工作'}`,
            },
            params: {
              rank: facts.rank ?? '?',
              call: w.call,
              op: w.operator,
              n: w.count,
              graphs: w.beforeGraph,
              per: Number((w.count / Math.max(1, passes)).toFixed(1)),
              host: w.ns / 1e6,
              idle: w.idle / 1e6,
              beside: w.beside / 1e6,
            },
          },
          file: 'trace_view.json',
          rank: top,
          start: w.worst.start,
          duration: w.worst.end - w.worst.start,
        })),
        caveats: [...(guarded ? [GUARD] : []), ...biasCaveat(facts)],
        removal: null,
        boundMs: shown.reduce((sum, w) => sum + lost(w) / 1e6, 0),
        boundMethod: {
          text: { en: 'idle time of the card inside these waits, whole capture', zh: '整个采集中这些等待期间 NPU 的空闲' },
        },
        information: false,
        symptomOf: null,
        frames: shown.flatMap((w) => (w.frame === null ? [] : [w.frame])),
        remedies: [{ id: 'remove-sync', params: { kind, perStep: null, beforeGraph: graphs > 0 } }],
        hotspot: `passes:${kind}:${shown[0]!.frame === null ? '' : `${shown[0]!.frame.file}:${shown[0]!.frame.func}`}`,
      },
    ],
  };
}

export default defineRule({
  id: 'stream-sync',
  title: { en: 'The host waits for the card and the card runs dry', zh: 'Host 同步等待，NPU 断流' },
  category: 'host',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'kernels', 'launches'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest idle time reported, as a share of the step', zh: '可报告的最小空闲，占迭代耗时的比例' },
      why: {
        en: 'a wait while the card is busy costs nothing, however long; only the idle time in it and right after it counts',
        zh: '卡繁忙时等待再久也没有代价；只计等待期间与紧随其后的空闲',
      },
    },
    minMs: {
      default: 0.5,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest idle time reported', zh: '可报告的最小空闲' },
      why: {
        en: 'one read of the loss per step leaves the card idle for 0.2 ms',
        zh: '每迭代读取一次 loss 使卡空闲 0.2 ms',
      },
    },
    blockingShare: {
      default: 0.5,
      unit: 'share',
      min: 0.1,
      max: 1,
      description: {
        en: 'part of the kernel launches that a wait follows, from which launches count as blocking',
        zh: '后面紧跟等待的 kernel 下发占比达到该值时视为阻塞式下发',
      },
      why: {
        en: 'with ASCEND_LAUNCH_BLOCKING every launch is followed by a wait; explicit waits follow a few percent',
        zh: '设置 ASCEND_LAUNCH_BLOCKING 时，每次下发后都有等待；显式等待只占百分之几',
      },
    },
    drainRatio: {
      default: DRAIN_RATIO,
      unit: 'count',
      min: 0.5,
      max: 10,
      description: { en: 'waits beside collectives per collective that count as draining', zh: '每次集合通信伴随的等待达到该值时视为清空' },
      why: {
        en: 'a drain before and after each collective gives 2.0; gradient hooks without waits give 0',
        zh: '每次集合通信前后各清空一次为 2.0；不等待的梯度 hook 为 0',
      },
    },
  },
  remedies: ['remove-sync', 'set-environment'],
  detectWithoutSteps: withoutSteps,
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const places = job.ranks.map((r) => waitingPlaces(job, r));
    const idle = places.map((list) => list.reduce((sum, p) => sum + p.idle, 0));
    const draining = job.ranks.map((r, i) => drains(job, r, places[i], options.drainRatio));
    const floor = Math.max(options.minShare * step, options.minMs);
    let ranks = ranksAbove(idle, floor);
    // Draining costs overlap first, which only the replay can price.
    if (ranks.length === 0 && job.replay !== null) ranks = job.ranks.map((_, r) => r).filter((r) => draining[r]!.length > 0);
    if (ranks.length === 0) {
      const most = idle.reduce((a, b) => Math.max(a, b), 0);
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'the host waited up to {n:int} times per step; the card was idle for {idle:ms} of that or right after',
            zh: 'Host 每迭代最多等待 {n:int} 次；等待期间及其后 NPU 空闲 {idle:ms}',
          },
          params: { n: Math.max(0, ...places.map((list) => list.reduce((n, p) => n + p.count, 0))), idle: most },
        },
      };
    }
    const pace = quoted(job, ranks, idle);
    const facts = job.ranks[pace]!;
    const own = places[pace]!;
    const streamWaits = own.filter((p) => p.site.kind === 'stream').reduce((n, p) => n + p.count, 0);
    const kernels = kernelsPerStep(job, facts);
    const isBlocking = kernels > 0 && streamWaits >= options.blockingShare * kernels;
    const isDrain = !isBlocking && draining[pace]!.length > 0;
    const often = (list: readonly WaitingPlace[]): WaitingPlace[] => {
      const most = Math.max(...list.map((p) => p.count));
      return list.filter((p) => p.count >= MINOR * most).sort((a, b) => b.host - a.host);
    };
    const shown = isBlocking
      ? own.filter((p) => p.site.kind === 'stream')
      : isDrain
        ? often(draining[pace]!)
        : own.filter((p) => p.idle >= MINOR * own[0]!.idle);
    const top = shown[0]!;
    const shape = isBlocking ? 'blocking' : isDrain ? 'drain' : (top.site.kind as keyof typeof TITLES);
    const same = isBlocking || isDrain ? shown : shown.filter((p) => p.site.kind === top.site.kind);
    const count = same.reduce((n, p) => n + p.count, 0);
    const evidence: RawEvidence[] = shown.slice(0, SHOWN).map((p) => ({
      message: {
        text:
          p.site.operator === ''
            ? {
                en: 'rank {rank:text}: {call:code} {n:int} × per step held the host for {host:ms}; the card was idle for {idle:ms} in it or right after',
                zh: '卡 {rank:text}：{call:code} 每迭代 {n:int} 次，阻塞 Host {host:ms}；其间及其后 NPU 空闲 {idle:ms}',
              }
            : {
                en: 'rank {rank:text}: {call:code} in {op:code}, {n:int} × per step, held the host for {host:ms}; the card was idle for {idle:ms} in it or right after',
                zh: '卡 {rank:text}：{op:code} 中的 {call:code} 每迭代 {n:int} 次，阻塞 Host {host:ms}；其间及其后 NPU 空闲 {idle:ms}',
              },
        params: { rank: facts.rank ?? '?', call: p.site.call, op: p.site.operator, n: p.count, host: p.host, idle: p.idle },
      },
      file: 'trace_view.json',
      rank: pace,
      step: facts.steps[p.site.worst.step]?.id ?? null,
      start: p.site.worst.start,
      duration: p.site.worst.end - p.site.worst.start,
    }));
    if (isBlocking) {
      evidence.push({
        message: {
          text: {
            en: '{waits:int} waits for {kernels:int} kernels per step: launches do not run ahead of the card',
            zh: '每迭代 {kernels:int} 个 kernel 对应 {waits:int} 次等待：下发无法领先于 NPU',
          },
          params: { waits: streamWaits, kernels },
        },
        file: 'trace_view.json',
        rank: pace,
      });
    } else if (isDrain) {
      const collectives = collectivesPerStep(job, facts);
      evidence.push({
        message: {
          text: {
            en: '{waits:int} waits for {n:int} collectives per step ({ratio:num} each): no computing runs beside them',
            zh: '每迭代 {n:int} 次集合通信对应 {waits:int} 次等待（每次 {ratio:num}）：计算无法与通信并行',
          },
          params: { waits: count, n: collectives, ratio: Number((count / collectives).toFixed(1)) },
        },
        file: 'trace_view.json',
        rank: pace,
      });
    }
    const beforeGraph = shown.reduce((n, p) => n + p.site.beforeGraph, 0);
    const guarded = isDrain || beforeGraph > 0 || (!isBlocking && ['stream', 'device', 'event'].includes(top.site.kind));
    const kinds = new Set(shown.map((p) => siteKey(p.site)));
    return {
      outcome: 'findings',
      findings: [
        {
          title: { text: TITLES[shape], params: { n: Math.max(1, Math.round(count)) } },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, true),
          evidence,
          caveats: [...(guarded ? [GUARD] : []), ...biasCaveat(facts)],
          removal: { likely: new Map(ranks.map((r) => [r, withoutWaits(job.ranks[r]!, kinds)] as const)) },
          boundMs: shown.reduce((sum, p) => sum + p.idle, 0),
          boundMethod: {
            text: {
              en: 'idle time of the card in these waits and right after them, median of the steps',
              zh: '这些等待期间及其后 NPU 的空闲，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          frames: shown.flatMap((p) => (p.site.frame === null ? [] : [p.site.frame])).slice(0, SHOWN),
          remedies: isBlocking
            ? [{ id: 'set-environment', params: { name: 'ASCEND_LAUNCH_BLOCKING', kind: 'symptom' } }]
            : [{ id: 'remove-sync', params: { kind: shape, perStep: Math.max(1, Math.round(count)), beforeGraph: beforeGraph > 0 } }],
          hotspot: `${shape}:${top.site.frame === null ? '' : `${top.site.frame.file}:${top.site.frame.func}`}`,
        },
      ],
    };
  },
});

/** The same place on another rank. */
function siteKey(site: SyncSite): string {
  return `${site.kind}|${site.operator}|${site.frame?.file}:${site.frame?.line}|${site.call}`;
}

function withoutWaits({ tape, host }: RankFacts, keys: ReadonlySet<string>): Removal {
  const wanted = host!.syncs.map((site) => keys.has(siteKey(site)));
  const syncs = new Set<number>();
  tape!.syncs.site.forEach((site, i) => {
    if (site >= 0 && wanted[site]) syncs.add(i);
  });
  return { syncs };
}

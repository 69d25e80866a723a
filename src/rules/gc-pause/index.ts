import { union } from '../../base/intervals.ts';
import { median } from '../../base/statistics.ts';
import { biasCaveat } from '../../facts/job/host-time.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import type { HostSpan, QuietSpan, RankFacts } from '../../model/facts.ts';
import { type Detection, defineRule, type RawFinding } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** Pauses that nobody recorded are looked at from this length on: shorter ones are user code. ms and share of the step. */
const GUESS_MS = 5;
const GUESS_SHARE = 0.05;
const GUESS_COUNT = 4;
/** Full collections of the same objects take about the same time. */
const ALIKE = 1.6;
/** The collector runs by the number of new objects, wherever the code is; logging, evaluation and checkpoints come at one place. */
const PLACES = 0.66;

/** ms of pauses by used step, the rank with most in each: collections of different ranks fall into different steps. */
function worstByStep(job: JobFacts, spans: (r: RankFacts) => readonly HostSpan[]): { perStep: number[]; ranks: number[] } {
  const sums = job.ranks.map((r) => {
    const byStep = new Map<number, number>();
    for (const s of spans(r)) byStep.set(s.step, (byStep.get(s.step) ?? 0) + s.idle / 1e6);
    return byStep;
  });
  const perStep = job.steps.usedIndex.map((s) => Math.max(0, ...sums.map((m) => m.get(s) ?? 0)));
  const typical = median(perStep) || 0;
  const ranks = job.ranks
    .map((_, r) => r)
    .filter((r) => typical > 0 && job.steps.usedIndex.some((s) => (sums[r]!.get(s) ?? 0) >= 0.5 * typical));
  return { perStep, ranks };
}

/** Ranks that collect for about as long as the worst: where in a step a collection falls, and so what it costs there, is chance. */
function collecting(job: JobFacts): number[] {
  const used = new Set(job.steps.usedIndex);
  const longest = job.ranks.map((r) => spansOf(r).reduce((ns, s) => (used.has(s.step) ? Math.max(ns, s.end - s.start) : ns), 0));
  const most = Math.max(...longest);
  return longest.flatMap((ns, r) => (ns > 0 && ns >= 0.5 * most ? [r] : []));
}

const spansOf = (r: RankFacts): readonly HostSpan[] => r.host?.gc?.calls ?? [];

export default defineRule({
  id: 'gc-pause',
  title: { en: 'Python collects garbage while the card waits', zh: 'Python 垃圾回收时 NPU 在等待' },
  category: 'host',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'kernels', 'launches'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest pause reported, as a share of the step', zh: '可报告的最小停顿，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    minMs: {
      default: 0.5,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest pause reported', zh: '可报告的最小停顿' },
      why: {
        en: 'collections of the youngest objects take less and are part of running Python',
        zh: '对最新一代对象的回收更短，属于 Python 的正常运行',
      },
    },
  },
  remedies: ['gc-tuning'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const floor = Math.max(options.minShare * step, options.minMs);
    if (job.ranks.every((r) => r.host?.gc == null)) return guess(job, step, floor);
    const { perStep } = worstByStep(job, spansOf);
    const idle = median(perStep) || 0;
    const ranks = collecting(job);
    if (idle < floor || ranks.length === 0) {
      const count = job.ranks.reduce((n, r) => n + spansOf(r).length, 0);
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: '{n:int} collections were recorded; the card waited {idle:ms} per step for them',
            zh: '记录到 {n:int} 次回收；NPU 每迭代因此空闲 {idle:ms}',
          },
          params: { n: count, idle },
        },
      };
    }
    const used = new Set(job.steps.usedIndex);
    const worst = ranks
      .flatMap((r) => spansOf(job.ranks[r]!).map((s) => ({ ...s, rank: r })))
      .filter((s) => used.has(s.step))
      .reduce((a, b) => (b.idle > a.idle ? b : a));
    const facts = job.ranks[worst.rank]!;
    const own = spansOf(facts).filter((s) => used.has(s.step));
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: { en: 'Garbage collection pauses the host for {ms:ms} at a time', zh: '垃圾回收每次让 Host 停顿 {ms:ms}' },
            params: { ms: median(own.map((s) => (s.end - s.start) / 1e6)) },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, true),
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text}: {n:int} collections in {steps:int} steps, {ms:ms} the longest, with the card idle for {idle:ms} of it',
                  zh: '卡 {rank:text}：{steps:int} 个迭代内回收 {n:int} 次，最长 {ms:ms}，其间 NPU 空闲 {idle:ms}',
                },
                params: {
                  rank: facts.rank ?? '?',
                  n: own.length,
                  steps: job.steps.usedIndex.length,
                  ms: (worst.end - worst.start) / 1e6,
                  idle: worst.idle / 1e6,
                },
              },
              file: 'trace_view.json',
              rank: worst.rank,
              step: facts.steps[worst.step]?.id ?? null,
              start: worst.start,
              duration: worst.end - worst.start,
            },
          ],
          caveats: biasCaveat(facts),
          removal: { likely: removalOf(job, ranks, spansOf) },
          boundMs: idle,
          boundMethod: {
            text: { en: 'idle time of the card during collections, median of the steps', zh: '垃圾回收期间 NPU 的空闲，各迭代的中位数' },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'gc-tuning', params: { guessed: false, ranks: job.ranks.length } }],
          hotspot: 'collector',
        },
      ],
    };
  },
});

function removalOf(job: JobFacts, ranks: readonly number[], spans: (r: RankFacts) => readonly HostSpan[]): Map<number, Removal> {
  return new Map(ranks.map((r) => [r, { host: union(spans(job.ranks[r]!).map((s) => [s.start, s.end] as const)) }] as const));
}

/** Pauses of a rank that could be the collector's: long, alike, each at another place, none at the edge of a step. */
function alike(job: JobFacts, rank: RankFacts, step: number): QuietSpan[] {
  const least = Math.max(GUESS_MS, GUESS_SHARE * step) * 1e6;
  const used = new Set(job.steps.usedIndex);
  const edges = rank.steps.map((s) => s.start);
  const long = (rank.host?.quiet ?? []).filter(
    (q) => used.has(q.step) && q.end - q.start >= least && q.frame === null && !edges.some((e) => e >= q.start - 1e6 && e <= q.end + 1e6),
  );
  if (long.length < GUESS_COUNT) return [];
  const lengths = long.map((q) => q.end - q.start);
  const places = new Set(long.map((q) => `${q.before}|${q.after}|${Math.round((q.start - (edges[q.step] ?? 0)) / (0.02 * step * 1e6))}`));
  return Math.max(...lengths) <= ALIKE * Math.min(...lengths) && places.size >= PLACES * long.length ? long : [];
}

/** Without the collector's lane: said only when nothing recorded explains the pauses, and never with more than low confidence. */
function guess(job: JobFacts, step: number, floor: number): Detection {
  const suspects = new Map(job.ranks.map((r) => [r, alike(job, r, step)] as const));
  const { perStep, ranks } = worstByStep(job, (r) => suspects.get(r) ?? []);
  const idle = median(perStep) || 0;
  if (idle < floor || ranks.length === 0) {
    return {
      outcome: 'notApplicable',
      reason: {
        text: {
          en: 'collections are not recorded: set {option:code} in {config:code}',
          zh: '没有采集垃圾回收：在 {config:code} 中设置 {option:code}',
        },
        params: { option: 'gc_detect_threshold', config: '_ExperimentalConfig' },
      },
    };
  }
  const rank = ranks[0]!;
  const facts = job.ranks[rank]!;
  const list = suspects.get(facts)!;
  const longest = list.reduce((a, b) => (b.idle > a.idle ? b : a));
  const finding: RawFinding = {
    title: {
      text: {
        en: 'The host pauses for {ms:ms} at changing places: perhaps garbage collection',
        zh: 'Host 在不同位置停顿 {ms:ms}：可能是垃圾回收',
      },
      params: { ms: median(list.map((q) => (q.end - q.start) / 1e6)) },
    },
    ranks,
    steps: job.steps.used,
    groups: [],
    confidence: 'low',
    evidence: [
      {
        message: {
          text: {
            en: 'rank {rank:text}: {n:int} pauses of {min:ms} to {max:ms} in which no operator, call or Python function was recorded, the longest after {before:code}',
            zh: '卡 {rank:text}：{n:int} 次停顿，{min:ms} 至 {max:ms}，其间没有记录到算子、调用或 Python 函数，最长的一次在 {before:code} 之后',
          },
          params: {
            rank: facts.rank ?? '?',
            n: list.length,
            min: Math.min(...list.map((q) => q.end - q.start)) / 1e6,
            max: Math.max(...list.map((q) => q.end - q.start)) / 1e6,
            before: longest.before,
          },
        },
        file: 'trace_view.json',
        rank,
        step: facts.steps[longest.step]?.id ?? null,
        start: longest.start,
        duration: longest.end - longest.start,
      },
    ],
    caveats: [
      {
        text: {
          en: 'collections are not recorded in this capture, so this is a guess: {option:code} shows them',
          zh: '本次采集没有记录垃圾回收，此为推测：设置 {option:code} 可确认',
        },
        params: { option: 'gc_detect_threshold=1.0' },
      },
    ],
    removal: null,
    boundMs: idle,
    boundMethod: {
      text: { en: 'idle time of the card during these pauses, median of the steps', zh: '这些停顿期间 NPU 的空闲，各迭代的中位数' },
    },
    information: false,
    symptomOf: null,
    // Late-comers that change from step to step are the same pauses, seen at the collectives.
    explainedBy: ['hccl-sync-wait'],
    frames: [],
    remedies: [{ id: 'gc-tuning', params: { guessed: true, ranks: job.ranks.length } }],
    hotspot: 'guess',
  };
  return { outcome: 'findings', findings: [finding] };
}

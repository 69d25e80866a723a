import { formatEstimate, formatTime } from '../base/figures.ts';
import { formatShare, say } from '../base/phrase.ts';
import type { ComparisonVerdict, JobComparison, Measure, Metric } from '../model/comparison.ts';
import type { L10n, Lang } from '../model/lang.ts';
import type { Comparison, Finding } from '../model/report.ts';

/** Of this many changed causes the largest are told. */
const MAX_CHANGES = 20;
/** Below this share of the step a cause has not changed. */
const CHANGED = 0.01;
/** Share of the slow-down that new and grown causes must explain for the regression to be filed under the largest of them. */
const EXPLAINED = 0.5;

export type FindingChange = Comparison['findings'][number];

function headline(finding: Finding): number {
  return finding.saving === null ? 0 : (finding.saving.perStepMs.likely ?? finding.saving.perStepMs.ceiling);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function costs(finding: Finding): boolean {
  return finding.symptomOf === null && finding.category !== 'comparison' && headline(finding) > 0;
}

/** Causes that came, went or changed by their fingerprint; largest change first. */
export function findingChanges(head: readonly Finding[], base: readonly Finding[], stepMs: number): FindingChange[] {
  const [now, before] = [head, base].map((list) => new Map(list.filter(costs).map((f) => [f.id, f] as const)));
  const changes: FindingChange[] = [];
  for (const id of new Set([...now!.keys(), ...before!.keys()])) {
    const [h, b] = [now!.get(id), before!.get(id)];
    const delta = (h === undefined ? 0 : headline(h)) - (b === undefined ? 0 : headline(b));
    if (Math.abs(delta) < CHANGED * stepMs) continue;
    const bound = [h, b].some((f) => f !== undefined && f.saving?.perStepMs.likely == null);
    // Bounds are not measured: only that there is one more is worth a line.
    if (bound && b !== undefined) continue;
    const { rule, title } = (h ?? b)!;
    changes.push({
      id,
      rule,
      title,
      change: b === undefined ? 'new' : h === undefined ? 'gone' : delta > 0 ? 'more' : 'less',
      baseMs: b === undefined ? null : round(headline(b)),
      headMs: h === undefined ? null : round(headline(h)),
      deltaMs: round(delta),
      bound,
    });
  }
  changes.sort((x, y) => Math.abs(y.deltaMs) - Math.abs(x.deltaMs) || (x.id < y.id ? -1 : 1));
  return changes.slice(0, MAX_CHANGES);
}

/** The cause a regression is filed under; null when it stands for itself. A bound explains nothing. */
export function causeOfRegression(changes: readonly FindingChange[], deltaMs: number): string | null {
  const grown = changes.filter((c) => c.deltaMs > 0 && !c.bound);
  const sum = grown.reduce((total, c) => total + c.deltaMs, 0);
  return grown.length > 0 && sum >= EXPLAINED * deltaMs ? grown[0]!.id : null;
}

/** The comparison as report.json has it. */
export function comparisonSection(of: JobComparison, changes: readonly FindingChange[], lang: Lang): Comparison {
  const { baseline } = of;
  const step = roundedStep(of.step);
  const share = step.delta === null || step.base === null ? null : step.delta / step.base;
  return {
    baseline: {
      kind: baseline.kind,
      label: baseline.label,
      runs: baseline.runs.map((run) => ({ ...run, stepTimeMs: orNull(run.stepTimeMs), noiseMs: orNull(run.noiseMs) })),
      ranks: [...baseline.ranks],
      worldSize: baseline.worldSize,
      stepTimeMs: step.base,
      samplesPerStep: baseline.samplesPerStep,
      device: baseline.device,
      level: baseline.level,
      versions: { cann: baseline.cann, torchNpu: baseline.torchNpu, torch: baseline.torch },
    },
    verdict: of.verdict,
    text: verdictText({ ...of, step }, lang),
    stepTimeMs: step.head,
    deltaMs: step.delta,
    deltaShare: share === null ? null : Math.round(share * 1e6) / 1e6,
    interval: step.interval === null ? null : [...step.interval],
    limitMs: orNull(step.limit),
    spreadMs: orNull(step.spread),
    samples: step.samples,
    method: (step.interval === null ? DIFFERENCE : METHOD)[lang],
    refusals: of.refusals.map((r) => say(r.text, lang)),
    warnings: of.warnings.map((w) => say(w.text, lang)),
    metrics: of.metrics.map((m) => metric(m, lang)),
    pace: { ranks: [...of.pace.ranks], standsOut: of.pace.standsOut },
    contributors: of.contributors.map((c) => ({
      part: c.part,
      what: say(c.what, lang),
      baseMs: round(c.base),
      headMs: round(c.head),
      deltaMs: round(c.delta),
      details: c.details.map((d) => ({
        by: d.by,
        what: say(d.what, lang),
        baseMs: round(d.base),
        headMs: round(d.head),
        deltaMs: round(d.delta),
        calls: { base: Math.round(d.calls.base), head: Math.round(d.calls.head) },
      })),
    })),
    // Causes of jobs that do different work are not told apart by what the work costs.
    findings: step.delta === null ? [] : [...changes],
  };
}

/** Texts and figures are made of the same numbers. */
function roundedStep(step: Measure): Measure {
  return {
    ...step,
    base: orNull(step.base),
    head: orNull(step.head),
    delta: orNull(step.delta),
    interval: step.interval === null ? null : [round(step.interval[0]), round(step.interval[1])],
  };
}

function orNull(value: number | null): number | null {
  return value === null || !Number.isFinite(value) ? null : round(value);
}

function metric(of: Metric, lang: Lang): Comparison['metrics'][number] {
  const perSecond = of.better === 'higher';
  return {
    metric: of.metric,
    name: METRICS[of.metric][lang],
    unit: perSecond ? '1/s' : 'ms',
    better: of.better,
    verdict: of.verdict,
    base: orNull(of.base),
    head: orNull(of.head),
    delta: orNull(of.delta),
    interval: of.interval === null ? null : [round(of.interval[0]), round(of.interval[1])],
  };
}

function verdictText(of: JobComparison, lang: Lang): string {
  const { step, verdict } = of;
  const text = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  if (verdict === 'incomparable' || step.delta === null || step.base === null || step.head === null) {
    const why = of.refusals.map((r) => say(r.text, lang)).join(lang === 'en' ? '; ' : '；');
    return of.baseline.kind === 'gpu' || of.refusals.some((r) => r.what === 'steps')
      ? text(`No verdict against the baseline: ${why}.`, `与基线对比没有结论：${why}。`)
      : text(`Not comparable with the baseline: ${why}.`, `与基线不可比：${why}。`);
  }
  const [by, share] = [formatTime(Math.abs(step.delta)), formatShare(Math.abs(step.delta) / step.base, lang)];
  const range = intervalText(step, lang);
  const between = range === null ? '' : text(`; 95\u00a0% interval ${range}`, `；95% 区间 ${range}`);
  const said: Readonly<Record<Exclude<ComparisonVerdict, 'incomparable'>, string>> = {
    regression: text(
      `Each step is ${by} slower than in the baseline (+${share}${between}).`,
      `每个迭代比基线慢 ${by}（+${share}${between}）。`,
    ),
    improvement: text(
      `Each step is ${by} faster than in the baseline (−${share}${between}).`,
      `每个迭代比基线快 ${by}（−${share}${between}）。`,
    ),
    noise: noiseText(step, `${step.delta < 0 ? '−' : '+'}${share}`, lang),
  };
  const spread =
    step.spread === null
      ? ''
      : text(
          ` The ${of.baseline.runs.length} runs of the baseline lie ${formatEstimate(step.spread)} apart.`,
          `基线 ${of.baseline.runs.length} 次运行之间相差 ${formatEstimate(step.spread)}。`,
        );
  return said[verdict] + spread;
}

/** Two kinds of no change: too small to be called one, or larger than that but not told from the noise of so few or so uneven steps. */
function noiseText(step: Measure, share: string, lang: Lang): string {
  const [now, before] = [formatTime(step.head!), formatTime(step.base!)];
  const unsure = Math.abs(step.delta!) > step.limit!;
  if (unsure) {
    const range = intervalText(step, lang) ?? '?';
    return lang === 'en'
      ? `Step ${now}, baseline ${before}: ${share} cannot be told from noise with ${step.samples.head} and ${step.samples.base} steps (95\u00a0% interval ${range}). Capture more steps.`
      : `迭代 ${now}，基线 ${before}：${share}，以 ${step.samples.head} 个与 ${step.samples.base} 个迭代无法与噪声区分（95% 区间 ${range}）。需采集更多迭代。`;
  }
  const limit = formatEstimate(noiseOf(step));
  return lang === 'en'
    ? `Step ${now}, baseline ${before}: ${share} is within noise; a change below ${limit} is not called one.`
    : `迭代 ${now}，基线 ${before}：${share}，在噪声之内；小于 ${limit} 的变化不作判定。`;
}

/** The smallest change that would have been called one: over the limit, and outside half the width of the interval. */
function noiseOf(step: Measure): number {
  const half = step.interval === null ? 0 : (step.interval[1] - step.interval[0]) / 2;
  return Math.max(step.limit ?? 0, half);
}

function intervalText(step: Measure, lang: Lang): string | null {
  if (step.interval === null) return null;
  const [low, high] = step.interval.map((ms) => `${ms < 0 ? '' : '+'}${formatTime(ms)}`);
  return lang === 'en' ? `${low} to ${high}` : `${low} 至 ${high}`;
}

const DIFFERENCE: L10n = { en: 'difference of the median steps, slowest rank', zh: '迭代中位数之差，取最慢的卡' };
const METHOD: L10n = {
  en: 'difference of the median steps, slowest rank; interval by bootstrap over the steps, widened for few of them',
  zh: '迭代中位数之差，取最慢的卡；区间由对迭代的 bootstrap 得出，迭代少时加宽',
};

const METRICS: Readonly<Record<Metric['metric'], L10n>> = {
  computing: { en: 'computing', zh: '计算' },
  communication: { en: 'exposed communication', zh: '未掩盖通信' },
  idle: { en: 'idle', zh: '空闲' },
  'samples-per-second': { en: 'samples per second', zh: '每秒样本数' },
  'tokens-per-second': { en: 'tokens per second', zh: '每秒 token 数' },
};

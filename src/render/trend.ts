import { median } from '../base/statistics.ts';
import { BaseCommit, NoBaseline, type ProfileMetrics, Trend } from '../model/history.ts';
import type { Lang } from '../model/lang.ts';
import type { Report } from '../model/report.ts';
import { formatPercent, formatTime } from './figures.ts';
import { word } from './words.ts';

const CELLS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const MAX_CELLS = 20;
/** The picture spans at least this share of its middle value: noise is drawn flat, not as mountains. */
const LEAST_SPAN = 0.1;
/** With fewer points before this one there is no course to show. */
const LEAST_POINTS = 3;
const CAUSES = 3;
const HOUR = 3600 * 1000;

/** The course of a quantity, newest right. A value that is not known is a dot, never a low bar. */
export function sparkline(values: readonly (number | null)[]): string {
  const shown = values.slice(-MAX_CELLS);
  const known = shown.filter((v): v is number => v !== null && Number.isFinite(v));
  if (known.length === 0) return '';
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const span = Math.max(high - low, LEAST_SPAN * Math.abs(median(known)));
  const cell = (v: number): string => CELLS[span === 0 ? 0 : Math.min(CELLS.length - 1, Math.floor(((v - low) / span) * CELLS.length))]!;
  return shown.map((v) => (v === null || !Number.isFinite(v) ? '·' : cell(v))).join('');
}

/** One quantity over time, as strings; every picture has its figures and unit beside it. */
export interface TrendRow {
  readonly what: string;
  readonly before: string;
  readonly now: string;
  readonly course: string;
}

function trendIn(report: Report): Trend | null {
  const parsed = Trend.safeParse(report.views.trend);
  return parsed.success ? parsed.data : null;
}

interface Quantity {
  readonly what: string;
  readonly of: (metrics: ProfileMetrics) => number | null;
  readonly format: (value: number) => string;
}

/** "741 ms (738–752)": the middle of what was before and its range. */
function figures(values: readonly number[], format: (value: number) => string, lang: Lang): string {
  const [low, high] = [format(Math.min(...values)), format(Math.max(...values))];
  const range = low === high ? '' : lang === 'en' ? ` (${low} … ${high})` : `（${low} … ${high}）`;
  return `${format(median([...values]))}${range}`;
}

function rowOf(trend: Trend, { what, of, format }: Quantity, lang: Lang): TrendRow | null {
  const before = trend.points.map(({ metrics }) => of(metrics));
  const known = before.filter((v): v is number => v !== null);
  const now = of(trend.now);
  if (known.length < LEAST_POINTS || now === null) return null;
  return { what, before: figures(known, format, lang), now: format(now), course: sparkline([...before, now]) };
}

/** How each quantity of the job went on the base branch; empty without enough history. */
export function trendRows(report: Report): readonly TrendRow[] {
  const trend = trendIn(report);
  if (trend === null) return [];
  const { lang } = report;
  const percent = (share: number): string => formatPercent(share, lang);
  const quantities: Quantity[] = [
    { what: word('trend.step', lang), of: (m) => m.stepTimeMs, format: formatTime },
    { what: word('trend.free', lang), of: (m) => m.freeShare, format: percent },
    { what: word('trend.exposed', lang), of: (m) => m.exposedMs, format: formatTime },
    ...trend.now.top.slice(0, CAUSES).map(({ rule }) => ({
      what: word('trend.cause', lang, { rule }),
      // A profile that was judged and does not have the cause loses no time to it.
      of: ({ top }: ProfileMetrics) => top.find((cause) => cause.rule === rule)?.savingMs ?? 0,
      format: formatTime,
    })),
  ];
  return quantities.flatMap((quantity) => rowOf(trend, quantity, lang) ?? []);
}

/** The step time of the base branch in one line; null without enough history. */
export function trendLine(report: Report): string | null {
  const trend = trendIn(report);
  const [step] = trendRows(report);
  if (trend === null || step === undefined || step.what !== word('trend.step', report.lang)) return null;
  const { before, now, course } = step;
  return word('trend.line', report.lang, { branch: trend.branch, n: trend.points.length, before, now, course });
}

/** Title of the table of `trendRows`. */
export function trendTitle(report: Report): string {
  const trend = trendIn(report);
  return trend === null ? '' : word('trend.title', report.lang, { branch: trend.branch, n: trend.points.length });
}

function ageText(ms: number, lang: Lang): string {
  const hours = ms / HOUR;
  if (hours < 1) return word('base.age.now', lang);
  if (hours < 48) return word(hours < 1.5 ? 'base.age.hour' : 'base.age.hours', lang, { n: Math.round(hours) });
  return word('base.age.days', lang, { n: Math.round(hours / 24) });
}

/** Which commit the job was compared with, how old its profile is, and whether it only stands in. null: not chosen by history. */
export function baseLine(report: Report): string | null {
  const parsed = BaseCommit.safeParse(report.comparison?.baseline.commit);
  if (!parsed.success) return null;
  const { sha, baseRef, mergeBase, isFallback, commitsBefore, ageMs } = parsed.data;
  const { lang } = report;
  const params = { sha: sha.slice(0, 7), branch: baseRef, age: ageText(ageMs, lang) };
  if (!isFallback) return word('base.exact', lang, params);
  const key = commitsBefore === 1 ? 'base.fallback.one' : 'base.fallback.many';
  return word(key, lang, { ...params, n: commitsBefore, mergeBase: mergeBase.slice(0, 7) });
}

/** True when the report should say that there is nothing to compare with although its base branch has profiles. */
export function lacksBaseline(report: Report): boolean {
  return report.comparison === null && NoBaseline.safeParse(report.views.baseline).success && trendIn(report) !== null;
}

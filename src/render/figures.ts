import { formatEstimate, inUnit, type Unit, withThousands } from '../base/figures.ts';
import { formatShare } from '../base/phrase.ts';
import type { Lang } from '../model/lang.ts';
import type { Saving } from '../model/report.ts';

/**
 * Figures as they are printed. One quantity has one string, wherever it appears: comment, check run, review, terminal.
 * Steps keep three significant digits; savings are estimates and get whole milliseconds from 10 ms.
 */

export { articleFor, formatEstimate, formatTime } from '../base/figures.ts';

const NBSP = '\u00a0';

/** A figure of a table whose header carries the unit: milliseconds, one decimal. Absent is not zero. */
export function formatColumnMs(ms: number | null): string {
  if (ms === null) return '–';
  return `${ms < 0 ? '−' : ''}${withThousands(Math.abs(ms).toFixed(1))}`;
}

/** `part of whole` in one unit when both have the same: `132 of 812 ms`. */
export function formatPart(part: string, whole: string): { part: string; whole: string } {
  const [value, unit] = part.split(NBSP);
  return whole.endsWith(`${NBSP}${unit}`) ? { part: value!, whole } : { part, whole };
}

/** The figure a finding is ranked by: likely, else ceiling. */
export function headlineMs(saving: Pick<Saving, 'perStepMs'>): number {
  return saving.perStepMs.likely ?? saving.perStepMs.ceiling;
}

/** The saving in words: `headline` is "≈ 94 ms" or "up to 19 ms", `range` is "71–118" in the unit of the headline or null. */
export function formatSaving(
  perStepMs: { floor?: number; likely: number | null; ceiling: number },
  lang: Lang,
): { headline: string; range: string | null } {
  const { floor, likely, ceiling } = perStepMs;
  if (likely === null)
    return { headline: lang === 'en' ? `up to ${formatEstimate(ceiling)}` : `最多 ${formatEstimate(ceiling)}`, range: null };
  const text = formatEstimate(likely);
  const unit = text.slice(text.indexOf(NBSP) + 1) as Unit;
  const decimals = /\.(\d+)/.exec(text)?.[1]?.length ?? 0;
  const bounds = [floor ?? likely, ceiling].map((ms) => inUnit(ms, unit, decimals));
  const range = bounds[0] === bounds[1] ? null : bounds.join(lang === 'en' ? '–' : '～');
  return { headline: `${lang === 'en' ? `≈${NBSP}` : '约 '}${text}`, range };
}

/** "≈ 94 ms (71–118)" or "约 94 ms（71～118）" on one line. */
export function formatSavingLine(perStepMs: { floor?: number; likely: number | null; ceiling: number }, lang: Lang): string {
  const { headline, range } = formatSaving(perStepMs, lang);
  if (range === null) return headline;
  return lang === 'en' ? `${headline} (${range})` : `${headline}（${range}）`;
}

/** A share of the step: `16 %` or `16%`. */
export function formatPercent(share: number, lang: Lang): string {
  return formatShare(share, lang);
}

/** Parts to whole cells by largest remainder: never negative, and the sum is `cells` or, without any time, 0. */
export function splitCells(parts: readonly number[], cells: number): number[] {
  const clean = parts.map((part) => (Number.isFinite(part) && part > 0 ? part : 0));
  const scale = Math.max(...clean, 0);
  if (scale === 0) return clean.map(() => 0);
  const shares = clean.map((part) => part / scale);
  const total = shares.reduce((sum, share) => sum + share, 0);
  const exact = shares.map((share) => (share / total) * cells);
  const counts = exact.map(Math.floor);
  const order = exact.map((value, i) => ({ i, rest: value - Math.floor(value) })).sort((a, b) => b.rest - a.rest || a.i - b.i);
  let left = cells - counts.reduce((sum, count) => sum + count, 0);
  for (const { i } of order) {
    if (left <= 0) break;
    counts[i]!++;
    left--;
  }
  return counts;
}

import { withThousands } from '../base/figures.ts';
import type { Lang } from '../model/lang.ts';
import type { Comparison, Report } from '../model/report.ts';
import { formatPercent, formatTime } from './figures.ts';
import { type Word, word } from './words.ts';

/** The job against its baseline, as pieces of prose that comment, terminal and full report lay out. */
export interface ComparisonView {
  readonly title: string;
  readonly text: string;
  /** Step first, then what it is made of; empty where the two cannot be subtracted. */
  readonly rows: readonly ComparisonRow[];
  /** Operators, collectives, causes, throughput, trade-offs. */
  readonly points: readonly string[];
  /** How the figures were made and what to keep in mind. */
  readonly notes: readonly string[];
}

export interface ComparisonRow {
  readonly what: string;
  readonly base: string;
  readonly head: string;
  readonly change: string;
  /** *prose*: the change as cells beside that of the part which changed most; full cells are more time, light ones less. */
  readonly bar: string;
  readonly isStep: boolean;
}

const DETAILS = 3;
/** Of a GPU the classes of work and the modules are the point. */
const GPU_DETAILS = 12;
const CAUSES = 5;
const BAR_CELLS = 10;

/** `+70.5 ms`, `−3.10 ms`. */
export function signedTime(ms: number): string {
  if (Math.abs(ms) < 0.0005) return formatTime(0);
  return `${ms < 0 ? '−' : '+'}${formatTime(Math.abs(ms))}`;
}

function capital(text: string): string {
  return /^[a-z]/.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text;
}

function signedPercent(share: number, lang: Lang): string {
  return `${share < 0 ? '−' : '+'}${formatPercent(Math.abs(share), lang)}`;
}

/** null: no baseline was given. */
export function comparisonView(report: Report): ComparisonView | null {
  const { comparison, lang } = report;
  if (comparison === null) return null;
  return {
    title: word('compare.title', lang, { label: comparison.baseline.label }),
    text: comparison.text,
    rows: rowsOf(comparison, lang),
    points: pointsOf(comparison, lang),
    notes: notesOf(comparison, lang),
  };
}

function rowsOf(of: Comparison, lang: Lang): ComparisonRow[] {
  const { baseline, stepTimeMs, deltaMs, interval } = of;
  if (deltaMs === null || stepTimeMs === null || baseline.stepTimeMs === null) return [];
  const range = interval === null ? '' : word('compare.range', lang, { low: signedTime(interval[0]), high: signedTime(interval[1]) });
  const step: ComparisonRow = {
    what: capital(word('compare.step', lang)),
    base: formatTime(baseline.stepTimeMs),
    head: formatTime(stepTimeMs),
    change: signedTime(deltaMs) + range,
    bar: '',
    isStep: true,
  };
  // With nothing else to tell, the one row of the rest says nothing.
  if (of.contributors.every((c) => c.part === 'other')) return [step];
  const most = Math.max(...of.contributors.map((c) => Math.abs(c.deltaMs)));
  return [
    step,
    ...of.contributors.map((c) => ({
      what: capital(c.what),
      base: formatTime(c.baseMs),
      head: formatTime(c.headMs),
      change: signedTime(c.deltaMs),
      bar: barOf(c.deltaMs, most),
      isStep: false,
    })),
  ];
}

function barOf(deltaMs: number, most: number): string {
  const cells = most > 0 ? Math.round((Math.abs(deltaMs) / most) * BAR_CELLS) : 0;
  return cells === 0 ? '' : `\`${(deltaMs > 0 ? '█' : '░').repeat(cells)}\``;
}

function pointsOf(of: Comparison, lang: Lang): string[] {
  const points: string[] = [];
  for (const part of of.contributors) {
    for (const d of part.details.slice(0, of.baseline.kind === 'gpu' ? GPU_DETAILS : DETAILS)) {
      const calls = d.calls.base === d.calls.head ? 'compare.detail' : 'compare.detail-calls';
      const change = of.baseline.kind === 'gpu' ? `${formatTime(d.baseMs)} → ${formatTime(d.headMs)}` : signedTime(d.deltaMs);
      points.push(word(calls, lang, { what: capital(d.what), change, from: d.calls.base, to: d.calls.head }));
    }
  }
  for (const f of of.findings.slice(0, CAUSES)) {
    const key: Word = f.bound ? 'compare.cause.bound' : `compare.cause.${f.change}`;
    points.push(word(key, lang, { title: f.title, change: signedTime(f.deltaMs), of: formatTime(Math.abs(f.deltaMs)) }));
  }
  for (const m of of.metrics) {
    if (m.base === null || m.head === null || m.base === 0) continue;
    const share = signedPercent((m.head - m.base) / m.base, lang);
    if (m.unit === '1/s')
      points.push(word('compare.throughput', lang, { name: capital(m.name), base: rate(m.base), head: rate(m.head), change: share }));
    else if (m.verdict !== of.verdict && (m.verdict === 'regression' || m.verdict === 'improvement'))
      points.push(
        word(`compare.trade.${m.verdict}`, lang, { name: m.name, base: formatTime(m.base), head: formatTime(m.head), change: share }),
      );
  }
  return points;
}

/** `1,953`, `41.2`. */
function rate(perSecond: number): string {
  return perSecond >= 100 ? withThousands(perSecond.toFixed(0)) : String(Number(perSecond.toPrecision(3)));
}

function notesOf(of: Comparison, lang: Lang): string[] {
  const notes: string[] = [];
  const { pace, samples, baseline } = of;
  if (of.deltaMs !== null) {
    notes.push(word('compare.steps', lang, { now: samples.head, before: samples.base, method: of.method }));
    if (of.contributors.length > 1) notes.push(word('compare.folded', lang));
    if (pace.standsOut) notes.push(word('compare.pace', lang, { ranks: pace.ranks }));
  }
  if (baseline.runs.length > 1)
    notes.push(
      word('compare.runs', lang, { n: baseline.runs.length, times: baseline.runs.map((r) => formatTime(r.stepTimeMs ?? 0)).join(', ') }),
    );
  return [...notes, ...of.warnings];
}

/** The regression as a clause, for headings. null: there is none. */
export function regressionClause(report: Report): string | null {
  const { comparison, lang } = report;
  if (comparison?.verdict !== 'regression' || comparison.deltaMs === null || comparison.deltaShare === null) return null;
  const share = signedPercent(comparison.deltaShare, lang);
  return word('heading.slower', lang, { delta: formatTime(comparison.deltaMs), change: share });
}

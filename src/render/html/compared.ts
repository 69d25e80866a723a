import type { Report } from '../../model/report.ts';
import { comparisonView, signedTime } from '../comparison.ts';
import { sentence } from '../standing.ts';
import { word } from '../words.ts';
import { figure, table } from './figure.ts';
import { html, type Markup, prose, text } from './markup.ts';
import { stepStrip, trendFigure } from './trend-chart.ts';

/** From the step of the baseline to the step of this job, part by part. */
function steps(report: Report): Markup | null {
  const of = report.comparison!;
  if (of.deltaMs === null || of.contributors.length < 2) return null;
  let now = 0;
  const points = of.contributors.map((c) => {
    const from = now;
    now += c.deltaMs;
    return { ...c, low: Math.min(from, now), high: Math.max(from, now) };
  });
  const low = Math.min(0, ...points.map((p) => p.low));
  const span = Math.max(...points.map((p) => p.high), 0) - low;
  if (span <= 0) return null;
  return html`<div class="steps">${points.map(
    (p) =>
      html`<div><span>${prose(p.what)}</span><div class="track"><i class="${p.deltaMs > 0 ? html`worse` : html`better`}" style="margin-left:${text((((p.low - low) / span) * 100).toFixed(2))}%;width:${text((((p.high - p.low) / span) * 100).toFixed(2))}%"></i></div><span class="n">${text(p.deltaMs > 0 ? '▲' : '▼')} ${text(signedTime(p.deltaMs))}</span></div>`,
  )}</div>`;
}

/** What changed against the baseline, and whether it is real. */
export function comparedSection(report: Report): Markup {
  const { lang } = report;
  const view = comparisonView(report);
  const trend = trendFigure(report);
  if (view === null)
    return html`<section id="comparison"><h2>${prose(word('html.compared', lang))}</h2><p class="none">${prose(word('html.compared.none', lang))}</p>${trend}</section>`;
  const columns = (['step', 'base', 'head', 'change'] as const).map((key, i) => ({
    title: word(`compare.column.${key}`, lang),
    figures: i > 0,
  }));
  const rows = view.rows.map((row) => [row.what, row.base, row.head, row.change]);
  return html`<section id="comparison"><h2>${prose(view.title)}</h2><p class="lead">${prose(view.text)}</p>${stepStrip(report)}${rows.length === 0 ? null : figure('compared-parts', word('html.compared.caption', lang), html`${steps(report)}`, table(columns, rows))}
${view.points.length === 0 ? null : html`<ul>${view.points.slice(0, 40).map((p) => html`<li>${prose(p)}</li>`)}</ul>`}
${view.notes.length === 0 ? null : html`<ul class="dim">${view.notes.map((n) => html`<li>${prose(sentence(n, lang))}</li>`)}</ul>`}
${trend}</section>`;
}

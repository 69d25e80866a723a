import { z } from 'zod';
import { median } from '../../base/statistics.ts';
import type { Report } from '../../model/report.ts';
import { formatColumnMs, formatTime } from '../figures.ts';
import { paceRow } from '../standing.ts';
import { word } from '../words.ts';
import { columnsPlot } from './columns.ts';
import { figure, table } from './figure.ts';
import { html, type Markup, prose } from './markup.ts';

const Input = z.object({
  ranks: z.array(
    z.object({
      rank: z.number().nullable(),
      iterator: z.enum(['single', 'multi', 'unknown']).nullable(),
      steps: z.array(
        z.object({
          step: z.number().nullable(),
          fetchMs: z.number(),
          stallMs: z.number(),
          prepareMs: z.number(),
          prepareIdleMs: z.number(),
        }),
      ),
    }),
  ),
  of: z.object({ ranks: z.number(), steps: z.number() }),
});

/** Whether the loader is ahead of the cards: per step how long a fetch took, and how long the card had nothing to do meanwhile. */
export function inputSection(report: Report): Markup {
  const { lang } = report;
  const title = html`<h2>${prose(word('html.input', lang))}</h2>`;
  const parsed = Input.safeParse(report.views.input);
  const worst = parsed.success ? parsed.data.ranks[0] : undefined;
  if (!parsed.success || worst === undefined || worst.steps.length === 0) {
    const gap = paceRow(report)?.preparingMs ?? null;
    const more = gap === null || gap <= 0 ? null : html` ${prose(word('html.input.gap', lang, { gap: formatTime(gap) }))}`;
    return html`<section id="input">${title}<p class="none">${prose(word('html.input.none', lang))}${more}</p></section>`;
  }
  const { ranks, of } = parsed.data;
  const waits = worst.steps.filter((s) => s.stallMs + s.prepareIdleMs > 0);
  const most = Math.max(...worst.steps.map((s) => s.stallMs + s.prepareIdleMs));
  const rank = worst.rank === null ? '–' : String(worst.rank);
  const caption =
    waits.length === 0
      ? word('html.input.quiet', lang, { rank, all: worst.steps.length })
      : word('html.input.caption', lang, { rank, n: waits.length, all: worst.steps.length, ms: formatTime(most) });
  // The stall is a part of the fetch: the rest of it stays an outline.
  const picture = columnsPlot(
    worst.steps.map((s) => ({
      label: s.step === null ? '–' : String(s.step),
      parts: [
        { kind: 'data', ms: s.stallMs },
        { kind: 'waiting', ms: s.prepareIdleMs },
      ],
      frame: { from: s.stallMs + s.prepareIdleMs, ms: Math.max(0, s.fetchMs - s.stallMs) + Math.max(0, s.prepareMs - s.prepareIdleMs) },
    })),
    { x: word('html.axis.step', lang), y: word('html.axis.ms', lang), said: caption },
    Math.max(...worst.steps.map((s) => s.fetchMs + s.prepareMs), 1e-3),
  );
  const legend = html`<ul class="legend"><li><i class="k-data"></i>${prose(word('html.input.stall', lang))}</li><li><i class="k-waiting"></i>${prose(word('html.input.prepare-idle', lang))}</li><li><i class="outline"></i>${prose(`${word('html.input.fetch', lang)}${lang === 'en' ? ', ' : '、'}${word('html.input.prepare', lang)}`)}</li></ul>`;
  const numbers = table(
    [
      { title: word('column.rank', lang), figures: true },
      { title: word('html.input.iterator', lang) },
      { title: word('html.input.median.fetch', lang), figures: true },
      { title: word('html.input.median.stall', lang), figures: true },
      { title: word('html.input.median.prepare', lang), figures: true },
      { title: word('html.input.worst', lang), figures: true },
      { title: word('html.input.worst-step', lang), figures: true },
    ],
    ranks.map((r) => {
      const longest = r.steps.reduce((a, b) => (b.stallMs > a.stallMs ? b : a));
      return [
        r.rank === null ? '–' : String(r.rank),
        r.iterator === null ? '–' : word(`html.input.iterator.${r.iterator}`, lang),
        formatColumnMs(median(r.steps.map((s) => s.fetchMs))),
        formatColumnMs(median(r.steps.map((s) => s.stallMs))),
        formatColumnMs(median(r.steps.map((s) => s.prepareMs))),
        formatColumnMs(longest.stallMs),
        longest.stallMs > 0 && longest.step !== null ? String(longest.step) : '–',
      ];
    }),
    'sortable',
  );
  const cut =
    ranks.length < of.ranks || worst.steps.length < of.steps
      ? html`<p class="dim">${prose(word('html.input.cut', lang, { ranks: ranks.length, allRanks: of.ranks, steps: worst.steps.length, allSteps: of.steps }))}</p>`
      : null;
  return html`<section id="input">${title}${figure('input-steps', caption, html`${picture}${legend}`, numbers)}${cut}</section>`;
}

import { z } from 'zod';
import { median } from '../../base/statistics.ts';
import type { Report } from '../../model/report.ts';
import { formatTime } from '../figures.ts';
import { word } from '../words.ts';
import { columnsPlot } from './columns.ts';
import { figure, msColumn, table, tableBelow } from './figure.ts';
import { html, type Markup, prose } from './markup.ts';

const Losses = z.array(
  z.object({
    findingId: z.string(),
    steps: z.array(z.object({ step: z.number().nullable(), ms: z.number().nullable() })),
    of: z.number(),
  }),
);

/** What a finding costs in each used step; null where no replay tells. */
export function lossFigure(report: Report, findingId: string, number: number): Markup | null {
  const { lang } = report;
  const parsed = Losses.safeParse(report.views.losses);
  const of = parsed.success ? parsed.data.find((loss) => loss.findingId === findingId) : undefined;
  const known = of?.steps.flatMap(({ ms }) => (ms === null ? [] : [ms])) ?? [];
  if (of === undefined || known.length === 0) return null;
  const top = Math.max(...known, 1e-3);
  const caption = word('html.loss.caption', lang, { n: number, median: formatTime(Math.max(0, median(known))) });
  const ms = msColumn(known);
  const name = (step: number | null): string => (step === null ? '–' : String(step));
  // A step that would get longer has no bar; its figure stands in the table.
  const picture = columnsPlot(
    of.steps.map((s) => ({ label: name(s.step), parts: [{ kind: 'waiting', ms: Math.max(0, s.ms ?? 0) }] })),
    { x: word('html.axis.step', lang), y: word('html.axis.ms', lang), said: caption },
    top,
  );
  const numbers = table(
    [
      { title: word('column.step', lang), figures: true },
      { title: word('html.axis.ms', lang), figures: true },
    ],
    of.steps.map((s) => [name(s.step), s.ms === null ? '–' : ms(s.ms).replace('-', '−')]),
  );
  const cut =
    of.steps.length < of.of ? html`<p class="dim">${prose(word('html.loss.cut', lang, { n: of.steps.length, all: of.of }))}</p>` : null;
  return figure(`loss-${number}`, caption, html`${picture}${cut}`, tableBelow(lang, numbers));
}

import { z } from 'zod';
import type { Report } from '../../model/report.ts';
import { formatTime } from '../figures.ts';
import { word } from '../words.ts';
import { columnsPlot } from './columns.ts';
import { figure, msColumn, table, tableBelow } from './figure.ts';
import { html, type Markup, prose } from './markup.ts';

const Sum = z.object({ count: z.number(), ms: z.number() });
const SmallOps = z.object({
  rank: z.number().nullable(),
  steps: z.number(),
  launchUs: z.number().nullable(),
  classes: z.array(z.object({ fromUs: z.number(), toUs: z.number(), count: z.number(), ms: z.number() })),
  below: Sum.nullable(),
  total: Sum,
});

/** Kernels by how long they run: whether few long or many short ones make up the time, and which the host cannot feed. */
export function smallOpsFigure(report: Report): Markup | null {
  const { lang } = report;
  const parsed = SmallOps.safeParse(report.views.smallOps);
  if (!parsed.success || parsed.data.classes.length === 0) return null;
  const of = parsed.data;
  const caption = word('html.small.caption', lang, { rank: of.rank === null ? '–' : String(of.rank) });
  const ms = msColumn(of.classes.map((c) => c.ms));
  const count = (n: number): string => Math.round(n).toLocaleString('en-US');
  const upTo = (us: number): string => (us < 1000 ? `≤ ${Number(us.toPrecision(2))}\u00a0µs` : `≤ ${formatTime(us / 1000)}`);
  const picture = columnsPlot(
    of.classes.map((c) => ({
      label: upTo(c.toUs),
      parts: [{ kind: of.launchUs !== null && c.toUs <= of.launchUs ? 'host' : 'computing', ms: c.ms }],
    })),
    { x: word('html.small.length', lang), y: word('html.axis.ms', lang), said: caption },
    Math.max(...of.classes.map((c) => c.ms), 1e-3),
  );
  const numbers = table(
    [
      { title: word('html.small.length', lang) },
      { title: word('html.operators.count', lang), figures: true },
      { title: word('html.axis.ms', lang), figures: true },
    ],
    of.classes.map((c) => [upTo(c.toUs), count(c.count), ms(c.ms)]),
  );
  const said = [
    ...(of.launchUs === null || of.below === null
      ? []
      : [
          word('html.small.below', lang, {
            launch: formatTime(of.launchUs / 1000),
            n: count(of.below.count),
            all: count(of.total.count),
            ms: formatTime(of.below.ms),
            total: formatTime(of.total.ms),
          }),
        ]),
    of.steps > 0 ? word('html.small.unit', lang, { n: of.steps }) : word('html.small.whole', lang),
  ];
  return figure(
    'small-ops',
    caption,
    html`${picture}<p class="dim">${prose(said.join(lang === 'en' ? ' ' : ''))}</p>`,
    tableBelow(lang, numbers),
  );
}

import { z } from 'zod';
import type { Report } from '../../model/report.ts';
import type { Places } from '../details.ts';
import { formatPercent } from '../figures.ts';
import { word } from '../words.ts';
import { cellBar, figure, msColumn, table } from './figure.ts';
import { kernelFigures, kindOfType } from './kernels.ts';
import { html, type Markup, prose } from './markup.ts';
import { smallOpsFigure } from './small-ops.ts';

const Operators = z.array(
  z.object({
    rank: z.number().nullable(),
    types: z.array(z.object({ type: z.string(), core: z.string().nullable(), count: z.number(), ms: z.number() })),
  }),
);

/** Types of operators by their time on the card. */
export function operatorsSection(report: Report, places: Places): Markup {
  const { lang } = report;
  const parsed = Operators.safeParse(report.views.operators);
  const pace = typeof report.views.paceRank === 'number' ? report.views.paceRank : null;
  const of = parsed.success ? (parsed.data.find((r) => r.rank === pace) ?? parsed.data[0]) : undefined;
  const title = html`<h2>${prose(word('html.operators', lang))}</h2>`;
  if (of === undefined || of.types.length === 0)
    return html`<section id="operators">${title}<p class="none">${prose(word('html.operators.none', lang))}</p></section>`;
  const total = of.types.reduce((sum, t) => sum + t.ms, 0);
  const longest = Math.max(...of.types.map((t) => t.ms));
  const own = msColumn(of.types.map((t) => t.ms));
  const numbers = table(
    [
      { title: word('html.operators.type', lang) },
      { title: word('html.operators.core', lang) },
      { title: word('html.operators.count', lang), figures: true },
      { title: word('html.operators.time', lang) },
      { title: word('html.share', lang), figures: true },
    ],
    of.types.map((t) => [
      `\`${t.type.replaceAll('`', 'ˋ')}\``,
      t.core === null ? '–' : `\`${t.core.replaceAll('`', 'ˋ')}\``,
      t.count.toLocaleString('en-US'),
      cellBar(t.ms / longest, kindOfType(t.type), own(t.ms)),
      formatPercent(t.ms / total, lang),
    ]),
    'sortable',
  );
  const caption = word('html.operators.caption', lang, { rank: of.rank === null ? '–' : String(of.rank), n: of.types.length });
  return html`<section id="operators">${title}${figure('operator-types', caption, numbers)}${smallOpsFigure(report)}${kernelFigures(report, places)}</section>`;
}

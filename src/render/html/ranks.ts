import { z } from 'zod';
import type { Report } from '../../model/report.ts';
import { formatColumnMs, formatTime } from '../figures.ts';
import { word } from '../words.ts';
import { cellBar, figure, table, tableBelow } from './figure.ts';
import { at, html, jsonIn, type Markup, prose, text } from './markup.ts';

const Waits = z.array(z.object({ rank: z.number().nullable(), causedMs: z.number(), waitedMs: z.number(), lastCount: z.number() }));
const Clock = z.array(z.object({ rank: z.number().nullable(), offsetUs: z.number(), madUs: z.number().nullable() }));
const Arrivals = z.array(
  z.object({
    group: z.string(),
    ranks: z.array(z.number().nullable()),
    members: z.number().nullable(),
    matched: z.number(),
    columns: z.array(
      z.object({
        op: z.string(),
        step: z.number().nullable(),
        folded: z.number(),
        culprit: z.number().nullable(),
        skewMs: z.number(),
        perRankUs: z.array(z.number().nullable()),
      }),
    ),
  }),
);
type ArrivalGroup = z.infer<typeof Arrivals>[number];

const SHOWN = 64;

/** Level −3 … 3 of an arrival against the median of its collective. */
function level(us: number, scale: number): number {
  const share = us / scale;
  if (Math.abs(share) < 0.08) return 0;
  const size = Math.abs(share) < 0.3 ? 1 : Math.abs(share) < 0.65 ? 2 : 3;
  return Math.sign(share) * size;
}

function arrivalMap(group: ArrivalGroup, report: Report, index: number): Markup {
  const { lang } = report;
  const height = Math.max(6, Math.min(24, 320 / group.ranks.length));
  const width = Math.max(4, Math.min(28, 860 / Math.max(1, group.columns.length)));
  const sizes = group.columns.flatMap((c) => c.perRankUs.map((us) => Math.abs(us ?? 0))).sort((a, b) => a - b);
  const scale = Math.max(1, sizes[Math.floor(sizes.length * 0.99)] ?? 1);
  const paths = new Map<string, string[]>();
  const add = (name: string, d: string): void => void (paths.get(name) ?? paths.set(name, []).get(name)!).push(d);
  group.columns.forEach((column, x) => {
    column.perRankUs.forEach((us, y) => {
      const box = `M${at(x * width)} ${at(y * height)}h${at(width - 0.5)}v${at(height - 0.5)}h-${at(width - 0.5)}z`;
      add(us === null ? 'missing' : `d${level(us, scale)}`, box);
      if (column.culprit !== null && group.ranks[y] === column.culprit)
        add('tick', `M${at(x * width + width / 2 - 1)} ${at(y * height + 1)}h2v${at(height - 2.5)}h-2z`);
    });
  });
  const size = { w: at(group.columns.length * width), h: at(group.ranks.length * height) };
  const id = `arrivals-${index}`;
  const late = [...Map.groupBy(group.columns, (c) => c.culprit)]
    .filter(([rank]) => rank !== null)
    .sort(([, a], [, b]) => b.length - a.length)[0];
  const caption =
    late === undefined
      ? word('html.arrivals.none', lang, { group: group.group, n: group.matched })
      : word('html.arrivals.caption', lang, { group: group.group, rank: late[0], n: late[1].length, all: group.columns.length });
  const missing =
    group.members !== null && group.members > group.ranks.length
      ? word('html.arrivals.missing', lang, { n: group.ranks.length, all: group.members })
      : null;
  return figure(
    id,
    caption,
    html`<div class="wide"><svg class="map" data-map="${text(`${id}-data`)}" viewBox="0 0 ${size.w} ${size.h}" width="${size.w}" height="${size.h}" role="img" aria-label="${text(caption, 400)}">${[
      ...paths,
    ].map(
      ([name, d]) => html`<path class="${text(name)}" d="${text(d.join(''), Infinity)}"/>`,
    )}</svg></div><p class="dim" data-map-tip="${text(`${id}-data`)}">${prose(word('html.arrivals.legend', lang, { scale: formatTime(scale / 1000) }))}${missing === null ? null : html` ${prose(missing)}`}</p>
<script type="application/json" id="${text(`${id}-data`)}">${jsonIn({
      per: 1,
      rows: group.ranks,
      columns: group.columns.map((c) => `${c.op}${c.step === null ? '' : ` #${c.step}`}`),
      names: [word('column.rank', lang), ''],
      unit: 'µs',
      cells: group.ranks.map((rank, y) => group.columns.map((c) => (c.perRankUs[y] === null ? null : [rank, c.perRankUs[y]]))),
    })}</script>`,
    arrivalTable(group, lang),
  );
}

/** The collectives of the map, in order. */
function arrivalTable(group: ArrivalGroup, lang: Report['lang']): Markup {
  return tableBelow(
    lang,
    table(
      [
        { title: word('html.arrivals.call', lang) },
        { title: word('column.step', lang), figures: true },
        { title: word('html.arrivals.last', lang), figures: true },
        { title: word('html.arrivals.skew', lang), figures: true },
      ],
      group.columns.map((c) => [
        html`<code lang="en">${text(c.op, 80)}</code>`,
        c.step === null ? '–' : String(c.step),
        c.culprit === null ? '–' : String(c.culprit),
        formatColumnMs(c.skewMs),
      ]),
    ),
  );
}

/** Who is late at the collectives, and who waits. */
export function ranksSection(report: Report): Markup {
  const { lang } = report;
  const title = html`<h2>${prose(word('html.ranks', lang))}</h2>`;
  if (report.job.ranks.length + report.job.unrankedFolders < 2)
    return html`<section id="ranks">${title}<p class="none">${prose(word('html.ranks.one', lang))}</p></section>`;
  const waits = Waits.safeParse(report.views.waits);
  const groups = Arrivals.safeParse(report.views.arrivals);
  const clock = Clock.safeParse(report.views.clock);
  const rows = waits.success ? [...waits.data].sort((a, b) => b.causedMs - a.causedMs || b.waitedMs - a.waitedMs) : [];
  if (rows.length === 0) return html`<section id="ranks">${title}<p class="none">${prose(word('html.ranks.none', lang))}</p></section>`;
  const longest = Math.max(...rows.map((r) => Math.max(r.causedMs, r.waitedMs)), 1e-9);
  const errors = new Map(clock.success ? clock.data.map((c) => [c.rank, c]) : []);
  const numbers = table(
    [
      { title: word('column.rank', lang), figures: true },
      { title: word('html.ranks.caused', lang) },
      { title: word('html.ranks.waited', lang) },
      { title: word('html.ranks.late', lang), figures: true },
      { title: word('html.ranks.clock', lang), figures: true },
    ],
    rows.slice(0, SHOWN).map((r) => {
      const offset = errors.get(r.rank);
      return [
        r.rank === null ? '–' : String(r.rank),
        cellBar(r.causedMs / longest, 'exposed', formatColumnMs(r.causedMs)),
        cellBar(r.waitedMs / longest, 'waiting', formatColumnMs(r.waitedMs)),
        String(r.lastCount),
        offset === undefined
          ? '–'
          : `${formatColumnMs(offset.offsetUs)}${offset.madUs === null ? '' : ` ± ${formatColumnMs(offset.madUs)}`} µs`,
      ];
    }),
    'sortable',
  );
  return html`<section id="ranks">${title}${figure('waits', word('html.ranks.caption', lang), numbers)}${groups.success ? groups.data.map((g, i) => arrivalMap(g, report, i)) : null}</section>`;
}

import { z } from 'zod';
import { PIPES } from '../../model/capture.ts';
import type { Report } from '../../model/report.ts';
import type { Places } from '../details.ts';
import { formatColumnMs, formatPercent, formatTime } from '../figures.ts';
import { word } from '../words.ts';
import { cellBar, figure, type Kind, msColumn, table } from './figure.ts';
import { html, type Markup, prose, text } from './markup.ts';

const Share = z.number().min(0);
const Kernels = z.object({
  rank: z.number().nullable(),
  groups: z.array(
    z.object({
      type: z.string(),
      core: z.string(),
      shapes: z.string(),
      count: z.number(),
      ms: z.number(),
      meanUs: z.number(),
      pipes: z.object(Object.fromEntries(PIPES.map((pipe) => [pipe, Share])) as Record<(typeof PIPES)[number], typeof Share>).nullable(),
      boundBy: z.enum(PIPES).nullable(),
      l2Hit: Share.nullable(),
      place: z.object({ file: z.string(), line: z.number().int().positive() }).nullable(),
    }),
  ),
  other: z.object({ count: z.number(), ms: z.number() }),
  cores: z.array(z.object({ core: z.string(), ms: z.number() })),
  layout: z.object({ ms: z.number(), removableMs: z.number(), count: z.number(), ofMs: z.number() }).nullable(),
  casts: z.object({ ms: z.number(), removableMs: z.number(), count: z.number() }).nullable(),
});
type Kernels = z.infer<typeof Kernels>;

const literal = (name: string): string => `\`${name.replaceAll('`', 'ˋ')}\``;

const LAYOUT = /^(transdata|transpose|cast|asstrided|slice|concat|memcpy|copy|contiguous|tensormove)/i;

export function kindOfType(type: string): Kind {
  return LAYOUT.test(type) ? 'layout' : 'computing';
}

function pipe(share: number, isBound: boolean): Markup {
  const percent = Math.round(share * 100);
  const figure = isBound ? html`<b>${percent}</b>` : html`${percent}`;
  return html`<span class="pipe" data-share="${text(String(share))}">${figure}<i style="width:${Math.max(0, Math.min(100, percent))}%"></i></span>`;
}

function groupsTable(of: Kernels, report: Report, places: Places): Markup {
  const { lang } = report;
  const hasPipes = of.groups.some((g) => g.pipes !== null);
  const hasL2 = of.groups.some((g) => g.l2Hit !== null);
  const total = of.groups.reduce((sum, g) => sum + g.ms, of.other.ms);
  const longest = Math.max(...of.groups.map((g) => g.ms), 1e-9);
  const ms = msColumn(of.groups.map((g) => g.ms));
  const columns = [
    { title: word('html.operators.type', lang) },
    { title: word('html.operators.core', lang) },
    { title: word('html.operators.count', lang), figures: true },
    { title: word('html.operators.time', lang) },
    { title: word('html.share', lang), figures: true },
    { title: word('html.kernels.mean', lang), figures: true },
    ...(hasPipes ? PIPES.map((name) => ({ title: `\`${name}\``, figures: true })) : []),
    ...(hasL2 ? [{ title: word('html.kernels.l2', lang), figures: true }] : []),
  ];
  const rows = of.groups.map((g) => [
    html`<code lang="en">${text(g.type)}</code>${g.shapes === '' ? null : html`<br><span class="dim shapes" lang="en">${text(g.shapes.replaceAll('"', '').replaceAll(';', ' ; '), 120)}</span>`}${
      g.place === null
        ? null
        : html`<br><span class="dim shapes" lang="en">${text(`${places.path(g.place.file)}:${g.place.line}`, 160)}</span>`
    }`,
    g.core === '' ? '–' : html`<code class="nowrap" lang="en">${text(g.core, 24)}</code>`,
    g.count.toLocaleString('en-US'),
    cellBar(g.ms / longest, kindOfType(g.type), ms(g.ms)),
    formatPercent(g.ms / total, lang),
    formatColumnMs(g.meanUs),
    ...(hasPipes ? PIPES.map((name) => (g.pipes === null ? '–' : pipe(g.pipes[name], g.boundBy === name))) : []),
    ...(hasL2 ? [g.l2Hit === null ? '–' : formatPercent(g.l2Hit, lang)] : []),
  ]);
  const notes = [
    word(hasPipes ? 'html.kernels.pipes' : 'html.kernels.no-pipes', lang),
    ...(hasL2 ? [] : [word('html.kernels.no-l2', lang)]),
    ...(of.other.count > 0 ? [word('html.kernels.other', lang, { n: of.other.count, ms: formatTime(of.other.ms) })] : []),
  ];
  const caption = word('html.kernels.caption', lang, { rank: of.rank === null ? '–' : String(of.rank) });
  return figure(
    'kernels',
    caption,
    table(columns, rows, 'sortable tight'),
    html`<p class="dim">${prose(notes.join(lang === 'en' ? ' ' : ''))}</p>`,
  );
}

function coresTable(of: Kernels, report: Report): Markup | null {
  const { lang } = report;
  const total = of.cores.reduce((sum, { ms }) => sum + ms, 0);
  if (total <= 0) return null;
  const own = msColumn(of.cores.map(({ ms }) => ms));
  const rows = of.cores.map(({ core, ms }) => [
    core === '' ? word('html.cores.unknown', lang) : literal(core),
    cellBar(ms / total, core === 'AI_CPU' ? 'host' : 'computing', own(ms)),
    formatPercent(ms / total, lang),
  ]);
  return figure(
    'cores',
    word('html.cores.caption', lang),
    table(
      [
        { title: word('html.operators.core', lang) },
        { title: word('html.operators.time', lang) },
        { title: word('html.share', lang), figures: true },
      ],
      rows,
    ),
  );
}

function layoutTable(of: Kernels, report: Report): Markup | null {
  const { lang } = report;
  const whole = of.layout?.ofMs ?? 0;
  const kinds = [
    { name: word('html.layout.layout', lang), is: of.layout },
    { name: word('html.layout.casts', lang), is: of.casts },
  ].flatMap(({ name, is }) => (is === null ? [] : [{ name, ...is }]));
  if (kinds.length === 0) return null;
  const own = msColumn(kinds.map((kind) => kind.ms));
  return figure(
    'layout',
    word('html.layout.caption', lang),
    table(
      [
        { title: word('html.layout.kind', lang) },
        { title: word('html.operators.count', lang), figures: true },
        { title: word('html.axis.ms', lang) },
        { title: word('html.layout.share', lang), figures: true },
        { title: word('html.layout.removable', lang), figures: true },
      ],
      kinds.map((kind) => [
        kind.name,
        Math.round(kind.count).toLocaleString('en-US'),
        whole > 0 ? cellBar(kind.ms / whole, 'layout', own(kind.ms)) : own(kind.ms),
        whole > 0 ? formatPercent(kind.ms / whole, lang) : '–',
        own(kind.removableMs),
      ]),
    ),
  );
}

/** Cores, pipes, L2, layouts and casts of the kernels of the pace-setting rank. */
export function kernelFigures(report: Report, places: Places): Markup {
  const parsed = Kernels.safeParse(report.views.kernels);
  if (!parsed.success || parsed.data.groups.length === 0) return html`<p class="none">${prose(word('html.kernels.none', report.lang))}</p>`;
  return html`<div class="pair">${coresTable(parsed.data, report)}${layoutTable(parsed.data, report)}</div>${groupsTable(parsed.data, report, places)}`;
}

import { z } from 'zod';
import { formatBytes } from '../../base/phrase.ts';
import type { Report } from '../../model/report.ts';
import { formatTime } from '../figures.ts';
import { word } from '../words.ts';
import { inner, linear, plot, roundTicks } from './chart.ts';
import { figure, table, tableBelow } from './figure.ts';
import { at, html, type Markup, prose, text } from './markup.ts';

const Numbers = z.array(z.number().nullable());
const Memory = z.array(
  z.object({
    rank: z.number().nullable(),
    deviceBytes: z.number().nullable(),
    peaks: z.object({ allocated: z.number().nullable(), reserved: z.number().nullable() }).nullable(),
    peakAt: z.object({ ms: z.number().nullable(), operator: z.string().nullable() }),
    curve: z.object({ startMs: Numbers, allocatedMin: Numbers, allocatedMax: Numbers, reserved: Numbers, active: Numbers }).nullable(),
  }),
);
type RankMemory = z.infer<typeof Memory>[number];

const WIDTH = 860;
const HEIGHT = 220;

function line(
  xs: readonly (number | null)[],
  ys: readonly (number | null)[],
  scale: { x: (v: number) => number; y: (v: number) => number },
): string {
  let d = '';
  xs.forEach((x, i) => {
    const y = ys[i];
    if (x === null || y === null || y === undefined) return;
    d += d === '' ? `M${at(scale.x(x))} ${at(scale.y(y))}` : `H${at(scale.x(x))}V${at(scale.y(y))}`;
  });
  return d;
}

function curve(of: RankMemory, report: Report): Markup | null {
  const { curve: c } = of;
  const times = c?.startMs.filter((v) => v !== null) ?? [];
  if (c === null || times.length < 2) return null;
  const { lang } = report;
  const [from, to] = [times[0]!, times.at(-1)!];
  const top = Math.max(1, ...[...c.allocatedMax, ...c.reserved, of.deviceBytes].filter((v) => v !== null));
  const box = inner(WIDTH, HEIGHT, 70);
  const scale = { x: linear(from, to, box.left, box.right), y: linear(0, top, box.bottom, box.top) };
  const lines = [
    ['allocated', c.allocatedMax],
    ['reserved', c.reserved],
    ['active', c.active],
  ] as const;
  const peak = of.peaks?.allocated ?? null;
  const figures = { rank: of.rank === null ? '–' : String(of.rank), peak: peak === null ? '–' : formatBytes(peak) };
  const caption =
    of.deviceBytes === null
      ? word('html.memory.caption.open', lang, figures)
      : word('html.memory.caption', lang, { ...figures, limit: formatBytes(of.deviceBytes) });
  return figure(
    `memory-${of.rank ?? 'x'}`,
    caption,
    html`${plot(
      {
        width: WIDTH,
        height: HEIGHT,
        left: 70,
        x: {
          place: (ms) => scale.x(from + ms),
          ticks: roundTicks(0, to - from, 6).map((v) => ({ at: v, label: formatTime(v) })),
          name: word('html.memory.time', lang),
        },
        y: { place: scale.y, ticks: roundTicks(0, top, 4).map((v) => ({ at: v, label: formatBytes(v) })), name: '' },
      },
      caption,
      html`${of.deviceBytes === null ? null : html`<path class="limit" d="M${box.left} ${at(scale.y(of.deviceBytes))}H${box.right}"/>`}${lines.map(([name, values]) => html`<path class="m-${text(name)}" d="${text(line(c.startMs, values, scale), Infinity)}"/>`)}`,
    )}<ul class="legend">${lines.map(
      ([name]) => html`<li><i class="m-${text(name)}"></i>${prose(word(`html.memory.${name}`, lang))}</li>`,
    )}</ul>`,
    tableBelow(lang, curveTable(c, from, lang)),
  );
}

/** At most 24 moments of the curve, evenly spread. */
function curveTable(c: NonNullable<RankMemory['curve']>, from: number, lang: Report['lang']): Markup {
  const every = Math.max(1, Math.ceil(c.startMs.length / 24));
  const size = (bytes: number | null | undefined): string => (bytes == null ? '–' : formatBytes(bytes));
  return table(
    (['time', 'allocated', 'reserved', 'active'] as const).map((key) => ({ title: word(`html.memory.${key}`, lang), figures: true })),
    c.startMs.flatMap((ms, i) =>
      ms === null || i % every !== 0 ? [] : [[formatTime(ms - from), size(c.allocatedMax[i]), size(c.reserved[i]), size(c.active[i])]],
    ),
  );
}

/** How near the cards are to their memory, and whether it grows. */
export function memorySection(report: Report): Markup {
  const { lang } = report;
  const parsed = Memory.safeParse(report.views.memory);
  const title = html`<h2>${prose(word('html.memory', lang))}</h2>`;
  if (!parsed.success || parsed.data.length === 0)
    return html`<section id="memory">${title}<p class="none">${prose(word('html.memory.none', lang))}</p></section>`;
  const size = (bytes: number | null | undefined): string => (bytes === null || bytes === undefined ? '–' : formatBytes(bytes));
  const numbers = table(
    [
      { title: word('column.rank', lang), figures: true },
      { title: word('html.memory.allocated', lang), figures: true },
      { title: word('html.memory.reserved', lang), figures: true },
      { title: word('html.memory.limit', lang), figures: true },
      { title: word('html.memory.peak-at', lang) },
    ],
    parsed.data.map((m) => [
      m.rank === null ? '–' : String(m.rank),
      size(m.peaks?.allocated),
      size(m.peaks?.reserved),
      size(m.deviceBytes),
      m.peakAt.operator === null ? '–' : `\`${m.peakAt.operator.replaceAll('`', 'ˋ')}\``,
    ]),
    'sortable',
  );
  return html`<section id="memory">${title}${parsed.data.slice(0, 2).map((m) => curve(m, report))}${numbers}</section>`;
}

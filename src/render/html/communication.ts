import { z } from 'zod';
import { formatBytes } from '../../base/phrase.ts';
import { median } from '../../base/statistics.ts';
import { TRANSPORTS, type Transport } from '../../model/capture.ts';
import type { Report } from '../../model/report.ts';
import { formatColumnMs, formatTime } from '../figures.ts';
import { word } from '../words.ts';
import { inner, logarithmic, logTicks, plot } from './chart.ts';
import { figure, table } from './figure.ts';
import { ramp } from './heat-map.ts';
import { at, html, type Markup, prose, text } from './markup.ts';

const Links = z.array(
  z.object({
    group: z.string().nullable(),
    rows: z.array(z.array(z.number()).min(1)),
    foldedBy: z.enum(['server', 'block']).nullable(),
    cells: z.array(
      z.object({
        from: z.number().int().nonnegative(),
        to: z.number().int().nonnegative(),
        transport: z.enum(TRANSPORTS),
        bytes: z.number().positive(),
        ms: z.number().positive(),
        links: z.number(),
        worst: z.tuple([z.number(), z.number()]),
      }),
    ),
  }),
);
type Matrix = z.infer<typeof Links>[number];

const Transfers = z.object({
  of: z.number(),
  mayWait: z.number(),
  kinds: z.array(
    z.object({
      op: z.string(),
      members: z.number(),
      betweenServers: z.boolean(),
      calls: z.number(),
      bytes: z.number(),
      ms: z.number(),
      line: z.object({ startUpMs: z.number(), msPerByte: z.number(), kneeBytes: z.number().nullable() }).nullable(),
      points: z.array(z.tuple([z.number().positive(), z.number().positive()])),
    }),
  ),
  groups: z.array(
    z.object({
      group: z.string(),
      name: z.string().nullable(),
      calls: z.number(),
      exposedMs: z.number(),
      overlappedMs: z.number(),
      unknownMs: z.number(),
    }),
  ),
});
type Transfers = z.infer<typeof Transfers>;

const LETTERS: Readonly<Record<Transport, string>> = { HCCS: 'H', PCIE: 'P', SIO: 'S', RDMA: 'R', OTHER: 'O' };
/** How many times slower than the median of its kind a link is at least, per colour. Differences below a tenth are not told. */
const SLOWER = [1.1, 1.25, 1.5, 2, 3, 5];

const literal = (name: string): string => `\`${name.replaceAll('`', 'ˋ')}\``;
/** Bytes per ms as GB/s. */
const rate = ({ bytes, ms }: { bytes: number; ms: number }): number => bytes / ms / 1e6;
const formatRate = (gbs: number): string => (gbs >= 100 ? gbs.toFixed(0) : gbs >= 10 ? gbs.toFixed(1) : gbs.toFixed(2));

function rowName(ranks: readonly number[]): string {
  return ranks.length === 1 ? String(ranks[0]) : `${ranks[0]}…${ranks.at(-1)}`;
}

function matrix(of: Matrix, index: number, report: Report): Markup | null {
  const { lang } = report;
  if (of.cells.length === 0) return null;
  const byTransport = Map.groupBy(of.cells, (c) => c.transport);
  const medians = new Map([...byTransport].map(([transport, cells]) => [transport, median(cells.map(rate))]));
  const slowdown = (cell: Matrix['cells'][number]): number => medians.get(cell.transport)! / rate(cell);
  const n = of.rows.length;
  const size = Math.max(11, Math.min(52, Math.floor(780 / n)));
  const edge = 16 + 7 * Math.max(...of.rows.map((ranks) => rowName(ranks).length));
  const every = Math.ceil(22 / size);
  const height = Math.max(15, Math.min(28, size));
  const cells = of.cells.map((cell) => {
    const level = SLOWER.filter((limit) => slowdown(cell) >= limit).length;
    const [x, y] = [edge + cell.to * size, 18 + cell.from * height];
    return html`<g class="link l${level}" data-from="${cell.worst[0]}" data-to="${cell.worst[1]}" data-gbs="${text(formatRate(rate(cell)))}"><rect x="${x}" y="${y}" width="${size - 1}" height="${height - 1}"/>${
      size < 14
        ? null
        : html`<text class="m" x="${x + size / 2}" y="${y + height / 2 + 4}">${text(LETTERS[cell.transport])}${size >= 40 ? html` ${text(formatRate(rate(cell)))}` : null}</text>`
    }</g>`;
  });
  const sends = new Set(of.cells.map((c) => c.from));
  const absent = of.rows.map((_, i) => (sends.has(i) ? '' : `M${edge} ${18 + i * height + height / 2}h${n * size - 1}`)).join('');
  const labels = of.rows.flatMap((ranks, i) => {
    if (i % every !== 0) return [];
    return [
      html`<text class="tick e" x="${edge - 5}" y="${18 + i * height + height / 2 + 4}">${text(rowName(ranks))}</text>`,
      html`<text class="tick m" x="${edge + i * size + size / 2}" y="12">${text(rowName(ranks))}</text>`,
    ];
  });
  const worst = of.cells.reduce((a, b) => (slowdown(b) > slowdown(a) ? b : a));
  const caption =
    slowdown(worst) < SLOWER[0]!
      ? word('html.links.caption.one', lang)
      : word('html.links.caption', lang, {
          link: `${worst.worst[0]} → ${worst.worst[1]}`,
          rate: `${formatRate(rate(worst))}\u00a0GB/s`,
          transport: worst.transport,
          median: `${formatRate(medians.get(worst.transport)!)}\u00a0GB/s`,
        });
  const numbers = table(
    [
      { title: word('html.links.transport', lang) },
      { title: word('html.links.count', lang), figures: true },
      { title: word('html.transfers.bytes', lang), figures: true },
      { title: word('html.links.median', lang), figures: true },
      { title: word('html.links.fastest', lang), figures: true },
      { title: word('html.links.slowest', lang), figures: true },
      { title: word('html.links.which', lang) },
    ],
    [...byTransport].map(([transport, list]) => {
      const slow = list.reduce((a, b) => (rate(b) < rate(a) ? b : a));
      return [
        transport,
        list.reduce((sum, c) => sum + c.links, 0).toLocaleString('en-US'),
        formatBytes(list.reduce((sum, c) => sum + c.bytes, 0)),
        formatRate(medians.get(transport)!),
        formatRate(Math.max(...list.map(rate))),
        formatRate(rate(slow)),
        `${slow.worst[0]} → ${slow.worst[1]}`,
      ];
    }),
  );
  const notes = [
    word('html.links.legend', lang),
    ...(sends.size < n ? [word('html.links.absent', lang)] : []),
    ...(of.foldedBy === 'server' ? [word('html.links.folded.server', lang)] : []),
    ...(of.foldedBy === 'block' ? [word('html.links.folded.block', lang, { n: of.rows[0]!.length })] : []),
    ...(of.group === null ? [] : [`${word('html.links.in-group', lang, { group: of.group })}${lang === 'en' ? '.' : '。'}`]),
  ];
  const [width, tall] = [edge + n * size + 2, 18 + n * height + 2];
  return figure(
    `links-${index}`,
    caption,
    html`<div class="wide"><svg class="matrix" viewBox="0 0 ${width} ${tall}" width="${width}" height="${tall}" role="img" aria-label="${text(caption, 400)}">${cells}${absent === '' ? null : html`<path class="missing" d="${text(absent, Infinity)}"/>`}${labels}</svg></div>${ramp('1×', `≥ ${SLOWER.at(-1)}×`)}<p class="dim">${prose(notes.join(lang === 'en' ? ' ' : ''))}</p>`,
    numbers,
  );
}

const SHAPES: readonly (readonly [RegExp, string, (x: number, y: number) => string])[] = [
  [/^allReduce/i, '○', (x, y) => `M${at(x - 4)} ${at(y)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`],
  [/^allGather/i, '△', (x, y) => `M${at(x)} ${at(y - 4.5)}l4 7.5h-8z`],
  [/^reduceScatter/i, '□', (x, y) => `M${at(x - 3.5)} ${at(y - 3.5)}h7v7h-7z`],
  [/^all(to)?all/i, '◇', (x, y) => `M${at(x)} ${at(y - 5)}l4.5 5l-4.5 5l-4.5 -5z`],
  [/send|receive|recv/i, '+', (x, y) => `M${at(x)} ${at(y - 4)}v8M${at(x - 4)} ${at(y)}h8`],
  [/./, '×', (x, y) => `M${at(x - 3.5)} ${at(y - 3.5)}l7 7M${at(x + 3.5)} ${at(y - 3.5)}l-7 7`],
];
const shapeOf = (op: string): (typeof SHAPES)[number] => SHAPES.find(([name]) => name.test(op)) ?? SHAPES.at(-1)!;

const WIDTH = 860;
const HEIGHT = 320;

function scatter(of: Transfers, report: Report): Markup {
  const { lang } = report;
  const kinds = of.kinds.filter((kind) => kind.points.length > 0);
  const points = kinds.flatMap((kind) => kind.points);
  if (points.length === 0) return html`<p class="none">${prose(word('html.transfers.none', lang))}</p>`;
  const [bytes, times] = [points.map(([b]) => b), points.map(([, ms]) => ms)];
  const bounds = (values: readonly number[]): [number, number] => [Math.min(...values) / 1.5, Math.max(...values) * 1.5];
  const [[x0, x1], [y0, y1]] = [bounds(bytes), bounds(times)];
  const { left, right, top, bottom } = inner(WIDTH, HEIGHT);
  const [x, y] = [logarithmic(x0, x1, left, right), logarithmic(y0, y1, bottom, top)];
  const lines = kinds.filter((kind) => kind.line !== null).slice(0, 3);
  const curve = ({ line, points: own }: Transfers['kinds'][number]): string => {
    const [low, high] = [own[0]![0], own.at(-1)![0]];
    const steps = 24;
    return Array.from({ length: steps + 1 }, (_, i) => {
      const b = low * (high / low) ** (i / steps);
      const ms = Math.min(y1, Math.max(y0, line!.startUpMs + b * line!.msPerByte));
      return `${i === 0 ? 'M' : 'L'}${at(x(b))} ${at(y(ms))}`;
    }).join('');
  };
  const first = lines[0];
  const knee = first?.line?.kneeBytes ?? null;
  const small = first === undefined || knee === null ? 0 : first.points.filter(([b]) => b < knee).length;
  const shade =
    knee === null || small === 0
      ? null
      : html`<rect class="shade" x="${left}" y="${top}" width="${at(Math.max(0, Math.min(right, x(knee)) - left))}" height="${bottom - top}"/>`;
  const marks = html`${shade}${kinds.map((kind) => html`<path class="dots${kind.betweenServers ? html` far` : null}" data-op="${text(kind.op)}" data-n="${kind.points.length}" d="${text(kind.points.map(([b, ms]) => shapeOf(kind.op)[2](x(b), y(ms))).join(''), Infinity)}"/>`)}${lines.map((kind) => html`<path class="fit" d="${text(curve(kind), Infinity)}"/>`)}`;
  const caption = word(of.mayWait === 0 ? 'html.transfers.caption' : 'html.transfers.caption.open', lang);
  const picture = plot(
    {
      width: WIDTH,
      height: HEIGHT,
      x: { place: x, ticks: logTicks(x0, x1).map((v) => ({ at: v, label: formatBytes(v) })), name: word('html.transfers.x', lang) },
      y: { place: y, ticks: logTicks(y0, y1).map((v) => ({ at: v, label: formatTime(v) })), name: '' },
    },
    caption,
    marks,
    html` data-x="${text(`${x0} ${x1} ${left} ${right}`)}" data-y="${text(`${y0} ${y1} ${bottom} ${top}`)}"`,
  );
  const notes = [
    ...(of.mayWait === 0 ? [] : [word('html.transfers.may-wait', lang, { n: of.mayWait })]),
    ...(small === 0
      ? []
      : [word('html.transfers.knee', lang, { n: small, all: first!.points.length, op: first!.op, knee: formatBytes(knee!) })]),
    ...(kinds.some((kind) => kind.betweenServers) ? [word('html.transfers.filled', lang)] : []),
    ...(points.length < of.of ? [word('html.transfers.drawn', lang, { n: points.length, all: of.of })] : []),
  ];
  const numbers = table(
    [
      { title: word('html.transfers.op', lang) },
      { title: word('html.transfers.members', lang), figures: true },
      { title: word('html.transfers.where', lang) },
      { title: word('html.transfers.calls', lang), figures: true },
      { title: word('html.transfers.bytes', lang), figures: true },
      { title: word('html.transfers.time', lang), figures: true },
      { title: word('html.transfers.start', lang), figures: true },
      { title: word('html.transfers.rate', lang), figures: true },
    ],
    of.kinds.map((kind) => [
      html`<span aria-hidden="true">${text(shapeOf(kind.op)[1])}</span> ${prose(literal(kind.op))}`,
      String(kind.members),
      word(kind.betweenServers ? 'html.transfers.between' : 'html.transfers.inside', lang),
      kind.calls.toLocaleString('en-US'),
      formatBytes(kind.bytes),
      formatColumnMs(kind.ms),
      kind.line === null ? '–' : kind.line.startUpMs.toFixed(3),
      kind.line === null || kind.line.msPerByte <= 0 ? '–' : formatRate(1 / kind.line.msPerByte / 1e6),
    ]),
    'sortable',
  );
  return figure(
    'transfers',
    caption,
    html`${picture}${notes.length === 0 ? null : html`<p class="dim">${prose(notes.join(lang === 'en' ? ' ' : ''))}</p>`}`,
    numbers,
  );
}

function overlap(of: Transfers, report: Report): Markup | null {
  const { lang } = report;
  const rows = of.groups.filter((g) => g.exposedMs + g.overlappedMs + g.unknownMs > 0);
  if (rows.length === 0) return null;
  const longest = Math.max(...rows.map((g) => g.exposedMs + g.overlappedMs + g.unknownMs));
  const part = (kind: string, ms: number): Markup | null =>
    ms <= 0
      ? null
      : html`<span class="k-${text(kind)}" style="width:${text(((ms / longest) * 100).toFixed(3))}%" data-ms="${text(String(ms))}"></span>`;
  const numbers = table(
    [
      { title: word('html.overlap.group', lang) },
      { title: word('html.axis.ms', lang) },
      { title: word('html.transfers.calls', lang), figures: true },
      { title: word('html.in-ms', lang, { what: word('time.exposed', lang) }), figures: true },
      { title: word('html.in-ms', lang, { what: word('time.overlapped', lang) }), figures: true },
      { title: word('html.in-ms', lang, { what: word('html.overlap.unknown', lang) }), figures: true },
    ],
    rows.map((g) => [
      literal(g.name ?? g.group),
      html`<div class="bar cell" aria-hidden="true">${part('exposed', g.exposedMs)}${part('overlapped', g.overlappedMs)}${part('idle', g.unknownMs)}</div>`,
      g.calls.toLocaleString('en-US'),
      formatColumnMs(g.exposedMs),
      formatColumnMs(g.overlappedMs),
      formatColumnMs(g.unknownMs),
    ]),
  );
  return figure('overlap', word(of.mayWait === 0 ? 'html.overlap.caption' : 'html.overlap.caption.open', lang), numbers);
}

/** Which links carry what, how long collectives take by size, and what computing covers. */
export function communicationSection(report: Report): Markup {
  const { lang } = report;
  const title = html`<h2>${prose(word('html.communication', lang))}</h2>`;
  const links = Links.safeParse(report.views.links);
  const transfers = Transfers.safeParse(report.views.transfers);
  const matrices = links.success ? links.data.flatMap((of, i) => matrix(of, i, report) ?? []) : [];
  if (matrices.length === 0 && !transfers.success)
    return html`<section id="communication">${title}<p class="none">${prose(word('html.communication.none', lang))}</p></section>`;
  return html`<section id="communication">${title}${matrices.length === 0 ? html`<p class="none">${prose(word('html.links.none', lang))}</p>` : matrices}${
    transfers.success ? html`${scatter(transfers.data, report)}${overlap(transfers.data, report)}` : null
  }</section>`;
}

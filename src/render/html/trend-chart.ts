import { quantile } from '../../base/statistics.ts';
import { Trend } from '../../model/history.ts';
import type { Report } from '../../model/report.ts';
import { formatTime } from '../figures.ts';
import { trendRows, trendTitle } from '../trend.ts';
import { word } from '../words.ts';
import { everyNth, inner, linear, plot, roundTicks } from './chart.ts';
import { figure, table, tableBelow } from './figure.ts';
import { at, html, type Markup, prose, text } from './markup.ts';

const WIDTH = 860;
const HEIGHT = 200;

/** How the job went on the base branch before; null without enough history. */
export function trendFigure(report: Report): Markup | null {
  const { lang } = report;
  const parsed = Trend.safeParse(report.views.trend);
  const rows = trendRows(report);
  if (!parsed.success || rows.length === 0) return null;
  const { points, now, branch } = parsed.data;
  const numbers = table(
    [
      { title: word('html.trend.what', lang) },
      { title: word('html.trend.before', lang), figures: true },
      { title: word('compare.column.head', lang), figures: true },
      { title: word('html.trend.course', lang) },
    ],
    rows.map((row) => [row.what, row.before, row.now, html`<span aria-hidden="true">${text(row.course)}</span>`]),
  );
  const known = points.flatMap(({ sha, metrics }, i) => (metrics.stepTimeMs === null ? [] : [{ i, sha, ms: metrics.stepTimeMs }]));
  const last = now.stepTimeMs;
  const title = html`<h3>${prose(trendTitle(report))}</h3>`;
  if (known.length === 0 || last === null) return html`${title}${numbers}`;
  const all = [...known.map(({ ms }) => ms), last];
  const middle = quantile(all, 0.5);
  // Noise is drawn flat, not as mountains.
  const spread = Math.max(Math.max(...all) - Math.min(...all), middle * 0.1);
  const [low, high] = [Math.max(0, Math.min(...all) - spread * 0.15), Math.max(...all) + spread * 0.15];
  const { left, right, top, bottom } = inner(WIDTH, HEIGHT);
  const x = linear(0, Math.max(1, points.length), left + 14, right - 14);
  const y = linear(low, high, bottom, top);
  const before = known.map(({ ms }) => ms);
  const [q1, q3] = [quantile(before, 0.25), quantile(before, 0.75)];
  const marks = html`<rect class="shade" x="${left}" y="${at(y(q3))}" width="${right - left}" height="${at(Math.max(1, y(q1) - y(q3)))}"/><path class="line" d="${text(known.map(({ i, ms }, k) => `${k === 0 ? 'M' : 'L'}${at(x(i))} ${at(y(ms))}`).join(''), Infinity)}"/>${known.map(
    ({ i, sha, ms }) =>
      html`<circle class="point" cx="${at(x(i))}" cy="${at(y(ms))}" r="3.5" data-ms="${text(String(ms))}"><title>${text(`${sha.slice(0, 7)} ${formatTime(ms)}`)}</title></circle>`,
  )}<path class="now" d="M${at(x(points.length))} ${at(y(last) - 7)}l6.5 11h-13z" data-ms="${text(String(last))}"/>`;
  const caption = word('html.trend.caption', lang, { branch });
  const picture = plot(
    {
      width: WIDTH,
      height: HEIGHT,
      x: {
        place: x,
        ticks: everyNth(
          points.map(({ sha }, i) => ({ at: i, label: sha.slice(0, 7) })),
          right - left,
          70,
        ),
        name: word('html.trend.commit', lang),
      },
      y: { place: y, ticks: roundTicks(low, high, 4).map((v) => ({ at: v, label: formatTime(v) })), name: '' },
    },
    caption.replaceAll('`', ''),
    marks,
  );
  return html`${title}${figure('trend', caption, picture, html`<p class="dim">${prose(word('html.trend.band', lang))}</p>${numbers}`)}`;
}

/** Step times of the runs of the baseline and of this job on one axis; null where there is nothing to compare. */
export function stepStrip(report: Report): Markup | null {
  const { lang, comparison } = report;
  const head = comparison?.stepTimeMs ?? null;
  if (comparison === null || head === null) return null;
  const runs = comparison.baseline.runs
    .slice(0, 20)
    .flatMap(({ label, stepTimeMs, noiseMs }) => (stepTimeMs === null ? [] : [{ label, ms: stepTimeMs, noise: noiseMs, isHead: false }]));
  if (runs.length === 0) return null;
  const all = [...runs, { label: word('compare.column.head', lang), ms: head, noise: report.job.stepNoiseMs, isHead: true }];
  const reach = all.flatMap(({ ms, noise }) => [ms - (noise ?? 0), ms + (noise ?? 0)]);
  const [low, high] = [0.9 * Math.min(...reach), 1.02 * Math.max(...reach)];
  const line = 24;
  const height = all.length * line + 50;
  const names = 170;
  const { left, right, top } = inner(WIDTH, height, names);
  const x = linear(low, high, left + 10, right - 10);
  const rows = all.map(({ label, ms, noise, isHead }, i) => {
    const y = top + (i + 0.5) * line;
    const whisker =
      noise === null
        ? null
        : html`<path class="whisker" d="M${at(x(ms - noise))} ${y}H${at(x(ms + noise))}M${at(x(ms - noise))} ${y - 4}v8M${at(x(ms + noise))} ${y - 4}v8"/>`;
    const mark = isHead
      ? html`<path class="now" d="M${at(x(ms))} ${y - 7}l6.5 11h-13z" data-ms="${text(String(ms))}"/>`
      : html`<circle class="point" cx="${at(x(ms))}" cy="${y}" r="5" data-ms="${text(String(ms))}"/>`;
    return html`<text class="tick e" x="${left - 6}" y="${y + 4}">${text(label, 26)}</text>${whisker}${mark}`;
  });
  const caption = word('html.strip.caption', lang);
  const picture = plot(
    {
      width: WIDTH,
      height,
      left: names,
      x: { place: x, ticks: roundTicks(low, high, 6).map((v) => ({ at: v, label: formatTime(v) })), name: '' },
      y: { place: () => 0, ticks: [], name: '' },
    },
    caption,
    html`${rows}`,
  );
  const numbers = table(
    [{ title: word('html.strip.run', lang) }, { title: word('html.axis.ms', lang), figures: true }, { title: '±', figures: true }],
    all.map(({ label, ms, noise }) => [text(label), formatTime(ms), noise === null ? '–' : formatTime(noise)]),
  );
  return figure('strip', caption, picture, html`<p class="dim">${prose(word('html.strip.note', lang))}</p>${tableBelow(lang, numbers)}`);
}

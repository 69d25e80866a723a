import { everyNth, inner, linear, plot, roundTicks } from './chart.ts';
import type { Kind } from './figure.ts';
import { at, html, type Markup, text } from './markup.ts';

export interface Column {
  readonly label: string;
  /** From the bottom, ms. */
  readonly parts: readonly { readonly kind: Kind; readonly ms: number }[];
  /** An outline around it, ms from `from`. */
  readonly frame?: { readonly from: number; readonly ms: number };
  readonly isPale?: boolean;
}

const WIDTH = 860;
const HEIGHT = 210;

/** Columns of one series: the picture and where each column stands, so that a script can point at it. */
export function columnsPlot(
  columns: readonly Column[],
  names: { readonly x: string; readonly y: string; readonly said: string },
  top: number,
): Markup {
  const { left, right, top: above, bottom } = inner(WIDTH, HEIGHT);
  const y = linear(0, Math.max(top, 1e-9), bottom, above);
  const each = (right - left) / Math.max(1, columns.length);
  const wide = Math.min(56, each * 0.8);
  const middle = (i: number): number => left + (i + 0.5) * each;
  const marks = columns.map((column, i) => {
    let from = 0;
    const x = middle(i) - wide / 2;
    return html`<g class="col${column.isPale === true ? html` pale` : null}" data-x="${text(column.label, 24)}">${column.parts
      .filter(({ ms }) => ms > 0)
      .map(({ kind, ms }) => {
        const low = from;
        from += ms;
        return html`<rect class="k-${text(kind)}" x="${at(x)}" y="${at(y(from))}" width="${at(wide)}" height="${at(y(low) - y(from))}" data-ms="${text(String(ms))}"/>`;
      })}${
      column.frame === undefined || column.frame.ms <= 0
        ? null
        : html`<rect class="frame" x="${at(x)}" y="${at(y(column.frame.from + column.frame.ms))}" width="${at(wide)}" height="${at(y(column.frame.from) - y(column.frame.from + column.frame.ms))}" data-ms="${text(String(column.frame.ms))}"/>`
    }</g>`;
  });
  const labelled = everyNth(
    columns.map((column, i) => ({ at: i, label: column.label })),
    right - left,
    Math.max(28, Math.max(1, ...columns.map((c) => c.label.length)) * 8 + 6),
  );
  return plot(
    {
      width: WIDTH,
      height: HEIGHT,
      x: { place: middle, ticks: labelled, name: names.x },
      y: { place: y, ticks: roundTicks(0, top, 4).map((v) => ({ at: v, label: String(Number(v.toPrecision(6))) })), name: names.y },
    },
    names.said,
    html`${marks}`,
  );
}

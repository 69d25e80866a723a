import { at, html, type Markup, text } from './markup.ts';

/** A plain plot: marks inside, ticks with their values at the left and below. Positions are px of the picture. */
export interface Plot {
  readonly width: number;
  readonly height: number;
  /** Room for the names at the left. */
  readonly left?: number;
  readonly x: Axis;
  readonly y: Axis;
}

export interface Axis {
  /** Position of a value along the axis. */
  readonly place: (value: number) => number;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
  /** Quantity and unit. */
  readonly name: string;
}

const LEFT = 58;
const TOP = 8;
const BELOW = 34;
const RIGHT = 26;

/** Round values that cut a range into about `n` parts. */
export function roundTicks(low: number, high: number, n = 5): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / n;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= raw * 0.999) ?? raw;
  const out: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9) + 1e-12; i++) out.push(i * step);
  return out;
}

/** Powers of ten inside a range, at most about `n`. */
function powerTicks(low: number, high: number, n = 8): number[] {
  const [from, to] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const every = Math.max(1, Math.ceil((to - from + 1) / n));
  return Array.from({ length: Math.max(0, Math.floor((to - from) / every) + 1) }, (_, i) => 10 ** (from + i * every));
}

/** Ticks of a logarithmic axis; a range within one power of ten gets round values. */
export function logTicks(low: number, high: number): number[] {
  const powers = powerTicks(low, high);
  return powers.length > 1 ? powers : roundTicks(low, high, 4);
}

export function linear(low: number, high: number, from: number, to: number): (value: number) => number {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

export function logarithmic(low: number, high: number, from: number, to: number): (value: number) => number {
  const place = linear(Math.log10(low), Math.log10(high), from, to);
  return (value) => place(Math.log10(value));
}

/** The part of a picture in which marks stand. */
export function inner(width: number, height: number, from = LEFT): { left: number; right: number; top: number; bottom: number } {
  return { left: from, right: width - RIGHT, top: TOP, bottom: height - BELOW };
}

/** The picture; `said` tells it to those who do not see it, `attributes` go to the element for the script and for tests. */
export function plot(of: Plot, said: string, marks: Markup, attributes: Markup | null = null): Markup {
  const { left, right, top, bottom } = inner(of.width, of.height, of.left);
  const across = of.y.ticks.map(({ at: value }) => `M${left} ${at(of.y.place(value))}H${right}`).join('');
  return html`<div class="wide"><svg class="plot" viewBox="0 0 ${of.width} ${of.height}" width="${of.width}" height="${of.height}" role="img" aria-label="${text(said, 400)}"${attributes}>
<path class="grid" d="${text(across, Infinity)}"/>${of.y.ticks.map(
    ({ at: value, label }) => html`<text class="tick e" x="${left - 6}" y="${at(of.y.place(value) + 4)}">${text(label, 24)}</text>`,
  )}${of.x.ticks.map(
    ({ at: value, label }) => html`<text class="tick m" x="${at(of.x.place(value))}" y="${bottom + 15}">${text(label, 24)}</text>`,
  )}<text class="name e" x="${right}" y="${of.height - 4}">${text(of.x.name, 80)}</text><text class="name" x="2" y="${of.height - 4}">${text(of.y.name, 80)}</text>
${marks}<path class="base" d="M${left} ${top}V${bottom}H${right}"/></svg></div>`;
}

/** Fewer labels than places: every n-th, so that they do not run into each other. */
export function everyNth<T>(all: readonly T[], width: number, each = 46): readonly T[] {
  const every = Math.max(1, Math.ceil((all.length * each) / Math.max(each, width)));
  return all.filter((_, i) => i % every === 0);
}

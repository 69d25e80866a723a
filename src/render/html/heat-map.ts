import type { Lang } from '../../model/lang.ts';
import { formatColumnMs } from '../figures.ts';
import { word } from '../words.ts';
import { at, html, jsonIn, type Markup, prose, text } from './markup.ts';

export interface HeatMap {
  readonly id: string;
  /** Ranks. */
  readonly rows: readonly number[];
  readonly columns: readonly number[];
  /** ms; null: not captured. */
  readonly value: (row: number, column: number) => number | null;
  readonly rowName: string;
  readonly columnName: string;
  /** Columns that do not count. */
  readonly isOut: (column: number) => boolean;
  readonly lang: Lang;
}

const LEVELS = 7;
/** More rows than this are folded, and a folded row shows the worst of its ranks. */
const MAX_ROWS = 160;
const WORST = 8;

/** The colours of a map in order, between what the first and the last of them stand for. */
export function ramp(low: string, high: string): Markup {
  return html`<p class="ramp">${text(low)} ${Array.from({ length: LEVELS }, (_, i) => html`<i class="l${i}"></i>`)} ${text(high)}</p>`;
}

/** A map of ranks by steps. Folded rows keep their worst rank, so that one bad rank of a thousand stays visible. */
export function heatMap(map: HeatMap): Markup {
  const per = Math.ceil(map.rows.length / MAX_ROWS);
  const bins = Array.from({ length: Math.ceil(map.rows.length / per) }, (_, i) => map.rows.slice(i * per, (i + 1) * per));
  const cells = bins.map((ranks) =>
    map.columns.map((column) => {
      let worst: { rank: number; ms: number } | null = null;
      for (const rank of ranks) {
        const ms = map.value(rank, column);
        if (ms !== null && (worst === null || ms > worst.ms)) worst = { rank, ms };
      }
      return worst;
    }),
  );
  const counted = cells.flatMap((row) =>
    row.flatMap((cell, i) => (cell === null || map.isOut(map.columns[i]!) ? [] : [{ ...cell, column: map.columns[i]! }])),
  );
  const all = counted.map(({ ms }) => ms).sort((a, b) => a - b);
  const low = all[0] ?? 0;
  const high = all.at(-1) ?? 0;
  // Times that differ by less than 1 % of the step look alike.
  const span = Math.max(high - low, high * 0.01, 1e-9);
  const width = Math.max(5, Math.min(48, 900 / map.columns.length));
  const height = Math.max(3, Math.min(24, 320 / bins.length));
  const paths: string[][] = Array.from({ length: LEVELS + 1 }, () => []);
  cells.forEach((row, y) => {
    row.forEach((cell, x) => {
      const level = cell === null ? LEVELS : Math.max(0, Math.min(LEVELS - 1, Math.floor(((cell.ms - low) / span) * LEVELS)));
      paths[level]!.push(`M${at(x * width)} ${at(y * height)}h${at(width - 0.5)}v${at(height - 0.5)}h-${at(width - 0.5)}z`);
    });
  });
  const total = { w: at(map.columns.length * width), h: at(bins.length * height) };
  const worst = [...counted].sort((a, b) => b.ms - a.ms).slice(0, WORST);
  const data = {
    per,
    rows: map.rows,
    columns: map.columns,
    out: map.columns.filter(map.isOut),
    names: [map.rowName, map.columnName],
    cells: cells.map((row) => row.map((cell) => (cell === null ? null : [cell.rank, Math.round(cell.ms * 10) / 10]))),
  };
  return html`<div class="wide"><svg class="map" data-map="${text(map.id)}" viewBox="0 0 ${total.w} ${total.h}" width="${total.w}" height="${total.h}" role="img" aria-label="${text(
    word('html.map.label', map.lang, { rows: map.rows.length, columns: map.columns.length }),
  )}">${paths.map((path, level) => (path.length === 0 ? null : html`<path class="${level === LEVELS ? html`missing` : html`h${level}`}" d="${text(path.join(''), Infinity)}"/>`))}</svg></div>
${ramp(`${formatColumnMs(low)}\u00a0ms`, `${formatColumnMs(high)}\u00a0ms`)}<p class="dim" data-map-tip="${text(map.id)}">${prose(word('html.map.missing', map.lang))}${per > 1 ? html` ${prose(word('html.map.folded', map.lang, { n: per }))}` : null}</p>
<p>${prose(word('html.map.worst', map.lang, { cells: worst.map(({ rank, column, ms }) => `${rank}/${column} ${formatColumnMs(ms)} ms`).join(' · ') }))}</p>
<script type="application/json" id="${text(map.id)}">${jsonIn(data)}</script>`;
}

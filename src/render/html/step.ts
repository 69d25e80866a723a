import type { BreakdownRow, Report } from '../../model/report.ts';
import { breakdownLine } from '../details.ts';
import { formatColumnMs, formatTime } from '../figures.ts';
import { representativeRows, rowMs } from '../standing.ts';
import { word } from '../words.ts';
import { figure, foldOut, table, tableBelow } from './figure.ts';
import { heatMap } from './heat-map.ts';
import { html, type Markup, prose, text } from './markup.ts';
import { stepColumns } from './steps.ts';
import { timeParts } from './time-parts.ts';

/** Ranks drawn as bars of their own; of more, the worst and the median. */
const BARS = 64;
const WORST = 16;
/** Rows of the table in the file; report.json has all. */
const ROWS = 512;

function bars(rows: readonly BreakdownRow[], report: Report): Markup {
  const longest = Math.max(...rows.map((row) => rowMs(row)!), report.job.stepTimeMs ?? 0);
  const percent = (ms: number): Markup => text(((ms / longest) * 100).toFixed(3));
  const rule = report.job.stepTimeMs;
  return html`<div class="ranks${rows.length > 16 ? html` many` : null}">${rows.map(
    (row) =>
      html`<div class="rank" data-rank="${row.rank ?? -1}"><span class="who">${text(row.rank === null ? '–' : String(row.rank))}</span><div class="track">${
        rule === null ? null : html`<u style="left:${percent(rule)}%"></u>`
      }<div class="bar">${timeParts(row).map(({ kind, ms }) =>
        ms <= 0 ? null : html`<span class="k-${text(kind)}" style="width:${percent(ms)}%" title="${text(formatTime(ms))}"></span>`,
      )}</div></div><span class="n">${text(formatTime(rowMs(row)!))}</span></div>`,
  )}</div>`;
}

function legend(report: Report): Markup {
  const kinds = ['computing', 'exposed', 'bubble', 'idle'] as const;
  return html`<ul class="legend">${kinds.map((kind) => html`<li><i class="k-${text(kind)}"></i>${prose(word(`time.${kind}`, report.lang))}</li>`)}</ul>`;
}

/** Step times of all ranks and steps; a rank or step that was not captured stays empty. */
function map(report: Report): Markup | null {
  const rows = report.breakdown.filter((row) => row.rank !== null && row.step !== null && rowMs(row) !== null);
  const ranks = [...new Set(rows.map((row) => row.rank!))].sort((a, b) => a - b);
  const steps = [...new Set(rows.map((row) => row.step!))].sort((a, b) => a - b);
  if (ranks.length < 2 || steps.length < 2) return null;
  const values = new Map(rows.map((row) => [`${row.rank} ${row.step}`, rowMs(row)!]));
  const { lang } = report;
  const dropped = new Set(report.job.droppedSteps.map(({ step }) => step));
  return figure(
    'step-map',
    word('html.map.caption', lang),
    heatMap({
      id: 'step-map-data',
      rows: ranks,
      columns: steps,
      value: (rank, step) => values.get(`${rank} ${step}`) ?? null,
      rowName: word('column.rank', lang),
      columnName: word('column.step', lang),
      isOut: (step) => dropped.has(step),
      lang,
    }),
    mapTable(ranks, steps, values, lang),
  );
}

const TABLE_RANKS = 64;
const TABLE_STEPS = 50;

/** Times of the map, the rank with the longest step first. */
function mapTable(ranks: readonly number[], steps: readonly number[], values: ReadonlyMap<string, number>, lang: Report['lang']): Markup {
  const shown = steps.slice(0, TABLE_STEPS);
  const rows = ranks.map((rank) => ({ rank, ms: shown.map((step) => values.get(`${rank} ${step}`) ?? null) }));
  const longest = (row: (typeof rows)[number]): number => Math.max(...row.ms.map((ms) => ms ?? 0));
  rows.sort((a, b) => longest(b) - longest(a) || a.rank - b.rank);
  return tableBelow(
    lang,
    table(
      [{ title: word('column.rank', lang), figures: true }, ...shown.map((step) => ({ title: String(step), figures: true }))],
      rows.slice(0, TABLE_RANKS).map((row) => [String(row.rank), ...row.ms.map((ms) => (ms === null ? '–' : formatColumnMs(ms)))]),
    ),
  );
}

/** Where the time of a step goes, on which ranks, and how stable it is. */
export function stepSection(report: Report): Markup {
  const { lang } = report;
  const perRank = representativeRows(report);
  if (perRank.length === 0)
    return html`<section id="step"><h2>${prose(word('detail.breakdown', lang))}</h2><p class="none">${prose(word('html.step.none', lang))}</p></section>`;
  const shown = perRank.length <= BARS ? perRank : [...perRank.slice(0, WORST), perRank[perRank.length >> 1]!];
  const caption =
    perRank.length <= BARS ? word('html.step.caption', lang) : word('html.step.worst', lang, { n: WORST, all: perRank.length });
  const all = report.breakdown.length <= ROWS ? report.breakdown : perRank.slice(0, ROWS);
  const heads = ['rank', 'step'].map((key) => ({ title: word(`column.${key}` as 'column.rank', lang), figures: true }));
  const times = (['step', 'computing', 'exposed', 'overlapped', 'idle', 'bubble', 'preparing'] as const).map((key) => ({
    title: word(`time.${key}`, lang),
    figures: true,
  }));
  const numbers = table(
    [...heads, ...times],
    all.map((row) => {
      const line = breakdownLine(row);
      return [line.rank, line.step, line.stepMs, line.computing, line.exposed, line.overlapped, line.free, line.bubble, line.preparing];
    }),
    'sortable',
  );
  const cut =
    all.length < report.breakdown.length
      ? word('detail.breakdown.cut', lang, { shown: all.length, total: report.breakdown.length })
      : word('detail.breakdown.note', lang);
  return html`<section id="step"><h2>${prose(word('detail.breakdown', lang))}</h2>${figure('rank-bars', caption, html`${bars(shown, report)}${legend(report)}`)}${map(report)}${stepColumns(
    report,
    shown.map((row) => row.rank),
  )}${foldOut(prose(word('html.step.table', lang)), html`${numbers}<p class="dim">${prose(cut)}</p>`)}</section>`;
}

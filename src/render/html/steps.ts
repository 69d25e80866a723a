import type { BreakdownRow, Report } from '../../model/report.ts';
import { paceRow, rowMs } from '../standing.ts';
import { word } from '../words.ts';
import { columnsPlot } from './columns.ts';
import { figure } from './figure.ts';
import { html, type Markup, prose, text } from './markup.ts';
import { timeParts } from './time-parts.ts';

/** Steps drawn of one rank; report.json has all. */
const STEPS = 200;

/** The steps of each of these ranks as columns; without scripts those of the pace-setting one. */
export function stepColumns(report: Report, ranks: readonly (number | null)[]): Markup | null {
  const { lang } = report;
  const pace = paceRow(report)?.rank ?? null;
  const dropped = new Set(report.job.droppedSteps.map(({ step }) => step));
  const byRank = new Map<number, BreakdownRow[]>();
  for (const row of report.breakdown) {
    if (row.rank === null || row.step === null || rowMs(row) === null) continue;
    const list = byRank.get(row.rank);
    if (list === undefined) byRank.set(row.rank, [row]);
    else list.push(row);
  }
  const shown = ranks.filter((rank): rank is number => rank !== null && (byRank.get(rank)?.length ?? 0) > 1).sort((a, b) => a - b);
  const first = pace !== null && shown.includes(pace) ? pace : shown[0];
  if (first === undefined) return null;
  // One scale for all of them, so that ranks can be compared by switching.
  const top = Math.max(...shown.flatMap((rank) => byRank.get(rank)!.map((row) => rowMs(row)!)));
  const pictures = shown.map((rank) => {
    const caption = word('html.steps.caption', lang, { rank: String(rank) });
    const rows = [...byRank.get(rank)!].sort((a, b) => a.step! - b.step!).slice(0, STEPS);
    return html`<div data-rank="${rank}"${rank === first ? null : html` hidden`}>${columnsPlot(
      rows.map((row) => ({ label: String(row.step), parts: timeParts(row), isPale: dropped.has(row.step!) })),
      { x: word('html.axis.step', lang), y: word('html.axis.ms', lang), said: caption },
      top,
    )}</div>`;
  });
  const picker = html`<p class="scripted" hidden><label>${prose(word('html.steps.pick', lang))} <select id="rank">${shown.map((rank) => html`<option value="${rank}"${rank === first ? html` selected` : null}>${rank}</option>`)}</select></label></p>`;
  const caption = word('html.steps.caption', lang, { rank: String(first) });
  const note = dropped.size === 0 ? null : html`<p class="dim">${prose(word('html.steps.out', lang))}</p>`;
  return figure(
    'step-columns',
    caption,
    html`${picker}${pictures}${note}<template data-caption="${text(word('html.steps.caption', lang, { rank: '{rank}' }))}"></template>`,
  );
}

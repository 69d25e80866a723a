import type { Lang } from '../../model/lang.ts';
import { formatColumnMs } from '../figures.ts';
import { word } from '../words.ts';
import { html, type Markup, prose, text } from './markup.ts';

/** The kinds of time; each has a colour and a pattern that mean the same in every picture. */
export type Kind = 'computing' | 'exposed' | 'overlapped' | 'waiting' | 'data' | 'host' | 'layout' | 'idle' | 'bubble' | 'preparing';

/** A picture with its message and, beneath, the same numbers as a table. */
export function figure(id: string, caption: string, picture: Markup, table: Markup | null = null): Markup {
  return html`<figure aria-labelledby="${text(id)}-c" id="${text(id)}"><figcaption id="${text(id)}-c">${prose(caption)}</figcaption>${picture}${table}</figure>`;
}

export interface Column {
  readonly title: string;
  /** Figures stand at the right. */
  readonly figures?: boolean;
}

/** Words of legends as heads of columns: with a capital, units and literals as they are. */
function headOf(title: string): string {
  return /^[a-z]{3,}\b/.test(title) ? title[0]!.toUpperCase() + title.slice(1) : title;
}

/** A table that can be sorted by its heads; a cell is prose or markup. `id` names it for the copy button. */
export function table(columns: readonly Column[], rows: readonly (readonly (string | Markup)[])[], className = ''): Markup {
  return html`<div class="wide"><table class="${text(className)}"><thead><tr>${columns.map((c) => html`<th scope="col"${c.figures === true ? html` class="n"` : null}>${prose(headOf(c.title))}</th>`)}</tr></thead><tbody>${rows.map(
    (row) =>
      html`<tr>${row.map((cell, i) => html`<td${columns[i]?.figures === true ? html` class="n"` : null}>${typeof cell === 'string' ? prose(cell, 600) : cell}</td>`)}</tr>`,
  )}</tbody></table></div>`;
}

/** Milliseconds of one column: as many decimals as its largest value leaves, so that small ones are not all 0.0. */
export function msColumn(values: readonly number[]): (ms: number) => string {
  const most = Math.max(0, ...values);
  const decimals = most >= 100 ? 1 : most >= 10 ? 2 : 3;
  return (ms) => (decimals === 1 ? formatColumnMs(ms) : ms.toFixed(decimals));
}

export function foldOut(summary: Markup, body: Markup, open = false): Markup {
  return html`<details${open ? html` open` : null}><summary>${summary}</summary>${body}</details>`;
}

/** The same numbers as the picture, beneath it and closed; not on paper. */
export function tableBelow(lang: Lang, numbers: Markup): Markup {
  return html`<div class="below">${foldOut(prose(word('html.table', lang)), numbers)}</div>`;
}

/** A bar inside a table cell, as a share of the longest. */
export function cellBar(share: number, kind: Kind, figure: string): Markup {
  const width = Math.max(0, Math.min(100, share * 100)).toFixed(1);
  return html`<span class="cellbar"><svg aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none"><rect class="k-${text(kind)}" width="${text(width)}" height="10"/></svg><span>${text(figure)}</span></span>`;
}

import { formatBytes } from '../../base/phrase.ts';
import type { Report } from '../../model/report.ts';
import { jobLines, type Places } from '../details.ts';
import { countsSentence } from '../standing.ts';
import { word } from '../words.ts';
import { foldOut, table } from './figure.ts';
import { code, html, type Markup, prose, text } from './markup.ts';
import { timelineLeftOut } from './timeline.ts';

/** Files named one by one; a job of a thousand ranks has ten thousand. */
const INPUTS = 1000;

/** What was checked, what could not be, and from which files. */
export function checksSection(report: Report, places: Places): Markup {
  const { lang } = report;
  const order = { error: 0, finding: 1, notApplicable: 2, pass: 3 } as const;
  const checked = [...report.checked].sort((a, b) => order[a.outcome] - order[b.outcome]);
  const missing = table(
    (['what', 'consequence', 'remedy'] as const).map((key) => ({ title: word(`missing.${key}`, lang) })),
    report.missing.slice(0, 100).map((m) => [m.what, m.consequence, m.remedy]),
  );
  const checks = table(
    (['check', 'result', 'reason'] as const).map((key) => ({ title: word(`column.${key}`, lang) })),
    checked.map((c) => [`\`${c.rule}\``, word(`outcome.${c.outcome}`, lang), c.reason]),
    'sortable',
  );
  const inputs = table(
    (['file', 'kind', 'size', 'status', 'note'] as const).map((key) => ({ title: word(`column.${key}`, lang), figures: key === 'size' })),
    report.inputs
      .slice(0, INPUTS)
      .map((i) => [
        html`<code lang="en">${text(places.path(i.path))}</code>`,
        `\`${i.kind}\``,
        formatBytes(i.bytes),
        word(`status.${i.status}`, lang),
        i.note,
      ]),
    'sortable',
  );
  const timelineLeft = timelineLeftOut(report);
  const leftOut = timelineLeft === null ? [] : [`${word('html.nav.timeline', lang)}${lang === 'en' ? ': ' : '：'}${timelineLeft}`];
  const notes = [...leftOut, ...report.notes.slice(0, 100)];
  const used = report.inputs.filter(({ status }) => status === 'used' || status === 'partial').length;
  return html`<section id="checks"><h2>${prose(word('html.checks', lang))}</h2>
${report.missing.length === 0 ? null : html`<h3>${prose(word('missing.title', lang))}</h3>${missing}`}
${foldOut(prose(word('detail.checks', lang, { counts: countsSentence(report) })), checks)}
${foldOut(prose(`${word('detail.inputs', lang)}${lang === 'en' ? ': ' : '：'}${used} / ${report.inputs.length}`), html`${inputs}${report.inputs.length > INPUTS ? html`<p class="dim">${prose(word('detail.inputs.cut', lang, { shown: INPUTS, total: report.inputs.length }))}</p>` : null}`)}
<h3>${prose(word('detail.job', lang))}</h3><ul>${jobLines(report).map((l) => html`<li>${prose(l)}</li>`)}</ul>
${notes.length === 0 ? null : html`<h3>${prose(word('detail.notes', lang))}</h3><ul>${notes.map((n) => html`<li>${prose(n)}</li>`)}</ul>`}
${report.patch === undefined ? null : foldOut(prose(word('detail.patch', lang)), html`<p>${prose(word('detail.patch.note', lang))}</p><pre class="diff" lang="en" id="patch">${code(report.patch)}</pre>`)}
</section>`;
}

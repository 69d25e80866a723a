import type { BreakdownRow, Report } from '../../model/report.ts';
import { formatPercent, formatSavingLine, formatTime } from '../figures.ts';
import {
  basisParts,
  costsTime,
  gateSentence,
  isAcknowledged,
  isWarning,
  numberFindings,
  paceRow,
  ranksPhrase,
  sentence,
  shapeOf,
  totalSentence,
  verdictSentence,
} from '../standing.ts';
import { word } from '../words.ts';
import type { Kind } from './figure.ts';
import { idleRows, kindOfIdle } from './idle.ts';
import { html, type Markup, prose, text, toFinding } from './markup.ts';
import { timeParts } from './time-parts.ts';

/** A part of the step of the pace-setting rank, ms. The parts add up to the step. */
export interface StepPart {
  readonly kind: Kind;
  readonly name: string;
  readonly ms: number;
}

/** What the median step of the pace-setting rank is made of, in the order of the bar. */
export function stepParts(report: Report): StepPart[] {
  const { lang } = report;
  const row = paceRow(report);
  if (row === null) return [];
  const whole = timeParts(row);
  const parts: StepPart[] = whole
    .filter(({ kind }) => kind !== 'idle')
    .map(({ kind, ms }) => ({ kind, name: word(`time.${kind}`, lang), ms }));
  let left = whole.find(({ kind }) => kind === 'idle')!.ms;
  for (const { cause, ms } of idleOf(report, row)) {
    if (cause === 'unexplained') continue;
    const part = Math.min(left, ms);
    parts.push({ kind: kindOfIdle(cause), name: word(`idle.${cause}`, lang), ms: part });
    left -= part;
  }
  parts.push({ kind: 'idle', name: word('idle.unexplained', lang), ms: left });
  return parts.filter(({ ms }) => ms > 0.0005);
}

function idleOf(report: Report, row: BreakdownRow): { cause: Parameters<typeof kindOfIdle>[0]; ms: number }[] {
  return idleRows(report)
    .filter((r) => r.rank === row.rank && r.step === row.step)
    .sort((a, b) => b.ms - a.ms);
}

function stepBarMarkup(report: Report): Markup | null {
  const parts = stepParts(report);
  const total = parts.reduce((sum, { ms }) => sum + ms, 0);
  if (total <= 0) return null;
  const { lang } = report;
  const row = paceRow(report)!;
  const overlapped = row.overlappedMs ?? 0;
  const said = parts.map(({ name, ms }) => `${name} ${formatTime(ms)}`).join(lang === 'en' ? ', ' : '，');
  return html`<figure aria-labelledby="bar-c" id="step-bar"><figcaption id="bar-c">${prose(
    row.rank === null ? word('html.bar.step', lang) : word('html.bar.rank', lang, { n: row.rank }),
  )}</figcaption>
<div class="bar big" role="img" aria-label="${text(said, 2000)}">${parts.map(
    ({ kind, name, ms }) =>
      html`<span class="k-${text(kind)}" style="width:${text(((ms / total) * 100).toFixed(3))}%" title="${text(`${name} ${formatTime(ms)}`)}">${
        ms / total >= 0.08 ? html`<b>${text(formatTime(ms))}</b>` : null
      }</span>`,
  )}</div>${
    overlapped > 0
      ? html`<div class="bar thin"><span class="k-overlapped" style="width:${text(Math.min(100, (overlapped / total) * 100).toFixed(3))}%"></span></div>`
      : null
  }
<ul class="legend">${parts.map(
    ({ kind, name, ms }) =>
      html`<li><i class="k-${text(kind)}"></i>${prose(name)} <b data-ms="${text(String(ms))}">${text(formatTime(ms))}</b> <span class="dim">${text(formatPercent(ms / total, lang))}</span></li>`,
  )}${
    overlapped > 0
      ? html`<li><i class="k-overlapped"></i>${prose(word('time.overlapped', lang))} <b>${text(formatTime(overlapped))}</b></li>`
      : null
  }</ul></figure>`;
}

function cards(report: Report): Markup | null {
  const { lang } = report;
  const shown = numberFindings(report.findings).filter(
    ({ finding }) => !isAcknowledged(finding) && (costsTime(finding) || isWarning(finding)),
  );
  if (shown.length === 0) return null;
  return html`<ol class="cards">${shown.slice(0, 3).map(({ number, finding }) => {
    const where = finding.locations[0];
    const place = where === undefined ? ranksPhrase(finding, report.job, lang) : `\`${where.file.replaceAll('`', 'ˋ')}:${where.line}\``;
    const saves = costsTime(finding) ? formatSavingLine(finding.saving!.perStepMs, lang) : word('cause.no-time', lang);
    const change = finding.recommendations[0]?.title;
    return html`<li value="${number}"><a href="${toFinding(finding.id)}"><b>${number}</b> ${prose(finding.title, 240)}</a><p class="big">${text(saves)}</p><p>${place === null ? null : prose(place)}</p>${change === undefined ? null : html`<p class="dim">${prose(change)}</p>`}</li>`;
  })}</ol>`;
}

/** Colour and sign of each verdict; signs that every system font has, unlike the pictures of the comment. */
const SHAPES = {
  '✅': ['better', '✓'],
  '⚠️': ['worse', '▲'],
  '❌': ['worse', '✕'],
  '❔': ['neutral', '●'],
  '⏳': ['neutral', '●'],
} as const;

/** The first screen: what the cards wait for, what it costs, where; readable without scripts. */
export function verdictSection(report: Report): Markup {
  const { lang } = report;
  const [colour, sign] = SHAPES[shapeOf(report)];
  const head = verdictSentence(report);
  const gate = gateSentence(report);
  const total = totalSentence(report);
  const facts = [...basisParts(report), report.job.stepBasis, ...(report.job.level === null ? [] : [report.job.level])];
  return html`<section id="verdict" class="v-${text(colour)}">
<h1><span aria-hidden="true">${text(sign)}</span> ${prose(lang === 'en' ? head[0]!.toUpperCase() + head.slice(1) : head)}</h1>
<p class="lead">${prose(sentence(report.verdict.text, lang))}</p>
${gate === null ? null : html`<p><b>${prose(gate.title)}</b> ${prose(gate.because)}</p>`}
${stepBarMarkup(report)}
${cards(report)}
${total === null ? null : html`<p>${prose(total)}</p>`}
<p class="dim">${prose(facts.join(' · '))}</p>
</section>`;
}

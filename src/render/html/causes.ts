import { z } from 'zod';
import type { Lang } from '../../model/lang.ts';
import type { Finding, Location, Recommendation, Report } from '../../model/report.ts';
import { diffLines, editPlace, evidenceSource, findingFacts, isKnownReference, namesSource, type Places, sureText } from '../details.ts';
import { proofOf } from '../proof.ts';
import { costsTime, isAcknowledged, type NumberedFinding, numberFindings, sentence } from '../standing.ts';
import { word } from '../words.ts';
import { foldOut, msColumn, table } from './figure.ts';
import { lossFigure } from './loss.ts';
import { at, code, html, type Markup, prose, text } from './markup.ts';
import { ruleDoc } from './rule-doc.ts';

const SQUARES = { critical: '■■■■', high: '■■■□', medium: '■■□□', info: '■□□□' } as const;

/** A line from floor to ceiling with a dot at likely; open at the left when only a bound is known. */
function interval(finding: Finding, longest: number): Markup | null {
  if (!costsTime(finding) || longest <= 0) return null;
  const { floor, likely, ceiling } = finding.saving!.perStepMs;
  const x = (ms: number): number => at(4 + (ms / longest) * 152);
  return html`<svg class="interval" viewBox="0 0 160 12" width="160" height="12" aria-hidden="true"><path d="M${x(likely === null ? 0 : floor)} 6H${x(ceiling)}"${likely === null ? html` stroke-dasharray="3 3"` : null}/>${
    likely === null ? null : html`<circle cx="${x(likely)}" cy="6" r="4"/>`
  }</svg>`;
}

function place(location: Location, report: Report, places: Places): Markup {
  const label = html`<code lang="en">${text(`${places.path(location.file)}:${location.line}`)}</code>`;
  const url = places.url(location);
  const linked = url === null || !/^https?:\/\//.test(url) ? label : html`<a rel="noreferrer" href="${text(url, 2000)}">${label}</a>`;
  return html`<li>${linked} <span class="dim">${prose(proofOf(location, report.lang))}</span></li>`;
}

function change(of: Recommendation, report: Report, places: Places): Markup {
  const { lang } = report;
  return html`<div class="change"><h4>${prose(sentence(of.title, lang))}</h4>${of.text === '' || of.text === of.title ? null : html`<p>${prose(of.text)}</p>`}${of.edits.map(
    (edit) =>
      html`<p><code lang="en">${text(editPlace(edit, places.path))}</code></p><pre class="diff" lang="en">${diffLines(
        edit.before,
        edit.after,
      ).map((line) => {
        const kind = line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : 'same';
        return html`<span class="${text(kind)}">${code(line)}\n</span>`;
      })}</pre>`,
  )}${of.code === null || of.edits.length > 0 ? null : html`<pre lang="en">${code(of.code)}</pre>`}${
    of.preconditions.length === 0
      ? null
      : html`<p>${prose(word('detail.preconditions', lang))}</p><ul class="checks">${of.preconditions.slice(0, 12).map((p) => html`<li>${prose(p)}</li>`)}</ul>`
  }${of.edits.length === 0 || report.patch === undefined ? null : html`<p><a href="#patch">${prose(word('detail.patch', lang))}</a></p>`}${of.references.length === 0 ? null : html`<p class="dim">${of.references.slice(0, 8).map((url) => reference(url))}</p>`}</div>`;
}

function reference(url: string): Markup {
  return isKnownReference(url)
    ? html`<a rel="noreferrer" href="${text(url, 2000)}">${text(url.slice('https://'.length))}</a> `
    : html`<code>${text(url)}</code> `;
}

function article(
  { number, finding }: NumberedFinding,
  page: { report: Report; places: Places; numbers: ReadonlyMap<string, number>; longest: number; open: boolean },
): Markup {
  const { report, places, numbers } = page;
  const { lang } = report;
  const facts = findingFacts(finding, report, numbers);
  const head = html`<span class="badge">${number}</span> <span class="severity">${prose(word(`severity.${finding.severity}`, lang))} <span aria-hidden="true">${text(SQUARES[finding.severity])}</span></span> <b>${prose(finding.title, 400)}</b> ${interval(finding, page.longest)}<span class="facts">${prose(facts.join(' · '))}</span>`;
  const body = html`${finding.locations.length === 0 ? null : html`<h3>${prose(word('text.place', lang))}</h3><ul>${finding.locations.slice(0, 8).map((l) => place(l, report, places))}</ul>`}
<h3>${prose(word('detail.why', lang))}</h3><ul class="evidence">${finding.evidence.slice(0, 60).map((item) => {
    const from = evidenceSource(item, lang);
    const source = namesSource(item) ? html`<code lang="en">${text(places.path(item.source!))}</code> ` : null;
    return html`<li>${prose(sentence(item.text, lang))} ${source}<span class="dim">${prose(from.join(' · '))}</span>${evidenceLink(item, lang)}</li>`;
  })}</ul>${lossFigure(report, finding.id, number)}${chartsLink(finding, lang)}
${finding.recommendations.length === 0 ? null : html`<h3>${prose(word('detail.change', lang))}</h3>${finding.recommendations.map((r) => change(r, report, places))}`}
<h3>${prose(word('detail.sure', lang))}</h3><p>${prose(sureText(finding, lang))}</p>${finding.caveats.length === 0 ? null : html`<ul>${finding.caveats.map((c) => html`<li>${prose(sentence(c, lang))}</li>`)}</ul>`}
${ruleDoc(finding.rule, lang)}<p class="dim"><code lang="en">${text(finding.rule)}</code> · <code lang="en">${text(finding.id)}</code></p>`;
  return html`<article class="cause s-${text(finding.severity)}" data-finding="${text(finding.id)}">${foldOut(head, body, page.open)}</article>`;
}

/** Evidence leads to its place: in time to the timeline, else to the steps of its rank. */
function evidenceLink(item: Finding['evidence'][number], lang: Lang): Markup | null {
  if (item.rank === undefined || item.rank === null) return null;
  const isTimed = item.startUs !== undefined && item.durationUs !== undefined;
  const name = text(word('html.evidence.show', lang));
  return html` <button type="button" class="show" hidden title="${name}" aria-label="${name}" data-rank="${item.rank}"${item.step === undefined || item.step === null ? null : html` data-step="${item.step}"`}${isTimed ? html` data-us="${at(item.startUs!)}" data-for="${at(item.durationUs!)}"` : null}>▸</button>`;
}

/** Section whose charts show what a finding of this category is about. */
const CHARTS: Readonly<Record<string, 'input' | 'communication' | 'operators' | 'memory' | 'idle' | 'comparison'>> = {
  data: 'input',
  communication: 'communication',
  compute: 'operators',
  memory: 'memory',
  host: 'idle',
  comparison: 'comparison',
};

function chartsLink(finding: Finding, lang: Lang): Markup | null {
  const section = CHARTS[finding.category];
  if (section === undefined) return null;
  return html`<p><a href="#${text(section)}">${prose(word('html.charts', lang, { section: word(`html.nav.${section}`, lang) }))}</a></p>`;
}

const NearMisses = z.array(
  z.object({ rule: z.string(), title: z.string(), ms: z.number().nonnegative(), floorMs: z.number().nonnegative() }),
);

/** What was seen and is not worth a finding; open where nothing else was found. */
function nearMisses(report: Report, isQuiet: boolean): Markup | null {
  const { lang } = report;
  const parsed = NearMisses.safeParse(report.views.nearMisses);
  if (!parsed.success || parsed.data.length === 0) return null;
  const ms = msColumn(parsed.data.flatMap((miss) => [miss.ms, miss.floorMs]));
  const rows = parsed.data.map((miss) => [
    html`<code lang="en">${text(miss.rule)}</code>`,
    prose(miss.title, 400),
    ms(miss.ms),
    ms(miss.floorMs),
  ]);
  const columns = [
    { title: word('html.misses.rule', lang) },
    { title: word('html.misses.cause', lang) },
    { title: word('html.misses.ms', lang), figures: true },
    { title: word('html.misses.floor', lang), figures: true },
  ];
  return html`<div id="misses">${foldOut(prose(word('html.misses', lang, { n: rows.length })), table(columns, rows), isQuiet)}</div>`;
}

/** Every cause with its proof and its change; acknowledged ones last, closed. */
export function causesSection(report: Report, places: Places): Markup {
  const { lang } = report;
  const numbered = numberFindings(report.findings);
  const numbers = new Map(numbered.map(({ number, finding }) => [finding.id, number]));
  const longest = Math.max(0, ...report.findings.filter(costsTime).map((f) => f.saving!.perStepMs.ceiling));
  const page = (open: boolean) => ({ report, places, numbers, longest, open });
  const open = numbered.filter(({ finding }) => !isAcknowledged(finding));
  const known = numbered.filter(({ finding }) => isAcknowledged(finding));
  const failed = report.checked.filter(({ outcome }) => outcome === 'error');
  return html`<section id="causes"><h2>${prose(word('detail.findings', lang))}</h2>
<p class="search"><label>${prose(word('html.search', lang))} <input type="search" id="q" autocomplete="off"></label> <span role="status" id="q-count"></span> <span id="q-more" data-text="${text(word('html.search.elsewhere', lang))}"></span></p>
${open.length === 0 ? html`<p class="none">${prose(word('heading.quiet', lang))}</p>` : open.map((f, i) => article(f, page(i < 3)))}
${known.length === 0 ? null : foldOut(prose(word(`ack.title.${known.length === 1 ? 'one' : 'many'}`, lang, { n: known.length })), html`${known.map((f) => article(f, page(false)))}`)}
${nearMisses(report, open.length === 0)}${failed.map(({ rule, reason }) => html`<p class="none"><code lang="en">${text(rule)}</code> ${prose(word('outcome.error', lang))}: ${prose(reason)}</p>`)}
</section>`;
}

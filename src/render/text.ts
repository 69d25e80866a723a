import type { Finding, Report, Severity } from '../model/report.ts';
import { comparisonView } from './comparison.ts';
import { breakdownLine, diffLines, editPlace, evidenceSource, findingFacts, jobLines, namesSource } from './details.ts';
import { clampProse, cleanLine } from './escape.ts';
import { proofOf } from './proof.ts';
import {
  barCells,
  barLegend,
  countForm,
  countsSentence,
  type NumberedFinding,
  numberFindings,
  representativeRows,
  sentence,
  stepBar,
  totalSentence,
  verdictSentence,
} from './standing.ts';
import { alignColumns, padEnd, padStart, textWidth, wrap } from './terminal-columns.ts';
import type { TextStyle } from './views.ts';
import { type Word, word } from './words.ts';

/** The report for a terminal: the verdict first, causes with what to do, the step, what was not possible. */

const NBSP = '\u00a0';
const BREAKDOWN_ROWS = 16;
const EVIDENCE_LINES = 4;

const CODES = { bold: 1, dim: 2, red: 31, yellow: 33, green: 32, cyan: 36 } as const;
type Paint = (text: string, style: keyof typeof CODES) => string;

const SEVERITY_STYLE: Readonly<Record<Severity, keyof typeof CODES>> = { critical: 'red', high: 'red', medium: 'yellow', info: 'dim' };

interface Page {
  readonly report: Report;
  readonly paint: Paint;
  readonly width: number;
}

/** Prose for a terminal: no control characters, so nothing in a profile can move the cursor or change colours. */
function show(prose: string, { paint }: Pick<Page, 'paint'>, max = 1200): string {
  const clean = clampProse(cleanLine(prose), max);
  return clean.replace(/`([^`]*)`/g, (whole, literal: string) => (paint(literal, 'cyan') === literal ? whole : paint(literal, 'cyan')));
}

function indent(lines: readonly string[], by: number): string[] {
  return lines.map((line) => ' '.repeat(by) + line);
}

/** Label in a left column, text wrapped beside it. */
function labelled(label: string, texts: readonly string[], page: Page, labelWidth: number, by: number): string[] {
  const room = page.width - by - labelWidth;
  const lines = texts.flatMap((text) => wrap(show(text, page), room));
  return lines.map((line, i) => ' '.repeat(by) + padEnd(i === 0 ? page.paint(label, 'dim') : '', labelWidth) + line);
}

function titleLines(page: Page): string[] {
  const { report, width, paint } = page;
  const style = report.gate?.outcome === 'fail' ? 'red' : report.verdict.outcome === 'quiet' ? 'green' : 'yellow';
  const clause = show(verdictSentence(report), { paint: (text) => text });
  const head = wrap(report.lang === 'en' ? clause[0]!.toUpperCase() + clause.slice(1) : clause, width).map((line) =>
    paint(paint(line, style), 'bold'),
  );
  return [...head, ...wrap(show(sentence(report.verdict.text, report.lang), page), width)];
}

function barLines(page: Page): string[] {
  const bar = stepBar(page.report);
  if (bar === null) return [];
  const cells = barCells(bar);
  const legend = barLegend(bar, page.report.lang);
  const fits = textWidth(cells) + 2 + textWidth(legend) <= page.width;
  return ['', ...(fits ? [`${cells}  ${legend}`] : [cells, ...wrap(legend, page.width)])];
}

function causeLines({ number, finding }: NumberedFinding, page: Page, numbers: ReadonlyMap<string, number>): string[] {
  const { report, paint, width } = page;
  const { lang } = report;
  const severity = padEnd(word(`severity.${finding.severity}`, lang), lang === 'en' ? 8 : 4);
  const head = `${padStart(String(number), 2)}  ${paint(severity, SEVERITY_STYLE[finding.severity])}  `;
  const by = textWidth(head);
  const named = finding.acknowledged === undefined ? finding.title : word('ack.mark', lang, { title: finding.title });
  const title = wrap(show(named, page, 240), width - by).map((line, i) => (i === 0 ? head : ' '.repeat(by)) + paint(line, 'bold'));
  const facts = [
    ...findingFacts(finding, report, numbers),
    word('text.confidence', lang, { confidence: word(`confidence.${finding.confidence}`, lang) }),
  ];
  const labels = [word('text.place', lang), word('detail.why', lang), word('detail.change', lang), word('detail.preconditions', lang)];
  const labelWidth = Math.max(...labels.map(textWidth)) + 2;
  const block = (label: string, texts: readonly string[]): string[] => labelled(label, texts, page, labelWidth, by);
  return [
    ...title,
    // a fact is not broken inside
    ...indent(wrap(facts.map((fact) => fact.replaceAll(' ', NBSP)).join(' · '), width - by), by),
    ...block(labels[0]!, placeTexts(finding, page)),
    ...block(labels[1]!, evidenceTexts(finding, page)),
    ...changeLines(finding, page, labels, labelWidth, by),
  ];
}

function placeTexts(finding: Finding, { report }: Page): string[] {
  return finding.locations.slice(0, 3).map((location) => {
    const { file, line } = location;
    const proof = proofOf(location, report.lang);
    return report.lang === 'en' ? `\`${literal(file)}:${line}\` (${proof})` : `\`${literal(file)}:${line}\`（${proof}）`;
  });
}

function literal(value: string): string {
  return value.replaceAll('`', 'ˋ');
}

function evidenceTexts(finding: Finding, { report }: Page): string[] {
  const { lang } = report;
  const shown = finding.evidence.slice(0, EVIDENCE_LINES).map((item) => {
    const from = [...(namesSource(item) ? [`\`${literal(item.source!)}\``] : []), ...evidenceSource(item, lang)];
    const text = sentence(item.text, lang);
    if (from.length === 0) return text;
    return lang === 'en' ? `${text} (${from.join(', ')})` : `${text}（${from.join('，')}）`;
  });
  return [...shown, ...finding.caveats.map((caveat) => sentence(caveat, lang))];
}

function changeLines(finding: Finding, page: Page, labels: readonly string[], labelWidth: number, by: number): string[] {
  const { lang } = page.report;
  return finding.recommendations.flatMap((change) => {
    const said = [sentence(change.title, lang), ...(change.text === '' || change.text === change.title ? [] : [change.text])];
    const edits = change.edits.flatMap((edit) => [
      page.paint(cleanLine(editPlace(edit, (path) => path)), 'cyan'),
      ...diffLines(edit.before, edit.after).map((line) => diffLine(line, page)),
    ]);
    const example = change.code === null || change.edits.length > 0 ? [] : change.code.split('\n').map(cleanLine);
    return [
      ...labelled(labels[2]!, said, page, labelWidth, by),
      ...indent([...edits, ...example], by + labelWidth),
      ...labelled(labels[3]!, change.preconditions, page, labelWidth, by),
    ];
  });
}

function diffLine(line: string, { paint }: Page): string {
  const clean = cleanLine(line);
  if (clean.startsWith('+')) return paint(clean, 'green');
  return clean.startsWith('-') ? paint(clean, 'red') : clean;
}

function heading(text: string, { paint, width }: Page): string[] {
  return ['', ...wrap(text, width).map((line) => paint(line, 'bold'))];
}

function stepLines(page: Page): string[] {
  const { lang } = page.report;
  const perRank = representativeRows(page.report);
  const rows = perRank.slice(0, BREAKDOWN_ROWS).map(breakdownLine);
  const leftOut = page.report.breakdown.length - rows.length;
  if (rows.length === 0) return [];
  const head = [
    word('column.rank', lang),
    word('column.step', lang),
    word('time.step', lang),
    word('time.computing', lang),
    word('time.exposed', lang),
    word('time.overlapped', lang),
    word('time.idle', lang),
  ];
  const body = rows.map((row) => [row.rank, row.step, row.stepMs, row.computing, row.exposed, row.overlapped, row.free]);
  const table = alignColumns([head, ...body], new Set(head.keys()));
  return [
    ...heading(word('text.breakdown', lang), page),
    ...indent(table, 2),
    ...(leftOut > 0 ? indent(wrap(show(word('text.rows-cut', lang, { n: leftOut }), page), page.width - 2), 2) : []),
  ];
}

function missingLines(page: Page): string[] {
  const { report, width } = page;
  if (report.missing.length === 0) return [];
  const lines = report.missing.slice(0, 20).flatMap(({ what, consequence, remedy }) => {
    const arrow =
      report.lang === 'en'
        ? `${what}; ${word('missing.consequence', 'en').toLowerCase()}: ${consequence}. ${word('missing.remedy', 'en')}: ${remedy}`
        : `${what}；${word('missing.consequence', 'zh')}${consequence}。${word('missing.remedy', 'zh')}：${remedy}`;
    return wrap(show(sentence(arrow, report.lang), page), width - 4).map((line, i) => (i === 0 ? '  - ' : '    ') + line);
  });
  return [...heading(word('missing.title', report.lang), page), ...lines];
}

function checkLines(page: Page): string[] {
  const { report, width } = page;
  const { lang } = report;
  const unable = Map.groupBy(
    report.checked.filter(({ outcome }) => outcome === 'notApplicable' || outcome === 'error'),
    ({ outcome, reason }) => `${word(`outcome.${outcome}`, lang)}${lang === 'en' ? ', ' : '，'}${reason}`,
  );
  const lines = [...unable].slice(0, 20).flatMap(([reason, rules]) => {
    const names = rules.map(({ rule }) => cleanLine(rule)).join(lang === 'en' ? ', ' : '、');
    return wrap(show(lang === 'en' ? `${names}: ${reason}` : `${names}：${reason}`, page), width - 4).map(
      (line, i) => (i === 0 ? '  - ' : '    ') + line,
    );
  });
  return [...heading(word('detail.checks', lang, { counts: countsSentence(report) }), page), ...lines];
}

function jobFacts(page: Page): string[] {
  const { report, width } = page;
  const { lang } = report;
  const used = report.inputs.filter(({ status }) => status === 'used' || status === 'partial');
  const files = word(`text.files.${countForm(used.length)}`, lang, {
    n: used.length,
    bytes: used.reduce((sum, { bytes }) => sum + bytes, 0),
  });
  const rest = report.inputs
    .filter(({ status, note }) => status === 'refused' || status === 'partial' || (status === 'ignored' && note !== ''))
    .slice(0, 10)
    .map(
      ({ path, status, note }) =>
        `\`${literal(path)}\`${lang === 'en' ? ': ' : '：'}${word(`status.${status}`, lang)}${note === '' ? '' : `${lang === 'en' ? ', ' : '，'}${note}`}`,
    );
  const lines = [...jobLines(report), files, ...rest, ...report.notes.slice(0, 20)];
  return [
    ...heading(word('detail.job', lang), page),
    ...lines.flatMap((line) => wrap(show(line, page), width - 4).map((part, i) => (i === 0 ? '  - ' : '    ') + part)),
  ];
}

function comparisonLines(page: Page): string[] {
  const { report, width } = page;
  const { lang } = report;
  const view = comparisonView(report);
  if (view === null) return [];
  const wrapped = (text: string): string[] => wrap(show(text, page), width - 2);
  const head = ['step', 'base', 'head', 'change'].map((column) => word(`compare.column.${column}` as Word, lang));
  const rows = view.rows.map((row) => [show(row.what, { paint: (text) => text }), row.base, row.head, row.change]);
  const table = rows.length === 0 ? [] : ['', ...indent(alignColumns([head, ...rows], new Set([1, 2, 3])), 2), ''];
  const points = view.points.flatMap((point) => wrap(show(point, page), width - 4).map((part, i) => (i === 0 ? '  - ' : '    ') + part));
  const notes = view.notes.flatMap((note) => wrapped(sentence(note, lang)));
  return [...heading(show(view.title, page), page), ...indent(wrapped(view.text), 2), ...table, ...points, ...indent(notes, 2)];
}

function gateLines(page: Page): string[] {
  const { gate, lang } = page.report;
  if (gate === null) return [];
  const reasons = gate.because.map((reason) => sentence(reason, lang)).join(lang === 'en' ? ' ' : '');
  return ['', ...wrap(show(`${word(`gate.${gate.outcome}`, lang)}${lang === 'en' ? ' ' : ''}${reasons}`, page, 4000), page.width)];
}

/** The report for a terminal of `width` columns. */
export function renderText(report: Report, style: TextStyle): string {
  const paint: Paint = style.color ? (text, name) => `\u001b[${CODES[name]}m${text}\u001b[0m` : (text) => text;
  const page: Page = { report, paint, width: Math.max(40, Math.min(style.width, 120)) };
  const numbered = numberFindings(report.findings);
  const numbers = new Map(numbered.map(({ number, finding }) => [finding.id, number]));
  const total = totalSentence(report);
  const lines = [
    ...titleLines(page),
    ...barLines(page),
    ...(numbered.length === 0 ? [] : heading(word('detail.findings', report.lang), page)),
    ...numbered.flatMap((item, i) => [...(i === 0 ? [] : ['']), ...causeLines(item, page, numbers)]),
    ...(total === null ? [] : ['', ...wrap(total, page.width)]),
    ...gateLines(page),
    ...comparisonLines(page),
    ...stepLines(page),
    ...missingLines(page),
    ...checkLines(page),
    ...jobFacts(page),
  ];
  // a no-break space cannot be typed into a search
  return `${lines.join('\n').replaceAll(NBSP, ' ')}\n`;
}

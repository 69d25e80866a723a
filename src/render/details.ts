import { formatBytes, quoteLiteral } from '../base/phrase.ts';
import type { Lang } from '../model/lang.ts';
import type { Acknowledged, BreakdownRow, Edit, Evidence, Finding, Location, Recommendation, Report } from '../model/report.ts';
import { comparisonView } from './comparison.ts';
import { clampProse, code, fenced, isShownVerbatim, joinMarkdown, link, markdown, plain, prose, type SafeMarkdown } from './escape.ts';
import { formatColumnMs, formatEstimate, formatPercent, formatSavingLine, formatTime } from './figures.ts';
import { proofOf } from './proof.ts';
import { costsTime, countForm, countsSentence, numberFindings, ranksPhrase, representativeRows, sentence, stopped } from './standing.ts';
import { renderSections, type Section } from './templates.ts';
import { baseLine, trendRows, trendTitle } from './trend.ts';
import { type Word, word } from './words.ts';

/** What the comment leaves out: every cause with its proof, the step per rank, every check, every input. */

const ROWS_SHOWN = 64;
const INPUTS_SHOWN = 100;

/** How places are written: the path a reader may see, and the address of a line where there is one. */
export interface Places {
  readonly path: (path: string) => string;
  readonly url: (location: Location) => string | null;
}

/** Paths as they are, no addresses: the command line. */
export const LOCAL_PLACES: Places = { path: (path) => path, url: () => null };

function separator(lang: Lang): string {
  return lang === 'en' ? ', ' : '，';
}

/** The change as diff lines: equal lines at both ends are context. */
export function diffLines(before: string, after: string): string[] {
  const old = before === '' ? [] : before.replace(/\n$/, '').split('\n');
  const now = after === '' ? [] : after.replace(/\n$/, '').split('\n');
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  return [
    ...old.slice(0, head).map((line) => ` ${line}`),
    ...old.slice(head, old.length - tail).map((line) => `-${line}`),
    ...now.slice(head, now.length - tail).map((line) => `+${line}`),
    ...old.slice(old.length - tail).map((line) => ` ${line}`),
  ];
}

/** `train.py:88` or `train.py:88-90`. */
export function editPlace(edit: Edit, path: (path: string) => string): string {
  return edit.startLine === edit.endLine ? `${path(edit.file)}:${edit.startLine}` : `${path(edit.file)}:${edit.startLine}-${edit.endLine}`;
}

/** Saving, ranks, steps and places of a finding, one phrase each. */
export function findingFacts(finding: Finding, report: Report, numbers: ReadonlyMap<string, number>): string[] {
  const { lang } = report;
  const facts: string[] = [];
  const cause = finding.symptomOf === null ? undefined : numbers.get(finding.symptomOf);
  if (cause !== undefined) facts.push(word('detail.symptom', lang, { n: cause }));
  if (finding.saving === null) facts.push(word('detail.saves-nothing', lang));
  else if (costsTime(finding)) {
    const saving = formatSavingLine(finding.saving.perStepMs, lang);
    facts.push(word('detail.saves', lang, { saving, share: formatPercent(finding.saving.shareOfStep, lang) }));
  }
  if (finding.acknowledged !== undefined) facts.push(acknowledgedFact(finding.acknowledged, lang));
  const ranks = ranksPhrase(finding, report.job, lang);
  if (ranks !== null) facts.push(ranks);
  if (finding.steps.length > 0) facts.push(word(`detail.steps.${countForm(finding.steps.length)}`, lang, { steps: finding.steps }));
  return facts;
}

/** Who accepts it, until when and why. */
function acknowledgedFact({ by, until, reason }: Acknowledged, lang: Lang): string {
  const who = by === null ? word('ack.by-settings', lang) : word('ack.by-person', lang, { by });
  const day = until ?? (by === null ? null : word('ack.until-grows', lang));
  const parts = [day === null ? who : `${who}${separator(lang)}${day}`, ...(reason === '' ? [] : [quoteLiteral(reason, 160)])];
  return parts.join(lang === 'en' ? ': ' : '：');
}

function locationMarkdown(location: Location, places: Places, lang: Lang): SafeMarkdown {
  const place = link(code(`${places.path(location.file)}:${location.line}`), places.url(location));
  const proof = prose(proofOf(location, lang));
  return lang === 'en' ? markdown`${place} (${proof})` : markdown`${place}（${proof}）`;
}

/** Where an evidence was read: file, rank, step, time on the rank's clock. */
export function evidenceSource(evidence: Evidence, lang: Lang): string[] {
  const parts: string[] = [];
  if (evidence.rank !== undefined && evidence.rank !== null) parts.push(word('detail.rank', lang, { n: evidence.rank }));
  if (evidence.step !== undefined && evidence.step !== null) parts.push(word('detail.step', lang, { n: evidence.step }));
  if (evidence.startUs !== undefined && evidence.durationUs !== undefined) {
    parts.push(word('detail.at', lang, { at: formatTime(evidence.startUs / 1000), duration: formatTime(evidence.durationUs / 1000) }));
  }
  return parts;
}

/** False when the text has named its file already. */
export function namesSource({ source, text }: Evidence): boolean {
  return source !== null && !text.includes(`\`${source}\``);
}

function evidenceMarkdown(evidence: Evidence, places: Places, lang: Lang): SafeMarkdown {
  const from = evidenceSource(evidence, lang).map((part) => prose(part));
  if (namesSource(evidence)) from.unshift(code(places.path(evidence.source!)));
  const text = prose(sentence(evidence.text, lang), 1200);
  if (from.length === 0) return text;
  const source = joinMarkdown(from, separator(lang));
  return lang === 'en' ? markdown`${text} (${source})` : markdown`${text}（${source}）`;
}

function changeModel(change: Recommendation, places: Places, lang: Lang): object {
  return {
    title: sentence(change.title, lang),
    text: change.text === change.title ? '' : change.text,
    example: change.code === null ? null : fenced(change.code, isShell(change.code) ? 'shell' : 'python'),
    edits: change.edits.map((edit) => ({
      where: link(
        code(editPlace(edit, places.path)),
        places.url({ file: edit.file, line: edit.startLine, symbol: null, provenBy: 'syntax' }),
      ),
      diff: fenced(diffLines(edit.before, edit.after).join('\n'), 'diff'),
    })),
    preconditions: change.preconditions.slice(0, 12),
    references: change.references.length === 0 ? null : joinMarkdown(change.references.slice(0, 8).map(reference), ' · '),
  };
}

/** Examples are Python, or shell when they set variables or call a program. */
function isShell(example: string): boolean {
  return /^[^\S\n]*(export|source|pip|npu-smi|msrun|torchrun|bash|cd|msprof|echo)\s/m.test(example);
}

/** Hosts a reference may lead to. */
const REFERENCE_HOSTS =
  /^([\w-]+\.)*(hiascend\.com|huawei\.com|pytorch\.org|python\.org|github\.com|gitee\.com|gitcode\.com|mindspore\.cn|arxiv\.org|readthedocs\.io)$/;

/** True for an address on a known host that holds nothing unusual. */
export function isKnownReference(url: string): boolean {
  return URL.canParse(url) && /^https:\/\/[\w.-]+[\w\-./?#=&%~+:@]*$/.test(url) && REFERENCE_HOSTS.test(new URL(url).hostname);
}

/** A reference is a link only to a known host; anything else is shown as it is. */
function reference(url: string): SafeMarkdown {
  return isKnownReference(url) ? link(plain(decoded(url).slice('https://'.length)), url) : code(url);
}

/** An address as people read it; as it stands when its escapes are broken. */
function decoded(url: string): string {
  try {
    return decodeURI(url);
  } catch {
    return url;
  }
}

export function sureText(finding: Finding, lang: Lang): string {
  const confidence = word(`confidence.${finding.confidence}`, lang);
  const named = lang === 'en' ? confidence[0]!.toUpperCase() + confidence.slice(1) : confidence;
  if (finding.saving === null || finding.saving.method === '') return word('detail.sure.plain', lang, { confidence: named });
  return word(`detail.sure.${finding.saving.basis}`, lang, { confidence: named, method: stopped(finding.saving.method, lang) });
}

/** The line above a finding: number, severity, title. */
function findingHead(number: number, finding: Finding, lang: Lang): SafeMarkdown {
  const title = finding.acknowledged === undefined ? finding.title : word('ack.mark', lang, { title: clampProse(finding.title, 200) });
  return markdown`${number}. ${prose(word(`severity.${finding.severity}`, lang))} · ${prose(title, 240)}`;
}

function findingModels(report: Report, places: Places): object[] {
  const { lang } = report;
  const numbered = numberFindings(report.findings);
  const numbers = new Map(numbered.map(({ number, finding }) => [finding.id, number]));
  return numbered.map(({ number, finding }) => ({
    head: findingHead(number, finding, lang),
    facts: joinMarkdown(
      [
        ...findingFacts(finding, report, numbers).map((fact) => prose(fact)),
        ...finding.locations.slice(0, 6).map((location) => locationMarkdown(location, places, lang)),
      ],
      ' · ',
    ),
    evidence: finding.evidence.slice(0, 40).map((item) => evidenceMarkdown(item, places, lang)),
    changes: finding.recommendations.map((change) => changeModel(change, places, lang)),
    sure: sureText(finding, lang),
    caveats: finding.caveats,
  }));
}

/** One finding with its proof and its change. null: the report does not hold it. */
export function explainFinding(report: Report, id: string, places: Places): Section[] | null {
  const { lang, findings } = report;
  const models = findingModels(report, places);
  const index = numberFindings(findings).findIndex(({ finding }) => finding.id === id);
  return index < 0 ? null : renderSections('explain', { lang, findings: [models[index]!] });
}

/** One row of the step table, ready to print. */
export interface BreakdownLine {
  readonly rank: string;
  readonly step: string;
  readonly stepMs: string;
  readonly computing: string;
  readonly exposed: string;
  readonly overlapped: string;
  readonly free: string;
  readonly bubble: string;
  readonly preparing: string;
}

/** A row of the step table in milliseconds. */
export function breakdownLine(row: BreakdownRow): BreakdownLine {
  return {
    rank: row.rank === null ? '–' : String(row.rank),
    step: row.step === null ? '–' : String(row.step),
    stepMs: formatColumnMs(row.stepMs),
    computing: formatColumnMs(row.computingMs),
    exposed: formatColumnMs(row.exposedCommunicationMs),
    overlapped: formatColumnMs(row.overlappedMs),
    free: formatColumnMs(row.freeMs),
    bubble: formatColumnMs(row.bubbleMs),
    preparing: formatColumnMs(row.preparingMs),
  };
}

/** The step table: all rows when they are few, else one median step per rank, slowest first. */
function breakdownTable(report: Report): { note: string; rows: BreakdownLine[] } {
  const { lang, breakdown } = report;
  const isWhole = breakdown.length <= ROWS_SHOWN;
  const rows = isWhole ? breakdown : representativeRows(report).slice(0, ROWS_SHOWN);
  const note = isWhole
    ? word('detail.breakdown.note', lang)
    : word('detail.breakdown.cut', lang, { shown: rows.length, total: breakdown.length });
  return { note, rows: rows.map(breakdownLine) };
}

/** Without step marks the span of the device is told, not a step. */
function stepWord(steps: number): Word {
  if (steps === 0) return 'job.span';
  return steps === 1 ? 'job.step-single' : 'job.step';
}

/** What was captured and what of it was used, one line each. */
export function jobLines(report: Report): string[] {
  const { job, lang } = report;
  const lines: string[] = [];
  if (job.stepTimeMs === null) lines.push(word('job.step-unknown', lang));
  else if (job.stepNoiseMs === null) lines.push(word(stepWord(job.steps.length), lang, { step: formatTime(job.stepTimeMs) }));
  else lines.push(word('job.step-noise', lang, { step: formatTime(job.stepTimeMs), noise: formatEstimate(job.stepNoiseMs) }));
  lines.push(word('job.basis', lang, { basis: job.stepBasis }));
  if (job.ranks.length > 0 && job.worldSize !== null) lines.push(word('job.ranks', lang, { ranks: job.ranks, world: job.worldSize }));
  else if (job.ranks.length > 0) lines.push(word('job.ranks-alone', lang, { ranks: job.ranks }));
  if (job.unrankedFolders > 0) lines.push(word(`footer.unranked.${countForm(job.unrankedFolders)}`, lang, { n: job.unrankedFolders }));
  if (job.missingRanks.length > 0) lines.push(word('job.missing', lang, { ranks: job.missingRanks }));
  if (job.steps.length > 0) lines.push(word('job.steps', lang, { steps: job.steps }));
  for (const { step, why } of job.droppedSteps.slice(0, 8)) lines.push(word('job.dropped', lang, { n: step, why }));
  if (job.samplesPerSecond !== null) lines.push(word('job.throughput', lang, { n: job.samplesPerSecond }));
  if (job.tokensPerSecond !== null) lines.push(word('job.tokens', lang, { n: job.tokensPerSecond }));
  if (job.level !== null) lines.push(word('job.level', lang, { level: job.level }));
  if (job.device !== null) lines.push(word('job.device', lang, { device: job.device }));
  const { cann, torchNpu, torch } = job.versions;
  if (cann !== null || torchNpu !== null || torch !== null)
    lines.push(word('job.versions', lang, { cann: cann ?? '?', torchNpu: torchNpu ?? '?', torch: torch ?? '?' }));
  return lines;
}

/** Files of the same kind and fate share a row: a job of 8 ranks has 80 files and some ten rows. */
function inputGroups(report: Report): { first: Report['inputs'][number]; count: number; bytes: number }[] {
  const groups = new Map<string, { first: Report['inputs'][number]; count: number; bytes: number }>();
  for (const input of report.inputs) {
    const key = `${input.kind}\n${input.status}\n${input.note}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { first: input, count: 1, bytes: input.bytes });
    else {
      group.count++;
      group.bytes += input.bytes;
    }
  }
  return [...groups.values()];
}

function comparisonModel(report: Report): object | null {
  const view = comparisonView(report);
  if (view === null) return null;
  return {
    ...view,
    base: baseLine(report),
    points: view.points.slice(0, 40),
    notes: view.notes.map((note) => sentence(note, report.lang)),
  };
}

/** Characters of the patch that a report shows; the rest is for the command line. */
const PATCH_SHOWN = 16_000;

/** The files of the patch that fit and that a fenced block keeps to the character, and which do not. */
function patchModel({ patch, lang }: Report, places: Places): object | null {
  if (patch === undefined) return null;
  const files = patch.split(/^(?=diff --git )/m);
  const shown: string[] = [];
  const left: string[] = [];
  let length = 0;
  for (const text of files) {
    const fits = length + text.length <= PATCH_SHOWN && isShownVerbatim(text);
    if (fits) length += text.length;
    if (fits) shown.push(text);
    else left.push(/^\+\+\+ "?b\/([^\t"\n]*)/m.exec(text)?.[1] ?? '');
  }
  const rest = left.slice(0, 6).map((file) => `\`${places.path(file).replaceAll('`', '')}\``);
  if (left.length > rest.length) rest.push('…');
  const note = [
    word('detail.patch.note', lang),
    ...(rest.length === 0 ? [] : [word('detail.patch.left', lang, { files: rest.join(separator(lang)) })]),
  ];
  return { note: note.join(lang === 'en' ? ' ' : ''), diff: shown.length === 0 ? null : fenced(shown.join(''), 'diff') };
}

/** A job against a baseline by itself; `base`: which one, prose. */
export function comparisonSections(report: Report, base: string): Section[] {
  return renderSections('compare', { lang: report.lang, base, comparison: comparisonModel(report) });
}

/** Every part of the report below its verdict, as sections that may be cut. */
export function detailSections(report: Report, places: Places): Section[] {
  const { lang } = report;
  const groups = inputGroups(report);
  return renderSections('details', {
    lang,
    comparison: comparisonModel(report),
    trend: { title: trendTitle(report), rows: trendRows(report) },
    findings: findingModels(report, places),
    patch: patchModel(report, places),
    missing: report.missing.slice(0, 60),
    missingMore: null,
    breakdown: breakdownTable(report),
    checksTitle: word('detail.checks', lang, { counts: countsSentence(report) }),
    checks: report.checked.map(({ rule, outcome, reason }) => ({ rule, outcome: word(`outcome.${outcome}`, lang), reason })),
    job: jobLines(report),
    inputs: groups.slice(0, INPUTS_SHOWN).map(({ first, count, bytes }) => ({
      path: places.path(first.path),
      more: count > 1 ? word('detail.inputs.more', lang, { n: count - 1 }) : '',
      kind: first.kind,
      size: formatBytes(bytes),
      status: word(`status.${first.status}`, lang),
      note: first.note,
    })),
    inputsNote: groups.length > INPUTS_SHOWN ? word('detail.inputs.cut', lang, { shown: INPUTS_SHOWN, total: groups.length }) : null,
    notes: report.notes.slice(0, 60),
  });
}

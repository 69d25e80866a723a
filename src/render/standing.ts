import type { Lang } from '../model/lang.ts';
import type { BreakdownRow, Finding, Report, Severity } from '../model/report.ts';
import { regressionClause } from './comparison.ts';
import { clampProse } from './escape.ts';
import { articleFor, formatEstimate, formatPercent, formatTime, headlineMs, splitCells } from './figures.ts';
import { word } from './words.ts';

/**
 * How a report stands: the order and number of its causes, the sentence that heads every output, the step bar.
 * All outputs take these from here, so cause 2 of the comment is cause 2 of the check run and of the terminal.
 */

type Job = Report['job'];

const SEVERITY_ORDER: Readonly<Record<Severity, number>> = { critical: 0, high: 1, medium: 2, info: 3 };

/** A finding and the number it carries in every output. */
export interface NumberedFinding {
  readonly number: number;
  readonly finding: Finding;
}

/** Causes by severity, then headline saving; findings that another one explains come later, acknowledged ones last. */
export function numberFindings(findings: readonly Finding[]): NumberedFinding[] {
  const weight = (finding: Finding): number => (finding.saving === null ? 0 : headlineMs(finding.saving));
  return [...findings]
    .sort(
      (a, b) =>
        Number(isAcknowledged(a)) - Number(isAcknowledged(b)) ||
        Number(a.symptomOf !== null) - Number(b.symptomOf !== null) ||
        SEVERITY_ORDER[a.severity] - SEVERITY_ORDER[b.severity] ||
        weight(b) - weight(a),
    )
    .map((finding, i) => ({ number: i + 1, finding }));
}

/** True for a finding that a person, or the settings, accept. */
export function isAcknowledged(finding: Finding): boolean {
  return finding.acknowledged !== undefined;
}

/** True for a finding that costs time and is not explained by another. */
export function costsTime(finding: Finding): boolean {
  return finding.symptomOf === null && finding.saving !== null && headlineMs(finding.saving) > 0;
}

/** True for an open finding that costs time. */
export function isCostly(finding: Finding): boolean {
  return costsTime(finding) && !isAcknowledged(finding);
}

/** True for an open finding that costs no measurable time but wants a reader: it will crash or change numbers. */
export function isWarning(finding: Finding): boolean {
  return finding.symptomOf === null && !costsTime(finding) && finding.severity !== 'info' && !isAcknowledged(finding);
}

export type Shape = '✅' | '⚠️' | '❌' | '❔' | '⏳';

/** The one sign of a report. */
export function shapeOf(report: Report): Shape {
  if (report.verdict.outcome === 'no-data') return '❔';
  if (report.gate?.outcome === 'fail') return '❌';
  const wantsReader = report.findings.some((finding) => (isCostly(finding) && finding.severity !== 'info') || isWarning(finding));
  if (report.verdict.outcome === 'incomplete') return wantsReader ? '⚠️' : '❔';
  return report.verdict.outcome === 'quiet' && !wantsReader ? '✅' : '⚠️';
}

/** "one" or "many", the two forms English needs. */
export function countForm(n: number): 'one' | 'many' {
  return n === 1 ? 'one' : 'many';
}

/** What the causes cost together, with the share of the step. */
export interface Cost {
  readonly text: string;
  /** False when only the upper bound is known. */
  readonly isLikely: boolean;
  readonly step: string | null;
  readonly share: string | null;
}

/** The union of what the causes claim. null: nothing costs time. */
export function costOf(report: Report): Cost | null {
  const { likely, ceiling } = report.totals.claimedMsPerStep;
  const ms = likely !== null && likely > 0 ? likely : ceiling;
  if (ms <= 0 || !report.findings.some(isCostly)) return null;
  const step = report.job.stepTimeMs;
  return {
    text: formatEstimate(ms),
    isLikely: ms === likely,
    step: step === null ? null : formatTime(step),
    share: step === null ? null : formatPercent(Math.min(1, ms / step), report.lang),
  };
}

/** What the causes cost together; only said when there is something to add up. */
export function totalSentence(report: Report): string | null {
  const costly = report.findings.filter(isCostly);
  if (costly.length < 2) return null;
  const { likely, ceiling } = report.totals.claimedMsPerStep;
  const sum = costly.reduce((total, finding) => total + finding.saving!.perStepMs.ceiling, 0);
  const sumLikely = costly.reduce((total, finding) => total + (finding.saving!.perStepMs.likely ?? 0), 0);
  const figures = { likely: formatEstimate(likely ?? 0), ceiling: formatEstimate(ceiling) };
  const adds = formatEstimate(sum) === figures.ceiling && formatEstimate(sumLikely) === figures.likely;
  const kind = likely === null || likely === 0 ? 'bound' : 'total';
  const key = kind === 'total' ? (adds ? 'total.plain' : 'total.overlap') : adds ? 'total.bound' : 'total.bound-overlap';
  return word(key, report.lang, figures);
}

function costSentence(report: Report, n: number): string | null {
  const cost = costOf(report);
  if (cost === null) return null;
  const form = countForm(n);
  const kind = cost.isLikely ? 'cost' : 'bound';
  if (cost.isLikely && cost.step !== null && report.findings.some(isAcknowledged)) {
    return word(`heading.open.${form}`, report.lang, { n, cost: cost.text, step: cost.step, article: articleFor(cost.step) });
  }
  if (cost.step === null || cost.share === null) return word(`heading.${kind}-only.${form}`, report.lang, { n, cost: cost.text });
  return word(`heading.${kind}.${form}`, report.lang, {
    n,
    cost: cost.text,
    step: cost.step,
    share: cost.share,
    article: articleFor(cost.step),
  });
}

/** "(6 of 8 ranks)", or nothing when the world size is unknown or complete. */
function seenPart(job: Job, lang: Lang): string {
  if (job.worldSize === null || job.ranks.length >= job.worldSize) return '';
  return word('heading.incomplete.part', lang, { seen: job.ranks.length, world: job.worldSize });
}

/** The verdict with its number, one clause without full stop, as prose. The head of comment, terminal and report. */
export function verdictSentence(report: Report, shortSha: string | null = null): string {
  const { lang } = report;
  if (report.verdict.outcome === 'no-data')
    return shortSha === null ? report.verdict.text : word('heading.no-data', lang, { sha: shortSha });
  const costly = report.findings.filter(isCostly).length;
  const warnings = report.findings.filter(isWarning).length;
  const failed = report.gate?.outcome === 'fail';
  const body = withAcknowledged(report, causesSentence(report, costly, warnings));
  return failed ? word('heading.gate-failed', lang, { x: body }) : body;
}

/** A verdict, and how many findings are acknowledged beside it. */
export function withAcknowledged(report: Report, text: string): string {
  const n = report.findings.filter(isAcknowledged).length;
  return n === 0 ? text : word('heading.acknowledged', report.lang, { x: text, n });
}

function causesSentence(report: Report, costly: number, warnings: number): string {
  const { lang, verdict, gate, job } = report;
  if (verdict.outcome === 'incomplete') {
    const n = costly + warnings;
    return word(n === 0 ? 'heading.incomplete.none' : `heading.incomplete.${countForm(n)}`, lang, { n, part: seenPart(job, lang) });
  }
  const slower = regressionClause(report);
  if (slower !== null) return slower;
  const quiet = word(gate?.outcome === 'pass' ? 'heading.quiet-passed' : 'heading.quiet', lang);
  const cost = shapeOf(report) === '✅' ? null : costSentence(report, costly);
  if (cost === null && warnings === 0) return quiet;
  if (cost === null) return word(`heading.warnings.${countForm(warnings)}`, lang, { n: warnings });
  return warnings === 0 ? cost : word(`heading.also.${countForm(warnings)}`, lang, { x: cost, n: warnings });
}

/** Times of the step bar, in ms, and their cells. */
export interface StepBar {
  readonly rank: number | null;
  readonly computingMs: number;
  readonly exposedMs: number;
  readonly idleMs: number;
  /** Cells for computing, exposed communication, idle. */
  readonly cells: readonly [number, number, number];
}

export const BAR_CELLS = 30;
const BAR_GLYPHS = ['▓', '▒', '░'] as const;

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

/** Length of a row: the host step, else what the device span holds. */
export function rowMs(row: BreakdownRow): number | null {
  if (row.stepMs !== null) return row.stepMs;
  if (row.stageMs !== null) return row.stageMs + (row.bubbleMs ?? 0);
  if (row.computingMs === null && row.freeMs === null) return null;
  return (row.computingMs ?? 0) + (row.exposedCommunicationMs ?? 0) + (row.freeMs ?? 0);
}

interface RankRows {
  readonly rows: readonly BreakdownRow[];
  readonly stepMs: number;
  /** Median time a rank waits for others. */
  readonly waitsMs: number;
}

/** Rows with a length, by rank, without the dropped steps. */
function rowsByRank(report: Report): RankRows[] {
  const dropped = new Set(report.job.droppedSteps.map(({ step }) => step));
  const used = report.breakdown.filter((row) => (rowMs(row) ?? 0) > 0 && !(row.step !== null && dropped.has(row.step)));
  return [...Map.groupBy(used, (row) => row.rank).values()].map((rows) => ({
    rows,
    stepMs: medianOf(rows.map((row) => rowMs(row)!)),
    waitsMs: medianOf(rows.map((row) => row.exposedCommunicationMs ?? 0)),
  }));
}

function nearestRow(rows: readonly BreakdownRow[], ms: number): BreakdownRow {
  const distance = (row: BreakdownRow): number => Math.abs(rowMs(row)! - ms);
  return rows.reduce((best, row) => (distance(row) < distance(best) ? row : best));
}

/** One row per rank, its median step; slowest rank first. */
export function representativeRows(report: Report): BreakdownRow[] {
  return rowsByRank(report)
    .sort((a, b) => b.stepMs - a.stepMs || a.waitsMs - b.waitsMs)
    .map(({ rows, stepMs }) => nearestRow(rows, stepMs));
}

/**
 * The row that stands for the step: of the pace-setting rank (slowest median step; among equals the one that waits
 * least for others), the step nearest to the job's step time.
 */
export function paceRow(report: Report): BreakdownRow | null {
  const ranks = rowsByRank(report).filter(({ rows }) => rows.some((row) => row.computingMs !== null));
  const slowest = ranks.reduce((most, { stepMs }) => Math.max(most, stepMs), 0);
  const pace = ranks.filter(({ stepMs }) => stepMs >= slowest * 0.995).sort((a, b) => a.waitsMs - b.waitsMs)[0];
  if (pace === undefined) return null;
  return nearestRow(
    pace.rows.filter((row) => row.computingMs !== null),
    report.job.stepTimeMs ?? pace.stepMs,
  );
}

/** The step of the pace-setting rank as three parts. null: no breakdown was captured. */
export function stepBar(report: Report): StepBar | null {
  const row = paceRow(report);
  if (row === null) return null;
  const computingMs = Math.max(0, row.computingMs ?? 0);
  const exposedMs = Math.max(0, row.exposedCommunicationMs ?? 0);
  // preparing and tail are time without device work too, so the three parts make up the step
  const idleMs = Math.max(0, rowMs(row)! - computingMs - exposedMs);
  const [computing, exposed, idle] = splitCells([computingMs, exposedMs, idleMs], BAR_CELLS);
  return { rank: row.rank, computingMs, exposedMs, idleMs, cells: [computing ?? 0, exposed ?? 0, idle ?? 0] };
}

/** The bar as cells, without fence. */
export function barCells(bar: StepBar): string {
  return bar.cells.map((n, i) => BAR_GLYPHS[i]!.repeat(n)).join('');
}

/** "computing 503 ms ▓ · exposed communication 141 ms ▒ · idle 168 ms ░" */
export function barLegend(bar: StepBar, lang: Lang): string {
  const parts = [
    [word('time.computing', lang), bar.computingMs],
    [word('time.exposed', lang), bar.exposedMs],
    [word('time.idle', lang), bar.idleMs],
  ] as const;
  return parts.map(([name, ms], i) => `${name} ${formatTime(ms)} ${BAR_GLYPHS[i]}`).join(' · ');
}

/** Below this nothing is reported: half a millisecond or twice the noise of the step (contract, "severity"). */
export function reportingFloorMs(job: Job): number {
  return Math.max(0.5, 2 * (job.stepNoiseMs ?? 0));
}

/** How the checks ended. */
export interface CheckCounts {
  readonly passed: number;
  readonly notPossible: number;
  readonly errors: number;
}

export function countChecks(report: Report): CheckCounts {
  const count = (outcome: string): number => report.checked.filter((rule) => rule.outcome === outcome).length;
  return { passed: count('pass'), notPossible: count('notApplicable'), errors: count('error') };
}

/** "36 checks passed, 5 not possible with this profile" */
export function countsSentence(report: Report): string {
  const { lang } = report;
  const { passed, notPossible, errors } = countChecks(report);
  const parts = [word(`counts.passed.${countForm(passed)}`, lang, { n: passed })];
  if (notPossible > 0) parts.push(word('counts.not-possible', lang, { n: notPossible }));
  if (errors > 0) parts.push(word('counts.errors', lang, { n: errors }));
  return parts.join(lang === 'en' ? ', ' : '，');
}

/** Ranks and steps the figures rest on: "Median of 8 steps, 8 of 8 ranks". */
export function basisParts(report: Report): string[] {
  const { job, lang } = report;
  const parts: string[] = [];
  if (job.steps.length > 0) parts.push(word(`footer.steps.${countForm(job.steps.length)}`, lang, { n: job.steps.length }));
  else parts.push(job.stepBasis);
  if (job.worldSize !== null) parts.push(word('footer.ranks.of', lang, { n: job.ranks.length, world: job.worldSize }));
  else if (job.ranks.length > 0) parts.push(word(`footer.ranks.${countForm(job.ranks.length)}`, lang, { n: job.ranks.length }));
  if (job.unrankedFolders > 0) parts.push(word(`footer.unranked.${countForm(job.unrankedFolders)}`, lang, { n: job.unrankedFolders }));
  return parts;
}

/** Where the cause sits when there is no line to point to: ranks, else groups. */
export function ranksPhrase(finding: Finding, job: Job, lang: Lang): string | null {
  const { ranks, groups } = finding;
  if (ranks.length > 0) {
    const everyone = job.worldSize ?? job.ranks.length;
    if (ranks.length > 1 && ranks.length === everyone) return word('ranks.all', lang, { n: ranks.length });
    return word(`ranks.${countForm(ranks.length)}`, lang, { ranks });
  }
  if (groups.length > 0) return word(`groups.${countForm(groups.length)}`, lang, { groups: groups.slice(0, 4) });
  return null;
}

/** Title of the gate sentence and its reasons, as two pieces of prose. null: no gate is configured. */
export function gateSentence(report: Report): { title: string; because: string } | null {
  const { gate, lang } = report;
  if (gate === null) return null;
  const reasons = gate.because.slice(0, 2).map((reason) => clampProse(reason.trim().replace(/[.。]$/, ''), 160));
  if (gate.because.length > 2) reasons.push('…');
  const sentences: string[] = [];
  if (reasons.length > 0) sentences.push(sentence(reasons.join(lang === 'en' ? '; ' : '；'), lang));
  if (gate.outcome === 'neutral') sentences.push(word('gate.not-blocked', lang));
  return { title: word(`gate.${gate.outcome}`, lang), because: sentences.join(lang === 'en' ? ' ' : '') };
}

/** A clause as a sentence: capital letter in English, full stop in both. */
export function sentence(clause: string, lang: Lang): string {
  const text = clause.trim();
  if (text === '') return '';
  const start = lang === 'en' && /^[a-z][a-z]*[ ,]/.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text;
  return stopped(start, lang);
}

/** A clause with a full stop. */
export function stopped(clause: string, lang: Lang): string {
  const text = clause.trim();
  if (text === '' || /[.。!?…：；]$/.test(text)) return text;
  return text + (lang === 'en' ? '.' : '。');
}

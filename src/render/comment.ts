import { withoutTrailing } from '../base/endings.ts';
import { saidIn } from '../base/errors.ts';
import { CONFIG_PATH } from '../config/schema.ts';
import { REGRESSION } from '../model/acknowledgement.ts';
import type { Lang } from '../model/lang.ts';
import type { Acknowledged, Finding, Location, Report } from '../model/report.ts';
import { BODY_BUDGET, fitSections } from './budget.ts';
import { type ComparisonRow, comparisonView } from './comparison.ts';
import { cell, clamp, clampProse, code, fenced, joinMarkdown, link, markdown, plain, prose, SafeMarkdown } from './escape.ts';
import { formatEstimate, formatPercent, formatSaving, formatTime } from './figures.ts';
import {
  barCells,
  barLegend,
  basisParts,
  countChecks,
  countForm,
  countsSentence,
  gateSentence,
  isAcknowledged,
  isCostly,
  isWarning,
  type NumberedFinding,
  numberFindings,
  ranksPhrase,
  reportingFloorMs,
  type Shape,
  sentence,
  shapeOf,
  stepBar,
  stopped,
  totalSentence,
  verdictSentence,
} from './standing.ts';
import { renderSections, type Section } from './templates.ts';
import { baseLine, trendLine } from './trend.ts';
import type { CommentView, NoProfileComment, PreviousFinding, ReportComment, RepositoryLinks, RunningStep } from './views.ts';
import { type Word, word } from './words.ts';

const CAUSES_SHOWN = 3;
/** Rows of the comparison under the step itself, and lines that say what is in them. */
const PARTS_SHOWN = 4;
const POINTS_SHOWN = 6;
const POINT_MAX = 240;
const MISSING_SHOWN = 6;
const FIXED_SHOWN = 10;
/** Characters of a cell, so that three causes fit on one screen; the check run has the whole text. */
const TITLE_MAX = 90;
const CHANGE_MAX = 110;
const PATH_MAX = 24;
/** Characters of evidence per cause; the check run carries all of it. */
const EVIDENCE_MAX = 420;
const ACKNOWLEDGED_SHOWN = 20;
const REASON_MAX = 200;

/** Browsers break a line after the dash of a range; this keeps it whole in a narrow column. */
const WORD_JOINER = '&#8288;';

/** A step that uploads under a name one of the patterns takes. */
function howTo(patterns: readonly string[]): string {
  const own = patterns.map((pattern) => pattern.replace(/\*$/, '')).find((name) => /^[\w.-]+$/.test(name));
  const name = patterns.includes('npu-profile*') ? 'npu-profile' : (own ?? 'npu-profile');
  return `- uses: actions/upload-artifact@v4
  if: always()
  with: { name: ${name}, path: prof/ }`;
}

/** Line 1 of every comment of ours; the way to find it again. */
export function commentMarker(appSlug: string, pr: number): string {
  return `<!-- npu-advisor:v1 app=${token(appSlug)} pr=${pr} -->`;
}

/** What line 2 of a comment says. */
export interface CommentState {
  readonly sha: string;
  readonly report: string | null;
  readonly lang: string | null;
  readonly findings: readonly string[];
}

/** Reads the state line of a comment of ours. null: there is none. */
export function readCommentState(body: string): CommentState | null {
  const line = /^<!-- npu-advisor:state ([^\n]*) -->$/m.exec(body)?.[1];
  if (line === undefined) return null;
  const fields = new Map(line.split(' ').map((field) => [field.slice(0, field.indexOf('=')), field.slice(field.indexOf('=') + 1)]));
  return {
    sha: fields.get('sha') ?? '',
    report: fields.get('report') ?? null,
    lang: fields.get('lang') ?? null,
    findings: (fields.get('findings') ?? '').split(',').filter((id) => id !== ''),
  };
}

/** Keeps a value from ending the HTML comment it stands in. */
export function token(value: string): string {
  return value
    .replace(/[^\w.:-]/g, '')
    .replace(/--+/g, '-')
    .slice(0, 100);
}

export function stateLine(fields: Readonly<Record<string, string | null>>): SafeMarkdown {
  const pairs = Object.entries(fields).filter((pair): pair is [string, string] => pair[1] !== null);
  return new SafeMarkdown(`<!-- npu-advisor:state ${pairs.map(([key, value]) => `${key}=${value}`).join(' ')} -->`);
}

/** First seven digits of a commit. */
export function shortSha(sha: string): string {
  return token(sha).slice(0, 7);
}

export function heading(shape: Shape, text: string, lang: Lang): SafeMarkdown {
  return markdown`${new SafeMarkdown(shape)} ${prose(word('heading.prefix', lang, { x: text }))}`;
}

/** A path that does not tell where on the runner it lay. */
export function publicPath(path: string): string {
  if (!/^([\\/]|[a-z]:[\\/]|~)/i.test(path)) return path;
  return path
    .split(/[\\/]/)
    .filter((part) => part !== '')
    .slice(-2)
    .join('/');
}

/** The end of a long path: a table cell cannot break it. */
function shortPath(path: string): string {
  if (path.length <= PATH_MAX) return path;
  const parts = path.split('/');
  const two = `…/${parts.slice(-2).join('/')}`;
  return parts.length > 2 && two.length <= PATH_MAX ? two : parts.length > 1 ? `…/${parts.at(-1)}` : path;
}

/** Permanent address of a line at a commit; null when the line was not checked against the repository. */
export function blobUrl(links: RepositoryLinks, sha: string, location: Location): string | null {
  if (links.htmlBase === null || location.provenBy === 'profile') return null;
  const path = location.file.toWellFormed().split('/').map(encodeURIComponent).join('/');
  return `${withoutTrailing(links.htmlBase, '/')}/blob/${token(sha)}/${path}#L${location.line}`;
}

/** `file:line`, a link where the line is known to exist; else the ranks. */
function whereCell(finding: Finding, view: ReportComment): SafeMarkdown {
  const location = finding.locations[0];
  if (location !== undefined)
    return link(code(`${shortPath(publicPath(location.file))}:${location.line}`), blobUrl(view.links, view.sha, location));
  const ranks = ranksPhrase(finding, view.report.job, view.lang);
  return ranks === null ? prose(word('cause.none', view.lang)) : cell(ranks);
}

function changeCell(finding: Finding, view: ReportComment): SafeMarkdown {
  const change = finding.recommendations[0];
  const url = view.suggestions[finding.id];
  const title = change === undefined ? null : cell(change.title, CHANGE_MAX);
  const suggestion = url === undefined ? null : link(prose(word('cause.suggestion', view.lang)), url);
  const parts = [title, suggestion].filter((part) => part !== null);
  return parts.length === 0 ? prose(word('cause.none', view.lang)) : joinMarkdown(parts, ' · ');
}

function savesCell(finding: Finding, numbers: ReadonlyMap<string, number>, lang: Lang): SafeMarkdown {
  if (finding.symptomOf !== null) {
    const n = numbers.get(finding.symptomOf);
    if (n !== undefined) return prose(word('cause.part-of', lang, { n }));
  }
  if (finding.saving === null) return prose(word('cause.no-time', lang));
  const { headline, range } = formatSaving(finding.saving.perStepMs, lang);
  if (finding.saving.perStepMs.likely === null) return prose(headline);
  const bold = markdown`**${prose(headline)}**`;
  if (range === null) return bold;
  const unbroken = new SafeMarkdown(range.replace(/(?<=[–～])|(?=～)/g, WORD_JOINER));
  return lang === 'en' ? markdown`${bold} (${unbroken})` : markdown`${bold}（${unbroken}）`;
}

/** "**High** · title": the two severities that want action are bold. */
function causeCell(finding: Finding, lang: Lang): SafeMarkdown {
  const severity = prose(word(`severity.${finding.severity}`, lang));
  const isBold = finding.severity === 'critical' || finding.severity === 'high';
  return markdown`${isBold ? markdown`**${severity}**` : severity} · ${cell(finding.title, TITLE_MAX)}`;
}

function evidenceItem({ number, finding }: NumberedFinding, lang: Lang): SafeMarkdown {
  const head = word('fold.evidence.item', lang, { n: number, confidence: word(`confidence.${finding.confidence}`, lang) });
  const said = [...finding.evidence.slice(0, 3).map(({ text }) => text), ...finding.caveats.slice(0, 1)];
  const text = said.map((item) => sentence(item, lang)).join(lang === 'en' ? ' ' : '');
  return text === '' ? markdown`**${prose(head)}**` : markdown`**${prose(head)}** ${prose(text, EVIDENCE_MAX)}`;
}

/** Rules that could not run, grouped by their reason. */
function notPossibleRows(report: Report): { rules: SafeMarkdown; reason: string }[] {
  const unable = report.checked.filter(({ outcome }) => outcome === 'notApplicable' || outcome === 'error');
  const groups = Map.groupBy(unable, ({ reason }) => reason);
  const separator = report.lang === 'en' ? ', ' : '、';
  return [...groups].slice(0, 12).map(([reason, rules]) => ({
    rules: joinMarkdown(
      rules.map(({ rule }) => code(rule)),
      separator,
    ),
    reason,
  }));
}

function fixedModel(
  previous: readonly PreviousFinding[],
  present: readonly Finding[],
  sha: string,
  lang: Lang,
): { fixed: string[]; fixedTitle: string } {
  const ids = new Set(present.map(({ id }) => id));
  const gone = previous.filter(({ id }) => !ids.has(id));
  const fixed = gone.slice(0, FIXED_SHOWN).map(({ title, saving }) => {
    if (saving === null) return title;
    return word('fold.fixed.was', lang, { title, saving: formatSaving(saving, lang).headline });
  });
  if (gone.length > FIXED_SHOWN) fixed.push('…');
  return { fixed, fixedTitle: word(`fold.fixed.${countForm(gone.length)}`, lang, { sha: shortSha(sha), n: gone.length }) };
}

/** What is accepted, by whom and until when, with its cost then and now. */
function acknowledgedModel(report: Report): { rows: object[]; title: string; note: string } | null {
  const { lang, comparison } = report;
  const cost = (perStepMs: { likely: number | null; ceiling: number } | null): SafeMarkdown => {
    if (perStepMs === null) return prose(word('cause.none', lang));
    return prose(perStepMs.likely === null ? formatSaving(perStepMs, lang).headline : formatEstimate(perStepMs.likely));
  };
  const row = (number: string, title: string, now: SafeMarkdown, given: Acknowledged): object => {
    const who = given.by === null ? prose(word('ack.settings', lang)) : code(clamp(given.by, 60));
    const until = given.until ?? (given.by === null ? null : word('ack.until-grows', lang));
    return {
      number: prose(number),
      cause: markdown`~~${cell(title, TITLE_MAX)}~~`,
      now,
      before: cost(given.saving),
      by: until === null ? who : joinMarkdown([who, prose(until)], lang === 'en' ? ', ' : '，'),
      reason: given.reason === '' ? prose(word('cause.none', lang)) : plain(given.reason, REASON_MAX),
    };
  };
  const known = numberFindings(report.findings).filter(({ finding }) => isAcknowledged(finding));
  const rows = known
    .slice(0, ACKNOWLEDGED_SHOWN)
    .map(({ number, finding }) => row(String(number), finding.title, cost(finding.saving?.perStepMs ?? null), finding.acknowledged!));
  const slower = comparison?.acknowledged;
  if (slower !== undefined && known.every(({ finding }) => finding.rule !== REGRESSION)) {
    const now = comparison!.deltaMs === null ? null : { likely: comparison!.deltaMs, ceiling: comparison!.deltaMs };
    rows.push(row('–', word('ack.regression', lang), cost(now), slower));
  }
  if (rows.length === 0) return null;
  const given = known.map(({ finding }) => finding.acknowledged!).concat(slower ?? []);
  const first = known.find(({ finding }) => finding.acknowledged!.by !== null)?.number ?? REGRESSION;
  const notes = [
    ...(given.some(({ by }) => by !== null) ? [word('ack.rule', lang, { undo: `/npu-advise unack ${first}` })] : []),
    ...(given.some(({ by }) => by === null) ? [word('ack.muted', lang, { file: CONFIG_PATH })] : []),
  ];
  if (known.length > ACKNOWLEDGED_SHOWN)
    rows.push({ ...row('…', '…', cost(null), known[0]!.finding.acknowledged!), by: prose('…'), reason: prose('…') });
  const n = Math.max(known.length, 1);
  return { rows, title: word(`ack.title.${countForm(n)}`, lang, { n }), note: notes.join(lang === 'en' ? ' ' : '') };
}

function quietText(report: Report): string {
  const { lang, job } = report;
  const floorMs = reportingFloorMs(job);
  const floor = formatTime(floorMs);
  if (job.stepTimeMs !== null && report.findings.some(isAcknowledged)) {
    return word('quiet.acknowledged', lang, { step: formatTime(job.stepTimeMs), floor });
  }
  if (job.stepTimeMs === null) return word('quiet.plain', lang, { floor });
  const small = report.findings.filter(isCostly).length;
  if (small > 0) return word(`quiet.small.${countForm(small)}`, lang, { step: formatTime(job.stepTimeMs), n: small });
  return word('quiet.step', lang, { step: formatTime(job.stepTimeMs), floor, share: formatPercent(floorMs / job.stepTimeMs, lang) });
}

function footer(view: ReportComment, isQuiet: boolean): SafeMarkdown {
  const { report, lang } = view;
  const comma = lang === 'en' ? ', ' : '，';
  const basis: SafeMarkdown[] = basisParts(report).map((part) => prose(part, 200));
  basis.push(code(shortSha(view.sha)));
  if (view.baselineMissing) basis.push(prose(word('footer.no-base', lang)));
  const parts: SafeMarkdown[] = [];
  const isCapped =
    report.verdict.outcome === 'incomplete' &&
    report.findings.length > 0 &&
    report.findings.every(({ confidence }) => confidence !== 'high');
  if (isCapped) parts.push(prose(word('footer.capped', lang)));
  parts.push(joinMarkdown(basis, comma));
  // the quiet comment has the counts as the title of its fold-out
  if (!isQuiet) parts.push(prose(countsSentence(report)));
  if (view.fromFork) parts.push(prose(word('footer.fork', lang)));
  if (view.pendingSha !== null)
    parts.push(prose(word('footer.pending', lang, { new: shortSha(view.pendingSha), old: shortSha(view.sha) })));
  if (view.links.report !== null) parts.push(link(prose(word('footer.report', lang)), view.links.report));
  if (view.isServerless !== true) parts.push(prose(word('footer.help', lang)));
  return joinMarkdown(parts, ' · ');
}

interface ComparisonModel {
  readonly text: string | null;
  readonly rows: readonly ComparisonRow[];
  readonly points: readonly string[];
  readonly notes: readonly string[];
  readonly base: string | null;
}

/** A verdict shows what it is made of; without one the sentence says enough. */
function comparisonModel(report: Report): ComparisonModel | null {
  const view = comparisonView(report);
  if (view === null) return null;
  const { verdict } = report.comparison!;
  const isShown = verdict === 'regression' || verdict === 'improvement' || report.comparison!.baseline.kind === 'gpu';
  const [step, ...parts] = view.rows;
  const rest = parts.at(-1);
  const rows =
    !isShown || step === undefined
      ? []
      : [step, ...parts.slice(0, PARTS_SHOWN), ...(rest === undefined || parts.length <= PARTS_SHOWN ? [] : [rest])];
  const short = (text: string): string => clampProse(text, POINT_MAX);
  // the heading has said it, and the step's row has the figures
  const isSaid = verdict === 'regression' && rows.length > 0 && report.verdict.outcome !== 'incomplete';
  return {
    text: isSaid ? null : view.text,
    rows: rows.map((row) => ({ ...row, what: clampProse(row.what, TITLE_MAX) })),
    points: isShown ? view.points.slice(0, POINTS_SHOWN).map(short) : [],
    notes: isShown ? view.notes.slice(0, POINTS_SHOWN).map(short) : [],
    base: baseLine(report),
  };
}

/** The gate's sentence; a measured slow-down may be wanted, and can be accepted where it is read. */
function gateModel(report: Report): ReturnType<typeof gateSentence> {
  const said = gateSentence(report);
  if (said === null || report.gate?.limits?.includes('regression') !== true) return said;
  return { ...said, because: `${said.because}${report.lang === 'en' ? ' ' : ''}${word('gate.intended', report.lang)}` };
}

function reportSections(view: ReportComment): Section[] {
  const { report, lang, sha } = view;
  const numbered = numberFindings(report.findings);
  const numbers = new Map(numbered.map(({ number, finding }) => [finding.id, number]));
  const isQuiet = shapeOf(report) === '✅';
  const shown = isQuiet ? [] : numbered.filter(({ finding }) => isCostly(finding) || isWarning(finding)).slice(0, CAUSES_SHOWN);
  const acked = numbered
    .filter(({ finding }) => isAcknowledged(finding))
    .slice(0, 60)
    .map(({ finding }) => token(finding.id));
  const more = numbered.filter(({ finding }) => !isAcknowledged(finding)).length - shown.length;
  const isIncomplete = report.verdict.outcome === 'incomplete' || report.verdict.outcome === 'no-data';
  const comparison = comparisonModel(report);
  // the table of the comparison holds what the bar would show
  const bar = isIncomplete || (comparison !== null && comparison.rows.length > 0) ? null : stepBar(report);
  const missing = report.missing.slice(0, MISSING_SHOWN);
  const missingMore = report.missing.length - missing.length;
  const { notPossible, errors } = countChecks(report);

  return renderSections('comment-report', {
    lang,
    marker: new SafeMarkdown(commentMarker(view.appSlug, view.pr)),
    state: stateLine({
      sha: token(sha),
      report: token(view.reportHash),
      lang,
      findings: numbered
        .slice(0, 60)
        .map(({ finding }) => token(finding.id))
        .join(','),
      acked: acked.length === 0 ? null : acked.join(','),
      partial: report.verdict.outcome === 'incomplete' ? '1' : null,
    }),
    heading: heading(shapeOf(report), verdictSentence(report, shortSha(sha)), lang),
    isQuiet,
    quietText: quietText(report),
    bar: bar === null ? null : { cells: barCells(bar), legend: barLegend(bar, lang) },
    comparison,
    trend: trendLine(report),
    causes: shown.map(({ number, finding }) => ({
      number: prose(String(number)),
      cause: causeCell(finding, lang),
      saves: savesCell(finding, numbers, lang),
      where: whereCell(finding, view),
      change: changeCell(finding, view),
    })),
    total: isQuiet ? null : totalSentence(report),
    acknowledged: acknowledgedModel(report),
    missing,
    missingMore: missingMore > 0 ? word(`missing.more.${countForm(missingMore)}`, lang, { n: missingMore }) : null,
    openMissing: isIncomplete && missing.length > 0,
    foldedMissing: !isIncomplete && missing.length > 0,
    // the quiet heading has said it
    gate: isQuiet && report.gate?.outcome === 'pass' ? null : gateModel(report),
    // an incomplete profile shows what is missing instead of a fold-out
    evidence: isIncomplete ? [] : shown.map((item) => evidenceItem(item, lang)),
    moreCauses: more > 0 ? word(`more.${countForm(more)}`, lang, { n: more }) : null,
    counts: countsSentence(report),
    notPossible: isQuiet && notPossible + errors > 0 ? notPossibleRows(report) : [],
    ...fixedModel(view.previous, report.findings, sha, lang),
    footer: footer(view, isQuiet && notPossible + errors > 0),
  });
}

function noProfileText(view: NoProfileComment): SafeMarkdown {
  const { reason, lang, workflow, patterns } = view;
  const say = (key: Word, params: Parameters<typeof word>[2] = {}): SafeMarkdown => prose(word(key, lang, params));
  switch (reason.kind) {
    case 'no-match': {
      const uploaded = reason.uploaded.slice(0, 8);
      const names =
        uploaded.length === 0
          ? say('missing-profile.uploaded-none')
          : reason.uploaded.length > uploaded.length
            ? say('missing-profile.uploaded-more', {
                names: uploaded,
                n: lang === 'en' ? reason.uploaded.length - uploaded.length : reason.uploaded.length,
              })
            : say('missing-profile.uploaded', { names: uploaded });
      const gap = new SafeMarkdown(lang === 'en' ? ' ' : '');
      if (workflow === null) return markdown`${say('missing-profile.ended-alone', { patterns })}${gap}${names}`;
      const run = workflow.url === null ? null : link(say('missing-profile.run'), workflow.url);
      const place =
        run === null ? new SafeMarkdown(lang === 'en' ? ' ' : ' ') : lang === 'en' ? markdown` (${run}) ` : markdown`（${run}）`;
      return markdown`${say('missing-profile.workflow')} **${plain(workflow.name)}**${place}${say('missing-profile.ended', { patterns })}${gap}${names}`;
    }
    case 'no-run':
      return reason.deadlineMinutes === null
        ? say('missing-profile.no-run', { patterns })
        : say('missing-profile.no-run-in', { patterns, n: reason.deadlineMinutes });
    case 'expired':
      return reason.expiredAt === null
        ? say('missing-profile.expired', { artifact: reason.artifact })
        : say('missing-profile.expired-at', { artifact: reason.artifact, at: reason.expiredAt.slice(0, 10) });
    case 'corrupt':
      return say('missing-profile.corrupt', { artifact: reason.artifact, detail: stopped(saidIn(reason.detail, lang), lang) });
    case 'too-large':
      return say('missing-profile.too-large', { artifact: reason.artifact, size: reason.bytes, limit: reason.limitBytes });
    case 'no-profile-inside':
      return reason.detail === undefined
        ? say('missing-profile.empty', { artifact: reason.artifact })
        : say('missing-profile.empty-known', { artifact: reason.artifact, detail: stopped(reason.detail, lang) });
  }
}

const NO_PROFILE_HEADING: Readonly<Record<NoProfileComment['reason']['kind'], Word>> = {
  'no-match': 'heading.no-profile',
  'no-run': 'heading.no-profile',
  expired: 'heading.expired',
  corrupt: 'heading.unreadable',
  'too-large': 'heading.unreadable',
  'no-profile-inside': 'heading.no-profile',
};

/** The verdict of a comment that has no report, as prose. */
function stateSentence(view: Exclude<CommentView, ReportComment>): { shape: Shape; text: string } {
  const { lang } = view;
  const sha = shortSha(view.sha);
  switch (view.state) {
    case 'running':
      return { shape: '⏳', text: word(view.phase === 'waiting' ? 'heading.waiting' : 'heading.analysing', lang, { sha }) };
    case 'no-profile':
      return { shape: '❔', text: word(NO_PROFILE_HEADING[view.reason.kind], lang, { sha }) };
    case 'error':
      return { shape: '❔', text: word('heading.error', lang, { sha }) };
    case 'config-invalid':
      return { shape: '❌', text: word('heading.config', lang) };
  }
}

/** The sign and the sentence a comment begins with. */
export function standingOf(view: CommentView): { shape: Shape; text: string } {
  if (view.state !== 'report') return stateSentence(view);
  return { shape: shapeOf(view.report), text: verdictSentence(view.report, shortSha(view.sha)) };
}

/** The figures of a step, for the words about it. */
export function stepParams(step: RunningStep): Readonly<Record<string, number>> {
  if (step.kind === 'download') return { ...step.bytes };
  return step.kind === 'read' ? { ...step.bytes, ranks: step.ranks.done, all: step.ranks.total } : {};
}

function stateParagraphs(view: Exclude<CommentView, ReportComment>): SafeMarkdown[] {
  const { lang } = view;
  const say = (key: Word, params: Parameters<typeof word>[2] = {}): SafeMarkdown => prose(word(key, lang, params));
  const gap = new SafeMarkdown(lang === 'en' ? ' ' : '');
  switch (view.state) {
    case 'running': {
      const { progress } = view;
      if (progress === undefined) return [say(view.phase === 'waiting' ? 'running.waiting' : 'running.analysing')];
      const minutes = Math.max(0, Math.floor((progress.now - progress.since) / 60_000));
      const now = [
        say(`running.${progress.step.kind}`, stepParams(progress.step)),
        say('running.since', { at: new Date(progress.since).toISOString().slice(11, 16), minutes }),
      ];
      const first = progress.step.kind === 'queue' ? [] : [say('running.analysing')];
      return [...first, joinMarkdown(now, String(gap))];
    }
    case 'no-profile': {
      const rest =
        word(`gate.missing.${view.onMissing}.rest`, lang) + word(view.isServerless ? 'gate.missing.again.run' : 'gate.missing.again', lang);
      // the space after the bold title is part of the words
      const tail = rest.startsWith(' ') ? markdown` ${prose(rest)}` : prose(rest);
      return [noProfileText(view), markdown`**${say(`gate.missing.${view.onMissing}`)}**${tail}`];
    }
    case 'error': {
      const parts = [prose(sentence(view.reason, lang), 400)];
      if (view.hint !== null) parts.push(prose(sentence(view.hint, lang), 400));
      parts.push(say(view.isServerless ? 'error.again.run' : 'error.again'));
      const gate = markdown`**${say('gate.neutral')}** ${say('gate.not-blocked')}`;
      const id = view.correlationId === null ? [] : [markdown`<sub>${say('error.id', { id: view.correlationId })}</sub>`];
      return [joinMarkdown(parts, String(gap)), gate, ...id];
    }
    case 'config-invalid':
      return [say('config.what', { file: view.file })];
  }
}

function stateSections(view: Exclude<CommentView, ReportComment>): Section[] {
  const { lang } = view;
  const { shape, text } = stateSentence(view);
  const isMissing = view.state === 'no-profile';
  return renderSections('comment-state', {
    lang,
    marker: new SafeMarkdown(commentMarker(view.appSlug, view.pr)),
    state: stateLine({ sha: token(view.sha), lang, findings: '', missing: isMissing ? '1' : null }),
    heading: heading(shape, text, lang),
    paragraphs: stateParagraphs(view),
    problems:
      view.state === 'config-invalid'
        ? view.problems.slice(0, 20).map(({ line, message }) => ({ line: line === null ? '–' : String(line), message }))
        : [],
    howTo: view.state === 'no-profile' ? fenced(howTo(view.patterns), 'yaml') : null,
  });
}

function cutNote(view: CommentView): (names: readonly string[]) => string {
  return (names) => {
    const sections = names.map((name) => word(`section.${name}` as Word, view.lang)).join(view.lang === 'en' ? ', ' : '、');
    if (view.links.report === null) return String(prose(word('cut.check', view.lang, { sections })));
    const target = link(prose(word('footer.report', view.lang)), view.links.report);
    const stop = new SafeMarkdown(view.lang === 'en' ? '.' : '。');
    return String(markdown`${prose(word('cut.linked', view.lang, { sections }))} ${target}${stop}`);
  };
}

function fit(view: CommentView, sections: readonly Section[], budget: number): string {
  return fitSections(sections, budget, cutNote(view), ['footer']);
}

/** The sticky comment of the pull request: marker, state, verdict, at most three causes, one fold-out, one footer. */
export function renderComment(view: CommentView, budget: number = BODY_BUDGET): string {
  return `${fit(view, view.state === 'report' ? reportSections(view) : stateSections(view), budget)}\n`;
}

/** The comment without its two machine-readable lines: the summary of the check run. */
export function renderSummary(view: CommentView, budget: number = BODY_BUDGET): string {
  return renderComment(view, budget)
    .split('\n')
    .filter((line, i) => !(i < 2 && line.startsWith('<!--')))
    .join('\n');
}

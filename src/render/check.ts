import type { Finding, Gate, Report } from '../model/report.ts';
import { BODY_BUDGET, fitSections } from './budget.ts';
import { blobUrl, publicPath, renderSummary, shortSha, stepParams } from './comment.ts';
import { signedTime } from './comparison.ts';
import { detailSections, evidenceSource, namesSource, type Places } from './details.ts';
import { clamp, cleanLine, prose } from './escape.ts';
import { formatPart, formatPercent, formatSaving, formatTime } from './figures.ts';
import { costOf, countForm, isAcknowledged, isCostly, isWarning, numberFindings, sentence, shapeOf, withAcknowledged } from './standing.ts';
import type {
  AnnotationLevel,
  CheckAnnotation,
  CheckConclusion,
  CheckView,
  CommentView,
  ConfigInvalidComment,
  NoProfileComment,
  RenderedCheck,
  ReportComment,
} from './views.ts';
import { type Word, word } from './words.ts';

const TITLE_MAX = 70;

/** Prose where Markdown is not read: literals lose their backticks. */
export function plainLine(text: string, max: number): string {
  return clamp(cleanLine(text).replaceAll('`', '').trim(), max);
}

function incompleteTitle(report: Report, n: number): string {
  const { job, lang } = report;
  const isPart = job.worldSize !== null && job.ranks.length < job.worldSize;
  const part = isPart ? word('check.incomplete.part', lang, { seen: job.ranks.length, world: job.worldSize }) : '';
  return word(n === 0 ? 'check.incomplete.none' : `check.incomplete.${countForm(n)}`, lang, { n, part });
}

function reportTitle(report: Report): string {
  const { lang, verdict, gate, job } = report;
  if (verdict.outcome === 'no-data') return word('check.no-data', lang);
  const costly = report.findings.filter(isCostly).length;
  const warnings = report.findings.filter(isWarning).length;
  const failed = (x: string): string => {
    const text = withAcknowledged(report, x);
    return gate?.outcome === 'fail' ? word('check.gate-failed', lang, { x: text }) : text;
  };
  const acknowledged = report.findings.filter(isAcknowledged).length;
  if (verdict.outcome === 'incomplete') return failed(incompleteTitle(report, costly + warnings));
  const { comparison } = report;
  if (comparison?.verdict === 'regression' && comparison.deltaMs !== null && comparison.deltaShare !== null) {
    const share = `+${formatPercent(comparison.deltaShare, lang)}`;
    return failed(word('check.slower', lang, { change: signedTime(comparison.deltaMs), share }));
  }
  const cost = shapeOf(report) === '✅' ? null : costOf(report);
  if (cost !== null && acknowledged > 0) {
    const text = word(`check.open.${countForm(costly)}`, lang, { n: costly, acknowledged });
    return gate?.outcome === 'fail' ? word('check.gate-failed', lang, { x: text }) : text;
  }
  if (cost !== null && cost.step !== null) {
    const kind = cost.isLikely ? 'causes' : 'bound';
    const { part } = formatPart(cost.text, cost.step);
    return failed(word(`check.${kind}.${countForm(costly)}`, lang, { n: costly, part, cost: cost.text, step: cost.step }));
  }
  if (cost !== null) {
    const kind = cost.isLikely ? 'cost-only' : 'bound-only';
    return failed(word(`heading.${kind}.${countForm(costly)}`, lang, { n: costly, cost: cost.text }));
  }
  if (warnings > 0) return failed(word(`heading.warnings.${countForm(warnings)}`, lang, { n: warnings }));
  if (job.stepTimeMs === null) return failed(word('check.quiet', lang));
  return failed(word('check.quiet-step', lang, { step: formatTime(job.stepTimeMs) }));
}

const NO_PROFILE_TITLE: Readonly<Record<NoProfileComment['reason']['kind'], Word>> = {
  'no-match': 'check.no-profile',
  'no-run': 'check.no-profile',
  expired: 'check.expired',
  corrupt: 'check.unreadable',
  'too-large': 'check.unreadable',
  'no-profile-inside': 'check.no-profile',
};

function checkTitle(view: CommentView): string {
  const { lang } = view;
  switch (view.state) {
    case 'report':
      return reportTitle(view.report);
    case 'running':
      if (view.progress !== undefined) {
        const { step } = view.progress;
        return word(`check.progress.${step.kind}`, lang, { sha: shortSha(view.sha), ...stepParams(step) });
      }
      return word(view.phase === 'waiting' ? 'check.waiting' : 'check.analysing', lang, { sha: shortSha(view.sha) });
    case 'no-profile':
      return word(NO_PROFILE_TITLE[view.reason.kind], lang);
    case 'error':
      return word('check.error', lang, { reason: view.reason.trim().replace(/[.。]$/, '') });
    case 'config-invalid':
      return word('check.config', lang);
  }
}

const BY_GATE: Readonly<Record<Gate['outcome'], CheckConclusion>> = { pass: 'success', fail: 'failure', neutral: 'neutral' };

function conclusionOf(view: CommentView): CheckConclusion | null {
  switch (view.state) {
    case 'report':
      return view.report.gate === null ? 'neutral' : BY_GATE[view.report.gate.outcome];
    case 'running':
      return null;
    case 'no-profile':
      return view.onMissing;
    case 'error':
      return 'neutral';
    case 'config-invalid':
      return 'action_required';
  }
}

/** The findings the gate failed on: those its reasons name; of a regression the causes that are new or grew; else the first that may count. */
export function blamedFindings(report: Report): ReadonlySet<string> {
  if (report.gate?.outcome !== 'fail') return new Set();
  const because = report.gate.because;
  const counted = numberFindings(report.findings).filter(
    ({ finding }) =>
      finding.saving !== null &&
      finding.saving.perStepMs.likely !== null &&
      finding.confidence !== 'low' &&
      finding.symptomOf === null &&
      finding.maturity !== 'preview' &&
      !isAcknowledged(finding),
  );
  const named = counted.filter(({ finding }) => because.some((reason) => reason.includes(finding.title)));
  if (named.length === 0 && report.comparison?.verdict === 'regression') {
    const grown = new Set(report.comparison.findings.filter((f) => !f.bound && f.deltaMs > 0).map(({ id }) => id));
    return new Set(counted.map(({ finding }) => finding.id).filter((id) => grown.has(id)));
  }
  return new Set((named.length > 0 ? named : counted.slice(0, 1)).map(({ finding }) => finding.id));
}

export function annotationLevel(finding: Finding, provenBy: string, blamed: ReadonlySet<string>): AnnotationLevel {
  if (provenBy !== 'call-stack') return 'notice';
  if (blamed.has(finding.id)) return 'failure';
  const isSevere = finding.severity === 'critical' || finding.severity === 'high';
  const isQuantified = finding.saving === null || finding.saving.perStepMs.likely !== null;
  return isSevere && isQuantified && finding.confidence !== 'low' ? 'warning' : 'notice';
}

function findingAnnotation(
  finding: Finding,
  report: Report,
  blamed: ReadonlySet<string>,
  annotatable: CheckView['annotatable'],
): CheckAnnotation | null {
  const { lang } = report;
  const location = finding.locations.find(
    ({ file, line, provenBy, oneOf }) => provenBy !== 'profile' && oneOf === undefined && annotatable(file, line),
  );
  if (location === undefined) return null;
  const change = finding.recommendations[0];
  const title =
    finding.saving !== null && isCostly(finding)
      ? word('check.annotation', lang, { title: finding.title, saving: formatSaving(finding.saving.perStepMs, lang).headline })
      : finding.title;
  const said = change === undefined ? [finding.title] : [change.title, ...(change.text === change.title ? [] : [change.text])];
  const rows = finding.evidence.slice(0, 40).map((item) => {
    const from = [...(namesSource(item) ? [publicPath(item.source!)] : []), ...evidenceSource(item, lang)];
    if (from.length === 0) return plainLine(item.text, 600);
    return plainLine(lang === 'en' ? `${item.text} (${from.join(', ')})` : `${item.text}（${from.join('，')}）`, 600);
  });
  return {
    path: location.file,
    start_line: location.line,
    end_line: location.line,
    annotation_level: annotationLevel(finding, location.provenBy, blamed),
    title: plainLine(title, 240),
    message:
      plainLine(said.map((item) => sentence(item, lang)).join(lang === 'en' ? ' ' : ''), 1200) ||
      plainLine(finding.title, 240) ||
      finding.rule,
    raw_details: clamp(rows.join('\n'), 16_000),
  };
}

/** Columns of an annotation on one line; GitHub takes both or none. */
export function columns(column: number | null, endColumn: number | null): { start_column?: number; end_column?: number } {
  return column === null || endColumn === null ? {} : { start_column: column, end_column: endColumn };
}

function configAnnotations(view: ConfigInvalidComment, annotatable: CheckView['annotatable']): CheckAnnotation[] {
  const title = plainLine(word('check.config', view.lang), 240);
  return view.problems.slice(0, 50).flatMap(({ line, column = null, endColumn = null, message }) => {
    if (line === null || !annotatable(view.file, line)) return [];
    return [
      {
        path: view.file,
        start_line: line,
        end_line: line,
        ...columns(column, endColumn),
        annotation_level: 'failure' as const,
        title,
        message: plainLine(message, 1200),
        raw_details: '',
      },
    ];
  });
}

function annotationsOf(view: CommentView, annotatable: CheckView['annotatable']): CheckAnnotation[] {
  if (view.state === 'config-invalid') return configAnnotations(view, annotatable);
  if (view.state !== 'report') return [];
  const { report } = view;
  const blamed = blamedFindings(report);
  return numberFindings(report.findings)
    .filter(({ finding }) => finding.symptomOf === null && !isAcknowledged(finding))
    .map(({ finding }) => findingAnnotation(finding, report, blamed, annotatable))
    .filter((annotation) => annotation !== null);
}

function detailText(view: ReportComment, budget: number): string {
  const places: Places = { path: publicPath, url: (location) => blobUrl(view.links, view.sha, location) };
  const note = (names: readonly string[]): string => {
    const sections = names.map((name) => word(`section.${name}` as Word, view.lang)).join(view.lang === 'en' ? ', ' : '、');
    return String(prose(word('cut.report', view.lang, { sections })));
  };
  return fitSections(detailSections(view.report, places), budget, note, ['patch', 'checks', 'breakdown', 'job']);
}

/** The check run: one conclusion, a title of at most 70 characters, the comment as summary, the details as text. */
export function renderCheck({ comment, annotatable }: CheckView, budget: number = BODY_BUDGET): RenderedCheck {
  const conclusion = conclusionOf(comment);
  return {
    status: conclusion === null ? 'in_progress' : 'completed',
    conclusion,
    title: plainLine(checkTitle(comment), TITLE_MAX),
    summary: renderSummary(comment),
    text: comment.state === 'report' ? detailText(comment, budget) : '',
    annotations: annotationsOf(comment, annotatable),
  };
}

import { createHash } from 'node:crypto';
import { articleFor, formatEstimate, formatTime } from '../base/figures.ts';
import { withoutHome } from '../base/home-folder.ts';
import { formatShare, say } from '../base/phrase.ts';
import { median } from '../base/statistics.ts';
import type { JobFacts } from '../facts/job/index.ts';
import { lateness } from '../facts/job/lateness.ts';
import { medianOfUsed } from '../facts/job/per-step.ts';
import type { CaptureFiles, Frame, InputRecord } from '../model/capture.ts';
import type { StepFacts } from '../model/facts.ts';
import type { L10n, Lang, Message } from '../model/lang.ts';
import type { BreakdownRow, CheckedRule, Confidence, Finding, Location, Recommendation, Report, Severity } from '../model/report.ts';
import type { Detection, RawFinding, Rule } from '../model/rule.ts';
import { arrivalsView } from './arrivals-view.ts';
import { causeOfRegression, comparisonSection, type FindingChange, findingChanges } from './comparison.ts';
import { gapHistogram, idleAccount } from './idle-account.ts';
import { inputView } from './input-view.ts';
import { kernelsView } from './kernels-view.ts';
import { silence, tableNotes } from './limits-of-data.ts';
import { linksView } from './links-view.ts';
import { lossView } from './loss-view.ts';
import { memoryView } from './memory-view.ts';
import { type Estimate, estimate, estimateTogether, explainedSkew } from './savings.ts';
import { segmentNotes, spanHolds } from './segment-notes.ts';
import { smallOpsView } from './small-ops-view.ts';
import { transfersView } from './transfers-view.ts';

/** Shares of the step from which a finding has a severity. */
const CRITICAL = 0.15;
const HIGH = 0.05;
const MEDIUM = 0.02;
const REPORTING_FLOOR_MS = 0.5;

export interface RuleOutcome {
  readonly rule: Rule;
  readonly detection: Detection | { readonly outcome: 'error'; readonly reason: string };
}

export interface ReportInput {
  readonly job: JobFacts;
  readonly outcomes: readonly RuleOutcome[];
  readonly inputs: readonly InputRecord[];
  readonly notes: readonly Message[];
  readonly lang: Lang;
  readonly version: string;
  /** Advice for a finding; the engine joins remedies and source. */
  readonly advise: (finding: Finding, raw: RawFinding) => Recommendation[];
  /** What the same rules find in the baseline. */
  readonly baseline?: Report | null;
}

const ORDER: Record<Severity, number> = { critical: 0, high: 1, medium: 2, info: 3 };

function headline(e: Estimate): number {
  return e.likely ?? e.ceiling;
}

function severityOf(e: Estimate, step: number, confidence: Confidence): Severity {
  const share = headline(e) / step;
  let severity: Severity = share >= CRITICAL ? 'critical' : share >= HIGH ? 'high' : share >= MEDIUM ? 'medium' : 'info';
  if ((e.basis === 'bound' || confidence === 'low') && ORDER[severity] < ORDER.medium) severity = 'medium';
  return severity;
}

/** Rounds to what the reader can use; keeps tiny values distinguishable from zero. */
function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

function orNull(value: number): number | null {
  return Number.isFinite(value) ? round(value) : null;
}

function fingerprint(rule: string, hotspot: string): string {
  return `${rule}-${createHash('sha256')
    .update(`${rule}\n${withoutWorkspace(hotspot)}`)
    .digest('hex')
    .slice(0, 8)}`;
}

/** The same file has one name on every runner: neither users nor numbered workspaces of runners are part of it. */
function withoutWorkspace(place: string): string {
  return place.replace(/(?<![^\s:])[^\s:]*\/_work\/[^/:]+\/[^/:]+\//g, '').replace(/\/(?:home|Users)\/[^/:]+(?=\/)|\/root(?=\/)/g, '~');
}

function sourceOf(job: JobFacts, rank: number | null, file: string | null): string | null {
  if (file === null) return null;
  if (rank === null) return file;
  const name = actualName(job.ranks[rank]?.files, file);
  // `profiler_info.json` stands for `profiler_info_3.json`, too. A file that was not uploaded is no source.
  const leaf = (path: string): string => path.slice(path.lastIndexOf('/') + 1).replace(/_\d+\.json$/, '.json');
  return job.ranks[rank]?.inputs.find((i) => leaf(i.path) === name)?.path ?? null;
}

/** Rules name files of the text export; a database export holds the same figures in its own files. */
function actualName(files: CaptureFiles | undefined, file: string): string {
  switch (file) {
    case 'trace_view.json':
      return files?.trace ?? file;
    case 'kernel_details.csv':
      return files?.kernels ?? file;
    case 'step_trace_time.csv':
      return files?.steps ?? file;
    case 'communication.json':
      return files?.collectives ?? file;
    default:
      return file;
  }
}

interface Draft {
  finding: Finding;
  raw: RawFinding;
  ms: number;
  resolved: boolean;
  /** What the step falls by without all causes that hide each other, when this is one of them, ms. */
  jointMs?: number;
}

/** A cause that saves nothing while another one takes as long at the same time. */
interface Hidden {
  readonly rule: Rule;
  readonly raw: RawFinding;
  /** What the step would change by without it. */
  readonly ms: number;
}

/** Puts the report together: savings, severities, symptoms under their causes, totals, verdict, texts in one language. */
export function buildReport(input: ReportInput): Report {
  const { job, lang } = input;
  const step = job.steps.stepTimeMs;
  const noise = job.steps.noiseMs ?? 0;
  const floor = Math.max(REPORTING_FLOOR_MS, 2 * noise);
  const checked: CheckedRule[] = [];
  const drafts: Draft[] = [];
  const hidden: Hidden[] = [];

  for (const { rule, detection } of input.outcomes) {
    if (detection.outcome === 'error') {
      checked.push({ rule: rule.id, outcome: 'error', reason: detection.reason });
      continue;
    }
    if (detection.outcome !== 'findings') {
      checked.push({ rule: rule.id, outcome: detection.outcome, reason: say(detection.reason, lang) });
      continue;
    }
    const kept: Draft[] = [];
    let quiet: string | null = null;
    for (const raw of detection.findings) {
      const e = estimate(job, raw);
      const costs = e !== null && !raw.information;
      if (costs && step !== null && headline(e) < floor) {
        // Only time that is there and would not be saved is hidden.
        const isHidden = headline(e) < 0.5 * (raw.boundMs ?? 0);
        quiet = say(
          {
            text: {
              en: `removing it would change the step by {ms:ms}, below the reporting floor of {floor:ms}${isHidden ? ': the time is hidden behind other work' : ''}`,
              zh: `消除后迭代只变化 {ms:ms}，低于报告下限 {floor:ms}${isHidden ? '：该时间被其他工作掩盖' : ''}`,
            },
            params: { ms: headline(e), floor },
          },
          lang,
        );
        hidden.push({ rule, raw, ms: headline(e) });
        continue;
      }
      kept.push(draft(input, rule, raw, e));
    }
    drafts.push(...kept);
    checked.push(
      kept.length > 0
        ? { rule: rule.id, outcome: 'finding', reason: kept.map((d) => d.finding.title).join('; ') }
        : { rule: rule.id, outcome: 'pass', reason: quiet ?? '' },
    );
  }

  for (const masked of maskedCauses(input, drafts, hidden, floor)) {
    drafts.push(masked);
    const at = checked.findIndex((c) => c.rule === masked.finding.rule);
    const reasons = checked[at]!.outcome === 'finding' ? [checked[at]!.reason] : [];
    checked[at] = { rule: masked.finding.rule, outcome: 'finding', reason: [...reasons, masked.finding.title].join('; ') };
  }
  resolveWaiting(job, drafts);
  resolveExplained(drafts);
  resolveSymptoms(job, drafts, step);
  const changes = input.baseline == null || step === null ? [] : changesOf(drafts, input.baseline, step);
  resolveRegression(drafts, changes);
  const kept = drafts.filter((d) => d.resolved || d.finding.saving === null || d.raw.information || d.ms >= floor);
  kept.sort((a, b) => ORDER[a.finding.severity] - ORDER[b.finding.severity] || b.ms - a.ms || (a.finding.id < b.finding.id ? -1 : 1));
  for (const d of kept) d.finding.recommendations = input.advise(d.finding, d.raw);
  const findings = kept.map((d) => d.finding);

  const causes = kept.filter((d) => d.finding.saving !== null && !d.raw.information && d.finding.symptomOf === null);
  const replayed = causes.some((d) => d.finding.saving!.perStepMs.likely !== null)
    ? estimateTogether(
        job,
        causes.map((d) => d.raw),
      )
    : null;
  const cap = step ?? Number.POSITIVE_INFINITY;
  // A regression that stands for itself is the effect of some of the causes: it bounds them from below and does not add to them.
  // Causes that hide each other count once, together.
  const ceilingOf = (list: readonly Draft[]): number =>
    list.reduce((total, d) => total + (d.jointMs === undefined ? d.finding.saving!.perStepMs.ceiling : 0), 0) +
    Math.max(0, ...list.map((d) => d.jointMs ?? 0));
  const measured = causes.filter((d) => d.raw.measured !== undefined);
  const together = replayed ?? (measured.length > 0 ? 0 : null);
  const ceiling = Math.min(cap, Math.max(ceilingOf(causes.filter((d) => d.raw.measured === undefined)), ceilingOf(measured)));
  const parts = causes.map((d) => d.finding.saving!.perStepMs.likely ?? 0);
  // Two causes that hide each other save more together than their sum; what is claimed stays with what each one is shown to save.
  const sum = parts.reduce((a, b) => a + b, 0);
  const likely = together === null ? null : round(Math.min(cap, sum, Math.max(together, ...parts)));
  const idle = job.ranks[job.steps.pace]?.idle ?? null;
  const unexplained =
    idle === null
      ? null
      : medianOfUsed(
          job,
          idle.steps.map((s) => s.unexplained / 1e6),
        );

  const report: Report = {
    schema: 'npu-advisor.report/1',
    tool: { name: 'npu-advisor', version: input.version },
    lang,
    verdict: { outcome: 'quiet', text: '' },
    job: jobSection(job, lang),
    breakdown: breakdownRows(job),
    findings,
    checked,
    totals: {
      claimedMsPerStep: { likely, ceiling: round(Math.max(ceiling, likely ?? 0)) },
      unexplainedIdleMs: unexplained === null || Number.isNaN(unexplained) ? null : round(unexplained),
    },
    comparison: job.comparison === null ? null : comparisonSection(job.comparison, changes, lang),
    gate: null,
    inputs: input.inputs.map((i) => ({
      path: i.path,
      kind: i.kind,
      bytes: i.bytes,
      status: i.status,
      note: i.note === null ? '' : say(i.note, lang),
    })),
    notes: [...whereTheStepGoes(job, lang), ...[...segmentNotes(job.ranks), ...tableNotes(job), ...input.notes].map((n) => say(n, lang))],
    missing: missingSection(job, lang),
    views: {
      ...views(job, findings),
      losses: lossView(
        job,
        kept.filter((d) => d.finding.saving?.perStepMs.likely != null).map((d) => ({ id: d.finding.id, raw: d.raw })),
      ),
      nearMisses: nearMisses(job, hidden, kept, floor, lang),
    },
  };
  report.verdict = verdictOf(report, causes.length, job);
  return report;
}

const MOST_MISSES = 5;

/** What rules saw and the reporting floor kept back, largest first: so that "quiet" can be checked. */
function nearMisses(job: JobFacts, hidden: readonly Hidden[], kept: readonly Draft[], floor: number, lang: Lang): Report['views'][string] {
  return hidden
    .filter(({ raw }) => !kept.some((d) => d.raw === raw))
    .map(({ rule, raw, ms }) => ({
      rule: rule.id,
      title: say(raw.title, lang),
      ranks: raw.ranks.map((r) => job.ranks[r]!.rank),
      ms: round(ms),
      floorMs: round(floor),
    }))
    .filter(({ ms }) => ms > 0)
    .sort((a, b) => b.ms - a.ms || (a.rule < b.rule ? -1 : 1))
    .slice(0, MOST_MISSES);
}

/** A smaller gain is not worth the doubt of two causes that only count together, share of the step. */
const MIN_JOINT_SHARE = 0.02;

/**
 * Causes that hide each other: each alone changes nothing, because the step then waits for the other. What they save together is only known
 * as a whole, so each is told as a bound.
 */
function maskedCauses(input: ReportInput, drafts: readonly Draft[], hidden: readonly Hidden[], floor: number): Draft[] {
  const { job, lang } = input;
  const step = job.steps.stepTimeMs;
  const known = drafts.filter((d) => d.raw.removal !== null && !d.raw.information && d.raw.ceilingOnly !== true).map((d) => d.raw);
  const candidates = hidden.filter(
    ({ raw }) => raw.removal !== null && !raw.information && raw.ceilingOnly !== true && raw.symptomOf === null,
  );
  if (step === null || job.replay === null || candidates.length === 0 || known.length + candidates.length < 2) return [];
  const together = (raws: readonly RawFinding[]): number => estimateTogether(job, raws) ?? 0;
  const all = [...known, ...candidates.map(({ raw }) => raw)];
  const whole = together(all);
  const limit = Math.max(floor, MIN_JOINT_SHARE * step);
  const claimed = together(known);
  const gain = whole - claimed;
  // Behind a cause that saves more by itself the next profile will show the rest; here most would stay untold.
  if (!(gain >= Math.max(limit, claimed))) return [];
  const needed = candidates
    .map((c) => ({ ...c, ms: whole - together(all.filter((raw) => raw !== c.raw)) }))
    .filter(({ ms }) => ms >= limit);
  return needed.map(({ rule, raw, ms }) => {
    const others = needed.length > 1 ? needed.filter((o) => o.raw !== raw).map((o) => o.raw) : known;
    const made = draft(input, rule, raw, { basis: 'bound', floor: 0, likely: null, ceiling: Math.min(step, ms) });
    made.finding.maskedBy = drafts.filter((d) => others.includes(d.raw)).map((d) => d.finding.id);
    made.finding.maskedBy.push(...needed.filter((o) => others.includes(o.raw)).map((o) => fingerprint(o.rule.id, o.raw.hotspot)));
    made.finding.caveats.push(
      say(
        {
          text: {
            en: 'alone it saves nothing, because another cause takes as long at the same time ({others:code}); without all of them the step falls by {ms:ms}',
            zh: '单独消除没有收益，因为另有原因同时占用同样长的时间（{others:code}）；全部消除后迭代缩短 {ms:ms}',
          },
          params: {
            others: [
              ...new Set(
                [...drafts, ...needed].flatMap((o) => (others.includes(o.raw) ? ['finding' in o ? o.finding.rule : o.rule.id] : [])),
              ),
            ],
            ms: whole,
          },
        },
        lang,
      ),
    );
    made.jointMs = gain;
    return made;
  });
}

function draft(input: ReportInput, rule: Rule, raw: RawFinding, e: Estimate | null): Draft {
  const { job, lang } = input;
  const step = job.steps.stepTimeMs;
  const ranks = raw.ranks.map((r) => job.ranks[r]!.rank).filter((r): r is number => r !== null);
  const ms = e === null || raw.information ? 0 : headline(e);
  const damage = damageOf(job, raw);
  const finding: Finding = {
    id: fingerprint(rule.id, raw.hotspot),
    rule: rule.id,
    category: rule.category,
    title: say(raw.title, lang),
    severity: severityFor(raw, e, step),
    confidence: damage.length > 0 && raw.confidence === 'high' ? 'medium' : raw.confidence,
    ranks: [...new Set(ranks)].sort((a, b) => a - b),
    steps: [...raw.steps],
    groups: [...raw.groups],
    saving: savingOf(raw, e, step, lang),
    symptomOf: raw.symptomOf,
    evidence: raw.evidence.map((v) => ({
      text: say(v.message, lang),
      source: sourceOf(job, v.rank, v.file),
      ...(v.rank === null ? {} : { rank: job.ranks[v.rank]!.rank }),
      ...(v.step === undefined ? {} : { step: v.step }),
      ...(Number.isFinite(v.start) ? { startUs: Math.round(v.start!) / 1000 } : {}),
      ...(Number.isFinite(v.duration) ? { durationUs: Math.round(v.duration!) / 1000 } : {}),
    })),
    caveats: [...raw.caveats, ...absentCaveat(job, rule, raw, e), ...damage].map((c) => say(c, lang)),
    locations: raw.frames.filter((f) => f.isInstalled !== true).map(toldLocation),
    recommendations: [],
    ...(rule.maturity === 'preview' ? { maturity: 'preview' as const } : {}),
  };
  return { finding, raw, ms, resolved: true };
}

function severityFor(raw: RawFinding, e: Estimate | null, step: number | null): Severity {
  if (raw.information) return 'info';
  if (raw.boundMs === null) return raw.severity === 'high' && raw.confidence === 'low' ? 'medium' : (raw.severity ?? 'info');
  return e === null || step === null ? 'info' : severityOf(e, step, raw.confidence);
}

/** Where a frame says it is, before anything was compared with the repository. */
export function toldLocation({ file, line, func }: Frame): Location {
  return { file: withoutHome(file), line: Math.max(1, line), symbol: func, provenBy: 'profile' };
}

const MAX_DAMAGE = 3;

/** Files that end too early, of the ranks a finding names or shows; a finding on no rank in particular rests on all of them. */
function damageOf(job: JobFacts, raw: RawFinding): Message[] {
  const shown = raw.evidence.map((e) => e.rank).filter((r) => r !== null);
  const on = raw.ranks.length > 0 ? [...new Set([...raw.ranks, ...shown])].map((r) => job.ranks[r]!) : job.ranks;
  return on.flatMap((r) => r.damage).slice(0, MAX_DAMAGE);
}

/** With ranks missing, time gained here may only be waited out at the next collective. */
function absentCaveat(job: JobFacts, rule: Rule, raw: RawFinding, e: Estimate | null): Message[] {
  if (e === null || e.basis !== 'bound' || raw.information || rule.category === 'communication' || job.noReplay !== 'ranks-missing')
    return [];
  if (!(job.longestAbsentWaitMs > 0)) {
    // One rank alone does not show how long it waits.
    const text = {
      en: 'ranks that were not uploaded may set the pace, and then removing this saves nothing',
      zh: '迭代可能由未上传的卡决定，此时消除该原因没有收益',
    };
    return job.ranks.every((r) => r.collectives.length > 0) ? [{ text }] : [];
  }
  return [
    {
      text: {
        en: 'the ranks here then wait at least {ms:ms} for ranks that were not uploaded, so removing this may save nothing',
        zh: '这些卡随后至少要等未上传的卡 {ms:ms}，消除该原因可能没有收益',
      },
      params: { ms: job.longestAbsentWaitMs },
    },
  ];
}

function savingOf(raw: RawFinding, e: Estimate | null, step: number | null, lang: Lang): Finding['saving'] {
  if (e === null) return null;
  const zero = raw.information;
  const shown = zero ? 0 : headline(e);
  const modelled: L10n = {
    en: 'replay of the captured steps without this cause, all ranks together',
    zh: '去掉该原因后重放采集到的迭代（所有卡一起）',
  };
  return {
    basis: zero ? 'bound' : e.basis,
    perStepMs: {
      floor: zero ? 0 : round(e.floor),
      likely: zero ? 0 : e.likely === null ? null : round(e.likely),
      ceiling: zero ? 0 : round(e.ceiling),
    },
    shareOfStep: step === null ? 0 : Math.min(1, shown / step),
    method: e.basis === 'modelled' && !zero ? modelled[lang] : say(raw.boundMethod, lang),
  };
}

/** Most of the skew must go before waiting counts as the effect of other causes. */
const EXPLAINED = 0.5;

function resolveWaiting(job: JobFacts, drafts: Draft[]): void {
  for (const d of drafts) {
    if (d.raw.explainedBySkew !== true) continue;
    const causes = drafts
      .filter((o) => o !== d && o.raw.symptomOf === null && !o.raw.information && o.raw.removal !== null)
      .sort((a, b) => b.ms - a.ms);
    if (
      causes.length === 0 ||
      explainedSkew(
        job,
        causes.map((c) => c.raw),
      ) < EXPLAINED
    )
      continue;
    d.raw = { ...d.raw, information: true, removal: null };
    d.ms = 0;
    d.finding.symptomOf = causes[0]!.finding.id;
    d.finding.severity = 'info';
    d.finding.saving = { ...d.finding.saving!, basis: 'bound', perStepMs: { floor: 0, likely: 0, ceiling: 0 }, shareOfStep: 0 };
  }
}

/** Device tasks that go or change with a finding, by rank. */
function tasksOf({ removal }: RawFinding): Map<number, Set<number>> {
  const out = new Map<number, Set<number>>();
  for (const [rank, { nodes, durations }] of removal?.likely ?? []) {
    const tasks = new Set([...(nodes ?? []), ...(durations?.keys() ?? [])]);
    if (tasks.size > 0) out.set(rank, tasks);
  }
  return out;
}

/** Part of one finding's device tasks that are another's, too, 0..1; null when one of them is not about tasks. */
function sharedTasks(of: RawFinding, other: RawFinding): number | null {
  const own = tasksOf(of);
  const theirs = tasksOf(other);
  if (own.size === 0 || theirs.size === 0) return null;
  let all = 0;
  let shared = 0;
  for (const [rank, tasks] of own) {
    all += tasks.size;
    for (const task of tasks) if (theirs.get(rank)?.has(task)) shared++;
  }
  return shared / all;
}

/** Findings about the same tasks share most of them; others meet on a rank. */
function isOwnedBy(d: Draft, o: Draft): boolean {
  if (!(d.raw.explainedBy ?? []).includes(o.finding.rule)) return false;
  const shared = sharedTasks(d.raw, o.raw);
  if (shared !== null) return shared >= EXPLAINED;
  return o.raw.ranks.length === 0 || d.raw.ranks.length === 0 || o.raw.ranks.some((r) => d.raw.ranks.includes(r));
}

/** A cause that two rules see is told once, by the rule that owns it. Where each may own the other, the first one does. */
function resolveExplained(drafts: Draft[]): void {
  for (const [at, d] of drafts.entries()) {
    const owner = drafts.find(
      (o, i) => o !== d && o.raw.symptomOf === null && !o.raw.information && isOwnedBy(d, o) && (i < at || !isOwnedBy(o, d)),
    );
    if (owner === undefined) continue;
    markExplained(d, owner.finding.id);
  }
}

/** Causes against those of the baseline. */
function changesOf(drafts: readonly Draft[], baseline: Report, step: number): FindingChange[] {
  const own = drafts.filter((d) => d.finding.saving !== null && !d.raw.information).map((d) => d.finding);
  return findingChanges(own, baseline.findings, step);
}

/** A regression that new or grown causes explain is their effect, not one more cause. */
function resolveRegression(drafts: Draft[], changes: readonly FindingChange[]): void {
  for (const d of drafts) {
    if (d.raw.measured === undefined) continue;
    const cause = causeOfRegression(changes, d.raw.measured.likely);
    if (cause !== null) markExplained(d, cause);
  }
}

/** The finding is evidence of another one and claims nothing itself. */
function markExplained(d: Draft, cause: string): void {
  d.raw = { ...d.raw, information: true, removal: null, symptomOf: null };
  d.ms = 0;
  d.finding.symptomOf = cause;
  d.finding.severity = 'info';
  if (d.finding.saving !== null)
    d.finding.saving = { ...d.finding.saving, basis: 'bound', perStepMs: { floor: 0, likely: 0, ceiling: 0 }, shareOfStep: 0 };
}

/**
 * Of the causes without which the ranks would not wait for each other, the one that takes most of the waiting away; null when all
 * together leave most of it. Without replay only a cause on a rank that comes late can be meant.
 */
function causeOfWaiting(job: JobFacts, causes: readonly Draft[]): Draft | null {
  if (job.replay === null) {
    const late = lateness(job).culprits.map((c) => c.rank);
    return causes.find((o) => o.raw.ranks.some((r) => late.includes(r))) ?? null;
  }
  const without = (of: readonly Draft[]): number =>
    explainedSkew(
      job,
      of.map((o) => o.raw),
    );
  if (without(causes) < EXPLAINED) return null;
  return causes.map((cause) => ({ cause, gone: without([cause]) })).reduce((a, b) => (b.gone > a.gone ? b : a)).cause;
}

/** A symptom points to the finding that explains it; without one it stands for itself, as a bound. */
function resolveSymptoms(job: JobFacts, drafts: Draft[], step: number | null): void {
  for (const d of drafts) {
    const target = d.raw.symptomOf;
    if (target === null) continue;
    const causes = drafts.filter((o) => o !== d && o.raw.symptomOf === null && !o.raw.information && o.finding.saving !== null);
    const cause =
      causes.find((o) => o.finding.rule === target) ??
      causeOfWaiting(
        job,
        causes.filter((o) => o.finding.category !== 'capture' && o.finding.category !== 'comparison').sort((a, b) => b.ms - a.ms),
      );
    if (cause !== null) {
      d.finding.symptomOf = cause.finding.id;
      continue;
    }
    d.finding.symptomOf = null;
    const bound = Math.min(step ?? Number.POSITIVE_INFINITY, d.raw.boundMs ?? 0);
    if (bound <= 0 || step === null) continue;
    d.ms = bound;
    d.resolved = false;
    d.raw = { ...d.raw, information: false };
    d.finding.saving = {
      ...d.finding.saving!,
      basis: 'bound',
      perStepMs: { floor: 0, likely: null, ceiling: round(bound) },
      shareOfStep: Math.min(1, bound / step),
    };
    d.finding.severity = bound / step >= MEDIUM ? 'medium' : 'info';
  }
}

function jobSection(job: JobFacts, lang: Lang): Report['job'] {
  const { steps, world, ranks, batch } = job;
  const basis: Record<typeof steps.basis, L10n> = {
    distance: {
      en: 'distance between consecutive ProfilerStep starts, median of the steps used, slowest rank',
      zh: '相邻 ProfilerStep 起点的间隔，取所用迭代的中位数，最慢的卡',
    },
    'host-step': { en: 'duration of the one captured ProfilerStep, slowest rank', zh: '唯一采集到的 ProfilerStep 的时长，最慢的卡' },
    'device-span': { en: 'device span (Stage + Bubble): no step marks were read', zh: '设备侧跨度（Stage + 空泡）：没有读到迭代标记' },
    none: { en: 'unknown: neither step marks nor step times were found', zh: '未知：没有迭代标记，也没有迭代耗时' },
  };
  const worldBasis: Record<'metadata' | 'groups' | 'links', L10n> = {
    metadata: { en: 'recorded in profiler_metadata.json', zh: '记录于 profiler_metadata.json' },
    groups: { en: 'from the communication groups', zh: '由通信域得出' },
    links: { en: 'from the link ids in communication_matrix.json only', zh: '仅由 communication_matrix.json 的链路编号得出' },
  };
  const why: Record<'first' | 'slow' | 'cut', L10n> = {
    cut: { en: 'last step, cut off: the profiler was stopped while it recorded', zh: '最后一个迭代，不完整：profiler 在采集中被停止' },
    first: { en: 'first captured step, may hold warm-up', zh: '采集的首个迭代，可能包含预热' },
    slow: { en: 'first step, far slower than the others', zh: '首个迭代，明显慢于其余迭代' },
  };
  const holds = steps.basis === 'device-span' ? spanHolds(ranks) : null;
  // Step marks without a time between them are no basis of a time that is not known.
  const own: L10n =
    steps.stepTimeMs === null && steps.basis !== 'none'
      ? { en: 'unknown: no step time was found', zh: '未知：没有迭代耗时' }
      : basis[steps.basis];
  const pick = <T>(value: (r: (typeof ranks)[number]) => T | null): T | null => {
    for (const r of ranks) {
      const v = value(r);
      if (v !== null) return v;
    }
    return null;
  };
  return {
    ranks: [...world.present],
    unrankedFolders: ranks.filter((r) => r.rank === null).length,
    worldSize: world.size,
    worldSizeBasis: world.basis === null ? null : worldBasis[world.basis][lang],
    // Folders that do not say their rank may be any of them.
    missingRanks: ranks.some((r) => r.rank === null) ? [] : world.missing.slice(0, 10_000),
    steps: [...steps.used],
    droppedSteps: steps.dropped.map((d) => ({ step: d.step, why: why[d.why][lang] })),
    stepTimeMs: steps.stepTimeMs === null ? null : round(steps.stepTimeMs),
    stepBasis: holds === null ? own[lang] : `${own[lang]}${lang === 'en' ? '; ' : '；'}${holds[lang]}`,
    stepNoiseMs: steps.noiseMs === null ? null : round(steps.noiseMs),
    framework: ranks.some((r) => r.settings.framework === 'MindSpore') ? 'MindSpore' : pick((r) => r.settings.framework ?? null),
    samplesPerStep: batch.samplesPerStep,
    ...throughput(job),
    versions: { cann: pick((r) => r.settings.cann), torchNpu: pick((r) => r.settings.torchNpu), torch: pick((r) => r.settings.torch) },
    device: pick((r) => r.settings.soc),
    level: pick((r) => r.settings.level),
  };
}

function throughput(job: JobFacts): Pick<Report['job'], 'samplesPerSecond' | 'tokensPerSecond'> {
  const { samplesPerStep, tokensPerSample } = job.batch;
  // A device span is no step: how many samples lie in it is not known.
  const step = job.steps.basis === 'device-span' ? null : job.steps.stepTimeMs;
  if (samplesPerStep === null || step === null) return { samplesPerSecond: null, tokensPerSecond: null };
  const perSecond = (samplesPerStep * 1000) / step;
  return { samplesPerSecond: round(perSecond), tokensPerSecond: tokensPerSample === null ? null : round(perSecond * tokensPerSample) };
}

function breakdownRows(job: JobFacts): BreakdownRow[] {
  const rows: BreakdownRow[] = [];
  for (const rank of job.ranks) {
    for (const s of rank.steps) {
      const b = s.breakdown;
      rows.push({
        rank: rank.rank,
        step: s.id,
        stepMs: orNull(b.stepMs),
        stageMs: orNull(b.stageMs),
        computingMs: orNull(b.computingMs),
        communicationMs: orNull(b.communicationMs),
        exposedCommunicationMs: orNull(b.exposedMs),
        overlappedMs: orNull(b.overlappedMs),
        freeMs: orNull(b.freeMs),
        bubbleMs: orNull(b.bubbleMs),
        preparingMs: orNull(b.preparingMs),
        tailMs: orNull(b.tailMs),
        source: b.source,
      });
    }
  }
  return rows;
}

/** The first note of every report: where the step of the pace-setting rank goes. */
function whereTheStepGoes(job: JobFacts, lang: Lang): string[] {
  const rank = job.ranks[job.steps.pace];
  if (rank === undefined || job.steps.stepTimeMs === null) return [];
  const part = (value: (b: StepFacts['breakdown']) => number): number =>
    median(
      job.steps.usedIndex
        .map((s) => rank.steps[s])
        .map((s) => (s === undefined ? Number.NaN : value(s.breakdown)))
        .filter((v) => !Number.isNaN(v)),
    );
  const exposed = part((b) => b.exposedMs);
  const free = part((b) => b.freeMs);
  const computing = part((b) => b.computingMs);
  const stage = part((b) => b.stageMs + (b.bubbleMs || 0));
  if (Number.isNaN(exposed) || Number.isNaN(stage)) return [];
  return [
    say(
      {
        text: {
          en: 'Rank {rank:text}, {unit:text} {step:ms}: {computing:ms} computing, {exposed:ms} exposed communication ({exposedShare:pct}) and {free:ms} free ({freeShare:pct}) of a {stage:ms} stage.',
          zh: '卡 {rank:text}，{unitZh:text} {step:ms}：计算 {computing:ms}，未掩盖通信 {exposed:ms}（{exposedShare:pct}），空闲 {free:ms}（{freeShare:pct}），Stage 共 {stage:ms}。',
        },
        params: {
          rank: rank.rank ?? '?',
          unit: job.steps.basis === 'device-span' ? 'device span' : 'step',
          unitZh: job.steps.basis === 'device-span' ? '设备侧跨度' : '迭代',
          step: job.steps.stepTimeMs,
          computing,
          exposed,
          exposedShare: exposed / stage,
          free,
          freeShare: free / stage,
          stage,
        },
      },
      lang,
    ),
  ];
}

function missingSection(job: JobFacts, lang: Lang): Report['missing'] {
  const out: Report['missing'] = [];
  const add = (what: Message, consequence: L10n, remedy: L10n): void => {
    out.push({ what: say(what, lang), consequence: consequence[lang], remedy: remedy[lang] });
  };
  const { world, steps, ranks } = job;
  const unnamed = ranks.filter((r) => r.rank === null).length;
  if (world.missing.length > unnamed && unnamed > 0) {
    add(
      {
        text: {
          en: '{n:int} ranks: no files, and the files that are here do not say their rank',
          zh: '{n:int} 张卡：没有文件；已有文件也没有记录卡序号',
        },
        params: { n: world.missing.length - unnamed },
      },
      { en: 'whether one of them is the late rank', zh: '慢卡是否在其中' },
      {
        en: 'upload the `*_ascend_pt` folder of every rank as a whole, `profiler_info_*.json` included',
        zh: '完整上传每张卡的 `*_ascend_pt` 目录，包括 `profiler_info_*.json`',
      },
    );
  } else if (world.missing.length > 0) {
    add(
      {
        text: {
          en: world.missing.length === 1 ? 'rank {ranks:ranks}: no files' : 'ranks {ranks:ranks}: no files',
          zh: '卡 {ranks:ranks}：没有文件',
        },
        params: { ranks: world.missing.slice(0, 256) },
      },
      { en: 'whether one of them is the late rank', zh: '慢卡是否在其中' },
      { en: 'upload the `*_ascend_pt` folder of every rank', zh: '上传每张卡的 `*_ascend_pt` 目录' },
    );
  } else if (world.size === null && ranks.length > 0 && job.matches.length > 0) {
    add(
      { text: { en: 'the number of ranks is not recorded', zh: '没有记录总卡数' } },
      { en: 'whether ranks are missing, and which one is late', zh: '是否缺少卡，以及哪张卡最晚' },
      { en: '`profiler_level=Level1`, and the folders of all ranks', zh: '`profiler_level=Level1`，并上传所有卡的目录' },
    );
  }
  if (ranks.some((r) => r.settings.level === 'Level0')) {
    add(
      { text: { en: '`communication.json`: Level0 capture', zh: '`communication.json`：采集等级为 Level0' } },
      { en: 'waiting or transfer in collectives, operator types', zh: '集合通信中的等待与传输、算子类型' },
      { en: '`profiler_level=Level1`', zh: '`profiler_level=Level1`' },
    );
  }
  const noKernels = ranks.filter((r) => lacksKernels(r)).map((r) => r.rank ?? -1);
  if (noKernels.length > 0) {
    add(
      {
        text: { en: 'rank {ranks:ranks}: no `kernel_details.csv`', zh: '卡 {ranks:ranks}：没有 `kernel_details.csv`' },
        params: { ranks: noKernels },
      },
      { en: 'operator types, shapes, formats', zh: '算子类型、shape 与格式' },
      {
        en: 'upload it if the capture has one; if not, capture again over more steps: parsing again does not bring it back',
        zh: '采集目录中有该文件则上传；没有则采集更多迭代：重新解析无法补回',
      },
    );
  }
  if (steps.basis !== 'device-span' && steps.usedIndex.length === 1) {
    add(
      { text: { en: 'one step captured', zh: '只采集了 1 个迭代' } },
      { en: 'how much the step time varies', zh: '迭代耗时的波动' },
      { en: '`schedule(…, active=3, repeat=1)`', zh: '`schedule(…, active=3, repeat=1)`' },
    );
  }
  const noTrace = ranks.filter((r) => !r.capabilities.has('host-ops')).map((r) => r.rank ?? -1);
  if (noTrace.length > 0) {
    add(
      {
        text: { en: 'rank {ranks:ranks}: no usable `trace_view.json`', zh: '卡 {ranks:ranks}：没有可用的 `trace_view.json`' },
        params: { ranks: noTrace },
      },
      { en: 'what the host did: loader, launches, syncs', zh: 'Host 侧行为：数据加载、下发、同步' },
      { en: 'upload `ASCEND_PROFILER_OUTPUT` as a whole', zh: '完整上传 `ASCEND_PROFILER_OUTPUT`' },
    );
  }
  return out;
}

/** A parsed capture with a timeline, of a level that has a kernel table, and none is here. */
function lacksKernels(rank: JobFacts['ranks'][number]): boolean {
  const level = rank.settings.level;
  return (
    (level === 'Level1' || level === 'Level2') &&
    rank.tape !== null &&
    !rank.capabilities.has('kernel-types') &&
    !rank.inputs.some((i) => i.kind === 'kernels' && i.status !== 'refused')
  );
}

function views(job: JobFacts, findings: readonly Finding[]): Report['views'] {
  const rankOf = (i: number): number | null => job.ranks[i]!.rank;
  const late = job.ranks.length > 1 && job.noReplay !== 'ranks-missing' && job.clock.usable ? lateness(job) : null;
  return {
    idleAccount: idleAccount(job, findings),
    gapHistogram: gapHistogram(job),
    waits:
      late === null
        ? []
        : job.ranks.map((_, i) => ({
            rank: rankOf(i),
            causedMs: round(late.causedMs[i]!),
            waitedMs: round(late.waitedMs[i]!),
            lastCount: late.lastCount[i]!,
          })),
    arrivals: arrivalsView(job),
    clock: job.ranks.map((_, i) => ({
      rank: rankOf(i),
      offsetUs: round(job.clock.offset[i]! / 1000),
      madUs: orNull(job.clock.mad[i]! / 1000),
    })),
    replay: { usable: job.replay !== null, reason: job.noReplay, error: job.replay === null ? null : round(job.replay.error) },
    operators: job.ranks.slice(0, 64).map((r) => ({
      rank: r.rank,
      types: r.operators.slice(0, 20).map((t) => ({ type: t.type, core: t.core, count: t.count, ms: round(t.ns / 1e6) })),
    })),
    memory: memoryView(job),
    input: inputView(job),
    kernels: kernelsView(job),
    smallOps: smallOpsView(job),
    links: linksView(job),
    transfers: transfersView(job),
    paceRank: job.ranks[job.steps.pace]?.rank ?? null,
  };
}

/** Of a repository without a profile. */
function sourceVerdict({ findings, lang }: Report): Report['verdict'] {
  const n = findings.length;
  const first = findings[0]?.title ?? '';
  const en = n === 0 ? 'nothing wrong was found' : `${n} ${n === 1 ? 'thing wants' : 'things want'} a look: ${first}`;
  const zh = n === 0 ? '未发现问题' : `有 ${n} 项需要处理：${first}`;
  return { outcome: 'no-data', text: lang === 'zh' ? `没有 profile，仅检查源码：${zh}` : `No profile, only the source was read: ${en}` };
}

function verdictOf(report: Report, causes: number, job: JobFacts): Report['verdict'] {
  if (job.ranks.length === 0) return sourceVerdict(report);
  const ranksMissing = job.noReplay === 'ranks-missing';
  const silent = causes === 0 ? silence(job) : null;
  // Without step marks nothing is said about a training step.
  const [unit, unitZh] = job.steps.basis === 'device-span' ? ['device span', '设备侧跨度'] : ['step', '迭代'];
  const zh = report.lang === 'zh';
  const step = report.job.stepTimeMs;
  const partial = job.world.missing.length > 0 || ranksMissing;
  const size = report.job.worldSize;
  const present = job.ranks.length;
  if (step === null) {
    return {
      outcome: 'no-data',
      text: zh
        ? '没有读到迭代耗时，无法给出结论。上传同一次采集的 `trace_view.json` 与 `kernel_details.csv`。'
        : 'No step time could be read, so nothing can be said about the cost of a step. Upload `trace_view.json` and `kernel_details.csv` of the same capture.',
    };
  }
  if (silent?.outcome === 'no-data') return { outcome: 'no-data', text: silent.text[report.lang] };
  const { likely, ceiling } = report.totals.claimedMsPerStep;
  const share = (ms: number): string => formatShare(ms / step, report.lang);
  const some = zh ? `（${present} 张卡，可能缺少部分卡）` : ` (${present} ${present === 1 ? 'rank' : 'ranks'}, others may be missing)`;
  const counted = zh ? `（${size} 张卡中有 ${present} 张）` : ` (${present} of ${size} ranks)`;
  const ofRanks = !partial ? '' : size === null ? some : counted;
  const note = report.notes[0] === undefined ? '' : zh ? `${report.notes[0]}` : ` ${report.notes[0]}`;
  if (silent !== null) {
    const text = zh
      ? `${silent.text.zh}${unitZh} ${formatTime(step)}${ofRanks}。${note}`
      : `${silent.text.en} The ${unit} is ${formatTime(step)}${ofRanks}.${note}`;
    return { outcome: silent.outcome, text };
  }
  const failed = report.checked.filter((c) => c.outcome === 'error').map((c) => c.rule);
  if (causes === 0 && failed.length > 0) {
    const rules = failed.map((rule) => `\`${rule}\``).join(zh ? '、' : ', ');
    const text = zh
      ? `检查 ${rules} 执行出错，因此未发现原因不能说明没有问题。${unitZh} ${formatTime(step)}${ofRanks}。${note}`
      : `${failed.length === 1 ? 'A check' : `${failed.length} checks`} ended with an error (${rules}), so finding no cause proves nothing. The ${unit} is ${formatTime(step)}${ofRanks}.${note}`;
    return { outcome: 'incomplete', text };
  }
  if (causes === 0) {
    const warnings = report.findings.filter((f) => f.saving === null && f.symptomOf === null && f.severity !== 'info');
    if (warnings.length > 0) {
      const first = warnings[0]!.title;
      const text = zh
        ? `${partial ? `profile 不完整${ofRanks}，` : ''}${unitZh} ${formatTime(step)}，没有超过报告下限的耗时原因，但有 ${warnings.length} 项需要处理：${first}。${note}`
        : `${partial ? `Incomplete profile${ofRanks}: ` : ''}${warnings.length} ${warnings.length === 1 ? 'thing wants' : 'things want'} a look although no cause of lost time is above the reporting floor of the ${formatTime(step)} ${unit}: ${first}.${note}`;
      return { outcome: partial ? 'incomplete' : 'quiet', text };
    }
    const text = zh
      ? `${partial ? `profile 不完整${ofRanks}，未发现值得修改的原因` : '无需修改'}：${unitZh} ${formatTime(step)}，没有超过报告下限的原因。${note}`
      : `${partial ? `Incomplete profile${ofRanks}, nothing to change found` : 'Nothing to change'}: ${unit} ${formatTime(step)}, no cause above the reporting floor.${note}`;
    return { outcome: partial ? 'incomplete' : 'quiet', text };
  }
  const cost =
    likely === null || likely === 0
      ? zh
        ? `最多 ${formatEstimate(ceiling)}（${share(ceiling)}）`
        : `up to ${formatEstimate(ceiling)} (${share(ceiling)})`
      : zh
        ? `约 ${formatEstimate(likely)}（${share(likely)}）`
        : `about ${formatEstimate(likely)} (${share(likely)})`;
  const text = zh
    ? `${partial ? `profile 不完整${ofRanks}，` : ''}${causes} 个原因让每个 ${formatTime(step)} 的${unitZh}多花${cost}。${note}`
    : `${partial ? `Incomplete profile${ofRanks}: ` : ''}${causes} ${causes === 1 ? 'cause costs' : 'causes cost'} ${cost} of ${articleFor(formatTime(step))} ${formatTime(step)} ${unit}.${note}`;
  return { outcome: partial ? 'incomplete' : 'causes', text };
}

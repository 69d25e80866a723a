import { formatEstimate } from '../base/figures.ts';
import { quoteLiteral } from '../base/phrase.ts';
import { matchesGlob } from '../config/glob.ts';
import type { MuteConfig } from '../config/schema.ts';
import { type Acknowledgement, GROWTH_SHARE, REGRESSION } from '../model/acknowledgement.ts';
import type { Acknowledged, Finding, Report } from '../model/report.ts';

/** What is known and accepted: by people on the pull request, and by the settings of its base branch. */
export interface Accepted {
  readonly acknowledgements: readonly Acknowledgement[];
  readonly mutes: readonly MuteConfig[];
  /** UTC day, `2026-11-30`. */
  readonly today: string;
  /** Id that stands for the step being slower, where it is not `REGRESSION` itself: a repository of several jobs has one for each. */
  readonly regression?: string;
}

type Costs = { readonly likely: number | null; readonly ceiling: number } | null;

/** How an acknowledgement stands against what a report says now. */
export type AcknowledgementState = 'holds' | 'grown' | 'ended' | 'absent';

/** Whether the cost was known as a bound only, or not at all, and is known by now: nobody has accepted that cost. */
function isNewlyKnown(then: Costs, now: Costs, noiseMs: number | null): boolean {
  return then?.likely == null && now !== null && now.likely !== null && now.likely > Math.max(noiseMs ?? 0, 0.5);
}

/** Likely savings are compared with likely ones; where none is known now, the bounds are. */
function hasGrown(then: Costs, now: Costs, noiseMs: number | null): boolean {
  if (now === null) return false;
  if (isNewlyKnown(then, now, noiseMs)) return true;
  const isLikely = then !== null && then.likely !== null && now.likely !== null;
  const before = then === null ? 0 : isLikely ? then.likely! : then.ceiling;
  const after = isLikely ? now.likely! : now.ceiling;
  return after - before > Math.max(before * GROWTH_SHARE, noiseMs ?? 0, then === null ? 0.5 : 0);
}

function costsOf(finding: Finding): Costs {
  return finding.saving === null ? null : finding.saving.perStepMs;
}

/** What a report says now of the thing that was acknowledged. undefined: nothing any more. */
function costsNow(report: Report, { finding: id }: Acknowledgement, regression: string): Costs | undefined {
  if (id === regression) {
    const { comparison } = report;
    if (comparison?.verdict !== 'regression' || comparison.deltaMs === null) return undefined;
    return { likely: comparison.deltaMs, ceiling: comparison.deltaMs };
  }
  const finding = report.findings.find((one) => one.id === id);
  return finding === undefined ? undefined : costsOf(finding);
}

export function stateOf(report: Report, given: Acknowledgement, today: string, regression = REGRESSION): AcknowledgementState {
  const now = costsNow(report, given, regression);
  if (given.until !== null && given.until < today) return 'ended';
  if (now === undefined) return 'absent';
  return hasGrown(given.saving, now, report.job.stepNoiseMs) ? 'grown' : 'holds';
}

function isMuted(finding: Pick<Finding, 'rule' | 'locations'>, { rule, path }: MuteConfig): boolean {
  if (!matchesGlob(rule, finding.rule)) return false;
  if (path === undefined) return true;
  const { locations } = finding;
  const pattern = path.endsWith('/') ? `${path}*` : path;
  return locations.length > 0 && locations.every(({ file }) => matchesGlob(pattern, file));
}

function fromSettings({ until, reason }: MuteConfig): Acknowledged {
  return { by: null, at: null, until: until ?? null, reason: reason ?? '', saving: null };
}

function fromPerson({ by, at, until, reason, saving }: Acknowledgement): Acknowledged {
  return { by, at: new Date(at).toISOString().slice(0, 10), until, reason, saving };
}

/** Says why something that was acknowledged is open again. */
function cameBack(given: Acknowledgement, state: AcknowledgementState, report: Report): string {
  const who = quoteLiteral(given.by, 60);
  const { lang } = report;
  if (state === 'ended')
    return lang === 'en' ? `the acknowledgement by ${who} ended on ${given.until}` : `${who} 的确认已于 ${given.until} 到期`;
  const was = given.saving === null ? null : formatEstimate(given.saving.likely ?? given.saving.ceiling);
  if (given.saving !== null && given.saving.likely === null) {
    return lang === 'en'
      ? `${who} acknowledged it when no more than a bound of ${was} per step was known; it costs more, or its cost is known since, so it is open again`
      : `${who} 确认时仅知上限为每迭代 ${was}；此后耗时增长或已可量化，因此重新列出`;
  }
  if (was === null) return lang === 'en' ? `${who} acknowledged it when it cost no time` : `${who} 确认时它不影响耗时`;
  return lang === 'en'
    ? `${who} acknowledged it at ${was} per step; it has grown since, so it is open again`
    : `${who} 在每迭代 ${was} 时确认过；此后耗时增长，因此重新列出`;
}

/**
 * The report with what is accepted marked as such: those findings carry `acknowledged`, the totals are those of the open ones, and an
 * acknowledgement that no longer holds is named among the caveats. The gate is not decided here.
 */
export function acknowledge(report: Report, accepted: Accepted): Report {
  const { acknowledgements, mutes, today, regression: regressionId = REGRESSION } = accepted;
  const active = mutes.filter(({ until }) => until === undefined || until >= today);
  const regression = acknowledgements.find(({ finding }) => finding === regressionId);
  const mark = (finding: Finding): Finding => {
    const given = acknowledgements.find((one) => one.finding === finding.id) ?? (finding.rule === REGRESSION ? regression : undefined);
    const state = given === undefined ? 'absent' : stateOf(report, given, today, regressionId);
    if (given !== undefined && state === 'holds') return { ...finding, acknowledged: fromPerson(given) };
    const mute = active.find((one) => isMuted(finding, one));
    if (mute !== undefined) return { ...finding, acknowledged: fromSettings(mute) };
    if (given === undefined || state === 'absent') return finding;
    return { ...finding, caveats: [...finding.caveats, cameBack(given, state, report)] };
  };
  const findings = report.findings.map(mark);
  const { comparison } = report;
  const slower = comparison?.verdict === 'regression' ? acceptedRegression(findings, { ...accepted, mutes: active }, report) : null;
  if (slower === null && findings.every(({ acknowledged }) => acknowledged === undefined)) return { ...report, findings };

  const open = findings.filter(
    ({ acknowledged, symptomOf, saving }) => acknowledged === undefined && symptomOf === null && saving !== null,
  );
  const { likely, ceiling } = report.totals.claimedMsPerStep;
  const sum = (pick: (finding: Finding) => number): number => open.reduce((total, finding) => total + pick(finding), 0);
  // The union of some causes is neither above that of all nor above their sum.
  const claimedMsPerStep = {
    likely:
      likely === null
        ? null
        : Math.min(
            likely,
            sum(({ saving }) => saving!.perStepMs.likely ?? 0),
          ),
    ceiling: Math.min(
      ceiling,
      sum(({ saving }) => saving!.perStepMs.ceiling),
    ),
  };
  return {
    ...report,
    findings,
    totals: { ...report.totals, claimedMsPerStep },
    verdict: verdictOf(report, findings),
    comparison: comparison === null || slower === null ? comparison : { ...comparison, acknowledged: slower },
  };
}

/** The regression as such, or the finding that stands for it. */
function acceptedRegression(findings: readonly Finding[], accepted: Accepted, report: Report): Acknowledged | null {
  const id = accepted.regression ?? REGRESSION;
  const given = accepted.acknowledgements.find(({ finding }) => finding === id);
  if (given !== undefined && stateOf(report, given, accepted.today, id) === 'holds') return fromPerson(given);
  const finding = findings.find(({ rule }) => rule === REGRESSION);
  if (finding?.acknowledged !== undefined) return finding.acknowledged;
  const mute = accepted.mutes.find((one) => isMuted({ rule: REGRESSION, locations: [] }, one));
  return mute === undefined ? null : fromSettings(mute);
}

function verdictOf(report: Report, findings: readonly Finding[]): Report['verdict'] {
  const isOpen = ({ acknowledged, symptomOf, severity }: Finding): boolean =>
    acknowledged === undefined && symptomOf === null && severity !== 'info';
  if (report.verdict.outcome !== 'causes' || findings.some(isOpen)) return report.verdict;
  return { outcome: 'quiet', text: report.lang === 'en' ? 'every cause that was found is acknowledged' : '找到的原因均已确认' };
}

import { formatEstimate, formatTime } from '../base/figures.ts';
import { formatMs, formatShare } from '../base/phrase.ts';
import type { GateConfig } from '../config/schema.ts';
import type { Lang } from '../model/lang.ts';
import type { Finding, Gate, Report, Severity } from '../model/report.ts';

const RANK: Readonly<Record<Severity, number>> = { critical: 3, high: 2, medium: 1, info: 0 };

const SEVERITY_WORD: Readonly<Record<Lang, Readonly<Record<Severity, string>>>> = {
  en: { critical: 'critical', high: 'high', medium: 'medium', info: 'info' },
  zh: { critical: '严重', high: '高', medium: '中', info: '提示' },
};

/** A finding may fail a check only when its likely saving is known, its confidence is not low, its rule is no preview and nobody has accepted it. */
export function countsForGate(finding: Finding): boolean {
  const saving = finding.saving;
  if (finding.maturity === 'preview' || finding.acknowledged !== undefined) return false;
  if (saving === null || saving.basis === 'bound' || saving.perStepMs.likely === null) return false;
  return finding.confidence !== 'low' && finding.symptomOf === null;
}

/** Decides the gate of a report. null: no gate is configured, the check only informs. */
export function evaluateGate(report: Report, gate: GateConfig | null): Gate | null {
  const judged = gate === null ? null : judge(report, gate);
  // An author without any right can attach what they like.
  if (judged?.outcome !== 'pass' || report.attached !== true) return judged;
  const text =
    report.lang === 'en'
      ? 'the profile is an attachment, which decides nothing: the gate passes with a profile of a workflow run'
      : 'profile 来自附件，不能作为判断依据：门禁须凭工作流运行产生的 profile 才能通过';
  return { outcome: 'neutral', because: [text] };
}

function judge(report: Report, gate: GateConfig): Gate {
  const { lang } = report;
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  if (report.verdict.outcome === 'no-data') {
    return { outcome: 'neutral', because: [say('the profile holds nothing to decide on', 'profile 中没有可供判断的数据')] };
  }
  const counted = report.findings.filter(countsForGate);
  const limits: NonNullable<Gate['limits']> = [];
  const because: string[] = [];
  const fail = (limit: (typeof limits)[number], text: string): void => {
    because.push(text);
    if (!limits.includes(limit)) limits.push(limit);
  };
  /** What a limit could not be held against. It keeps the gate from passing, not from failing by another limit. */
  const unknown: string[] = [];

  // With a part of the job missing nothing can be priced, and what cannot be priced can be over no limit.
  if (report.verdict.outcome === 'incomplete' && counted.length === 0 && hasLimitOnCauses(gate)) {
    unknown.push(
      say(
        'the profile is incomplete, so what its causes cost is not known; `missing` says what to upload',
        'profile 不完整，无法得知各原因的代价；`missing` 中列出需要上传的内容',
      ),
    );
  }

  if (gate.severity !== undefined) {
    const limit = gate.severity;
    for (const finding of counted) {
      if (RANK[finding.severity] < RANK[limit]) continue;
      const cost = formatEstimate(finding.saving!.perStepMs.likely!);
      fail(
        'severity',
        say(
          `${finding.title}: ${SEVERITY_WORD.en[finding.severity]}, ≈ ${cost} per step; the limit is below ${SEVERITY_WORD.en[limit]}`,
          `${finding.title}：${SEVERITY_WORD.zh[finding.severity]}，每迭代约 ${cost}；须低于「${SEVERITY_WORD.zh[limit]}」`,
        ),
      );
    }
  }

  if (gate.total_saving !== undefined) {
    // Causes overlap: the sum is capped by the union the report claims, and by the step.
    const sum = counted.reduce((total, finding) => total + finding.saving!.perStepMs.likely!, 0);
    const step = report.job.stepTimeMs;
    const total = Math.min(sum, report.totals.claimedMsPerStep.likely ?? sum, step ?? Number.POSITIVE_INFINITY);
    const { ms, share } = gate.total_saving;
    if (ms !== undefined && total > ms) {
      fail(
        'total_saving',
        say(
          `causes cost ${formatEstimate(total)} per step together; the limit is ${formatMs(ms)}`,
          `各原因合计每迭代 ${formatEstimate(total)}；上限为 ${formatMs(ms)}`,
        ),
      );
    }
    if (share !== undefined && step !== null && total / step > share) {
      const [is, limit] = [formatShare(total / step, lang), formatShare(share, lang)];
      fail(
        'total_saving',
        say(`causes cost ${is} of the step together; the limit is ${limit}`, `各原因合计占迭代的 ${is}；上限为 ${limit}`),
      );
    }
    if (share !== undefined && step === null)
      unknown.push(say('the step time is not known, so no share can be compared', '迭代耗时未知，无法计算占比'));
  }

  const isSaid = ({ severity }: Finding): boolean => gate.severity !== undefined && RANK[severity] >= RANK[gate.severity];
  const unsaid = counted.filter((finding) => !isSaid(finding));
  const named = gate.rules === undefined ? null : judgeRules(report, gate.rules, unsaid);
  for (const text of named?.over ?? []) fail('rules', text);
  unknown.push(...(named?.unknown ?? []));

  const regression = gate.regression === undefined ? null : judgeRegression(report, gate.regression);
  if (regression?.over === true) fail('regression', regression.text);
  if (regression?.over === null) unknown.push(regression.text);
  if (because.length > 0) return { outcome: 'fail', because, limits };
  if (unknown.length > 0) return { outcome: 'neutral', because: unknown };
  if (regression !== null && !hasLimitOnCauses(gate)) return { outcome: 'pass', because: [regression.text] };
  return {
    outcome: 'pass',
    because: [say('no cause with a known saving is over the limit', '没有可量化的原因超过上限')],
  };
}

function hasLimitOnCauses(gate: GateConfig): boolean {
  return gate.severity !== undefined || gate.total_saving !== undefined || gate.rules !== undefined;
}

/** Findings of named rules, however small. A rule that could not be checked is not taken for one that found nothing. */
function judgeRules(report: Report, rules: readonly string[], counted: readonly Finding[]): { over: string[]; unknown: string[] } {
  const { lang } = report;
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const over = counted
    .filter(({ rule }) => rules.includes(rule))
    .map(({ title, rule, saving }) => {
      const cost = formatEstimate(saving!.perStepMs.likely!);
      return say(`${title}: ≈ ${cost} per step; \`${rule}\` may find nothing`, `${title}：每迭代约 ${cost}；\`${rule}\` 不允许有原因`);
    });
  const unknown = report.checked
    .filter(({ rule, outcome }) => rules.includes(rule) && (outcome === 'notApplicable' || outcome === 'error'))
    .map(({ rule, reason }) => say(`\`${rule}\` could not be checked: ${reason}`, `\`${rule}\` 无法检查：${reason}`));
  return { over, unknown };
}

/** Only a measured regression against a comparable baseline fails; `over` is null when there is nothing to judge by. */
function judgeRegression(report: Report, limit: NonNullable<GateConfig['regression']>): { over: boolean | null; text: string } {
  const { comparison, lang } = report;
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  if (comparison === null) return { over: null, text: say('there is no baseline to compare with', '没有可对比的基线') };
  if (comparison.verdict === 'incomparable') return { over: null, text: comparison.text };
  const { deltaMs, deltaShare } = comparison;
  if (comparison.verdict !== 'regression' || deltaMs === null || deltaShare === null) return { over: false, text: comparison.text };
  if (comparison.acknowledged !== undefined)
    return { over: false, text: say(`${comparison.text}; acknowledged`, `${comparison.text}；已确认`) };
  const limits: string[] = [];
  if (limit.share !== undefined && deltaShare > limit.share) limits.push(formatShare(limit.share, lang));
  if (limit.ms !== undefined && deltaMs > limit.ms) limits.push(formatMs(limit.ms));
  const change = `+${formatTime(deltaMs)}${say(` (+${formatShare(deltaShare, lang)})`, `（+${formatShare(deltaShare, lang)}）`)}`;
  if (limits.length === 0)
    return {
      over: false,
      text: say(`${change} per step against the baseline is within the limit`, `每迭代与基线相比 ${change}，未超过上限`),
    };
  const all = limits.join(say(' and ', '、'));
  return {
    over: true,
    text: say(`${change} per step against the baseline; the limit is ${all}`, `每迭代与基线相比 ${change}；上限为 ${all}`),
  };
}

import { describe, expect, it } from 'vitest';
import type { GateConfig, MuteConfig } from '../../src/config/schema.ts';
import { type Acknowledgement, REGRESSION } from '../../src/model/acknowledgement.ts';
import type { Finding, Report } from '../../src/model/report.ts';
import { type Accepted, acknowledge, stateOf } from '../../src/report/acknowledge.ts';
import { evaluateGate } from '../../src/report/gate.ts';
import { caseA, comparison } from '../render/reports.ts';

const REPORT = caseA('en').report;
const TODAY = '2026-11-30';
const [FIRST, SECOND] = REPORT.findings as [Finding, Finding];

function given(finding: Finding, over: Partial<Acknowledgement> = {}): Acknowledgement {
  const saving = finding.saving === null ? null : { likely: finding.saving.perStepMs.likely, ceiling: finding.saving.perStepMs.ceiling };
  const { id, rule, title } = finding;
  return { finding: id, rule, title, by: 'alice', at: Date.UTC(2026, 10, 20), sha: 'a', until: null, reason: 'known', saving, ...over };
}

const shown = (over: Partial<Accepted>, report: Report = REPORT) =>
  acknowledge(report, { acknowledgements: [], mutes: [], today: TODAY, ...over });
const costing = (finding: Finding, likely: number | null, ceiling = likely ?? 0): Finding => ({
  ...finding,
  saving: { ...finding.saving!, perStepMs: { floor: 0, likely, ceiling } },
});
const withFirst = (finding: Finding): Report => ({ ...REPORT, findings: [finding, ...REPORT.findings.slice(1)] });

describe('an acknowledged finding', () => {
  it('is marked with who, when and why; the totals are those of the open ones', () => {
    const report = shown({ acknowledgements: [given(FIRST, { until: '2027-01-31' })] });
    expect(report.findings[0]?.acknowledged).toMatchObject({ by: 'alice', at: '2026-11-20', until: '2027-01-31', reason: 'known' });
    expect(report.findings[1]?.acknowledged).toBeUndefined();
    const open = report.findings.slice(1).filter(({ symptomOf }) => symptomOf === null);
    expect(report.totals.claimedMsPerStep.likely).toBe(open.reduce((sum, f) => sum + (f.saving?.perStepMs.likely ?? 0), 0));
    expect(report.totals.claimedMsPerStep.ceiling).toBeLessThan(REPORT.totals.claimedMsPerStep.ceiling);
  });

  it('leaves a report of which nothing is accepted as it is', () => {
    expect(shown({})).toEqual(REPORT);
  });

  it.each([
    ['the same cost', 94, 94, 1, 'holds'],
    ['10 % more', 94, 103, 0, 'holds'],
    ['more than 10 %', 94, 105, 0, 'grown'],
    ['more than 10 %, within the noise', 94, 105, 12, 'holds'],
    ['less', 94, 10, 0, 'holds'],
  ] as const)('with %s: %s → %s ms, noise %s: %s', (_, then, now, noise, state) => {
    const report = { ...withFirst(costing(FIRST, now)), job: { ...REPORT.job, stepNoiseMs: noise } };
    expect(stateOf(report, given(costing(FIRST, then)), TODAY)).toBe(state);
  });

  it('is compared by bounds where only those are known', () => {
    const bound = given(costing(FIRST, null, 100));
    const quiet = { ...REPORT.job, stepNoiseMs: 0 };
    expect(stateOf({ ...withFirst(costing(FIRST, null, 105)), job: quiet }, bound, TODAY)).toBe('holds');
    expect(stateOf({ ...withFirst(costing(FIRST, null, 130)), job: quiet }, bound, TODAY)).toBe('grown');
    expect(stateOf({ ...withFirst(costing(FIRST, 94, 130)), job: quiet }, bound, TODAY)).toBe('grown');
    expect(stateOf({ ...withFirst(costing(FIRST, 94)), job: quiet }, given(FIRST, { saving: null }), TODAY)).toBe('grown');
  });

  it('of which only a bound was known is open again when its cost is known', () => {
    const bound = given(costing(FIRST, null, 50));
    const now = withFirst(costing(FIRST, 40, 50));
    const at = (stepNoiseMs: number) => ({ ...now, findings: [now.findings[0]!], job: { ...REPORT.job, stepNoiseMs } });
    expect(stateOf(at(1), bound, TODAY)).toBe('grown');
    expect(stateOf(at(45), bound, TODAY)).toBe('holds');
    const report = shown({ acknowledgements: [bound] }, at(1));
    expect(report.findings[0]?.caveats.at(-1)).toMatch(/bound of 50.ms.*open again/);
    expect(evaluateGate(report, { rules: [FIRST.rule] })?.outcome).toBe('fail');
  });

  it('that grew, or whose date is over, is open again and says so', () => {
    const grown = shown({ acknowledgements: [given(costing(FIRST, 20))] });
    expect(grown.findings[0]?.acknowledged).toBeUndefined();
    expect(grown.findings[0]?.caveats.at(-1)).toMatch(/`alice`.*20.ms.*grown/);
    const ended = shown({ acknowledgements: [given(FIRST, { until: '2026-11-29' })] });
    expect(ended.findings[0]?.caveats.at(-1)).toMatch(/ended on 2026-11-29/);
    expect(shown({ acknowledgements: [given(FIRST, { until: TODAY })] }).findings[0]?.acknowledged).toBeDefined();
    expect(stateOf({ ...REPORT, findings: [] }, given(FIRST), TODAY)).toBe('absent');
  });

  it('fails no gate, and neither does a preview rule', () => {
    const gate: GateConfig = { severity: 'high', total_saving: { ms: 1 }, rules: [FIRST.rule] };
    const only = { ...REPORT, findings: [FIRST] };
    expect(evaluateGate(only, gate)?.outcome).toBe('fail');
    expect(evaluateGate(shown({ acknowledgements: [given(FIRST)] }, only), gate)?.outcome).toBe('pass');
    expect(evaluateGate({ ...only, findings: [{ ...FIRST, maturity: 'preview' }] }, gate)?.outcome).toBe('pass');
  });

  it('of everything makes a quiet report', () => {
    const all = REPORT.findings.map((finding) => given(finding));
    const report = shown({ acknowledgements: all });
    expect(report.verdict.outcome).toBe('quiet');
    expect(report.totals.claimedMsPerStep).toEqual({ likely: 0, ceiling: 0 });
  });
});

describe('an accepted regression', () => {
  const slower = { ...REPORT, comparison: comparison('en') };
  const gate: GateConfig = { regression: { share: 0.05 } };
  const accepted = (ms: number) => ({
    acknowledgements: [given(FIRST, { finding: REGRESSION, rule: REGRESSION, saving: { likely: ms, ceiling: ms } })],
  });

  it('fails no gate until it grows', () => {
    const delta = slower.comparison.deltaMs!;
    expect(evaluateGate(slower, gate)?.outcome).toBe('fail');
    expect(evaluateGate(shown(accepted(delta), slower), gate)).toMatchObject({
      outcome: 'pass',
      because: [expect.stringContaining('acknowledged')],
    });
    expect(evaluateGate(shown(accepted(delta / 2), slower), gate)?.outcome).toBe('fail');
  });

  it('takes the finding that stands for it along', () => {
    const finding: Finding = { ...FIRST, id: 'regression-1', rule: REGRESSION };
    const report = shown(accepted(slower.comparison.deltaMs!), { ...slower, findings: [finding] });
    expect(report.findings[0]?.acknowledged).toMatchObject({ by: 'alice' });
  });
});

describe('a mute of the settings', () => {
  const at = (file: string): Finding['locations'][number] => ({ file, line: 1, symbol: null, provenBy: 'syntax' });
  const muted = (mute: MuteConfig, locations: Finding['locations'] = FIRST.locations) =>
    shown({ mutes: [mute] }, withFirst({ ...FIRST, locations })).findings.map(({ acknowledged }) => acknowledged !== undefined);

  it.each<[string, MuteConfig, Finding['locations'], boolean]>([
    ['by rule', { rule: FIRST.rule }, [], true],
    ['by a pattern of rules', { rule: `${FIRST.rule.slice(0, 4)}*` }, [], true],
    ['of another rule', { rule: 'op-recompile' }, [], false],
    ['by path', { rule: FIRST.rule, path: 'legacy/*' }, [at('legacy/a/b.py')], true],
    ['by folder', { rule: FIRST.rule, path: 'legacy/' }, [at('legacy/a/b.py')], true],
    ['with one line elsewhere', { rule: FIRST.rule, path: 'legacy/*' }, [at('legacy/b.py'), at('train.py')], false],
    ['by path, of a finding without lines', { rule: FIRST.rule, path: 'legacy/*' }, [], false],
    ['until today', { rule: FIRST.rule, until: TODAY }, [], true],
    ['until yesterday', { rule: FIRST.rule, until: '2026-11-29' }, [], false],
  ])('%s', (_, mute, locations, expected) => {
    expect(muted(mute, locations)[0]).toBe(expected);
  });

  it('names the settings instead of a person, and its reason', () => {
    const { acknowledged } = shown({ mutes: [{ rule: SECOND.rule, reason: 'card is replaced' }] }).findings[1]!;
    expect(acknowledged).toEqual({ by: null, at: null, until: null, reason: 'card is replaced', saving: null });
  });
});

describe('named rules of a gate', () => {
  it('fail for any counted finding, and are neutral where one could not be checked', () => {
    const small = withFirst({ ...FIRST, severity: 'info' });
    expect(evaluateGate(small, { rules: [FIRST.rule] })).toMatchObject({ outcome: 'fail', because: [expect.stringContaining(FIRST.rule)] });
    expect(evaluateGate(small, { rules: ['op-recompile'] })?.outcome).toBe('pass');
    const blind = REPORT.checked.find(({ outcome }) => outcome === 'notApplicable')!;
    expect(evaluateGate(small, { rules: [blind.rule] })).toMatchObject({
      outcome: 'neutral',
      because: [expect.stringContaining(blind.reason)],
    });
    expect(evaluateGate(REPORT, { severity: 'high', rules: [FIRST.rule] })?.because).toHaveLength(
      REPORT.findings.filter(({ severity }) => severity === 'high' || severity === 'critical').length,
    );
  });

  it('and other limits are each held: what one cannot be held against keeps no other from failing', () => {
    const noStep = { ...REPORT, job: { ...REPORT.job, stepTimeMs: null } };
    const gate: GateConfig = { total_saving: { share: 0.01 }, rules: [FIRST.rule] };
    expect(evaluateGate(noStep, gate)).toMatchObject({ outcome: 'fail', limits: ['rules'] });
    expect(evaluateGate(noStep, { total_saving: { share: 0.01 } })?.outcome).toBe('neutral');
    const slower = { ...REPORT, comparison: comparison('en') };
    const all: GateConfig = { severity: 'high', total_saving: { ms: 1 }, rules: [SECOND.rule, FIRST.rule], regression: { share: 0.01 } };
    expect(evaluateGate(slower, all)?.limits).toEqual(expect.arrayContaining(['severity', 'total_saving', 'regression']));
    expect(evaluateGate(REPORT, { regression: { share: 0.01 } })?.outcome).toBe('neutral');
  });
});

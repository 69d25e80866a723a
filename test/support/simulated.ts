/* Simulated jobs for the tests of rules and replay: each is simulated, written and read once per test file. */
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { type JobFacts, jobFacts } from '../../src/facts/job/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { findRankFolders, readRank } from '../../src/importers/index.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import type { CheckedRule, Finding, Report } from '../../src/model/report.ts';
import type { Rule } from '../../src/model/rule.ts';
import { buildReport } from '../../src/report/build.ts';
import { RULES } from '../../src/rules/index.ts';
import { openSource } from '../../src/sources/index.ts';
import { countedMedian, trueSaving, withWrittenJob } from './grid.ts';

export interface Simulated {
  readonly spec: JobSpec;
  readonly ranks: readonly RankFacts[];
  /** Step times of the simulator as the report counts them, ms. */
  readonly stepMs: number;
}

const cache = new Map<string, Promise<Simulated>>();

/** Facts of all ranks of a simulated job. */
export function simulated(spec: JobSpec): Promise<Simulated> {
  const key = JSON.stringify(spec);
  let known = cache.get(key);
  if (known === undefined) {
    known = withWrittenJob(spec, async (dir, job) => ({ spec, ranks: await factsOf(dir), stepMs: countedMedian(job) }));
    cache.set(key, known);
  }
  return known;
}

export async function factsOf(path: string): Promise<RankFacts[]> {
  const source = await openSource(path);
  try {
    const ranks: RankFacts[] = [];
    for (const folder of findRankFolders(source.entries).folders) ranks.push(rankFacts(await readRank(folder, () => {})));
    return ranks.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
  } finally {
    await source.close();
  }
}

type Thresholds = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The report of facts that are at hand, as the engine would build it, without advice. A rule that throws fails the test. */
export function reportOf(ranks: readonly RankFacts[], thresholds: Thresholds = {}, rules: readonly Rule[] = RULES): Report {
  const job = jobFacts(ranks);
  return buildReport({
    job,
    outcomes: rules.map((rule) => ({ rule, detection: detectWith(rule, job, thresholds[rule.id]) })),
    inputs: [],
    notes: [],
    lang: 'en',
    version: '0.0.0',
    advise: () => [],
  });
}

function detectWith(rule: Rule, job: JobFacts, own: Readonly<Record<string, number>> | undefined): ReturnType<Rule['detect']> {
  const values = Object.fromEntries(Object.entries(rule.options).map(([name, o]) => [name, own?.[name] ?? o.default]));
  const lacking = rule.needs.filter((need) => !job.ranks.some((r) => r.capabilities.has(need)));
  if (lacking.length > 0) {
    const without = lacking.includes('steps') ? rule.detectWithoutSteps?.(job, values) : null;
    return without ?? { outcome: 'notApplicable', reason: { text: { en: 'needs more', zh: '' } } };
  }
  return rule.detect(job, values);
}

export async function reportFor(spec: JobSpec, thresholds: Thresholds = {}): Promise<Report> {
  return reportOf((await simulated(spec)).ranks, thresholds);
}

export function findingOf(report: Report, rule: string): Finding | undefined {
  return report.findings.find((f) => f.rule === rule);
}

export function checkOf(report: Report, rule: string): CheckedRule {
  const found = report.checked.filter((c) => c.rule === rule);
  if (found.length !== 1) throw new Error(`${rule} was checked ${found.length} times`);
  return found[0]!;
}

/** Headline saving against the truth of the simulator. */
export async function accuracy(spec: JobSpec, fault: Fault, rule: string): Promise<{ finding: Finding; headline: number; truth: number }> {
  const report = await reportFor(spec);
  const finding = findingOf(report, rule);
  if (finding?.saving == null) throw new Error(`${rule} reports no saving: ${checkOf(report, rule).reason}`);
  return {
    finding,
    headline: finding.saving.perStepMs.likely ?? finding.saving.perStepMs.ceiling,
    truth: trueSaving(spec, fault, (await simulated(spec)).stepMs),
  };
}

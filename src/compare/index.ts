import { type JobFacts, jobFacts } from '../facts/job/index.ts';
import type { BaselineFacts, ComparisonVerdict, JobComparison, Measure, Metric, Mismatch } from '../model/comparison.ts';
import type { RankFacts } from '../model/facts.ts';
import { type Account, IDLE_PARTS, sumOf } from './account.ts';
import { comparability, pairRanks, tooFewSteps } from './comparability.ts';
import { type Explained, explain } from './contributors.ts';
import { type Direction, measure } from './measure.ts';

/** One run of the baseline. */
export interface BaselineRun {
  readonly label: string;
  readonly job: JobFacts;
}

/** What a change must exceed to be called one. */
export interface Limits {
  /** As a share of the baseline's step. */
  readonly minShare: number;
  readonly minMs: number;
}

const NOTHING: Explained = { contributors: [], pace: { ranks: [], standsOut: false }, series: { head: [], base: [] } };

/**
 * A job against one or more runs of its baseline. Pure and deterministic.
 */
export function compareJobs(head: JobFacts, runs: readonly BaselineRun[], limits: Limits): JobComparison {
  const main = middleRun(runs);
  const pairing = pairRanks(head, main.job);
  const { refusals, warnings } = mergedFindings(runs, head);
  const now = restricted(head, pairing.head);
  const before = runs.map((run) => restricted(run.job, pairRanks(head, run.job).base));
  const mainBefore = before[runs.indexOf(main)]!;
  const stepFloor = Math.max(limits.minMs, limits.minShare * (mainBefore.steps.stepTimeMs ?? 0));
  const stepSamples = { base: before.map((job) => job.steps.perStepMs), head: now.steps.perStepMs };
  const { measure: step, verdict: called } = measure(stepSamples, { better: 'lower', floor: stepFloor });
  if (refusals.length === 0 && called === 'incomparable') refusals.push(tooFewSteps(step.samples.head, step.samples.base));
  const verdict: ComparisonVerdict = refusals.length > 0 ? 'incomparable' : called;
  const sound = refusals.every((r) => r.what === 'steps');
  const explained = sound && step.delta !== null ? explain(now, mainBefore, { ...step, delta: step.delta }) : NOTHING;
  return {
    baseline: baselineFacts(runs, main),
    verdict,
    refusals,
    warnings,
    // Figures of two jobs that do different work are not subtracted.
    step: sound ? step : { ...step, delta: null, interval: null, limit: null },
    metrics: sound ? metricsOf(head, main.job, explained, stepSamples, stepFloor, limits, verdict) : [],
    contributors: explained.contributors,
    pace: explained.pace,
  };
}

/** The run whose step is the median of the runs: what is said of parts and causes is read from it. */
export function middleRun(runs: readonly BaselineRun[]): BaselineRun {
  const order = runs.filter((run) => run.job.steps.stepTimeMs !== null).sort((a, b) => a.job.steps.stepTimeMs! - b.job.steps.stepTimeMs!);
  return order[Math.floor((order.length - 1) / 2)] ?? runs[0]!;
}

/** What holds for one of the runs holds for the comparison; the same sentence once. */
function mergedFindings(runs: readonly BaselineRun[], head: JobFacts): { refusals: Mismatch[]; warnings: Mismatch[] } {
  const all = runs.map((run) => comparability(head, run.job, pairRanks(head, run.job)));
  const once = (list: readonly Mismatch[]): Mismatch[] => [...new Map(list.map((m) => [JSON.stringify(m), m] as const)).values()];
  return { refusals: once(all.flatMap((c) => c.refusals)), warnings: once(all.flatMap((c) => c.warnings)) };
}

/** The job of some of its ranks. */
function restricted(job: JobFacts, ranks: readonly number[]): JobFacts {
  if (ranks.length === job.ranks.length && ranks.every((r, i) => r === i)) return job;
  return jobFacts(ranks.map((r) => job.ranks[r]!));
}

function first<T>(ranks: readonly RankFacts[], value: (rank: RankFacts) => T | null): T | null {
  for (const rank of ranks) {
    const v = value(rank);
    if (v !== null) return v;
  }
  return null;
}

function baselineFacts(runs: readonly BaselineRun[], main: BaselineRun): BaselineFacts {
  const { ranks, world, batch } = main.job;
  return {
    kind: 'npu',
    label: main.label,
    runs: runs.map(({ label, job: { steps } }) => ({
      label,
      steps: steps.perStepMs.length,
      stepTimeMs: steps.stepTimeMs,
      noiseMs: steps.noiseMs,
    })),
    ranks: world.present,
    worldSize: world.size,
    device: first(ranks, (r) => r.settings.soc),
    level: first(ranks, (r) => r.settings.level),
    cann: first(ranks, (r) => r.settings.cann),
    torchNpu: first(ranks, (r) => r.settings.torchNpu),
    torch: first(ranks, (r) => r.settings.torch),
    samplesPerStep: batch.samplesPerStep,
  };
}

/** Each quantity with its own noise and direction: a step may get faster while a part of it gets worse. */
function metricsOf(
  head: JobFacts,
  base: JobFacts,
  explained: Explained,
  steps: { readonly base: readonly (readonly number[])[]; readonly head: readonly number[] },
  stepFloor: number,
  limits: Limits,
  overall: ComparisonVerdict,
): Metric[] {
  const out: Metric[] = [];
  const add = (metric: Metric['metric'], base: readonly (readonly number[])[], head: readonly number[], direction: Direction): void => {
    const { measure: of, verdict } = measure({ base, head }, direction);
    if (of.base !== null && of.head !== null)
      out.push({ ...(of as Measure), metric, better: direction.better, verdict: overall === 'incomparable' ? 'incomparable' : verdict });
  };
  const part =
    (value: (account: Account) => number) =>
    (accounts: readonly Account[]): number[] =>
      accounts.map(value);
  const parts: readonly (readonly [Metric['metric'], (accounts: readonly Account[]) => number[]])[] = [
    ['computing', part((a) => sumOf(a, ['computing']))],
    ['communication', part((a) => sumOf(a, ['communication', 'waiting']))],
    ['idle', part((a) => sumOf(a, IDLE_PARTS))],
  ];
  for (const [metric, of] of parts)
    add(metric, [of(explained.series.base)], of(explained.series.head), { better: 'lower', floor: stepFloor });
  const samples = head.batch.samplesPerStep;
  if (samples === null || base.batch.samplesPerStep !== samples) return out;
  const rate =
    (perStep: number) =>
    (ms: readonly number[]): number[] =>
      ms.map((v) => (perStep * 1000) / v);
  const throughput = (metric: Metric['metric'], perStep: number): void => {
    const of = rate(perStep);
    const baseRates = steps.base.map(of);
    const floor = limits.minShare * ((perStep * 1000) / (base.steps.stepTimeMs ?? Number.POSITIVE_INFINITY));
    add(metric, baseRates, of(steps.head), { better: 'higher', floor });
  };
  throughput('samples-per-second', samples);
  const tokens = head.batch.tokensPerSample;
  if (tokens !== null && base.batch.tokensPerSample === tokens) throughput('tokens-per-second', samples * tokens);
  return out;
}

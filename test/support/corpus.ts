/*
 * The labelled corpus: every fault of the simulator alone on 1 to 16 ranks in several kinds of jobs, two faults at once, healthy jobs of
 * each kind, and uploads with ranks missing. What is right is known before the seeds are drawn.
 */
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import type { Severity } from '../../src/model/report.ts';
import {
  communicationFaults,
  computeFaults,
  type GridJob,
  hostFaults,
  type JobResult,
  nameOf,
  pairs,
  pipelineFaults,
  singleFaults,
} from './grid.ts';

export interface Scenario extends GridJob {
  /** Ranks of the job that were not uploaded: nobody may be named, and nothing is likely. */
  readonly partial: boolean;
}

type Variant = Omit<JobSpec, 'faults'>;

/** Kinds of jobs a fault is tried in; the seed is the index into those drawn. */
const PLACES: readonly (Variant & { readonly draw: number })[] = [
  { ranks: 2, draw: 0 },
  { ranks: 4, draw: 1 },
  { ranks: 2, layers: 8, steps: 6, draw: 2 },
  { ranks: 4, era: '2025-11', draw: 0 },
  { ranks: 8, draw: 1 },
  { ranks: 16, layers: 6, draw: 2 },
];
const PIPELINES: readonly (Variant & { readonly draw: number })[] = [
  { ranks: 2, pp: 2, draw: 0 },
  { ranks: 4, pp: 2, draw: 1 },
  { ranks: 4, pp: 2, steps: 6, draw: 2 },
  { ranks: 8, pp: 2, layers: 8, draw: 0 },
];
/** Faults that are quiet in some of the places above, in more jobs: every rule is to have six loud ones at least. */
const RARE: readonly Fault[] = [{ kind: 'gc-pause' }, { kind: 'contention' }, { kind: 'no-overlap' }, { kind: 'elementwise-chain' }];
const RARE_PLACES: readonly (Variant & { readonly draw: number })[] = [
  { ranks: 4, layers: 8, draw: 2 },
  { ranks: 8, steps: 6, draw: 0 },
  { ranks: 2, steps: 8, draw: 1 },
];
/** The host never waits for the card, runs ahead as far as the launch queue holds, and waits there. */
const AHEAD: readonly (Variant & { readonly draw: number })[] = [
  { ranks: 2, itemEveryStep: false, draw: 1 },
  { ranks: 4, itemEveryStep: false, draw: 2 },
];
/** Hidden behind such a queue; what a fused update gains on the card is a bound in the report and not modelled in the simulator. */
const HIDDEN_AHEAD: readonly Fault['kind'][] = ['small-ops'];
/** One rank has nobody to wait for; what holds it up is its own. */
const ALONE: readonly Fault[] = [
  { kind: 'slow-loader', single: true },
  { kind: 'small-ops', where: 'optimizer' },
  { kind: 'layout' },
  { kind: 'recompile' },
];
const HEALTHY: readonly Variant[] = [
  { ranks: 1 },
  { ranks: 2, itemEveryStep: false },
  { ranks: 2, level: 0 },
  { ranks: 2, level: 2 },
  { ranks: 2, steps: 1 },
  { ranks: 2, steps: 2 },
  { ranks: 4, withStack: false },
  { ranks: 4, steps: 8 },
  { ranks: 4, layers: 24 },
  { ranks: 8, era: '2025-11' },
  { ranks: 4, clockSkewUs: [0, 20_000, -5_000, 300] },
  { ranks: 4, pp: 2, steps: 6 },
  { ranks: 16, layers: 6 },
];
/** Faults whose right form is another kind of model: accumulation, experts, sharded parameters, buffers. */
const FAMILIES: readonly Fault[] = [
  { kind: 'sync-per-microstep', off: true },
  { kind: 'buffer-broadcast', off: true },
  { kind: 'expert-imbalance', off: true },
  { kind: 'small-messages', off: true },
  { kind: 'small-ops', where: 'forward', off: true },
  { kind: 'unfused', of: 'rms-norm', off: true },
  { kind: 'unfused', of: 'swiglu', off: true },
  { kind: 'hidden-loader' },
];

function scenario(spec: JobSpec): Scenario {
  const { ranks, pp, faults, seed, uploadedRanks, ...rest } = spec;
  const more = Object.entries(rest).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const partial = uploadedRanks !== undefined;
  const words = [nameOf(spec), ...more, ...(partial ? [`only ${uploadedRanks.join('+')} uploaded`] : []), `seed ${seed}`];
  return { name: words.join(' '), spec, partial };
}

/** All scenarios, small jobs first, so that a run cut short has seen every fault. */
export function corpus(seeds: readonly number[]): Scenario[] {
  const seed = (draw: number): number => seeds[draw % seeds.length]!;
  const all: Scenario[] = [];
  for (const { draw, ...place } of PLACES)
    for (const fault of singleFaults(place.ranks)) all.push(scenario({ ...place, seed: seed(draw), faults: [fault] }));
  for (const { draw, ...place } of PIPELINES)
    for (const fault of pipelineFaults(place.ranks)) all.push(scenario({ ...place, seed: seed(draw), faults: [fault] }));
  for (const { draw, ...place } of RARE_PLACES) {
    for (const fault of [...RARE, ...communicationFaults(place.ranks).filter((f) => f.kind === 'slow-link')])
      all.push(scenario({ ...place, seed: seed(draw), faults: [fault] }));
    all.push(scenario({ ...place, pp: 2, seed: seed(draw), faults: [{ kind: 'few-micro-batches' }] }));
  }
  for (const { draw, ...place } of AHEAD) {
    for (const fault of singleFaults(place.ranks))
      if (!HIDDEN_AHEAD.includes(fault.kind)) all.push(scenario({ ...place, seed: seed(draw), faults: [fault] }));
    for (const fault of pipelineFaults(place.ranks)) all.push(scenario({ ...place, pp: 2, seed: seed(draw + 1), faults: [fault] }));
    for (const pair of pairs(place.ranks))
      if (!pair.faults.some((f) => HIDDEN_AHEAD.includes(f.kind)))
        all.push(scenario({ ...place, pp: pair.pp, seed: seed(draw + 2), faults: pair.faults }));
  }
  for (const fault of [...ALONE, ...hostFaults(), ...computeFaults(1)]) all.push(scenario({ ranks: 1, seed: seed(0), faults: [fault] }));
  for (const [draw, ranks] of [2, 4, 8].entries())
    for (const pair of pairs(ranks)) all.push(scenario({ ranks, pp: pair.pp, seed: seed(draw), faults: pair.faults }));
  for (const s of seeds) {
    for (const place of HEALTHY) all.push(scenario({ ...place, seed: s }));
    for (const fault of FAMILIES) all.push(scenario({ ranks: 4, seed: s, faults: [fault] }));
  }
  for (const [draw, uploadedRanks] of [[0, 1], [1, 2], [0]].entries()) {
    const place = { ranks: 4, seed: seed(draw), uploadedRanks };
    all.push(scenario(place));
    for (const fault of [
      { kind: 'slow-rank', rank: 3 },
      { kind: 'slow-host', rank: 3 },
      { kind: 'slow-rank', rank: 1 },
    ] as const)
      all.push(scenario({ ...place, faults: [fault] }));
  }
  return all.sort((a, b) => a.spec.ranks - b.spec.ranks);
}

/** One job, small enough to travel between threads. */
export interface Verdict {
  readonly name: string;
  readonly healthy: boolean;
  /** Faults that had to be found. */
  readonly loud: readonly { rule: string; found: boolean; ranksRight: boolean; error: number | null }[];
  /** Rules that claim a saving no fault explains. */
  readonly wrong: readonly { rule: string; severity: Severity; title: string }[];
  readonly complaints: readonly string[];
  readonly seconds: number;
}

/** Rules promise to find what costs this share of the step; below it a change cannot be told from noise. */
const LEAST_SHARE = 0.02;
const SERIOUS: readonly Severity[] = ['critical', 'high', 'medium'];

export function verdictOf({ name, partial }: Scenario, result: JobResult): Verdict {
  const wrong = result.falseFindings.filter((f) => !partial || f.ranks.length > 0 || f.saving!.perStepMs.likely !== null);
  return {
    name,
    healthy: result.outcomes.length === 0,
    loud: partial
      ? []
      : result.outcomes
          .filter((o) => o.finding !== null || (!o.ranksRight && o.trueMs >= LEAST_SHARE * (result.report.job.stepTimeMs ?? 0)))
          .map((o) => ({
            rule: o.expected.rule,
            found: o.finding !== null,
            ranksRight: o.ranksRight,
            error: o.finding?.saving?.perStepMs.likely == null ? null : Math.abs(o.error ?? 0),
          })),
    wrong: wrong.map(({ rule, severity, title }) => ({ rule, severity, title })),
    complaints: partial ? wrong.map((f) => `false finding ${f.rule}: ${f.title}`) : result.complaints,
    seconds: result.seconds,
  };
}

export interface Score {
  readonly rule: string;
  readonly loud: number;
  readonly quiet: number;
  readonly recall: number;
  readonly precision: number;
  readonly ranksRight: number;
  /** Of the likely savings, shares of the truth; NaN without any. */
  readonly medianError: number;
  readonly p90Error: number;
}

export function scores(verdicts: readonly Verdict[]): Score[] {
  const rules = new Set(verdicts.flatMap((v) => [...v.loud.map((l) => l.rule), ...v.wrong.map((w) => w.rule)]));
  return [...rules].sort().map((rule) => {
    const loud = verdicts.flatMap((v) => v.loud.filter((l) => l.rule === rule));
    const found = loud.filter((l) => l.found);
    const wrong = verdicts.flatMap((v) => v.wrong.filter((w) => w.rule === rule)).length;
    const errors = found
      .map((l) => l.error)
      .filter((e) => e !== null)
      .sort((a, b) => a - b);
    const at = (q: number): number =>
      errors.length === 0 ? Number.NaN : errors[Math.min(errors.length - 1, Math.floor(q * errors.length))]!;
    return {
      rule,
      loud: loud.length,
      quiet: verdicts.filter((v) => !v.loud.some((l) => l.rule === rule)).length,
      recall: loud.length === 0 ? 1 : found.length / loud.length,
      precision: found.length + wrong === 0 ? 1 : found.length / (found.length + wrong),
      ranksRight: found.length === 0 ? 1 : found.filter((l) => l.ranksRight).length / found.length,
      medianError: at(0.5),
      p90Error: at(0.9),
    };
  });
}

/** Healthy jobs with a finding of severity medium or above. */
export function falseAlarms(verdicts: readonly Verdict[]): number {
  return verdicts.filter((v) => v.healthy && v.wrong.some((w) => SERIOUS.includes(w.severity))).length;
}

export const BARS = { recall: 0.95, precision: 0.95, ranksRight: 0.95, medianError: 0.1, p90Error: 0.3 } as const;

/** What is below the bars, one sentence each. */
export function shortfalls(table: readonly Score[], alarms: number): string[] {
  const out: string[] = [];
  for (const s of table) {
    for (const key of ['recall', 'precision', 'ranksRight'] as const)
      if (s[key] < BARS[key]) out.push(`${s.rule}: ${key} ${s[key].toFixed(2)} is below ${BARS[key]}`);
    for (const key of ['medianError', 'p90Error'] as const)
      if (s[key] > BARS[key]) out.push(`${s.rule}: ${key} ${s[key].toFixed(2)} is above ${BARS[key]}`);
  }
  if (alarms > 0) out.push(`${alarms} healthy jobs have a finding of severity medium or above`);
  return out;
}

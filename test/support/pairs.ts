/*
 * Pairs of simulated jobs, head against baseline, run through the comparison. The two never share a seed, so that even what is the same
 * differs by noise; what the change truly costs comes from the simulator. Used by the tests and by `npm run evaluate -- --compare`.
 */
import { type Fault, type JobSpec, simulate, withoutFault } from '../../lab/simulator/index.ts';
import { compareJobs } from '../../src/compare/index.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import type { ComparisonVerdict, JobComparison, Part } from '../../src/model/comparison.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import { countedMedian, nameOf, pipelineFaults, singleFaults, trueSaving } from './grid.ts';
import { simulated } from './simulated.ts';

/** The defaults of the rule `regression`. */
export const LIMITS = { minShare: 0.03, minMs: 0.5 };

export interface Pair {
  readonly name: string;
  readonly head: JobSpec;
  readonly base: JobSpec;
  /** What a step of head takes longer than one of base, ms. */
  readonly trueMs: number;
  /** Parts of which one must come first, and the ranks they must be read from; null when nothing is promised. */
  readonly first: { readonly parts: readonly Part[]; readonly ranks: readonly number[] | null } | null;
}

export interface PairResult {
  readonly pair: Pair;
  readonly comparison: JobComparison;
  readonly expected: readonly ComparisonVerdict[];
  readonly complaints: readonly string[];
}

const BASE_SEED = 1_077;

/** What a fault must show up as. Faults of other kinds are compared by verdict and size only. */
function firstOf(fault: Fault): Pair['first'] {
  switch (fault.kind) {
    case 'slow-loader':
      return { parts: ['idle-loader'], ranks: fault.ranks ?? null };
    case 'small-ops':
      return { parts: ['idle-launch'], ranks: null };
    case 'slow-rank':
      return { parts: ['computing'], ranks: [fault.rank] };
    case 'slow-host':
      return { parts: ['idle-launch'], ranks: [fault.rank] };
    case 'stage-imbalance':
    case 'layout':
      return { parts: ['computing'], ranks: null };
    case 'recompile':
      return { parts: ['idle-compile', 'idle-sync', 'idle-launch'], ranks: null };
    case 'buffer-broadcast':
    case 'sync-per-microstep':
      return { parts: ['communication'], ranks: null };
    default:
      return null;
  }
}

/** A fault against its healthy twin, and the other way round. */
export function faultPairs(spec: JobSpec, fault: Fault): Pair[] {
  const head: JobSpec = { ...spec, faults: [fault] };
  const base: JobSpec = { ...withoutFault(head, fault), seed: BASE_SEED };
  const trueMs = trueSaving(head, fault);
  const name = nameOf(head);
  return [
    { name, head, base, trueMs, first: firstOf(fault) },
    { name: `${name}, reversed`, head: base, base: head, trueMs: -trueMs, first: firstOf(fault) },
  ];
}

/** A healthy job against itself under another seed. */
export function healthyPair(spec: JobSpec, seed: number): Pair {
  const base = { ...spec, seed: BASE_SEED + seed };
  const head = { ...spec, seed };
  const of = (s: JobSpec): number => countedMedian(simulate({ ...s, uploadedRanks: [] }));
  return { name: `${nameOf(spec)}, seed ${seed}`, head, base, trueMs: of(head) - of(base), first: null };
}

const SMALL = { layers: 4, steps: 8 } as const;

/** All pairs, the healthy ones first. */
export function* comparisonPairs(): Generator<Pair> {
  const healthy: JobSpec[] = [
    { ...SMALL, ranks: 2 },
    { ...SMALL, ranks: 4 },
    { ...SMALL, ranks: 4, pp: 2 },
    { ...SMALL, ranks: 2, steps: 4 },
  ];
  for (const spec of healthy) for (let seed = 1; seed <= 6; seed++) yield healthyPair(spec, seed);
  for (const fault of singleFaults(4)) yield* faultPairs({ ...SMALL, ranks: 4 }, fault);
  for (const fault of pipelineFaults(4)) yield* faultPairs({ ...SMALL, ranks: 4, pp: 2, layers: 8 }, fault);
}

function reshapes(pair: Pair): boolean {
  return [pair.head, pair.base].some((spec) => spec.faults?.some((f) => f.kind === 'few-micro-batches'));
}

export async function evaluatePair(pair: Pair): Promise<PairResult> {
  const [head, base] = [await simulated(pair.head), await simulated(pair.base)];
  const comparison = compareFacts(head.ranks, base.ranks);
  const { step } = comparison;
  const limit = step.limit ?? Number.NaN;
  const called: ComparisonVerdict = pair.trueMs > 0 ? 'regression' : 'improvement';
  // Micro-batches of another size cannot be told from another batch where none is recorded: no verdict is the right one.
  if (reshapes(pair)) {
    const right = comparison.verdict === 'incomparable' && comparison.refusals.every((r) => r.what === 'shapes');
    return { pair, comparison, expected: ['incomparable'], complaints: right ? [] : [`${comparison.verdict} instead of incomparable`] };
  }
  // Around the limit either is right.
  const size = Math.abs(pair.trueMs);
  const expected: ComparisonVerdict[] = size > 1.1 * limit ? [called] : size < 0.9 * limit ? ['noise'] : ['noise', called];
  const complaints: string[] = [];
  if (!expected.includes(comparison.verdict)) complaints.push(`${comparison.verdict} instead of ${expected.join(' or ')}`);
  if (step.interval === null || step.interval[0] > pair.trueMs || step.interval[1] < pair.trueMs)
    complaints.push(`the true ${pair.trueMs.toFixed(2)} ms is outside the interval`);
  const sum = comparison.contributors.reduce((total, c) => total + c.delta, 0);
  if (Math.abs(sum - (step.delta ?? Number.NaN)) > 0.001) complaints.push(`the contributors add up to ${sum.toFixed(3)} ms`);
  if (pair.first !== null && size > 1.1 * limit) {
    const [first] = comparison.contributors;
    if (!pair.first.parts.includes(first!.part)) complaints.push(`${first!.part} comes first instead of ${pair.first.parts.join(' or ')}`);
    const { ranks } = pair.first;
    if (ranks !== null && JSON.stringify(comparison.pace.ranks) !== JSON.stringify(ranks))
      complaints.push(`read from ranks ${comparison.pace.ranks.join(',')} instead of ${ranks.join(',')}`);
  }
  return { pair, comparison, expected, complaints };
}

export function compareFacts(head: readonly RankFacts[], ...runs: readonly (readonly RankFacts[])[]): JobComparison {
  const baseline = runs.map((ranks, i) => ({ label: `base ${i + 1}`, job: jobFacts(ranks) }));
  return compareJobs(jobFacts(head), baseline, LIMITS);
}

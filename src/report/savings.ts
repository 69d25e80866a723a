import { unite } from '../base/intervals.ts';
import { median } from '../base/statistics.ts';
import type { JobFacts } from '../facts/job/index.ts';
import type { RawFinding } from '../model/rule.ts';
import { exposedWaitMs, type Removal, type Removals, run } from '../replay/replay.ts';

/** Saving of one finding, ms per step. */
export interface Estimate {
  readonly basis: 'measured' | 'modelled' | 'bound';
  readonly floor: number;
  readonly likely: number | null;
  readonly ceiling: number;
}

function stepMedian(job: JobFacts, stepMs: readonly number[]): number {
  return median(job.steps.usedIndex.map((s) => stepMs[s] ?? Number.NaN).filter((v) => !Number.isNaN(v)));
}

/** How much the job's median step falls when this is removed, ms, never negative; and each used step by itself, NaN when unknown. */
function fall(job: JobFacts, removals: Removals): { fall: number; perStep: number[] } {
  const model = job.replay!;
  const result = run(model, removals);
  const before = stepMedian(job, model.base.stepMs);
  const perStep = job.steps.usedIndex.map((s) => (model.base.stepMs[s] ?? Number.NaN) - (result.stepMs[s] ?? Number.NaN));
  return { fall: Math.max(0, before - stepMedian(job, result.stepMs)), perStep };
}

interface Known {
  readonly estimates: Map<RawFinding, Estimate | null>;
  readonly perStep: Map<RawFinding, readonly number[]>;
  /** Of several findings, by their places in `places`. */
  readonly joint: Map<string, number>;
  readonly places: Map<RawFinding, number>;
}

/** A report is made once for each language; replaying a job for it once is enough. */
const KNOWN = new WeakMap<JobFacts, Known>();

function knownOf(job: JobFacts): Known {
  const known = KNOWN.get(job) ?? { estimates: new Map(), perStep: new Map(), joint: new Map(), places: new Map() };
  KNOWN.set(job, known);
  return known;
}

function once(what: string, job: JobFacts, findings: readonly RawFinding[], replay: () => number): number {
  const { joint, places } = knownOf(job);
  const key = [what, ...findings.map((f) => places.get(f) ?? places.set(f, places.size).size - 1)].join(' ');
  const known = joint.get(key) ?? replay();
  joint.set(key, known);
  return known;
}

/** What `estimateAnew` says, once for each finding. */
export function estimate(job: JobFacts, finding: RawFinding): Estimate | null {
  const { estimates } = knownOf(job);
  const known = estimates.has(finding) ? estimates.get(finding)! : estimateAnew(job, finding);
  estimates.set(finding, known);
  return known;
}

/** What each used step loses to this finding by the replay, ms, NaN when unknown; null where no replay priced it. */
export function lossPerStep(job: JobFacts, finding: RawFinding): readonly number[] | null {
  return knownOf(job).perStep.get(finding) ?? null;
}

/**
 * Replays the job without the finding's cause. The range covers the steps' own spread, the rule's optimistic and pessimistic variants
 * and the error of the replay itself. Without replay only the rule's bound is known.
 */
function estimateAnew(job: JobFacts, finding: RawFinding): Estimate | null {
  if (finding.boundMs === null) return null;
  const step = job.steps.stepTimeMs ?? Number.POSITIVE_INFINITY;
  if (finding.measured !== undefined) {
    const { floor, likely, ceiling } = finding.measured;
    return { basis: 'measured', floor: Math.min(step, floor), likely: Math.min(step, likely), ceiling: Math.min(step, ceiling) };
  }
  const bound: Estimate = { basis: 'bound', floor: 0, likely: null, ceiling: Math.min(step, Math.max(0, finding.boundMs || 0)) };
  if (finding.removal === null || job.replay === null) return bound;
  const likely = fall(job, finding.removal.likely);
  if (!Number.isFinite(likely.fall)) return bound;
  const low = finding.removal.floor === undefined ? likely : fall(job, finding.removal.floor);
  const high = finding.removal.ceiling === undefined ? likely : fall(job, finding.removal.ceiling);
  if (finding.ceilingOnly === true) return { ...bound, ceiling: Math.min(step, Math.max(likely.fall, high.fall)) };
  knownOf(job).perStep.set(finding, likely.perStep);
  const perStep = likely.perStep.filter((v) => !Number.isNaN(v));
  const error = job.replay.error * likely.fall + (job.steps.noiseMs ?? 0);
  return {
    basis: 'modelled',
    floor: Math.max(0, Math.min(likely.fall, low.fall, ...perStep) - error),
    likely: Math.min(step, likely.fall),
    ceiling: Math.min(step, Math.max(likely.fall, high.fall, ...perStep) + error),
  };
}

function merge(a: Removal, b: Removal): Removal {
  const durations = new Map(a.durations);
  for (const [node, ns] of b.durations ?? []) durations.set(node, Math.min(ns, durations.get(node) ?? ns));
  const bodies = new Map(a.bodies);
  for (const [node, ns] of b.bodies ?? []) bodies.set(node, Math.min(ns, bodies.get(node) ?? ns));
  const host = a.host !== undefined && b.host !== undefined ? unite(a.host, b.host) : (a.host ?? b.host);
  return {
    ...(host === undefined ? {} : { host }),
    nodes: new Set([...(a.nodes ?? []), ...(b.nodes ?? [])]),
    durations,
    bodies,
    syncs: new Set([...(a.syncs ?? []), ...(b.syncs ?? [])]),
    undelayed: new Set([...(a.undelayed ?? []), ...(b.undelayed ?? [])]),
    ...(a.hostFactor === undefined && b.hostFactor === undefined ? {} : { hostFactor: (a.hostFactor ?? 1) * (b.hostFactor ?? 1) }),
  };
}

function mergedRemovals(findings: readonly RawFinding[]): Map<number, Removal> {
  const all = new Map<number, Removal>();
  for (const finding of findings) {
    if (finding.removal === null || finding.information || finding.ceilingOnly === true) continue;
    for (const [rank, removal] of finding.removal.likely) {
      const known = all.get(rank);
      all.set(rank, known === undefined ? removal : merge(known, removal));
    }
  }
  return all;
}

/** Share of the ranks' waiting for each other, as far as computing does not cover it, that goes away without these causes, 0..1; 0 without replay. */
export function explainedSkew(job: JobFacts, findings: readonly RawFinding[]): number {
  const { replay } = job;
  if (replay === null) return 0;
  return once('skew', job, findings, () => {
    const all = mergedRemovals(findings);
    if (all.size === 0) return 0;
    const before = exposedWaitMs(replay, new Map());
    return before > 0 ? Math.max(0, 1 - exposedWaitMs(replay, all) / before) : 0;
  });
}

/** All causes taken out together: what they cost as a whole, never the sum of the parts. */
export function estimateTogether(job: JobFacts, findings: readonly RawFinding[]): number | null {
  if (job.replay === null) return null;
  return once('together', job, findings, () => {
    const all = mergedRemovals(findings);
    return all.size > 0 ? Math.min(job.steps.stepTimeMs ?? Number.POSITIVE_INFINITY, fall(job, all).fall) : 0;
  });
}

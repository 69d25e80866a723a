import type { IdleCause } from './facts.ts';
import type { Message } from './lang.ts';

/**
 * A job against its baseline, before it is put into words. Times are ms per step, head less baseline: above 0 is slower.
 * `null` is not known, never 0.
 */
export interface JobComparison {
  readonly baseline: BaselineFacts;
  readonly verdict: ComparisonVerdict;
  /** Why there is no verdict; empty with one. */
  readonly refusals: readonly Mismatch[];
  /** What differs or is not recorded and does not rule the verdict out. */
  readonly warnings: readonly Mismatch[];
  /** The step time. */
  readonly step: Measure;
  /** The parts of the step and, where the batch is known, the throughput: each with its own noise and direction. */
  readonly metrics: readonly Metric[];
  /** Adds up to `step.delta`. Empty without a delta. */
  readonly contributors: readonly Contributor[];
  /** Ranks the parts were read from: those that set the pace in the slower of the two. `standsOut`: the others wait for it. */
  readonly pace: { readonly ranks: readonly number[]; readonly standsOut: boolean };
}

export type ComparisonVerdict = 'regression' | 'improvement' | 'noise' | 'incomparable';

export interface BaselineFacts {
  readonly kind: 'npu' | 'gpu';
  readonly label: string;
  /** Runs of the baseline that were given: more than one tell how far unchanged runs differ. */
  readonly runs: readonly RunFacts[];
  readonly ranks: readonly number[];
  readonly worldSize: number | null;
  readonly device: string | null;
  readonly level: string | null;
  readonly cann: string | null;
  readonly torchNpu: string | null;
  readonly torch: string | null;
  readonly samplesPerStep: number | null;
}

export interface RunFacts {
  readonly label: string;
  readonly steps: number;
  readonly stepTimeMs: number | null;
  readonly noiseMs: number | null;
}

export interface Mismatch {
  readonly what:
    | 'hardware'
    | 'device'
    | 'world-size'
    | 'ranks'
    | 'layout'
    | 'batch'
    | 'shapes'
    | 'cann'
    | 'torch-npu'
    | 'torch'
    | 'framework'
    | 'capture'
    | 'step-basis'
    | 'steps'
    | 'unknown';
  readonly text: Message;
}

/** One quantity on both sides. */
export interface Measure {
  readonly base: number | null;
  readonly head: number | null;
  /** head − base. */
  readonly delta: number | null;
  /** 95 % interval of `delta`; null when a side has too few samples to tell. */
  readonly interval: readonly [number, number] | null;
  /** A smaller change is not called one. */
  readonly limit: number | null;
  /** How far the runs of the baseline lie apart, largest less smallest; null with one run. */
  readonly spread: number | null;
  readonly samples: { readonly base: number; readonly head: number };
}

export interface Metric extends Measure {
  readonly metric: 'computing' | 'communication' | 'idle' | 'samples-per-second' | 'tokens-per-second';
  readonly better: 'lower' | 'higher';
  readonly verdict: ComparisonVerdict;
}

export type Part = 'computing' | 'communication' | 'waiting' | 'copying' | 'idle' | `idle-${IdleCause}` | 'other';

export interface Contributor {
  readonly part: Part;
  readonly what: Message;
  readonly base: number;
  readonly head: number;
  readonly delta: number;
  /** What inside the part changed, largest first. Kernels of several streams run side by side, so these need not add up to the part. */
  readonly details: readonly ContributorDetail[];
}

export interface ContributorDetail {
  readonly by: 'operator' | 'collective' | 'class' | 'module';
  readonly what: Message;
  readonly base: number;
  readonly head: number;
  readonly delta: number;
  /** Calls per step. */
  readonly calls: { readonly base: number; readonly head: number };
}

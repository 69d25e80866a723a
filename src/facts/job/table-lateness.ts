import type { StepFacts } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed } from './per-step.ts';

/** What step tables alone tell of two ranks: one waits in communication for as long as the other is busy or idle longer. ms per step. */
export interface TableLateness {
  /** Indices into the job's ranks. */
  readonly late: number;
  readonly waiting: number;
  /** By rank, in the order late, waiting. */
  readonly computingMs: readonly [number, number];
  readonly exposedMs: readonly [number, number];
  readonly freeMs: readonly [number, number];
  readonly spanMs: readonly [number, number];
  /** The kernels of the late rank take as long as those of the other: its host is what differs. */
  readonly sameComputing: boolean;
  /** Ranks that are as late as `late`, itself among them: several are no slow card, but a stage or a batch. */
  readonly alike: readonly number[];
}

const SAME = 0.05;
const LEAST_SHARE = 0.02;
/** The other's wait must account for this part of the difference. */
const EXPLAINED = 0.5;
/** Ranks nearer to the latest than to the one that waits are late like it. */
const ALIKE = 0.5;

/** Only for jobs without timelines: with them, arrivals at the same collective tell more. */
export function tableLateness(job: JobFacts): TableLateness | null {
  if (job.ranks.length < 2 || job.ranks.some((r) => r.tape !== null || r.collectives.length > 0)) return null;
  const per = (value: (b: StepFacts['breakdown']) => number): number[] =>
    job.ranks.map((r) =>
      medianOfUsed(
        job,
        r.steps.map((s) => value(s.breakdown)),
      ),
    );
  const computing = per((b) => b.computingMs);
  const exposed = per((b) => b.exposedMs);
  const free = per((b) => b.freeMs);
  const span = per((b) => b.stageMs + (b.bubbleMs || 0));
  const own = computing.map((c, r) => c + free[r]!);
  if ([...own, ...exposed, ...span].some(Number.isNaN)) return null;
  const late = own.indexOf(Math.max(...own));
  const waiting = exposed.indexOf(Math.max(...exposed));
  const excess = own[late]! - own[waiting]!;
  const wait = exposed[waiting]! - exposed[late]!;
  if (late === waiting || excess < LEAST_SHARE * span[waiting]! || wait < EXPLAINED * excess) return null;
  const pair = (values: readonly number[]): [number, number] => [values[late]!, values[waiting]!];
  return {
    late,
    waiting,
    computingMs: pair(computing),
    exposedMs: pair(exposed),
    freeMs: pair(free),
    spanMs: pair(span),
    alike: own.flatMap((ms, r) => (ms > own[late]! - ALIKE * excess ? [r] : [])),
    sameComputing: computing[late]! <= (1 + SAME) * computing[waiting]!,
  };
}

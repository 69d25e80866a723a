import type { JobFacts } from '../facts/job/index.ts';
import { COMPUTE } from '../model/facts.ts';

/** Classes of equal width on a logarithmic axis, four per power of ten, from 1 µs to 1 s; the outer ones take what lies beyond. */
const PER_DECADE = 4;
const CLASSES = 24;
const FIRST_NS = 1000;

export interface SmallOpsView {
  readonly rank: number | null;
  /** Steps that are counted; 0: no step marks, the whole capture. */
  readonly steps: number;
  /** What one launch costs the host, µs: the host cannot feed kernels that are shorter. null: unknown. */
  readonly launchUs: number | null;
  /** Compute kernels by duration, empty classes at both ends left out; `ms` and `count` are means per step. */
  readonly classes: readonly { readonly fromUs: number; readonly toUs: number; readonly count: number; readonly ms: number }[];
  /** Of them the kernels that are shorter than a launch. */
  readonly below: { readonly count: number; readonly ms: number } | null;
  readonly total: { readonly count: number; readonly ms: number };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
const edgeUs = (i: number): number => round((FIRST_NS / 1000) * 10 ** (i / PER_DECADE));

/** Compute kernels of the pace-setting rank by how long they run. null: no kernels on a time axis. */
export function smallOpsView(job: JobFacts): SmallOpsView | null {
  const rank = job.ranks[job.steps.pace];
  const tape = rank?.tape ?? null;
  if (rank === undefined || tape === null) return null;
  const used = new Set(job.steps.usedIndex);
  const isMarked = used.size > 0 && tape.step.some((s) => used.has(s));
  const counts = new Float64Array(CLASSES);
  const sums = new Float64Array(CLASSES);
  const below = { count: 0, ns: 0 };
  for (let i = 0; i < tape.duration.length; i++) {
    const ns = tape.duration[i]!;
    if (tape.kind[i] !== COMPUTE || (isMarked && !used.has(tape.step[i]!))) continue;
    const at = Math.max(0, Math.min(CLASSES - 1, Math.floor(Math.log10(Math.max(1, ns) / FIRST_NS) * PER_DECADE + 1e-9)));
    counts[at]!++;
    sums[at]! += ns;
    if (ns < tape.launchInterval) {
      below.count++;
      below.ns += ns;
    }
  }
  const first = counts.findIndex((n) => n > 0);
  if (first < 0) return null;
  const last = counts.findLastIndex((n) => n > 0);
  const per = isMarked ? used.size : 1;
  const classes = Array.from({ length: last - first + 1 }, (_, i) => i + first).map((i) => ({
    fromUs: edgeUs(i),
    toUs: edgeUs(i + 1),
    count: round(counts[i]! / per),
    ms: round(sums[i]! / 1e6 / per),
  }));
  const launchUs = Number.isNaN(tape.launchInterval) ? null : round(tape.launchInterval / 1000);
  const all = { count: 0, ns: 0 };
  counts.forEach((n, i) => {
    all.count += n;
    all.ns += sums[i]!;
  });
  return {
    rank: rank.rank,
    steps: isMarked ? used.size : 0,
    launchUs,
    classes,
    below: launchUs === null ? null : { count: round(below.count / per), ms: round(below.ns / 1e6 / per) },
    total: { count: round(all.count / per), ms: round(all.ns / 1e6 / per) },
  };
}

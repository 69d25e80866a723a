import type { FragmentFacts, RankFacts, Tape } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed, sumByStep } from './per-step.ts';

/** Repeated runs of small kernels that the host could not feed, by rank. */
export interface SmallLoops {
  readonly loops: readonly (readonly FragmentFacts[])[];
  /** ms and kernels per step, median of the used steps. */
  readonly starvedMs: readonly number[];
  readonly kernels: readonly number[];
  /** Ranks with enough of both. */
  readonly ranks: readonly number[];
}

/** Work that no fusing makes go away: products, attention. Also as `aclnnMm_MatMulV2_MatMulV2`, the name where the type is not recorded. */
const PRODUCT = /matmul|attention|conv(2d|3d|_|olution)|^aclnn(Mm|Bmm|Addmm|Baddbmm)/i;
/** Part of a run's kernel time from which it is the layers of the model, not small kernels. Optimizer and mask loops have none. */
const PRODUCTS = 0.5;

function isLayers({ types, type, duration }: Tape, { nodes, busy }: FragmentFacts): boolean {
  const isProduct = types.map((t) => PRODUCT.test(t));
  const products = nodes.reduce((ns, node) => ns + (isProduct[type[node]!] ? duration[node]! : 0), 0);
  return products >= PRODUCTS * busy;
}

/** Runs of small kernels in a repeated sequence. */
function loopsOf({ fragments, tape }: RankFacts, minRepeats: number): FragmentFacts[] {
  if (tape === null) return [];
  return fragments.filter((f) => f.period > 0 && f.repeats >= minRepeats && !isLayers(tape, f));
}

/** Limits of `small-op-fragmentation`: below them what the host is late with belongs to the launches as a whole. */
export const SMALL_LOOP = { minShare: 0.02, minMs: 1, minKernels: 50, minRepeats: 3 } as const;

export function smallLoops(
  job: JobFacts,
  limits: { readonly minShare: number; readonly minMs: number; readonly minKernels: number; readonly minRepeats: number } = SMALL_LOOP,
): SmallLoops {
  const loops = job.ranks.map((r) => loopsOf(r, limits.minRepeats));
  const sum = (amount: (f: FragmentFacts) => number): number[] =>
    job.ranks.map((r, i) => medianOfUsed(job, sumByStep(r.steps.length, loops[i]!, amount)) || 0);
  const starvedMs = sum((f) => f.starved / 1e6);
  const kernels = sum((f) => f.nodes.length);
  const floor = Math.max(limits.minShare * (job.steps.stepTimeMs ?? Number.POSITIVE_INFINITY), limits.minMs);
  return {
    loops,
    starvedMs,
    kernels,
    ranks: job.ranks.map((_, i) => i).filter((i) => starvedMs[i]! >= floor && kernels[i]! >= limits.minKernels),
  };
}

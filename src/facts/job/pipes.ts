import type { Pipe } from '../../model/capture.ts';
import type { KernelGroup } from '../../model/facts.ts';

/** Kernels that are shorter are launch, not work: their ratios say nothing. ns. */
export const LONG_KERNEL = 50_000;

/**
 * Share of the time from which a pipe counts as the limit. A cube at 0.8 is as good as well-shaped products of real captures get (0.83–0.90);
 * memory pipes reach 0.95–0.99 when they are the limit. Each pipe against its own limit: 0.85 of the cube is bound, 0.85 of the memory is not.
 */
const LIMIT: Readonly<Record<Pipe, number>> = { mac: 0.8, vec: 0.8, scalar: 0.8, mte1: 0.95, mte2: 0.95, mte3: 0.95, fixpipe: 0.8 };

/** How near the busiest pipe is to its limit, 1 = bound; NaN when nothing was measured. */
export function boundness(group: KernelGroup): { readonly pipe: Pipe | null; readonly share: number; readonly of: number } {
  let pipe: Pipe | null = null;
  let of = Number.NaN;
  // Reading and writing share the memory: a kernel that copies does one and then the other (0.60 and 0.39 in real captures).
  const memory = (group.pipes.mte2 + (group.pipes.mte3 || 0)) / LIMIT.mte2;
  for (const name of Object.keys(LIMIT) as Pipe[]) {
    const value = name === 'mte2' && isVector(group) ? memory : group.pipes[name] / LIMIT[name];
    if (value > (Number.isNaN(of) ? Number.NEGATIVE_INFINITY : of)) {
      pipe = name;
      of = value;
    }
  }
  return { pipe, share: pipe === null ? Number.NaN : group.pipes[pipe], of: Math.min(1, of) };
}

const isVector = (group: KernelGroup): boolean => group.core === 'AI_VECTOR_CORE' || group.core === 'MIX_AIV';

/** Cube and memory counters are there: without the memory's a kernel that waits for it looks idle. */
export function isMeasured(group: KernelGroup): boolean {
  return !Number.isNaN(group.pipes.mte2) && Math.max(group.pipes.mac || 0, group.pipes.vec || 0, group.pipes.mte2) > 0;
}

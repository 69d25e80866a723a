import { median } from '../../base/statistics.ts';
import { COMPUTE, type KernelGroup, UNGROUPED } from '../../model/facts.ts';
import type { Removal } from '../../replay/replay.ts';
import type { JobFacts } from './index.ts';

/** A rank whose AI cores ran slower than they can while they were busy. */
export interface SlowClock {
  readonly rank: number;
  readonly meanMhz: number;
  /** What it is measured against. */
  readonly referenceMhz: number;
  readonly basis: 'rated' | 'other-ranks' | 'own';
  /** Share of the reference that is missing. */
  readonly drop: number;
}

/** A clock that is slower by less moves no step by more than its noise. */
export const MIN_DROP = 0.05;

/** Ranks that ran slower by at least `minDrop`, worst first. Ranks without a record of the clock are not judged. */
export function slowClocks(job: JobFacts, minDrop: number = MIN_DROP): SlowClock[] {
  const known = job.ranks
    .map((r, rank) => ({ rank, clock: r.frequency, rated: r.hardware?.ratedMhz ?? null }))
    .filter((r) => r.clock !== null);
  const best = Math.max(...known.map((r) => r.clock!.sustainedMhz));
  const out: SlowClock[] = [];
  for (const { rank, clock, rated } of known) {
    const { meanMhz, sustainedMhz } = clock!;
    const basis = rated !== null && rated >= best ? 'rated' : sustainedMhz >= best ? 'own' : 'other-ranks';
    const referenceMhz = basis === 'rated' ? rated! : best;
    const drop = 1 - meanMhz / referenceMhz;
    if (drop >= minDrop) out.push({ rank, meanMhz, referenceMhz, basis, drop });
  }
  return out.sort((a, b) => b.drop - a.drop || a.rank - b.rank);
}

const signature = (g: KernelGroup): string =>
  [g.type, g.core, g.inputShapes, g.inputTypes, g.inputFormats, g.outputShapes, g.outputTypes, g.outputFormats].join('|');

/** Too few kernels of a shape make no mean. */
const MIN_KERNELS = 3;

/** The rank's kernels at full clock. */
export interface FullClock {
  readonly removal: Removal;
  /** Kernel time at the low clock and what the same shapes take at the full one, ms of the whole capture; only those with a reference. */
  readonly ownMs: number;
  readonly referenceMs: number;
  /** Share of the rank's kernel time that has a reference. */
  readonly known: number;
}

/**
 * How long this rank's kernels take at full clock: what kernels of the same type and shapes took wherever they ran at it, on this rank or
 * another. Kernels without such a twin change like the others do. null when nothing ran at full clock.
 */
export function atFullClock(job: JobFacts, slow: SlowClock): FullClock | null {
  const { kernels, tape } = job.ranks[slow.rank]!;
  if (kernels === null || tape === null) return null;
  const means = new Map<string, number[]>();
  for (const r of job.ranks) {
    // A rank whose best is below the reference never ran at full clock.
    if (r.kernels === null || r.frequency === null || r.frequency.sustainedMhz < 0.98 * slow.referenceMhz) continue;
    for (const group of r.kernels.groups) {
      if (group.fast.count < MIN_KERNELS) continue;
      const key = signature(group);
      means.set(key, [...(means.get(key) ?? []), group.fast.ns / group.fast.count]);
    }
  }
  const factors = kernels.groups.map((group) => {
    const reference = median(means.get(signature(group)) ?? []);
    return Number.isNaN(reference) ? Number.NaN : Math.min(1, reference / (group.ns / group.count));
  });
  let ownNs = 0;
  let referenceNs = 0;
  let allNs = kernels.other.ns;
  kernels.groups.forEach((group, i) => {
    allNs += group.ns;
    if (Number.isNaN(factors[i]!)) return;
    ownNs += group.ns;
    referenceNs += group.ns * factors[i]!;
  });
  if (ownNs === 0) return null;
  const common = referenceNs / ownNs;
  const durations = new Map<number, number>();
  for (let node = 0; node < tape.start.length; node++) {
    if (tape.kind[node] !== COMPUTE) continue;
    const group = kernels.ofNode[node]!;
    const factor = group === UNGROUPED ? common : (factors[group] ?? common);
    durations.set(node, tape.duration[node]! * (Number.isNaN(factor) ? common : factor));
  }
  return { removal: { durations }, ownMs: ownNs / 1e6, referenceMs: referenceNs / 1e6, known: ownNs / allNs };
}

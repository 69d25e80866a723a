import type { JobFacts } from './index.ts';

/** Cores of a device, and how they are known. */
export interface Cores {
  readonly cube: number;
  readonly vector: number;
  readonly basis: 'recorded' | 'device' | 'kernels';
}

/** Numbers of cube and vector cores by the name of the SoC (platform files of CANN). `Ascend910B` alone names a family of several. */
const BY_SOC: readonly (readonly [RegExp, number, number])[] = [
  [/^Ascend910B(1|2|2C)$/i, 24, 48],
  [/^Ascend910B(3|4|4-1)$/i, 20, 40],
  [/^Ascend910_93\d*$/i, 24, 48],
];
/** Kernels that use all cores are the rule; a number that half of the time uses and none exceeds is all there are. */
const USUAL = 0.5;

/** Cores of the job's devices: recorded by the capture, known by the device's name, or shown by the kernels; null when nothing tells. */
export function coresOf(job: JobFacts): Cores | null {
  for (const { hardware } of job.ranks)
    if (hardware?.cubeCores != null && hardware.vectorCores != null && hardware.vectorCores > 0)
      return { cube: hardware.cubeCores, vector: hardware.vectorCores, basis: 'recorded' };
  for (const { settings } of job.ranks) {
    const known = BY_SOC.find(([soc]) => soc.test(settings.soc?.trim() ?? ''));
    if (known !== undefined) return { cube: known[1], vector: known[2], basis: 'device' };
  }
  const cube = usual(job, /^(AI_CORE|MIX_AIC)$/);
  const vector = usual(job, /^(AI_VECTOR_CORE|MIX_AIV)$/);
  // One cube core has two vector cores.
  return cube !== null && vector === 2 * cube ? { cube, vector, basis: 'kernels' } : null;
}

function usual(job: JobFacts, core: RegExp): number | null {
  const ns = new Map<number, number>();
  let all = 0;
  for (const { kernels } of job.ranks) {
    for (const group of kernels?.groups ?? []) {
      if (!core.test(group.core) || Number.isNaN(group.blocks)) continue;
      const blocks = Math.round(group.blocks);
      ns.set(blocks, (ns.get(blocks) ?? 0) + group.ns);
      all += group.ns;
    }
  }
  if (ns.size === 0) return null;
  const most = Math.max(...ns.keys());
  return ns.get(most)! >= USUAL * all ? most : null;
}

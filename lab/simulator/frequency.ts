import type { Kernel } from './kernels.ts';

/** The clock of a rank's AI cores, MHz. */
export interface Clock {
  busy: number;
  idle: number;
}

/** Nominal clock of the AI cores, MHz. */
export const NOMINAL_MHZ = 1_800;

/** How much longer a kernel takes at the rank's clock: what waits for memory hardly follows it. */
export function slowdown(clock: Clock | null, kernel: Kernel): number {
  if (clock === null || kernel.core === 'AI_CPU') return 1;
  const ratio = NOMINAL_MHZ / clock.busy;
  return kernel.core === 'AI_CORE' || kernel.core === 'MIX_AIC' ? ratio : 1 + 0.4 * (ratio - 1);
}

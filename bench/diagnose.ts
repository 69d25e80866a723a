import { fileURLToPath } from 'node:url';
import type { JobSpec } from '../lab/simulator/index.ts';
import type { Bench } from './lib/bench.ts';
import { bytesBelow, profileFolder } from './lib/inputs.ts';
import { median, run } from './lib/measure.ts';

const PHASES = fileURLToPath(new URL('lib/phases.ts', import.meta.url));
/** Kernels of a layer, forward and backward together. */
const PER_LAYER = 27;
const KERNELS = 3_000;

/** Five steps of 3,000 kernels on every rank, with causes to price: a slow card, an optimizer in a loop, conversions. */
function jobOf(ranks: number): JobSpec {
  return {
    ranks,
    steps: 5,
    layers: Math.round((KERNELS - 560) / PER_LAYER),
    faults: [{ kind: 'slow-rank', rank: ranks - 1 }, { kind: 'small-ops' }, { kind: 'layout' }],
  };
}

export const diagnose: Bench = {
  name: 'diagnose',
  about: 'rules and replay against reading, for 5 steps of 3,000 kernels on many ranks',
  async run({ seconds, dir, runs, ranks }) {
    const count = ranks ?? (seconds < 60 ? 2 : 64);
    const folder = await profileFolder(dir, `diagnose-${count}`, jobOf(count));
    const total = (await bytesBelow(folder)) / 1e6;
    const until = performance.now() + seconds * 1000;
    const shares: number[] = [];
    for (let i = 0; i < runs && (i === 0 || performance.now() < until); i++) {
      const { output, peakRssMb } = await run(PHASES, [folder]);
      const { readMs, diagnoseMs, findings } = JSON.parse(output) as { readMs: number; diagnoseMs: number; findings: number };
      shares.push(diagnoseMs / readMs);
      console.log(
        `${count} ranks, ${total.toFixed(0)} MB: read ${(readMs / 1000).toFixed(2)} s, rules and replay ${(diagnoseMs / 1000).toFixed(2)} s (${findings} findings), ${peakRssMb.toFixed(0)} MB`,
      );
    }
    console.log(`rules and replay : read ${median(shares).toFixed(2)}`);
  },
};

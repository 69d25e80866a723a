import { fileURLToPath } from 'node:url';
import type { Bench } from './lib/bench.ts';
import { median, run } from './lib/measure.ts';
import { sourceRepository } from './lib/source-repository.ts';

const EXAMINE = fileURLToPath(new URL('lib/examine-source.ts', import.meta.url));
const FILES = 3_000;
const LINES = 300;
/** Promised for a repository of that size on two cores. */
const LIMIT_S = 10;
const LIMIT_MB = 400;

/** As the analysis process is started. */
const FLAGS = ['--max-semi-space-size=4'];

interface Examined {
  readonly times: Readonly<Record<string, number>>;
  readonly files: number;
  readonly placed: number;
  readonly advised: number;
}

export const source: Bench = {
  name: 'source',
  about: `every remedy and the migration review over a repository of ${FILES} Python files`,
  async run({ seconds, dir, runs }) {
    const folder = await sourceRepository(dir, FILES, LINES);
    const until = performance.now() + seconds * 1000;
    const walls: number[] = [];
    let peak = 0;
    for (let i = 0; i < runs && (i === 0 || performance.now() < until); i++) {
      const { output, seconds: wall, cpuSeconds, peakRssMb } = await run(EXAMINE, [folder], FLAGS);
      const { times, files, advised, placed } = JSON.parse(output) as Examined;
      walls.push(wall);
      peak = Math.max(peak, peakRssMb);
      const slowest = Object.entries(times)
        .sort(([, a], [, b]) => b - a)
        .slice(0, 6)
        .map(([name, ms]) => `${name} ${(ms / 1000).toFixed(2)}`);
      console.log(
        `${files} files: ${wall.toFixed(2)} s (cpu ${cpuSeconds.toFixed(2)}), ${peakRssMb.toFixed(0)} MB; ${advised} pieces of advice, ${placed} frame placed; s: ${slowest.join(', ')}`,
      );
    }
    const isGood = median(walls) < LIMIT_S && peak < LIMIT_MB;
    console.log(`${isGood ? 'within' : 'BEYOND'} ${LIMIT_S} s and ${LIMIT_MB} MB`);
  },
};

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JobSpec } from '../lab/simulator/index.ts';
import type { Bench } from './lib/bench.ts';
import { bytesBelow, profileFolder } from './lib/inputs.ts';
import { median, rounds, run, table } from './lib/measure.ts';

const CLI = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

/** Two short steps of the smallest job make 0.9 MB a rank; Python frames make up the size, and more steps when it is large. */
function jobOf(ranks: number, mb: number): JobSpec {
  const steps = Math.max(2, Math.round(mb / 2));
  return { ranks, steps, layers: 2, pythonFrames: Math.max(0, Math.round(((2 * mb) / steps - 0.9) * 6)), itemEveryStep: false };
}

export const ranks: Bench = {
  name: 'ranks',
  about: 'many ranks: time against bytes as the number of ranks grows, and memory',
  async run({ seconds, dir, runs, mb, ranks: most }) {
    const largest = most ?? (seconds < 60 ? 16 : 64);
    const size = mb ?? 2;
    const counts = [...new Set([Math.max(2, largest / 4), Math.max(2, largest / 2), largest])];
    const until = performance.now() + seconds * 1000;
    const rates: number[] = [];
    for (const count of counts) {
      const folder = await profileFolder(dir, `ranks-${count}x${size}`, jobOf(count, size));
      const total = (await bytesBelow(folder)) / 1e6;
      const program = () => run(CLI, ['analyze', folder, '--format', 'json', '--out', join(dir, 'report.json')]);
      const all = await rounds({ [`${count} ranks`]: program }, runs, () => performance.now() > until);
      console.log(`${count} ranks, ${total.toFixed(0)} MB in all\n${table(all, total)}`);
      rates.push(median(all[`${count} ranks`]!.map((r) => r.cpuSeconds)) / total);
    }
    const worst = Math.max(...rates.slice(1).map((rate) => rate / rates[0]! - 1));
    console.log(`CPU time per byte, worst against the smallest: ${(100 * worst).toFixed(0)} % (start-up included)`);
  },
};

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JobSpec } from '../lab/simulator/index.ts';
import type { Bench } from './lib/bench.ts';
import { bytesBelow, profileFolder, zipped } from './lib/inputs.ts';
import { ratio, rounds, run, table } from './lib/measure.ts';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const CLI = at('../src/cli/main.ts');
const FLOOR = at('lib/floor.ts');

/** A step of this job with 60 Python frames per operator is about so long, MB. */
const STEP_MB = 23.7;
const FRAMES = 60;

/** A job whose trace has about `mb` MB per rank: more steps, and in short ones fewer Python frames. */
export function jobOf(mb: number, ranks: number): JobSpec {
  const steps = Math.max(2, Math.round(mb / STEP_MB));
  return { ranks, steps, pythonFrames: Math.min(FRAMES, Math.round((mb / steps / STEP_MB) * FRAMES)), faults: [{ kind: 'small-ops' }] };
}

export const text: Bench = {
  name: 'text',
  about: 'two ranks of text export, from the folder and from the zip, against reading and scanning the same bytes',
  async run({ seconds, dir, runs, mb, ranks }) {
    const size = mb ?? Math.min(1_000, seconds * 2);
    const count = ranks ?? 2;
    const folder = await profileFolder(dir, `text-${count}x${size}`, jobOf(size, count));
    const zip = await zipped(folder);
    const total = (await bytesBelow(folder)) / 1e6;
    const until = performance.now() + seconds * 1000;
    const report = join(dir, 'report.json');
    const all = await rounds(
      {
        'read folder': () => run(FLOOR, ['count', folder]),
        'scan folder': () => run(FLOOR, ['scan', folder]),
        'analyse folder': () => run(CLI, ['analyze', folder, '--format', 'json', '--out', report]),
        'inflate zip': () => run(FLOOR, ['count', zip]),
        'scan zip': () => run(FLOOR, ['scan', zip]),
        'analyse zip': () => run(CLI, ['analyze', zip, '--format', 'json', '--out', report]),
      },
      runs,
      () => performance.now() > until,
    );
    console.log(`${count} ranks, ${total.toFixed(0)} MB of text in all\n${table(all, total)}`);
    console.log(`analyse folder : read folder    ${ratio(all, 'analyse folder', 'read folder')}`);
    console.log(`analyse folder : scan folder    ${ratio(all, 'analyse folder', 'scan folder')}`);
    console.log(`analyse zip    : inflate zip    ${ratio(all, 'analyse zip', 'inflate zip')}`);
    console.log(`analyse zip    : scan zip       ${ratio(all, 'analyse zip', 'scan zip')}`);
    console.log(`analyse zip    : analyse folder ${ratio(all, 'analyse zip', 'analyse folder')}`);
  },
};

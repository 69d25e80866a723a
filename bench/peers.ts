import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bench } from './lib/bench.ts';
import { bytesBelow, profileFolder } from './lib/inputs.ts';
import { ratio, rounds, run, runProgram, table } from './lib/measure.ts';
import { jobOf } from './text.ts';

const CLI = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

interface Peer {
  readonly program: string;
  /** What a user types to have one folder of ranks examined, results below `out`. */
  args(folder: string, out: string): string[];
}

/** Programs that give advice on the same folder, as users call them. One that is not on the PATH is said and left out. */
const PEERS: readonly Peer[] = [{ program: 'msprof-analyze', args: (folder, out) => ['advisor', 'all', '-d', folder, '-o', out] }];

const isInstalled = ({ program }: Peer): boolean => spawnSync(program, ['--help'], { stdio: 'ignore' }).status === 0;

export const peers: Bench = {
  name: 'peers',
  about: 'the same folder examined by the other tools that are installed',
  async run({ seconds, dir, runs, mb, ranks }) {
    for (const peer of PEERS.filter((p) => !isInstalled(p))) console.log(`${peer.program} is not on the PATH: left out`);
    const installed = PEERS.filter(isInstalled);
    if (installed.length === 0) return;
    const size = mb ?? Math.min(1_000, seconds * 2);
    const count = ranks ?? 2;
    const folder = await profileFolder(dir, `text-${count}x${size}`, jobOf(size, count));
    const total = (await bytesBelow(folder)) / 1e6;
    const until = performance.now() + seconds * 1000;
    const out = await mkdtemp(join(dir, 'peers-'));
    const programs = {
      'npu-advise': () => run(CLI, ['analyze', folder, '--format', 'json', '--out', join(out, 'report.json')]),
      ...Object.fromEntries(installed.map((p) => [p.program, () => runProgram(p.program, p.args(folder, out))])),
    };
    const all = await rounds(programs, runs, () => performance.now() > until);
    await rm(out, { recursive: true });
    console.log(`${count} ranks, ${total.toFixed(0)} MB of text in all\n${table(all, total)}`);
    for (const { program } of installed) console.log(`${program} : npu-advise    ${ratio(all, program, 'npu-advise')}`);
  },
};

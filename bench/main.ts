import { mkdir } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { diagnose } from './diagnose.ts';
import { fetch } from './fetch.ts';
import { kernels } from './kernels.ts';
import type { Bench } from './lib/bench.ts';
import { peers } from './peers.ts';
import { ranks } from './ranks.ts';
import { source } from './source.ts';
import { text } from './text.ts';

/** `npm run bench` runs all, `npm run bench -- text` one, `--list` names them; `--seconds N` bounds each. */
const BENCHES: readonly Bench[] = [text, ranks, kernels, diagnose, fetch, source, peers];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '60' },
    runs: { type: 'string', default: '3' },
    mb: { type: 'string' },
    ranks: { type: 'string' },
    dir: { type: 'string', default: join(tmpdir(), 'npu-advisor-bench') },
  },
});
const chosen = positionals.length === 0 ? BENCHES : BENCHES.filter((b) => positionals.includes(b.name));
if (values.list || chosen.length === 0) {
  for (const bench of BENCHES) console.log(`${bench.name.padEnd(8)} ${bench.about}`);
  if (chosen.length === 0) process.exitCode = 2;
} else {
  await mkdir(values.dir, { recursive: true });
  const number = (given: string | undefined): number | null => (given === undefined ? null : Number(given));
  for (const bench of chosen) {
    const load = loadavg()[0]!.toFixed(1);
    console.log(`\n== ${bench.name}: ${bench.about} (${availableParallelism()} cores, load ${load} at the start)`);
    await bench.run({
      seconds: Number(values.seconds),
      runs: Number(values.runs),
      dir: values.dir,
      mb: number(values.mb),
      ranks: number(values.ranks),
    });
  }
}

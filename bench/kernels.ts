import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { Bench } from './lib/bench.ts';
import { bytesBelow, profileFolder } from './lib/inputs.ts';
import { ratio, rounds, run, table } from './lib/measure.ts';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const CLI = at('../src/cli/main.ts');
const FLOOR = at('lib/floor.ts');
const ROWS = 2_000_000;
/** A row with shapes and counters is about so long, bytes. */
const ROW_BYTES = 350;

/** kernel_details.csv of `rows` rows: those of simulated steps, again and again with step and start moved on. */
async function kernelFolder(dir: string, rows: number): Promise<string> {
  const folder = join(dir, `kernels-${rows}`);
  if (existsSync(folder)) return folder;
  const job = await profileFolder(dir, 'kernels-seed', { ranks: 1, steps: 20, faults: [{ kind: 'small-ops' }] });
  const [rank] = await import('node:fs/promises').then(({ readdir }) => readdir(job));
  const text = await readFile(join(job, rank!, 'ASCEND_PROFILER_OUTPUT', 'kernel_details.csv'), 'utf8');
  const [header, ...lines] = text.split('\r\n').filter((l) => l !== '');
  const columns = header!.split(',');
  const step = columns.indexOf('Step Id');
  const start = columns.indexOf('Start Time(us)');
  const cells = lines.map((l) => l.split(','));
  const first = Number(cells[0]![start]!.trim().split('.')[0]);
  const length = Number(cells.at(-1)![start]!.trim().split('.')[0]) - first + 1_000;
  function* parts(): Generator<string> {
    yield `${header}\r\n`;
    for (let done = 0, lap = 0; done < rows; lap++) {
      let part = '';
      for (const row of cells.slice(0, rows - done)) {
        const own = [...row];
        own[step] = String(Number(row[step]) + lap * 20);
        const [us, fraction] = row[start]!.split('.');
        own[start] = `${Number(us) + lap * length}.${fraction}`;
        part += `${own.join(',')}\r\n`;
      }
      done += cells.length;
      yield part;
    }
  }
  const output = join(`${folder}.part`, 'rank0_ascend_pt', 'ASCEND_PROFILER_OUTPUT');
  await mkdir(output, { recursive: true });
  await pipeline(Readable.from(parts()), createWriteStream(join(output, 'kernel_details.csv')));
  await rename(`${folder}.part`, folder);
  return folder;
}

export const kernels: Bench = {
  name: 'kernels',
  about: 'two million kernel rows in one table',
  async run({ seconds, dir, runs, mb }) {
    const rows = mb !== null ? Math.round((mb * 1e6) / ROW_BYTES) : Math.min(ROWS, Math.round(seconds * 10_000));
    const folder = await kernelFolder(dir, rows);
    const total = (await bytesBelow(folder)) / 1e6;
    const until = performance.now() + seconds * 1000;
    const all = await rounds(
      {
        read: () => run(FLOOR, ['count', folder]),
        analyse: () => run(CLI, ['analyze', folder, '--format', 'json', '--out', join(dir, 'report.json')]),
      },
      runs,
      () => performance.now() > until,
    );
    console.log(`${rows} rows, ${total.toFixed(0)} MB\n${table(all, total)}\nanalyse : read ${ratio(all, 'analyse', 'read')}`);
  },
};

import { createWriteStream, existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
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
  const [rank] = await readdir(job);
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

const DATABASE = 'ascend_pytorch_profiler_0.db';

/** The database export with `rows` kernels, and all that belongs to them: the tables of simulated steps, again and again, moved on. */
async function kernelDatabase(dir: string, rows: number): Promise<string> {
  const folder = join(dir, `kernels-db-${rows}`);
  if (existsSync(folder)) return folder;
  const job = await profileFolder(dir, 'kernels-db-seed', { ranks: 1, steps: 20, faults: [{ kind: 'small-ops' }] }, 'db');
  const [rank] = await readdir(job);
  await rm(`${folder}.part`, { recursive: true, force: true });
  await cp(join(job, rank!), join(`${folder}.part`, rank!), { recursive: true });
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(join(`${folder}.part`, rank!, 'ASCEND_PROFILER_OUTPUT', DATABASE));
  const one = (sql: string): bigint => {
    const statement = db.prepare(`SELECT (${sql}) AS value`);
    statement.setReadBigInts(true);
    return statement.get()!.value as bigint;
  };
  const length = one('SELECT max(endNs) - min(startNs) + 1000000 FROM TASK');
  const tasks = one('SELECT max(globalTaskId) + 1 FROM TASK');
  const connections = one('SELECT max(connectionId) + 1 FROM CANN_API');
  const links = one('SELECT max(id) + 1 FROM CONNECTION_IDS');
  const kernels = one('SELECT count(*) FROM COMPUTE_TASK_INFO');
  const moves: Readonly<Record<string, Readonly<Record<string, bigint>>>> = {
    TASK: { startNs: length, endNs: length, globalTaskId: tasks, connectionId: connections },
    COMPUTE_TASK_INFO: { globalTaskId: tasks },
    CANN_API: { startNs: length, endNs: length, connectionId: connections },
    PYTORCH_API: { startNs: length, endNs: length, connectionId: links },
    CONNECTION_IDS: { id: links, connectionId: connections },
    STEP_TIME: { id: 20n, startNs: length, endNs: length },
  };
  db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN');
  for (const [table, columns] of Object.entries(moves)) {
    const names = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all() as { name: string }[];
    db.exec(`CREATE TEMP TABLE seed AS SELECT * FROM ${table}`);
    for (let lap = 1n; lap * kernels < BigInt(rows); lap++) {
      const moved = names.map(({ name }) => (name in columns ? `CAST(${name} AS INTEGER) + ${columns[name]! * lap}` : name));
      db.exec(`INSERT INTO ${table} SELECT ${moved.join(', ')} FROM seed`);
    }
    db.exec('DROP TABLE seed');
  }
  db.exec('COMMIT');
  db.close();
  await rename(`${folder}.part`, folder);
  return folder;
}

export const kernels: Bench = {
  name: 'kernels',
  about: 'two million kernel rows in one table, as csv and as database',
  async run({ seconds, dir, runs, mb }) {
    const rows = mb !== null ? Math.round((mb * 1e6) / ROW_BYTES) : Math.min(ROWS, Math.round(seconds * 10_000));
    for (const make of [kernelFolder, kernelDatabase]) {
      const folder = await make(dir, rows);
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
    }
  },
};

/**
 * A day's traffic in a quarter of an hour, and whether the server holds on to anything: memory, open files, temporary files, rows.
 *
 *   npm run soak [-- --minutes 15 --jobs 1440 --seed 1 --store embedded|postgres]
 *
 * `--jobs` pull requests are spread evenly over the time; by default one for each minute of the day that is stood for. Samples are taken all
 * along; the first third is warm-up. Exit 1 when memory grows by more than 10 % after it, or when files stay open or lie around.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '../lab/free-port.ts';
import type { PullHandle } from '../lab/loopback-github/index.ts';
import { countFiles, measure, sleep, startProduct } from '../lab/operation/processes.ts';
import { createTraffic, faultsOf, isSettled, quantile } from '../lab/operation/traffic.ts';
import { startTemporaryPostgres } from '../lab/postgres/index.ts';

const WARM_UP = 1 / 3;
const MOST_GROWTH = 0.1;
/** Collections happen when they happen: less than this is no growth. */
const NOISE_MB = 24;
const MORE_FILES = 8;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '15' },
    jobs: { type: 'string' },
    seed: { type: 'string', default: '1' },
    store: { type: 'string', default: 'embedded' },
  },
});
const minutes = Number(values.minutes);
const jobs = Number(values.jobs ?? Math.round(minutes * 96));
const isShared = values.store === 'postgres';
const postgres = isShared ? await startTemporaryPostgres() : null;
if (isShared && postgres === null) {
  console.log('skipped: PostgreSQL is not installed here (apt-get install postgresql)');
  process.exit(0);
}
const root = mkdtempSync(join(tmpdir(), 'npu-advisor-soak-'));
const dataDir = join(root, 'data');
mkdirSync(dataDir);
const traffic = await createTraffic({ seed: Number(values.seed), installations: 10, repositories: 10, longestMs: 1500, largest: 2 << 20 });
const { hub } = traffic;
const port = await freePort();
hub.webhookUrl = `http://127.0.0.1:${port}/api/github/webhooks`;
const server = startProduct(
  'serve',
  {
    ...traffic.env,
    PORT: String(port),
    NPU_ADVISOR_DATA_DIR: dataDir,
    // Deadlines and forgotten work are looked for as often as in a day.
    NPU_ADVISOR_SWEEP_S: '1',
    NPU_ADVISOR_PROGRESS_S: '1',
    NPU_ADVISOR_RETRY_DELAY_S: '1',
    LOG_LEVEL: 'warn',
    ...(postgres === null ? {} : { DATABASE_URL: postgres.url }),
  },
  join(root, 'serve.log'),
  // Started once the log says so; with `warn` it does not.
  `http://127.0.0.1:${port}/readyz`,
);
await server.ready;
const idle = measure(server.child.pid!);

interface Sample {
  readonly share: number;
  readonly rssMb: number;
  readonly files: number;
  readonly temporary: number;
}
const samples: Sample[] = [];
const started = Date.now();
const lasts = minutes * 60_000;
const sample = (): void => {
  const temporary = countFiles(join(dataDir, 'scratch')) + countFiles(join(dataDir, 'spool'));
  samples.push({ share: (Date.now() - started) / lasts, ...measure(server.child.pid!), temporary });
};
const sampling = setInterval(sample, Math.max(500, lasts / 300));
const pulls: PullHandle[] = [];
const sending: Promise<unknown>[] = [];
for (let i = 0; i < jobs; i++) {
  const wait = started + (i * lasts * 0.97) / jobs - Date.now();
  if (wait > 0) await sleep(wait);
  sending.push(traffic.send(i).then((pull) => pulls.push(pull)));
  // What GitHub remembers is not ours to measure, and it is in this process anyway.
  if (hub.journal.length > 5000) hub.journal.splice(0, 4000);
  if (hub.deliveries.length > 5000) hub.deliveries.splice(4000);
}
await Promise.all(sending);
const sentIn = Date.now() - started;
for (let last = Date.now(), open = -1; ; await sleep(500)) {
  const left = pulls.filter((pull) => !isSettled(hub, pull)).length;
  if (left === 0 || Date.now() - last > 120_000) break;
  if (left !== open) last = Date.now();
  open = left;
}
const took = Date.now() - started;
await sleep(1500);
sample();
clearInterval(sampling);

const end = samples.at(-1)!;
const total = (Date.now() - started) / lasts;
const warm = samples.filter(({ share }) => share >= total * WARM_UP);
const third = (from: number, to: number): Sample[] => warm.slice(Math.floor(warm.length * from), Math.max(1, Math.ceil(warm.length * to)));
const medianOf = (of: readonly Sample[], pick: (sample: Sample) => number): number => quantile(of.map(pick), 0.5);
const [before, after] = [third(0, 0.33), third(0.67, 1)];
const memory = [medianOf(before, ({ rssMb }) => rssMb), medianOf(after, ({ rssMb }) => rssMb)] as const;
const growth = memory[1] / memory[0] - 1;
const files = [medianOf(before, (s) => s.files), medianOf(after, (s) => s.files)] as const;
const faults = pulls.flatMap((pull) => faultsOf(hub, pull));
server.child.kill('SIGTERM');
const exit = await server.exited;
if (growth > MOST_GROWTH && memory[1] - memory[0] > NOISE_MB) faults.push(`memory grew by ${(growth * 100).toFixed(1)} %`);
if (files[1] - files[0] > MORE_FILES) faults.push(`open files grew from ${files[0]} to ${files[1]}`);
if (end.temporary > 0) faults.push(`${end.temporary} temporary files are left`);
if (exit.code !== 0) faults.push(`the server ended with ${exit.signal ?? exit.code}`);
await postgres?.stop();
await traffic.close();

const mb = (value: number): string => `${value.toFixed(0)} MB`;
for (const [name, value] of [
  ['store', isShared ? 'PostgreSQL' : 'embedded'],
  ['pull requests', `${pulls.length} in ${(sentIn / 1000).toFixed(0)} s, all said after ${(took / 1000).toFixed(0)} s`],
  ['memory when idle', mb(idle.rssMb)],
  ['memory after warm-up', `${mb(memory[0])}, at the end ${mb(memory[1])} (${growth < 0 ? '' : '+'}${(growth * 100).toFixed(1)} %)`],
  ['highest memory', mb(Math.max(...samples.map(({ rssMb }) => rssMb)))],
  ['open files', `idle ${idle.files}, after warm-up ${files[0]}, at the end ${files[1]}`],
  ['temporary files', `at most ${Math.max(...samples.map(({ temporary }) => temporary))}, at the end ${end.temporary}`],
  ['load of the machine', loadavg()[0]!.toFixed(1)],
] as const)
  console.log(`${name.padEnd(26)}${value}`);
for (const fault of faults.slice(0, 20)) console.log(`fault: ${fault}`);
if (faults.length > 0) {
  console.log(`log: ${root}`);
  process.exitCode = 1;
} else rmSync(root, { recursive: true, force: true });

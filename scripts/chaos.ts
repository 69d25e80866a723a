/**
 * Kills processes, restarts the database and lets GitHub fail, while pull requests come in; at the end each must have exactly one comment
 * and one concluded check for each commit.
 *
 *   npm run chaos [-- --jobs 300 --seconds 180 --seed 1 --store postgres --workers 4]
 *
 * `--store postgres`: a server of its own is started, with `serve` and some `worker` processes; random workers are killed every few seconds,
 * the database is restarted twice. `--store embedded`: one process, killed and started again. Exit 1 when anything was lost or done twice.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { freePort } from '../lab/free-port.ts';
import type { PullHandle } from '../lab/loopback-github/index.ts';
import { countFiles, type Exit, type ProductProcess, randomFrom, sleep, startProduct } from '../lab/operation/processes.ts';
import { createTraffic, faultsOf, isSettled, quantile } from '../lab/operation/traffic.ts';
import { startTemporaryPostgres } from '../lab/postgres/index.ts';

/** After everything has calmed down: for so long nothing may come to its end before what is left is taken for lost. */
const STUCK_MS = 120_000;

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '300' },
    seconds: { type: 'string', default: '180' },
    seed: { type: 'string', default: '1' },
    store: { type: 'string', default: 'postgres' },
    workers: { type: 'string', default: '4' },
    keep: { type: 'boolean', default: false },
  },
});
const [jobs, seconds, seed] = [Number(values.jobs), Number(values.seconds), Number(values.seed)];
const isShared = values.store === 'postgres';
const workers = isShared ? Number(values.workers) : 0;

const postgres = isShared ? await startTemporaryPostgres() : null;
if (isShared && postgres === null) {
  console.log('skipped: PostgreSQL is not installed here (apt-get install postgresql)');
  process.exit(0);
}
const root = mkdtempSync(join(tmpdir(), 'npu-advisor-chaos-'));
const random = randomFrom(seed + 1000);
const traffic = await createTraffic({ seed, installations: 4, repositories: 5, longestMs: Math.min(8000, seconds * 60), largest: 4 << 20 });
const { hub } = traffic;
const port = await freePort();
hub.webhookUrl = `http://127.0.0.1:${port}/api/github/webhooks`;

const base = {
  ...traffic.env,
  NPU_ADVISOR_SWEEP_S: '1',
  NPU_ADVISOR_RETRY_DELAY_S: '1',
  // Far more often than any machine fails: a job may be killed many times before it is through.
  NPU_ADVISOR_ATTEMPTS: '15',
  NPU_ADVISOR_PROGRESS_S: '1',
  LOG_LEVEL: 'info',
  ...(postgres === null ? {} : { DATABASE_URL: postgres.url }),
};

/** A place in the row of processes; whoever dies in it is replaced. */
interface Seat {
  readonly name: string;
  readonly command: 'serve' | 'worker';
  readonly folder: string;
  process: ProductProcess;
}

const exits: string[] = [];
let kills = 0;
let isOver = false;

function begin(name: string, command: 'serve' | 'worker'): Seat {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const env = { ...base, PORT: String(port), NPU_ADVISOR_DATA_DIR: folder };
  const start = (): ProductProcess => startProduct(command, env, join(root, `${name}.log`));
  const seat: Seat = { name, command, folder, process: start() };
  const watch = (): void => {
    void seat.process.exited.then(({ code, signal }: Exit) => {
      if (isOver) return;
      // A process that gives up by itself is started again, too, as whoever supervises it would.
      if (signal !== 'SIGKILL') exits.push(`${name} ended by itself with ${signal ?? code}`);
      setTimeout(() => {
        if (isOver) return;
        seat.process = start();
        watch();
      }, 200);
    });
  };
  watch();
  return seat;
}

const seats: Seat[] = [begin('serve', 'serve')];
await seats[0]!.process.ready;
for (let i = 0; i < workers; i++) seats.push(begin(`worker-${i}`, 'worker'));
await Promise.all(seats.map((seat) => seat.process.ready));

const started = Date.now();
const end = started + seconds * 1000;
const isRunning = (): boolean => Date.now() < end;
const pulls: { pull: PullHandle; at: number; settledAt: number | null }[] = [];
let failed5xx = 0;
let restarts = 0;

async function send(): Promise<void> {
  const pending: Promise<unknown>[] = [];
  for (let i = 0; i < jobs; i++) {
    const wait = started + (i * seconds * 1000 * 0.9) / jobs - Date.now();
    if (wait > 0) await sleep(wait);
    const at = Date.now();
    pending.push(traffic.send(i).then((pull) => pulls.push({ pull, at, settledAt: null })));
  }
  await Promise.all(pending);
}

async function kill(): Promise<void> {
  const pause = isShared ? 2500 : 7000;
  while (isRunning()) {
    await sleep(Math.min(seconds * 250, pause * (0.6 + random())));
    if (!isRunning()) return;
    const candidates = seats.filter(({ command }) => !isShared || command === 'worker');
    const seat = candidates[Math.floor(random() * candidates.length)]!;
    if (seat.process.child.kill('SIGKILL')) kills++;
  }
}

async function breakDatabase(): Promise<void> {
  if (postgres === null) return;
  for (const [share, mode] of [
    [0.33, 'fast'],
    [0.66, 'immediate'],
  ] as const) {
    await sleep(Math.max(0, started + seconds * 1000 * share - Date.now()));
    await postgres.restart(mode, Math.min(2000, seconds * 20));
    restarts++;
  }
}

/** Bursts in which most requests fail: before anything was done, after it was done, or without an answer. */
async function breakGitHub(): Promise<void> {
  while (isRunning()) {
    await sleep(Math.min(seconds * 150, 4000 + 4000 * random()));
    const kinds = [
      { status: 502 },
      { status: 503 },
      { status: 500, phase: 'after' },
      { dropConnection: true },
      { status: 502, phase: 'after' },
    ] as const;
    const kind = kinds[Math.floor(random() * kinds.length)]!;
    const fault = hub.fault({ match: /^(?:POST|PATCH|GET|PUT) (?!\/app\/hook)|^BLOB/, times: 1e9, ...kind });
    await sleep(600 + 900 * random());
    fault.times = 0;
    failed5xx += fault.hits;
  }
}

const watching = setInterval(() => {
  for (const one of pulls) if (one.settledAt === null && isSettled(hub, one.pull)) one.settledAt = Date.now();
}, 250);
await Promise.all([send(), kill(), breakDatabase(), breakGitHub()]);
const chaosMs = Date.now() - started;

// Everything is calm from here on; what is still open must come to its end by itself.
const calm = Date.now();
while (!pulls.every(({ settledAt }) => settledAt !== null)) {
  const latest = Math.max(calm, ...pulls.map(({ settledAt }) => settledAt ?? 0));
  if (Date.now() - latest > STUCK_MS) break;
  await sleep(250);
}
const settledMs = Date.now() - calm;
let writes = -1;
for (;;) {
  const now = hub.journal.filter(({ method }) => method !== 'GET').length;
  if (now === writes) break;
  writes = now;
  await sleep(jobs > 50 ? 4000 : 1500);
}
clearInterval(watching);

const left: string[] = [];
if (postgres !== null) {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const { rows } = await client.query<{ state: string; count: string }>(
    'SELECT state, count(*) FROM npu_advisor.requests GROUP BY state ORDER BY state',
  );
  left.push(...rows.map(({ state, count }) => `${count} ${state}`));
  const { rows: inbox } = await client.query<{ count: string }>(
    `SELECT count(*) FROM npu_advisor.deliveries WHERE state = 'accepted' AND body IS NOT NULL`,
  );
  if (inbox[0]?.count !== '0') left.push(`${inbox[0]?.count} deliveries not taken up`);
  await client.end();
}
isOver = true;
for (const seat of seats) seat.process.child.kill('SIGTERM');
const ends = await Promise.all(seats.map(async (seat) => ({ seat, exit: await seat.process.exited })));
const notClean = ends
  .filter(({ exit }) => exit.code !== 0)
  .map(({ seat, exit }) => `${seat.name} ended with ${exit.signal ?? exit.code} after SIGTERM`);
const files = seats.reduce((sum, { folder }) => sum + countFiles(join(folder, 'scratch')) + countFiles(join(folder, 'spool')), 0);
await postgres?.stop();

const faults = [
  ...pulls.flatMap(({ pull }) => faultsOf(hub, pull)),
  ...hub.violations
    .filter(({ side }) => side === 'client')
    .map(({ exchange, faults: of }) => `violation: ${exchange}: ${of.join('; ').slice(0, 200)}`),
  ...notClean,
  ...(pulls.length === jobs ? [] : [`${jobs - pulls.length} pull requests were not sent`]),
  ...(left.some((text) => /pending|failed|deliveries/.test(text)) ? [`left in the store: ${left.join(', ')}`] : []),
  ...(files === 0 ? [] : [`${files} temporary files are left`]),
];
const times = pulls.flatMap(({ at, settledAt }) => (settledAt === null ? [] : [(settledAt - at) / 1000]));
const failedDeliveries = hub.deliveries.filter(({ statusCode }) => statusCode < 200 || statusCode >= 300).length;
const rows: [string, string | number][] = [
  ['store', isShared ? `PostgreSQL, serve and ${workers} workers` : 'embedded, one process'],
  ['seed', seed],
  ['jobs', jobs],
  ['lasted', `${(chaosMs / 1000).toFixed(0)} s, and ${(settledMs / 1000).toFixed(0)} s until all was said`],
  ['processes killed', kills],
  ['ended by themselves', exits.length],
  ['database restarts', restarts],
  ['requests that GitHub failed', failed5xx],
  ['deliveries', `${hub.deliveries.length}, of them not accepted at first ${failedDeliveries}`],
  ['time to the end of a job', `p50 ${quantile(times, 0.5).toFixed(1)} s, p99 ${quantile(times, 0.99).toFixed(1)} s`],
  ['comments', pulls.reduce((sum, { pull }) => sum + hub.view(pull).comments.length, 0)],
  ['pull requests concluded', times.length],
  ['requests in the store', left.join(', ') || '-'],
  ['load of the machine', loadavg()[0]!.toFixed(1)],
];
for (const [name, value] of rows) console.log(`${name.padEnd(30)}${value}`);
for (const line of [...new Set(exits)].slice(0, 10)) console.log(`  ${line}`);
if (faults.length > 0) {
  console.log(`\n${faults.length} faults:`);
  for (const fault of faults.slice(0, 40)) console.log(`  ${fault}`);
  console.log(`logs: ${root}`);
  process.exitCode = 1;
} else {
  console.log('\nnothing lost, nothing twice');
  if (!values.keep) rmSync(root, { recursive: true, force: true });
}
await traffic.close();

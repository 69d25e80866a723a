/**
 * What the queue itself costs, and what more processes bring: jobs that do nothing but wait.
 *
 *   npm run bench:queue [-- --jobs 400 --store postgres --workers 1,2,4 --wait 20]
 *
 * Each job is handed in as a delivery's is (its request is recorded, its subject is woken), taken up, and its request settled. `--wait` is how long a
 * job waits for others, ms. Told are jobs a second, and how long a job took beyond its waiting on one of the hands. CPU times do not depend
 * on what else the machine does; the rest does.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startTemporaryPostgres } from '../lab/postgres/index.ts';
import { type OpenStore, openStore } from '../src/store/open.ts';

const HANDS = { light: 4, heavy: 4, portions: 1 };
const SELF = fileURLToPath(import.meta.url);

function open(databaseUrl: string | null, dataDir: string): Promise<OpenStore> {
  const limits = { retryLimit: 3, retryDelaySeconds: 1, expireSeconds: 600 };
  return openStore({ databaseUrl, dataDir, ...limits, onError: (error) => console.error(error.message) });
}

/** Works off everything; resolves when nothing is pending. */
async function work({ store, queue }: OpenStore, waitMs: number): Promise<void> {
  await queue.work(async (subject) => {
    const pending = await store.requests.pending(subject);
    if (pending.length === 0) return;
    const ids = pending.map(({ id }) => id);
    await store.requests.begin(ids);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    await store.requests.settle(ids, 'done', '');
  }, HANDS);
}

async function handIn({ store, queue }: OpenStore, round: string, jobs: number): Promise<void> {
  for (let i = 0; i < jobs; i++) {
    const subject = `pull-request/${1 + (i % 50)}/${round}${i}`;
    await store.requests.add({ subject, kind: 'analyse', origin: `${round}-${i}`, payload: {} });
    await queue.poke(subject);
  }
}

async function left({ store }: OpenStore): Promise<number> {
  const [row] = await store.database.query<{ count: number | string }>(
    `SELECT count(*) AS count FROM npu_advisor.requests WHERE state = 'pending'`,
  );
  return Number(row!.count);
}

interface Round {
  readonly workers: number;
  readonly handInMs: number;
  readonly wallMs: number;
  readonly cpuMs: number;
}

function say(jobs: number, waitMs: number, { workers, handInMs, wallMs, cpuMs }: Round): void {
  const perJob = (wallMs * workers * HANDS.heavy) / jobs - waitMs;
  console.log(
    `${workers} ${workers === 1 ? 'worker ' : 'workers'}  ${((jobs * 1000) / wallMs).toFixed(1).padStart(7)} jobs/s  ` +
      `on a hand ${perJob.toFixed(1).padStart(6)} ms beyond its waiting  CPU of the workers ${(cpuMs / jobs).toFixed(1)} ms a job  ` +
      `handing in ${(handInMs / jobs).toFixed(1)} ms a job`,
  );
}

async function until(opened: OpenStore): Promise<void> {
  while ((await left(opened)) > 0) await new Promise((resolve) => setTimeout(resolve, 25));
}

if (process.send !== undefined && process.argv[2] === '--worker') {
  const [, , , url, folder, wait] = process.argv;
  const opened = await open(url!, folder!);
  process.once('message', () => {
    const before = process.cpuUsage();
    void work(opened, Number(wait)).then(() => {
      process.once('message', async () => {
        const { user, system } = process.cpuUsage(before);
        process.send!((user + system) / 1000, () => void opened.queue.drain(1000).then(() => process.exit(0)));
      });
    });
  });
  process.send(0);
} else if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      jobs: { type: 'string', default: '400' },
      store: { type: 'string', default: 'postgres' },
      workers: { type: 'string', default: '1,2,4' },
      wait: { type: 'string', default: '20' },
    },
  });
  const [jobs, waitMs] = [Number(values.jobs), Number(values.wait)];
  const root = mkdtempSync(join(tmpdir(), 'npu-advisor-queue-'));
  const postgres = values.store === 'postgres' ? await startTemporaryPostgres() : null;
  if (values.store === 'postgres' && postgres === null)
    console.log('skipped: PostgreSQL is not installed here (apt-get install postgresql)');
  else {
    console.log(
      `${jobs} jobs of ${waitMs} ms, ${HANDS.heavy} hands each, ${values.store}, load of the machine ${loadavg()[0]!.toFixed(1)}`,
    );
    const opened = await open(postgres?.url ?? null, root);
    if (postgres === null) {
      const started = performance.now();
      await handIn(opened, '1', jobs);
      const [from, cpu] = [performance.now(), process.cpuUsage()];
      await work(opened, waitMs);
      await until(opened);
      const { user, system } = process.cpuUsage(cpu);
      say(jobs, waitMs, { workers: 1, handInMs: from - started, wallMs: performance.now() - from, cpuMs: (user + system) / 1000 });
    } else {
      for (const workers of values.workers.split(',').map(Number)) {
        const started = performance.now();
        await handIn(opened, `${workers}`, jobs);
        const handInMs = performance.now() - started;
        const answer = (child: ChildProcess): Promise<number> => new Promise((resolve) => child.once('message', (m) => resolve(Number(m))));
        const children = Array.from({ length: workers }, (_, i) =>
          fork(SELF, ['--worker', postgres.url, join(root, `${workers}-${i}`), String(waitMs)]),
        );
        await Promise.all(children.map(answer));
        const from = performance.now();
        for (const child of children) child.send('go');
        await until(opened);
        const wallMs = performance.now() - from;
        const cpus = children.map(answer);
        for (const child of children) child.send('end');
        const cpuMs = (await Promise.all(cpus)).reduce((a, b) => a + b, 0);
        say(jobs, waitMs, { workers, handInMs, wallMs, cpuMs });
        await Promise.all(
          children.map((child) => new Promise((resolve) => (child.exitCode === null ? child.once('exit', resolve) : resolve(0)))),
        );
      }
    }
    await opened.queue.drain(1000);
    await opened.close();
    await postgres?.stop();
  }
  rmSync(root, { recursive: true, force: true });
}

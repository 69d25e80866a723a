/**
 * How long a webhook waits for its answer while analyses keep the machine busy.
 *
 *   npm run bench:webhook [-- --deliveries 600 --rate 20 --analyses 1]
 *   npm run bench:webhook -- --deliveries 12000 --rate 200 --analyses 0 --restart [--store postgres [--planned]]
 *
 * Starts the real server (embedded store on disk) against the loopback GitHub, keeps as many analyses computing as asked for, and sends
 * signed deliveries at a steady rate from a thread of its own: half are kept and worked on, half are comments without a command.
 * Beside it, an empty server in a process of its own gets the same requests: what that one takes is the machine's doing, not ours.
 * With `--restart` the server is killed half-way and started again. What it did not answer is sent again under the same id, as GitHub does when
 * the App asks for it, and at the end every delivery that was to be kept must be in the store.
 * With `--restart --planned` (PostgreSQL) a second server takes the port over, and only then the first is told to end.
 * Exit 1 when one was not accepted or is lost, with `--strict` also when p99 is not below 100 ms.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { freePort } from '../lab/free-port.ts';
import { startLoopbackGitHub } from '../lab/loopback-github/index.ts';
import { startTemporaryPostgres } from '../lab/postgres/index.ts';
import type { AnalyseArtifact } from '../src/app/analysis-protocol.ts';
import { closeOnSignal, serve } from '../src/app/main.ts';
import { readSpool } from '../src/store/embedded/spool.ts';
import { openForReading, spoolFolder } from '../src/store/open.ts';

const TARGET_MS = 100;
const SECRET = 'a-webhook-secret-of-more-than-32-bytes-for-the-bench';
const SELF = fileURLToPath(import.meta.url);

/** The analyser of the bench: computes until it is stopped. */
export const analyseArtifact: AnalyseArtifact = async (_, { onProgress, signal }) => {
  for (let done = 0; !signal.aborted; done++) {
    const slice = performance.now() + 50;
    while (performance.now() < slice) JSON.parse(JSON.stringify({ at: performance.now(), values: [1, 2, 3] }));
    onProgress({ phase: 'read', done, total: 0 });
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error('stopped');
};

interface Load {
  readonly url: string;
  readonly floorUrl: string;
  readonly count: number;
  readonly rate: number;
  readonly bodies: readonly { event: string; body: string }[];
  /** Send again what was not answered. */
  readonly isPersistent: boolean;
}

interface Sample {
  readonly ms: number;
  readonly status: number;
  readonly guid: string;
  readonly event: string;
  readonly tries: number;
  /** From the first try to the answer. */
  readonly totalMs: number;
}

const AGAIN_MS = 500;
const MOST_TRIES = 200;

/** Until it is answered with 200. The time is that of the answer, not of the waiting for a server that is down. */
async function persist(agent: Agent, url: string, event: string, body: string): Promise<Sample> {
  const guid = randomUUID();
  const started = performance.now();
  for (let tries = 1; ; tries++) {
    const sample = await post(agent, url, event, body, guid).catch((): Sample => ({ ms: 0, status: 0, guid, event, tries, totalMs: 0 }));
    if (sample.status === 200 || tries === MOST_TRIES) return { ...sample, tries, totalMs: performance.now() - started };
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function post(agent: Agent, url: string, event: string, body: string, guid: string = randomUUID()): Promise<Sample> {
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'x-github-event': event,
      'x-github-delivery': guid,
      'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
    };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => {
        const ms = performance.now() - started;
        resolve({ ms, status: response.statusCode ?? 0, guid, event, tries: 1, totalMs: ms });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Sends at a steady rate, whatever the answers take. */
async function sendAll({ url, floorUrl, count, rate, bodies, isPersistent }: Load): Promise<{ samples: Sample[]; floor: Sample[] }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });
  const start = performance.now();
  const pending: Promise<Sample>[] = [];
  const floor: Promise<Sample>[] = [];
  for (let i = 0; i < count; i++) {
    const due = start + (i * 1000) / rate;
    const wait = due - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const { event, body } = bodies[i % bodies.length]!;
    pending.push(isPersistent ? persist(agent, url, event, body) : post(agent, url, event, body));
    floor.push(post(agent, floorUrl, event, body));
  }
  const result = { samples: await Promise.all(pending), floor: await Promise.all(floor) };
  agent.destroy();
  return result;
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

function figures(samples: readonly Sample[], of: 'ms' | 'totalMs' = 'ms'): string {
  const sorted = samples.map((sample) => sample[of]).sort((a, b) => a - b);
  return [0.5, 0.9, 0.99, 1].map((q) => `${q === 1 ? 'max' : `p${q * 100}`} ${quantile(sorted, q).toFixed(1)} ms`).join(', ');
}

/** In the order in which they were due: the restart is in the middle. */
function tenths(samples: readonly Sample[]): string[] {
  const size = Math.ceil(samples.length / 10);
  return Array.from({ length: 10 }, (_, i) => {
    const part = samples.slice(i * size, (i + 1) * size).map(({ ms }) => ms);
    return quantile(
      part.sort((a, b) => a - b),
      0.99,
    ).toFixed(0);
  });
}

/** Waits for the address a child process prints. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const match = /LISTENING (\S+)/.exec(text);
      if (match !== null) resolve(match[1]!);
    });
    child.once('exit', () => reject(new Error('the server did not start')));
  });
}

async function end(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

function listenEmpty(): void {
  const server = createServer((incoming, response) => {
    incoming.resume();
    incoming.on('end', () => response.end('ok'));
  });
  server.listen(0, '127.0.0.1', () => console.log(`LISTENING http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      deliveries: { type: 'string', default: '600' },
      rate: { type: 'string', default: '20' },
      analyses: { type: 'string', default: '1' },
      // A shared machine makes times noisy: missing the target fails only when asked for.
      strict: { type: 'boolean', default: false },
      restart: { type: 'boolean', default: false },
      planned: { type: 'boolean', default: false },
      store: { type: 'string', default: 'embedded' },
    },
  });
  const [count, rate, analyses] = [Number(values.deliveries), Number(values.rate), Number(values.analyses)];
  if (values.planned && values.store !== 'postgres') throw new Error('--planned needs --store postgres: the embedded store is one process');
  const hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'npu-advisor', webhookSecret: SECRET } });
  const repository = hub.addRepository({ owner: 'acme', name: 'train', files: { 'train.py': 'import torch\n' } });
  const dataDir = mkdtempSync(join(tmpdir(), 'npu-advisor-bench-'));
  const nextDir = mkdtempSync(join(tmpdir(), 'npu-advisor-bench-'));
  const postgres = values.store === 'postgres' ? await startTemporaryPostgres() : null;
  if (values.store === 'postgres' && postgres === null) {
    console.log('skipped: PostgreSQL is not installed here (apt-get install postgresql)');
    return hub.close();
  }
  const port = await freePort();
  // A folder for each that runs beside another.
  const start = (folder = dataDir): ChildProcess =>
    spawn(process.execPath, [SELF, '--server'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...(postgres === null ? {} : { DATABASE_URL: postgres.url }),
        PATH: process.env.PATH ?? '',
        APP_ID: '4242',
        PRIVATE_KEY: hub.privateKeyPem,
        WEBHOOK_SECRET: SECRET,
        GHE_HOST: new URL(hub.apiUrl).host,
        GHE_PROTOCOL: 'http',
        PORT: String(port),
        ...(values.planned ? { NPU_ADVISOR_SHARE_PORT: '1' } : {}),
        NPU_ADVISOR_DATA_DIR: folder,
        NPU_ADVISOR_ARTIFACT_HOSTS: new URL(hub.blobUrl).host,
        NPU_ADVISOR_ANALYSES: String(Math.max(1, analyses)),
        NPU_ADVISOR_DRAIN_S: '0',
        NPU_ADVISOR_TEST: '1',
        NPU_ADVISOR_TEST_ANALYSER: SELF,
        LOG_LEVEL: 'warn',
      },
    });
  let child = start();
  const empty = spawn(process.execPath, [SELF, '--empty'], { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH: process.env.PATH ?? '' } });
  try {
    const url = await addressOf(child);
    const floorUrl = await addressOf(empty);
    hub.webhookUrl = `${url}/api/github/webhooks`;

    for (let i = 0; i < analyses; i++) {
      const pr = repository.openPullRequest({ author: 'alice', branch: `busy-${i}`, title: 'busy', changes: { 'train.py': `# ${i}\n` } });
      const run = repository.addWorkflowRun({ pr, status: 'completed', conclusion: 'success' });
      repository.addArtifact(run, { name: 'npu-profile', zipBuffer: Buffer.from('the bench does not read it') });
      await hub.deliver('workflow_run', { action: 'completed', run });
    }
    const isBusy = (): boolean => hub.journal.filter((e) => e.operation === 'checks/update' && e.status === 200).length >= analyses;
    while (!isBusy()) await new Promise((resolve) => setTimeout(resolve, 50));

    // Payloads as the loopback GitHub builds them; only the GUID differs from one delivery to the next.
    const quiet = repository.openPullRequest({ author: 'bob', branch: 'quiet', title: 'quiet', changes: { 'train.py': '# quiet\n' } });
    const run = repository.addWorkflowRun({ pr: quiet, status: 'completed', conclusion: 'success' });
    repository.closePullRequest(quiet);
    const comment = repository.comment(quiet, 'bob', 'Looks good to me.');
    const kept = await hub.deliver('workflow_run', { action: 'completed', run });
    const ignored = await hub.deliver('issue_comment', { action: 'created', comment });
    const bodies = [
      { event: 'workflow_run', body: JSON.stringify(kept.payload) },
      { event: 'issue_comment', body: JSON.stringify(ignored.payload) },
    ];
    const restart = async (): Promise<void> => {
      if (!values.planned) {
        await end(child);
        child = start();
        return;
      }
      const old = child;
      child = start(nextDir);
      await addressOf(child);
      await end(old, 'SIGTERM');
      if (old.exitCode !== 0) throw new Error(`the old server ended with ${old.exitCode ?? old.signalCode}`);
    };
    const load: Load = { url: hub.webhookUrl, floorUrl, count, rate, bodies, isPersistent: values.restart };
    const { samples, floor } = await new Promise<Awaited<ReturnType<typeof sendAll>>>((resolve, reject) => {
      const sender = new Worker(SELF, { workerData: load });
      sender.once('message', resolve);
      sender.once('error', reject);
      if (!values.restart) return;
      setTimeout(
        () => {
          void restart().catch(reject);
        },
        (count * 500) / rate,
      );
    });

    const failed = samples.filter(({ status }) => status !== 200).length;
    const sorted = samples.map(({ ms }) => ms).sort((a, b) => a - b);
    const p99 = quantile(sorted, 0.99);
    console.log(`${count} deliveries at ${rate}/s, ${analyses} analyses computing: ${figures(samples)}; ${failed} not answered with 200`);
    console.log(`p99 of each tenth, in ms: ${tenths(samples).join(' ')}; of the empty server: ${tenths(floor).join(' ')}`);
    console.log(`an empty server beside it: ${figures(floor)}`);
    console.log(
      p99 < TARGET_MS && failed === 0 ? `target met: p99 below ${TARGET_MS} ms` : `target missed: p99 must be below ${TARGET_MS} ms`,
    );
    let lost = 0;
    if (values.restart) {
      if (!values.planned) await addressOf(child).catch(() => '');
      await end(child);
      const again = samples.filter(({ tries }) => tries > 1).length;
      const wanted = samples.filter(({ event }) => event === 'workflow_run').map(({ guid }) => guid);
      const opened = await openForReading({ databaseUrl: postgres?.url ?? null, dataDir });
      const known = await opened.store.deliveries.known(wanted);
      const spooled = new Set(
        (await Promise.all([dataDir, nextDir].map((folder) => readSpool(spoolFolder(folder)).pending(count))))
          .flat()
          .map(({ guid }) => guid),
      );
      await opened.close();
      lost = wanted.filter((guid) => !known.has(guid) && !spooled.has(guid)).length;
      console.log(`until accepted, tries included: ${figures(samples, 'totalMs')}`);
      console.log(
        `${values.planned ? 'handed over' : 'killed'} half-way: ${again} sent again, ${wanted.length} to be kept, ${known.size} in the store, ${lost} lost`,
      );
    }
    console.log(`load of the machine ${loadavg()[0]!.toFixed(1)}`);
    process.exitCode = failed === 0 && lost === 0 && (p99 < TARGET_MS || !values.strict) ? 0 : 1;
  } finally {
    await end(child);
    await end(empty);
    await hub.close();
    await postgres?.stop();
    for (const folder of [dataDir, nextDir]) rmSync(folder, { recursive: true, force: true });
  }
}

if (!isMainThread && parentPort !== null && (workerData as Load | null)?.bodies !== undefined) {
  parentPort.postMessage(await sendAll(workerData as Load));
} else if (import.meta.main) {
  if (process.argv.includes('--server')) {
    const server = await serve(process.env);
    closeOnSignal(server);
    console.log(`LISTENING ${server.url}`);
  } else if (process.argv.includes('--empty')) listenEmpty();
  else await main();
}

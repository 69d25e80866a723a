import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createNodeMiddleware, Probot } from 'probot';
import { matchesAny } from '../config/glob.ts';
import { createFront, WEBHOOK_PATH } from '../github/front.ts';
import { createLogger, type Logger } from '../github/log.ts';
import { lockFolder } from '../store/embedded/folder-lock.ts';
import { openSpool } from '../store/embedded/spool.ts';
import { openInboxWithFallback } from '../store/inbox.ts';
import { spoolFolder } from '../store/open.ts';
import type { Inbox } from '../store/ports.ts';
import { openPostgres, reachPostgres } from '../store/postgres/database.ts';
import { openPostgresInbox } from '../store/postgres/inbox.ts';
import { createDetailsServer, type StoredPage } from './details/serve-details.ts';
import { drain } from './drain.ts';
import { readEnv, type ServerOptions } from './env.ts';
import { createKillPoint } from './kill-point.ts';
import { createFrontMetrics } from './metrics/front-metrics.ts';
import { createApp } from './probot-app.ts';
import { siblingModule } from './sibling-module.ts';
import { portTaken, startStatusServer } from './status-server.ts';
import type { FromWorkThread, Question, ToWorkThread } from './work-thread.ts';

export interface RunningServer {
  /** Where it listens, e.g. `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly webhookUrl: string;
  readonly port: number;
  /** Stops accepting, lets running jobs finish within the time set by NPU_ADVISOR_DRAIN_S, closes the store. */
  close(): Promise<void>;
}

export interface RunningWorker {
  close(): Promise<void>;
}

/** A compaction of the embedded store holds its thread up for some seconds. */
const ANSWER_MS = 5000;
const PROBLEM_REUSE_MS = 1000;
/** Jobs wait more than they compute: garbage is collected early (an idle server with PostgreSQL takes some 30 MB less). */
const YOUNG_MB = 12;
/** So long connections that are kept open may bring one more request to a server that ends. */
const LAST_ANSWERS_MS = 1000;
/** For a page somebody waits a little longer. */
const PAGE_MS = 30_000;

interface WorkThread {
  wake(): void;
  /** What is kept of a details page. Throws when it does not answer. */
  page(repoId: number, page: string, known: string | null): Promise<StoredPage>;
  /** Why it cannot work, one sentence; null: it can. */
  problem(): Promise<string | null>;
  /** Its part of /metrics; empty when it does not answer. */
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts store, queue and jobs on a thread of their own and waits until they are ready. */
async function startWorkThread(options: ServerOptions, onDeath: (error: Error) => void): Promise<WorkThread> {
  const thread = new Worker(siblingModule('work-thread', import.meta.url), {
    workerData: options,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  let state: 'starting' | 'ready' | 'stopping' | 'stopped' = 'starting';
  let stopped: () => void = () => undefined;
  const answers = new Map<number, (text: string | null) => void>();
  const pages = new Map<number, (stored: StoredPage | 'failed') => void>();
  let asked = 0;
  const ask = async (about: Question, otherwise: string): Promise<string | null> => {
    if (state !== 'ready') return about === 'problem' ? 'starting or stopping' : '';
    const id = ++asked;
    const silence = new AbortController();
    const answer = new Promise<string | null>((resolve) => answers.set(id, resolve));
    thread.postMessage({ type: 'ask', id, about } satisfies ToWorkThread);
    const limit = sleep(ANSWER_MS, otherwise, { ref: false, signal: silence.signal }).catch(() => otherwise);
    const text = await Promise.race([answer, limit]);
    silence.abort();
    answers.delete(id);
    return text;
  };
  /** Whoever asks often is told what was true a moment ago. */
  let latest: { readonly at: number; readonly problem: Promise<string | null> } | null = null;
  const hasStopped = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  await new Promise<void>((resolve, reject) => {
    const die = (error: Error): void => {
      const wasStarting = state === 'starting';
      const wasExpected = state === 'stopping' || state === 'stopped';
      state = 'stopped';
      stopped();
      if (wasStarting) reject(error);
      else if (!wasExpected) onDeath(error);
    };
    thread.on('message', (message: FromWorkThread) => {
      if (message.type === 'stopped') return stopped();
      if (message.type === 'page') return pages.get(message.id)?.(message.stored);
      if (message.type === 'answer') return answers.get(message.id)?.(message.text);
      state = 'ready';
      resolve();
    });
    thread.on('error', die);
    thread.on('exit', (code) => die(new Error(`the work thread ended with code ${code}`)));
  });
  return {
    wake: () => thread.postMessage({ type: 'wake' } satisfies ToWorkThread),
    async page(repoId, page, known) {
      if (state !== 'ready') throw new Error('starting or stopping');
      const id = ++asked;
      const answer = new Promise<StoredPage | 'failed'>((resolve) => pages.set(id, resolve));
      thread.postMessage({ type: 'page', id, repoId, page, known } satisfies ToWorkThread);
      const limit = setTimeout(() => pages.get(id)?.('failed'), PAGE_MS).unref();
      const stored = await answer;
      clearTimeout(limit);
      pages.delete(id);
      if (stored === 'failed') throw new Error('the store does not answer');
      return stored;
    },
    problem() {
      if (latest === null || state !== 'ready' || performance.now() - latest.at > PROBLEM_REUSE_MS)
        latest = { at: performance.now(), problem: ask('problem', `jobs have not answered for ${ANSWER_MS / 1000} s`) };
      return latest.problem;
    },
    metrics: async () => (await ask('metrics', '')) ?? '',
    async stop() {
      if (state !== 'ready') return;
      state = 'stopping';
      thread.postMessage({ type: 'stop', graceMs: options.drainMs } satisfies ToWorkThread);
      const limit = new Promise<void>((resolve) => setTimeout(resolve, options.drainMs + 15_000).unref());
      await Promise.race([hasStopped, limit]);
      await thread.terminate();
    },
  };
}

/** Where accepted deliveries are kept until the work thread takes them: a file each, or the shared database while it answers. */
function openInbox(options: ServerOptions, log: Logger): Inbox {
  const spool = openSpool(spoolFolder(options.dataDir));
  if (options.databaseUrl === null) return spool;
  const database = openPostgres(options.databaseUrl, 4);
  const shared = { ...openPostgresInbox(database), close: () => database.close() };
  return openInboxWithFallback(shared, spool, (error) =>
    log.warn({ err: error }, 'the database is not there, deliveries are kept on disk'),
  );
}

function listen(server: Server, { port, host, sharesPort }: ServerOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(error.code === 'EADDRINUSE' ? portTaken('PORT', port) : error));
    server.listen({ port, host, reusePort: sharesPort }, () => {
      server.removeListener('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

function endProcess(log: Logger): (error: Error) => void {
  return (error) => {
    // Accepted deliveries are on disk; whoever supervises this process starts it again and they are worked on.
    log.fatal({ err: error }, 'the work thread died, ending the process');
    process.exit(1);
  };
}

/** The process is seen to live from its first moment, which may be a long migration; it is ready once there is something to follow. */
function earlyStatus(): Pick<WorkThread, 'problem' | 'metrics'> & { follow(work: WorkThread): void } {
  let followed: WorkThread | null = null;
  return {
    problem: async () => (followed === null ? 'starting' : followed.problem()),
    metrics: async () => (followed === null ? '' : followed.metrics()),
    follow(work) {
      followed = work;
    },
  };
}

/** Starts the App: webhook front, store and jobs. Throws AdviseError with one clear sentence when it must not start. */
export async function serve(env: Readonly<Record<string, string | undefined>> = process.env): Promise<RunningServer> {
  const options = readEnv(env);
  const log = createLogger(options.logLevel);
  const killPoint = createKillPoint(options.killAt);
  const lock = lockFolder(options.dataDir);
  const begun: (() => Promise<unknown>)[] = [];
  try {
    const metrics = createFrontMetrics();
    const early = earlyStatus();
    let isDraining = false;
    const problem = async (): Promise<string | null> => (isDraining ? 'stopping' : early.problem());
    const status = await startStatusServer(options, metrics, { problem, metrics: early.metrics });
    begun.push(status.close);
    if (options.databaseUrl !== null) await reachPostgres(options.databaseUrl);
    const work = await startWorkThread(options, endProcess(log));
    begun.push(work.stop);
    const inbox = openInbox(options, log);
    const probot = new Probot({
      appId: options.appId,
      privateKey: options.privateKey,
      secret: options.webhookSecret,
      baseUrl: options.apiUrl,
      log,
    });
    const onAccepted = (): void => {
      killPoint('after-delivery-accepted');
      work.wake();
    };
    const served = options.repositories.map((pattern) => pattern.toLowerCase());
    const isServed = (repository: string): boolean => served.length === 0 || matchesAny(served, repository.toLowerCase());
    const middleware = await createNodeMiddleware(createApp({ inbox, log, isServed, onAccepted }), { probot, webhooksPath: WEBHOOK_PATH });
    const { webhookSecret: secret, previousWebhookSecret: previousSecret } = options;
    const { publicUrl, linkDays } = options;
    const secrets = previousSecret === null ? [secret] : [secret, previousSecret];
    const details = publicUrl === null ? null : createDetailsServer({ secrets, publicUrl, linkDays, read: work.page, log });
    const front = createFront({ secret, previousSecret, middleware, problem, details: details?.handle ?? null, log });
    const server = createServer(metrics.counted(front));
    server.requestTimeout = 30_000;
    server.headersTimeout = 10_000;
    early.follow(work);
    const address = await listen(server, options);
    const url = `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
    log.info(
      { url, metrics: status.url, store: options.databaseUrl === null ? 'embedded' : 'postgres', api: options.apiUrl },
      'server started',
    );

    let closing: Promise<void> | null = null;
    const close = async (): Promise<void> => {
      isDraining = true;
      await drain(server, options.isTest && !options.sharesPort ? 0 : LAST_ANSWERS_MS);
      await details?.close();
      await work.stop();
      await status.close();
      await inbox.close();
      lock.release();
      log.info('server stopped');
    };
    return {
      url,
      webhookUrl: `${url}${WEBHOOK_PATH}`,
      port: address.port,
      close: () => {
        closing ??= close();
        return closing;
      },
    };
  } catch (error) {
    // What runs already would keep the process alive, without a way to reach it.
    for (const end of begun.reverse()) await end().catch(() => undefined);
    lock.release();
    throw error;
  }
}

/** Starts jobs without a webhook front, for more hands on a shared PostgreSQL. */
export async function work(env: Readonly<Record<string, string | undefined>> = process.env): Promise<RunningWorker> {
  const options = readEnv(env);
  const log = createLogger(options.logLevel);
  const lock = lockFolder(options.dataDir);
  const begun: (() => Promise<unknown>)[] = [];
  try {
    const early = earlyStatus();
    const status = await startStatusServer(options, createFrontMetrics(), early);
    begun.push(status.close);
    if (options.databaseUrl !== null) await reachPostgres(options.databaseUrl);
    const thread = await startWorkThread(options, endProcess(log));
    early.follow(thread);
    log.info({ metrics: status.url, store: options.databaseUrl === null ? 'embedded' : 'postgres', api: options.apiUrl }, 'worker started');
    return {
      async close() {
        await thread.stop();
        await status.close();
        lock.release();
        log.info('worker stopped');
      },
    };
  } catch (error) {
    for (const end of begun.reverse()) await end().catch(() => undefined);
    lock.release();
    throw error;
  }
}

/** Closes a running server or worker on SIGTERM and SIGINT, then ends the process. */
export function closeOnSignal(running: { close(): Promise<void> }): void {
  let isClosing = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (isClosing) return;
      isClosing = true;
      running.close().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}

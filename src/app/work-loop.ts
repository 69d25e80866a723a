import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { VERSION } from '../engine/version.ts';
import { createGitHub } from '../github/client.ts';
import { EVENTS } from '../github/intake.ts';
import type { Logger } from '../github/log.ts';
import { createOutboundPolicy } from '../github/outbound.ts';
import { redeliverFailed } from '../github/redeliver.ts';
import { RULES } from '../rules/index.ts';
import { openStore } from '../store/open.ts';
import { createAnalysisRunner } from './analysis-runner.ts';
import type { ServerOptions } from './env.ts';
import type { Dependencies } from './jobs/dependencies.ts';
import { eraseRemoved, findRemoved } from './jobs/erase.ts';
import { handleSubject } from './jobs/handle-subject.ts';
import { ingest } from './jobs/ingest.ts';
import { noteAbsence, noteAlive, reconcile } from './jobs/reconcile.ts';
import { createSemaphore } from './jobs/semaphore.ts';
import { prune, sweep } from './jobs/sweep.ts';
import { createKillPoint } from './kill-point.ts';
import { siblingModule } from './sibling-module.ts';

/** Subjects handled at the same time. Most wait for GitHub; analyses have a limit of their own. */
const CONCURRENCY = 6;
const INGEST_MS = 1000;
const REDELIVER_MS = 3600 * 1000;
/** The server listens by then. */
const REDELIVER_FIRST_MS = 10_000;
const PRUNE_MS = 6 * 3600 * 1000;
/** Files of the spool that cannot be read are kept so long for whoever wants to look at them. */
const DAMAGED_MS = 12 * 3600 * 1000;
/** A job that says nothing for this long is taken for dead. */
const EXPIRE_SECONDS = 4 * 3600;

export interface WorkLoop {
  /** A delivery was accepted: look at once. */
  wake(): void;
  /** Finishes what runs, within the time allowed, and closes the store. */
  stop(graceMs: number): Promise<void>;
}

/** Everything behind the webhook: store, queue, jobs, deadlines. The data folder must be locked by the caller. */
export async function startWorkLoop(options: ServerOptions, log: Logger): Promise<WorkLoop> {
  const scratch = join(options.dataDir, 'scratch');
  // The folder is ours alone, so whatever lies in it was left by a process that died.
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true, mode: 0o700 });

  const controller = new AbortController();
  const opened = await openStore({
    databaseUrl: options.databaseUrl,
    dataDir: options.dataDir,
    retryLimit: options.attempts,
    retryDelaySeconds: options.retryDelaySeconds,
    expireSeconds: EXPIRE_SECONDS,
    onError: (error) => log.error({ err: error }, 'queue error'),
  });
  const analyser = options.testAnalyser ?? siblingModule('analyser', import.meta.url);
  const limits = { timeoutMs: options.analysisTimeoutMs, memoryMb: options.analysisMemoryMb };
  const deps: Dependencies = {
    store: opened.store,
    queue: opened.queue,
    github: createGitHub({
      appId: options.appId,
      privateKey: options.privateKey,
      apiUrl: options.apiUrl,
      userAgent: `npu-advisor/${VERSION}`,
      throttle: !options.isTest,
      log,
    }),
    analysis: createAnalysisRunner(pathToFileURL(analyser).href, limits, scratch),
    policy: createOutboundPolicy(options.artifactHosts, options.apiUrl),
    catalog: new Map(RULES.map((rule) => [rule.id, Object.keys(rule.options)])),
    log,
    options,
    scratch,
    killPoint: createKillPoint(options.killAt),
    signal: controller.signal,
    analysisSlot: createSemaphore(options.analyses),
    now: Date.now,
  };

  await noteAbsence(deps);
  await noteAlive(deps);
  await opened.queue.work((subject) => handleSubject(deps, subject), CONCURRENCY);

  let ingesting: Promise<unknown> | null = null;
  let isAgain = false;
  const wake = (): void => {
    if (ingesting !== null) {
      isAgain = true;
      return;
    }
    ingesting = ingest(deps, opened.inbox)
      .catch((error: unknown) => log.error({ err: error }, 'deliveries could not be taken in'))
      .finally(() => {
        ingesting = null;
        if (isAgain && !controller.signal.aborted) {
          isAgain = false;
          wake();
        }
      });
  };
  let sweeping: Promise<unknown> | null = null;
  const runSweep = (): void => {
    sweeping ??= noteAlive(deps)
      .then(() => sweep(deps))
      .then(() => eraseRemoved(deps))
      .catch((error: unknown) => log.error({ err: error }, 'sweep failed'))
      .finally(() => {
        sweeping = null;
      });
  };
  const runRedelivery = (): void => {
    opened.store.database
      .exclusively('redeliver', () => redeliverFailed(deps.github.app, new Set<string>(EVENTS), opened.store.deliveries.known, deps.now()))
      .then((count) => {
        if (count > 0) log.info({ count }, 'missed deliveries asked for again');
      })
      .catch((error: unknown) => {
        if (!controller.signal.aborted) log.warn({ err: error }, 'missed deliveries could not be asked for');
      });
    opened.store.database
      .exclusively('reconcile', () => reconcile(deps))
      .catch((error: unknown) => {
        if (!controller.signal.aborted) log.warn({ err: error }, 'what was missed could not be looked for');
      });
  };
  const runFirst = (): void => {
    runRedelivery();
    runPrune();
  };
  /** What is old, and what should have been told of but was not. */
  const runPrune = (): void => {
    prune(deps)
      .then(() => opened.inbox.tidy?.(deps.now() - DAMAGED_MS))
      .then(() => opened.store.database.exclusively('find-removed', () => findRemoved(deps)))
      .catch((error: unknown) => {
        if (!controller.signal.aborted) log.error({ err: error }, 'old data could not be looked through');
      });
  };
  wake();
  runSweep();
  const first = setTimeout(runFirst, Math.min(REDELIVER_FIRST_MS, options.isTest ? options.sweepMs : REDELIVER_FIRST_MS));
  const timers = [
    setInterval(wake, INGEST_MS),
    setInterval(runSweep, options.sweepMs),
    setInterval(runRedelivery, REDELIVER_MS),
    setInterval(runPrune, PRUNE_MS),
  ];

  return {
    wake,
    async stop(graceMs) {
      clearTimeout(first);
      for (const timer of timers) clearInterval(timer);
      const abort = setTimeout(() => controller.abort(new Error('the server is stopping')), graceMs);
      await opened.queue.drain(graceMs + 2000);
      clearTimeout(abort);
      controller.abort(new Error('the server is stopping'));
      await ingesting;
      await sweeping;
      await opened.close();
      await rm(scratch, { recursive: true, force: true });
    },
  };
}

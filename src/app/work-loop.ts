import { mkdir, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { VERSION } from '../engine/version.ts';
import { createGitHub } from '../github/client.ts';
import { EVENTS } from '../github/intake.ts';
import type { Logger } from '../github/log.ts';
import { createOutboundPolicy } from '../github/outbound.ts';
import { redeliverFailed } from '../github/redeliver.ts';
import { RULES } from '../rules/index.ts';
import { readDepth } from '../store/depth.ts';
import { openStore } from '../store/open.ts';
import { createAnalysisRunner } from './analysis-runner.ts';
import { createDetailsLinks } from './details/link.ts';
import type { StoredPage } from './details/serve-details.ts';
import type { ServerOptions } from './env.ts';
import { createBudget, slotsFor } from './jobs/budget.ts';
import type { Dependencies } from './jobs/dependencies.ts';
import { eraseRemoved, findRemoved } from './jobs/erase.ts';
import { handleSubject } from './jobs/handle-subject.ts';
import { ingest } from './jobs/ingest.ts';
import { noteAbsence, noteAlive, reconcile } from './jobs/reconcile.ts';
import { prune, sweep } from './jobs/sweep.ts';
import { createKillPoint } from './kill-point.ts';
import { createJobMetrics } from './metrics/job-metrics.ts';
import { siblingModule } from './sibling-module.ts';

/** Commands, heads and runs handled at the same time; most of their time they wait for GitHub. */
const LIGHT_HANDS = 4;
/** Of the free room of the disk; the rest is left to whoever shares it. */
const FREE_SHARE = 0.8;
/** Pull requests handled beside those that are being analysed: they fetch settings and source, wait for their turn, or publish. */
const SPARE_HANDS = 3;
const INGEST_MS = 1000;
const REDELIVER_MS = 3600 * 1000;
/** The server listens by then. */
const REDELIVER_FIRST_MS = 10_000;
const PRUNE_MS = 6 * 3600 * 1000;
/** Files of the spool that cannot be read are kept so long for whoever wants to look at them. */
const DAMAGED_MS = 12 * 3600 * 1000;
/** After its grace a job is stopped, and has so long to give back what it holds. */
const GIVE_BACK_MS = 4000;
/** Clocks that differ by more deserve a look. */
const SKEW_MS = 30_000;
/** How often errors of the queue are said. */
const QUEUE_ERROR_MS = 5000;
/** A job that says nothing for this long is taken for dead. */
const EXPIRE_SECONDS = 4 * 3600;

/** Deliveries are taken in every second; a compaction of the embedded store holds everything up for some seconds. */
const SILENT_S = 60;

export interface WorkLoop {
  /** Why deliveries are not worked on, one sentence; null: they are. */
  problem(): Promise<string | null>;
  /** What the jobs do, in the text format of Prometheus. */
  metrics(): Promise<string>;
  /** A delivery was accepted: look at once. */
  wake(): void;
  /** What is kept of a details page. */
  page(repoId: number, page: string, known: string | null): Promise<StoredPage>;
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
    blobs: options.blobs,
    retryLimit: options.attempts,
    retryDelaySeconds: options.retryDelaySeconds,
    expireSeconds: EXPIRE_SECONDS,
    onError: saidSeldom((error, unsaid) => log.error({ err: error, unsaid }, 'queue error')),
  });
  const metrics = createJobMetrics(RULES.map(({ id }) => id));
  const analyser = options.testAnalyser ?? siblingModule('analyser', import.meta.url);
  const slots = slotsFor(options.analyses, options.analysisMemoryMb, options.memoryMb);
  if (slots < options.analyses)
    log.warn({ analyses: options.analyses, slots, memoryMb: options.memoryMb }, 'fewer analyses run at a time than asked for: memory');
  const freeDisk = async (): Promise<number> => {
    if (options.diskBytes !== null) return options.diskBytes;
    const { bavail, bsize } = await statfs(scratch);
    return bavail * bsize * FREE_SHARE;
  };
  const limits = { timeoutMs: options.analysisTimeoutMs, memoryMb: options.analysisMemoryMb };
  const deps: Dependencies = {
    store: metrics.store(opened.store),
    queue: opened.queue,
    github: createGitHub({
      appId: options.appId,
      privateKey: options.privateKey,
      apiUrl: options.apiUrl,
      userAgent: `npu-advisor/${VERSION}`,
      throttle: !options.isTest,
      log,
      onExchange: metrics.onExchange,
      now: opened.clock.now,
    }),
    analysis: metrics.analysis(createAnalysisRunner(pathToFileURL(analyser).href, limits, scratch)),
    policy: createOutboundPolicy(options.artifactHosts, options.apiUrl),
    catalog: new Map(RULES.map((rule) => [rule.id, Object.keys(rule.options)])),
    log,
    options,
    scratch,
    killPoint: createKillPoint(options.killAt),
    signal: controller.signal,
    analysisSlot: metrics.analysisSlot(createBudget({ slots, freeDisk })),
    now: opened.clock.now,
    links: options.publicUrl === null ? null : createDetailsLinks(options.publicUrl, options.webhookSecret, options.linkDays),
    timed: metrics.timed,
  };

  const { behindMs } = opened.clock;
  if (Math.abs(behindMs) > SKEW_MS)
    log.warn({ behindMs }, 'the clock of this machine differs from that of the database, which is followed');
  await noteAbsence(deps);
  await noteAlive(deps);
  const hands = { light: LIGHT_HANDS, heavy: slots + SPARE_HANDS, portions: slots };
  await opened.queue.work((subject) => handleSubject(deps, subject), hands);

  let ingesting: Promise<unknown> | null = null;
  let takenInAt = performance.now();
  let isAgain = false;
  const wake = (): void => {
    if (ingesting !== null) {
      isAgain = true;
      return;
    }
    ingesting = ingest(deps, opened.inbox)
      .then(() => {
        takenInAt = performance.now();
      })
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
    page: opened.store.pages.read,
    async problem() {
      if (controller.signal.aborted) return 'the server is stopping';
      try {
        await opened.store.database.query('SELECT 1');
      } catch (error) {
        return `the store does not answer${codeOf(error)}; see the log`;
      }
      const silentS = Math.round((performance.now() - takenInAt) / 1000);
      return silentS > SILENT_S ? `accepted deliveries have not been taken in for ${silentS} s; see the log` : null;
    },
    metrics: () => metrics.text(() => readDepth(opened.store.database, deps.now())),
    async stop(graceMs) {
      clearTimeout(first);
      for (const timer of timers) clearInterval(timer);
      const abort = setTimeout(() => controller.abort(new Error('the server is stopping')), graceMs);
      await opened.queue.drain(graceMs + GIVE_BACK_MS);
      clearTimeout(abort);
      controller.abort(new Error('the server is stopping'));
      await ingesting;
      await sweeping;
      await opened.close();
      await rm(scratch, { recursive: true, force: true });
    },
  };
}

/** Passes an error on unless one was passed on a moment ago: while a database is away, everything that asks it says so twice a second. */
function saidSeldom(say: (error: Error, unsaid: number) => void): (error: Error) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return (error) => {
    if (performance.now() - saidAt < QUEUE_ERROR_MS) {
      unsaid++;
      return;
    }
    say(error, unsaid);
    saidAt = performance.now();
    unsaid = 0;
  };
}

/** The code of an error of the system, such as ECONNREFUSED; its text may name hosts and users. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[A-Z0-9_]{3,30}$/.test(code) ? ` (${code})` : '';
}

/* The jobs without a server around them, on a real store and a loopback GitHub: deliveries one by one, at any time of a clock that can be moved. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoopbackGitHub, startLoopbackGitHub, type WebhookRequests } from '../../../lab/loopback-github/index.ts';
import { createDetailsLinks } from '../../../src/app/details/link.ts';
import type { Dependencies } from '../../../src/app/jobs/dependencies.ts';
import { eraseRemoved } from '../../../src/app/jobs/erase.ts';
import { handleSubject } from '../../../src/app/jobs/handle-subject.ts';
import { ingest } from '../../../src/app/jobs/ingest.ts';
import { sweep } from '../../../src/app/jobs/sweep.ts';
import { parseCommands } from '../../../src/commands/parse.ts';
import { createGitHub } from '../../../src/github/client.ts';
import { EVENTS, toTask } from '../../../src/github/intake.ts';
import { createLogger } from '../../../src/github/log.ts';
import { createOutboundPolicy } from '../../../src/github/outbound.ts';
import { openSpool } from '../../../src/store/embedded/spool.ts';
import { type OpenStore, openStore, spoolFolder } from '../../../src/store/open.ts';
import { createStore } from '../../../src/store/tables.ts';
import { copyEmptyStore } from './empty-store.ts';
import { analysePlan } from './fake-analyser.ts';

/** A delivery as it lies in the spool. */
export interface Spooled {
  readonly guid: string;
  readonly event: string;
  /** null: the App is told of it and does nothing. */
  readonly body: string | null;
}

export interface Jobs {
  readonly hub: LoopbackGitHub;
  readonly deps: Dependencies;
  readonly opened: OpenStore;
  readonly dataDir: string;
  /** Errors and warnings that were logged. */
  readonly log: string[];
  /** When what was put off is to be done, by subject. While `waits` is not set, the clock moves on to it as soon as nothing else is to do. */
  readonly putOff: Map<string, number>;
  waits: boolean;
  /** Taking erased bytes out of the files takes long; only where files are looked at. */
  compacts: boolean;
  advance(ms: number): void;
  /** What GitHub would send now. */
  make<Event extends keyof WebhookRequests>(event: Event, request: WebhookRequests[Event], options?: { sender?: string }): Promise<Spooled>;
  /** Accepts deliveries, without working on them. */
  accept(...deliveries: readonly Spooled[]): Promise<void>;
  /** Accepts and works off. */
  take<Event extends keyof WebhookRequests>(event: Event, request: WebhookRequests[Event], options?: { sender?: string }): Promise<void>;
  workOff(): Promise<void>;
  /** Deadlines, forgotten work, erasure; then works off. */
  sweep(): Promise<void>;
  close(): Promise<void>;
}

/** `other`: another GitHub than the loopback one. `enterprise`: the version of an Enterprise Server that the loopback one stands for. */
export async function openJobs(
  options: Partial<Dependencies['options']> = {},
  other: { readonly apiUrl: string; readonly privateKey: string } | null = null,
  enterprise: string | null = null,
): Promise<Jobs> {
  const app = { id: 4242, slug: 'npu-advisor', webhookSecret: 'x'.repeat(40) };
  const hub = await startLoopbackGitHub({ app, ...(enterprise === null ? {} : { enterprise }) });
  const dataDir = mkdtempSync(join(tmpdir(), 'npu-advisor-jobs-'));
  await copyEmptyStore(dataDir);
  const lines: string[] = [];
  const logger = createLogger('warn', { write: (line: string) => void lines.push(line) });
  let offset = 0;
  const now = (): number => Date.now() + offset;
  const opened = await openStore({
    databaseUrl: null,
    dataDir,
    retryLimit: 1,
    retryDelaySeconds: 0,
    expireSeconds: 60,
    onError: () => undefined,
  });
  const subjects = new Set<string>();
  const putOff = new Map<string, number>();
  const store = createStore(opened.store.database, now);
  const compact = async (): Promise<void> => {
    if (jobs.compacts) await store.erasures.compact();
  };
  const deps: Dependencies = {
    store: { ...store, erasures: { ...store.erasures, compact } },
    queue: {
      ...opened.queue,
      poke: async (subject) => void subjects.add(subject),
      pokeIfIdle: async (subject) => void subjects.add(subject),
      putOff: async (subject, ms) => void putOff.set(subject, now() + ms),
    },
    github: createGitHub({
      appId: 4242,
      privateKey: other?.privateKey ?? hub.privateKeyPem,
      apiUrl: other?.apiUrl ?? hub.apiUrl,
      userAgent: 'npu-advisor/test',
      throttle: false,
      log: logger,
      now,
    }),
    analysis: {
      analyse: (request, hooks) => analysePlan(request, { onProgress: () => undefined, signal: hooks.signal }),
      parts: async () => [],
      digest: async () => {
        throw new Error('no portion is read here');
      },
    },
    timed: (_, body) => body(),
    policy: createOutboundPolicy([new URL(hub.blobUrl).host], hub.apiUrl),
    catalog: undefined,
    log: logger,
    options: {
      maxArtifactBytes: 1e7,
      maxDailyBytes: 1e12,
      spreadBytes: 0,
      portionBytes: 1e9,
      downloadTimeoutMs: 5000,
      analysisTimeoutMs: 60_000,
      attempts: 3,
      retryDelaySeconds: 0,
      analyses: 1,
      progressMs: 0,
      commandsPerHour: 1000,
      isTest: true,
      ...options,
    },
    scratch: join(dataDir, 'scratch'),
    killPoint: () => undefined,
    signal: new AbortController().signal,
    analysisSlot: (body) => body(),
    links: createDetailsLinks('https://advisor.example', app.webhookSecret, 30),
    now,
  };
  const spool = openSpool(spoolFolder(dataDir));

  const jobs: Jobs = {
    hub,
    deps,
    opened,
    dataDir,
    log: lines,
    putOff,
    waits: false,
    compacts: false,
    advance(ms) {
      offset += Math.ceil(ms);
    },
    async make(event, request, { sender } = {}) {
      const result = await hub.deliver(event, request, { drop: true, ...(sender === undefined ? {} : { sender }) });
      const name = `${event}.${String(result.payload.action)}`;
      // As the webhook does: only these events come in, and only what is left of them is kept.
      const task = (EVENTS as readonly string[]).includes(name) ? toTask(name, result.payload, parseCommands) : null;
      return { guid: result.guid, event: name, body: task === null ? null : JSON.stringify(task) };
    },
    async accept(...deliveries) {
      for (const { guid, event, body } of deliveries) {
        if (body !== null) await spool.accept({ guid, event, receivedAt: now(), body });
      }
    },
    async take(event, request, sending) {
      await jobs.accept(await jobs.make(event, request, sending));
      await jobs.workOff();
    },
    async workOff() {
      await ingest(deps, opened.inbox);
      const wake = (): void => {
        for (const [subject, at] of putOff) if (at <= now() && putOff.delete(subject)) subjects.add(subject);
        if (subjects.size > 0 || putOff.size === 0 || jobs.waits) return;
        jobs.advance(Math.max(1, Math.ceil(Math.min(...putOff.values()) - now())));
        wake();
      };
      for (let rounds = 0; ; rounds++) {
        wake();
        if (subjects.size === 0) break;
        if (rounds > 20_000) throw new Error(`work does not end: ${[...subjects].slice(0, 5).join(', ')}`);
        const [subject] = subjects;
        subjects.delete(subject!);
        await handleSubject(deps, subject!).catch(() => subjects.add(subject!));
      }
    },
    async sweep() {
      await sweep(deps);
      await eraseRemoved(deps);
      await jobs.workOff();
    },
    async close() {
      await spool.close();
      await opened.queue.drain(100);
      await opened.close();
      await hub.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  return jobs;
}

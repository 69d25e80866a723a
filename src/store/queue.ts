import { type Db, PgBoss } from 'pg-boss';
import type { Database, Queue } from './ports.ts';
import { boundsOf, HANDLED_TOGETHER, installationsOf, priorityOf } from './turn.ts';

const NAME = 'subject';
/** How long a job that another process has handed in may lie before somebody looks. */
const POLLING_S = 0.5;
/** Waiting jobs of one installation that are counted to find a job's place. */
const MAX_COUNTED = 20_000;

/** One that takes up a job at a time. Each is a worker of its own, so that each can be woken. */
interface Hand {
  id: string;
  isBusy: boolean;
  takes(priority: number): boolean;
}

interface Bounds {
  readonly minPriority?: number;
  readonly maxPriority?: number;
}

export interface QueueOptions {
  /** Where pg-boss keeps its own tables. */
  readonly connection:
    | { readonly backend: 'pglite'; readonly db: Db }
    | { readonly backend: 'postgres'; readonly connectionString: string };
  readonly database: Database;
  /** True when no other process can hold jobs: jobs left active by a dead process are freed at once. */
  readonly soleOwner: boolean;
  readonly retryLimit: number;
  readonly retryDelaySeconds: number;
  readonly expireSeconds: number;
  readonly onError: (error: Error) => void;
}

/** A queue of subjects on pg-boss. Jobs carry no data beyond the subject; what is to be done lies in the requests table. */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const shared = options.connection;
  const boss = new PgBoss({
    ...(shared.backend === 'pglite' ? { db: shared.db } : { connectionString: shared.connectionString, max: 4 }),
    backend: shared.backend,
    schema: 'npu_advisor_queue',
    schedule: false,
    superviseIntervalSeconds: options.soleOwner ? 60 : 5,
    monitorIntervalSeconds: options.soleOwner ? 60 : 5,
    reindex: false,
    monitorVacuum: false,
  });
  boss.on('error', options.onError);
  await boss.start();
  const settings = {
    retryLimit: options.retryLimit,
    retryDelay: options.retryDelaySeconds,
    retryBackoff: true,
    retryDelayMax: 300,
    expireInSeconds: options.expireSeconds,
    deleteAfterSeconds: 24 * 3600,
    // Without a sign of life for this long the job goes to another process. 10 is the least pg-boss accepts.
    ...(options.soleOwner ? {} : { heartbeatSeconds: 15 }),
  };
  await boss.createQueue(NAME, { policy: 'singleton', ...settings });
  await boss.updateQueue(NAME, settings);
  if (options.soleOwner) {
    const stale = await options.database.query<{ id: string }>(
      `SELECT id FROM npu_advisor_queue.job WHERE name = '${NAME}' AND state = 'active'`,
    );
    // The requests they stood for are still pending and are poked again by the caller.
    if (stale.length > 0)
      await boss.cancel(
        NAME,
        stale.map((row) => row.id),
      );
  }

  const hands: Hand[] = [];
  const installationOf = installationsOf(options.database);
  const poke = async (subject: string): Promise<void> => {
    const group = await installationOf(subject);
    const { lowest, highest } = boundsOf(subject);
    const [found] = await options.database.query<{ own: number | string; waiting: number | string }>(
      `SELECT count(*) FILTER (WHERE singleton_key = $1 AND state = 'created' AND start_after <= now()) AS own, count(*) AS waiting
       FROM (SELECT singleton_key, state, start_after FROM npu_advisor_queue.job
             WHERE name = '${NAME}' AND state < 'active' AND (singleton_key = $1 OR group_id = $2 AND priority BETWEEN $3 AND $4)
             LIMIT ${MAX_COUNTED}) AS found`,
      [subject, group, lowest, highest],
    );
    // One that has not begun will see everything that was asked for until now.
    const priority = priorityOf(subject, Number(found?.waiting ?? 0));
    if (Number(found?.own ?? 0) === 0) await boss.send(NAME, { subject }, { singletonKey: subject, priority, group: { id: group } });
    const idle = hands.find((hand) => !hand.isBusy && hand.takes(priority));
    if (idle !== undefined) boss.notifyWorker(idle.id);
  };
  return {
    poke,
    async pokeIfIdle(subject) {
      const live = await options.database.query(
        `SELECT 1 FROM npu_advisor_queue.job WHERE name = '${NAME}' AND singleton_key = $1 AND state <= 'active' LIMIT 1`,
        [subject],
      );
      if (live.length === 0) await poke(subject);
    },
    async putOff(subject, ms) {
      const waiting = await options.database.query(
        `SELECT 1 FROM npu_advisor_queue.job
         WHERE name = '${NAME}' AND singleton_key = $1 AND state = 'created' AND start_after > now() LIMIT 1`,
        [subject],
      );
      if (waiting.length > 0) return;
      const group = await installationOf(subject);
      const startAfter = Math.max(1, Math.ceil(ms / 1000));
      await boss.send(NAME, { subject }, { singletonKey: subject, priority: priorityOf(subject, 0), group: { id: group }, startAfter });
    },
    async putOffFor(prefix) {
      const [row] = await options.database.query<{ ms: number | string | null }>(
        `SELECT max(extract(epoch FROM start_after - now())) * 1000 AS ms FROM npu_advisor_queue.job
         WHERE name = '${NAME}' AND state = 'created' AND start_after > now() AND starts_with(singleton_key, $1)`,
        [prefix],
      );
      return row?.ms == null ? null : Number(row.ms);
    },
    async work(handler, { light, heavy, portions }) {
      const polling = { includeMetadata: true, pollingIntervalSeconds: POLLING_S } as const;
      const grip = async (bounds: Bounds): Promise<void> => {
        const { minPriority = Number.NEGATIVE_INFINITY, maxPriority = Number.POSITIVE_INFINITY } = bounds;
        const hand: Hand = { id: '', isBusy: false, takes: (priority) => priority >= minPriority && priority <= maxPriority };
        const handle = async (jobs: { readonly data: { subject: string }; readonly retryCount: number }[]): Promise<void> => {
          hand.isBusy = true;
          try {
            for (const job of jobs) await handler(job.data.subject, job.retryCount + 1);
          } finally {
            hand.isBusy = false;
            // Whoever has just had a job asks for the next at once; by itself it would wait until it is time to look again.
            boss.notifyWorker(hand.id);
          }
        };
        hand.id = await boss.work<{ subject: string }, void, typeof polling & typeof bounds>(NAME, { ...polling, ...bounds }, handle);
        hands.push(hand);
      };
      // Side by side, so that analyses that take hours do not keep a command waiting.
      for (let i = 0; i < light; i++) await grip(HANDLED_TOGETHER.light);
      for (let i = 0; i < heavy; i++) await grip(HANDLED_TOGETHER.heavy);
      for (let i = 0; i < portions; i++) await grip(HANDLED_TOGETHER.portions);
    },
    async drain(timeoutMs) {
      await boss.stop({ graceful: true, timeout: timeoutMs, close: true });
    },
  };
}

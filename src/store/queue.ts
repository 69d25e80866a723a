import { type Db, PgBoss } from 'pg-boss';
import type { Database, Queue } from './ports.ts';
import { boundsOf, HANDLED_TOGETHER, installationsOf, priorityOf } from './turn.ts';

const NAME = 'subject';
/** Waiting jobs of one installation that are counted to find a job's place. */
const MAX_COUNTED = 20_000;

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

  const workerIds: string[] = [];
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
    if (Number(found?.own ?? 0) === 0) {
      const priority = priorityOf(subject, Number(found?.waiting ?? 0));
      await boss.send(NAME, { subject }, { singletonKey: subject, priority, group: { id: group } });
    }
    for (const id of workerIds) boss.notifyWorker(id);
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
    async work(handler, { light, heavy, perInstallation, portions }) {
      const polling = { includeMetadata: true, pollingIntervalSeconds: 0.5 } as const;
      // Side by side, so that analyses that take hours do not keep a command waiting.
      for (const bounds of [
        { localConcurrency: light, ...HANDLED_TOGETHER.light },
        { localConcurrency: heavy, localGroupConcurrency: perInstallation, ...HANDLED_TOGETHER.heavy },
        { localConcurrency: portions, ...HANDLED_TOGETHER.portions },
      ]) {
        const id = await boss.work<{ subject: string }, void, typeof polling & typeof bounds>(
          NAME,
          { ...polling, ...bounds },
          async (jobs) => {
            for (const job of jobs) await handler(job.data.subject, job.retryCount + 1);
          },
        );
        workerIds.push(id);
      }
    },
    async drain(timeoutMs) {
      await boss.stop({ graceful: true, timeout: timeoutMs, close: true });
    },
  };
}

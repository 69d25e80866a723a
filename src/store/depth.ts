import type { Database } from './ports.ts';

/** How much is waiting in a store, for all processes that share it. */
export interface Depth {
  /** By state: never tried, to be tried again, given up. */
  readonly requests: { readonly new: number; readonly retrying: number; readonly failed: number };
  readonly jobs: { readonly created: number; readonly retry: number; readonly active: number };
  /** 0: nothing waits. */
  readonly oldestSeconds: number;
  /** Check runs that are not concluded. */
  readonly openChecks: number;
}

/** Counts what is waiting. All but the failed ones by partial indexes, so that it may be asked for every few seconds. */
export async function readDepth(database: Database, now: number): Promise<Depth> {
  const [requests, jobs, [checks]] = await Promise.all([
    database.query<{ state: string; tried: boolean; count: string | number; oldest: string | number }>(
      `SELECT state, attempts > 0 AS tried, count(*) AS count, min(created_at) AS oldest FROM npu_advisor.requests
       WHERE state IN ('pending', 'failed') GROUP BY 1, 2`,
    ),
    database.query<{ state: string; count: string | number }>(
      `SELECT state::text AS state, count(*) AS count FROM npu_advisor_queue.job WHERE name NOT LIKE '%pgboss%' AND state <= 'active' GROUP BY 1`,
    ),
    database.query<{ count: string | number }>(`SELECT count(*) AS count FROM npu_advisor.check_runs WHERE phase <> 'completed'`),
  ]);
  const pending = requests.filter(({ state }) => state === 'pending');
  const sum = (rows: readonly { readonly count: string | number }[]): number => rows.reduce((total, { count }) => total + Number(count), 0);
  const ofJobs = (state: string): number => sum(jobs.filter((row) => row.state === state));
  const oldest = Math.min(...pending.map((row) => Number(row.oldest)));
  return {
    requests: {
      new: sum(pending.filter(({ tried }) => !tried)),
      retrying: sum(pending.filter(({ tried }) => tried)),
      failed: sum(requests.filter(({ state }) => state === 'failed')),
    },
    jobs: { created: ofJobs('created'), retry: ofJobs('retry'), active: ofJobs('active') },
    oldestSeconds: pending.length === 0 ? 0 : Math.max(0, (now - oldest) / 1000),
    openChecks: Number(checks?.count ?? 0),
  };
}

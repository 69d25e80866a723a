import pg from 'pg';
import { AdviseError } from '../../base/errors.ts';
import type { Database, SqlValue } from '../ports.ts';

/** How long a query waits for a connection: a server that is gone is said to be, and the job is tried again. */
const CONNECT_MS = 15_000;
/** No statement of ours takes so long; an answer that does not come by then was lost with its connection. */
const QUERY_MS = 5 * 60_000;

/** How long a process that starts waits for a server that starts with it. */
const PATIENCE_MS = 60_000;

/** A connection that breaks while nothing is asked of it ends the process unless somebody listens. */
const ignore = (): void => undefined;

/** PostgreSQL for any number of processes. */
export function openPostgres(url: string, max = 8): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: 'npu-advisor',
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
  });
  // An idle connection is replaced by the pool; one that is in use tells whoever uses it.
  pool.on('error', ignore);
  pool.on('connect', (client) => client.on('error', ignore));
  return {
    async query<Row extends object>(text: string, values: readonly SqlValue[] = []) {
      return (await pool.query<Row & pg.QueryResultRow>(text, [...values])).rows;
    },
    async execute(text) {
      const client = await pool.connect();
      try {
        await client.query(text);
      } catch (error) {
        await client.query('ROLLBACK').catch(() => undefined);
        throw error;
      } finally {
        client.release();
      }
    },
    async transaction(body) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const result = await body({
          query: async <Row extends object>(text: string, values: readonly SqlValue[] = []) =>
            (await client.query<Row & pg.QueryResultRow>(text, [...values])).rows,
        });
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK').catch(() => undefined);
        throw error;
      } finally {
        client.release();
      }
    },
    async exclusively(key, body) {
      // A session lock on a connection of its own: when this process dies, the server gives the lock back.
      const client = new pg.Client({
        connectionString: url,
        application_name: 'npu-advisor lock',
        keepAlive: true,
        connectionTimeoutMillis: CONNECT_MS,
      });
      let broken: Error | null = null;
      client.on('error', (error) => {
        broken = error;
      });
      try {
        await client.connect();
        await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [key]);
        const result = await body();
        // Somebody else may have held the key meanwhile: whatever was done is looked at again.
        if (broken !== null) throw new Error(`the lock ${key} was lost with its connection`, { cause: broken });
        return result;
      } finally {
        await client.end().catch(ignore);
      }
    },
    async compact(tables) {
      for (const table of tables) await pool.query(`VACUUM ${table}`);
    },
    close: () => pool.end(),
  };
}

/** At the start: waits a while for a server that is starting itself, then says in one sentence that it is not there. */
export async function reachPostgres(url: string, patienceMs = PATIENCE_MS): Promise<void> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS, application_name: 'npu-advisor' });
    client.on('error', ignore);
    try {
      await client.connect();
      return;
    } catch (error) {
      if (Date.now() >= end) throw unreachable(error);
    } finally {
      await client.end().catch(ignore);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function unreachable(error: unknown): AdviseError {
  const { code } = error as { code?: unknown };
  const why = typeof code === 'string' ? ` (${code})` : '';
  return new AdviseError(
    'database-unreachable',
    { en: `the PostgreSQL of DATABASE_URL cannot be reached${why}`, zh: `无法连接 DATABASE_URL 所指的 PostgreSQL${why}` },
    {
      en: 'Start it, or correct DATABASE_URL; without DATABASE_URL the embedded store is used.',
      zh: '请启动该数据库或更正 DATABASE_URL；不设置 DATABASE_URL 时使用内置存储。',
    },
  );
}

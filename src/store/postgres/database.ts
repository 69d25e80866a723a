import pg from 'pg';
import type { Database, SqlValue } from '../ports.ts';

/** PostgreSQL for any number of processes. */
export function openPostgres(url: string, max = 8): Database {
  const pool = new pg.Pool({ connectionString: url, max, application_name: 'npu-advisor' });
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => undefined);
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
      const client = new pg.Client({ connectionString: url, application_name: 'npu-advisor lock' });
      await client.connect();
      try {
        await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [key]);
        return await body();
      } finally {
        await client.end().catch(() => undefined);
      }
    },
    async compact(tables) {
      for (const table of tables) await pool.query(`VACUUM ${table}`);
    },
    close: () => pool.end(),
  };
}

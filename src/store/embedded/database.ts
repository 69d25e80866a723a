import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { createKeyLocks } from '../key-locks.ts';
import type { Database } from '../ports.ts';

/** The embedded database: PostgreSQL in WebAssembly, one connection, one process, files under `folder`. */
export interface EmbeddedDatabase extends Database {
  readonly pglite: PGlite;
}

/** Opens the database of a folder that the caller has locked. */
export async function openEmbeddedFiles(folder: string): Promise<EmbeddedDatabase> {
  const files = join(folder, 'pglite');
  mkdirSync(files, { recursive: true, mode: 0o700 });
  const pglite = await PGlite.create(files);
  // Used segments of the log are removed, not kept under another name with what they hold.
  await pglite.exec('SET wal_recycle = off');
  return {
    pglite,
    async query<Row extends object>(text: string, values: readonly (string | number | boolean | null)[] = []) {
      return (await pglite.query<Row>(text, [...values])).rows;
    },
    async execute(text) {
      await pglite.exec(text).catch(async (error: unknown) => {
        await pglite.exec('ROLLBACK').catch(() => undefined);
        throw error;
      });
    },
    transaction: (body) =>
      pglite.transaction(async (tx) =>
        body({ query: async <Row extends object>(text: string, values = []) => (await tx.query<Row>(text, [...values])).rows }),
      ),
    exclusively: createKeyLocks(),
    async compact(tables) {
      // Deleted rows stay in pages and in the write-ahead log until both are written anew; each of these runs on its own.
      for (const table of tables) await pglite.exec(`VACUUM FULL ${table}`);
      await pglite.exec('SELECT pg_switch_wal()');
      await pglite.exec('CHECKPOINT');
    },
    close: () => pglite.close(),
  };
}

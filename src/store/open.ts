import { join } from 'node:path';
import { fromPglite } from 'pg-boss';
import { openBlobs } from './blobs/open.ts';
import type { BlobPlace } from './blobs/place.ts';
import { type StoreClock, startStoreClock } from './clock.ts';
import type { EmbeddedDatabase } from './embedded/database.ts';
import { readSpool } from './embedded/spool.ts';
import { readAll } from './inbox.ts';
import { migrate } from './migrations.ts';
import type { InboxReader, Queue, Store } from './ports.ts';
import { openPostgres } from './postgres/database.ts';
import { openPostgresInbox } from './postgres/inbox.ts';
import { openQueue } from './queue.ts';
import { createStore } from './tables.ts';

export interface StoreOptions {
  /** null: embedded, in `dataDir`. */
  readonly databaseUrl: string | null;
  readonly dataDir: string;
  /** Where the facts of portions lie; null: in the database. */
  readonly blobs?: BlobPlace | null;
  readonly retryLimit: number;
  readonly retryDelaySeconds: number;
  readonly expireSeconds: number;
  readonly onError: (error: Error) => void;
}

export interface OpenStore {
  readonly store: Store;
  readonly queue: Queue;
  readonly inbox: InboxReader;
  /** What time it is for all processes of the store. */
  readonly clock: Pick<StoreClock, 'now' | 'behindMs'>;
  close(): Promise<void>;
}

/** Loaded only where it is used: a database in WebAssembly is no small thing for a process that has PostgreSQL. */
async function openEmbedded(dataDir: string): Promise<EmbeddedDatabase> {
  const { openEmbeddedFiles } = await import('./embedded/database.ts');
  return openEmbeddedFiles(dataDir);
}

export function spoolFolder(dataDir: string): string {
  return join(dataDir, 'spool');
}

/** Opens the store without its queue, to look at what is kept. The data folder must be locked by the caller. */
export async function openForReading({ databaseUrl, dataDir }: Pick<StoreOptions, 'databaseUrl' | 'dataDir'>): Promise<{
  readonly store: Store;
  close(): Promise<void>;
}> {
  const database = databaseUrl === null ? await openEmbedded(dataDir) : openPostgres(databaseUrl, 2);
  try {
    await migrate(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { store: createStore(database), close: () => database.close() };
}

/** Opens store and queue of a data folder that the caller has locked (`lockFolder`). */
export async function openStore(options: StoreOptions): Promise<OpenStore> {
  const { databaseUrl, retryLimit, retryDelaySeconds, expireSeconds, onError } = options;
  const blobs = options.blobs == null ? null : openBlobs(options.blobs);
  const common = { retryLimit, retryDelaySeconds, expireSeconds, onError };
  if (databaseUrl === null) {
    const database = await openEmbedded(options.dataDir);
    await migrate(database);
    const connection = { backend: 'pglite', db: fromPglite(database.pglite) } as const;
    const queue = await openQueue({ connection, database, soleOwner: true, ...common });
    const clock = { now: Date.now, behindMs: 0 };
    return {
      store: createStore(database, clock.now, blobs),
      queue,
      inbox: readSpool(spoolFolder(options.dataDir)),
      clock,
      close: () => database.close(),
    };
  }
  const database = openPostgres(databaseUrl);
  await migrate(database);
  const connection = { backend: 'postgres', connectionString: databaseUrl } as const;
  const queue = await openQueue({ connection, database, soleOwner: false, ...common });
  // What was accepted while the database could not be reached lies in the folder of this process.
  const inbox = readAll([readSpool(spoolFolder(options.dataDir)), openPostgresInbox(database)]);
  const clock = await startStoreClock(database);
  const close = async (): Promise<void> => {
    clock.stop();
    await database.close();
  };
  return { store: createStore(database, clock.now, blobs), queue, inbox, clock, close };
}

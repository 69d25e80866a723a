import { createWriteStream } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import type { ProfileEntry } from '../sources/source.ts';
import { checkPages } from './sqlite-pages.ts';

/** Values of one row, in the order of the query. */
export type Row = readonly (number | bigint | string | Uint8Array | null)[];

/** A real table; views, virtual tables and generated columns do not exist for us, so that nothing of the file's own is run. */
export interface Table {
  readonly name: string;
  has(column: string): boolean;
  /** The column as SQL, or `NULL` when the table has none of these names. */
  sql(...columns: readonly string[]): string;
  /** Column that is the row's key and can be looked up at once, if any. */
  readonly key: string | null;
}

export interface Database {
  /** Names of all real tables that can be read. */
  readonly names: readonly string[];
  /** Tables that reading would never end of, or that are larger than any profile's; for the rest they do not exist. */
  readonly broken: readonly { readonly table: string; readonly why: string }[];
  table(name: string): Table | null;
  /** Rows as they come, within the time and row limits; throws when the file is damaged or a limit is passed. */
  rows(sql: string): Iterable<Row>;
  /** First row of a prepared look-up by number. */
  lookup(sql: string): (id: number) => Row | null;
}

export function countRows(db: Database, table: string, where = ''): number {
  for (const [count] of db.rows(`SELECT count(*) FROM "${table}"${where}`)) return Number(count);
  return 0;
}

const MAGIC = 'SQLite format 3\0';
/** Longest value of a row that is loaded at all, bytes. */
const MAX_VALUE = 32 << 20;
const MAX_TABLES = 2_000;
const MAX_ROWS = 50_000_000;
/** Time for one database: this, and one second more for each 2 MB. */
const BASE_MS = 30_000;
const BYTES_PER_MS = 2_000;
/** Rows between two looks at the clock. */
const LOOK = 1_024;

export class DatabaseError extends Error {}

async function head(entry: ProfileEntry, bytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of entry.open()) {
    parts.push(Buffer.from(chunk.subarray(0, bytes)));
    size += chunk.length;
    if (size >= bytes) break;
  }
  return Buffer.concat(parts).subarray(0, bytes);
}

async function copy(entry: ProfileEntry, to: string): Promise<void> {
  let size = 0;
  await pipeline(
    Readable.from(
      (async function* () {
        for await (const chunk of entry.open()) {
          size += chunk.length;
          if (size > entry.bytes && entry.place.gzip !== true) throw new DatabaseError('grew while it was read');
          yield Buffer.from(chunk);
        }
      })(),
    ),
    createWriteStream(to, { mode: 0o600 }),
  );
}

/**
 * Writes the changes of the log into the copy. Asking for the version starts a transaction, which finds the log, without reading the list
 * of tables, which nobody has checked yet; closing the only connection moves the log into the file.
 */
async function mergeLog(file: string): Promise<void> {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(file, {
    allowExtension: false,
    enableForeignKeyConstraints: false,
    limits: { length: MAX_VALUE, attach: 0 },
  });
  try {
    db.exec('PRAGMA user_version');
  } finally {
    db.close();
  }
}

/** The copy was closed cleanly as far as can be told: without its log, rollback mode says the same and needs no side file. */
async function leaveWalMode(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.write(Buffer.from([1, 1]), 0, 2, 18);
  } finally {
    await handle.close();
  }
}

/**
 * Opens a database read-only and hands it to `use`. A file on disk is opened where it lies, as immutable: SQLite then takes no lock and
 * makes no file beside it, whatever its journal mode. A member of an archive, and a file whose write-ahead log still holds
 * changes, is copied into a folder of ours first, which is removed afterwards.
 */
export async function withDatabase<T>(entry: ProfileEntry, log: ProfileEntry | null, use: (db: Database) => T): Promise<T> {
  const start = await head(entry, 100);
  if (start.length < 100 || start.toString('latin1', 0, 16) !== MAGIC)
    throw new DatabaseError('not a SQLite database, or an encrypted one');
  if ('file' in entry.place && entry.place.gzip !== true && log === null) return run(entry.place.file, entry.bytes, use);
  const folder = await mkdtemp(join(tmpdir(), 'npu-advisor-db-'));
  try {
    const file = join(folder, 'capture.db');
    await copy(entry, file);
    if (log !== null) {
      await copy(log, `${file}-wal`);
      await mergeLog(file);
    }
    if (start[18] === 2) await leaveWalMode(file);
    return await run(file, entry.bytes, use);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function run<T>(file: string, bytes: number, use: (db: Database) => T): Promise<T> {
  const { DatabaseSync } = await import('node:sqlite');
  const pages = checkPages(file);
  if (pages.schema !== null) throw new DatabaseError(`its list of tables cannot be read: ${pages.schema}`);
  const url = pathToFileURL(file);
  url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, {
    readOnly: true,
    allowExtension: false,
    enableForeignKeyConstraints: false,
    enableDoubleQuotedStringLiterals: false,
    limits: { length: MAX_VALUE, attach: 0 },
  });
  try {
    for (const pragma of ['trusted_schema = OFF', 'cell_size_check = ON', 'query_only = ON', 'mmap_size = 0', 'temp_store = MEMORY'])
      db.exec(`PRAGMA ${pragma}`);
    const until = performance.now() + BASE_MS + bytes / BYTES_PER_MS;
    const prepare = (sql: string) => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    function* rows(sql: string): Generator<Row> {
      let count = 0;
      for (const row of prepare(sql).iterate() as unknown as Iterable<Row>) {
        if (++count % LOOK === 0 && performance.now() > until) throw new DatabaseError('took too long to read');
        if (count > MAX_ROWS) throw new DatabaseError(`more than ${MAX_ROWS} rows`);
        yield row;
      }
    }
    const real = new Set<string>();
    const broken: { table: string; why: string }[] = [];
    // Virtual tables have no page of their own.
    for (const row of rows(`SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 LIMIT ${MAX_TABLES}`)) {
      if (typeof row[0] !== 'string') continue;
      const check = pages.tables.get(row[0]);
      const why = check === undefined ? 'not in the list of tables' : check.rows > MAX_ROWS ? `more than ${MAX_ROWS} rows` : check.problem;
      if (why === null) real.add(row[0]);
      else broken.push({ table: row[0], why });
    }
    const known = new Map<string, Table | null>();
    const describe = (name: string): Table | null => {
      if (!real.has(name)) return null;
      const columns = new Set<string>();
      const keys: { name: string; type: string }[] = [];
      for (const row of rows(`PRAGMA table_info("${name}")`)) {
        columns.add(String(row[1]));
        if (Number(row[5]) > 0) keys.push({ name: String(row[1]), type: String(row[2]) });
      }
      const key = keys.length === 1 && /^integer$/i.test(keys[0]!.type) ? keys[0]!.name : null;
      const has = (column: string): boolean => columns.has(column);
      return {
        name,
        key,
        has,
        sql(...wanted) {
          const found = wanted.find(has);
          return found === undefined ? 'NULL' : `"${name}"."${found}"`;
        },
      };
    };
    return use({
      names: [...real].filter((name) => !name.startsWith('sqlite_')),
      broken,
      rows,
      table(name) {
        let table = known.get(name);
        if (table === undefined) {
          table = describe(name);
          known.set(name, table);
        }
        return table;
      },
      lookup(sql) {
        const statement = prepare(sql);
        return (id) => (statement.get(id) as unknown as Row | undefined) ?? null;
      },
    });
  } finally {
    db.close();
  }
}

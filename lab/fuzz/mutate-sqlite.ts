import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Random } from './random.ts';

const VALUES = [
  'NULL', '-1', '0', '1', '9223372036854775807', '-9223372036854775808', '1e308', '-1e308', '9e999', '0.5', "''", "'x'", "'NaN'", "'1736408883704643212'", "x'00ff'",
  'zeroblob(100000)', "hex(zeroblob(20000))", "'step50'", "'ProfilerStep#1'", "'`@x` <b>'", "char(0)", '4294967296', '2147483648', 'random()', 'rowid', '-rowid',
]; // biome-ignore format: a table of values

interface Column {
  name: string;
}

/** Changes values, columns, tables and the schema the way another version, or an enemy, would have written them. */
function mutateContent(db: DatabaseSync, random: Random): string {
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all() as unknown as { name: string }[];
  if (tables.length === 0) return 'none';
  const table = random.pick(tables).name;
  const columns = db.prepare(`PRAGMA table_info("${table}")`).all() as unknown as Column[];
  const column = columns.length === 0 ? 'rowid' : random.pick(columns).name;
  const some = random.pick([
    '',
    ` WHERE rowid % ${2 + random.int(9)} = 0`,
    ` WHERE rowid = (SELECT rowid FROM "${table}" LIMIT 1 OFFSET ${random.int(20)})`,
  ]);
  switch (random.int(9)) {
    case 0:
      db.exec(`DELETE FROM "${table}"${some}`);
      return `delete ${table}`;
    case 1:
      db.exec(`DROP TABLE "${table}"`);
      return `drop ${table}`;
    case 2:
      db.exec(`ALTER TABLE "${table}" DROP COLUMN "${column}"`);
      return `drop ${table}.${column}`;
    case 3:
      db.exec(`ALTER TABLE "${table}" RENAME COLUMN "${column}" TO "${random.pick(['x', '__proto__', 'id', 'name', 'startNs'])}"`);
      return `rename ${table}.${column}`;
    case 4:
      db.exec(`INSERT INTO "${table}" SELECT * FROM "${table}" LIMIT 500`);
      return `double ${table}`;
    case 5:
      db.exec(`ALTER TABLE "${table}" RENAME TO "old"`);
      db.exec(
        random.chance(0.5)
          ? `CREATE VIEW "${table}" AS SELECT * FROM "old"`
          : `CREATE VIEW "${table}" AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c`,
      );
      return `view ${table}`;
    default: {
      const value = random.pick(VALUES);
      db.exec(`UPDATE "${table}" SET "${column}" = ${value}${some}`);
      return `set ${table}.${column} ${value}`;
    }
  }
}

const PAGE = 4096;

function mutatePages(data: Buffer, random: Random): string {
  const pages = Math.max(1, Math.floor(data.length / PAGE));
  const page = random.int(pages) * PAGE;
  switch (random.int(5)) {
    case 0:
      random.bytes(1 + random.int(4)).copy(data, random.int(100));
      return 'header';
    case 1: {
      // Page type, cell count, first pointers.
      random.bytes(1 + random.int(4)).copy(data, page + (page === 0 ? 100 : 0) + random.int(24));
      return 'page header';
    }
    case 2:
      data.copy(data, random.int(pages) * PAGE, page, page + PAGE);
      return 'copied page';
    case 3:
      data.fill(random.pick([0, 255]), page, page + PAGE);
      return 'filled page';
    default: {
      for (let n = 1 + random.int(20); n > 0; n--) data[page + random.int(PAGE)] = random.int(256);
      return 'page bytes';
    }
  }
}

/** `scratch` is a file of ours that the database passes through. */
export function mutateSqlite(data: Buffer, random: Random, scratch: string): { data: Buffer; what: string } {
  if (random.chance(0.45) || data.length < PAGE) {
    const out = Buffer.from(data);
    const what = data.length < PAGE ? 'none' : mutatePages(out, random);
    if (random.chance(0.2)) return { data: out.subarray(0, random.int(Math.floor(out.length / PAGE) + 1) * PAGE), what: `${what}, cut` };
    return { data: out, what };
  }
  writeFileSync(scratch, data);
  let what = 'none';
  try {
    const db = new DatabaseSync(scratch);
    try {
      db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
      what = mutateContent(db, random);
    } finally {
      db.close();
    }
  } catch {
    // Not every statement fits every table.
  }
  const out = readFileSync(scratch);
  rmSync(scratch, { force: true });
  return { data: out, what };
}

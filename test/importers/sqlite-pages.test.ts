/* Databases whose pages repeat: a statement on them would never end, and no step of a statement can be interrupted. */

import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { DatabaseError, withDatabase } from '../../src/importers/database.ts';
import { checkPages } from '../../src/importers/sqlite-pages.ts';
import { Report } from '../../src/model/report.ts';
import { openSource } from '../../src/sources/index.ts';
import type { ProfileEntry } from '../../src/sources/source.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-pages-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

const SIZE = 4_096;
const INTERIOR_TABLE = 5;

/** A table of many small rows, one of long texts, one with an index, one without row ids. */
async function sample(pragmas = '', name = 'a.db'): Promise<string> {
  const path = join(dir, name);
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA page_size = ${SIZE}; ${pragmas}
    CREATE TABLE many(a INTEGER, b TEXT); CREATE TABLE long(id INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE indexed(a INTEGER, b TEXT); CREATE INDEX by_b ON indexed(b);
    CREATE TABLE keyed(k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID; CREATE VIEW seen AS SELECT * FROM many;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO many SELECT i, 'row ' || i FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO long SELECT i, hex(zeroblob(i * 2000)) FROM n;
    INSERT INTO indexed SELECT a, b || b FROM many WHERE a < 4000; INSERT INTO keyed SELECT b, hex(zeroblob(a)) FROM many WHERE a < 3000;
    ANALYZE;`);
  db.close();
  return path;
}

function rootOf(path: string, name: string): number {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return Number((db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').get(name) as { rootpage: number }).rootpage);
  } finally {
    db.close();
  }
}

async function patched(path: string, change: (bytes: Buffer) => void): Promise<string> {
  const bytes = await readFile(path);
  change(bytes);
  await writeFile(path, bytes);
  return path;
}

const pageAt = (bytes: Buffer, page: number): Buffer => bytes.subarray((page - 1) * SIZE, page * SIZE);
const cellsOf = (page: Buffer, header: number): number[] =>
  Array.from({ length: page.readUInt16BE(3) }, (_, i) => page.readUInt16BE(header + i * 2));

/** All children of an interior page become its first one. */
const repeatChild = (root: number) => (bytes: Buffer) => {
  const page = pageAt(bytes, root);
  expect(page[0]).toBe(INTERIOR_TABLE);
  const cells = cellsOf(page, 12);
  const child = page.readUInt32BE(cells[0]!);
  for (const cell of cells) page.writeUInt32BE(child, cell);
  page.writeUInt32BE(child, 8);
};

function entryFor(path: string, bytes: number): ProfileEntry {
  return {
    path,
    bytes,
    place: { file: path },
    open: async function* () {
      yield await readFile(path);
    },
  };
}

const problems = (path: string): Record<string, string> =>
  Object.fromEntries([...checkPages(path).tables].flatMap(([name, { problem }]) => (problem === null ? [] : [[name, problem]])));

describe('sound files', () => {
  test.each([
    ['plain', ''],
    ['UTF-16', "PRAGMA encoding = 'UTF-16le';"],
    ['big-endian UTF-16', "PRAGMA encoding = 'UTF-16be';"],
    ['with pointer maps', 'PRAGMA auto_vacuum = FULL;'],
    ['large pages', 'PRAGMA page_size = 65536;'],
    ['small pages', 'PRAGMA page_size = 512;'],
  ])('%s: no problem, and as many rows as SQLite counts', async (_, pragmas) => {
    const path = await sample(pragmas);
    const { schema, tables } = checkPages(path);
    expect(schema).toBeNull();
    expect(problems(path)).toEqual({});
    const db = new DatabaseSync(path, { readOnly: true });
    for (const name of ['many', 'long', 'indexed'])
      expect(tables.get(name)!.rows).toBe((db.prepare(`SELECT count(*) AS n FROM "${name}"`).get() as { n: number }).n);
    db.close();
    expect([...tables.keys()].sort()).toEqual(['indexed', 'keyed', 'long', 'many', 'sqlite_stat1']);
  });

  test('cut short, overwritten with nothing, no database: left to SQLite', async () => {
    const path = await sample();
    await patched(path, (bytes) => bytes.fill(0, bytes.length >> 1));
    expect(problems(path)).toEqual({});
    await writeFile(path, (await readFile(path)).subarray(0, 20_000));
    expect(problems(path)).toEqual({});
    await writeFile(path, 'x');
    expect(checkPages(path)).toEqual({ schema: null, tables: new Map() });
  });

  test('a database packed with gzip is read', async () => {
    const path = await sample();
    await writeFile(`${path}.gz`, gzipSync(await readFile(path)));
    const source = await openSource(`${path}.gz`);
    const count = await withDatabase(source.entries[0]!, null, (db) => [...db.rows('SELECT count(*) FROM many')][0]![0]);
    expect(count).toBe(20_000);
  });
});

describe('pages that repeat', () => {
  test('one child for all: that table is refused, the others are read, at once', async () => {
    const path = await sample();
    await patched(path, repeatChild(rootOf(path, 'many')));
    expect(problems(path)).toEqual({ many: 'a page is used twice' });
    const { size } = await stat(path);
    await withDatabase(entryFor(path, size), null, (db) => {
      expect(db.table('many')).toBeNull();
      expect(db.names).not.toContain('many');
      expect(db.broken).toEqual([{ table: 'many', why: 'a page is used twice' }]);
      expect([...db.rows('SELECT count(*) FROM "indexed"')]).toEqual([[3_999]]);
    });
  });

  test('ten thousand times a few kilobytes: 10^15 rows that no statement ends on', async () => {
    const path = await sample();
    // Six interior pages, each with hundreds of pointers to the next, and a leaf below.
    await patched(path, (bytes) => {
      const root = rootOf(path, 'many');
      const chain = [root, ...cellsOf(pageAt(bytes, root), 12).map((cell) => pageAt(bytes, root).readUInt32BE(cell))].slice(0, 7);
      for (const [i, number] of chain.slice(0, 6).entries()) {
        const page = pageAt(bytes, number);
        page.fill(0);
        page[0] = INTERIOR_TABLE;
        page.writeUInt16BE(300, 3);
        page.writeUInt16BE(SIZE - 300 * 5, 5);
        page.writeUInt32BE(chain[i + 1]!, 8);
        for (let cell = 0; cell < 300; cell++) {
          page.writeUInt16BE(SIZE - (cell + 1) * 5, 12 + cell * 2);
          page.writeUInt32BE(chain[i + 1]!, SIZE - (cell + 1) * 5);
          page[SIZE - (cell + 1) * 5 + 4] = 1;
        }
      }
    });
    const from = performance.now();
    expect(problems(path)).toEqual({ many: 'a page is used twice' });
    await withDatabase(entryFor(path, 1), null, (db) => expect(db.table('many')).toBeNull());
    expect(performance.now() - from).toBeLessThan(2_000);
  });

  test('one long value in each of many rows', async () => {
    const path = await sample();
    await patched(path, (bytes) => {
      // The last leaf of `long` holds rows of which each has its own chain of pages.
      const root = pageAt(bytes, rootOf(path, 'long'));
      const page = root[0] === INTERIOR_TABLE ? pageAt(bytes, root.readUInt32BE(8)) : root;
      const first = page.readUInt16BE(8);
      page.writeUInt16BE(2, 3);
      page.writeUInt16BE(first, 10);
    });
    expect(problems(path)).toEqual({ long: 'a page is used twice' });
  });

  test('one small row in each place of a page', async () => {
    const path = await sample();
    await patched(path, (bytes) => {
      const root = pageAt(bytes, rootOf(path, 'many'));
      const leaf = pageAt(bytes, root.readUInt32BE(8));
      const first = leaf.readUInt16BE(8);
      leaf.writeUInt16BE(1_500, 3);
      for (let i = 0; i < 1_500; i++) leaf.writeUInt16BE(first, 8 + i * 2);
    });
    expect(problems(path)).toEqual({ many: 'rows lie on top of each other' });
  });

  test('an index that repeats refuses its table: SQLite may choose it for any query', async () => {
    const path = await sample();
    await patched(path, (bytes) => {
      const page = pageAt(bytes, rootOf(path, 'by_b'));
      expect(page[0]).toBe(2);
      for (const cell of cellsOf(page, 12)) page.writeUInt32BE(page.readUInt32BE(8), cell);
    });
    expect(problems(path)).toEqual({ indexed: 'a page is used twice' });
  });

  test('a tree deeper than any; two tables in one place', async () => {
    const path = await sample();
    await patched(path, (bytes) => {
      const root = rootOf(path, 'many');
      const pages = [root, ...cellsOf(pageAt(bytes, root), 12).map((cell) => pageAt(bytes, root).readUInt32BE(cell))];
      for (const [i, number] of pages.slice(0, 30).entries()) {
        const page = pageAt(bytes, number);
        page.fill(0);
        page[0] = INTERIOR_TABLE;
        page.writeUInt32BE(pages[i + 1]!, 8);
      }
    });
    expect(problems(path).many).toMatch(/deeper/);
    const twins = await sample('', 'twins.db');
    const [one, other] = [rootOf(twins, 'many'), rootOf(twins, 'long')];
    const db = new DatabaseSync(twins);
    db.enableDefensive?.(false);
    db.exec(`PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = ${one} WHERE rootpage = ${other}`);
    db.close();
    expect(problems(twins)).toEqual({ long: 'a page is used twice' });
  });

  test('a list of tables that repeats, or statistics that do: the file is refused before SQLite looks at it', async () => {
    const loop = await sample('', 'loop.db');
    await patched(loop, (bytes) => {
      bytes[100] = INTERIOR_TABLE;
      bytes.writeUInt16BE(0, 103);
      bytes.writeUInt32BE(1, 108);
    });
    expect(checkPages(loop).schema).toBe('a page is used twice');
    await expect(withDatabase(entryFor(loop, 1), null, () => 1)).rejects.toThrow(DatabaseError);
    const statistics = await sample('', 'statistics.db');
    await patched(statistics, (bytes) => {
      const page = pageAt(bytes, rootOf(statistics, 'sqlite_stat1'));
      page[0] = INTERIOR_TABLE;
      page.writeUInt16BE(0, 3);
      page.writeUInt32BE(rootOf(statistics, 'sqlite_stat1'), 8);
    });
    expect(checkPages(statistics).schema).toBe('a page is used twice');
  });
});

describe('in a profile', () => {
  test('the rank keeps what its other tables hold, and the report says which one could not be read', async () => {
    const out = join(dir, 'r_ascend_pt', 'ASCEND_PROFILER_OUTPUT');
    await mkdir(out, { recursive: true });
    const path = join(out, 'ascend_pytorch_profiler_0.db');
    const db = new DatabaseSync(path);
    db.exec(`PRAGMA page_size = ${SIZE};
      CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO STRING_IDS VALUES (1, 'MatMul'), (2, 'AI_CORE');
      CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);
      CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER, taskType INTEGER, opType INTEGER);
      CREATE TABLE PYTORCH_API(startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, callchainId INTEGER, type INTEGER);
      INSERT INTO TASK VALUES (1700000000001000000, 1700000000002000000, 0, 1, 1, 1, 2, 0, 1, 1, 0);
      INSERT INTO COMPUTE_TASK_INFO VALUES (1, 1, 2, 1);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
      INSERT INTO PYTORCH_API SELECT CAST(1700000000000000000 + i AS TEXT), CAST(1700000000000000009 + i AS TEXT), 1, NULL, 1, NULL, 50001 FROM n;`);
    db.close();
    await patched(path, repeatChild(rootOf(path, 'PYTORCH_API')));
    const source = await openSource(dir);
    const options = { lang: 'en', thresholds: {}, disabledRules: [], gate: null } as const;
    const report = Report.parse(await analyse({ sources: [source], options, source: null }));
    expect(report.job.ranks).toEqual([0]);
    expect(report.breakdown[0]!.computingMs).toBe(1);
    expect(report.inputs[0]).toMatchObject({
      status: 'partial',
      note: expect.stringMatching(/`PYTORCH_API` could not be read to the end \(`a page is used twice`\)/),
    });
    await patched(path, (bytes) => bytes.writeUInt32BE(1, 100 + 8));
    await patched(path, (bytes) => {
      bytes[100] = INTERIOR_TABLE;
    });
    const again = await openSource(dir);
    await expect(analyse({ sources: [again], options, source: null })).rejects.toThrow(AdviseError);
  });
});

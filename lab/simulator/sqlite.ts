import { DatabaseSync } from 'node:sqlite';

type Cell = string | number | bigint | null;

/** A database being written: one transaction, one prepared insert per table. */
export interface Writer {
  /** Creates a table; returns its insert. `columns` as in CREATE TABLE: names and types. */
  table(name: string, columns: string): (...row: Cell[]) => void;
  exec(sql: string): void;
  close(): void;
}

export function createDatabase(path: string): Writer {
  const db = new DatabaseSync(path);
  db.exec('PRAGMA synchronous = OFF; BEGIN');
  return {
    table(name, columns) {
      db.exec(`CREATE TABLE ${name} (${columns})`);
      const insert = db.prepare(`INSERT INTO ${name} VALUES (${columns.split(',').map(() => '?')})`);
      return (...row) => void insert.run(...row);
    },
    exec: (sql) => db.exec(sql),
    close() {
      db.exec('COMMIT');
      db.close();
    },
  };
}

/** Numbers for texts, counting from `first`. */
export interface TextIds {
  id(text: string): number;
  entries(): Iterable<[text: string, id: number]>;
}

export function createTextIds(first: number): TextIds {
  const ids = new Map<string, number>();
  return {
    id(text) {
      const known = ids.get(text);
      if (known !== undefined) return known;
      const id = first + ids.size;
      ids.set(text, id);
      return id;
    },
    entries: () => ids,
  };
}

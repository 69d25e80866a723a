import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/**
 * A walk over the pages of a database before SQLite opens it. One step of a statement cannot be interrupted from JavaScript, so what it may
 * cost has to be known beforehand. In a sound file each page belongs to one place: reading a table then costs no more than the file is long.
 * A hostile file repeats pages (a few kilobytes can stand for 10^15 rows, or for a value of 32 MB in each of a million rows).
 *
 * Only repetition is looked for. Damage is left to SQLite, which reads up to it. Format: https://www.sqlite.org/fileformat2.html
 */
export interface PageCheck {
  /** Why the list of tables cannot be read; null when it can. */
  readonly schema: string | null;
  /** By name of the table. */
  readonly tables: ReadonlyMap<string, TableCheck>;
}

export interface TableCheck {
  /** Why the table, or one of its indexes, cannot be read; null when it can. */
  readonly problem: string | null;
  readonly rows: number;
}

const TWICE = 'a page is used twice';
const OVERLAP = 'rows lie on top of each other';
const DEEP = 'its tree is deeper than any';

/** SQLite itself stops there. */
const MAX_DEPTH = 20;
const MAX_ENTRIES = 10_000;
const INTERIOR_INDEX = 2;
const INTERIOR_TABLE = 5;
const LEAF_INDEX = 10;
const LEAF_TABLE = 13;

interface Entry {
  readonly table: string;
  readonly isTable: boolean;
  readonly root: number;
}

export function checkPages(file: string): PageCheck {
  const handle = openSync(file, 'r');
  try {
    const head = Buffer.alloc(100);
    if (readSync(handle, head, 0, 100, 0) < 100) return { schema: null, tables: new Map() };
    const size = head.readUInt16BE(16) === 1 ? 65_536 : head.readUInt16BE(16);
    // Not a size that SQLite opens.
    if (size < 512 || (size & (size - 1)) !== 0) return { schema: null, tables: new Map() };
    return checkAll({ handle, size, usable: size - head[20]!, pages: Math.ceil(fstatSync(handle).size / size), encoding: head[59]! });
  } finally {
    closeSync(handle);
  }
}

interface File {
  readonly handle: number;
  readonly size: number;
  readonly usable: number;
  readonly pages: number;
  /** 1 is UTF-8, 2 and 3 are UTF-16. */
  readonly encoding: number;
}

function checkAll(file: File): PageCheck {
  const seen = new Uint8Array(file.pages + 1);
  const entries: Entry[] = [];
  const schema = walk(file, seen, 1, (payload) => {
    const entry = entryOf(payload, file.encoding);
    if (entry !== null && entries.length < MAX_ENTRIES) entries.push(entry);
  });
  if (schema.problem !== null) return { schema: schema.problem, tables: new Map() };
  const tables = new Map<string, { problem: string | null; rows: number }>();
  for (const { table, isTable, root } of entries) {
    const known = tables.get(table) ?? { problem: null, rows: 0 };
    tables.set(table, known);
    const tree = walk(file, seen, root, null);
    known.problem ??= tree.problem;
    if (isTable) known.rows += tree.rows;
  }
  // Statistics are read when the file is opened.
  const statistics = [...tables].find(([name, { problem }]) => /^sqlite_/.test(name) && problem !== null);
  return { schema: statistics?.[1].problem ?? null, tables };
}

/** One tree of pages; `onPayload` gets the local part of each row of a table. */
function walk(
  { handle, size, usable, pages }: File,
  seen: Uint8Array,
  root: number,
  onPayload: ((payload: Buffer) => void) | null,
): { problem: string | null; rows: number } {
  const page = Buffer.alloc(size);
  const next = Buffer.alloc(4);
  let rows = 0;
  const open: { readonly page: number; readonly depth: number }[] = [{ page: root, depth: 0 }];
  const minLocal = Math.floor(((usable - 12) * 32) / 255) - 23;
  const maxIndex = Math.floor(((usable - 12) * 64) / 255) - 23;
  /** Follows a value over its pages; false when one of them belongs to something else, too. */
  const isOwnChain = (first: number, length: number): boolean => {
    let at = first;
    for (let left = length; left > 0 && at > 0 && at <= pages; left -= usable - 4) {
      if (seen[at] === 1) return false;
      seen[at] = 1;
      if (readSync(handle, next, 0, 4, (at - 1) * size) < 4) return true;
      at = next.readUInt32BE(0);
    }
    return true;
  };
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (one.page < 1 || one.page > pages) continue;
    if (seen[one.page] === 1) return { problem: TWICE, rows };
    if (one.depth > MAX_DEPTH) return { problem: DEEP, rows };
    seen[one.page] = 1;
    const read = readSync(handle, page, 0, size, (one.page - 1) * size);
    page.fill(0, read);
    const start = one.page === 1 ? 100 : 0;
    const type = page[start]!;
    const isInterior = type === INTERIOR_INDEX || type === INTERIOR_TABLE;
    if (!isInterior && type !== LEAF_INDEX && type !== LEAF_TABLE) continue;
    const cells = page.readUInt16BE(start + 3);
    const pointers = start + (isInterior ? 12 : 8);
    let used = 0;
    if (isInterior) open.push({ page: page.readUInt32BE(start + 8), depth: one.depth + 1 });
    for (let i = 0; i < cells && pointers + i * 2 + 2 <= size; i++) {
      let at = page.readUInt16BE(pointers + i * 2);
      if (at + 4 > size) continue;
      const from = at;
      if (isInterior) {
        open.push({ page: page.readUInt32BE(at), depth: one.depth + 1 });
        at += 4;
      }
      if (type !== INTERIOR_TABLE) {
        const payload = varint(page, at);
        at = payload.end;
        if (type === LEAF_TABLE) {
          rows++;
          at = varint(page, at).end;
        }
        const maxLocal = type === LEAF_TABLE ? usable - 35 : maxIndex;
        const local = localBytes(payload.value, maxLocal, minLocal, usable);
        if (type === LEAF_TABLE) onPayload?.(page.subarray(at, Math.min(size, at + local)));
        at += local;
        if (local < payload.value) {
          if (at + 4 <= size && !isOwnChain(page.readUInt32BE(at), payload.value - local)) return { problem: TWICE, rows };
          at += 4;
        }
      } else at = varint(page, at).end;
      used += Math.max(4, at - from);
      if (used > size) return { problem: OVERLAP, rows };
    }
  }
  return { problem: null, rows };
}

/** Bytes of a row that stay in its page. */
function localBytes(payload: number, maxLocal: number, minLocal: number, usable: number): number {
  if (payload <= maxLocal) return payload;
  const kept = minLocal + ((payload - minLocal) % (usable - 4));
  return kept <= maxLocal ? kept : minLocal;
}

/** 1 to 9 bytes, seven bits each; beyond 2^53 only the size matters. */
function varint(page: Buffer, from: number): { value: number; end: number } {
  let value = 0;
  for (let i = 0; i < 9; i++) {
    const byte = page[from + i] ?? 0;
    if (i === 8) return { value: value * 256 + byte, end: from + 9 };
    value = value * 128 + (byte & 127);
    if (byte < 128) return { value, end: from + i + 1 };
  }
  return { value, end: from + 9 };
}

/** A row of sqlite_schema: type, name, table, root page, SQL. null for what has no pages. */
function entryOf(payload: Buffer, encoding: number): Entry | null {
  const header = varint(payload, 0);
  const serials: number[] = [];
  let at = header.end;
  while (at < header.value && serials.length < 4) {
    const serial = varint(payload, at);
    serials.push(serial.value);
    at = serial.end;
  }
  if (serials.length < 4) return null;
  const starts: number[] = [];
  let from = header.value;
  for (const serial of serials) {
    starts.push(from);
    from += serialBytes(serial);
  }
  if (from > payload.length) return null;
  const text = (i: number): string => {
    const bytes = payload.subarray(starts[i]!, starts[i]! + serialBytes(serials[i]!));
    if (encoding === 2) return bytes.toString('utf16le');
    return encoding === 3
      ? Buffer.from(bytes.subarray(0, bytes.length & ~1))
          .swap16()
          .toString('utf16le')
      : bytes.toString('utf8');
  };
  const bytes = serialBytes(serials[3]!);
  const root = serials[3] === 9 ? 1 : bytes === 0 || bytes > 6 ? 0 : payload.readUIntBE(starts[3]!, bytes);
  const type = text(0);
  return root > 0 && (type === 'table' || type === 'index') ? { table: text(2), isTable: type === 'table', root } : null;
}

function serialBytes(serial: number): number {
  if (serial >= 12) return Math.floor((serial - 12) / 2);
  return [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0][serial] ?? 0;
}

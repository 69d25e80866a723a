/**
 * Streaming CSV walker over bytes: quote-aware (cells hold commas, doubled quotes and line breaks), CRLF or LF,
 * columns by header name. Nothing is decoded unless a cell is asked for.
 */
import { type Instant, parseInstant, parseNumber } from '../base/decimal.ts';
import { createFeeder } from './feeder.ts';

const MAX_ROW_BYTES = 4 << 20;
const MAX_COLUMNS = 512;
/** A longer cell is cut; of a call stack the innermost frames come first. */
const MAX_TEXT_BYTES = 16_384;
/** No time, size or count of a profile is larger; sums of such numbers stay finite. */
const MAX_NUMBER = 1e18;

export interface CsvRow {
  buf: Buffer;
  /** 2 numbers per cell: start and end of the content, quotes and surrounding blanks removed. */
  cells: Int32Array;
  count: number;
  /** Number of this row in the file; the header is row 1. */
  line: number;
  /** The file ends within this row: cells that are not whole are left out. */
  cut: boolean;
}

export interface CsvResult {
  rows: number;
  bytes: number;
  header: string[];
  truncated: boolean;
}

function isBlank(c: number): boolean {
  return c === 32 || c === 9 || c === 13;
}

/** Column text, at most 16 kB, or null when missing: "", N/A, NA, None, nan, null. */
export function cellText(row: CsvRow, column: number): string | null {
  if (column < 0 || column >= row.count) return null;
  const start = row.cells[column * 2]!;
  const end = row.cells[column * 2 + 1]!;
  if (end <= start) return null;
  const text = row.buf.toString('utf8', start, Math.min(end, start + MAX_TEXT_BYTES));
  if (/^(n\/?a|none|nan|null)$/i.test(text)) return null;
  return text.includes('""') ? text.replaceAll('""', '"') : text;
}

/** Column number, or null when missing, not a number or beyond any profile. */
export function cellNumber(row: CsvRow, column: number): number | null {
  if (column < 0 || column >= row.count) return null;
  const start = row.cells[column * 2]!;
  const end = row.cells[column * 2 + 1]!;
  if (end <= start) return null;
  const c = row.buf[start]!;
  if ((c < 48 || c > 57) && c !== 45 && c !== 46) return null;
  const value = parseNumber(row.buf, start, end);
  return Math.abs(value) <= MAX_NUMBER ? value : null;
}

export function cellInstant(row: CsvRow, column: number, out: Instant): boolean {
  if (column < 0 || column >= row.count) return false;
  return parseInstant(row.buf, row.cells[column * 2]!, row.cells[column * 2 + 1]!, out);
}

/** Header texts as written, trimmed, BOM removed. */
function headerOf(row: CsvRow): string[] {
  const names: string[] = [];
  for (let i = 0; i < row.count; i++) {
    names.push(
      row.buf
        .toString('utf8', row.cells[i * 2]!, row.cells[i * 2 + 1]!)
        .replace(/^\ufeff/, '')
        .trim(),
    );
  }
  return names;
}

/** Index of the first header that equals one of the names (case-insensitive, µ = u), or -1. */
export function findColumn(header: readonly string[], ...names: string[]): number {
  const wanted = names.map(normalise);
  for (const name of wanted) {
    const at = header.findIndex((h) => normalise(h) === name);
    if (at !== -1) return at;
  }
  return -1;
}

function normalise(name: string): string {
  return name.toLowerCase().replaceAll('µ', 'u').replaceAll('μ', 'u').replace(/\s+/g, ' ').trim();
}

/** Reads a CSV; `onHeader` gets the names and returns the row callback, or null to stop. */
export async function scanCsv(
  chunks: AsyncIterable<Buffer>,
  onHeader: (header: string[]) => ((row: CsvRow) => void) | null,
): Promise<CsvResult> {
  const row: CsvRow = { buf: Buffer.alloc(0), cells: new Int32Array(MAX_COLUMNS * 2), count: 0, line: 0, cut: false };
  const result: CsvResult = { rows: 0, bytes: 0, header: [], truncated: false };
  let onRow: ((row: CsvRow) => void) | null | undefined;

  /** Offset after the row that starts at `from`, or -1 if it is not complete in the buffer. */
  const scanRow = (buf: Buffer, from: number, final: boolean): number => {
    row.buf = buf;
    row.count = 0;
    let i = from;
    for (;;) {
      while (i < buf.length && isBlank(buf[i]!) && buf[i] !== 13) i++;
      let start = i;
      let end: number;
      if (i < buf.length && buf[i] === 34) {
        start = ++i;
        for (;;) {
          const close = buf.indexOf(34, i);
          if (close === -1) {
            if (!final) return -1;
            i = buf.length;
            result.truncated = true;
            break;
          }
          if (close + 1 >= buf.length && !final) return -1;
          if (buf[close + 1] === 34) {
            i = close + 2;
            continue;
          }
          i = close;
          break;
        }
        end = i;
        while (i < buf.length && buf[i] !== 44 && buf[i] !== 10) i++;
      } else {
        while (i < buf.length && buf[i] !== 44 && buf[i] !== 10) i++;
        end = i;
      }
      if (i >= buf.length && !final) return -1;
      while (end > start && isBlank(buf[end - 1]!)) end--;
      while (start < end && isBlank(buf[start]!)) start++;
      if (row.count < MAX_COLUMNS) {
        row.cells[row.count * 2] = start;
        row.cells[row.count * 2 + 1] = end;
        row.count++;
      }
      if (i >= buf.length) return buf.length;
      if (buf[i] === 10) return i + 1;
      i++;
    }
  };

  const consume = (buf: Buffer, final: boolean): number => {
    let i = 0;
    while (i < buf.length) {
      const next = scanRow(buf, i, final);
      if (next === -1) return i;
      row.line++;
      const empty = row.count === 1 && row.cells[1]! <= row.cells[0]!;
      if (!empty) {
        if (onRow === undefined) {
          result.header = headerOf(row);
          onRow = onHeader(result.header);
          if (onRow === null) return buf.length;
        } else if (onRow !== null) {
          result.rows++;
          if (final && next === buf.length && buf[next - 1] !== 10 && row.count < result.header.length) {
            row.cut = true;
            row.count--;
            result.truncated = true;
          }
          onRow(row);
        }
      }
      i = next;
    }
    return i;
  };

  const feeder = createFeeder(
    (buf) => consume(buf, false),
    MAX_ROW_BYTES,
    () => {
      result.truncated = true;
    },
  );
  for await (const chunk of chunks) {
    result.bytes += chunk.length;
    if (onRow === null) break;
    feeder.push(chunk);
  }
  if (onRow !== null) {
    const rest = feeder.end();
    if (rest.length > 0) consume(rest, true);
  }
  return result;
}

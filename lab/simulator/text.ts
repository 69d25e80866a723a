import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Values the trace and JSON writers accept; a bigint is written as a raw integer. */
export type Value = string | number | bigint | boolean | null | Value[] | { [key: string]: Value };

/** JSON text with the separators of Python's json.dumps. */
export function dump(value: Value): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'object') {
    if (Array.isArray(value)) return `[${value.map(dump).join(', ')}]`;
    const parts: string[] = [];
    for (const key in value) parts.push(`${JSON.stringify(key)}: ${dump(value[key]!)}`);
    return `{${parts.join(', ')}}`;
  }
  return String(value);
}

/** A CSV cell, quoted when it has to be. */
function cell(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const CHUNK = 1 << 16;

function* chunks(parts: Iterable<string>): Generator<string> {
  let buffer = '';
  for (const part of parts) {
    buffer += part;
    if (buffer.length >= CHUNK) {
      yield buffer;
      buffer = '';
    }
  }
  if (buffer) yield buffer;
}

/** Writes text parts to a file as they are produced; waits when the disk is slower than the producer. */
export async function writeText(path: string, parts: Iterable<string>): Promise<void> {
  await pipeline(Readable.from(chunks(parts)), createWriteStream(path));
}

/** CSV lines with the given line end. */
export function* csv(header: string, rows: Iterable<(string | number)[]>, eol: '\r\n' | '\n'): Generator<string> {
  yield header + eol;
  for (const row of rows) yield row.map(cell).join(',') + eol;
}

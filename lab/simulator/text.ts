import { closeSync, openSync, writeSync } from 'node:fs';

/** Values the trace and JSON writers accept; a bigint is written as a raw integer. */
export type Value = string | number | bigint | boolean | null | Value[] | { [key: string]: Value };

/** JSON text with the separators of Python's json.dumps. */
export function dump(value: Value): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'object') {
    if (Array.isArray(value)) return `[${value.map(dump).join(', ')}]`;
    let text = '';
    for (const key in value) text += `${text === '' ? '' : ', '}${keyText(key)}${dump(value[key]!)}`;
    return `{${text}}`;
  }
  return String(value);
}

/** Keys and call stacks are few and written often. */
const keys = new Map<string, string>();
const stacks = new Map<string, string>();
const LONG = 200;

function remembered(memory: Map<string, string>, text: string, make: (text: string) => string): string {
  let known = memory.get(text);
  if (known === undefined) {
    known = make(text);
    memory.set(text, known);
  }
  return known;
}

const keyText = (key: string): string => remembered(keys, key, (text) => `${JSON.stringify(text)}: `);
const quoted = (text: string): string => (text.length < LONG ? JSON.stringify(text) : remembered(stacks, text, JSON.stringify));

/** A CSV cell, quoted when it has to be. */
function cell(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const CHUNK = 1 << 18;

/** Writes text parts to a file as they are produced. */
export function writeText(path: string, parts: Iterable<string>): void {
  const file = openSync(path, 'w');
  try {
    let buffer = '';
    const flush = (): void => {
      const bytes = Buffer.from(buffer);
      for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
      buffer = '';
    };
    for (const part of parts) {
      buffer += part;
      if (buffer.length >= CHUNK) flush();
    }
    flush();
  } finally {
    closeSync(file);
  }
}

/** CSV lines with the given line end. */
export function* csv(header: string, rows: Iterable<(string | number)[]>, eol: '\r\n' | '\n'): Generator<string> {
  yield header + eol;
  for (const row of rows) yield row.map(cell).join(',') + eol;
}

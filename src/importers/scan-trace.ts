/**
 * Streaming scanner for trace_view.json: a byte walk over Buffers, one event at a time, nothing built for events nobody wants.
 * JSON libraries read such files at 14–128 MB/s and need them in memory; a file may be several GB.
 *
 * Accepts a bare array or an object that holds `traceEvents`, a missing `]`, a comma before `]`, a leading comma, half an event at the end.
 */

import { createFeeder } from './feeder.ts';

/** Byte ranges into `buf` of the event just scanned; -1 when absent. Valid only during the callback. */
export interface RawEvent {
  buf: Buffer;
  /** First byte of `ph`'s value: X 88, M 77, s 115, f 102, C 67, i 105; 0 when absent. */
  ph: number;
  nameStart: number;
  nameEnd: number;
  catStart: number;
  catEnd: number;
  pidStart: number;
  pidEnd: number;
  tidStart: number;
  tidEnd: number;
  tsStart: number;
  tsEnd: number;
  durStart: number;
  durEnd: number;
  idStart: number;
  idEnd: number;
  /** Whole `args` value, braces included, when it is an object. */
  argsStart: number;
  argsEnd: number;
  /** Key/value ranges directly inside args: 4 numbers per key (key start, key end, value start, value end; string values without quotes). */
  args: Int32Array;
  argCount: number;
}

export interface ScanResult {
  events: number;
  bytes: number;
  /** True when the file ended inside the array: everything complete before that was used. */
  truncated: boolean;
  /** Byte offset after the last complete event. */
  lastGoodByte: number;
}

const MAX_EVENT_BYTES = 16 << 20;
const MAX_DEPTH = 32;
const MAX_ARGS = 64;

const QUOTE = 34;
const BACKSLASH = 92;

/** Most strings are shorter than this; a native search costs as much as walking over so many bytes. */
const SHORT = 40;

/** Index of the closing quote for a string whose first character is at `from`; -1 if the buffer ends first. */
function closeQuote(buf: Buffer, from: number, end: number): number {
  let i = from;
  const near = Math.min(from + SHORT, end);
  while (i < near) {
    const c = buf[i]!;
    if (c === QUOTE) return i;
    i += c === BACKSLASH ? 2 : 1;
  }
  // Here no character is half of an escape.
  const known = i;
  for (;;) {
    i = buf.indexOf(QUOTE, i);
    if (i === -1 || i >= end) return -1;
    let slashes = 0;
    for (let j = i - 1; j >= known && buf[j] === BACKSLASH; j--) slashes++;
    if ((slashes & 1) === 0) return i;
    i++;
  }
}

const NEED_MORE = -1;
const MALFORMED = -2;

function skipSpace(buf: Buffer, from: number, end: number): number {
  let i = from;
  while (i < end) {
    const c = buf[i]!;
    if (c !== 32 && c !== 10 && c !== 13 && c !== 9) break;
    i++;
  }
  return i;
}

/** End offset of the JSON value at `from`; NEED_MORE or MALFORMED. */
function skipValue(buf: Buffer, from: number, end: number): number {
  const first = buf[from]!;
  if (first === QUOTE) {
    const close = closeQuote(buf, from + 1, end);
    return close === -1 ? NEED_MORE : close + 1;
  }
  if (first === 123 || first === 91) {
    let depth = 0;
    let i = from;
    while (i < end) {
      const c = buf[i]!;
      if (c === QUOTE) {
        const close = closeQuote(buf, i + 1, end);
        if (close === -1) return NEED_MORE;
        i = close + 1;
        continue;
      }
      if (c === 123 || c === 91) {
        if (++depth > MAX_DEPTH) return MALFORMED;
      } else if (c === 125 || c === 93) {
        if (--depth === 0) return i + 1;
      }
      i++;
    }
    return NEED_MORE;
  }
  let i = from;
  while (i < end) {
    const c = buf[i]!;
    if (c === 44 || c === 125 || c === 93 || c === 32 || c === 10 || c === 13 || c === 9) return i === from ? MALFORMED : i;
    i++;
  }
  return NEED_MORE;
}

/** Scans the args object at `from`, noting its direct keys. */
function scanArgs(buf: Buffer, from: number, end: number, ev: RawEvent): number {
  let i = from + 1;
  ev.argCount = 0;
  for (;;) {
    i = skipSpace(buf, i, end);
    if (i >= end) return NEED_MORE;
    const c = buf[i]!;
    if (c === 125) return i + 1;
    if (c === 44) {
      i++;
      continue;
    }
    if (c !== QUOTE) return MALFORMED;
    const keyStart = i + 1;
    const keyEnd = closeQuote(buf, keyStart, end);
    if (keyEnd === -1) return NEED_MORE;
    i = skipSpace(buf, keyEnd + 1, end);
    if (i >= end) return NEED_MORE;
    if (buf[i] !== 58) return MALFORMED;
    i = skipSpace(buf, i + 1, end);
    if (i >= end) return NEED_MORE;
    const valueStart = i;
    i = skipValue(buf, i, end);
    if (i < 0) return i;
    if (ev.argCount < MAX_ARGS) {
      const quoted = buf[valueStart] === QUOTE;
      const at = ev.argCount * 4;
      ev.args[at] = keyStart;
      ev.args[at + 1] = keyEnd;
      ev.args[at + 2] = quoted ? valueStart + 1 : valueStart;
      ev.args[at + 3] = quoted ? i - 1 : i;
      ev.argCount++;
    }
  }
}

/** Scans one event object at `from`. Returns the offset after it, NEED_MORE or MALFORMED. */
function scanEvent(buf: Buffer, from: number, end: number, ev: RawEvent): number {
  ev.ph = 0;
  ev.nameStart = ev.catStart = ev.pidStart = ev.tidStart = ev.tsStart = ev.durStart = ev.idStart = ev.argsStart = -1;
  ev.argCount = 0;
  let i = from + 1;
  for (;;) {
    i = skipSpace(buf, i, end);
    if (i >= end) return NEED_MORE;
    const c = buf[i]!;
    if (c === 125) return i + 1;
    if (c === 44) {
      i++;
      continue;
    }
    if (c !== QUOTE) return MALFORMED;
    const keyStart = i + 1;
    const keyEnd = closeQuote(buf, keyStart, end);
    if (keyEnd === -1) return NEED_MORE;
    i = skipSpace(buf, keyEnd + 1, end);
    if (i >= end) return NEED_MORE;
    if (buf[i] !== 58) return MALFORMED;
    i = skipSpace(buf, i + 1, end);
    if (i >= end) return NEED_MORE;
    const keyLength = keyEnd - keyStart;
    const k0 = buf[keyStart]!;
    const k1 = buf[keyStart + 1]!;
    const valueStart = i;
    if (keyLength === 4 && k0 === 97 && k1 === 114 && buf[i] === 123) {
      i = scanArgs(buf, i, end, ev);
      if (i < 0) return i;
      ev.argsStart = valueStart;
      ev.argsEnd = i;
      continue;
    }
    i = skipValue(buf, i, end);
    if (i < 0) return i;
    const quoted = buf[valueStart] === QUOTE;
    const s = quoted ? valueStart + 1 : valueStart;
    const e = quoted ? i - 1 : i;
    if (keyLength === 2) {
      if (k0 === 112 && k1 === 104) ev.ph = buf[s]!;
      else if (k0 === 116 && k1 === 115) {
        ev.tsStart = s;
        ev.tsEnd = e;
      } else if (k0 === 105 && k1 === 100) {
        ev.idStart = s;
        ev.idEnd = e;
      }
    } else if (keyLength === 3) {
      if (k0 === 112) {
        ev.pidStart = s;
        ev.pidEnd = e;
      } else if (k0 === 116) {
        ev.tidStart = s;
        ev.tidEnd = e;
      } else if (k0 === 100) {
        ev.durStart = s;
        ev.durEnd = e;
      } else if (k0 === 99) {
        ev.catStart = s;
        ev.catEnd = e;
      }
    } else if (keyLength === 4 && k0 === 110 && k1 === 97) {
      ev.nameStart = s;
      ev.nameEnd = e;
    }
  }
}

/** Value range of an args key, as an index into `ev.args`, or -1. `key` is ASCII. */
export function findArg(ev: RawEvent, key: Uint8Array): number {
  for (let n = 0; n < ev.argCount; n++) {
    const at = n * 4;
    const start = ev.args[at]!;
    if (ev.args[at + 1]! - start !== key.length) continue;
    let i = 0;
    while (i < key.length && ev.buf[start + i] === key[i]) i++;
    if (i === key.length) return at + 2;
  }
  return -1;
}

/** Feeds every complete event to `onEvent`. The caller must copy what it keeps. */
export async function scanTrace(chunks: AsyncIterable<Buffer>, onEvent: (ev: RawEvent) => void): Promise<ScanResult> {
  const ev: RawEvent = {
    buf: Buffer.alloc(0),
    ph: 0,
    nameStart: -1,
    nameEnd: -1,
    catStart: -1,
    catEnd: -1,
    pidStart: -1,
    pidEnd: -1,
    tidStart: -1,
    tidEnd: -1,
    tsStart: -1,
    tsEnd: -1,
    durStart: -1,
    durEnd: -1,
    idStart: -1,
    idEnd: -1,
    argsStart: -1,
    argsEnd: -1,
    args: new Int32Array(MAX_ARGS * 4),
    argCount: 0,
  };
  const result: ScanResult = { events: 0, bytes: 0, truncated: true, lastGoodByte: 0 };
  let started = false;
  let done = false;
  let seam = false;

  const consume = (buf: Buffer, base: number): number => {
    if (done) return buf.length;
    let i = 0;
    ev.buf = buf;
    if (!started) {
      // Skip a BOM and, for `{"traceEvents": [`, everything up to the array.
      if (buf[0] === 0xef && buf.length < 3) return 0;
      i = skipSpace(buf, buf[0] === 0xef ? 3 : 0, buf.length);
      if (i >= buf.length) return i;
      if (buf[i] === 123) {
        const key = buf.indexOf('"traceEvents"', i);
        if (key === -1) return buf.length > 1 << 20 ? buf.length : 0;
        const bracket = buf.indexOf(91, key);
        if (bracket === -1) return 0;
        i = bracket + 1;
      } else if (buf[i] === 91) i++;
      started = true;
    }
    for (;;) {
      while (i < buf.length) {
        const c = buf[i]!;
        if (c === 123) break;
        // After damage a bracket may belong to a value whose start was lost.
        if (c === 93 && !seam) {
          done = true;
          return buf.length;
        }
        i++;
      }
      if (i >= buf.length) return i;
      const next = scanEvent(buf, i, buf.length, ev);
      if (next === NEED_MORE) {
        if (buf.length - i > MAX_EVENT_BYTES) seam = true;
        return i;
      }
      if (next === MALFORMED) {
        // Not JSON any more: look for the next event start, at most once per byte.
        i++;
        seam = true;
        continue;
      }
      result.events++;
      result.lastGoodByte = base + next;
      onEvent(ev);
      i = next;
    }
  };

  // One "event" larger than any real one is given up, and the next start is looked for.
  const feeder = createFeeder(consume, MAX_EVENT_BYTES, () => {
    seam = true;
  });
  for await (const chunk of chunks) {
    result.bytes += chunk.length;
    if (!done) feeder.push(chunk);
  }
  if (!done) feeder.end();
  result.truncated = !done || seam;
  return result;
}

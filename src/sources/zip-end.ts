const END = 0x06054b50;
const END_BYTES = 22;
const MAX_COMMENT = 0xffff;
const LOCATOR = 0x07064b50;
const LOCATOR_BYTES = 20;
const END_64 = 0x06064b50;
const END_64_BYTES = 56;

/** So many last bytes of a zip hold its end, zip64 or not. */
export const ZIP_END_BYTES = END_64_BYTES + LOCATOR_BYTES + END_BYTES + MAX_COMMENT;

/**
 * Where the directory of a zip begins, told by the last bytes of its `size`; null when they are not the end of a zip. Three numbers of
 * fixed records are read here, nothing else: the directory itself is foreign and read by whoever may be given foreign files.
 */
export function directoryStart(tail: Buffer, size: number): number | null {
  const from = size - tail.length;
  for (let at = tail.length - END_BYTES; at >= 0 && at >= tail.length - END_BYTES - MAX_COMMENT; at--) {
    if (tail.readUInt32LE(at) !== END || at + END_BYTES + tail.readUInt16LE(at + 20) !== tail.length) continue;
    const start = tail.readUInt32LE(at + 16) === 0xffffffff ? start64(tail, at, from) : tail.readUInt32LE(at + 16);
    return start === null || start >= from + at ? null : start;
  }
  return null;
}

function start64(tail: Buffer, end: number, from: number): number | null {
  const locator = end - LOCATOR_BYTES;
  if (locator < 0 || tail.readUInt32LE(locator) !== LOCATOR) return null;
  const record = Number(tail.readBigUInt64LE(locator + 8)) - from;
  if (record < 0 || record + END_64_BYTES > locator || tail.readUInt32LE(record) !== END_64) return null;
  const start = Number(tail.readBigUInt64LE(record + 48));
  return Number.isSafeInteger(start) ? start : null;
}

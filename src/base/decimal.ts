/**
 * Timestamps of Ascend profiles are decimal µs of 16 digits plus a fraction, more than a double can hold to the nanosecond.
 * They are split on the decimal text: whole µs (exact up to 2^53) and ns of the fraction; only differences become one Number.
 */
export interface Instant {
  /** Whole µs since the epoch, exact. */
  us: number;
  /** ns of the fraction, 0..999 (sub-ns digits are dropped). */
  ns: number;
}

/** Parses ASCII decimal `123.456` in buf[start, end) into `out`; false when it is not a plain non-negative decimal. */
export function parseInstant(buf: Uint8Array, start: number, end: number, out: Instant): boolean {
  let us = 0;
  let i = start;
  for (; i < end; i++) {
    const digit = buf[i]! - 48;
    if (digit < 0 || digit > 9) break;
    us = us * 10 + digit;
  }
  if (i === start || us > Number.MAX_SAFE_INTEGER) return false;
  let ns = 0;
  if (i < end && buf[i] === 46) {
    let scale = 100;
    for (i++; i < end; i++) {
      const digit = buf[i]! - 48;
      if (digit < 0 || digit > 9) break;
      ns += digit * scale;
      scale = scale === 100 ? 10 : scale === 10 ? 1 : 0;
    }
  }
  if (i < end) {
    const c = buf[i]!;
    if (c === 101 || c === 69) {
      const value = Number(Buffer.from(buf.buffer, buf.byteOffset + start, end - start).toString('latin1'));
      if (!Number.isFinite(value) || value < 0 || value > Number.MAX_SAFE_INTEGER) return false;
      out.us = Math.floor(value);
      out.ns = Math.round((value - out.us) * 1000);
      return true;
    }
    return false;
  }
  out.us = us;
  out.ns = ns;
  return true;
}

/** Parses a plain JSON number (sign, fraction, exponent) in buf[start, end); NaN when it is none. */
export function parseNumber(buf: Uint8Array, start: number, end: number): number {
  let i = start;
  let negative = false;
  if (buf[i] === 45) {
    negative = true;
    i++;
  }
  let mantissa = 0;
  let digits = 0;
  let exponent = 0;
  for (; i < end; i++) {
    const digit = buf[i]! - 48;
    if (digit < 0 || digit > 9) break;
    if (digits < 15) {
      mantissa = mantissa * 10 + digit;
      if (mantissa > 0) digits++;
    } else exponent++;
  }
  if (i < end && buf[i] === 46) {
    for (i++; i < end; i++) {
      const digit = buf[i]! - 48;
      if (digit < 0 || digit > 9) break;
      if (digits < 15) {
        mantissa = mantissa * 10 + digit;
        if (mantissa > 0) digits++;
        exponent--;
      }
    }
  }
  if (i < end) {
    const value = Number(
      Buffer.from(buf.buffer, buf.byteOffset + start, end - start)
        .toString('latin1')
        .trim() || 'NaN',
    );
    return value;
  }
  const last = buf[i - 1]! - 48;
  if (i === start || last < 0 || last > 9) return Number.NaN;
  const value = exponent === 0 ? mantissa : exponent > 0 ? mantissa * 10 ** exponent : mantissa / 10 ** -exponent;
  return negative ? -value : value;
}

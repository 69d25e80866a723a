import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Instant, parseInstant, parseNumber } from '../../src/base/decimal.ts';
import { createOrigin } from '../../src/importers/ascend-text/origin.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function instant(text: string): Instant | null {
  const out: Instant = { us: -1, ns: -1 };
  const buf = bytes(`x${text}x`);
  return parseInstant(buf, 1, buf.length - 1, out) ? out : null;
}

function number(text: string): number {
  const buf = bytes(`x${text}x`);
  return parseNumber(buf, 1, buf.length - 1);
}

describe('instants', () => {
  test('16 digits and three decimals keep every nanosecond', () => {
    expect(instant('1736413971558972.912')).toEqual({ us: 1736413971558972, ns: 912 });
    expect(instant('1736413971793969.5')).toEqual({ us: 1736413971793969, ns: 500 });
    expect(instant('0')).toEqual({ us: 0, ns: 0 });
    expect(instant('7.0009')).toEqual({ us: 7, ns: 0 });
  });

  test('differences are exact where a double of the text is off', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1_600_000_000_000_000_000n, max: 2_000_000_000_000_000_000n }),
        fc.bigInt({ min: 0n, max: 600_000_000_000n }),
        (first, distance) => {
          const text = (ns: bigint): string => `${ns / 1000n}.${String(ns % 1000n).padStart(3, '0')}`;
          const origin = createOrigin();
          const a = origin.relative(instant(text(first))!);
          const b = origin.relative(instant(text(first + distance))!);
          expect(BigInt(b - a)).toBe(distance);
        },
      ),
    );
  });

  test('a number beyond 2^53, a sign, a blank or a word is no instant', () => {
    for (const text of ['9007199254740993', '-1', '', ' 1', '1 ', 'N/A', '1.5us', '.5', '1e400']) expect(instant(text), text).toBeNull();
  });

  test('an exponent is read', () => {
    expect(instant('1.5e3')).toEqual({ us: 1500, ns: 0 });
  });
});

describe('numbers', () => {
  test('every number that JavaScript prints is read back as JSON does, to the last digits that count', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 }), (value) => {
        const text = String(value);
        const read = number(text);
        expect(Math.abs(read - value)).toBeLessThanOrEqual(Math.abs(value) * 1e-14);
      }),
    );
  });

  test('integers up to 15 digits are exact', () => {
    fc.assert(fc.property(fc.integer({ min: -999_999_999, max: 999_999_999 }), (n) => number(String(n)) === n));
    expect(number('999999999999999')).toBe(999_999_999_999_999);
  });

  test('text that is no number is NaN, not zero', () => {
    for (const text of ['', '-', '.', '-.', 'N/A', 'null', '1.2.3', '12ms']) expect(number(text), text).toBeNaN();
  });

  test('a leading or trailing point and an exponent are read', () => {
    expect(number('.5')).toBe(0.5);
    expect(number('1e3')).toBe(1000);
    expect(number('-2.5E-1')).toBe(-0.25);
    expect(number('2.2400625')).toBe(2.2400625);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createInterner } from '../../src/base/interner.ts';

describe('the interner', () => {
  test('ids count from 0 in order of first sight and give the text back', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { maxLength: 200 }), (words) => {
        const names = createInterner();
        const expected = [...new Set(words.map((w) => w.toWellFormed()))];
        const ids = words.map((w) => names.text(w.toWellFormed()));
        expect(names.size).toBe(expected.length);
        words.forEach((w, i) => {
          expect(ids[i]).toBe(expected.indexOf(w.toWellFormed()));
          expect(names.get(ids[i]!)).toBe(w.toWellFormed());
        });
      }),
    );
  });

  test('a byte range and a string with the same bytes are the same name', () => {
    const names = createInterner();
    const id = names.text('aclnnAdd_算子');
    const buf = Buffer.from('xxaclnnAdd_算子yy');
    expect(names.bytes(buf, 2, buf.length - 2)).toBe(id);
    expect(names.find('aclnnAdd_算子')).toBe(id);
    expect(names.find('never seen')).toBe(-1);
    expect(names.get(-1)).toBe('');
    expect(names.get(99)).toBe('');
  });

  test('the bytes are copied: reuse of the buffer does not change a name', () => {
    const names = createInterner();
    const buf = Buffer.from('MatMulV2');
    const id = names.bytes(buf, 0, buf.length);
    buf.fill(0);
    expect(names.get(id)).toBe('MatMulV2');
  });

  test('fifty thousand names stay distinct while the table grows', () => {
    const names = createInterner();
    const ids = Array.from({ length: 50_000 }, (_, i) => names.text(`op_${i}`));
    expect(new Set(ids).size).toBe(50_000);
    expect(names.get(ids[49_999]!)).toBe('op_49999');
  });

  test('a megabyte name is cut and beyond the limit new names share the first id', () => {
    const names = createInterner(2);
    const long = names.text('a'.repeat(1 << 20));
    expect(names.get(long).length).toBeLessThanOrEqual(2048);
    names.text('second');
    expect(names.text('third')).toBe(0);
    expect(names.size).toBe(2);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clip, complement, covered, EMPTY, type Intervals, intersect, length, subtract, union, unite } from '../../src/base/intervals.ts';

const LIMIT = 60;
const raw = fc.array(fc.tuple(fc.integer({ min: 0, max: LIMIT }), fc.integer({ min: 0, max: LIMIT })), { maxLength: 12 });
const set = raw.map((list) => union(list));
const window = fc.tuple(fc.integer({ min: -5, max: LIMIT + 5 }), fc.integer({ min: -5, max: LIMIT + 5 }));

/** The integer cells a set covers: the plain meaning of every operation. */
function cells(of: Intervals): Set<number> {
  const out = new Set<number>();
  of.start.forEach((a, k) => {
    for (let i = a; i < of.end[k]!; i++) out.add(i);
  });
  return out;
}

function sorted(values: Iterable<number>): number[] {
  return [...values].sort((a, b) => a - b);
}

describe('interval sets', () => {
  test('a union is ascending, disjoint, merged and holds no empty interval', () => {
    fc.assert(
      fc.property(raw, (list) => {
        const { start, end } = union(list);
        expect(start).toHaveLength(end.length);
        start.forEach((s, i) => {
          expect(end[i]!).toBeGreaterThan(s);
          if (i > 0) expect(s).toBeGreaterThan(end[i - 1]!);
        });
      }),
    );
  });

  test('a union covers exactly what its spans cover, whatever their order', () => {
    fc.assert(
      fc.property(raw, (list) => {
        const expected = new Set<number>();
        for (const [a, b] of list) for (let i = a; i < b; i++) expected.add(i);
        expect(sorted(cells(union(list)))).toEqual(sorted(expected));
        expect(union([...list].reverse())).toEqual(union(list));
      }),
    );
  });

  test('intersect, subtract and unite mean what they say', () => {
    fc.assert(
      fc.property(set, set, (a, b) => {
        const [ca, cb] = [cells(a), cells(b)];
        expect(sorted(cells(intersect(a, b)))).toEqual(sorted([...ca].filter((c) => cb.has(c))));
        expect(sorted(cells(subtract(a, b)))).toEqual(sorted([...ca].filter((c) => !cb.has(c))));
        expect(sorted(cells(unite(a, b)))).toEqual(sorted(new Set([...ca, ...cb])));
      }),
    );
  });

  test('the two parts of a set split by another add up to its length', () => {
    fc.assert(fc.property(set, set, (a, b) => length(intersect(a, b)) + length(subtract(a, b)) === length(a)));
  });

  test('what is covered inside a window is the length of the clipped set', () => {
    fc.assert(fc.property(set, window, (a, [from, to]) => (to > from ? covered(a, from, to) === length(clip(a, from, to)) : true)));
  });

  test('a set and its complement fill the window', () => {
    fc.assert(
      fc.property(set, window, (a, [from, to]) => {
        const size = Math.max(0, to - from);
        expect(length(clip(a, from, to)) + length(complement(a, from, to))).toBe(size);
        expect(length(intersect(a, complement(a, from, to)))).toBe(0);
      }),
    );
  });

  test('an empty or reversed window holds nothing', () => {
    const a = union([[0, 10]]);
    expect(clip(a, 5, 5)).toEqual(EMPTY);
    expect(complement(a, 9, 3)).toEqual(EMPTY);
  });

  test('a hundred thousand intervals are merged in no time', () => {
    const list = Array.from({ length: 100_000 }, (_, i) => [(i * 7919) % 1_000_003, ((i * 7919) % 1_000_003) + 3] as const);
    const begin = performance.now();
    expect(length(union(list))).toBeGreaterThan(0);
    expect(performance.now() - begin).toBeLessThan(2_000);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { f64, i32 } from '../../src/base/columns.ts';
import { mad, median, quantile } from '../../src/base/statistics.ts';

const values = fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 1, maxLength: 30 });

describe('statistics', () => {
  test('half of the values lie on either side of the median', () => {
    fc.assert(
      fc.property(values, (list) => {
        const middle = median(list);
        expect(list.filter((v) => v < middle).length).toBeLessThanOrEqual(list.length / 2);
        expect(list.filter((v) => v > middle).length).toBeLessThanOrEqual(list.length / 2);
      }),
    );
  });

  test('quantiles rise from the smallest to the largest value', () => {
    fc.assert(
      fc.property(values, (list) => {
        expect(quantile(list, 0)).toBe(Math.min(...list));
        expect(quantile(list, 1)).toBe(Math.max(...list));
        expect(quantile(list, 0.25)).toBeLessThanOrEqual(quantile(list, 0.75));
      }),
    );
  });

  test('the order of the values does not matter and they are not sorted in place', () => {
    const list = [3, 1, 2];
    expect(median(list)).toBe(2);
    expect(list).toEqual([3, 1, 2]);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  test('deviation is the median distance from the median', () => {
    expect(mad([1, 1, 2, 2, 4, 6, 9])).toBe(1);
    expect(mad([5])).toBe(0);
  });

  test('without values there is no median', () => {
    expect(median([])).toBeNaN();
    expect(mad([])).toBeNaN();
    expect(quantile([], 0.1)).toBeNaN();
  });
});

describe('growable columns', () => {
  test('values survive growing', () => {
    const floats = f64(2);
    const ints = i32(2);
    for (let i = 0; i < 1000; i++) {
      floats.push(i + 0.5);
      ints.push(-i);
    }
    expect(floats.length).toBe(1000);
    expect(floats.view()[999]).toBe(999.5);
    expect(ints.view()[999]).toBe(-999);
    expect(ints.view()).toHaveLength(1000);
  });
});

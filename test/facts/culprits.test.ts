import { describe, expect, test } from 'vitest';
import { ranksAbove, sharers } from '../../src/facts/job/culprits.ts';

describe('ranks a cause sits on', () => {
  test('nobody below the floor', () => {
    expect(ranksAbove([0.8, 0.7], 0.9)).toEqual([]);
    expect(sharers([0.8, 0.7], 0.9)).toEqual([]);
    expect(ranksAbove([0, 0], 0)).toEqual([]);
    expect(sharers([], 0)).toEqual([]);
  });
  test('a rank just below the floor is in the same place as those just above', () => {
    expect(ranksAbove([1.2, 0.84, 1], 0.9)).toEqual([0, 1, 2]);
    expect(sharers([1.2, 0.84, 1], 0.9)).toEqual([0, 1, 2]);
  });
  test('one far above the rest is the culprit of what it holds up', () => {
    expect(ranksAbove([2, 9, 1, 1.5], 0.9)).toEqual([1]);
  });
  test('kernels are shared down to a tenth of the worst', () => {
    expect(sharers([2, 9, 0.5, 0.95], 0.9)).toEqual([0, 1, 3]);
  });
  test('a rank that was not measured neither counts nor silences the others', () => {
    expect(ranksAbove([Number.NaN, 1, 1], 0.9)).toEqual([1, 2]);
    expect(sharers([Number.NaN, 1, 1], 0.9)).toEqual([1, 2]);
  });
});

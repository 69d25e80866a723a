import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  articleFor,
  formatColumnMs,
  formatEstimate,
  formatPart,
  formatSaving,
  formatSavingLine,
  formatTime,
  splitCells,
} from '../../src/render/figures.ts';
import { BAR_CELLS, stepBar } from '../../src/render/standing.ts';
import { breakdownRow, report } from './reports.ts';

describe('figures', () => {
  it.each([
    [812.4, '812 ms', '812 ms'],
    [94, '94.0 ms', '94 ms'],
    [40.61, '40.6 ms', '41 ms'],
    [9.441, '9.44 ms', '9.4 ms'],
    [0.62, '0.62 ms', '0.62 ms'],
    [0.05, '50 µs', '50 µs'],
    [0, '0 ms', '0 ms'],
    [1234.4, '1,234 ms', '1,234 ms'],
    [12_040, '12.0 s', '12 s'],
    [-70.5, '−70.5 ms', '−71 ms'],
    [99.96, '100 ms', '100 ms'],
  ])('%d ms is written as a time and as an estimate', (ms, time, estimate) => {
    expect(formatTime(ms).replace('\u00a0', ' ')).toBe(time);
    expect(formatEstimate(ms).replace('\u00a0', ' ')).toBe(estimate);
  });

  it('never writes a minus or a digit that is not there', () => {
    fc.assert(
      fc.property(fc.double({ min: -1e9, max: 1e9, noNaN: true }), (ms) => {
        for (const text of [formatTime(ms), formatEstimate(ms)]) expect(text).toMatch(/^−?\d{1,3}(,\d{3})*(\.\d+)?\u00a0(µs|ms|s)$/);
        expect(formatColumnMs(ms)).toMatch(/^−?\d{1,3}(,\d{3})*\.\d$/);
      }),
    );
  });

  it('writes savings in one unit', () => {
    expect(formatSavingLine({ floor: 71, likely: 94, ceiling: 118 }, 'en')).toBe('≈\u00a094\u00a0ms (71–118)');
    expect(formatSavingLine({ floor: 71, likely: 94, ceiling: 118 }, 'zh')).toBe('约 94\u00a0ms（71～118）');
    expect(formatSaving({ likely: null, ceiling: 19 }, 'en')).toEqual({ headline: 'up to 19\u00a0ms', range: null });
    expect(formatSaving({ floor: 8000, likely: 12_000, ceiling: 13_000 }, 'en')).toEqual({ headline: '≈\u00a012\u00a0s', range: '8–13' });
    expect(formatSaving({ floor: 5, likely: 5, ceiling: 5 }, 'en').range).toBeNull();
  });

  it('shares a unit only when both figures have it', () => {
    expect(formatPart('132\u00a0ms', '812\u00a0ms')).toEqual({ part: '132', whole: '812\u00a0ms' });
    expect(formatPart('132\u00a0ms', '12.0\u00a0s')).toEqual({ part: '132\u00a0ms', whole: '12.0\u00a0s' });
  });

  it.each([
    ['812 ms', 'an'],
    ['8.00 ms', 'an'],
    ['11.4 ms', 'an'],
    ['18,000 ms', 'an'],
    ['110 ms', 'a'],
    ['741 ms', 'a'],
    ['1,812 ms', 'a'],
  ])('%s takes "%s"', (figure, article) => {
    expect(articleFor(figure)).toBe(article);
  });
});

describe('the step bar', () => {
  it('always has 30 cells or none, and never a negative one', () => {
    const part = fc.oneof(
      fc.double({ min: 0, max: 1e7, noNaN: true }),
      fc.constantFrom(0, -5, Number.NaN, Number.POSITIVE_INFINITY, 1e-12, 5e-324, 1e308),
    );
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 30 }), (parts, cells) => {
        const counts = splitCells(parts, cells);
        expect(counts.every((count) => Number.isInteger(count) && count >= 0)).toBe(true);
        const some = parts.some((ms) => Number.isFinite(ms) && ms > 0);
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(some ? cells : 0);
      }),
    );
  });

  it.each([
    // Less than half a cell is none, more is one; the rest of the cells goes to who lacks most of its last one.
    [[99.9, 0.1, 0], 30, [30, 0, 0]],
    [[98, 2, 0], 30, [29, 1, 0]],
    [[98.6, 1.4, 0], 30, [30, 0, 0]],
    [[1, 1, 1], 10, [4, 3, 3]],
    [[0, 0, 7], 30, [0, 0, 30]],
  ])('splits %j into %i cells by the largest remainder', (parts, cells, counts) => {
    expect(splitCells(parts, cells)).toEqual(counts);
  });

  it('is drawn for any breakdown', () => {
    const ms = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(ms, ms, ms), { maxLength: 12 }), (rows) => {
        const bar = stepBar(report({ breakdown: rows.map((row, i) => breakdownRow(i % 4, 50 + i, row)) }));
        const sum = bar === null ? BAR_CELLS : bar.cells.reduce((total, count) => total + count, 0);
        expect([0, BAR_CELLS]).toContain(sum);
        if (bar !== null) expect(Math.min(bar.computingMs, bar.exposedMs, bar.idleMs)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it('shows the rank the others wait for', () => {
    expect(stepBar(report())).toMatchObject({ rank: 5, cells: [19, 5, 6] });
  });
});

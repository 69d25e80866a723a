import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { BASES, CONFIDENCES, type Finding, type Report, SEVERITIES } from '../../src/model/report.ts';
import { renderCheck } from '../../src/render/check.ts';
import { renderComment } from '../../src/render/comment.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderText } from '../../src/render/text.ts';
import { breakdownRow, finding, report, reportComment } from './reports.ts';

const ms = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e6, noNaN: true }));

const findings: fc.Arbitrary<Finding> = fc
  .record({
    id: fc.uuid(),
    severity: fc.constantFrom(...SEVERITIES),
    confidence: fc.constantFrom(...CONFIDENCES),
    ranks: fc.array(fc.nat(2000), { maxLength: 20 }),
    steps: fc.array(fc.nat(100), { maxLength: 3 }),
    groups: fc.array(fc.string(), { maxLength: 6 }),
    saving: fc.option(
      fc.record({
        basis: fc.constantFrom(...BASES),
        perStepMs: fc.record({ floor: ms, likely: fc.option(ms), ceiling: ms }),
        shareOfStep: fc.double({ min: 0, max: 1, noNaN: true }),
        method: fc.constantFrom('', 'replay'),
      }),
    ),
    symptomOf: fc.option(fc.uuid()),
    locations: fc.constantFrom<Finding['locations']>([], [{ file: 'a.py', line: 1, symbol: null, provenBy: 'syntax' }]),
  })
  .map((fields) => finding(fields));

const reports: fc.Arbitrary<Report> = fc
  .record({
    lang: fc.constantFrom(...LANGS),
    outcome: fc.constantFrom('causes' as const, 'quiet' as const, 'incomplete' as const, 'no-data' as const),
    findings: fc.array(findings, { maxLength: 6 }),
    stepTimeMs: fc.option(fc.double({ min: 1e-3, max: 1e6, noNaN: true })),
    stepNoiseMs: fc.option(ms),
    ranks: fc.array(fc.nat(100), { maxLength: 4 }),
    worldSize: fc.option(fc.integer({ min: 1, max: 2000 })),
    steps: fc.array(fc.nat(100), { maxLength: 4 }),
    rows: fc.array(fc.tuple(fc.option(fc.nat(3)), fc.option(fc.nat(3)), ms, ms, ms), { maxLength: 6 }),
    likely: fc.option(ms),
    ceiling: ms,
    gate: fc.option(
      fc.record({
        outcome: fc.constantFrom('pass' as const, 'fail' as const, 'neutral' as const),
        because: fc.array(fc.constant('why'), { maxLength: 4 }),
      }),
    ),
  })
  .map(({ lang, outcome, rows, likely, ceiling, gate, findings: of, ...job }) =>
    report({
      lang,
      verdict: { outcome, text: 'verdict' },
      job: {
        ...report().job,
        ...job,
        versions: { cann: null, torchNpu: null, torch: null },
        device: null,
        level: null,
        framework: null,
        samplesPerSecond: null,
        tokensPerSecond: null,
      },
      breakdown: rows.map(([rank, step, ...parts]) => ({ ...breakdownRow(rank, step, parts), bubbleMs: null, preparingMs: null })),
      findings: of,
      totals: { claimedMsPerStep: { likely, ceiling }, unexplainedIdleMs: null },
      gate,
    }),
  );

describe('a report with parts missing', () => {
  it('never prints a value that is not there', () => {
    fc.assert(
      fc.property(reports, (of) => {
        const view = reportComment(of);
        const check = renderCheck({ comment: view, annotatable: () => true });
        const outputs = [
          renderComment(view),
          check.title,
          check.summary,
          check.text,
          renderMarkdown(of),
          renderText(of, { color: false, width: 90 }),
        ];
        for (const output of outputs) {
          expect(output).not.toMatch(/\bNaN\b|undefined|\bInfinity\b|\bnull\b|\[object/);
          expect(output.trim()).not.toBe('');
        }
        expect([...check.title].length).toBeLessThanOrEqual(70);
        expect(renderComment(view)).toBe(renderComment(view));
      }),
      { numRuns: 300 },
    );
  });
});

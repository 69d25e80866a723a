import { describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { renderComment } from '../../src/render/comment.ts';
import { renderSarif } from '../../src/render/sarif.ts';
import { HOSTILE, reportOf } from './hostile.ts';
import { caseA, caseB, caseC, finding, report } from './reports.ts';

interface Sarif {
  version: string;
  runs: {
    tool: { driver: { rules: { id: string }[] } };
    invocations: { toolExecutionNotifications: { descriptor: { id: string }; message: { text: string } }[] }[];
    results: {
      ruleId: string;
      ruleIndex: number;
      level: string;
      message: { text: string };
      locations: { physicalLocation: { artifactLocation: { uri: string }; region: { startLine: number } } }[];
      partialFingerprints: Record<string, string>;
      fixes?: { artifactChanges: { replacements: { deletedRegion: object; insertedContent: { text: string } }[] }[] }[];
      suppressions?: object[];
    }[];
  }[];
}
const parse = (of: Parameters<typeof renderSarif>[0]): Sarif['runs'][number] => (JSON.parse(renderSarif(of)) as Sarif).runs[0]!;

describe('SARIF', () => {
  it.each(LANGS)('holds every cause once, with the figures of the comment (%s)', (lang) => {
    for (const make of [caseA, caseB, caseC]) {
      const { report: of } = make(lang);
      const run = parse(of);
      const told = [...run.results.map((r) => r.ruleId), ...run.invocations[0]!.toolExecutionNotifications.map((n) => n.descriptor.id)];
      expect(told.sort()).toEqual(
        of.findings
          .filter((f) => f.symptomOf === null)
          .map((f) => f.rule)
          .sort(),
      );
      for (const r of run.results) expect(run.tool.driver.rules[r.ruleIndex]?.id).toBe(r.ruleId);
      const text = JSON.stringify(run).replaceAll('\u00a0', ' ');
      for (const [figure] of renderComment(make(lang))
        .replaceAll('\u00a0', ' ')
        .matchAll(/(?<=\*\*)(≈|约|up to|最多) [\d.,]+ ms(?=\*\*)/g))
        expect(text).toContain(figure);
    }
  });

  it('names the line, offers the edit, and goes to notes without a line', () => {
    const edit = { file: 'src/a b.py', startLine: 3, endLine: 4, before: 'x = (\n  1)', after: 'x = 2', kind: 'suggestion' as const };
    const recommendation = {
      remedy: 'dataloader-workers',
      title: 'Workers',
      text: '',
      code: null,
      preconditions: [],
      references: [],
      edits: [edit, { ...edit, startLine: 9, endLine: 9, before: 'y', after: '' }, { ...edit, kind: 'comment-only' as const }],
    };
    const run = parse(
      report({
        findings: [
          finding({
            id: 'one',
            locations: [{ file: 'src/a b.py', line: 3, symbol: 'f', provenBy: 'call-stack' }],
            recommendations: [recommendation],
          }),
          finding({ id: 'two', rule: 'slow-rank', locations: [] }),
          finding({ id: 'three', rule: 'stream-sync', locations: [{ file: 'a.py', line: 1, symbol: null, provenBy: 'profile' }] }),
          finding({ id: 'four', acknowledged: { by: 'alice', at: '2026-01-01', until: null, reason: 'known [x](y) {0}', saving: null } }),
        ],
      }),
    );
    expect(run.results.map((r) => r.partialFingerprints['npuAdvisorFinding/v1'])).toEqual(['one', 'four']);
    expect(run.results[0]!.locations[0]!.physicalLocation).toMatchObject({
      artifactLocation: { uri: 'src/a%20b.py' },
      region: { startLine: 3 },
    });
    expect(run.results[0]!.level).toBe('warning');
    expect(run.results[0]!.fixes!.flatMap((f) => f.artifactChanges.flatMap((c) => c.replacements))).toEqual([
      { deletedRegion: { startLine: 3, startColumn: 1, endLine: 4, endColumn: 5 }, insertedContent: { text: 'x = 2' } },
      { deletedRegion: { startLine: 9, startColumn: 1, endLine: 10, endColumn: 1 }, insertedContent: { text: '' } },
    ]);
    expect(run.results[1]).toMatchObject({
      level: 'note',
      suppressions: [{ status: 'accepted', justification: 'known \\[x\\](y) {{0}}' }],
    });
    expect(run.invocations[0]!.toolExecutionNotifications.map((n) => n.descriptor.id)).toEqual(['slow-rank', 'stream-sync']);
  });

  it('stays well formed with hostile names', () => {
    for (const name of HOSTILE) {
      const text = renderSarif(reportOf(name));
      expect(text.isWellFormed()).toBe(true);
      for (const r of parse(reportOf(name)).results) {
        expect(r.message.text).not.toMatch(/(?<!\\)\[/);
        expect(r.locations[0]!.physicalLocation.artifactLocation.uri).not.toMatch(/[\s<>"]|^\w+:/);
      }
    }
  });
});

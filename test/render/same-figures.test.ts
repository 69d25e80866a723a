/* One figure, one string: the same finding in comment, check run, page, JSON, Markdown, terminal and SARIF. */
import { describe, expect, it } from 'vitest';
import { LANGS, type Lang } from '../../src/model/lang.ts';
import { Report } from '../../src/model/report.ts';
import { renderCheck } from '../../src/render/check.ts';
import { renderComment } from '../../src/render/comment.ts';
import { formatPercent, formatSaving, formatTime } from '../../src/render/figures.ts';
import { renderHtml } from '../../src/render/html/page.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderSarif } from '../../src/render/sarif.ts';
import { verdictSentence } from '../../src/render/standing.ts';
import { renderText } from '../../src/render/text.ts';
import { fullReport } from './full-report.ts';
import { gfm } from './page.ts';
import { caseA, caseB } from './reports.ts';

/** What a reader sees, without markup and ties between figures and units. */
function plain(text: string): string {
  return text
    .replace(/<(script|style)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]+>/g, '')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&')
    .replace(/[\u2060`*]|&#8288;/g, '')
    .replace(/\s+/g, ' ');
}

function everywhere(report: Report): Record<string, string> {
  const comment = { ...caseA(report.lang), report };
  const check = renderCheck({ comment, annotatable: () => true });
  return {
    comment: gfm.render(renderComment(comment)),
    check: [check.title, check.summary, check.text].join('\n'),
    annotations: check.annotations.map(({ title, message }) => `${title} ${message}`).join('\n'),
    page: renderHtml(report),
    markdown: renderMarkdown(report),
    terminal: renderText(report, { color: false, width: 1000 }),
    sarif: renderSarif(report).replaceAll('\\u00a0', '\u00a0'),
  };
}

/** The text around every place where the finding is named, each up to the next line break. */
function says(outputs: Record<string, string>, where: string, figure: string): void {
  expect(plain(outputs[where]!), `${where} says ${figure}`).toContain(plain(figure));
}

const cases: readonly (readonly [string, (lang: Lang) => Report])[] = [
  ['three causes', (lang) => caseA(lang).report],
  ['slower than the baseline', (lang) => caseB(lang).report],
  ['every section filled', fullReport],
];

describe.each(LANGS)('figures (%s)', (lang) => {
  it.each(cases)('of a report with %s are the same everywhere', (_, make) => {
    // What JSON carries is what the others render: nothing is lost or rounded on the way.
    const report = Report.parse(JSON.parse(JSON.stringify(make(lang))));
    expect(report).toEqual(make(lang));
    const outputs = everywhere(report);
    const verdict = plain(verdictSentence(report));
    for (const where of ['comment', 'check', 'page', 'markdown', 'terminal', 'sarif'])
      expect(plain(outputs[where]!).toLowerCase(), `${where} has the verdict`).toContain(verdict.toLowerCase());
    for (const finding of report.findings) {
      const { headline, range } = formatSaving(finding.saving!.perStepMs, lang);
      for (const where of Object.keys(outputs)) {
        // A finding without a line in the repository has no annotation.
        if (where === 'annotations' && finding.locations.length === 0) continue;
        says(outputs, where, headline);
        says(outputs, where, finding.title);
      }
      for (const where of ['comment', 'check', 'page', 'markdown', 'terminal']) if (range !== null) says(outputs, where, range);
      for (const where of ['check', 'page', 'markdown', 'terminal']) says(outputs, where, formatPercent(finding.saving!.shareOfStep, lang));
      // The figures stand at the finding, not anywhere: the same line or row names both.
      const rows = plain(outputs.terminal!.replaceAll('\n', ' ')).split(plain(finding.title));
      expect(rows.slice(1).some((rest) => rest.slice(0, 200).includes(plain(headline)))).toBe(true);
      const at = plain(outputs.page!).split(plain(finding.title)).slice(1);
      expect(at.some((rest) => rest.slice(0, 200).includes(plain(headline)))).toBe(true);
      const sarif = JSON.parse(outputs.sarif!) as {
        runs: { results: { partialFingerprints: Record<string, string>; properties: object }[] }[];
      };
      const result = sarif.runs[0]!.results.find((r) => r.partialFingerprints['npuAdvisorFinding/v1'] === finding.id);
      if (result !== undefined) expect(result.properties).toMatchObject({ savingMsPerStep: finding.saving!.perStepMs });
    }
    const step = formatTime(report.job.stepTimeMs!);
    for (const where of ['page', 'markdown', 'terminal', 'check']) says(outputs, where, step);
    if (report.comparison !== null)
      for (const where of ['comment', 'check', 'page', 'markdown', 'terminal'])
        says(outputs, where, formatTime(report.comparison.deltaMs!));
  });
});

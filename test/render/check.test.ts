import { describe, expect, it } from 'vitest';
import { LANGS, type Lang } from '../../src/model/lang.ts';
import type { Finding } from '../../src/model/report.ts';
import { renderCheck } from '../../src/render/check.ts';
import { renderComment } from '../../src/render/comment.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderText } from '../../src/render/text.ts';
import type { CommentView, ReportComment } from '../../src/render/views.ts';
import { breakdownRow, caseA, caseB, caseC, caseD, caseE, caseF, finding, LINKS, report, reportComment, SHA } from './reports.ts';

const everywhere = (): boolean => true;

function titleOf(view: CommentView): string {
  return renderCheck({ comment: view, annotatable: everywhere }).title.replaceAll('\u00a0', ' ');
}

function withGate(view: ReportComment, outcome: 'pass' | 'fail' | 'neutral', because: string[] = []): ReportComment {
  return { ...view, report: { ...view.report, gate: { outcome, because } } };
}

function bare(lang: Lang): Pick<CommentView, 'lang' | 'appSlug' | 'pr' | 'sha' | 'links'> {
  return { lang, appSlug: 'npu-advisor', pr: 42, sha: SHA, links: LINKS };
}

describe('the check run', () => {
  it.each([
    ['en', caseA('en'), '3 causes, about 132 of 812 ms per step', 'neutral'],
    ['zh', caseA('zh'), '3 个原因，每迭代约 132 ms（共 812 ms）', 'neutral'],
    ['en', caseB('en'), 'Gate failed: +70.5 ms per step (+9.5 %)', 'failure'],
    ['zh', caseB('zh'), '门禁不通过：每迭代 +70.5 ms（+9.5%）', 'failure'],
    ['en', caseC('en'), 'Nothing to change, 741 ms per step', 'success'],
    ['zh', caseC('zh'), '无需修改，每迭代 741 ms', 'success'],
    ['en', caseD('en'), 'Incomplete profile: 6 of 8 ranks, 1 cause', 'neutral'],
    ['zh', caseD('zh'), 'profile 不完整：6/8 张卡，1 个原因', 'neutral'],
    ['en', caseF('en'), '1 open cause, 2 acknowledged', 'success'],
    ['zh', caseF('zh'), '1 个原因待处理，2 个已确认', 'success'],
    ['en', caseE('en'), 'No profile arrived', 'neutral'],
    ['zh', caseE('zh'), '没有收到 profile', 'neutral'],
    ['en', withGate(caseA('en'), 'fail'), 'Gate failed: 3 causes, about 132 of 812 ms per step', 'failure'],
    ['zh', withGate(caseA('zh'), 'fail'), '门禁不通过：3 个原因，每迭代约 132 ms（共 812 ms）', 'failure'],
    ['en', { ...bare('en'), state: 'running', phase: 'waiting', workflow: null } as const, 'Waiting for profile of 3f2a91c', null],
    ['zh', { ...bare('zh'), state: 'running', phase: 'waiting', workflow: null } as const, '等待 3f2a91c 的 profile', null],
    [
      'en',
      { ...bare('en'), state: 'error', reason: 'the archive is damaged.', hint: null, correlationId: null } as const,
      'Could not analyse: the archive is damaged',
      'neutral',
    ],
    [
      'en',
      { ...bare('en'), state: 'config-invalid', file: 'x.yml', problems: [] } as const,
      'Configuration of the base branch is invalid',
      'action_required',
    ],
    ['zh', { ...bare('zh'), state: 'config-invalid', file: 'x.yml', problems: [] } as const, '基线分支的配置无效', 'action_required'],
  ] as const)('%s: a title and a conclusion for every case: $2', (_, view, title, conclusion) => {
    const check = renderCheck({ comment: view, annotatable: everywhere });
    expect(check.title.replaceAll('\u00a0', ' ')).toBe(title);
    expect(check.conclusion).toBe(conclusion);
    expect(check.status).toBe(conclusion === null ? 'in_progress' : 'completed');
    expect(check.summary).not.toContain('<!--');
    expect(check.summary).toMatch(/^### /);
  });

  it.each(['neutral', 'failure', 'skipped'] as const)('concludes a missing profile as the repository says: %s', (onMissing) => {
    expect(renderCheck({ comment: { ...caseE('en'), onMissing }, annotatable: everywhere }).conclusion).toBe(onMissing);
  });

  it('keeps titles within 70 characters whatever they hold', () => {
    const view: CommentView = { ...bare('en'), state: 'error', reason: 'x'.repeat(300), hint: null, correlationId: null };
    expect([...titleOf(view)]).toHaveLength(70);
  });

  it.each(LANGS)('annotates the lines of wireframe (a) at the levels it names (%s)', (lang) => {
    const { annotations } = renderCheck({ comment: caseA(lang), annotatable: everywhere });
    expect(annotations.map(({ path, start_line, end_line, annotation_level }) => [path, start_line, end_line, annotation_level])).toEqual([
      ['train.py', 88, 88, 'warning'],
      ['train.py', 61, 61, 'notice'],
    ]);
    const [first] = annotations;
    expect(first!.title).toBe(
      lang === 'en'
        ? 'Data loader starves all 8 ranks, ≈\u00a094\u00a0ms per step'
        : '数据加载跟不上，8 张卡都在等数据，每迭代约 94\u00a0ms',
    );
    expect(first!.raw_details.split('\n')).toHaveLength(2);
    expect(first!.title + first!.message).not.toContain('`');
  });

  it('annotates a bound as a notice', () => {
    expect(
      renderCheck({ comment: caseD('en'), annotatable: everywhere }).annotations.map(({ annotation_level }) => annotation_level),
    ).toEqual(['notice']);
  });

  it('of a regression blames the causes that are new or grew, and no other', () => {
    const b = caseB('en');
    const levels = (view: ReportComment): string[] =>
      renderCheck({ comment: view, annotatable: everywhere }).annotations.map(({ annotation_level }) => annotation_level);
    expect(levels(b)).toEqual(['failure']);
    const old = { ...b, report: { ...b.report, comparison: { ...b.report.comparison!, findings: [] } } };
    expect(levels(old)).toEqual(['warning']);
  });

  it('fails only the line that made the gate fail', () => {
    const because = ['Data loader starves all 8 ranks: high, ≈ 94\u00a0ms per step; the limit is below high'];
    const { annotations } = renderCheck({ comment: withGate(caseA('en'), 'fail', because), annotatable: everywhere });
    expect(annotations.map(({ annotation_level }) => annotation_level)).toEqual(['failure', 'notice']);
  });

  it('annotates only lines that exist, and falls back to the next place', () => {
    const at = (line: number) => ({ file: 'train.py', line, symbol: null, provenBy: 'call-stack' as const });
    const view = reportComment(
      report({ findings: [finding({ locations: [at(900), at(12)] }), finding({ id: 'x', locations: [at(901)] })] }),
    );
    const { annotations } = renderCheck({ comment: view, annotatable: (path, line) => path === 'train.py' && line < 100 });
    expect(annotations.map(({ start_line }) => start_line)).toEqual([12]);
    const unchecked = reportComment(report({ findings: [finding({ locations: [{ ...at(12), provenBy: 'profile' }] })] }));
    expect(renderCheck({ comment: unchecked, annotatable: everywhere }).annotations).toEqual([]);
  });

  it('points a broken configuration to its line', () => {
    const problems = [
      { line: 4, message: 'unknown key `gates`' },
      { line: null, message: 'too long' },
    ];
    const view: CommentView = { ...bare('en'), state: 'config-invalid', file: '.github/npu-advisor.yml', problems };
    const { annotations } = renderCheck({ comment: view, annotatable: everywhere });
    expect(annotations).toEqual([
      expect.objectContaining({
        path: '.github/npu-advisor.yml',
        start_line: 4,
        annotation_level: 'failure',
        message: 'unknown key gates',
      }),
    ]);
  });

  it.each(LANGS)('carries what the comment leaves out (%s)', async (lang) => {
    await expect(renderCheck({ comment: caseA(lang), annotatable: everywhere }).text).toMatchFileSnapshot(
      `golden/check-text.${lang}.md.golden`,
    );
  });

  it('stays within its budgets with 200 findings and keeps the checks', () => {
    const evidence = Array.from({ length: 20 }, (_, i) => ({
      text: `row ${i} of \`${'Mul'.repeat(30)}\``,
      source: `rank0/kernel_details.csv`,
    }));
    const many = Array.from({ length: 200 }, (_, i) => finding({ id: `f${i}`, title: `cause ${i} 数据😀`, evidence }));
    const view = reportComment(
      report({ findings: many, breakdown: Array.from({ length: 1024 }, (_, rank) => breakdownRow(rank, 50, [500 + rank / 10, 100, 100])) }),
    );
    const check = renderCheck({ comment: view, annotatable: everywhere });
    expect(check.summary.length).toBeLessThanOrEqual(60_000);
    expect(check.text.length).toBeLessThanOrEqual(60_000);
    expect(check.text.length).toBeGreaterThan(40_000);
    expect(check.text.isWellFormed()).toBe(true);
    expect(check.text).toContain('Cut for length here: causes');
    expect(check.text).toContain('### Checks: ');
    expect(check.text).toContain('64 of 1,024 rows');
    expect(check.annotations).toHaveLength(200);
  });
});

describe('one number, one string', () => {
  it.each(LANGS)('is kept in comment, check, annotation, Markdown and terminal (%s)', (lang) => {
    const view = caseA(lang);
    const same = (text: string): string => text.replaceAll('\u00a0', ' ').replaceAll('&#8288;', '').replaceAll('**', '');
    const check = renderCheck({ comment: view, annotatable: everywhere });
    const outputs = [
      renderComment(view),
      check.text,
      renderMarkdown(view.report),
      renderText(view.report, { color: false, width: 100 }),
    ].map(same);
    const savings =
      lang === 'en' ? ['≈ 94 ms (71–118)', '≈ 38 ms (31–52)', 'up to 19 ms'] : ['约 94 ms（71～118）', '约 38 ms（31～52）', '最多 19 ms'];
    for (const output of outputs) for (const saving of savings) expect(output).toContain(saving);
    const headings = [renderComment(view), renderMarkdown(view.report), renderText(view.report, { color: false, width: 100 })].map(same);
    const sentence =
      lang === 'en' ? '3 causes cost about 132 ms of an 812 ms step (16 %)' : '3 个原因让每个迭代（812 ms）多花约 132 ms（16%）';
    for (const output of headings) expect(output).toContain(sentence);
  });

  it('numbers the causes alike everywhere', () => {
    const findings: Finding[] = [
      finding({
        id: 'low',
        title: 'small',
        severity: 'info',
        saving: { basis: 'modelled', perStepMs: { floor: 1, likely: 2, ceiling: 3 }, shareOfStep: 0.002, method: 'm' },
      }),
      finding({ id: 'big', title: 'large', severity: 'critical' }),
    ];
    const of = report({ findings, totals: { claimedMsPerStep: { likely: 96, ceiling: 121 }, unexplainedIdleMs: null } });
    expect(renderComment(reportComment(of))).toMatch(/\| 1 \| \*\*Critical\*\* · large/);
    expect(renderCheck({ comment: reportComment(of), annotatable: everywhere }).text).toMatch(/^### 1\. Critical · large/);
    expect(renderText(of, { color: false, width: 100 })).toMatch(/ 1 {2}Critical +large[\s\S]* 2 {2}Info +small/);
  });
});

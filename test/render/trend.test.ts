/* History in words: the commit compared with, and the course of the figures. */
import { describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import type { Report } from '../../src/model/report.ts';
import { renderCheck } from '../../src/render/check.ts';
import { renderComment } from '../../src/render/comment.ts';
import { baseLine, lacksBaseline, sparkline, trendLine, trendRows } from '../../src/render/trend.ts';
import { profileMetrics } from '../../src/report/profile-metrics.ts';
import { gfm } from './page.ts';
import { caseB, caseC, comparison } from './reports.ts';

const HOUR = 3600 * 1000;
const commit = {
  sha: '741abc0'.padEnd(40, '0'),
  branch: 'main',
  baseRef: 'main',
  mergeBase: '741abc0'.padEnd(40, '0'),
  isFallback: false,
  commitsBefore: 0,
  ageMs: 50 * HOUR,
};

function point(stepTimeMs: number | null, i: number, over: object = {}) {
  return { sha: `${i}`.padEnd(40, 'a'), at: i, metrics: { stepTimeMs, freeShare: 0.1, exposedMs: null, top: [], ...over } };
}

function withTrend(report: Report, steps: (number | null)[], now: object = {}): Report {
  const trend = { branch: 'main', points: steps.map((step, i) => point(step, i)), now: point(812.4, 0, now).metrics };
  return { ...report, views: { ...report.views, trend } };
}

describe('a sparkline', () => {
  it.each([
    ['falls and rises', [10, 20, 40, 80], '▁▂▄█'],
    ['draws noise flat', [740, 742, 741, 745], '▁▁▁▁'],
    ['shows what stands out', [740, 742, 741, 812], '▁▁▁█'],
    ['leaves out what is not known', [1, null, Number.NaN, 9], '▁··█'],
    ['of equal values', [5, 5], '▁▁'],
    ['of zeros', [0, 0, 0], '▁▁▁'],
    ['of nothing', [null], ''],
  ])('%s', (_, values, cells) => {
    expect(sparkline(values)).toBe(cells);
  });

  it('shows the newest when there are many', () => {
    expect(sparkline([...Array(40).fill(1), 9])).toBe(`${'▁'.repeat(19)}█`);
  });
});

describe('the course of a job', () => {
  it('has the figures and their unit beside every picture, in both languages', () => {
    for (const lang of LANGS) {
      const line = trendLine(withTrend(caseC(lang).report, [741.2, 738, null, 752, 744]))!;
      expect(line).toContain('`main`');
      for (const figure of ['743', '738', '752', '812']) expect(line).toMatch(new RegExp(`${figure}\u00a0ms`));
      expect(line).toMatch(/`[▁-█·]{6}`|[▁-█·]{6}/);
    }
  });

  it('is not told from fewer than three profiles, or without the figure', () => {
    const { report } = caseC('en');
    expect(trendLine(report)).toBeNull();
    expect(trendLine(withTrend(report, [741, 742]))).toBeNull();
    expect(trendLine(withTrend(report, [741, null, null, 742]))).toBeNull();
    expect(trendLine(withTrend(report, [741, 741, 741], { stepTimeMs: null }))).toBeNull();
    expect(trendLine({ ...report, views: { trend: { branch: 3 } } })).toBeNull();
  });

  it('has a row for each quantity, of a cause that was not there before from 0', () => {
    const top = [{ rule: 'dataloader-stall', savingMs: 64 }];
    const rows = trendRows(withTrend(caseC('en').report, [741, 742, 743], { top }));
    expect(rows.map(({ what }) => what)).toEqual(['Step time', 'Idle share', 'Saving of `dataloader-stall`']);
    expect(rows[2]).toEqual({ what: 'Saving of `dataloader-stall`', before: '0\u00a0ms', now: '64.0\u00a0ms', course: '▁▁▁█' });
  });

  it('stands in comment and check', () => {
    for (const lang of LANGS) {
      const c = caseC(lang);
      const view = { ...c, report: withTrend(c.report, [741, 742, 743]) };
      expect(renderComment(view)).toMatch(/`▁▁▁█`/);
      const { text } = renderCheck({ comment: view, annotatable: () => false });
      expect(text).toContain(
        lang === 'en' ? '| Step time | 742\u00a0ms (741\u00a0ms … 743\u00a0ms) | 812\u00a0ms | `▁▁▁█` |' : '| 迭代耗时 |',
      );
    }
  });

  it('keeps a hostile branch name in code', () => {
    const c = caseC('en');
    const branch = '`x`|<img src=x>[a](http://evil.example) @team';
    const report = withTrend(c.report, [741, 742, 743]);
    const of = comparison('en');
    const baseline = { ...of.baseline, commit: { ...commit, branch, baseRef: branch, isFallback: true, commitsBefore: 2 } };
    const view = {
      ...c,
      report: { ...report, comparison: { ...of, baseline }, views: { trend: { ...(report.views.trend as object), branch } } },
    };
    for (const markdown of [renderComment(view), renderCheck({ comment: view, annotatable: () => false }).text]) {
      const html = gfm.render(markdown);
      expect(html).toContain('team');
      expect(html).not.toMatch(/<img|href="http:\/\/evil|<\/code>[^<]*@team/);
    }
  });

  it('is made of medians over ranks and used steps', () => {
    const { report } = caseB('en');
    const row = { rank: 0, step: 1, stepMs: 100, freeMs: 20, exposedCommunicationMs: 10 };
    const breakdown = [
      row,
      { ...row, rank: 1, freeMs: 30, exposedCommunicationMs: 0 },
      { ...row, rank: 2, freeMs: 25, exposedCommunicationMs: null },
      { ...row, step: 99, freeMs: 90 },
    ] as Report['breakdown'];
    const metrics = profileMetrics({ ...report, breakdown, job: { ...report.job, steps: [1] } });
    expect(metrics).toMatchObject({ stepTimeMs: report.job.stepTimeMs, freeShare: 0.25, exposedMs: 5 });
    expect(metrics.top.every(({ rule }) => rule !== 'regression')).toBe(true);
    expect(profileMetrics({ ...report, breakdown: [] })).toMatchObject({ freeShare: null, exposedMs: null });
  });
});

describe('the commit compared with', () => {
  const said = (lang: 'en' | 'zh', over: object): string => {
    const b = caseB(lang);
    const of = comparison(lang);
    return baseLine({ ...b.report, comparison: { ...of, baseline: { ...of.baseline, commit: { ...commit, ...over } } } })!;
  };

  it.each([
    [{}, 'Base: `741abc0`, the merge base with `main`, profiled 2 days ago.'],
    [{ ageMs: 60_000 }, 'Base: `741abc0`, the merge base with `main`, profiled less than an hour ago.'],
    [
      { isFallback: true, commitsBefore: 3, mergeBase: '9c9c9c9ffff', ageMs: 26 * HOUR },
      'Base: `741abc0` on `main`, profiled 26 hours ago. Fallback: the merge base `9c9c9c9` has no profile, this is 3 commits before it.',
    ],
  ])('%j', (over, text) => {
    expect(said('en', over)).toBe(text);
    expect(said('zh', over)).toMatch(/^基线：.*`741abc0`.*采集时间：.*前。/);
  });

  it('stands in the comment whatever the verdict, and a missing one in the footer', () => {
    const c = caseC('en');
    const of = comparison('en', { verdict: 'noise', contributors: [], findings: [] });
    const report = { ...c.report, comparison: { ...of, baseline: { ...of.baseline, commit } } };
    expect(renderComment({ ...c, report })).toContain('Base: `741abc0`, the merge base with `main`');
    expect(baseLine(c.report)).toBeNull();
    const without = { ...c.report, comparison: null };
    expect(lacksBaseline(without)).toBe(false);
    const none = { baseline: { branch: 'main', reason: 'not-an-ancestor' } };
    expect(lacksBaseline({ ...without, views: none })).toBe(false);
    const { trend } = withTrend(without, [741]).views;
    expect(lacksBaseline({ ...without, views: { ...none, trend } })).toBe(true);
    expect(lacksBaseline({ ...report, views: { ...none, trend } })).toBe(false);
  });
});

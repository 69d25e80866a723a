import { describe, expect, it } from 'vitest';
import { renderJobsCheck, renderJobsComment } from '../../src/render/jobs.ts';
import type { CommentView, JobsComment } from '../../src/render/views.ts';
import { HOSTILE, reportOf } from './hostile.ts';
import { caseA, caseC, caseE, finding, LINKS, report, reportComment, SHA } from './reports.ts';

const BASE = { lang: 'en', appSlug: 'npu-advisor', pr: 7, sha: SHA, links: LINKS } as const;
const jobsOf = (jobs: Record<string, CommentView>, untouched: string[] = []): JobsComment => ({
  ...BASE,
  state: 'jobs',
  reportHash: 'abc',
  jobs: Object.entries(jobs).map(([name, view]) => ({ name, view })),
  untouched,
});
const everywhere = (): boolean => true;

describe('several jobs', () => {
  it('are told worst first, quiet ones folded, and are as bad as the worst', () => {
    const view = jobsOf({ quiet: caseC('en'), missing: { ...caseE('en'), onMissing: 'skipped' }, slow: caseA('en') }, ['idle']);
    const body = renderJobsComment(view);
    const order = [...body.matchAll(/^\| `(\w+)` \| (\S+)/gm)].map(([, name, shape]) => `${name} ${shape}`);
    expect(order).toEqual(['slow ⚠️', 'missing ❔', 'quiet ✅']);
    expect(body).toMatch(/### ⚠️ NPU Advisor: 2 of 3 training jobs want a look\n/);
    expect(body).toMatch(/#### `slow` · ⚠️ /);
    expect(body).toContain('<details><summary>quiet ✅</summary>');
    expect(body).toContain('Not changed by this pull request, so not looked at: `idle`.');
    // Only the first heading is ours; those of the jobs are below it.
    expect(body.match(/^### /gm)).toHaveLength(1);

    const check = renderJobsCheck(view, everywhere);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral' });
    expect(check.title).toMatch(/^slow: .*$/);
    expect(check.title.length).toBeLessThanOrEqual(70);
    expect(check.annotations.every(({ title }) => title.startsWith('slow: '))).toBe(true);
    const failed = { ...report(), gate: { outcome: 'fail' as const, because: ['x'] } };
    expect(renderJobsCheck(jobsOf({ a: caseC('en'), b: reportComment(failed) }), everywhere).conclusion).toBe('failure');
  });

  it('stay within what GitHub takes, however many there are and whatever they say', () => {
    const long = reportComment(
      report({
        findings: Array.from({ length: 60 }, (_, i) => finding({ id: `dataloader-stall-${i}`, title: `𝒻𝒾𝓃𝒹𝒾𝓃𝑔 ${'😀'.repeat(200)}` })),
      }),
    );
    const view = jobsOf(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`job-${i}`, long])));
    const body = renderJobsComment(view);
    const check = renderJobsCheck(view, everywhere);
    for (const text of [body, check.summary, check.text]) {
      expect(text.length).toBeLessThan(65_536);
      expect(text.isWellFormed()).toBe(true);
    }
    // Every job is there, and every fold that is opened is closed.
    expect(body.match(/^#### `job-\d+`/gm)).toHaveLength(20);
    for (const text of [body, check.text]) expect(text.match(/<details>/g)?.length).toBe(text.match(/<\/details>/g)?.length);
  });

  it('keep hostile names outside code inert', () => {
    for (const text of HOSTILE) {
      const view = jobsOf({ a: reportComment(reportOf(text)), b: reportComment(reportOf(text)) }, [text]);
      const body = renderJobsComment(view)
        .split('\n')
        .slice(2)
        .join('\n')
        .replace(/`+[^`\n]*`+/g, '');
      expect(body).not.toMatch(/<!--|<img|<script|(^|[\s|(])@[a-z]/i);
    }
  });
});

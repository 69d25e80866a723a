import { describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { renderReviewBody, renderReviewComment } from '../../src/render/review.ts';
import { gfm } from './page.ts';
import { finding, SHA, threeCauses } from './reports.ts';

const SUMMARY = 'https://github.com/acme/bert/pull/42#issuecomment-7';

describe('a review suggestion', () => {
  it.each(LANGS)('says cause and saving, offers the change, names its preconditions and its summary (%s)', async (lang) => {
    const [first] = threeCauses(lang);
    const edit = first!.recommendations[0]!.edits[0]!;
    await expect(renderReviewComment(first!, edit, lang, { number: 1, url: SUMMARY })).toMatchFileSnapshot(
      `golden/review.${lang}.md.golden`,
    );
  });

  it('has a fence longer than any run of backticks in the code', () => {
    const after = 'doc = """\n````\nx\n````\n"""';
    const body = renderReviewComment(finding(), { file: 'a.py', startLine: 1, endLine: 1, before: 'x', after, kind: 'suggestion' }, 'en');
    const [fence] = gfm.parse(body, {}).filter(({ type }) => type === 'fence');
    expect(fence!.info).toBe('suggestion');
    expect(fence!.content).toBe(`${after}\n`);
    expect(body).toContain('`````suggestion');
  });

  it('keeps the code to the character', () => {
    const after = "\tx = '\u00a0 é ￥'  \n\n    return `y`";
    const body = renderReviewComment(finding(), { file: 'a.py', startLine: 1, endLine: 1, before: 'x', after, kind: 'suggestion' }, 'en');
    expect(body).toContain(`\`\`\`suggestion\n${after}\n\`\`\``);
  });

  it('deletes lines with an empty suggestion', () => {
    const body = renderReviewComment(
      finding(),
      { file: 'a.py', startLine: 1, endLine: 2, before: 'x\ny', after: '', kind: 'suggestion' },
      'en',
    );
    expect(body).toContain('```suggestion\n```');
  });

  it.each([
    ['an edit that is not provably safe', { after: 'safe()', kind: 'comment-only' as const }],
    ['a line another bot would obey', { after: '"""\n/merge\n"""', kind: 'suggestion' as const }],
    ['text that reads differently than it runs', { after: 'x = "\u202Eabc"', kind: 'suggestion' as const }],
  ])('shows %s as a diff without a button', (_, { after, kind }) => {
    const body = renderReviewComment(finding(), { file: 'a.py', startLine: 1, endLine: 1, before: 'old()', after, kind }, 'en');
    expect(body).not.toContain('```suggestion');
    expect(body).toContain('```diff\n-old()\n+');
    expect(body).not.toMatch(/^\/merge/m);
  });

  it.each(LANGS)('comes under one body (%s)', (lang) => {
    expect(renderReviewBody(1, SHA, lang, SUMMARY)).toContain(`](${SUMMARY})`);
    expect(renderReviewBody(2, SHA, lang)).toContain('`3f2a91c`');
  });
});

import { describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { renderCheck } from '../../src/render/check.ts';
import { renderComment } from '../../src/render/comment.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderReviewBody, renderReviewComment } from '../../src/render/review.ts';
import { renderText } from '../../src/render/text.ts';
import type { CommentView, NoProfileReason } from '../../src/render/views.ts';
import { HOSTILE, reportOf } from './hostile.ts';
import { gfm } from './page.ts';
import { caseE, LINKS, reportComment, SHA } from './reports.ts';

type Token = ReturnType<typeof gfm.parse>[number];

function flat(tokens: readonly Token[]): Token[] {
  return tokens.flatMap((token) => [token, ...flat(token.children ?? [])]);
}

const OUR_HTML = /^(<!-- npu-advisor:(v1|state) [^<>\n]*-->\n?)+$|^<details><summary>[^<]*<\/summary>\n?$|^<\/details>\n?$|^<\/?sub>$/;
const OUR_LINKS = /^https:\/\/(github\.com\/acme\/bert\/|pytorch\.org\/)/;

/** What GitHub would do to the text, found in the parsed Markdown. */
function findTrouble(markdown: string): string[] {
  const trouble: string[] = [];
  const tokens = flat(gfm.parse(markdown, {}));
  for (const token of tokens) {
    if ((token.type === 'html_block' || token.type === 'html_inline') && !OUR_HTML.test(token.content))
      trouble.push(`html ${token.content.slice(0, 80)}`);
    if (token.type === 'link_open' && !OUR_LINKS.test(String(token.attrGet('href')))) trouble.push(`link ${token.attrGet('href')}`);
    if (token.type === 'image') trouble.push('image');
    if (token.type === 'text') {
      if (/@[\w-]/.test(token.content)) trouble.push(`mention ${token.content.slice(0, 80)}`);
      if (/#\d|\bGH-\d/i.test(token.content)) trouble.push(`reference ${token.content.slice(0, 80)}`);
      if (/\b[0-9a-f]{7,40}\b/.test(token.content)) trouble.push(`commit ${token.content.slice(0, 80)}`);
      if (/:\/\/|\bwww\./i.test(token.content)) trouble.push(`address ${token.content.slice(0, 80)}`);
    }
  }
  const lines = markdown.replace(/^(`{3,})[^\n]*\n[\s\S]*?^\1$/gm, '').split('\n');
  for (const [i, line] of lines.entries()) {
    if (/^\s*\/\w/.test(line)) trouble.push(`command ${line}`);
    if (line.includes('<!--') && !line.includes('`') && !(i < 2 && line.startsWith('<!-- npu-advisor:'))) trouble.push(`comment ${line}`);
  }
  if (/[\u0000\u001b\u202a-\u202e\u2066-\u2069]/.test(markdown)) trouble.push('control character');
  if (!markdown.isWellFormed()) trouble.push('split surrogate');
  return trouble;
}

/** Blocks and table cells: foreign text may fill them but never add or remove one. */
function skeleton(markdown: string): string {
  return gfm
    .parse(markdown, {})
    .map(({ type }) => type)
    .join(' ');
}

function viewOf(text: string): CommentView {
  return reportComment(reportOf(text), {
    suggestions: { [text]: 'https://github.com/acme/bert/pull/42#discussion_r1' },
    previous: [{ id: 'gone', title: text, saving: { likely: 3, ceiling: 4 } }],
    appSlug: `npu-advisor${text}`,
    reportHash: text,
  });
}

const BENIGN = 'plain words';

describe.each(HOSTILE.map((text, i) => ({ i, text, shown: JSON.stringify(text.slice(0, 40)) })))('foreign text $i $shown', ({ text }) => {
  it('changes nothing but the words of the comment', () => {
    const markdown = renderComment(viewOf(text));
    expect(findTrouble(markdown)).toEqual([]);
    if (text.trim() !== '') expect(skeleton(markdown)).toBe(skeleton(renderComment(viewOf(BENIGN))));
    expect(markdown.length).toBeLessThan(20_000);
  });

  it('is inert in the check run', () => {
    const check = renderCheck({ comment: viewOf(text), annotatable: () => true });
    expect(findTrouble(check.summary)).toEqual([]);
    expect(findTrouble(check.text).filter((found) => !found.startsWith('command'))).toEqual([]);
    expect([...check.title].length).toBeLessThanOrEqual(70);
    for (const { title, message, raw_details } of check.annotations) {
      expect(title.length).toBeLessThanOrEqual(255);
      expect(`${title}${message}`).not.toMatch(/[\u0000-\u001f\u202a-\u202e]/);
      expect(raw_details).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202a-\u202e]/);
      expect(message).not.toBe('');
    }
  });

  it('is inert in the full Markdown report', () => {
    expect(findTrouble(renderMarkdown(reportOf(text))).filter((found) => !found.startsWith('command'))).toEqual([]);
  });

  it('cannot steer the terminal', () => {
    const shown = renderText(reportOf(text), { color: false, width: 100 });
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    expect(shown.isWellFormed()).toBe(true);
  });

  it.each(LANGS)('is inert in a comment without report (%s)', (lang) => {
    const reasons: NoProfileReason[] = [
      { kind: 'no-match', uploaded: [text, text] },
      { kind: 'expired', artifact: text, expiredAt: text },
      { kind: 'corrupt', artifact: text, detail: text },
      { kind: 'too-large', artifact: text, bytes: 5e9, limitBytes: 2e9 },
      { kind: 'no-profile-inside', artifact: text },
      { kind: 'no-profile-inside', artifact: text, detail: text },
    ];
    const base = { lang, appSlug: text, pr: 1, sha: SHA, links: LINKS };
    const views: CommentView[] = [
      ...reasons.map((reason) => ({
        ...caseE(lang),
        reason,
        workflow: { name: text, url: text.startsWith('https://') ? null : text },
        patterns: [text],
      })),
      { ...base, state: 'error', reason: text, hint: text, correlationId: text },
      { ...base, state: 'config-invalid', file: text, problems: [{ line: 3, message: text }] },
    ];
    for (const view of views) {
      expect(findTrouble(renderComment(view))).toEqual([]);
      expect([...renderCheck({ comment: view, annotatable: () => true }).title].length).toBeLessThanOrEqual(70);
    }
  });

  it('never becomes another bot’s command in a review', () => {
    const [hostile] = reportOf(text).findings;
    const edit = hostile!.recommendations[0]!.edits[0]!;
    const body = renderReviewComment(hostile!, { ...edit, before: 'a', after: 'b' }, 'en', {
      number: 1,
      url: `https://github.com/acme/bert/${text}`,
    });
    expect(findTrouble(body)).toEqual([]);
    expect(findTrouble(renderReviewBody(2, text, 'zh', 'https://github.com/acme/bert/pull/1'))).toEqual([]);
    const suggested = renderReviewComment(hostile!, edit, 'en');
    expect(gfm.parse(suggested, {}).filter(({ type }) => type === 'fence')).toHaveLength(1);
    if (/^\/(merge|lgtm)/m.test(text)) expect(suggested).not.toContain('suggestion\n');
  });
});

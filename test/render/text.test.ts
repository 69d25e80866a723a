import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { diffLines } from '../../src/render/details.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { alignColumns, padEnd, textWidth, wrap } from '../../src/render/terminal-columns.ts';
import { renderText } from '../../src/render/text.ts';
import { gfm } from './page.ts';
import { breakdownRow, caseA, caseB, caseC, caseD, report, threeCauses } from './reports.ts';

describe('the terminal report', () => {
  it.each(LANGS)('says what the golden says (%s)', async (lang) => {
    await expect(renderText(caseA(lang).report, { color: false, width: 100 })).toMatchFileSnapshot(`golden/text-a.${lang}.txt`);
    await expect(renderText(caseB(lang).report, { color: false, width: 100 })).toMatchFileSnapshot(`golden/text-b.${lang}.txt`);
    await expect(renderText(caseD(lang).report, { color: false, width: 80 })).toMatchFileSnapshot(`golden/text-d.${lang}.txt`);
  });

  it.each(LANGS)('begins with the verdict (%s)', (lang) => {
    const [first] = renderText(caseC(lang).report, { color: false, width: 100 }).split('\n');
    expect(first).toBe(lang === 'en' ? 'Gate passed, nothing to change' : '门禁通过，无需修改');
  });

  it.each([40, 60, 80, 100, 120])('keeps prose within %d columns in both languages', (width) => {
    for (const lang of LANGS) {
      for (const line of renderText(
        { ...caseA(lang).report, findings: threeCauses(lang).map((f) => ({ ...f, recommendations: [] })), breakdown: [] },
        { color: false, width },
      ).split('\n')) {
        expect(textWidth(line), line).toBeLessThanOrEqual(width);
      }
    }
  });

  it('colours without changing a word', () => {
    const plain = renderText(caseA('en').report, { color: false, width: 100 });
    const coloured = renderText(caseA('en').report, { color: true, width: 100 });
    expect(coloured).toContain('\u001b[');
    expect(coloured.replace(/\u001b\[\d*m/g, '').replace(/\s+/g, '')).toBe(plain.replaceAll('`', '').replace(/\s+/g, ''));
  });

  it('shows the slowest ranks of a large job and counts the rest', () => {
    const rows = Array.from({ length: 1024 }, (_, rank) => breakdownRow(rank, 50, [500 + rank / 10, 100, 100]));
    const text = renderText(report({ breakdown: rows }), { color: false, width: 100 });
    expect(text).toContain(' 1023    50');
    expect(text).toContain('1,008 more rows with `--format json`.');
  });
});

describe('columns', () => {
  it('give a Han character two cells', () => {
    expect(textWidth('迭代 ms')).toBe(7);
    expect(textWidth('ｆ，')).toBe(4);
    expect(textWidth('e\u0301')).toBe(1);
    expect(textWidth('\u001b[31mred\u001b[0m')).toBe(3);
    expect(padEnd('卡', 4)).toBe('卡  ');
    expect(
      alignColumns(
        [
          ['卡', '1'],
          ['rank', '10'],
        ],
        new Set([1]),
      ),
    ).toEqual(['卡     1', 'rank  10']);
  });

  it('wrap without losing or adding a character', () => {
    const piece = fc.constantFrom('数', '据', '，', '。', 'word', 'longerword', ' ', '9\u00a0ms', '（', '）', 'x'.repeat(50), '😀');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), fc.integer({ min: 10, max: 60 }), (pieces, width) => {
        const text = pieces.join('');
        const lines = wrap(text, width);
        expect(lines.join('').replace(/ /g, '')).toBe(text.replace(/ /g, ''));
        // a punctuation mark may hang over the edge by its own width
        for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
      }),
    );
  });

  it('do not begin a line with closing punctuation', () => {
    expect(wrap('数据加载跟不上，卡都在等', 14)).toEqual(['数据加载跟不', '上，卡都在等']);
  });
});

describe('the full Markdown report', () => {
  it.each(LANGS)('says what the golden says (%s)', async (lang) => {
    await expect(renderMarkdown(caseA(lang).report)).toMatchFileSnapshot(`golden/report-a.${lang}.md.golden`);
    await expect(renderMarkdown(caseB(lang).report)).toMatchFileSnapshot(`golden/report-b.${lang}.md.golden`);
  });

  it('has the verdict as its only first-level heading', () => {
    const tokens = gfm.parse(renderMarkdown(caseA('en').report), {});
    expect(tokens.filter(({ type, tag }) => type === 'heading_open' && tag === 'h1')).toHaveLength(1);
    expect(tokens[0]).toMatchObject({ type: 'heading_open', tag: 'h1' });
  });
});

describe('a diff', () => {
  it.each([
    ['a\nb\nc', 'a\nB\nc', [' a', '-b', '+B', ' c']],
    ['', 'new', ['+new']],
    ['old', '', ['-old']],
    ['a', 'a\nb', [' a', '+b']],
    ['x\nx', 'x', [' x', '-x']],
  ])('of %j and %j keeps equal lines as context', (before, after, lines) => {
    expect(diffLines(before, after)).toEqual(lines);
  });
});

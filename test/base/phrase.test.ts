import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fill, formatBytes, formatMs, formatRanks, formatShare, quoteLiteral, say } from '../../src/base/phrase.ts';

const NBSP = '\u00a0';

describe('figures', () => {
  test('times switch to µs below 0.1 ms and to s from 10 s', () => {
    expect(formatMs(0)).toBe(`0.0${NBSP}ms`);
    expect(formatMs(0.0004)).toBe(`1${NBSP}µs`);
    expect(formatMs(0.05)).toBe(`50${NBSP}µs`);
    expect(formatMs(101.963)).toBe(`102.0${NBSP}ms`);
    expect(formatMs(12_345)).toBe(`12.3${NBSP}s`);
    expect(formatMs(-3.25)).toMatch(/^−3\.[23]/);
  });

  test('shares below ten percent keep a decimal', () => {
    expect(formatShare(0.7465, 'en')).toBe(`75${NBSP}%`);
    expect(formatShare(0.0136, 'zh')).toBe('1.4%');
    expect(formatShare(0, 'en')).toBe(`0${NBSP}%`);
  });

  test('sizes use decimal units', () => {
    expect(formatBytes(999)).toBe(`999${NBSP}B`);
    expect(formatBytes(25_000_000)).toBe(`25.0${NBSP}MB`);
  });

  test('runs of three ranks and more are drawn together', () => {
    expect(formatRanks([7, 0, 1, 2, 3], 'en')).toBe('0–3, 7');
    expect(formatRanks([7, 0, 1, 2, 3], 'zh')).toBe('0～3、7');
    expect(formatRanks([4, 5, 4], 'en')).toBe('4, 5');
    expect(formatRanks([], 'en')).toBe('');
  });

  test('an unknown rank is a question mark, never a number', () => {
    expect(formatRanks([-1], 'en')).toBe('?');
    expect(formatRanks([0, -1, -1], 'en')).toBe('0, ?');
  });

  test('at most twelve runs of ranks are listed', () => {
    const odd = Array.from({ length: 500 }, (_, i) => i * 2);
    expect(formatRanks(odd, 'en').split(', ')).toHaveLength(13);
  });
});

describe('templates', () => {
  const text = (template: string) => ({ en: template, zh: template });

  test('each kind of placeholder is written in its unit', () => {
    const params = { a: 3.3324, b: 0.75, c: 1_500, d: 12_345.6, e: [2, 3], f: 'x`y', g: 'plain', h: 23.8512 };
    expect(fill(text('{a:ms} {b:pct} {c:bytes} {d:int} {e:ranks} {f:code} {g:text} {h:num}'), params, 'en')).toBe(
      `3.3${NBSP}ms 75${NBSP}% 1.5${NBSP}kB 12,346 2, 3 \`xˋy\` plain 23.85`,
    );
  });

  test('a figure that is not known is a question mark, never NaN', () => {
    for (const value of [null, Number.NaN, Number.POSITIVE_INFINITY]) {
      for (const kind of ['ms', 'pct', 'int', 'bytes', 'num', 'ranks', 'code', 'text'])
        expect(fill(text(`{x:${kind}}`), { x: value }, 'en')).toBe('?');
    }
    expect(fill(text('{x:ms}'), {}, 'zh')).toBe('?');
  });

  test('a placeholder of unknown kind is a defect and throws', () => {
    expect(() => say({ text: text('{x:furlong}'), params: { x: 1 } }, 'en')).toThrow(/furlong/);
  });

  test('values are not templates: braces in them stay as they are', () => {
    expect(fill(text('{x:text}'), { x: '{y:ms}', y: 3 }, 'en')).toBe('{y:ms}');
  });
});

describe('foreign strings', () => {
  const hostile = [
    '](https://x.invalid) @everyone <img src=x> ignore previous instructions',
    'a`b``c',
    'line\nbreak\r\nand\u2028more\u0085',
    'bidi \u202e override \u2066 isolate \u200b zero \ufeff bom',
    '\u0000\u0007\u001b[31m',
    'lone \ud800 surrogate',
    'x'.repeat(1_000_000),
    '',
  ];

  test('a literal is one line between two backticks and holds no third one', () => {
    for (const value of hostile) {
      const quoted = quoteLiteral(value);
      expect(quoted.startsWith('`') && quoted.endsWith('`')).toBe(true);
      expect(quoted.slice(1, -1)).not.toMatch(/[`\r\n\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\u200b-\u200f\ufeff]/);
      expect([...quoted].length).toBeLessThanOrEqual(122);
      expect(quoted.isWellFormed()).toBe(true);
    }
  });

  test('any string at all becomes such a literal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (value) => {
        const inner = quoteLiteral(value, 40).slice(1, -1);
        expect(inner).not.toMatch(/[`\r\n\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/);
        expect([...inner].length).toBeLessThanOrEqual(40);
      }),
    );
  });

  test('ordinary names are not changed, Chinese ones included', () => {
    expect(quoteLiteral('aclnnAdd_AddAiCore_Add')).toBe('`aclnnAdd_AddAiCore_Add`');
    expect(quoteLiteral('优化器.step')).toBe('`优化器.step`');
  });
});

import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { REMEDIES } from '../../src/remedies/index.ts';
import { RULES } from '../../src/rules/index.ts';
import { findingOf, PARAMS, situations } from './situations.ts';

const FOLDER = new URL('../../src/remedies/', import.meta.url);

describe('registry', () => {
  test('every file of the folder is in it, sorted, under its own name', () => {
    const files = readdirSync(FOLDER, { withFileTypes: true })
      .filter((entry) => entry.isFile() && !['index.ts', 'allow-list.ts'].includes(entry.name))
      .map((entry) => entry.name.replace(/\.ts$/, ''))
      .sort();
    expect([...REMEDIES.keys()]).toEqual(files);
    for (const [id, remedy] of REMEDIES) expect(remedy.id).toBe(id);
  });

  test('every remedy that a rule names is there', () => {
    for (const rule of RULES) for (const id of rule.remedies) expect(REMEDIES.has(id), `${rule.id}: ${id}`).toBe(true);
  });

  test('every remedy has situations', () => {
    expect(Object.keys(PARAMS).sort()).toEqual([...REMEDIES.keys()]);
  });
});

/** report.md 4.2: plain, no address, no command beyond the imperative, no blame. */
const TONE_EN = /[!?](?!\])|\b(should|must|please|obviously|simply|just|we|our|your?|bad|guilty|wrong)\b/i;
const TONE_ZH = /[！？您你请]|应该|必须|内核|回归|回退|[\u4e00-\u9fff][,;:!?]|[\u4e00-\u9fff][A-Za-z0-9`]|[A-Za-z0-9`][\u4e00-\u9fff]/;

describe('texts', () => {
  const seen = new Map<string, string>();
  for (const { name, remedy, context } of situations()) {
    const advice = remedy.advise(findingOf(), context);
    if (advice === null) continue;
    for (const { en, zh } of [advice.title, advice.text, ...advice.preconditions]) {
      seen.set(`en ${en}`, name);
      seen.set(`zh ${zh}`, name);
    }
  }
  const texts = (lang: string) => [...seen.keys()].filter((key) => key.startsWith(`${lang} `)).map((key) => key.slice(3));

  test('English keeps the tone and British spelling', () => {
    for (const text of texts('en')) {
      const prose = text.replaceAll(/`[^`]*`/g, 'x');
      expect(TONE_EN.exec(prose.replace('Rank ?', 'Rank'))?.[0], text).toBeUndefined();
      expect(/\b(synchroniz|initializ|optimiz(?!er)|color|behavior)/i.exec(prose)?.[0], text).toBeUndefined();
    }
  });

  test('Chinese keeps the tone, spaces Han from Latin, and uses full-width punctuation', () => {
    for (const text of texts('zh'))
      expect(
        TONE_ZH.exec(text.replaceAll(/`[^`]*`/g, (literal) => literal.replaceAll(/[\u4e00-\u9fff]/g, 'x')))?.[0],
        text,
      ).toBeUndefined();
  });

  test('sentences are short: about 20 words, about 40 characters', () => {
    for (const text of texts('en')) {
      for (const sentence of text.replaceAll(/`[^`]*`/g, 'x').split(/(?<=[.:;])\s/))
        expect(sentence.split(/\s+/).length, sentence).toBeLessThanOrEqual(24);
    }
    for (const text of texts('zh')) {
      for (const sentence of text.replaceAll(/`[^`]*`|[A-Za-z0-9 .]+/g, '码').split(/[。；：]/))
        expect(sentence.length, sentence).toBeLessThanOrEqual(42);
    }
  });

  test('backticks come in pairs and no placeholder is left', () => {
    for (const key of seen.keys()) {
      expect(key.split('`').length % 2, key).toBe(1);
      expect(key, key).not.toMatch(/\{\w+:\w+\}|undefined|\bnull\b|NaN/);
    }
  });

  test('both languages end their sentences', () => {
    for (const { remedy, context } of situations()) {
      const advice = remedy.advise(findingOf(), context);
      for (const { en, zh } of advice === null ? [] : [advice.text, ...advice.preconditions]) {
        expect(en).toMatch(/\.$/);
        expect(zh).toMatch(/。$/);
      }
    }
  });

  test('references are https addresses without spaces', () => {
    for (const { remedy, context } of situations()) {
      for (const reference of remedy.advise(findingOf(), context)?.references ?? []) expect(reference).toMatch(/^https:\/\/[\x21-\x7e]+$/);
    }
  });
});

test('advice depends on nothing but its arguments', () => {
  for (const { remedy, context } of situations()) {
    expect(remedy.advise(findingOf(), context)).toEqual(remedy.advise(findingOf(), context));
  }
});

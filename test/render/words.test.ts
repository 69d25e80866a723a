import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { WORDS } from '../../src/render/words.ts';

const TEMPLATES = new URL('../../templates/', import.meta.url);
const SOURCES = new URL('../../src/render/', import.meta.url);

const ENTRIES = Object.entries(WORDS);

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{(\w+):(\w+)\}/g)].map(([whole]) => whole).sort();
}

/** Figures and literals as they will look, so that spacing around them can be checked. */
function filled(text: string): string {
  return text
    .replace(/\{\w+:code\}/g, '`x`')
    .replace('{saving:text}', '最多 9')
    .replace(/\{(part|range):text\}/g, '（9）')
    .replace('{detail:text}', '原因。')
    .replace(/\{\w+:\w+\}/g, '9');
}

describe('the words of the interface', () => {
  it.each(ENTRIES)('%s exists in both languages', (_, texts) => {
    for (const lang of LANGS) expect(texts[lang].trim(), lang).not.toBe('');
  });

  it.each(ENTRIES)('%s uses the same kinds of figures in both languages', (key, { en, zh }) => {
    // only English needs an article, and Chinese gives the sum where English gives "x of y"
    const own = (text: string): string[] => [...new Set(placeholders(text))].filter((name) => !/^\{(article|part|cost):/.test(name));
    if (!key.startsWith('config.what')) expect(own(zh)).toEqual(own(en));
  });

  it.each(ENTRIES)('%s has clean Chinese', (_, { zh }) => {
    expect(zh).not.toMatch(/内核|回归|您|你|！|!|？/);
    const text = filled(zh).replaceAll('*_ascend_pt', 'x');
    expect(text).not.toMatch(/[\u4e00-\u9fff][A-Za-z0-9`]/);
    expect(text).not.toMatch(/[A-Za-z0-9`][\u4e00-\u9fff]/);
    expect(text).not.toMatch(/ [，。；：（）「」、]|[，。；：（）「」、] /);
    expect(text.replace(/`[^`]*`/g, '')).not.toMatch(/[\u4e00-\u9fff][,;:()]|[,;:()][\u4e00-\u9fff]/);
  });

  it.each(ENTRIES)('%s has plain English', (key, { en }) => {
    expect(en).not.toMatch(/[!?]|\b(please|should|obviously)\b/i);
    if (key !== 'missing.consequence') expect(en).not.toMatch(/\bwe\b/i);
    expect(en).not.toMatch(/[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]/);
  });

  it.each(ENTRIES)('%s ties numbers to units', (_, texts) => {
    for (const lang of LANGS) expect(texts[lang].replace(/`[^`]*`/g, '')).not.toMatch(/(\d|\}) (ms|s|µs|MB|GB|%)(?!\w)/);
  });

  it.each(ENTRIES)('%s has its literals between pairs of backticks', (_, texts) => {
    for (const lang of LANGS) expect(texts[lang].split('`').length % 2).toBe(1);
  });

  it('has no word that nothing says', () => {
    const sources = [
      ...readdirSync(TEMPLATES).map((file) => readFileSync(new URL(file, TEMPLATES), 'utf8')),
      ...readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && file !== 'words.ts')
        .map((file) => readFileSync(new URL(file, SOURCES), 'utf8')),
    ].join('\n');
    const built = [...sources.matchAll(/`([a-z-]+(?:\.[a-z-]+)*\.)\$\{/g)].map((match) => match[1]!);
    const dead = Object.keys(WORDS).filter((key) => {
      const stem = key.replace(/(one|many|neutral|failure|skipped|rest|[a-z-]+)$/, '');
      return (
        !sources.includes(`'${key}'`) &&
        !sources.includes(`"${key}"`) &&
        !built.some((prefix) => key.startsWith(prefix) || stem.startsWith(prefix))
      );
    });
    expect(dead).toEqual([]);
  });
});

describe('templates', () => {
  const files = readdirSync(TEMPLATES).filter((file) => file.endsWith('.hbs'));

  it.each(files)('%s sends every value through a helper that makes it safe', (file) => {
    const text = readFileSync(new URL(file, TEMPLATES), 'utf8');
    expect(text).not.toContain('{{{');
    expect(text).not.toContain('{{&');
    const calls = [...text.matchAll(/\{\{([^}]*)\}\}/g)].map(([, inside]) => inside!.trim());
    for (const call of calls) {
      expect(call).toMatch(
        /^(#if [\w.]+|#each [\w.]+|\/if|\/each|else|> (missing|comparison|finding)|(md|cell|code|raw|html) [\w.]+|t "[\w.-]+"|section "[\w-]+")$/,
      );
    }
  });

  it.each(files)('%s uses words that exist', (file) => {
    const text = readFileSync(new URL(file, TEMPLATES), 'utf8');
    for (const [, key] of text.matchAll(/\{\{t "([^"]+)"\}\}/g)) expect(Object.keys(WORDS)).toContain(key);
    for (const [, name] of text.matchAll(/\{\{section "([^"]+)"\}\}/g)) {
      if (name !== 'heading' && name !== 'footer') expect(Object.keys(WORDS)).toContain(`section.${name}`);
    }
  });
});

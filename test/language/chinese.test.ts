import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { AdviseError, inOneLine } from '../../src/base/errors.ts';
import { HELP, langOf } from '../../src/cli/chinese.ts';
import { explainRule, listRules } from '../../src/cli/rules.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { COMMENTS, withComments } from '../../src/engine/code-comments.ts';
import { digestFromJson } from '../../src/model/facts-json.ts';
import type { Report } from '../../src/model/report.ts';
import { renderCheck } from '../../src/render/check.ts';
import { renderComment } from '../../src/render/comment.ts';
import { renderHtml } from '../../src/render/html/page.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderText } from '../../src/render/text.ts';
import { RULES } from '../../src/rules/index.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { openSource } from '../../src/sources/index.ts';
import { reportComment } from '../render/reports.ts';
import { DEFAULT_OPTIONS, withWrittenJob } from '../support/grid.ts';
import { englishIn, problemsOf, proseOf } from './lint.ts';
import { chineseDocuments, type Pair, readText, textsOfSource } from './texts.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Answers to people whose language is not known: they hold both. */
const BOTH = /^src\/app\/details\/(?:notices|serve-details)\.ts:/;

/** Only English needs an article, and Chinese gives a sum where English gives "x of y". */
const OWN = new Set(['article', 'part', 'cost']);

/** Placeholders as they are read: code is Latin, prose may be anything. */
function filled(text: string): string {
  return text.replace(/\{\w+:(\w+)\}/g, (_, kind: string) => (kind === 'code' ? '`x`' : kind === 'text' ? '◆' : '9'));
}

function parameters(text: string): string[] {
  const names = [...text.matchAll(/\{(\w+):\w+\}/g)].map(([, name]) => name!.replace(/Zh$/, ''));
  return [...new Set(names)].filter((name) => !OWN.has(name)).sort();
}

describe('the lint itself', () => {
  it.each([
    ['每步耗时', 'use 迭代'],
    ['下发跟不上！', 'use no exclamation'],
    ['卡5最晚到达', 'a space between'],
    ['未掩盖通信,占 10%', 'full-width punctuation'],
    ['占 10 %', '12% without a space'],
    ['原因： 等待', 'no space beside'],
    ['见 the data loader starves', 'English'],
  ])('finds what is wrong with %s', (text, problem) => {
    expect(problemsOf(text).join()).toContain(problem);
  });

  it.each([
    '在 `torch.npu.empty_cache()` 处，每迭代约 94 ms（71～118）',
    '`the data loader starves the cards` 是英文标题',
    '由 GitHub Enterprise Server 给出，占 12%',
  ])('leaves %s alone', (text) => {
    expect(problemsOf(text)).toEqual([]);
  });
});

describe('texts in the source', () => {
  const { chinese, pairs, oneLanguage, comments } = textsOfSource();

  it('keep to the word list, to full-width punctuation and to spaces between scripts', () => {
    expect(chinese.length).toBeGreaterThan(2000);
    const wrong = chinese
      .filter(({ at }) => !BOTH.test(at))
      .flatMap(({ at, text }) => problemsOf(filled(text)).map((problem) => `${at} ${problem}`));
    expect(wrong).toEqual([]);
  });

  it('say the same figures in both languages', () => {
    const differs = ({ en, zh }: Pair): boolean => parameters(en).join() !== parameters(zh).join();
    expect(pairs.length).toBeGreaterThan(1500);
    expect(pairs.filter(differs).map(({ at, en, zh }) => `${at} ${parameters(en)} | ${parameters(zh)}`)).toEqual([]);
  });

  it('comment the code of remedies in both', () => {
    expect(comments.length).toBeGreaterThan(40);
    const words = comments.filter(({ text }) => /[a-z]{2,} [a-z]{2,}/.test(text.replace(/[\w.]+\(.*?\)/g, '')));
    expect(words.filter(({ text }) => COMMENTS[text] === undefined).map(({ at, text }) => `${at} ${text}`)).toEqual([]);
    expect(Object.values(COMMENTS).flatMap((text) => englishIn(text) ?? [])).toEqual([]);
    expect(withComments('gc.freeze()  # before the training loop\n# x = 1', 'zh')).toBe('gc.freeze()  # 训练循环之前\n# x = 1');
  });

  it('tell an error in both', () => {
    expect(oneLanguage.map(({ at, text }) => `${at} ${text}`)).toEqual([]);
  });
});

describe('documents in Chinese', () => {
  it.each(chineseDocuments())('%s is clean', (path) => {
    expect(problemsOf(readText(path))).toEqual([]);
  });

  it.each(chineseDocuments().filter((path) => !path.startsWith('src/')))('%s leads to documents in Chinese, and to its twin', (path) => {
    const english = (file: string): string => file.replace('docs/zh/', 'docs/').replace(/\.zh\.md$/, '.md');
    const targets = [...readText(path).matchAll(/\]\((?!https?:)([^)#]+\.md)/g)].map(([, target]) =>
      normalize(join(dirname(path), target!)),
    );
    expect(targets).toContain(english(path));
    const others = targets.filter((target) => target !== english(path));
    const inChinese = (file: string): string =>
      file.startsWith('docs/rules/') ? file.replace('docs/', 'docs/zh/') : file.replace(/\.md$/, '.zh.md');
    expect(others.filter((target) => !/\.zh\.md$|^docs\/zh\//.test(target) && existsSync(ROOT + inChinese(target)))).toEqual([]);
    expect(readText(english(path))).toMatch(/\[中文\]/);
  });

  it.each(RULES.map(({ id }) => id))('the page of %s names what the English one names', (id) => {
    const names = (file: string): readonly string[] => readText(file).match(/`[^`\n]+`/g) ?? [];
    const chinese = names(`src/rules/${id}/doc.zh.md`);
    expect(names(`src/rules/${id}/doc.md`).filter((name) => !chinese.includes(name))).toEqual([]);
    expect(existsSync(`${ROOT}docs/zh/rules/${id}.md`)).toBe(true);
  });
});

describe('the command line', () => {
  it('has a Chinese sentence for each of its help', () => {
    const main = readText('src/cli/main.ts');
    const said = [
      ...main.matchAll(/(?:description\(\s*|option\('[^']+',\s*|requiredOption\('[^']+',\s*|\['--env <file>', )'((?:[^'\\]|\\.)+)'/g),
    ];
    const english = said.map(([, text]) => text!);
    expect(english.length).toBeGreaterThan(30);
    expect(english.filter((text) => HELP[text] === undefined)).toEqual([]);
    expect(Object.values(HELP).flatMap(problemsOf)).toEqual([]);
  });

  it('speaks the language of the terminal unless it is told another one', () => {
    expect(langOf([], { LANG: 'zh_CN.UTF-8' })).toBe('zh');
    expect(langOf([], { LC_ALL: 'C', LANG: 'zh_CN.UTF-8' })).toBe('en');
    expect(langOf([], { LC_ALL: '', LC_MESSAGES: 'zh_TW', LANG: 'en_US.UTF-8' })).toBe('zh');
    expect(langOf(['analyze', '--lang', 'en'], { LANG: 'zh_CN.UTF-8' })).toBe('en');
    expect(langOf(['rules', '--lang=zh'], {})).toBe('zh');
    expect(langOf([], {})).toBe('en');
  });

  it('lists and explains the checks', async () => {
    expect(englishIn(listRules('text', 'zh'))).toBeNull();
    for (const { id } of RULES) expect(problemsOf(await explainRule(id, 'zh'))).toEqual([]);
  });

  it('says what is wrong with what it was given', async () => {
    const refused = async (work: () => unknown): Promise<string> => {
      try {
        await work();
      } catch (error) {
        if (error instanceof AdviseError) return inOneLine(error, 'zh');
        throw error;
      }
      throw new Error('nothing was refused');
    };
    const texts = [
      await refused(() => openSource('/nowhere')),
      await refused(() => digestFromJson('{')),
      await refused(() => digestFromJson('{"schema":"other"}')),
      await refused(() => listRules('xml', 'zh')),
      await refused(() => explainRule('gc-pauze', 'zh')),
    ];
    for (const text of texts) expect(problemsOf(text)).toEqual([]);
  });
});

/** What a reader sees of a page: no scripts, no markup, nothing that is marked as English or as code. */
function seen(html: string): string {
  return html
    .replace(/<(script|style|template)\b[\s\S]*?<\/\1>/g, '')
    .replace(/<([a-z]+)\b[^>]*\blang="en"[^>]*>[^<]*<\/\1>/g, '')
    .replace(/<(code|pre)\b[\s\S]*?<\/\1>/g, '`x`')
    .replace(/<[^>]+>/g, '\n')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll('&nbsp;', ' ');
}

describe('a job with many faults, told in Chinese', () => {
  let report: Report;

  beforeAll(async () => {
    const train = 'import torch\nimport torch_npu\n\nx = torch_npu.npu_matmul(a, b)\nloader = DataLoader(data)\n';
    report = await withWrittenJob(
      {
        ranks: 4,
        steps: 4,
        faults: [
          { kind: 'slow-loader' },
          { kind: 'small-ops' },
          { kind: 'layout' },
          { kind: 'recompile' },
          { kind: 'buffer-broadcast' },
          { kind: 'slow-rank', rank: 2 },
        ],
      },
      async (dir) => {
        const source = await openSource(dir);
        try {
          return await analyse({
            sources: [source],
            options: { ...DEFAULT_OPTIONS, lang: 'zh', timeline: true },
            source: sourceTreeFrom({ files: [['train.py', train]] }),
          });
        } finally {
          await source.close();
        }
      },
    );
  }, 60_000);

  it('has something to tell', () => {
    expect(report.findings.length).toBeGreaterThan(4);
  });

  it.each([
    ['text', (of: Report) => renderText(of, { color: false, width: 100 })],
    ['Markdown', renderMarkdown],
    ['comment', (of: Report) => renderComment(reportComment(of))],
    [
      'check',
      (of: Report) => {
        const { title, summary, text, annotations } = renderCheck({ comment: reportComment(of), annotatable: () => true } as never);
        return [title, summary, text, ...annotations.flatMap((a) => [a.title, a.message, a.raw_details])].join('\n');
      },
    ],
    ['page', (of: Report) => seen(renderHtml(of))],
  ] as const)('has no English sentence in its %s', (_, render) => {
    const lines = proseOf(render(report)).split('\n');
    expect(lines.flatMap((line) => englishIn(line) ?? [])).toEqual([]);
  });
});

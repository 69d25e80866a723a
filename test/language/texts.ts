/* The texts that stand in the source, read by the compiler's parser: what is said in Chinese, and what it says beside in English. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface Text {
  /** `src/…/file.ts:12` */
  readonly at: string;
  readonly text: string;
}

export interface Pair {
  readonly at: string;
  readonly en: string;
  readonly zh: string;
}

interface Found {
  /** Every literal with Chinese in it. */
  readonly chinese: readonly Text[];
  /** Literals that stand side by side as `{ en, zh }`. */
  readonly pairs: readonly Pair[];
  /** Errors for people that are told in one language only. */
  readonly oneLanguage: readonly Text[];
  /** Comments in the code that remedies show. */
  readonly comments: readonly Text[];
}

const HAN = /[\u4e00-\u9fff]/;

/** What a value in the middle of a template looks like: neither Latin nor Han, so that nothing is judged beside it. */
const VALUE = '◆';

function textOf(node: ts.Node): string | null {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (ts.isTemplateExpression(node)) return node.head.text + node.templateSpans.map((span) => VALUE + span.literal.text).join('');
  return null;
}

function sources(): string[] {
  return readdirSync(`${ROOT}src`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .sort();
}

export function textsOfSource(): Found {
  const found = { chinese: [] as Text[], pairs: [] as Pair[], oneLanguage: [] as Text[], comments: [] as Text[] };
  for (const name of sources()) {
    const content = readFileSync(`${ROOT}src/${name}`, 'utf8');
    const isRemedy = name.startsWith('remedies/');
    if (!isRemedy && !HAN.test(content) && !content.includes('new AdviseError(')) continue;
    const file = ts.createSourceFile(name, content, ts.ScriptTarget.Latest, false);
    const visit = (node: ts.Node): void => {
      const at = (): string => `src/${name}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}`;
      const text = textOf(node);
      if (text !== null && HAN.test(text)) found.chinese.push({ at: at(), text });
      if (isRemedy && text !== null && !HAN.test(text))
        for (const [, comment] of text.matchAll(/(?:^|\s)# (.+)$/gm)) found.comments.push({ at: at(), text: comment!.trim() });
      if (ts.isObjectLiteralExpression(node)) {
        const value = (key: string): string | null => {
          const property = node.properties.find(
            (p): p is ts.PropertyAssignment => ts.isPropertyAssignment(p) && ts.isIdentifier(p.name) && p.name.text === key,
          );
          return property === undefined ? null : textOf(property.initializer);
        };
        const en = value('en');
        const zh = value('zh');
        if (en !== null && zh !== null) found.pairs.push({ at: at(), en, zh });
      }
      if (ts.isNewExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === 'AdviseError') {
        const said = node.arguments?.slice(1, 3).map(textOf) ?? [];
        for (const one of said) if (one !== null && one !== '') found.oneLanguage.push({ at: at(), text: one });
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return found;
}

/** Markdown written in Chinese, by path. */
export function chineseDocuments(): string[] {
  const all = (folder: string): string[] =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file.replaceAll('\\', '/')}`);
  const rules = all('src/rules').filter((file) => file.endsWith('/doc.zh.md'));
  const docs = all('docs').filter((file) => file.endsWith('.zh.md') || (file.startsWith('docs/zh/') && file.endsWith('.md')));
  return ['CONTRIBUTING.zh.md', 'README.zh.md', ...docs.filter((file) => !/^docs\/zh\/rules\/(?!README)/.test(file)), ...rules].sort();
}

export function readText(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8');
}

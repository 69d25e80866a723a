import { readFileSync } from 'node:fs';
import type { Lang } from '../../model/lang.ts';
import { word } from '../words.ts';
import { foldOut } from './figure.ts';
import { html, type Markup, prose } from './markup.ts';

const FOLDERS = { en: new URL('../../../docs/rules/', import.meta.url), zh: new URL('../../../docs/zh/rules/', import.meta.url) };
/** The example and the thresholds of a page are left to `npu-advise explain`. */
const SHOWN = 4;
const pages = new Map<string, Markup | null>();

const plain = (line: string): string => line.replace(/\[([^[\]]*)\]\([^()]*\)/g, '$1').replace(/\*\*/g, '');

function blocks(body: string, lang: Lang): Markup[] {
  return body
    .trim()
    .split(/\n{2,}/)
    .map((block) => {
      const lines = block.split('\n');
      if (lines[0]!.startsWith('- ')) {
        const items = block.split(/^- /m).filter((item) => item.trim() !== '');
        return html`<ul>${items.map((item) => html`<li>${prose(plain(joined(item.trim().split('\n'), lang)))}</li>`)}</ul>`;
      }
      return html`<p>${prose(plain(joined(lines, lang)))}</p>`;
    });
}

/** Lines of a paragraph: Chinese ones follow each other without a space where one ends in Chinese. */
function joined(lines: readonly string[], lang: Lang): string {
  return lines
    .map((line) => line.trim())
    .reduce((whole, line) => (lang === 'zh' && /[\u3000-\u9fff\uff00-\uffef]$/.test(whole) ? whole + line : `${whole} ${line}`));
}

function read(rule: string, lang: Lang): Markup | null {
  // Names of rules reach the page from reports, which are foreign.
  if (!/^[a-z0-9-]{1,60}$/.test(rule)) return null;
  let page: string;
  try {
    page = readFileSync(new URL(`${rule}.md`, FOLDERS[lang]), 'utf8');
  } catch {
    return null;
  }
  const sections = page.split(/^## /m).slice(1, 1 + SHOWN);
  if (sections.length === 0) return null;
  const body = sections.map((section) => {
    const end = section.indexOf('\n');
    return html`<h4>${prose(section.slice(0, end))}</h4>${blocks(section.slice(end), lang)}`;
  });
  return html`<div class="rule-doc">${foldOut(prose(word('html.rule', lang, { rule })), html`${body}`)}</div>`;
}

/** What the documentation says of a rule: what it measures, why that costs, what to do and when not. null: no page for it. */
export function ruleDoc(rule: string, lang: Lang): Markup | null {
  const key = `${lang}/${rule}`;
  if (!pages.has(key)) pages.set(key, read(rule, lang));
  return pages.get(key)!;
}

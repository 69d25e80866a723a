import { readFile } from 'node:fs/promises';
import { AdviseError } from '../base/errors.ts';
import { nearestName } from '../config/nearest.ts';
import type { Lang } from '../model/lang.ts';
import type { Rule } from '../model/rule.ts';
import { RULES } from '../rules/index.ts';
import { notKnown } from './usage.ts';

/** `npu-advise rules`. */
export function listRules(format: string, lang: Lang): string {
  if (format === 'json') {
    const list = RULES.map((r) => ({
      id: r.id,
      title: r.title[lang],
      category: r.category,
      maturity: r.maturity,
      needs: r.needs,
      remedies: r.remedies,
      options: Object.fromEntries(
        Object.entries(r.options).map(([name, o]) => [
          name,
          { default: o.default, unit: o.unit, min: o.min, max: o.max, description: o.description[lang], why: o.why[lang] },
        ]),
      ),
    }));
    return `${JSON.stringify(list, null, 2)}\n`;
  }
  if (format !== 'text') throw notKnown('format', format, ['text', 'json']);
  const width = Math.max(...RULES.map((r) => r.id.length));
  return `${RULES.map((r) => `${r.id.padEnd(width)}  ${r.category.padEnd(13)}  ${r.title[lang]}`).join('\n')}\n`;
}

/** `npu-advise explain RULE`: metadata, thresholds with their reasons, and the rule's own page. */
export async function explainRule(id: string, lang: Lang): Promise<string> {
  const rule = RULES.find((r) => r.id === id);
  if (rule === undefined) {
    const near = nearestName(
      id,
      RULES.map((r) => r.id),
    );
    throw new AdviseError(
      'unknown-rule',
      { en: `there is no rule "${id}"`, zh: `没有名为「${id}」的检查项` },
      near === null
        ? { en: 'See npu-advise rules.', zh: '用 npu-advise rules 查看全部检查项。' }
        : { en: `Did you mean ${near}?`, zh: `是否指 ${near}。` },
    );
  }
  const folder = lang === 'en' ? 'docs/rules' : 'docs/zh/rules';
  const doc = await readFile(new URL(`../../${folder}/${id}.md`, import.meta.url), 'utf8').catch(() => null);
  return doc ?? describe(rule, lang);
}

function describe(rule: Rule, lang: Lang): string {
  const options = Object.entries(rule.options).map(([name, o]) =>
    lang === 'en'
      ? `  ${name} = ${o.default} (${o.unit}): ${o.description.en}; ${o.why.en}`
      : `  ${name} = ${o.default}（${o.unit}）：${o.description.zh}；${o.why.zh}`,
  );
  return `${rule.id}${lang === 'en' ? ': ' : '：'}${rule.title[lang]}\n${options.join('\n')}\n`;
}

import { quoteLiteral } from '../base/phrase.ts';
import { nearestName } from '../config/nearest.ts';
import type { L10n, Lang } from '../model/lang.ts';
import { BODY_BUDGET, fitSections } from '../render/budget.ts';
import { publicPath } from '../render/comment.ts';
import { explainFinding, type Places } from '../render/details.ts';
import { cell, code, joinMarkdown, markdown, prose } from '../render/escape.ts';
import { word } from '../render/words.ts';
import { defineCommand, type RuleFacts } from './command.ts';
import { findFinding, isReference } from './find-finding.ts';

/** Places as they may be shown: not where on the runner a file lay, and no addresses. */
const PLACES: Places = { path: publicPath, url: () => null };

function describeRule(rule: RuleFacts, lang: Lang): string {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const colon = say(': ', '：');
  const parts = [markdown`**${code(rule.id)}**${prose(colon)} ${prose(rule.title[lang])}`];
  const { outcome } = rule;
  const state = rule.isDisabled
    ? say('Switched off in the settings.', '已在配置中关闭。')
    : outcome === null
      ? say('There is no report on this pull request yet.', '本 PR 尚无报告。')
      : `${say('Last report', '最近一次报告')}${colon}${word(`outcome.${outcome.outcome}`, lang)}${outcome.reason === '' ? '' : say(`, ${outcome.reason}`, `，${outcome.reason}`)}`;
  parts.push(prose(state, 600));
  if (rule.isPreview) parts.push(prose(say('A preview: shown, and never fails a gate.', '预览检查项：会显示，但不影响门禁。')));
  if (rule.options.length > 0) {
    const rows = rule.options.map(({ name, value, isDefault, unit, description }) => {
      const from = isDefault ? say('default', '默认') : say('settings', '配置');
      return markdown`| ${code(name)} | ${value} (${prose(unit)}) | ${prose(from)} | ${cell(description[lang])} |`;
    });
    const head = prose(say('Threshold', '阈值'));
    parts.push(
      joinMarkdown(
        [
          markdown`| ${head} | ${prose(say('Value', '值'))} | ${prose(say('From', '来源'))} | ${prose(say('What', '含义'))} |`,
          markdown`|---|--:|---|---|`,
          ...rows,
        ],
        '\n',
      ),
    );
  }
  if (rule.remedies.length > 0) {
    const items = rule.remedies.map((title) => markdown`- ${prose(title[lang])}`);
    parts.push(joinMarkdown([prose(say('What may help:', '可能的改法：')), joinMarkdown(items, '\n')], '\n\n'));
  }
  return joinMarkdown(parts, '\n\n').toString();
}

function unknown(reference: string, names: readonly string[]): L10n {
  const nearest = nearestName(reference, names);
  const hint =
    nearest === null
      ? { en: '.', zh: '。' }
      : { en: `; did you mean ${quoteLiteral(nearest)}?`, zh: `；是否指 ${quoteLiteral(nearest)}？` };
  return {
    en: `There is no finding or rule ${quoteLiteral(reference, 80)}${hint.en}`,
    zh: `没有名为 ${quoteLiteral(reference, 80)} 的原因或检查项${hint.zh}`,
  };
}

/** A finding with its proof and its change, or a rule with its thresholds. */
export const explain = defineCommand<{ readonly reference: string }>({
  name: 'explain',
  aliases: [],
  usage: '/npu-advise explain <rule | finding>',
  description: {
    en: 'Explains a finding (its number in the summary or its id) with its proof and its change, or a rule with the thresholds in force and what the last report says of it.',
    zh: '解释某个原因（摘要中的编号或标识）的证据与改法，或某个检查项当前的阈值及最近一次报告的结论。',
  },
  permission: 'anyone',
  examples: ['/npu-advise explain 1', '/npu-advise explain dataloader-stall'],
  parse(args) {
    const [reference] = args;
    if (reference !== undefined && args.length === 1 && isReference(reference)) return { ok: true, args: { reference } };
    return {
      ok: false,
      problem: { en: '`explain` takes one finding or rule', zh: '`explain` 接受一个原因或检查项' },
    };
  },
  async handle({ client, args: { reference }, lang }) {
    const rules = client.rules();
    const wanted = reference.toLowerCase();
    const rule = rules.includes(wanted) ? await client.rule(wanted) : null;
    if (rule !== null) {
      await client.reply(describeRule(rule, lang));
      return 'done';
    }
    const shown = (await client.shown()) ?? [];
    const found = findFinding(reference, shown);
    if ('problem' in found) {
      const isNumber = /^#?\d+$/.test(reference);
      const text = isNumber
        ? `${found.problem[lang]}${lang === 'en' ? '.' : '。'}`
        : unknown(reference, [...rules, ...shown.map(({ id }) => id)])[lang];
      await client.reply(text);
      return 'refused';
    }
    const { id, title } = found.findings[0]!;
    const report = await client.reportOf(id);
    const sections = report === null ? null : explainFinding(report, id, PLACES);
    if (sections === null) {
      await client.reply(
        lang === 'en'
          ? `The report that holds “${title}” is not kept any more; \`/npu-advise run\` makes it again.`
          : `包含「${title}」的报告已不再保留；可用 \`/npu-advise run\` 重新生成。`,
      );
      return 'refused';
    }
    await client.reply(fitSections(sections, BODY_BUDGET, () => '…', []));
    return 'done';
  },
});

import { quoteLiteral } from '../base/phrase.ts';
import { code, markdown, prose } from '../render/escape.ts';
import { defineCommand, type SettingsFacts } from './command.ts';

const MAX_VALUE = 140;

function describe({ file, ref, keys }: SettingsFacts, lang: 'en' | 'zh'): string {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const rows = keys.map(({ key, value, from, isHidden }) => {
    const text = JSON.stringify(value) ?? 'null';
    const shown = text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE - 1)}…` : text;
    const hidden = say('set in a private repository, not shown here', '由私有仓库设置，此处不显示');
    const origin = from === null ? prose(say('default', '默认')) : code(from);
    return markdown`| ${code(key)} | ${isHidden ? prose(hidden) : code(shown)} | ${origin} |`;
  });
  const head = [say('| Setting | Value | From |', '| 配置项 | 值 | 来源 |'), '|---|---|---|'];
  const place = say(
    `Settings of this pull request, from ${quoteLiteral(file)} on its base branch ${quoteLiteral(ref)}:`,
    `本 PR 的配置，来自基线分支 ${quoteLiteral(ref)} 上的 ${quoteLiteral(file)}：`,
  );
  return [place, '', ...head, ...rows].join('\n');
}

/** The settings in force and where each comes from. */
export const settings = defineCommand<null>({
  name: 'config',
  aliases: ['settings'],
  usage: '/npu-advise config',
  description: {
    en: 'Shows the settings in force here and which file each of them comes from.',
    zh: '显示当前生效的配置以及每一项来自哪个文件。',
  },
  permission: 'write',
  examples: ['/npu-advise config'],
  parse(args) {
    if (args.length > 0) return { ok: false, problem: { en: '`config` takes nothing else', zh: '`config` 不接受参数' } };
    return { ok: true, args: null };
  },
  async handle({ client, lang }) {
    const facts = await client.settings();
    if ('en' in facts) {
      await client.reply(`${facts[lang]}${lang === 'en' ? '.' : '。'}`);
      return 'refused';
    }
    await client.reply(describe(facts, lang));
    return 'done';
  },
});

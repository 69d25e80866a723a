import { defineCommand } from './command.ts';

/** Posts the changes as review suggestions. */
export const suggest = defineCommand<null>({
  name: 'suggest',
  aliases: [],
  usage: '/npu-advise suggest',
  description: {
    en: 'Posts the changes of the last report as review suggestions, three at a time.',
    zh: '将最近一次报告中的改法以评审建议的形式提交，每次最多三条。',
  },
  permission: 'author-or-write',
  examples: ['/npu-advise suggest'],
  parse(args) {
    if (args.length > 0) return { ok: false, problem: { en: '`suggest` takes nothing else', zh: '`suggest` 不接受参数' } };
    return { ok: true, args: null };
  },
  async handle({ client, headSha, lang }) {
    const problem = await client.suggest(headSha);
    if (problem === null) return 'started';
    await client.reply(`${problem[lang]}${lang === 'en' ? '.' : '。'}`);
    return 'refused';
  },
});

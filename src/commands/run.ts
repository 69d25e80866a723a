import { defineCommand } from './command.ts';

/** Asks for an analysis of the present head. */
export const run = defineCommand<{ sha: string | null }>({
  name: 'run',
  aliases: ['rerun'],
  usage: '/npu-advise run [commit]',
  description: {
    en: 'Looks for profiles of the head commit again and analyses them. With a commit (7 or more characters), only if that is still the head.',
    zh: '重新查找最新提交的 profile 并分析。给出提交号（至少 7 位）时，仅当它仍是最新提交才执行。',
  },
  permission: 'author-or-write',
  examples: ['/npu-advise run', '/npu-advise rerun', '/npu-advise run 3f2a91c'],
  parse(args) {
    const [sha, ...more] = args;
    const problem = {
      en: '`run` takes at most one commit of 7 to 40 hexadecimal characters',
      zh: '`run` 最多接受一个提交号（7 到 40 位十六进制字符）',
    };
    if (more.length > 0 || (sha !== undefined && !/^[0-9a-f]{7,40}$/i.test(sha))) return { ok: false, problem };
    return { ok: true, args: { sha: sha?.toLowerCase() ?? null } };
  },
  async handle({ args, headSha, client, lang }) {
    if (args.sha !== null && !headSha.startsWith(args.sha)) {
      const head = headSha.slice(0, 7);
      await client.reply(
        lang === 'en'
          ? `The head of this pull request is \`${head}\`, not \`${args.sha}\`: nothing was started.`
          : `本 PR 的最新提交是 \`${head}\`，不是 \`${args.sha}\`：未开始分析。`,
      );
      return 'refused';
    }
    await client.requestAnalysis(headSha);
    return 'started';
  },
});

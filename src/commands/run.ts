import { quoteLiteral } from '../base/phrase.ts';
import { defineCommand, type Wanted } from './command.ts';

/** What follows the name: nothing, a word that may be a commit or a run, or the address or name of an upload. */
type Args = { readonly word: string } | { readonly wanted: Wanted } | null;

/** Address of a run or of one of its artifacts, as copied from the browser. */
const ADDRESS = /^https?:\/\/[^\s/]+\/([\w.-]+\/[\w.-]+)\/actions\/runs\/(\d{1,15})(?:\/[\w/]*?artifacts\/(\d{1,15}))?(?:[/?#].*)?$/;
/** Address of a file attached to a comment, alone or as the link GitHub writes for it. */
const ATTACHMENT = /^(?:\[[^\]]*\]\()?(https?:\/\/[^\s()]+\/files\/\d{1,15}\/[^\s()/]+)\)?$/;
/** GitHub allows anything else in the name of an artifact. */
const NOT_IN_A_NAME = /["<>|*?\\/:]/;
const MAX_NAME = 200;

/** Asks for an analysis of the present head. */
export const run = defineCommand<Args>({
  name: 'run',
  aliases: ['rerun'],
  usage: '/npu-advise run [commit | run | artifact | attachment]',
  description: {
    en: 'Looks for profiles of the head commit again and analyses them. With a commit (7 or more characters), only if that is still the head. With the number or address of a workflow run, or the name of an artifact: only that one, whatever names the settings list. With the address of a file attached to a comment, where the settings allow attachments: that file.',
    zh: '重新查找最新提交的 profile 并分析。给出提交号（至少 7 位）时，仅当它仍是最新提交才执行。给出工作流运行的编号或网址、或 artifact 名称时，只分析所指的那个，不受配置中名称的限制。给出评论附件的网址时（配置须允许附件），分析该文件。',
  },
  permission: 'author-or-write',
  examples: [
    '/npu-advise run',
    '/npu-advise rerun',
    '/npu-advise run 3f2a91c',
    '/npu-advise run 17384930219',
    '/npu-advise run node-0 profile',
  ],
  parse(args) {
    const [word, ...more] = args;
    if (word === undefined) return { ok: true, args: null };
    const address = more.length === 0 ? ADDRESS.exec(word) : null;
    if (address !== null) {
      const artifact = address[3] === undefined ? null : { id: Number(address[3]) };
      return { ok: true, args: { wanted: { runId: Number(address[2]), repository: address[1]!, artifact } } };
    }
    const attachment = ATTACHMENT.exec(args.join(' '))?.[1];
    if (attachment !== undefined) return { ok: true, args: { wanted: { runId: null, repository: null, artifact: null, attachment } } };
    if (more.length === 0 && (/^[0-9a-f]{7,40}$/i.test(word) || /^\d{1,15}$/.test(word)))
      return { ok: true, args: { word: word.toLowerCase() } };
    const name = args.join(' ');
    if (name.length > MAX_NAME || NOT_IN_A_NAME.test(name)) {
      const problem = {
        en: '`run` takes a commit, the number or address of a workflow run, the name of an artifact, or the address of an attachment',
        zh: '`run` 接受提交号、工作流运行的编号或网址、artifact 名称、或附件网址',
      };
      return { ok: false, problem };
    }
    return { ok: true, args: { wanted: { runId: null, repository: null, artifact: { name } } } };
  },
  async handle({ args, headSha, client, lang }) {
    let wanted: Wanted | null = null;
    if (args !== null && 'wanted' in args) wanted = args.wanted;
    else if (args !== null && !(args.word.length >= 7 && headSha.startsWith(args.word))) {
      const head = headSha.slice(0, 7);
      if (!/^\d{1,15}$/.test(args.word)) {
        await client.reply(
          lang === 'en'
            ? `The head of this pull request is \`${head}\`, not ${quoteLiteral(args.word)}: nothing was started.`
            : `本 PR 的最新提交是 \`${head}\`，不是 ${quoteLiteral(args.word)}：未开始分析。`,
        );
        return 'refused';
      }
      wanted = { runId: Number(args.word), repository: null, artifact: null };
    }
    const problem = await client.requestAnalysis(headSha, wanted);
    if (problem === null) return 'started';
    await client.reply(lang === 'en' ? `${problem.en}: nothing was started.` : `${problem.zh}：未开始分析。`);
    return 'refused';
  },
});

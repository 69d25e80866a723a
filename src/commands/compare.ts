import { quoteLiteral } from '../base/phrase.ts';
import type { Lang } from '../model/lang.ts';
import { BODY_BUDGET, fitSections } from '../render/budget.ts';
import { comparisonSections } from '../render/details.ts';
import { type ComparedBase, defineCommand } from './command.ts';

const DAY_MS = 86_400_000;
/** A branch, a tag or a commit, as git allows them, and the name of a job. */
const REF = /^(?!.*(?:\.\.|@\{|\/\/))[\w][\w./+-]{0,199}$/;
const JOB = /^[\w][\w.-]{0,39}$/;

/** What is compared with: the commit itself, or the nearest one before it that has a profile. */
function baseSentence({ sha, asked, commitsBefore, ageMs }: ComparedBase, lang: Lang): string {
  const days = Math.floor(ageMs / DAY_MS);
  const base = quoteLiteral(sha.slice(0, 7));
  const of = quoteLiteral(asked);
  const age =
    days === 0 ? { en: 'less than a day ago', zh: '不到一天前' } : { en: `${days} ${days === 1 ? 'day' : 'days'} ago`, zh: `${days} 天前` };
  if (commitsBefore === 0)
    return lang === 'en' ? `Base: ${base} (${of}), profiled ${age.en}.` : `基线：${base}（${of}），profile 采集于${age.zh}。`;
  return lang === 'en'
    ? `Base: ${base}, profiled ${age.en}. ${of} itself has no kept profile; this is the nearest commit before it, ${commitsBefore} earlier.`
    : `基线：${base}，profile 采集于${age.zh}。${of} 本身没有保留 profile；此为之前最近的一次提交，相隔 ${commitsBefore} 个提交。`;
}

/** The head against any commit of which a profile is kept. */
export const compare = defineCommand<{ readonly ref: string | null; readonly job: string | null }>({
  name: 'compare',
  aliases: [],
  usage: '/npu-advise compare [branch | tag | commit] [job]',
  description: {
    en: 'Compares the head commit with a branch, tag or commit of which a profile is kept, or with the nearest commit before it; without one, with the base branch. `job`: where the settings name several.',
    zh: '将最新提交与某个分支、标签或提交（或其之前最近的有 profile 的提交）对比；不指定时与基线分支对比。配置了多个作业时用 `job` 指明。',
  },
  permission: 'author-or-write',
  examples: ['/npu-advise compare', '/npu-advise compare release/2.1', '/npu-advise compare 3f2a91c pretrain'],
  parse(args) {
    const [ref = null, job = null, ...more] = args;
    if (more.length > 0 || (ref !== null && !REF.test(ref)) || (job !== null && !JOB.test(job))) {
      return {
        ok: false,
        problem: { en: '`compare` takes one branch, tag or commit, and a job', zh: '`compare` 接受一个分支、标签或提交，以及作业名' },
      };
    }
    return { ok: true, args: { ref, job } };
  },
  async handle({ client, headSha, args: { ref, job }, lang }) {
    const made = await client.compare(headSha, ref, job);
    if ('problem' in made) {
      await client.reply(`${made.problem[lang]}${lang === 'en' ? '.' : '。'}`);
      return 'refused';
    }
    const sections = comparisonSections(made.report, baseSentence(made.base, lang));
    await client.reply(fitSections(sections, BODY_BUDGET, () => '…', []));
    return 'done';
  },
});

import { quoteLiteral } from '../base/phrase.ts';
import type { Lang } from '../model/lang.ts';
import { plain, prose } from '../render/escape.ts';
import { holdsUntil } from './acknowledge.ts';
import { defineCommand, type StandingAcknowledgement, type StatusFacts } from './command.ts';

const PHASE = {
  en: { queued: 'waiting for a profile', in_progress: 'analysing', completed: 'concluded' },
  zh: { queued: '等待 profile', in_progress: '分析中', completed: '已完成' },
} as const;

const MAX_ACKNOWLEDGED = 20;

const STATE = {
  en: { grown: 'open again, its cost has grown', ended: 'open again, the day has passed', absent: 'not in the last report' },
  zh: { grown: '耗时增长，已重新列出', ended: '已到期，已重新列出', absent: '最近一次报告中没有' },
} as const;

function describe(facts: StatusFacts, headSha: string, lang: Lang): string {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const colon = say(': ', '：');
  const lines = [`**NPU Advisor${colon}${say('state of', '状态')} \`${headSha.slice(0, 7)}\`**`, ''];
  const { check } = facts;
  if (check === null) lines.push(`- ${say('Check: none yet for this commit', '检查：该提交尚无检查')}`);
  else {
    const conclusion = check.conclusion === null ? '' : ` (\`${check.conclusion}\`)`;
    lines.push(`- ${say('Check', '检查')}${colon}${PHASE[lang][check.phase]}${conclusion}`);
    if (check.phase !== 'completed' && facts.deadlineAt !== null) {
      const at = new Date(facts.deadlineAt).toISOString().replace('T', ' ').slice(0, 16);
      lines.push(`- ${say(`Concluded without a profile at ${at} UTC at the latest`, `最迟于 ${at} UTC 在无 profile 的情况下结束`)}`);
    }
  }
  if (facts.verdict !== null) lines.push(`- ${say('Last report', '最近一次报告')}${colon}${facts.verdict}`);
  if (facts.pending > 0) lines.push(`- ${say(`${facts.pending} request(s) waiting`, `${facts.pending} 个请求等待处理`)}`);
  const patterns = facts.patterns.map((pattern) => quoteLiteral(pattern, 80)).join(say(', ', '、'));
  lines.push(`- ${say('Artifacts read: names like', '读取的 artifact 名称')} ${patterns}`);
  if (facts.runs.length === 0) lines.push(`- ${say('No workflow run of this commit', '该提交没有工作流运行')}`);
  for (const run of facts.runs.slice(0, 10)) {
    const name = quoteLiteral(run.name, 80);
    if (run.ignoredBecause !== null) lines.push(`- ${say('Workflow', '工作流')} ${name}${colon}${run.ignoredBecause}`);
    else if (!run.completed) lines.push(`- ${say('Workflow', '工作流')} ${name}${colon}${say('still running', '仍在运行')}`);
    else {
      const count = say(`${run.matching} of ${run.uploaded} artifacts match`, `${run.uploaded} 个 artifact 中有 ${run.matching} 个匹配`);
      lines.push(`- ${say('Workflow', '工作流')} ${name}${colon}${count}`);
    }
  }
  if (facts.acknowledged.length > 0) {
    const all = facts.acknowledged.length;
    lines.push(`- ${say(`Acknowledged: ${all}`, `已确认：${all} 个`)}`);
    for (const given of facts.acknowledged.slice(0, MAX_ACKNOWLEDGED)) lines.push(`  - ${describeAcknowledged(given, lang)}`);
    if (all > MAX_ACKNOWLEDGED) lines.push('  - …');
  }
  return lines.join('\n');
}

function describeAcknowledged(given: StandingAcknowledgement, lang: Lang): string {
  const by = quoteLiteral(given.by, 60);
  const until = holdsUntil(given.until, lang);
  const reason = given.reason === '' ? '' : `${lang === 'en' ? ': ' : '：'}${plain(given.reason, 200)}`;
  const day = new Date(given.at).toISOString().slice(0, 10);
  const who = lang === 'en' ? `${by}, ${day}, ${until}` : `${by}，${day}，${until}`;
  const state = given.state === 'holds' ? '' : `${lang === 'en' ? '; ' : '；'}${STATE[lang][given.state]}`;
  const title = prose(given.title, 160);
  return lang === 'en' ? `${title} (${who}${state})${reason}` : `${title}（${who}${state}）${reason}`;
}

/** Says what is known, what is waited for and why a run was ignored. */
export const status = defineCommand<null>({
  name: 'status',
  aliases: [],
  usage: '/npu-advise status',
  description: {
    en: 'Shows what is known about the head commit, what is waited for, why a workflow was ignored and what is acknowledged.',
    zh: '显示最新提交的状态、正在等待的内容、不采用某些工作流的理由，以及已确认的原因。',
  },
  permission: 'anyone',
  examples: ['/npu-advise status'],
  parse(args) {
    if (args.length > 0) return { ok: false, problem: { en: '`status` takes nothing else', zh: '`status` 不接受参数' } };
    return { ok: true, args: null };
  },
  async handle({ client, headSha, lang }) {
    await client.reply(describe(await client.status(headSha), headSha, lang));
    return 'done';
  },
});

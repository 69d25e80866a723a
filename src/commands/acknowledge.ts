import type { ShownFinding } from '../model/acknowledgement.ts';
import type { L10n, Lang } from '../model/lang.ts';
import { type CommandContext, type CommandResult, defineCommand } from './command.ts';
import { findFindings, isByPlace, isReference } from './find-finding.ts';
import { narrow } from './parse.ts';

const MAX_REASON = 300;
/** Longer than this nobody remembers why. */
const MAX_DAYS = 366;
const MAX_FINDINGS = 20;

interface AckArgs {
  readonly findings: readonly string[];
  readonly reason: string;
  readonly until: string | null;
}

/** A day as people write it: 2027-01-31, 2027/1/31, 2027年1月31日. null: none. */
function toDay(word: string): string | null {
  const match = /^(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?$/.exec(narrow(word));
  if (match === null) return null;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.toISOString().slice(0, 10) : null;
}

/** References at the beginning: separated by commas, or, where nothing else follows, by spaces. */
function splitReferences(args: readonly string[]): { findings: string[]; rest: string[] } {
  const [first = '', ...rest] = args;
  const parts = first.split(/[,，、;；]/).map(narrow);
  const count = parts.findIndex((part) => !isReference(part));
  const findings = count < 0 ? parts : parts.slice(0, count);
  const told = count < 0 ? [] : [parts.slice(count).join('，')].filter((part) => part !== '');
  if (told.length === 0 && rest.length > 0 && rest.every((word) => /^#?\d{1,4}$/.test(word)))
    return { findings: [...findings, ...rest], rest: [] };
  return { findings, rest: [...told, ...rest] };
}

const NEEDS_A_DAY: L10n = {
  en: '`until` takes a day such as `2027-01-31`',
  zh: '`until` 后须为日期，例如 `2027-01-31`',
};

function parseAck(args: readonly string[]): { readonly ok: true; readonly args: AckArgs } | { readonly ok: false; readonly problem: L10n } {
  const before = args.slice(0, -2);
  const [word, last] = args.slice(-2);
  let until: string | null = null;
  let words = args;
  if (args.length >= 3 && /^(until|直到|至)[:：]?$/i.test(word!)) {
    until = toDay(last!);
    if (until === null) return { ok: false, problem: NEEDS_A_DAY };
    words = before;
  } else if (args.length >= 2) {
    const joined = /^(?:until[:：]?|直到|至)(\d.*)$/i.exec(last!)?.[1];
    until = joined === undefined ? null : toDay(joined);
    if (until !== null) words = args.slice(0, -1);
  }
  const { findings, rest } = splitReferences(words);
  if (findings.length === 0 || findings[0] === '' || findings.length > MAX_FINDINGS) {
    const problem = {
      en: 'Say which finding: its number in the summary, its rule, or `all`',
      zh: '请指明原因：摘要中的编号、检查项名称或 `all`',
    };
    return { ok: false, problem };
  }
  return { ok: true, args: { findings, reason: [...rest.join(' ')].slice(0, MAX_REASON).join('').trim(), until } };
}

async function refuse({ client, lang }: Pick<CommandContext<unknown>, 'client' | 'lang'>, text: L10n): Promise<CommandResult> {
  const said = text[lang];
  await client.reply(/[?？]$/.test(said) ? said : `${said}${lang === 'en' ? '.' : '。'}`);
  return 'refused';
}

const NOTHING_YET: L10n = { en: 'There is no report on this pull request yet', zh: '本 PR 尚无报告' };

/** Why these findings cannot be acknowledged. null: they can. */
function problemOf(findings: readonly ShownFinding[], shown: readonly ShownFinding[]): L10n | null {
  if (findings.length === 0) return { en: 'Nothing is open', zh: '没有待处理的原因' };
  const part = findings.find(({ state }) => state === 'part');
  if (part !== undefined) {
    const open = shown.filter(({ state }) => state === 'open').flatMap(({ number }) => (number === null ? [] : [String(number)]));
    return {
      en: `\`${part.id}\` is part of another cause; acknowledge that one${open.length > 0 ? ` (open: ${open.join(', ')})` : ''}`,
      zh: `\`${part.id}\` 已计入其他原因；请确认对应的原因${open.length > 0 ? `（待处理：${open.join('、')}）` : ''}`,
    };
  }
  const muted = findings.find(({ state }) => state === 'muted');
  if (muted === undefined) return null;
  return { en: `\`${muted.id}\` is muted by the settings already`, zh: `\`${muted.id}\` 已由配置静默` };
}

function dayProblem(until: string | null, today: string): L10n | null {
  if (until === null) return null;
  if (until < today) return { en: `\`${until}\` has passed`, zh: `\`${until}\` 已过` };
  if ((Date.parse(until) - Date.parse(today)) / 86_400_000 <= MAX_DAYS) return null;
  return { en: 'An acknowledgement holds for a year at most', zh: '确认的有效期最长为一年' };
}

/** Accepts a finding until its cost grows or a day has passed. */
export const ack = defineCommand<AckArgs>({
  name: 'ack',
  aliases: ['acknowledge'],
  usage: '/npu-advise ack <finding> [reason] [until <date>]',
  description: {
    en: 'Acknowledges a finding (its number in the summary, id or rule; several with commas; `all`): it stays visible, but fails no gate, until its cost grows by more than 10 % and the noise or the day has passed. `ack regression` accepts that steps are slower than the baseline.',
    zh: '确认（已知并接受）某个原因：摘要中的编号、标识或检查项，多个用逗号分隔，或 `all`。原因仍会显示，但不影响门禁，直到可省时间增长超过 10% 且超过噪声，或日期已过。`ack regression` 表示接受比基线慢。',
  },
  permission: 'write',
  examples: [
    '/npu-advise ack 2',
    '/npu-advise ack slow-rank card replacement is booked until 2027-01-31',
    '/npu-advise ack regression known',
  ],
  parse: parseAck,
  async handle(context) {
    const { client, args, today } = context;
    const shown = await client.shown();
    if (shown === null) return refuse(context, NOTHING_YET);
    const moved = args.findings.some(isByPlace) ? await client.shownSince() : null;
    if (moved !== null) return refuse(context, moved);
    const found = findFindings(args.findings, shown, 'open');
    if ('problem' in found) return refuse(context, found.problem);
    const problem = problemOf(found.findings, shown) ?? dayProblem(args.until, today);
    if (problem !== null) return refuse(context, problem);
    await client.acknowledge(found.findings, { reason: args.reason, until: args.until });
    return 'started';
  },
});

/** Takes an acknowledgement back. */
export const unack = defineCommand<{ readonly findings: readonly string[] }>({
  name: 'unack',
  aliases: [],
  usage: '/npu-advise unack <finding>',
  description: {
    en: 'Takes an acknowledgement back; `all` takes back every one of this pull request.',
    zh: '撤销确认；`all` 撤销本 PR 的全部确认。',
  },
  permission: 'write',
  examples: ['/npu-advise unack 2', '/npu-advise unack all'],
  parse(args) {
    const { findings, rest } = splitReferences(args);
    if (findings.length === 0 || findings[0] === '' || rest.length > 0 || findings.length > MAX_FINDINGS) {
      return { ok: false, problem: { en: '`unack` takes a finding or `all`', zh: '`unack` 接受一个原因或 `all`' } };
    }
    return { ok: true, args: { findings } };
  },
  async handle(context) {
    const { client, args } = context;
    const given = await client.acknowledgements();
    // What is gone from the report can be taken back, too.
    const shown = (await client.shown()) ?? [];
    const known = [...shown, ...given.filter(({ finding }) => shown.every(({ id }) => id !== finding)).map(asShown)];
    const isAll = args.findings.some((reference) => reference.toLowerCase() === 'all');
    // Every one of the pull request is the same whatever is shown.
    const moved = !isAll && args.findings.some(isByPlace) ? await client.shownSince() : null;
    if (moved !== null) return refuse(context, moved);
    const found = isAll ? { findings: known } : findFindings(args.findings, known, 'acknowledged');
    if ('problem' in found) return refuse(context, found.problem);
    const ids = found.findings.map(({ id }) => id).filter((id) => given.some(({ finding }) => finding === id));
    if (ids.length === 0) {
      const muted = found.findings.length === 1 && found.findings[0]!.state === 'muted';
      if (muted) return refuse(context, { en: 'It is muted by the settings, not acknowledged', zh: '该原因由配置静默，并非确认' });
      return refuse(context, { en: 'That is not acknowledged', zh: '该原因未被确认' });
    }
    await client.takeBack(ids);
    return 'started';
  },
});

function asShown({
  finding,
  rule,
  title,
  saving,
}: Awaited<ReturnType<CommandContext<unknown>['client']['acknowledgements']>>[number]): ShownFinding {
  return { id: finding, rule, number: null, title, saving, state: 'acknowledged', change: null };
}

/** How long an acknowledgement holds, in words. */
export function holdsUntil(until: string | null, lang: Lang): string {
  if (until !== null) return until;
  return lang === 'en' ? 'until it grows' : '耗时增长前有效';
}

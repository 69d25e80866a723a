import { fill } from '../base/phrase.ts';
import type { L10n, Lang } from '../model/lang.ts';
import type { CommandClient, CommandPermission, CommandResult } from './command.ts';
import { renderHelp } from './help.ts';
import type { CommandLine } from './parse.ts';
import { COMMANDS, findCommand } from './table.ts';

export interface Execution {
  readonly lines: readonly CommandLine[];
  readonly lang: Lang;
  readonly actor: string;
  readonly author: string;
  readonly headSha: string;
  readonly today: string;
  /** A client of its own for each command, so that each answers once. */
  readonly clientFor: (index: number) => CommandClient;
  /** Commands, by their place in the comment, that an earlier try has ended: a number of the summary means another finding by now. */
  readonly ended: ReadonlyMap<number, CommandResult>;
  readonly onEnded: (place: number, result: CommandResult) => Promise<void>;
  /** Asked when a command needs it, never earlier. */
  readonly permission: () => Promise<'admin' | 'write' | 'read' | 'none'>;
}

const REFUSED: Readonly<Record<Exclude<CommandPermission, 'anyone'>, L10n>> = {
  'author-or-write': {
    en: '{name:code} is for the author of the pull request and for people who may write to this repository.',
    zh: '{name:code} 仅限本 PR 的作者以及对本仓库有写权限的人使用。',
  },
  write: {
    en: '{name:code} is for people who may write to this repository.',
    zh: '{name:code} 仅限对本仓库有写权限的人使用。',
  },
};

/** Runs the commands of one comment in order; the same command twice counts once, and an unknown one brings the help once. */
export async function executeCommands(execution: Execution): Promise<CommandResult> {
  const { lang, actor, author, headSha, today } = execution;
  const results: CommandResult[] = [];
  const seen = new Set<string>();
  let isHelpGiven = false;

  for (const [index, line] of execution.lines.entries()) {
    const client = execution.clientFor(index);
    const command = findCommand(line.name);
    if (command === null) {
      if (!isHelpGiven) await client.reply(renderHelp(COMMANDS, lang, line.name));
      isHelpGiven = true;
      results.push('refused');
      continue;
    }
    const key = [command.name, ...line.args].join(' ');
    if (seen.has(key)) continue;
    seen.add(key);
    const before = execution.ended.get(index);
    if (before !== undefined) {
      results.push(before);
      continue;
    }

    const isAuthor = command.permission === 'author-or-write' && actor.toLowerCase() === author.toLowerCase();
    if (command.permission !== 'anyone' && !isAuthor) {
      const permission = await execution.permission();
      if (permission !== 'admin' && permission !== 'write') {
        await client.reply(fill(REFUSED[command.permission], { name: command.name }, lang));
        results.push('refused');
        continue;
      }
    }
    const parsed = command.parse(line.args);
    if (!parsed.ok) {
      await client.reply(`${parsed.problem[lang]}${lang === 'en' ? '.' : '。'}\n\n\`${command.usage}\``);
      results.push('refused');
      continue;
    }
    const result = await command.handle({ lang, actor, headSha, today, args: parsed.args, client });
    await execution.onEnded(index, result);
    results.push(result);
  }
  if (results.includes('refused')) return 'refused';
  return results.includes('started') ? 'started' : 'done';
}

import type { Lang } from '../model/lang.ts';
import type { CommandClient, CommandResult } from './command.ts';
import { renderHelp } from './help.ts';
import type { CommandLine } from './parse.ts';
import { COMMANDS, findCommand } from './table.ts';

export interface Execution {
  readonly lines: readonly CommandLine[];
  readonly lang: Lang;
  readonly actor: string;
  readonly author: string;
  readonly headSha: string;
  /** A client of its own for each command, so that each answers once. */
  readonly clientFor: (index: number) => CommandClient;
  /** Asked when a command needs it, never earlier. */
  readonly permission: () => Promise<'admin' | 'write' | 'read' | 'none'>;
}

/** Runs the commands of one comment in order; the same command twice counts once, and an unknown one brings the help once. */
export async function executeCommands(execution: Execution): Promise<CommandResult> {
  const { lang, actor, author, headSha } = execution;
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

    if (command.permission === 'author-or-write' && actor.toLowerCase() !== author.toLowerCase()) {
      const permission = await execution.permission();
      if (permission !== 'admin' && permission !== 'write') {
        await client.reply(
          lang === 'en'
            ? `\`${command.name}\` is for the author of the pull request and for people who may write to this repository.`
            : `\`${command.name}\` 仅限本 PR 的作者以及对本仓库有写权限的人使用。`,
        );
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
    results.push(await command.handle({ lang, actor, headSha, args: parsed.args, client }));
  }
  if (results.includes('refused')) return 'refused';
  return results.includes('started') ? 'started' : 'done';
}

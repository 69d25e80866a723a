import { quoteLiteral } from '../base/phrase.ts';
import { nearestName } from '../config/nearest.ts';
import type { Lang } from '../model/lang.ts';
import { type Command, defineCommand } from './command.ts';

const WHO = {
  en: { anyone: 'anyone', 'author-or-write': 'author, or write access', write: 'write access' },
  zh: { anyone: '任何人', 'author-or-write': '作者或有写权限者', write: '有写权限者' },
} as const;

/** The help text, written from the table. `unknown` is what somebody typed instead of a command. */
export function renderHelp(commands: readonly Command[], lang: Lang, unknown: string | null = null): string {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const lines: string[] = [];
  if (unknown !== null) {
    const nearest = nearestName(
      unknown,
      commands.flatMap((command) => [command.name, ...command.aliases]),
    );
    const hint = nearest === null ? '' : say(` Did you mean ${quoteLiteral(nearest)}?`, `是否想用 ${quoteLiteral(nearest)}？`);
    lines.push(say(`There is no command ${quoteLiteral(unknown, 60)}.${hint}`, `没有命令 ${quoteLiteral(unknown, 60)}。${hint}`), '');
  }
  lines.push(say('| Command | What it does | Who |', '| 命令 | 作用 | 谁可使用 |'), '|---|---|---|');
  for (const command of commands) {
    const alias =
      command.aliases.length === 0
        ? ''
        : say(
            ` (also ${command.aliases.map((a) => `\`${a}\``).join(', ')})`,
            `（也可写 ${command.aliases.map((a) => `\`${a}\``).join('、')}）`,
          );
    // A bar ends the cell, even in code.
    const usage = command.usage.replaceAll('|', '\\|');
    lines.push(`| \`${usage}\`${alias} | ${command.description[lang]} | ${WHO[lang][command.permission]} |`);
  }
  lines.push('', say('A command stands at the very start of a line.', '命令须位于行首。'));
  return lines.join('\n');
}

/** `help` needs the table it is part of, which is therefore passed in. */
export function createHelp(commands: () => readonly Command[]): Command {
  return defineCommand<null>({
    name: 'help',
    aliases: [],
    usage: '/npu-advise help',
    description: { en: 'Lists the commands.', zh: '列出所有命令。' },
    permission: 'anyone',
    examples: ['/npu-advise help'],
    parse: () => ({ ok: true, args: null }),
    async handle({ client, lang }) {
      await client.reply(renderHelp(commands(), lang));
      return 'done';
    },
  });
}

import { ack, unack } from './acknowledge.ts';
import type { Command } from './command.ts';
import { compare } from './compare.ts';
import { explain } from './explain.ts';
import { createHelp } from './help.ts';
import { run } from './run.ts';
import { settings } from './settings.ts';
import { status } from './status.ts';
import { suggest } from './suggest.ts';

/** Every command, in the order of the help text. */
export const COMMANDS: readonly Command[] = [run, status, ack, unack, explain, compare, suggest, settings, createHelp(() => COMMANDS)];

/** The command of a name or alias; null when there is none. */
export function findCommand(name: string): Command | null {
  return COMMANDS.find((command) => command.name === name || command.aliases.includes(name)) ?? null;
}

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** What the demo was asked for. */
export interface DemoOptions {
  /** Profile to show instead of the shipped example: a folder, a zip or another file. */
  path: string | null;
  /** Stop after printing. */
  once: boolean;
  /** Port of the page; 0 takes a free one. */
  port: number;
  lang: 'en' | 'zh';
  /** Ranks of the shipped example. */
  ranks: number;
}

/** A command line that cannot be used, said in one line. */
export class UsageError extends Error {}

export const USAGE = `npm run demo [-- PATH] [-- --once] [--port N] [--lang en|zh] [--ranks N]

Starts NPU Advisor and a GitHub on this machine, opens a pull request that carries a multi-card profile, and shows the answer.

  PATH        a profile folder or zip to show instead of the shipped example
  --once      stop after printing instead of serving the page
  --port N    port of the page (default: any free one)
  --lang      language of the answer: en (default) or zh
  --ranks N   cards of the shipped example (default 8)`;

/** Reads the command line; null when help was asked for. */
export function readOptions(args: readonly string[], env: Readonly<Record<string, string | undefined>>): DemoOptions | null {
  const { values, positionals } = parse(args.filter((arg) => arg !== '--'));
  if (values.help) return null;
  if (positionals.length > 1) throw new UsageError(`one PATH at most, got ${positionals.length}: put the ranks of a job into one folder`);
  if (values.lang !== 'en' && values.lang !== 'zh') throw new UsageError(`--lang must be en or zh, got ${values.lang}`);
  return {
    path: positionals[0] === undefined ? null : findPath(positionals[0], env),
    once: values.once,
    port: whole('--port', values.port, 0, 65_535),
    lang: values.lang,
    ranks: whole('--ranks', values.ranks, 2, 64),
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        once: { type: 'boolean', default: false },
        port: { type: 'string', default: '0' },
        lang: { type: 'string', default: 'en' },
        ranks: { type: 'string', default: '8' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split(/\.\s|\n/);
    throw new UsageError(`${reason}; see npm run demo -- --help`);
  }
}

function whole(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isInteger(value) || value < min || value > max) {
    throw new UsageError(`${name} must be a whole number from ${min} to ${max}, got ${text}`);
  }
  return value;
}

/** npm changes into the package before it starts a script and keeps where it was called in INIT_CWD. */
function findPath(path: string, env: Readonly<Record<string, string | undefined>>): string {
  const found = [resolve(env.INIT_CWD ?? '.', path), resolve(path)].find((candidate) => existsSync(candidate));
  if (found === undefined) throw new UsageError(`${path} does not exist; name a profile folder or zip, or leave it out for the example`);
  return found;
}

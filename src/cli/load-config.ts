import { readFile } from 'node:fs/promises';
import { AdviseError } from '../base/errors.ts';
import { parseConfig } from '../config/parse.ts';
import { type Config, DEFAULT_CONFIG } from '../config/schema.ts';
import { RULES } from '../rules/index.ts';

/** Rule ids with the names of their options, for checking thresholds. */
export const RULE_CATALOG: ReadonlyMap<string, readonly string[]> = new Map(RULES.map((r) => [r.id, Object.keys(r.options)]));

/** Reads and checks a configuration file; without one the defaults. Throws AdviseError that names the line. */
export async function loadConfig(file: string | undefined): Promise<Config> {
  if (file === undefined) return DEFAULT_CONFIG;
  const text = await readFile(file, 'utf8').catch(() => {
    throw new AdviseError('config-not-found', `${file} cannot be read`, 'Give the path of an npu-advisor.yml.');
  });
  const parsed = parseConfig(text, file, RULE_CATALOG);
  if (parsed.ok) return parsed.value;
  const first = parsed.problems[0]!;
  const more = parsed.problems.length > 1 ? ` (and ${parsed.problems.length - 1} more)` : '';
  throw new AdviseError(
    'config-invalid',
    `${file}:${first.line ?? 1}: ${first.message}${more}`,
    'Run npu-advise config validate for the whole list.',
  );
}

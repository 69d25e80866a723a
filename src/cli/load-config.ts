import { readFile } from 'node:fs/promises';
import { AdviseError } from '../base/errors.ts';
import { type ConfigLayer, mergeLayers, type Parsed, parseConfig, parseConfigLayer, type Unusable } from '../config/parse.ts';
import type { ConfigProblem } from '../config/problems.ts';
import { type Config, DEFAULT_CONFIG } from '../config/schema.ts';
import type { L10n, Lang } from '../model/lang.ts';
import { workflowCommand } from '../render/workflow-command.ts';
import { RULES } from '../rules/index.ts';
import { notKnown } from './usage.ts';

/** Rule ids with the names of their options, for checking thresholds. */
export const RULE_CATALOG: ReadonlyMap<string, readonly string[]> = new Map(RULES.map((r) => [r.id, Object.keys(r.options)]));

async function readConfig(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => {
    throw new AdviseError(
      'config-not-found',
      { en: `${file} cannot be read`, zh: `无法读取 ${file}` },
      { en: 'Give the path of an npu-advisor.yml.', zh: '给出 npu-advisor.yml 的路径。' },
    );
  });
}

function placeOf({ file, line, column }: ConfigProblem): string {
  return [file, ...(line === null ? [] : [line]), ...(column === null ? [] : [column])].join(':');
}

/** Reads and checks a configuration file; without one the defaults. Throws AdviseError that names the line. */
export async function loadConfig(file: string | undefined): Promise<Config> {
  if (file === undefined) return DEFAULT_CONFIG;
  const parsed = parseConfig(await readConfig(file), file, RULE_CATALOG);
  if (parsed.ok) return parsed.value;
  const first = parsed.problems[0]!;
  const rest = parsed.problems.length - 1;
  const more = rest > 0 ? { en: ` (and ${rest} more)`, zh: `（另有 ${rest} 处）` } : { en: '', zh: '' };
  throw new AdviseError(
    'config-invalid',
    { en: `${placeOf(first)}: ${first.message.en}${more.en}`, zh: `${placeOf(first)}：${first.message.zh}${more.zh}` },
    { en: 'Run npu-advise config validate for the whole list.', zh: '执行 npu-advise config validate 查看全部问题。' },
  );
}

export interface ValidateOptions {
  readonly format: string;
  readonly lang: Lang;
}

const FORMATS = ['text', 'json', 'github'];

/**
 * `npu-advise config validate FILE [EXTENDED...]`: the further files are what the first one extends, nearest first, since `_extends` names
 * repositories and nothing is fetched here. Throws AdviseError with every mistake in one line; with a format the list goes to standard
 * output and the exit code says it.
 */
export async function validateConfig(
  files: readonly string[],
  { format, lang }: ValidateOptions,
): Promise<{ readonly out: string; readonly code: number }> {
  if (!FORMATS.includes(format)) throw notKnown('format', format, FORMATS);
  const parsed = await parseChain(files);
  if (format === 'json') {
    const problems = parsed.ok
      ? []
      : parsed.problems.map(({ message, isOutOfReach: _, ...problem }) => ({ ...problem, message: message[lang] }));
    return { out: `${JSON.stringify({ valid: parsed.ok, files, problems }, null, 2)}\n`, code: parsed.ok ? 0 : 2 };
  }
  if (!parsed.ok && format === 'github')
    return { out: parsed.problems.map((problem) => `${annotation(problem, lang)}\n`).join(''), code: 2 };
  if (!parsed.ok) {
    const { problems } = parsed;
    throw new AdviseError(
      'config-invalid',
      {
        en: problems.map((problem) => `${placeOf(problem)}: ${problem.message.en}`).join('; '),
        zh: problems.map((problem) => `${placeOf(problem)}：${problem.message.zh}`).join('；'),
      },
      { en: 'Keys and values are listed in docs/config.md.', zh: '可用的键与取值见 docs/config.zh.md。' },
    );
  }
  return { out: `${said(files, parsed.value, lang)}\n`, code: 0 };
}

function said([file = '', ...extended]: readonly string[], last: string | null, lang: Lang): string {
  const list = extended.join(', ');
  const chain = extended.length === 0 ? '' : lang === 'en' ? ` together with ${list}` : `（与 ${list} 合并后）`;
  const open: L10n = { en: `; what it extends, ${last}, was not given and is not checked`, zh: `；未提供其继承的 ${last}，未检查` };
  const rest = last === null ? '' : open[lang];
  return lang === 'en' ? `${file} is valid${chain}${rest}` : `${file} 有效${chain}${rest}`;
}

/** Checks each file and then all of them laid over each other. The value: what the last one extends, if anything. */
async function parseChain(files: readonly string[]): Promise<Parsed<string | null>> {
  const layers: ConfigLayer[] = [];
  const failed: Unusable[] = [];
  for (const file of files) {
    const layer = parseConfigLayer(await readConfig(file), file, RULE_CATALOG);
    if (layer.ok) layers.push(layer.value);
    else failed.push(layer);
  }
  if (failed.length > 0) return { ok: false, problems: failed.flatMap(({ problems }) => problems), lang: failed[0]!.lang };
  for (const [index, layer] of layers.slice(0, -1).entries()) {
    if (layer.extends !== null) continue;
    const message = { en: 'has no `_extends`, so the files after it do not apply', zh: '没有 `_extends`，其后的文件不会生效' };
    return { ok: false, problems: [{ file: files[index]!, ...layer.extendsPlace, message }], lang: 'en' };
  }
  const merged = mergeLayers(layers, files[0]!);
  return merged.ok ? { ok: true, value: layers.at(-1)?.extends ?? null } : merged;
}

function annotation(problem: ConfigProblem, lang: Lang): string {
  return workflowCommand('error', problem, problem.message[lang].replaceAll('`', ''));
}

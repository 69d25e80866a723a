import { type Document, isMap, isNode, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { quoteLiteral } from '../base/phrase.ts';
import { matchesGlob } from './glob.ts';
import { nearestName } from './nearest.ts';
import { type Config, ConfigSchema, GateConfig, JobConfig, MuteConfig } from './schema.ts';

/** One thing wrong with a settings file. `line` is 1 for the first line and null when no place can be named. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number | null;
  readonly message: string;
}

/** Rules and their option names, for refusing names that do not exist. */
export type RuleCatalog = ReadonlyMap<string, readonly string[]>;

/** The keys a file sets, checked one by one but without defaults, so that files can be laid over each other. */
export interface ConfigLayer {
  readonly values: Readonly<Record<string, unknown>>;
  readonly extends: string | null;
}

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

export const MAX_CONFIG_BYTES = 64 * 1024;
const MAX_PROBLEMS = 20;
const CONFIG_KEYS = Object.keys(ConfigSchema.shape);
const KEYS_AT: Readonly<Record<string, readonly string[]>> = {
  '': CONFIG_KEYS,
  gate: Object.keys(GateConfig.shape),
  'gate.total_saving': ['ms', 'share'],
  'gate.regression': ['ms', 'share'],
  job: Object.keys(JobConfig.shape),
  mute: Object.keys(MuteConfig.shape),
};

function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[], key?: string): number | null {
  for (let depth = path.length; depth >= 0; depth--) {
    const node = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
    if (key !== undefined && depth === path.length && isMap(node)) {
      const pair = node.items.find((item) => isNode(item.key) && String(item.key) === key);
      if (pair !== undefined && isNode(pair.key) && pair.key.range) return lines.linePos(pair.key.range[0]).line;
    }
    if (isNode(node) && node.range && depth > 0) return lines.linePos(node.range[0]).line;
  }
  return null;
}

function unknownName(kind: string, name: string, candidates: readonly string[]): string {
  const nearest = nearestName(name, candidates);
  return `unknown ${kind} ${quoteLiteral(name, 60)}${nearest === null ? '' : `, did you mean ${quoteLiteral(nearest)}?`}`;
}

function describeIssue(issue: z.core.$ZodIssue, file: string, document: Document, lines: LineCounter): ConfigProblem[] {
  if (issue.code === 'unrecognized_keys') {
    const candidates = KEYS_AT[issue.path.filter((part) => typeof part !== 'number').join('.')] ?? [];
    return issue.keys.map((key) => ({
      file,
      line: lineOf(document, lines, issue.path, key),
      message: unknownName('key', key, candidates),
    }));
  }
  const where = issue.path.length === 0 ? 'file' : quoteLiteral(issue.path.map(String).join('.'), 100);
  const last = issue.path.at(-1);
  const line =
    issue.code === 'invalid_key' ? lineOf(document, lines, issue.path.slice(0, -1), String(last)) : lineOf(document, lines, issue.path);
  return [{ file, line, message: `${where}: ${issue.message}` }];
}

function checkRules(values: Config, catalog: RuleCatalog, file: string, document: Document, lines: LineCounter): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const ids = [...catalog.keys()];
  for (const [index, rule] of values.disabled_rules.entries()) {
    if (!catalog.has(rule))
      problems.push({ file, line: lineOf(document, lines, ['disabled_rules', index]), message: unknownName('rule', rule, ids) });
  }
  for (const [index, rule] of (values.gate?.rules ?? []).entries()) {
    if (!catalog.has(rule))
      problems.push({ file, line: lineOf(document, lines, ['gate', 'rules', index]), message: unknownName('rule', rule, ids) });
  }
  for (const [index, { rule }] of values.mute.entries()) {
    if (!ids.some((id) => matchesGlob(rule, id)))
      problems.push({ file, line: lineOf(document, lines, ['mute', index, 'rule']), message: unknownName('rule', rule, ids) });
  }
  for (const [rule, options] of Object.entries(values.thresholds)) {
    const known = catalog.get(rule);
    if (known === undefined) {
      problems.push({ file, line: lineOf(document, lines, ['thresholds'], rule), message: unknownName('rule', rule, ids) });
      continue;
    }
    for (const option of Object.keys(options)) {
      if (known.includes(option)) continue;
      const message = `${unknownName(`option of ${rule}`, option, known)}`;
      problems.push({ file, line: lineOf(document, lines, ['thresholds', rule], option), message });
    }
  }
  return problems;
}

/** Reads one settings file. Nothing of a file with a problem is used. */
export function parseConfigLayer(text: string, file: string, catalog?: RuleCatalog): Parsed<ConfigLayer> {
  const fail = (problems: ConfigProblem[]): Parsed<ConfigLayer> => ({ ok: false, problems: problems.slice(0, MAX_PROBLEMS) });
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) {
    return fail([{ file, line: null, message: `larger than ${MAX_CONFIG_BYTES / 1024} KiB` }]);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  if (document.errors.length > 0) {
    return fail(document.errors.map((e) => ({ file, line: lines.linePos(e.pos[0]).line, message: `not valid YAML: ${e.message}` })));
  }
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: 50 }) ?? {};
  } catch (error) {
    return fail([{ file, line: null, message: `not valid YAML: ${error instanceof Error ? error.message : 'unreadable'}` }]);
  }
  const checked = ConfigSchema.safeParse(raw);
  if (!checked.success) return fail(checked.error.issues.flatMap((issue) => describeIssue(issue, file, document, lines)));
  if (catalog !== undefined) {
    const problems = checkRules(checked.data, catalog, file, document, lines);
    if (problems.length > 0) return fail(problems);
  }
  const values: Record<string, unknown> = {};
  for (const key of CONFIG_KEYS) if (Object.hasOwn(raw as object, key)) values[key] = (raw as Record<string, unknown>)[key];
  return { ok: true, value: { values, extends: checked.data._extends ?? null } };
}

/** Lays files over each other, the first one wins key by key, and fills in the defaults. */
export function mergeLayers(layers: readonly ConfigLayer[]): Config {
  const merged: Record<string, unknown> = {};
  for (const layer of [...layers].reverse()) Object.assign(merged, layer.values);
  delete merged._extends;
  return ConfigSchema.parse(merged);
}

/** Reads one self-contained settings file (the command line, tests). `_extends` is accepted and not followed. */
export function parseConfig(text: string, file: string, catalog?: RuleCatalog): Parsed<Config> {
  const layer = parseConfigLayer(text, file, catalog);
  return layer.ok ? { ok: true, value: mergeLayers([layer.value]) } : layer;
}

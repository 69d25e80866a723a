import { LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import type { Lang } from '../model/lang.ts';
import { matchesGlob } from './glob.ts';
import { jobsOf } from './jobs.ts';
import { type ConfigProblem, describeIssue, nowhere, type Place, placeOf, unknownName, type Written, yamlProblem } from './problems.ts';
import { type Config, ConfigSchema } from './schema.ts';

/** Rules and their option names, for refusing names that do not exist. */
export type RuleCatalog = ReadonlyMap<string, readonly string[]>;

/** The keys a file sets, checked one by one but without defaults, so that files can be laid over each other. */
export interface ConfigLayer {
  readonly values: Readonly<Record<string, unknown>>;
  readonly extends: string | null;
  /** Where `_extends` stands. */
  readonly extendsPlace: Place;
}

export interface Unusable {
  readonly ok: false;
  readonly problems: readonly ConfigProblem[];
  /** The language the file asks for, as far as it can be told. */
  readonly lang: Lang;
}

export type Parsed<T> = { readonly ok: true; readonly value: T } | Unusable;

const MAX_CONFIG_BYTES = 64 * 1024;
const MAX_PROBLEMS = 20;
const CONFIG_KEYS = Object.keys(ConfigSchema.shape);

type RuleSettings = Partial<Pick<Config, 'disabled_rules' | 'gate' | 'thresholds'>>;

/** Rules and options that do not exist. `at`: where the settings of a job begin. */
function checkRules(values: RuleSettings, catalog: RuleCatalog, written: Written, at: readonly string[]): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const ids = [...catalog.keys()];
  const { file } = written;
  const refuse = (rule: string, path: readonly PropertyKey[], isKey = false): void => {
    problems.push({ file, ...placeOf(written, [...at, ...path], isKey), message: unknownName('rule', rule, ids) });
  };
  for (const [index, rule] of (values.disabled_rules ?? []).entries()) {
    if (!catalog.has(rule)) refuse(rule, ['disabled_rules', index]);
  }
  for (const [index, rule] of (values.gate?.rules ?? []).entries()) {
    if (!catalog.has(rule)) refuse(rule, ['gate', 'rules', index]);
  }
  for (const [rule, options] of Object.entries(values.thresholds ?? {})) {
    const known = catalog.get(rule);
    if (known === undefined) {
      refuse(rule, ['thresholds', rule], true);
      continue;
    }
    for (const option of Object.keys(options)) {
      if (known.includes(option)) continue;
      const place = placeOf(written, [...at, 'thresholds', rule, option], true);
      problems.push({ file, ...place, message: unknownName('option', option, known, rule) });
    }
  }
  return problems;
}

function checkAllRules(values: Config, catalog: RuleCatalog, written: Written): ConfigProblem[] {
  const ids = [...catalog.keys()];
  const problems = checkRules(values, catalog, written, []);
  for (const [index, { rule }] of values.mute.entries()) {
    if (ids.some((id) => matchesGlob(rule, id))) continue;
    problems.push({ file: written.file, ...placeOf(written, ['mute', index, 'rule']), message: unknownName('rule', rule, ids) });
  }
  for (const [name, { disabled_rules = [], gate = null, thresholds = {} }] of Object.entries(values.jobs ?? {})) {
    problems.push(...checkRules({ disabled_rules, gate, thresholds }, catalog, written, ['jobs', name]));
  }
  return problems;
}

/** Reads one settings file. Nothing of a file with a problem is used. */
export function parseConfigLayer(text: string, file: string, catalog?: RuleCatalog): Parsed<ConfigLayer> {
  const lang: Lang = /^lang\s*:\s*["']?zh\b/m.test(text.slice(0, MAX_CONFIG_BYTES)) ? 'zh' : 'en';
  const fail = (problems: ConfigProblem[]): Unusable => {
    const inOrder = problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
    return { ok: false, problems: inOrder.slice(0, MAX_PROBLEMS), lang };
  };
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) {
    const limit = `${MAX_CONFIG_BYTES / 1024} KiB`;
    return fail([nowhere(file, `larger than ${limit}`, `超过 ${limit}`)]);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const written = { file, document, lines };
  if (document.errors.length > 0) return fail(document.errors.map((error) => yamlProblem(error, written)));
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: 50 }) ?? {};
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unreadable';
    return fail([nowhere(file, `not valid YAML: ${why}`, `YAML 无效：${why}`)]);
  }
  const checked = ConfigSchema.safeParse(raw);
  if (!checked.success) return fail(withoutEchoes(checked.error.issues).flatMap((issue) => describeIssue(issue, written, raw)));
  if (catalog !== undefined) {
    const problems = checkAllRules(checked.data, catalog, written);
    if (problems.length > 0) return fail(problems);
  }
  const values: Record<string, unknown> = {};
  for (const key of CONFIG_KEYS) if (Object.hasOwn(raw as object, key)) values[key] = (raw as Record<string, unknown>)[key];
  return { ok: true, value: { values, extends: checked.data._extends ?? null, extendsPlace: placeOf(written, ['_extends']) } };
}

/** A mapping with a misspelt key lacks the right one: once said, that is enough. */
function withoutEchoes(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const misspelt = new Set(issues.filter(({ code }) => code === 'unrecognized_keys').map(({ path }) => path.join('.')));
  return issues.filter(({ code, path }) => code !== 'custom' || !misspelt.has(path.join('.')));
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Mappings are laid over each other key by key; a list, a number or null takes the place of what was there. */
function overlay(below: unknown, above: unknown): unknown {
  if (!isMapping(below) || !isMapping(above)) return above;
  const merged = new Map(Object.entries(below));
  for (const [key, value] of Object.entries(above)) merged.set(key, merged.has(key) ? overlay(merged.get(key), value) : value);
  return Object.fromEntries(merged);
}

/** Lays files over each other, the first one wins, and fills in the defaults. `file` is named when together they say too much. */
export function mergeLayers(layers: readonly ConfigLayer[], file: string): Parsed<Config> {
  const all = layers.toReversed().reduce<unknown>((below, { values }) => overlay(below, values), {}) as Record<string, unknown>;
  const { _extends: _, ...merged } = all;
  const checked = ConfigSchema.safeParse(merged);
  if (checked.success) return { ok: true, value: withArtifactsOfJobs(checked.data, Object.hasOwn(merged, 'artifacts')) };
  const message = checked.error.issues[0]?.message ?? '';
  const problem = nowhere(file, `with what it extends: ${message}`, `与所继承的配置合并后：${message}`);
  return { ok: false, problems: [problem], lang: merged.lang === 'zh' ? 'zh' : 'en' };
}

/** Where only jobs say which artifacts are theirs, these are the artifacts of the repository. */
function withArtifactsOfJobs(config: Config, isSaid: boolean): Config {
  if (config.jobs === null || isSaid) return config;
  return { ...config, artifacts: [...new Set(jobsOf(config).flatMap((job) => job.config.artifacts))] };
}

/** Reads one self-contained settings file (the command line, tests). `_extends` is accepted and not followed. */
export function parseConfig(text: string, file: string, catalog?: RuleCatalog): Parsed<Config> {
  const layer = parseConfigLayer(text, file, catalog);
  return layer.ok ? mergeLayers([layer.value], file) : layer;
}

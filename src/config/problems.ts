import { type Document, isCollection, isMap, isNode, type LineCounter, type Node } from 'yaml';
import { z } from 'zod';
import { quoteLiteral } from '../base/phrase.ts';
import type { L10n } from '../model/lang.ts';
import { nearestName } from './nearest.ts';
import { ConfigSchema } from './schema.ts';

/** Where a mistake stands: line and columns are 1 for the first, the last column is part of it; null where no place can be named. */
export interface Place {
  readonly line: number | null;
  readonly column: number | null;
  readonly endColumn: number | null;
}

/** One thing wrong with a settings file. */
export interface ConfigProblem extends Place {
  readonly file: string;
  readonly message: L10n;
  /** Another file cannot be read from here, which need not be the fault of this one. */
  readonly isOutOfReach?: true;
}

const NOWHERE: Place = { line: null, column: null, endColumn: null };

export function nowhere(file: string, en: string, zh: string): ConfigProblem {
  return { file, ...NOWHERE, message: { en, zh } };
}

/** A parsed file, for finding the place of a key or value. */
export interface Written {
  readonly file: string;
  readonly document: Document;
  readonly lines: LineCounter;
}

function placeAt(lines: LineCounter, start: number, end: number): Place {
  const from = lines.linePos(start);
  const to = lines.linePos(Math.max(start, end - 1));
  return { line: from.line, column: from.col, endColumn: to.line === from.line ? Math.max(from.col, to.col) : null };
}

function keyNode(document: Document, path: readonly PropertyKey[]): Node | null {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(parent)) return null;
  const key = parent.items.find((item) => isNode(item.key) && String(item.key) === String(path.at(-1)))?.key;
  return isNode(key) ? key : null;
}

/** Place of the value at a path, or of its key where the value spans lines or is not there; of the nearest that exists above it. */
export function placeOf({ document, lines }: Written, path: readonly PropertyKey[], isKey = false): Place {
  for (let depth = path.length; depth > 0; depth--) {
    const part = path.slice(0, depth);
    const value = document.getIn(part, true);
    const key = keyNode(document, part);
    const node = (isKey && depth === path.length) || !isNode(value) || (isCollection(value) && key !== null) ? key : value;
    if (node?.range) return placeAt(lines, node.range[0], node.range[1]);
  }
  return NOWHERE;
}

export function placeOfOffsets({ lines }: Pick<Written, 'lines'>, start: number, end: number): Place {
  return placeAt(lines, start, end);
}

interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: Shape | boolean;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
}

let schema: Shape | null = null;

/** The mapping a nullable or repeated value is made of. */
function inner(shape: Shape): Shape {
  if (shape.anyOf !== undefined) return inner(shape.anyOf.find((one) => one.properties ?? one.additionalProperties ?? one.items) ?? {});
  return shape;
}

function shapeAt(path: readonly PropertyKey[]): Shape {
  schema ??= z.toJSONSchema(ConfigSchema, { io: 'input' }) as Shape;
  return path.reduce<Shape>((shape, part) => {
    const { properties, additionalProperties, items } = inner(shape);
    if (typeof part === 'number') return items ?? {};
    return properties?.[String(part)] ?? (typeof additionalProperties === 'object' ? additionalProperties : {});
  }, schema);
}

/** Where else a key would be known: `severity` belongs under `gate`. null: nowhere, or in several places. */
function homeOf(key: string, shape: Shape = shapeAt([]), path: readonly string[] = []): string | null {
  const { properties = {} } = inner(shape);
  if (path.length > 0 && Object.hasOwn(properties, key)) return path.join('.');
  for (const [name, child] of Object.entries(properties)) {
    const home = name === 'jobs' ? null : homeOf(key, child, [...path, name]);
    if (home !== null) return home;
  }
  return null;
}

const KIND: Readonly<Record<'key' | 'rule' | 'option', L10n>> = {
  key: { en: 'unknown key', zh: '未知的键' },
  rule: { en: 'unknown rule', zh: '未知的检查项' },
  option: { en: 'unknown option', zh: '未知的选项' },
};

/** A name that does not exist, with the one that was most likely meant. `of`: the rule whose option it would be. */
export function unknownName(kind: keyof typeof KIND, name: string, candidates: readonly string[], of: string | null = null): L10n {
  const nearest = nearestName(name, candidates);
  const quoted = quoteLiteral(name, 60);
  const home = kind === 'key' && nearest === null ? homeOf(name) : null;
  const hint = (en: string, zh: string): L10n => ({ en: `, ${en}`, zh: `，${zh}` });
  const meant =
    nearest !== null
      ? hint(`did you mean ${quoteLiteral(nearest)}?`, `是否想写 ${quoteLiteral(nearest)}？`)
      : home !== null
        ? hint(`it belongs under ${quoteLiteral(home)}`, `应写在 ${quoteLiteral(home)} 之下`)
        : { en: '', zh: '' };
  return {
    en: of === null ? `${KIND[kind].en} ${quoted}${meant.en}` : `unknown option of ${of} ${quoted}${meant.en}`,
    zh: of === null ? `${KIND[kind].zh} ${quoted}${meant.zh}` : `${of} 没有选项 ${quoted}${meant.zh}`,
  };
}

const TYPES: Readonly<Record<string, L10n>> = {
  array: { en: 'must be a list', zh: '应为列表' },
  object: { en: 'must be a mapping of keys and values', zh: '应为键值映射' },
  record: { en: 'must be a mapping of keys and values', zh: '应为键值映射' },
  string: { en: 'must be text', zh: '应为文本' },
  number: { en: 'must be a number', zh: '应为数字' },
  int: { en: 'must be a whole number', zh: '应为整数' },
};

/** The schema's own messages, in Chinese. */
const OWN_ZH: Readonly<Record<string, string>> = {
  'must be a rule id such as dataloader-stall': '应为检查项名称，例如 dataloader-stall',
  'must be the name of an option': '应为选项名',
  'must be a short name of a-z, 0-9, - and _': '应为由 a-z、0-9、-、_ 组成的短名称',
  'must be repository, owner/repository or owner/repository:path': '应为 repository、owner/repository 或 owner/repository:path',
  'needs ms or share': '需要 ms 或 share',
  'needs severity, total_saving, regression or rules': '需要 severity、total_saving、regression 或 rules',
  'needs at least one job': '至少需要一个作业',
  'names more than 20 jobs': '作业超过 20 个',
};

function own(message: string): L10n {
  return { en: message, zh: OWN_ZH[message] ?? message };
}

function list(values: readonly unknown[], separator: string): string {
  return values.map((value) => quoteLiteral(String(value), 40)).join(separator);
}

function sizeMessage(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): L10n {
  const isSmall = issue.code === 'too_small';
  const limit = String(isSmall ? issue.minimum : issue.maximum);
  if (issue.origin === 'array') {
    return isSmall
      ? { en: `needs at least ${limit} ${limit === '1' ? 'entry' : 'entries'}`, zh: `至少需要 ${limit} 项` }
      : { en: `takes at most ${limit} entries`, zh: `最多 ${limit} 项` };
  }
  if (issue.origin === 'string') {
    return isSmall ? { en: 'must not be empty', zh: '不能为空' } : { en: `takes at most ${limit} characters`, zh: `最多 ${limit} 个字符` };
  }
  if (isSmall) {
    return issue.inclusive
      ? { en: `must be ${limit} or more`, zh: `应不小于 ${limit}` }
      : { en: `must be more than ${limit}`, zh: `应大于 ${limit}` };
  }
  return issue.inclusive
    ? { en: `must be ${limit} or less`, zh: `应不大于 ${limit}` }
    : { en: `must be less than ${limit}`, zh: `应小于 ${limit}` };
}

function messageOf(issue: z.core.$ZodIssue, value: unknown): L10n {
  switch (issue.code) {
    case 'invalid_value': {
      const nearest = typeof value === 'string' ? nearestName(value, issue.values.map(String)) : null;
      return {
        en: `must be one of ${list(issue.values, ', ')}${nearest === null ? '' : `, did you mean ${quoteLiteral(nearest)}?`}`,
        zh: `应为 ${list(issue.values, '、')} 之一${nearest === null ? '' : `，是否想写 ${quoteLiteral(nearest)}？`}`,
      };
    }
    case 'invalid_type':
      return TYPES[issue.expected] ?? own(issue.message);
    case 'too_small':
    case 'too_big':
      return sizeMessage(issue);
    case 'invalid_key':
      return own(issue.issues[0]?.message ?? issue.message);
    case 'invalid_format':
      return issue.format === 'date' ? { en: 'must be a day such as 2027-01-31', zh: '应为日期，例如 2027-01-31' } : own(issue.message);
    default:
      return own(issue.message);
  }
}

/** What a schema says against a file, in both languages, each with its place. */
export function describeIssue(issue: z.core.$ZodIssue, written: Written, raw: unknown): ConfigProblem[] {
  const { file } = written;
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys(inner(shapeAt(issue.path)).properties ?? {});
    return issue.keys.map((key) => ({
      file,
      ...placeOf(written, [...issue.path, key], true),
      message: unknownName('key', key, known),
    }));
  }
  const value = issue.path.reduce<unknown>((of, part) => (of as Record<PropertyKey, unknown> | undefined)?.[part], raw);
  const message = messageOf(issue, value);
  const where = issue.path.length === 0 ? null : quoteLiteral(issue.path.map(String).join('.'), 100);
  return [
    {
      file,
      ...placeOf(written, issue.path, issue.code === 'invalid_key'),
      message: { en: `${where ?? 'file'}: ${message.en}`, zh: `${where ?? '文件'}：${message.zh}` },
    },
  ];
}

const YAML_ZH: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: '同一个键写了两次',
  TAB_AS_INDENT: '不能用制表符缩进',
  BAD_INDENT: '缩进不正确',
  MISSING_CHAR: '缺少字符',
  UNEXPECTED_TOKEN: '此处不应出现该内容',
  MULTIPLE_DOCS: '只能有一个 YAML 文档',
  BLOCK_AS_IMPLICIT_KEY: '此处不能嵌套映射',
  MULTILINE_IMPLICIT_KEY: '键不能跨行',
};

export function yamlProblem(
  error: { readonly code: string; readonly message: string; readonly pos: readonly [number, number] },
  written: Written,
): ConfigProblem {
  const known = YAML_ZH[error.code];
  return {
    file: written.file,
    ...placeOfOffsets(written, error.pos[0], error.pos[1]),
    message: {
      en: `not valid YAML: ${error.message}`,
      zh: `YAML 无效：${known === undefined ? error.message : `${known}（${error.message}）`}`,
    },
  };
}

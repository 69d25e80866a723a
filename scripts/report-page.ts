/* docs/report-format.md and its Chinese twin: every field of report.json, from its schema. */
import { z } from 'zod';
import type { Lang } from '../src/model/lang.ts';
import { Report } from '../src/model/report.ts';
import { zh } from './chinese-pages.ts';

interface Node {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
  readonly prefixItems?: readonly Node[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
}

/** A node without its null. */
function bare(outer: Node): { readonly node: Node; readonly isNullable: boolean } {
  if (Array.isArray(outer.type))
    return { node: { ...outer, type: outer.type.find((type) => type !== 'null')! }, isNullable: outer.type.includes('null') };
  const rest = outer.anyOf?.filter((option) => option.type !== 'null') ?? [];
  if (rest.length !== 1 || rest.length === outer.anyOf!.length) return { node: outer, isNullable: false };
  const description = outer.description ?? rest[0]!.description;
  return { node: { ...rest[0]!, ...(description === undefined ? {} : { description }) }, isNullable: true };
}

function typeOf(node: Node): string {
  if (node.const !== undefined) return `\`${JSON.stringify(node.const)}\``;
  if (node.enum !== undefined) return node.enum.map((value) => `\`${value}\``).join(', ');
  if (node.prefixItems !== undefined) return `[${node.prefixItems.map((item) => typeOf(bare(item).node)).join(', ')}]`;
  if (node.type === 'array') return `list of ${typeOf(bare(node.items ?? {}).node)}`;
  return node.type === undefined ? 'any' : node.type === 'integer' ? 'number' : String(node.type);
}

/** The unit is in the name of the field; what a name does not tell has none. */
function unitOf(path: string): string {
  const name = path.split('.').at(-1)!.replace('[]', '');
  if (/Us$/.test(name)) return 'µs';
  if (
    /Ms$|^perStepMs|Ms(PerStep)?\b/.test(name) ||
    /(perStepMs|claimedMsPerStep|acknowledged\.saving)\.(floor|likely|ceiling)$/.test(path) ||
    path === 'comparison.interval'
  )
    return 'ms';
  if (/[sS]hare/.test(name)) return 'share';
  if (/PerSecond$/.test(name)) return 'per second';
  if (name === 'bytes') return 'bytes';
  return '';
}

interface Row {
  readonly path: string;
  readonly type: string;
  readonly unit: string;
  readonly may: string;
  readonly description: string;
}

function rows(prefix: string, name: string, outer: Node, isRequired: boolean): Row[] {
  const { node, isNullable } = bare(outer);
  const may = [isNullable ? 'null' : '', isRequired ? '' : 'absent'].filter((word) => word !== '').join(' or ');
  const item = node.type === 'array' ? bare(node.items ?? {}).node : null;
  const inside = item?.properties !== undefined ? item : node.properties !== undefined ? node : null;
  const path = `${prefix}${name}${item === null ? '' : '[]'}`;
  const type = inside === null ? typeOf(node) : item === null ? 'object' : 'list of objects';
  const own: Row = { path, type, unit: unitOf(path), may, description: outer.description ?? node.description ?? '' };
  if (inside === null) return [own];
  return [
    own,
    ...Object.entries(inside.properties!).flatMap(([key, child]) => rows(`${path}.`, key, child, inside.required?.includes(key) ?? false)),
  ];
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replace(/\s+/g, ' ');
}

const TYPES: Readonly<Record<string, string>> = {
  string: '字符串',
  number: '数',
  boolean: '布尔值',
  object: '对象',
  any: '任意',
  objects: '对象',
};
const UNITS: Readonly<Record<string, string>> = { share: '占比', bytes: '字节', 'per second': '每秒' };
const MAY: Readonly<Record<string, string>> = { absent: '不出现', 'null or absent': 'null 或不出现' };

/** A type outside its code spans. */
function typeInChinese(type: string): string {
  return type
    .split(/(`[^`]*`)/)
    .map((part) =>
      part.startsWith('`')
        ? part
        : part
            .replaceAll(/\b(string|number|boolean|objects?|any)\b/g, (word) => TYPES[word]!)
            .replaceAll('list of ', '列表：')
            .replaceAll(', ', '、'),
    )
    .join('');
}

function inLang(row: Row, lang: Lang): Row {
  if (lang === 'en') return row;
  const { path, type, unit, may, description } = row;
  return { path, type: typeInChinese(type), unit: UNITS[unit] ?? unit, may: MAY[may] ?? may, description: zh(description) };
}

const HEAD = {
  en: '| field | type | unit | may be | what it is |',
  zh: '| 字段 | 类型 | 单位 | 可为 | 是什么 |',
};

function table(list: readonly Row[], lang: Lang): string {
  const lines = list
    .map((row) => inLang(row, lang))
    .map((row) => `| \`${row.path}\` | ${cell(row.type)} | ${row.unit} | ${row.may} | ${cell(row.description)} |`);
  return `${HEAD[lang]}\n|---|---|---|---|---|\n${lines.join('\n')}`;
}

export function reportPage(header: string, lang: Lang): string {
  const schema = z.toJSONSchema(Report) as Node;
  const all = Object.entries(schema.properties!).map(([name, node]) => rows('', name, node, schema.required?.includes(name) ?? false));
  const flat = all.filter((list) => list.length === 1).flat();
  const nested = all.filter((list) => list.length > 1);
  const top = table(flat, lang);
  const parts = nested
    .map((list) => ({ path: list[0]!.path, description: inLang(list[0]!, lang).description, table: table(list.slice(1), lang) }))
    .map((part) => `## \`${part.path}\`\n\n${part.description === '' ? '' : `${part.description}\n\n`}${part.table}`)
    .join('\n\n');
  const comment = `<!-- ${header} src/model/report.ts. Do not edit. -->`;
  return lang === 'zh' ? inChinese(comment, top, parts) : inEnglish(comment, top, parts);
}

function inEnglish(comment: string, top: string, parts: string): string {
  return `${comment}
# report.json

[中文](report-format.zh.md)

What \`npu-advise analyze PATH --format json\` writes, and all that comment, check, page and SARIF are made of. [Schema](../schema/report.schema.json). Other tools may rely on it:
a field that is here stays, new ones may come. \`schema\` names the version.

- Times are **ms** unless a name ends in \`Us\` (µs). Shares are of the step, 0 to 1.
- Ranks are global ranks. An unknown rank is null, never 0. What is missing is null, never 0.
- Texts are prose in the language of \`lang\`. Text between backticks is a name from the profile or the code.
- \`likely\` is by how much the median step falls when this cause, and nothing else, is removed; \`floor\` and \`ceiling\` bound it. Savings of several causes do not add up: \`totals\` does it.
- \`ranks\` of a finding are where the cause sits, not who suffers.

\`\`\`sh
npx npu-advise analyze path/to/profiles --format json --out report.json
node -p 'JSON.parse(require("fs").readFileSync("report.json")).findings.map((f) => f.title)'
\`\`\`

## Top level

${top}

${parts}

## \`views\`

Data for pictures, optional, and the one part that may change with any version: \`idleAccount\`, \`gapHistogram\`, \`waits\`, \`arrivals\`, \`clock\`, \`replay\`, \`operators\`, \`memory\`, \`input\`, \`kernels\`, \`links\`, \`transfers\`, \`timeline\` and others.

## Exit codes

0: gate passed, or there is none. 1: gate failed. 2: the input or the command line cannot be used; one line on standard error says why.
`;
}

function inChinese(comment: string, top: string, parts: string): string {
  return `${comment}
# report.json

[English](report-format.md)

\`npu-advise analyze PATH --format json\` 写出的内容；评论、检查、页面与 SARIF 都由它得出。[Schema](../schema/report.schema.json)。其他工具可以依赖它：已有的字段会保留，可能增加新的字段。\`schema\` 写明版本。

- 时间的单位是 **ms**，名称以 \`Us\` 结尾的除外（µs）。占比相对于迭代，0 到 1。
- 卡序号是全局的。未知的卡为 null，绝不为 0。缺失的数据为 null，绝不为 0。
- 文案是 \`lang\` 所示语言的文字。反引号之间是来自 profile 或代码的名称。
- \`likely\` 是只去掉这一个原因时，迭代耗时中位数减少多少；\`floor\` 与 \`ceiling\` 是它的下限与上限。多个原因的可省时间不能相加：合计见 \`totals\`。
- 原因的 \`ranks\` 是原因所在的卡，不是受影响的卡。

\`\`\`sh
npx npu-advise analyze path/to/profiles --format json --out report.json
node -p 'JSON.parse(require("fs").readFileSync("report.json")).findings.map((f) => f.title)'
\`\`\`

## 顶层

${top}

${parts}

## \`views\`

供绘图用的数据，可省略，也是唯一可能随版本改变的部分：\`idleAccount\`、\`gapHistogram\`、\`waits\`、\`arrivals\`、\`clock\`、\`replay\`、\`operators\`、\`memory\`、\`input\`、\`kernels\`、\`links\`、\`transfers\`、\`timeline\` 等。

## 退出码

0：门禁通过，或没有门禁。1：门禁不通过。2：输入或命令行无法使用；标准错误中有一行写明原因。
`;
}

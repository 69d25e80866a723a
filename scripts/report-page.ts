/* docs/report-format.md: every field of report.json, from its schema. */
import { z } from 'zod';
import { Report } from '../src/model/report.ts';

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

function table(list: readonly Row[]): string {
  const lines = list.map((row) => `| \`${row.path}\` | ${cell(row.type)} | ${row.unit} | ${row.may} | ${cell(row.description)} |`);
  return `| field | type | unit | may be | what it is |\n|---|---|---|---|---|\n${lines.join('\n')}`;
}

export function reportPage(header: string): string {
  const schema = z.toJSONSchema(Report) as Node;
  const all = Object.entries(schema.properties!).map(([name, node]) => rows('', name, node, schema.required?.includes(name) ?? false));
  const flat = all.filter((list) => list.length === 1).flat();
  const nested = all.filter((list) => list.length > 1);
  return `<!-- ${header} src/model/report.ts. Do not edit. -->
# report.json

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

${table(flat)}

${nested.map((list) => `## \`${list[0]!.path}\`\n\n${list[0]!.description === '' ? '' : `${list[0]!.description}\n\n`}${table(list.slice(1))}`).join('\n\n')}

## \`views\`

Data for pictures, optional, and the one part that may change with any version: \`idleAccount\`, \`gapHistogram\`, \`waits\`, \`arrivals\`, \`clock\`, \`replay\`, \`operators\`, \`memory\`, \`input\`, \`kernels\`, \`links\`, \`transfers\`, \`timeline\` and others.

## Exit codes

0: gate passed, or there is none. 1: gate failed. 2: the input or the command line cannot be used; one line on standard error says why.
`;
}

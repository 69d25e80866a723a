/* As much of Go's templates and of Helm's functions as the chart uses. Whatever it does not know is an error, so that nothing is passed over. */
import { stringify } from 'yaml';

type Value = unknown;
interface Scope {
  readonly dot: Value;
  readonly variables: ReadonlyMap<string, Value>;
}
type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly pipe: string }
  | { readonly kind: 'set'; readonly name: string; readonly pipe: string }
  | {
      readonly kind: 'if' | 'with' | 'range';
      readonly pipe: string;
      readonly names: readonly string[];
      readonly body: Node[];
      readonly otherwise: Node[];
    };

const isTrue = (value: Value): boolean =>
  Array.isArray(value) ? value.length > 0 : typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);

/** Cuts a text into its actions and what stands between them, with `{{-` and `-}}` eating white space. */
function cut(text: string): { action: boolean; text: string }[] {
  const parts: { action: boolean; text: string }[] = [];
  let rest = text;
  for (let match = /\{\{(-?)\s*([\s\S]*?)\s*(-?)\}\}/.exec(rest); match !== null; match = /\{\{(-?)\s*([\s\S]*?)\s*(-?)\}\}/.exec(rest)) {
    const before = rest.slice(0, match.index);
    parts.push({ action: false, text: match[1] === '-' ? before.trimEnd() : before }, { action: true, text: match[2]! });
    rest = rest.slice(match.index + match[0].length);
    if (match[3] === '-') rest = rest.trimStart();
  }
  return [...parts, { action: false, text: rest }];
}

export class Chart {
  readonly #templates = new Map<string, Node[]>();

  /** Reads the named templates of a file. */
  define(file: string): void {
    for (const [, name, body] of file.matchAll(/\{\{-?\s*define "([^"]+)"\s*-?\}\}([\s\S]*?)\{\{-?\s*end\s*-?\}\}/g)) {
      this.#templates.set(name!, parse(body!.trim()));
    }
  }

  render(file: string, dot: Value): string {
    return this.#run(parse(file), { dot, variables: new Map([['$', dot]]) });
  }

  #run(nodes: readonly Node[], scope: Scope): string {
    let out = '';
    let { variables } = scope;
    for (const node of nodes) {
      const at = { dot: scope.dot, variables };
      if (node.kind === 'text') out += node.text;
      else if (node.kind === 'print') out += String(this.#pipe(node.pipe, at));
      else if (node.kind === 'set') variables = new Map([...variables, [node.name, this.#pipe(node.pipe, at)]]);
      else out += this.#block(node, at);
    }
    return out;
  }

  #block(node: Extract<Node, { kind: 'if' | 'with' | 'range' }>, scope: Scope): string {
    const value = this.#pipe(node.pipe, scope);
    if (!isTrue(value)) return this.#run(node.otherwise, scope);
    if (node.kind === 'if') return this.#run(node.body, scope);
    if (node.kind === 'with') return this.#run(node.body, { ...scope, dot: value });
    const entries: [Value, Value][] = Array.isArray(value)
      ? [...value.entries()]
      : Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1));
    return entries
      .map(([key, item]) => {
        const named = node.names.length === 2 ? [key, item] : [item];
        return this.#run(node.body, {
          dot: item,
          variables: new Map([...scope.variables, ...node.names.map((name, i) => [name, named[i]] as const)]),
        });
      })
      .join('');
  }

  #pipe(text: string, scope: Scope): Value {
    let value: Value;
    for (const [index, call] of split(text, '|').entries()) value = this.#call(call, scope, index === 0 ? [] : [value]);
    return value;
  }

  #call(text: string, scope: Scope, last: readonly Value[]): Value {
    const [first = '', ...rest] = split(text, ' ');
    const args = (): Value[] => [...rest.map((part) => this.#value(part, scope)), ...last];
    const functions: Record<string, (...given: Value[]) => Value> = {
      include: (name, dot) => {
        const template = this.#templates.get(String(name));
        if (template === undefined) throw new Error(`no template ${String(name)}`);
        return this.#run(template, { dot, variables: new Map([['$', dot]]) });
      },
      nindent: (count, value) => `\n${String(value).replace(/^/gm, ' '.repeat(Number(count)))}`,
      quote: (value) => JSON.stringify(String(value)),
      toYaml: (value) => stringify(value).trimEnd(),
      printf: (format, ...values) => String(format).replaceAll('%s', () => String(values.shift())),
      trunc: (count, value) => String(value).slice(0, Number(count)),
      trimSuffix: (suffix, value) => (String(value).endsWith(String(suffix)) ? String(value).slice(0, -String(suffix).length) : value),
      default: (otherwise, value) => (isTrue(value) ? value : otherwise),
      index: (of, key) => (of as Record<string, Value>)[String(key)],
      list: (...items) => items,
      dict: (...items) => Object.fromEntries(items.flatMap((key, i) => (i % 2 === 0 ? [[key, items[i + 1]]] : []))),
      eq: (a, b) => a === b,
    };
    const call = functions[first];
    if (call !== undefined) return call(...args());
    if (rest.length + last.length > 0) throw new Error(`no function ${first}`);
    return this.#value(first, scope);
  }

  #value(text: string, scope: Scope): Value {
    if (text.startsWith('"')) return JSON.parse(text);
    if (/^-?\d+$/.test(text)) return Number(text);
    if (text.startsWith('(')) return this.#pipe(text.slice(1, -1), scope);
    const [, name = '', path = ''] = /^(\$\w*)?((?:\.\w+)*|\.)$/.exec(text) ?? [];
    if (name === '' && path === '') throw new Error(`cannot read ${text}`);
    if (name !== '' && !scope.variables.has(name)) throw new Error(`no variable ${name}`);
    let value = name === '' ? scope.dot : scope.variables.get(name);
    for (const key of path.split('.').filter(Boolean)) {
      // Helm's strict mode: a value that values.yaml does not have is a mistake of the chart.
      if (typeof value !== 'object' || value === null || !(key in value)) throw new Error(`no value ${text}`);
      value = (value as Record<string, Value>)[key];
    }
    return value;
  }
}

/** Splits outside of quotes and brackets. */
function split(text: string, at: '|' | ' '): string[] {
  const parts = [''];
  let depth = 0;
  let isQuoted = false;
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted;
    if (!isQuoted) depth += character === '(' ? 1 : character === ')' ? -1 : 0;
    if (character === at && depth === 0 && !isQuoted) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

function parse(text: string): Node[] {
  const parts = cut(text);
  let at = 0;
  function block(): { nodes: Node[]; end: string } {
    const nodes: Node[] = [];
    for (; at < parts.length; at++) {
      const { action, text: of } = parts[at]!;
      if (!action) {
        if (of !== '') nodes.push({ kind: 'text', text: of });
        continue;
      }
      if (of.startsWith('/*')) continue;
      if (of === 'end' || of === 'else') return { nodes, end: of };
      const [, kind = '', head = ''] = /^(if|with|range)\s+([\s\S]+)$/.exec(of) ?? [];
      if (kind !== '') {
        const [, names = '', pipe = head] = /^((?:\$\w+\s*,\s*)?\$\w+)\s*:=\s*([\s\S]+)$/.exec(head) ?? [];
        at++;
        const body = block();
        let otherwise: Node[] = [];
        if (body.end === 'else') {
          at++;
          otherwise = block().nodes;
        }
        nodes.push({
          kind: kind as 'if',
          pipe,
          names: names
            .split(',')
            .map((name) => name.trim())
            .filter(Boolean),
          body: body.nodes,
          otherwise,
        });
        continue;
      }
      const [, name, pipe] = /^(\$\w+)\s*:=\s*([\s\S]+)$/.exec(of) ?? [];
      nodes.push(name === undefined ? { kind: 'print', pipe: of } : { kind: 'set', name, pipe: pipe! });
    }
    return { nodes, end: '' };
  }
  return block().nodes;
}

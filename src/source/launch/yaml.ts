import { isMap, isScalar, isSeq, type Node, type Pair, parseAllDocuments, type Scalar } from 'yaml';
import { type Assignment, shellAssignments } from './shell.ts';

/** Nodes looked at in one file. Workflows and compose files have a few hundred. */
const MAX_NODES = 20_000;
/** A parser needs a stack frame per level. */
const MAX_INDENT = 200;

/** Keys whose text is a shell script. */
const SCRIPTS = new Set(['run', 'script', 'scripts', 'command', 'entrypoint', 'args', 'setup', 'shell', 'cmd', 'inputs']);

/** Variables in workflow, compose, Kubernetes and job files: maps, `X=1` lists, `name`/`value` pairs, and scripts. */
export function yamlAssignments(text: string): Assignment[] {
  if (text.split('\n').some((line) => /^[ \t]*[[{]{40}/.test(line) || line.search(/\S/) > MAX_INDENT)) return [];
  const found: Assignment[] = [];
  let left = MAX_NODES;
  const visit = (node: unknown, key: string | null): void => {
    if (--left < 0) return;
    if (isMap(node)) {
      const named = namedValue(node.items as Pair[]);
      if (named) found.push(...assignment(text, named.name, named.value));
      for (const pair of node.items) {
        const name = isScalar(pair.key) ? String(pair.key.value) : '';
        if (isScalar(pair.value) && /^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/.test(name)) found.push(...assignment(text, name, pair.value));
        else visit(pair.value, name);
      }
    } else if (isSeq(node)) for (const item of node.items) visit(item, key);
    else if (isScalar(node) && typeof node.value === 'string') found.push(...scalar(text, node, key));
  };
  for (const document of parseAllDocuments(text, { strict: false, uniqueKeys: false, logLevel: 'silent' }) as Iterable<{
    contents?: Node | null;
  }>)
    visit(document.contents, null);
  return found.sort((a, b) => a.start - b.start);
}

function namedValue(items: readonly Pair[]): { name: string; value: Scalar } | null {
  const of = (wanted: string) => items.find(({ key }) => isScalar(key) && key.value === wanted)?.value;
  const [name, value] = [of('name'), of('value')];
  if (!isScalar(name) || !isScalar(value) || typeof name.value !== 'string' || !/^[A-Za-z_]\w*$/.test(name.value)) return null;
  return { name: name.value, value };
}

/** What a scalar occupies in the file, without its quotes; null for blocks. */
function plainRange(text: string, node: Scalar): [start: number, end: number] | null {
  if (!node.range) return null;
  const [start, end] = node.range;
  if (text[start] === '"' || text[start] === "'") return [start + 1, end - 1];
  return text[start] === '|' || text[start] === '>' ? null : [start, end];
}

function assignment(text: string, name: string, node: Scalar): Assignment[] {
  const range = plainRange(text, node);
  if (range === null) return [];
  return [{ name, value: text.slice(...range), start: range[0], end: range[1], isDefault: false, isDebug: false }];
}

function scalar(text: string, node: Scalar, key: string | null): Assignment[] {
  const range = plainRange(text, node);
  const isScript = SCRIPTS.has(key ?? '');
  if (range === null) {
    const body = node.range ? text.indexOf('\n', node.range[0]) : -1;
    return body === -1 || !isScript ? [] : shellAssignments(text, body + 1, node.range![1]);
  }
  const pair = /^([A-Z][A-Z0-9]*_[A-Z0-9_]+)=(\S*)$/.exec(text.slice(...range));
  if (pair && !isScript) {
    const start = range[0] + pair[1]!.length + 1;
    return [{ name: pair[1]!, value: pair[2]!, start, end: range[1], isDefault: false, isDebug: false }];
  }
  return isScript ? shellAssignments(text, ...range) : [];
}

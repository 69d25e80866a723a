import { argumentOf, findMethodCalls } from '../calls.ts';
import { namesOf, resolveName } from '../names.ts';
import { descend, type PyModule, type PyNode, partsOf, textOf } from '../syntax-tree.ts';
import type { Assignment } from './shell.ts';

const SETTERS = ['setdefault', 'putenv', 'update'];

/** `os.environ["X"] = "1"`, `setdefault`, `putenv`, and `"X": "1"` in a dictionary for another process. */
export function pythonAssignments(module: PyModule): Assignment[] {
  const names = namesOf(module);
  const found: Assignment[] = [];
  const take = (name: PyNode, value: PyNode | undefined, isDefault: boolean): void => {
    const variable = literalOf(module, name);
    const inner = value === undefined ? null : valueRange(module, value);
    if (variable === null || inner === null) return;
    found.push({
      name: variable,
      value: module.text.slice(...inner),
      start: inner[0],
      end: inner[1],
      isDefault,
      isDebug: isDebugging(module, name),
    });
  };
  for (const node of descend(module.root)) {
    if (node.kind === 'assignment') {
      const [target, value] = partsOf(node);
      if (target?.kind !== 'subscript' || value === undefined) continue;
      const [object, index] = partsOf(target);
      if (object && index && isEnvironment(module, resolveName(names, object).names, object)) take(index, value, false);
    } else if (node.kind === 'pair') {
      const [key, value] = partsOf(node);
      if (key && /^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/.test(literalOf(module, key) ?? '')) take(key, value, false);
    }
  }
  for (const call of findMethodCalls(module, SETTERS)) {
    const [object, method] = partsOf(call.node.children[0]!);
    if (object === undefined || method === undefined) continue;
    const setter = textOf(module, method);
    if (setter !== 'putenv' && !isEnvironment(module, resolveName(names, object).names, object)) continue;
    if (setter === 'update') {
      for (const { keyword, value } of call.arguments) if (keyword !== null && /^[A-Z]/.test(keyword)) takeKeyword(keyword, value);
      continue;
    }
    const [name, value] = [argumentOf(call, 'key', 0), argumentOf(call, 'value', 1)];
    if (name && value) take(name.value, value.value, setter === 'setdefault');
  }
  return found.sort((a, b) => a.start - b.start);

  function takeKeyword(name: string, value: PyNode): void {
    const inner = valueRange(module, value);
    if (inner)
      found.push({
        name,
        value: module.text.slice(...inner),
        start: inner[0],
        end: inner[1],
        isDefault: false,
        isDebug: isDebugging(module, value),
      });
  }
}

function isEnvironment(module: PyModule, candidates: readonly string[], object: PyNode): boolean {
  return candidates.includes('os.environ') || /(^|\.)(env|environ|\w+_env|env_vars)$/.test(textOf(module, object));
}

/** The text of a plain string; null for anything else, f-strings included. */
function literalOf(module: PyModule, node: PyNode): string | null {
  return node.kind === 'string' ? (/^(["'])([^"'\\{}\n]*)\1$/.exec(textOf(module, node))?.[2] ?? null) : null;
}

/** Where a string's text or a number stands; `str(1)` counts as 1. */
function valueRange(module: PyModule, node: PyNode): [number, number] | null {
  if (node.kind === 'string') return literalOf(module, node) === null ? null : [node.start + 1, node.end - 1];
  if (node.kind === 'integer') return [node.start, node.end];
  const list = node.kind === 'call' && textOf(module, node.children[0]!) === 'str' ? node.children.at(-1) : undefined;
  const only = list?.kind === 'argument_list' ? partsOf(list) : [];
  return only.length === 1 && only[0]!.kind === 'integer' ? [only[0]!.start, only[0]!.end] : null;
}

/** Inside `if debug:` or a function that says so. */
function isDebugging(module: PyModule, node: PyNode): boolean {
  for (let at = node.parent; at !== null; at = at.parent) {
    const isBlock = at.kind === 'if_statement' || at.kind === 'elif_clause' || at.kind === 'function_definition';
    const head = isBlock ? partsOf(at)[0] : undefined;
    if (head && /debug/i.test(textOf(module, head))) return true;
  }
  return false;
}

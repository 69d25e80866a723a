import { withoutTrailing } from '../base/endings.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { argumentOf, describeCalls, type PyCall } from './calls.ts';
import { definitionOf } from './imports.ts';
import { assignedValue, type Binding, bindingsFor, namesOf, resolveName } from './names.ts';
import {
  argparseDefinitions,
  type Definition,
  dataclassDefinitions,
  fieldOf,
  isDataclass,
  literalString,
  type Option,
  type SourcePlace,
  yamlFile,
  yamlValue,
} from './options.ts';
import { pythonFilesWith } from './python-files.ts';
import { isAside } from './readable-paths.ts';
import { ascend, descend, type PyModule, type PyNode, partsOf, spanOf, textOf } from './syntax-tree.ts';

export type Constant = string | number | boolean | null;

/** What an expression is when the program runs, as far as the repository alone tells. */
export type Value =
  | { readonly kind: 'literal'; readonly constant: Constant; readonly at: SourcePlace }
  | {
      readonly kind: 'option';
      readonly option: Option;
      /** Its default; undefined when it has none that can be read, or when the code computes with it. */
      readonly constant: Constant | undefined;
    }
  | { readonly kind: 'unknown' };

/** What a call receives for one parameter, through `**kwargs` and the wrappers around the call. */
export type Given =
  | { readonly kind: 'given'; readonly value: Value; readonly module: PyModule; readonly node: PyNode }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown' };

const UNKNOWN = { kind: 'unknown' } as const;
const ABSENT = { kind: 'absent' } as const;

/** Expressions looked at for one answer. Ordinary code needs a dozen; a hostile chain ends here. */
const MAX_STEPS = 400;
const MAX_CALLERS = 24;

interface Search {
  readonly tree: SourceTree;
  steps: number;
  /** Nodes under way: meeting one again is a cycle. */
  readonly open: Set<PyNode>;
}

/** The value of an expression. */
export function readValue(tree: SourceTree, module: PyModule, node: PyNode): Value {
  return evaluate({ tree, steps: 0, open: new Set() }, module, node);
}

/** The argument a call gets by keyword, or by position where the signature allows it. */
export function givenTo(tree: SourceTree, module: PyModule, call: PyCall, keyword: string, position: number | null = null): Given {
  return given({ tree, steps: 0, open: new Set() }, module, call, keyword, position);
}

function evaluate(search: Search, module: PyModule, node: PyNode): Value {
  if (++search.steps > MAX_STEPS || search.open.has(node)) return UNKNOWN;
  search.open.add(node);
  try {
    return expression(search, module, node);
  } finally {
    search.open.delete(node);
  }
}

function expression(search: Search, module: PyModule, node: PyNode): Value {
  const constant = constantOf(module, node);
  if (constant !== undefined) return { kind: 'literal', constant, at: placeOf(module, node) };
  switch (node.kind) {
    case 'parenthesized_expression':
      return evaluate(search, module, partsOf(node)[0] ?? node);
    case 'identifier':
      return named(search, module, node);
    case 'attribute':
      return member(search, module, node);
    case 'subscript':
      return item(search, module, node);
    case 'call':
      return called(search, module, node);
    case 'boolean_operator':
    case 'binary_operator':
    case 'unary_operator':
      return computed(search, module, node);
    case 'conditional_expression': {
      const [yes, , no] = partsOf(node);
      return yes && no ? agreed([evaluate(search, module, yes), evaluate(search, module, no)]) : UNKNOWN;
    }
    default:
      return UNKNOWN;
  }
}

function placeOf(module: PyModule, node: PyNode): SourcePlace {
  return { file: module.path, line: spanOf(module, node).startLine };
}

/** The value of a literal; undefined for anything else. */
function constantOf(module: PyModule, node: PyNode): Constant | undefined {
  const text = textOf(module, node);
  switch (node.kind) {
    case 'integer':
      return /^[\d_]{1,15}$|^0[xob][\da-f_]{1,12}$/i.test(text) ? Number(text.replaceAll('_', '')) : undefined;
    case 'float':
      return Number.isFinite(Number(text.replaceAll('_', ''))) ? Number(text.replaceAll('_', '')) : undefined;
    case 'true':
      return true;
    case 'false':
      return false;
    case 'none':
      return null;
    case 'string':
      return literalString(module, node) ?? undefined;
    case 'unary_operator': {
      const inner = partsOf(node)[0];
      const value = inner && text.startsWith('-') ? constantOf(module, inner) : undefined;
      return typeof value === 'number' ? -value : undefined;
    }
    default:
      return undefined;
  }
}

/** The one value all of them are; unknown when they differ or one is unknown. */
function agreed(values: readonly Value[]): Value {
  const [first] = values;
  if (first === undefined || first.kind === 'unknown') return UNKNOWN;
  return values.every((value) => isSame(value, first)) ? first : UNKNOWN;
}

function isSame(a: Value, b: Value): boolean {
  if (a.kind === 'literal' && b.kind === 'literal') return a.constant === b.constant;
  if (a.kind !== 'option' || b.kind !== 'option') return false;
  const [one, other] = [a.option.at, b.option.at];
  return one.file === other.file && one.line === other.line && a.constant === b.constant;
}

function named(search: Search, module: PyModule, node: PyNode): Value {
  const name = textOf(module, node);
  const bindings = bindingsFor(namesOf(module), node, name);
  if (bindings === null) return UNKNOWN;
  return agreed(bindings.map((binding) => bound(search, module, name, binding)));
}

function bound(search: Search, module: PyModule, name: string, binding: Binding): Value {
  const { at } = binding;
  if (binding.kind === 'import') {
    const found = definitionOf(search.tree, module.path, binding.name);
    if (found === null || found.bindings.some((b) => b.kind === 'import')) return UNKNOWN;
    return agreed(found.bindings.map((b) => bound(search, found.module, found.name, b)));
  }
  if (at.kind === 'assignment') {
    const value = partsOf(at)[0]?.kind === 'identifier' ? assignedValue(at) : undefined;
    return value === undefined ? UNKNOWN : evaluate(search, module, value);
  }
  return isParameter(at) ? parameter(search, module, name, at) : UNKNOWN;
}

const PARAMETERS = new Set(['identifier', 'default_parameter', 'typed_parameter', 'typed_default_parameter']);

function isParameter(node: PyNode): boolean {
  return PARAMETERS.has(node.kind) && node.parent?.kind === 'parameters' && node.parent.parent?.kind === 'function_definition';
}

/** The default of a parameter, with the place where it is written; undefined without one. */
function defaultOf(node: PyNode): PyNode | undefined {
  return node.kind.includes('default_parameter') ? partsOf(node).at(-1) : undefined;
}

/** A parameter is what all callers in the repository pass, or the default they leave. */
function parameter(search: Search, module: PyModule, name: string, node: PyNode): Value {
  if (search.open.has(node)) return UNKNOWN;
  search.open.add(node);
  try {
    const definition = node.parent!.parent!;
    const clicked = commandOption(search, module, definition, name);
    if (clicked !== null) return clicked;
    const fallback = defaultOf(node);
    const own = fallback === undefined ? UNKNOWN : fromDefault(search, module, name, node, fallback);
    const callers = callersOf(search, module, definition);
    if (callers === null) return UNKNOWN;
    if (callers.length === 0) return own;
    const position = positionOf(module, node);
    return agreed(
      callers.map((caller) => {
        const passed = given(search, caller.module, caller.call, name, position);
        return passed.kind === 'given' ? passed.value : passed.kind === 'absent' ? own : UNKNOWN;
      }),
    );
  } finally {
    search.open.delete(node);
  }
}

function fromDefault(search: Search, module: PyModule, name: string, node: PyNode, fallback: PyNode): Value {
  const value = evaluate(search, module, fallback);
  if (value.kind !== 'literal') return value;
  return { kind: 'option', option: { from: 'parameter', name, at: placeOf(module, node) }, constant: value.constant };
}

/** `@click.option('--workers', default=0)` above the function. */
function commandOption(search: Search, module: PyModule, definition: PyNode, name: string): Value | null {
  const decorated = definition.parent;
  if (decorated?.kind !== 'decorated_definition' || !textOf(module, decorated).slice(0, 20_000).includes('.option(')) return null;
  const found = argparseDefinitions(search.tree, module, name).filter(
    ({ module: other, value }) => other === module && (value === null || isInside(value, decorated)),
  );
  return found.length === 1 ? fromDefinition(search, found[0]!) : null;
}

function isInside(node: PyNode, around: PyNode): boolean {
  return node.start >= around.start && node.end <= around.end;
}

/** Place among the positional parameters; `self` and `cls` do not count. null behind `*`. */
function positionOf(module: PyModule, node: PyNode): number | null {
  const before = partsOf(node.parent!).filter((other) => other.start < node.start);
  if (before.some((other) => other.kind === 'list_splat_pattern' || other.kind === 'keyword_separator')) return null;
  const isMethod = before[0] !== undefined && /^(self|cls)$/.test(textOf(module, before[0]));
  return before.filter((other) => PARAMETERS.has(other.kind)).length - (isMethod ? 1 : 0);
}

interface Caller {
  readonly module: PyModule;
  readonly call: PyCall;
}

/** Calls of a function or constructor anywhere in the repository; null when there may be more than can be told apart. */
function callersOf(search: Search, module: PyModule, definition: PyNode): Caller[] | null {
  const identifier = partsOf(definition).find((part) => part.kind === 'identifier');
  if (identifier === undefined) return null;
  const holder = [...ascend(definition)].find((up) => up.kind === 'class_definition' || up.kind === 'function_definition');
  const isMethod = holder?.kind === 'class_definition';
  const isConstructor = isMethod && textOf(module, identifier) === '__init__';
  const target = isConstructor ? holder : definition;
  const name = isConstructor ? textOf(module, partsOf(holder)[0]!) : textOf(module, identifier);
  const { modules } = pythonFilesWith(search.tree, [`${name}(`], (path) => !isAside(path));
  const callers: Caller[] = [];
  for (const other of modules.includes(module) ? modules : [module, ...modules]) {
    for (const call of describeCalls(other, name)) {
      if (isMethod && !isConstructor) {
        // `self.f(…)` inside the class is this method; on another object it may be any class's.
        const isOwn = /^(self|cls)\.\w+$/.test(call.written) && other === module && isInside(call.node, holder);
        if (isOwn) callers.push({ module: other, call });
        continue;
      }
      if (isCallOf(search, other, call, module, target)) callers.push({ module: other, call });
      if (callers.length > MAX_CALLERS) return null;
    }
  }
  return callers;
}

function isCallOf(search: Search, other: PyModule, call: PyCall, module: PyModule, target: PyNode): boolean {
  const callable = call.node.children[0]!;
  if (callable.kind === 'identifier') {
    const bindings = bindingsFor(namesOf(other), callable, call.written);
    if (other === module) return bindings?.some((binding) => binding.at === target) ?? false;
  }
  return resolveName(namesOf(other), callable).names.some((dotted) =>
    definitionOf(search.tree, other.path, dotted)?.bindings.some((binding) => binding.at === target),
  );
}

/** What a call hands to a parameter. */
function given(search: Search, module: PyModule, call: PyCall, keyword: string, position: number | null): Given {
  const direct = argumentOf(call, keyword, position);
  if (direct !== null && !(call.hasStarArgs && direct.keyword === null)) {
    return { kind: 'given', value: evaluate(search, module, direct.value), module, node: direct.value };
  }
  if (call.hasStarArgs && position !== null) return UNKNOWN;
  if (!call.hasKeywordArgs || call.list === null) return ABSENT;
  let answer: Given = ABSENT;
  for (const part of partsOf(call.list)) {
    if (part.kind !== 'dictionary_splat') continue;
    const found = entry(search, module, partsOf(part)[0] ?? part, keyword);
    if (found.kind === 'unknown') return UNKNOWN;
    // The same keyword twice does not run.
    if (found.kind === 'given') answer = found;
  }
  return answer;
}

/** One key of a dictionary that the code builds. */
function entry(search: Search, module: PyModule, node: PyNode, key: string): Given {
  if (++search.steps > MAX_STEPS || search.open.has(node)) return UNKNOWN;
  search.open.add(node);
  try {
    if (node.kind === 'dictionary') return entryOfLiteral(search, module, node, key);
    if (node.kind === 'parenthesized_expression') return entry(search, module, partsOf(node)[0] ?? node, key);
    if (node.kind === 'call') return entryOfCall(search, module, node, key);
    return node.kind === 'identifier' ? entryOfName(search, module, node, key) : UNKNOWN;
  } finally {
    search.open.delete(node);
  }
}

function entryOfLiteral(search: Search, module: PyModule, node: PyNode, key: string): Given {
  let answer: Given = ABSENT;
  for (const part of partsOf(node)) {
    if (part.kind === 'dictionary_splat') {
      const found = entry(search, module, partsOf(part)[0] ?? part, key);
      if (found.kind !== 'absent') answer = found;
      continue;
    }
    const [name, value] = part.kind === 'pair' ? partsOf(part) : [];
    const word = literalString(module, name ?? null);
    if (value === undefined || word === null) answer = UNKNOWN;
    else if (word === key) answer = { kind: 'given', value: evaluate(search, module, value), module, node: value };
  }
  return answer;
}

/** `dict(a, workers=4)`. */
function entryOfCall(search: Search, module: PyModule, node: PyNode, key: string): Given {
  const [call] = describeCalls(module, null, node);
  if (call?.written !== 'dict' || call.hasStarArgs) return UNKNOWN;
  const direct = given(search, module, call, key, null);
  if (direct.kind !== 'absent') return direct;
  const base = argumentOf(call, '', 0);
  return base === null ? ABSENT : entry(search, module, base.value, key);
}

/** A local variable that holds a dictionary and everything the function does to it; or the function's own `**kwargs`. */
function entryOfName(search: Search, module: PyModule, node: PyNode, key: string): Given {
  const name = textOf(module, node);
  const bindings = bindingsFor(namesOf(module), node, name);
  if (bindings?.length !== 1) return UNKNOWN;
  const { at } = bindings[0]!;
  if (at.kind === 'dictionary_splat_pattern') return fromCallers(search, module, at, key);
  const value = at.kind === 'assignment' && partsOf(at)[0]?.kind === 'identifier' ? assignedValue(at) : undefined;
  if (value === undefined) return UNKNOWN;
  let answer = entry(search, module, value, key);
  for (const use of usesOf(module, name, at, node)) {
    const change = changeBy(search, module, use, key);
    if (change.kind === 'absent') continue;
    if (change.kind === 'unknown' || isConditional(use, at)) return UNKNOWN;
    answer = change;
  }
  return answer;
}

/** `**kwargs` of the function around the call: what its callers pass beyond the named parameters. */
function fromCallers(search: Search, module: PyModule, pattern: PyNode, key: string): Given {
  const definition = pattern.parent?.parent;
  if (definition?.kind !== 'function_definition') return UNKNOWN;
  const callers = callersOf(search, module, definition);
  if (callers === null || callers.length === 0) return UNKNOWN;
  const all = callers.map((caller) => given(search, caller.module, caller.call, key, null));
  const first = all[0]!;
  if (first.kind !== 'given') return all.every((other) => other.kind === first.kind) ? first : UNKNOWN;
  const values = all.map((one) => (one.kind === 'given' ? one.value : UNKNOWN));
  return agreed(values).kind === 'unknown' && values.length > 1 ? UNKNOWN : first;
}

/** Places where the name is written again in the function, between its assignment and the call that spreads it. */
function usesOf(module: PyModule, name: string, from: PyNode, to: PyNode): PyNode[] {
  const scope = [...ascend(from)].find((up) => up.kind === 'function_definition' || up.kind === 'module') ?? module.root;
  const uses: PyNode[] = [];
  for (const node of descend(scope)) {
    if (node.kind === 'identifier' && node.start > from.end && node.end <= to.start && textOf(module, node) === name) uses.push(node);
  }
  return uses;
}

function changeBy(search: Search, module: PyModule, use: PyNode, key: string): Given {
  const around = use.parent!;
  if (around.kind === 'dictionary_splat') return ABSENT;
  if (around.kind === 'subscript' && partsOf(around)[0] === use) {
    const assignment = around.parent;
    const isTarget = assignment?.kind === 'assignment' && partsOf(assignment)[0] === around;
    if (!isTarget) return assignment?.kind === 'augmented_assignment' || assignment?.kind === 'delete_statement' ? UNKNOWN : ABSENT;
    const word = literalString(module, partsOf(around)[1] ?? null);
    if (word === null) return UNKNOWN;
    const value = assignedValue(assignment);
    if (word !== key || value === undefined) return word === key ? UNKNOWN : ABSENT;
    return { kind: 'given', value: evaluate(search, module, value), module, node: value };
  }
  if (around.kind === 'attribute' && around.parent?.kind === 'call') {
    const method = textOf(module, partsOf(around)[1] ?? around);
    if (['get', 'items', 'keys', 'values', 'copy'].includes(method)) return ABSENT;
    const [call] = describeCalls(module, null, around.parent);
    if (method !== 'update' || call === undefined || call.hasStarArgs) return UNKNOWN;
    const direct = given(search, module, call, key, null);
    const base = argumentOf(call, '', 0);
    return direct.kind === 'absent' && base !== null ? entry(search, module, base.value, key) : direct;
  }
  // Reading it in a test or handing it to `print` changes nothing; any other function may.
  if (around.kind === 'comparison_operator' || around.kind === 'for_statement') return ABSENT;
  if (around.kind === 'argument_list' && /^(print|len|bool|str|repr|sorted)$/.test(textOf(module, around.parent!.children[0]!)))
    return ABSENT;
  return UNKNOWN;
}

const BRANCHES = new Set(['if_statement', 'for_statement', 'while_statement', 'try_statement', 'match_statement']);

/** Whether something between the assignment and the use may leave the use out. */
function isConditional(use: PyNode, assignment: PyNode): boolean {
  for (const up of ascend(use)) {
    if (isInside(assignment, up)) return false;
    if (BRANCHES.has(up.kind)) return true;
  }
  return false;
}

const CASTS = new Set(['int', 'float', 'bool', 'str']);

function called(search: Search, module: PyModule, node: PyNode): Value {
  const [call] = describeCalls(module, null, node);
  if (call === undefined || call.hasStarArgs || call.hasKeywordArgs) return UNKNOWN;
  const positional = call.arguments.filter((argument) => argument.keyword === null);
  const [first, second] = positional;
  if (CASTS.has(call.written) && positional.length === 1 && call.arguments.length === 1) {
    const value = evaluate(search, module, first!.value);
    if (value.kind === 'unknown') return UNKNOWN;
    const constant = cast(call.written, value.constant);
    if (value.kind === 'literal') return constant === undefined ? UNKNOWN : { ...value, constant };
    return { ...value, constant };
  }
  const environment = environmentName(module, call);
  if (environment !== null) {
    const fallback = argumentOf(call, 'default', 1);
    const value = fallback === null ? UNKNOWN : evaluate(search, module, fallback.value);
    return {
      kind: 'option',
      option: { from: 'environment', name: environment, at: placeOf(module, node) },
      constant: value.kind === 'unknown' ? undefined : value.constant,
    };
  }
  if (call.written === 'getattr' && first && second) {
    const name = literalString(module, second.value);
    return name === null ? UNKNOWN : attribute(search, module, first.value, name);
  }
  const callable = node.children[0]!;
  if (callable.kind === 'attribute' && textOf(module, partsOf(callable)[1] ?? callable) === 'get' && first) {
    const name = literalString(module, first.value);
    const found = name === null ? UNKNOWN : keyed(search, module, partsOf(callable)[0]!, name);
    if (found.kind !== 'absent') return found.kind === 'unknown' ? UNKNOWN : found.value;
    return second === undefined ? UNKNOWN : evaluate(search, module, second.value);
  }
  return UNKNOWN;
}

function cast(type: string | null, constant: Constant | undefined): Constant | undefined {
  if (constant === undefined || type === null) return constant;
  if (constant === null) return undefined;
  if (type === 'str') return String(constant);
  if (type === 'bool') return Boolean(constant);
  if (type !== 'int' && type !== 'float') return constant;
  const number = Number(constant);
  if (!Number.isFinite(number) || constant === '') return undefined;
  return type === 'int' ? Math.trunc(number) : number;
}

function environmentName(module: PyModule, call: PyCall): string | null {
  const isRead = /(^|\.)(getenv|environ\.get)$/.test(call.written);
  const first = argumentOf(call, 'key', 0);
  return isRead && first !== null ? literalString(module, first.value) : null;
}

/** Arithmetic on an option leaves the option known and its value open. */
function computed(search: Search, module: PyModule, node: PyNode): Value {
  const values = partsOf(node).map((part) => evaluate(search, module, part));
  if (node.kind === 'boolean_operator') {
    const [left, right] = values;
    const isOr = node.children.some((child) => child.kind === 'or');
    if (isOr && left?.kind === 'option' && right?.kind === 'literal' && left.constant !== undefined) {
      return { ...left, constant: left.constant || right.constant };
    }
    return left === undefined || right === undefined ? UNKNOWN : agreed([left, right]);
  }
  const options = values.filter((value) => value.kind === 'option');
  return options.length === 1 ? { ...options[0]!, constant: undefined } : UNKNOWN;
}

function member(search: Search, module: PyModule, node: PyNode): Value {
  const [object, name] = partsOf(node);
  if (object === undefined || name === undefined) return UNKNOWN;
  return attribute(search, module, object, textOf(module, name));
}

/** Names that hold the options of a program by custom. */
const OPTIONS = /^_?(args?|opts?|options|arguments|cfg|conf|config|configs|hparams|hps|params|flags|FLAGS|\w+_(args|cfg|config|opt))$/;

function attribute(search: Search, module: PyModule, object: PyNode, name: string): Value {
  if (textOf(module, object) === 'self') return ownAttribute(search, module, object, name);
  const declared = classOf(search, module, object);
  if (declared !== null) {
    const set = declared.constructed === null ? ABSENT : given(search, declared.constructed.module, declared.constructed.call, name, null);
    if (set.kind === 'given') return set.value;
    const field = fieldOf(declared.module, declared.definition, name);
    return set.kind === 'unknown' || field === null ? UNKNOWN : fromDefinition(search, field);
  }
  const resolved = object.kind === 'identifier' || object.kind === 'attribute' ? resolveName(namesOf(module), object) : null;
  for (const dotted of resolved?.names ?? []) {
    const constant = definitionOf(search.tree, module.path, `${dotted}.${name}`);
    if (constant !== null) return agreed(constant.bindings.map((b) => bound(search, constant.module, constant.name, b)));
  }
  const configured = fromYaml(search, module, object, [name]);
  if (configured !== null) return configured;
  return isOptions(module, object) ? commandLine(search, module, name) : UNKNOWN;
}

/** `args`, `self.args`, `cfg.data`, or a variable that holds parsed arguments. */
function isOptions(module: PyModule, object: PyNode): boolean {
  const written = textOf(module, object);
  if (written.length > 100) return false;
  if (object.kind !== 'identifier') {
    const parts = written.split('.');
    return object.kind === 'attribute' && parts.some((part) => OPTIONS.test(part));
  }
  if (OPTIONS.test(written)) return true;
  const bindings = bindingsFor(namesOf(module), object, written) ?? [];
  return bindings.some(({ at }) => at.kind === 'assignment' && /parse(_known)?_args\w*\(/.test(textOf(module, at).slice(0, 500)));
}

function commandLine(search: Search, module: PyModule, name: string): Value {
  const found = argparseDefinitions(search.tree, module, name);
  const all = found.length > 0 ? found : dataclassDefinitions(search.tree, module, name);
  const value = agreedDefinition(all.map((definition) => fromDefinition(search, definition)));
  if (value.kind !== 'option' || value.constant === undefined) return value;
  // `args.workers = …` or `set_defaults(workers=…)` makes something else of it.
  const changed = [module, ...all.map((definition) => definition.module)].some((other) => isReassigned(other, name));
  return changed ? { ...value, constant: undefined } : value;
}

/** Several programs may define an option alike: the first stands for all. */
function agreedDefinition(values: readonly Value[]): Value {
  const [first] = values;
  if (first?.kind !== 'option') return UNKNOWN;
  const isAlike = values.every((v) => v.kind === 'option' && v.option.name === first.option.name && v.constant === first.constant);
  return isAlike ? first : UNKNOWN;
}

function isReassigned(module: PyModule, name: string): boolean {
  return new RegExp(`\\.${name}\\s*(?:[-+*/|&]|//)?=(?!=)|\\bset_defaults\\([^)]{0,300}\\b${name}\\s*=`).test(module.text);
}

function fromDefinition(search: Search, { option, module, value, switch: on, type }: Definition): Value {
  if (on !== null && value === null) return { kind: 'option', option, constant: on };
  if (value === null) return { kind: 'option', option, constant: option.from === 'argparse' ? null : undefined };
  const read = evaluate(search, module, value);
  return { kind: 'option', option, constant: read.kind === 'literal' ? cast(type, read.constant) : undefined };
}

/** `self.x` is what the class assigns to it once, or a field of its body. */
function ownAttribute(search: Search, module: PyModule, self: PyNode, name: string): Value {
  const holder = [...ascend(self)].find((up) => up.kind === 'class_definition');
  if (holder === undefined) return UNKNOWN;
  const values: Value[] = [];
  for (const node of descend(holder)) {
    if (node.kind === 'augmented_assignment' && textOf(module, partsOf(node)[0] ?? node) === `self.${name}`) return UNKNOWN;
    if (node.kind !== 'assignment' || textOf(module, partsOf(node)[0] ?? node) !== `self.${name}`) continue;
    const value = assignedValue(node);
    if (value !== undefined) values.push(evaluate(search, module, value));
  }
  if (values.length > 0) return agreed(values);
  const field = fieldOf(module, holder, name);
  return field === null ? UNKNOWN : fromDefinition(search, field);
}

interface Declared {
  readonly module: PyModule;
  readonly definition: PyNode;
  /** The call that builds the object, where it is known. */
  readonly constructed: Caller | null;
}

/** The class of an object: the class itself, `x = C(…)`, or a parameter declared `x: C`. */
function classOf(search: Search, module: PyModule, object: PyNode): Declared | null {
  if (object.kind !== 'identifier') return null;
  const bindings = bindingsFor(namesOf(module), object, textOf(module, object));
  if (bindings?.length !== 1) return null;
  const [{ at, kind }] = bindings as readonly [Binding];
  if (at.kind === 'class_definition') return { module, definition: at, constructed: null };
  if (kind === 'import') return classNamed(search, module, object);
  if (at.kind === 'assignment') {
    const value = assignedValue(at);
    const [call] = value?.kind === 'call' ? describeCalls(module, null, value) : [];
    const found = value?.kind === 'call' ? classNamed(search, module, value.children[0]!) : null;
    if (found === null || call === undefined) return null;
    // Only a generated constructor takes the fields as they are.
    return { ...found, constructed: isDataclass(found.module, found.definition) ? { module, call } : null };
  }
  const type = partsOf(at).find((part) => part.kind === 'type');
  const declared = isParameter(at) && type ? partsOf(type)[0] : undefined;
  return declared ? classNamed(search, module, declared) : null;
}

function classNamed(search: Search, module: PyModule, node: PyNode): Declared | null {
  if (node.kind !== 'identifier' && node.kind !== 'attribute') return null;
  const local = node.kind === 'identifier' ? bindingsFor(namesOf(module), node, textOf(module, node)) : null;
  if (local?.length === 1 && local[0]!.at.kind === 'class_definition') return { module, definition: local[0]!.at, constructed: null };
  for (const dotted of resolveName(namesOf(module), node).names) {
    const found = definitionOf(search.tree, module.path, dotted);
    const only = found?.bindings.length === 1 ? found.bindings[0]! : null;
    if (found && only?.at.kind === 'class_definition') return { module: found.module, definition: only.at, constructed: null };
  }
  return null;
}

/** `x['key']`: of a dictionary of the code, of `vars(args)`, of a YAML file. */
function item(search: Search, module: PyModule, node: PyNode): Value {
  const [object, key] = partsOf(node);
  const name = literalString(module, key ?? null);
  if (object === undefined || name === null) return UNKNOWN;
  if (textOf(module, object) === 'os.environ') {
    return { kind: 'option', option: { from: 'environment', name, at: placeOf(module, node) }, constant: undefined };
  }
  const found = keyed(search, module, object, name);
  return found.kind === 'given' ? found.value : UNKNOWN;
}

function keyed(search: Search, module: PyModule, object: PyNode, name: string): Given {
  const configured = fromYaml(search, module, object, [name]);
  if (configured !== null) return { kind: 'given', value: configured, module, node: object };
  const vars = object.kind === 'call' && textOf(module, object.children[0]!) === 'vars' ? partsOf(object.children.at(-1)!)[0] : undefined;
  const options = vars ?? object;
  if (vars !== undefined && isOptions(module, options)) {
    return { kind: 'given', value: commandLine(search, module, name), module, node: object };
  }
  return entry(search, module, object, name);
}

/** A value of a YAML file that the code loads: `cfg.data.workers`, `cfg['data']['workers']`. null when there is no such file. */
function fromYaml(search: Search, module: PyModule, object: PyNode, keys: readonly string[]): Value | null {
  if (++search.steps > MAX_STEPS) return null;
  const [inner, part] = partsOf(object);
  if (object.kind === 'attribute' && inner && part) return fromYaml(search, module, inner, [textOf(module, part), ...keys]);
  if (object.kind === 'subscript' && inner) {
    const key = literalString(module, part ?? null);
    return key === null ? null : fromYaml(search, module, inner, [key, ...keys]);
  }
  if (object.kind !== 'identifier') return null;
  const bindings = bindingsFor(namesOf(module), object, textOf(module, object));
  if (bindings?.length !== 1) return null;
  const written = loadedFile(search, module, bindings[0]!.at);
  const file = written === null ? null : yamlFile(search.tree, module.path, written);
  const found = file === null ? null : yamlValue(search.tree, file, keys);
  return found === null ? null : { kind: 'option', option: found.option, constant: found.value };
}

/** The path of the YAML file that a variable is loaded from, as far as it is written down. */
function loadedFile(search: Search, module: PyModule, at: PyNode): string | null {
  if (isParameter(at)) return hydraFile(module, at.parent!.parent!);
  const value = at.kind === 'assignment' ? assignedValue(at) : undefined;
  if (value?.kind !== 'call') return null;
  const [call] = describeCalls(module, null, value);
  if (call === undefined || !/(^|\.)(safe_load|full_load|load|load_config|from_file|fromfile)$/.test(call.written)) return null;
  let path = argumentOf(call, 'filename', 0)?.value;
  if (path?.kind === 'identifier') {
    // `with open("cfg.yaml") as f`
    const handle = bindingsFor(namesOf(module), path, textOf(module, path));
    const target = handle?.length === 1 ? handle[0]!.at : null;
    const opened = target?.kind === 'as_pattern_target' ? partsOf(target.parent!)[0] : undefined;
    if (opened !== undefined) path = opened;
  }
  if (path?.kind === 'call' && /(^|\.)open$/.test(textOf(module, path.children[0]!))) path = partsOf(path.children.at(-1)!)[0];
  if (path === undefined) return null;
  const read = evaluate(search, module, path);
  return read.kind !== 'unknown' && typeof read.constant === 'string' ? read.constant : null;
}

/** `@hydra.main(config_path="conf", config_name="config")`. */
function hydraFile(module: PyModule, definition: PyNode): string | null {
  const decorated = definition.parent;
  if (decorated?.kind !== 'decorated_definition') return null;
  for (const decorator of partsOf(decorated)) {
    const node = decorator.kind === 'decorator' ? partsOf(decorator)[0] : undefined;
    const [call] = node?.kind === 'call' ? describeCalls(module, null, node) : [];
    if (call === undefined || !/(^|\.)hydra\.main$/.test(call.written)) continue;
    const folder = literalString(module, argumentOf(call, 'config_path', 0)?.value ?? null);
    const name = literalString(module, argumentOf(call, 'config_name', 1)?.value ?? null);
    if (name === null) return null;
    const file = /\.ya?ml$/.test(name) ? name : `${name}.yaml`;
    return folder === null ? file : `${withoutTrailing(folder, '/')}/${file}`;
  }
  return null;
}

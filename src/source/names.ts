import { ascend, descend, type PyModule, type PyNode, partsOf, textOf } from './syntax-tree.ts';

/** What a written name may stand for. `certain`: there is one answer, and nothing in the file may rebind it. */
export interface Resolved {
  /** Canonical dotted names, e.g. `torch.nn.parallel.DistributedDataParallel`. */
  readonly names: readonly string[];
  readonly certain: boolean;
}

/** `at`: the statement, clause, definition or parameter that binds. */
export type Binding =
  | { readonly kind: 'import'; readonly name: string; readonly at: PyNode }
  | { readonly kind: 'alias'; readonly of: PyNode; readonly at: PyNode }
  /** `name = None`, which stands for "not yet" and hides no other meaning of the name. */
  | { readonly kind: 'none'; readonly at: PyNode }
  | { readonly kind: 'other'; readonly at: PyNode };

/** Who binds which name where, for one file. */
export interface Names {
  readonly module: PyModule;
  readonly bindings: ReadonlyMap<PyNode, ReadonlyMap<string, readonly Binding[]>>;
  readonly starImports: readonly string[];
  /** Every module or member that the file imports, as canonical dotted names. */
  readonly imports: readonly string[];
  /** Aliases already followed; an entry under way stands for "nothing", which ends cycles. */
  readonly followed: Map<PyNode, Resolved>;
}

/** A name bound more often than this is a variable, not an alias. */
const MAX_BINDINGS = 16;

/** The same thing under other paths. The public path is the canonical one. */
const CANONICAL: readonly (readonly [prefix: string, canonical: string])[] = [
  ['torch.npu', 'torch_npu.npu'],
  ['torch_npu.npu.npu_config', 'torch_npu.npu'],
  ['torch.nn.parallel.distributed', 'torch.nn.parallel'],
  ['torch.utils.data.dataloader', 'torch.utils.data'],
  ['torch_npu.profiler.profiler', 'torch_npu.profiler'],
];

export function canonicalName(dotted: string): string {
  let name = dotted;
  for (const [prefix, canonical] of CANONICAL) {
    if (name === prefix) name = canonical;
    else if (name.startsWith(`${prefix}.`)) name = canonical + name.slice(prefix.length);
  }
  return name;
}

const SCOPES = new Set([
  'module',
  'function_definition',
  'lambda',
  'class_definition',
  'list_comprehension',
  'set_comprehension',
  'dictionary_comprehension',
  'generator_expression',
]);

function scopeAround(node: PyNode): PyNode {
  let outermost = node;
  for (const up of ascend(node)) {
    if (SCOPES.has(up.kind)) return up;
    outermost = up;
  }
  return outermost;
}

const BINDERS = new Set([
  'import_statement',
  'import_from_statement',
  'assignment',
  'augmented_assignment',
  'for_statement',
  'for_in_clause',
  'named_expression',
  'as_pattern_target',
  'case_pattern',
  'function_definition',
  'class_definition',
  'parameters',
  'lambda_parameters',
  'global_statement',
]);

const known = new WeakMap<PyModule, Names>();

/** Reads imports, assignments, definitions and every other way to bind a name; once per module. */
export function namesOf(module: PyModule): Names {
  const before = known.get(module);
  if (before) return before;
  const names = readNames(module);
  known.set(module, names);
  return names;
}

function readNames(module: PyModule): Names {
  const bindings = new Map<PyNode, Map<string, Binding[]>>();
  const globals = new Map<PyNode, Set<string>>();
  const starImports: string[] = [];
  const imports = new Set<string>();

  const bind = (scope: PyNode, name: string, binding: Binding): void => {
    const home = globals.get(scope)?.has(name) ? module.root : scope;
    const inScope = bindings.get(home) ?? new Map<string, Binding[]>();
    bindings.set(home, inScope);
    const known = inScope.get(name) ?? [];
    inScope.set(name, known);
    if (known.length < MAX_BINDINGS) known.push(binding);
    else known[MAX_BINDINGS] = { kind: 'other', at: binding.at };
    if (binding.kind === 'import') imports.add(binding.name);
  };
  const bindTargets = (scope: PyNode, target: PyNode, at: PyNode): void => {
    for (const name of targetNames(target)) bind(scope, textOf(module, name), { kind: 'other', at });
  };

  for (const node of descend(module.root)) {
    if (!BINDERS.has(node.kind)) continue;
    const parts = partsOf(node);
    const first = parts[0];
    switch (node.kind) {
      case 'import_statement':
        for (const part of parts) {
          const dotted = textOf(module, part.kind === 'aliased_import' ? partsOf(part)[0]! : part);
          const alias = part.kind === 'aliased_import' ? partsOf(part)[1] : undefined;
          const bound = alias ? textOf(module, alias) : dotted.split('.')[0]!;
          bind(scopeAround(node), bound, { kind: 'import', name: canonicalName(alias ? dotted : bound), at: node });
          imports.add(canonicalName(dotted));
        }
        break;
      case 'import_from_statement': {
        if (first === undefined) break;
        const from = textOf(module, first).replaceAll(/\s/g, '');
        for (const part of parts.slice(1)) {
          if (part.kind === 'wildcard_import') {
            if (starImports.length < MAX_BINDINGS) starImports.push(from);
            imports.add(canonicalName(from));
            continue;
          }
          const [member, alias] = part.kind === 'aliased_import' ? partsOf(part) : [part];
          if (member === undefined) continue;
          const name = textOf(module, member);
          const full = from.endsWith('.') ? from + name : `${from}.${name}`;
          bind(scopeAround(node), alias ? textOf(module, alias) : name, { kind: 'import', name: canonicalName(full), at: node });
        }
        break;
      }
      case 'assignment': {
        const value = assignedValue(node);
        if (first?.kind !== 'identifier') {
          if (first) bindTargets(scopeAround(node), first, node);
          break;
        }
        // `try: import x / except ImportError: x = None` still means x wherever x is used.
        const isDotted = value?.kind === 'identifier' || value?.kind === 'attribute';
        const kind = value?.kind === 'none' ? 'none' : 'other';
        bind(scopeAround(node), textOf(module, first), isDotted ? { kind: 'alias', of: value, at: node } : { kind, at: node });
        break;
      }
      case 'augmented_assignment':
      case 'for_statement':
      case 'for_in_clause':
      case 'named_expression':
      case 'as_pattern_target':
        if (first) bindTargets(scopeAround(node), first, node);
        break;
      case 'case_pattern':
        bindTargets(scopeAround(node), node, node);
        break;
      case 'function_definition':
      case 'class_definition': {
        const name = parts.find((part) => part.kind === 'identifier');
        if (name) bind(scopeAround(node), textOf(module, name), { kind: 'other', at: node });
        break;
      }
      case 'parameters':
      case 'lambda_parameters':
        for (const parameter of parts) {
          const name = [...descend(parameter)].find((part) => part.kind === 'identifier');
          if (name) bind(scopeAround(parameter), textOf(module, name), { kind: 'other', at: parameter });
        }
        break;
      case 'global_statement': {
        const scope = scopeAround(node);
        const known = globals.get(scope) ?? new Set<string>();
        globals.set(scope, known);
        for (const part of parts) known.add(textOf(module, part));
        break;
      }
    }
  }
  return { module, bindings, starImports, imports: [...imports], followed: new Map() };
}

const PATTERNS = new Set([
  'pattern_list',
  'tuple_pattern',
  'list_pattern',
  'list_splat_pattern',
  'case_pattern',
  'dotted_name',
  'tuple',
  'list',
]);

/** Plain names in an assignment target; `a.b = …` and `a[i] = …` bind no name. */
function targetNames(target: PyNode): PyNode[] {
  if (target.kind === 'identifier') return [target];
  if (!PATTERNS.has(target.kind)) return [];
  return partsOf(target).flatMap(targetNames);
}

/** The value of `name = value` or `name: T = value`; undefined for `name: T`. */
export function assignedValue(assignment: PyNode): PyNode | undefined {
  const equals = assignment.children.findIndex((child) => child.kind === '=');
  if (equals === -1) return undefined;
  return assignment.children.slice(equals + 1).find((child) => child.named && child.kind !== 'comment');
}

/** `a.b.c` as its head and the rest; null for anything that is not a plain dotted name. */
function dottedParts(module: PyModule, node: PyNode): { head: PyNode; rest: string[] } | null {
  const rest: string[] = [];
  let at = node;
  while (at.kind === 'attribute') {
    const [object, member] = partsOf(at);
    if (object === undefined || member === undefined) return null;
    rest.unshift(textOf(module, member));
    at = object;
  }
  return at.kind === 'identifier' ? { head: at, rest } : null;
}

const NOTHING: Resolved = { names: [], certain: false };

/** What a dotted name means at the place where it is written. */
export function resolveName(names: Names, node: PyNode): Resolved {
  const dotted = dottedParts(names.module, node);
  if (dotted === null) return NOTHING;
  const head = textOf(names.module, dotted.head);
  const suffix = dotted.rest.map((part) => `.${part}`).join('');
  const found = bindingsFor(names, dotted.head, head, true);
  if (found === null) return { names: names.starImports.map((from) => canonicalName(`${from}.${head}${suffix}`)), certain: false };
  const results = new Set<string>();
  let certain = true;
  for (const binding of found) {
    if (binding.kind === 'none') continue;
    if (binding.kind === 'import') results.add(canonicalName(binding.name + suffix));
    if (binding.kind === 'other') certain = false;
    if (binding.kind !== 'alias') continue;
    const target = followAlias(names, binding.of);
    certain &&= target.certain;
    for (const name of target.names) results.add(canonicalName(name + suffix));
  }
  return { names: [...results].slice(0, MAX_BINDINGS), certain: certain && results.size === 1 };
}

function followAlias(names: Names, node: PyNode): Resolved {
  const known = names.followed.get(node);
  if (known) return known;
  names.followed.set(node, NOTHING);
  const resolved = resolveName(names, node);
  names.followed.set(node, resolved);
  return resolved;
}

/** Everything that may give a name its value where it is written; null when the file does not bind it. */
export function bindingsFor(names: Names, at: PyNode, name: string, isNoneIgnored = false): readonly Binding[] | null {
  let scope = scopeAround(at);
  let isInnermost = true;
  for (;;) {
    // Names of a class body are not visible inside its methods.
    const visible = scope.kind !== 'class_definition' || isInnermost;
    const found = visible ? names.bindings.get(scope)?.get(name) : undefined;
    if (found && !(isNoneIgnored && found.every((binding) => binding.kind === 'none'))) return found;
    if (scope.parent === null) return null;
    scope = scopeAround(scope);
    isInnermost = false;
  }
}

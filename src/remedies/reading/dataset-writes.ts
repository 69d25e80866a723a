import type { SourceTree } from '../../model/source-tree.ts';
import { pythonFilesWhere } from '../../source/python-files.ts';
import { isAside } from '../../source/readable-paths.ts';
import { ascend, descend, lineAt, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';

interface WritePlace {
  readonly file: string;
  readonly line: number;
  /** False: the file could not be read, so nobody knows. */
  readonly isRead: boolean;
}

interface DataClass {
  readonly name: string;
  readonly module: PyModule;
  readonly bases: readonly string[];
  readonly methods: ReadonlyMap<string, PyNode>;
  readonly isStream: boolean;
}

/** Trees do not change while they are alive. */
const known = new WeakMap<SourceTree, WritePlace | null>();

/**
 * Where a data set writes to what it holds while it gives out a sample: `anno = self.data[i]; anno["box"] = …`. Workers that stay
 * meet what they wrote before; workers started anew begin from the parent's copy. null: nowhere.
 */
export function writtenData(tree: SourceTree): WritePlace | null {
  const before = known.get(tree);
  if (before !== undefined) return before;
  const found = firstWrite(tree);
  known.set(tree, found);
  return found;
}

function firstWrite(tree: SourceTree): WritePlace | null {
  const { modules, failures } = pythonFilesWhere(
    tree,
    (text) => /\bdef[ \t]+__getitems?__|Dataset\b|DataPipe\b/.test(text) && /\bclass\b/.test(text),
    (path) => !isAside(path),
  );
  const classes = modules.flatMap(classesOf);
  const reading = new Reading(new Map(classes.map((own) => [own.name, own])));
  for (const own of classes) {
    const entries = own.isStream ? ['__getitem__', '__getitems__', '__iter__', '__next__'] : ['__getitem__', '__getitems__'];
    for (const entry of entries) {
      const method = own.methods.get(entry);
      const write = method === undefined ? null : reading.look(own, own, method, []).write;
      if (write !== null) return { file: write.module.path, line: lineAt(write.module.lineStarts, write.node.start), isRead: true };
    }
  }
  return failures.length === 0 ? null : { file: failures[0]!.path, line: 1, isRead: false };
}

function classesOf(module: PyModule): DataClass[] {
  return [...descend(module.root)].flatMap((node): DataClass[] => {
    if (node.kind !== 'class_definition') return [];
    const parts = partsOf(node);
    const list = parts.find(({ kind }) => kind === 'argument_list');
    const bases = list === undefined ? [] : partsOf(list).map((base) => textOf(module, base).split('.').at(-1)!);
    const methods = new Map<string, PyNode>();
    for (const statement of partsOf(parts.at(-1)!)) {
      const method = statement.kind === 'decorated_definition' ? partsOf(statement).at(-1)! : statement;
      if (method.kind === 'function_definition') methods.set(nameOf(module, method), method);
    }
    return [{ name: nameOf(module, node), module, bases, methods, isStream: bases.some((base) => /Dataset|DataPipe/.test(base)) }];
  });
}

function nameOf(module: PyModule, node: PyNode): string {
  const name = partsOf(node).find((part) => part.kind === 'identifier');
  return name === undefined ? '' : textOf(module, name);
}

/** Methods and functions that give out what they were given, or a part of it. */
const GIVES_PART =
  /^(get|items|values|view|reshape|squeeze|unsqueeze|numpy|from_numpy|asarray|as_tensor|permute|transpose|flatten|ravel|zip|enumerate|reversed|iter|next|list|tuple|__getitem__|setdefault)$/;
const CHANGES =
  /^(pop|append|update|sort|extend|insert|remove|clear|setdefault|popitem|reverse|add|discard|fill|put|appendleft|popleft|rotate|__setitem__|[a-z]\w*[a-z0-9]_)$/;

interface Seen {
  readonly write: { readonly module: PyModule; readonly node: PyNode } | null;
  readonly givesPart: boolean;
}

const NOTHING: Seen = { write: null, givesPart: false };
/** Methods looked at for one tree. */
const MAX_METHODS = 2_000;
/** Calls within calls that are followed, and nesting of one expression: nobody writes more by hand. */
const MAX_CALLS = 12;
const MAX_DEPTH = 60;

interface Binding {
  readonly at: number;
  readonly block: PyNode | undefined;
  readonly isPart: boolean;
}

class Reading {
  private readonly memory = new Map<PyNode, Map<string, Seen>>();
  private left = MAX_METHODS;
  private under = 0;
  private readonly classes: ReadonlyMap<string, DataClass>;

  constructor(classes: ReadonlyMap<string, DataClass>) {
    this.classes = classes;
  }

  /** A method of an object of class `self`, defined in `owner`; `parts`: parameters that are given parts of the object. */
  look(self: DataClass, owner: DataClass, method: PyNode, parts: readonly string[]): Seen {
    const memory = this.memory.get(method) ?? new Map<string, Seen>();
    this.memory.set(method, memory);
    const key = [self.name, ...parts].join(' ');
    const before = memory.get(key);
    if (before !== undefined) return before;
    memory.set(key, NOTHING);
    if (this.left-- <= 0 || this.under >= MAX_CALLS) return NOTHING;
    this.under++;
    const seen = this.read(self, owner, method, parts);
    this.under--;
    memory.set(key, seen);
    return seen;
  }

  private method(self: DataClass, name: string, depth = 0): { owner: DataClass; node: PyNode } | null {
    const node = self.methods.get(name);
    if (node !== undefined) return { owner: self, node };
    if (depth > 8) return null;
    for (const base of self.bases) {
      const owner = this.classes.get(base);
      const found = owner === undefined || owner === self ? null : this.method(owner, name, depth + 1);
      if (found !== null) return found;
    }
    return null;
  }

  private read(self: DataClass, { module }: DataClass, method: PyNode, parts: readonly string[]): Seen {
    const text = (node: PyNode): string => textOf(module, node);
    const [own] = parametersOf(module, method);
    const bindings = new Map<string, Binding[]>();
    const given = new Set(parts);

    const isSelf = (node: PyNode | undefined): boolean => node?.kind === 'identifier' && text(node) === own;
    const isBound = (name: string, node: PyNode): boolean => {
      const around = new Set(ascend(node));
      for (const binding of (bindings.get(name) ?? []).toReversed()) {
        if (binding.at > node.start) continue;
        if (binding.isPart) return true;
        if (binding.block !== undefined && around.has(binding.block)) return false;
      }
      return given.has(name);
    };
    /** The method a call is of, where it is one of this object. */
    const called = (call: PyNode): { owner: DataClass; node: PyNode } | null => {
      const [object, member] = call.children[0]?.kind === 'attribute' ? partsOf(call.children[0]) : [];
      if (object === undefined || member === undefined) return null;
      if (isSelf(object)) return this.method(self, text(member));
      if (text(object).startsWith('super(')) {
        for (const base of self.bases) {
          const owner = this.classes.get(base);
          const found = owner === undefined ? null : this.method(owner, text(member));
          if (found !== null) return found;
        }
      }
      return null;
    };
    const argumentsOf = (call: PyNode): PyNode[] => partsOf(call.children.at(-1)!);
    const lookInto = (call: PyNode): Seen => {
      const target = called(call);
      if (target === null) return NOTHING;
      const names = parametersOf(target.owner.module, target.node).slice(1);
      const passed = argumentsOf(call).flatMap((argument, i): string[] => {
        const [name, value] = argument.kind === 'keyword_argument' ? partsOf(argument) : [null, argument];
        const parameter = name ? text(name) : names[i];
        return parameter !== undefined && value !== undefined && isPart(value) ? [parameter] : [];
      });
      return this.look(self, target.owner, target.node, passed.toSorted());
    };
    const isPart = (node: PyNode, depth = 0): boolean => {
      if (depth > MAX_DEPTH) return false;
      const isDeeper = (part: PyNode): boolean => isPart(part, depth + 1);
      const inner = partsOf(node);
      switch (node.kind) {
        case 'identifier':
          return isBound(text(node), node);
        case 'attribute':
        case 'subscript':
          return isSelf(inner[0]) || isDeeper(inner[0]!);
        case 'call': {
          const callable = node.children[0]!;
          const [object, member] = callable.kind === 'attribute' ? partsOf(callable) : [undefined, callable];
          if (object !== undefined && called(node) !== null) return lookInto(node).givesPart;
          if (member === undefined || !GIVES_PART.test(text(member))) return false;
          return (object !== undefined && isDeeper(object)) || argumentsOf(node).some(isDeeper);
        }
        case 'conditional_expression':
          return inner.some((part, i) => i !== 1 && isDeeper(part));
        case 'boolean_operator':
        case 'parenthesized_expression':
        case 'expression_list':
        case 'tuple':
          return inner.some(isDeeper);
        case 'assignment':
        case 'named_expression':
          return inner.length > 1 && isDeeper(inner.at(-1)!);
        default:
          return false;
      }
    };
    const bind = (target: PyNode, value: PyNode, at: number, statement: PyNode, depth = 0): void => {
      if (target.kind === 'identifier') {
        const block = [...ascend(statement)].find(({ kind }) => kind === 'block');
        const list = bindings.get(text(target)) ?? [];
        list.push({ at, block, isPart: isPart(value) });
        bindings.set(text(target), list);
        return;
      }
      if (depth > MAX_DEPTH || !/pattern|tuple|list/.test(target.kind)) return;
      const targets = partsOf(target);
      const values = value.kind === 'expression_list' || value.kind === 'tuple' ? partsOf(value) : [];
      for (const [i, each] of targets.entries())
        bind(each, values.length === targets.length ? values[i]! : value, at, statement, depth + 1);
    };
    /** Opened or read once, under a condition about itself. */
    const isLazy = (target: PyNode): boolean =>
      [...ascend(target)].some((up) => up.kind === 'if_statement' && text(partsOf(up)[0]!).includes(text(target)));
    const isWritten = (target: PyNode, depth = 0): boolean => {
      if (/pattern|tuple|list/.test(target.kind)) return depth < MAX_DEPTH && partsOf(target).some((part) => isWritten(part, depth + 1));
      const [object] = partsOf(target);
      if (target.kind === 'attribute' && isSelf(object)) return !isLazy(target);
      return (target.kind === 'attribute' || target.kind === 'subscript') && object !== undefined && (isSelf(object) || isPart(object));
    };

    let givesPart = false;
    for (const node of descend(method)) {
      const inner = partsOf(node);
      const write = { write: { module, node }, givesPart };
      switch (node.kind) {
        case 'assignment': {
          const value = inner.at(-1)!;
          if (inner.length < 2 || value.kind === 'type') break;
          if (isWritten(inner[0]!)) return write;
          bind(inner[0]!, value, node.end, node);
          break;
        }
        case 'named_expression':
          bind(inner[0]!, inner[1]!, node.end, node);
          break;
        case 'augmented_assignment':
          if (isWritten(inner[0]!) || isPart(inner[0]!)) return write;
          break;
        case 'delete_statement':
          if (inner.some((target) => isWritten(target))) return write;
          break;
        case 'for_statement':
        case 'for_in_clause':
          if (inner.length > 1) bind(inner[0]!, inner[1]!, node.kind === 'for_statement' ? inner[1]!.end : 0, node);
          break;
        case 'return_statement':
        case 'yield':
          givesPart ||= inner.some((value) => isPart(value));
          break;
        case 'keyword_argument':
          if (text(inner[0]!) === 'out' && inner[1] !== undefined && isPart(inner[1])) return write;
          break;
        case 'call': {
          const callable = node.children[0]!;
          const [object, member] = callable.kind === 'attribute' ? partsOf(callable) : [undefined, callable];
          if (member !== undefined && object !== undefined && CHANGES.test(text(member)) && isPart(object)) return write;
          if (member !== undefined && text(member) === 'shuffle' && argumentsOf(node).some((argument) => isPart(argument))) return write;
          const seen = lookInto(node);
          if (seen.write !== null) return { write: seen.write, givesPart };
          break;
        }
      }
    }
    return { write: null, givesPart };
  }
}

function parametersOf(module: PyModule, method: PyNode): string[] {
  const list = partsOf(method).find(({ kind }) => kind === 'parameters');
  if (list === undefined) return [];
  return partsOf(list).map((parameter) => /[A-Za-z_]\w*/.exec(textOf(module, parameter))?.[0] ?? '');
}

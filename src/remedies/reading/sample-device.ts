import type { SourceTree } from '../../model/source-tree.ts';
import { argumentOf, describeCalls } from '../../source/calls.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import { definitionOf, moduleFile } from '../../source/imports.ts';
import { assignedValue, type Binding, bindingsFor, namesOf, resolveName } from '../../source/names.ts';
import { pythonFilesWith } from '../../source/python-files.ts';
import { ascend, descend, lineAt, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';

/** Code that speaks of a card: `x.npu()`, `x.to(device)`, `"npu:0"`. A change of type alone does not. */
export const DEVICE =
  /\.(npu|cuda)\(|\.to\(\s*(?!torch\.(float|half|double|bfloat|int|long|short|uint|bool|complex)|dtype\b)|["'](npu|cuda)\b|\bdevice\b/;

const GENERATOR = /\b(default_rng|RandomState|SeedSequence|PCG64|Generator|random\.Random|Random)\s*\(/;
/** Draws from a generator once, before the loader is made. */
const SPLITS = /\b(random_split|train_test_split)\s*\(/;
/** Tensors of every function land on a card. */
const DEFAULT_DEVICE = /\b(set_default_device|set_default_tensor_type)\s*\(\s*(?!["']cpu|torch\.(Float|Double|Half|BFloat16)Tensor)/;

/** `unseen`: somebody else's function makes the samples, and where it puts them is not in the repository. */
export interface SampleHazard {
  readonly kind: 'device' | 'generator' | 'unseen';
  readonly file: string;
  readonly line: number;
}

/** Libraries that make data on the host unless they are told a device. */
const HOST_LIBRARIES =
  /^(torch|torchvision|torchaudio|datasets|transformers|timm|numpy|pandas|PIL|cv2|sklearn|scipy|albumentations|imgaug|tokenizers|sentencepiece|librosa|soundfile|json|csv|glob|os|pathlib|math|random|itertools|functools|collections|copy|sorted)(\.|$)/;
/** Tensors come back on the device they were saved from; `torch.hub` runs code from elsewhere. */
const RESTORES = /^(torch\.(load|hub|jit|distributed|multiprocessing)\b|torch\.utils\.data\.DataLoader\b)/;

/** Names of settings: they hold a device as a rule, which says nothing about where the data set puts its tensors. */
const SETTINGS = /^(self|cls|args|opts?|options|cfg|config|conf|hparams|hps|params|parser|flags|settings|logger|log)$/i;

const MAX_NODES = 300;
const WRAPPERS = new Set([
  'list',
  'tuple',
  'dictionary',
  'pair',
  'expression_list',
  'parenthesized_expression',
  'conditional_expression',
  'boolean_operator',
  'binary_operator',
  'list_splat',
  'list_comprehension',
  'dictionary_comprehension',
  'generator_expression',
]);

/**
 * Everything that makes samples for a loader, followed through the repository: the data set and the collate function, their values,
 * functions, classes and base classes, and whatever these call by a name of the repository.
 */
export function sampleHazards(tree: SourceTree, { module, call }: CallSite): SampleHazard[] {
  const hazards: SampleHazard[] = [];
  const add = (kind: SampleHazard['kind'], at: PyModule, node: PyNode): void => {
    if (!hazards.some((hazard) => hazard.kind === kind)) hazards.push({ kind, file: at.path, line: lineAt(at.lineStarts, node.start) });
  };
  const dataset = argumentOf(call, 'dataset', 0)?.value ?? null;
  const collate = argumentOf(call, 'collate_fn', 6)?.value ?? null;
  const reach = new Reach(tree, add);
  for (const start of [dataset, collate]) if (start !== null) reach.follow(module, start);
  if (dataset !== null) reach.trace(module, dataset);
  reach.run();
  const { modules } = pythonFilesWith(tree, ['set_default_device', 'set_default_tensor_type']);
  for (const file of modules) if (DEFAULT_DEVICE.test(file.text)) add('device', file, file.root);
  return hazards;
}

type Add = (kind: SampleHazard['kind'], at: PyModule, node: PyNode) => void;

class Reach {
  readonly #tree: SourceTree;
  readonly #add: Add;
  readonly #seen = new Set<PyNode>();
  readonly #traced = new Set<PyNode>();
  readonly #members = new Set<string>();
  readonly #queue: { readonly module: PyModule; readonly node: PyNode }[] = [];

  constructor(tree: SourceTree, add: Add) {
    this.#tree = tree;
    this.#add = add;
  }

  /** This code runs in the workers, or makes what they hold. */
  follow(module: PyModule, node: PyNode): void {
    if (this.#seen.has(node)) return;
    // What is not looked at may do anything.
    if (this.#seen.size >= MAX_NODES) {
      this.#add('unseen', module, node);
      return;
    }
    this.#seen.add(node);
    this.#queue.push({ module, node });
  }

  run(): void {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const { module, node } = next;
      const text = textOf(module, node);
      if (DEVICE.test(text)) this.#add('device', module, node);
      if (GENERATOR.test(text) && (isDefinition(node) ? keepsGenerator(module, node) : !SPLITS.test(text)))
        this.#add('generator', module, node);
      this.#followNames(module, node);
    }
  }

  #followNames(module: PyModule, within: PyNode): void {
    for (const node of descend(within)) {
      if (node.kind !== 'identifier') continue;
      const { parent } = node;
      if (parent?.kind === 'keyword_argument' && partsOf(parent)[0] === node) continue;
      const name = textOf(module, node);
      if (parent?.kind === 'attribute' && partsOf(parent)[1] === node) {
        if (/^(self|cls)$/.test(textOf(module, partsOf(parent)[0]!))) this.#followMember(module, name);
        continue;
      }
      if (SETTINGS.test(name)) continue;
      for (const binding of this.#bindings(module, node, name)) {
        if (binding.at.start >= within.start && binding.at.end <= within.end) continue;
        if (binding.kind === 'import') this.#followImport(module, binding.name, node);
        else if (binding.at.parent?.kind !== 'parameters') this.follow(module, bound(binding.at));
      }
      // `dataset.transform = …` after the data set was made.
      for (const value of storesOf(module).onto.get(name) ?? []) if (!isInside(value, within)) this.follow(module, value);
    }
  }

  #followMember(module: PyModule, name: string): void {
    const key = `${name} ${module.path}`;
    if (this.#members.has(key)) return;
    this.#members.add(key);
    for (const definition of storesOf(module).functions.get(name) ?? []) this.follow(module, definition);
    for (const value of storesOf(module).own.get(name) ?? []) this.follow(module, value);
  }

  #followImport(module: PyModule, dotted: string, node: PyNode): void {
    for (const { module: home, bindings } of this.#definitions(module, dotted, node))
      for (const binding of bindings) this.follow(home, bound(binding.at));
  }

  /** What a dotted name of the repository means; the attributes behind an imported module belong to it. */
  #definitions(module: PyModule, dotted: string, node: PyNode) {
    let full = dotted;
    const found = definitionOf(this.#tree, module.path, full);
    if (found !== null) return [found];
    for (let up = node.parent; up?.kind === 'attribute'; up = up.parent) {
      full += `.${textOf(module, partsOf(up)[1]!)}`;
      const definition = definitionOf(this.#tree, module.path, full);
      if (definition !== null) return [definition];
    }
    return [];
  }

  #bindings(module: PyModule, node: PyNode, name: string): readonly Binding[] {
    const names = namesOf(module);
    const found = bindingsFor(names, node, name);
    if (found !== null) return found;
    return names.starImports.flatMap((from): Binding[] => {
      const full = from.endsWith('.') ? from + name : `${from}.${name}`;
      return definitionOf(this.#tree, module.path, full) === null ? [] : [{ kind: 'import', name: full, at: module.root }];
    });
  }

  /** Where the data set itself comes from: a class or function that can be read, or a library known to stay on the host. */
  trace(module: PyModule, node: PyNode): void {
    if (this.#traced.has(node)) return;
    this.follow(module, node);
    if (this.#traced.size >= MAX_NODES) return;
    this.#traced.add(node);
    if (WRAPPERS.has(node.kind)) for (const part of partsOf(node)) this.trace(module, part);
    if (node.kind === 'subscript' || node.kind === 'keyword_argument')
      this.trace(module, partsOf(node)[node.kind === 'subscript' ? 0 : 1]!);
    if (node.kind === 'call') this.#traceCall(module, node);
    if (node.kind === 'attribute') this.#traceAttribute(module, node);
    if (node.kind === 'identifier') this.#traceName(module, node);
  }

  #traceCall(module: PyModule, node: PyNode): void {
    const callable = node.children[0]!;
    const { names } = resolveName(namesOf(module), callable);
    const own = names.flatMap((name) => this.#definitions(module, name, callable.parent!));
    if (own.length > 0) {
      for (const { module: home, bindings } of own) for (const { at } of bindings) this.#traceMade(home, at);
      return;
    }
    const isLibrary = names.length > 0 && names.every((name) => HOST_LIBRARIES.test(name) && !RESTORES.test(name));
    const isOnHost = isLibrary || /map_location\s*=\s*(torch\.device\()?["']cpu/.test(textOf(module, node));
    if (
      isOnHost ||
      (names.length === 0 && callable.kind === 'identifier' && this.#bindings(module, callable, textOf(module, callable)).length === 0)
    ) {
      // A list, a subset or a pair of tensors is where its parts are.
      const list = partsOf(node).find((part) => part.kind === 'argument_list');
      if (list !== undefined && !/^(numpy|os|glob|json)\b/.test(names[0] ?? ''))
        for (const part of partsOf(list)) this.#traceArgument(module, part);
      return;
    }
    if (names.length > 0) this.#add('unseen', module, node);
    else if (callable.kind === 'attribute') {
      const [object, member] = partsOf(callable);
      if (object === undefined || member === undefined) return;
      if (!/^(self|cls)$/.test(textOf(module, object))) {
        this.trace(module, object);
        return;
      }
      const made = storesOf(module).functions.get(textOf(module, member)) ?? [];
      if (made.length === 0) this.#add('unseen', module, node);
      for (const definition of made) this.#traceMade(module, definition);
    } else if (callable.kind === 'identifier') {
      for (const binding of this.#bindings(module, callable, textOf(module, callable))) this.#traceMade(module, binding.at);
    } else this.#add('unseen', module, node);
  }

  #traceArgument(module: PyModule, part: PyNode): void {
    const value = part.kind === 'keyword_argument' ? partsOf(part)[1]! : part;
    // That of a split; the call as a whole is looked at for others.
    if (part.kind === 'keyword_argument' && textOf(module, partsOf(part)[0]!) === 'generator') return;
    // Settings and paths are passed along as well: only what could be data has to be known.
    if (value.kind === 'call' || WRAPPERS.has(value.kind)) this.trace(module, value);
    else if (value.kind === 'identifier' && !isParameter(this.#bindings(module, value, textOf(module, value)))) this.trace(module, value);
    else this.follow(module, value);
  }

  /** What calling this gives: an instance, or what a function returns. */
  #traceMade(module: PyModule, at: PyNode): void {
    this.follow(module, bound(at));
    if (at.kind === 'function_definition') {
      for (const node of descend(at))
        if (node.kind === 'return_statement' && functionOf(node) === at) for (const part of partsOf(node)) this.trace(module, part);
    } else if (at.kind === 'class_definition') {
      const bases = partsOf(at).find((part) => part.kind === 'argument_list');
      for (const base of bases === undefined ? [] : partsOf(bases)) {
        const { names } = resolveName(namesOf(module), base);
        const isKnown = (name: string): boolean => HOST_LIBRARIES.test(name) || /^(abc|typing)\b/.test(name);
        if (names.some((name) => !isKnown(name) && this.#definitions(module, name, base).length === 0)) this.#add('unseen', module, at);
      }
    } else if (at.kind === 'assignment') {
      const value = assignedValue(at);
      if (value !== undefined) this.trace(module, value);
    } else this.#add('unseen', module, at);
  }

  #traceAttribute(module: PyModule, node: PyNode): void {
    const [object, member] = partsOf(node);
    if (object === undefined || member === undefined) return;
    const { names } = resolveName(namesOf(module), node);
    const own = names.flatMap((name) => this.#definitions(module, name, node));
    if (own.length > 0) {
      for (const { module: home, bindings } of own) for (const { at } of bindings) this.#traceMade(home, at);
    } else if (!/^(self|cls)$/.test(textOf(module, object))) this.trace(module, object);
    else {
      const name = textOf(module, member);
      const values = storesOf(module).own.get(name) ?? [];
      if (values.length === 0) this.#add('unseen', module, node);
      for (const value of values) this.trace(module, value);
    }
  }

  #traceName(module: PyModule, node: PyNode): void {
    const name = textOf(module, node);
    if (SETTINGS.test(name)) return;
    for (const binding of this.#bindings(module, node, name)) {
      const { at, kind } = binding;
      if (kind === 'none') continue;
      if (kind === 'import') {
        const own = this.#definitions(module, binding.name, node);
        for (const { module: home, bindings } of own) for (const made of bindings) this.#traceMade(home, made.at);
        const isModule = moduleFile(this.#tree, module.path, binding.name) !== null;
        if (own.length === 0 && !isModule && !HOST_LIBRARIES.test(binding.name)) this.#add('unseen', module, node);
      } else if (at.kind === 'assignment') {
        const value = assignedValue(at);
        if (value !== undefined) this.trace(module, value);
      } else if (at.kind === 'for_statement' || at.kind === 'for_in_clause') this.trace(module, partsOf(at)[1]!);
      else if (at.parent?.kind === 'parameters') this.#traceParameter(module, at, name);
      else if (at.kind === 'class_definition' || at.kind === 'function_definition') this.follow(module, at);
      else if (at.kind !== 'augmented_assignment') this.#add('unseen', module, node);
    }
  }

  /** A data set that is handed in: by every call of that function. */
  #traceParameter(module: PyModule, parameter: PyNode, name: string): void {
    const definition = functionOf(parameter);
    const identifier = definition === null ? undefined : partsOf(definition).find((part) => part.kind === 'identifier');
    if (definition === null || identifier === undefined) {
      this.#add('unseen', module, parameter);
      return;
    }
    const owner = definition.parent?.parent?.kind === 'class_definition' ? definition.parent.parent : null;
    const written = textOf(module, identifier);
    const called =
      written === '__init__' && owner !== null ? textOf(module, partsOf(owner).find((part) => part.kind === 'identifier')!) : written;
    const all = partsOf(parameter.parent!);
    const first = all[0] !== undefined && /^(self|cls)$/.test(textOf(module, all[0])) ? 1 : 0;
    const { modules, failures } = pythonFilesWith(this.#tree, [`${called}(`]);
    const values = modules.flatMap((file) =>
      describeCalls(file, called).flatMap((call) => {
        const value = argumentOf(call, name, all.indexOf(parameter) - first)?.value;
        return value === undefined ? [] : [{ file, value }];
      }),
    );
    if (values.length === 0 || failures.length > 0) this.#add('unseen', module, parameter);
    for (const { file, value } of values) this.trace(file, value);
  }
}

function isParameter(bindings: readonly Binding[]): boolean {
  return bindings.some(({ at }) => at.parent?.kind === 'parameters');
}

function isInside(node: PyNode, within: PyNode): boolean {
  return node.start >= within.start && node.end <= within.end;
}

function functionOf(node: PyNode): PyNode | null {
  for (const up of ascend(node)) if (up.kind === 'function_definition') return up;
  return null;
}

/** What gives the name its value, without the body of the statement that binds it. */
function bound(at: PyNode): PyNode {
  if (at.kind === 'for_statement' || at.kind === 'for_in_clause') return partsOf(at)[1] ?? at;
  if (at.kind === 'as_pattern_target') return at.parent ?? at;
  return at;
}

function isDefinition(node: PyNode): boolean {
  return node.kind === 'class_definition' || node.kind === 'function_definition';
}

/** True where a class or a function leaves a generator in an attribute. */
function keepsGenerator(module: PyModule, within: PyNode): boolean {
  return [...descend(within)].some((node) => {
    const value = node.kind === 'assignment' ? assignedValue(node) : undefined;
    if (value === undefined || !GENERATOR.test(textOf(module, value))) return false;
    const isOfClass = within.kind === 'class_definition' && (functionOf(node)?.start ?? -1) < within.start;
    return isOfClass || textOf(module, partsOf(node)[0]!).includes('.');
  });
}

interface Stores {
  readonly functions: ReadonlyMap<string, readonly PyNode[]>;
  /** Values of `self.name = …`. */
  readonly own: ReadonlyMap<string, readonly PyNode[]>;
  /** Values of `name.attribute = …`. */
  readonly onto: ReadonlyMap<string, readonly PyNode[]>;
}

const stores = new WeakMap<PyModule, Stores>();

/** Functions of a file by name, and assignments to attributes. */
function storesOf(module: PyModule): Stores {
  const known = stores.get(module);
  if (known) return known;
  const functions = new Map<string, PyNode[]>();
  const own = new Map<string, PyNode[]>();
  const onto = new Map<string, PyNode[]>();
  for (const node of descend(module.root)) {
    if (node.kind === 'function_definition') {
      const name = partsOf(node).find((part) => part.kind === 'identifier');
      if (name !== undefined) put(functions, textOf(module, name), node);
    }
    const target = node.kind === 'assignment' ? partsOf(node)[0] : undefined;
    const value = target?.kind === 'attribute' ? assignedValue(node) : undefined;
    if (target === undefined || value === undefined) continue;
    const [root, member, deeper] = textOf(module, target).split('.', 3);
    if (root !== 'self') put(onto, root!, value);
    else if (deeper === undefined) put(own, member!, value);
  }
  const found = { functions, own, onto };
  stores.set(module, found);
  return found;
}

function put(map: Map<string, PyNode[]>, key: string, node: PyNode): void {
  const before = map.get(key);
  if (before === undefined) map.set(key, [node]);
  else before.push(node);
}

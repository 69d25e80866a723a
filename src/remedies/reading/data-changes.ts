import type { SourceTree } from '../../model/source-tree.ts';
import { argumentOf } from '../../source/calls.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import { assignedValue, type Binding, bindingsFor, namesOf } from '../../source/names.ts';
import { pythonFilesWith } from '../../source/python-files.ts';
import { isAside } from '../../source/readable-paths.ts';
import { descend, type PyModule, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { loopAround } from './loops.ts';
import { functionAround } from './offers.ts';

/** Methods that only look, or give something new. */
const READS =
  /^_*(get|is|has|to|with|map|select|filter|len|num|class|evaluat|collat|items$|keys$|values$|index$|count$|copy|deepcopy|size$|shape$|dim$|state_dict|mean|sum|min$|max$|numpy|info|describe|split|head$|decode|encode|tokeni)|__$/;
/** Functions that are handed data and leave it as it is. */
const HANDED =
  /(^|[._])(print|len|log\w*|info|debug|warn\w*|train\w*|eval\w*|valid\w*|test\w*|fit|save\w*|plot\w*|show\w*|append|isinstance|barrier)$/i;

/**
 * True when the training process changes what it gave to this loader while it trains: an attribute or element of the data set, of the
 * collate function or of what they were made from is stored to, or a method is called on them in a loop that does not merely read.
 */
export function isDataChanged(tree: SourceTree, { module, call }: CallSite): boolean {
  const given = [argumentOf(call, 'dataset', 0), argumentOf(call, 'collate_fn', 6)].flatMap((argument) => argument?.value ?? []);
  const direct = given.flatMap((value) => subjectsIn(module, value, false));
  if (changes(module, namesBehind(module, given), call.node)) return true;
  // Elsewhere the same name is taken for the same thing only where it says something.
  const telling = direct.filter((name) => name.length >= 4 && name !== 'data');
  if (telling.length === 0) return false;
  const { modules } = pythonFilesWith(tree, telling, (path) => path !== module.path && !isAside(path));
  return modules.some((file) => changes(file, new Set(telling), null));
}

/** Names and last members in an expression: `ds`, `train_set` of `self.train_set`; imported ones stand for code. */
function subjectsIn(module: PyModule, node: PyNode, isDeep: boolean): string[] {
  return [...descend(node)].flatMap((part) => {
    if (part.kind !== 'identifier') return [];
    const { parent } = part;
    if (parent?.kind === 'keyword_argument' && partsOf(parent)[0] === part) return [];
    const name = textOf(module, part);
    if (parent?.kind === 'attribute') {
      const isMember = partsOf(parent)[1] === part;
      const isCalled = parent.parent?.kind === 'call' && parent.parent.children[0] === parent;
      // The object in front of a member is left out: `args` of `args.root`, `self` of `self.train_set`.
      return isMember && !isCalled && /^(self|cls)\./.test(textOf(module, parent)) ? [name] : [];
    }
    if (!isDeep && part !== node && parent?.kind !== 'argument_list' && parent?.kind !== 'keyword_argument') return [];
    const bindings = bindingsFor(namesOf(module), part, name);
    const isCode = bindings?.some(({ kind, at }) => kind === 'import' || at.kind === 'class_definition') === true;
    return isCode || name === 'self' || name === 'cls' ? [] : [name];
  });
}

const MAX_STEPS = 6;

/** What the loader was given, what that was made from in the same file, and other names for it. */
function namesBehind(module: PyModule, given: readonly PyNode[]): ReadonlySet<string> {
  const names = new Set(given.flatMap((value) => subjectsIn(module, value, true)));
  const assignments = [...descend(module.root)].flatMap((node) => {
    const left = node.kind === 'assignment' ? partsOf(node)[0] : undefined;
    const right = left === undefined ? undefined : assignedValue(node);
    return left === undefined || right === undefined ? [] : [{ left, right }];
  });
  for (let step = 0, before = -1; step < MAX_STEPS && names.size !== before; step++) {
    before = names.size;
    for (const { left, right } of assignments) {
      const target = /^(?:self\.)?(\w+)$/.exec(textOf(module, left))?.[1];
      if (target === undefined) continue;
      if (names.has(target)) for (const name of subjectsIn(module, right, true)) names.add(name);
      const other = /^(?:self\.)?(\w+)$|\.(?:dataset|collate_fn)$/.exec(textOf(module, right));
      if (other !== null && right.kind !== 'none' && (other[1] === undefined || names.has(other[1]))) names.add(target);
    }
  }
  return names;
}

function changes(module: PyModule, names: ReadonlySet<string>, loader: PyNode | null): boolean {
  const isSubject = (node: PyNode): boolean => {
    const written = textOf(module, node);
    if (written.length > 200) return false;
    return written.split(/[.[(]/).some((part) => names.has(part)) || /\.(dataset|collate_fn)$/.test(written);
  };
  for (const node of descend(module.root)) {
    if (node.kind === 'assignment' || node.kind === 'augmented_assignment' || node.kind === 'delete_statement') {
      const target = partsOf(node)[0];
      if (target === undefined) continue;
      for (const place of descend(target)) {
        if (place.kind !== 'attribute' && place.kind !== 'subscript') continue;
        const object = partsOf(place)[0]!;
        if (isSubject(object) && isWhileTraining(module, node, object, loader)) return true;
      }
    }
    if (node.kind !== 'call') continue;
    const isDropped = node.parent?.kind === 'expression_statement';
    const callable = node.children[0]!;
    if (loopAround(node) === null && !isDropped) continue;
    if (callable.kind === 'attribute') {
      const [object, member] = partsOf(callable);
      const isRead = member === undefined || READS.test(textOf(module, member));
      if (object !== undefined && !isRead && isSubject(object) && isWhileTraining(module, node, object, loader)) return true;
    }
    const first = isDropped ? partsOf(partsOf(node)[1] ?? node)[0] : undefined;
    const isHanded = first !== undefined && (first.kind === 'identifier' || first.kind === 'attribute') && first !== callable;
    if (isHanded && !HANDED.test(textOf(module, callable)) && isSubject(first) && isWhileTraining(module, node, first, loader)) return true;
  }
  return false;
}

/** False for what is done before the loader is made, and for another thing of the same name. */
function isWhileTraining(module: PyModule, node: PyNode, object: PyNode, loader: PyNode | null): boolean {
  const around = functionAround(node);
  if (loader !== null && functionAround(loader) === around && node.end <= loader.start) {
    // Behind it all the same, where a loop goes round both.
    const loop = loopAround(node);
    if (loop === null || loop.end <= loader.start) return false;
  }
  const root = [...descend(object)].find((part) => part.kind === 'identifier');
  if (root === undefined) return false;
  const name = textOf(module, root);
  if (name === 'self') return !isMadeHere(module, around);
  const bindings = bindingsFor(namesOf(module), root, name) ?? [];
  // A name of that function stands for something else, unless it is only another name.
  const isLocal = ({ kind, at }: Binding): boolean =>
    kind === 'other' &&
    functionAround(at) === around &&
    at.parent?.kind !== 'parameters' &&
    (at.kind !== 'assignment' || assignedValue(at)?.kind === 'call');
  const isElsewhere = around !== null && (loader === null || functionAround(loader) !== around);
  return !isElsewhere || bindings.length === 0 || !bindings.every(isLocal);
}

function isMadeHere(module: PyModule, around: PyNode | null): boolean {
  const name = around === null ? undefined : partsOf(around).find((part) => part.kind === 'identifier');
  return (
    name !== undefined &&
    /^(__init__|__getitem__|__call__|setup|prepare_data|build\w*|make\w*|create\w*|load\w*)$/.test(textOf(module, name))
  );
}

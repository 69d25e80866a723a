import type { SourceTree } from '../../model/source-tree.ts';
import { findCalls, findMethodCalls, type PyCall } from '../../source/calls.ts';
import { deleteStatement, moveIntoBlock } from '../../source/edit-statement.ts';
import { namesOf } from '../../source/names.ts';
import { pythonFilesWith } from '../../source/python-files.ts';
import { isAside, isPython } from '../../source/readable-paths.ts';
import { ascend, descend, lineAt, type PyModule, type PyNode, partsOf, spanOf, textOf } from '../../source/syntax-tree.ts';
import { isTrainingFile, isTrainingText } from './loaders.ts';
import { loopAround, trainingLoops } from './loops.ts';
import { functionAround, type Proposal, statementOf } from './offers.ts';

const isKept = (proven: readonly string[]) => (path: string) => proven.includes(path) || (!isAside(path) && isTrainingFile(path));

/** Words of a timer, a profiler or an event near a wait: it is there to measure. */
const MEASURES = /time|perf_counter|event|record|prof|elapsed|clock|bench|mstx|nvtx|\btic\b|\btoc\b|throughput|barrier|latency/i;
const NEAR = 5;
/** Code whose order a wait may hold up: other streams, graphs, checkpoints written meanwhile. */
const ORDERED =
  /\bStream\s*\(|\.stream\s*\(|wait_stream|wait_event|record_stream|distributed\.checkpoint|async_save|npu_?graph|NPUGraph|CUDAGraph/i;
/**
 * A copy that the host does not wait for reads its source later: whoever writes to that memory again relies on the wait. Without it the
 * batch is overwritten while it is on its way, and nothing says so.
 */
const IN_FLIGHT =
  /\bnon_blocking\b(?!\s*(:\s*bool\s*)?=\s*False)|\.(copy_|to|npu|cuda)\([^()]{1,200},\s*True\s*[,)]|\.pin_memory\s*\(|\b(empty|zeros|ones|full|rand|tensor)\w*\(.{0,200}\bpin_memory\s*=\s*(?!False)/;
/** Words of a timer anywhere in a loop: what it measures is the step, and the wait makes it true. */
const TIMES =
  /time(?!_?steps?)|perf_counter|monotonic|\bEvent\b|\.record\(|elapsed|clock\b|bench|\btic\b|\btoc\b|throughput|latency|per_sec/i;

/** Waits for the whole card in training loops; with a deletion where nothing near measures and nothing in the tree needs the order. */
export function deviceWaits(tree: SourceTree, names: readonly string[], proven: readonly string[]): Proposal[] {
  const sites = callsInLoops(tree, names, proven);
  const isOrdered = sites.length > 0 && (hasText(tree, ORDERED) || hasText(tree, IN_FLIGHT));
  return sites
    .filter(({ call }) => !isNowAndThen(call))
    .map(({ module, call, isTraining }) => {
      const { startLine, endLine } = spanOf(module, call.node);
      const around = linesOf(module, startLine - NEAR, endLine + NEAR).filter((line) => !/^\s*(#|import|from)\b/.test(line));
      const isConditional = call.enclosing.some(({ kind }) => kind === 'if' || kind === 'else' || kind === 'try' || kind === 'with');
      // A wait that measures, or that something may need, is named as a place; what to do about it is not a deletion.
      const isNeeded = isOrdered || around.some((line) => MEASURES.test(line)) || isTimed(module, call.node);
      return removal(module, call, isTraining && !isNeeded ? statementOf(call.node) : null, !isConditional);
    });
}

/** A loop may hold hundreds of waits, and its lines are read as a whole. */
const timedLoops = new WeakMap<PyNode, boolean>();

/** True where a timer runs in any loop around, however far away. */
function isTimed(module: PyModule, node: PyNode): boolean {
  let outermost: PyNode | null = null;
  for (let loop = loopAround(node); loop !== null; loop = loopAround(loop)) outermost = loop;
  if (outermost === null) return false;
  const known = timedLoops.get(outermost);
  if (known !== undefined) return known;
  const { startLine, endLine } = spanOf(module, outermost);
  const found = linesOf(module, startLine, endLine).some((line) => !/^\s*#/.test(line) && TIMES.test(line));
  timedLoops.set(outermost, found);
  return found;
}

/** Under `if step % n`: rare, so not what a profile of every step shows. */
function isNowAndThen(call: PyCall): boolean {
  return call.enclosing.some(({ kind, text }) => kind === 'if' && /%|\bis_main|\brank\b/.test(text ?? ''));
}

/** Signs that another engine or phase waits for the memory. */
const HANDS_OVER = /rollout|vllm|sglang|\.generate\(|wake_up|offload|\bactor\b|\bcritic\b|reward_model|\bray\b|colocat/i;
const PHASE = /\.eval\(|\.train\(|\bevaluate\w*\(|\bvalidat|\btest\w*\(|save_checkpoint|torch\.save/;

/** Calls that empty the allocator's cache in training loops, without those that answer a failed allocation or belong to another phase. */
export function cacheReleases(tree: SourceTree, names: readonly string[], proven: readonly string[]): Proposal[] {
  const sites = callsInLoops(tree, names, proven).filter(({ call }) => !call.enclosing.some(({ kind }) => kind === 'try'));
  const isHandedOver = sites.length > 0 && hasText(tree, HANDS_OVER);
  return sites.flatMap(({ module, call, isTraining }): Proposal[] => {
    const { startLine, endLine } = spanOf(module, call.node);
    const around = linesOf(module, startLine - NEAR, endLine + NEAR);
    const isPhase = around.some((line) => PHASE.test(line));
    const isConditional = call.enclosing.some(({ kind }) => kind === 'if' || kind === 'else' || kind === 'with');
    if (isPhase && isConditional) return [];
    const isFreed = around.some((line) => /\bdel\s/.test(line));
    const isNeeded = isPhase || isHandedOver;
    return [removal(module, call, isTraining && !isNeeded ? statementOf(call.node) : null, !isConditional && !isFreed)];
  });
}

function removal(module: PyModule, call: PyCall, statement: PyNode | null, isSafe: boolean): Proposal {
  const isWhole = statement?.kind === 'expression_statement' && partsOf(statement)[0] === call.node;
  const { steps } = isWhole ? deleteStatement(module, statement) : { steps: null };
  return { module, node: call.node, steps: steps ?? [], isSafe };
}

interface LoopCall {
  readonly module: PyModule;
  readonly call: PyCall;
  /** A step of training lies in the same loop. */
  readonly isTraining: boolean;
}

function callsInLoops(tree: SourceTree, names: readonly string[], proven: readonly string[]): LoopCall[] {
  const word = names[0]!.slice(names[0]!.lastIndexOf('.') + 1);
  const { modules } = pythonFilesWith(tree, [word], isKept(proven));
  return modules.flatMap((module) => {
    const loops = trainingLoops(module);
    return findCalls(module, names, namesOf(module)).flatMap((call): LoopCall[] => {
      const loop = loopAround(call.node);
      if (loop === null) return [];
      const isTraining = loops.has(loop);
      // Once in an epoch is not what the steps of a profile show.
      const name = functionAround(call.node);
      const called = name === null ? undefined : partsOf(name).find((part) => part.kind === 'identifier');
      if (called && !isTrainingText(textOf(module, called))) return [];
      const isRare = !isTraining && /epoch/i.test(textOf(module, loop).split('\n', 1)[0]!);
      return isRare ? [] : [{ module, call, isTraining: call.name !== null && isTraining }];
    });
  });
}

function linesOf(module: PyModule, first: number, last: number): string[] {
  const from = module.lineStarts[Math.max(0, first - 1)]!;
  const to = last < module.lineStarts.length ? module.lineStarts[last]! : module.text.length;
  return module.text.slice(from, to).split('\n');
}

/** Longer lines are data, and patterns that look both ways would take long over them. */
const MAX_LINE = 2_000;

function hasText(tree: SourceTree, pattern: RegExp): boolean {
  return tree.paths.some(
    (path) =>
      isPython(path) && !isAside(path) && (tree.read(path) ?? '').split('\n').some((line) => line.length <= MAX_LINE && pattern.test(line)),
  );
}

/** A file with more of them is generated. */
const MAX_LOOKED = 100;

/**
 * Values read from the card in every step of a training loop: `.item()` and the like. A read that decides what runs next is needed
 * where it stands and is left out. Safe to move: `v = x.item()` where `v` is used only under the `if … % n` that follows.
 */
export function readsEachStep(tree: SourceTree, proven: readonly string[]): Proposal[] {
  const { modules } = pythonFilesWith(tree, ['.item(', '.tolist('], isKept(proven));
  return modules.flatMap((module) => {
    const loops = trainingLoops(module);
    if (loops.size === 0) return [];
    let looked = 0;
    return findMethodCalls(module, ['item', 'tolist']).flatMap((call): Proposal[] => {
      const loop = loopAround(call.node);
      if (loop === null || !loops.has(loop) || call.arguments.length > 0) return [];
      if (isNowAndThen(call) || decides(call.node)) return [];
      const steps = ++looked > MAX_LOOKED ? null : underTheGuard(module, call);
      return [{ module, node: call.node, steps: steps ?? [], isSafe: steps !== null }];
    });
  });
}

/** True inside a condition, an assertion or a return: the value decides what runs next. */
function decides(node: PyNode): boolean {
  let inner = node;
  for (const up of ascend(node)) {
    const isTest =
      ['if_statement', 'elif_clause', 'while_statement', 'assert_statement', 'conditional_expression'].includes(up.kind) &&
      inner.kind !== 'block';
    if (isTest || up.kind === 'return_statement' || up.kind === 'yield') return true;
    if (up.kind === 'block') return false;
    inner = up;
  }
  return false;
}

function underTheGuard(module: PyModule, call: PyCall): Proposal['steps'] | null {
  const statement = statementOf(call.node);
  const assignment = statement === null ? undefined : partsOf(statement)[0];
  if (statement?.kind !== 'expression_statement' || assignment?.kind !== 'assignment') return null;
  const [target, value] = partsOf(assignment);
  if (target?.kind !== 'identifier' || value !== call.node || !isPlainRead(module, call.node)) return null;
  const siblings = partsOf(statement.parent!);
  const guard = siblings[siblings.indexOf(statement) + 1];
  if (guard?.kind !== 'if_statement') return null;
  const [condition, block, ...rest] = partsOf(guard);
  if (condition === undefined || block?.kind !== 'block' || rest.length > 0) return null;
  const name = textOf(module, target);
  if (!/^[\w.\s()+]+%[\w.\s()]+==[\s\d\w.]+$/.test(textOf(module, condition))) return null;
  const scope = functionAround(call.node) ?? module.root;
  for (const node of identifiersOf(module, scope).get(name) ?? []) {
    if (node === target) continue;
    if (node.parent?.kind === 'attribute' && partsOf(node.parent)[1] === node) continue;
    if (node.parent?.kind === 'keyword_argument' && partsOf(node.parent)[0] === node) continue;
    if (node.start < block.start || node.end > block.end) return null;
  }
  // A name of the module may be read from anywhere, and any name through its text.
  if (scope === module.root && globalsOf(module).has(name)) return null;
  if (readsByText(module)) return null;
  return lineAt(module.lineStarts, guard.start) === lineAt(module.lineStarts, block.start)
    ? null
    : moveIntoBlock(module, statement, block).steps;
}

const identifiers = new WeakMap<PyNode, ReadonlyMap<string, readonly PyNode[]>>();

/** Identifiers below a function or module by their names. */
function identifiersOf(module: PyModule, scope: PyNode): ReadonlyMap<string, readonly PyNode[]> {
  const known = identifiers.get(scope);
  if (known) return known;
  const found = Map.groupBy(
    [...descend(scope)].filter(({ kind }) => kind === 'identifier'),
    (node) => textOf(module, node),
  );
  identifiers.set(scope, found);
  return found;
}

const globalNames = new WeakMap<PyModule, ReadonlySet<string>>();

/** Names in `global` statements. */
function globalsOf(module: PyModule): ReadonlySet<string> {
  const known = globalNames.get(module);
  if (known) return known;
  const lines = module.text.match(/^[ \t]*global\b.*$/gm) ?? [];
  const found = new Set(lines.flatMap((line) => line.match(/\w+/g) ?? []));
  globalNames.set(module, found);
  return found;
}

function readsByText(module: PyModule): boolean {
  return ['globals', 'locals', 'vars', 'eval', 'exec'].some((name) =>
    (identifiersOf(module, module.root).get(name) ?? []).some(({ parent }) => parent?.kind === 'call'),
  );
}

/** Reading without effects: names, attributes, and methods that only compute. */
function isPlainRead(module: PyModule, call: PyNode): boolean {
  return /^[A-Za-z_][\w.]*(\.(detach|mean|sum|float|cpu)\(\))*\.(item|tolist)\(\)$/.test(textOf(module, call));
}

import type { Occurrence } from '../../model/code.ts';
import { argumentOf, type PyCall } from '../../source/calls.ts';
import { bindingsFor } from '../../source/names.ts';
import { ascend, descend, type PyNode, partsOf, textOf } from '../../source/syntax-tree.ts';
import { certainCalls, isGuarded, isSwitched, madeBy, type NpuFile, once, scopeOf, siteOf } from './npu-file.ts';

const OWN = 'torch_npu.profiler.profile';
const FOREIGN = ['torch.profiler.profile', 'torch.profiler.profiler.profile'];
const SCHEDULES = ['torch_npu.profiler.schedule', 'torch.profiler.schedule', 'torch.profiler.profiler.schedule'];

/** A profiler that never moves on, and one that writes nothing this tool or MindStudio Insight can read. */
export function profilingOccurrences(file: NpuFile, isTransferred: boolean): Occurrence[] {
  const { module } = file;
  const found: Occurrence[] = [];
  const isOurs = file.isNpuOnly || file.isTransferred;
  for (const call of certainCalls(file, isOurs ? [OWN, ...FOREIGN] : [OWN])) {
    if (isGuarded(module, call.node) || !waitsForStep(file, call) || isSteppedSomewhere(file, call)) continue;
    found.push({
      kind: 'profiler-without-step',
      name: call.written,
      replacement: 'torch_npu.profiler.profile.step',
      confidence: 'high',
      site: siteOf(module, call.node),
    });
  }
  if (!file.isNpuOnly || isTransferred) return found;
  for (const call of certainCalls(file, FOREIGN)) {
    const activities = argumentOf(call, 'activities', 0);
    // Asked for the host only, or through names of another card.
    if (activities !== null || call.hasKeywordArgs || call.hasStarArgs) continue;
    if (isGuarded(module, call.node) || isSwitched(file, call.node)) continue;
    found.push({
      kind: 'foreign-profiler',
      name: 'torch.profiler.profile',
      replacement: OWN,
      confidence: 'medium',
      site: siteOf(module, call.node),
    });
  }
  return found;
}

/** A name used more often is anybody's. */
const MAX_MENTIONS = 400;

/** Before the first `step()` its schedule records nothing: the first step is one of those it skips, waits for or warms up in. */
function waitsForStep(file: NpuFile, call: PyCall): boolean {
  if (call.hasKeywordArgs || call.hasStarArgs) return false;
  const given = argumentOf(call, 'schedule', 1)?.value;
  const made = given ? madeBy(file, given) : null;
  const schedule = made ? certainCalls(file, SCHEDULES).find(({ node }) => node === made) : undefined;
  if (schedule === undefined) return false;
  return ['wait', 'warmup', 'skip_first'].some((name) => {
    const value = argumentOf(schedule, name, name === 'wait' ? 0 : null);
    return value?.valueKind === 'integer' && Number(value.text) > 0;
  });
}

/** Somebody may call `step()`: on its own name here, or because it is handed on. */
function isSteppedSomewhere(file: NpuFile, call: PyCall): boolean {
  const { module } = file;
  const target = targetOf(file, call.node);
  if (target === 'elsewhere') return true;
  if (target === null) return false;
  const name = textOf(module, target);
  const named = once(file, 'identifiers', () =>
    Map.groupBy(
      [...descend(module.root)].filter((node) => node.kind === 'identifier'),
      (node) => textOf(module, node),
    ),
  ).get(name);
  let isRun = target.parent?.kind === 'as_pattern_target' || scopeOf(target).kind === 'function_definition';
  for (const node of (named ?? []).slice(0, MAX_MENTIONS)) {
    if (node === target) continue;
    const parent = node.parent;
    if (parent?.kind === 'attribute' && partsOf(parent)[0] === node) {
      // `prof.start()` and the like are no steps; `prof.step` as a value may be called by anyone.
      const member = textOf(module, partsOf(parent)[1]!);
      const isCalled = parent.parent?.kind === 'call' && parent.parent.children[0] === parent;
      if (member === 'step' || !isCalled) return true;
      isRun ||= member === 'start';
    } else if (parent?.kind === 'with_item') isRun = true;
    else if (parent?.kind !== 'attribute' && !isBinding(parent, node)) return true;
  }
  // A profiler that this file only makes is another file's to run.
  return !isRun;
}

function isBinding(parent: PyNode | null, node: PyNode): boolean {
  if (parent?.kind === 'as_pattern_target' || parent?.kind === 'delete_statement') return true;
  return parent?.kind === 'assignment' && partsOf(parent)[0] === node;
}

/** The name a profiler goes by: null when it has none, 'elsewhere' when it leaves the function by another way. */
function targetOf(file: NpuFile, call: PyNode): PyNode | null | 'elsewhere' {
  const { module, names } = file;
  for (const up of ascend(call)) {
    if (up.kind === 'as_pattern') {
      const target = partsOf(up).find((part) => part.kind === 'as_pattern_target');
      const only = target ? partsOf(target)[0] : undefined;
      return only?.kind === 'identifier' ? only : 'elsewhere';
    }
    if (up.kind === 'assignment') {
      const target = partsOf(up)[0];
      if (target?.kind !== 'identifier' || partsOf(up).at(-1) !== call) return 'elsewhere';
      return (bindingsFor(names, target, textOf(module, target)) ?? []).length === 1 ? target : 'elsewhere';
    }
    if (up.kind === 'with_item') return up.children[0] === call ? null : 'elsewhere';
    if (!['with_clause', 'parenthesized_expression'].includes(up.kind)) return 'elsewhere';
  }
  return 'elsewhere';
}

import type { JobFacts } from '../facts/job/index.ts';
import type { Mismatch } from '../model/comparison.ts';
import { COMPUTE, type RankFacts, type Tape } from '../model/facts.ts';
import type { L10n, ParamValue } from '../model/lang.ts';
import { MIN_SAMPLES } from './bootstrap.ts';
import { isModelWork } from './work-class.ts';

/** What keeps two jobs from being compared, and what only has to be said. */
export interface Comparability {
  readonly refusals: readonly Mismatch[];
  readonly warnings: readonly Mismatch[];
}

/** Ranks that are in both, as indices into each job's ranks, in the same order. */
export interface Pairing {
  readonly head: readonly number[];
  readonly base: readonly number[];
}

/**
 * The same rank numbers. Folders without a number are taken in order when both sides have equally many, so that a single card compares.
 */
export function pairRanks(head: JobFacts, base: JobFacts): Pairing {
  const numbered = (job: JobFacts): boolean => job.ranks.every((r) => r.rank !== null);
  if (numbered(head) && numbered(base)) {
    const index = new Map(base.ranks.map((r, i) => [r.rank, i] as const));
    const both = head.ranks
      .map((r, i) => [i, index.get(r.rank)] as const)
      .filter((p): p is readonly [number, number] => p[1] !== undefined);
    return { head: both.map((p) => p[0]), base: both.map((p) => p[1]) };
  }
  if (head.ranks.length !== base.ranks.length) return { head: [], base: [] };
  return { head: head.ranks.map((_, i) => i), base: base.ranks.map((_, i) => i) };
}

function mismatch(what: Mismatch['what'], text: L10n, params: Readonly<Record<string, ParamValue>> = {}): Mismatch {
  return { what, text: { text, params } };
}

function first<T>(job: JobFacts, value: (rank: RankFacts) => T | null | undefined): T | null {
  for (const rank of job.ranks) {
    const v = value(rank);
    if (v !== null && v !== undefined && v !== '') return v;
  }
  return null;
}

const major = (version: string): string => /\d+/.exec(version)?.[0] ?? version;

/** Everything about the two jobs that is not their speed. `pairing` names the ranks that are in both. */
export function comparability(head: JobFacts, base: JobFacts, pairing: Pairing): Comparability {
  const refusals: Mismatch[] = [];
  const warnings: Mismatch[] = [];
  const unknown: string[] = [];
  const differ = (what: Mismatch['what'], value: (rank: RankFacts) => string | null | undefined, said: L10n, name: string | null): void => {
    const [now, before] = [first(head, value), first(base, value)];
    if (now === null || before === null) {
      if (name !== null) unknown.push(name);
    } else if (now.toLowerCase() !== before.toLowerCase()) refusals.push(mismatch(what, said, { now, before }));
  };
  differ('device', (r) => r.settings.soc, DEVICE, 'device');
  versions('cann', (r) => r.settings.cann, CANN, CANN_MINOR, 'CANN');
  versions('torch-npu', (r) => r.settings.torchNpu, TORCH_NPU, TORCH_NPU_MINOR, 'torch_npu');
  versions('torch', (r) => r.settings.torch, null, TORCH_MINOR, null);

  function versions(
    what: Mismatch['what'],
    value: (rank: RankFacts) => string | null,
    refused: L10n | null,
    said: L10n,
    name: string | null,
  ): void {
    const [now, before] = [first(head, value), first(base, value)];
    if (now === null || before === null) {
      if (name !== null) unknown.push(name);
    } else if (now !== before) {
      if (refused !== null && major(now) !== major(before)) refusals.push(mismatch(what, refused, { now, before }));
      else warnings.push(mismatch(what, said, { now, before }));
    }
  }

  const [worldNow, worldBefore] = [head.world.size, base.world.size];
  if (worldNow !== null && worldBefore !== null && worldNow !== worldBefore)
    refusals.push(mismatch('world-size', WORLD, { now: worldNow, before: worldBefore }));
  else if ((worldNow === null || worldBefore === null) && head.ranks.length !== base.ranks.length)
    refusals.push(mismatch('world-size', WORLD_UNKNOWN, { now: head.ranks.length, before: base.ranks.length }));
  else if (pairing.head.length === 0) refusals.push(mismatch('ranks', NO_COMMON));
  else if (pairing.head.length < Math.max(head.ranks.length, base.ranks.length)) {
    const ranks = pairing.head.map((i) => head.ranks[i]!.rank ?? -1);
    warnings.push(mismatch('ranks', SOME_COMMON, { ranks }));
  }

  const [dimensionsNow, dimensionsBefore] = [dimensions(head), dimensions(base)];
  const changed = [...dimensionsNow].filter(([name, n]) => dimensionsBefore.has(name) && dimensionsBefore.get(name) !== n);
  if (changed.length > 0 && worldNow === worldBefore) {
    const show = (of: ReadonlyMap<string, number>): string => changed.map(([name]) => `${name}=${of.get(name)}`).join(' ');
    refusals.push(mismatch('layout', LAYOUT, { now: show(dimensionsNow), before: show(dimensionsBefore) }));
  }

  const [batchNow, batchBefore] = [head.batch?.samplesPerStep ?? null, base.batch?.samplesPerStep ?? null];
  if (batchNow !== null && batchBefore !== null && batchNow !== batchBefore)
    refusals.push(mismatch('batch', BATCH, { now: batchNow, before: batchBefore }));

  const same = sharedShapes(head, base, pairing);
  if (same === null && batchNow === null) unknown.push('batch');
  if (same !== null && same.share < SAME_SHAPES) {
    if (same.dynamic) warnings.push(mismatch('shapes', DYNAMIC, { share: same.share }));
    else if (batchNow !== null && batchNow === batchBefore) warnings.push(mismatch('shapes', SAME_BATCH, { share: same.share }));
    else if (same.share < OTHER_SHAPES) refusals.push(mismatch('shapes', SHAPES, { share: same.share }));
    else warnings.push(mismatch('shapes', SOME_SHAPES, { share: same.share }));
  }

  const bias = CAPTURE.filter(([, value]) => {
    const [now, before] = [first(head, value), first(base, value)];
    return now !== null && before !== null && now !== before;
  });
  if (bias.length > 0) refusals.push(mismatch('capture', BIAS, { options: bias.map(([name]) => name) }));
  const lighter = LIGHT.filter(([, value]) => {
    const [now, before] = [first(head, value), first(base, value)];
    return now !== null && before !== null && now !== before;
  });
  if (lighter.length > 0) warnings.push(mismatch('capture', LIGHT_BIAS, { options: lighter.map(([name]) => name) }));

  if (head.steps.stepTimeMs === null || base.steps.stepTimeMs === null) refusals.push(mismatch('step-basis', NO_STEP));
  else if (kindOfStep(head) !== kindOfStep(base)) refusals.push(mismatch('step-basis', BASIS));
  const frameworks = [first(head, (r) => r.settings.framework), first(base, (r) => r.settings.framework)];
  if (frameworks[0] !== null && frameworks[1] !== null && frameworks[0] !== frameworks[1])
    warnings.push(mismatch('framework', FRAMEWORK, { now: frameworks[0]!, before: frameworks[1]! }));
  if (unknown.length > 0) warnings.push(mismatch('unknown', UNKNOWN, { names: unknown }));
  return { refusals, warnings };
}

/** Too few steps on a side to know its noise. */
export function tooFewSteps(head: number, base: number): Mismatch {
  return mismatch('steps', FEW_STEPS, { now: head, before: base, least: MIN_SAMPLES });
}

/** Distances of step starts and the length of one step are the same quantity; a device span is not. */
function kindOfStep(job: JobFacts): 'step' | 'span' {
  return job.steps.basis === 'device-span' ? 'span' : 'step';
}

/** Options that make the host slower while it launches; see `facts/job/per-step.ts`. */
const CAPTURE: readonly (readonly [string, (r: RankFacts) => boolean | null])[] = [
  ['with_stack', (r) => r.settings.withStack],
  ['with_modules', (r) => r.settings.withModules],
  ['profile_memory', (r) => r.settings.profileMemory],
  ['profiler_level=Level2', (r) => (r.settings.level === null ? null : r.settings.level === 'Level2')],
];

/** Options that cost little: they are said and do not rule a verdict out. */
const LIGHT: readonly (readonly [string, (r: RankFacts) => string | boolean | null])[] = [
  ['profiler_level', (r) => (r.settings.level === 'Level2' ? null : r.settings.level)],
  ['record_shapes', (r) => r.settings.recordShapes],
  ['aic_metrics', (r) => r.settings.aicMetrics],
  ['l2_cache', (r) => r.settings.l2Cache],
];

const ROLES: readonly (readonly [string, string])[] = [
  ['tensor_model_parallel_size', 'tp'],
  ['pipeline_model_parallel_size', 'pp'],
  ['data_parallel_size', 'dp'],
  ['context_parallel_size', 'cp'],
  ['expert_model_parallel_size', 'ep'],
];

/** Sizes of the parallel groups, as the trainer recorded them, else by the groups of one rank. */
function dimensions(job: JobFacts): Map<string, number> {
  const out = new Map<string, number>();
  for (const rank of job.ranks) {
    for (const [key, name] of ROLES) if (rank.parallel[key] !== undefined && !out.has(name)) out.set(name, rank.parallel[key]!);
  }
  if (out.size > 0) return out;
  for (const group of job.ranks.flatMap((r) => r.groups)) {
    const role = group.role ?? '';
    if (ROLES.some(([, name]) => name === role) && !out.has(role)) out.set(role, group.ranks.length);
  }
  return out;
}

/** Share of the model's time in shapes of the other run from which the work counts as the same, and below which as another batch. */
const SAME_SHAPES = 0.8;
const OTHER_SHAPES = 0.2;
/** Less model work than this share of computing tells nothing. */
const ENOUGH = 0.05;
const MAX_RANKS = 4;

/**
 * How much of the time in matrix products, convolutions and attention has input shapes that the other run has, too. Another batch or
 * sequence length changes all of them; code that is added or fused changes some. null when shapes are not recorded.
 */
function sharedShapes(head: JobFacts, base: JobFacts, pairing: Pairing): { share: number; dynamic: boolean } | null {
  const shares: number[] = [];
  let dynamic = false;
  for (let k = 0; k < Math.min(MAX_RANKS, pairing.head.length); k++) {
    const [now, before] = [shapeTimes(head, pairing.head[k]!, 0, 1), shapeTimes(base, pairing.base[k]!, 0, 1)];
    if (now === null || before === null) continue;
    shares.push(Math.max(overlap(now, before), overlap(before, now)));
    dynamic ||= changesFromStepToStep(head, pairing.head[k]!) || changesFromStepToStep(base, pairing.base[k]!);
  }
  return shares.length === 0 ? null : { share: Math.min(...shares), dynamic };
}

function changesFromStepToStep(job: JobFacts, rank: number): boolean {
  if (job.steps.usedIndex.length < 2) return false;
  const [early, late] = [shapeTimes(job, rank, 0, 2), shapeTimes(job, rank, 1, 2)];
  return early !== null && late !== null && Math.max(overlap(early, late), overlap(late, early)) < SAME_SHAPES;
}

/** Time by class of work and input shapes over every `of`-th used step. null without shapes. */
function shapeTimes(job: JobFacts, rank: number, nth: number, of: number): Map<string, number> | null {
  const tape = job.ranks[rank]?.tape ?? null;
  if (tape === null) return null;
  const steps = new Set(job.steps.usedIndex.filter((_, i) => i % of === nth));
  const model = tape.types.map(isModelWork);
  const times = new Map<number, number>();
  let computing = 0;
  let seen = 0;
  for (let i = 0; i < tape.start.length; i++) {
    if (tape.kind[i] !== COMPUTE || (steps.size > 0 && !steps.has(tape.step[i]!))) continue;
    computing += tape.duration[i]!;
    if (!model[tape.type[i]!] || tape.shape[i]! < 0) continue;
    seen += tape.duration[i]!;
    times.set(tape.shape[i]!, (times.get(tape.shape[i]!) ?? 0) + tape.duration[i]!);
  }
  if (!(seen >= ENOUGH * computing) || seen === 0) return null;
  return byShape(tape, times);
}

/** Shapes alone, not types: another version of CANN may run the same product by an operator of another name. */
function byShape(tape: Tape, times: ReadonlyMap<number, number>): Map<string, number> {
  return new Map([...times].map(([id, ns]) => [tape.shapes[id]!, ns] as const));
}

function overlap(of: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number {
  let [shared, all] = [0, 0];
  for (const [shape, ns] of of) {
    all += ns;
    if (other.has(shape)) shared += ns;
  }
  return all > 0 ? shared / all : 0;
}

const DEVICE: L10n = { en: 'device {now:code}, baseline {before:code}', zh: '设备为 {now:code}，基线为 {before:code}' };
const CANN: L10n = { en: 'CANN {now:code}, baseline {before:code}', zh: 'CANN {now:code}，基线 {before:code}' };
const CANN_MINOR: L10n = {
  en: 'CANN {now:code}, baseline {before:code}: the change may come from there',
  zh: 'CANN {now:code}，基线 {before:code}：变化可能来自版本',
};
const TORCH_NPU: L10n = { en: 'torch_npu {now:code}, baseline {before:code}', zh: 'torch_npu {now:code}，基线 {before:code}' };
const TORCH_NPU_MINOR: L10n = {
  en: 'torch_npu {now:code}, baseline {before:code}: the change may come from there',
  zh: 'torch_npu {now:code}，基线 {before:code}：变化可能来自版本',
};
const TORCH_MINOR: L10n = {
  en: 'PyTorch {now:code}, baseline {before:code}: the change may come from there',
  zh: 'PyTorch {now:code}，基线 {before:code}：变化可能来自版本',
};
const WORLD: L10n = { en: '{now:int} ranks, baseline {before:int}', zh: '{now:int} 张卡，基线 {before:int} 张' };
const WORLD_UNKNOWN: L10n = {
  en: '{now:int} ranks were uploaded, {before:int} of the baseline, and how many the job has is not recorded',
  zh: '上传了 {now:int} 张卡，基线 {before:int} 张，且没有记录作业总卡数',
};
const NO_COMMON: L10n = { en: 'no rank is in both profiles', zh: '两份 profile 没有共同的卡' };
const SOME_COMMON: L10n = { en: 'compared on the ranks that are in both: {ranks:ranks}', zh: '只对比两侧都有的卡：{ranks:ranks}' };
const LAYOUT: L10n = {
  en: 'parallel layout {now:code}, baseline {before:code}',
  zh: '并行切分为 {now:code}，基线为 {before:code}',
};
const BATCH: L10n = {
  en: '{now:int} samples per step, baseline {before:int}',
  zh: '每迭代 {now:int} 个样本，基线 {before:int} 个',
};
const SHAPES: L10n = {
  en: 'batch or sequence length: only {share:pct} of the time in matrix products, convolutions and attention has shapes of the baseline',
  zh: 'batch 或序列长度：矩阵乘、卷积与 attention 的耗时中只有 {share:pct} 的 shape 与基线相同',
};
const SOME_SHAPES: L10n = {
  en: '{share:pct} of the time in matrix products, convolutions and attention has shapes of the baseline: the model was changed',
  zh: '矩阵乘、卷积与 attention 的耗时中 {share:pct} 的 shape 与基线相同：模型有改动',
};
const SAME_BATCH: L10n = {
  en: 'the same batch in other shapes, as with micro-batches of another size: {share:pct} of the time in matrix products, convolutions and attention has shapes of the baseline',
  zh: 'batch 相同而 shape 不同（如 micro batch 大小改变）：矩阵乘、卷积与 attention 的耗时中 {share:pct} 的 shape 与基线相同',
};
const DYNAMIC: L10n = {
  en: 'shapes change from step to step, {share:pct} of the time is in shapes that both have: the work of a step is not the same',
  zh: 'shape 随迭代变化，{share:pct} 的耗时在两侧都有的 shape 上：每迭代的工作量不同',
};
const BIAS: L10n = {
  en: 'capture options that slow the host, on one side only: {options:code}',
  zh: '只在一侧开启、会拖慢 Host 的采集选项：{options:code}',
};
const LIGHT_BIAS: L10n = { en: 'capture options differ: {options:code}', zh: '采集选项不同：{options:code}' };
const NO_STEP: L10n = { en: 'the step time of one side is unknown', zh: '有一侧的迭代耗时未知' };
const BASIS: L10n = {
  en: 'one side has step marks, of the other only the device span is known',
  zh: '一侧有迭代标记，另一侧只有设备侧跨度',
};
const FRAMEWORK: L10n = { en: '{now:code}, baseline {before:code}', zh: '{now:code}，基线为 {before:code}' };
const UNKNOWN: L10n = { en: 'not recorded on both sides, so not checked: {names:code}', zh: '并非两侧都有记录，无法核对：{names:code}' };
const FEW_STEPS: L10n = {
  en: 'steps used: {now:int}, in the baseline {before:int}; fewer than {least:int} on a side cannot tell a change from noise, capture `active=5` or more',
  zh: '使用的迭代：本次 {now:int} 个，基线 {before:int} 个；任何一侧少于 {least:int} 个都无法区分变化与噪声，以 `active=5` 或更多采集',
};

import { mad, median } from '../base/statistics.ts';
import type { JobFacts } from '../facts/job/index.ts';
import type { BaselineFacts, Contributor, ContributorDetail, JobComparison, Mismatch, Part } from '../model/comparison.ts';
import { COMMUNICATION, COPY } from '../model/facts.ts';
import { type ClassTotal, type GpuFacts, type GpuSplit, WORK_CLASSES, type WorkClass } from '../model/gpu-facts.ts';
import type { L10n } from '../model/lang.ts';
import { IDLE_PARTS, sumOf } from './account.ts';
import { PART_NAMES } from './contributors.ts';
import { commonDetail, middleSteps, paceBySteps, paceShares, perStep, type Stand, scaled, stand, total } from './stand.ts';
import { workClassOf } from './work-class.ts';

/** Classes of modules shown. */
const MAX_MODULES = 12;
/** With as many captured steps the first is left out, as on the NPU. */
const DROP_AT = 4;
const MS = 1e6;

/**
 * An NPU job beside the trace of a GPU: the step and its parts, and what computing consists of by class of work, since kernels of the two
 * share no names. Never a verdict: the hardware is another one.
 */
export function compareWithGpu(head: JobFacts, label: string, traces: readonly GpuFacts[]): JobComparison {
  const known = traces.map((facts) => ({ facts, steps: usedSteps(facts) }));
  const timed = known.filter((t) => t.steps.length > 0).sort((a, b) => median(lengths(b.steps)) - median(lengths(a.steps)));
  const main = timed[0] ?? known[0]!;
  const times = lengths(main.steps);
  const baseMs = times.length > 0 ? median(times) : null;
  const headMs = head.steps.basis === 'device-span' ? null : head.steps.stepTimeMs;
  const delta = baseMs === null || headMs === null ? null : headMs - baseMs;
  const refusals: Mismatch[] = [{ what: 'hardware', text: { text: HARDWARE, params: { gpu: main.facts.device ?? 'GPU' } } }];
  if (delta === null) refusals.push({ what: 'step-basis', text: { text: NO_MARKS } });
  const samples = { base: times.length, head: head.steps.perStepMs.length };
  const { contributors, paceRanks } =
    delta === null ? { contributors: [], paceRanks: [] } : split(head, main, { base: baseMs!, head: headMs!, delta });
  return {
    baseline: baselineFacts(label, traces, main.facts, times),
    verdict: 'incomparable',
    refusals,
    warnings: warningsOf(head, traces, main.facts),
    step: { base: baseMs, head: headMs, delta, interval: null, limit: null, spread: null, samples },
    metrics: [],
    contributors,
    pace: { ranks: paceRanks, standsOut: false },
  };
}

function usedSteps(facts: GpuFacts): readonly GpuSplit[] {
  const whole = facts.steps.filter((s) => s.whole && s.end > s.start);
  return whole.length >= DROP_AT ? whole.slice(1) : whole;
}

function lengths(steps: readonly GpuSplit[]): number[] {
  return steps.map((s) => (s.end - s.start) / MS);
}

function baselineFacts(label: string, traces: readonly GpuFacts[], main: GpuFacts, times: readonly number[]): BaselineFacts {
  const ranks = traces.map((t) => t.rank).filter((r): r is number => r !== null);
  const run = {
    label,
    steps: times.length,
    stepTimeMs: times.length > 0 ? median(times) : null,
    noiseMs: times.length > 1 ? mad(times) : null,
  };
  return {
    kind: 'gpu',
    label,
    runs: [run],
    ranks: [...new Set(ranks)].sort((a, b) => a - b),
    worldSize: main.worldSize,
    device: main.device,
    level: null,
    cann: null,
    torchNpu: null,
    torch: null,
    samplesPerStep: null,
  };
}

/** Work left after the last step mark, as a share of a step, from which the marks say little of the device. */
const DRAIN = 0.5;

function medianStep(facts: GpuFacts): number {
  const used = usedSteps(facts);
  return used.length === 0 ? Number.POSITIVE_INFINITY : median(used.map((s) => s.end - s.start));
}

function warningsOf(head: JobFacts, traces: readonly GpuFacts[], main: GpuFacts): Mismatch[] {
  const out: Mismatch[] = [];
  const [now, before] = [head.world.size, main.worldSize];
  if (now !== null && before !== null && now !== before) out.push({ what: 'world-size', text: { text: WORLD, params: { now, before } } });
  else if (before !== null && traces.length < before)
    out.push({ what: 'ranks', text: { text: SOME_RANKS, params: { n: traces.length, before } } });
  if (main.limited !== null)
    out.push({ what: 'steps', text: { text: LIMITED, params: { kept: main.limited.kept, all: main.limited.all } } });
  if (main.drain !== null && main.drain >= DRAIN * medianStep(main)) out.push({ what: 'step-basis', text: { text: HOST_AHEAD } });
  if (main.truncated !== null) out.push({ what: 'unknown', text: { text: TRUNCATED } });
  return out;
}

function split(
  head: JobFacts,
  { facts, steps }: { readonly facts: GpuFacts; readonly steps: readonly GpuSplit[] },
  step: { base: number; head: number; delta: number },
): { contributors: Contributor[]; paceRanks: number[] } {
  const weights = middleSteps(head);
  const paces = paceBySteps(head, weights.keys());
  const shares = paceShares(paces, weights);
  const now = stand(head, shares.keys(), (rank) =>
    scaled(
      [...weights].filter(([s]) => paces.get(s) === rank),
      1,
    ),
  );
  const detail = commonDetail(now) === 'coarse' ? 'coarse' : 'fine';
  const account = total(now, detail);
  const mean = (value: (s: GpuSplit) => number): number => steps.reduce((sum, s) => sum + value(s), 0) / steps.length / MS;
  const copying = detail === 'coarse' ? 0 : mean((s) => s.copying);
  const parts: readonly (readonly [Part, number, number])[] = [
    ['computing', mean((s) => s.computing), account.computing ?? 0],
    ['communication', mean((s) => s.exposed), account.communication ?? 0],
    ...(detail === 'coarse' ? [] : [['copying', copying, account.copying ?? 0] as const]),
    ['idle', mean((s) => s.idle + s.copying) - copying, sumOf(account, IDLE_PARTS) - (detail === 'coarse' ? 0 : (account.copying ?? 0))],
  ];
  const contributors = parts.map(([part, base, own]): Contributor => {
    return {
      part,
      what: { text: PART_NAMES[part] },
      base,
      head: own,
      delta: own - base,
      details: part === 'computing' ? [...classes(now, steps), ...modules(now, facts)] : [],
    };
  });
  contributors.sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
  const rest = (whole: number, of: (c: Contributor) => number): number => whole - contributors.reduce((sum, c) => sum + of(c), 0);
  contributors.push({
    part: 'other',
    what: { text: PART_NAMES.other },
    base: rest(step.base, (c) => c.base),
    head: rest(step.head, (c) => c.head),
    delta: rest(step.delta, (c) => c.delta),
    details: [],
  });
  return { contributors, paceRanks: [...shares.keys()].map((r) => head.ranks[r]!.rank).filter((r): r is number => r !== null) };
}

/** Computing by class of work, largest difference first. */
function classes(now: Stand, steps: readonly GpuSplit[]): ContributorDetail[] {
  const npu = classTotals(now);
  const gpu = (work: WorkClass, of: (c: ClassTotal) => number): number =>
    steps.reduce((sum, s) => sum + of(s.classes[work]), 0) / steps.length;
  return WORK_CLASSES.filter((work) => work !== 'communication')
    .map((work): ContributorDetail => {
      const [base, head] = [gpu(work, (c) => c.ns) / MS, npu[work].ns / MS];
      return {
        by: 'class',
        what: { text: CLASS_NAMES[work] },
        base,
        head,
        delta: head - base,
        calls: { base: perStep(gpu(work, (c) => c.count)), head: perStep(npu[work].count) },
      };
    })
    .filter((d) => d.calls.base > 0 || d.calls.head > 0)
    .sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
}

/** Classes of modules that both jobs call, by the device time of their forward; largest difference first. */
function modules({ job, ranks }: Stand, gpu: GpuFacts): ContributorDetail[] {
  const [own] = [...ranks.keys()].map((r) => job.ranks[r]!);
  if (own === undefined || own.steps.length === 0 || gpu.steps.length === 0) return [];
  const [perOwn, perGpu] = [own.steps.length, gpu.steps.length];
  const there = new Map(gpu.ranges.filter((r) => r.kind === 'module').map((r) => [r.name, r] as const));
  return own.modules
    .flatMap((m): ContributorDetail[] => {
      const other = there.get(m.name);
      if (other === undefined) return [];
      const [base, head] = [other.ns / perGpu / MS, m.ns / perOwn / MS];
      const calls = { base: perStep(other.calls / perGpu), head: perStep(m.calls / perOwn) };
      return [{ by: 'module', what: { text: MODULE, params: { name: m.name } }, base, head, delta: head - base, calls }];
    })
    .sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta))
    .slice(0, MAX_MODULES);
}

function classTotals({ job, ranks }: Stand): Record<WorkClass, { count: number; ns: number }> {
  const out = Object.fromEntries(WORK_CLASSES.map((work) => [work, { count: 0, ns: 0 }])) as Record<
    WorkClass,
    { count: number; ns: number }
  >;
  for (const [rank, weights] of ranks) {
    const { tape } = job.ranks[rank]!;
    if (tape === null) continue;
    const work = tape.types.map(workClassOf);
    for (let i = 0; i < tape.start.length; i++) {
      const weight = tape.kind[i] === COMMUNICATION ? 0 : (weights.get(tape.step[i]!) ?? 0);
      if (weight === 0) continue;
      const sum = out[tape.kind[i] === COPY ? 'copy' : work[tape.type[i]!]!];
      sum.count += weight;
      sum.ns += weight * tape.duration[i]!;
    }
  }
  return out;
}

const MODULE: L10n = { en: 'forward of module {name:code}', zh: '模块 {name:code} 的前向' };
const HARDWARE: L10n = {
  en: 'the baseline ran on a GPU ({gpu:code}), so the times stand side by side without a verdict',
  zh: '基线在 GPU（{gpu:code}）上运行，只并列耗时，不作结论',
};
const NO_MARKS: L10n = {
  en: 'one side has no `ProfilerStep`, so the length of its step is unknown',
  zh: '有一侧没有 `ProfilerStep`，迭代耗时未知',
};
const WORLD: L10n = { en: '{now:int} ranks, on the GPU {before:int}', zh: '{now:int} 张卡，GPU 侧 {before:int} 张' };
const SOME_RANKS: L10n = {
  en: 'the traces of {n:int} of {before:int} GPU ranks are here',
  zh: 'GPU 侧 {before:int} 张卡中只有 {n:int} 张的 trace',
};
const LIMITED: L10n = {
  en: 'the GPU trace is too long: only its first {kept:int} of {all:int} steps are read',
  zh: 'GPU trace 过长：{all:int} 个迭代中只读取前 {kept:int} 个',
};
const HOST_AHEAD: L10n = {
  en: 'the GPU still worked for a long time after its last step mark, so its steps show the pace of the host and may be shorter than the work',
  zh: '最后一个迭代标记之后 GPU 仍工作较长时间，其迭代反映 Host 的节奏，可能短于实际工作',
};
const TRUNCATED: L10n = { en: 'the GPU trace breaks off', zh: 'GPU trace 不完整' };

const CLASS_NAMES: Readonly<Record<WorkClass, L10n>> = {
  matmul: { en: 'matrix products', zh: '矩阵乘' },
  convolution: { en: 'convolutions', zh: '卷积' },
  attention: { en: 'attention', zh: 'attention' },
  norm: { en: 'normalisation', zh: '归一化' },
  elementwise: { en: 'elementwise', zh: '逐元素' },
  reduction: { en: 'reductions', zh: '归约' },
  copy: { en: 'copies, casts, layout', zh: '拷贝、类型转换、转置与格式转换' },
  communication: { en: 'communication', zh: '通信' },
  optimizer: { en: 'optimizer', zh: '优化器' },
  other: { en: 'other operators', zh: '其他算子' },
};

import { EMPTY, subtract, union } from '../../base/intervals.ts';
import type { RankCapture } from '../../model/capture.ts';
import {
  type Capability,
  COMMUNICATION,
  COMPUTE,
  type PhaseFacts,
  type RankFacts,
  type StepFacts,
  type Tape,
  type TypeTotal,
} from '../../model/facts.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { stepFacts } from './breakdown.ts';
import { castFacts } from './casts.ts';
import { chainFacts } from './chains.ts';
import { collectiveFacts } from './collectives.ts';
import { compileFacts } from './compile.ts';
import { timelineOf, withoutSplit } from './cut-timeline.ts';
import { hostOperators } from './enclosing.ts';
import { fragmentFacts } from './fragments.ts';
import { fastSpans, frequencyFacts } from './frequency.ts';
import { fusionFacts } from './fusion.ts';
import { heldUp } from './held-up.ts';
import { hostAndIdle } from './host.ts';
import { idleIntervals, launchOfTaskAt } from './idle.ts';
import { AI_CPU, kernelFacts, rowsOfNodes, type StepOf } from './kernel-groups.ts';
import { layoutFacts } from './layout.ts';
import { loaderFacts } from './loader.ts';
import { memoryFacts } from './memory.ts';
import { moduleTotals } from './modules.ts';
import { optimizerFacts } from './optimizers.ts';
import { phaseFacts } from './phases.ts';
import { segmentFacts } from './segments.ts';
import { hostSyncs } from './syncs.ts';
import { buildTape, frameFinder } from './tape.ts';
import { waitTotals } from './waits.ts';
import { type StepWindow, stepWindows } from './windows.ts';

const MAX_TYPES = 200;
const NO_WAITS: Tape['syncs'] = { start: new Float64Array(0), end: new Float64Array(0), site: new Int32Array(0) };

/** Tier one: reduces the tables of one rank to its facts. Pure; the capture can be dropped afterwards. */
export function rankFacts(whole: RankCapture): RankFacts {
  const windows = stepWindows(whole);
  const timeline = timelineOf(whole, windows, whole.trace?.truncated === true ? buildTape(whole, windows, NO_WAITS) : null);
  const { capture } = timeline;
  const operators = hostOperators(capture);
  const syncs = hostSyncs(capture, operators);
  const rawTape = buildTape(capture, windows, syncs);
  const { calls, nodeCall } = collectiveFacts(capture, windows, rawTape);
  const tape: Tape | null = rawTape === null ? null : { ...rawTape, collective: nodeCall, syncs: waitsOf(rawTape, windows) };
  const idle = idleIntervals(tape, windows);
  // A pause of the collector inside a fetch is the collector's.
  const collected =
    capture.trace === null ? EMPTY : union(Array.from(capture.trace.gc.start, (s, i) => [s, s + capture.trace!.gc.duration[i]!] as const));
  const loader = loaderFacts(capture, windows, subtract(idle, collected), launchOfTaskAt(tape));
  const compile = compileFacts(capture, windows, idle, capture.trace === null ? () => -1 : frameFinder(capture));
  const account =
    tape === null || windows.length === 0 || timeline.state === 'unknown'
      ? null
      : hostAndIdle({ capture, windows, tape, idle, operators, syncs, loader, compile });
  // Without step marks there is no account: the recorded causes by themselves.
  const owned = account?.notLaunching ?? heldUp({ loader, compile, tape, host: null });
  const split = stepFacts(capture, windows, tape);
  const steps = timeline.state === 'unknown' ? withoutSplit(split, capture.files.steps) : split;
  const phases = phaseFacts(capture, windows);
  const layout = layoutFacts(capture, windows, tape);
  const kernelWork = kernelWorkOf(capture, windows, tape, steps, phases, layout);
  return {
    folder: capture.folder,
    rank: capture.rank,
    originUs: capture.originUs,
    files: capture.files,
    settings: capture.settings,
    groups: capture.groups,
    worldSize: capture.worldSize,
    parallel: capture.parallel,
    links: capture.links,
    capabilities: capabilitiesOf(capture, tape),
    steps,
    collectives: calls,
    tape,
    loader,
    compile,
    fragments: tape === null ? [] : fragmentFacts(tape, owned),
    layout,
    ...kernelWork,
    hardware: capture.hardware,
    phases,
    segments: segmentFacts(
      capture,
      tape,
      steps.some((s) => s.id !== null),
    ),
    host: account?.host ?? null,
    waits: windows.length > 0 ? [] : waitTotals(capture, tape, syncs),
    idle: account?.idle ?? null,
    modules: moduleTotals(capture, windows, tape),
    operators: typeTotals(capture),
    opStatistic: largest(capture.operators, (o) => o.totalUs),
    apis: largest(capture.apis, (a) => a.totalUs),
    hostOps: largest(capture.hostOps, (o) => o.hostTotalUs),
    memory: memoryFacts(capture, windows),
    inputs: capture.inputs,
    notes: capture.notes,
    damage: damageOf(capture, steps.length),
  };
}

const ONLY_STEP: L10n = {
  en: 'the profiler was stopped while it recorded: the only captured step may be cut',
  zh: 'profiler 在采集中被停止：唯一采集到的迭代可能不完整',
};

/** Of several steps the last one is left out instead. */
function damageOf(capture: RankCapture, steps: number): Message[] {
  const isCut = capture.settings.stopped === 'RECORD' && steps === 1;
  return isCut ? [...capture.damage, { text: ONLY_STEP }] : [...capture.damage];
}

/** What the kernel table tells beside the tape: each row is joined to its node once. */
function kernelWorkOf(
  capture: RankCapture,
  windows: readonly StepWindow[],
  tape: Tape | null,
  steps: readonly StepFacts[],
  phases: PhaseFacts,
  layout: RankFacts['layout'],
): Pick<RankFacts, 'kernels' | 'casts' | 'chains' | 'fusion' | 'optimizers' | 'frequency'> {
  const { kernels, names, trace } = capture;
  const rows = tape === null ? new Int32Array(0) : rowsOfNodes(capture, tape);
  const idOfStep = new Map(steps.map((s, i) => [s.id, i] as const));
  const single = steps.length === 1 ? 0 : -1;
  // Without marks the table's own column says, if it has one; a single step has everything.
  const stepOf: StepOf = (node, row) => {
    const marked = tape!.step[node]!;
    if (marked >= 0 || windows.length > 0) return marked;
    const id = kernels!.step[row]!;
    return id < 0 ? single : (idOfStep.get(id) ?? single);
  };
  const isAicpu = new Map<number, boolean>();
  const onCore = (node: number): boolean => {
    const row = rows[node]!;
    const core = row === -1 ? -1 : kernels!.core[row]!;
    let known = isAicpu.get(core);
    if (known === undefined) {
      known = core >= 0 && AI_CPU.test(names.get(core));
      isAicpu.set(core, known);
    }
    return !known;
  };
  const within = windows.length === 0 ? null : union(windows.map((w) => [w.start, w.end] as const));
  const table = trace?.frequency ?? null;
  const frequency = frequencyFacts(table, tape, within, onCore);
  // Steps of the clock are a few MHz apart.
  const isFast = fastSpans(frequency === null ? null : table, 0.98 * (frequency?.sustainedMhz ?? 0));
  const casts = castFacts(capture, tape, rows, stepOf, phases);
  const optimizers = optimizerFacts(capture, windows, tape, rows);
  return {
    kernels: kernelFacts(capture, tape, rows, stepOf, steps.length, isFast),
    casts,
    chains: chainFacts(capture, tape, rows, stepOf),
    fusion: fusionFacts(capture, tape, rows, stepOf, { casts, layout, optimizers }),
    optimizers,
    frequency,
  };
}

/** Without step marks there is no account of the host, and no list of its waits to point to. */
function waitsOf({ syncs }: Tape, windows: readonly StepWindow[]): Tape['syncs'] {
  return windows.length > 0 ? syncs : { ...syncs, site: new Int32Array(syncs.site.length).fill(-1) };
}

/** The rows that matter: longest first, bounded, so that the facts of a rank stay small. */
function largest<T>(rows: readonly T[], value: (row: T) => number): T[] {
  return [...rows].sort((a, b) => value(b) - value(a)).slice(0, MAX_TYPES);
}

function capabilitiesOf(capture: RankCapture, tape: Tape | null): Set<Capability> {
  const has = new Set<Capability>();
  const { trace, kernels } = capture;
  if (trace !== null && trace.steps.length > 0) has.add('steps');
  if (capture.stepTrace.length > 0 || trace?.lanes != null) has.add('step-times');
  if (trace !== null && trace.host.name.length > 0) has.add('host-ops');
  if (tape?.launch.some((t) => !Number.isNaN(t))) has.add('launches');
  if (tape?.kind.includes(COMPUTE)) has.add('kernels');
  if (kernels?.type.some((t) => t >= 0)) has.add('kernel-types');
  if (kernels?.groups.core.some((core) => core >= 0)) has.add('kernel-cores');
  if (kernels !== null && Object.values(kernels.groups.pipes).some((p) => p?.some((v) => v > 0) === true)) has.add('pipes');
  if (kernels?.groups.l2Hit.some((v) => !Number.isNaN(v))) has.add('l2-hits');
  if (trace?.frequency != null) has.add('frequency');
  if (kernels?.inputFormats.some((f) => f >= 0) && kernels.inputShapes.some((s) => s >= 0)) has.add('formats');
  if (capture.collectives.length > 0 || tape?.kind.includes(COMMUNICATION)) has.add('collectives');
  if (capture.collectives.length > 0) has.add('collective-ids');
  if (trace !== null && trace.cann.name.length > 0) has.add('cann-calls');
  if (trace?.host.frame.some((f) => f >= 0)) has.add('stacks');
  if (capture.memory !== null && capture.memory.series.length > 0) has.add('memory');
  return has;
}

/** Compute kernels by type and core, whole capture, longest first. */
function typeTotals(capture: RankCapture): TypeTotal[] {
  const { kernels, names } = capture;
  if (kernels === null) return [];
  const sums = new Map<string, { type: string; core: string; count: number; ns: number }>();
  for (let i = 0; i < kernels.duration.length; i++) {
    if (kernels.isCommunication[i] === 1) continue;
    const type = kernels.type[i]! >= 0 ? names.get(kernels.type[i]!) : 'unknown';
    const core = kernels.core[i]! >= 0 ? names.get(kernels.core[i]!) : '';
    const key = `${type}/${core}`;
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { type, core, count: 1, ns: kernels.duration[i]! });
    else {
      sum.count++;
      sum.ns += kernels.duration[i]!;
    }
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns).slice(0, MAX_TYPES);
}

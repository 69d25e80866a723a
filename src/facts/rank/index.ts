import { union } from '../../base/intervals.ts';
import type { RankCapture } from '../../model/capture.ts';
import { type Capability, COMMUNICATION, COMPUTE, type RankFacts, type Tape, type TypeTotal } from '../../model/facts.ts';
import { stepFacts } from './breakdown.ts';
import { collectiveFacts } from './collectives.ts';
import { compileFacts } from './compile.ts';
import { fragmentFacts } from './fragments.ts';
import { idleFacts, idleIntervals, launchOfTaskAt } from './idle.ts';
import { layoutFacts } from './layout.ts';
import { loaderFacts } from './loader.ts';
import { memoryFacts } from './memory.ts';
import { phaseFacts } from './phases.ts';
import { buildTape, frameFinder } from './tape.ts';
import { stepWindows } from './windows.ts';

const MAX_TYPES = 200;

/** Tier one: reduces the tables of one rank to its facts. Pure; the capture can be dropped afterwards. */
export function rankFacts(capture: RankCapture): RankFacts {
  const windows = stepWindows(capture);
  const rawTape = buildTape(capture, windows);
  const { calls, nodeCall } = collectiveFacts(capture, windows, rawTape);
  const tape: Tape | null = rawTape === null ? null : { ...rawTape, collective: nodeCall };
  const idle = idleIntervals(tape, windows);
  const loader = loaderFacts(capture, windows, idle, launchOfTaskAt(tape));
  const compile = compileFacts(capture, windows, idle, capture.trace === null ? () => -1 : frameFinder(capture));
  const owned = union([
    ...(loader?.fetches ?? []).map((f) => [f.start, f.end] as const),
    ...(compile?.calls ?? []).map((c) => [c.start, c.end] as const),
    ...Array.from(tape?.syncs.start ?? [], (s, i) => [s, tape!.syncs.end[i]!] as const),
  ]);
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
    steps: stepFacts(capture, windows, tape),
    collectives: calls,
    tape,
    loader,
    compile,
    fragments: tape === null ? [] : fragmentFacts(tape, owned),
    layout: layoutFacts(capture, windows, tape),
    phases: phaseFacts(capture, windows),
    idle: tape === null || windows.length === 0 ? null : idleFacts(tape, windows, idle, loader, compile),
    operators: typeTotals(capture),
    opStatistic: largest(capture.operators, (o) => o.totalUs),
    apis: largest(capture.apis, (a) => a.totalUs),
    hostOps: largest(capture.hostOps, (o) => o.hostTotalUs),
    memory: memoryFacts(capture, windows),
    inputs: capture.inputs,
    notes: capture.notes,
  };
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
  if (kernels?.inputFormats.some((f) => f >= 0) && kernels.inputShapes.some((s) => s >= 0)) has.add('formats');
  if (capture.collectives.length > 0 || tape?.kind.includes(COMMUNICATION)) has.add('collectives');
  if (capture.collectives.length > 0) has.add('collective-ids');
  if (trace !== null && trace.cann.name.length > 0) has.add('cann-calls');
  if (trace !== null && trace.frames.length > 0) has.add('stacks');
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

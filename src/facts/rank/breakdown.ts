import { clip, complement, type Intervals, intersect, length, subtract, unionSorted, unite } from '../../base/intervals.ts';
import type { RankCapture, Spans } from '../../model/capture.ts';
import { COMMUNICATION, COMPUTE, type StepFacts, type Tape } from '../../model/facts.ts';
import type { StepWindow } from './windows.ts';

const MS = 1e6;

function laneSum(spans: Spans, from: number, to: number): number {
  let total = 0;
  for (let i = 0; i < spans.start.length; i++) if (spans.start[i]! >= from && spans.start[i]! < to) total += spans.duration[i]!;
  return total / MS;
}

/**
 * Steps of a rank with their time split. The vendor's table first, then its overlap lanes, then our own union of kernels.
 * `bubble` is part of `exposed`; `preparing` lies before the first device task and is not part of Stage.
 */
export function stepFacts(capture: RankCapture, windows: readonly StepWindow[], tape: Tape | null): StepFacts[] {
  if (windows.length === 0) {
    if (capture.stepTrace.length > 0) {
      return capture.stepTrace.map((row) => ({
        id: row.step,
        start: Number.NaN,
        end: Number.NaN,
        breakdown: {
          stepMs: Number.NaN,
          stageMs: row.stage,
          computingMs: row.computing,
          communicationMs: row.communication,
          exposedMs: row.exposed,
          overlappedMs: row.overlapped,
          freeMs: row.free,
          bubbleMs: row.bubble,
          preparingMs: row.preparing ?? Number.NaN,
          tailMs: Number.NaN,
          source: capture.files.steps,
        },
      }));
    }
    return tape === null ? [] : fromKernels(capture, tape);
  }
  const work = workOf(tape);
  const rows = new Map(capture.stepTrace.map((r) => [r.step, r] as const));
  return windows.map((window) => {
    const row = rows.get(window.id);
    const hostMs = (window.hostEnd - window.start) / MS;
    const stepMs = (window.end - window.start) / MS;
    const lanes = capture.trace?.lanes ?? null;
    if (row !== undefined) {
      const preparing = row.preparing ?? preparingOf(tape, window);
      return {
        id: window.id,
        start: window.start,
        end: window.end,
        breakdown: {
          stepMs,
          stageMs: row.stage,
          computingMs: row.computing,
          communicationMs: row.communication,
          exposedMs: row.exposed,
          overlappedMs: row.overlapped,
          freeMs: row.free,
          bubbleMs: row.bubble,
          preparingMs: preparing,
          tailMs: windows.length === 1 ? Math.max(0, hostMs - preparing - row.stage - row.bubble) : 0,
          source: capture.files.steps,
        },
      };
    }
    const from = window.start;
    const to = window.end;
    if (lanes !== null) {
      const computing = laneSum(lanes.computing, from, to);
      const communication = laneSum(lanes.communication, from, to);
      const exposed = laneSum(lanes.exposed, from, to);
      const free = laneSum(lanes.free, from, to);
      const preparing = preparingOf(tape, window);
      return {
        id: window.id,
        start: from,
        end: to,
        breakdown: {
          stepMs,
          stageMs: computing + exposed + free,
          computingMs: computing,
          communicationMs: communication,
          exposedMs: exposed,
          overlappedMs: communication - exposed,
          freeMs: free,
          bubbleMs: 0,
          preparingMs: preparing,
          tailMs: windows.length === 1 ? Math.max(0, hostMs - preparing - computing - exposed - free) : 0,
          source: capture.files.trace,
        },
      };
    }
    return {
      id: window.id,
      start: from,
      end: to,
      breakdown: { ...unionSplit(capture, work(), from, to), stepMs, preparingMs: preparingOf(tape, window), tailMs: Number.NaN },
    };
  });
}

function firstAtOrAfter(tape: Tape, at: number): number {
  let low = 0;
  let high = tape.start.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (tape.start[mid]! < at) low = mid + 1;
    else high = mid;
  }
  return low;
}

function preparingOf(tape: Tape | null, window: StepWindow): number {
  if (tape === null) return Number.NaN;
  for (let i = firstAtOrAfter(tape, window.start); i < tape.start.length; i++) {
    if (tape.start[i]! >= window.start && (tape.kind[i] === COMPUTE || tape.kind[i] === COMMUNICATION)) {
      return tape.start[i]! < window.end ? (tape.start[i]! - window.start) / MS : Number.NaN;
    }
  }
  return Number.NaN;
}

interface Work {
  readonly compute: Intervals;
  readonly communication: Intervals;
}

/** Both kinds of work of the whole tape, merged once for all steps (kernel tables alone name thousands of them) and only if asked for. */
function workOf(tape: Tape | null): () => Work | null {
  let work: Work | null = null;
  return () => {
    if (tape === null) return null;
    const of = (kind: number): Intervals => unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === kind);
    work ??= { compute: of(COMPUTE), communication: of(COMMUNICATION) };
    return work;
  };
}

/** The parts of a step of which it is not known when its card worked. */
export const NOT_SPLIT = {
  stageMs: Number.NaN,
  computingMs: Number.NaN,
  communicationMs: Number.NaN,
  exposedMs: Number.NaN,
  overlappedMs: Number.NaN,
  freeMs: Number.NaN,
  bubbleMs: Number.NaN,
};

function unionSplit(
  capture: RankCapture,
  work: Work | null,
  from: number,
  to: number,
): Omit<StepFacts['breakdown'], 'stepMs' | 'preparingMs' | 'tailMs'> {
  const source = capture.trace !== null && capture.trace.device.name.length > 0 ? capture.files.trace : capture.files.kernels;
  if (work === null) {
    return { ...NOT_SPLIT, source };
  }
  const compute = clip(work.compute, from, to);
  const communication = clip(work.communication, from, to);
  const exposed = length(subtract(communication, compute)) / MS;
  const both = unite(compute, communication);
  const first = both.start[0] ?? from;
  const last = both.end[both.end.length - 1] ?? from;
  const free = length(complement(both, first, last)) / MS;
  return {
    stageMs: (last - first) / MS,
    computingMs: length(compute) / MS,
    communicationMs: length(communication) / MS,
    exposedMs: exposed,
    overlappedMs: length(intersect(communication, compute)) / MS,
    freeMs: free,
    bubbleMs: 0,
    source,
  };
}

/** No step marks and no step table: the device span, split by Step Id when kernel_details has one, else one pseudo-step. */
function fromKernels(capture: RankCapture, tape: Tape): StepFacts[] {
  const kernels = capture.kernels;
  const ids = new Map<number | null, [number, number]>();
  if (kernels !== null) {
    for (let i = 0; i < kernels.start.length; i++) {
      if (Number.isNaN(kernels.start[i]!)) continue;
      const id = kernels.step[i]! >= 0 ? kernels.step[i]! : null;
      const range = ids.get(id);
      const end = kernels.start[i]! + kernels.duration[i]!;
      if (range === undefined) ids.set(id, [kernels.start[i]!, end]);
      else {
        range[0] = Math.min(range[0], kernels.start[i]!);
        range[1] = Math.max(range[1], end);
      }
    }
  }
  if (ids.size > 1) ids.delete(null);
  if (ids.size === 0) {
    const last = tape.busy.end[tape.busy.end.length - 1]!;
    ids.set(null, [tape.busy.start[0]!, last]);
  }
  const work = workOf(tape);
  return [...ids].map(([id, [from, to]]) => ({
    id,
    start: Number.NaN,
    end: Number.NaN,
    breakdown: { ...unionSplit(capture, work(), from, to), stepMs: Number.NaN, preparingMs: Number.NaN, tailMs: Number.NaN },
  }));
}

import { type Intervals, intersect, length, union, unionSorted } from '../../base/intervals.ts';
import type { Lookup, RankCapture, TraceTables } from '../../model/capture.ts';
import { COMMUNICATION, COMPUTE, type StepFacts, type Tape } from '../../model/facts.ts';
import { NOT_SPLIT } from './breakdown.ts';
import type { StepWindow } from './windows.ts';

/** Device work that the trace lacks beyond this is not a matter of rounding. */
const WHOLE = 0.98;

/**
 * A trace that breaks off lacks the last tasks of the card, which then seems idle although it worked. torch_npu writes the host first and
 * the card in the order of time, so most of the host is there.
 *   whole     nothing of the card is missing, or the trace does not break off
 *   replaced  the kernel table has what the trace lacks: the card is taken from there, without launches
 *   unknown   when the card worked is not known: nothing can be said of its idle time
 */
export interface Timeline {
  readonly state: 'whole' | 'replaced' | 'unknown';
  readonly capture: RankCapture;
}

export function timelineOf(capture: RankCapture, windows: readonly StepWindow[], tape: Tape | null): Timeline {
  const { trace, kernels, stepTrace } = capture;
  if (trace === null || !trace.truncated || tape === null) return { state: 'whole', capture };
  const within = union(windows.map((w) => [w.start, w.end] as const));
  const recorded = inside(
    unionSorted(tape.start, tape.duration, (i) => tape.kind[i] === COMPUTE || tape.kind[i] === COMMUNICATION),
    within,
  );
  const rows = new Map(stepTrace.map((row) => [row.step, row] as const));
  const told =
    windows.reduce((sum, w) => sum + (rows.get(w.id)?.computing ?? Number.NaN) + (rows.get(w.id)?.exposed ?? Number.NaN), 0) * 1e6;
  const listed =
    kernels === null
      ? Number.NaN
      : inside(
          union(Array.from(kernels.start, (at, i) => [at, at + kernels.duration[i]!] as const).filter(([at]) => !Number.isNaN(at))),
          within,
        );
  const expected = Math.max(...[told, listed].filter((ns) => ns > 0), 0);
  if (windows.length > 0 && expected > 0 && recorded >= WHOLE * expected) return { state: 'whole', capture };
  const none = new Int32Array(0);
  const spans = { start: new Float64Array(0), duration: new Float64Array(0) };
  const nothing: Lookup<never> = { size: 0, get: () => undefined };
  const unlaunched: TraceTables = { ...trace, launches: nothing, lanes: null };
  if (listed > 0 && listed >= WHOLE * expected) {
    const device = { ...spans, name: none, taskType: none, stream: none };
    const collective = { ...spans, name: none, row: none, count: spans.start, dataType: none };
    return { state: 'replaced', capture: { ...capture, trace: { ...unlaunched, device, collective } } };
  }
  const host = { ...spans, name: none, tid: none, frame: none };
  const cann = { ...spans, name: none, tid: none };
  return { state: 'unknown', capture: { ...capture, trace: { ...unlaunched, issued: nothing, host, cann } } };
}

/** Recorded work inside the steps; all of it without step marks. ns. */
function inside(busy: Intervals, steps: Intervals): number {
  return length(steps.start.length === 0 ? busy : intersect(busy, steps));
}

/** A split that was made of a card whose work is not known is none. */
export function withoutSplit(steps: readonly StepFacts[], source: string): StepFacts[] {
  return steps.map((step) =>
    step.breakdown.source === source
      ? step
      : {
          ...step,
          breakdown: {
            ...step.breakdown,
            ...NOT_SPLIT,
            tailMs: Number.NaN,
          },
        },
  );
}

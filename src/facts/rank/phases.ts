import { f64, i32 } from '../../base/columns.ts';
import { union } from '../../base/intervals.ts';
import type { RankCapture } from '../../model/capture.ts';
import type { PhaseFacts } from '../../model/facts.ts';
import { hostRanges } from './host-ranges.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** How often the model ran forward and the optimizer stepped in each captured step: what tells gradient accumulation. */
export function phaseFacts(capture: RankCapture, windows: readonly StepWindow[]): PhaseFacts {
  const forwards = hostRanges(capture, /^(DistributedDataParallel|FullyShardedDataParallel)\.forward/);
  const steps = hostRanges(capture, /^Optimizer\.step#/);
  const backward = hostRanges(capture, /^(autograd::engine::evaluate_function|torch\.autograd)/);
  const count = (list: readonly { start: number }[]): number[] => {
    const out = windows.map(() => 0);
    for (const range of list) {
      const at = windowAt(windows, range.start);
      if (at >= 0) out[at] = out[at]! + 1;
    }
    return out;
  };
  return {
    forwards: count(forwards),
    optimizerSteps: count(steps),
    ddp: forwards.some((f) => f.name.startsWith('DistributedDataParallel')),
    ddpFrame: forwards.find((f) => f.frame !== null)?.frame ?? null,
    broadcastHost: union(hostRanges(capture, /^c10d::broadcast_|^HcclBroadcast/).map((r) => [r.start, r.end] as const)),
    backwardFrame: backward.find((f) => f.frame !== null)?.frame ?? null,
    backwards: backwardsOf(capture, windows),
    forwardStarts: windows.map((w) => forwards.filter((f) => f.start >= w.start && f.start < w.end).map((f) => f.start)),
  };
}

/** Backwards kept per step: steps of more micro-batches are rare, and the last ones are what matters. */
const MAX_BACKWARDS = 256;

/**
 * Backwards of each step: autograd runs on a thread of its own while the thread that called it stands still, so an operator that begins
 * elsewhere in between ends one. Ranges are as the host saw them.
 */
function backwardsOf(capture: RankCapture, windows: readonly StepWindow[]): [number, number][][] {
  const out = windows.map((): [number, number][] => []);
  const host = capture.trace?.host;
  if (host === undefined || windows.length === 0) return out;
  const isAutograd = new Map<number, boolean | null>();
  const autograd = { start: f64(), end: f64(), tid: i32() };
  const threads = new Set<number>();
  for (let i = 0; i < host.name.length; i++) {
    const id = host.name[i]!;
    let kind = isAutograd.get(id);
    if (kind === undefined) {
      const name = capture.names.get(id);
      kind = name.startsWith('autograd::engine::evaluate_function') ? true : name.startsWith('aten::') ? false : null;
      isAutograd.set(id, kind);
    }
    if (kind !== true) continue;
    autograd.start.push(host.start[i]!);
    autograd.end.push(host.start[i]! + host.duration[i]!);
    autograd.tid.push(host.tid[i]!);
    threads.add(host.tid[i]!);
  }
  const elsewhere = f64();
  for (let i = 0; i < host.name.length; i++) {
    if (isAutograd.get(host.name[i]!) === false && !threads.has(host.tid[i]!)) elsewhere.push(host.start[i]!);
  }
  const operators = elsewhere.take().sort();
  const [start, end, tid] = [autograd.start.view(), autograd.end.view(), autograd.tid.view()];
  const order = Int32Array.from({ length: start.length }, (_, i) => i).sort((a, b) => start[a]! - start[b]!);
  let open: { tid: number; range: [number, number]; step: number } | null = null;
  for (const i of order) {
    const step = windowAt(windows, start[i]!);
    if (open !== null && open.tid === tid[i] && open.step === step && !anyIn(operators, open.range[1], start[i]!)) {
      open.range[1] = Math.max(open.range[1], end[i]!);
      continue;
    }
    open = { tid: tid[i]!, range: [start[i]!, end[i]!], step };
    if (step === -1) continue;
    out[step]!.push(open.range);
    if (out[step]!.length > MAX_BACKWARDS) out[step]!.shift();
  }
  return out;
}

/** True when one of the ascending values lies in [from, to). */
function anyIn(values: Float64Array, from: number, to: number): boolean {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (values[mid]! < from) low = mid + 1;
    else high = mid;
  }
  return low < values.length && values[low]! < to;
}

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
 * elsewhere ends one. Ranges are as the host saw them.
 */
function backwardsOf(capture: RankCapture, windows: readonly StepWindow[]): [number, number][][] {
  const out = windows.map((): [number, number][] => []);
  const host = capture.trace?.host;
  if (host === undefined || windows.length === 0) return out;
  const kinds = new Map<number, 'autograd' | 'operator' | null>();
  const kindOf = (id: number): 'autograd' | 'operator' | null => {
    let kind = kinds.get(id);
    if (kind === undefined) {
      const name = capture.names.get(id);
      kind = name.startsWith('autograd::engine::evaluate_function') ? 'autograd' : name.startsWith('aten::') ? 'operator' : null;
      kinds.set(id, kind);
    }
    return kind;
  };
  const rows: number[] = [];
  for (let i = 0; i < host.name.length; i++) if (kindOf(host.name[i]!) !== null) rows.push(i);
  rows.sort((a, b) => host.start[a]! - host.start[b]!);
  let open: { tid: number; range: [number, number]; step: number } | null = null;
  for (const i of rows) {
    const start = host.start[i]!;
    if (kindOf(host.name[i]!) === 'operator') {
      if (open !== null && host.tid[i] !== open.tid && start >= open.range[1]) open = null;
      continue;
    }
    const step = windowAt(windows, start);
    const end = start + host.duration[i]!;
    if (open !== null && open.tid === host.tid[i] && open.step === step) {
      open.range[1] = Math.max(open.range[1], end);
      continue;
    }
    open = { tid: host.tid[i]!, range: [start, end], step };
    if (step === -1) continue;
    out[step]!.push(open.range);
    if (out[step]!.length > MAX_BACKWARDS) out[step]!.shift();
  }
  return out;
}

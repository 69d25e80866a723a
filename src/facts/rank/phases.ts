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
    forwardStarts: windows.map((w) => forwards.filter((f) => f.start >= w.start && f.start < w.end).map((f) => f.start)),
  };
}

import type { Intervals } from '../../base/intervals.ts';
import type { RankCapture } from '../../model/capture.ts';
import type { LoaderFacts } from '../../model/facts.ts';
import { hostRanges } from './host-ranges.ts';
import { type StepWindow, windowAt } from './windows.ts';

/** torch's own event around a fetch. Python frames of dataloader.py inside it are other events and never match. */
const FETCH = /^enumerate\(DataLoader\)#.*__next__$/;

/**
 * Fetches on the training thread and the part of each in which the device had nothing to do.
 * `hungry` are the idle intervals whose next task had not been launched before the fetch ended: idle for another reason does not count.
 */
export function loaderFacts(
  capture: RankCapture,
  windows: readonly StepWindow[],
  idle: Intervals,
  launchAfter: (gapEnd: number) => number,
): LoaderFacts | null {
  const main = capture.trace?.steps[0]?.tid;
  const fetches = hostRanges(capture, FETCH).filter((f) => main === undefined || f.tid === main);
  if (fetches.length === 0) return null;
  const name = fetches[0]!.name;
  const iterator = name.includes('_SingleProcess') ? 'single' : name.includes('_MultiProcess') ? 'multi' : 'unknown';
  return {
    iterator,
    frame: fetches.find((f) => f.frame !== null)?.frame ?? null,
    fetches: fetches.map((f) => ({
      step: windowAt(windows, f.start),
      start: f.start,
      end: f.end,
      stall: stallOf(f.start, f.end, idle, launchAfter),
    })),
  };
}

function stallOf(start: number, end: number, idle: Intervals, launchAfter: (gapEnd: number) => number): number {
  let total = 0;
  let low = 0;
  let high = idle.end.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (idle.end[mid]! <= start) low = mid + 1;
    else high = mid;
  }
  for (let i = low; i < idle.start.length && idle.start[i]! < end; i++) {
    const to = idle.end[i]!;
    // The task that ended this gap was already issued when the fetch began: the device waited for something else.
    if (launchAfter(to) < start) continue;
    total += Math.max(0, Math.min(to, end) - Math.max(idle.start[i]!, start));
  }
  return total;
}

import type { RankCapture } from '../../model/capture.ts';

/** Host windows of the captured steps, ascending. The last one ends where its own ProfilerStep ends. */
export interface StepWindow {
  readonly id: number;
  readonly start: number;
  /** Start of the next captured step when it follows directly, else the host step's own end. */
  readonly end: number;
  readonly hostEnd: number;
}

export function stepWindows(capture: RankCapture): StepWindow[] {
  const marks = capture.trace?.steps ?? [];
  return marks.map((mark, i) => {
    const hostEnd = mark.start + mark.duration;
    const next = marks[i + 1];
    const follows = next !== undefined && next.id === mark.id + 1;
    return { id: mark.id, start: mark.start, end: follows ? Math.max(next.start, mark.start) : hostEnd, hostEnd };
  });
}

/** Index of the window that holds `at`, or -1. */
export function windowAt(windows: readonly StepWindow[], at: number): number {
  let low = 0;
  let high = windows.length - 1;
  while (low <= high) {
    const mid = (low + high) >> 1;
    if (at < windows[mid]!.start) high = mid - 1;
    else if (at >= windows[mid]!.end) low = mid + 1;
    else return mid;
  }
  return -1;
}

import { clip, type Intervals, length, subtract, unionSorted, unite } from '../../base/intervals.ts';
import { type ClassTotal, type GpuSplit, WORK_CLASSES, type WorkClass } from '../../model/gpu-facts.ts';
import type { Named } from './names.ts';
import { KERNEL, type TraceEvents } from './read-events.ts';

export interface DeviceWork {
  /** First start and last end of all activities; null without a kernel. */
  readonly bounds: { readonly start: number; readonly end: number } | null;
  split(start: number, end: number): GpuSplit;
}

/** Activities of one device, `order` by start, merged once for all spans. */
export function deviceWork({ device }: TraceEvents, order: Int32Array, named: (row: number) => Named): DeviceWork {
  const starts = Float64Array.from(order, (row) => device.start.at(row));
  const durations = Float64Array.from(order, (row) => device.duration.at(row));
  const isKernel = Uint8Array.from(order, (row) => Number(device.kind.at(row) === KERNEL));
  const classes = Uint8Array.from(order, (row) => WORK_CLASSES.indexOf(named(row).class));
  const isCommunication = (i: number): boolean => WORK_CLASSES[classes[i]!] === 'communication';
  const of = (keep: (i: number) => boolean): Intervals => unionSorted(starts, durations, keep);
  const allCommunication = of((i) => isKernel[i] === 1 && isCommunication(i));
  const allComputing = of((i) => isKernel[i] === 1 && !isCommunication(i));
  const transfers = of((i) => isKernel[i] === 0);
  const all = unite(allComputing, allCommunication, transfers);
  const hasKernel = isKernel.includes(1) && all.start.length > 0;
  return {
    bounds: hasKernel ? { start: all.start[0]!, end: all.end.at(-1)! } : null,
    split(start, end) {
      const computing = clip(allComputing, start, end);
      const communication = clip(allCommunication, start, end);
      const work = unite(computing, communication);
      const copying = length(subtract(clip(transfers, start, end), work));
      const exposed = length(subtract(communication, computing));
      const busy = length(work) + copying;
      const totals = WORK_CLASSES.map(() => ({ count: 0, ns: 0 }));
      let kernels = 0;
      for (let i = firstAt(starts, start); i < starts.length && starts[i]! < end; i++) {
        const total = totals[classes[i]!]!;
        total.count++;
        total.ns += durations[i]!;
        kernels += isKernel[i]!;
      }
      return {
        start,
        end,
        kernels,
        computing: length(computing),
        communication: length(communication),
        exposed,
        overlapped: length(communication) - exposed,
        copying,
        busy,
        idle: Math.max(0, end - start - busy),
        classes: Object.fromEntries(WORK_CLASSES.map((name, i) => [name, totals[i]!])) as Record<WorkClass, ClassTotal>,
      };
    },
  };
}

function firstAt(starts: Float64Array, at: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (starts[mid]! < at) low = mid + 1;
    else high = mid;
  }
  return low;
}

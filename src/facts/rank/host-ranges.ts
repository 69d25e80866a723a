import type { Frame, RankCapture } from '../../model/capture.ts';

/** A named stretch of a host thread, ns. */
export interface HostRange {
  readonly start: number;
  readonly end: number;
  readonly tid: number;
  readonly frame: Frame | null;
  readonly name: string;
}

/** Host operators whose name matches, outermost only (a range inside another matching one on the same thread is dropped). */
export function hostRanges(capture: RankCapture, test: RegExp): HostRange[] {
  const trace = capture.trace;
  if (trace === null) return [];
  const wanted = new Map<number, boolean>();
  const list: HostRange[] = [];
  const { host } = trace;
  for (let i = 0; i < host.name.length; i++) {
    const id = host.name[i]!;
    let known = wanted.get(id);
    if (known === undefined) {
      known = test.test(capture.names.get(id));
      wanted.set(id, known);
    }
    if (!known) continue;
    const frame = host.frame[i]!;
    list.push({
      start: host.start[i]!,
      end: host.start[i]! + host.duration[i]!,
      tid: host.tid[i]!,
      frame: frame === -1 ? null : trace.frames[frame]!,
      name: capture.names.get(id),
    });
  }
  return outermost(list);
}

export function outermost<T extends { start: number; end: number; tid: number }>(list: T[]): T[] {
  list.sort((a, b) => a.tid - b.tid || a.start - b.start || b.end - a.end);
  const kept: T[] = [];
  let tid = Number.NaN;
  let end = Number.NEGATIVE_INFINITY;
  for (const range of list) {
    if (range.tid !== tid) {
      tid = range.tid;
      end = Number.NEGATIVE_INFINITY;
    }
    if (range.start < end) continue;
    kept.push(range);
    end = range.end;
  }
  return kept.sort((a, b) => a.start - b.start);
}

import { type Intervals, union } from '../../base/intervals.ts';
import type { RankFacts } from '../../model/facts.ts';

/** Host time that one of the recorded causes owns: what remains is launching, and what nobody recorded. */
export function heldUp({ loader, compile, tape, host }: Pick<RankFacts, 'loader' | 'compile' | 'tape' | 'host'>): Intervals {
  const spans = (list: readonly { readonly start: number; readonly end: number }[]) => list.map((s) => [s.start, s.end] as const);
  return union([
    ...spans(loader?.fetches ?? []),
    ...spans(compile?.calls ?? []),
    ...Array.from(tape?.syncs.start ?? [], (s, i) => [s, tape!.syncs.end[i]!] as const),
    ...spans(host?.copies.calls ?? []),
    ...spans(host?.gc?.calls ?? []),
    ...spans(host?.allocator?.calls ?? []),
    ...spans(host?.preparation ?? []),
  ]);
}

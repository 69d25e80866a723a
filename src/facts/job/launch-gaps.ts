import { covered, union } from '../../base/intervals.ts';
import { median } from '../../base/statistics.ts';
import { COMPUTE, type RankFacts, type Tape } from '../../model/facts.ts';
import { isTrainingTape } from '../rank/segments.ts';

/** Idle time of a card before its kernels, in a capture without step marks. Times in ns. */
export interface LaunchGaps {
  /** Work of the card, and the gaps between it that a launch explains. */
  readonly busy: number;
  readonly idle: number;
  readonly kernels: number;
  /** Part of the kernels that a gap comes before. */
  readonly before: number;
  readonly medianKernel: number;
  readonly medianGap: number;
  /** The host's launches are recorded and came after the card had run dry. */
  readonly seen: boolean;
  /** The longest of the gaps. */
  readonly longest: { readonly start: number; readonly duration: number };
  readonly block: Block;
}

/** Kernels that repeat as the layers of a model do: medians over their repetitions. Times in ns. */
interface Block {
  readonly count: number;
  readonly kernels: number;
  readonly duration: number;
  readonly idle: number;
}

/** Kernels that the card has queued start within 2 µs of each other in real captures. */
const GAP = 3_000;
/** Launching takes the framework 10 to 200 µs; a longer gap is something else: the end of a batch, a wait for requests. */
const LAUNCH = 500_000;
/** A handful of kernels is no model. */
const MIN_KERNELS = 20;
const MIN_REPEATS = 4;

/** null where nothing can be said: training, whose unit is the step; graphs, whose gaps are not the host's; kernels that repeat in no block. */
export function launchGaps({ tape, segments, steps }: RankFacts): LaunchGaps | null {
  if (tape === null || steps.some((s) => s.id !== null) || isTrainingTape(tape) || segments.some((s) => s.basis === 'graph-replay'))
    return null;
  const kernels = tape.kind.reduce((n, kind) => (kind === COMPUTE ? n + 1 : n), 0);
  const block = kernels < MIN_KERNELS ? null : blockOf(tape);
  if (block === null) return null;
  const waits = union(Array.from(tape.syncs.start, (start, i) => [start, tape.syncs.end[i]!] as const));
  const { start, end } = tape.busy;
  const gaps: number[] = [];
  let longest = { start: Number.NaN, duration: 0 };
  let seen = 0;
  let node = 0;
  for (let i = 1; i < start.length; i++) {
    const [from, to] = [end[i - 1]!, start[i]!];
    while (node < tape.start.length && tape.start[node]! < to) node++;
    const gap = to - from;
    if (gap < GAP || gap > LAUNCH || covered(waits, from, to) > 0) continue;
    const launch = tape.launch[node]!;
    if (launch < from) continue;
    if (launch >= from) seen++;
    gaps.push(gap);
    if (gap > longest.duration) longest = { start: from, duration: gap };
  }
  return {
    busy: tape.busy.start.reduce((sum, s, i) => sum + tape.busy.end[i]! - s, 0),
    idle: gaps.reduce((sum, gap) => sum + gap, 0),
    kernels,
    before: gaps.length / Math.max(1, tape.start.length - 1),
    medianKernel: median(tape.duration.filter((_, i) => tape.kind[i] === COMPUTE)),
    medianGap: median(gaps),
    seen: seen > 0.5 * gaps.length,
    longest,
    block,
  };
}

/** Types that occur once in each layer have the same count: of the counts that several types share, the one with most kernels. */
function blockOf(tape: Tape): Block | null {
  const positions = new Map<number, number[]>();
  for (let i = 0; i < tape.start.length; i++) {
    if (tape.kind[i] !== COMPUTE) continue;
    const list = positions.get(tape.type[i]!);
    if (list === undefined) positions.set(tape.type[i]!, [i]);
    else list.push(i);
  }
  let best: number[][] = [];
  for (const [count, lists] of Map.groupBy(positions.values(), (list) => list.length))
    if (count >= MIN_REPEATS && lists.length >= 2 && count * lists.length > best.length * (best[0]?.length ?? 0)) best = lists;
  if (best.length === 0) return null;
  const first = best.reduce((a, b) => (b[0]! < a[0]! ? b : a));
  const blocks = first.slice(1).map((to, i) => {
    const from = first[i]!;
    const [at, until] = [tape.start[from]!, tape.start[to]!];
    return { kernels: to - from, duration: until - at, idle: until - at - covered(tape.busy, at, until) };
  });
  return {
    count: first.length,
    kernels: median(blocks.map((b) => b.kernels)),
    duration: median(blocks.map((b) => b.duration)),
    idle: median(blocks.map((b) => b.idle)),
  };
}

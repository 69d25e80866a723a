import { COMPUTE, type RankFacts } from '../../model/facts.ts';
import type { JobFacts } from './index.ts';

/** How long the kernels of a rank take against the same kernels (type and shapes) of the other ranks. */
export interface SameWork {
  /** Own time over the time the other ranks need for the same kernels; NaN when none can be compared. */
  readonly ratio: number;
  /** Part of the rank's kernel time that can be compared, 0..1. */
  readonly cover: number;
  /** ns of one kernel of this type and shapes on the other ranks; NaN when none of them runs it. Keyed like `keyOf`. */
  readonly others: ReadonlyMap<string, number>;
}

interface Sum {
  n: number;
  ns: number;
}

/** Type and shapes of a node; without shapes in the profile the type alone. */
export function keyOf({ tape }: RankFacts, node: number): string {
  return `${tape!.types[tape!.type[node]!]}|${tape!.shapes[tape!.shape[node]!] ?? ''}`;
}

/** True when kernels carry shapes: two kernels of one type may be different work otherwise. */
export function hasShapes({ tape }: RankFacts): boolean {
  return tape?.shape.some((s) => s >= 0) === true;
}

const known = new WeakMap<JobFacts, readonly SameWork[]>();

/** By rank index. Over the used steps; with more than two ranks "the others" are their lower median, so that half of them may be slow. */
export function sameWork(job: JobFacts): readonly SameWork[] {
  let result = known.get(job);
  if (result === undefined) {
    result = compute(job);
    known.set(job, result);
  }
  return result;
}

function compute(job: JobFacts): SameWork[] {
  const used = new Set(job.steps.usedIndex);
  const sums = job.ranks.map((rank) => sumsOf(rank, used));
  // Means of every kernel over the ranks, ascending: the rank's own is taken out when it is asked for.
  const means = new Map<string, number[]>();
  for (const sum of sums) {
    for (const [key, { n, ns }] of sum) {
      const list = means.get(key);
      if (list === undefined) means.set(key, [ns / n]);
      else list.push(ns / n);
    }
  }
  for (const list of means.values()) list.sort((a, b) => a - b);
  return sums.map((own, r) => {
    const others = new Map<string, number>();
    let total = 0;
    let comparable = 0;
    let expected = 0;
    const shaped = hasShapes(job.ranks[r]!);
    for (const [key, { n, ns }] of own) {
      total += ns;
      const list = means.get(key)!;
      if (list.length < 2 || (shaped && key.endsWith('|'))) continue;
      const at = list.indexOf(ns / n);
      const middle = (list.length - 2) >> 1;
      const other = list[middle < at ? middle : middle + 1]!;
      others.set(key, other);
      comparable += ns;
      expected += n * other;
    }
    return { ratio: expected > 0 ? comparable / expected : Number.NaN, cover: total > 0 ? comparable / total : 0, others };
  });
}

function sumsOf(rank: RankFacts, used: ReadonlySet<number>): Map<string, Sum> {
  const { tape } = rank;
  const out = new Map<string, Sum>();
  if (tape === null) return out;
  const byIds = new Map<number, Sum & { node: number }>();
  const shapes = tape.shapes.length + 1;
  for (let i = 0; i < tape.start.length; i++) {
    if (tape.kind[i] !== COMPUTE || (used.size > 0 && tape.step[i] !== -1 && !used.has(tape.step[i]!))) continue;
    const id = tape.type[i]! * shapes + tape.shape[i]! + 1;
    const sum = byIds.get(id);
    if (sum === undefined) byIds.set(id, { n: 1, ns: tape.duration[i]!, node: i });
    else {
      sum.n++;
      sum.ns += tape.duration[i]!;
    }
  }
  for (const { n, ns, node } of byIds.values()) {
    const key = keyOf(rank, node);
    const sum = out.get(key) ?? { n: 0, ns: 0 };
    out.set(key, { n: sum.n + n, ns: sum.ns + ns });
  }
  return out;
}

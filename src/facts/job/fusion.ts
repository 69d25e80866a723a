import type { FusionSequence, RankFacts } from '../../model/facts.ts';
import type { Removal } from '../../replay/replay.ts';
import type { JobFacts } from './index.ts';
import { medianOfUsed } from './per-step.ts';

/** How well one kernel in place of a sequence does: at the pace of the sequence itself, at half of it, or as well as it can. */
export type FusedPace = 'likely' | 'slow' | 'best';

/** A loop over experts becomes one kernel per position: products take as long, the rest moves the same bytes, so most of its time stays. */
const LOOP_SHRINK: Readonly<Record<FusedPace, number>> = { slow: 0, likely: 0.25, best: 1 };

/** ns that one occurrence takes as one kernel; NaN when the bytes are not known. Never more than it takes now. */
export function fusedNs(s: FusionSequence, pace: FusedPace): number {
  const now = s.ns / s.count;
  if (s.repeats > 1) {
    const rest = now - s.staysNs;
    return s.staysNs + rest * (1 - LOOP_SHRINK[pace]) + (rest / s.repeats) * LOOP_SHRINK[pace];
  }
  if (s.needed === 0) return Math.min(now, s.staysNs);
  const moved = now * Math.min(1, s.needed / s.bytes);
  const paced = pace === 'slow' ? Math.max(2 * moved, s.vectorNs || 0) : moved;
  return Math.min(now, Math.max(s.leastNs, paced) + s.staysNs);
}

/** ns that one occurrence would not take: at the kernels, and idle between them because the next one came late. */
export function savedNs(s: FusionSequence): number {
  return s.ns / s.count - fusedNs(s, 'likely') + (s.idleNs / s.count) * (1 - stay(s, 'likely') / s.size);
}

/** Kernels of one occurrence that stay: of a loop one per position. */
function stay(s: FusionSequence, pace: FusedPace): number {
  return s.repeats > 1 ? s.size / s.repeats : fusedNs(s, pace) > 0 ? 1 : 0;
}

/** Sums over the occurrences of each step, median of the used steps. */
export function perStep(
  job: JobFacts,
  facts: RankFacts,
  sequences: readonly FusionSequence[],
  amount: (s: FusionSequence) => number,
): number {
  const out = new Array<number>(Math.max(1, facts.steps.length)).fill(0);
  for (const s of sequences) {
    const each = amount(s);
    for (const step of s.steps) if (step >= 0 && step < out.length) out[step] = out[step]! + each;
  }
  return medianOfUsed(job, out) || 0;
}

/** The first kernel of each occurrence stands for all of them, the others are not launched. */
export function fuse(sequences: readonly FusionSequence[], pace: FusedPace): Removal {
  const nodes = new Set<number>();
  const durations = new Map<number, number>();
  for (const s of sequences) {
    const left = fusedNs(s, pace);
    const kept = stay(s, pace);
    for (let i = 0; i < s.nodes.length; i++) {
      const node = s.nodes[i]!;
      if (i % s.size < kept) durations.set(node, left / kept);
      else nodes.add(node);
    }
  }
  return { nodes, durations };
}

import { median } from '../../base/statistics.ts';
import { COMPUTE, type RankFacts } from '../../model/facts.ts';
import { groupsOf } from './groups.ts';
import type { JobFacts } from './index.ts';

/** Grouped matrix multiplications of one rank in one used step, in order. */
interface ExpertCalls {
  readonly nodes: readonly number[];
  readonly ns: readonly number[];
  /** Rows of the first input: tokens. NaN when shapes were not recorded. */
  readonly tokens: readonly number[];
}

/** The k-th grouped multiplication on all ranks of a group in one step. */
export interface ExpertSlot {
  /** Parallel to the group's ranks. */
  readonly nodes: readonly number[];
  /** ns at the speed of a median card. */
  readonly ns: readonly number[];
  readonly tokens: readonly number[];
}

/** Ranks that share the experts of a model. */
export interface ExpertGroup {
  readonly hash: string;
  /** Indices into the job's ranks. */
  readonly ranks: readonly number[];
  /** Members that were not uploaded. */
  readonly missing: number;
  readonly slots: readonly ExpertSlot[];
  /** How fast each rank computes everything else, relative to the median: > 1 is slower. */
  readonly speed: readonly number[];
}

const GROUPED = /grouped_?mat_?mul/i;
const EXCHANGE = /^alltoall/i;

/** False when no rank ran a grouped multiplication. */
export function hasExperts(job: JobFacts): boolean {
  return job.ranks.some((r) => r.tape?.types.some((t) => GROUPED.test(t)) === true);
}

/** Groups whose members exchange tokens and multiply them; calls are matched by their order in the step. */
export function expertGroups(job: JobFacts): ExpertGroup[] {
  const groups = groupsOf(job);
  const byGroup = new Map<string, Set<number>>();
  job.ranks.forEach((rank, r) => {
    const bytes = new Map<string, number>();
    for (const call of rank.collectives) {
      if (!EXCHANGE.test(call.op)) continue;
      bytes.set(call.group, (bytes.get(call.group) ?? 0) + (call.bytes > 0 ? call.bytes : 1));
    }
    let most: string | null = null;
    for (const [hash, sum] of bytes) {
      const better =
        most === null ||
        (groups.get(hash)?.role === 'expert' ? 2 : 1) * sum > (groups.get(most)?.role === 'expert' ? 2 : 1) * bytes.get(most)!;
      if (better) most = hash;
    }
    if (most === null) return;
    const members = byGroup.get(most) ?? new Set<number>();
    members.add(r);
    byGroup.set(most, members);
  });
  return [...byGroup].flatMap(([hash, members]): ExpertGroup[] => {
    const ranks = [...members];
    if (ranks.length < 2) return [];
    const calls = ranks.map((r) => callsOf(job.ranks[r]!, job.steps.usedIndex));
    const others = ranks.map((r, i) => otherComputing(job.ranks[r]!, job.steps.usedIndex, calls[i]!));
    const middle = median(others);
    const speed = others.map((ns) => (middle > 0 && ns > 0 ? ns / middle : 1));
    const slots: ExpertSlot[] = [];
    for (const step of job.steps.usedIndex) {
      const own = calls.map((c) => c.get(step));
      const count = own[0]?.nodes.length ?? 0;
      if (count === 0 || own.some((c) => c?.nodes.length !== count)) continue;
      for (let k = 0; k < count; k++) {
        slots.push({
          nodes: own.map((c) => c!.nodes[k]!),
          ns: own.map((c, i) => c!.ns[k]! / speed[i]!),
          tokens: own.map((c) => c!.tokens[k]!),
        });
      }
    }
    const size = groups.get(hash)?.size ?? ranks.length;
    return slots.length === 0 ? [] : [{ hash, ranks, missing: Math.max(0, size - ranks.length), slots, speed }];
  });
}

function callsOf({ tape }: RankFacts, used: readonly number[]): Map<number, ExpertCalls> {
  const out = new Map<number, { nodes: number[]; ns: number[]; tokens: number[] }>();
  if (tape === null) return out;
  const grouped = tape.types.map((t) => GROUPED.test(t));
  const wanted = new Set(used);
  const tokensOf = tape.shapes.map((shape) => Number(/\d+/.exec(shape)?.[0] ?? Number.NaN));
  for (let i = 0; i < tape.start.length; i++) {
    const step = tape.step[i]!;
    if (tape.kind[i] !== COMPUTE || !grouped[tape.type[i]!] || !wanted.has(step)) continue;
    const calls = out.get(step) ?? { nodes: [], ns: [], tokens: [] };
    calls.nodes.push(i);
    calls.ns.push(tape.duration[i]!);
    calls.tokens.push(tape.shape[i]! >= 0 ? tokensOf[tape.shape[i]!]! : Number.NaN);
    out.set(step, calls);
  }
  return out;
}

function otherComputing({ tape }: RankFacts, used: readonly number[], experts: ReadonlyMap<number, ExpertCalls>): number {
  if (tape === null) return Number.NaN;
  const wanted = new Set(used);
  let ns = 0;
  for (let i = 0; i < tape.start.length; i++) if (tape.kind[i] === COMPUTE && wanted.has(tape.step[i]!)) ns += tape.duration[i]!;
  for (const calls of experts.values()) for (const own of calls.ns) ns -= own;
  return ns;
}

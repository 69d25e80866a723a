/* Which ranks a cause sits on, from what each rank spends: once one of them reaches the floor, all that have a fair part of the worst. */

/** Ranks with at least this part of the worst, when that reaches the floor. NaN is a rank that was not measured. */
function withPart(part: number, values: readonly number[], floor: number): number[] {
  const most = Math.max(0, ...values.filter((v) => !Number.isNaN(v)));
  return most > 0 && most >= floor ? values.flatMap((own, r) => (own >= part * most ? [r] : [])) : [];
}

/** The same code runs on every rank: where it costs one rank enough, it sits on all that have a tenth of that. */
const FAIR_PART = 0.1;

/** Ranks of a cause that costs at least one of them `floor`; empty when it costs none that much. */
export function sharers(ms: readonly number[], floor: number): number[] {
  return withPart(FAIR_PART, ms, floor);
}

/** One rank far above the rest is the culprit, and the others merely run the same code. */
const CULPRIT_PART = 0.5;

/**
 * The ranks where a cause sits that holds up the host. Those just below the floor run it as long as those above, and one of them left out
 * would hold back all others in the replay.
 */
export function ranksAbove(values: readonly number[], floor: number): number[] {
  return withPart(CULPRIT_PART, values, floor);
}

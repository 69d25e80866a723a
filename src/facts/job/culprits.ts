/* Which ranks a cause sits on, from what each rank spends. */

/** The largest, 0 without any; NaN is a rank that was not measured. */
function worst(values: readonly number[]): number {
  return Math.max(0, ...values.filter((v) => !Number.isNaN(v)));
}

/** The same code runs on every rank: where it costs one rank enough, it sits on all that have a tenth of that. */
const FAIR_PART = 0.1;

/** Ranks of a cause that costs at least one of them `floor`; empty when it costs none that much. */
export function sharers(ms: readonly number[], floor: number): number[] {
  const most = worst(ms);
  return most > 0 && most >= floor ? ms.flatMap((own, r) => (own >= FAIR_PART * most ? [r] : [])) : [];
}

/**
 * The ranks where a cause sits, once one of them reaches the floor: all that have at least half as much as the worst. One far above the
 * rest is the culprit and the others merely run the same code; ranks just below the floor run it as long as those above, and one of them
 * left out would hold back all others in the replay.
 */
export function ranksAbove(values: readonly number[], floor: number): number[] {
  const most = worst(values);
  return most > 0 && most >= floor ? values.flatMap((own, r) => (own >= 0.5 * most ? [r] : [])) : [];
}

/** Median of the values; NaN when there are none. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Linear-interpolated quantile, q in 0..1; NaN when there are no values. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * q;
  const low = Math.floor(position);
  const high = Math.ceil(position);
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (position - low);
}

/** Median absolute deviation (unscaled). */
export function mad(values: readonly number[]): number {
  const middle = median(values);
  return median(values.map((v) => Math.abs(v - middle)));
}

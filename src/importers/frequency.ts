import type { Column } from '../base/columns.ts';
import { sortedRows } from '../base/lookup.ts';
import type { FrequencyTable } from '../model/capture.ts';

/** No core is faster. */
export const MAX_MHZ = 100_000;

/** Samples of the AI core clock as its changes, in order; null without any. */
export function frequencyOf(samples: { readonly at: Column<Float64Array>; readonly mhz: Column<Float64Array> }): FrequencyTable | null {
  const { length } = samples.at;
  if (length === 0) return null;
  const rows = sortedRows(length, (a, b) => samples.at.at(a) - samples.at.at(b) || a - b);
  const kept = rows.filter((row, i) => i === 0 || samples.mhz.at(row) !== samples.mhz.at(rows[i - 1]!));
  return {
    at: Float64Array.from(kept, (row) => samples.at.at(row)),
    mhz: Float64Array.from(kept, (row) => samples.mhz.at(row)),
  };
}

/** 0 … count − 1 in the order of `compare`. Most tables come in order: those are not sorted, which would take twice their memory. */
export function sortedRows(count: number, compare: (a: number, b: number) => number): Int32Array {
  const rows = new Int32Array(count);
  let sorted = true;
  for (let i = 0; i < count; i++) {
    rows[i] = i;
    if (i > 0 && !(compare(i - 1, i) <= 0)) sorted = false;
  }
  return sorted ? rows : rows.sort(compare);
}

/** Number of `rows`, ascending by `key`, whose key is at most `wanted`. */
export function countUpTo(rows: Int32Array, key: (row: number) => number, wanted: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (key(rows[mid]!) <= wanted) low = mid + 1;
    else high = mid;
  }
  return low;
}

/**
 * Finds rows by number, like a map from key to value, in 4 bytes a row: long captures have millions. `rows` ascend by `key`; of equal keys
 * the last row is found.
 */
export function lookupIn<V>(
  rows: Int32Array,
  key: (row: number) => number,
  value: (row: number) => V,
): { get(wanted: number): V | undefined; readonly size: number } {
  return {
    size: rows.length,
    get(wanted) {
      const row = rows[countUpTo(rows, key, wanted) - 1];
      return row !== undefined && key(row) === wanted ? value(row) : undefined;
    },
  };
}

/** Last row of each key ≥ 0; −1 for keys that are not there. */
export function lastRowOf(keys: Float64Array): (key: number) => number {
  let count = 0;
  for (const key of keys) if (key >= 0) count++;
  const rows = new Int32Array(count);
  let next = 0;
  for (let i = 0; i < keys.length; i++) if (keys[i]! >= 0) rows[next++] = i;
  rows.sort((a, b) => keys[a]! - keys[b]! || a - b);
  const found = lookupIn(
    rows,
    (row) => keys[row]!,
    (row) => row,
  );
  return (key) => found.get(key) ?? -1;
}

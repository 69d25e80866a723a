/** A growable column of numbers. 8 bytes a value for `f64`, 4 for `i32`. */
export interface Column<A extends Float64Array | Int32Array> {
  push(value: number): void;
  /** The values written so far; valid until the next push. */
  view(): A;
  readonly length: number;
}

export function f64(initial = 256): Column<Float64Array> {
  let data = new Float64Array(initial);
  let length = 0;
  return {
    push(value) {
      if (length === data.length) {
        const next = new Float64Array(data.length * 2);
        next.set(data);
        data = next;
      }
      data[length++] = value;
    },
    view: () => data.subarray(0, length),
    get length() {
      return length;
    },
  };
}

export function i32(initial = 256): Column<Int32Array> {
  let data = new Int32Array(initial);
  let length = 0;
  return {
    push(value) {
      if (length === data.length) {
        const next = new Int32Array(data.length * 2);
        next.set(data);
        data = next;
      }
      data[length++] = value;
    },
    view: () => data.subarray(0, length),
    get length() {
      return length;
    },
  };
}

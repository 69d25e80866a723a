/** A growable column of numbers. 8 bytes a value for `f64`, 4 for `i32`. */
export interface Column<A extends Float64Array | Int32Array> {
  push(value: number): void;
  /** The values written so far; valid until the next push. */
  view(): A;
  at(index: number): number;
  set(index: number, value: number): void;
  /** Keeps the first `count` values. */
  truncate(count: number): void;
  /** The values in a memory of their own size, or in another order; the column is empty afterwards. */
  take(order?: Int32Array): A;
  readonly length: number;
}

export function f64(initial = 256): Column<Float64Array> {
  let data = new Float64Array(initial);
  let length = 0;
  return {
    push(value) {
      if (length === data.length) {
        // The old memory is given back at once, not when the collector comes round to it.
        data = new Float64Array(data.buffer.transfer(data.byteLength * 2));
      }
      data[length++] = value;
    },
    view: () => data.subarray(0, length),
    at: (index) => data[index]!,
    set(index, value) {
      data[index] = value;
    },
    truncate(count) {
      length = Math.min(length, count);
    },
    take(order) {
      let out: Float64Array<ArrayBuffer>;
      if (order === undefined) out = new Float64Array(data.buffer.transfer(length * Float64Array.BYTES_PER_ELEMENT));
      else {
        out = new Float64Array(order.length);
        for (let i = 0; i < order.length; i++) out[i] = data[order[i]!]!;
        data.buffer.transfer(0);
      }
      data = new Float64Array(initial);
      length = 0;
      return out;
    },
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
        // The old memory is given back at once, not when the collector comes round to it.
        data = new Int32Array(data.buffer.transfer(data.byteLength * 2));
      }
      data[length++] = value;
    },
    view: () => data.subarray(0, length),
    at: (index) => data[index]!,
    set(index, value) {
      data[index] = value;
    },
    truncate(count) {
      length = Math.min(length, count);
    },
    take(order) {
      let out: Int32Array<ArrayBuffer>;
      if (order === undefined) out = new Int32Array(data.buffer.transfer(length * Int32Array.BYTES_PER_ELEMENT));
      else {
        out = new Int32Array(order.length);
        for (let i = 0; i < order.length; i++) out[i] = data[order[i]!]!;
        data.buffer.transfer(0);
      }
      data = new Int32Array(initial);
      length = 0;
      return out;
    },
    get length() {
      return length;
    },
  };
}

/**
 * What a reader could not use yet, and what came after it, in one piece. The buffer is used again and again:
 * joining chunks anew for each seam costs more than reading them.
 */
export interface Carry {
  readonly length: number;
  append(bytes: Buffer): void;
  /** All bytes held; valid until the next call. */
  view(): Buffer;
  /** Forgets the first `count` bytes. */
  drop(count: number): void;
}

/** A larger buffer than this is given back when it has become empty, bytes. */
const KEEP = 4 << 20;

export function createCarry(): Carry {
  let data = Buffer.alloc(0);
  let start = 0;
  let end = 0;
  return {
    get length() {
      return end - start;
    },
    append(bytes) {
      if (end + bytes.length > data.length) {
        const held = end - start;
        if (held + bytes.length <= data.length) data.copyWithin(0, start, end);
        else {
          const next = Buffer.allocUnsafeSlow((held + bytes.length) * 2);
          data.copy(next, 0, start, end);
          data = next;
        }
        start = 0;
        end = held;
      }
      end += bytes.copy(data, end);
    },
    view: () => data.subarray(start, end),
    drop(count) {
      start += count;
      if (start < end) return;
      start = end = 0;
      if (data.length > KEEP) data = Buffer.alloc(0);
    },
  };
}

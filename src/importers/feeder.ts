/**
 * Feeds chunks to a reader that uses only whole items. The chunks are read where they lie; just the item that spans two of them
 * is joined, in a buffer that is used again and again: joining whole chunks costs as much as a tenth of the reading.
 */
export interface Feeder {
  push(chunk: Buffer): void;
  /** What is left at the end of the file: half an item, or nothing. */
  end(): Buffer;
}

/** An item that spans two chunks is looked for in so much of the second, bytes. */
const SEAM = 64 << 10;
/** A larger buffer than this is given back when it has become empty, bytes. */
const KEEP = 4 << 20;

/**
 * `consume` is given bytes with their place in the file and returns how many it used. An item longer than `max` bytes is none:
 * it is dropped, and `onGiveUp` is told.
 */
export function createFeeder(consume: (buf: Buffer, offset: number) => number, max: number, onGiveUp: () => void): Feeder {
  let data = Buffer.alloc(0);
  let start = 0;
  let end = 0;
  /** Place in the file of the first byte that was not used yet. */
  let offset = 0;
  /** How many of the bytes held were looked at already, in vain. */
  let tried = 0;

  const append = (bytes: Buffer): void => {
    const held = end - start;
    if (end + bytes.length > data.length) {
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
  };
  const drop = (count: number): void => {
    start += count;
    offset += count;
    if (start < end) return;
    start = end = 0;
    if (data.length > KEEP) data = Buffer.alloc(0);
  };
  const settle = (): void => {
    if (end - start > max) {
      drop(end - start);
      onGiveUp();
    }
    tried = end - start;
  };
  const direct = (chunk: Buffer): void => {
    const used = consume(chunk, offset);
    offset += used;
    append(chunk.subarray(used));
    settle();
  };
  const held = (): void => {
    drop(consume(data.subarray(start, end), offset));
    settle();
  };

  return {
    push(chunk) {
      if (tried === 0) {
        direct(chunk);
        return;
      }
      if (chunk.length > SEAM && tried < SEAM) {
        const before = tried;
        append(chunk.subarray(0, SEAM));
        const used = consume(data.subarray(start, end), offset);
        if (used > before) {
          offset += used;
          start = end = 0;
          direct(chunk.subarray(used - before));
          return;
        }
        drop(used);
        append(chunk.subarray(SEAM));
      } else append(chunk);
      // An item that did not fit is looked at again only when there is as much new as old: long items cost linear time.
      if (end - start >= tried * 2) held();
    },
    end() {
      if (end - start > tried) held();
      return data.subarray(start, end);
    },
  };
}

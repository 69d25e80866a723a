/** Maps byte ranges to small integers without making a string for each occurrence. Ids count from 0 in order of first sight. */
export interface Interner {
  /** Id of the UTF-8 bytes buf[start, end). */
  bytes(buf: Uint8Array, start: number, end: number): number;
  text(value: string): number;
  /** Id if the text was seen, else -1. */
  find(value: string): number;
  get(id: number): string;
  readonly size: number;
}

/** Longest name kept, in bytes; longer ones are cut, so that a hostile megabyte name costs no memory. */
const MAX_BYTES = 2_048;
/** Bytes kept over all names; beyond it new ones share the first id. Real captures need a few MB. */
const MAX_TOTAL_BYTES = 256 << 20;
/** Differs from process to process, so that nobody can prepare names that fall into one slot. Ids do not depend on it. */
const SEED = (Math.random() * 2 ** 32) | 0;

export function createInterner(limit = 4_000_000): Interner {
  let total = 0;
  let capacity = 1 << 12;
  let slots = new Int32Array(capacity).fill(-1);
  const hashes: number[] = [];
  const stored: Uint8Array[] = [];
  const texts: (string | undefined)[] = [];
  const decoder = new TextDecoder('utf-8', { fatal: false });
  const encoder = new TextEncoder();

  function grow(): void {
    capacity *= 2;
    slots = new Int32Array(capacity).fill(-1);
    for (let id = 0; id < hashes.length; id++) {
      let slot = hashes[id]! & (capacity - 1);
      while (slots[slot] !== -1) slot = (slot + 1) & (capacity - 1);
      slots[slot] = id;
    }
  }

  function lookup(buf: Uint8Array, start: number, end: number, insert: boolean): number {
    const stop = end - start > MAX_BYTES ? start + MAX_BYTES : end;
    let hash = SEED ^ (stop - start);
    for (let i = start; i < stop; i++) hash = Math.imul(hash ^ buf[i]!, 0x01000193);
    hash ^= hash >>> 15;
    let slot = hash & (capacity - 1);
    for (let id = slots[slot]!; id !== -1; id = slots[slot]!) {
      if (hashes[id] === hash) {
        const known = stored[id]!;
        if (known.length === stop - start) {
          let i = 0;
          while (i < known.length && known[i] === buf[start + i]) i++;
          if (i === known.length) return id;
        }
      }
      slot = (slot + 1) & (capacity - 1);
    }
    if (!insert) return -1;
    if (hashes.length >= limit || total >= MAX_TOTAL_BYTES) return 0;
    total += stop - start;
    const id = hashes.length;
    slots[slot] = id;
    hashes.push(hash);
    stored.push(Uint8Array.prototype.slice.call(buf, start, stop));
    texts.push(undefined);
    if (hashes.length * 2 > capacity) grow();
    return id;
  }

  return {
    bytes: (buf, start, end) => lookup(buf, start, end, true),
    text(value) {
      const bytes = encoder.encode(value);
      return lookup(bytes, 0, bytes.length, true);
    },
    find(value) {
      const bytes = encoder.encode(value);
      return lookup(bytes, 0, bytes.length, false);
    },
    get(id) {
      const known = texts[id];
      if (known !== undefined) return known;
      const bytes = stored[id];
      if (bytes === undefined) return '';
      const value = decoder.decode(bytes);
      texts[id] = value;
      return value;
    },
    get size() {
      return hashes.length;
    },
  };
}

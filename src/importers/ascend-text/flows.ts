import { f64, i32 } from '../../base/columns.ts';
import { lookupIn } from '../../base/lookup.ts';
import type { Lookup } from '../../model/capture.ts';

const BILLION = 1_000_000_000;

/**
 * Ids of flows, up to 20 digits and beyond 2^53, as small numbers in order of first sight. Two numbers an id instead of a string:
 * long captures have millions.
 */
function createIds(): (buf: Uint8Array, start: number, end: number) => number {
  let capacity = 1 << 10;
  let slots = new Int32Array(capacity).fill(-1);
  const high = f64();
  const low = f64();
  const slotOf = (hi: number, lo: number): number => {
    let hash = Math.imul((hi % 0x7fffffff) | 0, 0x9e3779b1) ^ Math.imul(lo | 0, 0x85ebca6b);
    hash ^= hash >>> 15;
    return Math.imul(hash, 0x2c1b3c6d) >>> 0;
  };
  return (buf, start, end) => {
    let hi = 0;
    let lo = 0;
    for (let i = start; i < end; i++) {
      const digit = buf[i]! - 48;
      if (digit < 0 || digit > 9 || hi > 1e14) {
        // Not a plain number: two checksums stand for it, below zero.
        hi = -end + start;
        lo = 0;
        for (let j = start; j < end; j++) {
          hi = -(((-hi * 31) % 0x7fffffff) + buf[j]! + 1);
          lo = (lo * 131 + buf[j]!) % BILLION;
        }
        break;
      }
      const next = lo * 10 + digit;
      lo = next % BILLION;
      hi = hi * 10 + (next - lo) / BILLION;
    }
    let slot = slotOf(hi, lo) & (capacity - 1);
    for (let id = slots[slot]!; id !== -1; id = slots[slot]!) {
      if (high.at(id) === hi && low.at(id) === lo) return id;
      slot = (slot + 1) & (capacity - 1);
    }
    const id = high.length;
    slots[slot] = id;
    high.push(hi);
    low.push(lo);
    if (id * 2 > capacity) {
      capacity *= 2;
      slots = new Int32Array(capacity).fill(-1);
      for (let known = 0; known <= id; known++) {
        let free = slotOf(high.at(known), low.at(known)) & (capacity - 1);
        while (slots[free] !== -1) free = (free + 1) & (capacity - 1);
        slots[free] = known;
      }
    }
    return id;
  };
}

export interface Origin {
  readonly at: number;
  readonly tid: number;
}

/** Starts and ends of one kind of flow, joined by id once all are known. */
export interface Flows {
  start(buf: Uint8Array, from: number, to: number, at: number, tid: number): void;
  end(buf: Uint8Array, from: number, to: number, at: number, tid: number): void;
  /** By the instant of the end: where the flow came from. */
  byEnd(): Lookup<Origin>;
  /** By the thread of the end, then its instant: the instant it came from. */
  byThread(): Lookup<Lookup<number>>;
}

/** What counts when an id comes again: its first start or its last, every end or the last. */
export function createFlows(again: { readonly start: 'first' | 'last'; readonly end: 'every' | 'last' }): Flows {
  const idOf = createIds();
  const startAt = f64();
  const startTid = f64();
  const endOf = i32();
  const endId = i32();
  const endAt = f64();
  const endTid = f64();
  const ordinal = (buf: Uint8Array, from: number, to: number): number => {
    const id = idOf(buf, from, to);
    if (id === startAt.length) {
      startAt.push(Number.NaN);
      startTid.push(Number.NaN);
      endOf.push(-1);
    }
    return id;
  };
  /** Ends that have a start, by instant; of equal ones the last to come is found first. */
  const joined = (wanted: (end: number) => boolean): Int32Array => {
    const list = i32();
    for (let e = 0; e < endId.length; e++) if (!Number.isNaN(startAt.at(endId.at(e))) && wanted(e)) list.push(e);
    return list.view().sort((a, b) => endAt.at(a) - endAt.at(b) || a - b);
  };
  const lookup = <V>(ends: Int32Array, value: (end: number) => V): Lookup<V> => lookupIn(ends, (e) => endAt.at(e), value);
  return {
    start(buf, from, to, at, tid) {
      const id = ordinal(buf, from, to);
      if (again.start === 'first' && !Number.isNaN(startAt.at(id))) return;
      startAt.set(id, at);
      startTid.set(id, tid);
    },
    end(buf, from, to, at, tid) {
      const id = ordinal(buf, from, to);
      const known = endOf.at(id);
      if (again.end === 'last' && known !== -1) {
        endAt.set(known, at);
        endTid.set(known, tid);
        return;
      }
      endOf.set(id, endId.length);
      endId.push(id);
      endAt.push(at);
      endTid.push(tid);
    },
    byEnd: () =>
      lookup(
        joined(() => true),
        (e) => ({ at: startAt.at(endId.at(e)), tid: startTid.at(endId.at(e)) }),
      ),
    byThread() {
      const threads = new Set<number>();
      for (let e = 0; e < endId.length; e++) threads.add(endTid.at(e));
      const of = new Map<number, Lookup<number>>();
      for (const tid of threads) {
        const ends = joined((e) => Object.is(endTid.at(e), tid));
        of.set(
          tid,
          lookup(ends, (e) => startAt.at(endId.at(e))),
        );
      }
      return of;
    },
  };
}

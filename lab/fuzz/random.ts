/** A small seeded generator: the same seed gives the same inputs on every machine. */
export interface Random {
  /** Whole number in [0, n). */
  int(n: number): number;
  chance(p: number): boolean;
  pick<T>(list: readonly T[]): T;
  bytes(n: number): Buffer;
}

/** mulberry32, started from a hash of the numbers given. */
export function randomOf(...seeds: readonly number[]): Random {
  let state = 0x9e3779b9;
  for (const seed of seeds) {
    state = Math.imul(state ^ (seed >>> 0), 0x85ebca6b);
    state ^= state >>> 13;
    state = Math.imul(state, 0xc2b2ae35);
    state ^= state >>> 16;
  }
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const int = (n: number): number => (n <= 1 ? 0 : next() % n);
  return {
    int,
    chance: (p) => next() / 2 ** 32 < p,
    pick: (list) => list[int(list.length)]!,
    bytes: (n) => Buffer.from(Array.from({ length: n }, () => next() & 255)),
  };
}

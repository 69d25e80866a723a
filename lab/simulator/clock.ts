/** Wall clock at time 0 of the simulation: 2025-11-20 08:00:00 UTC, in us. */
const BASE_US = 1_763_625_600_000_000;

/** Turns simulated ns into the timestamps of one rank's files. */
export interface Clock {
  /** us with three decimals, as trace and CSV files write it */
  stamp(ns: number): string;
  /** the same instant as an integer number of ns, for flow ids */
  id(ns: number): bigint;
  /** the same instant as a double in us (loses sub-us digits like the real exports) */
  number(ns: number): number;
  /** yyyymmddHHMMSSmmm */
  folderTime(ns: number): string;
}

/** Clock of a rank whose timestamps are off by `skewUs`. */
export function createClock(skewUs: number): Clock {
  const skewNs = Math.round(skewUs * 1000);
  return {
    stamp(ns) {
      const total = ns + skewNs;
      const us = Math.floor(total / 1000);
      return `${BASE_US + us}.${String(total - us * 1000).padStart(3, '0')}`;
    },
    id: (ns) => BigInt(BASE_US) * 1000n + BigInt(ns + skewNs),
    number: (ns) => BASE_US + (ns + skewNs) / 1000,
    folderTime: (ns) =>
      new Date((BASE_US + (ns + skewNs) / 1000) / 1000)
        .toISOString()
        .replace(/[-T:.Z]/g, '')
        .slice(0, 17),
  };
}

/** A duration in us with ns resolution. */
export const micros = (ns: number): number => ns / 1000;
/** A duration in ms. */
export const millis = (ns: number): number => ns / 1e6;

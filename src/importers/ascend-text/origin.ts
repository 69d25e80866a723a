import type { Instant } from '../../base/decimal.ts';

/** The zero of one rank's clock: the first whole µs seen in any of its files. All times of the rank become ns since then, exactly. */
export interface Origin {
  readonly us: number | null;
  relative(instant: Instant): number;
}

export function createOrigin(): Origin {
  let origin: number | null = null;
  return {
    get us() {
      return origin;
    },
    relative(instant) {
      if (origin === null) origin = instant.us;
      return (instant.us - origin) * 1000 + instant.ns;
    },
  };
}

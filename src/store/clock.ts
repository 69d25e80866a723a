import type { Sql } from './ports.ts';

/** Clocks drift by seconds a day at most. */
const AGAIN_MS = 10 * 60_000;
const TRIES = 3;

/** The time all processes of a store agree on. */
export interface StoreClock {
  now(): number;
  /** By how much the clock of this machine is behind, ms. */
  readonly behindMs: number;
  stop(): void;
}

/** By how much the clock of this machine is behind that of the database: the try with the shortest way there and back counts. */
async function measure(database: Sql, local: () => number): Promise<number> {
  let best = { trip: Number.POSITIVE_INFINITY, behind: 0 };
  for (let i = 0; i < TRIES; i++) {
    const before = local();
    const [row] = await database.query<{ at: number | string }>('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS at');
    const after = local();
    if (after - before < best.trip) best = { trip: after - before, behind: Number(row!.at) - (before + after) / 2 };
  }
  return Math.round(best.behind);
}

/** Deadlines are noted by one machine and looked at by another, whose clock may be wrong: all of them go by that of the database. */
export async function startStoreClock(database: Sql, local: () => number = Date.now): Promise<StoreClock> {
  let behindMs = await measure(database, local);
  const timer = setInterval(() => {
    measure(database, local).then(
      (measured) => {
        behindMs = measured;
      },
      () => undefined,
    );
  }, AGAIN_MS);
  timer.unref();
  return {
    now: () => local() + behindMs,
    get behindMs() {
      return behindMs;
    },
    stop: () => clearInterval(timer),
  };
}

import type { Database, Table } from '../database.ts';

/** The rank's zero: the first instant found, cut to whole µs. Times of all tables become ns since then, exactly. */
export interface DatabaseClock {
  readonly us: number;
  /** SQL for the column's instant, relative; NULL when it is missing or not within 52 days of the zero. */
  sql(table: Table, column: string): string;
}

/** Condition that a row begins within what is kept of the capture; empty when all rows fit. */
export function begun(
  { clock, until }: { readonly clock: DatabaseClock; readonly until: number },
  table: Table,
  joint: 'AND' | 'WHERE',
): string {
  return until === Number.POSITIVE_INFINITY ? '' : ` ${joint} ${clock.sql(table, 'startNs')} <= ${Math.floor(until)}`;
}

const PLACES: readonly (readonly [table: string, column: string])[] = [
  ['STEP_TIME', 'startNs'],
  ['TASK', 'startNs'],
  ['COMMUNICATION_OP', 'startNs'],
  ['PYTORCH_API', 'startNs'],
  ['CANN_API', 'startNs'],
  ['SESSION_TIME_INFO', 'startTimeNs'],
];
const SPAN = 2n ** 52n;

export function findClock(db: Database): DatabaseClock | null {
  for (const [name, column] of PLACES) {
    const table = db.table(name);
    if (table === null || !table.has(column)) continue;
    for (const [value] of db.rows(`SELECT CAST(CAST(${table.sql(column)} AS INTEGER) AS TEXT) FROM "${name}" LIMIT 16`)) {
      const ns = typeof value === 'string' && /^\d{1,19}$/.test(value) ? BigInt(value) : 0n;
      if (ns <= 0n || ns / 1000n > BigInt(Number.MAX_SAFE_INTEGER)) continue;
      const base = (ns / 1000n) * 1000n;
      return {
        us: Number(base / 1000n),
        sql(of, at) {
          const exact = `CAST(${of.sql(at)} AS INTEGER)`;
          return `CASE WHEN ${exact} BETWEEN ${base - SPAN} AND ${base + SPAN} THEN ${exact} - ${base} END`;
        },
      };
    }
  }
  return null;
}

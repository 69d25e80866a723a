import type { Interner } from '../../base/interner.ts';
import type { Database } from '../database.ts';

const MISSING = /^(?:n\/?a|none|nan|null)?$/i;
/** A longer value is no name, shape or stack frame and is not loaded, bytes. */
const MAX_BYTES = 1 << 20;
/** Part of a value that is kept, characters. */
const KEPT = 4_096;

/** The texts that other tables name by number (STRING_IDS), looked up when first asked for. */
export interface Strings {
  /** null for a missing number, and for `N/A` and its likes. */
  text(id: unknown): string | null;
  /** Id of the text among the rank's names, -1 when missing. */
  intern(id: unknown): number;
}

export function createStrings(db: Database, names: Interner): Strings {
  const find = finder(db);
  const texts = new Map<number, string | null>();
  const interned = new Map<number, number>();
  const text = (id: unknown): string | null => {
    if (typeof id !== 'number') return null;
    let known = texts.get(id);
    if (known === undefined) {
      const value = find(id);
      known = value === null || MISSING.test(value.trim()) ? null : value;
      texts.set(id, known);
    }
    return known;
  };
  return {
    text,
    intern(id) {
      if (typeof id !== 'number') return -1;
      let known = interned.get(id);
      if (known === undefined) {
        const value = text(id);
        known = value === null ? -1 : names.text(value);
        interned.set(id, known);
      }
      return known;
    },
  };
}

function finder(db: Database): (id: number) => string | null {
  const table = db.table('STRING_IDS');
  if (table === null || !table.has('id') || !table.has('value')) return () => null;
  const value = `CASE WHEN octet_length("value") <= ${MAX_BYTES} THEN substr("value", 1, ${KEPT}) END`;
  const asText = (v: unknown): string | null => (typeof v === 'string' ? v : null);
  if (table.key === 'id') {
    const lookup = db.lookup(`SELECT ${value} FROM "STRING_IDS" WHERE "id" = ?`);
    return (id) => asText(lookup(id)?.[0]);
  }
  const all = new Map<number, string>();
  for (const [id, content] of db.rows(`SELECT "id", ${value} FROM "STRING_IDS"`)) {
    if (typeof id === 'number' && typeof content === 'string') all.set(id, content);
  }
  return (id) => all.get(id) ?? null;
}

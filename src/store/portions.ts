import { type Blobs, keyOf } from './blobs/blobs.ts';
import type { Database, Portion, Portions, SqlValue } from './ports.ts';

interface Row {
  id: number | string;
  place: number;
  payload: string;
  state: Portion['state'];
  attempts: number;
  note: string;
  updated_at: number | string;
}

function toPortion(row: Row): Portion {
  return {
    id: Number(row.id),
    place: Number(row.place),
    payload: JSON.parse(row.payload),
    state: row.state,
    attempts: Number(row.attempts),
    note: row.note,
    updatedAt: Number(row.updated_at),
  };
}

/** Columns that name a blob. */
const NAME = 'repo_id, job, place';
type Named = Pick<Row, 'place'> & { repo_id: number | string; job: string };

function keyOfRow({ repo_id, job, place }: Named): string {
  return keyOf(Number(repo_id), job, Number(place));
}

const COLUMNS = 'id, place, payload, state, attempts, note, updated_at';

/** The key of a row's blob, in SQL. */
export const KEY = "repo_id || '/' || job || '/' || place";
const BATCH = 1000;
const SIDE_BY_SIDE = 8;

/**
 * Portions in a table of their own. Their facts lie among the blobs, else in the table, as base64 because the common dialect knows text only.
 * A row is there before its blob and its name goes to `unwanted_blobs` with it, so that no blob is forgotten.
 */
export function portions(db: Database, now: () => number, blobs: Blobs | null = null): Portions {
  /** Removes blobs whose rows are gone. What cannot be removed now stays on the list, for `prune`. */
  async function removeBlobs(like = ''): Promise<void> {
    if (blobs === null) return;
    const rows = await db.query<{ key: string }>(
      `SELECT key FROM npu_advisor.unwanted_blobs WHERE starts_with(key, $1)
       AND NOT EXISTS (SELECT 1 FROM npu_advisor.portions WHERE ${KEY} = key) ORDER BY since LIMIT ${BATCH}`,
      [like],
    );
    for (let i = 0; i < rows.length; i += SIDE_BY_SIDE) {
      const some = rows.slice(i, i + SIDE_BY_SIDE);
      const ended = await Promise.allSettled(
        some.map(async ({ key }) => {
          await blobs.remove(key);
          await db.query('DELETE FROM npu_advisor.unwanted_blobs WHERE key = $1', [key]);
        }),
      );
      // Likely none of the others can be removed, either.
      if (ended.some(({ status }) => status === 'rejected')) return;
    }
  }
  async function drop(where: string, params: readonly SqlValue[]): Promise<void> {
    if (blobs === null) {
      await db.query(`DELETE FROM npu_advisor.portions WHERE ${where}`, params);
      return;
    }
    await db.query(
      `WITH gone AS (DELETE FROM npu_advisor.portions WHERE ${where} RETURNING ${KEY} AS key)
       INSERT INTO npu_advisor.unwanted_blobs (key, since) SELECT key, $${params.length + 1}::bigint FROM gone ON CONFLICT DO NOTHING`,
      [...params, now()],
    );
  }

  return {
    async plan(repoId, job, payloads) {
      for (const [place, payload] of payloads.entries()) {
        await db.query(
          `INSERT INTO npu_advisor.portions (repo_id, job, place, payload, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)
           ON CONFLICT DO NOTHING`,
          [repoId, job, place, JSON.stringify(payload), now()],
        );
      }
    },
    async of(repoId, job) {
      const rows = await db.query<Row>(`SELECT ${COLUMNS} FROM npu_advisor.portions WHERE repo_id = $1 AND job = $2 ORDER BY place`, [
        repoId,
        job,
      ]);
      return rows.map(toPortion);
    },
    async find(repoId, job, place) {
      const [row] = await db.query<Row>(`SELECT ${COLUMNS} FROM npu_advisor.portions WHERE repo_id = $1 AND job = $2 AND place = $3`, [
        repoId,
        job,
        place,
      ]);
      return row === undefined ? null : toPortion(row);
    },
    async begin(id) {
      await db.query('UPDATE npu_advisor.portions SET attempts = attempts + 1, updated_at = $2 WHERE id = $1', [id, now()]);
    },
    async uncount(id) {
      await db.query('UPDATE npu_advisor.portions SET attempts = greatest(attempts - 1, 0), updated_at = $2 WHERE id = $1', [id, now()]);
    },
    async finish(id, facts) {
      const end = (text: string | null): Promise<readonly unknown[]> =>
        db.query(
          `UPDATE npu_advisor.portions SET state = 'done', facts = $2, updated_at = $3 WHERE id = $1 AND state = 'waiting' RETURNING id`,
          [id, text, now()],
        );
      if (blobs === null) {
        await end(Buffer.from(facts).toString('base64'));
        return;
      }
      const [row] = await db.query<Named>(`SELECT ${NAME} FROM npu_advisor.portions WHERE id = $1 AND state = 'waiting'`, [id]);
      if (row === undefined) return;
      const key = keyOfRow(row);
      await blobs.write(key, facts);
      if ((await end(null)).length > 0) return;
      // Given up or dropped meanwhile. Where there is still a row, its blob goes with it.
      await db.query('INSERT INTO npu_advisor.unwanted_blobs (key, since) VALUES ($1, $2) ON CONFLICT DO NOTHING', [key, now()]);
      await removeBlobs(key);
    },
    async fail(id, note) {
      await db.query(`UPDATE npu_advisor.portions SET state = 'failed', note = $2, updated_at = $3 WHERE id = $1 AND state = 'waiting'`, [
        id,
        note.slice(0, 4000),
        now(),
      ]);
    },
    async facts(id) {
      const [row] = await db.query<Named & { facts: string | null }>(`SELECT ${NAME}, facts FROM npu_advisor.portions WHERE id = $1`, [id]);
      if (row === undefined) return null;
      if (row.facts !== null) return Buffer.from(row.facts, 'base64');
      return blobs === null ? null : blobs.read(keyOfRow(row));
    },
    async drop(repoId, job) {
      await drop('repo_id = $1 AND job = $2', [repoId, job]);
      await removeBlobs(`${repoId}/${job}/`);
    },
    async prune(olderThan) {
      await drop('updated_at < $1', [olderThan]);
      await removeBlobs();
    },
    tidy: () => removeBlobs(),
  };
}

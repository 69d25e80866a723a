import type { Database, Portion, Portions } from './ports.ts';

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

const COLUMNS = 'id, place, payload, state, attempts, note, updated_at';

/** Portions in a table of their own; facts travel as base64 because the common dialect knows text only. */
export function portions(db: Database, now: () => number): Portions {
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
      const text = Buffer.from(facts).toString('base64');
      await db.query(`UPDATE npu_advisor.portions SET state = 'done', facts = $2, updated_at = $3 WHERE id = $1 AND state = 'waiting'`, [
        id,
        text,
        now(),
      ]);
    },
    async fail(id, note) {
      await db.query(`UPDATE npu_advisor.portions SET state = 'failed', note = $2, updated_at = $3 WHERE id = $1 AND state = 'waiting'`, [
        id,
        note.slice(0, 4000),
        now(),
      ]);
    },
    async facts(id) {
      const [row] = await db.query<{ facts: string | null }>('SELECT facts FROM npu_advisor.portions WHERE id = $1', [id]);
      return row?.facts == null ? null : Buffer.from(row.facts, 'base64');
    },
    async drop(repoId, job) {
      await db.query('DELETE FROM npu_advisor.portions WHERE repo_id = $1 AND job = $2', [repoId, job]);
    },
    async prune(olderThan) {
      await db.query('DELETE FROM npu_advisor.portions WHERE updated_at < $1', [olderThan]);
    },
  };
}

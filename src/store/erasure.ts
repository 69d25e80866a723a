import { HOLDINGS, sqlName } from './holdings.ts';
import { KEY } from './portions.ts';
import type { Database, Erasures, Removal, Repositories, Usage } from './ports.ts';

/** In the table, a whole installation. */
const WHOLE = 0;

const SEEN_MS = 3600 * 1000;
const MAX_SEEN = 10_000;

interface RemovalRow {
  installation_id: number | string;
  repo_id: number | string;
  asked_at: number | string;
  erased_at: number | string | null;
}

function toRemoval(row: RemovalRow): Removal {
  const repoId = Number(row.repo_id);
  return {
    installationId: Number(row.installation_id),
    repoId: repoId === WHOLE ? null : repoId,
    askedAt: Number(row.asked_at),
    erasedAt: row.erased_at === null ? null : Number(row.erased_at),
  };
}

/** Which repositories events have come from, and by which installation. */
export function repositories(db: Database, now: () => number): Repositories {
  /** What was written lately needs no second write; another process may have erased it since. */
  const lately = new Map<number, { readonly as: string; readonly at: number }>();
  return {
    async see({ repoId, installationId, owner, name }) {
      const as = `${installationId}/${owner}/${name}`;
      const known = lately.get(repoId);
      if (known?.as === as && now() - known.at < SEEN_MS) return;
      if (lately.size >= MAX_SEEN) lately.clear();
      lately.set(repoId, { as, at: now() });
      const changed = await db.query(
        `INSERT INTO npu_advisor.repositories (repo_id, installation_id, owner, name, seen_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (repo_id) DO UPDATE SET installation_id = excluded.installation_id, owner = excluded.owner, name = excluded.name,
           seen_at = excluded.seen_at
         WHERE repositories.installation_id <> excluded.installation_id OR repositories.owner <> excluded.owner
           OR repositories.name <> excluded.name
         RETURNING repo_id`,
        [repoId, installationId, owner, name, now()],
      );
      if (changed.length === 0) return;
      // Renamed or transferred: what is still to be concluded there is reached by its new name.
      await db.query(
        `UPDATE npu_advisor.check_runs SET owner = $2, repo = $3, installation_id = $4
         WHERE repo_id = $1 AND (owner <> $2 OR repo <> $3 OR installation_id <> $4)`,
        [repoId, owner, name, installationId],
      );
    },
    async list() {
      const rows = await db.query<{ repo_id: number | string; installation_id: number | string; owner: string; name: string }>(
        'SELECT repo_id, installation_id, owner, name FROM npu_advisor.repositories ORDER BY repo_id',
      );
      return rows.map((row) => ({
        repoId: Number(row.repo_id),
        installationId: Number(row.installation_id),
        owner: row.owner,
        name: row.name,
      }));
    },
  };
}

/** Data that is to go because the App was removed. */
export function erasures(db: Database, now: () => number, hasBlobs = false): Erasures {
  const where = 'installation_id = $1 AND repo_id = $2';
  const keyOf = ({ installationId, repoId }: Pick<Removal, 'installationId' | 'repoId'>): [number, number] => [
    installationId,
    repoId ?? WHOLE,
  ];

  /** Repositories of a removal whose data is not another installation's by now. */
  async function repositoriesOf({ installationId, repoId }: Removal): Promise<number[]> {
    if (repoId !== null) {
      const [row] = await db.query<{ installation_id: number | string }>(
        'SELECT installation_id FROM npu_advisor.repositories WHERE repo_id = $1',
        [repoId],
      );
      return row === undefined || Number(row.installation_id) === installationId ? [repoId] : [];
    }
    const rows = await db.query<{ repo_id: number | string }>(
      `SELECT repo_id FROM npu_advisor.repositories WHERE installation_id = $1
       UNION SELECT c.repo_id FROM npu_advisor.check_runs c WHERE c.installation_id = $1
         AND NOT EXISTS (SELECT 1 FROM npu_advisor.repositories r WHERE r.repo_id = c.repo_id)`,
      [installationId],
    );
    return rows.map((row) => Number(row.repo_id));
  }

  return {
    async ask(installationId, repoId) {
      await db.query(
        `INSERT INTO npu_advisor.erasures (installation_id, repo_id, asked_at, due_at) VALUES ($1, $2, $3, $3)
         ON CONFLICT (installation_id, repo_id) DO UPDATE SET due_at = excluded.due_at`,
        [...keyOf({ installationId, repoId }), now()],
      );
    },
    async due(limit) {
      const rows = await db.query<RemovalRow>(
        'SELECT installation_id, repo_id, asked_at, erased_at FROM npu_advisor.erasures WHERE due_at <= $1 ORDER BY asked_at LIMIT $2',
        [now(), limit],
      );
      return rows.map(toRemoval);
    },
    async later(removal, dueAt) {
      await db.query(`UPDATE npu_advisor.erasures SET due_at = $3 WHERE ${where}`, [...keyOf(removal), dueAt]);
    },
    async drop(removal) {
      await db.query(`DELETE FROM npu_advisor.erasures WHERE ${where}`, keyOf(removal));
    },
    repositoriesOf,
    async erase(removal, againAt) {
      const ids = await repositoriesOf(removal);
      let rows = 0;
      await db.transaction(async (sql) => {
        for (const id of ids) {
          // Their blobs go afterwards (`Portions.tidy`).
          if (hasBlobs)
            await sql.query(
              `INSERT INTO npu_advisor.unwanted_blobs (key, since) SELECT ${KEY}, $2::bigint FROM npu_advisor.portions WHERE repo_id = $1
               ON CONFLICT DO NOTHING`,
              [id, now()],
            );
          for (const { table, ofRepository } of HOLDINGS) {
            if (ofRepository === null) continue;
            const [gone] = await sql.query<{ n: number | string }>(
              `WITH gone AS (DELETE FROM ${sqlName(table)} WHERE ${ofRepository} RETURNING 1) SELECT count(*) AS n FROM gone`,
              [id],
            );
            rows += Number(gone?.n ?? 0);
          }
          // Where it was is forgotten by now, so the second pass must know which repositories there were.
          if (removal.repoId === null) {
            await sql.query(
              `INSERT INTO npu_advisor.erasures (installation_id, repo_id, asked_at, due_at, erased_at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (installation_id, repo_id) DO NOTHING`,
              [removal.installationId, id, removal.askedAt, againAt, now()],
            );
          }
        }
        if (removal.repoId === null) await sql.query('DELETE FROM npu_advisor.installations WHERE id = $1', [removal.installationId]);
        await sql.query(`UPDATE npu_advisor.erasures SET erased_at = $3, due_at = $4 WHERE ${where}`, [...keyOf(removal), now(), againAt]);
      });
      return rows;
    },
    compact: () => {
      const told = HOLDINGS.filter(({ table, ofRepository }) => ofRepository !== null || table === 'installations');
      return db.compact(told.map(({ table }) => sqlName(table)));
    },
  };
}

/** Bytes fetched for a repository, day by day. */
export function usage(db: Database): Usage {
  return {
    async add(repoId, day, bytes) {
      await db.query(
        `INSERT INTO npu_advisor.usage (repo_id, day, bytes) VALUES ($1, $2, $3)
         ON CONFLICT (repo_id, day) DO UPDATE SET bytes = usage.bytes + excluded.bytes`,
        [repoId, day, Math.round(bytes)],
      );
    },
    async read(repoId, day) {
      const [row] = await db.query<{ bytes: number | string }>('SELECT bytes FROM npu_advisor.usage WHERE repo_id = $1 AND day = $2', [
        repoId,
        day,
      ]);
      return row === undefined ? 0 : Number(row.bytes);
    },
    async prune(beforeDay) {
      await db.query('DELETE FROM npu_advisor.usage WHERE day < $1', [beforeDay]);
    },
  };
}

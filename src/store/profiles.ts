import type { ProfileMetrics } from '../model/history.ts';
import type { Database, KeptProfile, Profiles } from './ports.ts';

interface Row {
  id: number | string;
  repo_id: number | string;
  installation_id: number | string;
  job: string;
  sha: string;
  branch: string | null;
  pr: number | null;
  trusted: boolean;
  origin: string;
  recorded_at: number | string;
  metrics: string;
  facts_schema: string | null;
}

/** Without the facts: they are read one by one, and only those that are compared with. */
const COLUMNS = 'id, repo_id, installation_id, job, sha, branch, pr, trusted, origin, recorded_at, metrics, facts_schema';
const MAX_COMMITS = 1000;

function toProfile(row: Row): KeptProfile {
  return {
    id: Number(row.id),
    repoId: Number(row.repo_id),
    installationId: Number(row.installation_id),
    job: row.job,
    sha: row.sha,
    branch: row.branch,
    pr: row.pr === null ? null : Number(row.pr),
    trusted: row.trusted,
    origin: row.origin,
    recordedAt: Number(row.recorded_at),
    metrics: JSON.parse(row.metrics) as ProfileMetrics,
    factsSchema: row.facts_schema,
  };
}

/** Profiles in a table of their own; facts travel as base64 because the common dialect knows text only. */
export function profiles(db: Database): Profiles {
  const select = `SELECT ${COLUMNS} FROM npu_advisor.profiles`;
  return {
    async put(profile, facts) {
      const { repoId, installationId, job, sha, branch, pr, trusted, origin, recordedAt, metrics } = profile;
      const text = facts === null ? null : Buffer.from(facts.bytes).toString('base64');
      await db.query(
        `INSERT INTO npu_advisor.profiles
           (repo_id, installation_id, job, sha, branch, pr, trusted, origin, recorded_at, metrics, facts_schema, facts, facts_bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         ON CONFLICT (repo_id, job, origin) DO UPDATE SET
           installation_id = excluded.installation_id, sha = excluded.sha, branch = excluded.branch, pr = excluded.pr,
           trusted = excluded.trusted, metrics = excluded.metrics,
           facts_schema = excluded.facts_schema, facts = excluded.facts, facts_bytes = excluded.facts_bytes`,
        [
          repoId,
          installationId,
          job,
          sha,
          branch,
          pr,
          trusted,
          origin,
          recordedAt,
          JSON.stringify(metrics),
          facts === null ? null : facts.schema,
          text,
          text?.length ?? 0,
        ],
      );
    },
    async ofCommits(repoId, job, shas) {
      if (shas.length === 0) return [];
      const some = shas.slice(0, MAX_COMMITS);
      const places = some.map((_, i) => `$${i + 3}`).join(', ');
      const rows = await db.query<Row>(
        `${select} WHERE repo_id = $1 AND job = $2 AND trusted AND sha IN (${places}) ORDER BY recorded_at DESC, id DESC`,
        [repoId, job, ...some],
      );
      return rows.map(toProfile);
    },
    async ofBranch(repoId, job, branch, limit) {
      const rows = await db.query<Row>(
        `${select} WHERE repo_id = $1 AND job = $2 AND branch = $3 AND trusted ORDER BY recorded_at DESC, id DESC LIMIT $4`,
        [repoId, job, branch, limit],
      );
      return rows.map(toProfile);
    },
    async ofPullRequest(repoId, job, pr, limit) {
      const rows = await db.query<Row>(
        `${select} WHERE repo_id = $1 AND job = $2 AND pr = $3 ORDER BY recorded_at DESC, id DESC LIMIT $4`,
        [repoId, job, pr, limit],
      );
      return rows.map(toProfile);
    },
    async facts(id) {
      const [row] = await db.query<{ facts: string | null }>('SELECT facts FROM npu_advisor.profiles WHERE id = $1', [id]);
      return row?.facts == null ? null : Buffer.from(row.facts, 'base64');
    },
    async list({ repoId, job, after, limit }) {
      const conditions = ['id > $1'];
      const values: (string | number)[] = [after, limit];
      if (repoId !== undefined) conditions.push(`repo_id = $${values.push(repoId)}`);
      if (job !== undefined) conditions.push(`job = $${values.push(job)}`);
      const rows = await db.query<Row>(`${select} WHERE ${conditions.join(' AND ')} ORDER BY id LIMIT $2`, values);
      return rows.map(toProfile);
    },
    async prune({ factsOlderThan, pullRequestFactsOlderThan, factsBytes, olderThan, keep }) {
      await db.query(
        `DELETE FROM npu_advisor.profiles WHERE recorded_at < $1 OR id IN (
           SELECT id FROM (
             SELECT id, row_number() OVER (PARTITION BY repo_id, job ORDER BY (branch IS NULL), recorded_at DESC, id DESC) AS place
             FROM npu_advisor.profiles
           ) AS ordered WHERE place > $2)`,
        [olderThan, keep],
      );
      await db.query(
        `UPDATE npu_advisor.profiles SET facts = NULL, facts_schema = NULL, facts_bytes = 0 WHERE facts IS NOT NULL AND (
           recorded_at < $1 OR (branch IS NULL AND recorded_at < $2) OR id IN (
             SELECT id FROM (
               SELECT id, sum(facts_bytes) OVER (PARTITION BY repo_id ORDER BY (branch IS NULL), recorded_at DESC, id DESC) AS total
               FROM npu_advisor.profiles WHERE facts IS NOT NULL
             ) AS summed WHERE total > $3))`,
        [factsOlderThan, pullRequestFactsOlderThan, factsBytes],
      );
    },
  };
}

import type { Database, Pages } from './ports.ts';

const MAX_ENDING = 5000;

interface EndingRow {
  repo_id: number | string;
  page: string;
  owner: string;
  repo: string;
  pr: number;
  installation_id: number | string;
  sha: string;
}

/** Reports as they were shown, gzipped; as base64 because the common dialect knows text only. */
export function pages(db: Database, now: () => number): Pages {
  const where = 'repo_id = $1 AND page = $2';
  return {
    async find(repoId, page) {
      const [row] = await db.query<{ version: string; expires_at: number | string }>(
        `SELECT version, expires_at FROM npu_advisor.pages WHERE ${where}`,
        [repoId, page],
      );
      return row === undefined ? null : { version: row.version, expiresAt: Number(row.expires_at) };
    },
    async read(repoId, page, known) {
      const [row] = await db.query<{ version: string; content: string | null }>(
        `SELECT version, CASE WHEN version = $3 THEN NULL ELSE content END AS content FROM npu_advisor.pages WHERE ${where}`,
        [repoId, page, known ?? ''],
      );
      if (row === undefined) return null;
      return { version: row.version, content: row.content === null ? null : Buffer.from(row.content, 'base64') };
    },
    async put({ repoId, page, pr, sha, version, content, expiresAt }) {
      await db.query(
        `INSERT INTO npu_advisor.pages (repo_id, page, pr, sha, version, content, expires_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (repo_id, page) DO UPDATE SET version = excluded.version, content = excluded.content,
           expires_at = excluded.expires_at, updated_at = excluded.updated_at`,
        [repoId, page, pr, sha, version, Buffer.from(content).toString('base64'), expiresAt, now()],
      );
    },
    async ofCommit(repoId, pr, sha) {
      const rows = await db.query<{ page: string }>('SELECT page FROM npu_advisor.pages WHERE repo_id = $1 AND pr = $2 AND sha = $3', [
        repoId,
        pr,
        sha,
      ]);
      return rows.map(({ page }) => page);
    },
    async extend(repoId, page, expiresAt) {
      await db.query(`UPDATE npu_advisor.pages SET expires_at = $3 WHERE ${where}`, [repoId, page, expiresAt]);
    },
    async ending(before) {
      const rows = await db.query<EndingRow>(
        `SELECT p.repo_id, p.page, c.owner, c.repo, p.pr, c.installation_id, p.sha
         FROM npu_advisor.pages p JOIN npu_advisor.check_runs c ON c.repo_id = p.repo_id AND c.sha = p.sha
         JOIN npu_advisor.pull_requests r ON r.repo_id = p.repo_id AND r.pr = p.pr AND r.reported_sha = p.sha
         WHERE p.expires_at < $1
           AND EXISTS (SELECT 1 FROM npu_advisor.reports k WHERE k.repo_id = p.repo_id AND k.sha = p.sha AND k.pr = p.pr)
         ORDER BY p.repo_id, p.pr LIMIT $2`,
        [before, MAX_ENDING],
      );
      return rows.map(({ repo_id, page, owner, repo, pr, installation_id, sha }) => ({
        repoId: Number(repo_id),
        page,
        owner,
        repo,
        pr,
        installationId: Number(installation_id),
        sha,
      }));
    },
    async prune(expiredBefore, keep) {
      await db.query(
        `DELETE FROM npu_advisor.pages WHERE expires_at < $1
         OR (repo_id, page) IN (SELECT repo_id, page FROM npu_advisor.pages ORDER BY updated_at DESC OFFSET $2)`,
        [expiredBefore, keep],
      );
    },
  };
}

import type { Acknowledgement } from '../model/acknowledgement.ts';
import { SHARES } from './checks.ts';
import type { Acknowledgements, Database } from './ports.ts';

/** More than this on one pull request is no acknowledging any more. */
const MAX_OF_A_PULL_REQUEST = 500;
const MAX_ENDED = 5000;

/** What people have accepted, one row for each pull request and finding. */
export function acknowledgements(db: Database): Acknowledgements {
  return {
    async of(repoId, pr) {
      const rows = await db.query<{ given: string }>(
        'SELECT given FROM npu_advisor.acknowledgements WHERE repo_id = $1 AND pr = $2 ORDER BY given_at, finding LIMIT $3',
        [repoId, pr, MAX_OF_A_PULL_REQUEST],
      );
      return rows.map(({ given }) => JSON.parse(given) as Acknowledgement);
    },
    async put(repoId, pr, given) {
      for (const one of given) {
        await db.query(
          `INSERT INTO npu_advisor.acknowledgements (repo_id, pr, finding, given, given_at, until) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (repo_id, pr, finding) DO UPDATE SET given = excluded.given, given_at = excluded.given_at, until = excluded.until`,
          [repoId, pr, one.finding, JSON.stringify(one), one.at, one.until],
        );
      }
    },
    async remove(repoId, pr, findings) {
      for (const finding of findings) {
        await db.query('DELETE FROM npu_advisor.acknowledgements WHERE repo_id = $1 AND pr = $2 AND finding = $3', [repoId, pr, finding]);
      }
    },
    async ended(from, before) {
      const rows = await db.query<{
        repo_id: number | string;
        owner: string;
        repo: string;
        pr: number;
        installation_id: number | string;
        sha: string;
      }>(
        `SELECT DISTINCT ON (c.repo_id, c.pr) c.repo_id, c.owner, c.repo, c.pr, c.installation_id, c.sha
         FROM npu_advisor.acknowledgements a JOIN ${SHARES} AS c ON c.repo_id = a.repo_id AND c.pr = a.pr
         LEFT JOIN npu_advisor.pull_requests p ON p.repo_id = a.repo_id AND p.pr = a.pr
         WHERE a.until >= $1 AND a.until < $2
         ORDER BY c.repo_id, c.pr, coalesce(c.sha = p.reported_sha, false) DESC, c.updated_at DESC LIMIT $3`,
        [from, before, MAX_ENDED],
      );
      return rows.map(({ repo_id, owner, repo, pr, installation_id, sha }) => ({
        repoId: Number(repo_id),
        owner,
        repo,
        pr,
        installationId: Number(installation_id),
        sha,
      }));
    },
    async prune(olderThan) {
      await db.query('DELETE FROM npu_advisor.acknowledgements WHERE given_at < $1', [olderThan]);
    },
  };
}

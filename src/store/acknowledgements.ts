import type { Acknowledgement } from '../model/acknowledgement.ts';
import type { Acknowledgements, Database } from './ports.ts';

/** More than this on one pull request is no acknowledging any more. */
const MAX_OF_A_PULL_REQUEST = 500;

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
    async prune(olderThan) {
      await db.query('DELETE FROM npu_advisor.acknowledgements WHERE given_at < $1', [olderThan]);
    },
  };
}

import type { CheckPhase, CheckRecord, Checks, Database, SqlValue } from './ports.ts';

interface CheckRow {
  repo_id: number | string;
  sha: string;
  owner: string;
  repo: string;
  pr: number;
  installation_id: number | string;
  check_run_id: number | string | null;
  url: string | null;
  phase: CheckPhase;
  conclusion: string | null;
  has_report: boolean;
  deadline_at: number | string | null;
  said: string | null;
  due_at: number | string | null;
}

const COLUMNS = 'repo_id, sha, owner, repo, pr, installation_id, check_run_id, url, phase, conclusion, has_report, deadline_at';

/**
 * One row for each commit and pull request. `check_runs` holds the run of the commit and, for versions of before that know nothing else, the
 * state that was written last; `check_shares` holds the state of each pull request. Who writes both gives them one stamp, so a row of
 * `check_runs` without its share was written by such a version, and is the state of the pull request it names.
 */
export const SHARES = `(
  SELECT c.repo_id, c.sha, c.owner, c.repo, s.pr, c.installation_id, c.check_run_id, c.url, s.phase, s.conclusion, s.has_report,
    s.deadline_at, s.said, s.due_at, s.updated_at
  FROM npu_advisor.check_shares s JOIN npu_advisor.check_runs c ON c.repo_id = s.repo_id AND c.sha = s.sha
  WHERE c.pr <> s.pr OR c.updated_at = s.updated_at
  UNION ALL
  SELECT ${COLUMNS.split(', ')
    .map((column) => `c.${column}`)
    .join(', ')}, NULL, NULL, c.updated_at
  FROM npu_advisor.check_runs c WHERE NOT EXISTS (SELECT 1 FROM npu_advisor.check_shares s
    WHERE s.repo_id = c.repo_id AND s.sha = c.sha AND s.pr = c.pr AND s.updated_at = c.updated_at)
)`;

function toCheck(row: CheckRow): CheckRecord {
  return {
    repoId: Number(row.repo_id),
    sha: row.sha,
    owner: row.owner,
    repo: row.repo,
    pr: Number(row.pr),
    installationId: Number(row.installation_id),
    checkRunId: row.check_run_id === null ? null : Number(row.check_run_id),
    url: row.url,
    phase: row.phase,
    conclusion: row.conclusion,
    hasReport: row.has_report,
    deadlineAt: row.deadline_at === null ? null : Number(row.deadline_at),
    ...(row.said === null ? {} : { said: row.said }),
    ...(row.due_at === null ? {} : { dueAt: Number(row.due_at) }),
  };
}

export function checks(db: Database, now: () => number): Checks {
  async function select(where: string, values: readonly SqlValue[], said = 'said'): Promise<CheckRecord[]> {
    const rows = await db.query<CheckRow>(`SELECT ${COLUMNS}, due_at, ${said} FROM ${SHARES} AS shares WHERE ${where}`, values);
    return rows.map(toCheck);
  }
  return {
    async find(repoId, sha, pr) {
      return (await select('repo_id = $1 AND sha = $2 AND pr = $3', [repoId, sha, pr]))[0] ?? null;
    },
    ofCommit: (repoId, sha) => select('repo_id = $1 AND sha = $2 ORDER BY pr', [repoId, sha]),
    async put(record) {
      const {
        repoId,
        sha,
        owner,
        repo,
        pr,
        installationId,
        checkRunId,
        url,
        phase,
        conclusion,
        hasReport,
        deadlineAt,
        said = null,
        dueAt = null,
      } = record;
      // What a version of before wrote for another pull request is kept as its share.
      await db.query(
        `WITH kept AS (
           INSERT INTO npu_advisor.check_shares (repo_id, sha, pr, phase, conclusion, has_report, deadline_at, said, updated_at)
             SELECT c.repo_id, c.sha, c.pr, c.phase, c.conclusion, c.has_report, c.deadline_at, NULL, c.updated_at
             FROM npu_advisor.check_runs c WHERE c.repo_id = $1 AND c.sha = $2 AND c.pr <> $5 AND NOT EXISTS (
               SELECT 1 FROM npu_advisor.check_shares s
               WHERE s.repo_id = c.repo_id AND s.sha = c.sha AND s.pr = c.pr AND s.updated_at = c.updated_at)
           ON CONFLICT (repo_id, sha, pr) DO UPDATE SET phase = excluded.phase, conclusion = excluded.conclusion,
             has_report = excluded.has_report, deadline_at = excluded.deadline_at, said = excluded.said, updated_at = excluded.updated_at
         ), run AS (
           INSERT INTO npu_advisor.check_runs (${COLUMNS}, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14)
           ON CONFLICT (repo_id, sha) DO UPDATE SET owner = excluded.owner, repo = excluded.repo, pr = excluded.pr,
             installation_id = excluded.installation_id, check_run_id = excluded.check_run_id, url = excluded.url, phase = excluded.phase,
             conclusion = excluded.conclusion, has_report = excluded.has_report, deadline_at = excluded.deadline_at,
             updated_at = excluded.updated_at
         )
         INSERT INTO npu_advisor.check_shares (repo_id, sha, pr, phase, conclusion, has_report, deadline_at, said, updated_at, due_at)
           VALUES ($1, $2, $5, $9, $10, $11, $12, $13, $14, $15)
         ON CONFLICT (repo_id, sha, pr) DO UPDATE SET phase = excluded.phase, conclusion = excluded.conclusion,
           has_report = excluded.has_report, deadline_at = excluded.deadline_at, said = excluded.said, updated_at = excluded.updated_at,
           due_at = excluded.due_at`,
        [repoId, sha, owner, repo, pr, installationId, checkRunId, url, phase, conclusion, hasReport, deadlineAt, said, now(), dueAt],
      );
    },
    async drop(repoId, sha, pr) {
      await db.query(
        `WITH gone AS (DELETE FROM npu_advisor.check_shares WHERE repo_id = $1 AND sha = $2 AND pr = $3)
         UPDATE npu_advisor.check_runs c SET pr = s.pr, phase = s.phase, conclusion = s.conclusion, has_report = s.has_report,
           deadline_at = s.deadline_at, updated_at = s.updated_at
         FROM (SELECT * FROM npu_advisor.check_shares WHERE repo_id = $1 AND sha = $2 AND pr <> $3 ORDER BY updated_at DESC LIMIT 1) s
         WHERE c.repo_id = $1 AND c.sha = $2 AND c.pr = $3`,
        [repoId, sha, pr],
      );
    },
    overdue: (at, limit) =>
      select(
        `phase <> 'completed' AND deadline_at IS NOT NULL AND deadline_at <= $1 ORDER BY deadline_at LIMIT $2`,
        [at, limit],
        'NULL AS said',
      ),
    async hurry(installationId) {
      await db.query(
        `UPDATE npu_advisor.check_shares s SET deadline_at = s.due_at, due_at = NULL FROM npu_advisor.check_runs c
         WHERE c.repo_id = s.repo_id AND c.sha = s.sha AND c.installation_id = $1 AND s.phase <> 'completed' AND s.due_at IS NOT NULL`,
        [installationId],
      );
    },
    openOfInstallation: (installationId, limit) =>
      select(`installation_id = $1 AND phase <> 'completed' ORDER BY deadline_at LIMIT $2`, [installationId, limit], 'NULL AS said'),
    openOfPullRequest: (repoId, pr) => select(`repo_id = $1 AND pr = $2 AND phase <> 'completed' ORDER BY sha`, [repoId, pr]),
    sharedOfPullRequest: (repoId, pr) =>
      select(
        `repo_id = $1 AND pr = $2 AND EXISTS (SELECT 1 FROM npu_advisor.check_shares o
           WHERE o.repo_id = shares.repo_id AND o.sha = shares.sha AND o.pr <> shares.pr) ORDER BY sha`,
        [repoId, pr],
      ),
    async prune(olderThan) {
      await db.query(`DELETE FROM npu_advisor.check_shares WHERE phase = 'completed' AND updated_at < $1`, [olderThan]);
      await db.query(
        `DELETE FROM npu_advisor.check_runs c WHERE phase = 'completed' AND updated_at < $1 AND NOT EXISTS (
           SELECT 1 FROM npu_advisor.check_shares s WHERE s.repo_id = c.repo_id AND s.sha = c.sha)`,
        [olderThan],
      );
      // A version of before may have removed the run of a commit that was shared.
      await db.query(
        `DELETE FROM npu_advisor.check_shares s WHERE updated_at < $1 AND NOT EXISTS (
           SELECT 1 FROM npu_advisor.check_runs c WHERE c.repo_id = s.repo_id AND c.sha = s.sha)`,
        [olderThan],
      );
    },
  };
}

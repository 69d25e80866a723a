import { acknowledgements } from './acknowledgements.ts';
import type { Blobs } from './blobs/blobs.ts';
import { checks } from './checks.ts';
import { erasures, repositories, usage } from './erasure.ts';
import { pages } from './pages.ts';
import { portions } from './portions.ts';
import type {
  Asks,
  Database,
  Deliveries,
  Installations,
  Marks,
  PullRequestState,
  PullRequests,
  Reports,
  Requests,
  Store,
  WorkRequest,
} from './ports.ts';
import { profiles } from './profiles.ts';

/** A report larger than this is published and not kept. */
const MAX_REPORT_BYTES = 8 * 1024 * 1024;

type Clock = () => number;

function deliveries(db: Database): Deliveries {
  return {
    async record({ guid, event, receivedAt }) {
      const rows = await db.query(
        'INSERT INTO npu_advisor.deliveries (guid, event, received_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING guid',
        [guid, event, receivedAt],
      );
      return rows.length > 0;
    },
    async markRouted(guid) {
      await db.query(`UPDATE npu_advisor.deliveries SET state = 'routed', body = NULL WHERE guid = $1`, [guid]);
    },
    async known(guids) {
      const found = new Set<string>();
      for (let i = 0; i < guids.length; i += 500) {
        const part = guids.slice(i, i + 500);
        const rows = await db.query<{ guid: string }>(
          `SELECT guid FROM npu_advisor.deliveries WHERE guid IN (${placeholders(part.length, 1)})`,
          part,
        );
        for (const { guid } of rows) found.add(guid);
      }
      return found;
    },
    async prune(olderThan) {
      await db.query(`DELETE FROM npu_advisor.deliveries WHERE state = 'routed' AND received_at < $1`, [olderThan]);
    },
  };
}

interface RequestRow {
  id: number | string;
  subject: string;
  kind: string;
  origin: string;
  payload: string;
  attempts: number;
  created_at: number | string;
}

function toRequest(row: RequestRow): WorkRequest {
  return {
    id: Number(row.id),
    subject: row.subject,
    kind: row.kind,
    origin: row.origin,
    payload: JSON.parse(row.payload),
    attempts: Number(row.attempts),
    createdAt: Number(row.created_at),
  };
}

/** `$from, $from+1, …` for an IN list. */
function placeholders(count: number, from: number): string {
  return Array.from({ length: count }, (_, index) => `$${from + index}`).join(', ');
}

function requests(db: Database, now: Clock): Requests {
  return {
    async add({ subject, kind, origin, payload }) {
      const rows = await db.query<{ id: number }>(
        `INSERT INTO npu_advisor.requests (subject, kind, origin, payload, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)
         ON CONFLICT DO NOTHING RETURNING id`,
        [subject, kind, origin, JSON.stringify(payload), now()],
      );
      return rows[0] === undefined ? null : Number(rows[0].id);
    },
    async pending(subject) {
      const rows = await db.query<RequestRow>(
        `SELECT id, subject, kind, origin, payload, attempts, created_at FROM npu_advisor.requests
         WHERE subject = $1 AND state = 'pending' ORDER BY id LIMIT 200`,
        [subject],
      );
      return rows.map(toRequest);
    },
    async pendingSubjects(limit) {
      const rows = await db.query<{ subject: string }>(
        `SELECT subject FROM npu_advisor.requests WHERE state = 'pending' GROUP BY subject ORDER BY min(id) LIMIT $1`,
        [limit],
      );
      return rows.map((row) => row.subject);
    },
    async begin(ids) {
      if (ids.length === 0) return;
      await db.query(
        `UPDATE npu_advisor.requests SET attempts = attempts + 1, updated_at = $1 WHERE id IN (${placeholders(ids.length, 2)})`,
        [now(), ...ids],
      );
    },
    async uncount(ids) {
      if (ids.length === 0) return;
      await db.query(
        `UPDATE npu_advisor.requests SET attempts = greatest(attempts - 1, 0), updated_at = $1 WHERE id IN (${placeholders(ids.length, 2)})`,
        [now(), ...ids],
      );
    },
    async rewrite(id, payload) {
      await db.query('UPDATE npu_advisor.requests SET payload = $1, updated_at = $2 WHERE id = $3', [JSON.stringify(payload), now(), id]);
    },
    async settle(ids, outcome, note) {
      if (ids.length === 0) return;
      await db.query(
        `UPDATE npu_advisor.requests SET state = $1, note = $2, updated_at = $3 WHERE id IN (${placeholders(ids.length, 4)})`,
        [outcome, note.slice(0, 1000), now(), ...ids],
      );
    },
    async reopen(origin) {
      const rows = await db.query<{ subject: string }>(
        `UPDATE npu_advisor.requests SET state = 'pending', attempts = 0, updated_at = $2 WHERE origin = $1 AND state = 'failed' RETURNING subject`,
        [origin, now()],
      );
      return [...new Set(rows.map((row) => row.subject))];
    },
    async prune(olderThan) {
      await db.query(`DELETE FROM npu_advisor.requests WHERE state <> 'pending' AND updated_at < $1`, [olderThan]);
    },
  };
}

function installations(db: Database, now: Clock): Installations {
  return {
    async put({ id, account, suspended }) {
      await db.query(
        `INSERT INTO npu_advisor.installations (id, account, suspended, updated_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO UPDATE SET account = excluded.account, suspended = excluded.suspended, updated_at = excluded.updated_at`,
        [id, account, suspended, now()],
      );
    },
    async remove(id) {
      await db.query('DELETE FROM npu_advisor.installations WHERE id = $1', [id]);
    },
    async find(id) {
      const [row] = await db.query<{ account: string; suspended: boolean; updated_at: number | string }>(
        'SELECT account, suspended, updated_at FROM npu_advisor.installations WHERE id = $1',
        [id],
      );
      return row === undefined ? null : { account: row.account, suspended: row.suspended, since: Number(row.updated_at) };
    },
  };
}

interface PullRequestRow {
  comment_id: number | string | null;
  body_hash: string | null;
  reported_sha: string | null;
  findings: string;
  suggested: string;
}

function pullRequests(db: Database, now: Clock): PullRequests {
  return {
    async find(repoId, pr) {
      const rows = await db.query<PullRequestRow>(
        'SELECT comment_id, body_hash, reported_sha, findings, suggested FROM npu_advisor.pull_requests WHERE repo_id = $1 AND pr = $2',
        [repoId, pr],
      );
      const row = rows[0];
      if (row === undefined) return null;
      return {
        repoId,
        pr,
        commentId: row.comment_id === null ? null : Number(row.comment_id),
        bodyHash: row.body_hash,
        reportedSha: row.reported_sha,
        ...(JSON.parse(row.findings) as Pick<PullRequestState, 'findings' | 'before' | 'shown' | 'shownAt'>),
        suggested: JSON.parse(row.suggested) as string[],
      };
    },
    async put(state) {
      await db.query(
        `INSERT INTO npu_advisor.pull_requests (repo_id, pr, comment_id, body_hash, reported_sha, findings, suggested, updated_at)
         VALUES (${placeholders(8, 1)})
         ON CONFLICT (repo_id, pr) DO UPDATE SET comment_id = excluded.comment_id, body_hash = excluded.body_hash,
           reported_sha = excluded.reported_sha, findings = excluded.findings, suggested = excluded.suggested, updated_at = excluded.updated_at`,
        [
          state.repoId,
          state.pr,
          state.commentId,
          state.bodyHash,
          state.reportedSha,
          JSON.stringify({ findings: state.findings, before: state.before, shown: state.shown, shownAt: state.shownAt }),
          JSON.stringify(state.suggested),
          now(),
        ],
      );
    },
    async prune(olderThan) {
      await db.query('DELETE FROM npu_advisor.pull_requests WHERE updated_at < $1', [olderThan]);
    },
  };
}

function reports(db: Database, now: Clock): Reports {
  return {
    async get(key) {
      const rows = await db.query<{ json: string }>('SELECT json FROM npu_advisor.reports WHERE key = $1', [key]);
      return rows[0] === undefined ? null : JSON.parse(rows[0].json);
    },
    async latest(repoId, sha, pr) {
      const rows = await db.query<{ json: string }>(
        'SELECT json FROM npu_advisor.reports WHERE repo_id = $1 AND sha = $2 AND pr = $3 ORDER BY created_at DESC LIMIT 1',
        [repoId, sha, pr],
      );
      return rows[0] === undefined ? null : JSON.parse(rows[0].json);
    },
    async withFinding(repoId, sha, pr, finding) {
      const rows = await db.query<{ json: string }>(
        `SELECT json FROM npu_advisor.reports WHERE repo_id = $1 AND sha = $2 AND pr = $3 AND strpos(json, $4) > 0
         ORDER BY created_at DESC LIMIT 1`,
        [repoId, sha, pr, `"id":${JSON.stringify(finding)}`],
      );
      return rows[0] === undefined ? null : JSON.parse(rows[0].json);
    },
    async put({ key, repoId, pr, sha, json }) {
      if (Buffer.byteLength(json) > MAX_REPORT_BYTES) return false;
      await db.query(
        `INSERT INTO npu_advisor.reports (key, repo_id, pr, sha, json, created_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (key) DO UPDATE SET json = excluded.json, created_at = excluded.created_at`,
        [key, repoId, pr, sha, json, now()],
      );
      return true;
    },
    async prune(olderThan, keep) {
      await db.query(
        `DELETE FROM npu_advisor.reports WHERE created_at < $1
         OR key IN (SELECT key FROM npu_advisor.reports ORDER BY created_at DESC OFFSET $2)`,
        [olderThan, keep],
      );
    },
  };
}

interface AskRow {
  id: number | string;
  accepted: boolean;
  asked_at: number | string;
}

function asks(db: Database, now: Clock): Asks {
  return {
    take({ repoId, login, origin }, limit, windowMs) {
      const person = login.toLowerCase();
      return db.exclusively(`asks/${repoId}/${person}`, async () => {
        const [known] = await db.query<AskRow>('SELECT id, accepted, asked_at FROM npu_advisor.asks WHERE repo_id = $1 AND origin = $2', [
          repoId,
          origin,
        ]);
        const at = known === undefined ? now() : Number(known.asked_at);
        const before = known === undefined ? Number.MAX_SAFE_INTEGER : Number(known.id);
        const rows = await db.query<AskRow>(
          `SELECT id, accepted, asked_at FROM npu_advisor.asks
           WHERE repo_id = $1 AND login = $2 AND asked_at > $3 AND id < $4 ORDER BY id`,
          [repoId, person, at - windowMs, before],
        );
        const earlier = rows.filter(({ accepted }) => accepted);
        const accepted = known?.accepted ?? earlier.length < limit;
        if (known === undefined) {
          await db.query('INSERT INTO npu_advisor.asks (repo_id, origin, login, accepted, asked_at) VALUES ($1, $2, $3, $4, $5)', [
            repoId,
            origin,
            person,
            accepted,
            at,
          ]);
        }
        if (accepted) return { accepted };
        const isFirst = rows.every((row) => row.accepted);
        return { accepted, isFirst, againAt: Number(earlier[0]?.asked_at ?? at) + windowMs };
      });
    },
    async prune(olderThan) {
      await db.query('DELETE FROM npu_advisor.asks WHERE asked_at < $1', [olderThan]);
    },
  };
}

function marks(db: Database): Marks {
  return {
    async read(name) {
      const [row] = await db.query<{ at: number | string }>('SELECT at FROM npu_advisor.marks WHERE name = $1', [name]);
      return row === undefined ? null : Number(row.at);
    },
    async write(name, at) {
      await db.query('INSERT INTO npu_advisor.marks (name, at) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET at = excluded.at', [
        name,
        at,
      ]);
    },
  };
}

/** The store's tables on any database of the common dialect. */
export function createStore(database: Database, now: Clock = Date.now, blobs: Blobs | null = null): Store {
  return {
    database,
    deliveries: deliveries(database),
    requests: requests(database, now),
    installations: installations(database, now),
    checks: checks(database, now),
    pullRequests: pullRequests(database, now),
    reports: reports(database, now),
    pages: pages(database, now),
    asks: asks(database, now),
    acknowledgements: acknowledgements(database),
    marks: marks(database),
    repositories: repositories(database, now),
    erasures: erasures(database, now, blobs !== null),
    usage: usage(database),
    profiles: profiles(database),
    portions: portions(database, now, blobs),
  };
}

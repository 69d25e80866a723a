import type { Database, Sql } from './ports.ts';

/** Forward only. Never edit one that was released; add the next. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE npu_advisor.deliveries (
    guid text PRIMARY KEY,
    event text NOT NULL,
    received_at bigint NOT NULL,
    state text NOT NULL DEFAULT 'accepted',
    body text
  );
  CREATE INDEX deliveries_waiting ON npu_advisor.deliveries (received_at) WHERE state = 'accepted';

  CREATE TABLE npu_advisor.requests (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject text NOT NULL,
    kind text NOT NULL,
    origin text NOT NULL,
    payload text NOT NULL,
    state text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '',
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    UNIQUE (subject, kind, origin)
  );
  CREATE INDEX requests_pending ON npu_advisor.requests (subject, id) WHERE state = 'pending';
  CREATE INDEX requests_origin ON npu_advisor.requests (origin);

  CREATE TABLE npu_advisor.installations (
    id bigint PRIMARY KEY,
    account text NOT NULL,
    suspended boolean NOT NULL DEFAULT false,
    updated_at bigint NOT NULL
  );

  CREATE TABLE npu_advisor.check_runs (
    repo_id bigint NOT NULL,
    sha text NOT NULL,
    owner text NOT NULL,
    repo text NOT NULL,
    pr integer NOT NULL,
    installation_id bigint NOT NULL,
    check_run_id bigint,
    url text,
    phase text NOT NULL,
    conclusion text,
    has_report boolean NOT NULL DEFAULT false,
    deadline_at bigint,
    updated_at bigint NOT NULL,
    PRIMARY KEY (repo_id, sha)
  );
  CREATE INDEX check_runs_overdue ON npu_advisor.check_runs (deadline_at) WHERE phase <> 'completed';
  CREATE INDEX check_runs_id ON npu_advisor.check_runs (repo_id, check_run_id);

  CREATE TABLE npu_advisor.pull_requests (
    repo_id bigint NOT NULL,
    pr integer NOT NULL,
    comment_id bigint,
    body_hash text,
    reported_sha text,
    findings text NOT NULL,
    suggested text NOT NULL DEFAULT '[]',
    updated_at bigint NOT NULL,
    PRIMARY KEY (repo_id, pr)
  );

  CREATE TABLE npu_advisor.reports (
    key text PRIMARY KEY,
    repo_id bigint NOT NULL,
    pr integer NOT NULL,
    sha text NOT NULL,
    json text NOT NULL,
    created_at bigint NOT NULL
  );
  CREATE INDEX reports_sha ON npu_advisor.reports (repo_id, sha, created_at);
  `,
  `
  CREATE TABLE npu_advisor.asks (
    id bigint GENERATED ALWAYS AS IDENTITY,
    repo_id bigint NOT NULL,
    origin text NOT NULL,
    login text NOT NULL,
    accepted boolean NOT NULL,
    asked_at bigint NOT NULL,
    PRIMARY KEY (repo_id, origin)
  );
  CREATE INDEX asks_login ON npu_advisor.asks (repo_id, login, asked_at);

  CREATE TABLE npu_advisor.marks (
    name text PRIMARY KEY,
    at bigint NOT NULL
  );
  `,
  `
  CREATE TABLE npu_advisor.profiles (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo_id bigint NOT NULL,
    installation_id bigint NOT NULL,
    job text NOT NULL,
    sha text NOT NULL,
    branch text,
    pr integer,
    trusted boolean NOT NULL,
    origin text NOT NULL,
    recorded_at bigint NOT NULL,
    metrics text NOT NULL,
    facts_schema text,
    facts text,
    facts_bytes bigint NOT NULL DEFAULT 0,
    UNIQUE (repo_id, job, origin)
  );
  CREATE INDEX profiles_commit ON npu_advisor.profiles (repo_id, job, sha);
  CREATE INDEX profiles_branch ON npu_advisor.profiles (repo_id, job, branch, recorded_at);
  `,
  `
  CREATE TABLE npu_advisor.repositories (
    repo_id bigint PRIMARY KEY,
    installation_id bigint NOT NULL,
    owner text NOT NULL,
    name text NOT NULL,
    seen_at bigint NOT NULL
  );
  CREATE INDEX repositories_installation ON npu_advisor.repositories (installation_id);
  INSERT INTO npu_advisor.repositories (repo_id, installation_id, owner, name, seen_at)
    SELECT DISTINCT ON (repo_id) repo_id, installation_id, owner, repo, updated_at FROM npu_advisor.check_runs ORDER BY repo_id, updated_at DESC;

  CREATE TABLE npu_advisor.erasures (
    installation_id bigint NOT NULL,
    repo_id bigint NOT NULL,
    asked_at bigint NOT NULL,
    due_at bigint NOT NULL,
    erased_at bigint,
    PRIMARY KEY (installation_id, repo_id)
  );

  CREATE TABLE npu_advisor.usage (
    repo_id bigint NOT NULL,
    day integer NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (repo_id, day)
  );
  `,
  `
  CREATE TABLE npu_advisor.acknowledgements (
    repo_id bigint NOT NULL,
    pr integer NOT NULL,
    finding text NOT NULL,
    given text NOT NULL,
    given_at bigint NOT NULL,
    until text,
    PRIMARY KEY (repo_id, pr, finding)
  );
  CREATE INDEX acknowledgements_age ON npu_advisor.acknowledgements (given_at);
  `,
  `
  CREATE TABLE npu_advisor.pages (
    repo_id bigint NOT NULL,
    page text NOT NULL,
    pr integer NOT NULL,
    sha text NOT NULL,
    version text NOT NULL,
    content text NOT NULL,
    expires_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (repo_id, page)
  );
  CREATE INDEX pages_end ON npu_advisor.pages (expires_at);
  `,
  `
  ALTER TABLE npu_advisor.deliveries ADD COLUMN taken_at bigint;
  `,
  // Pull requests with the same head. Rows of check_runs stay as they are; checks.ts says how both are read.
  `
  CREATE TABLE npu_advisor.check_shares (
    repo_id bigint NOT NULL,
    sha text NOT NULL,
    pr integer NOT NULL,
    phase text NOT NULL,
    conclusion text,
    has_report boolean NOT NULL DEFAULT false,
    deadline_at bigint,
    said text,
    updated_at bigint NOT NULL,
    PRIMARY KEY (repo_id, sha, pr)
  );
  CREATE INDEX check_shares_overdue ON npu_advisor.check_shares (deadline_at) WHERE phase <> 'completed';
  CREATE INDEX check_shares_pull_request ON npu_advisor.check_shares (repo_id, pr);
  `,
  `
  CREATE TABLE npu_advisor.portions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo_id bigint NOT NULL,
    job text NOT NULL,
    place integer NOT NULL,
    payload text NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    attempts integer NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '',
    facts text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    UNIQUE (repo_id, job, place)
  );
  CREATE INDEX portions_age ON npu_advisor.portions (updated_at);
  `,
  // When a check that cannot be concluded for the time being was due.
  `
  ALTER TABLE npu_advisor.check_shares ADD COLUMN due_at bigint;
  `,
  // Facts of portions outside of the database that nobody needs any more.
  `
  CREATE TABLE npu_advisor.unwanted_blobs (
    key text PRIMARY KEY,
    since bigint NOT NULL
  );
  `,
];

/** Version of a store without touching it; `found` null: it has none yet. */
export async function readSchemaVersion(sql: Sql): Promise<{ readonly found: number | null; readonly known: number }> {
  const [table] = await sql.query<{ name: string | null }>(`SELECT to_regclass('npu_advisor.migrations')::text AS name`);
  if (table?.name == null) return { found: null, known: MIGRATIONS.length };
  const [row] = await sql.query<{ version: number | null }>('SELECT max(version) AS version FROM npu_advisor.migrations');
  return { found: row?.version == null ? null : Number(row.version), known: MIGRATIONS.length };
}

/** Brings the tables to the newest version. Safe to run by several processes at once. */
export async function migrate(database: Database): Promise<void> {
  await database.exclusively('npu-advisor:migrate', async () => {
    await database.execute(`
      CREATE SCHEMA IF NOT EXISTS npu_advisor;
      CREATE TABLE IF NOT EXISTS npu_advisor.migrations (version integer PRIMARY KEY, applied_at bigint NOT NULL);
    `);
    const rows = await database.query<{ version: number }>('SELECT version FROM npu_advisor.migrations');
    const newest = Math.max(0, ...rows.map((row) => Number(row.version)));
    if (newest > MIGRATIONS.length) {
      throw new Error(`the store was written by a newer NPU Advisor (schema ${newest}, this version knows ${MIGRATIONS.length})`);
    }
    for (let version = newest + 1; version <= MIGRATIONS.length; version++) {
      const applied = `INSERT INTO npu_advisor.migrations VALUES (${version}, ${Date.now()});`;
      await database.execute(`BEGIN; ${MIGRATIONS[version - 1]} ${applied} COMMIT;`);
    }
  });
}

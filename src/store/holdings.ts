/**
 * What the store holds: every table, what is in it, how long it stays and how the rows of one repository are found. docs/privacy.md is made
 * of this, the erasure of removed repositories runs over it, and a test holds it against the schema: a table that is missing here fails.
 */
export interface Holding {
  /** In the schema `npu_advisor`; `queue.` stands for the queue's own schema. */
  readonly table: string;
  readonly holds: string;
  /** Days after which a row is dropped; null: see `until`. */
  readonly days: number | null;
  readonly until: string;
  /** Condition for the rows of the repository `$1`; null: nothing in it tells of a repository. */
  readonly ofRepository: string | null;
}

/** A subject is written `kind/REPOSITORY-ID/…`. */
const SUBJECT_OF_REPOSITORY = (column: string): string => `split_part(${column}, '/', 2) = cast($1 AS bigint)::text`;

export const HOLDINGS = [
  {
    table: 'deliveries',
    holds:
      'Id, event name and time of accepted webhook deliveries. With PostgreSQL also what is left of the event (numbers, names of repository and people, commands), until a job takes it up.',
    days: 14,
    until: 'after they arrived',
    ofRepository: null,
  },
  {
    table: 'requests',
    holds: 'What is to be done for a pull request, run, commit or comment: names of repository and people, numbers, commits, commands.',
    days: 14,
    until: 'after they were settled',
    ofRepository: SUBJECT_OF_REPOSITORY('subject'),
  },
  {
    table: 'installations',
    holds: 'Number of the installation, name of the account, whether it is suspended.',
    days: null,
    until: 'until the App is removed',
    ofRepository: null,
  },
  {
    table: 'repositories',
    holds: 'Number, owner and name of each repository an event has come from, and its installation.',
    days: null,
    until: 'until the App is removed from the repository',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'check_runs',
    holds: 'Which check run stands on which commit, its conclusion and deadline.',
    days: 90,
    until: 'after they were concluded',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'check_shares',
    holds: 'The conclusion and deadline of each pull request on its commit, and what its check says: title, summary, text and annotations.',
    days: 90,
    until: 'after they were concluded',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'pull_requests',
    holds: 'Which comment is ours, titles and savings of the findings it names, which suggestions were offered.',
    days: 400,
    until: 'after the last change',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'reports',
    holds: 'Finished reports: names and times of operators, paths and lines of source files that the profile points at, suggested changes.',
    days: 90,
    until: 'after they were made; the newest 2,000 at most',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'pages',
    holds:
      'Reports as the comment shows them, for the details page (only with `NPU_ADVISOR_PUBLIC_URL`): what a report holds, the tasks of a few ranks and steps, number of the pull request, commit, address of the repository.',
    days: null,
    until:
      'until the last link to them ends (`NPU_ADVISOR_LINK_DAYS`, 30 days unless set, renewed while the pull request is open); the newest 2,000 at most',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'asks',
    holds: 'Login of a person who gave a command or pressed a button, and when.',
    days: 1,
    until: 'after they asked',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'acknowledgements',
    holds: 'What people have acknowledged on a pull request: login, time, reason, title and cost of the finding.',
    days: 400,
    until: 'after they were given',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'profiles',
    holds:
      'Figures of each profile for its trend (step time, idle share, largest causes), its commit and branch, and for a while its facts: the small digest that a comparison needs.',
    days: 730,
    until: 'after they were recorded; facts of branches 180 days, of pull requests 14 days, 128 MB of a repository at most',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'portions',
    holds:
      'Shares of a large job that several workers read: numbers and names of artifacts, and the facts of their ranks (with `NPU_ADVISOR_BLOBS` in that folder or bucket).',
    days: 2,
    until: 'after they were read',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'unwanted_blobs',
    holds: 'Names of facts outside of the database (`NPU_ADVISOR_BLOBS`) that are being removed: number of the repository.',
    days: null,
    until: 'until they are removed, as a rule within seconds',
    ofRepository: null,
  },
  { table: 'marks', holds: 'When this server was last alive.', days: null, until: 'until it is overwritten', ofRepository: null },
  {
    table: 'usage',
    holds: 'Bytes of artifacts fetched for a repository on a day.',
    days: 2,
    until: 'after that day',
    ofRepository: 'repo_id = $1',
  },
  {
    table: 'erasures',
    holds: 'Number of an installation or repository whose data is being erased.',
    days: 2,
    until: 'after it was asked for',
    ofRepository: null,
  },
  { table: 'migrations', holds: 'Version of the schema.', days: null, until: 'as long as the store', ofRepository: null },
  {
    table: 'queue.job',
    holds: 'Whose turn it is: kind, number of the repository, number of the pull request, run or comment; messages of failures.',
    days: 1,
    until: 'after they ended',
    ofRepository: SUBJECT_OF_REPOSITORY('singleton_key'),
  },
] as const satisfies readonly Holding[];

/** Days rows of a table stay. */
export function keepDays(table: (typeof HOLDINGS)[number]['table']): number {
  const days = HOLDINGS.find((holding) => holding.table === table)?.days ?? null;
  if (days === null) throw new Error(`rows of ${table} do not age`);
  return days;
}

/** Name of a holding's table in SQL. */
export function sqlName(table: string): string {
  return table.startsWith('queue.') ? `npu_advisor_queue.${table.slice('queue.'.length)}` : `npu_advisor.${table}`;
}

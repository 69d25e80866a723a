import type { Acknowledgement, ShownFinding } from '../model/acknowledgement.ts';
import type { ProfileMetrics } from '../model/history.ts';

/** What the rest of the product may ask of the store. Implementations: `embedded/` (one process) and `postgres/` (many). */

/** SQL in the common dialect of both stores. Values travel as text, number, boolean or null; JSON as text; times as epoch milliseconds. */
export type SqlValue = string | number | boolean | null;

export interface Sql {
  query<Row extends object>(text: string, values?: readonly SqlValue[]): Promise<Row[]>;
}

export interface Database extends Sql {
  /** Runs several statements without values, for migrations. */
  execute(text: string): Promise<void>;
  transaction<T>(body: (sql: Sql) => Promise<T>): Promise<T>;
  /** Runs `body` while nobody else, in this or another process of the same store, holds the same key. */
  exclusively<T>(key: string, body: () => Promise<T>): Promise<T>;
  /** Gives the room of deleted rows back, so that their bytes are no more in the files (embedded) or may be written over (PostgreSQL). */
  compact(tables: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** A webhook delivery as GitHub sent it, after its signature was verified. */
export interface Delivery {
  readonly guid: string;
  readonly event: string;
  readonly receivedAt: number;
  /** The raw JSON body. */
  readonly body: string;
}

/** The durable acceptance of deliveries: when `accept` resolves, the delivery survives a crash. */
export interface Inbox {
  accept(delivery: Delivery): Promise<'accepted' | 'duplicate'>;
  close(): Promise<void>;
}

/** Where accepted deliveries are picked up, oldest first, and let go once they were routed. */
export interface InboxReader {
  pending(limit: number): Promise<readonly Delivery[]>;
  release(guid: string): Promise<void>;
  /** Removes what was left behind before a moment: drafts and damaged files. */
  tidy?(olderThan: number): Promise<void>;
}

export interface Deliveries {
  /** Records a GUID. False when it was already there. */
  record(delivery: Pick<Delivery, 'guid' | 'event' | 'receivedAt'>): Promise<boolean>;
  markRouted(guid: string): Promise<void>;
  /** Which of these GUIDs have been recorded. */
  known(guids: readonly string[]): Promise<ReadonlySet<string>>;
  prune(olderThan: number): Promise<void>;
}

/** Something to be done for a subject, for example "analyse run 12 of acme/train#7". Survives crashes until it is settled. */
export interface WorkRequest {
  readonly id: number;
  readonly subject: string;
  readonly kind: string;
  /** Delivery GUID or another name of the cause; the same (subject, kind, origin) is recorded once. */
  readonly origin: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly createdAt: number;
}

export interface Requests {
  /** Records a request; null when the same one is already there. */
  add(request: Pick<WorkRequest, 'subject' | 'kind' | 'origin' | 'payload'>): Promise<number | null>;
  pending(subject: string): Promise<readonly WorkRequest[]>;
  pendingSubjects(limit: number): Promise<readonly string[]>;
  /** Counts one more attempt and remembers what has been learnt, before the work starts. */
  begin(ids: readonly number[]): Promise<void>;
  /** Takes back a `begin`: the try was ended from outside and says nothing about the work. */
  uncount(ids: readonly number[]): Promise<void>;
  rewrite(id: number, payload: unknown): Promise<void>;
  settle(ids: readonly number[], outcome: 'done' | 'failed', note: string): Promise<void>;
  /** Makes failed requests of a delivery pending again, for a redelivery by hand. Returns their subjects. */
  reopen(origin: string): Promise<readonly string[]>;
  prune(olderThan: number): Promise<void>;
}

export interface Installations {
  put(installation: { id: number; account: string; suspended: boolean }): Promise<void>;
  remove(id: number): Promise<void>;
  /** null: never heard of. `since`: when that was noted. */
  find(id: number): Promise<{ account: string; suspended: boolean; since: number } | null>;
}

export type CheckPhase = 'queued' | 'in_progress' | 'completed';

/**
 * How one pull request stands on a commit. GitHub has one check run for a commit, which pull requests with the same head share: its number and
 * page are the commit's, everything else is the pull request's.
 */
export interface CheckRecord {
  readonly repoId: number;
  readonly owner: string;
  readonly repo: string;
  readonly sha: string;
  readonly pr: number;
  readonly installationId: number;
  readonly checkRunId: number | null;
  /** Page of the check run. */
  readonly url: string | null;
  readonly phase: CheckPhase;
  readonly conclusion: string | null;
  /** True once a report, and not only a placeholder, was published on it. */
  readonly hasReport: boolean;
  readonly deadlineAt: number | null;
  /** What the check run says for this pull request, as JSON of the app; absent in rows of before. */
  readonly said?: string;
  /** When it was due, where GitHub cannot be written to for the time being: then `deadlineAt` is when it is tried again. */
  readonly dueAt?: number;
}

export interface Checks {
  find(repoId: number, sha: string, pr: number): Promise<CheckRecord | null>;
  /** Every pull request that has a part in the check run of a commit, by number. */
  ofCommit(repoId: number, sha: string): Promise<readonly CheckRecord[]>;
  put(record: CheckRecord): Promise<void>;
  /** Takes a pull request's part out of a check run that others share; the only part of one stays. */
  drop(repoId: number, sha: string, pr: number): Promise<void>;
  /** Unconcluded checks whose deadline has passed, without what they say. */
  overdue(now: number, limit: number): Promise<readonly CheckRecord[]>;
  /** Checks of an installation that were put off are looked at when they were due. */
  hurry(installationId: number): Promise<void>;
  openOfInstallation(installationId: number, limit: number): Promise<readonly CheckRecord[]>;
  openOfPullRequest(repoId: number, pr: number): Promise<readonly CheckRecord[]>;
  /** Parts of a pull request in check runs that others share with it. */
  sharedOfPullRequest(repoId: number, pr: number): Promise<readonly CheckRecord[]>;
  prune(olderThan: number): Promise<void>;
}

/** As much of a finding as is needed to say later that it is gone. */
export interface PostedFinding {
  readonly id: string;
  readonly title: string;
  readonly saving: { readonly likely: number | null; readonly ceiling: number } | null;
}

/** What has been posted on one pull request. */
export interface PullRequestState {
  readonly repoId: number;
  readonly pr: number;
  readonly commentId: number | null;
  readonly bodyHash: string | null;
  readonly reportedSha: string | null;
  /** Findings of the report of `reportedSha`. */
  readonly findings: readonly PostedFinding[];
  /** Findings of the report before that one; with them the comment says what was fixed, however often it is written. */
  readonly before: readonly PostedFinding[];
  /** Everything the report of `reportedSha` shows, with its numbers; absent in rows of before. */
  readonly shown?: readonly ShownFinding[];
  /** Since when, by GitHub's clock, those numbers and states have been shown; absent in rows of before. */
  readonly shownAt?: number;
  /** Fingerprints that were offered as a suggestion, never offered again. */
  readonly suggested: readonly string[];
}

export interface PullRequests {
  find(repoId: number, pr: number): Promise<PullRequestState | null>;
  put(state: PullRequestState): Promise<void>;
  prune(olderThan: number): Promise<void>;
}

/** Finished reports, bounded in number, age and size. The key names the inputs, so equal inputs need no second analysis. */
export interface Reports {
  get(key: string): Promise<unknown>;
  /** The newest of a commit, as a pull request has it: another one with the same head may have another base. */
  latest(repoId: number, sha: string, pr: number): Promise<unknown>;
  /** The same, of those that hold a finding. */
  withFinding(repoId: number, sha: string, pr: number, finding: string): Promise<unknown>;
  put(report: { key: string; repoId: number; pr: number; sha: string; json: string }): Promise<boolean>;
  prune(olderThan: number, keep: number): Promise<void>;
}

/** What a person asked for: a comment with commands, a button, a re-run. */
export interface Ask {
  readonly repoId: number;
  readonly login: string;
  /** The same origin is one ask, however often its job is tried. */
  readonly origin: string;
}

export interface Asks {
  /** Accepts at most `limit` asks of a person in a repository within `windowMs`; a refused one does not count. */
  take(
    ask: Ask,
    limit: number,
    windowMs: number,
  ): Promise<{ readonly accepted: true } | { readonly accepted: false; readonly isFirst: boolean; readonly againAt: number }>;
  prune(olderThan: number): Promise<void>;
}

/** A repository as the newest event named it. */
export interface KnownRepository {
  readonly repoId: number;
  readonly installationId: number;
  readonly owner: string;
  readonly name: string;
}

export interface Repositories {
  /** Notes where a repository is. A new name or installation holds for its open checks, too. */
  see(repository: KnownRepository): Promise<void>;
  list(): Promise<readonly KnownRepository[]>;
}

/** The App was removed from a repository, or altogether (`repoId` null). */
export interface Removal {
  readonly installationId: number;
  readonly repoId: number | null;
  readonly askedAt: number;
  /** null: not yet. */
  readonly erasedAt: number | null;
}

export interface Erasures {
  ask(installationId: number, repoId: number | null): Promise<void>;
  due(limit: number): Promise<readonly Removal[]>;
  later(removal: Removal, dueAt: number): Promise<void>;
  drop(removal: Removal): Promise<void>;
  /** Repositories that data is held of for it, and that are no other installation's. */
  repositoriesOf(removal: Removal): Promise<readonly number[]>;
  /** Erases what is held of it, and has it looked at again. Returns how many rows went. */
  erase(removal: Removal, againAt: number): Promise<number>;
  /** After erasing: takes the bytes out of the files, too. */
  compact(): Promise<void>;
}

/** Bytes fetched for a repository. A day is a number: days since 1970. */
export interface Usage {
  add(repoId: number, day: number, bytes: number): Promise<void>;
  read(repoId: number, day: number): Promise<number>;
  prune(beforeDay: number): Promise<void>;
}

/** What people have accepted on a pull request, one for each finding. */
export interface Acknowledgements {
  /** Oldest first. */
  of(repoId: number, pr: number): Promise<readonly Acknowledgement[]>;
  /** The same finding again takes the place of what was given before. */
  put(repoId: number, pr: number, given: readonly Acknowledgement[]): Promise<void>;
  remove(repoId: number, pr: number, findings: readonly string[]): Promise<void>;
  /** Pull requests where one has ended: its last day is `from` or later, and before `before`; with the commit that was reported last. */
  ended(from: string, before: string): Promise<readonly Pick<CheckRecord, 'repoId' | 'owner' | 'repo' | 'pr' | 'installationId' | 'sha'>[]>;
  prune(olderThan: number): Promise<void>;
}

/** Moments to remember, by name. */
export interface Marks {
  read(name: string): Promise<number | null>;
  write(name: string, at: number): Promise<void>;
}

/** One profile that was analysed. Its facts may be gone while its figures are still known. */
export interface KeptProfile {
  readonly id: number;
  readonly repoId: number;
  readonly installationId: number;
  /** `jobKeyOf` of the settings; only profiles of the same job are compared. */
  readonly job: string;
  readonly sha: string;
  /** Branch of the run; null for a pull request's. */
  readonly branch: string | null;
  readonly pr: number | null;
  /** False: a fork's workflow made it. Such figures are a claim and never a baseline. */
  readonly trusted: boolean;
  /** Where it came from, a run and its attempt for example; the same origin is kept once. */
  readonly origin: string;
  readonly recordedAt: number;
  readonly metrics: ProfileMetrics;
  /** Format of the facts; null: they are gone or were never kept. */
  readonly factsSchema: string | null;
}

export interface ProfileLimits {
  /** Facts of a branch, and of a pull request, recorded before this are dropped. */
  readonly factsOlderThan: number;
  readonly pullRequestFactsOlderThan: number;
  /** Bytes of facts of one repository that are kept, newest first, those of branches before those of pull requests. */
  readonly factsBytes: number;
  /** Figures recorded before this are dropped, and those beyond so many of one job of a repository. */
  readonly olderThan: number;
  readonly keep: number;
}

/** History of a repository: profiles of its branches and pull requests. Outlives the artifacts they were read from. */
export interface Profiles {
  /** `facts`: the gzipped facts.json as the analysis process wrote it; never read here. Replaces what has the same origin. */
  put(
    profile: Omit<KeptProfile, 'id' | 'factsSchema'>,
    facts: { readonly schema: string; readonly bytes: Uint8Array } | null,
  ): Promise<void>;
  /** Trusted profiles of these commits, newest first. */
  ofCommits(repoId: number, job: string, shas: readonly string[]): Promise<readonly KeptProfile[]>;
  /** Trusted profiles of a branch, newest first. */
  ofBranch(repoId: number, job: string, branch: string, limit: number): Promise<readonly KeptProfile[]>;
  ofPullRequest(repoId: number, job: string, pr: number, limit: number): Promise<readonly KeptProfile[]>;
  facts(id: number): Promise<Uint8Array | null>;
  /** Everything that is known, oldest first, for export; `after`: the id to go on behind. */
  list(filter: {
    readonly repoId?: number;
    readonly job?: string;
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly KeptProfile[]>;
  prune(limits: ProfileLimits): Promise<void>;
}

/** A report as it was shown on a pull request, for its page. */
export interface KeptPage {
  readonly repoId: number;
  /** Name of the page, made of pull request, commit and job. */
  readonly page: string;
  readonly pr: number;
  readonly sha: string;
  /** Another one for every other content. */
  readonly version: string;
  /** Gzipped; never read here. */
  readonly content: Uint8Array;
  /** When the last link to it ends. */
  readonly expiresAt: number;
}

/** Pages that links of comments and checks lead to. */
export interface Pages {
  find(repoId: number, page: string): Promise<Pick<KeptPage, 'version' | 'expiresAt'> | null>;
  /** `content` is null where its version is the one that is known already. */
  read(
    repoId: number,
    page: string,
    known: string | null,
  ): Promise<{ readonly version: string; readonly content: Uint8Array | null } | null>;
  put(page: KeptPage): Promise<void>;
  /** Names of the pages of a commit on a pull request: one for each job. */
  ofCommit(repoId: number, pr: number, sha: string): Promise<readonly string[]>;
  extend(repoId: number, page: string, expiresAt: number): Promise<void>;
  /** Pages of reported commits whose links end before a moment, where the report itself is kept, too. */
  ending(
    before: number,
  ): Promise<readonly (Pick<CheckRecord, 'repoId' | 'owner' | 'repo' | 'pr' | 'installationId' | 'sha'> & Pick<KeptPage, 'page'>)[]>;
  prune(expiredBefore: number, keep: number): Promise<void>;
}

/** A share of a large job that any process may read, down to the facts of its ranks. */
export interface Portion {
  readonly id: number;
  readonly place: number;
  readonly payload: unknown;
  readonly state: 'waiting' | 'done' | 'failed';
  readonly attempts: number;
  /** Why it failed. */
  readonly note: string;
  readonly updatedAt: number;
}

/** Portions of large jobs, each kept until the job has been put together. */
export interface Portions {
  /** Records the portions of a job; those that are there already stay as they are. */
  plan(repoId: number, job: string, payloads: readonly unknown[]): Promise<void>;
  of(repoId: number, job: string): Promise<readonly Portion[]>;
  find(repoId: number, job: string, place: number): Promise<Portion | null>;
  begin(id: number): Promise<void>;
  /** Takes back a `begin`: the try was ended from outside. */
  uncount(id: number): Promise<void>;
  /** `facts`: a gzipped facts.json as the analysis process wrote it; never read here. What has ended stays as it ended. */
  finish(id: number, facts: Uint8Array): Promise<void>;
  fail(id: number, note: string): Promise<void>;
  facts(id: number): Promise<Uint8Array | null>;
  drop(repoId: number, job: string): Promise<void>;
  prune(olderThan: number): Promise<void>;
  /** Removes facts outside of the database whose portions are gone. */
  tidy(): Promise<void>;
}

export interface Store {
  readonly database: Database;
  readonly deliveries: Deliveries;
  readonly requests: Requests;
  readonly installations: Installations;
  readonly checks: Checks;
  readonly pullRequests: PullRequests;
  readonly reports: Reports;
  readonly pages: Pages;
  readonly asks: Asks;
  readonly acknowledgements: Acknowledgements;
  readonly marks: Marks;
  readonly repositories: Repositories;
  readonly erasures: Erasures;
  readonly usage: Usage;
  readonly profiles: Profiles;
  readonly portions: Portions;
}

/** How many subjects a process handles at a time. */
export interface Hands {
  /** Commands, new heads, finished runs: short, and somebody waits. */
  readonly light: number;
  /** Pull requests and branches, which run analyses. */
  readonly heavy: number;
  /** Portions of large jobs, which the pull requests above may be waiting for. */
  readonly portions: number;
}

/** Wakes a worker for a subject. At most one worker at a time handles a subject. */
export interface Queue {
  poke(subject: string): Promise<void>;
  /** Pokes unless a wake-up for the subject is already waiting, running or due for a retry. */
  pokeIfIdle(subject: string): Promise<void>;
  /** Wakes a worker later; one that waits already is enough. */
  putOff(subject: string, ms: number): Promise<void>;
  /** How long the subjects that begin so have been put off, ms, the last of them; null: none is. */
  putOffFor(prefix: string): Promise<number | null>;
  /** `attempt` starts at 1 and counts the tries since the last poke. Throwing means: try again later. */
  work(handler: (subject: string, attempt: number) => Promise<void>, hands: Hands): Promise<void>;
  /** Stops fetching and waits for running handlers. */
  drain(timeoutMs: number): Promise<void>;
}

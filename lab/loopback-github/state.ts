/** Everything the loopback GitHub remembers, as plain objects. */

import type { KeyObject } from 'node:crypto';
import type { Certificate } from './certificate.ts';
import type { Fault } from './faults.ts';
import type { Objects } from './git.ts';
import { createObjects } from './git.ts';
import type { JsonObject } from './json.ts';

/** A user, bot or organisation. */
export interface Account {
  id: number;
  login: string;
  type: 'User' | 'Bot' | 'Organization';
  createdAt: string;
}

/** Rights of a user in a repository, by role. */
export type Role = 'none' | 'read' | 'triage' | 'write' | 'maintain' | 'admin';

/** Permissions of an app, an installation or a token. */
export type Permissions = { [name: string]: 'read' | 'write' | 'admin' };

/** The registered app. */
interface App {
  id: number;
  slug: string;
  name: string;
  clientId: string;
  owner: Account;
  bot: Account;
  publicKey: KeyObject;
  privateKeyPem: string;
  webhookSecret: string;
  permissions: Permissions;
  events: string[];
  createdAt: string;
}

/** The app installed on an account. */
export interface Installation {
  id: number;
  account: Account;
  permissions: Permissions;
  events: string[];
  createdAt: string;
  suspendedAt: string | null;
  deleted: boolean;
}

/** An installation access token. */
export interface Token {
  value: string;
  installation: Installation;
  /** Null: every repository of the installation. */
  repositoryIds: number[] | null;
  permissions: Permissions;
  expiresAt: number;
  revoked: boolean;
}

/** A reaction to a comment. */
export interface Reaction {
  id: number;
  user: Account;
  content: string;
  createdAt: string;
}

/** A comment in the conversation of a pull request. */
export interface IssueComment {
  id: number;
  number: number;
  user: Account;
  body: string;
  viaApp: boolean;
  createdAt: string;
  updatedAt: string;
  reactions: Reaction[];
}

/** An annotation of a check run. */
export interface Annotation {
  path: string;
  startLine: number;
  endLine: number;
  startColumn: number | null;
  endColumn: number | null;
  level: 'notice' | 'warning' | 'failure';
  title: string | null;
  message: string;
  rawDetails: string | null;
}

/** A check run. */
export interface CheckRun {
  id: number;
  suite: CheckSuite;
  name: string;
  headSha: string;
  status: string;
  conclusion: string | null;
  startedAt: string;
  completedAt: string | null;
  externalId: string;
  detailsUrl: string | null;
  title: string | null;
  summary: string | null;
  text: string | null;
  annotations: Annotation[];
  images: { alt: string; imageUrl: string; caption: string | null }[];
  actions: { label: string; description: string; identifier: string }[];
  /** What it showed, request by request. */
  history: CheckState[];
}

/** What a check run shows. */
export interface CheckState {
  status: string;
  conclusion: string | null;
  title: string | null;
  summary: string | null;
  at: string;
}

/** The check suite of the app for one commit. */
export interface CheckSuite {
  id: number;
  headSha: string;
  headBranch: string | null;
  createdAt: string;
  updatedAt: string;
}

/** A review of a pull request. */
export interface Review {
  id: number;
  number: number;
  user: Account;
  viaApp: boolean;
  body: string;
  state: 'APPROVED' | 'CHANGES_REQUESTED' | 'COMMENTED' | 'PENDING' | 'DISMISSED';
  commitId: string;
  submittedAt: string | null;
}

/** A review comment at a line of the difference. */
export interface ReviewComment {
  id: number;
  number: number;
  review: Review;
  user: Account;
  body: string;
  path: string;
  side: 'LEFT' | 'RIGHT';
  startSide: 'LEFT' | 'RIGHT' | null;
  /** Null once the line no longer exists in the newest difference. */
  line: number | null;
  startLine: number | null;
  originalLine: number;
  originalStartLine: number | null;
  position: number | null;
  originalPosition: number;
  commitId: string;
  originalCommitId: string;
  diffHunk: string;
  inReplyTo: number | null;
  subject: 'line' | 'file';
  createdAt: string;
  updatedAt: string;
  reactions: Reaction[];
}

/** A pull request. */
export interface PullRequest {
  id: number;
  number: number;
  repository: Repository;
  author: Account;
  title: string;
  body: string | null;
  state: 'open' | 'closed';
  draft: boolean;
  /** The conversation is locked: apps cannot write to it. */
  locked: boolean;
  labels: { id: number; name: string; color: string }[];
  head: { repository: Repository; branch: string; sha: string };
  /** Commits that were the head before, oldest first. */
  pastHeads: string[];
  base: { branch: string; sha: string };
  mergeSha: string | null;
  mergedAt: string | null;
  mergedBy: Account | null;
  createdAt: string;
  updatedAt: string;
  closedAt: string | null;
}

/** A workflow file. */
export interface Workflow {
  id: number;
  name: string;
  path: string;
  createdAt: string;
}

/** A workflow run. */
export interface WorkflowRun {
  id: number;
  workflow: Workflow;
  event: string;
  status: 'requested' | 'queued' | 'in_progress' | 'completed' | 'waiting' | 'pending';
  conclusion: string | null;
  headSha: string;
  headBranch: string | null;
  headRepository: Repository;
  runNumber: number;
  runAttempt: number;
  actor: Account;
  title: string;
  suiteId: number;
  createdAt: string;
  startedAt: string;
  updatedAt: string;
}

/** An artifact of a workflow run, with the way its bytes are served. */
export interface Artifact {
  id: number;
  run: WorkflowRun;
  name: string;
  bytes: { file: string } | { buffer: Buffer };
  size: number;
  /** Size the API reports. */
  declaredSize: number;
  expired: boolean;
  digest: string | null;
  createdAt: string;
  expiresAt: string;
  contentType: string;
  etag: string;
  slowBytesPerSecond: number | null;
  truncateAt: number | null;
  omitLength: boolean;
  ignoreRange: boolean;
}

/** A file of no run: the asset of a release, or attached to a pull request. */
export type StoredFile = Omit<Artifact, 'run' | 'expired'>;

/** A release. */
export interface Release {
  id: number;
  tag: string;
  author: Account;
  createdAt: string;
  assets: StoredFile[];
}

/** A repository. */
export interface Repository {
  id: number;
  owner: Account;
  name: string;
  description: string | null;
  private: boolean;
  parent: Repository | null;
  deleted: boolean;
  archived: boolean;
  /** Full names it had before; requests to them are redirected. */
  formerNames: string[];
  objects: Objects;
  defaultBranch: string;
  branches: Map<string, string>;
  installation: Installation | null;
  roles: Map<string, Role>;
  nextNumber: number;
  nextRunNumber: number;
  pulls: PullRequest[];
  comments: IssueComment[];
  reviews: Review[];
  reviewComments: ReviewComment[];
  checkSuites: CheckSuite[];
  checkRuns: CheckRun[];
  workflows: Workflow[];
  runs: WorkflowRun[];
  artifacts: Artifact[];
  releases: Release[];
  attachments: StoredFile[];
  createdAt: string;
  pushedAt: string;
  /** A lagging replica: what listing comments answers for the next reads. */
  staleComments: { comments: IssueComment[]; reads: number } | null;
}

/** One request to the loopback GitHub. */
export interface Exchange {
  host: 'api' | 'blob' | 'page';
  method: string;
  path: string;
  operation: string | null;
  status: number;
  /** Whether the request carried an Authorization header. */
  authorization: boolean;
  range: string | null;
  /** Bytes of an artifact that were sent. */
  bytes: number;
  at: string;
  ms: number;
}

/** Something that does not fit GitHub's description or its rules. */
export interface Violation {
  /** Who is at fault: the client, or the loopback GitHub itself. */
  side: 'client' | 'hub';
  kind: 'operation' | 'parameters' | 'body' | 'headers' | 'rule' | 'response' | 'webhook';
  exchange: string;
  faults: string[];
}

/** A request that was refused for reasons a correct client can meet too (a race, a missing right, an expired artifact). */
export interface Refusal {
  rule: string;
  exchange: string;
  message: string;
}

/** A webhook delivery, as the app's delivery log shows it. */
export interface Delivery {
  id: number;
  guid: string;
  event: string;
  action: string | null;
  deliveredAt: string;
  redelivery: boolean;
  durationMs: number;
  status: string;
  statusCode: number;
  installationId: number | null;
  repositoryId: number | null;
  url: string;
  requestHeaders: { [name: string]: string };
  payload: { [key: string]: unknown };
  /** The exact bytes that were signed. */
  rawBody: string;
  responseBody: string;
  responseHeaders: { [name: string]: string };
}

/** The whole state of one loopback GitHub. */
export interface HubState {
  app: App;
  /** Manifests that were confirmed and not converted yet, by code. */
  manifestCodes: Map<string, { manifest: JsonObject; owner: string | null; expiresAt: number }>;
  url: string;
  apiUrl: string;
  blobUrl: string;
  webhookUrl: string | null;
  /** Version of the GitHub Enterprise Server it stands for; null: as GitHub.com answers. */
  enterprise: string | null;
  /** TLS of its servers; null: plain http. */
  certificate: Certificate | null;
  autoDeliver: boolean;
  accounts: Map<string, Account>;
  installations: Installation[];
  repositories: Repository[];
  tokens: Map<string, Token>;
  deliveries: Delivery[];
  journal: Exchange[];
  violations: Violation[];
  refusals: Refusal[];
  faults: Fault[];
  /** Installations whose requests of the hour are counted, by number; the others have as many as they want. */
  hours: Map<number, { left: number; resetAt: number }>;
  blobSecret: Buffer;
  /** Milliseconds this GitHub's clock is ahead of the machine's. */
  clockOffsetMs: number;
  ids: Map<string, number>;
  /** Deliveries started by state changes, one after the other. */
  outbox: Promise<void>;
}

/** First identifiers by kind: far apart, beyond 2^31 where GitHub's are. */
const FIRST_IDS: { [kind: string]: number } = {
  account: 40_000_101,
  installation: 51_000_001,
  repository: 700_000_001,
  pull: 2_100_000_001,
  comment: 3_300_000_001,
  reaction: 310_000_001,
  review: 2_900_000_001,
  reviewComment: 2_400_000_001,
  checkSuite: 38_000_000_001,
  checkRun: 47_000_000_001,
  workflow: 160_000_001,
  run: 18_000_000_001,
  artifact: 4_100_000_001,
  label: 8_000_000_001,
  release: 260_000_001,
  asset: 240_000_001,
  attachment: 23_000_001,
  delivery: 90_000_000_001,
};

/** The next identifier of a kind. */
export function nextId(state: HubState, kind: string): number {
  const id = state.ids.get(kind) ?? FIRST_IDS[kind] ?? 1;
  state.ids.set(kind, id + 1);
  return id;
}

/** This GitHub's clock, in milliseconds. */
export function clock(state: HubState): number {
  return Date.now() + state.clockOffsetMs;
}

/** A moment as GitHub writes it: whole seconds, UTC. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Now, as GitHub writes it. */
export function now(state: HubState): string {
  return timestamp(clock(state));
}

/** The account of a login, created on first mention. */
export function account(state: HubState, login: string, type: Account['type'] = 'User'): Account {
  const key = login.toLowerCase();
  const known = state.accounts.get(key);
  if (known) return known;
  const created: Account = { id: nextId(state, 'account'), login, type, createdAt: '2021-03-04T05:06:07Z' };
  state.accounts.set(key, created);
  return created;
}

/** A repository by its full name, ignoring case. */
export function findRepository(state: HubState, owner: string, name: string): Repository | null {
  const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
  return (
    state.repositories.find((repository) => !repository.deleted && same(repository.owner.login, owner) && same(repository.name, name)) ??
    null
  );
}

/** A new repository without commits. */
export function createRepository(
  state: HubState,
  options: {
    owner: Account;
    name: string;
    private: boolean;
    defaultBranch: string;
    parent: Repository | null;
    installation: Installation | null;
  },
): Repository {
  const created = now(state);
  const repository: Repository = {
    id: nextId(state, 'repository'),
    owner: options.owner,
    name: options.name,
    description: null,
    private: options.private,
    parent: options.parent,
    deleted: false,
    archived: false,
    formerNames: [],
    objects: options.parent?.objects ?? createObjects(),
    defaultBranch: options.defaultBranch,
    branches: new Map(),
    installation: options.installation,
    roles: new Map([[options.owner.login.toLowerCase(), 'admin']]),
    nextNumber: 1,
    nextRunNumber: 1,
    pulls: [],
    comments: [],
    reviews: [],
    reviewComments: [],
    checkSuites: [],
    checkRuns: [],
    workflows: [],
    runs: [],
    artifacts: [],
    releases: [],
    attachments: [],
    createdAt: created,
    pushedAt: created,
    staleComments: null,
  };
  state.repositories.push(repository);
  return repository;
}

/** The role of a user in a repository. On public repositories everybody can read. */
export function roleOf(repository: Repository, login: string): Role {
  return repository.roles.get(login.toLowerCase()) ?? (repository.private ? 'none' : 'read');
}

/** The commit a branch, tag-like reference, pull request reference or (abbreviated) object id names. */
export function resolveCommit(repository: Repository, ref: string): string | null {
  const plain = ref.replace(/^refs\/heads\//, '').replace(/^heads\//, '');
  const branch = repository.branches.get(plain);
  if (branch) return branch;
  const pull = /^(?:refs\/)?pull\/(\d+)\/head$/.exec(ref);
  if (pull) return repository.pulls.find((candidate) => candidate.number === Number(pull[1]))?.head.sha ?? null;
  if (!/^[0-9a-f]{7,40}$/i.test(ref)) return null;
  const sha = ref.toLowerCase();
  if (sha.length === 40) return repository.objects.commits.has(sha) ? sha : null;
  return [...repository.objects.commits.keys()].find((candidate) => candidate.startsWith(sha)) ?? null;
}

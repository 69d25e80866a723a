/** Workflow runs and their artifacts. */
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { emit } from './deliveries.ts';
import {
  type Artifact,
  account,
  clock,
  type HubState,
  nextId,
  now,
  type PullRequest,
  type Repository,
  resolveCommit,
  type StoredFile,
  timestamp,
  type Workflow,
  type WorkflowRun,
} from './state.ts';

/** What a workflow run is created with. */
export interface RunOptions {
  /** Pull request it ran for; its head commit of this moment is taken. */
  pull?: PullRequest;
  /** Commit it ran for, when there is no pull request. */
  sha?: string;
  branch?: string;
  name?: string;
  path?: string;
  event?: string;
  status?: WorkflowRun['status'];
  conclusion?: string | null;
  runAttempt?: number;
  actor?: string;
}

const ACTIONS = {
  requested: 'requested',
  queued: 'requested',
  pending: 'requested',
  waiting: 'requested',
  in_progress: 'in_progress',
  completed: 'completed',
} as const;

function workflowAt(state: HubState, repository: Repository, path: string, name: string): Workflow {
  const known = repository.workflows.find((workflow) => workflow.path === path);
  if (known) return known;
  const workflow = { id: nextId(state, 'workflow'), name, path, createdAt: now(state) };
  repository.workflows.push(workflow);
  return workflow;
}

/** Adds a run; with automatic delivery, its webhook follows. */
export function addRun(state: HubState, repository: Repository, options: RunOptions): WorkflowRun {
  const { pull } = options;
  const branch = pull?.head.branch ?? options.branch ?? repository.defaultBranch;
  const sha = pull ? pull.head.sha : (options.sha ?? resolveCommit(repository, branch));
  if (!sha) throw new Error(`no commit for the workflow run: ${branch}`);
  const status = options.status ?? 'completed';
  const at = now(state);
  const commit = repository.objects.commits.get(sha);
  const run: WorkflowRun = {
    id: nextId(state, 'run'),
    workflow: workflowAt(state, repository, options.path ?? '.github/workflows/perf.yml', options.name ?? 'perf'),
    event: options.event ?? (pull ? 'pull_request' : 'push'),
    status,
    conclusion: status === 'completed' ? (options.conclusion === undefined ? 'success' : options.conclusion) : null,
    headSha: sha,
    headBranch: branch,
    headRepository: pull?.head.repository ?? repository,
    runNumber: repository.nextRunNumber++,
    runAttempt: options.runAttempt ?? 1,
    actor: account(state, options.actor ?? pull?.author.login ?? repository.owner.login),
    title: pull?.title ?? commit?.message.split('\n')[0] ?? branch,
    suiteId: nextId(state, 'checkSuite'),
    createdAt: at,
    startedAt: at,
    updatedAt: at,
  };
  repository.runs.push(run);
  emit(state, { event: 'workflow_run', action: ACTIONS[status], repository, run });
  return run;
}

/** Moves a run on, or starts it again (`runAttempt`). */
export function updateRun(
  state: HubState,
  repository: Repository,
  run: WorkflowRun,
  change: { status?: WorkflowRun['status']; conclusion?: string | null; runAttempt?: number },
): void {
  if (change.runAttempt !== undefined && change.runAttempt !== run.runAttempt) {
    run.runAttempt = change.runAttempt;
    run.startedAt = now(state);
  }
  run.status = change.status ?? (change.conclusion === undefined ? run.status : 'completed');
  run.conclusion =
    run.status === 'completed' ? (change.conclusion === undefined ? (run.conclusion ?? 'success') : change.conclusion) : null;
  run.updatedAt = now(state);
  emit(state, { event: 'workflow_run', action: ACTIONS[run.status], repository, run });
}

/** What an artifact is created with. */
export interface ArtifactOptions {
  name: string;
  /** The bytes: a file on disk (may be sparse and large) or a buffer. */
  zipPath?: string;
  zipBuffer?: Buffer;
  expired?: boolean;
  /** Default: the right one. `null`: none (upload-artifact v3). `absent`: no such field (GHES up to 3.19). `wrong`: one that does not match. */
  digest?: string | null;
  /** Size the API reports, when it is to differ from the bytes. */
  declaredSize?: number;
  contentType?: string;
  slowBytesPerSecond?: number;
  /** Break the connection after this many bytes of the file; a request that begins behind them is served. */
  truncateAt?: number;
  /** Send no Content-Length. */
  omitLength?: boolean;
  /** Answer requests for a part with everything. */
  ignoreRange?: boolean;
  retentionDays?: number;
}

function sha256(bytes: Artifact['bytes']): string {
  const hash = createHash('sha256');
  if ('buffer' in bytes) return hash.update(bytes.buffer).digest('hex');
  const handle = openSync(bytes.file, 'r');
  try {
    const chunk = Buffer.alloc(1 << 20);
    for (let count = readSync(handle, chunk); count > 0; count = readSync(handle, chunk)) hash.update(chunk.subarray(0, count));
  } finally {
    closeSync(handle);
  }
  return hash.digest('hex');
}

function storedFile(state: HubState, kind: string, options: ArtifactOptions): StoredFile {
  const bytes = options.zipPath === undefined ? { buffer: options.zipBuffer ?? Buffer.alloc(0) } : { file: options.zipPath };
  const size = 'file' in bytes ? statSync(bytes.file).size : bytes.buffer.length;

  // What an Enterprise Server zips up while it sends it has no digest, no length and no ranges.
  const isStreamed = state.enterprise !== null;
  const digest =
    options.digest === undefined
      ? isStreamed
        ? 'absent'
        : `sha256:${sha256(bytes)}`
      : options.digest === 'wrong'
        ? `sha256:${randomBytes(32).toString('hex')}`
        : options.digest;
  const id = nextId(state, kind);
  return {
    id,
    name: options.name,
    bytes,
    size,
    declaredSize: options.declaredSize ?? size,
    digest,
    createdAt: now(state),
    expiresAt: timestamp(clock(state) + (options.retentionDays ?? 90) * 86_400_000),
    contentType: options.contentType ?? 'application/zip',
    etag: `"0x8D${id.toString(16).toUpperCase().padStart(13, '0')}"`,
    slowBytesPerSecond: options.slowBytesPerSecond ?? null,
    truncateAt: options.truncateAt ?? null,
    omitLength: options.omitLength ?? isStreamed,
    ignoreRange: options.ignoreRange ?? isStreamed,
  };
}

/** Adds an artifact to a run. */
export function addArtifact(state: HubState, repository: Repository, run: WorkflowRun, options: ArtifactOptions): Artifact {
  const artifact: Artifact = { ...storedFile(state, 'artifact', options), run, expired: options.expired ?? false };
  repository.artifacts.push(artifact);
  return artifact;
}

/** Adds an asset to the release of a tag, which is made when it is not there. */
export function addReleaseAsset(state: HubState, repository: Repository, tag: string, options: ArtifactOptions): StoredFile {
  let release = repository.releases.find((candidate) => candidate.tag === tag);
  if (!release) {
    release = { id: nextId(state, 'release'), tag, author: repository.owner, createdAt: now(state), assets: [] };
    repository.releases.push(release);
  }
  const asset = storedFile(state, 'asset', options);
  release.assets.push(asset);
  return asset;
}

/** Stores a file as the editor of a comment does, and gives its address. */
export function addAttachment(state: HubState, repository: Repository, options: ArtifactOptions): string {
  const file = storedFile(state, 'attachment', options);
  repository.attachments.push(file);
  return `${state.url}/user-attachments/files/${file.id}/${encodeURIComponent(file.name)}`;
}

/** Puts other bytes in the place of an artifact's, as a storage host that mixes up files would. */
export function replaceBytes(artifact: Artifact, buffer: Buffer): void {
  artifact.bytes = { buffer };
  artifact.size = buffer.length;
  artifact.etag = `"0x8E${randomBytes(6).toString('hex').toUpperCase()}"`;
}

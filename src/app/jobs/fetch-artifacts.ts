import { type FileHandle, mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AdviseError, type Said } from '../../base/errors.ts';
import type { Artifact } from '../../github/artifacts.ts';
import type { Octokit } from '../../github/client.ts';
import { downloadArtifact, expired, placeFor, tooLarge } from '../../github/download.ts';
import { NoParts, openPartial, type PartialDownload } from '../../github/partial-download.ts';
import { ProfileUnavailable } from '../../github/storage.ts';
import type { Share } from '../../importers/index.ts';
import { directoryStart } from '../../sources/index.ts';
import type { PartsAnswer } from '../analysis-protocol.ts';
import type { Dependencies } from './dependencies.ts';
import { type FetchPlan, planFetch } from './fetch-plan.ts';
import type { Target } from './request.ts';
import { dayOf } from './sweep.ts';

export interface Fetched {
  readonly paths: readonly string[];
  /** Those of the paths that are zips of which only the wanted files are there. */
  readonly partial: readonly string[];
}

export interface FetchJob {
  readonly octokit: Octokit;
  readonly target: Target;
  readonly artifacts: readonly Artifact[];
  readonly folder: string;
  /** False: everything is downloaded. */
  readonly mayBeParts: boolean;
  /** Only these ranks of each zip are fetched, where the host gives parts. */
  readonly share?: Share | null;
  /** Bytes that have arrived, of those that will. */
  readonly onBytes: (done: number, total: number) => void;
}

const DOWNLOAD_ATTEMPTS = 3;
/** Smaller artifacts are there in a second, and their digest is compared. */
const WORTH_PARTS = 16 << 20;
/** Last bytes of a zip that are fetched at once: its end, and the directory of some 2,000 files. */
const TAIL = 256 << 10;
/** A directory of 200,000 files with long names; a larger one comes with everything else. */
const MAX_DIRECTORY = 64 << 20;
/** The file with holes is as large as the artifact, and file systems have limits. */
const MAX_SIZE = 2 ** 40;
const OPENED_AT_ONCE = 4;

/** A zip on disk of which only the directory is there yet; the rest is a hole that takes no room. */
interface Opened {
  readonly remote: PartialDownload;
  readonly file: FileHandle;
  readonly path: string;
  /** What has been fetched for the directory, bytes. */
  readonly directory: number;
}

/**
 * Brings the artifacts into the job's folder: of a large zip only what an importer opens. Three parties share the work so that none
 * holds both a way out and foreign bytes to think about: this process has the addresses and only counts bytes; the analysis process, with
 * no network address and no token, reads the directory on disk and names the parts; this process fetches those to their places in the
 * file. Nothing of the archive is unpacked here.
 */
export async function fetchArtifacts(deps: Dependencies, job: FetchJob): Promise<Fetched> {
  const { artifacts, folder, onBytes } = job;
  const opened = new Map<Artifact, Opened>();
  const day = dayOf(deps.now());
  const fetchedToday = await deps.store.usage.read(job.target.repository.id, day);
  if (fetchedToday >= deps.options.maxDailyBytes) throw tooMuchToday(deps.options.maxDailyBytes);
  let done = 0;
  try {
    if (job.mayBeParts) await openAll(deps, job, opened);
    const plans = await planAll(deps, opened, job.share ?? null);
    let left = deps.options.maxArtifactBytes;
    const total = artifacts.reduce((sum, artifact) => {
      const plan = plans.get(artifact);
      return sum + (plan?.kind === 'parts' ? plan.bytes : artifact.bytes);
    }, 0);
    const paths: string[] = [];
    const partial: string[] = [];
    for (const artifact of artifacts) {
      const plan = plans.get(artifact);
      if (plan?.kind === 'refused') throw corrupt(artifact, plan.why);
      const at = done;
      const count = (bytes: number): void => {
        deps.killPoint('during-download');
        done = at + bytes;
        onBytes(done, Math.max(done, total));
      };
      const part = plan?.kind === 'parts' ? await fetchParts(deps, artifact, opened.get(artifact)!, plan, left, count) : null;
      if (part !== null) {
        paths.push(part.path);
        partial.push(part.path);
        left -= part.bytes;
        continue;
      }
      await forget(opened, artifact);
      const whole = await downloadArtifact({
        octokit: job.octokit,
        repository: job.target.repository,
        artifact,
        folder,
        policy: deps.policy,
        signal: deps.signal,
        limits: { maxBytes: left, ...limitsOf(deps) },
        onBytes: count,
      });
      paths.push(whole.path);
      left -= whole.bytes;
    }
    return { paths, partial };
  } finally {
    for (const artifact of [...opened.keys()]) await close(opened, artifact);
    if (done > 0) await deps.store.usage.add(job.target.repository.id, day, done);
  }
}

function tooMuchToday(bytes: number): AdviseError {
  return new AdviseError(
    'daily-limit',
    {
      en: `this repository has used its ${Math.round(bytes / 1e9)} GB of downloads for today`,
      zh: `本仓库今日的下载额度 ${Math.round(bytes / 1e9)} GB 已用完`,
    },
    {
      en: 'Ask again tomorrow, upload digests instead of profiles, or let the operator raise NPU_ADVISOR_MAX_DAILY_MB.',
      zh: '明日再试，改为上传 digest 的输出，或由运维人员调大 NPU_ADVISOR_MAX_DAILY_MB。',
    },
  );
}

function limitsOf({ options }: Dependencies): { timeoutMs: number; attempts: number; retryDelayMs: number } {
  return { timeoutMs: options.downloadTimeoutMs, attempts: DOWNLOAD_ATTEMPTS, retryDelayMs: options.isTest ? 50 : 2000 };
}

function corrupt({ name }: Artifact, detail: Said): ProfileUnavailable {
  return new ProfileUnavailable({ kind: 'corrupt', artifact: name, detail }, `the artifact ${name} cannot be used`);
}

async function openAll(deps: Dependencies, job: FetchJob, opened: Map<Artifact, Opened>): Promise<void> {
  const queue = job.artifacts.filter((artifact) => artifact.bytes >= WORTH_PARTS || job.share != null);
  const worker = async (): Promise<void> => {
    for (let artifact = queue.shift(); artifact !== undefined; artifact = queue.shift()) {
      if (artifact.expired) throw expired(artifact);
      try {
        const one = await openOne(deps, job, artifact);
        if (typeof one !== 'string') opened.set(artifact, one);
        else sayWhole(deps, artifact, one);
      } catch (error) {
        if (!(error instanceof NoParts)) throw error;
        sayWhole(deps, artifact, error.message);
      }
    }
  };
  const workers = Array.from({ length: OPENED_AT_ONCE }, worker);
  const ends = await Promise.allSettled(workers);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

function sayWhole(deps: Dependencies, artifact: Artifact, because: string): void {
  deps.log.info({ artifact: artifact.id, bytes: artifact.bytes, because }, 'the whole artifact is fetched');
}

/** The directory of a zip in a file of its own; a text says why it cannot be had. */
async function openOne(deps: Dependencies, { octokit, target, folder }: FetchJob, artifact: Artifact): Promise<Opened | string> {
  const { policy, signal } = deps;
  const remote = await openPartial({ octokit, repository: target.repository, artifact, policy, signal, limits: limitsOf(deps) });
  const give = (why: string): string => {
    remote.close();
    return why;
  };
  const { size, head } = remote;
  let file: FileHandle | null = null;
  try {
    if (size > MAX_SIZE) return give('it is larger than any upload');
    if (head.length < 4 || head.readUInt32BE(0) !== 0x504b0304) return give('it is no zip');
    const from = Math.max(0, size - TAIL);
    const tail = await remote.read({ start: from, end: size });
    const start = directoryStart(tail, size);
    if (start === null) return give('its end is not that of a zip');
    if (size - start > MAX_DIRECTORY) return give('its directory is very large');
    const path = await placeFor(artifact, folder, '.zip');
    file = await open(path, 'w', 0o600);
    await file.truncate(size);
    await file.write(head, 0, head.length, 0);
    await file.write(tail, 0, tail.length, from);
    if (start < from) await remote.write([{ start, end: from }], file, () => {});
    return { remote, file, path, directory: head.length + tail.length + Math.max(0, from - start) };
  } catch (error) {
    remote.close();
    await file?.close();
    throw error;
  }
}

/** Into how many shares a zip may be divided by its ranks, told by its directory; 1 where it is no zip or the host gives no parts. */
export async function sharesOf(deps: Dependencies, octokit: Octokit, target: Target, artifact: Artifact): Promise<number> {
  await mkdir(deps.scratch, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(deps.scratch, 'job-'));
  try {
    const job = { octokit, target, artifacts: [artifact], folder, mayBeParts: true, onBytes: () => undefined };
    const opened = await openOne(deps, job, artifact).catch((error: unknown) => {
      if (error instanceof NoParts) return error.message;
      throw error;
    });
    if (typeof opened === 'string') return 1;
    opened.remote.close();
    await opened.file.close();
    const [answer] = await deps.analysis.parts([opened.path], { signal: deps.signal });
    return answer?.ok === true && Number.isSafeInteger(answer.groups) ? Math.max(1, answer.groups ?? 1) : 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function planAll(deps: Dependencies, opened: ReadonlyMap<Artifact, Opened>, share: Share | null): Promise<Map<Artifact, FetchPlan>> {
  const plans = new Map<Artifact, FetchPlan>();
  if (opened.size === 0) return plans;
  const paths = [...opened.values()].map(({ path }) => path);
  const answers: readonly PartsAnswer[] = await deps.analysis.parts(paths, { signal: deps.signal }, share);
  for (const [i, [artifact, { remote, directory }]] of [...opened].entries()) {
    const plan = planFetch(remote.size, answers[i]);
    plans.set(artifact, plan);
    if (plan.kind === 'whole') sayWhole(deps, artifact, plan.because);
    if (plan.kind !== 'parts') continue;
    const { bytes, ranges, files, wantedFiles } = plan;
    deps.log.info(
      { artifact: artifact.id, bytes: remote.size, wanted: bytes + directory, requests: ranges.length, files, wantedFiles },
      'only the wanted files of an artifact are fetched',
    );
  }
  return plans;
}

/** Fetches the parts to their places in the file. null: the host no longer gives parts of this file, everything must be fetched. */
async function fetchParts(
  deps: Dependencies,
  artifact: Artifact,
  { remote, file, path, directory }: Opened,
  plan: Extract<FetchPlan, { kind: 'parts' }>,
  left: number,
  count: (bytes: number) => void,
): Promise<{ path: string; bytes: number } | null> {
  const bytes = plan.bytes + directory;
  if (bytes > left) throw tooLarge(artifact, bytes, left);
  let arrived = 0;
  try {
    await remote.write(plan.ranges, file, (more) => {
      arrived += more;
      count(arrived);
    });
    return { path, bytes };
  } catch (error) {
    if (!(error instanceof NoParts)) throw error;
    sayWhole(deps, artifact, error.message);
    return null;
  }
}

async function close(opened: Map<Artifact, Opened>, artifact: Artifact): Promise<void> {
  const one = opened.get(artifact);
  if (one === undefined) return;
  opened.delete(artifact);
  one.remote.close();
  await one.file.close();
}

/** Closes an artifact that was opened in vain and removes what is there of it. */
async function forget(opened: Map<Artifact, Opened>, artifact: Artifact): Promise<void> {
  const path = opened.get(artifact)?.path;
  await close(opened, artifact);
  if (path !== undefined) await rm(path, { force: true });
}

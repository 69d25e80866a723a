import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AdviseError, messageOf } from '../base/errors.ts';
import type { Artifact } from './artifacts.ts';
import { openStorage, ProfileUnavailable, pause, type Storage, type StorageOptions, StorageRefusal } from './storage.ts';

export interface DownloadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Tries in a row that bring nothing new. */
  readonly attempts: number;
  readonly retryDelayMs: number;
}

export interface Downloaded {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface DownloadOptions extends StorageOptions {
  readonly folder: string;
  readonly limits: DownloadLimits;
  readonly signal: AbortSignal;
  /** Called as bytes arrive. */
  readonly onBytes?: (total: number) => void;
}

/** Kind of a file by its first bytes, since neither the name nor the content type of an artifact says. */
function extensionOf(head: Buffer): string {
  if (head.length >= 4 && head.readUInt32BE(0) === 0x504b0304) return '.zip';
  if (head.length >= 4 && head.readUInt32BE(0) === 0x504b0506) return '.zip';
  if (head.length >= 2 && head.readUInt16BE(0) === 0x1f8b) return '.tar.gz';
  if (head.length >= 265 && head.toString('latin1', 257, 262) === 'ustar') return '.tar';
  const text = head.toString('latin1').trimStart();
  if (text.startsWith('{') || text.startsWith('[')) return '.json';
  return '.zip';
}

/** Where an artifact is put. People see its name in the evidence, with nothing in it a path could be made of; the folder keeps equal names apart. */
export async function placeFor({ id, name }: Artifact, folder: string, extension: string): Promise<string> {
  const own = join(folder, String(id));
  await mkdir(own, { recursive: true });
  return join(own, `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 80) || 'artifact'}${extension}`);
}

export function expired(artifact: Artifact): ProfileUnavailable {
  const reason = { kind: 'expired', artifact: artifact.name, expiredAt: artifact.expiresAt } as const;
  return new ProfileUnavailable(reason, `the artifact ${artifact.name} has expired`);
}

export function tooLarge({ name }: Artifact, bytes: number, limitBytes: number): ProfileUnavailable {
  const reason = { kind: 'too-large', artifact: name, bytes, limitBytes } as const;
  return new ProfileUnavailable(reason, `the artifact ${name} is larger than ${limitBytes} bytes`);
}

/** What has arrived so far, and the version of the file it belongs to: a try that broke off is gone on with where it stopped. */
interface Arrived {
  bytes: number;
  hash: Hash;
  etag: string | null;
  total: number | null;
}

function nothing(): Arrived {
  return { bytes: 0, hash: createHash('sha256'), etag: null, total: null };
}

async function go(
  storage: Storage,
  file: FileHandle,
  arrived: Arrived,
  { artifact, limits, onBytes, signal }: DownloadOptions,
): Promise<void> {
  const from = arrived.bytes;
  const isMore = from > 0 && arrived.etag !== null && arrived.total !== null;
  const response = await storage.get(isMore ? { range: `bytes=${from}-`, 'if-match': arrived.etag! } : {}, signal);
  const { statusCode, headers } = response;
  const isPart = isMore && statusCode === 206 && headers['content-range'] === `bytes ${from}-${arrived.total! - 1}/${arrived.total}`;
  if (!isPart) {
    if (statusCode !== 200) {
      response.destroy();
      if (statusCode === 412 || statusCode === 416) Object.assign(arrived, nothing());
      throw new StorageRefusal(response);
    }
    const declared = Number(headers['content-length'] ?? Number.NaN);
    if (declared > limits.maxBytes) {
      response.destroy();
      throw tooLarge(artifact, declared, limits.maxBytes);
    }
    Object.assign(arrived, nothing(), { etag: strongEtag(headers.etag), total: Number.isFinite(declared) ? declared : null });
  }
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (arrived.bytes + chunk.length > limits.maxBytes) throw tooLarge(artifact, arrived.bytes + chunk.length, limits.maxBytes);
      await file.write(chunk, 0, chunk.length, arrived.bytes);
      arrived.hash.update(chunk);
      arrived.bytes += chunk.length;
      onBytes?.(arrived.bytes);
    }
  } finally {
    response.destroy();
  }
  if (arrived.total !== null && arrived.bytes !== arrived.total) throw new Error('the download ended early');
}

/** An ETag that names bytes and not only what they mean; null for any other. */
export function strongEtag(etag: string | undefined): string | null {
  return etag !== undefined && /^"[^"]{1,200}"$/.test(etag) ? etag : null;
}

/** Streams a whole artifact to a file of its own in `folder`, counted and hashed on the way. */
export async function downloadArtifact(given: DownloadOptions): Promise<Downloaded> {
  const { artifact, limits, folder } = given;
  if (artifact.expired) throw expired(artifact);
  if (artifact.bytes > limits.maxBytes) throw tooLarge(artifact, artifact.bytes, limits.maxBytes);
  const signal = AbortSignal.any([given.signal, AbortSignal.timeout(limits.timeoutMs)]);
  const options = { ...given, signal };
  const storage = openStorage(options, 1);
  const draft = join(folder, `artifact-${artifact.id}.part`);
  const arrived = nothing();
  const file = await open(draft, 'w+', 0o600);
  try {
    for (let failures = 0; ; ) {
      const before = arrived.bytes;
      try {
        await go(storage, file, arrived, options);
        const sha256 = arrived.hash.digest('hex');
        checkDigest(artifact, sha256);
        await file.truncate(arrived.bytes);
        const head = Buffer.alloc(512);
        const { bytesRead } = await file.read(head, 0, 512, 0);
        checkPointer(artifact, head.toString('latin1', 0, bytesRead));
        const path = await placeFor(artifact, folder, extensionOf(head.subarray(0, bytesRead)));
        await rename(draft, path);
        return { path, bytes: arrived.bytes, sha256 };
      } catch (error) {
        const isCorrupt = error instanceof ProfileUnavailable && error.reason.kind === 'corrupt';
        failures = arrived.bytes > before && !isCorrupt ? 1 : failures + 1;
        if (isCorrupt) Object.assign(arrived, nothing());
        storage.forgetAddress();
        if ((error instanceof AdviseError && !isCorrupt) || signal.aborted || failures >= limits.attempts) {
          if (error instanceof AdviseError) throw error;
          throw new Error(`the artifact could not be downloaded: ${messageOf(error)}`, { cause: error });
        }
        await pause(failures, limits.retryDelayMs, error, signal);
      }
    }
  } finally {
    storage.close();
    await file.close();
    await rm(draft, { force: true });
  }
}

/** A file of a repository may stand for one that lies in Git LFS. */
function checkPointer({ name }: Artifact, head: string): void {
  if (!head.startsWith('version https://git-lfs.github.com/spec/')) return;
  throw new ProfileUnavailable(
    {
      kind: 'corrupt',
      artifact: name,
      detail: { en: 'it is a pointer of Git LFS, whose files are not fetched', zh: '它是 Git LFS 指针，其文件不会下载' },
    },
    `${name} is a pointer of Git LFS`,
  );
}

function checkDigest({ name, digest }: Artifact, sha256: string): void {
  if (!digest?.startsWith('sha256:') || digest.slice(7).toLowerCase() === sha256) return;
  throw new ProfileUnavailable(
    {
      kind: 'corrupt',
      artifact: name,
      detail: { en: 'its content does not match the SHA-256 digest GitHub recorded', zh: '内容与 GitHub 记录的 SHA-256 摘要不符' },
    },
    `the artifact ${name} does not match its digest`,
  );
}

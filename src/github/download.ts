import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AdviseError, messageOf } from '../base/errors.ts';
import type { NoProfileReason } from '../render/views.ts';
import type { Artifact } from './artifacts.ts';
import { type Octokit, type RepositoryRef, statusOf } from './client.ts';
import type { OutboundPolicy } from './outbound.ts';

/** The artifact is there no more, too large or damaged: an answer for the reader, not a failure of ours. */
export class ProfileUnavailable extends AdviseError {
  readonly reason: NoProfileReason;
  constructor(reason: NoProfileReason, message: string, options?: ErrorOptions) {
    super('profile-unavailable', message, message, options);
    this.name = 'ProfileUnavailable';
    this.reason = reason;
  }
}

export interface DownloadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly retryDelayMs: number;
}

export interface Downloaded {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

const MAX_REDIRECTS = 3;
const IDLE_MS = 30_000;

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

/** An artifact's name as a file name: what people recognise, and nothing a path could be made of. */
function safeName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 80) || 'artifact';
}

/** GET without credentials, following a few redirects, each of which must be allowed. */
async function openUrl(address: URL, policy: OutboundPolicy, signal: AbortSignal): Promise<IncomingMessage> {
  let url = address;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const { lookup } = policy.check(url);
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = send(
        url,
        { signal, headers: { 'user-agent': 'npu-advisor', accept: '*/*' }, ...(lookup ? { lookup } : {}) },
        resolve,
      );
      request.setTimeout(IDLE_MS, () => request.destroy(new Error('the storage host stopped answering')));
      request.on('error', reject);
      request.end();
    });
    const location = response.headers.location;
    if (![301, 302, 303, 307, 308].includes(response.statusCode ?? 0) || location === undefined) return response;
    response.resume();
    url = new URL(location, url);
  }
  throw new AdviseError('download-refused', 'the download is redirected too often', 'The storage host is set up wrongly.');
}

export interface DownloadOptions {
  readonly octokit: Octokit;
  readonly repository: RepositoryRef;
  readonly artifact: Artifact;
  readonly folder: string;
  readonly limits: DownloadLimits;
  readonly policy: OutboundPolicy;
  readonly signal: AbortSignal;
  /** Called as bytes arrive. */
  readonly onBytes?: (total: number) => void;
}

/** A fresh address for the artifact's bytes. It is good for about a minute, so every attempt asks again. */
async function freshAddress(options: DownloadOptions): Promise<URL> {
  const { octokit, repository, artifact } = options;
  try {
    const answer = await octokit.request('GET /repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}', {
      owner: repository.owner,
      repo: repository.name,
      artifact_id: artifact.id,
      archive_format: 'zip',
      request: { redirect: 'manual', signal: options.signal },
    });
    const location = answer.headers.location;
    if (typeof location !== 'string') throw new Error('GitHub gave no address for the artifact');
    return new URL(location);
  } catch (error) {
    const status = statusOf(error);
    if (status === 410 || status === 404) {
      const reason = { kind: 'expired', artifact: artifact.name, expiredAt: artifact.expiresAt } as const;
      throw new ProfileUnavailable(reason, `the artifact ${artifact.name} has been deleted`, { cause: error });
    }
    throw error;
  }
}

async function downloadOnce(options: DownloadOptions, path: string): Promise<Downloaded> {
  const { artifact, limits, signal } = options;
  const response = await openUrl(await freshAddress(options), options.policy, signal);
  if (response.statusCode !== 200) {
    response.resume();
    throw new Error(`the storage host answered ${response.statusCode}`);
  }
  const tooLarge = (bytes: number): ProfileUnavailable =>
    new ProfileUnavailable(
      { kind: 'too-large', artifact: artifact.name, bytes, limitBytes: limits.maxBytes },
      `the artifact ${artifact.name} is larger than ${limits.maxBytes} bytes`,
    );
  const declared = Number(response.headers['content-length'] ?? Number.NaN);
  if (declared > limits.maxBytes) {
    response.destroy();
    throw tooLarge(declared);
  }
  const hash = createHash('sha256');
  let bytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length;
      if (bytes > limits.maxBytes) return done(tooLarge(bytes));
      hash.update(chunk);
      options.onBytes?.(bytes);
      done(null, chunk);
    },
  });
  await pipeline(response, meter, createWriteStream(path, { mode: 0o600 }), { signal });
  if (Number.isFinite(declared) && bytes !== declared) throw new Error('the download ended early');
  const sha256 = hash.digest('hex');
  if (artifact.digest?.startsWith('sha256:') && artifact.digest.slice(7).toLowerCase() !== sha256) {
    throw new ProfileUnavailable(
      { kind: 'corrupt', artifact: artifact.name, detail: 'its content does not match the SHA-256 digest GitHub recorded' },
      `the artifact ${artifact.name} does not match its digest`,
    );
  }
  return { path, bytes, sha256 };
}

/**
 * Streams an artifact to a file of its own in `folder`. The token goes to the API host only; the storage host must be allowed;
 * bytes are counted and hashed on the way.
 */
export async function downloadArtifact(options: DownloadOptions): Promise<Downloaded> {
  const { artifact, limits, folder } = options;
  if (artifact.expired) {
    const reason = { kind: 'expired', artifact: artifact.name, expiredAt: artifact.expiresAt } as const;
    throw new ProfileUnavailable(reason, `the artifact ${artifact.name} has expired`);
  }
  if (artifact.bytes > limits.maxBytes) {
    const reason = { kind: 'too-large', artifact: artifact.name, bytes: artifact.bytes, limitBytes: limits.maxBytes } as const;
    throw new ProfileUnavailable(reason, `the artifact ${artifact.name} is larger than ${limits.maxBytes} bytes`);
  }
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(limits.timeoutMs)]);
  const draft = join(folder, `artifact-${artifact.id}.part`);
  for (let attempt = 1; ; attempt++) {
    try {
      const done = await downloadOnce({ ...options, signal }, draft);
      const file = await open(draft, 'r');
      const head = Buffer.alloc(512);
      const { bytesRead } = await file.read(head, 0, 512, 0).finally(() => file.close());
      // People see this name in the evidence; the folder keeps equal names apart.
      const own = join(folder, String(artifact.id));
      await mkdir(own, { recursive: true });
      const path = join(own, `${safeName(artifact.name)}${extensionOf(head.subarray(0, bytesRead))}`);
      await rename(draft, path);
      return { ...done, path };
    } catch (error) {
      await rm(draft, { force: true });
      const final = error instanceof ProfileUnavailable ? error.reason.kind !== 'corrupt' : error instanceof AdviseError;
      if (final || signal.aborted || attempt >= limits.attempts) {
        if (error instanceof AdviseError) throw error;
        throw new Error(`the artifact could not be downloaded: ${messageOf(error)}`, { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, limits.retryDelayMs * attempt));
    }
  }
}

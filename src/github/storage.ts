import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { AdviseError } from '../base/errors.ts';
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

const MAX_REDIRECTS = 3;
const IDLE_MS = 30_000;
/** So long a signed address is used again; GitHub's are good for a minute. */
const ADDRESS_MS = 45_000;
const MAX_PAUSE_MS = 30_000;

export interface StorageOptions {
  readonly octokit: Octokit;
  readonly repository: RepositoryRef;
  readonly artifact: Artifact;
  readonly policy: OutboundPolicy;
}

/** Where the bytes of one artifact lie. The token goes to the API host only; every host on the way must be allowed. */
export interface Storage {
  get(headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<IncomingMessage>;
  /** The next request asks GitHub for another address. */
  forgetAddress(): void;
  close(): void;
}

/** The address GitHub names for the bytes. */
async function askAddress({ octokit, repository, artifact }: StorageOptions, signal: AbortSignal): Promise<unknown> {
  const of = { owner: repository.owner, repo: repository.name };
  const request = { redirect: 'manual', signal } as const;
  const { place } = artifact;
  switch (place?.kind) {
    case undefined: {
      const route = 'GET /repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}';
      return (await octokit.request(route, { ...of, artifact_id: artifact.id, archive_format: 'zip', request })).headers.location;
    }
    case 'asset': {
      const headers = { accept: 'application/octet-stream' };
      const route = 'GET /repos/{owner}/{repo}/releases/assets/{asset_id}';
      return (await octokit.request(route, { ...of, asset_id: artifact.id, headers, request })).headers.location;
    }
    case 'file': {
      const { data } = await octokit.rest.repos.getContent({ ...of, path: place.path, ref: place.ref, request: { signal } });
      return Array.isArray(data) || data.type !== 'file' ? null : data.download_url;
    }
    case 'attachment':
      return place.url;
  }
}

/** A fresh address for the artifact's bytes, good for about a minute. */
async function freshAddress(options: StorageOptions, signal: AbortSignal): Promise<URL> {
  const { artifact } = options;
  try {
    const location = await askAddress(options, signal);
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

/** `connections`: so many are kept open at most. */
export function openStorage(options: StorageOptions, connections: number): Storage {
  const { policy } = options;
  const keep = { keepAlive: true, maxSockets: connections, maxFreeSockets: connections };
  const plain = new HttpAgent(keep);
  const secure = new HttpsAgent(keep);
  let address: { readonly url: Promise<URL>; readonly at: number } | null = null;

  /** GET without credentials, following a few redirects, each of which must be allowed. */
  async function open(from: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<IncomingMessage> {
    let url = from;
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const { lookup } = policy.check(url);
      const isSecure = url.protocol === 'https:';
      const own = { 'user-agent': 'npu-advisor', accept: '*/*', 'accept-encoding': 'identity', ...headers };
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const options = { signal, headers: own, agent: isSecure ? secure : plain, ...(lookup ? { lookup } : {}) };
        const request = (isSecure ? requestHttps : requestHttp)(url, options, resolve);
        request.setTimeout(IDLE_MS, () => request.destroy(new Error('the storage host stopped answering')));
        request.on('error', reject);
        request.end();
      });
      const location = response.headers.location;
      if (![301, 302, 303, 307, 308].includes(response.statusCode ?? 0) || location === undefined) return response;
      response.resume();
      url = new URL(location, url);
    }
    throw new AdviseError(
      'download-refused',
      { en: 'the download is redirected too often', zh: '下载被重定向的次数过多' },
      { en: 'The storage host is set up wrongly.', zh: '存储主机的配置有误。' },
    );
  }

  return {
    async get(headers, signal) {
      if (address === null || Date.now() - address.at > ADDRESS_MS) address = { url: freshAddress(options, signal), at: Date.now() };
      const { url } = address;
      return open(
        await url.catch((error: unknown) => {
          address = null;
          throw error;
        }),
        headers,
        signal,
      );
    },
    forgetAddress() {
      address = null;
    },
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}

/** What the storage host answered instead of bytes. */
export class StorageRefusal extends Error {
  readonly status: number;
  /** Pause it asks for. */
  readonly retryAfterMs: number | null;
  constructor(response: IncomingMessage) {
    super(`the storage host answered ${response.statusCode}`);
    this.name = 'StorageRefusal';
    this.status = response.statusCode ?? 0;
    const seconds = Number(response.headers['retry-after'] ?? Number.NaN);
    this.retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
  }
}

/** Waits before another try: longer each time, and as long as the host asks for, within reason. */
export async function pause(failures: number, delayMs: number, error: unknown, signal: AbortSignal): Promise<void> {
  const own = delayMs * 2 ** (failures - 1);
  const asked = error instanceof StorageRefusal ? (error.retryAfterMs ?? 0) : 0;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(MAX_PAUSE_MS, Math.max(own, asked)));
    signal.addEventListener('abort', done);
  });
}

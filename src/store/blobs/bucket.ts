import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { type Blobs, MAX_BLOB_BYTES } from './blobs.ts';
import type { BucketPlace } from './place.ts';

/** Of one request: 64 MB at 5 Mbit/s. */
const TIMEOUT_MS = 120_000;
const TRIES = 3;
const PAUSE_MS = 500;

interface Answer {
  readonly status: number;
  readonly body: Uint8Array;
}

/** Blobs as objects of a bucket: the three requests of the S3 protocol that every such storage knows, signed with version 4. */
export function openBucket({ url, region, accessKeyId, secretAccessKey }: BucketPlace): Blobs {
  /** Keys of a day, so that they are not made anew for each request. */
  const cache = new Map<string, ArrayBuffer>();

  async function once(method: string, key: string, body: Uint8Array<ArrayBuffer> | null): Promise<Answer> {
    if (cache.size > 3) cache.clear();
    const signer = new AwsV4Signer({
      method,
      url: `${url}/${key}`,
      // Signed, too, so that nobody on the way can put in other bytes.
      headers: {
        'x-amz-content-sha256': createHash('sha256')
          .update(body ?? '')
          .digest('hex'),
      },
      service: 's3',
      region,
      accessKeyId,
      secretAccessKey,
      cache,
    });
    const { url: to, headers } = await signer.sign();
    const response = await fetch(to, { method, headers, body, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { status: response.status, body: await bounded(response) };
  }

  async function request(method: string, key: string, bytes: Uint8Array | null = null): Promise<Answer> {
    const body = bytes === null ? null : new Uint8Array(bytes);
    for (let left = TRIES - 1; ; left--) {
      try {
        const answer = await once(method, key, body);
        if ((answer.status >= 500 || answer.status === 429) && left > 0) throw new Error('again');
        return answer;
      } catch (error) {
        if (left <= 0) throw error;
        await sleep(PAUSE_MS * (0.5 + Math.random()));
      }
    }
  }

  return {
    async write(key, bytes) {
      const { status, body } = await request('PUT', key, bytes);
      if (status !== 200 && status !== 201 && status !== 204) throw refused('written', status, body);
    },
    async read(key) {
      const { status, body } = await request('GET', key);
      if (status === 404 && codeOf(body) !== 'NoSuchBucket') return null;
      if (status !== 200) throw refused('read', status, body);
      return body;
    },
    async remove(key) {
      const { status, body } = await request('DELETE', key);
      if (status !== 200 && status !== 204 && status !== 404) throw refused('removed', status, body);
    },
  };
}

async function bounded(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BLOB_BYTES) throw new Error(`a blob of more than ${MAX_BLOB_BYTES} bytes is too large`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** What the storage calls its refusal, such as AccessDenied; nothing else of its answer is passed on. */
function codeOf(body: Uint8Array): string {
  return /<Code>(\w{1,60})<\/Code>/.exec(Buffer.from(body.subarray(0, 4096)).toString('latin1'))?.[1] ?? '';
}

function refused(what: string, status: number, body: Uint8Array): Error {
  return new Error(`a blob cannot be ${what}: the storage answers ${`${status} ${codeOf(body)}`.trim()}`);
}
